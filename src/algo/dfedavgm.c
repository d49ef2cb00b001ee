/* DFedAvgM (Sun, Li and Wang: Decentralized Federated Averaging, IEEE TPAMI 2022): H iterations of
 * heavy-ball SGD, then gossip; momentum starts from zero in every such round. With --local-steps H,
 * a round is H iterations, the last of which gossips:                              all [n x P]
 *   m      = beta m + g                         (first iteration of a round: m = g)
 *   x_half = x - eta m
 *   x+     = x_half + gamma (W x_half - x_half) (last iteration of a round; else x+ = x_half)
 * With --local-steps 1 nothing is left of the momentum: it is decentralized SGD. The method is one of
 * heavy-ball momentum: --nesterov plays no part.
 * Deviation: the paper adds theta (x_k - x_(k-1)), which is beta eta m unless eta changes in a round.
 * No program of the authors was found. */
#include "algo/algo.h"

#include "util/log.h"

enum { MOMENTUM };

static ct_status create(ct_agents *a) {
    if (a->links.schedule == NULL || a->links.schedule->local.last <= 1)
        ct_note("dfedavgm with @local-steps 1 has no momentum: it is dsgd");
    return CT_OK;
}

static ct_status step(ct_agents *a) {
    const double beta = ct_agents_begin_round(a) ? 0 : a->hyper.momentum;
    ct_bank *x = &a->x, *m = ct_own_buffer(a, MOMENTUM);
    CT_TRY(ct_agents_gradient(a, x, x));
    ct_update adapt = ct_agents_update(a);
    SET(&adapt, m, {beta, m}, {1, &a->g});
    SET(&adapt, x, {1, x}, {-a->lr, m});
    CT_TRY(ct_agents_apply(a, &adapt));
    return ct_agents_combine(a);
}

const ct_algo ct_algo_dfedavgm = {
    .name = "dfedavgm",
    .graphs = CT_GRAPHS_AVERAGED,
    .may_compress = true,
    .text = "DFedAvgM: with @local-steps, rounds of local heavy-ball SGD, then gossip averaging",
    .buffers = {"momentum"},
    .create = create,
    .step = step,
};
