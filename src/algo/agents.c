#include "algo/agents.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "algo/agents_internal.h"
#include "util/memory.h"

static int larger(int a, int b) {
    return a > b ? a : b;
}

/* What this process's part of one step's graph needs. */
static void measure_step(ct_agents *a, const ct_topology *t, const ct_sparse *w) {
    int end = a->first + a->n, n_arrivals = 0;
    for (int e = 0; e < t->begin[t->n]; e++)
        n_arrivals += t->neighbour[e] >= a->first && t->neighbour[e] < end;
    a->most.arrivals = larger(a->most.arrivals, n_arrivals);
    a->most.edges = larger(a->most.edges, t->begin[end] - t->begin[a->first]);
    a->most.weights = larger(a->most.weights, w->begin[end] - w->begin[a->first]);
}

static ct_status reserve_step(ct_agents *a, const ct_topology *sources, const ct_sparse *w) {
    measure_step(a, sources, w);
    ct_agents_route(a, sources);
    CT_TRY(ct_routes_reserve(a->transport, false, &a->models));
    return ct_routes_reserve(a->transport, true, &a->neighbours);
}

/* Steps that are drawn anew have as many edges an agent as the one that is there. */
static void reserve_drawn(ct_agents *a, const ct_topology *t) {
    int degree = 0;
    for (int i = 0; i < t->n; i++) degree = larger(degree, ct_topology_degree(t, i));
    a->most.arrivals = a->most.edges = a->n * degree;
    a->most.weights = a->n * (degree + 1);
    ct_routes_reserve_any(a->transport, false, degree, &a->models);
    ct_routes_reserve_any(a->transport, true, degree, &a->neighbours);
}

/* Room for every graph there will be. */
static ct_status reserve(ct_agents *a) {
    const ct_schedule *s = a->schedule;
    if (s != NULL && s->period == 0) reserve_drawn(a, a->topology);
    for (int k = 0; s != NULL && k < s->period; k++)
        CT_TRY(reserve_step(a, &s->phases[k].sources, &s->phases[k].w));
    return reserve_step(a, a->topology, a->weights);
}

/* Mixing, and with CCL what neighbours answer. */
static ct_status create_links(ct_agents *a) {
    int n_edges = a->most.edges;
    CT_TRY(ct_sparse_create(a->n, a->n + ct_agents_far_rows(a, &a->models), a->most.weights,
                            &a->mixing));
    if (!a->loss.ccl) return CT_OK;
    CT_TRY(ct_sparse_create(a->n, n_edges + ct_agents_far_rows(a, &a->neighbours), a->most.arrivals,
                            &a->gather));
    a->cross_jobs = ct_new(ct_job, (size_t)n_edges);
    a->cross_begin = ct_new(int, (size_t)a->n + 1);
    if (a->cross_jobs == NULL || a->cross_begin == NULL)
        return ct_fail(CT_NOMEM, "no memory for %d edges", n_edges);
    return CT_OK;
}

/* `topology` is the step with the most messages. */
static ct_status create_routes(ct_agents *a, const ct_graph *graph) {
    int n_edges = a->topology->begin[a->n_rows];
    size_t sums = (size_t)graph->n_classes * (ct_graph_n_features(graph) + 1);
    CT_TRY(ct_routes_create(n_edges, &a->models));
    CT_TRY(ct_routes_create(n_edges, &a->neighbours));
    CT_TRY(reserve(a));
    if (a->faults != NULL) {
        a->models.arrived = a->neighbours.arrived = ct_faults_arrived;
        a->models.context = a->neighbours.context = a;
    }
    CT_TRY(ct_routes_open(a->transport, a->backend, false, graph->n_weights, &a->models));
    return ct_routes_open(a->transport, a->backend, true, sums, &a->neighbours);
}

static ct_status create_clip(ct_agents *a) {
    a->clip_row = ct_new(float, a->g.n);
    if (a->clip_row == NULL) return ct_fail(CT_NOMEM, "no memory for a gradient");
    CT_TRY(ct_sparse_create(a->n, a->n, a->n, &a->clip_scale));
    for (int i = 0; i < a->n; i++) {
        a->clip_scale.column[i] = i;
        a->clip_scale.begin[i + 1] = i + 1;
    }
    return CT_OK;
}

static ct_status create_cross(ct_agents *a, const ct_graph *graph) {
    int n_edges = a->most.edges;
    size_t width = (size_t)a->max_batch * ct_graph_n_features(graph);
    CT_TRY(ct_bank_create(a->backend, n_edges, 0, width, &a->cross));
    CT_TRY(ct_bank_create(a->backend, n_edges, ct_agents_far_rows(a, &a->neighbours),
                          a->neighbours.n_columns, &a->edge_sums));
    CT_TRY(ct_bank_create(a->backend, a->n, 0, a->neighbours.n_columns, &a->received));
    return ct_agents_create_economy(a);
}

ct_status ct_agents_init(ct_agents *a, const ct_graph *graph) {
    ct_span own = ct_transport_own(a->transport);
    a->first = own.first;
    a->n = own.n;
    a->n_rows = a->topology->n;
    a->n_agents = a->n_rows / a->n_seeds;
    CT_TRY(create_routes(a, graph));
    CT_TRY(create_links(a));
    int n_halo = a->models.most_halo;
    a->linked_at = -1;
    CT_TRY(ct_bank_create(a->backend, a->n, ct_agents_far_rows(a, &a->models), graph->n_weights,
                          &a->x));
    CT_TRY(ct_bank_create(a->backend, a->n, 0, graph->n_weights, &a->g));
    /* Jobs on halo rows have statistics too, though they only use the batch's. */
    if (graph->n_buffer_values > 0)
        CT_TRY(ct_bank_create(a->backend, a->n, n_halo, graph->n_buffer_values, &a->running));
    a->own_jobs = ct_new(ct_job, (size_t)a->n);
    if (a->own_jobs == NULL) return ct_fail(CT_NOMEM, "no memory for %d agents", a->n);
    for (int i = 0; i < a->n; i++) a->own_jobs[i] = (ct_job){.model = i, .batch = i, .out = i};
    if (a->faults != NULL) CT_TRY(ct_faults_create(a));
    if (a->hyper.clip_norm > 0) CT_TRY(create_clip(a));
    if (a->loss.ccl) CT_TRY(create_cross(a, graph));
    return ct_agents_connect(a, a->topology, a->weights);
}

void ct_agents_free(ct_agents *a) {
    ct_routes_free(&a->models);
    ct_routes_free(&a->neighbours);
    ct_sparse_free(&a->mixing);
    ct_sparse_free(&a->gather);
    ct_bank_free(&a->x);
    ct_bank_free(&a->g);
    ct_bank_free(&a->running);
    ct_bank_free(&a->cross);
    ct_bank_free(&a->edge_sums);
    ct_bank_free(&a->received);
    for (int b = 0; b < a->n_buffers; b++) ct_bank_free(&a->buffers[b].bank);
    ct_free(a->own_jobs);
    ct_free(a->cross_jobs);
    ct_free(a->cross_begin);
    ct_topology_free(&a->contrast);
    ct_bank_free(&a->lambdas);
    ct_sparse_free(&a->clip_scale);
    ct_free(a->cross_batches);
    ct_free(a->class_row);
    ct_faults_free(a);
    ct_free(a->clip_row);
    memset(a, 0, sizeof *a);
}

static ct_status add_buffer(ct_agents *a, const char *name, int n_own, int n_halo,
                            ct_routes *routes, ct_bank **out) {
    if (a->n_buffers == CT_MAX_BUFFERS)
        return ct_fail(CT_INVAL, "an algorithm may have %d buffers", CT_MAX_BUFFERS);
    ct_buffer *buffer = &a->buffers[a->n_buffers];
    size_t n_columns = routes != NULL ? routes->n_columns : a->x.n;
    CT_TRY(ct_bank_create(a->backend, n_own, n_halo, n_columns, &buffer->bank));
    snprintf(buffer->name, sizeof buffer->name, "%s", name);
    buffer->routes = routes;
    a->n_buffers++;
    *out = &buffer->bank;
    return CT_OK;
}

ct_status ct_agents_buffer(ct_agents *a, const char *name, int n_rows, ct_bank **out) {
    assert(n_rows == a->n);
    return add_buffer(a, name, n_rows, ct_agents_far_rows(a, &a->models), NULL, out);
}

ct_status ct_agents_edge_buffer(ct_agents *a, const char *name, ct_routes *routes, ct_bank **out) {
    return add_buffer(a, name, routes->most_own, ct_agents_far_rows(a, routes), routes, out);
}

ct_status ct_agents_exchange(ct_agents *a, ct_bank *bank) {
    return ct_transport_begin(a->transport, &a->models, CT_TRAFFIC_PARAMETERS, bank);
}

ct_work ct_agents_work(ct_agents *a, const ct_bank *params, const ct_job *jobs, int n_jobs) {
    return (ct_work){.params = params,
                     .buffers = a->running.n > 0 ? &a->running : NULL,
                     .source = a->source,
                     .batches = a->batches,
                     .jobs = jobs,
                     .n_jobs = n_jobs};
}

/* g <- g min(1, clip / |g|), agent by agent */
static ct_status clip(ct_agents *a) {
    ct_bank t = ct_temp(1);
    for (int i = 0; i < a->n; i++) {
        double squares = 0;
        CT_TRY(ct_bank_read(&a->g, i, 0, a->g.n, a->clip_row));
        for (size_t k = 0; k < a->g.n; k++)
            squares += (double)a->clip_row[k] * (double)a->clip_row[k];
        double norm = sqrt(squares);
        a->clip_scale.value[i] = norm > a->hyper.clip_norm ? a->hyper.clip_norm / norm : 1;
    }
    ct_update u = ct_agents_update(a);
    SET(&u, &t, {1, &a->g, &a->clip_scale});
    SET(&u, &a->g, {1, &t});
    return ct_update_run(a->backend, &u);
}

ct_status ct_agents_gradient(ct_agents *a, ct_bank *at, ct_bank *shared) {
    ct_objective objective = {.loss = a->loss, .weight_decay = a->hyper.weight_decay};
    ct_work work = ct_agents_work(a, at, a->own_jobs, a->n);
    objective.loss.ccl = ct_agents_contrasts(a);
    if (objective.loss.ccl) CT_TRY(ct_agents_exchange_features(a, shared, &objective));
    for (int i = 0; i < a->n; i++) a->samples.own += a->batches[i].n;
    a->samples.n_steps++;
    CT_TRY(ct_gradient(a->plan, &work, &objective, &a->g, a->losses, a->loss_column));
    if (objective.loss.ccl && a->economy.adaptive_share > 0) CT_TRY(ct_agents_update_means(a));
    return a->hyper.clip_norm > 0 ? clip(a) : CT_OK;
}

void ct_agents_direction(const ct_agents *a, ct_update *u, const ct_bank *m, ct_bank *d) {
    if (a->hyper.nesterov)
        SET(u, d, {1, &a->g}, {a->hyper.momentum, m});
    else
        SET(u, d, {1, m});
}

void ct_agents_gossip(const ct_agents *a, ct_update *u, ct_bank *bank, ct_bank *r) {
    SET(u, r, {1, bank, a->w}, {-1, bank});
    SET(u, bank, {1, bank}, {a->hyper.gamma, r});
}
