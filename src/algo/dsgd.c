/* Decentralized SGD (Lian et al., NeurIPS 2017), adapt then combine:
 *   x_half = x - eta g
 *   x+     = x_half + gamma (W x_half - x_half)                      (gamma = 1: x+ = W x_half) */
#include "algo/algo.h"

static ct_status create(ct_agents *a, void **state) {
    (void)a, (void)state;
    return CT_OK;
}

static ct_status step(ct_agents *a, void *state) {
    (void)state;
    ct_bank *x = &a->x, r = ct_temp(1);
    CT_TRY(ct_agents_gradient(a, x, x));

    ct_update adapt = ct_agents_update(a);
    SET(&adapt, x, {1, x}, {-a->lr, &a->g});
    CT_TRY(ct_agents_apply(a, &adapt));

    CT_TRY(ct_agents_exchange(a, x));
    ct_update combine = ct_agents_update(a);
    ct_agents_gossip(a, &combine, x, &r);
    return ct_agents_apply(a, &combine);
}

const ct_algo ct_algo_dsgd = {
    .name = "dsgd",
    .text = "decentralized SGD: a gradient step, then gossip averaging",
    .create = create,
    .step = step,
};
