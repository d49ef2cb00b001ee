/* Neighborhood gradient clustering (Aketi, Kodge and Roy, Neurocomputing 2023). Beside its own
 * gradient g_ii an agent uses those of its neighbours' models on its own samples (g_ji,
 * model-variant) and those of its own model on its neighbours' samples (g_ij, data-variant,
 * received from them), p of each:                                                   all [n x P]
 *   gt = (1 - a) / (p + 1) (g_ii + sum_j g_ji)
 *      +      a  / (p + 1) (g_ii + sum_j g_ij)            a: --ngc-alpha
 *   m  = beta m + gt
 *   d  = gt + beta m  (Nesterov)   or   m
 *   x+ = x + gamma (W x - x) - eta d
 * weighted (the paper's weights): w_ij, what i takes of j's model in W, for every 1 / (p + 1),
 *   gt = w_ii g_ii + sum_j ((1 - a) w_ij g_ji + a w_ji g_ij)
 * Agents send x and, if a > 0, one gradient per neighbour: twice the traffic. With --loss ccl the
 * own gradient has the contrastive terms, cross-gradients do not.
 * Deviation: the plain mean is that of the authors' program, which knows uniform weights alone;
 * where W is uniform both are the same. */
#include "algo/algo.h"
#include "algo/cross_gradients.h"

enum { MOMENTUM };
enum { PAPER, WEIGHTED }; /* ct_own_variant */

static ct_status create(ct_agents *a) {
    return ct_cross_gradients_create(a, a->state);
}

/* Every 1 of row i with p of them becomes share / (p + 1); returns that. */
static double scale_row(ct_sparse *ones, int i, double share) {
    int p = ones->begin[i + 1] - ones->begin[i];
    for (int e = ones->begin[i]; e < ones->begin[i + 1]; e++) ones->value[e] = share / (p + 1);
    return share / (p + 1);
}

static void take_means(ct_cross_gradients *cross, const ct_agents *a, double alpha) {
    for (int i = 0; i < a->n; i++)
        cross->own.value[i] =
            scale_row(&cross->sent, i, 1 - alpha) + scale_row(&cross->taken, i, alpha);
}

/* Row i of `sent` has agent i's edges (i, j), row i of `taken` those that lead to it, (j, i). */
static void take_weighted(ct_cross_gradients *cross, const ct_agents *a, double alpha) {
    const ct_routes *answers = &a->links.neighbours;
    for (int i = 0; i < a->n; i++) {
        int row = a->first + i, sent = cross->sent.begin[i], taken = cross->taken.begin[i];
        cross->own.value[i] = ct_cross_gradients_weight(a, row, row);
        for (int e = 0; e < answers->n; e++) {
            int from = answers->from[e], to = answers->to[e];
            if (from == row)
                cross->sent.value[sent++] = (1 - alpha) * ct_cross_gradients_weight(a, row, to);
            if (to == row)
                cross->taken.value[taken++] = alpha * ct_cross_gradients_weight(a, from, row);
        }
    }
}

static ct_status step(ct_agents *a) {
    ct_cross_gradients *cross = a->state;
    const double alpha = ct_own_number(a, "ngc-alpha");
    ct_bank *x = &a->x, *rows = &cross->rows, gt = ct_temp(1), d = ct_temp(2), r = ct_temp(3);
    CT_TRY(ct_agents_exchange(a, x));
    CT_TRY(ct_agents_gradient(a, x, x));
    CT_TRY(ct_cross_gradients_compute(cross, a));
    if (alpha > 0) CT_TRY(ct_cross_gradients_return(cross, a));
    if (ct_own_variant(a) == WEIGHTED)
        take_weighted(cross, a, alpha);
    else
        take_means(cross, a, alpha);

    ct_update u = ct_agents_update(a);
    SET(&u, &gt, {1, &a->g, &cross->own}, {1, rows, &cross->sent}, {1, rows, &cross->taken});
    ct_agents_combine_and_adapt(a, &u, &gt, ct_own_buffer(a, MOMENTUM), &d, &r);
    return ct_agents_apply(a, &u);
}

const ct_algo ct_algo_ngc = {
    .name = "ngc",
    .text = "neighborhood gradient clustering: averages cross-gradients; twice the traffic "
            "(@variant paper|weighted)",
    .may_lose = CT_MAY_LOSE_NOTHING,
    .buffers = {"momentum"},
    .options = {"ngc-alpha"},
    .variants = {"weighted"},
    .state_size = sizeof(ct_cross_gradients),
    .create = create,
    .step = step,
    .free = ct_cross_gradients_free,
};
