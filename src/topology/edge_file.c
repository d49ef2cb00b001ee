#include "topology/topology_internal.h"

#include <stdlib.h>
#include <string.h>

#include "util/memory.h"

/* An edge a < b and the line it stands on. */
typedef struct line_edge {
    int a, b;
    int line;
} line_edge;

typedef struct edge_list {
    const char *path;
    int n_agents;
    line_edge *edges;
    size_t n;
} edge_list;

/* "a b" or "a,b"; cuts the text at the separator. */
static bool parse_pair(char *text, int64_t *a, int64_t *b) {
    char *separator = strchr(text, ',');
    if (separator == NULL) separator = text + strcspn(text, " \t");
    if (*separator == '\0') return false;
    *separator = '\0';
    return ct_parse_i64(text, a) && ct_parse_i64(separator + 1, b);
}

static ct_status read_line(void *context, int line, char *text) {
    edge_list *list = context;
    int64_t a = 0, b = 0;
    if (!parse_pair(text, &a, &b))
        return ct_fail(CT_IO, "%s: line %d: expected two agents, \"a b\" or \"a,b\"", list->path,
                       line);
    if (a < 0 || b < 0 || a >= list->n_agents || b >= list->n_agents)
        return ct_fail(CT_IO, "%s: line %d: agent %lld is not one of 0 .. %d", list->path, line,
                       (long long)(a < 0 || a >= list->n_agents ? a : b), list->n_agents - 1);
    if (a == b)
        return ct_fail(CT_IO, "%s: line %d: agent %lld is joined to itself", list->path, line,
                       (long long)a);
    if (list->n >= CT_MAX_EDGES)
        return ct_fail(CT_IO, "%s: more than %zu edges", list->path, CT_MAX_EDGES);
    CT_TRY(ct_extend(&list->edges, list->n, "the edges of a file"));
    list->edges[list->n++] = (line_edge){(int)(a < b ? a : b), (int)(a < b ? b : a), line};
    return CT_OK;
}

static int compare_edges(const void *x, const void *y) {
    const line_edge *p = x, *q = y;
    if (p->a != q->a) return p->a < q->a ? -1 : 1;
    if (p->b != q->b) return p->b < q->b ? -1 : 1;
    return p->line < q->line ? -1 : p->line > q->line;
}

/* Names the first line that repeats an edge. */
static ct_status check_doubles(edge_list *list) {
    const line_edge *first = NULL, *again = NULL;
    qsort(list->edges, list->n, sizeof *list->edges, compare_edges);
    for (size_t k = 1; k < list->n; k++) {
        const line_edge *p = &list->edges[k - 1], *q = &list->edges[k];
        if (p->a != q->a || p->b != q->b || (again != NULL && again->line < q->line)) continue;
        first = p;
        again = q;
    }
    if (again == NULL) return CT_OK;
    return ct_fail(CT_IO, "%s: line %d: the edge %d %d is on line %d already", list->path,
                   again->line, again->a, again->b, first->line);
}

static void edge_list_free(edge_list *list) {
    ct_free(list->edges);
}

/* Which of n_edges edges repeats an earlier one; -1: none does. */
static ct_status find_double(const ct_topology *t, const int (*edges)[2], int n_edges, int *out) {
    CT_SCOPED_BLOCK(bool) seen = NULL;
    CT_TRY(ct_make(&seen, (size_t)t->begin[t->n], "a graph's edges"));
    *out = -1;
    for (int k = 0; k < n_edges && *out < 0; k++) {
        int a = edges[k][0] < edges[k][1] ? edges[k][0] : edges[k][1];
        int b = edges[k][0] + edges[k][1] - a, first = t->begin[a];
        int at = first + ct_sorted_find(t->neighbour + first, ct_topology_degree(t, a), b);
        if (seen[at]) *out = k;
        seen[at] = true;
    }
    return CT_OK;
}

ct_status ct_topology_of_edges(int n, const int (*edges)[2], int n_edges, ct_topology *out) {
    CT_SCOPED(ct_edge_list) list = {.n = n};
    CT_SCOPED(ct_topology) t = {0};
    int again = -1;
    if (n < 1 || n > CT_MAX_AGENTS || n_edges < 0 || (edges == NULL && n_edges > 0))
        return ct_fail(CT_INVAL, "%d edges between %d agents are no graph", n_edges, n);
    for (int k = 0; k < n_edges; k++) {
        int a = edges[k][0], b = edges[k][1];
        if (a < 0 || b < 0 || a >= n || b >= n || a == b)
            return ct_fail(CT_INVAL,
                           "edge %d joins %d and %d; it must join two of the agents 0..%d", k, a, b,
                           n - 1);
        ct_edge_list_add(&list, a, b);
    }
    CT_TRY(ct_edge_list_finish(&list, &t));
    CT_TRY(find_double(&t, edges, n_edges, &again));
    if (again >= 0)
        return ct_fail(CT_INVAL, "edge %d, %d to %d, is there twice", again, edges[again][0],
                       edges[again][1]);
    CT_TRY(ct_topology_connected(CT_INVAL, "the graph", &t));
    snprintf(t.name, sizeof t.name, "own");
    ct_move(out, &t);
    return CT_OK;
}

ct_status ct_topology_make_edge_file(const ct_topology_request *request, ct_edge_list *out) {
    if (request->argument == NULL || request->argument[0] == '\0')
        return ct_fail(CT_INVAL, "topology 'file' needs a path, as in file:edges.txt");
    CT_SCOPED(edge_list) list = {.path = request->argument, .n_agents = request->n};
    CT_TRY(ct_lines_read(list.path, &list, read_line));
    if (list.n == 0) return ct_fail(CT_IO, "%s: no edges in it", list.path);
    CT_TRY(check_doubles(&list));
    for (size_t k = 0; k < list.n; k++) ct_edge_list_add(out, list.edges[k].a, list.edges[k].b);
    out->file = list.path;
    return CT_OK;
}
