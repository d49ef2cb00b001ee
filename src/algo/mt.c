/* Momentum tracking (Takezawa, Bao, Niwa, Sato and Yamada, TMLR 2023): gradient tracking for
 * heavy-ball momentum, with a rate that does not depend on how much the agents' data differ.
 *   u  = beta u + g                        local momentum                        all [n x P]
 *   s  = c - u                             what is sent
 *   x+ = x + gamma (W x - x) - eta (u - c)
 *   c+ = s + gamma (W s - s) + u           correction; its mean over the agents is 0
 * starting from u = c = 0. Agents send x and s: twice the traffic of decentralized SGD. The method
 * is one of heavy-ball momentum: --nesterov plays no part.
 * Deviation: the authors' program starts from u = c = (g - mean g) / (1 - beta) with the first
 * gradients without decay, for which it averages them over all agents once. */
#include "algo/algo.h"

enum { MOMENTUM, CORRECTION, SENT }; /* u, c, s */

static ct_status step(ct_agents *a) {
    const double beta = a->hyper.momentum, gamma = a->hyper.gamma;
    ct_bank *x = &a->x, *u = ct_own_buffer(a, MOMENTUM), *c = ct_own_buffer(a, CORRECTION);
    ct_bank *s = ct_own_buffer(a, SENT), r = ct_temp(1), r_s = ct_temp(2);
    CT_TRY(ct_agents_exchange(a, x));
    CT_TRY(ct_agents_gradient(a, x, x));

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

const ct_algo ct_algo_mt = {
    .name = "mt",
    .text = "momentum tracking: gradient tracking for heavy-ball momentum; twice the traffic",
    .buffers = {"momentum", "correction", "sent"},
    .step = step,
};
