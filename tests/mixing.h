/* What every mixing matrix of a graph must be: symmetric, rows and columns that sum to 1 within
 * 1e-6, no negative weight, edges of the graph only. */
#ifndef CT_TESTS_MIXING_H
#define CT_TESTS_MIXING_H

#include <math.h>

#include "topology/topology.h"
#include "util/memory.h"

#define MIXING_TOLERANCE 1e-6

/* Row i: its order, its signs, its edges, its symmetry; adds it to the columns' sums. */
static inline ct_status mixing_check_row(const ct_sparse *w, const ct_topology *t, int i,
                                         double *column_sum) {
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
        if (!(fabs(value - mirrored) <= MIXING_TOLERANCE))
            return ct_fail(CT_INVAL, "mixing matrix: w(%d,%d) = %g, but w(%d,%d) = %g", i, j, value,
                           j, i, mirrored);
        sum += value;
        column_sum[j] += value;
    }
    if (fabs(sum - 1.0) <= MIXING_TOLERANCE) return CT_OK;
    return ct_fail(CT_INVAL, "mixing matrix: row %d sums to %.9g, not 1", i, sum);
}

static inline ct_status mixing_check(const ct_sparse *w, const ct_topology *t) {
    if (w->n_rows != t->n || w->n_cols != t->n)
        return ct_fail(CT_INVAL, "mixing matrix: %d x %d for %d agents", w->n_rows, w->n_cols,
                       t->n);
    CT_SCOPED_BLOCK(double) column_sum = NULL;
    CT_TRY(ct_make(&column_sum, (size_t)t->n, "the check of a mixing matrix"));
    for (int i = 0; i < t->n; i++) CT_TRY(mixing_check_row(w, t, i, column_sum));
    for (int j = 0; j < t->n; j++)
        if (!(fabs(column_sum[j] - 1.0) <= MIXING_TOLERANCE))
            return ct_fail(CT_INVAL, "mixing matrix: column %d sums to %.9g, not 1", j,
                           column_sum[j]);
    return CT_OK;
}

#endif
