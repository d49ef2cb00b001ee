/* Pairs: a residual block's first convolution, which halves the picture, and its shortcut, in bf16.
 */
#include "backend/cuda/resnet20/resnet20.h"

static ct_status forward(const cuda_pass *p, const cuda_step *steps) {
    cuda_strided strided = {.x = cuda_value(p, steps[0].in)};
    for (int k = 0; k < 2; k++)
        strided.links[k] =
            (cuda_link){.packed = steps[k].packed[CUDA_FORWARD],
                        .weight = steps[k].norm_shape.weight,
                        .bias = steps[k].norm_shape.bias,
                        .pre = p->mode == CUDA_TRAIN ? cuda_value(p, steps[k].inner) : NULL,
                        .stats = cuda_stats(p, &steps[k]),
                        .y = cuda_value(p, steps[k].out)};
    return ct_cuda_strided_forward(p->run, steps[0].conv.ci, &strided);
}

static ct_status backward(const cuda_pass *p, const cuda_step *steps) {
    cuda_strided strided = {.dx = cuda_grad(p, steps[0].in)};
    cuda_wgrad layers[2];
    for (int k = 0; k < 2; k++) {
        strided.dy[k] = cuda_grad(p, steps[k].out);
        strided.links[k] = ct_cuda_back_link(p, &steps[k]);
        layers[k] = ct_cuda_wgrad_of(p, &steps[k]);
    }
    CT_TRY(ct_cuda_strided_backward(p->run, steps[0].conv.ci, &strided));
    CT_TRY(ct_cuda_late_follows(p));
    return ct_cuda_strided_wgrad(p->late, steps[0].conv.ci, layers);
}

static size_t partial(const cuda_step *steps, int n_most) {
    return ct_cuda_strided_partial(steps[0].conv.ci, n_most);
}

static const cuda_unit_kernels pair_kernels = {
    .forward = forward, .backward = backward, .partial = partial};

/* Steps s and s + 1 are a residual block's first convolution and its shortcut, with a kernel for
 * both, and nothing else reads their input. */
static bool is_pair(const cuda_plan *plan, int s) {
    const cuda_backend *backend = (const cuda_backend *)plan->base.backend;
    const cuda_step *conv = &plan->steps[s], *shortcut = conv + 1;
    return conv->has_twin && conv->in > 0 && conv->residual < 0 && shortcut->residual < 0 &&
           conv->family[CUDA_DGRAD] == &ct_cuda_tile &&
           shortcut->family[CUDA_DGRAD] == &ct_cuda_tile && conv->norm_shape.groups == 8 &&
           shortcut->norm_shape.groups == 8 && !shortcut->add_in &&
           ct_graph_n_consumers(plan->base.graph, conv->in) == 2 &&
           ct_cuda_strided_fits(&conv->conv, &shortcut->conv, backend->shared_limit);
}

/* Such a pair runs in bf16 if all of its tensors are stored so. */
static bool is_stored(const cuda_plan *plan, const cuda_step *step) {
    const int nodes[] = {step->in, step->inner, step->out};
    for (int i = 0; i < 3; i++)
        if (plan->value_element[nodes[i]] == CUDA_FP32 || plan->grad_element[nodes[i]] == CUDA_FP32)
            return false;
    return true;
}

static void set_pair(cuda_plan *plan, int s, bool is_it) {
    cuda_step *pair = &plan->steps[s];
    ct_cuda_set_unit(plan, s, 2, is_it ? &pair_kernels : NULL);
    for (int k = 0; k < 2; k++)
        pair[k].forward_element = pair[k].backward_element = is_it ? CUDA_BF16 : CUDA_FP32;
}

void ct_cuda_pairs_begin(cuda_plan *plan) {
    for (int s = 0; s + 1 < plan->n_steps; s++)
        if (is_pair(plan, s)) set_pair(plan, s, true);
}

bool ct_cuda_pairs_settle(cuda_plan *plan) {
    bool changed = false;
    for (int s = 0; s + 1 < plan->n_steps; s++) {
        const cuda_step *pair = &plan->steps[s];
        if (pair->together != &pair_kernels || (is_stored(plan, pair) && is_stored(plan, pair + 1)))
            continue;
        set_pair(plan, s, false);
        changed = true;
    }
    return changed;
}
