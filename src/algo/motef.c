/* MoTEF (Islamov, Gao and Stich: Towards Faster Decentralized Stochastic Optimization with Communication
 * Compression, ICLR 2025): gradient tracking for running means of gradients, made for --compress. Models
 * and what is tracked both travel as increments of public copies, h of x and q of v (copies.h):
 *   m+ = (1 - l) m + l g                     l = 1 - beta                           all [n x P]
 *   v+ = v + m+ - m                          (first step: m+ = v+ = g)
 *   x+ = x + gamma (W h - h) - eta v+
 *   v  = v+ + gamma (W q - q)                with the copy of v+
 * The mean of v over the agents is that of m, and the mean of x moves by -eta times it, whatever Q
 * leaves out. Without --compress h is x and q is v: gradient tracking on m. m is a mean of gradients:
 * rates are 1 / (1 - beta) times those of dsgdm. Agents send two rows to each neighbour, packed.
 * Heavy-ball: --nesterov plays no part.
 * Deviation: the first v is packed like all others, against copies that are 0; the paper's copies of v
 * start as v itself, sent whole, its authors' program's stay 0 until the second step. */
#include "algo/algo.h"

enum { TRACKER, MOMENTUM }; /* v, m */

static ct_status create(ct_agents *a) {
    return ct_copies_add(a, "public tracker");
}

static ct_status step(ct_agents *a) {
    const double gamma = a->hyper.gamma, l = a->iteration > 0 ? 1 - a->hyper.momentum : 1;
    ct_bank *x = &a->x, *g = &a->g;
    ct_bank *v = ct_own_buffer(a, TRACKER), *m = ct_own_buffer(a, MOMENTUM);
    ct_bank *h, *q, r = ct_temp(1), r_v = ct_temp(2);
    CT_TRY(ct_agents_share(a, &h));
    CT_TRY(ct_agents_gradient(a, x, x));

    ct_update track = ct_agents_update(a);
    SET(&track, v, {1, v}, {l, g}, {-l, m});
    SET(&track, m, {1 - l, m}, {l, g});
    CT_TRY(ct_agents_apply(a, &track));

    CT_TRY(ct_agents_share_also(a, v, &q));
    ct_update mix = ct_agents_update(a);
    SET(&mix, &r, {1, h, a->w}, {-1, h});
    SET(&mix, x, {1, x}, {gamma, &r}, {-a->lr, v});
    SET(&mix, &r_v, {1, q, a->w}, {-1, q});
    SET(&mix, v, {1, v}, {gamma, &r_v});
    return ct_agents_apply(a, &mix);
}

const ct_algo ct_algo_motef = {
    .name = "motef",
    .text = "MoTEF: momentum tracking made for @compress; twice the rows; larger @lr",
    .may_lose = CT_MAY_LOSE_NOTHING, /* v would go on with what was lost, for ever */
    .may_compress = true,
    .shares_two = true,
    .buffers = {"tracker", "momentum"},
    .create = create,
    .step = step,
};
