#include "topology/topology_internal.h"

#include <string.h>

#include "util/file.h"
#include "util/memory.h"
#include "util/text.h"

void ct_edge_list_add(ct_edge_list *edges, int a, int b) {
    if (a == b || edges->status != CT_OK) return;
    if (edges->n_pairs >= CT_MAX_EDGES)
        edges->status = ct_fail(CT_INVAL,
                                "a graph of %d agents with more than %zu edges; use a "
                                "sparser one",
                                edges->n, CT_MAX_EDGES);
    else
        edges->status = ct_extend(&edges->pair, edges->n_pairs, "a graph's edges");
    if (edges->status != CT_OK) return;
    edges->pair[edges->n_pairs][0] = a;
    edges->pair[edges->n_pairs++][1] = b;
}

void ct_edge_list_add_graph(ct_edge_list *edges, const ct_topology *t, int first) {
    for (int i = 0; i < t->n; i++)
        for (int e = t->begin[i]; e < t->begin[i + 1]; e++)
            if (t->neighbour[e] > i) ct_edge_list_add(edges, first + i, first + t->neighbour[e]);
}

void ct_edge_list_free(ct_edge_list *edges) {
    ct_free(edges->pair);
    *edges = (ct_edge_list){0};
}

/* Both directions of every edge, by agent, not yet in order. */
static void fill_rows(const ct_edge_list *edges, ct_topology *t) {
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

static void sort_rows_and_drop_doubles(ct_topology *t) {
    int n_kept = 0;
    for (int i = 0; i < t->n; i++) {
        int begin = t->begin[i], n = ct_sort_unique(t->neighbour + begin, t->begin[i + 1] - begin);
        t->begin[i] = n_kept;
        memmove(t->neighbour + n_kept, t->neighbour + begin, (size_t)n * sizeof *t->neighbour);
        n_kept += n;
    }
    t->begin[t->n] = n_kept;
}

ct_status ct_edge_list_finish(ct_edge_list *edges, ct_topology *out) {
    CT_SCOPED(ct_edge_list) taken = {0};
    ct_move(&taken, edges);
    CT_TRY(taken.status);
    CT_TRY(ct_topology_alloc(taken.n, 2 * (int)taken.n_pairs, out));
    fill_rows(&taken, out);
    sort_rows_and_drop_doubles(out);
    return CT_OK;
}

ct_status ct_topology_walk(const ct_topology *t, ct_edge_list *first, int *unreached) {
    CT_SCOPED_BLOCK(int) queue = NULL;
    CT_SCOPED_BLOCK(bool) seen = NULL;
    CT_TRY(ct_make(&queue, (size_t)t->n, "a walk through a graph"));
    CT_TRY(ct_make(&seen, (size_t)t->n, "a walk through a graph"));
    int n_queued = 1; /* agent 0 */
    seen[0] = true;
    for (int k = 0; k < n_queued; k++) {
        for (int e = t->begin[queue[k]]; e < t->begin[queue[k] + 1]; e++) {
            int j = t->neighbour[e];
            if (seen[j]) continue;
            seen[j] = true;
            queue[n_queued++] = j;
            if (first != NULL) ct_edge_list_add(first, queue[k], j);
        }
    }
    int i = 0;
    while (i < t->n && seen[i]) i++;
    *unreached = i < t->n ? i : -1;
    return CT_OK;
}

ct_status ct_topology_connected(ct_status refused, const char *what, const ct_topology *t) {
    int unreached = -1;
    CT_TRY(ct_topology_walk(t, NULL, &unreached));
    if (unreached < 0) return CT_OK;
    return ct_fail(refused, "%s is not connected: agent %d cannot reach agent 0", what, unreached);
}

ct_status ct_lines_read(const char *path, void *context,
                        ct_status (*each)(void *context, int line, char *text)) {
    CT_SCOPED(ct_blob) blob = {0};
    CT_TRY(ct_file_read(path, CT_MAX_GRAPH_BYTES, &blob));
    char *text = (char *)blob.bytes, *end = text + blob.n;
    for (int line = 1; text < end; line++) {
        char *newline = memchr(text, '\n', (size_t)(end - text));
        if (newline == NULL) newline = end; /* where the blob's own 0 byte is */
        if (memchr(text, '\0', (size_t)(newline - text)) != NULL)
            return ct_fail(CT_IO, "%s: line %d: a zero byte; is this a text file?", path, line);
        *newline = '\0';
        text[strcspn(text, "#")] = '\0';
        char *trimmed = ct_trim(text);
        if (*trimmed != '\0') CT_TRY(each(context, line, trimmed));
        text = newline + 1;
    }
    return CT_OK;
}

ct_status ct_request_no_argument(const ct_topology_request *request) {
    if (request->argument == NULL) return CT_OK;
    return ct_fail(CT_INVAL, "topology '%s:%s': %s takes no argument", request->name,
                   request->argument, request->name);
}

ct_status ct_request_exactly(const ct_topology_request *request, int n) {
    if (request->n == n) return CT_OK;
    return ct_fail(CT_INVAL, "topology '%s' has %d agents, not %d", request->name, n, request->n);
}

static bool parse_shape(const char *text, int64_t *n_rows, int64_t *n_cols) {
    char copy[32];
    if ((size_t)snprintf(copy, sizeof copy, "%s", text) >= sizeof copy) return false;
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
