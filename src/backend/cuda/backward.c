/* The steps of a plan, backward: gradients by node, parameters' into the gradient rows.
 * Data gradients run on the main stream. Weight gradients follow on a branch, at most CUDA_LAG
 * units behind, for so long what they read stays there (layout.c). They share one place for partial
 * sums, so that there is one branch. */
#include "backend/cuda/cuda_internal.h"
#include "backend/cuda/mobilenetv2/mobilenetv2.h"

ct_status ct_cuda_late_follows(const cuda_pass *p) {
    if (p->late == p->run) return CT_OK;
    return ct_cuda_follow(p->branches->fork, p->run->stream, p->late->stream);
}

static size_t size_of(const cuda_pass *p, int node) {
    return ct_shape_size(p->plan->base.graph->nodes[node].shape);
}

static cuda_conv_call call_of(const cuda_pass *p, const cuda_step *step, const float *d) {
    cuda_conv_call call = cuda_call_of(p, step);
    call.packed = step->packed[CUDA_DGRAD];
    call.d = d;
    call.dx = step->in > 0 ? cuda_grad(p, step->in) : NULL;
    call.accumulate = step->add_in;
    call.unpooled = step->unpools ? cuda_value(p, step->out) : NULL;
    call.mask = step->masks_in ? cuda_value(p, step->in) : NULL;
    call.measures = cuda_measures(p, step->n_parts);
    if (step->n_parts > 0) { /* for the norm before it */
        call.norm_in = cuda_value(p, step[-1].in);
        call.norm_element = p->plan->value_element[step[-1].in];
    }
    return call;
}

ct_status ct_cuda_weights_backward(const cuda_pass *p, const cuda_step *step, const float *d) {
    const cuda_family *wgrad = step->family[CUDA_WGRAD];
    cuda_conv_call call = call_of(p, step, d);
    CT_TRY(ct_cuda_late_follows(p));
    if (cuda_sums_bias(step))
        CT_TRY(ct_cuda_bias_sums(p->late, step->conv.co, step->conv.ho * step->conv.wo, d,
                                 step->sums));
    return wgrad->launch[CUDA_WGRAD](wgrad->is_joint ? p->run : p->late, &call);
}

/* Gradients of a convolution whose output's gradient is d. */
static ct_status conv_backward(const cuda_pass *p, const cuda_step *step, const float *d) {
    CT_TRY(ct_cuda_weights_backward(p, step, d));
    if (step->in == 0) return CT_OK;
    cuda_conv_call call = call_of(p, step, d);
    return step->family[CUDA_DGRAD]->launch[CUDA_DGRAD](p->run, &call);
}

/* A norm, or the one fused behind a convolution: from dy to dx. */
static ct_status norm_backward(const cuda_pass *p, const cuda_step *step, int in, const float *dy,
                               float *dx) {
    cuda_norm_call call = {
        .kind = step->norm != NULL ? CUDA_EVONORM : ct_cuda_norm_kind(step->op),
        .norm = step->norm_shape,
        .elements = {p->plan->value_element[in], p->plan->grad_element[step->out]},
        .is_inner = step->norm != NULL,
        .x = cuda_value(p, in),
        .stats = cuda_stats(p, step),
        .dy = dy,
        .dx = dx,
        .sums = step->sums,
        .measures = cuda_measures(p, step->n_parts),
        .n_segments = step->n_parts};
    return ct_cuda_norm_for(&call, true)->backward(p->run, &call);
}

static ct_status run_conv(const cuda_pass *p, const cuda_step *step) {
    float *d = cuda_grad(p, step->unpools ? step->pooled : step->out);
    if (step->norm != NULL) {
        float *inner = cuda_grad(p, step->inner);
        CT_TRY(norm_backward(p, step, step->inner, d, inner));
        return conv_backward(p, step, inner);
    }
    if (step->relu && !step->masked)
        CT_TRY(ct_cuda_relu_backward(p->run, size_of(p, step->out), cuda_value(p, step->out), d,
                                     false, d));
    return conv_backward(p, step, d);
}

static ct_status run_norm(const cuda_pass *p, const cuda_step *step) {
    float *own = step->in > 0 ? cuda_grad(p, step->in) : NULL;
    bool is_apart = step->add_in || own == NULL;
    float *dx = is_apart ? cuda_tensor(p->run, p->w, p->layout->spare) : own;
    CT_TRY(norm_backward(p, step, step->in, cuda_grad(p, step->out), dx));
    return step->add_in && own != NULL ? ct_cuda_add(p->run, size_of(p, step->in), own, dx, own)
                                       : CT_OK;
}

static ct_status run_pool_gate(const cuda_pass *p, const cuda_step *step) {
    cuda_pool_call call = cuda_pool_call_of(p, step);
    call.dy = cuda_grad(p, step->out), call.dx = cuda_grad(p, step->in);
    call.measures = cuda_measures(p, step->n_parts);
    return ct_cuda_pool_gate_backward(p->run, &call);
}

static ct_status run_pool(const cuda_pass *p, const cuda_step *step) {
    if (step->gate >= 0) return run_pool_gate(p, step);
    const ct_graph *g = p->plan->base.graph;
    ct_shape from = g->nodes[step->in].shape;
    cuda_window window = cuda_window_of(g, step);
    float *dx = cuda_grad(p, step->in);
    const float *dy = cuda_grad(p, step->out);
    if (step->op == CT_OP_AVGPOOL)
        return ct_cuda_avgpool_backward(p->run, p->plan->grad_element[step->in], from.c,
                                        from.h * from.w, dy, step->add_in, dx);
    return ct_cuda_maxpool_backward(p->run, step->forward_element, &window, cuda_value(p, step->in),
                                    dy, step->add_in, step->masked, dx);
}

/* The residual's share of the sum's gradient, unless both lie in the same place. */
static ct_status pass_residual(const cuda_pass *p, const cuda_step *step) {
    if (step->residual <= 0 || !step->copy_residual) return CT_OK;
    float *to = cuda_grad(p, step->residual);
    return ct_cuda_add(p->run, size_of(p, step->residual), step->add_residual ? to : NULL,
                       cuda_grad(p, step->out), to);
}

static ct_status run_step(const cuda_pass *p, const cuda_step *step) {
    CT_TRY(pass_residual(p, step));
    if (ct_op_is_norm(step->op)) return run_norm(p, step);
    switch (step->op) {
    case CT_OP_CONV: return run_conv(p, step);
    case CT_OP_RELU:
        if (step->in == 0) return CT_OK;
        return ct_cuda_relu_backward(p->run, size_of(p, step->out), cuda_value(p, step->out),
                                     cuda_grad(p, step->out), step->add_in, cuda_grad(p, step->in));
    case CT_OP_ADD:
        if (step->in == 0 || p->plan->root[step->in] == p->plan->root[step->out]) return CT_OK;
        return ct_cuda_add(p->run, size_of(p, step->in),
                           step->add_in ? cuda_grad(p, step->in) : NULL, cuda_grad(p, step->out),
                           cuda_grad(p, step->in));
    case CT_OP_MAXPOOL:
    case CT_OP_AVGPOOL: return step->in == 0 || step->unpools ? CT_OK : run_pool(p, step);
    default: return CT_OK;
    }
}

/* The first of the steps that run with step `last`. */
static int first_of(const cuda_plan *plan, int last) {
    const cuda_step *step = &plan->steps[last];
    return step->n_behind > 0 ? last - step->n_behind + 1 : step->unit;
}

static ct_status run_unit(const cuda_pass *p, int last) {
    const cuda_step *step = &p->plan->steps[first_of(p->plan, last)];
    if (p->plan->steps[last].n_behind > 0) return ct_cuda_run_middle(p, &p->plan->steps[last]);
    return step->together != NULL ? step->together->backward(p, step) : run_step(p, step);
}

/* Unit k of the pass, behind the weight gradients of unit k - CUDA_LAG - 1. */
static ct_status run_in_time(const cuda_pass *p, int k, int last) {
    if (p->late == p->run) return run_unit(p, last);
    cudaEvent_t done = p->branches->late[k % (CUDA_LAG + 1)];
    if (k > CUDA_LAG) CT_CUDA_TRY(cudaStreamWaitEvent(p->run->stream, done, 0));
    CT_TRY(run_unit(p, last));
    CT_CUDA_TRY(cudaEventRecord(done, p->late->stream));
    return CT_OK;
}

ct_status ct_cuda_backward(const cuda_plan *plan, const cuda_run *run,
                           const cuda_branches *branches, const cuda_workspace *w) {
    cuda_run late = *run;
    late.stream = branches->wgrad;
    cuda_pass p = {.plan = plan,
                   .run = run,
                   .late = plan->is_single ? run : &late,
                   .branches = branches,
                   .layout = &plan->train,
                   .w = w,
                   .mode = CUDA_TRAIN};
    CT_TRY(ct_cuda_late_follows(&p));
    for (int last = plan->n_steps - 1, k = 0; last >= 0; k++) {
        CT_TRY(run_in_time(&p, k, last));
        last = first_of(plan, last) - 1;
    }
    if (!plan->is_single) CT_TRY(ct_cuda_follow(branches->join, late.stream, run->stream));
    return ct_cuda_sum_samples(run, plan->sums_dev, plan->n_sums, plan->n_sum_blocks);
}
