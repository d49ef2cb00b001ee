/* The steps of a plan, backward: gradients by node, parameters' into the gradient rows. */
#include "backend/cuda/cuda_internal.h"

/* Data gradients run on the main stream. Weight gradients follow on a branch, at most CUDA_LAG
 * units (steps or chains) behind, for so long what they read stays there (layout.c). They share one
 * place for partial sums, so that there is one branch. */
typedef struct pass {
    const cuda_plan *plan;
    const cuda_run *run;  /* the main stream's */
    const cuda_run *late; /* the branch's, or the same */
    const cuda_branches *branches;
    const cuda_workspace *w;
} pass;

/* The branch may use what the main stream has computed so far. */
static ct_status fork(const pass *p) {
    if (p->late == p->run) return CT_OK;
    return ct_cuda_follow(p->branches->fork, p->run->stream, p->late->stream);
}

static float *value(const pass *p, int node) {
    return cuda_tensor(p->run, p->w, p->plan->train.value[node]);
}

static float *grad(const pass *p, int node) {
    return cuda_tensor(p->run, p->w, p->plan->train.grad[p->plan->root[node]]);
}

static size_t size_of(const pass *p, int node) {
    return ct_shape_size(p->plan->base.graph->nodes[node].shape);
}

static size_t bias_of(const pass *p, const cuda_step *step) {
    int bias = step->node->bias;
    return bias == CT_NO_PARAM ? CUDA_NO_PARAM : p->plan->base.graph->params[bias].offset;
}

/* The values whose maxima have the gradient d of a step that undoes its pooling. */
static const float *maxima_of(const pass *p, const cuda_step *step) {
    return step->unpools ? value(p, step->out) : NULL;
}

static cuda_gate gate_of(const pass *p, const cuda_step *step) {
    if (step->gate < 0) return (cuda_gate){0};
    const cuda_step *norm = &p->plan->steps[step->gate];
    size_t at = p->plan->train.stats[norm->out] + cuda_scale_at(&norm->norm_shape);
    return (cuda_gate){.scale_dev = cuda_tensor(p->run, p->w, at), .bias = norm->norm_shape.bias};
}

static cuda_wgrad wgrad_of(const pass *p, const cuda_step *step, const float *d) {
    return (cuda_wgrad){.x = value(p, cuda_value_in(p->plan, step)),
                        .d = d,
                        .weight = p->plan->base.graph->params[step->node->weight].offset};
}

/* Where a convolution leaves sums of the gradient it writes, for the norm before it. */
static float *parts_of(const pass *p, const cuda_step *step) {
    return step->n_parts > 0 ? cuda_tensor(p->run, p->w, p->plan->train.measures) : NULL;
}

static ct_status conv_wgrad(const pass *p, const cuda_step *step, const float *d) {
    cuda_wgrad layer = wgrad_of(p, step, d);
    const float *x = layer.x;
    size_t weight = layer.weight;
    cuda_gate gate = gate_of(p, step);
    switch (step->wgrad_kernel) {
    case CUDA_GROUPED: return ct_cuda_grouped_wgrad(p->late, &step->conv, x, d, weight);
    case CUDA_NARROW:
        return ct_cuda_narrow_wgrad(p->late, &step->conv, x, d, maxima_of(p, step), weight,
                                    bias_of(p, step));
    case CUDA_STEM: return ct_cuda_stem_wgrad(p->late, &step->conv, x, d, weight);
    case CUDA_LINEAR:
        return ct_cuda_linear_wgrad(p->late, &step->conv, x, d, weight, bias_of(p, step));
    case CUDA_TILE: return ct_cuda_tile_wgrad(p->late, &step->conv, &layer, 1);
    case CUDA_MMA:
        return ct_cuda_mma_wgrad(p->late, step->forward_element, &step->conv, &gate, x, d, weight);
    case CUDA_DEPTHWISE:
        return ct_cuda_depthwise_backward(p->run, step->forward_element, &step->conv, &gate, x, d,
                                          weight, step->add_in, parts_of(p, step),
                                          step->in > 0 ? grad(p, step->in) : NULL);
    default: return ct_cuda_conv_wgrad(p->late, &step->conv, x, d, weight);
    }
}

static ct_status mma_dgrad(const pass *p, const cuda_step *step, const float *d) {
    cuda_tile_conv tile = ct_cuda_tile_backward(&step->conv);
    cuda_finish finish = {.bias = CUDA_NO_PARAM, .accumulate = step->add_in};
    if (step->n_parts > 0) {
        int norm_in = step[-1].in;
        finish.measures_dev = parts_of(p, step);
        finish.norm_in_dev = value(p, norm_in);
        finish.norm_element = p->plan->value_element[norm_in];
    }
    return ct_cuda_mma_conv(p->run, step->backward_element, &tile, &(cuda_gate){0}, d,
                            step->backward, &finish, grad(p, step->in));
}

static ct_status conv_dgrad(const pass *p, const cuda_step *step, const float *d) {
    const cuda_conv *c = &step->conv;
    cuda_tile_conv tile = ct_cuda_tile_backward(c);
    size_t weight = p->plan->base.graph->params[step->node->weight].offset;
    float *dx = grad(p, step->in);
    switch (step->dgrad_kernel) {
    case CUDA_GROUPED: return ct_cuda_grouped_dgrad(p->run, c, d, weight, step->add_in, dx);
    case CUDA_LINEAR:
        return ct_cuda_linear_dgrad(p->run, c->ci, c->co, d, step->backward, step->add_in,
                                    step->masks_in ? value(p, step->in) : NULL, dx);
    case CUDA_NARROW:
        return ct_cuda_narrow_conv(p->run, &tile, c->kh, c->kw, d, maxima_of(p, step),
                                   step->backward, CUDA_NO_PARAM, false, step->add_in, dx, NULL);
    case CUDA_TILE: return ct_cuda_tile_conv(p->run, &tile, d, step->backward, step->add_in, dx);
    case CUDA_MMA: return mma_dgrad(p, step, d);
    case CUDA_DEPTHWISE: return CT_OK; /* done with the weights' */
    default: return ct_cuda_conv_dgrad(p->run, c, d, step->backward, step->add_in, dx);
    }
}

/* Gradients of a convolution whose output's gradient is d. */
static ct_status conv_backward(const pass *p, const cuda_step *step, const float *d) {
    const cuda_conv *c = &step->conv;
    CT_TRY(fork(p));
    if (step->node->bias != CT_NO_PARAM && !cuda_wgrad_has_bias(step))
        CT_TRY(ct_cuda_bias_sums(p->late, c->co, c->ho * c->wo, d, step->sums));
    CT_TRY(conv_wgrad(p, step, d));
    return step->in > 0 ? conv_dgrad(p, step, d) : CT_OK;
}

static ct_status run_conv(const pass *p, const cuda_step *step) {
    float *d = grad(p, step->unpools ? step->pooled : step->out);
    const float *stats = cuda_tensor(p->run, p->w, p->plan->train.stats[step->out]);
    if (step->norm != NULL) {
        float *inner = grad(p, step->inner);
        const cuda_norm *norm = &step->norm_shape;
        const float *x = value(p, step->inner);
        if (ct_cuda_evonorm_back_fits(norm))
            CT_TRY(ct_cuda_evonorm_back(p->run, norm, x, stats, d, step->sums, inner));
        else
            CT_TRY(ct_cuda_evonorm_backward(p->run, norm, x, stats, d, step->sums, inner));
        return conv_backward(p, step, inner);
    }
    if (step->relu && !step->masked)
        CT_TRY(
            ct_cuda_relu_backward(p->run, size_of(p, step->out), value(p, step->out), d, false, d));
    return conv_backward(p, step, d);
}

static ct_status run_norm(const pass *p, const cuda_step *step) {
    const cuda_norm *norm = &step->norm_shape;
    const float *x = value(p, step->in), *dy = grad(p, step->out);
    const float *stats = cuda_tensor(p->run, p->w, p->plan->train.stats[step->out]);
    cuda_elements elements = {p->plan->value_element[step->in], p->plan->grad_element[step->out]};
    float *own = step->in > 0 ? grad(p, step->in) : NULL;
    float *dx = step->add_in || own == NULL ? cuda_tensor(p->run, p->w, p->plan->train.spare) : own;
    if (step->op == CT_OP_BATCHNORM)
        CT_TRY(ct_cuda_batchnorm_backward(p->run, norm, x, stats, dy, dx));
    else if (step->op == CT_OP_GROUPNORM)
        CT_TRY(ct_cuda_groupnorm_backward(p->run, norm, x, stats, dy, step->sums, dx));
    else if (step->n_parts > 0)
        CT_TRY(ct_cuda_evonorm_finish(p->run, elements, norm, x, stats, dy, parts_of(p, step),
                                      step->n_parts, step->sums, dx));
    else if (ct_cuda_evonorm_group_fits(norm))
        CT_TRY(
            ct_cuda_evonorm_group_backward(p->run, elements, norm, x, stats, dy, step->sums, dx));
    else
        CT_TRY(ct_cuda_evonorm_backward(p->run, norm, x, stats, dy, step->sums, dx));
    return step->add_in && own != NULL ? ct_cuda_add(p->run, size_of(p, step->in), own, dx, own)
                                       : CT_OK;
}

static ct_status run_pool(const pass *p, const cuda_step *step) {
    ct_shape from = p->plan->base.graph->nodes[step->in].shape, to = step->node->shape;
    cuda_window window = {.c = from.c,
                          .hi = from.h,
                          .wi = from.w,
                          .ho = to.h,
                          .wo = to.w,
                          .kernel = step->node->kernel,
                          .stride = step->node->stride,
                          .pad = step->node->pad};
    if (step->op == CT_OP_AVGPOOL)
        return ct_cuda_avgpool_backward(p->run, p->plan->grad_element[step->in], from.c,
                                        from.h * from.w, grad(p, step->out), step->add_in,
                                        grad(p, step->in));
    return ct_cuda_maxpool_backward(p->run, step->forward_element, &window, value(p, step->in),
                                    grad(p, step->out), step->add_in, step->masked,
                                    grad(p, step->in));
}

/* The residual's share of the sum's gradient, unless both lie in the same place. */
static ct_status pass_residual(const pass *p, const cuda_step *step) {
    if (step->residual <= 0 || !step->copy_residual) return CT_OK;
    float *to = grad(p, step->residual);
    return ct_cuda_add(p->run, size_of(p, step->residual), step->add_residual ? to : NULL,
                       grad(p, step->out), to);
}

static ct_status run_step(const pass *p, const cuda_step *step) {
    CT_TRY(pass_residual(p, step));
    switch (step->op) {
    case CT_OP_CONV: return run_conv(p, step);
    case CT_OP_EVONORM:
    case CT_OP_EVONORM_S0:
    case CT_OP_GROUPNORM:
    case CT_OP_BATCHNORM: return run_norm(p, step);
    case CT_OP_RELU:
        if (step->in == 0) return CT_OK;
        return ct_cuda_relu_backward(p->run, size_of(p, step->out), value(p, step->out),
                                     grad(p, step->out), step->add_in, grad(p, step->in));
    case CT_OP_ADD:
        if (step->in == 0 || p->plan->root[step->in] == p->plan->root[step->out]) return CT_OK;
        return ct_cuda_add(p->run, size_of(p, step->in), step->add_in ? grad(p, step->in) : NULL,
                           grad(p, step->out), grad(p, step->in));
    case CT_OP_MAXPOOL:
    case CT_OP_AVGPOOL: return step->in == 0 || step->unpools ? CT_OK : run_pool(p, step);
    default: return CT_OK;
    }
}

/* A chain's data gradients, then its weight gradients; steps[0] is its first. */
static ct_status run_chain(const pass *p, const cuda_step *steps) {
    int n = steps[0].chain;
    size_t n_samples = (size_t)p->run->n_jobs * (size_t)p->run->n_max;
    int begin = steps[0].in == 0 ? 1 : 0; /* a picture's convolution has a shape of its own */
    bool is_bf16 = steps[0].forward_element == CUDA_BF16;
    const cuda_element *element = p->plan->grad_element;
    cuda_chain chain = {.n_links = n,
                        .element = steps[0].forward_element,
                        .d = grad(p, steps[n - 1].out),
                        .d_element = element[steps[n - 1].out]};
    if (begin == 1) chain.n_colours = steps[0].conv.ci;
    if (begin == 0) chain.dx = grad(p, steps[0].in), chain.dx_element = element[steps[0].in];
    if (steps[0].residual > 0) {
        chain.dresidual = grad(p, steps[0].residual);
        chain.dresidual_element = element[steps[0].residual];
    }
    for (int k = 0; k < n; k++) {
        const cuda_step *step = &steps[k];
        chain.links[k] =
            (cuda_link){.packed = step->backward,
                        .weight = step->norm_shape.weight,
                        .pre = value(p, step->inner),
                        .stats = cuda_tensor(p->run, p->w, p->plan->train.stats[step->out]),
                        .y = grad(p, step->inner),
                        .sums = p->run->sums_dev + step->sums * n_samples,
                        .add = step->residual > 0};
    }
    CT_TRY(ct_cuda_chain_backward(p->run, steps[0].conv.co, &chain));
    cuda_wgrad layers[CUDA_MAX_CHAIN];
    for (int k = 0; k < n; k++) layers[k] = wgrad_of(p, &steps[k], grad(p, steps[k].inner));
    CT_TRY(fork(p));
    ct_status (*wgrad)(const cuda_run *, const cuda_conv *, const cuda_wgrad *, int) =
        is_bf16 ? ct_cuda_bf16_wgrad : ct_cuda_tile_wgrad;
    CT_TRY(wgrad(p->late, &steps[begin].conv, layers + begin, n - begin));
    return begin == 1 ? wgrad(p->late, &steps[0].conv, layers, 1) : CT_OK;
}

/* A residual block's first convolution and its shortcut. */
static ct_status run_strided(const pass *p, const cuda_step *steps) {
    size_t n_samples = (size_t)p->run->n_jobs * (size_t)p->run->n_max;
    cuda_strided strided = {.dx = grad(p, steps[0].in)};
    cuda_wgrad layers[2];
    for (int k = 0; k < 2; k++) {
        const cuda_step *step = &steps[k];
        strided.dy[k] = grad(p, step->out);
        strided.links[k] =
            (cuda_link){.packed = step->backward,
                        .weight = step->norm_shape.weight,
                        .pre = value(p, step->inner),
                        .stats = cuda_tensor(p->run, p->w, p->plan->train.stats[step->out]),
                        .y = grad(p, step->inner),
                        .sums = p->run->sums_dev + step->sums * n_samples};
        layers[k] = wgrad_of(p, step, grad(p, step->inner));
    }
    CT_TRY(ct_cuda_strided_backward(p->run, steps[0].conv.ci, &strided));
    CT_TRY(fork(p));
    return ct_cuda_strided_wgrad(p->late, steps[0].conv.ci, layers);
}

static ct_status run_unit(const pass *p, int first, int last) {
    if (p->plan->steps[first].is_strided) return run_strided(p, &p->plan->steps[first]);
    return last > first || p->plan->steps[first].chain > 0 ? run_chain(p, &p->plan->steps[first])
                                                           : run_step(p, &p->plan->steps[first]);
}

/* Unit k of the pass, behind the weight gradients of unit k - CUDA_LAG - 1. */
static ct_status run_in_time(const pass *p, int k, int first, int last) {
    if (p->late == p->run) return run_unit(p, first, last);
    cudaEvent_t done = p->branches->late[k % (CUDA_LAG + 1)];
    if (k > CUDA_LAG) CT_CUDA_TRY(cudaStreamWaitEvent(p->run->stream, done, 0));
    CT_TRY(run_unit(p, first, last));
    CT_CUDA_TRY(cudaEventRecord(done, p->late->stream));
    return CT_OK;
}

ct_status ct_cuda_backward(const cuda_plan *plan, const cuda_run *run,
                           const cuda_branches *branches, const cuda_workspace *w) {
    cuda_run late = *run;
    late.stream = branches->wgrad;
    pass p = {.plan = plan,
              .run = run,
              .late = plan->is_single ? run : &late,
              .branches = branches,
              .w = w};
    CT_TRY(fork(&p));
    for (int last = plan->n_steps - 1, k = 0; last >= 0; k++) {
        int first = plan->steps[last].unit;
        CT_TRY(run_in_time(&p, k, first, last));
        last = first - 1;
    }
    if (!plan->is_single) CT_TRY(ct_cuda_follow(branches->join, late.stream, run->stream));
    return ct_cuda_sum_samples(run, plan->sums_dev, plan->n_sums, plan->n_sum_blocks);
}
