#include "algo/steps.h"

#include <math.h>

#include "algo/agents_internal.h"

#define BETA    0.999f
#define EPSILON 1e-8f

ct_status ct_own_steps_create(ct_agents *a) {
    if (!a->steps.are_wished) return CT_OK;
    CT_TRY(ct_agents_add_buffer(a, "gossip squares", NULL));
    a->steps.mean_squares = ct_own_buffer(a, a->n_buffers - 1);
    return ct_bank_create(a->backend, a->n, 0, a->x.n, &a->steps.r);
}

ct_status ct_own_steps_take(ct_agents *a, const ct_bank *p) {
    const double t = (double)(ct_agents_rounds(a) - a->steps.since) + 1;
    ct_adaptive_steps steps = {.gamma = (float)a->steps.gamma,
                               .beta = BETA,
                               .correction = (float)(1 - pow((double)BETA, t)),
                               .epsilon = EPSILON};
    ct_update u = ct_agents_update(a);
    SET(&u, &a->steps.r, {1, p, a->w}, {-1, p});
    CT_TRY(ct_agents_apply(a, &u));
    return ct_bank_scale_steps(&steps, a->steps.mean_squares, &a->steps.r);
}
