/* D-squared (Tang, Lian, Yan, Zhang and Liu, ICML 2018): decentralized SGD without the bias that
 * different data bring.
 *   x_half = 2 x - x_prev - eta (g - g_prev)        (first step: x - eta g)     all [n x P]
 *   x+     = W x_half
 * which is the step of diffusion.h with
 *   d      = s + g - g_prev
 * and which a change of eta does not upset. No momentum: --momentum plays no part. */
#include "algo/algo.h"
#include "algo/diffusion.h"

enum { DIRECTION, GRADIENT }; /* s, g_prev */

static ct_status step(ct_agents *a) {
    ct_bank *x = &a->x, *s = ct_own_buffer(a, DIRECTION), *g_prev = ct_own_buffer(a, GRADIENT);
    CT_TRY(ct_agents_gradient(a, x, x));

    ct_update adapt = ct_agents_update(a);
    SET(&adapt, s, {1, s}, {1, &a->g}, {-1, g_prev});
    SET(&adapt, g_prev, {1, &a->g});
    SET(&adapt, x, {1, x}, {-a->lr, s});
    CT_TRY(ct_agents_apply(a, &adapt));
    return ct_diffusion_combine(a, s);
}

const ct_algo ct_algo_d2 = {
    .name = "d2",
    .text = "D2: decentralized SGD that corrects for differing data; needs lambda_min(W) > -1/3",
    .why_always = "what gossip corrects would count for every step since the last one",
    .buffers = {"direction", "gradient"},
    .state_size = sizeof(ct_diffusion),
    .create = ct_diffusion_create,
    .step = step,
};
