/* Decentralized SGD (Lian et al., NeurIPS 2017), adapt then combine:                all [n x P]
 *   x_half = x - eta g
 *   x+     = x_half + gamma (W x_half - x_half)                      (gamma = 1: x+ = W x_half) */
#include "algo/algo.h"

static ct_status step(ct_agents *a) {
    ct_bank *x = &a->x;
    CT_TRY(ct_agents_gradient(a, x, x));
    ct_update adapt = ct_agents_update(a);
    SET(&adapt, x, {1, x}, {-a->lr, &a->g});
    CT_TRY(ct_agents_apply(a, &adapt));
    return ct_agents_combine(a);
}

const ct_algo ct_algo_dsgd = {
    .name = "dsgd",
    .graphs = CT_GRAPHS_AVERAGED,
    .may_compress = true,
    .learns_public = true,
    .text = "decentralized SGD: a gradient step, then gossip averaging",
    .step = step,
};
