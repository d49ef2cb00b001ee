/* No communication at all: every agent trains alone on its own samples. What any decentralized
 * method has to beat.
 *   m = beta m + g;  d = g + beta m (Nesterov) or m;  x+ = x - eta d */
#include "algo/algo.h"

static ct_status create(ct_agents *a, void **state) {
    (void)state;
    ct_bank *m;
    return ct_agents_buffer(a, "momentum", a->n, &m);
}

static ct_status step(ct_agents *a, void *state) {
    (void)state;
    ct_bank *x = &a->x, *m = &a->buffers[0].bank, d = ct_temp(1);
    CT_TRY(ct_agents_gradient(a, x, x));
    ct_update u = ct_agents_update(a);
    SET(&u, m, {a->hyper.momentum, m}, {1, &a->g});
    ct_agents_direction(a, &u, m, &d);
    SET(&u, x, {1, x}, {-a->lr, &d});
    return ct_agents_apply(a, &u);
}

const ct_algo ct_algo_local = {
    .name = "local",
    .graphs = CT_GRAPHS_DIRECTED, /* W plays no part */
    .text = "every agent alone, no communication: the lower bound",
    .create = create,
    .step = step,
};
