#include "topology/topology_internal.h"

#include <stdlib.h>
#include <string.h>

#include "util/memory.h"
#include "util/text.h"

static bool reserve_pair(ct_edges *edges) {
    if (edges->n_pairs < edges->capacity) return true;
    size_t capacity = edges->capacity == 0 ? 64 : edges->capacity * 2;
    void *larger = ct_grow(edges->pair, edges->n_pairs, capacity, sizeof *edges->pair);
    if (larger == NULL) return false;
    edges->pair = larger;
    edges->capacity = capacity;
    return true;
}

void ct_edges_add(ct_edges *edges, int a, int b) {
    if (a == b || edges->status != CT_OK) return;
    if (edges->n_pairs >= CT_MAX_EDGES) {
        edges->status = ct_fail(CT_INVAL,
                                "a graph of %d agents with more than %zu edges; use a "
                                "sparser one",
                                edges->n, CT_MAX_EDGES);
    } else if (!reserve_pair(edges)) {
        edges->status = ct_fail(CT_NOMEM, "no memory for a graph of %d agents", edges->n);
    } else {
        edges->pair[edges->n_pairs][0] = a;
        edges->pair[edges->n_pairs][1] = b;
        edges->n_pairs++;
    }
}

void ct_edges_free(ct_edges *edges) {
    ct_free(edges->pair);
    *edges = (ct_edges){0};
}

/* Both directions of every edge, by agent, not yet in order. */
static void fill_rows(const ct_edges *edges, ct_topology *t) {
    for (size_t k = 0; k < edges->n_pairs; k++)
        for (int side = 0; side < 2; side++) t->begin[edges->pair[k][side] + 1]++;
    for (int i = 0; i < t->n; i++) t->begin[i + 1] += t->begin[i];
    for (size_t k = edges->n_pairs; k-- > 0;) {
        for (int side = 0; side < 2; side++) {
            /* begin[i + 1] moves back from the end of row i to its start ... */
            int at = --t->begin[edges->pair[k][side] + 1];
            t->neighbour[at] = edges->pair[k][1 - side];
        }
    }
    /* ... and is the start of row i now; the shift by one makes it begin[i] again. */
    for (int i = 0; i < t->n; i++) t->begin[i] = t->begin[i + 1];
    t->begin[t->n] = (int)(2 * edges->n_pairs);
}

static int compare_ints(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return x < y ? -1 : x > y;
}

static void sort_rows_and_drop_doubles(ct_topology *t) {
    int n_kept = 0;
    for (int i = 0; i < t->n; i++) {
        int begin = t->begin[i], end = t->begin[i + 1];
        qsort(t->neighbour + begin, (size_t)(end - begin), sizeof *t->neighbour, compare_ints);
        t->begin[i] = n_kept;
        for (int k = begin; k < end; k++)
            if (k == begin || t->neighbour[k] != t->neighbour[k - 1])
                t->neighbour[n_kept++] = t->neighbour[k];
    }
    t->begin[t->n] = n_kept;
}

ct_status ct_edges_finish(ct_edges *edges, ct_topology *out) {
    ct_status status = edges->status;
    ct_topology t = {.n = edges->n};
    if (status != CT_OK) goto fail;
    t.begin = ct_new(int, (size_t)t.n + 1);
    t.neighbour = ct_new(int, 2 * edges->n_pairs);
    if (t.begin == NULL || t.neighbour == NULL) {
        status = ct_fail(CT_NOMEM, "no memory for a graph of %d agents", t.n);
        goto fail;
    }
    fill_rows(edges, &t);
    sort_rows_and_drop_doubles(&t);
    ct_edges_free(edges);
    *out = t;
    return CT_OK;
fail:
    ct_topology_free(&t);
    ct_edges_free(edges);
    return status;
}

ct_status ct_topology_walk(const ct_topology *t, ct_edges *first, int *unreached) {
    int *queue = ct_new(int, (size_t)t->n);
    bool *seen = ct_new(bool, (size_t)t->n);
    ct_status status = CT_OK;
    if (queue == NULL || seen == NULL) {
        status = ct_fail(CT_NOMEM, "no memory to walk a graph of %d agents", t->n);
        goto done;
    }
    int n_queued = 1; /* agent 0 */
    seen[0] = true;
    for (int k = 0; k < n_queued; k++) {
        for (int e = t->begin[queue[k]]; e < t->begin[queue[k] + 1]; e++) {
            int j = t->neighbour[e];
            if (seen[j]) continue;
            seen[j] = true;
            queue[n_queued++] = j;
            if (first != NULL) ct_edges_add(first, queue[k], j);
        }
    }
    int i = 0;
    while (i < t->n && seen[i]) i++;
    *unreached = i < t->n ? i : -1;
done:
    ct_free(seen);
    ct_free(queue);
    return status;
}

ct_status ct_request_no_argument(const ct_topology_request *request) {
    if (request->argument == NULL) return CT_OK;
    return ct_fail(CT_INVAL, "topology '%s:%s': %s takes no argument", request->name,
                   request->argument, request->name);
}

ct_status ct_request_exactly(const ct_topology_request *request, int n) {
    CT_TRY(ct_request_no_argument(request));
    if (request->n == n) return CT_OK;
    return ct_fail(CT_INVAL, "topology '%s' has %d agents, not %d", request->name, n, request->n);
}

static bool parse_shape(const char *text, int64_t *n_rows, int64_t *n_cols) {
    char copy[32];
    size_t n = strlen(text);
    if (n >= sizeof copy) return false;
    memcpy(copy, text, n + 1);
    char *x = strchr(copy, 'x');
    if (x == NULL) return false;
    *x = '\0';
    return ct_parse_i64(copy, n_rows) && ct_parse_i64(x + 1, n_cols);
}

ct_status ct_request_shape(const ct_topology_request *request, int *n_rows, int *n_cols) {
    int64_t rows = 1, cols = 0, n = request->n;
    if (request->argument == NULL) {
        for (int64_t r = 1; r * r <= n; r++)
            if (n % r == 0) rows = r;
        cols = n / rows;
    } else if (!parse_shape(request->argument, &rows, &cols)) {
        return ct_fail(CT_INVAL, "topology '%s:%s': expected rows x columns, as in %s:4x8",
                       request->name, request->argument, request->name);
    }
    if (rows < 1 || cols < 1 || rows > n || cols > n || rows * cols != n)
        return ct_fail(CT_INVAL,
                       "topology '%s:%s': rows times columns must be the number of agents, %d",
                       request->name, request->argument, request->n);
    *n_rows = (int)rows;
    *n_cols = (int)cols;
    return CT_OK;
}
