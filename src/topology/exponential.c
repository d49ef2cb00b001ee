#include "topology/topology_internal.h"

/* The static one, made undirected: steps of 1, 2, 4, ... < n around the ring, both ways. */
ct_status ct_topology_make_exponential(const ct_topology_request *request, ct_topology *out) {
    CT_TRY(ct_request_no_argument(request));
    ct_edge_list edges = {.n = request->n};
    for (int i = 0; i < edges.n; i++)
        for (int step = 1; step < edges.n; step *= 2)
            ct_edge_list_add(&edges, i, (i + step) % edges.n);
    return ct_edge_list_finish(&edges, out);
}
