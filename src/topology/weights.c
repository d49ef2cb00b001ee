/* Mixing weights.
 *   uniform:     w_ij = 1/(p + 1) for every neighbour j and for i itself; p neighbours everywhere
 *   metropolis:  w_ij = 1/(1 + max(p_i, p_j)),  w_ii = 1 - sum_j w_ij
 * The second is Xiao, Boyd and Kim, "Distributed average consensus with least-mean-square
 * deviation" (2007); on a regular graph it is the first. */
#include "topology/topology_internal.h"

#include <string.h>

#include "util/memory.h"

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

void ct_mixing_fill_row(ct_sparse *w, int i, const int *others, const double *weights, int n,
                        double own) {
    int at = w->begin[i];
    for (int k = 0; k <= n; k++) {
        bool is_next = (k == n || others[k] > i) && (k == 0 || others[k - 1] < i);
        if (is_next) w->column[at] = i;
        if (is_next) w->value[at++] = own;
        if (k == n) break;
        w->column[at] = others[k];
        w->value[at++] = weights[k];
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
    CT_SCOPED_BLOCK(double) row = NULL;
    CT_TRY(ct_make(&row, (size_t)t->n, "mixing weights"));
    CT_TRY(ct_sparse_create(t->n, t->n, t->begin[t->n] + t->n, out));
    for (int i = 0; i < t->n; i++) {
        const int *others = t->neighbour + t->begin[i];
        int n = ct_topology_degree(t, i);
        for (int k = 0; k < n; k++) row[k] = edge_weight(t, i, others[k]);
        ct_mixing_fill_row(out, i, others, row, n,
                           own_weight(t, i, regular && (is_auto || is_uniform)));
    }
    return CT_OK;
}
