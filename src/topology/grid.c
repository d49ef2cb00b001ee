#include "topology/topology_internal.h"

ct_status ct_topology_make_grid(const ct_topology_request *request, ct_edge_list *out) {
    int n_rows = 0, n_cols = 0;
    CT_TRY(ct_request_shape(request, &n_rows, &n_cols));
    for (int r = 0; r < n_rows; r++) {
        for (int c = 0; c < n_cols; c++) {
            int i = r * n_cols + c;
            if (c + 1 < n_cols) ct_edge_list_add(out, i, i + 1);
            if (r + 1 < n_rows) ct_edge_list_add(out, i, i + n_cols);
        }
    }
    return CT_OK;
}
