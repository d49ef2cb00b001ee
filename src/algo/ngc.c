/* Neighborhood gradient clustering (Aketi, Kodge and Roy, Neurocomputing 2023). Beside its own
 * gradient g_ii an agent uses those of its neighbours' models on its own samples (g_ji,
 * model-variant) and those of its own model on its neighbours' samples (g_ij, data-variant,
 * received from them), p of each:                                                   all [n x P]
 *   gt = (1 - a) / (p + 1) (g_ii + sum_j g_ji)
 *      +      a  / (p + 1) (g_ii + sum_j g_ij)            a: --ngc-alpha
 *   m  = beta m + gt
 *   d  = gt + beta m  (Nesterov)   or   m
 *   x+ = x + gamma (W x - x) - eta d
 * Agents send x and, if a > 0, one gradient per neighbour: twice the traffic. With --loss ccl the
 * own gradient has the contrastive terms, cross-gradients do not. */
#include "algo/algo.h"
#include "algo/cross_gradients.h"

enum { MOMENTUM };

typedef struct ngc_state {
    ct_cross_gradients cross;
    ct_sparse variant; /* [n x edges] (1 - a) / (p + 1) at the model-variant ones */
    ct_sparse data;    /* [n x edges] a / (p + 1) at the data-variant ones */
} ngc_state;

static ct_status create(ct_agents *a) {
    ngc_state *ngc = a->state;
    CT_TRY(ct_cross_gradients_create(a, &ngc->cross));
    int n_rows = ngc->cross.taken.n_cols;
    CT_TRY(ct_sparse_create(a->n, n_rows, a->links.most.edges, &ngc->variant));
    return ct_sparse_create(a->n, n_rows, a->links.most.arrivals, &ngc->data);
}

/* out = share / (degree + 1) where `from` has ones, row by row */
static void scale(const ct_sparse *from, double share, ct_sparse *out) {
    for (int i = 0; i < from->n_rows; i++) {
        int p = from->begin[i + 1] - from->begin[i];
        for (int e = from->begin[i]; e < from->begin[i + 1]; e++) {
            out->column[e] = from->column[e];
            out->value[e] = share / (p + 1);
        }
        out->begin[i + 1] = from->begin[i + 1];
    }
}

static void set_weights(ngc_state *ngc, const ct_agents *a) {
    const double alpha = ct_own_number(a, "ngc-alpha");
    const ct_sparse *sent = &ngc->cross.sent, *taken = &ngc->cross.taken;
    scale(sent, 1 - alpha, &ngc->variant);
    scale(taken, alpha, &ngc->data);
    for (int i = 0; i < a->n; i++) {
        int n_variant = sent->begin[i + 1] - sent->begin[i];
        int n_data = taken->begin[i + 1] - taken->begin[i];
        ngc->cross.own.value[i] = (1 - alpha) / (n_variant + 1) + alpha / (n_data + 1);
    }
}

static ct_status step(ct_agents *a) {
    ngc_state *ngc = a->state;
    ct_bank *x = &a->x, *rows = &ngc->cross.rows, gt = ct_temp(1), d = ct_temp(2), r = ct_temp(3);
    CT_TRY(ct_agents_exchange(a, x));
    CT_TRY(ct_agents_gradient(a, x, x));
    CT_TRY(ct_cross_gradients_compute(&ngc->cross, a));
    if (ct_own_number(a, "ngc-alpha") > 0) CT_TRY(ct_cross_gradients_return(&ngc->cross, a));
    set_weights(ngc, a);

    ct_update u = ct_agents_update(a);
    SET(&u, &gt, {1, &a->g, &ngc->cross.own}, {1, rows, &ngc->variant}, {1, rows, &ngc->data});
    ct_agents_combine_and_adapt(a, &u, &gt, ct_own_buffer(a, MOMENTUM), &d, &r);
    return ct_agents_apply(a, &u);
}

static void free_ngc(void *state) {
    ngc_state *ngc = state;
    ct_sparse_free(&ngc->variant);
    ct_sparse_free(&ngc->data);
    ct_cross_gradients_free(&ngc->cross);
}

const ct_algo ct_algo_ngc = {
    .name = "ngc",
    .text = "neighborhood gradient clustering: averages cross-gradients; twice the traffic",
    .may_lose = CT_MAY_LOSE_NOTHING,
    .buffers = {"momentum"},
    .options = {"ngc-alpha"},
    .state_size = sizeof(ngc_state),
    .create = create,
    .step = step,
    .free = free_ngc,
};
