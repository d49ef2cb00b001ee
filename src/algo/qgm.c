/* QG-DSGDm-N: quasi-global momentum (Lin et al., ICML 2021). With the CCL loss this file is the CCL
 * paper's Algorithm 2; cross-features and class sums are exchanged by ct_agents_gradient().
 *
 * paper (combine then adapt, Algorithm 2):                                          all [n x P]
 *   m   = beta mh + g
 *   d   = g + beta m  (Nesterov)   or   m
 *   r   = W x - x
 *   x+  = x + gamma r - eta d
 *   mh+ = beta mh + (1 - beta) (x - x+) / eta             mh: the quasi-global momentum
 * atc (the QGM authors' order): m, d and mh+ as above, and
 *   x_half = x - eta d
 *   x+     = x_half + gamma (W x_half - x_half)
 * wacv24 (the CCL authors' code): mixes first,
 *   r  = W x - x
 *   xm = x + gamma r                                      the mixed model
 *   m  = m - gamma r / eta_prev
 *   m  = beta m + g(xm)                                   CCL: with the neighbours' unmixed models
 *   d  = g + beta m  (Nesterov)   or   m
 *   x+ = xm - eta d
 * Deviation: Algorithm 2 has x+ = W x - eta m. Nesterov's d and gamma are what the paper says of its
 * experiments; --nesterov off --gamma 1 is the algorithm to the letter. */
#include "algo/algo.h"

#include "util/log.h"

#include <math.h>

enum { MOMENTUM, MODEL }; /* mh or m; of atc and wacv24: a model */

enum { PAPER, ATC, WACV24 }; /* ct_own_variant */

/* wacv24's momentum carries all of gamma r on, where the paper's has 1 - beta of it: agents agree
 * sooner, but swing. With k = gamma (1 - lambda) and u = eta m, a difference between agents that W
 * shrinks to lambda goes (Nesterov, no gradient)
 *
 *     x+ = (1 - (1 + beta^2) k) x - beta^2 u
 *     u+ = beta (u + k x)
 *
 * and grows when k is above 2 (1 + beta) / (1 + beta + beta^2), where an eigenvalue passes -1. */
static void warn_if_unstable(const ct_agents *a) {
    const double beta = a->hyper.momentum, k = a->hyper.gamma * (1 - a->links.lambda_min);
    const double limit = 2 * (1 + beta) / (1 + beta + (a->hyper.nesterov ? beta * beta : beta));
    if (a->links.schedule != NULL && a->links.schedule->local.last > 1)
        ct_note(
            "@variant wacv24 diverges with @local-steps on most graphs: its momentum carries all "
            "of the gossip on; take @variant paper or atc");
    if (a->links.schedule != NULL || k < limit) return;
    ct_note(
        "@variant wacv24 will diverge on this graph: gamma (1 - lambda_min) = %.3f must be below "
        "%.3f; take @gamma %.2f",
        k, limit, floor(99 * limit / (1 - a->links.lambda_min)) / 100);
}

/* atc keeps x from before the step, wacv24 the mixed model. */
static ct_status create(ct_agents *a) {
    if (ct_own_variant(a) != PAPER) CT_TRY(ct_agents_add_buffer(a, "model", NULL));
    if (ct_own_variant(a) == WACV24) warn_if_unstable(a);
    return CT_OK;
}

static ct_status step_paper(ct_agents *a, ct_bank *mh) {
    const double beta = a->hyper.momentum, gamma = a->hyper.gamma, eta = a->lr;
    ct_bank *x = &a->x, *g = &a->g;
    ct_bank *p, m = ct_temp(1), d = ct_temp(2), r = ct_temp(3), move = ct_temp(4);
    CT_TRY(ct_agents_share(a, &p));
    CT_TRY(ct_agents_gradient(a, x, x));

    ct_update u = ct_agents_update(a);
    SET(&u, &m, {beta, mh}, {1, g});
    ct_agents_direction(a, &u, g, &m, &d);
    CT_TRY(ct_agents_pull(a, &u, p, &r));
    SET(&u, &move, {gamma, &r}, {-eta, &d}); /* x+ - x, before it is rounded into x */
    SET(&u, x, {1, x}, {1, &move});
    SET(&u, mh, {beta, mh}, {-(1 - beta) / eta, &move});
    return ct_agents_apply(a, &u);
}

static ct_status step_atc(ct_agents *a, ct_bank *mh, ct_bank *before) {
    const double beta = a->hyper.momentum, eta = a->lr;
    ct_bank *x = &a->x, *g = &a->g;
    ct_bank *p, m = ct_temp(1), d = ct_temp(2), r = ct_temp(3);
    CT_TRY(ct_agents_gradient(a, x, x));

    ct_update adapt = ct_agents_update(a);
    SET(&adapt, before, {1, x});
    SET(&adapt, &m, {beta, mh}, {1, g});
    ct_agents_direction(a, &adapt, g, &m, &d);
    SET(&adapt, x, {1, x}, {-eta, &d});
    CT_TRY(ct_agents_apply(a, &adapt));

    CT_TRY(ct_agents_share(a, &p));
    ct_update combine = ct_agents_update(a);
    CT_TRY(ct_agents_pull(a, &combine, p, &r));
    SET(&combine, x, {1, x}, {a->hyper.gamma, &r});
    SET(&combine, mh, {beta, mh}, {(1 - beta) / eta, before}, {-(1 - beta) / eta, x});
    return ct_agents_apply(a, &combine);
}

static ct_status step_wacv24(ct_agents *a, ct_bank *m, ct_bank *mixed) {
    const double gamma = a->hyper.gamma;
    ct_bank *x = &a->x, *g = &a->g, *p, r = ct_temp(1), d = ct_temp(2);
    CT_TRY(ct_agents_share(a, &p));
    ct_update mix = ct_agents_update(a);
    CT_TRY(ct_agents_pull(a, &mix, p, &r));
    SET(&mix, mixed, {1, x}, {gamma, &r});
    SET(&mix, m, {1, m}, {-gamma / a->lr_previous, &r});
    CT_TRY(ct_agents_apply(a, &mix));

    CT_TRY(ct_agents_gradient(a, mixed, x));
    ct_update adapt = ct_agents_update(a);
    ct_agents_momentum(a, &adapt, g, m, &d);
    SET(&adapt, x, {1, mixed}, {-a->lr, &d});
    return ct_agents_apply(a, &adapt);
}

static ct_status step(ct_agents *a) {
    ct_bank *momentum = ct_own_buffer(a, MOMENTUM), *second = ct_own_buffer(a, MODEL);
    switch (ct_own_variant(a)) {
    case ATC: return step_atc(a, momentum, second);
    case WACV24: return step_wacv24(a, momentum, second);
    default: return step_paper(a, momentum);
    }
}

const ct_algo ct_algo_qgm = {
    .name = "qg-dsgdm",
    .graphs = CT_GRAPHS_AVERAGED,
    .text = "QG-DSGDm-N: quasi-global momentum (@variant paper|atc|wacv24)",
    .carries_gossip = true,
    .repeats_gossip = "wacv24",
    .gamma_denser = 0.9,
    .buffers = {"momentum"},
    .may_compress = true,
    .learns_public = true,
    .variants = {"atc", "wacv24"},
    .create = create,
    .step = step,
};
