/* Jobs: one agent's model on one batch, each on one worker from the pictures to the result, in one
 * pass or, where tensors are large, block by block. */
#include "backend/cpu/cpu_internal.h"

#include <assert.h>
#include <string.h>

enum { RUNS_PER_THREAD = 4 };

typedef struct task {
    cpu_plan *plan;
    const ct_work *work;
    ct_bank *out; /* features or gradient */
    ct_bank *class_sums;
    const ct_objective *objective;
    ct_bank *losses;
    size_t column;
    ct_score *scores;
    int *predictions;
    float *logits;
    const ct_softening *how;
} task;

static const cpu_backend *backend_of(const cpu_plan *plan) {
    return (const cpu_backend *)plan->base.backend;
}

/* ---- between lanes and plain arrays ---- */

static void from_lanes(const cpu_call *c, int node, float *out) {
    const size_t r = ct_shape_size(c->plan->base.graph->nodes[node].shape);
    const float *x = cpu_value(c, node);
    for (int b = 0; b < c->n; b++) {
        const float *lane = x + (size_t)(b / CT_LANES) * r * CT_LANES + (size_t)(b % CT_LANES);
        for (size_t k = 0; k < r; k++) *out++ = lane[k * CT_LANES];
    }
}

/* The gradient at a node, zero in unused lanes. */
static void gradient_to_lanes(const cpu_call *c, int node, const float *values) {
    const size_t r = ct_shape_size(c->plan->base.graph->nodes[node].shape);
    float *grad = cpu_grad(c, node);
    if (c->n % CT_LANES != 0)
        memset(grad + (size_t)(c->n_blocks - 1) * r * CT_LANES, 0, r * CT_LANES * sizeof *grad);
    for (int b = 0; b < c->n; b++) {
        float *lane = grad + (size_t)(b / CT_LANES) * r * CT_LANES + (size_t)(b % CT_LANES);
        for (size_t k = 0; k < r; k++) lane[k * CT_LANES] = *values++;
    }
    c->worker->has_grad[c->plan->root[node]] = true;
}

/* ---- one job ---- */

/* Passes that are trained keep their tensors side by side; others follow each other in one place.
 */
static cpu_call pass_of(const task *t, const ct_job *job, int worker, cpu_mode mode, int pass) {
    const int n = t->work->batches[job->batch].n, first = pass * t->plan->pass_samples;
    cpu_call c = {.plan = t->plan,
                  .k = backend_of(t->plan)->kernels,
                  .layout = mode == CPU_TRAIN ? &t->plan->train : &t->plan->forward,
                  .worker = &t->plan->workers[worker],
                  .mode = mode,
                  .first = first,
                  .n = n - first < t->plan->pass_samples ? n - first : t->plan->pass_samples,
                  .params = ct_host_row(t->work->params, job->model)};
    c.n_blocks = (c.n + CT_LANES - 1) / CT_LANES;
    c.arena = c.worker->arena + (mode == CPU_TRAIN ? (size_t)pass * c.layout->n_floats : 0);
    c.value_at = c.layout->value;
    if (t->work->buffers != NULL) c.buffers = ct_host_row(t->work->buffers, job->model);
    return c;
}

static void load(const task *t, const ct_job *job, const cpu_call *c) {
    ct_batch part = t->work->batches[job->batch];
    part.n = c->n;
    part.index += c->first;
    if (part.crop != NULL) part.crop += c->first;
    ct_cpu_load_pictures(t->work->source, &part, cpu_value(c, 0));
}

static void forward(const cpu_call *c, int n_steps) {
    for (int s = 0; s < n_steps; s++) ct_cpu_step_forward(c, &c->plan->steps[s]);
}

/* All passes, forward only: the values of `node`, [n][r]. */
static void forward_job(const task *t, const ct_job *job, int worker, cpu_mode mode, int n_steps,
                        int node, bool is_loaded, float *out) {
    const ct_batch *batch = &t->work->batches[job->batch];
    const size_t r = ct_shape_size(t->plan->base.graph->nodes[node].shape);
    for (int pass = 0; pass < cpu_n_passes(t->plan, batch->n); pass++) {
        const cpu_call c = pass_of(t, job, worker, mode, pass);
        if (!is_loaded) load(t, job, &c);
        forward(&c, n_steps);
        from_lanes(&c, node, out + (size_t)c.first * r);
    }
}

/* Jobs from k on that are about the same pictures. */
static int end_of_run(const ct_work *work, int k) {
    int end = k + 1;
    while (end < work->n_jobs && work->jobs[end].batch == work->jobs[k].batch) end++;
    return end;
}

static int n_runs(const ct_work *work) {
    int n = 0;
    for (int k = 0; k < work->n_jobs; k = end_of_run(work, k)) n++;
    return n;
}

static void features_job(const task *t, int k, int worker, bool is_loaded) {
    const ct_graph *g = t->plan->base.graph;
    const ct_job *job = &t->work->jobs[k];
    forward_job(t, job, worker, CPU_FEATURES, t->plan->n_feature_steps, g->features, is_loaded,
                ct_host_row(t->out, job->out));
    ct_host_class_sums(&t->plan->base, t->work, k, &t->plan->workers[worker].outputs, t->out,
                       t->class_sums);
}

static void features_task(void *context, int k, int worker) {
    features_job(context, k, worker, false);
}

/* A neighbourhood's models on the same batch: the pictures are loaded once. */
static void features_run_task(void *context, int run, int worker) {
    const task *t = context;
    int first = 0;
    for (; run > 0; run--) first = end_of_run(t->work, first);
    const bool is_one_pass =
        t->work->batches[t->work->jobs[first].batch].n <= t->plan->pass_samples;
    for (int k = first; k < end_of_run(t->work, first); k++)
        features_job(t, k, worker, k > first && is_one_pass);
}

static void soften_task(void *context, int k, int worker) {
    const task *t = context;
    const ct_host_outputs *out = &t->plan->workers[worker].outputs;
    forward_job(t, &t->work->jobs[k], worker, CPU_FEATURES, t->plan->n_steps,
                t->plan->base.graph->logits, false, out->logits);
    ct_host_soften(&t->plan->base, t->work, k, t->how, out, t->out);
}

/* The losses, and their gradients at the logits and the features. */
static void compute_losses(const task *t, int k, int worker) {
    const ct_graph *g = t->plan->base.graph;
    const ct_job *job = &t->work->jobs[k];
    const ct_host_outputs *out = &t->plan->workers[worker].outputs;
    ct_host_losses(&t->plan->base, t->work, t->objective, k, out,
                   ct_host_row(t->losses, job->out) + t->column);
    if (!t->objective->loss.ccl || g->features != g->logits) return;
    const size_t count = (size_t)t->work->batches[job->batch].n * (size_t)g->n_classes;
    for (size_t i = 0; i < count; i++) out->dlogits[i] += out->dfeatures[i];
}

static void forward_pass(const task *t, const ct_job *job, int worker, int pass) {
    const ct_graph *g = t->plan->base.graph;
    const cpu_call c = pass_of(t, job, worker, CPU_TRAIN, pass);
    load(t, job, &c);
    forward(&c, t->plan->n_steps);
    from_lanes(&c, g->logits, c.worker->outputs.logits + (size_t)(c.first * g->n_classes));
    if (t->objective->loss.ccl)
        from_lanes(&c, g->features,
                   c.worker->outputs.features + (size_t)c.first * ct_graph_n_features(g));
}

/* Leaves the gradient of this pass' samples in dparams. */
static void backward_pass(const task *t, const ct_job *job, int worker, int pass, float *dparams) {
    const ct_graph *g = t->plan->base.graph;
    cpu_call c = pass_of(t, job, worker, CPU_TRAIN, pass);
    const cpu_worker *w = c.worker;
    c.dparams = dparams;
    memset(w->has_grad, 0, (size_t)g->n_nodes * sizeof *w->has_grad);
    gradient_to_lanes(&c, g->logits, w->outputs.dlogits + (size_t)(c.first * g->n_classes));
    if (t->objective->loss.ccl && g->features != g->logits && g->features != 0)
        gradient_to_lanes(&c, g->features,
                          w->outputs.dfeatures + (size_t)c.first * ct_graph_n_features(g));
    c.value_at = c.layout->again;
    for (int s = t->plan->n_steps - 1; s >= 0; s--) ct_cpu_step_backward(&c, &t->plan->steps[s]);
}

/* g += other (may be NULL) + decay * x, as an update would do it, in one sweep. */
static void finish_gradient(const task *t, const ct_job *job, const float *other, float *g) {
    float coefs[3] = {1};
    const float *terms[3] = {g};
    int n = 1;
    if (other != NULL) {
        coefs[n] = 1;
        terms[n++] = other;
    }
    if (t->objective->weight_decay != 0) {
        coefs[n] = (float)t->objective->weight_decay;
        terms[n++] = ct_host_row(t->work->params, job->model);
    }
    if (n > 1) backend_of(t->plan)->kernels->lincomb(cpu_round(t->out->n), n, coefs, terms, g);
}

/* Backward the last pass comes first: its tensors are still in the cache. */
static void gradient_job(const task *t, int k, int worker) {
    const ct_job *job = &t->work->jobs[k];
    const int n_passes = cpu_n_passes(t->plan, t->work->batches[job->batch].n);
    assert(n_passes > 0 && !backend_of(t->plan)->only_forward);
    float *g = ct_host_row(t->out, job->out), *other = t->plan->workers[worker].dparams;
    for (int pass = 0; pass < n_passes; pass++) forward_pass(t, job, worker, pass);
    compute_losses(t, k, worker);
    for (int pass = n_passes - 1; pass >= 0; pass--) {
        const bool is_first = pass == n_passes - 1;
        backward_pass(t, job, worker, pass, is_first ? g : other);
        if (!is_first && pass > 0)
            backend_of(t->plan)->kernels->add(g, other, cpu_round(t->out->n), g);
    }
    finish_gradient(t, job, n_passes > 1 ? other : NULL, g);
}

/* Jobs that move the same running statistics run one after the other, on the first one's worker. */
static void gradient_task(void *context, int k, int worker) {
    const task *t = context;
    const ct_work *work = t->work;
    if (work->buffers == NULL) {
        gradient_job(t, k, worker);
        return;
    }
    for (int i = 0; i < k; i++)
        if (work->jobs[i].model == work->jobs[k].model) return;
    for (int i = k; i < work->n_jobs; i++)
        if (work->jobs[i].model == work->jobs[k].model) gradient_job(t, i, worker);
}

static void evaluate_task(void *context, int k, int worker) {
    const task *t = context;
    const ct_host_outputs *out = &t->plan->workers[worker].outputs;
    forward_job(t, &t->work->jobs[k], worker, CPU_EVALUATE, t->plan->n_steps,
                t->plan->base.graph->logits, false, out->logits);
    ct_host_score(&t->plan->base, t->work, k, out, t->scores, t->predictions);
}

static void logits_task(void *context, int k, int worker) {
    const task *t = context;
    const ct_plan *plan = &t->plan->base;
    const size_t stride = (size_t)plan->max_batch * (size_t)plan->graph->n_classes;
    forward_job(t, &t->work->jobs[k], worker, CPU_EVALUATE, t->plan->n_steps, plan->graph->logits,
                false, t->logits + (size_t)k * stride);
}

/* ---- all jobs ---- */

ct_status ct_cpu_features(ct_plan *base, const ct_work *work, ct_bank *features,
                          ct_bank *class_sums) {
    task t = {.plan = (cpu_plan *)base, .work = work, .out = features, .class_sums = class_sums};
    ct_pool *pool = backend_of(t.plan)->pool;
    const int n = n_runs(work);
    if (n >= RUNS_PER_THREAD * ct_pool_size(pool)) /* else threads would wait for the longest */
        ct_pool_run(pool, n, features_run_task, &t);
    else
        ct_pool_run(pool, work->n_jobs, features_task, &t);
    return CT_OK;
}

ct_status ct_cpu_soften(ct_plan *base, const ct_work *work, const ct_softening *how,
                        ct_bank *rows) {
    task t = {.plan = (cpu_plan *)base, .work = work, .out = rows, .how = how};
    ct_pool_run(backend_of(t.plan)->pool, work->n_jobs, soften_task, &t);
    return CT_OK;
}

ct_status ct_cpu_gradient(ct_plan *base, const ct_work *work, const ct_objective *objective,
                          ct_bank *gradient, ct_bank *losses, size_t column) {
    task t = {.plan = (cpu_plan *)base,
              .work = work,
              .out = gradient,
              .objective = objective,
              .losses = losses,
              .column = column};
    ct_pool_run(backend_of(t.plan)->pool, work->n_jobs, gradient_task, &t);
    return CT_OK;
}

ct_status ct_cpu_evaluate(ct_plan *base, const ct_work *work, ct_score *scores, int *predictions) {
    task t = {.plan = (cpu_plan *)base, .work = work, .scores = scores, .predictions = predictions};
    ct_pool_run(backend_of(t.plan)->pool, work->n_jobs, evaluate_task, &t);
    return CT_OK;
}

ct_status ct_cpu_logits(ct_plan *base, const ct_work *work, float *logits) {
    task t = {.plan = (cpu_plan *)base, .work = work, .logits = logits};
    ct_pool_run(backend_of(t.plan)->pool, work->n_jobs, logits_task, &t);
    return CT_OK;
}
