#include "topology/topology_internal.h"

ct_status ct_topology_join(const ct_topology *parts, int n_parts, ct_topology *out) {
    ct_edges edges = {0};
    for (int p = 0; p < n_parts; p++) {
        const ct_topology *t = &parts[p];
        for (int i = 0; i < t->n; i++)
            for (int e = t->begin[i]; e < t->begin[i + 1]; e++)
                if (t->neighbour[e] > i)
                    ct_edges_add(&edges, edges.n + i, edges.n + t->neighbour[e]);
        edges.n += t->n;
    }
    ct_topology joined = {0};
    CT_TRY(ct_edges_finish(&edges, &joined));
    snprintf(joined.name, sizeof joined.name, "%s", parts[0].name);
    *out = joined;
    return CT_OK;
}
