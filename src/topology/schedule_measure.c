/* What a schedule amounts to over a period. */
#include "topology/schedule_internal.h"

#include <math.h>

#include "util/memory.h"

#define DRAWN_STEPS       32  /* looked at, where steps are drawn */
#define MAX_MEASURED_SIZE 512 /* dense n x n products */

static int n_steps(const ct_schedule *s) {
    return s->period > 0 ? s->period : DRAWN_STEPS;
}

/* The mean of (W + W^T) / 2 over the steps, at the entries that `w` has. */
static void add_means(ct_schedule *s, int first, ct_sparse *w) {
    for (int e = 0; e < w->begin[w->n_rows]; e++) w->value[e] = 0;
    int n = n_steps(s);
    for (int t = 0; t < n; t++) {
        const ct_sparse *step = &ct_schedule_round(s, t)->w;
        for (int i = 0; i < w->n_rows; i++)
            for (int e = w->begin[i]; e < w->begin[i + 1]; e++) {
                int j = w->column[e];
                w->value[e] += (ct_sparse_get(step, first + i, first + j) +
                                ct_sparse_get(step, first + j, first + i)) /
                               (2 * n);
            }
    }
}

ct_status ct_schedule_union(ct_schedule *s, int seed, ct_topology *graph, ct_sparse *w) {
    int first = seed * s->n_agents;
    ct_edge_list edges = {.n = s->n_agents};
    CT_SCOPED(ct_topology) all = {0};
    for (int t = 0; t < n_steps(s); t++) {
        const ct_topology *step = &ct_schedule_round(s, t)->sources;
        for (int i = 0; i < s->n_agents; i++)
            for (int e = step->begin[first + i]; e < step->begin[first + i + 1]; e++)
                ct_edge_list_add(&edges, i, step->neighbour[e] - first);
    }
    CT_TRY(ct_edge_list_finish(&edges, &all));
    snprintf(all.name, sizeof all.name, "%s", s->name);
    CT_TRY(ct_mixing_create(&all, "metropolis", w));
    if (s->is_balanced) add_means(s, first, w);
    ct_move(graph, &all);
    return CT_OK;
}

/* Marks who hears of agent 0 (forward) or whom agent 0 hears of, the steps repeated without end;
 * returns the first agent left out, -1 for none. */
static int first_unreached(ct_schedule *s, bool forward, bool *seen) {
    bool changed = true;
    for (int i = 0; i < s->n_agents; i++) seen[i] = i == 0;
    while (changed) {
        changed = false;
        for (int t = 0; t < n_steps(s); t++) {
            const ct_topology *step = &ct_schedule_round(s, t)->sources;
            for (int i = 0; i < s->n_agents; i++)
                for (int e = step->begin[i]; e < step->begin[i + 1]; e++) {
                    int j = step->neighbour[e], from = forward ? j : i, to = forward ? i : j;
                    changed = changed || (seen[from] && !seen[to]);
                    seen[to] = seen[to] || seen[from];
                }
        }
    }
    int i = 0;
    while (i < s->n_agents && seen[i]) i++;
    return i < s->n_agents ? i : -1;
}

ct_status ct_schedule_check_reach(ct_schedule *s) {
    CT_SCOPED_BLOCK(bool) seen = NULL;
    CT_TRY(ct_make(&seen, (size_t)s->n_agents, "a walk through a schedule"));
    int deaf = first_unreached(s, true, seen), mute = first_unreached(s, false, seen);
    if (deaf >= 0)
        return ct_fail(CT_INVAL, "schedule '%s': agent 0 never reaches agent %d", s->name, deaf);
    if (mute >= 0)
        return ct_fail(CT_INVAL, "schedule '%s': agent %d never reaches agent 0", s->name, mute);
    return CT_OK;
}

/* y = W x for the first seed's agents */
static void apply(const ct_sparse *w, const double *x, double *y, int n) {
    for (int i = 0; i < n; i++) {
        y[i] = 0;
        for (int e = w->begin[i]; e < w->begin[i + 1]; e++) y[i] += w->value[e] * x[w->column[e]];
    }
}

ct_status ct_schedule_contraction(ct_schedule *s, double *out) {
    int n = s->n_agents;
    CT_SCOPED_BLOCK(double) x = NULL;
    CT_SCOPED_BLOCK(double) y = NULL;
    CT_TRY(ct_make(&x, (size_t)n, "the measure of a schedule"));
    CT_TRY(ct_make(&y, (size_t)n, "the measure of a schedule"));
    *out = 0;
    for (int j = 0; j < n && j < MAX_MEASURED_SIZE; j++) {
        for (int i = 0; i < n; i++) x[i] = (i == j) - 1.0 / n;
        double before = sqrt(1 - 1.0 / n), left = 0;
        for (int t = 0; t < n_steps(s); t++) {
            apply(&ct_schedule_round(s, t)->w, x, y, n);
            double *swap = x;
            x = y;
            y = swap;
        }
        for (int i = 0; i < n; i++) left += x[i] * x[i];
        if (n > 1) *out = fmax(*out, sqrt(left) / before);
    }
    return CT_OK;
}
