/* Gradient tracking (Nedic, Olshevsky and Shi, SIAM J. Optim. 2017; for deep networks Koloskova et
 * al., NeurIPS 2021). y follows the mean gradient of all agents: its mean over the agents is that
 * of their gradients, whatever W is.                                                all [n x P]
 *   y  = y + g - g_prev                       (first step: y = g)
 *   m  = beta m + y
 *   d  = y + beta m  (Nesterov)   or   m      (beta = 0: d = y, the original)
 *   x+ = x + gamma (W x - x) - eta d
 *   y+ = y + gamma (W y - y)
 * Agents send x and y: twice the traffic of decentralized SGD.
 * Deviation: momentum on y is ours to choose (--momentum 0 for the paper's method). */
#include "algo/algo.h"

enum { TRACKER, GRADIENT, MOMENTUM }; /* y, g_prev, m */

static ct_status step(ct_agents *a) {
    ct_bank *x = &a->x, *g = &a->g, *y = ct_own_buffer(a, TRACKER);
    ct_bank *g_prev = ct_own_buffer(a, GRADIENT), *m = ct_own_buffer(a, MOMENTUM);
    ct_bank d = ct_temp(1), r = ct_temp(2), r_y = ct_temp(3);
    CT_TRY(ct_agents_exchange(a, x));
    CT_TRY(ct_agents_gradient(a, x, x));

    ct_update track = ct_agents_update(a);
    SET(&track, y, {1, y}, {1, g}, {-1, g_prev});
    SET(&track, g_prev, {1, g});
    CT_TRY(ct_agents_apply(a, &track));

    CT_TRY(ct_agents_exchange(a, y));
    ct_update u = ct_agents_update(a);
    ct_agents_combine_and_adapt(a, &u, y, m, &d, &r);
    ct_agents_gossip(a, &u, y, &r_y);
    return ct_agents_apply(a, &u);
}

const ct_algo ct_algo_gt = {
    .name = "gt",
    .text = "gradient tracking: every agent follows the mean gradient; twice the traffic",
    .buffers = {"tracker", "gradient", "momentum"},
    .step = step,
};
