/* Calls of a plan: what they put into the stage, and their launches. */
#include <string.h>

#include "backend/cuda/cuda_internal.h"

#define EVALUATE_SAMPLES 4096 /* of one launch: enough to fill a GPU */

static cuda_rows rows_of(const ct_bank *bank) {
    if (bank == NULL) return (cuda_rows){0};
    return (cuda_rows){.data = bank->data, .stride = bank->stride};
}

static int largest_batch(const ct_work *work) {
    int n = 1;
    for (int k = 0; k < work->n_jobs; k++)
        if (work->batches[work->jobs[k].batch].n > n) n = work->batches[work->jobs[k].batch].n;
    return n;
}

static cuda_sample sample_of(const ct_batch *batch, int b) {
    cuda_sample s = {.index = batch->index[b]};
    if (batch->crop != NULL) {
        s.dy = batch->crop[b].dy;
        s.dx = batch->crop[b].dx;
        s.flip = batch->crop[b].flip;
    }
    return s;
}

/* Jobs and their samples into the stage; every job has its own list of samples. */
static ct_status stage_jobs(cuda_backend *backend, const ct_work *work, cuda_call *call) {
    size_t n = (size_t)work->n_jobs * (size_t)call->n_max;
    void *host = NULL;
    CT_TRY(ct_cuda_stage_reserve(backend, (size_t)work->n_jobs * sizeof(cuda_job), &call->jobs,
                                 &host));
    cuda_job *jobs = host;
    for (int k = 0; k < work->n_jobs; k++)
        jobs[k] = (cuda_job){.model = work->jobs[k].model,
                             .batch = k,
                             .out = work->jobs[k].out,
                             .n = work->batches[work->jobs[k].batch].n};
    CT_TRY(ct_cuda_stage_reserve(backend, n * sizeof(cuda_sample), &call->samples, &host));
    cuda_sample *samples = host;
    for (int k = 0; k < work->n_jobs; k++) {
        const ct_batch *batch = &work->batches[work->jobs[k].batch];
        for (int b = 0; b < batch->n; b++) samples[k * call->n_max + b] = sample_of(batch, b);
    }
    return CT_OK;
}

static ct_status begin_call(ct_plan *plan, const ct_work *work, bool train, cuda_call *call) {
    cuda_backend *backend = (cuda_backend *)plan->backend;
    memset(call, 0, sizeof *call);
    call->plan = (cuda_plan *)plan;
    call->source = (const cuda_source *)work->source;
    call->n_jobs = work->n_jobs;
    call->n_max = largest_batch(work);
    call->n_models = work->params->n_rows;
    call->params = rows_of(work->params);
    call->buffers = rows_of(work->buffers);
    CT_TRY(ct_cuda_reserve(call->plan, call->n_jobs, call->n_max, call->n_models, train));
    CT_TRY(ct_cuda_call_begin(backend));
    return stage_jobs(backend, work, call);
}

/* Jobs of one launch out of those of a call. */
static ct_work some_jobs(const ct_work *work, int first, int at_once) {
    ct_work some = *work;
    some.jobs = work->jobs + first;
    some.n_jobs = work->n_jobs - first < at_once ? work->n_jobs - first : at_once;
    return some;
}

/* How many jobs of a call run at once. Where all of them want much memory, launches follow each
 * other in the same workspace: no job's numbers depend on the others. */
static ct_status jobs_at_once(const ct_plan *plan, const ct_work *work, bool train, int *at_once) {
    *at_once = work->n_jobs;
    return ct_cuda_jobs_that_fit((const cuda_plan *)plan, largest_batch(work), work->params->n_rows,
                                 train, at_once);
}

static ct_status features_of(ct_plan *plan, const ct_work *work, ct_bank *features,
                             ct_bank *class_sums) {
    cuda_call call;
    CT_TRY(begin_call(plan, work, false, &call));
    call.kind = CUDA_CALL_FEATURES;
    call.features = rows_of(features);
    call.sums = rows_of(class_sums);
    return ct_cuda_call_commit((cuda_backend *)plan->backend, &call);
}

ct_status ct_cuda_features(ct_plan *plan, const ct_work *work, ct_bank *features,
                           ct_bank *class_sums) {
    int at_once;
    CT_TRY(jobs_at_once(plan, work, false, &at_once));
    for (int k = 0; k < work->n_jobs; k += at_once) {
        ct_work some = some_jobs(work, k, at_once);
        CT_TRY(features_of(plan, &some, features, class_sums));
    }
    return CT_OK;
}

static ct_status soften(ct_plan *plan, const ct_work *work, const ct_softening *how,
                        ct_bank *rows) {
    cuda_call call;
    CT_TRY(begin_call(plan, work, false, &call));
    call.kind = CUDA_CALL_SOFTEN;
    call.soft = rows_of(rows);
    call.how = *how;
    return ct_cuda_call_commit((cuda_backend *)plan->backend, &call);
}

ct_status ct_cuda_soften(ct_plan *plan, const ct_work *work, const ct_softening *how,
                         ct_bank *rows) {
    int at_once;
    CT_TRY(jobs_at_once(plan, work, false, &at_once));
    for (int k = 0; k < work->n_jobs; k += at_once) {
        ct_work some = some_jobs(work, k, at_once);
        CT_TRY(soften(plan, &some, how, rows));
    }
    return CT_OK;
}

/* Which rows of soft targets the jobs have. */
static ct_status stage_soft(cuda_backend *backend, const ct_work *work, const ct_soft_targets *soft,
                            cuda_call *call) {
    void *host = NULL;
    const size_t n = (size_t)work->n_jobs * sizeof *soft->row;
    if (soft->rows == NULL) return CT_OK;
    call->soft = rows_of(soft->rows);
    call->temperature = soft->temperature;
    CT_TRY(ct_cuda_stage_reserve(backend, n, &call->soft_row, &host));
    memcpy(host, soft->row, n);
    return CT_OK;
}

static ct_status gradient_of(ct_plan *plan, const ct_work *work, const ct_objective *objective,
                             ct_bank *gradient, ct_bank *losses, size_t column) {
    cuda_backend *backend = (cuda_backend *)plan->backend;
    cuda_call call;
    void *host = NULL;
    CT_TRY(begin_call(plan, work, true, &call));
    call.kind = CUDA_CALL_GRADIENT;
    call.gradient = rows_of(gradient);
    call.losses = rows_of(losses);
    call.loss.ccl = objective->loss.ccl;
    call.loss.label_smoothing = objective->loss.label_smoothing;
    CT_TRY(ct_cuda_stage_reserve(backend, sizeof column, &call.column, &host));
    memcpy(host, &column, sizeof column);
    CT_TRY(stage_soft(backend, work, &objective->soft, &call));
    if (objective->loss.ccl) {
        call.loss.lambda_m = objective->loss.lambda_m;
        call.loss.lambda_d = objective->loss.lambda_d;
        call.loss.distance = objective->loss.distance;
        call.loss.reduction = objective->loss.reduction;
        call.loss.cross_fraction = objective->loss.cross_fraction;
        call.lambdas = rows_of(objective->lambdas);
        call.cross = rows_of(objective->cross);
        call.received = rows_of(objective->class_sums);
        size_t n = ((size_t)work->n_jobs + 1) * sizeof(int);
        CT_TRY(ct_cuda_stage_reserve(backend, n, &call.cross_begin, &host));
        memcpy(host, objective->cross_begin, n);
    }
    return ct_cuda_call_commit(backend, &call);
}

ct_status ct_cuda_gradient(ct_plan *plan, const ct_work *work, const ct_objective *objective,
                           ct_bank *gradient, ct_bank *losses, size_t column) {
    int at_once;
    CT_TRY(jobs_at_once(plan, work, true, &at_once));
    for (int k = 0; k < work->n_jobs; k += at_once) {
        ct_work some = some_jobs(work, k, at_once);
        ct_objective its = *objective;
        if (its.cross_begin != NULL) its.cross_begin += k;
        if (its.soft.row != NULL) its.soft.row += k;
        CT_TRY(gradient_of(plan, &some, &its, gradient, losses, column));
    }
    return CT_OK;
}

cudaStream_t ct_cuda_stream_of(const cuda_backend *backend, const cuda_call *call) {
    return call->is_beside ? backend->branches.features : backend->stream;
}

static cuda_workspace workspace_of(const cuda_call *call) {
    if (call->is_beside) return ct_cuda_workspace_beside(call, NULL);
    return ct_cuda_workspace(call->plan, call->n_jobs, call->n_max, call->n_models,
                             call->kind == CUDA_CALL_GRADIENT, NULL);
}

static cuda_run run_of(const cuda_backend *backend, const cuda_call *call,
                       const cuda_workspace *w) {
    return (cuda_run){.stream = ct_cuda_stream_of(backend, call),
                      .jobs_dev = (const cuda_job *)(backend->stage.dev + call->jobs),
                      .n_jobs = call->n_jobs,
                      .n_max = call->n_max,
                      .n_most = call->plan->base.max_batch,
                      .params_dev = call->params.data,
                      .params_stride = call->params.stride,
                      .packed_dev = w->packed,
                      .packed_stride = call->plan->packed_floats,
                      .grads_dev = call->gradient.data,
                      .grads_stride = call->gradient.stride,
                      .buffers_dev = call->buffers.data,
                      .buffers_stride = call->buffers.stride,
                      .partial_dev = w->partial,
                      .sums_dev = w->sums,
                      .shared_limit = backend->shared_limit,
                      .is_hopper = backend->is_hopper,
                      .rounds = cuda_rounds(backend)};
}

static cuda_loss loss_of(const cuda_call *call, const cuda_workspace *w) {
    const ct_graph *g = call->plan->base.graph;
    ct_shape features = g->nodes[g->features].shape;
    return (cuda_loss){.n_classes = g->n_classes,
                       .channels = features.c,
                       .pixels = features.h * features.w,
                       .distance = (int)call->loss.distance,
                       .sum_features = call->loss.reduction == CT_REDUCE_SUM,
                       .lambda_m = call->loss.lambda_m,
                       .lambda_d = call->loss.lambda_d,
                       .ccl = call->loss.ccl,
                       .cross_fraction = call->loss.cross_fraction,
                       .smoothing = call->loss.label_smoothing,
                       .temperature = call->temperature,
                       .lambdas_dev = call->lambdas.data,
                       .lambdas_stride = call->lambdas.stride,
                       .labels_dev = w->labels};
}

/* Weights and pictures of a call, up to step n_steps. */
static ct_status launch_forward(const cuda_backend *backend, const cuda_call *call,
                                const cuda_run *run, const cuda_workspace *w, cuda_mode mode,
                                int n_steps) {
    const cuda_plan *plan = call->plan;
    const cuda_layout *layout = mode == CUDA_TRAIN ? &plan->train : &plan->forward;
    const cuda_sample *samples = (const cuda_sample *)(backend->stage.dev + call->samples);
    if (!call->is_packed && (!call->is_beside || call->packs_beside))
        CT_TRY(ct_cuda_pack(run, &plan->packs, call->n_models, w->packed));
    CT_TRY(ct_cuda_gather(run, &call->source->images, samples, &plan->pairs,
                          cuda_tensor(run, w, layout->value[0]), w->labels));
    if (call->is_beside) CT_CUDA_TRY(cudaStreamWaitEvent(run->stream, backend->branches.packed, 0));
    return ct_cuda_forward(plan, run, layout, w, mode, n_steps);
}

static ct_status launch_features(const cuda_backend *backend, const cuda_call *call) {
    const cuda_plan *plan = call->plan;
    cuda_workspace w = workspace_of(call);
    cuda_run run = run_of(backend, call, &w);
    cuda_loss loss = loss_of(call, &w);
    CT_TRY(launch_forward(backend, call, &run, &w, CUDA_FEATURES, plan->n_feature_steps));
    const float *z = cuda_tensor(&run, &w, plan->forward.value[plan->base.graph->features]);
    return ct_cuda_take_features(&run, &loss, z, call->features.data, call->features.stride,
                                 call->sums.data, call->sums.stride);
}

static ct_status launch_soften(const cuda_backend *backend, const cuda_call *call) {
    const cuda_plan *plan = call->plan;
    const ct_graph *g = plan->base.graph;
    cuda_workspace w = workspace_of(call);
    cuda_run run = run_of(backend, call, &w);
    CT_TRY(launch_forward(backend, call, &run, &w, CUDA_FEATURES, plan->n_steps));
    return ct_cuda_soften_logits(
        &run, g->n_classes, call->how.temperature, call->how.hard, call->how.soft,
        cuda_tensor(&run, &w, plan->forward.value[g->logits]), call->soft.data, call->soft.stride);
}

/* The losses and their gradients at logits and features. */
static ct_status launch_loss(const cuda_backend *backend, const cuda_call *call,
                             const cuda_run *run, const cuda_workspace *w) {
    const cuda_plan *plan = call->plan;
    const ct_graph *g = plan->base.graph;
    cuda_loss loss = loss_of(call, w);
    loss.soft_dev = call->soft.data;
    loss.soft_stride = call->soft.stride;
    loss.soft_row_dev = (const int *)(backend->stage.dev + call->soft_row);
    const float *z = cuda_tensor(run, w, plan->train.value[g->features]);
    float *dz = cuda_tensor(run, w, plan->train.grad[plan->root[g->features]]);
    CT_TRY(ct_cuda_cross_entropy(run, &loss, cuda_tensor(run, w, plan->train.value[g->logits]),
                                 cuda_tensor(run, w, plan->train.grad[plan->root[g->logits]]),
                                 w->samples, NULL));
    if (loss.ccl) {
        cuda_contrast contrast = {.cross_dev = call->cross.data,
                                  .cross_stride = call->cross.stride,
                                  .cross_begin_dev =
                                      (const int *)(backend->stage.dev + call->cross_begin),
                                  .received_dev = call->received.data,
                                  .received_stride = call->received.stride,
                                  .own_dev = w->own};
        CT_TRY(ct_cuda_own_sums(run, &loss, &contrast, z));
        if (call->joins)
            CT_TRY(ct_cuda_follow(backend->branches.join, backend->branches.features, run->stream));
        CT_TRY(ct_cuda_contrast(run, &loss, &contrast, z, w->samples, dz));
    } else {
        size_t n = (size_t)run->n_jobs * (size_t)run->n_max * ct_graph_n_features(g);
        CT_CUDA_TRY(cudaMemsetAsync(dz, 0, n * sizeof *dz, run->stream));
    }
    return CT_OK;
}

/* The losses' means, beside the backward pass. */
static ct_status launch_means(const cuda_backend *backend, const cuda_call *call,
                              const cuda_run *run, const cuda_workspace *w) {
    cuda_run late = *run;
    if (!call->plan->is_single) {
        late.stream = backend->branches.wgrad;
        CT_TRY(ct_cuda_follow(backend->branches.fork, run->stream, late.stream));
    }
    return ct_cuda_loss_sums(&late, w->samples, call->losses.data, call->losses.stride,
                             (const size_t *)(backend->stage.dev + call->column), NULL);
}

static ct_status launch_gradient(const cuda_backend *backend, const cuda_call *call) {
    const cuda_plan *plan = call->plan;
    cuda_workspace w = workspace_of(call);
    cuda_run run = run_of(backend, call, &w);
    CT_TRY(launch_forward(backend, call, &run, &w, CUDA_TRAIN, plan->n_steps));
    CT_TRY(launch_loss(backend, call, &run, &w));
    CT_TRY(launch_means(backend, call, &run, &w));
    return ct_cuda_backward(plan, &run, &backend->branches, &w);
}

ct_status ct_cuda_fork(cuda_backend *backend, const cuda_call *call) {
    const cuda_plan *plan = call->plan;
    cuda_workspace w = workspace_of(call);
    cuda_run run = run_of(backend, call, &w);
    run.stream = backend->stream;
    CT_TRY(ct_cuda_follow(backend->branches.fork, backend->stream, backend->branches.features));
    if (!call->is_packed && !call->packs_beside)
        CT_TRY(ct_cuda_pack(&run, &plan->packs, call->n_models, w.packed));
    CT_CUDA_TRY(cudaEventRecord(backend->branches.packed, backend->stream));
    return CT_OK;
}

static ct_status launch_update(const cuda_backend *backend, const cuda_call *call) {
    return ct_cuda_launch_update(
        &(cuda_update){.program_dev = (const cuda_program *)(backend->stage.dev + call->program),
                       .n_quads = call->n_quads,
                       .n_rows = call->n_rows,
                       .n_temp_rows = call->n_temp_rows,
                       .n_bank_rows = call->n_bank_rows,
                       .n_rounds = call->n_rounds,
                       .n_shared = call->n_shared,
                       .n_places = call->n_places,
                       .shared_limit = backend->shared_limit,
                       .scratch_dev = backend->scratch_dev,
                       .n_scratch = backend->n_scratch,
                       .stream = ct_cuda_stream_of(backend, call)});
}

ct_status ct_cuda_launch(cuda_backend *backend, const cuda_call *call) {
    if (call->kind == CUDA_CALL_FEATURES) return launch_features(backend, call);
    if (call->kind == CUDA_CALL_SOFTEN) return launch_soften(backend, call);
    if (call->kind == CUDA_CALL_GRADIENT) return launch_gradient(backend, call);
    if (call->kind == CUDA_CALL_STEPS)
        return ct_cuda_launch_steps(
            backend->stream, (const float *)(backend->stage.dev + call->steps), call->n_columns,
            call->n_rows, call->v.data, call->v.stride, call->r.data, call->r.stride);
    if (call->kind == CUDA_CALL_PARCEL) return ct_cuda_launch_parcel(backend, call);
    return launch_update(backend, call);
}

/* What is wanted of the jobs of a launch: scores and perhaps predictions, or logits alone. */
typedef struct wanted {
    ct_score *scores;
    int *predictions;
    float *logits;
} wanted;

/* Rows of the jobs, n_max samples of `size` bytes apart on the device, max_batch on the host: all in
 * one copy, though the batch of a row may be shorter. */
static ct_status fetch_rows(const ct_plan *base, const cuda_call *call, const void *from_dev,
                            size_t size, void *to) {
    cudaStream_t stream = ((cuda_backend *)base->backend)->stream;
    size_t n_rows = (size_t)call->n_jobs, width = (size_t)call->n_max * size;
    if (call->n_max == base->max_batch)
        CT_CUDA_TRY(cudaMemcpyAsync(to, from_dev, n_rows * width, cudaMemcpyDeviceToHost, stream));
    else
        CT_CUDA_TRY(cudaMemcpy2DAsync(to, (size_t)base->max_batch * size, from_dev, width, width,
                                      n_rows, cudaMemcpyDeviceToHost, stream));
    return CT_OK;
}

static ct_status score_some(const ct_plan *base, const ct_work *work, const cuda_call *call,
                            const cuda_run *run, const cuda_workspace *w, const float *logits_dev,
                            const wanted *out) {
    double results[2 * EVALUATE_SAMPLES];
    cuda_backend *backend = (cuda_backend *)base->backend;
    cuda_loss loss = loss_of(call, w);
    CT_TRY(ct_cuda_cross_entropy(run, &loss, logits_dev, NULL, w->samples, w->predictions));
    CT_TRY(ct_cuda_loss_sums(run, w->samples, NULL, 0, NULL, w->scores));
    CT_CUDA_TRY(cudaMemcpyAsync(results, w->scores, (size_t)call->n_jobs * 2 * sizeof *results,
                                cudaMemcpyDeviceToHost, backend->stream));
    if (out->predictions != NULL)
        CT_TRY(fetch_rows(base, call, w->predictions, sizeof(int), out->predictions));
    CT_CUDA_TRY(cudaStreamSynchronize(backend->stream));
    for (int k = 0; k < call->n_jobs; k++)
        out->scores[k] = (ct_score){.loss_sum = results[2 * k],
                                    .n_correct = (int)results[2 * k + 1],
                                    .n = work->batches[work->jobs[k].batch].n};
    return CT_OK;
}

/* Jobs first .. of one launch; waits for what is wanted. */
static ct_status evaluate_some(ct_plan *base, const ct_work *work, bool is_packed,
                               const wanted *out) {
    cuda_backend *backend = (cuda_backend *)base->backend;
    cuda_plan *plan = (cuda_plan *)base;
    const ct_graph *g = base->graph;
    cuda_call call;
    CT_TRY(begin_call(base, work, false, &call));
    call.is_packed = is_packed;
    CT_TRY(ct_cuda_stage_send(backend));
    cuda_workspace w = ct_cuda_workspace(plan, call.n_jobs, call.n_max, call.n_models, false, NULL);
    cuda_run run = run_of(backend, &call, &w);
    CT_TRY(launch_forward(backend, &call, &run, &w, CUDA_EVALUATE, plan->n_steps));
    const float *logits_dev = cuda_tensor(&run, &w, plan->forward.value[g->logits]);
    if (out->scores != NULL) return score_some(base, work, &call, &run, &w, logits_dev, out);
    CT_TRY(fetch_rows(base, &call, logits_dev, (size_t)g->n_classes * sizeof(float), out->logits));
    CT_CUDA_TRY(cudaStreamSynchronize(backend->stream));
    return CT_OK;
}

static ct_status evaluate_all(ct_plan *base, const ct_work *work, const wanted *out) {
    cuda_backend *backend = (cuda_backend *)base->backend;
    const size_t row = (size_t)base->max_batch, n_classes = (size_t)base->graph->n_classes;
    int n_max = largest_batch(work), at_once = EVALUATE_SAMPLES / n_max;
    if (at_once < 1) at_once = 1;
    CT_TRY(ct_cuda_flush(backend));
    CT_TRY(ct_cuda_jobs_that_fit((cuda_plan *)base, n_max, work->params->n_rows, false, &at_once));
    backend->tape.in_step = false;
    backend->tape.packed_data = NULL;
    for (int k = 0; k < work->n_jobs; k += at_once) {
        ct_work some = some_jobs(work, k, at_once);
        wanted now = *out;
        if (now.scores != NULL) now.scores += k;
        if (now.predictions != NULL) now.predictions += (size_t)k * row;
        if (now.logits != NULL) now.logits += (size_t)k * row * n_classes;
        CT_TRY(evaluate_some(base, &some, k > 0, &now));
    }
    return CT_OK;
}

ct_status ct_cuda_evaluate(ct_plan *base, const ct_work *work, ct_score *scores, int *predictions) {
    return evaluate_all(base, work, &(wanted){.scores = scores, .predictions = predictions});
}

ct_status ct_cuda_logits(ct_plan *base, const ct_work *work, float *logits) {
    return evaluate_all(base, work, &(wanted){.logits = logits});
}
