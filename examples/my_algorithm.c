/* Decentralized SGD that talks twice: a worked example for docs/ADDING.md.
 *   x_half = x - eta g                                                     all [n x P]
 *   x+     = W W x_half
 * Two rounds of gossip after every gradient: agents agree better, for twice the traffic. */
#include "algo/algo.h"

/* x <- W x, after the neighbours' rows have arrived. */
static ct_status gossip(ct_agents *a) {
    ct_bank *x = &a->x, mixed = ct_temp(1);
    CT_TRY(ct_agents_exchange(a, x));
    ct_update u = ct_agents_update(a);
    SET(&u, &mixed, {1, x, a->w});
    SET(&u, x, {1, &mixed});
    return ct_agents_apply(a, &u);
}

static ct_status step(ct_agents *a) {
    ct_bank *x = &a->x;
    CT_TRY(ct_agents_gradient(a, x, x)); /* with --loss ccl, cross-features are exchanged in here */

    ct_update adapt = ct_agents_update(a);
    SET(&adapt, x, {1, x}, {-a->lr, &a->g});
    CT_TRY(ct_agents_apply(a, &adapt));
    CT_TRY(gossip(a));
    return gossip(a);
}

const ct_algo ct_algo_my_algorithm = {
    .name = "my-algorithm",
    .text = "decentralized SGD with two rounds of gossip",
    .step = step,
};
