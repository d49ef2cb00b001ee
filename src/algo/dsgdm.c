/* DSGDm-N, the paper's Algorithm 1, adapt then combine; momentum stays local:       all [n x P]
 *   m      = beta m + g
 *   d      = g + beta m  (Nesterov)   or   m
 *   x_half = x - eta d
 *   x+     = x_half + gamma (W x_half - x_half) */
#include "algo/algo.h"

enum { MOMENTUM };

static ct_status step(ct_agents *a) {
    CT_TRY(ct_agents_gradient(a, &a->x, &a->x));
    CT_TRY(ct_agents_adapt(a, ct_own_buffer(a, MOMENTUM)));
    return ct_agents_combine(a);
}

const ct_algo ct_algo_dsgdm = {
    .name = "dsgdm",
    .graphs = CT_GRAPHS_AVERAGED,
    .may_compress = true,
    .learns_public = true,
    .text = "DSGDm-N: local (Nesterov) momentum, then gossip averaging",
    .buffers = {"momentum"},
    .step = step,
};
