/* No communication at all: every agent trains alone on its own samples. What any decentralized
 * method has to beat.                                                              all [n x P]
 *   m  = beta m + g
 *   d  = g + beta m  (Nesterov)   or   m
 *   x+ = x - eta d */
#include "algo/algo.h"

enum { MOMENTUM };

static ct_status step(ct_agents *a) {
    CT_TRY(ct_agents_gradient(a, &a->x, &a->x));
    return ct_agents_adapt(a, ct_own_buffer(a, MOMENTUM));
}

const ct_algo ct_algo_local = {
    .name = "local",
    .text = "every agent alone, no communication: the lower bound",
    .graphs = CT_GRAPHS_UNUSED,
    .buffers = {"momentum"},
    .step = step,
};
