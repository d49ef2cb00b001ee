#include "topology/topology_internal.h"

#include <math.h>
#include <string.h>

#include "util/memory.h"

#define MAX_DENSE_AGENTS 512 /* 512^3 operations are some tenths of a second */
/* Edges that the walks of find_diameter may visit (seconds). Only graphs of more than about 20,000
 * agents without the symmetry of a ring get there; the furthest found so far stands then. */
#define WALKS_MAX_WORK 2.5e8

/* 64 breadth-first walks at once, one bit each. A word per agent: who has come by, who came with
 * the last step, who comes with the next one; and the agents that the last and the next step reach.
 */
typedef struct walks {
    uint64_t *seen, *now, *next; /* [n] */
    int *at, *at_next;           /* [n] */
    double n_visited;            /* edges so far */
} walks;

static void walks_free(walks *w) {
    ct_free(w->at_next);
    ct_free(w->at);
    ct_free(w->next);
    ct_free(w->now);
    ct_free(w->seen);
}

static ct_status walks_create(int n_agents, walks *out) {
    size_t n = (size_t)n_agents;
    uint64_t **const words[] = {&out->seen, &out->now, &out->next};
    for (int k = 0; k < 3; k++) CT_TRY(ct_make(words[k], n, "the measure of a graph"));
    CT_TRY(ct_make(&out->at, n, "the measure of a graph"));
    return ct_make(&out->at_next, n, "the measure of a graph");
}

/* One step of every walk from the n_at agents in w->at; returns how many agents it reaches and adds
 * the walks that reach them to *n_reached. */
static int step_walks(const ct_topology *t, walks *w, int n_at, int64_t *n_reached) {
    int n_next = 0;
    for (int k = 0; k < n_at; k++) {
        int i = w->at[k];
        w->n_visited += t->begin[i + 1] - t->begin[i];
        for (int e = t->begin[i]; e < t->begin[i + 1]; e++) {
            int j = t->neighbour[e];
            uint64_t arriving = w->now[i] & ~w->seen[j];
            if (arriving == 0) continue;
            if (w->next[j] == 0) w->at_next[n_next++] = j;
            w->next[j] |= arriving;
        }
        w->now[i] = 0;
    }
    for (int k = 0; k < n_next; k++) {
        int j = w->at_next[k];
        *n_reached += __builtin_popcountll(w->next[j]);
        w->seen[j] |= w->next[j];
    }
    *w = (walks){w->seen, w->next, w->now, w->at_next, w->at, w->n_visited};
    return n_next;
}

/* The largest distance of any agent from one of the n_roots agents beginning with `first`. */
static int furthest_from(const ct_topology *t, int first, int n_roots, walks *w) {
    memset(w->seen, 0, (size_t)t->n * sizeof *w->seen);
    memset(w->now, 0, (size_t)t->n * sizeof *w->now);
    memset(w->next, 0, (size_t)t->n * sizeof *w->next);
    for (int k = 0; k < n_roots; k++) {
        w->at[k] = first + k;
        w->seen[first + k] = w->now[first + k] = (uint64_t)1 << k;
    }
    int distance = 0, n_at = n_roots;
    int64_t n_reached = n_roots, n_all = (int64_t)n_roots * t->n;
    while (n_reached < n_all && n_at > 0) {
        n_at = step_walks(t, w, n_at, &n_reached);
        distance += n_at > 0;
    }
    return distance;
}

/* Every agent has the neighbours of agent 0, that much further round: all see the same graph. */
static ct_status look_round(const ct_topology *t, bool *is_round) {
    CT_SCOPED_BLOCK(bool) is_offset = NULL;
    CT_TRY(ct_make(&is_offset, (size_t)t->n, "the measure of a graph"));
    for (int e = 0; e < t->begin[1]; e++) is_offset[t->neighbour[e]] = true;
    *is_round = true;
    for (int i = 0; i < t->n && *is_round; i++) {
        *is_round = ct_topology_degree(t, i) == t->begin[1];
        for (int e = t->begin[i]; e < t->begin[i + 1] && *is_round; e++)
            *is_round = is_offset[(t->neighbour[e] - i + t->n) % t->n];
    }
    return CT_OK;
}

static ct_status find_diameter(const ct_topology *t, int *out) {
    CT_SCOPED(walks) w = {0};
    bool is_round = false;
    CT_TRY(walks_create(t->n, &w));
    CT_TRY(look_round(t, &is_round));
    *out = is_round ? furthest_from(t, 0, 1, &w) : 0;
    for (int first = 0; first < t->n && !is_round && w.n_visited < WALKS_MAX_WORK; first += 64) {
        int furthest = furthest_from(t, first, t->n - first < 64 ? t->n - first : 64, &w);
        if (furthest > *out) *out = furthest;
    }
    return CT_OK;
}

static ct_status find_spectrum(const ct_sparse *w, ct_topology_facts *facts) {
    if (w->n_rows == 1) { /* W = [1]: agreed from the start */
        facts->lambda_min = w->begin[1] > 0 ? w->value[0] : 0.0;
        facts->spectral_gap = 1.0;
        return CT_OK;
    }
    ct_status (*solve)(const ct_sparse *, double *, double *) =
        w->n_rows <= MAX_DENSE_AGENTS ? ct_spectrum_dense : ct_spectrum_lanczos;
    CT_TRY(solve(w, &facts->lambda_2, &facts->lambda_min));
    facts->spectral_gap = 1.0 - fmax(fabs(facts->lambda_2), fabs(facts->lambda_min));
    return CT_OK;
}

ct_status ct_topology_measure(const ct_topology *t, const ct_sparse *w, ct_topology_facts *out) {
    if (w->n_rows != t->n || w->n_cols != t->n)
        return ct_fail(CT_INVAL, "mixing matrix: %d x %d for %d agents", w->n_rows, w->n_cols,
                       t->n);
    ct_topology_facts facts = {.n_edges = t->begin[t->n] / 2,
                               .min_degree = ct_topology_degree(t, 0),
                               .max_degree = ct_topology_degree(t, 0)};
    for (int i = 1; i < t->n; i++) {
        int degree = ct_topology_degree(t, i);
        if (degree < facts.min_degree) facts.min_degree = degree;
        if (degree > facts.max_degree) facts.max_degree = degree;
    }
    CT_TRY(find_diameter(t, &facts.diameter));
    CT_TRY(find_spectrum(w, &facts));
    *out = facts;
    return CT_OK;
}
