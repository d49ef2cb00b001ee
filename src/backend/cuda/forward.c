/* The steps of a plan, forward. */
#include "backend/cuda/cuda_internal.h"
#include "backend/cuda/mobilenetv2/mobilenetv2.h"

/* Convolution + EvoNorm, and the next step's with it where that is its twin. */
static ct_status run_conv_norm(const cuda_pass *p, const cuda_step *step) {
    cuda_tile_out outs[2];
    int n = step->has_twin ? 2 : 1;
    for (int k = 0; k < n; k++)
        outs[k] =
            (cuda_tile_out){.v = ct_cuda_tile_of(&step[k].conv, CUDA_FORWARD),
                            .packed = step[k].packed[CUDA_FORWARD],
                            .norm = step[k].norm_shape,
                            .residual = cuda_value(p, step[k].residual),
                            .pre = p->mode == CUDA_TRAIN ? cuda_value(p, step[k].inner) : NULL,
                            .stats = cuda_stats(p, &step[k]),
                            .y = cuda_value(p, step[k].out),
                            .y_element = p->plan->value_element[step[k].out]};
    return step->family[CUDA_FORWARD]->launch_norm(p->run, cuda_value(p, step->in), outs, n);
}

static ct_status run_conv(const cuda_pass *p, const cuda_step *step) {
    if (step->norm != NULL) return run_conv_norm(p, step);
    cuda_conv_call call = cuda_call_of(p, step);
    bool is_kept = step->pooled < 0 || p->mode == CUDA_TRAIN;
    call.packed = step->packed[CUDA_FORWARD];
    call.y = is_kept ? cuda_value(p, step->out) : NULL;
    call.relu = step->relu;
    call.pooled = cuda_value(p, step->pooled);
    call.measures = cuda_measures(p, step->n_segments);
    return step->family[CUDA_FORWARD]->launch[CUDA_FORWARD](p->run, &call);
}

static const cuda_norm_kernels *const norms[] = {
#define NORM(id) &ct_cuda_norm_##id,
#include "backend/cuda/norm_list.h"
#undef NORM
};

const cuda_norm_kernels *ct_cuda_norm_for(const cuda_norm_call *call, bool backward) {
    int k = 0;
    while (!norms[k]->fits(call, backward)) k++; /* the last ones fit everything */
    return norms[k];
}

cuda_norm_kind ct_cuda_norm_kind(ct_op op) {
    switch (op) {
    case CT_OP_EVONORM_S0: return CUDA_EVONORM_S0;
    case CT_OP_GROUPNORM: return CUDA_GROUPNORM;
    case CT_OP_BATCHNORM: return CUDA_BATCHNORM;
    default: return CUDA_EVONORM;
    }
}

static ct_status run_norm(const cuda_pass *p, const cuda_step *step) {
    const cuda_element *element = p->plan->value_element;
    cuda_norm_call call = {.kind = ct_cuda_norm_kind(step->op),
                           .norm = step->norm_shape,
                           .elements = {element[step->in], element[step->out]},
                           .mode = p->mode,
                           .buffer = step->node->buffer,
                           .x = cuda_value(p, step->in),
                           .added = cuda_value(p, step->residual),
                           .stats = cuda_stats(p, step),
                           .y = step->is_gate ? NULL : cuda_value(p, step->out),
                           .measures = cuda_measures(p, step->n_segments),
                           .n_segments = step->n_segments,
                           .segments = step->segments};
    if (step->n_segments > 0) call.scale = cuda_scale(p, step);
    return ct_cuda_norm_for(&call, false)->forward(p->run, &call);
}

static ct_status run_pool_gate(const cuda_pass *p, const cuda_step *step) {
    cuda_pool_call call = cuda_pool_call_of(p, step);
    call.y = cuda_value(p, step->out);
    return ct_cuda_pool_gate(p->run, &call);
}

static ct_status run_step(const cuda_pass *p, const cuda_step *step) {
    const ct_graph *g = p->plan->base.graph;
    if (ct_op_is_norm(step->op)) return run_norm(p, step);
    if (step->op == CT_OP_MAXPOOL && step->gate >= 0) return run_pool_gate(p, step);
    const float *x = cuda_value(p, step->in);
    float *y = cuda_value(p, step->out);
    ct_shape from = g->nodes[step->in].shape;
    cuda_window window = cuda_window_of(g, step);
    switch (step->op) {
    case CT_OP_CONV: return run_conv(p, step);
    case CT_OP_RELU: return ct_cuda_relu(p->run, ct_shape_size(from), x, y);
    case CT_OP_ADD:
        return ct_cuda_add(p->run, ct_shape_size(from), x, cuda_value(p, step->residual), y);
    case CT_OP_MAXPOOL: return ct_cuda_maxpool(p->run, step->forward_element, &window, x, y);
    case CT_OP_AVGPOOL:
        return ct_cuda_avgpool(p->run, p->plan->value_element[step->in], from.c, from.h * from.w, x,
                               y);
    default: return CT_OK;
    }
}

ct_status ct_cuda_forward(const cuda_plan *plan, const cuda_run *run, const cuda_layout *layout,
                          const cuda_workspace *w, cuda_mode mode, int n_steps) {
    cuda_pass p = {.plan = plan, .run = run, .layout = layout, .w = w, .mode = mode};
    for (int s = 0; s < n_steps; s++) {
        const cuda_step *step = &plan->steps[s];
        if (step->together != NULL) {
            CT_TRY(step->together->forward(&p, step));
            s += step->n_unit - 1;
            continue;
        }
        if (cuda_n_ahead(step, mode == CUDA_TRAIN) > 0) {
            CT_TRY(ct_cuda_run_block(&p, step));
            s += step->n_ahead - 1;
            continue;
        }
        CT_TRY(run_step(&p, step));
        if (step->pooled >= 0 || step->has_twin) s++;
    }
    return CT_OK;
}
