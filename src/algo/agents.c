#include "algo/agents.h"

#include <stdio.h>
#include <string.h>

#include "util/memory.h"

static ct_status init_cross(ct_agents *a, const ct_graph *graph) {
    int n_edges = a->topology->begin[a->n];
    size_t r = ct_graph_n_features(graph), sums = (size_t)graph->n_classes * (r + 1);
    CT_TRY(ct_sparse_create(a->n, n_edges, n_edges, &a->gather));
    CT_TRY(ct_bank_create(a->backend, n_edges, 0, (size_t)a->max_batch * r, &a->cross));
    CT_TRY(ct_bank_create(a->backend, n_edges, 0, sums, &a->edge_sums));
    CT_TRY(ct_bank_create(a->backend, a->n, 0, sums, &a->received));
    a->cross_jobs = ct_new(ct_job, (size_t)n_edges);
    if (a->cross_jobs == NULL) return ct_fail(CT_NOMEM, "no memory for %d edges", n_edges);
    return CT_OK;
}

ct_status ct_agents_init(ct_agents *a, const ct_graph *graph) {
    int n = a->topology->n;
    a->n = n;
    a->n_agents = n / a->n_seeds;
    CT_TRY(ct_routes_create(a->topology->begin[n], &a->models));
    CT_TRY(ct_routes_create(a->topology->begin[n], &a->neighbours));
    CT_TRY(ct_bank_create(a->backend, n, 0, graph->n_weights, &a->x));
    CT_TRY(ct_bank_create(a->backend, n, 0, graph->n_weights, &a->g));
    if (graph->n_buffer_values > 0)
        CT_TRY(ct_bank_create(a->backend, n, 0, graph->n_buffer_values, &a->running));
    a->own_jobs = ct_new(ct_job, (size_t)n);
    if (a->own_jobs == NULL) return ct_fail(CT_NOMEM, "no memory for %d agents", n);
    for (int i = 0; i < n; i++) a->own_jobs[i] = (ct_job){.model = i, .batch = i, .out = i};
    if (a->loss.ccl) CT_TRY(init_cross(a, graph));
    ct_agents_connect(a, a->topology, a->w);
    return CT_OK;
}

void ct_agents_free(ct_agents *a) {
    ct_routes_free(&a->models);
    ct_routes_free(&a->neighbours);
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
    memset(a, 0, sizeof *a);
}

ct_status ct_agents_buffer(ct_agents *a, const char *name, int n_rows, ct_bank **out) {
    if (a->n_buffers == CT_MAX_BUFFERS)
        return ct_fail(CT_INVAL, "an algorithm may have %d buffers", CT_MAX_BUFFERS);
    CT_TRY(ct_bank_create(a->backend, n_rows, 0, a->x.n, &a->buffers[a->n_buffers].bank));
    snprintf(a->buffers[a->n_buffers].name, sizeof a->buffers[0].name, "%s", name);
    *out = &a->buffers[a->n_buffers++].bank;
    return CT_OK;
}

ct_status ct_agents_exchange(ct_agents *a, ct_bank *bank) {
    return ct_transport_exchange(a->transport, &a->models, CT_TRAFFIC_PARAMETERS, bank);
}

/* Steps 1-3 of the paper's Algorithm 2: every agent runs its neighbours' models on its own batch,
 * sends each neighbour the class sums of what came out, and adds up what it is sent itself. */
static ct_status exchange_features(ct_agents *a, ct_bank *shared) {
    CT_TRY(ct_agents_exchange(a, shared));
    ct_work work = {.params = shared,
                    .buffers = a->running.n > 0 ? &a->running : NULL,
                    .source = a->source,
                    .batches = a->batches,
                    .jobs = a->cross_jobs,
                    .n_jobs = a->neighbours.n};
    CT_TRY(ct_features(a->plan, &work, &a->cross, &a->edge_sums));
    a->edge_sums.fresh = false;
    CT_TRY(
        ct_transport_exchange(a->transport, &a->neighbours, CT_TRAFFIC_CLASS_SUMS, &a->edge_sums));
    ct_update u = ct_agents_update(a);
    SET(&u, &a->received, {1, &a->edge_sums, &a->gather});
    return ct_agents_apply(a, &u);
}

ct_status ct_agents_gradient(ct_agents *a, ct_bank *at, ct_bank *shared) {
    ct_objective objective = {.loss = a->loss,
                              .cross = &a->cross,
                              .cross_begin = a->topology->begin,
                              .class_sums = &a->received};
    ct_work work = {.params = at,
                    .buffers = a->running.n > 0 ? &a->running : NULL,
                    .source = a->source,
                    .batches = a->batches,
                    .jobs = a->own_jobs,
                    .n_jobs = a->n};
    if (a->loss.ccl) CT_TRY(exchange_features(a, shared));
    CT_TRY(ct_gradient(a->plan, &work, &objective, &a->g, a->losses, a->loss_column));
    if (a->hyper.weight_decay == 0) return CT_OK;
    ct_update u = ct_agents_update(a);
    SET(&u, &a->g, {1, &a->g}, {a->hyper.weight_decay, at});
    return ct_agents_apply(a, &u);
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
