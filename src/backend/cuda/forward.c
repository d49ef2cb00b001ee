/* The steps of a plan, forward. */
#include "backend/cuda/cuda_internal.h"

typedef struct pass {
    const cuda_plan *plan;
    const cuda_run *run;
    const cuda_layout *layout;
    const cuda_workspace *w;
    cuda_mode mode;
} pass;

static float *value(const pass *p, int node) {
    return node < 0 ? NULL : cuda_tensor(p->run, p->w, p->layout->value[node]);
}

static size_t bias_of(const pass *p, const cuda_step *step) {
    int bias = step->node->bias;
    return bias == CT_NO_PARAM ? CUDA_NO_PARAM : p->plan->base.graph->params[bias].offset;
}

static cuda_gate gate_of(const pass *p, const cuda_step *step) {
    if (step->gate < 0) return (cuda_gate){0};
    const cuda_step *norm = &p->plan->steps[step->gate];
    size_t at = p->layout->stats[norm->out] + cuda_scale_at(&norm->norm_shape);
    return (cuda_gate){.scale_dev = cuda_tensor(p->run, p->w, at), .bias = norm->norm_shape.bias};
}

static float *measures_of(const pass *p, const cuda_step *step) {
    return step->n_segments > 0 ? cuda_tensor(p->run, p->w, p->layout->measures) : NULL;
}

static ct_status run_mma(const pass *p, const cuda_step *step) {
    cuda_gate gate = gate_of(p, step);
    cuda_tile_conv tile = ct_cuda_tile_forward(&step->conv);
    cuda_finish finish = {
        .bias = bias_of(p, step), .relu = step->relu, .measures_dev = measures_of(p, step)};
    return ct_cuda_mma_conv(p->run, step->forward_element, &tile, &gate,
                            value(p, cuda_value_in(p->plan, step)), step->forward, &finish,
                            value(p, step->out));
}

static ct_status run_depthwise(const pass *p, const cuda_step *step) {
    cuda_gate gate = gate_of(p, step);
    return ct_cuda_depthwise_forward(p->run, step->forward_element, &step->conv, &gate,
                                     value(p, cuda_value_in(p->plan, step)),
                                     p->plan->base.graph->params[step->node->weight].offset,
                                     measures_of(p, step), value(p, step->out));
}

/* EvoNorm; where its input was measured, what is left of it. */
static ct_status run_evonorm(const pass *p, const cuda_step *step, float *stats) {
    const cuda_norm *norm = &step->norm_shape;
    const float *x = value(p, step->in), *residual = value(p, step->residual);
    cuda_elements elements = {p->plan->value_element[step->in], p->plan->value_element[step->out]};
    if (step->n_segments > 0) {
        size_t at = p->layout->stats[step->out] + cuda_scale_at(norm);
        float *scale = cuda_tensor(p->run, p->w, at);
        CT_TRY(ct_cuda_evonorm_join(p->run, norm, measures_of(p, step), step->n_segments, stats,
                                    scale));
        if (step->is_gate) return CT_OK;
        return ct_cuda_evonorm_apply(p->run, elements, norm, x, scale, residual,
                                     value(p, step->out));
    }
    if (ct_cuda_evonorm_group_fits(norm))
        return ct_cuda_evonorm_group_forward(p->run, elements, norm, x, residual, stats,
                                             value(p, step->out));
    return ct_cuda_evonorm_forward(p->run, norm, x, residual, stats, value(p, step->out));
}

static float *stats_of(const pass *p, const cuda_step *step) {
    /* only training keeps statistics */
    return p->mode == CUDA_TRAIN ? cuda_tensor(p->run, p->w, p->layout->stats[step->out]) : NULL;
}

static ct_status run_strided(const pass *p, const cuda_step *steps) {
    cuda_strided strided = {.x = value(p, steps[0].in)};
    for (int k = 0; k < 2; k++)
        strided.links[k] =
            (cuda_link){.packed = steps[k].forward,
                        .weight = steps[k].norm_shape.weight,
                        .bias = steps[k].norm_shape.bias,
                        .pre = p->mode == CUDA_TRAIN ? value(p, steps[k].inner) : NULL,
                        .stats = stats_of(p, &steps[k]),
                        .y = value(p, steps[k].out)};
    return ct_cuda_strided_forward(p->run, steps[0].conv.ci, &strided);
}

/* Convolution + EvoNorm, and the next step's with it where that is its twin. */
static ct_status run_conv_norm(const pass *p, const cuda_step *step) {
    if (step->is_strided) return run_strided(p, step);
    cuda_tile_out outs[2];
    int n = step->has_twin ? 2 : 1;
    for (int k = 0; k < n; k++)
        outs[k] = (cuda_tile_out){.v = ct_cuda_tile_forward(&step[k].conv),
                                  .packed = step[k].forward,
                                  .norm = step[k].norm_shape,
                                  .residual = value(p, step[k].residual),
                                  .pre = p->mode == CUDA_TRAIN ? value(p, step[k].inner) : NULL,
                                  .stats = stats_of(p, &step[k]),
                                  .y = value(p, step[k].out),
                                  .y_element = p->plan->value_element[step[k].out]};
    return ct_cuda_tile_evonorm(p->run, value(p, step->in), outs, n);
}

static ct_status run_conv(const pass *p, const cuda_step *step) {
    if (step->norm == NULL && step->forward_kernel == CUDA_MMA) return run_mma(p, step);
    if (step->forward_kernel == CUDA_DEPTHWISE) return run_depthwise(p, step);
    const float *x = value(p, step->in);
    float *y = value(p, step->out);
    if (step->norm != NULL) return run_conv_norm(p, step);
    if (step->forward_kernel == CUDA_NARROW) {
        cuda_tile_conv tile = ct_cuda_tile_forward(&step->conv);
        float *kept = step->pooled < 0 || p->mode == CUDA_TRAIN ? y : NULL;
        return ct_cuda_narrow_conv(p->run, &tile, step->conv.kh, step->conv.kw, x, NULL,
                                   step->forward, bias_of(p, step), step->relu, false, kept,
                                   value(p, step->pooled));
    }
    if (step->forward_kernel == CUDA_LINEAR)
        return ct_cuda_linear_forward(p->run, step->conv.ci, step->conv.co, x, step->forward,
                                      bias_of(p, step), step->relu, y);
    if (step->forward_kernel == CUDA_STEM)
        return ct_cuda_stem_forward(p->run, &step->conv, x,
                                    p->plan->base.graph->params[step->node->weight].offset,
                                    bias_of(p, step), step->relu, y);
    if (step->forward_kernel == CUDA_GROUPED)
        return ct_cuda_grouped_forward(p->run, &step->conv, x,
                                       p->plan->base.graph->params[step->node->weight].offset,
                                       bias_of(p, step), step->relu, y);
    return ct_cuda_conv_forward(p->run, &step->conv, x, step->forward, bias_of(p, step), step->relu,
                                y);
}

static cuda_window window_of(const ct_graph *g, const cuda_step *step) {
    ct_shape from = g->nodes[step->in].shape, to = step->node->shape;
    return (cuda_window){.c = from.c,
                         .hi = from.h,
                         .wi = from.w,
                         .ho = to.h,
                         .wo = to.w,
                         .kernel = step->node->kernel,
                         .stride = step->node->stride,
                         .pad = step->node->pad};
}

static ct_status run_step(const pass *p, const cuda_step *step) {
    const ct_graph *g = p->plan->base.graph;
    const cuda_norm *norm = &step->norm_shape;
    const float *x = value(p, step->in), *residual = value(p, step->residual);
    float *y = value(p, step->out);
    float *stats = stats_of(p, step);
    ct_shape from = g->nodes[step->in].shape;
    cuda_window window = window_of(g, step);
    switch (step->op) {
    case CT_OP_CONV: return run_conv(p, step);
    case CT_OP_EVONORM: return run_evonorm(p, step, stats);
    case CT_OP_EVONORM_S0: return ct_cuda_evonorm_forward(p->run, norm, x, residual, stats, y);
    case CT_OP_GROUPNORM: return ct_cuda_groupnorm_forward(p->run, norm, x, residual, stats, y);
    case CT_OP_BATCHNORM:
        return ct_cuda_batchnorm_forward(p->run, norm, p->mode, step->node->buffer, x, residual,
                                         stats, y);
    case CT_OP_RELU: return ct_cuda_relu(p->run, ct_shape_size(from), x, y);
    case CT_OP_ADD: return ct_cuda_add(p->run, ct_shape_size(from), x, residual, y);
    case CT_OP_MAXPOOL: return ct_cuda_maxpool(p->run, step->forward_element, &window, x, y);
    case CT_OP_AVGPOOL:
        return ct_cuda_avgpool(p->run, p->plan->value_element[step->in], from.c, from.h * from.w, x,
                               y);
    default: return CT_OK;
    }
}

static ct_status run_chain(const pass *p, const cuda_step *steps) {
    const cuda_step *last = &steps[steps[0].chain - 1];
    cuda_chain chain = {.n_links = steps[0].chain,
                        .element = steps[0].forward_element,
                        .y_element = p->plan->value_element[last->out],
                        .x = value(p, steps[0].in)};
    bool train = p->mode == CUDA_TRAIN;
    bool is_image = steps[0].in == 0;
    if (is_image) chain.n_colours = steps[0].conv.ci;
    chain.residual = value(p, steps[0].residual > 0 ? steps[0].residual : steps[0].in);
    for (int k = 0; k < chain.n_links; k++) {
        const cuda_step *step = &steps[k];
        cuda_link *link = &chain.links[k];
        *link = (cuda_link){.packed = step->forward,
                            .weight = step->norm_shape.weight,
                            .bias = step->norm_shape.bias,
                            .add = step->residual > 0};
        if (!train) {
            /* floats keep sums for the next block, one after the other in the last one's place */
            bool is_kept = chain.element == CUDA_FP32 && (link->add || (is_image && k == 0));
            if (is_kept || step == last) link->y = value(p, last->out);
            continue;
        }
        link->y = value(p, step->out);
        link->pre = value(p, step->inner);
        link->stats = cuda_tensor(p->run, p->w, p->layout->stats[step->out]);
    }
    return ct_cuda_chain_forward(p->run, steps[0].conv.co, &chain, train);
}

ct_status ct_cuda_forward(const cuda_plan *plan, const cuda_run *run, const cuda_layout *layout,
                          const cuda_workspace *w, cuda_mode mode, int n_steps) {
    pass p = {.plan = plan, .run = run, .layout = layout, .w = w, .mode = mode};
    for (int s = 0; s < n_steps; s++) {
        const cuda_step *step = &plan->steps[s];
        CT_TRY(step->chain > 0 ? run_chain(&p, step) : run_step(&p, step));
        if (step->chain > 0) s += step->chain - 1;
        if (step->pooled >= 0 || step->has_twin) s++;
    }
    return CT_OK;
}
