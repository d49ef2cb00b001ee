/* From nodes to steps. Neighbouring nodes become one step where the second only finishes what the
 * first computes: conv or linear + relu, norm + add, and, where a kernel keeps whole samples in
 * shared memory, conv + EvoNorm (+ add). Steps that take the same samples from one to the next
 * become a chain: one launch. */
#include "backend/cuda/cuda_internal.h"

#include "util/memory.h"

static size_t offset_of(const ct_graph *g, int param) {
    return param == CT_NO_PARAM ? CUDA_NO_PARAM : g->params[param].offset;
}

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

static cuda_norm norm_of(const ct_graph *g, const ct_node *node) {
    return (cuda_norm){.channels = node->shape.c,
                       .groups = node->groups,
                       .pixels = node->shape.h * node->shape.w,
                       .weight = offset_of(g, node->weight),
                       .bias = offset_of(g, node->bias),
                       .slope = offset_of(g, node->slope)};
}

cuda_tile_conv ct_cuda_tile_forward(const cuda_conv *c) {
    return (cuda_tile_conv){.ci = c->ci,
                            .depth = (c->ci + 7) / 8 * 8,
                            .hi = c->hi,
                            .wi = c->wi,
                            .co = c->co,
                            .ho = c->ho,
                            .wo = c->wo,
                            .kernel = c->kh,
                            .scale = c->stride,
                            .sign = 1,
                            .shift = -c->pad,
                            .step = 1};
}

cuda_tile_conv ct_cuda_tile_backward(const cuda_conv *c) {
    return (cuda_tile_conv){.ci = c->co,
                            .depth = (c->co + 7) / 8 * 8,
                            .hi = c->ho,
                            .wi = c->wo,
                            .co = c->ci,
                            .ho = c->hi,
                            .wo = c->wi,
                            .kernel = c->kh,
                            .scale = 1,
                            .sign = -1,
                            .shift = c->pad,
                            .step = c->stride};
}

static bool has_tiles(const cuda_plan *plan, const cuda_conv *conv, cuda_tile_conv tile,
                      bool norm) {
    const cuda_backend *backend = (const cuda_backend *)plan->base.backend;
    return cuda_rounds(backend) && conv->groups == 1 && conv->kh == conv->kw &&
           ct_cuda_tile_fits(&tile, norm, backend->shared_limit);
}

static bool is_pointwise(const cuda_conv *c) {
    return c->kh == 1 && c->kw == 1 && c->stride == 1 && c->pad == 0;
}

/* Kernels in the order of preference; the forward one may still become conv + EvoNorm. */
static void choose_kernels(const cuda_plan *plan, cuda_step *step) {
    const cuda_backend *backend = (const cuda_backend *)plan->base.backend;
    const cuda_conv *c = &step->conv;
    cuda_tile_conv forward = ct_cuda_tile_forward(c), backward = ct_cuda_tile_backward(c);
    int taps = c->kh * c->kw;
    if (c->groups > 1) {
        bool fast = step->node->bias == CT_NO_PARAM && ct_cuda_depthwise_fits(c);
        step->forward_kernel = fast ? CUDA_DEPTHWISE : CUDA_GROUPED;
        step->dgrad_kernel = step->wgrad_kernel =
            fast && ct_cuda_depthwise_back_fits(c) ? CUDA_DEPTHWISE : CUDA_GROUPED;
        return;
    }
    bool is_linear = step->node->op == CT_OP_LINEAR;
    if (cuda_rounds(backend) && !is_linear && c->kh == c->kw) {
        if (ct_cuda_mma_fits(&forward)) step->forward_kernel = CUDA_MMA;
        if (ct_cuda_mma_fits(&backward)) step->dgrad_kernel = CUDA_MMA;
        if (ct_cuda_mma_wgrad_fits(c)) step->wgrad_kernel = CUDA_MMA;
        if (step->forward_kernel == CUDA_MMA && is_pointwise(c)) return;
    }
    if (is_linear) {
        step->forward_kernel = step->dgrad_kernel = step->wgrad_kernel = CUDA_LINEAR;
        return;
    }
    if (ct_cuda_narrow_fits(&forward, taps)) step->forward_kernel = CUDA_NARROW;
    if (ct_cuda_narrow_fits(&backward, taps)) step->dgrad_kernel = CUDA_NARROW;
    if (ct_cuda_narrow_wgrad_fits(c)) step->wgrad_kernel = CUDA_NARROW;
    if (cuda_rounds(backend) && ct_cuda_stem_fits(c, backend->shared_limit)) {
        if (step->forward_kernel == CUDA_GENERAL) step->forward_kernel = CUDA_STEM;
        if (step->wgrad_kernel == CUDA_GENERAL) step->wgrad_kernel = CUDA_STEM;
    }
    if (has_tiles(plan, c, backward, false)) step->dgrad_kernel = CUDA_TILE;
    if (cuda_rounds(backend) && ct_cuda_tile_wgrad_fits(c, backend->shared_limit))
        step->wgrad_kernel = CUDA_TILE;
}

/* Conv, EvoNorm behind it, and the addition behind that; returns the last node taken. */
static int fuse_conv(cuda_plan *plan, cuda_step *step, int i) {
    const ct_graph *g = plan->base.graph;
    step->op = CT_OP_CONV;
    step->conv = conv_of(g, step->node);
    choose_kernels(plan, step);
    if (!ct_graph_is_inner(g, i)) return i;
    const ct_node *next = &g->nodes[i + 1];
    if (next->op == CT_OP_RELU) {
        step->relu = true;
        return i + 1;
    }
    if (next->op != CT_OP_EVONORM || step->node->bias != CT_NO_PARAM ||
        (step->forward_kernel == CUDA_MMA && is_pointwise(&step->conv)) ||
        !has_tiles(plan, &step->conv, ct_cuda_tile_forward(&step->conv), true))
        return i;
    step->forward_kernel = CUDA_TILE;
    step->norm = next;
    step->norm_shape = norm_of(g, next);
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

/* A shortcut of its own, computed last, has the addition: let the block's second convolution have
 * it, as in the other blocks. The sum of two is the same either way. */
static void move_addition(cuda_plan *plan, int s) {
    cuda_step *block = &plan->steps[s - 1], *shortcut = &plan->steps[s];
    if (shortcut->norm == NULL || block->norm == NULL || block->residual >= 0 ||
        shortcut->residual != block->out)
        return;
    cuda_step first = *shortcut, second = *block;
    second.out = first.out;
    first.out = first.inner + 1; /* its norm */
    first.residual = -1;
    second.residual = first.out;
    plan->steps[s - 1] = first;
    plan->steps[s] = second;
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
    cuda_tile_conv tile = ct_cuda_tile_forward(&conv->conv);
    const ct_node *node = pool->node;
    if (conv->forward_kernel == CUDA_NARROW && node->kernel == 2 && node->stride == 2 &&
        node->pad == 0 && ct_cuda_narrow_pools(&tile, conv->conv.kh, conv->conv.kw))
        conv->pooled = pool->out;
    cuda_tile_conv back = ct_cuda_tile_backward(&conv->conv);
    bool is_narrow = conv->in == 0 || (conv->dgrad_kernel == CUDA_NARROW &&
                                       ct_cuda_narrow_pools(&back, conv->conv.kh, conv->conv.kw));
    if (conv->pooled >= 0 && conv->wgrad_kernel == CUDA_NARROW && is_narrow)
        conv->unpools = pool->unpools = true;
}

/* A linear layer that alone reads a convolution's or linear layer's ReLU gives the gradient of the
 * ReLU's input. */
static void fuse_mask(cuda_plan *plan, int s) {
    cuda_step *before = &plan->steps[s - 1], *step = &plan->steps[s];
    if (step->op != CT_OP_CONV || step->dgrad_kernel != CUDA_LINEAR || !before->relu ||
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

static bool is_link(const cuda_plan *plan, int s, int channels) {
    const cuda_backend *backend = (const cuda_backend *)plan->base.backend;
    if (s >= plan->n_steps) return false;
    const cuda_step *step = &plan->steps[s];
    return step->norm != NULL && step->norm_shape.groups == 8 && step->conv.co == channels &&
           step->dgrad_kernel == CUDA_TILE && step->wgrad_kernel == CUDA_TILE &&
           step->out != plan->base.graph->features &&
           ct_cuda_chain_fits(&step->conv, backend->shared_limit);
}

/* Steps s and s + 1 are a residual block of two convolutions, and nothing else reads its input. */
static bool is_block(const cuda_plan *plan, int s, int channels) {
    const ct_graph *g = plan->base.graph;
    if (!is_link(plan, s, channels) || !is_link(plan, s + 1, channels)) return false;
    const cuda_step *first = &plan->steps[s], *second = first + 1;
    return first->residual < 0 && second->in == first->out && second->residual == first->in &&
           first->in > 0 && ct_graph_n_consumers(g, first->in) == 2 &&
           ct_graph_n_consumers(g, first->out) == 1;
}

/* How many steps from s on are one chain: residual blocks, and before them, maybe, the convolution
 * that reads the picture, or a block's second whose input and shortcut others compute. */
static int chain_length(const cuda_plan *plan, int s) {
    const cuda_backend *backend = (const cuda_backend *)plan->base.backend;
    const ct_graph *g = plan->base.graph;
    const cuda_step *step = &plan->steps[s];
    int channels = step->conv.co, n = 0;
    if (step->norm != NULL && step->in == 0 && step->norm_shape.groups == 8 &&
        step->wgrad_kernel == CUDA_TILE && is_block(plan, s + 1, channels) &&
        plan->steps[s + 1].in == step->out &&
        ct_cuda_chain_begins(&step->conv, backend->shared_limit)) {
        n = 1;
    } else if (step->residual > 0) {
        bool is_own =
            ct_graph_n_consumers(g, step->in) == 1 && ct_graph_n_consumers(g, step->residual) == 1;
        if (!is_link(plan, s, channels) || step->in <= 0 || !is_own) return 0;
        n = 1;
    }
    while (n + 2 <= CUDA_MAX_CHAIN && is_block(plan, s + n, channels) &&
           (n == 0 || plan->steps[s + n].in == plan->steps[s + n - 1].out))
        n += 2;
    return n;
}

static void find_chains(cuda_plan *plan) {
    for (int s = 1; s < plan->n_steps; s++) move_addition(plan, s);
    for (int s = 0; s < plan->n_steps; s++) {
        plan->steps[s].chained_to = -1;
        plan->steps[s].unit = s;
    }
    for (int s = 0; s < plan->n_steps; s++) {
        int n = chain_length(plan, s);
        if (n == 0) continue;
        plan->steps[s].chain = n;
        plan->steps[s + n - 1].chained_to = s;
        for (int k = 0; k < n; k++) plan->steps[s + k].unit = s;
        s += n - 1;
    }
}

/* Weight gradients and data gradients of a depthwise convolution are one kernel of the main stream,
 * and all weight gradients share one place for partial sums. */
static void find_single(cuda_plan *plan) {
    for (int s = 0; s < plan->n_steps; s++)
        if (plan->steps[s].op == CT_OP_CONV && plan->steps[s].wgrad_kernel == CUDA_DEPTHWISE)
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

/* Segments of a sample that a convolution can measure on its way; 0: none. */
static int n_segments(const cuda_step *step) {
    const cuda_conv *c = &step->conv;
    if (step->op != CT_OP_CONV || step->norm != NULL || step->relu ||
        step->node->bias != CT_NO_PARAM)
        return 0;
    if (step->forward_kernel == CUDA_DEPTHWISE) return ct_cuda_depthwise_segments(c);
    if (step->forward_kernel != CUDA_MMA) return 0;
    cuda_tile_conv tile = ct_cuda_tile_forward(c);
    int segment = ct_cuda_mma_segment(&tile);
    return segment > 0 ? c->ho * c->wo / segment : 0;
}

/* Convolutions that measure their output for the EvoNorm behind them. */
static void plan_measures(cuda_plan *plan) {
    const cuda_backend *backend = (const cuda_backend *)plan->base.backend;
    for (int s = 0; cuda_rounds(backend) && s + 1 < plan->n_steps; s++) {
        cuda_step *conv = &plan->steps[s], *norm = &plan->steps[s + 1];
        if (norm->op != CT_OP_EVONORM || norm->in != conv->out) continue;
        conv->n_segments = norm->n_segments = n_segments(conv);
    }
}

/* On the tensor cores not with several taps, since it would have to be applied for each of them,
 * nor where 16 rows of pixels are not of one sample. */
static bool applies_gates(const cuda_step *step) {
    if (step->op != CT_OP_CONV || step->norm != NULL) return false;
    if (step->forward_kernel == CUDA_DEPTHWISE) return step->wgrad_kernel == CUDA_DEPTHWISE;
    return step->forward_kernel == CUDA_MMA && step->wgrad_kernel == CUDA_MMA &&
           is_pointwise(&step->conv) && step->conv.ho * step->conv.wo % 16 == 0;
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
            if (reader->in != norm->out || !applies_gates(reader)) continue;
            norm->is_gate = true;
            reader->gate = s;
        }
    }
}

/* Segments for which a convolution leaves sums of the gradient it writes; 0: none. */
static int n_parts(const cuda_step *step) {
    if (step->op != CT_OP_CONV || step->norm != NULL) return 0;
    if (step->dgrad_kernel == CUDA_DEPTHWISE) return step->gate >= 0 && !step->add_in ? 1 : 0;
    if (step->dgrad_kernel != CUDA_MMA) return 0;
    cuda_tile_conv tile = ct_cuda_tile_backward(&step->conv);
    int segment = ct_cuda_mma_segment(&tile);
    return segment > 0 ? tile.ho * tile.wo / segment : 0;
}

/* EvoNorms whose first reader, which is the last one to write their output's gradient, takes the
 * sums that their backward pass begins with. */
static void plan_parts(cuda_plan *plan) {
    for (int s = 0; s + 1 < plan->n_steps; s++) {
        cuda_step *norm = &plan->steps[s], *reader = norm + 1;
        if (norm->op == CT_OP_EVONORM && reader->in == norm->out && norm->in > 0 &&
            ct_cuda_evonorm_finish_fits(&norm->norm_shape))
            norm->n_parts = reader->n_parts = n_parts(reader);
    }
}

static int node_of(const cuda_plan *plan, const cuda_step *step, cuda_role role) {
    switch (role) {
    case CUDA_ROLE_IN: return cuda_value_in(plan, step);
    case CUDA_ROLE_RESIDUAL: return step->residual;
    case CUDA_ROLE_INNER: return step->inner;
    default: return step->out;
    }
}

/* The first step of the chain that step s is in, or -1. */
static int chain_of(const cuda_plan *plan, int s) {
    for (int first = s; first >= 0 && s - first < CUDA_MAX_CHAIN; first--)
        if (plan->steps[first].chain > s - first) return first;
    return -1;
}

/* Whether the kernels of step s can have this tensor, or its gradient, in bf16. */
static bool takes_bf16(const cuda_plan *plan, int s, cuda_role role, bool is_gradient) {
    const cuda_step *step = &plan->steps[s];
    if (chain_of(plan, s) >= 0) return step->forward_element == CUDA_BF16;
    if (step->norm == NULL) return ct_cuda_takes_bf16(step, role);
    if (step->forward_element == CUDA_BF16) return true; /* strided.cu */
    return role == CUDA_ROLE_OUT && !is_gradient;        /* conv_tile.cu */
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

/* A chain's weights are packed, and its samples multiplied, in one element. */
static void set_chain(cuda_plan *plan, int first, cuda_element element) {
    for (int k = 0; k < plan->steps[first].chain; k++)
        plan->steps[first + k].forward_element = plan->steps[first + k].backward_element = element;
}

/* Steps s and s + 1 are a residual block's first convolution and its shortcut, with a kernel for
 * both, and nothing else reads their input. */
static bool is_strided(const cuda_plan *plan, int s) {
    const cuda_backend *backend = (const cuda_backend *)plan->base.backend;
    const cuda_step *conv = &plan->steps[s], *shortcut = conv + 1;
    return conv->has_twin && conv->in > 0 && conv->residual < 0 && shortcut->residual < 0 &&
           conv->dgrad_kernel == CUDA_TILE && shortcut->dgrad_kernel == CUDA_TILE &&
           conv->norm_shape.groups == 8 && shortcut->norm_shape.groups == 8 && !shortcut->add_in &&
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

static void set_strided(cuda_step *pair, bool is_it) {
    pair[0].is_strided = is_it;
    for (int k = 0; k < 2; k++)
        pair[k].forward_element = pair[k].backward_element = is_it ? CUDA_BF16 : CUDA_FP32;
}

/* Whether a pair had to be given up. */
static bool settle_strided(cuda_plan *plan) {
    bool changed = false;
    for (int s = 0; s + 1 < plan->n_steps; s++) {
        cuda_step *pair = &plan->steps[s];
        if (!pair->is_strided || (is_stored(plan, pair) && is_stored(plan, pair + 1))) continue;
        set_strided(pair, false);
        changed = true;
    }
    return changed;
}

/* Chains run in bf16 if what they read is stored so, or a picture; one that does not may take the
 * next one's input from it. */
static void choose_elements(cuda_plan *plan) {
    const cuda_backend *backend = (const cuda_backend *)plan->base.backend;
    if (backend->base.precision != CT_PRECISION_BF16) return;
    for (int s = 0; s < plan->n_steps; s++) set_chain(plan, s, CUDA_BF16);
    for (int s = 0; s + 1 < plan->n_steps; s++)
        if (is_strided(plan, s)) set_strided(&plan->steps[s], true);
    ct_cuda_elements_begin(plan);
    for (bool changed = true; changed;) {
        choose_stored(plan);
        changed = ct_cuda_elements_settle(plan);
        changed |= settle_strided(plan);
        for (int s = 0; s < plan->n_steps; s++) {
            const cuda_step *step = &plan->steps[s];
            if (step->chain == 0 || step->forward_element == CUDA_FP32) continue;
            bool has_in = step->in == 0 || plan->value_element[step->in] == CUDA_BF16;
            bool adds = step->residual > 0;
            if (has_in && (!adds || plan->value_element[step->residual] == CUDA_BF16)) continue;
            set_chain(plan, s, CUDA_FP32);
            changed = true;
        }
    }
    for (int s = 0; s + 1 < plan->n_steps; s++)
        if (plan->steps[s].is_strided) plan->steps[s + 1].unit = s;
}

ct_status ct_cuda_compile(cuda_plan *plan) {
    const ct_graph *g = plan->base.graph;
    plan->steps = ct_new(cuda_step, (size_t)g->n_nodes);
    plan->root = ct_new(int, (size_t)g->n_nodes);
    plan->value_element = ct_new(cuda_element, 2 * (size_t)g->n_nodes);
    bool *has = ct_new(bool, (size_t)g->n_nodes);
    if (plan->steps == NULL || plan->root == NULL || plan->value_element == NULL || has == NULL) {
        ct_free(has);
        return ct_fail(CT_NOMEM, "no memory for the plan of %s", g->model);
    }
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
            step->norm_shape = norm_of(g, node);
            i = fuse_add(g, step, i);
        }
        step->out = i;
        if (step->out <= g->features) plan->n_feature_steps = plan->n_steps;
    }
    for (int s = 1; s < plan->n_steps; s++) fuse_pool(plan, s);
    for (int s = 1; s < plan->n_steps; s++) fuse_mask(plan, s);
    plan->steps[plan->n_steps - 1].pooled = -1;
    find_chains(plan);
    find_twins(plan);
    find_single(plan);
    plan_measures(plan);
    plan_gates(plan);
    plan_gradients(plan, has);
    plan->grad_element = plan->value_element + g->n_nodes;
    plan_parts(plan);
    choose_elements(plan);
    ct_free(has);
    return CT_OK;
}
