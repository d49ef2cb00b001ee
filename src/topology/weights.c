/* Mixing weights.
 *   uniform:     w_ij = 1/(p + 1) for every neighbour j and for i itself; p neighbours everywhere
 *   metropolis:  w_ij = 1/(1 + max(p_i, p_j)),  w_ii = 1 - sum_j w_ij
 * The second is Xiao, Boyd and Kim, "Distributed average consensus with least-mean-square
 * deviation" (2007); on a regular graph it is the first. */
#include "topology/topology.h"

#include <math.h>
#include <string.h>

#include "util/memory.h"

#define TOLERANCE 1e-6

bool ct_topology_is_regular(const ct_topology *t) {
    for (int i = 1; i < t->n; i++)
        if (ct_topology_degree(t, i) != ct_topology_degree(t, 0)) return false;
    return true;
}

static double edge_weight(const ct_topology *t, int i, int j) {
    int p_i = ct_topology_degree(t, i), p_j = ct_topology_degree(t, j);
    return 1.0 / (1.0 + (p_i > p_j ? p_i : p_j));
}

static double own_weight(const ct_topology *t, int i, bool uniform) {
    if (uniform) return 1.0 / (1.0 + ct_topology_degree(t, i)); /* to the bit that of the others */
    double sum = 0.0;
    for (int k = t->begin[i]; k < t->begin[i + 1]; k++) sum += edge_weight(t, i, t->neighbour[k]);
    return sum < 1.0 ? 1.0 - sum : 0.0;
}

/* Row i at w->begin[i]: the neighbours below i, i itself, the neighbours above. */
static void fill_row(const ct_topology *t, int i, bool uniform, ct_sparse *w) {
    int at = w->begin[i];
    bool own_done = false;
    for (int k = t->begin[i]; k <= t->begin[i + 1]; k++) {
        bool last = k == t->begin[i + 1];
        if (!own_done && (last || t->neighbour[k] > i)) {
            w->column[at] = i;
            w->value[at++] = own_weight(t, i, uniform);
            own_done = true;
        }
        if (last) break;
        w->column[at] = t->neighbour[k];
        w->value[at++] = edge_weight(t, i, t->neighbour[k]);
    }
    w->begin[i + 1] = at;
}

ct_status ct_mixing_create(const ct_topology *t, const char *weights, ct_sparse *out) {
    bool regular = ct_topology_is_regular(t);
    bool is_auto = strcmp(weights, "auto") == 0, is_uniform = strcmp(weights, "uniform") == 0;
    if (!is_auto && !is_uniform && strcmp(weights, "metropolis") != 0)
        return ct_fail(CT_INVAL, "no mixing weights '%.100s'; known: auto, uniform, metropolis",
                       weights);
    if (is_uniform && !regular)
        return ct_fail(CT_INVAL,
                       "uniform mixing weights on '%s', where the number of neighbours differs, "
                       "would not be doubly stochastic; use metropolis",
                       t->name);
    CT_TRY(ct_sparse_create(t->n, t->n, t->begin[t->n] + t->n, out));
    for (int i = 0; i < t->n; i++) fill_row(t, i, regular && (is_auto || is_uniform), out);
    return CT_OK;
}

/* Row i: its order, its signs, its edges, its symmetry; adds it to the columns' sums. */
static ct_status check_row(const ct_sparse *w, const ct_topology *t, int i, double *column_sum) {
    double sum = 0.0;
    int previous = -1;
    for (int k = w->begin[i]; k < w->begin[i + 1]; k++) {
        int j = w->column[k];
        double value = w->value[k];
        if (j <= previous || j >= t->n)
            return ct_fail(CT_INVAL, "mixing matrix: row %d: column %d is out of order", i, j);
        previous = j;
        if (!(value >= 0.0))
            return ct_fail(CT_INVAL, "mixing matrix: w(%d,%d) = %g is negative", i, j, value);
        if (value > 0.0 && i != j && !ct_topology_has_edge(t, i, j))
            return ct_fail(CT_INVAL, "mixing matrix: w(%d,%d) = %g, but there is no such edge", i,
                           j, value);
        double mirrored = ct_sparse_get(w, j, i);
        if (!(fabs(value - mirrored) <= TOLERANCE))
            return ct_fail(CT_INVAL, "mixing matrix: w(%d,%d) = %g, but w(%d,%d) = %g", i, j, value,
                           j, i, mirrored);
        sum += value;
        column_sum[j] += value;
    }
    if (fabs(sum - 1.0) <= TOLERANCE) return CT_OK;
    return ct_fail(CT_INVAL, "mixing matrix: row %d sums to %.9g, not 1", i, sum);
}

ct_status ct_mixing_check(const ct_sparse *w, const ct_topology *t) {
    if (w->n_rows != t->n || w->n_cols != t->n)
        return ct_fail(CT_INVAL, "mixing matrix: %d x %d for %d agents", w->n_rows, w->n_cols,
                       t->n);
    CT_SCOPED_BLOCK(double) column_sum = NULL;
    CT_TRY(ct_make(&column_sum, (size_t)t->n, "the check of a mixing matrix"));
    for (int i = 0; i < t->n; i++) CT_TRY(check_row(w, t, i, column_sum));
    for (int j = 0; j < t->n; j++)
        if (!(fabs(column_sum[j] - 1.0) <= TOLERANCE))
            return ct_fail(CT_INVAL, "mixing matrix: column %d sums to %.9g, not 1", j,
                           column_sum[j]);
    return CT_OK;
}
