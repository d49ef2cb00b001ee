#include "algo/agents.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "algo/agents_internal.h"
#include "algo/algo.h"
#include "util/memory.h"

/* What clipping and sharpness-aware gradients need. */
static ct_status create_norms(ct_agents *a) {
    const bool clips = a->hyper.clip_norm > 0, is_sharp = a->sam.radius > 0;
    if (clips || is_sharp) CT_TRY(ct_make(&a->norm_row, a->g.n, "a gradient"));
    if (clips) CT_TRY(ct_sparse_diagonal(a->n, &a->clipping));
    return is_sharp ? ct_sam_create(a) : CT_OK;
}

ct_status ct_agents_init(ct_agents *a, const ct_graph *graph) {
    ct_span own = ct_transport_own(a->transport);
    a->first = own.first;
    a->n = own.n;
    a->n_rows = a->links.topology->n;
    a->n_agents = a->n_rows / a->n_seeds;
    a->fault_room.linked_at = -1;
    CT_TRY(ct_copies_choose(a, graph));
    CT_TRY(ct_links_create(a, graph));
    int n_far = ct_links_far_rows(a, &a->links.models);
    CT_TRY(ct_bank_create(a->backend, a->n, n_far, graph->n_weights, &a->x));
    CT_TRY(ct_bank_create(a->backend, a->n, 0, graph->n_weights, &a->g));
    /* Jobs on halo rows have statistics too, though they only use the batch's. */
    if (graph->n_buffer_values > 0)
        CT_TRY(ct_bank_create(a->backend, a->n, a->links.models.most_halo, graph->n_buffer_values,
                              &a->running));
    CT_TRY(ct_make(&a->own_jobs, (size_t)a->n, "the agents"));
    for (int i = 0; i < a->n; i++) a->own_jobs[i] = (ct_job){.model = i, .batch = i, .out = i};
    if (a->faults != NULL) CT_TRY(ct_faults_create(a));
    CT_TRY(create_norms(a));
    if (a->loss.ccl) CT_TRY(ct_cross_features_create(a));
    CT_TRY(ct_copies_create(a));
    return ct_agents_connect(a, a->links.topology, a->links.weights);
}

ct_status ct_agents_start(ct_agents *a, const ct_algo *algo) {
    a->algo = algo;
    if (algo->state_size > 0)
        CT_TRY(ct_make_block(&a->state, 1, algo->state_size, "the algorithm's state"));
    for (int k = 0; k < CT_MAX_BUFFERS && algo->buffers[k] != NULL; k++)
        CT_TRY(ct_agents_add_buffer(a, algo->buffers[k], NULL));
    if (algo->create != NULL) CT_TRY(algo->create(a));
    CT_TRY(ct_cross_features_create_means(a));
    CT_TRY(ct_copies_start(a));
    return ct_own_steps_create(a);
}

void ct_agents_free(ct_agents *a) {
    if (a->state != NULL && a->algo->free != NULL) a->algo->free(a->state);
    ct_free(a->state);
    ct_links_free(&a->links);
    ct_cross_features_free(&a->ccl);
    ct_copies_free(&a->copies);
    ct_bank_free(&a->steps.r);
    ct_faults_free(a);
    ct_bank_free(&a->x);
    ct_bank_free(&a->g);
    ct_bank_free(&a->running);
    for (int b = 0; b < a->n_buffers; b++) ct_bank_free(&a->buffers[b].bank);
    ct_free(a->own_jobs);
    ct_sam_free(&a->sam);
    ct_lesson_free(&a->lesson);
    ct_sparse_free(&a->clipping);
    ct_free(a->norm_row);
    memset(a, 0, sizeof *a);
}

ct_status ct_agents_add_buffer(ct_agents *a, const char *name, ct_routes *routes) {
    if (a->n_buffers == CT_MAX_BUFFERS)
        return ct_fail(CT_INVAL, "an algorithm may have %d buffers", CT_MAX_BUFFERS);
    ct_buffer *buffer = &a->buffers[a->n_buffers];
    int n_far = ct_links_far_rows(a, routes != NULL ? routes : &a->links.models);
    CT_TRY(ct_bank_create(a->backend, routes != NULL ? routes->most_own : a->n, n_far,
                          routes != NULL ? routes->n_columns : a->x.n, &buffer->bank));
    snprintf(buffer->name, sizeof buffer->name, "%s", name);
    buffer->routes = routes;
    a->n_buffers++;
    return CT_OK;
}

double ct_own_number(const ct_agents *a, const char *name) {
    assert(ct_algo_has_option(a->algo, name));
    return a->options.number(a->options.context, name);
}

const char *ct_own_word(const ct_agents *a, const char *name) {
    assert(ct_algo_has_option(a->algo, name));
    return a->options.word(a->options.context, name);
}

int ct_own_variant(const ct_agents *a) {
    return ct_algo_variant(a->algo, ct_own_word(a, "variant"));
}

ct_status ct_agents_seeds(const ct_agents *a, ct_sparse *out) {
    CT_TRY(ct_sparse_diagonal(a->n, out));
    out->n_cols = a->n_seeds;
    for (int i = 0; i < a->n; i++) out->column[i] = (a->first + i) / a->n_agents;
    return CT_OK;
}

ct_status ct_agents_exchange(ct_agents *a, ct_bank *bank) {
    return ct_transport_begin(a->transport, &a->links.models, CT_TRAFFIC_PARAMETERS, bank);
}

ct_status ct_agents_share(ct_agents *a, ct_bank **p) {
    bool is_packed = ct_copies_are_used(&a->copies);
    *p = is_packed ? a->copies.known : &a->x;
    return is_packed ? ct_copies_share(a) : ct_agents_exchange(a, &a->x);
}

ct_status ct_agents_share_also(ct_agents *a, ct_bank *bank, ct_bank **p) {
    bool is_packed = ct_copies_are_used(&a->copies);
    *p = is_packed ? a->copies.also : bank;
    return is_packed ? ct_copies_share_also(a, bank) : ct_agents_exchange(a, bank);
}

ct_work ct_agents_work(ct_agents *a, const ct_bank *params, const ct_job *jobs, int n_jobs) {
    return (ct_work){.params = params,
                     .buffers = a->running.n > 0 ? &a->running : NULL,
                     .source = a->source,
                     .batches = a->batches,
                     .jobs = jobs,
                     .n_jobs = n_jobs};
}

ct_status ct_agents_norm(ct_agents *a, const ct_bank *bank, int row, double *out) {
    double squares = 0;
    CT_TRY(ct_bank_read(bank, row, 0, bank->n, a->norm_row));
    for (size_t k = 0; k < bank->n; k++) squares += (double)a->norm_row[k] * (double)a->norm_row[k];
    *out = sqrt(squares);
    return CT_OK;
}

/* g <- g min(1, clip / |g|), agent by agent */
static ct_status clip(ct_agents *a) {
    ct_bank t = ct_temp(1);
    for (int i = 0; i < a->n; i++) {
        double norm;
        CT_TRY(ct_agents_norm(a, &a->g, i, &norm));
        a->clipping.value[i] = norm > a->hyper.clip_norm ? a->hyper.clip_norm / norm : 1;
    }
    ct_update u = ct_agents_update(a);
    SET(&u, &t, {1, &a->g, &a->clipping});
    SET(&u, &a->g, {1, &t});
    return ct_update_run(a->backend, &u);
}

/* With --sam, decay is added to the second gradient alone. */
static ct_objective objective_of(const ct_agents *a, const ct_soft_targets *soft) {
    return (ct_objective){.loss = a->loss,
                          .soft = *soft,
                          .weight_decay = a->sam.radius > 0 ? 0 : a->hyper.weight_decay};
}

static ct_status finish_gradient(ct_agents *a, const ct_bank *at, const ct_work *work,
                                 const ct_objective *objective) {
    if (a->sam.radius > 0) CT_TRY(ct_sam_gradient(a, at, work, objective));
    return a->hyper.clip_norm > 0 ? clip(a) : CT_OK;
}

ct_status ct_agents_guest_gradient(ct_agents *a, const ct_bank *at, const ct_job *jobs, int n_jobs,
                                   const ct_soft_targets *soft) {
    ct_objective objective = objective_of(a, soft);
    ct_work work = ct_agents_work(a, at, jobs, n_jobs);
    objective.loss.ccl = false;
    for (int k = 0; k < n_jobs; k++) a->samples.gradients += a->batches[jobs[k].batch].n;
    /* the agents' own losses will be written over these */
    CT_TRY(ct_gradient(a->plan, &work, &objective, &a->g, a->losses, a->loss_column));
    return finish_gradient(a, at, &work, &objective);
}

ct_status ct_agents_gradient(ct_agents *a, ct_bank *at, ct_bank *shared) {
    return ct_agents_taught_gradient(a, at, shared, &(ct_soft_targets){.rows = NULL});
}

ct_status ct_agents_taught_gradient(ct_agents *a, ct_bank *at, ct_bank *shared,
                                    const ct_soft_targets *soft) {
    ct_objective objective = objective_of(a, soft);
    ct_work work = ct_agents_work(a, at, a->own_jobs, a->n);
    objective.loss.ccl = ct_cross_features_are_due(a);
    if (objective.loss.ccl) CT_TRY(ct_cross_features_exchange(a, shared, &objective));
    for (int i = 0; i < a->n; i++) a->samples.own += a->batches[i].n;
    a->samples.n_steps++;
    CT_TRY(ct_gradient(a->plan, &work, &objective, &a->g, a->losses, a->loss_column));
    if (objective.loss.ccl && a->ccl.economy.adaptive_share > 0)
        CT_TRY(ct_cross_features_update_means(a));
    CT_TRY(ct_lesson_gradient(a, at));
    return finish_gradient(a, at, &work, &objective);
}

ct_status ct_agents_apply(ct_agents *a, const ct_update *u) {
    CT_TRY(ct_transport_finish(a->transport, &a->links.models));
    return ct_update_run(a->backend, u);
}

ct_status ct_agents_pull(ct_agents *a, ct_update *u, const ct_bank *p, ct_bank *r) {
    bool are_own = a->steps.mean_squares != NULL && !ct_agents_are_apart(a);
    if (are_own) CT_TRY(ct_own_steps_take(a, p));
    if (are_own)
        SET(u, r, {1, &a->steps.r});
    else
        SET(u, r, {1, p, a->w}, {-1, p});
    return CT_OK;
}

void ct_agents_direction(const ct_agents *a, ct_update *u, const ct_bank *g, const ct_bank *m,
                         ct_bank *d) {
    if (a->hyper.nesterov)
        SET(u, d, {1, g}, {a->hyper.momentum, m});
    else
        SET(u, d, {1, m});
}

void ct_agents_momentum(const ct_agents *a, ct_update *u, const ct_bank *g, ct_bank *m,
                        ct_bank *d) {
    SET(u, m, {a->hyper.momentum, m}, {1, g});
    ct_agents_direction(a, u, g, m, d);
}

void ct_agents_gossip(const ct_agents *a, ct_update *u, ct_bank *bank, ct_bank *r) {
    SET(u, r, {1, bank, a->w}, {-1, bank});
    SET(u, bank, {1, bank}, {a->hyper.gamma, r});
}

void ct_agents_combine_and_adapt(ct_agents *a, ct_update *u, const ct_bank *g, ct_bank *m,
                                 ct_bank *d, ct_bank *r) {
    ct_bank *x = &a->x;
    ct_agents_momentum(a, u, g, m, d);
    SET(u, r, {1, x, a->w}, {-1, x});
    SET(u, x, {1, x}, {a->hyper.gamma, r}, {-a->lr, d});
}

ct_status ct_agents_adapt(ct_agents *a, ct_bank *m) {
    ct_bank *x = &a->x, d = ct_temp(1);
    ct_update u = ct_agents_update(a);
    ct_agents_momentum(a, &u, &a->g, m, &d);
    SET(&u, x, {1, x}, {-a->lr, &d});
    return ct_agents_apply(a, &u);
}

ct_status ct_agents_combine(ct_agents *a) {
    ct_bank *p, r = ct_temp(1);
    CT_TRY(ct_agents_share(a, &p));
    ct_update u = ct_agents_update(a);
    CT_TRY(ct_agents_pull(a, &u, p, &r));
    SET(&u, &a->x, {1, &a->x}, {a->hyper.gamma, &r});
    return ct_agents_apply(a, &u);
}

ct_status ct_agents_combine_while_adapting(ct_agents *a, ct_bank *m) {
    ct_bank *x = &a->x, *g = &a->g, *p, d = ct_temp(1), r = ct_temp(2);
    CT_TRY(ct_agents_share(a, &p));
    CT_TRY(ct_agents_gradient(a, x, x));
    ct_update u = ct_agents_update(a);
    if (m != NULL) ct_agents_momentum(a, &u, g, m, &d);
    CT_TRY(ct_agents_pull(a, &u, p, &r));
    SET(&u, x, {1, x}, {a->hyper.gamma, &r}, {-a->lr, m != NULL ? &d : g});
    return ct_agents_apply(a, &u);
}
