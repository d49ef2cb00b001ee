#include "topology/topology_internal.h"

/* A pentagon 0-4, a pentagram 5-9, and spokes between them. */
ct_status ct_topology_make_petersen(const ct_topology_request *request, ct_topology *out) {
    CT_TRY(ct_request_exactly(request, 10));
    ct_edge_list edges = {.n = 10};
    for (int i = 0; i < 5; i++) {
        ct_edge_list_add(&edges, i, (i + 1) % 5);
        ct_edge_list_add(&edges, i, i + 5);
        ct_edge_list_add(&edges, i + 5, (i + 2) % 5 + 5);
    }
    return ct_edge_list_finish(&edges, out);
}
