/* Centralized reference: parallel SGD, every agent steps with the mean gradient of all (the same
 * total batch as the decentralized methods), so that all hold the same model.
 *   gbar = (1/n) sum_i g_i                  [seeds x P]
 *   m    = beta m + gbar                    [n x P]
 *   d    = gbar + beta m  (Nesterov)   or   m
 *   x+   = x - eta d
 * The ledger counts a ring all-reduce: 2 (n - 1) / n rows an agent. */
#include "algo/algo.h"
#include "algo/mean.h"

enum { MOMENTUM };

/* bank = the mean over each seed's agents, in every row. */
static ct_status average(ct_agents *a, ct_bank *bank) {
    ct_mean *mean = a->state;
    ct_update u = ct_agents_update(a);
    CT_TRY(ct_mean_take(mean, a, bank, &u));
    SET(&u, bank, {1, &mean->mean, &mean->spread});
    return ct_agents_apply(a, &u);
}

static ct_status create(ct_agents *a) {
    CT_TRY(ct_mean_create(a, a->state));
    /* One model for all from the start, also where --init gave each its own. */
    return average(a, &a->x);
}

static ct_status step(ct_agents *a) {
    CT_TRY(ct_agents_gradient(a, &a->x, &a->x));
    ct_mean_count(a);
    CT_TRY(average(a, &a->g));
    return ct_agents_adapt(a, ct_own_buffer(a, MOMENTUM));
}

static void free_mean(void *state) {
    ct_mean_free(state);
}

const ct_algo ct_algo_allreduce = {
    .name = "allreduce",
    .text = "centralized reference: parallel SGD with the mean gradient of all agents",
    .graphs = CT_GRAPHS_UNUSED,
    .may_lose = CT_MAY_LOSE_NOTHING,
    .buffers = {"momentum"},
    .state_size = sizeof(ct_mean),
    .create = create,
    .step = step,
    .free = free_mean,
};
