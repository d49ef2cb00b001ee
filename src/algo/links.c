/* Who talks to whom in this step. */
#include "algo/agents.h"

#include "algo/agents_internal.h"

void ct_agents_route(ct_agents *a, const ct_topology *sources) {
    a->models.n = a->neighbours.n = sources->begin[sources->n];
    for (int i = 0; i < sources->n; i++) {
        for (int e = sources->begin[i]; e < sources->begin[i + 1]; e++) {
            a->models.from[e] = a->neighbours.to[e] = sources->neighbour[e];
            a->models.to[e] = a->neighbours.from[e] = i;
        }
    }
}

/* Own rows of W. Columns become bank rows, own or halo; their order, in which sums run, stays that
 * of the agents, so that a sum has the same bits wherever its terms live. */
static void fill_mixing(ct_agents *a) {
    const ct_sparse *all = a->weights;
    int begin = all->begin[a->first], n = all->begin[a->first + a->n] - begin;
    for (int i = 0; i <= a->n; i++) a->mixing.begin[i] = all->begin[a->first + i] - begin;
    for (int k = 0; k < n; k++) {
        a->mixing.column[k] = ct_routes_row(&a->models, all->column[begin + k]);
        a->mixing.value[k] = all->value[begin + k];
    }
    a->w = &a->mixing;
}

static int message_from(const ct_topology *t, int from, int to) {
    int e = t->begin[to];
    while (t->neighbour[e] != from) e++;
    return e;
}

/* Neighbours' rows are mailboxes; the weight of an edge with a dead end goes to the own row, last
 * in agents' order, so that rows still sum to 1. */
static void fill_faulty_row(ct_agents *a, int i) {
    const ct_sparse *all = a->weights;
    int row = a->first + i, own = -1, offset = all->begin[a->first];
    double lost = 0;
    for (int k = a->mixing.begin[i]; k < a->mixing.begin[i + 1]; k++) {
        int from = all->column[offset + k];
        if (from == row) own = k;
        if (from == row) continue;
        a->mixing.column[k] = a->models.mail[message_from(a->topology, from, row)];
        if (ct_agents_is_alive(a, from) && ct_agents_is_alive(a, row)) continue;
        lost += a->mixing.value[k];
        a->mixing.value[k] = 0;
    }
    if (own >= 0) a->mixing.value[own] += lost;
}

void ct_agents_gather(const ct_agents *a, ct_sparse *gather) {
    const ct_routes *r = &a->neighbours;
    int *begin = gather->begin;
    for (int j = 0; j <= a->n; j++) begin[j] = 0;
    for (int e = 0; e < r->n; e++)
        if (r->to[e] >= a->first && r->to[e] < a->first + a->n) begin[r->to[e] - a->first + 1]++;
    for (int j = 0; j < a->n; j++) begin[j + 1] += begin[j];
    /* begin[j] runs through row j; afterwards it is where row j + 1 begins */
    for (int e = 0; e < r->n; e++) {
        if (r->to[e] < a->first || r->to[e] >= a->first + a->n) continue;
        int entry = begin[r->to[e] - a->first]++;
        gather->column[entry] = ct_agents_arrival(a, r, e);
        gather->value[entry] = ct_agents_is_alive(a, r->from[e]) ? 1.0 : 0.0;
    }
    for (int j = a->n; j > 0; j--) begin[j] = begin[j - 1];
    begin[0] = 0;
}

/* Models that are here first: their features are computed while the others' rows travel. */
static void list_cross_jobs(ct_agents *a, const ct_topology *t) {
    int first_edge = t->begin[a->first], n_jobs = 0;
    for (int i = 0; i <= a->n; i++) a->cross_begin[i] = t->begin[a->first + i] - first_edge;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < a->n; i++) {
            for (int e = a->cross_begin[i]; e < a->cross_begin[i + 1]; e++) {
                int from = t->neighbour[first_edge + e];
                int model = a->faults != NULL ? a->models.mail[first_edge + e]
                                              : ct_routes_row(&a->models, from);
                /* a dead neighbour's features are one's own: nothing to contrast with */
                if (!ct_agents_is_alive(a, from)) model = i;
                if ((model >= a->n) != (pass == 1)) continue;
                a->cross_jobs[n_jobs++] = (ct_job){.model = model, .batch = i, .out = e};
            }
        }
        if (pass == 0) a->n_cross_own = n_jobs;
    }
}

void ct_agents_list_cross(ct_agents *a, const ct_topology *sources) {
    ct_agents_gather(a, &a->gather);
    list_cross_jobs(a, sources);
}

ct_status ct_agents_connect(ct_agents *a, const ct_topology *sources, const ct_sparse *weights) {
    a->topology = sources;
    a->weights = weights;
    ct_agents_route(a, sources);
    CT_TRY(ct_routes_link(a->transport, &a->models));
    CT_TRY(ct_routes_link(a->transport, &a->neighbours));
    fill_mixing(a);
    for (int i = 0; i < a->n && a->faults != NULL; i++) fill_faulty_row(a, i);
    if (a->loss.ccl) ct_agents_list_cross(a, sources);
    a->x.fresh = false; /* what had arrived, had arrived elsewhere */
    for (int b = 0; b < a->n_buffers; b++)
        if (a->buffers[b].routes == NULL) a->buffers[b].bank.fresh = false;
    return CT_OK;
}
