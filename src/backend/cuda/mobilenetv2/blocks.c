/* MobileNet-V2's blocks, found in a plan and run. */
#include "backend/cuda/mobilenetv2/mobilenetv2.h"

enum { N_STEPS = 6 };  /* three convolutions, each with its norm behind it */
enum { N_ALL = 8 };    /* and a shortcut's, which adds the others' output */
enum { N_MIDDLE = 4 }; /* of them, from the first norm to the projection */

static cuda_block_norm norm_of(const cuda_pass *p, const cuda_step *conv, bool is_gate) {
    const cuda_step *norm = conv + 1;
    cuda_block_norm n = {.weight = norm->norm_shape.weight, .bias = norm->norm_shape.bias};
    if (p->mode != CUDA_TRAIN) return n;
    n.pre = cuda_value(p, conv->out);
    n.stats = cuda_stats(p, norm);
    if (is_gate) n.scale = cuda_scale(p, norm);
    return n;
}

static cuda_block_shape shape_of(const cuda_step *steps) {
    const cuda_conv *depthwise = &steps[2].conv;
    return (cuda_block_shape){.size = depthwise->hi,
                              .stride = depthwise->stride,
                              .ci = steps[0].conv.ci,
                              .wide = depthwise->ci,
                              .co = steps[4].conv.co};
}

ct_status ct_cuda_run_block(const cuda_pass *p, const cuda_step *steps) {
    cuda_block block = {.shape = shape_of(steps),
                        .expand = steps[0].rows.at,
                        .project = steps[4].rows.at,
                        .depthwise = cuda_param(p->plan, steps[2].node->weight),
                        .x = cuda_value(p, steps[0].in),
                        .y = cuda_value(p, steps[steps[0].n_ahead - 1].out),
                        .adds = steps[5].residual >= 0,
                        .has_shortcut = steps[0].n_ahead == N_ALL};
    if (block.has_shortcut) block.shortcut = steps[6].rows.at;
    for (int k = 0; k < steps[0].n_ahead / 2; k++)
        block.norms[k] = norm_of(p, &steps[2 * k], k < 2);
    return ct_cuda_block_forward(p->run, &block);
}

/* Of the middle's steps: norm, 3x3 convolution, norm, projection. */
static cuda_block_shape middle_shape(const cuda_step *steps) {
    const cuda_conv *conv = &steps[1].conv;
    return (cuda_block_shape){
        .size = conv->hi, .stride = conv->stride, .wide = conv->ci, .co = steps[3].conv.co};
}

size_t ct_cuda_step_partial(const cuda_step *last, int n_max, int n_most) {
    cuda_block_shape shape = middle_shape(last - N_MIDDLE + 1);
    const cuda_family *family = last->family[CUDA_WGRAD];
    size_t own = ct_cuda_middle_partial(&shape, n_max);
    size_t n = family->partial != NULL ? family->partial(&last->conv, n_max, n_most) : 0;
    return n > own ? n : own;
}

ct_status ct_cuda_run_middle(const cuda_pass *p, const cuda_step *last) {
    const cuda_step *steps = last - N_MIDDLE + 1;
    size_t n_samples = (size_t)p->run->n_jobs * (size_t)p->run->n_max;
    cuda_middle middle = {.shape = middle_shape(steps),
                          .depthwise = cuda_param(p->plan, steps[1].node->weight),
                          .project = last->rows.at,
                          .dy = cuda_grad(p, last->out),
                          .dx = cuda_grad(p, steps[0].in)};
    for (int k = 0; k < 2; k++) {
        const cuda_step *norm = &steps[2 * k];
        middle.norms[k] = (cuda_block_norm){.weight = norm->norm_shape.weight,
                                            .bias = norm->norm_shape.bias,
                                            .pre = cuda_value(p, norm->in),
                                            .stats = cuda_stats(p, norm)};
        middle.sums[k] = p->run->sums_dev + norm->sums * n_samples;
    }
    CT_TRY(ct_cuda_weights_backward(p, last, cuda_grad(p, last->out)));
    return ct_cuda_middle_backward(p->run, &middle, &steps[1].conv, middle.depthwise);
}

/* ---- finding them ---- */

/* A convolution in bf16 and the EvoNorm that alone reads it. */
static bool is_pair(const cuda_plan *plan, int s) {
    const cuda_step *conv = &plan->steps[s], *norm = conv + 1;
    return conv->op == CT_OP_CONV && conv->norm == NULL && !conv->relu && conv->n_segments > 0 &&
           conv->node->bias == CT_NO_PARAM && conv->forward_element == CUDA_BF16 &&
           norm->op == CT_OP_EVONORM && norm->in == conv->out && norm->norm_shape.groups == 8 &&
           norm->norm_shape.weight % 2 == 0 && norm->norm_shape.bias % 2 == 0;
}

static bool is_block(const cuda_plan *plan, int s) {
    if (s + N_STEPS > plan->n_steps || plan->steps[s].in <= 0) return false;
    for (int k = 0; k < N_STEPS; k += 2)
        if (!is_pair(plan, s + k)) return false;
    const cuda_step *steps = &plan->steps[s];
    const cuda_conv *depthwise = &steps[2].conv;
    return ct_cuda_is_pointwise(&steps[0].conv) && ct_cuda_is_pointwise(&steps[4].conv) &&
           steps[2].family[CUDA_FORWARD] == &ct_cuda_depthwise && plan->is_single &&
           !steps[1].add_in && !steps[2].add_in && !steps[3].add_in && !steps[4].add_in &&
           depthwise->hi == depthwise->wi && cuda_param(plan, steps[2].node->weight) % 2 == 0 &&
           steps[0].gate < 0 && steps[2].gate == s + 1 && steps[4].gate == s + 3 &&
           (steps[5].residual < 0 || steps[5].residual == steps[0].in) &&
           plan->value_element[steps[5].out] == CUDA_BF16;
}

/* A shortcut behind the block at step s, of other channels than its input, that alone reads its
 * output. */
static bool has_shortcut(const cuda_plan *plan, int s) {
    const ct_graph *g = plan->base.graph;
    const cuda_step *steps = &plan->steps[s];
    if (s + N_ALL > plan->n_steps || !is_pair(plan, s + N_STEPS)) return false;
    const cuda_conv *conv = &steps[6].conv;
    return steps[2].conv.stride == 1 && conv->ci != conv->co && ct_cuda_is_pointwise(conv) &&
           steps[6].in == steps[0].in && steps[6].gate < 0 && steps[5].residual < 0 &&
           steps[7].residual == steps[5].out && steps[5].out != g->features &&
           ct_graph_n_consumers(g, steps[5].out) == 1 &&
           plan->value_element[steps[7].out] == CUDA_BF16;
}

void ct_cuda_find_blocks(cuda_plan *plan) {
    const cuda_backend *backend = (const cuda_backend *)plan->base.backend;
    for (int s = 0; s < plan->n_steps; s++) {
        cuda_step *steps = &plan->steps[s];
        if (!is_block(plan, s)) continue;
        cuda_block_shape shape = shape_of(steps);
        cuda_block_part part = ct_cuda_block_part(&shape, backend->shared_limit);
        if (part.channels == 0) continue;
        steps[0].rows.part = steps[0].rows.room = shape.ci;
        steps[4].rows.part = part.channels, steps[4].rows.room = part.room;
        int n_steps = has_shortcut(plan, s) ? N_ALL : N_STEPS;
        if (n_steps == N_ALL) steps[6].rows.part = steps[6].rows.room = shape.ci;
        steps[0].n_ahead = n_steps;
        for (int k = 0; k < n_steps; k++) steps[k].trains_ahead = part.trains;
        if (ct_cuda_middle_fits(&shape, backend->shared_limit)) {
            steps[4].n_behind = N_MIDDLE; /* which takes its own sums of gradients */
            for (int k = 1; k < 5; k++) steps[k].n_parts = 0;
        }
        s += n_steps - 1;
    }
}
