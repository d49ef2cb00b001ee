#include "topology/topology_internal.h"

ct_status ct_topology_make_chain(const ct_topology_request *request, ct_edge_list *out) {
    for (int i = 0; i + 1 < request->n; i++) ct_edge_list_add(out, i, i + 1);
    return CT_OK;
}
