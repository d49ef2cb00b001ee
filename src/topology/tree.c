#include "topology/topology_internal.h"

/* 0-1-...-(n-1)-0 and nothing else. */
static bool is_ring(const ct_topology *t) {
    for (int i = 0; i < t->n; i++)
        if (ct_topology_degree(t, i) != 2 || !ct_topology_has_edge(t, i, (i + 1) % t->n))
            return false;
    return true;
}

static void add_all_edges(const ct_topology *t, ct_edges *edges) {
    for (int i = 0; i < t->n; i++)
        for (int e = t->begin[i]; e < t->begin[i + 1]; e++)
            if (t->neighbour[e] > i) ct_edges_add(edges, i, t->neighbour[e]);
}

ct_status ct_topology_spanning_tree(const ct_topology *t, ct_topology *out, bool *was_tree) {
    bool tree =
        t->begin[t->n] == 2 * (t->n - 1); /* connected, so that this many edges are a tree */
    ct_edges edges = {.n = t->n};
    if (tree) {
        add_all_edges(t, &edges);
    } else if (is_ring(t)) {
        for (int i = 0; i + 1 < t->n; i++) ct_edges_add(&edges, i, i + 1);
    } else {
        int unreached; /* none: the graph is connected */
        ct_status status = ct_topology_walk(t, &edges, &unreached);
        if (status != CT_OK) {
            ct_edges_free(&edges);
            return status;
        }
    }
    ct_topology result = {0};
    CT_TRY(ct_edges_finish(&edges, &result));
    snprintf(result.name, sizeof result.name, "%s%.*s", tree ? "" : "tree of ",
             (int)sizeof result.name - 9, t->name);
    *out = result;
    *was_tree = tree;
    return CT_OK;
}
