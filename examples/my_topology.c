/* A wheel: a ring of agents 1 .. n-1 who all talk to agent 0 as well. A worked example for
 * docs/ADDING.md. */
#include "topology/topology_internal.h"

ct_status ct_topology_make_wheel(const ct_topology_request *request, ct_edge_list *out) {
    if (request->n < 4)
        return ct_fail(CT_INVAL, "topology 'wheel' needs at least 4 agents, not %d", request->n);
    for (int i = 1; i < request->n; i++) {
        ct_edge_list_add(out, 0, i);
        ct_edge_list_add(out, i, i + 1 < request->n ? i + 1 : 1);
    }
    return CT_OK;
}
