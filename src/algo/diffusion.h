/* What D2 and exact diffusion with momentum share: a step that leaves out the bias of decentralized
 * SGD, because it takes back what the last step did. With s = (x_prev - x) / eta_prev, the direction
 * of the last step, and d that of this step,                                        all [n x P]
 *   x_half = x - eta d
 *   r      = W x_half - x_half
 *   x+     = x_half + gamma r
 *   s+     = (x - x+) / eta = d - gamma r / eta
 * It needs the smallest eigenvalue of the mixing above -1/3; where W's is not (a uniform ring of an
 * even number of agents sits on it), (I + W) / 2 is used. */
#ifndef CT_ALGO_DIFFUSION_H
#define CT_ALGO_DIFFUSION_H

#include "algo/agents.h"

typedef struct ct_diffusion {
    double gamma; /* of this run: --gamma, or half of it */
} ct_diffusion;

/* ct_algo.create of a method whose state is a ct_diffusion. */
ct_status ct_diffusion_create(ct_agents *a);
/* x = x_half and s = d become x+ and s+. */
ct_status ct_diffusion_combine(ct_agents *a, ct_bank *s);

#endif
