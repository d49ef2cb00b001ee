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
 * neurips23 (the authors' program) takes the gradient at mix, has local momentum, and a shift s
 * for W y_prev; with r = gamma (W x - x), and eta_prev in the place of eta:
 *   delta = g(mix) - r / eta_prev
 *   s     = W d_prev - b r_prev / eta_prev            b = 1 + beta (+ beta^2 with Nesterov)
 *   y     = delta + mu (s - delta_prev)               first step: y = delta
 *   m     = beta m + y
 *   d     = y + beta m  (Nesterov)   or   m
 * Without momentum the two differ only in where the gradient is taken.
 * Deviation: mu is 0.3 unless given; the authors take 0.9 without momentum and 0.005 to 0.08 with
 * it, as neurips23 does here (0.01). gamma scales all of r, where their program scales what the gradient sees. */
#include "algo/algo.h"

enum { MIX, GRADIENT, MOMENTUM, MIXED_MOMENTUM };     /* mix_prev, g_prev, mh, M */
enum { DELTA = GRADIENT, RESIDUAL = MIXED_MOMENTUM }; /* neurips23's delta_prev, r_prev */
enum { PAPER, NEURIPS23 };                            /* ct_own_variant */

static ct_status step_paper(ct_agents *a) {
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

/* `combine` makes s - delta_prev of delta_prev. */
static ct_status step_neurips23(ct_agents *a) {
    const double beta = a->hyper.momentum, gamma = a->hyper.gamma, rate = 1 / a->lr_previous;
    const double b = 1 + beta + (a->hyper.nesterov ? beta * beta : 0);
    const double mu = a->iteration > 0 ? ct_own_number(a, "gut-mu") : 0;
    ct_bank *x = &a->x, *g = &a->g, *mix = ct_own_buffer(a, MIX), *r = ct_own_buffer(a, RESIDUAL);
    ct_bank *delta = ct_own_buffer(a, DELTA), *m = ct_own_buffer(a, MOMENTUM);
    ct_bank t = ct_temp(1), mixed = ct_temp(2), y = ct_temp(1), d = ct_temp(2);
    CT_TRY(ct_agents_exchange(a, x));
    ct_update combine = ct_agents_update(a);
    SET(&combine, &t, {1, x, a->w}, {-1, x});
    SET(&combine, &mixed, {1, x}, {gamma, &t});
    SET(&combine, delta, {rate, mix}, {-rate, &mixed}, {-b * rate, r}, {-1, delta});
    SET(&combine, r, {gamma, &t});
    SET(&combine, mix, {1, &mixed});
    CT_TRY(ct_agents_apply(a, &combine));

    CT_TRY(ct_agents_gradient(a, mix, x));
    ct_update adapt = ct_agents_update(a);
    SET(&adapt, &y, {1, g}, {-rate, r}, {mu, delta});
    SET(&adapt, delta, {1, g}, {-rate, r});
    ct_agents_momentum(a, &adapt, &y, m, &d);
    SET(&adapt, x, {1, x}, {-a->lr, &d});
    return ct_agents_apply(a, &adapt);
}

static ct_status step(ct_agents *a) {
    return ct_own_variant(a) == NEURIPS23 ? step_neurips23(a) : step_paper(a);
}

const ct_algo ct_algo_gut = {
    .name = "gut",
    .graphs = CT_GRAPHS_FIXED, /* W y_prev is read off models mixed twice with the same W */
    .text = "global update tracking (with momentum: QG-GUTm; @gut-mu); no more traffic than dsgd "
            "(@variant paper|neurips23)",
    .buffers = {"mix", "gradient", "momentum", "mixed momentum"},
    .options = {"gut-mu"},
    .variants = {"neurips23"},
    .step = step,
};
