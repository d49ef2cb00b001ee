/* From nodes to steps. Neighbouring nodes become one step where the second only finishes what the
 * first computes: conv or linear + relu, norm + add, and, where a kernel keeps whole samples in
 * shared memory, conv + EvoNorm (+ add). Steps that take the same samples from one to the next
 * become a unit: one launch (resnet20/). */
#include "backend/cuda/cuda_internal.h"

#include "backend/cuda/lenet5/lenet5.h"
#include "backend/cuda/mobilenetv2/mobilenetv2.h"
#include "backend/cuda/resnet20/resnet20.h"
#include "util/memory.h"

static cuda_conv conv_of(const ct_graph *g, const ct_node *node) {
    ct_shape from = g->nodes[node->in[0]].shape, to = node->shape;
    if (node->op == CT_OP_LINEAR)
        return (cuda_conv){.ci = (int)ct_shape_size(from),
                           .hi = 1,
                           .wi = 1,
                           .co = to.c,
                           .ho = 1,
                           .wo = 1,
                           .kh = 1,
                           .kw = 1,
                           .stride = 1,
                           .groups = 1,
                           .weight_ci = from.c,
                           .weight_taps = from.h * from.w};
    return (cuda_conv){.ci = from.c,
                       .hi = from.h,
                       .wi = from.w,
                       .co = to.c,
                       .ho = to.h,
                       .wo = to.w,
                       .kh = node->kernel,
                       .kw = node->kernel,
                       .stride = node->stride,
                       .pad = node->pad,
                       .groups = node->groups,
                       .weight_ci = from.c / node->groups,
                       .weight_taps = node->kernel * node->kernel};
}

static cuda_norm norm_of(const cuda_plan *plan, const ct_node *node) {
    return (cuda_norm){.channels = node->shape.c,
                       .groups = node->groups,
                       .pixels = node->shape.h * node->shape.w,
                       .weight = cuda_param(plan, node->weight),
                       .bias = cuda_param(plan, node->bias),
                       .slope = cuda_param(plan, node->slope)};
}

cuda_tile_conv ct_cuda_tile_of(const cuda_conv *c, cuda_direction direction) {
    bool is_forward = direction == CUDA_FORWARD;
    int ci = is_forward ? c->ci : c->co;
    return (cuda_tile_conv){.ci = ci,
                            .depth = (ci + 7) / 8 * 8,
                            .hi = is_forward ? c->hi : c->ho,
                            .wi = is_forward ? c->wi : c->wo,
                            .co = is_forward ? c->co : c->ci,
                            .ho = is_forward ? c->ho : c->hi,
                            .wo = is_forward ? c->wo : c->wi,
                            .kernel = c->kh,
                            .scale = is_forward ? c->stride : 1,
                            .sign = is_forward ? 1 : -1,
                            .shift = is_forward ? -c->pad : c->pad,
                            .step = is_forward ? 1 : c->stride};
}

bool ct_cuda_is_pointwise(const cuda_conv *c) {
    return c->kh == 1 && c->kw == 1 && c->stride == 1 && c->pad == 0;
}

size_t ct_cuda_split_floats(const cuda_conv *c, int n_splits) {
    return (size_t)c->co * (size_t)c->weight_ci * (size_t)c->weight_taps * (size_t)n_splits;
}

static const cuda_family *const families[] = {
#define KERNELS(id) &ct_cuda_##id,
#include "backend/cuda/kernel_list.h"
#undef KERNELS
};

static const cuda_family *choose(const cuda_problem *problem, cuda_direction direction) {
    int k = 0;
    while (!families[k]->fits(problem, direction)) k++; /* the last one fits everything */
    return families[k];
}

/* The family that has EvoNorm behind a convolution, unless one before it has the convolution alone.
 */
static const cuda_family *choose_fused(const cuda_problem *problem) {
    for (int k = 0; !families[k]->fits(problem, CUDA_FORWARD); k++)
        if (families[k]->fuses_norm != NULL && families[k]->fuses_norm(problem)) return families[k];
    return NULL;
}

static cuda_problem problem_of(const cuda_plan *plan, const cuda_step *step) {
    const cuda_backend *backend = (const cuda_backend *)plan->base.backend;
    return (cuda_problem){.conv = step->conv,
                          .is_linear = step->node->op == CT_OP_LINEAR,
                          .has_bias = step->node->bias != CT_NO_PARAM,
                          .rounds = cuda_rounds(backend),
                          .is_hopper = backend->is_hopper,
                          .is_first = step->in == 0 && step->residual != 0 &&
                                      ct_graph_n_consumers(plan->base.graph, 0) == 1,
                          .shared_limit = backend->shared_limit};
}

static void choose_families(cuda_step *step, const cuda_problem *problem) {
    for (int d = 0; d < CUDA_N_DIRECTIONS; d++)
        step->family[d] = choose(problem, (cuda_direction)d);
}

/* Conv, EvoNorm behind it, and the addition behind that; returns the last node taken. */
static int fuse_conv(cuda_plan *plan, cuda_step *step, int i) {
    const ct_graph *g = plan->base.graph;
    step->op = CT_OP_CONV;
    step->conv = conv_of(g, step->node);
    cuda_problem problem = problem_of(plan, step);
    choose_families(step, &problem);
    if (!ct_graph_is_inner(g, i)) return i;
    const ct_node *next = &g->nodes[i + 1];
    if (next->op == CT_OP_RELU) {
        step->relu = true;
        return i + 1;
    }
    const cuda_family *fused = next->op == CT_OP_EVONORM ? choose_fused(&problem) : NULL;
    if (fused == NULL) return i;
    step->family[CUDA_FORWARD] = fused;
    step->norm = next;
    step->norm_shape = norm_of(plan, next);
    step->inner = i;
    return i + 1;
}

/* The addition behind a norm at node i. */
static int fuse_add(const ct_graph *g, cuda_step *step, int i) {
    if (!ct_graph_is_inner(g, i) || g->nodes[i + 1].op != CT_OP_ADD) return i;
    const ct_node *next = &g->nodes[i + 1];
    step->residual = next->in[0] == i ? next->in[1] : next->in[0];
    return i + 1;
}

static bool pools(const cuda_step *conv, cuda_direction direction) {
    const cuda_family *family = conv->family[direction];
    return family->pools != NULL && family->pools(&conv->conv, direction);
}

/* A pooling that alone reads a convolution + ReLU: it can be computed with it, and its gradient be
 * that of the ReLU's input. */
static void fuse_pool(cuda_plan *plan, int s) {
    cuda_step *conv = &plan->steps[s - 1], *pool = &plan->steps[s];
    conv->pooled = -1;
    if (pool->op != CT_OP_MAXPOOL || conv->op != CT_OP_CONV || !conv->relu ||
        pool->in != conv->out || ct_graph_n_consumers(plan->base.graph, conv->out) != 1 ||
        conv->out == plan->base.graph->features)
        return;
    conv->masked = pool->masked = true;
    const ct_node *node = pool->node;
    if (node->kernel == 2 && node->stride == 2 && node->pad == 0 && pools(conv, CUDA_FORWARD))
        conv->pooled = pool->out;
    if (conv->pooled >= 0 && pools(conv, CUDA_WGRAD) && (conv->in == 0 || pools(conv, CUDA_DGRAD)))
        conv->unpools = pool->unpools = true;
}

/* A linear layer that alone reads a convolution's or linear layer's ReLU gives the gradient of the
 * ReLU's input. */
static void fuse_mask(cuda_plan *plan, int s) {
    cuda_step *before = &plan->steps[s - 1], *step = &plan->steps[s];
    if (step->op != CT_OP_CONV || !step->family[CUDA_DGRAD]->masks || !before->relu ||
        before->op != CT_OP_CONV || before->masked || before->out != step->in ||
        ct_graph_n_consumers(plan->base.graph, step->in) != 1)
        return;
    before->masked = step->masks_in = true;
}

static void find_twins(cuda_plan *plan) {
    for (int s = 0; s + 1 < plan->n_steps; s++) {
        cuda_step *a = &plan->steps[s], *b = a + 1;
        a->has_twin = a->norm != NULL && b->norm != NULL && a->in == b->in &&
                      a->conv.co == b->conv.co && a->conv.ho == b->conv.ho &&
                      a->conv.wo == b->conv.wo && a->out != b->residual;
        if (a->has_twin) s++;
    }
}

/* Where weight gradients and data gradients are one kernel, it runs on the main stream, and all
 * weight gradients share one place for partial sums. */
static void find_single(cuda_plan *plan) {
    for (int s = 0; s < plan->n_steps; s++)
        if (plan->steps[s].op == CT_OP_CONV && plan->steps[s].family[CUDA_WGRAD]->is_joint)
            plan->is_single = true;
}

/* Which gradients are there already when a step's backward adds to them, and which nodes' gradients
 * may lie in the same place: a residual's first gradient is that of the sum. */
static void plan_gradients(cuda_plan *plan, bool *has) {
    const ct_graph *g = plan->base.graph;
    for (int i = 0; i < g->n_nodes; i++) plan->root[i] = i;
    has[g->features] = has[g->logits] = true;
    for (int s = plan->n_steps - 1; s >= 0; s--) {
        cuda_step *step = &plan->steps[s];
        if (step->op == CT_OP_ADD && step->in > 0 && !has[step->in]) {
            plan->root[step->in] = plan->root[step->out];
            has[step->in] = true;
            step->copy_residual = step->residual > 0;
            step->add_residual = step->residual > 0 && has[step->residual];
            if (step->residual > 0) has[step->residual] = true;
            continue;
        }
        if (step->residual > 0) {
            step->copy_residual = has[step->residual] || step->op == CT_OP_ADD;
            step->add_residual = has[step->residual];
            if (!step->copy_residual) plan->root[step->residual] = plan->root[step->out];
            has[step->residual] = true;
        }
        step->add_in = has[step->in];
        has[step->in] = true;
    }
}

/* Segments of a sample that a convolution can measure on its way, if any. */
static cuda_segments segments_of(const cuda_step *step) {
    if (step->op != CT_OP_CONV || step->norm != NULL || step->relu ||
        step->node->bias != CT_NO_PARAM || step->family[CUDA_FORWARD]->segments == NULL)
        return (cuda_segments){0};
    return step->family[CUDA_FORWARD]->segments(&step->conv);
}

/* Convolutions that measure their output for the EvoNorm behind them. */
static void plan_measures(cuda_plan *plan) {
    const cuda_backend *backend = (const cuda_backend *)plan->base.backend;
    for (int s = 0; cuda_rounds(backend) && s + 1 < plan->n_steps; s++) {
        cuda_step *conv = &plan->steps[s], *norm = &plan->steps[s + 1];
        if (norm->op != CT_OP_EVONORM || norm->in != conv->out) continue;
        norm->segments = segments_of(conv);
        conv->n_segments = norm->n_segments = norm->segments.n;
    }
}

static bool applies_gates(const cuda_plan *plan, const cuda_step *step) {
    cuda_window window = cuda_window_of(plan->base.graph, step);
    if (step->op == CT_OP_MAXPOOL) return ct_cuda_pool_gates(&window);
    if (step->op != CT_OP_CONV || step->norm != NULL) return false;
    const cuda_family *family = step->family[CUDA_FORWARD];
    return family == step->family[CUDA_WGRAD] && family->gates != NULL &&
           family->gates(&step->conv);
}

/* EvoNorms with a single reader that can apply them to what it reads. Readers load the bias in
 * quads. */
static void plan_gates(cuda_plan *plan) {
    const ct_graph *g = plan->base.graph;
    for (int s = 0; s < plan->n_steps; s++) {
        cuda_step *norm = &plan->steps[s];
        bool is_single = norm->out != g->features && ct_graph_n_consumers(g, norm->out) == 1;
        if (norm->op != CT_OP_EVONORM || norm->n_segments == 0 || norm->residual >= 0 ||
            !is_single || norm->norm_shape.bias % 4 != 0)
            continue;
        for (int k = s + 1; k < plan->n_steps; k++) {
            cuda_step *reader = &plan->steps[k];
            if (reader->in != norm->out || !applies_gates(plan, reader)) continue;
            norm->is_gate = true;
            reader->gate = s;
        }
    }
}

/* Segments for which a convolution, or a pooling, leaves sums of the gradient it writes; 0: none. */
static int n_parts(const cuda_plan *plan, const cuda_step *step) {
    cuda_window window = cuda_window_of(plan->base.graph, step);
    if (step->op == CT_OP_MAXPOOL && step->gate >= 0) return ct_cuda_pool_parts(&window);
    if (step->op != CT_OP_CONV || step->norm != NULL) return 0;
    const cuda_family *family = step->family[CUDA_DGRAD];
    return family->parts == NULL ? 0 : family->parts(&step->conv, step->gate >= 0, step->add_in);
}

/* EvoNorms whose first reader, which is the last one to write their output's gradient, takes the
 * sums that their backward pass begins with. */
static void plan_parts(cuda_plan *plan) {
    for (int s = 0; s + 1 < plan->n_steps; s++) {
        cuda_step *norm = &plan->steps[s], *reader = norm + 1;
        if (norm->op == CT_OP_EVONORM && reader->in == norm->out && norm->in > 0 &&
            ct_cuda_evonorm_finish_fits(&norm->norm_shape))
            norm->n_parts = reader->n_parts = n_parts(plan, reader);
    }
}

/* Convolutions that turned out to compute in bf16 may have kernels that know nothing else. */
static void choose_again(cuda_plan *plan) {
    for (int s = 0; s < plan->n_steps; s++) {
        cuda_step *step = &plan->steps[s];
        if (step->op != CT_OP_CONV || step->forward_element != CUDA_BF16 || step->gate >= 0 ||
            plan->steps[step->unit].together != NULL)
            continue;
        cuda_problem problem = problem_of(plan, step);
        problem.element = CUDA_BF16;
        choose_families(step, &problem);
        const cuda_family *family = step->family[CUDA_FORWARD];
        if (family->pairs != NULL) plan->pairs = family->pairs(&step->conv);
    }
    plan_measures(plan);
    plan_parts(plan);
}

ct_status ct_cuda_compile(cuda_plan *plan) {
    const ct_graph *g = plan->base.graph;
    CT_SCOPED_BLOCK(bool) has = NULL;
    CT_TRY(ct_make(&has, (size_t)g->n_nodes, g->model));
    CT_TRY(ct_make(&plan->steps, (size_t)g->n_nodes, g->model));
    CT_TRY(ct_make(&plan->root, (size_t)g->n_nodes, g->model));
    CT_TRY(ct_make(&plan->value_element, 2 * (size_t)g->n_nodes, g->model));
    for (int i = 1; i < g->n_nodes; i++) {
        const ct_node *node = &g->nodes[i];
        cuda_step *step = &plan->steps[plan->n_steps++];
        *step = (cuda_step){.op = node->op,
                            .node = node,
                            .in = node->in[0],
                            .residual = node->in[1],
                            .inner = -1,
                            .gate = -1};
        if (node->op == CT_OP_CONV || node->op == CT_OP_LINEAR) {
            i = fuse_conv(plan, step, i);
            if (step->norm != NULL) i = fuse_add(g, step, i);
        } else if (ct_op_is_norm(node->op)) {
            step->norm_shape = norm_of(plan, node);
            i = fuse_add(g, step, i);
        }
        step->out = i;
        if (step->out <= g->features) plan->n_feature_steps = plan->n_steps;
    }
    for (int s = 1; s < plan->n_steps; s++) fuse_pool(plan, s);
    for (int s = 1; s < plan->n_steps; s++) fuse_mask(plan, s);
    plan->steps[plan->n_steps - 1].pooled = -1;
    ct_cuda_find_chains(plan);
    ct_cuda_find_lenet(plan);
    find_twins(plan);
    find_single(plan);
    plan_measures(plan);
    plan_gates(plan);
    plan_gradients(plan, has);
    plan->grad_element = plan->value_element + g->n_nodes;
    plan_parts(plan);
    ct_cuda_choose_elements(plan);
    choose_again(plan);
    ct_cuda_find_blocks(plan);
    return CT_OK;
}
