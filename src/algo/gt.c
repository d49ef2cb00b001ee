/* Gradient tracking (Nedic, Olshevsky and Shi, SIAM J. Optim. 2017; for deep networks Koloskova et
 * al., NeurIPS 2021). y follows the mean gradient of all agents: its mean over the agents is that
 * of their gradients, whatever W is. y  = y + g - g_prev                    (first step: y = g) all
 * [n x P] m  = beta m + y;  d = y + beta m (Nesterov) or m              (beta = 0: d = y, the
 * original) x+ = x + gamma (W x - x) - eta d y+ = y + gamma (W y - y) Agents send x and y: twice
 * the traffic of decentralized SGD. Deviation: momentum on y is ours to choose (--momentum 0 for
 * the paper's method). */
#include "algo/algo.h"

enum { TRACKER, GRADIENT, MOMENTUM }; /* the buffers: y, g_prev, m */

static ct_status create(ct_agents *a, void **state) {
    (void)state;
    ct_bank *bank;
    CT_TRY(ct_agents_buffer(a, "tracker", a->n, &bank));
    CT_TRY(ct_agents_buffer(a, "gradient", a->n, &bank));
    return ct_agents_buffer(a, "momentum", a->n, &bank);
}

static ct_status step(ct_agents *a, void *state) {
    (void)state;
    const double beta = a->hyper.momentum, gamma = a->hyper.gamma;
    ct_bank *x = &a->x, *g = &a->g, *y = &a->buffers[TRACKER].bank;
    ct_bank *g_prev = &a->buffers[GRADIENT].bank, *m = &a->buffers[MOMENTUM].bank;
    ct_bank d = ct_temp(1), r = ct_temp(2), r_y = ct_temp(3);
    CT_TRY(ct_agents_exchange(a, x));
    CT_TRY(ct_agents_gradient(a, x, x));

    ct_update track = ct_agents_update(a);
    SET(&track, y, {1, y}, {1, g}, {-1, g_prev});
    SET(&track, g_prev, {1, g});
    CT_TRY(ct_agents_apply(a, &track));

    CT_TRY(ct_agents_exchange(a, y));
    ct_update u = ct_agents_update(a);
    SET(&u, m, {beta, m}, {1, y});
    if (a->hyper.nesterov)
        SET(&u, &d, {1, y}, {beta, m});
    else
        SET(&u, &d, {1, m});
    SET(&u, &r, {1, x, a->w}, {-1, x});
    SET(&u, x, {1, x}, {gamma, &r}, {-a->lr, &d});
    ct_agents_gossip(a, &u, y, &r_y);
    return ct_agents_apply(a, &u);
}

const ct_algo ct_algo_gt = {
    .name = "gt",
    .text = "gradient tracking: every agent follows the mean gradient; twice the traffic",
    .create = create,
    .step = step,
};
