/* Exact diffusion with momentum (EDM; Hu, Chen, Liu and Mao: A Bias-Correction Decentralized
 * Stochastic Gradient Algorithm with Momentum Acceleration, arXiv:2501.19082): D2 whose gradients are
 * running means.                                                                    all [n x P]
 *   m    = beta m + (1 - beta) g
 *   psi+ = x - eta m
 *   phi  = psi+ + x - psi                             (first step: phi = psi+)
 *   x+   = W phi
 * which is the step of diffusion.h with
 *   d    = s + m - m_prev = s + (1 - beta) (g - m_prev)
 * m is a mean of gradients, where that of dsgdm is a sum of 1 / (1 - beta) of them: rates are so much
 * larger. --momentum 0 is D2. Heavy-ball: --nesterov plays no part.
 * No program of the authors was found, and of the paper only the abstract was read. */
#include "algo/algo.h"
#include "algo/diffusion.h"

enum { DIRECTION, MOMENTUM }; /* s, m */

static ct_status step(ct_agents *a) {
    const double beta = a->hyper.momentum;
    ct_bank *x = &a->x, *g = &a->g;
    ct_bank *s = ct_own_buffer(a, DIRECTION), *m = ct_own_buffer(a, MOMENTUM);
    CT_TRY(ct_agents_gradient(a, x, x));

    ct_update adapt = ct_agents_update(a);
    SET(&adapt, s, {1, s}, {1 - beta, g}, {-(1 - beta), m});
    SET(&adapt, m, {beta, m}, {1 - beta, g});
    SET(&adapt, x, {1, x}, {-a->lr, s});
    CT_TRY(ct_agents_apply(a, &adapt));
    return ct_diffusion_combine(a, s);
}

const ct_algo ct_algo_edm = {
    .name = "edm",
    .text = "EDM: D2 with momentum, exact on differing data for the traffic of dsgd; larger @lr",
    .graphs = CT_GRAPHS_FIXED,
    .may_lose = CT_MAY_LOSE_NOTHING, /* s would go on with what was lost, for ever */
    .buffers = {"direction", "momentum"},
    .state_size = sizeof(ct_diffusion),
    .create = ct_diffusion_create,
    .step = step,
};
