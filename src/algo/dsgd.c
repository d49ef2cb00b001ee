/* Decentralized SGD (Lian et al., NeurIPS 2017):                                    all [n x P]
 * paper (adapt then combine):
 *   x_half = x - eta g
 *   x+     = x_half + gamma (W x_half - x_half)                      (gamma = 1: x+ = W x_half)
 * cta (combine then adapt):
 *   x+     = x + gamma (W x - x) - eta g
 * Lian et al. write cta, and that both may be exchanged; paper is the order of the papers that compare
 * with it. With --compress both are CHOCO-SGD, see dsgdm.c. */
#include "algo/algo.h"

enum { PAPER, CTA }; /* ct_own_variant */

static ct_status step(ct_agents *a) {
    ct_bank *x = &a->x;
    if (ct_own_variant(a) == CTA) return ct_agents_combine_while_adapting(a, NULL);
    CT_TRY(ct_agents_gradient(a, x, x));
    ct_update adapt = ct_agents_update(a);
    SET(&adapt, x, {1, x}, {-a->lr, &a->g});
    CT_TRY(ct_agents_apply(a, &adapt));
    return ct_agents_combine(a);
}

const ct_algo ct_algo_dsgd = {
    .name = "dsgd",
    .graphs = CT_GRAPHS_AVERAGED,
    .may_compress = true,
    .learns_public = true,
    .text = "decentralized SGD: a gradient step, then gossip averaging (@variant paper|cta)",
    .variants = {"cta"},
    .step = step,
};
