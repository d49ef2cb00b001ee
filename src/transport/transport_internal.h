/* What the transports of this folder share. */
#ifndef CT_TRANSPORT_INTERNAL_H
#define CT_TRANSPORT_INTERNAL_H

#include "transport/transport.h"
#include "util/json.h"

struct ct_transport {
    int n_rows, n_worlds, rank, n_ranks;
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

/* What another rank said of itself, against what we say. */
ct_status ct_agreement_check(const ct_json *ours, int rank, const char *text, size_t n);

/* What several ranks need; those functions that ct_transport_* of the same name has say what they
 * do. */
typedef struct ct_mpi_ops {
    /* Starts MPI and tells who we are. */
    ct_status (*join)(int *rank, int *n_ranks);
    bool (*is_active)(void);
    void (*abort)(int code, void (*tell)(void *context, int rank), void *context);
    void (*end)(void);
    /* Room for the most messages; then those of now. */
    ct_status (*open)(ct_transport *t, ct_backend *backend, ct_routes *routes);
    ct_status (*link)(ct_transport *t, ct_routes *routes);
    void (*close)(ct_channel *channel);
    ct_status (*begin)(ct_routes *routes, const ct_bank *bank);
    /* Waits, and writes the halo rows of routes->pending. */
    ct_status (*finish)(ct_transport *t, ct_routes *routes);
    ct_status (*gather)(ct_transport *t, const void *own, size_t size, void *all);
    /* Every row to rank 0, or `to_all`. */
    ct_status (*move_rows)(ct_transport *t, const ct_bank *bank, ct_bank *all, bool to_all);
    ct_status (*vote)(ct_transport *t, int mine, int *most);
    /* Rank 0 judges every other rank's text, and all ranks return what it says of the first that it
     * refuses. */
    ct_status (*compare)(ct_transport *t, const char *mine, size_t n,
                         ct_status (*judge)(void *context, int rank, const char *text, size_t n),
                         void *context);
} ct_mpi_ops;

/* NULL: not built. */
extern const ct_mpi_ops *const ct_mpi;

#endif
