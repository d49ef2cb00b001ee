#include "backend/ref/ref.h"

#include <string.h>

#include "backend/host.h"
#include "backend/ref/ref_internal.h"
#include "util/memory.h"

typedef struct ref_backend {
    ct_backend base;
    double *temps;
    size_t n_temps;
    uint32_t *scratch; /* of a row that is packed */
    size_t n_scratch;
} ref_backend;

typedef struct ref_plan {
    ct_plan base;
    double *params, *dparams; /* [n_weights] the job's model */
    double **value, **grad;   /* [n_nodes] -> [max_batch][shape] */
    double *block;            /* what value and grad point into */
    float *sample;            /* one input image */
    float *floats;            /* what outputs points into */
    ct_host_outputs outputs;
} ref_plan;

const ref_kernel *ct_ref_kernel(ct_op op) {
    static const ref_kernel *const kernels[CT_N_OPS] = {
        [CT_OP_CONV] = &ct_ref_conv,           [CT_OP_LINEAR] = &ct_ref_linear,
        [CT_OP_RELU] = &ct_ref_relu,           [CT_OP_MAXPOOL] = &ct_ref_maxpool,
        [CT_OP_AVGPOOL] = &ct_ref_avgpool,     [CT_OP_ADD] = &ct_ref_add,
        [CT_OP_EVONORM] = &ct_ref_evonorm,     [CT_OP_EVONORM_S0] = &ct_ref_evonorm,
        [CT_OP_GROUPNORM] = &ct_ref_groupnorm, [CT_OP_BATCHNORM] = &ct_ref_batchnorm,
    };
    return kernels[op];
}

static void plan_free(ct_plan *base) {
    ref_plan *plan = (ref_plan *)base;
    ct_free(plan->params);
    ct_free(plan->dparams);
    ct_free(plan->value);
    ct_free(plan->grad);
    ct_free(plan->block);
    ct_free(plan->sample);
    ct_free(plan->floats);
    ct_free(plan);
}

/* Places every node's values and gradients in one block. */
static ct_status fill_plan(ref_plan *plan) {
    const ct_graph *g = plan->base.graph;
    size_t batch = (size_t)plan->base.max_batch, total = 0;
    for (int i = 0; i < g->n_nodes; i++) total += batch * ct_shape_size(g->nodes[i].shape);
    CT_TRY(ct_make(&plan->value, (size_t)g->n_nodes, g->model));
    CT_TRY(ct_make(&plan->grad, (size_t)g->n_nodes, g->model));
    CT_TRY(ct_make(&plan->block, 2 * total, g->model));
    CT_TRY(ct_make(&plan->params, g->n_weights, g->model));
    CT_TRY(ct_make(&plan->dparams, g->n_weights, g->model));
    CT_TRY(ct_make(&plan->sample, ct_shape_size(g->nodes[0].shape), g->model));
    CT_TRY(ct_make(&plan->floats, ct_host_outputs_floats(&plan->base), g->model));
    double *at = plan->block;
    for (int i = 0; i < g->n_nodes; i++) {
        plan->value[i] = at;
        plan->grad[i] = at + total;
        at += batch * ct_shape_size(g->nodes[i].shape);
    }
    plan->base.workspace_bytes = 2 * total * sizeof *at;
    plan->outputs = ct_host_outputs_cut(&plan->base, plan->floats);
    return CT_OK;
}

static ct_status plan_create(ct_backend *backend, const ct_graph *g, int max_batch, ct_plan **out) {
    ref_plan *plan;
    CT_TRY(ct_make(&plan, 1, g->model));
    plan->base = (ct_plan){.backend = backend, .graph = g, .max_batch = max_batch};
    ct_status status = fill_plan(plan);
    if (status == CT_OK)
        *out = &plan->base;
    else
        plan_free(&plan->base);
    return status;
}

/* A node's call; gradients of the inputs are where their values are in plan->grad. */
static ref_call node_call(ref_plan *plan, int i, int n, ref_mode mode, float *buffers) {
    const ct_graph *g = plan->base.graph;
    const ct_node *node = &g->nodes[i];
    ref_call call = {.graph = g,
                     .node = node,
                     .n = n,
                     .mode = mode,
                     .params = plan->params,
                     .dparams = plan->dparams,
                     .buffers = buffers,
                     .out = plan->value[i],
                     .dout = plan->grad[i]};
    for (int k = 0; k < 2 && node->in[k] >= 0; k++) {
        call.in[k] = plan->value[node->in[k]];
        call.din[k] = plan->grad[node->in[k]];
        if (k == 0) call.shape = g->nodes[node->in[k]].shape;
    }
    return call;
}

static void load_job(ref_plan *plan, const ct_work *work, const ct_job *job) {
    const ct_graph *g = plan->base.graph;
    const ct_batch *batch = &work->batches[job->batch];
    const float *row = ct_host_row(work->params, job->model);
    for (size_t k = 0; k < g->n_weights; k++) plan->params[k] = (double)row[k];
    size_t size = ct_shape_size(g->nodes[0].shape);
    for (int b = 0; b < batch->n; b++) {
        ct_host_sample(work->source, batch, b, plan->sample);
        for (size_t k = 0; k < size; k++)
            plan->value[0][(size_t)b * size + k] = (double)plan->sample[k];
    }
}

static float *buffer_row(const ct_work *work, const ct_job *job) {
    return work->buffers != NULL ? ct_host_row(work->buffers, job->model) : NULL;
}

static void forward(ref_plan *plan, const ct_work *work, const ct_job *job, ref_mode mode,
                    int last) {
    load_job(plan, work, job);
    int n = work->batches[job->batch].n;
    for (int i = 1; i <= last; i++) {
        ref_call call = node_call(plan, i, n, mode, buffer_row(work, job));
        ct_ref_kernel(call.node->op)->forward(&call);
    }
}

/* A node's values of n samples as floats. */
static void node_values(const ref_plan *plan, int node, int n, float *out) {
    size_t count = (size_t)n * ct_shape_size(plan->base.graph->nodes[node].shape);
    for (size_t k = 0; k < count; k++) out[k] = (float)plan->value[node][k];
}

static void add_to_gradient(ref_plan *plan, int node, int n, const float *values) {
    size_t count = (size_t)n * ct_shape_size(plan->base.graph->nodes[node].shape);
    for (size_t k = 0; k < count; k++) plan->grad[node][k] += (double)values[k];
}

static void backward(ref_plan *plan, int n) {
    const ct_graph *g = plan->base.graph;
    memset(plan->dparams, 0, g->n_weights * sizeof *plan->dparams);
    for (int i = g->logits; i > 0; i--) {
        ref_call call = node_call(plan, i, n, REF_FEATURES, NULL);
        ct_ref_kernel(call.node->op)->backward(&call);
    }
}

static ct_status features(ct_plan *base, const ct_work *work, ct_bank *out, ct_bank *class_sums) {
    ref_plan *plan = (ref_plan *)base;
    const ct_graph *g = base->graph;
    for (int k = 0; k < work->n_jobs; k++) {
        const ct_job *job = &work->jobs[k];
        int n = work->batches[job->batch].n;
        forward(plan, work, job, REF_FEATURES, g->features);
        node_values(plan, g->features, n, ct_host_row(out, job->out));
        ct_host_class_sums(base, work, k, &plan->outputs, out, class_sums);
    }
    return CT_OK;
}

static ct_status soften(ct_plan *base, const ct_work *work, const ct_softening *how,
                        ct_bank *rows) {
    ref_plan *plan = (ref_plan *)base;
    const ct_graph *g = base->graph;
    for (int k = 0; k < work->n_jobs; k++) {
        const ct_job *job = &work->jobs[k];
        forward(plan, work, job, REF_FEATURES, g->logits);
        node_values(plan, g->logits, work->batches[job->batch].n, plan->outputs.logits);
        ct_host_soften(base, work, k, how, &plan->outputs, rows);
    }
    return CT_OK;
}

static void clear_gradients(ref_plan *plan) {
    memset(plan->grad[0], 0, plan->base.workspace_bytes / 2);
}

static ct_status gradient(ct_plan *base, const ct_work *work, const ct_objective *objective,
                          ct_bank *out, ct_bank *losses, size_t column) {
    ref_plan *plan = (ref_plan *)base;
    const ct_host_outputs *o = &plan->outputs;
    const ct_graph *g = base->graph;
    for (int k = 0; k < work->n_jobs; k++) {
        const ct_job *job = &work->jobs[k];
        const int n = work->batches[job->batch].n;
        forward(plan, work, job, REF_TRAIN, g->logits);
        clear_gradients(plan);
        node_values(plan, g->logits, n, o->logits);
        node_values(plan, g->features, n, o->features);
        ct_host_losses(base, work, objective, k, o, ct_host_row(losses, job->out) + column);
        add_to_gradient(plan, g->logits, n, o->dlogits);
        if (objective->loss.ccl) add_to_gradient(plan, g->features, n, o->dfeatures);
        backward(plan, n);
        float *row = ct_host_row(out, job->out);
        for (size_t p = 0; p < g->n_weights; p++) row[p] = (float)plan->dparams[p];
    }
    return CT_OK;
}

static ct_status evaluate(ct_plan *base, const ct_work *work, ct_score *scores, int *predictions) {
    ref_plan *plan = (ref_plan *)base;
    const ct_graph *g = base->graph;
    for (int k = 0; k < work->n_jobs; k++) {
        const ct_job *job = &work->jobs[k];
        forward(plan, work, job, REF_EVALUATE, g->logits);
        node_values(plan, g->logits, work->batches[job->batch].n, plan->outputs.logits);
        ct_host_score(base, work, k, &plan->outputs, scores, predictions);
    }
    return CT_OK;
}

static ct_status logits(ct_plan *base, const ct_work *work, float *out) {
    ref_plan *plan = (ref_plan *)base;
    const ct_graph *g = base->graph;
    size_t stride = (size_t)base->max_batch * (size_t)g->n_classes;
    for (int k = 0; k < work->n_jobs; k++, out += stride) {
        const ct_job *job = &work->jobs[k];
        forward(plan, work, job, REF_EVALUATE, g->logits);
        node_values(plan, g->logits, work->batches[job->batch].n, out);
    }
    return CT_OK;
}

static ct_status update(ct_backend *base, const ct_update *program) {
    ref_backend *backend = (ref_backend *)base;
    CT_TRY(ct_reserve(&backend->temps, &backend->n_temps, (size_t)program->n_rows * CT_MAX_TEMPS,
                      "temporaries"));
    ct_ref_update(program, backend->temps);
    return CT_OK;
}

static ct_status compress(const ct_packing *p, const ct_bank *x, ct_bank *known, ct_bank *packed) {
    ref_backend *backend = (ref_backend *)x->backend;
    CT_TRY(ct_reserve(&backend->scratch, &backend->n_scratch, p->how->n_scratch, "packed rows"));
    for (int row = p->first; row < p->first + p->n_rows; row++)
        ct_host_compress(p, x, known, packed, row, backend->scratch);
    return CT_OK;
}

static ct_status decompress(const ct_packing *p, const ct_bank *packed, ct_bank *known) {
    for (int row = p->first; row < p->first + p->n_rows; row++)
        ct_host_decompress(p, packed, known, row);
    return CT_OK;
}

static ct_status scale_steps(const ct_adaptive_steps *steps, ct_bank *v, ct_bank *r) {
    for (int row = 0; row < r->n_own; row++) ct_host_scale_steps(steps, v, r, row);
    return CT_OK;
}

static void backend_free(ct_backend *base) {
    ref_backend *backend = (ref_backend *)base;
    ct_free(backend->temps);
    ct_free(backend->scratch);
    ct_free(backend);
}

static const ct_backend_ops ref_ops = {
    .name = "ref",
    .free = backend_free,
    .bank_alloc = ct_host_bank_alloc,
    .bank_free = ct_host_bank_free,
    .bank_write = ct_host_bank_write,
    .bank_read = ct_host_bank_read,
    .compress = compress,
    .decompress = decompress,
    .scale_steps = scale_steps,
    .update = update,
    .source_create = ct_host_source_create,
    .source_free = ct_host_source_free,
    .plan_create = plan_create,
    .plan_free = plan_free,
    .features = features,
    .soften = soften,
    .gradient = gradient,
    .evaluate = evaluate,
    .logits = logits,
};

ct_status ct_backend_ref_create(const ct_backend_options *options, ct_backend **out) {
    (void)options; /* one thread, always exact */
    ref_backend *backend;
    CT_TRY(ct_make(&backend, 1, "the ref backend"));
    backend->base = (ct_backend){.instructions = "",
                                 .ops = &ref_ops,
                                 .precision = CT_PRECISION_FP32,
                                 .n_threads = 1,
                                 .poll_every = 1};
    *out = &backend->base;
    return CT_OK;
}
