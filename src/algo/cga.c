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
 * icml21 (the authors' program) weighs gradients by W, holds the neighbours' alone against g, and
 * solves one problem for every tensor of the model:
 *   g  = w_ii g_ii,  rows of M [p x P_t]: w_ij g_ij
 *   v  = argmin_v |M^T v + g|^2 / 2    s.t.  v >= margin                         v [p]
 *   gt = M^T v + g                                                               gt [P_t]
 * Their margin is 0.5: --cga-margin.
 * Deviation: w_ij is read as w_ji, what j takes of i's model, which is the same on undirected graphs
 * and says something on one-way edges. */
#include "algo/algo.h"
#include "algo/cross_gradients.h"
#include "algo/dual.h"
#include "util/memory.h"

enum { MOMENTUM };
enum { PAPER, ICML21 }; /* ct_own_variant */

typedef struct cga_state {
    ct_cross_gradients cross;
    float *m;             /* [most][P], most: rows of the largest M and the own gradient */
    double *gram, *c, *v; /* [most][most], [most], [most] */
    double *weight;       /* [most] icml21's */
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
    CT_TRY(ct_make(&cga->c, most, "their products"));
    CT_TRY(ct_make(&cga->v, most, "their multipliers"));
    CT_TRY(ct_make(&cga->weight, most, "their weights"));
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
    /* g is the first row of M */
    ct_dual_solve(cga->gram, cga->gram, rows, ct_own_number(a, "cga-margin"), cga->v);
    cga->cross.own.value[i] = 1 + cga->v[0];
    for (int r = 1; r < rows; r++) taken->value[taken->begin[i] + r - 1] = cga->v[r];
    return CT_OK;
}

/* What agent i and those that sent it gradients take of its model, in the order of the rows. */
static void take_weights(cga_state *cga, const ct_agents *a, int i) {
    const ct_routes *answers = &a->links.neighbours;
    const int row = a->first + i;
    int r = 1;
    cga->weight[0] = ct_cross_gradients_weight(a, row, row);
    for (int e = 0; e < answers->n; e++)
        if (answers->to[e] == row)
            cga->weight[r++] = ct_cross_gradients_weight(a, answers->from[e], row);
}

/* One tensor, n values from `first` on; gt replaces the own gradient. */
static void project_tensor(cga_state *cga, int rows, size_t n_row, size_t first, size_t n,
                           double margin) {
    const int p = rows - 1;
    const double *w = cga->weight;
    float *g = cga->m + first;
    for (int r = 0; r < p; r++) {
        const float *own = g + (size_t)(r + 1) * n_row;
        cga->c[r] = w[r + 1] * w[0] * dot(own, g, n);
        for (int s = 0; s <= r; s++)
            cga->gram[r * p + s] = cga->gram[s * p + r] =
                w[r + 1] * w[s + 1] * dot(own, g + (size_t)(s + 1) * n_row, n);
    }
    ct_dual_solve(cga->gram, cga->c, p, margin, cga->v);
    for (size_t k = 0; k < n; k++) {
        double sum = w[0] * (double)g[k];
        for (int r = 0; r < p; r++)
            sum += cga->v[r] * w[r + 1] * (double)g[(size_t)(r + 1) * n_row + k];
        g[k] = (float)sum;
    }
}

/* Row i of a->g becomes gt, tensor by tensor. */
static ct_status project_tensors(cga_state *cga, ct_agents *a, int i) {
    const ct_graph *graph = a->plan->graph;
    int rows = 0;
    CT_TRY(read_rows(cga, a, i, &rows));
    take_weights(cga, a, i);
    for (int t = 0; t < graph->n_params; t++)
        project_tensor(cga, rows, a->x.n, graph->params[t].offset, graph->params[t].count,
                       ct_own_number(a, "cga-margin"));
    return ct_bank_write(&a->g, i, 0, a->x.n, cga->m);
}

static ct_status step(ct_agents *a) {
    cga_state *cga = a->state;
    const bool by_tensor = ct_own_variant(a) == ICML21;
    ct_bank *x = &a->x, *g = &a->g, gt = ct_temp(1), d = ct_temp(2), r = ct_temp(3);
    CT_TRY(ct_agents_exchange(a, x));
    CT_TRY(ct_agents_gradient(a, x, x));
    CT_TRY(ct_cross_gradients_compute(&cga->cross, a));
    CT_TRY(ct_cross_gradients_return(&cga->cross, a));
    for (int i = 0; i < a->n; i++)
        CT_TRY(by_tensor ? project_tensors(cga, a, i) : project(cga, a, i));

    ct_update u = ct_agents_update(a);
    if (!by_tensor) SET(&u, &gt, {1, g, &cga->cross.own}, {1, &cga->cross.rows, &cga->cross.taken});
    ct_agents_combine_and_adapt(a, &u, by_tensor ? g : &gt, ct_own_buffer(a, MOMENTUM), &d, &r);
    return ct_agents_apply(a, &u);
}

static void free_cga(void *state) {
    cga_state *cga = state;
    ct_free(cga->m);
    ct_free(cga->gram);
    ct_free(cga->c);
    ct_free(cga->v);
    ct_free(cga->weight);
    ct_cross_gradients_free(&cga->cross);
}

const ct_algo ct_algo_cga = {
    .name = "cga",
    .text = "cross-gradient aggregation: projects on what helps all neighbours; twice the traffic "
            "(@variant paper|icml21)",
    .may_lose = CT_MAY_LOSE_NOTHING,
    .buffers = {"momentum"},
    .options = {"cga-margin"},
    .variants = {"icml21"},
    .state_size = sizeof(cga_state),
    .create = create,
    .step = step,
    .free = free_cga,
};
