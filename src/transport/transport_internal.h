/* What the transports of this folder share. */
#ifndef CT_TRANSPORT_INTERNAL_H
#define CT_TRANSPORT_INTERNAL_H

#include "transport/transport.h"
#include "util/json.h"

struct ct_transport {
    int n_rows, n_worlds, rank, n_ranks;
    const struct ct_transport_ops *ops; /* how ranks reach each other; NULL: there is one */
    struct ct_site *site;               /* NULL: ranks of a job */
    bool has_parted;                    /* from its neighbours: collectives are one's own word */
    int n_exchanges;                    /* of this iteration so far */
    double timeout_s, waited_s;
    ct_ledger_edge *edges; /* [n_edges] */
    int n_edges;
    int *first_edge;  /* [n_rows + 1] an agent's edges */
    uint64_t *others; /* [n_rows][CT_N_TRAFFIC] bytes that took no edge of the graph */
    double latency_s, seconds_per_byte;
    double *busy_s; /* [n_rows] of this iteration */
    double *link_s; /* [n_worlds] */
    float *scratch; /* [n_scratch] one row on its way */
    size_t n_scratch;
};

/* Rank that owns a row. */
int ct_transport_owner(const ct_transport *t, int row);

/* Enters a message of so many bytes into the ledger. */
void ct_ledger_enter(ct_transport *t, const ct_routes *routes, int message, ct_traffic kind,
                     uint64_t bytes);

/* A ct_merge of what ranks say of themselves. all: who they are together ("ranks of a job"). */
ct_status ct_agreement_merge(void *all, const char *theirs, size_t n, ct_text *mine);

/* What several ranks need; those functions that ct_transport_* of the same name has say what they
 * do. */
typedef struct ct_transport_ops {
    /* Room for the most messages; then those of now. */
    ct_status (*open)(ct_transport *t, ct_backend *backend, ct_routes *routes);
    ct_status (*link)(ct_transport *t, ct_routes *routes);
    void (*close)(ct_channel *channel);
    ct_status (*begin)(ct_transport *t, ct_routes *routes, ct_traffic kind, const ct_bank *bank);
    /* NULL: the messages of an exchange are sent together. */
    ct_status (*send_ahead)(ct_transport *t, ct_routes *routes, ct_traffic kind,
                            const ct_bank *bank, int message);
    /* Waits, and writes the halo rows of routes->pending. */
    ct_status (*finish)(ct_transport *t, ct_routes *routes);
    /* NULL: all messages of an exchange come together. */
    ct_status (*next)(ct_transport *t, ct_routes *routes, int *messages, int *n);
    ct_status (*gather)(ct_transport *t, const void *own, size_t size, void *all);
    /* Every row to rank 0, or `to_all`. */
    ct_status (*move_rows)(ct_transport *t, const ct_bank *bank, ct_bank *all, bool to_all);
    ct_status (*vote)(ct_transport *t, int mine, int *most);
    ct_status (*merge)(ct_transport *t, ct_merge *merge, void *context, ct_text *text);
    /* Not all messages are sent: begin and send_ahead enter those that are. */
    bool enters;
} ct_transport_ops;

/* Processes that a launcher started together. */
typedef struct ct_mpi_job {
    /* Starts MPI and tells who we are. */
    ct_status (*join)(int *rank, int *n_ranks);
    bool (*is_active)(void);
    void (*abort)(int code, void (*tell)(void *context, int rank), void *context);
    void (*end)(void);
    ct_transport_ops ops;
} ct_mpi_job;

extern const ct_transport_ops ct_site_ops;

/* NULL: not built. */
extern const ct_mpi_job *const ct_mpi;

#endif
