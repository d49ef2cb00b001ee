/* Cross-gradient aggregation (Esfandiari, Tan, Jiang, Balu, Herron, Hegde and Sarkar, ICML 2021).
 * An agent's gradient g is moved to the nearest direction that does not raise the loss of its own
 * model on anyone's samples in its neighbourhood. With the rows of M [(p+1) x P] its own gradient
 * and those of its model on its p neighbours' samples (received from them):
 *   gt = argmin_z |z - g|^2 / 2        s.t.  M z >= 0                            gt, z [P]
 * by its dual
 *   v  = argmin_v |M^T v + g|^2 / 2    s.t.  v >= margin                         v [p+1]
 *   gt = M^T v + g
 * and then                                                                         all [n x P]
 *   m  = beta m + gt
 *   d  = gt + beta m  (Nesterov)   or   m
 *   x+ = x + gamma (W x - x) - eta d
 * The paper's margin is 0. Agents send x and one gradient per neighbour: twice the traffic. With
 * --loss ccl the own gradient has the contrastive terms, cross-gradients do not. The dual needs
 * K = M M^T alone, which is computed on the host.
 * Deviation: the authors' program solves one such problem for every tensor of the model; its rows
 * and g are weighted by W, M has the neighbours' alone, and their margin is 0.5. */
#include "algo/algo.h"
#include "algo/cross_gradients.h"
#include "algo/dual.h"
#include "util/memory.h"

enum { MOMENTUM };

typedef struct cga_state {
    ct_cross_gradients cross;
    float *m;         /* [most][P], most: rows of the largest M */
    double *gram, *v; /* [most][most], [most] */
} cga_state;

/* More senders than anyone has in any step: on one-way edges they are counted nowhere before. */
static int most_rows(const ct_agents *a) {
    int most = a->n_agents < 2 ? 1 : a->n_agents;
    if (a->links.schedule != NULL) return most;
    most = 0;
    for (int i = 0; i < a->n; i++)
        if (ct_topology_degree(a->links.topology, a->first + i) > most)
            most = ct_topology_degree(a->links.topology, a->first + i);
    return most + 1;
}

static ct_status create(ct_agents *a) {
    cga_state *cga = a->state;
    size_t most = (size_t)most_rows(a);
    CT_TRY(ct_make(&cga->m, most * a->x.n, "the gradients of an agent's neighbours"));
    CT_TRY(ct_make(&cga->gram, most * most, "their products"));
    CT_TRY(ct_make(&cga->v, most, "their multipliers"));
    return ct_cross_gradients_create(a, &cga->cross);
}

static double dot(const float *x, const float *y, size_t n) {
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += (double)x[k] * (double)y[k];
    return sum;
}

/* M of agent i, its own gradient first; returns the number of rows. */
static ct_status read_rows(cga_state *cga, const ct_agents *a, int i, int *out) {
    const ct_sparse *taken = &cga->cross.taken;
    size_t n = a->x.n;
    int rows = 1;
    CT_TRY(ct_bank_read(&a->g, i, 0, n, cga->m));
    for (int e = taken->begin[i]; e < taken->begin[i + 1]; e++, rows++)
        CT_TRY(ct_bank_read(&cga->cross.rows, taken->column[e], 0, n, cga->m + (size_t)rows * n));
    *out = rows;
    return CT_OK;
}

/* The multipliers of agent i, into row i of both matrices. */
static ct_status project(cga_state *cga, const ct_agents *a, int i) {
    ct_sparse *taken = &cga->cross.taken;
    size_t n = a->x.n;
    int rows = 0;
    CT_TRY(read_rows(cga, a, i, &rows));
    for (int r = 0; r < rows; r++)
        for (int s = 0; s <= r; s++)
            cga->gram[r * rows + s] = cga->gram[s * rows + r] =
                dot(cga->m + (size_t)r * n, cga->m + (size_t)s * n, n);
    ct_dual_solve(cga->gram, rows, ct_own_number(a, "cga-margin"), cga->v);
    cga->cross.own.value[i] = 1 + cga->v[0];
    for (int r = 1; r < rows; r++) taken->value[taken->begin[i] + r - 1] = cga->v[r];
    return CT_OK;
}

static ct_status step(ct_agents *a) {
    cga_state *cga = a->state;
    ct_bank *x = &a->x, gt = ct_temp(1), d = ct_temp(2), r = ct_temp(3);
    CT_TRY(ct_agents_exchange(a, x));
    CT_TRY(ct_agents_gradient(a, x, x));
    CT_TRY(ct_cross_gradients_compute(&cga->cross, a));
    CT_TRY(ct_cross_gradients_return(&cga->cross, a));
    for (int i = 0; i < a->n; i++) CT_TRY(project(cga, a, i));

    ct_update u = ct_agents_update(a);
    SET(&u, &gt, {1, &a->g, &cga->cross.own}, {1, &cga->cross.rows, &cga->cross.taken});
    ct_agents_combine_and_adapt(a, &u, &gt, ct_own_buffer(a, MOMENTUM), &d, &r);
    return ct_agents_apply(a, &u);
}

static void free_cga(void *state) {
    cga_state *cga = state;
    ct_free(cga->m);
    ct_free(cga->gram);
    ct_free(cga->v);
    ct_cross_gradients_free(&cga->cross);
}

const ct_algo ct_algo_cga = {
    .name = "cga",
    .text = "cross-gradient aggregation: projects on what helps all neighbours; twice the traffic",
    .may_lose = CT_MAY_LOSE_NOTHING,
    .buffers = {"momentum"},
    .options = {"cga-margin"},
    .state_size = sizeof(cga_state),
    .create = create,
    .step = step,
    .free = free_cga,
};
