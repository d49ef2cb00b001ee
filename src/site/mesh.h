/* Encrypted, mutually authenticated messages between neighbouring sites of a federation: libzmq with
 * CURVE (Curve25519). There is no centre: a site talks to its neighbours and to nobody else.
 *
 * One thread owns all sockets: it connects and reconnects, keeps peers alive with heartbeats while
 * the site computes, cuts large letters into pieces and puts them together again, and lets nothing
 * through that it has not checked. The site's own thread never blocks in a socket: it leaves letters
 * and takes those that have arrived whole.
 *
 * An edge has one connection, which one of the two dials (ct_mesh_peer.dials). A connection begins with a greeting in which
 * both sides must agree on protocol, federation and program, and the name must be the key's. A peer
 * that breaks the rules is named with the reason, cut off, and let in again after a while. */
#ifndef CT_SITE_MESH_H
#define CT_SITE_MESH_H

#include "site/keys.h"
#include "util/status.h"

#define CT_MESH_NAME    64
#define CT_MESH_ADDRESS 256
#define CT_MESH_STATUS  65536 /* most bytes that a site tells its neighbours with every heartbeat */

typedef struct ct_mesh ct_mesh;

typedef struct ct_mesh_peer {
    char name[CT_MESH_NAME];
    uint8_t key[CT_KEY_BYTES];     /* public */
    char address[CT_MESH_ADDRESS]; /* host:port where it listens; "": nowhere */
    bool dials;                    /* we dial it (its address is there); otherwise it dials us */
} ct_mesh_peer;

typedef struct ct_mesh_options {
    const char *name; /* own */
    const ct_key_pair *key;
    const char *listen; /* host:port to listen on; NULL or "": nobody dials us */
    const ct_mesh_peer *peers;
    int n_peers;
    uint8_t federation[32];  /* hash of the federation: alike at both ends */
    const char *program;     /* version of the program: likewise; at most 127 characters */
    double heartbeat_s;      /* a peer that is silent for three of them is gone; 0 = 2 s */
    size_t max_letter_bytes; /* a longer letter is refused before memory is taken for it */
} ct_mesh_options;

/* Listens and dials from now on. CT_IO: the address is taken or makes no sense. CT_NOTBUILT. */
ct_status ct_mesh_open(const ct_mesh_options *options, ct_mesh **out);
/* What was left is sent first, for at most three heartbeats; peers are told that we go. */
void ct_mesh_close(ct_mesh **mesh);
/* The port that is listened on; 0: none. For listen = "127.0.0.1:0". */
int ct_mesh_port(const ct_mesh *mesh);

/* ---- letters ---- */

typedef struct ct_letter {
    uint16_t kind; /* what it is, and what about: the caller's */
    uint16_t tag;
    uint64_t iteration;
    const void
        *bytes; /* [n]; of a letter that was taken: until the next ct_mesh_drop() of the peer */
    size_t n;
    uint64_t
        connection; /* of a letter that was taken: as in the UP of its connection, which may not
                          * have been looked at yet */
} ct_letter;

/* Leaves a copy to be sent. CT_IO: the peer is not connected (what is on its way when a connection
 * ends is lost; nothing is ever delivered twice or out of order). CT_INVAL: it is longer than the
 * peer takes. CT_BUSY: 512 letters, or more than twice max_letter_bytes, wait for the peer already,
 * whose caller does not take them; ct_mesh_wait() returns when there is room again. */
ct_status ct_mesh_send(ct_mesh *mesh, int peer, const ct_letter *letter);
/* The oldest letter of a peer that has arrived whole and was not dropped; false: there is none. Letters of a
 * connection that has ended since are no longer there; but those of a peer that left (DOWN "left") are,
 * until it is up again, so that the last letter of a site that goes can be read. */
bool ct_mesh_peek(ct_mesh *mesh, int peer, ct_letter *out);
/* The letter that was peeked at last; nothing if its connection has ended. */
void ct_mesh_drop(ct_mesh *mesh, int peer);
/* The caller found the letter's content unacceptable: the peer is cut off, as for any broken rule. No
 * more of its letters are shown, and the first reason stands. */
void ct_mesh_refuse(ct_mesh *mesh, int peer, const char *reason);

/* ---- who is there ---- */

typedef enum ct_mesh_event_kind {
    CT_MESH_UP,   /* greeted: letters can be sent. text: "" */
    CT_MESH_DOWN, /* gone. text: why ("silent for 6 s", "left", "connection lost") */
    /* text: one line with the peer's name (or address, of a stranger) and the reason. A DOWN follows
     * if the peer was up. */
    CT_MESH_REFUSED,
} ct_mesh_event_kind;

typedef struct ct_mesh_event {
    ct_mesh_event_kind kind;
    int peer;            /* -1: a stranger */
    uint64_t connection; /* to the peer: the first is 1 */
    char text[256];
} ct_mesh_event;

/* The next thing that has happened; false: nothing. Repeated refusals are told once a minute, with
 * their number. A peer that came back while the caller did not look is a DOWN and an UP. */
bool ct_mesh_next_event(ct_mesh *mesh, ct_mesh_event *out);
/* Greeted and not gone since. */
bool ct_mesh_is_up(ct_mesh *mesh, int peer);
/* Until a letter, an event or another status of a peer has come since the last call, or so many seconds have passed. Also
 * returns when ct_mesh_wake() is called, which may be from a signal handler. */
void ct_mesh_wait(ct_mesh *mesh, double seconds);
void ct_mesh_wake(ct_mesh *mesh);

/* What all neighbours are told with every heartbeat, and at once when it changes: at most CT_MESH_STATUS bytes. */
ct_status ct_mesh_set_status(ct_mesh *mesh, const void *bytes, size_t n);
/* The last one that a peer told in this connection, or before it left; *n = 0: none yet. bytes: room for
 * CT_MESH_STATUS. */
void ct_mesh_status_of(ct_mesh *mesh, int peer, void *bytes, size_t *n);

/* Another one whenever a peer has told another status. */
uint64_t ct_mesh_status_number(ct_mesh *mesh, int peer);

/* Letters longer than this are refused from now on; at first max_letter_bytes, and never more. */
void ct_mesh_limit(ct_mesh *mesh, size_t bytes);

/* ---- what travelled ---- */

typedef struct ct_mesh_traffic {
    uint64_t letters_sent, letters_received;
    uint64_t bytes_sent, bytes_received; /* of letters alone */
    uint64_t framed_sent,
        framed_received; /* with headers, greetings and heartbeats, before encryption */
    double rtt_s;        /* of the last heartbeat; 0: unknown */
} ct_mesh_traffic;
/* Since the mesh was opened. */
ct_mesh_traffic ct_mesh_traffic_of(ct_mesh *mesh, int peer);

#endif
