#include "topology/topology_internal.h"

ct_status ct_topology_make_star(const ct_topology_request *request, ct_topology *out) {
    CT_TRY(ct_request_no_argument(request));
    ct_edge_list edges = {.n = request->n};
    for (int i = 1; i < edges.n; i++) ct_edge_list_add(&edges, 0, i);
    return ct_edge_list_finish(&edges, out);
}
