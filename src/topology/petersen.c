#include "topology/topology_internal.h"

/* A pentagon 0-4, a pentagram 5-9, and spokes between them. */
ct_status ct_topology_make_petersen(const ct_topology_request *request, ct_edge_list *out) {
    CT_TRY(ct_request_exactly(request, 10));
    for (int i = 0; i < 5; i++) {
        ct_edge_list_add(out, i, (i + 1) % 5);
        ct_edge_list_add(out, i, i + 5);
        ct_edge_list_add(out, i + 5, (i + 2) % 5 + 5);
    }
    return CT_OK;
}
