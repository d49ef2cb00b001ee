/* Which steps compute in bf16. Convolutions of conv_mma.cu and depthwise.cu and poolings have all
 * of their tensors in one element, norms have one for what they read and one for what they write,
 * the gradients there included. Each begins with bf16 and drops it where one of its tensors cannot
 * be stored so; what it drops may be another step's tensor, until nothing changes. */
#include "backend/cuda/cuda_internal.h"

static bool is_convolution(const cuda_step *step) {
    if (step->op != CT_OP_CONV || step->norm != NULL || step->relu || step->in == 0 ||
        step->node->bias != CT_NO_PARAM || step->conv.ci % 8 != 0 || step->conv.co % 8 != 0)
        return false;
    cuda_kernel kernel = step->forward_kernel;
    return (kernel == CUDA_MMA || kernel == CUDA_DEPTHWISE) && step->dgrad_kernel == kernel &&
           step->wgrad_kernel == kernel;
}

static bool is_pool(const cuda_step *step) {
    const ct_node *node = step->node;
    return step->op == CT_OP_MAXPOOL && step->in > 0 && node->kernel == 3 && node->stride == 2 &&
           node->pad == 1 && node->shape.c % 8 == 0;
}

static bool has_one_element(const cuda_step *step) {
    return is_convolution(step) || is_pool(step);
}

/* Norms that evonorm_group.cu computes; those that add to a gradient have it in floats. */
static bool is_norm(const cuda_step *step) {
    return step->op == CT_OP_EVONORM && step->norm_shape.channels % 8 == 0 && step->in > 0 &&
           !step->add_in && !step->copy_residual && ct_cuda_evonorm_group_fits(&step->norm_shape);
}

bool ct_cuda_takes_bf16(const cuda_step *step, cuda_role role) {
    if (has_one_element(step)) return step->forward_element == CUDA_BF16;
    if (step->op == CT_OP_AVGPOOL) return role == CUDA_ROLE_IN;
    if (!is_norm(step)) return false;
    return (role == CUDA_ROLE_IN ? step->forward_element : step->backward_element) == CUDA_BF16;
}

void ct_cuda_elements_begin(cuda_plan *plan) {
    for (int s = 0; s < plan->n_steps; s++) {
        cuda_step *step = &plan->steps[s];
        if (has_one_element(step) || is_norm(step))
            step->forward_element = step->backward_element = CUDA_BF16;
    }
}

static bool is_stored(const cuda_plan *plan, int value, int gradient) {
    return plan->value_element[value] == CUDA_BF16 && plan->grad_element[gradient] == CUDA_BF16;
}

static bool drop(cuda_element *element, bool is_bf16) {
    if (*element == CUDA_FP32 || is_bf16) return false;
    *element = CUDA_FP32;
    return true;
}

bool ct_cuda_elements_settle(cuda_plan *plan) {
    bool changed = false;
    for (int s = 0; s < plan->n_steps; s++) {
        cuda_step *step = &plan->steps[s];
        if (!has_one_element(step) && !is_norm(step)) continue;
        bool in = is_stored(plan, cuda_value_in(plan, step), step->in);
        bool out = is_stored(plan, step->out, step->out) &&
                   (step->residual < 0 || plan->value_element[step->residual] == CUDA_BF16);
        if (has_one_element(step)) in = out = in && out;
        changed |= drop(&step->forward_element, in);
        changed |= drop(&step->backward_element, out);
    }
    return changed;
}
