#include "topology/topology_internal.h"

ct_status ct_topology_make_full(const ct_topology_request *request, ct_topology *out) {
    CT_TRY(ct_request_no_argument(request));
    size_t n_edges = (size_t)request->n * (size_t)(request->n - 1) / 2;
    if (n_edges > CT_MAX_EDGES)
        return ct_fail(CT_INVAL,
                       "the full graph of %d agents has %zu edges; at most %zu are possible",
                       request->n, n_edges, CT_MAX_EDGES);
    ct_edge_list edges = {.n = request->n};
    for (int i = 0; i < edges.n; i++)
        for (int j = i + 1; j < edges.n; j++) ct_edge_list_add(&edges, i, j);
    return ct_edge_list_finish(&edges, out);
}
