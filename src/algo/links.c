/* Who talks to whom in this step. */
#include "algo/links.h"

#include "algo/agents_internal.h"

int ct_links_far_rows(const ct_agents *a, const ct_routes *routes) {
    return routes->most_halo + (a->faults != NULL ? routes->n_mail : 0);
}

int ct_links_arrival(const ct_agents *a, const ct_routes *r, int message) {
    if (a->faults != NULL) return r->mail[message];
    return ct_routes_row(r, r->by_edge ? message : r->from[message]);
}

void ct_links_route(ct_links *links, const ct_topology *sources) {
    ct_routes *models = &links->models, *answers = &links->neighbours;
    models->n = answers->n = sources->begin[sources->n];
    for (int i = 0; i < sources->n; i++) {
        for (int e = sources->begin[i]; e < sources->begin[i + 1]; e++) {
            models->from[e] = answers->to[e] = sources->neighbour[e];
            models->to[e] = answers->from[e] = i;
        }
    }
}

/* ---- room for every graph there will be ---- */

static int larger(int a, int b) {
    return a > b ? a : b;
}

static int smaller(int a, int b) {
    return a < b ? a : b;
}

/* What this process's part of one step's graph needs. */
static void measure_step(ct_agents *a, const ct_topology *t, const ct_sparse *w) {
    ct_links *l = &a->links;
    int end = a->first + a->n, n_arrivals = 0;
    for (int e = 0; e < t->begin[t->n]; e++)
        n_arrivals += t->neighbour[e] >= a->first && t->neighbour[e] < end;
    l->most.arrivals = larger(l->most.arrivals, n_arrivals);
    l->most.edges = larger(l->most.edges, t->begin[end] - t->begin[a->first]);
    l->most.weights = larger(l->most.weights, w->begin[end] - w->begin[a->first]);
}

static ct_status reserve_step(ct_agents *a, const ct_topology *sources, const ct_sparse *w) {
    measure_step(a, sources, w);
    ct_links_route(&a->links, sources);
    CT_TRY(ct_routes_reserve(a->transport, false, &a->links.models));
    return ct_routes_reserve(a->transport, true, &a->links.neighbours);
}

/* Of steps that are drawn anew; all rows together receive no more than they send. */
static void reserve_drawn(ct_agents *a, const ct_drawing *drawing) {
    ct_links *l = &a->links;
    int n_sent = a->n * drawing->n_sent, n_all = a->n_rows * drawing->n_sent;
    int n_received = smaller(n_all, a->n * drawing->most_received);
    l->most.arrivals = n_sent;
    l->most.edges = n_received;
    l->most.weights = a->n + n_received;
    ct_routes_reserve_any(a->transport, false, n_sent, n_received, &l->models);
    ct_routes_reserve_any(a->transport, true, n_received, n_sent, &l->neighbours);
}

static ct_status reserve(ct_agents *a) {
    const ct_schedule *s = a->links.schedule;
    if (s != NULL && s->period == 0) reserve_drawn(a, &s->drawing);
    for (int k = 0; s != NULL && k < s->period; k++)
        CT_TRY(reserve_step(a, &s->phases[k].sources, &s->phases[k].w));
    return reserve_step(a, a->links.topology, a->links.weights);
}

/* `topology` is the step with the most messages. */
ct_status ct_links_create(ct_agents *a, const ct_graph *graph) {
    ct_links *l = &a->links;
    const ct_copies *c = &a->copies;
    size_t sums = ct_links_sums(graph);
    int n_edges = l->topology->begin[a->n_rows];
    CT_TRY(ct_routes_create(n_edges, &l->models));
    CT_TRY(ct_routes_create(n_edges, &l->neighbours));
    CT_TRY(reserve(a));
    if (a->faults != NULL) {
        l->models.arrived = l->neighbours.arrived = ct_faults_arrived;
        l->models.context = l->neighbours.context = a;
    }
    CT_TRY(ct_routes_open(a->transport, a->backend, false,
                          ct_copies_width(c, &c->models, graph->n_weights), &l->models));
    CT_TRY(ct_routes_open(a->transport, a->backend, true, ct_copies_width(c, &c->sums, sums),
                          &l->neighbours));
    return ct_sparse_create(a->n, a->n + ct_links_far_rows(a, &l->models), l->most.weights,
                            &l->mixing);
}

void ct_links_free(ct_links *links) {
    ct_routes_free(&links->models);
    ct_routes_free(&links->neighbours);
    ct_sparse_free(&links->mixing);
}

/* ---- the messages of now ---- */

/* Own rows of W. Columns become bank rows, own or halo; their order, in which sums run, stays that
 * of the agents, so that a sum has the same bits wherever its terms live. */
static void fill_mixing(ct_agents *a) {
    const ct_sparse *all = a->links.weights;
    int begin = all->begin[a->first], n = all->begin[a->first + a->n] - begin;
    for (int i = 0; i <= a->n; i++) a->links.mixing.begin[i] = all->begin[a->first + i] - begin;
    for (int k = 0; k < n; k++) {
        a->links.mixing.column[k] = ct_routes_row(&a->links.models, all->column[begin + k]);
        a->links.mixing.value[k] = all->value[begin + k];
    }
    a->w = &a->links.mixing;
}

int ct_links_message(const ct_topology *t, int from, int to) {
    int e = t->begin[to];
    while (t->neighbour[e] != from) e++;
    return e;
}

/* Neighbours' rows are mailboxes; the weight of an edge with a dead end goes to the own row, last
 * in agents' order, so that rows still sum to 1. */
static void fill_faulty_row(ct_agents *a, int i) {
    const ct_sparse *all = a->links.weights;
    int row = a->first + i, own = -1, offset = all->begin[a->first];
    double lost = 0;
    for (int k = a->links.mixing.begin[i]; k < a->links.mixing.begin[i + 1]; k++) {
        int from = all->column[offset + k];
        if (from == row) own = k;
        if (from == row) continue;
        a->links.mixing.column[k] =
            a->links.models.mail[ct_links_message(a->links.topology, from, row)];
        if (ct_agents_is_alive(a, from) && ct_agents_is_alive(a, row)) continue;
        lost += a->links.mixing.value[k];
        a->links.mixing.value[k] = 0;
    }
    if (own >= 0) a->links.mixing.value[own] += lost;
}

void ct_links_gather(const ct_agents *a, ct_sparse *gather) {
    const ct_routes *r = &a->links.neighbours;
    int *begin = gather->begin;
    for (int j = 0; j <= a->n; j++) begin[j] = 0;
    for (int e = 0; e < r->n; e++)
        if (r->to[e] >= a->first && r->to[e] < a->first + a->n) begin[r->to[e] - a->first + 1]++;
    for (int j = 0; j < a->n; j++) begin[j + 1] += begin[j];
    /* begin[j] runs through row j; afterwards it is where row j + 1 begins */
    for (int e = 0; e < r->n; e++) {
        if (r->to[e] < a->first || r->to[e] >= a->first + a->n) continue;
        int entry = begin[r->to[e] - a->first]++;
        gather->column[entry] = ct_links_arrival(a, r, e);
        gather->value[entry] = ct_agents_is_alive(a, r->from[e]) ? 1.0 : 0.0;
    }
    for (int j = a->n; j > 0; j--) begin[j] = begin[j - 1];
    begin[0] = 0;
}

ct_status ct_agents_connect(ct_agents *a, const ct_topology *sources, const ct_sparse *weights) {
    a->links.topology = sources;
    a->links.weights = weights;
    ct_links_route(&a->links, sources);
    CT_TRY(ct_routes_link(a->transport, &a->links.models));
    CT_TRY(ct_routes_link(a->transport, &a->links.neighbours));
    fill_mixing(a);
    for (int i = 0; i < a->n && a->faults != NULL; i++) fill_faulty_row(a, i);
    if (a->loss.ccl) ct_cross_features_list(a, sources, sources);
    a->x.fresh = false; /* what had arrived, had arrived elsewhere */
    for (int b = 0; b < a->n_buffers; b++)
        if (a->buffers[b].routes == NULL) a->buffers[b].bank.fresh = false;
    return CT_OK;
}
