/* DSGDm-N, the paper's Algorithm 1, adapt then combine; momentum stays local:
 *   m      = beta m + g
 *   d      = g + beta m  (Nesterov)   or   m
 *   x_half = x - eta d
 *   x+     = x_half + gamma (W x_half - x_half) */
#include "algo/algo.h"

static ct_status create(ct_agents *a, void **state) {
    ct_bank *m;
    CT_TRY(ct_agents_buffer(a, "momentum", a->n, &m));
    *state = m;
    return CT_OK;
}

static ct_status step(ct_agents *a, void *state) {
    ct_bank *x = &a->x, *m = state, d = ct_temp(1), r = ct_temp(1);
    CT_TRY(ct_agents_gradient(a, x, x));

    ct_update adapt = ct_agents_update(a);
    SET(&adapt, m, {a->hyper.momentum, m}, {1, &a->g});
    ct_agents_direction(a, &adapt, m, &d);
    SET(&adapt, x, {1, x}, {-a->lr, &d});
    CT_TRY(ct_agents_apply(a, &adapt));

    CT_TRY(ct_agents_exchange(a, x));
    ct_update combine = ct_agents_update(a);
    ct_agents_gossip(a, &combine, x, &r);
    return ct_agents_apply(a, &combine);
}

const ct_algo ct_algo_dsgdm = {
    .name = "dsgdm",
    .text = "DSGDm-N: local (Nesterov) momentum, then gossip averaging",
    .create = create,
    .step = step,
};
