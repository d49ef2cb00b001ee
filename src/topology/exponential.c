#include "topology/topology_internal.h"

/* The static one, made undirected: steps of 1, 2, 4, ... < n around the ring, both ways. */
ct_status ct_topology_make_exponential(const ct_topology_request *request, ct_edge_list *out) {
    for (int i = 0; i < request->n; i++)
        for (int step = 1; step < request->n; step *= 2)
            ct_edge_list_add(out, i, (i + step) % request->n);
    return CT_OK;
}
