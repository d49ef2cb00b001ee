/* Gradient tracking (Nedic, Olshevsky and Shi, SIAM J. Optim. 2017; for deep networks Koloskova et
 * al., NeurIPS 2021). y follows the mean gradient of all agents: its mean over the agents is that
 * of their gradients, whatever W is.                                                all [n x P]
 *   y  = y + g - g_prev                       (first step: y = g)
 *   m  = beta m + y
 *   d  = y + beta m  (Nesterov)   or   m      (beta = 0: d = y, the original)
 *   x+ = x + gamma (W x - x) - eta d
 *   y+ = y + gamma (W y - y)
 * which with --momentum 0 is Nedic et al.'s DIGing. atc (adapt then combine, as Koloskova et al.
 * write it and RelaySGD's program has it): y, m, d and y+ as above, and
 *   x_half = x - eta d
 *   x+     = x_half + gamma (W x_half - x_half)
 * Agents send x and y: twice the traffic of decentralized SGD; with --loss ccl atc sends x once
 * more.
 * Deviation: momentum on y is ours to choose; RelaySGD's program tracks what momentum made of the
 * gradients instead. */
#include "algo/algo.h"

enum { TRACKER, GRADIENT, MOMENTUM }; /* y, g_prev, m */

enum { PAPER, ATC }; /* ct_own_variant */

static void track(ct_agents *a, ct_update *u) {
    ct_bank *g = &a->g, *y = ct_own_buffer(a, TRACKER), *g_prev = ct_own_buffer(a, GRADIENT);
    SET(u, y, {1, y}, {1, g}, {-1, g_prev});
    SET(u, g_prev, {1, g});
}

static ct_status step_paper(ct_agents *a) {
    ct_bank *x = &a->x, *y = ct_own_buffer(a, TRACKER), *m = ct_own_buffer(a, MOMENTUM);
    ct_bank d = ct_temp(1), r = ct_temp(2), r_y = ct_temp(3);
    CT_TRY(ct_agents_exchange(a, x));
    CT_TRY(ct_agents_gradient(a, x, x));

    ct_update tracked = ct_agents_update(a);
    track(a, &tracked);
    CT_TRY(ct_agents_apply(a, &tracked));

    CT_TRY(ct_agents_exchange(a, y));
    ct_update u = ct_agents_update(a);
    ct_agents_combine_and_adapt(a, &u, y, m, &d, &r);
    ct_agents_gossip(a, &u, y, &r_y);
    return ct_agents_apply(a, &u);
}

static ct_status step_atc(ct_agents *a) {
    ct_bank *x = &a->x, *y = ct_own_buffer(a, TRACKER), *m = ct_own_buffer(a, MOMENTUM);
    ct_bank d = ct_temp(1), r_y = ct_temp(1);
    CT_TRY(ct_agents_gradient(a, x, x));

    ct_update adapt = ct_agents_update(a);
    track(a, &adapt);
    ct_agents_momentum(a, &adapt, y, m, &d);
    SET(&adapt, x, {1, x}, {-a->lr, &d});
    CT_TRY(ct_agents_apply(a, &adapt));

    CT_TRY(ct_agents_combine(a));
    CT_TRY(ct_agents_exchange(a, y));
    ct_update mix = ct_agents_update(a);
    ct_agents_gossip(a, &mix, y, &r_y);
    return ct_agents_apply(a, &mix);
}

static ct_status step(ct_agents *a) {
    return ct_own_variant(a) == ATC ? step_atc(a) : step_paper(a);
}

const ct_algo ct_algo_gt = {
    .name = "gt",
    .text = "gradient tracking: follows the mean gradient; twice the traffic (@variant paper|atc)",
    .buffers = {"tracker", "gradient", "momentum"},
    .variants = {"atc"},
    .step = step,
};
