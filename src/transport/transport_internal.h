/* What the transports of this folder share. */
#ifndef CT_TRANSPORT_INTERNAL_H
#define CT_TRANSPORT_INTERNAL_H

#include "transport/transport.h"

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

/* Ascending, each number once; returns how many are left. */
int ct_sort_unique(int *numbers, int n);

/* MPI, or CT_NOTBUILT. `join` starts it and tells who we are. */
ct_status ct_mpi_join(int *rank, int *n_ranks);
bool ct_mpi_is_active(void);
void ct_mpi_abort(int code, void (*tell)(void *context, int rank), void *context);
void ct_mpi_end(void);
/* Room for the most messages; then those of now. */
ct_status ct_mpi_open(ct_transport *t, ct_backend *backend, ct_routes *routes);
ct_status ct_mpi_link(ct_transport *t, ct_routes *routes);
void ct_mpi_close(ct_channel *channel);
ct_status ct_mpi_begin(ct_transport *t, ct_routes *routes, const ct_bank *bank);
/* Waits, and writes the halo rows of routes->pending. */
ct_status ct_mpi_finish(ct_transport *t, ct_routes *routes);
ct_status ct_mpi_gather(ct_transport *t, const void *own, size_t size, void *all);
ct_status ct_mpi_spread(ct_transport *t, const ct_bank *bank, ct_bank *all);
ct_status ct_mpi_collect(ct_transport *t, const ct_bank *bank, ct_bank *all);
ct_status ct_mpi_vote(ct_transport *t, int mine, int *most);

#endif
