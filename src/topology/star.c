#include "topology/topology_internal.h"

ct_status ct_topology_make_star(const ct_topology_request *request, ct_edge_list *out) {
    for (int i = 1; i < request->n; i++) ct_edge_list_add(out, 0, i);
    return CT_OK;
}
