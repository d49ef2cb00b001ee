/* Centralized reference: parallel SGD, every agent steps with the mean gradient of all (the same
 * total batch as the decentralized methods), so that all hold the same model.
 *   gbar = (1/n) sum_i g_i                  [seeds x P]
 *   m    = beta m + gbar                    [n x P]
 *   d    = gbar + beta m  (Nesterov)   or   m
 *   x+   = x - eta d
 * The ledger counts a ring all-reduce: 2 (n - 1) / n rows an agent. */
#include "algo/algo.h"

enum { MOMENTUM };

typedef struct reduce_state {
    ct_bank mean;     /* [seeds] gbar of each seed's agents */
    ct_bank everyone; /* [rows] all processes' rows; no memory in one process */
    ct_sparse gather; /* [seeds x rows] 1/n where a row belongs to the seed */
    ct_sparse spread; /* [n x seeds] 1 at a row's seed */
} reduce_state;

/* bank = the mean over each seed's agents, in every row. */
static ct_status average(ct_agents *a, ct_bank *bank) {
    reduce_state *reduce = a->state;
    ct_bank *all = reduce->everyone.data != NULL ? &reduce->everyone : bank;
    CT_TRY(ct_transport_spread(a->transport, bank, all));
    ct_update u = ct_agents_update(a);
    SET(&u, &reduce->mean, {1, all, &reduce->gather});
    SET(&u, bank, {1, &reduce->mean, &reduce->spread});
    return ct_agents_apply(a, &u);
}

static void count_bytes(const ct_agents *a) {
    uint64_t n = (uint64_t)a->n_agents, bytes = 2 * (n - 1) * a->g.n * sizeof(float) / n;
    for (int row = 0; row < a->n_rows; row++)
        ct_transport_count(a->transport, row, CT_TRAFFIC_PARAMETERS, bytes);
}

static ct_status create(ct_agents *a) {
    reduce_state *reduce = a->state;
    CT_TRY(ct_sparse_means(a->n_seeds, a->n_agents, &reduce->gather));
    CT_TRY(ct_agents_seeds(a, &reduce->spread));
    CT_TRY(ct_bank_create(a->backend, a->n_seeds, 0, a->x.n, &reduce->mean));
    if (ct_transport_n_ranks(a->transport) > 1)
        CT_TRY(ct_bank_create(a->backend, a->n_rows, 0, a->x.n, &reduce->everyone));
    /* One model for all from the start, also where --init gave each its own. */
    return average(a, &a->x);
}

static ct_status step(ct_agents *a) {
    CT_TRY(ct_agents_gradient(a, &a->x, &a->x));
    count_bytes(a);
    CT_TRY(average(a, &a->g));
    return ct_agents_adapt(a, ct_own_buffer(a, MOMENTUM));
}

static void free_reduce(void *state) {
    reduce_state *reduce = state;
    ct_bank_free(&reduce->mean);
    ct_bank_free(&reduce->everyone);
    ct_sparse_free(&reduce->gather);
    ct_sparse_free(&reduce->spread);
}

const ct_algo ct_algo_allreduce = {
    .name = "allreduce",
    .text = "centralized reference: parallel SGD with the mean gradient of all agents",
    .graphs = CT_GRAPHS_UNUSED,
    .may_lose = CT_MAY_LOSE_NOTHING,
    .buffers = {"momentum"},
    .state_size = sizeof(reduce_state),
    .create = create,
    .step = step,
    .free = free_reduce,
};
