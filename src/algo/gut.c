/* Global update tracking (Aketi, Hashemi and Roy, NeurIPS 2023): tracks how the neighbourhood's
 * models move instead of its gradients, which every agent sees for itself in the models it
 * receives.                                                                         all [n x P]
 *   mix   = x + gamma (W x - x)
 *   delta = g + (x - mix) / eta                       the update of decentralized SGD
 *   y     = delta + mu (W y_prev - g_prev)            tracked; first step: y = delta
 *   x+    = x - eta d
 *   d     = y                                         GUT; or with quasi-global momentum, QG-GUTm:
 *   d     = beta mh + y
 *   mh+   = beta mh + (1 - beta) d
 * The mean of y over the agents is that of g; the bias of decentralized SGD shrinks by 1 - mu.
 * What was tracked, W y_prev, follows from models alone. As mh is made of an agent's moves, so is
 * M = W mh of its neighbours' (with mix for W x):
 *   e        = W d_prev = (mix_prev - mix) / eta_prev
 *   W y_prev = e - beta M
 *   M+       = beta M + (1 - beta) e
 * so that nothing but x is sent. The momentum is heavy-ball: --nesterov plays no part (gossip is
 * part of y, and Nesterov's look-ahead makes that unstable).
 * Deviation: the authors' code takes the gradient at mix, and with momentum approximates W y_prev
 * by a shift. */
#include "algo/algo.h"

enum { MIX, GRADIENT, MOMENTUM, MIXED_MOMENTUM }; /* mix_prev, g_prev, mh, M */

static ct_status step(ct_agents *a) {
    const double beta = a->hyper.momentum, gamma = a->hyper.gamma, eta = a->lr;
    /* Nothing has moved before the first step. */
    const double mu = a->iteration > 0 ? ct_own_number(a, "gut-mu") : 0;
    const double rate = a->iteration > 0 ? 1 / a->lr_previous : 0;
    ct_bank *x = &a->x, *g = &a->g, *mix_prev = ct_own_buffer(a, MIX);
    ct_bank *g_prev = ct_own_buffer(a, GRADIENT), *mh = ct_own_buffer(a, MOMENTUM);
    ct_bank *mixed = ct_own_buffer(a, MIXED_MOMENTUM);
    ct_bank r = ct_temp(1), mix = ct_temp(2), e = ct_temp(3), y = ct_temp(4), d = ct_temp(5);
    CT_TRY(ct_agents_exchange(a, x));
    CT_TRY(ct_agents_gradient(a, x, x));

    ct_update u = ct_agents_update(a);
    SET(&u, &r, {1, x, a->w}, {-1, x});
    SET(&u, &mix, {1, x}, {gamma, &r});
    SET(&u, &e, {rate, mix_prev}, {-rate, &mix});
    SET(&u, &y, {1, g}, {-gamma / eta, &r}, {mu, &e}, {-mu * beta, mixed}, {-mu, g_prev});
    SET(&u, mixed, {beta, mixed}, {1 - beta, &e});
    SET(&u, mix_prev, {1, &mix});
    SET(&u, g_prev, {1, g});
    SET(&u, &d, {beta, mh}, {1, &y});
    SET(&u, x, {1, x}, {-eta, &d});
    SET(&u, mh, {beta, mh}, {1 - beta, &d});
    return ct_agents_apply(a, &u);
}

const ct_algo ct_algo_gut = {
    .name = "gut",
    .graphs = CT_GRAPHS_FIXED, /* W y_prev is read off models mixed twice with the same W */
    .text = "global update tracking (with momentum: QG-GUTm; @gut-mu); no more traffic than dsgd",
    .buffers = {"mix", "gradient", "momentum", "mixed momentum"},
    .options = {"gut-mu"},
    .step = step,
};
