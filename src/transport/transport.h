/* How rows get from the agent that owns them to the agents that need them, and what that costs.
 *
 * The rows of a run (agents of all seeds) are spread over the ranks of a job in contiguous, nearly
 * equal blocks. Every rank's banks hold its own rows first, then *halo rows*: copies of rows that
 * live elsewhere. In one process every row is own and an exchange moves nothing; the ledger still
 * counts every byte that a network between agents would carry, per edge, direction and kind. */
#ifndef CT_TRANSPORT_TRANSPORT_H
#define CT_TRANSPORT_TRANSPORT_H

#include "backend/backend.h"
#include "util/text.h"

typedef enum ct_traffic { CT_TRAFFIC_PARAMETERS, CT_TRAFFIC_CLASS_SUMS, CT_N_TRAFFIC } ct_traffic;

typedef struct ct_transport ct_transport;
typedef struct ct_channel ct_channel;

typedef struct ct_transport_options {
    const char *kind;        /* local, mpi; auto = mpi if a launcher started several ranks */
    double timeout_s;        /* the longest wait for a peer; 0 = 300 */
    double link_latency_s;   /* of a simulated link between two agents */
    double link_bytes_per_s; /* likewise; 0 = no limit */
    int n_worlds;            /* parts of the rows that never meet (seeds); 0 = 1 */
    const ct_text *shared;   /* ct_transport_agree() on this before anything else; may be NULL */
    struct ct_site *site;    /* site/site.h: every row is a site, and this process one of them */
} ct_transport_options;

/* Rows first .. first+n-1. */
typedef struct ct_span {
    int first, n;
} ct_span;

/* How many processes a launcher (mpirun, srun) started this one with; 1 without a launcher. */
int64_t ct_transport_n_launched(void);
/* Which of them this one is, by what their launcher says; 0 where it does not. */
int ct_transport_launch_rank(void);

/* The rows of one of n_ranks. */
ct_span ct_rank_rows(int n_rows, int n_ranks, int rank);

/* Refused (CT_INVAL) if there are more ranks than rows; CT_NOTBUILT without MPI. */
ct_status ct_transport_create(const ct_transport_options *options, int n_rows, ct_transport **out);
void ct_transport_free(ct_transport **transport);
int ct_transport_rank(const ct_transport *transport);
int ct_transport_n_ranks(const ct_transport *transport);
/* The rows of a rank. */
ct_span ct_transport_rows(const ct_transport *transport, int rank);
ct_span ct_transport_own(const ct_transport *transport);

/* The others are sites of their own, which tell nobody but their neighbours anything: this process
 * knows its own rows and nothing of the others. Of the collectives, ct_transport_merge is among all
 * of them, until ct_transport_part; the others have this process' word alone. */
bool ct_transport_is_apart(const ct_transport *transport);
void ct_transport_part(ct_transport *transport);
struct ct_site *ct_transport_site(const ct_transport *transport);
/* The iteration that exchanges belong to from now on. */
void ct_transport_set_iteration(ct_transport *transport, long iteration);

/* ---- messages ---- */

/* What rows that travel packed are unpacked into, where the transport does it: between sites, whose
 * rows are checked before they are used. Elsewhere the receivers do. */
typedef struct ct_unpacking {
    ct_bank *rows;    /* own rows: what they are once unpacked; halo rows: those of others */
    float *values;    /* [rows->n] scratch */
    bool are_changes; /* added to what was there; who has nothing yet gets the row as it is */
    /* values += what the packed row of bank row `row` says; false: it is no such row. */
    bool (*unpack)(const void *context, int row, const void *packed, float *values);
    const void *context;
} ct_unpacking;

/* The messages of one exchange: message k goes from agent from[k] to agent to[k] (rows of the whole
 * run). It carries the sender's row of a bank with one row an agent or, `by_edge` and then in the
 * order of the senders, row k of a bank with one row a message. */
typedef struct ct_routes {
    int n;
    int n_room;     /* most messages at a time */
    int *from, *to; /* [n] */
    bool by_edge;
    size_t n_columns; /* of the banks that travel */
    /* this rank's part */
    ct_span own; /* items (agents or messages) that are own rows */
    int n_halo;
    int *halo; /* [n_halo] items in the halo rows, ascending */
    int *edge; /* [n] the message's place in the ledger; -1 = none of its own */
    /* the most that any messages need that room was made for: own items, halo rows, and rows that
     * go to other ranks */
    int most_own, most_halo, most_sent;
    ct_channel *channel; /* what the ranks' way has set up; NULL where nothing crosses ranks */
    void (*close)(ct_channel *channel);
    ct_bank *pending; /* whose exchange has begun and not finished */
    /* mailboxes, for those who keep what arrived apart from what was sent: after the halo rows, one
     * for every message to an own agent; `arrived` (may be NULL) fills one when its message is
     * there, at the latest when the exchange is finished */
    int *mail; /* [n] the message's mailbox row; -1: not for us */
    int n_mail;
    const struct ct_bank
        *before; /* whose mailboxes hold what came before, if not the bank itself */
    ct_status (*arrived)(void *context, struct ct_routes *routes, ct_bank *bank, int message);
    void *context;
    const ct_unpacking *unpacking; /* NULL: rows travel as they are, or are unpacked elsewhere */
    bool *is_lost;  /* [n] messages of the last exchange that never came; NULL: all come */
    bool *is_taken; /* [n] those of this one that are there already; NULL: they come together */
} ct_routes;

/* Room for n messages; the caller fills from and to, then opens the routes. */
ct_status ct_routes_create(int n, ct_routes *out);
/* If messages will change: before the opening, room for those that from, to and n say now, once for
 * every set of them; or for any of which this process's agents send and receive so many. */
ct_status ct_routes_reserve(const ct_transport *transport, bool by_edge, ct_routes *routes);
void ct_routes_reserve_any(const ct_transport *transport, bool by_edge, int n_sent, int n_received,
                           ct_routes *routes);
/* Makes room for the messages of now, takes all memory and links them. The banks that travel are
 * this backend's. */
ct_status ct_routes_open(ct_transport *transport, ct_backend *backend, bool by_edge,
                         size_t n_columns, ct_routes *routes);
/* After from, to and n have changed, to messages that there is room for: own items and halo rows
 * are theirs from now on, and no bank's halo rows are. An exchange that has begun is finished
 * before. */
ct_status ct_routes_link(ct_transport *transport, ct_routes *routes);
void ct_routes_free(ct_routes *routes);
/* The bank row that holds an item here; -1 if none does. */
int ct_routes_row(const ct_routes *routes, int item);

/* Brings the bank's halo rows up to date and enters the messages into the ledger; a bank whose halo
 * rows are fresh is left alone and costs nothing. In two halves: between them the bank may be read
 * and even changed (what travels are the values at the beginning), but its halo rows are not there
 * yet. A wait longer than the time limit is CT_IO and names the peer. */
ct_status ct_transport_begin(ct_transport *transport, ct_routes *routes, ct_traffic kind,
                             ct_bank *bank);
ct_status ct_transport_finish(ct_transport *transport, ct_routes *routes);
/* Waits for some of the messages only, where they come one by one: messages [n] are there now. *n is
 * 0 when the exchange is finished. */
ct_status ct_transport_next(ct_transport *transport, ct_routes *routes, int *messages, int *n);
/* Of the next exchange, which will be of these routes and this bank, one message whose row is ready;
 * beginning it sends the others. Where messages go together, nothing. */
ct_status ct_transport_send_ahead(ct_transport *transport, ct_routes *routes, ct_traffic kind,
                                  const ct_bank *bank, int message);
ct_status ct_transport_exchange(ct_transport *transport, ct_routes *routes, ct_traffic kind,
                                ct_bank *bank);
/* The same without an entry in the ledger: a resumed run has its halo rows back. */
ct_status ct_transport_refresh(ct_transport *transport, ct_routes *routes, ct_bank *bank);

/* ---- all ranks together: every rank must make the same calls in the same order ---- */

/* Everyone gets everyone's records: own holds `size` bytes for each own row, all for each row. */
ct_status ct_transport_gather(ct_transport *transport, const void *own, size_t size, void *all);
/* Everyone gets every row: all[row], of the whole run. Nothing in one process. */
ct_status ct_transport_spread(ct_transport *transport, const ct_bank *bank, ct_bank *all);
/* Rank 0 gets every row; `all` is its bank of all rows (NULL on the others). */
ct_status ct_transport_collect(ct_transport *transport, const ct_bank *bank, ct_bank *all);
/* Refused (CT_INVAL) on all ranks, naming both values, if one of them has another value than rank 0.
 * mine: members of a JSON object, all of them texts; names that only some ranks have are not
 * compared. An option is called "@name". */
ct_status ct_transport_agree(ct_transport *transport, const ct_text *mine);
/* mine <- what two ranks say, put together. The result must not depend on the order in which all of
 * them are merged. theirs: input from another process. */
typedef ct_status ct_merge(void *context, const char *theirs, size_t n, ct_text *mine);
/* Every rank ends with what all of them say; a refusal is everyone's. */
ct_status ct_transport_merge(ct_transport *transport, ct_merge *merge, void *context,
                             ct_text *text);
/* The largest of the ranks' values; a barrier too. */
ct_status ct_transport_vote(ct_transport *transport, int mine, int *most);

/* Ends a job of several ranks after a failure on this one: tell() is called when it is this
 * rank's turn to say why, and every rank ends with `code`. Returns where there is only one. */
void ct_transport_abort(int code, void (*tell)(void *context, int rank), void *context);
/* Lets the launcher know that this rank is done; nothing in one process. */
void ct_transport_end(void);

/* ---- the ledger: the same on every rank ---- */

/* A graph's directed edges: row i's lead to neighbour[begin[i]] .. neighbour[begin[i+1]-1]. */
ct_status ct_ledger_open(ct_transport *transport, const int *begin, const int *neighbour);
int ct_ledger_n_edges(const ct_transport *transport);
typedef struct ct_ledger_edge {
    int from, to;
    uint64_t bytes[CT_N_TRAFFIC];
} ct_ledger_edge;
ct_ledger_edge *ct_ledger_edges(ct_transport *transport);
/* Enters bytes into the ledger that no exchange carries (an all-reduce). */
void ct_transport_count(ct_transport *transport, int agent, ct_traffic kind, uint64_t bytes);
/* [rows][CT_N_TRAFFIC] what was entered that way; may be set (a resumed run) */
uint64_t *ct_ledger_others(ct_transport *transport);
/* Bytes an agent has sent so far. */
uint64_t ct_transport_sent(const ct_transport *transport, int agent, ct_traffic kind);

/* Simulated link: after every iteration, the seconds that its messages would have taken, i.e. the
 * most that any agent of a world spends on sending: latency + bytes / bandwidth a message, one
 * after the other. */
void ct_ledger_end_iteration(ct_transport *transport);
/* What a message takes on the simulated link. */
double ct_ledger_message_s(const ct_transport *transport, uint64_t bytes);
/* An agent is late in this iteration: its world waits for it. */
void ct_ledger_delay(ct_transport *transport, int agent, double seconds);
/* [n_worlds] so far; may be set (a resumed run) */
double *ct_ledger_link_seconds(ct_transport *transport);

/* Seconds this rank has waited for messages, since the last reset. */
double ct_transport_waited_s(const ct_transport *transport);
void ct_transport_reset_wait(ct_transport *transport);

#endif
