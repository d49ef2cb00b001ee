/* Who talks to whom in this step. */
#include "algo/agents.h"

void ct_agents_gather(const ct_topology *t, ct_sparse *gather) {
    int n_edges = t->begin[t->n];
    for (int j = 0; j <= t->n; j++) gather->begin[j] = 0;
    for (int e = 0; e < n_edges; e++) gather->begin[t->neighbour[e] + 1]++;
    for (int j = 0; j < t->n; j++) gather->begin[j + 1] += gather->begin[j];
    /* begin[j] runs through row j; afterwards it is where row j + 1 begins */
    for (int e = 0; e < n_edges; e++) {
        int entry = gather->begin[t->neighbour[e]]++;
        gather->column[entry] = e;
        gather->value[entry] = 1.0;
    }
    for (int j = t->n; j > 0; j--) gather->begin[j] = gather->begin[j - 1];
    gather->begin[0] = 0;
}

void ct_agents_connect(ct_agents *a, const ct_topology *sources, const ct_sparse *w) {
    a->topology = sources;
    a->w = w;
    a->models.n = a->neighbours.n = sources->begin[a->n];
    for (int i = 0; i < a->n; i++) {
        for (int e = sources->begin[i]; e < sources->begin[i + 1]; e++) {
            int j = sources->neighbour[e];
            a->models.from[e] = a->neighbours.to[e] = j;
            a->models.to[e] = a->neighbours.from[e] = i;
            if (a->loss.ccl) a->cross_jobs[e] = (ct_job){.model = j, .batch = i, .out = e};
        }
    }
    if (a->loss.ccl) ct_agents_gather(sources, &a->gather);
    a->x.fresh = false; /* what had arrived, had arrived elsewhere */
}
