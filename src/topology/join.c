#include "topology/topology_internal.h"

ct_status ct_topology_join(const ct_topology *parts, int n_parts, ct_topology *out) {
    ct_edge_list edges = {0};
    for (int p = 0; p < n_parts; p++) {
        ct_edge_list_add_graph(&edges, &parts[p], edges.n);
        edges.n += parts[p].n;
    }
    CT_TRY(ct_edge_list_finish(&edges, out));
    snprintf(out->name, sizeof out->name, "%s", parts[0].name);
    return CT_OK;
}
