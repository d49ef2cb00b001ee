#include "algo/diffusion.h"

#include "algo/algo.h"
#include "util/log.h"

/* I + gamma (W - I) has the smallest eigenvalue 1 - gamma (1 - lambda_min). */
ct_status ct_diffusion_create(ct_agents *a) {
    ct_diffusion *state = a->state;
    const double smallest = 1 - a->hyper.gamma * (1 - a->links.lambda_min);
    state->gamma = a->hyper.gamma;
    if (smallest > -1.0 / 3 + 1e-9) return CT_OK;
    state->gamma /= 2;
    ct_note(
        "%s mixes with (I + W) / 2: the smallest eigenvalue of W is %.4f and must be above -1/3",
        a->algo->name, smallest);
    return CT_OK;
}

ct_status ct_diffusion_combine(ct_agents *a, ct_bank *s) {
    const double gamma = ((const ct_diffusion *)a->state)->gamma;
    ct_bank *x = &a->x, r = ct_temp(1);
    CT_TRY(ct_agents_exchange(a, x));
    ct_update u = ct_agents_update(a);
    SET(&u, &r, {1, x, a->w}, {-1, x});
    SET(&u, x, {1, x}, {gamma, &r});
    SET(&u, s, {1, s}, {-gamma / a->lr, &r});
    return ct_agents_apply(a, &u);
}
