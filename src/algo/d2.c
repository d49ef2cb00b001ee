/* D-squared (Tang, Lian, Yan, Zhang and Liu, ICML 2018): decentralized SGD without the bias that
 * different data bring.
 *   x_half = 2 x - x_prev - eta (g - g_prev)        (first step: x - eta g)     all [n x P]
 *   x+     = W x_half
 * With s = (x_prev - x) / eta_prev, the direction of the last step, the same reads
 *   d      = s + g - g_prev
 *   x_half = x - eta d
 *   r      = W x_half - x_half
 *   x+     = x_half + gamma r
 *   s+     = (x - x+) / eta = d - gamma r / eta
 * which a change of eta does not upset. It needs the smallest eigenvalue of the mixing above -1/3;
 * where W's is not (a uniform ring of an even number of agents sits on it), (I + W) / 2 is used. No
 * momentum: --momentum plays no part. */
#include "algo/algo.h"

#include "util/log.h"

enum { DIRECTION, GRADIENT }; /* s, g_prev */

typedef struct d2_state {
    double gamma; /* of this run: --gamma, or half of it */
} d2_state;

/* I + gamma (W - I) has the smallest eigenvalue 1 - gamma (1 - lambda_min). */
static double safe_gamma(const ct_agents *a) {
    double gamma = a->hyper.gamma, smallest = 1 - gamma * (1 - a->links.lambda_min);
    if (smallest > -1.0 / 3 + 1e-9) return gamma;
    ct_note(
        "d2 mixes with (I + W) / 2: the smallest eigenvalue of W is %.4f and must be above -1/3",
        smallest);
    return gamma / 2;
}

static ct_status create(ct_agents *a) {
    ((d2_state *)a->state)->gamma = safe_gamma(a);
    return CT_OK;
}

static ct_status step(ct_agents *a) {
    const double gamma = ((const d2_state *)a->state)->gamma;
    ct_bank *x = &a->x, *s = ct_own_buffer(a, DIRECTION), *g_prev = ct_own_buffer(a, GRADIENT);
    ct_bank r = ct_temp(1);
    CT_TRY(ct_agents_gradient(a, x, x));

    ct_update adapt = ct_agents_update(a);
    SET(&adapt, s, {1, s}, {1, &a->g}, {-1, g_prev});
    SET(&adapt, g_prev, {1, &a->g});
    SET(&adapt, x, {1, x}, {-a->lr, s});
    CT_TRY(ct_agents_apply(a, &adapt));

    CT_TRY(ct_agents_exchange(a, x));
    ct_update combine = ct_agents_update(a);
    SET(&combine, &r, {1, x, a->w}, {-1, x});
    SET(&combine, x, {1, x}, {gamma, &r});
    SET(&combine, s, {1, s}, {-gamma / a->lr, &r});
    return ct_agents_apply(a, &combine);
}

const ct_algo ct_algo_d2 = {
    .name = "d2",
    .text = "D2: decentralized SGD that corrects for differing data; needs lambda_min(W) > -1/3",
    .why_always = "what gossip corrects would count for every step since the last one",
    .buffers = {"direction", "gradient"},
    .state_size = sizeof(d2_state),
    .create = create,
    .step = step,
};
