/* Which steps compute in bf16. Convolutions whose family has it and poolings have all of their
 * tensors in one element, norms have one for what they read and one for what they write,
 * the gradients there included. Each begins with bf16 and drops it where one of its tensors cannot
 * be stored so; what it drops may be another step's tensor, until nothing changes. */
#include "backend/cuda/cuda_internal.h"
#include "backend/cuda/resnet20/resnet20.h"
#include "backend/cuda/vgg11/vgg11.h"

static bool is_convolution(const cuda_step *step) {
    if (step->op != CT_OP_CONV || step->norm != NULL || step->relu || step->in == 0 ||
        step->node->bias != CT_NO_PARAM || step->conv.ci % 8 != 0 || step->conv.co % 8 != 0)
        return false;
    const cuda_family *family = step->family[CUDA_FORWARD];
    return family->has_bf16 && step->family[CUDA_DGRAD] == family &&
           step->family[CUDA_WGRAD] == family;
}

static bool is_pool(const cuda_step *step) {
    const ct_node *node = step->node;
    return step->op == CT_OP_MAXPOOL && step->in > 0 && node->kernel == 3 && node->stride == 2 &&
           node->pad == 1 && node->shape.c % 8 == 0;
}

/* A picture's convolution, whose output may be bf16. */
static bool is_stem(const cuda_step *step) {
    return step->op == CT_OP_CONV && step->norm == NULL && !step->relu && step->in == 0 &&
           step->node->bias == CT_NO_PARAM && step->family[CUDA_FORWARD]->ends_bf16 &&
           step->family[CUDA_WGRAD] == step->family[CUDA_FORWARD];
}

static bool has_one_element(const cuda_step *step) {
    return is_convolution(step) || is_pool(step);
}

/* Norms that evonorm_group.cu computes; those that add to a gradient have it in floats. */
static bool is_norm(const cuda_step *step) {
    return step->op == CT_OP_EVONORM && step->norm_shape.channels % 8 == 0 && step->in > 0 &&
           !step->add_in && !step->copy_residual && ct_cuda_evonorm_group_fits(&step->norm_shape);
}

/* Whether the kernels of step s can have this tensor, or its gradient, in bf16, as far as is known.
 */
static bool takes_bf16(const cuda_plan *plan, int s, cuda_role role, bool is_gradient) {
    const cuda_step *step = &plan->steps[s];
    if (plan->steps[step->unit].together != NULL || has_one_element(step))
        return step->forward_element == CUDA_BF16;
    if (step->norm != NULL) return role == CUDA_ROLE_OUT && !is_gradient; /* cuda_tile_out */
    if (step->op == CT_OP_AVGPOOL) return role == CUDA_ROLE_IN;
    if (is_stem(step)) return role == CUDA_ROLE_OUT && step->forward_element == CUDA_BF16;
    if (!is_norm(step)) return false;
    return (role == CUDA_ROLE_IN ? step->forward_element : step->backward_element) == CUDA_BF16;
}

static void begin(cuda_plan *plan) {
    for (int s = 0; s < plan->n_steps; s++) {
        cuda_step *step = &plan->steps[s];
        if (has_one_element(step) || is_norm(step) || is_stem(step))
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

static bool settle(cuda_plan *plan) {
    bool changed = false;
    for (int s = 0; s < plan->n_steps; s++) {
        cuda_step *step = &plan->steps[s];
        if (!has_one_element(step) && !is_norm(step) && !is_stem(step)) continue;
        bool in = is_stored(plan, cuda_value_in(plan, step), step->in);
        bool out = is_stored(plan, step->out, step->out) &&
                   (step->residual < 0 || plan->value_element[step->residual] == CUDA_BF16);
        if (has_one_element(step)) in = out = in && out;
        if (is_stem(step)) in = out;
        changed |= drop(&step->forward_element, in);
        changed |= drop(&step->backward_element, out);
    }
    return changed;
}

static int node_of(const cuda_plan *plan, const cuda_step *step, cuda_role role) {
    switch (role) {
    case CUDA_ROLE_IN: return cuda_value_in(plan, step);
    case CUDA_ROLE_RESIDUAL: return step->residual;
    case CUDA_ROLE_INNER: return step->inner;
    default: return step->out;
    }
}

/* Stored in bf16 is what every step that touches it can take so, but for the picture and what the
 * losses see. */
static void choose_stored(cuda_plan *plan) {
    const ct_graph *g = plan->base.graph;
    const int floats[] = {0, g->features, g->logits};
    for (int i = 0; i < g->n_nodes; i++) plan->value_element[i] = plan->grad_element[i] = CUDA_BF16;
    for (int i = 0; i < 3; i++)
        plan->value_element[floats[i]] = plan->grad_element[plan->root[floats[i]]] = CUDA_FP32;
    for (int s = 0; s < plan->n_steps; s++)
        for (int role = CUDA_ROLE_IN; role < CUDA_N_ROLES; role++) {
            const cuda_step *step = &plan->steps[s];
            int node = node_of(plan, step, (cuda_role)role);
            int with_gradient = role == CUDA_ROLE_IN ? step->in : node; /* not that of a gate */
            if (node < 0) continue;
            if (!takes_bf16(plan, s, (cuda_role)role, false)) plan->value_element[node] = CUDA_FP32;
            if (!takes_bf16(plan, s, (cuda_role)role, true))
                plan->grad_element[plan->root[with_gradient]] = CUDA_FP32;
        }
    for (int i = 0; i < g->n_nodes; i++) plan->grad_element[i] = plan->grad_element[plan->root[i]];
}

void ct_cuda_choose_elements(cuda_plan *plan) {
    if (plan->base.backend->precision != CT_PRECISION_BF16) return;
    ct_cuda_units_begin(plan);
    ct_cuda_stacks_begin(plan);
    begin(plan);
    for (bool changed = true; changed;) {
        choose_stored(plan);
        changed = settle(plan);
        changed |= ct_cuda_units_settle(plan);
    }
}
