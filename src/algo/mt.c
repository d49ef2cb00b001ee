/* Momentum tracking (Takezawa, Bao, Niwa, Sato and Yamada, TMLR 2023): gradient tracking for
 * heavy-ball momentum, with a rate that does not depend on how much the agents' data differ.
 *   u  = beta u + g                        local momentum                        all [n x P]
 *   s  = c - u                             what is sent
 *   x+ = x + gamma (W x - x) - eta (u - c)
 *   c+ = s + gamma (W s - s) + u           correction; its mean over the agents is 0
 * starting from u = c = 0. Agents send x and s: twice the traffic of decentralized SGD. The method
 * is one of heavy-ball momentum: --nesterov plays no part.
 * tmlr23 (the authors' program) starts from the first gradients instead, in which it averages over
 * all agents once, by an all-reduce:
 *   u = c = (g - mean g) / (1 - beta)
 * so that the first step of every agent is along mean g.
 * Deviation: their program leaves weight decay out of the g of the start. Here it is in g, and
 * cancels where all agents start alike, as theirs do. */
#include "algo/algo.h"
#include "algo/mean.h"

enum { MOMENTUM, CORRECTION, SENT }; /* u, c, s */
enum { PAPER, TMLR23 };              /* ct_own_variant */

static ct_status create(ct_agents *a) {
    if (ct_own_variant(a) == PAPER) return CT_OK;
    if (a->faults != NULL)
        return ct_refuse("variant", "@variant tmlr23 of mt averages the first gradients over all "
                                    "agents, and none of them may be missing (@fault, sites)");
    return ct_mean_create(a, a->state);
}

static ct_status start_apart(ct_agents *a) {
    const double scale = 1 / (1 - a->hyper.momentum);
    ct_mean *mean = a->state;
    ct_bank *u = ct_own_buffer(a, MOMENTUM), *c = ct_own_buffer(a, CORRECTION);
    ct_update start = ct_agents_update(a);
    ct_mean_count(a);
    CT_TRY(ct_mean_take(mean, a, &a->g, &start));
    SET(&start, u, {scale, &a->g}, {-scale, &mean->mean, &mean->spread});
    SET(&start, c, {1, u});
    return ct_agents_apply(a, &start);
}

static ct_status step(ct_agents *a) {
    const double beta = a->hyper.momentum, gamma = a->hyper.gamma;
    ct_bank *x = &a->x, *u = ct_own_buffer(a, MOMENTUM), *c = ct_own_buffer(a, CORRECTION);
    ct_bank *s = ct_own_buffer(a, SENT), r = ct_temp(1), r_s = ct_temp(2);
    CT_TRY(ct_agents_exchange(a, x));
    CT_TRY(ct_agents_gradient(a, x, x));
    if (a->iteration == 0 && ct_own_variant(a) == TMLR23) CT_TRY(start_apart(a));

    ct_update local = ct_agents_update(a);
    SET(&local, u, {beta, u}, {1, &a->g});
    SET(&local, s, {1, c}, {-1, u});
    CT_TRY(ct_agents_apply(a, &local));

    CT_TRY(ct_agents_exchange(a, s));
    ct_update mix = ct_agents_update(a);
    SET(&mix, &r, {1, x, a->w}, {-1, x});
    SET(&mix, x, {1, x}, {gamma, &r}, {a->lr, s});
    SET(&mix, &r_s, {1, s, a->w}, {-1, s});
    SET(&mix, c, {1, s}, {gamma, &r_s}, {1, u});
    return ct_agents_apply(a, &mix);
}

static void free_mean(void *state) {
    ct_mean_free(state);
}

const ct_algo ct_algo_mt = {
    .name = "mt",
    .text = "momentum tracking: gradient tracking for heavy-ball momentum; twice the traffic "
            "(@variant paper|tmlr23)",
    .buffers = {"momentum", "correction", "sent"},
    .variants = {"tmlr23"},
    .state_size = sizeof(ct_mean),
    .create = create,
    .step = step,
    .free = free_mean,
};
