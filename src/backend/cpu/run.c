/* Jobs: one agent's model on one batch, each on one worker from the pictures to the result. */
#include "backend/cpu/cpu_internal.h"

#include <string.h>

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

static cpu_call begin_job(const task *t, const ct_job *job, int worker, cpu_mode mode) {
    const ct_batch *batch = &t->work->batches[job->batch];
    cpu_call c = {.plan = t->plan,
                  .k = backend_of(t->plan)->kernels,
                  .layout = mode == CPU_TRAIN ? &t->plan->train : &t->plan->forward,
                  .worker = &t->plan->workers[worker],
                  .mode = mode,
                  .n = batch->n,
                  .n_blocks = (batch->n + CT_LANES - 1) / CT_LANES,
                  .params = ct_host_row(t->work->params, job->model)};
    c.value_at = c.layout->value;
    if (t->work->buffers != NULL) c.buffers = ct_host_row(t->work->buffers, job->model);
    ct_cpu_load_pictures(t->work->source, batch, cpu_value(&c, 0));
    ct_host_labels(t->work->source, batch, c.worker->labels);
    return c;
}

static void forward(const cpu_call *c, int n_steps) {
    for (int s = 0; s < n_steps; s++) ct_cpu_step_forward(c, &c->plan->steps[s]);
}

static void features_task(void *context, int k, int worker) {
    const task *t = context;
    const ct_graph *g = t->plan->base.graph;
    const ct_job *job = &t->work->jobs[k];
    cpu_call c = begin_job(t, job, worker, CPU_FEATURES);
    forward(&c, t->plan->n_feature_steps);
    float *row = ct_host_row(t->out, job->out);
    from_lanes(&c, g->features, row);
    ct_class_sums(row, c.worker->labels, c.n, ct_graph_n_features(g), g->n_classes,
                  ct_host_row(t->class_sums, job->out));
}

/* The contrastive terms' gradient at the features. */
static void contrast(const cpu_call *c, const ct_objective *o, int k, int out, float *losses) {
    const ct_graph *g = c->plan->base.graph;
    double mv, dv;
    ct_ccl_batch batch = {.z = c->worker->features,
                          .labels = c->worker->labels,
                          .n = c->n,
                          .r = ct_graph_n_features(g),
                          .n_classes = g->n_classes,
                          .cross = ct_host_row(o->cross, o->cross_begin[k]),
                          .cross_stride = o->cross->stride,
                          .n_cross = o->cross_begin[k + 1] - o->cross_begin[k],
                          .received = ct_host_row(o->class_sums, out)};
    from_lanes(c, g->features, c->worker->features);
    ct_loss_spec spec = ct_host_loss(o, out);
    ct_ccl(&spec, &batch, c->worker->loss_scratch, c->worker->dfeatures, &mv, &dv);
    losses[CT_LOSS_MV] = (float)mv;
    losses[CT_LOSS_DV] = (float)dv;
    if (g->features == 0) return; /* the pictures have no gradient */
    if (g->features != g->logits) {
        gradient_to_lanes(c, g->features, c->worker->dfeatures);
        return;
    }
    size_t count = (size_t)c->n * (size_t)g->n_classes;
    for (size_t i = 0; i < count; i++) c->worker->dlogits[i] += c->worker->dfeatures[i];
    gradient_to_lanes(c, g->logits, c->worker->dlogits);
}

/* g += decay * x, as an update would do it, while the row is in the cache. */
static void add_decay(const cpu_call *c, const ct_bank *gradient, double decay) {
    const float coefs[] = {1, (float)decay};
    const float *terms[] = {c->dparams, c->params};
    if (decay != 0) c->k->lincomb(cpu_round(gradient->n), 2, coefs, terms, c->dparams);
}

static void gradient_job(const task *t, int k, int worker) {
    const ct_graph *g = t->plan->base.graph;
    const ct_job *job = &t->work->jobs[k];
    cpu_call c = begin_job(t, job, worker, CPU_TRAIN);
    float *loss = ct_host_row(t->losses, job->out) + t->column;
    int n_correct = 0;
    c.dparams = ct_host_row(t->out, job->out);
    memset(c.worker->has_grad, 0, (size_t)g->n_nodes * sizeof *c.worker->has_grad);
    forward(&c, t->plan->n_steps);
    from_lanes(&c, g->logits, c.worker->logits);
    loss[CT_LOSS_CE] = (float)ct_smooth_cross_entropy(t->objective->loss.label_smoothing,
                                                      c.worker->logits, c.worker->labels, c.n,
                                                      g->n_classes, c.worker->dlogits, &n_correct);
    loss[CT_LOSS_CORRECT] = (float)n_correct;
    loss[CT_LOSS_MV] = loss[CT_LOSS_DV] = 0;
    gradient_to_lanes(&c, g->logits, c.worker->dlogits);
    if (t->objective->loss.ccl) contrast(&c, t->objective, k, job->out, loss);
    c.value_at = c.layout->again;
    for (int s = t->plan->n_steps - 1; s >= 0; s--) ct_cpu_step_backward(&c, &t->plan->steps[s]);
    add_decay(&c, t->out, t->objective->weight_decay);
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
    const ct_graph *g = t->plan->base.graph;
    cpu_call c = begin_job(t, &t->work->jobs[k], worker, CPU_EVALUATE);
    forward(&c, t->plan->n_steps);
    from_lanes(&c, g->logits, c.worker->logits);
    ct_score *score = &t->scores[k];
    int *predictions = NULL;
    if (t->predictions != NULL)
        predictions = t->predictions + (size_t)k * (size_t)t->plan->base.max_batch;
    score->n = c.n;
    score->loss_sum = c.n * ct_cross_entropy(c.worker->logits, c.worker->labels, c.n, g->n_classes,
                                             NULL, &score->n_correct, predictions);
}

/* ---- all jobs ---- */

ct_status ct_cpu_features(ct_plan *base, const ct_work *work, ct_bank *features,
                          ct_bank *class_sums) {
    task t = {.plan = (cpu_plan *)base, .work = work, .out = features, .class_sums = class_sums};
    ct_pool_run(backend_of(t.plan)->pool, work->n_jobs, features_task, &t);
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
