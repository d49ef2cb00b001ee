#include "topology/topology_internal.h"

ct_status ct_topology_make_full(const ct_topology_request *request, ct_edge_list *out) {
    size_t n_edges = (size_t)request->n * (size_t)(request->n - 1) / 2;
    if (n_edges > CT_MAX_EDGES)
        return ct_fail(CT_INVAL,
                       "the full graph of %d agents has %zu edges; at most %zu are possible",
                       request->n, n_edges, CT_MAX_EDGES);
    for (int i = 0; i < request->n; i++)
        for (int j = i + 1; j < request->n; j++) ct_edge_list_add(out, i, j);
    return CT_OK;
}
