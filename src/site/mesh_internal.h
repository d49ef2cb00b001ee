/* The mesh's own: queues of letters, what is known of a peer, sockets. */
#ifndef CT_SITE_MESH_INTERNAL_H
#define CT_SITE_MESH_INTERNAL_H

#include "ct_config.h"
#include "site/mesh_wire.h"

#if CT_WITH_ZMQ
#include <poll.h>
#include <pthread.h>
#include <sys/types.h>
#include <zmq.h>

#include "util/memory.h"

#define CT_LINE 1536 /* room for a line before it becomes an event, with all that it may quote */

/* ---- letters that wait (mesh_queue.c) ---- */

typedef struct ct_parcel {
    struct ct_parcel *next;
    ct_letter letter; /* its bytes are those below */
    _Alignas(CT_ALIGNMENT) uint8_t bytes[];
} ct_parcel;

typedef struct ct_parcels {
    ct_parcel *first, *last;
    size_t n, n_bytes;
} ct_parcels;

/* A parcel for a letter of that kind and length; its bytes are copied if it has any. */
ct_status ct_parcel_create(const ct_letter *letter, ct_parcel **out);
void ct_parcels_push(ct_parcels *list, ct_parcel *parcel);
ct_parcel *ct_parcels_pop(ct_parcels *list); /* NULL: empty */
void ct_parcels_free(ct_parcels *list);

/* ---- peers ---- */

/* The way to a peer: a socket and, behind the one that listens, the name of a connection. */
typedef struct ct_route {
    void *socket; /* NULL: none */
    uint8_t id[255];
    size_t n_id; /* 0: the socket has one connection only */
    int fd;      /* of the connection, with its inode: numbers are used again */
    ino_t inode;
} ct_route;

typedef struct ct_lookup ct_lookup;

/* What is told once a minute, and how often it has happened since. */
typedef struct ct_teller {
    char last[CT_LINE];
    double told_at;
    unsigned n_more;
} ct_teller;

/* Pieces that were handed over and not seen by the peer yet: as many as it sees within half a heartbeat.
 * More would only wait in the buffers of a slow connection, with heartbeats behind them. */
#define CT_FLIGHT 256
typedef struct ct_flight {
    struct {
        uint64_t sequence;
        double at;
    } pieces[CT_FLIGHT]; /* those numbered n_seen to n_sent - 1, by number */
    uint64_t n_sent, n_seen;
    unsigned n_allowed; /* at a time */
    double slowed_at;   /* when that was made less */
} ct_flight;

typedef struct ct_link {
    ct_mesh_peer peer;
    int index;

    /* Shared with the caller's thread: under the mesh's lock. */
    bool is_up;
    uint64_t n_connections; /* so far */
    ct_parcels outbox, inbox;
    ct_parcel *lent;                            /* what the caller has peeked at */
    ct_parcels stale;                           /* lent, of a connection that has ended */
    uint64_t n_taken, n_taken_told;             /* letters dropped by the caller; told the peer */
    uint64_t n_taken_bytes, n_taken_bytes_told; /* likewise */
    size_t longest, n_window; /* letter, and bytes not taken yet, that it allows */
    uint8_t *status;          /* [CT_MESH_STATUS] */
    size_t n_status;
    uint64_t n_statuses;
    ct_mesh_traffic traffic;
    char refused[CT_WIRE_REASON]; /* by the caller, for this reason; "": not */

    /* The network thread's. */
    ct_route route;    /* socket NULL: no connection; not greeted yet: !is_up */
    ct_route old;      /* the one before: what is still coming from there is nobody's fault */
    void *monitor;     /* tells what becomes of a connection that we dial */
    ct_lookup *lookup; /* before that: of its host's name */
    unsigned n_dialled;
    bool is_connected, has_greeted;
    bool owes_sight; /* a piece has come that the peer should know seen */
    bool is_blocked; /* libzmq has no room for the next frame */
    bool is_lost;    /* the connection is gone; what came before is looked at first */
    ct_wire_session wire;
    ct_parcel *arriving, *leaving;
    size_t n_left;                  /* bytes of `leaving` that were sent */
    size_t flying[CT_WIRE_LETTERS]; /* lengths of letters sent and not taken, by number */
    size_t n_flying_bytes;          /* their sum */
    ct_flight flight;
    uint64_t n_needed;    /* frames that the peer must have seen to have all letters */
    uint64_t status_told; /* version of our status */
    uint64_t clock;       /* of the peer, when it was last heard */
    double clock_at;
    double heard_at, moved_at, beat_at; /* last frame; last sign of being read; next heartbeat */
    double up_at, until, dial_at, cold_until; /* no answer by then; next try; ignored so long */
    ct_route cut;                             /* to be cut off at: */
    double cut_at;
    char reason[CT_WIRE_REASON + 1]; /* why it is cold */
    ct_teller refusals;
} ct_link;

struct ct_mesh {
    ct_greeting greeting; /* ours, but for the session's number */
    ct_key_pair key;
    double beat_s;
    size_t max_letter_bytes;
    int n_links;
    ct_link *links; /* [n_links] */
    int port;

    pthread_mutex_t lock;
    ct_mesh_event *events; /* [n_events], of which the caller has n_told */
    size_t n_events, n_told;
    uint8_t *status; /* [CT_MESH_STATUS] ours */
    size_t n_status;
    uint64_t status_version;
    bool is_closing;
    size_t limit_bytes; /* of a letter, at the moment */

    int bell;  /* eventfd: rung when something happens, for the caller */
    int alarm; /* eventfd: rung when the caller wants something, for the network thread */
    pthread_t thread;
    bool has_thread;

    /* The network thread's. */
    void *context, *zap, *router;
    double looked_at;      /* when everything was looked at last */
    struct pollfd *polled; /* [3 + 2 n_links] */
    ct_teller strangers;
};

/* ---- sockets (mesh_socket.c, mesh_zap.c) ---- */

/* The context, the ZAP handler and, where `listen` says so, the socket that listens. */
ct_status ct_sockets_open(ct_mesh *mesh, const char *listen);
void ct_sockets_close(ct_mesh *mesh);
ct_status ct_link_dial(ct_mesh *mesh, ct_link *link, const char *address);
/* Closes what was dialled; what was handed over is sent for so long at most. */
void ct_link_hang_up(ct_link *link, double linger_s);
/* What became of the connection: 1 it is there, 0 nothing new, -1 it is gone (why: ""  or a line). */
int ct_link_watch(ct_link *link, char why[CT_LINE]);

typedef enum ct_sent { CT_SENT, CT_SENT_LATER, CT_SENT_NEVER } ct_sent;
/* LATER: there is no room now. NEVER: the connection is gone. */
ct_sent ct_route_send(const ct_route *route, const ct_frame *frame);
/* Ends a connection of the listening socket, for which libzmq has no call of its own. */
void ct_route_cut(ct_route *route);
bool ct_route_is(const ct_route *a, const ct_route *b);
/* A message that has come. */
typedef struct ct_arrival {
    zmq_msg_t message;
    const char *name; /* whose key it came with; NULL: over a dialled socket */
    ct_route route;   /* from the listening socket: where it came from */
    bool is_several;  /* parts, where one is right; this is the last */
} ct_arrival;
/* False: none now. One that came is closed with zmq_msg_close(). */
bool ct_route_receive(void *socket, bool is_router, ct_arrival *out);
bool ct_socket_has_input(void *socket);
int ct_socket_fd(void *socket);
/* Answers who asks for admission; true if anybody did. */
bool ct_zap_serve(ct_mesh *mesh);

/* ---- names of hosts (mesh_lookup.c) ---- */

/* host:port, where the host is no number. */
bool ct_lookup_is_needed(const char *address);
/* The mesh's alarm is rung when it is done. The attempt says which of several addresses is taken. */
ct_status ct_lookup_start(const ct_mesh *mesh, const char *address, unsigned attempt,
                          ct_lookup **out);
bool ct_lookup_is_done(const ct_lookup *lookup);
ct_status ct_lookup_result(const ct_lookup *lookup, char address[CT_MESH_ADDRESS]);
void ct_lookup_free(ct_lookup **lookup); /* accepts NULL inside, and one that is not done */

/* ---- a peer's connection ---- */

/* mesh_link.c */
void ct_link_up(ct_mesh *mesh, ct_link *link, const ct_greeting *theirs, double now);
/* The session is over; DOWN with the reason if it was up. */
void ct_link_end(ct_mesh *mesh, ct_link *link, double now, const char *why);
/* The same of a peer that says so: letters that have arrived whole may still be taken. */
void ct_link_leave(ct_mesh *mesh, ct_link *link, double now);
/* Of one with whom we do not agree, and who may be mended; the line names it. */
void ct_link_disagree(ct_mesh *mesh, ct_link *link, double now, const char *line);
/* Of one that broke a rule. */
void ct_link_refuse(ct_mesh *mesh, ct_link *link, double now, const char *reason);
void ct_link_cut_later(ct_mesh *mesh, ct_link *link, const ct_route *route, double now);
/* Looks at the clock. is_drained: everything that has come was looked at. True: look again. */
bool ct_link_tick(ct_mesh *mesh, ct_link *link, bool is_drained, double now);

/* mesh_receive.c */
void ct_link_heard(ct_mesh *mesh, ct_link *link, const ct_arrival *arrival, double now);

/* mesh_send.c */
/* The peer has seen so many frames. */
void ct_flight_land(ct_flight *flight, uint64_t n_seen, double beat_s, double now);
/* Sends what there is to send; true if anything was. */
bool ct_link_send(ct_mesh *mesh, ct_link *link, double now);
void ct_link_send_greeting(ct_mesh *mesh, ct_link *link);
void ct_link_send_refusal(ct_mesh *mesh, ct_link *link, const char *reason);
void ct_link_send_goodbye(ct_mesh *mesh, ct_link *link);

/* The caller has left as much as may wait. */
static inline bool ct_outbox_is_full(const ct_mesh *m, const ct_link *l) {
    return l->outbox.n >= 4 * CT_WIRE_LETTERS || l->outbox.n_bytes > 2 * m->max_letter_bytes;
}

/* The caller has taken so much that the peer should know before the next heartbeat. */
static inline bool ct_link_owes_credit(const ct_mesh *m, const ct_link *l) {
    return l->n_taken - l->n_taken_told >= CT_WIRE_LETTERS / 4 ||
           l->n_taken_bytes - l->n_taken_bytes_told > m->max_letter_bytes / 2;
}

/* ---- the thread (mesh_thread.c) ---- */

void *ct_mesh_thread(void *mesh);
void ct_mesh_ring(int eventfd);

/* ---- events (mesh.c) ---- */

void ct_mesh_tell(ct_mesh *mesh, ct_mesh_event_kind kind, int peer, const char *format, ...)
    CT_PRINTF(4, 5);
/* Told at once, and again after a minute, with the number of those between. Of a stranger (-1)
 * whatever it says, of a peer if it is the same line. */
void ct_mesh_tell_refused(ct_mesh *mesh, ct_teller *teller, int peer, const char *line);

#endif
#endif
