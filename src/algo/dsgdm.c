/* DSGDm-N, the paper's Algorithm 1; momentum stays local:                           all [n x P]
 *   m      = beta m + g
 *   d      = g + beta m  (Nesterov)   or   m
 * paper (adapt then combine):
 *   x_half = x - eta d
 *   x+     = x_half + gamma (W x_half - x_half)
 * cta (combine then adapt):
 *   x+     = x + gamma (W x - x) - eta d
 * With --compress, paper is CHOCO-SGD as its first paper writes it (Koloskova, Stich and Jaggi, ICML
 * 2019) and AdaGossip's program has it: what travels is the change up to x_half, and agents mix with
 * copies that know of it. cta is the order of CHOCO-SGD's two programs: agents mix with the copies that
 * are there, so that what travels may come while gradients are computed. With --loss ccl cta sends p
 * rows less: neighbours' current models are at hand. */
#include "algo/algo.h"

enum { MOMENTUM };

enum { PAPER, CTA }; /* ct_own_variant */

static ct_status step(ct_agents *a) {
    ct_bank *m = ct_own_buffer(a, MOMENTUM);
    if (ct_own_variant(a) == CTA) return ct_agents_combine_while_adapting(a, m);
    CT_TRY(ct_agents_gradient(a, &a->x, &a->x));
    CT_TRY(ct_agents_adapt(a, m));
    return ct_agents_combine(a);
}

const ct_algo ct_algo_dsgdm = {
    .name = "dsgdm",
    .graphs = CT_GRAPHS_AVERAGED,
    .may_compress = true,
    .learns_public = true,
    .text = "DSGDm-N: local (Nesterov) momentum, then gossip averaging (@variant paper|cta)",
    .buffers = {"momentum"},
    .variants = {"cta"},
    .step = step,
};
