#include "topology/topology_internal.h"

ct_status ct_topology_make_hypercube(const ct_topology_request *request, ct_edge_list *out) {
    int n = request->n;
    if ((n & (n - 1)) != 0)
        return ct_fail(CT_INVAL, "topology 'hypercube' of %d agents: must be a power of two", n);
    for (int i = 0; i < n; i++)
        for (int bit = 1; bit < n; bit *= 2) ct_edge_list_add(out, i, i ^ bit);
    return CT_OK;
}
