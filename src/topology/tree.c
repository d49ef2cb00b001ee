#include "topology/topology_internal.h"

#include "util/memory.h"

/* 0-1-...-(n-1)-0 and nothing else. */
static bool is_ring(const ct_topology *t) {
    for (int i = 0; i < t->n; i++)
        if (ct_topology_degree(t, i) != 2 || !ct_topology_has_edge(t, i, (i + 1) % t->n))
            return false;
    return true;
}

ct_status ct_topology_spanning_tree(const ct_topology *t, ct_topology *out, bool *was_tree) {
    bool tree =
        t->begin[t->n] == 2 * (t->n - 1); /* connected, so that this many edges are a tree */
    CT_SCOPED(ct_edge_list) edges = {.n = t->n};
    int unreached; /* none: the graph is connected */
    if (tree)
        ct_edge_list_add_graph(&edges, t, 0);
    else if (is_ring(t))
        for (int i = 0; i + 1 < t->n; i++) ct_edge_list_add(&edges, i, i + 1);
    else
        CT_TRY(ct_topology_walk(t, &edges, &unreached));
    CT_TRY(ct_edge_list_finish(&edges, out));
    snprintf(out->name, sizeof out->name, "%s%.*s", tree ? "" : "tree of ",
             (int)sizeof out->name - 9, t->name);
    *was_tree = tree;
    return CT_OK;
}
