/* Chains: residual blocks that follow each other, found in a plan and run in one launch. */
#include "backend/cuda/resnet20/resnet20.h"

/* ---- running them ---- */

/* Whether a chain's products are those of warp groups. */
static bool has_groups(const cuda_plan *plan, const cuda_step *step) {
    const cuda_backend *backend = (const cuda_backend *)plan->base.backend;
    return backend->is_hopper && step->forward_element == CUDA_BF16;
}

static cuda_packing packing(const cuda_plan *plan, const cuda_step *step) {
    return has_groups(plan, step) ? CUDA_PACK_CORES : CUDA_PACK_FRAGMENTS;
}

static ct_status forward(const cuda_pass *p, const cuda_step *steps) {
    const cuda_step *last = &steps[steps[0].n_unit - 1];
    cuda_chain chain = {.n_links = steps[0].n_unit,
                        .element = steps[0].forward_element,
                        .y_element = p->plan->value_element[last->out],
                        .x = cuda_value(p, steps[0].in)};
    bool train = p->mode == CUDA_TRAIN;
    bool is_image = steps[0].in == 0;
    if (is_image) chain.n_colours = steps[0].conv.ci;
    chain.residual = cuda_value(p, steps[0].residual > 0 ? steps[0].residual : steps[0].in);
    for (int k = 0; k < chain.n_links; k++) {
        const cuda_step *step = &steps[k];
        cuda_link *link = &chain.links[k];
        *link = (cuda_link){.packed = step->packed[CUDA_FORWARD],
                            .weight = step->norm_shape.weight,
                            .bias = step->norm_shape.bias,
                            .add = step->residual > 0};
        if (!train) {
            /* floats keep sums for the next block, one after the other in the last one's place */
            bool is_kept = chain.element == CUDA_FP32 && (link->add || (is_image && k == 0));
            if (is_kept || step == last) link->y = cuda_value(p, last->out);
            continue;
        }
        link->y = cuda_value(p, step->out);
        link->pre = cuda_value(p, step->inner);
        link->stats = cuda_stats(p, step);
    }
    return has_groups(p->plan, steps)
               ? ct_cuda_chain_forward_groups(p->run, steps[0].conv.co, &chain, train)
               : ct_cuda_chain_forward(p->run, steps[0].conv.co, &chain, train);
}

cuda_link ct_cuda_back_link(const cuda_pass *p, const cuda_step *step) {
    size_t n_samples = (size_t)p->run->n_jobs * (size_t)p->run->n_max;
    return (cuda_link){.packed = step->packed[CUDA_DGRAD],
                       .weight = step->norm_shape.weight,
                       .pre = cuda_value(p, step->inner),
                       .stats = cuda_stats(p, step),
                       .y = cuda_grad(p, step->inner),
                       .sums = p->run->sums_dev + step->sums * n_samples,
                       .add = step->residual > 0};
}

cuda_wgrad ct_cuda_wgrad_of(const cuda_pass *p, const cuda_step *step) {
    return (cuda_wgrad){.x = cuda_value(p, step->in),
                        .d = cuda_grad(p, step->inner),
                        .weight = cuda_param(p->plan, step->node->weight)};
}

/* A picture's convolution has a shape of its own: the others begin here. */
static int first_alike(const cuda_step *steps) {
    return steps[0].in == 0 ? 1 : 0;
}

/* Data gradients, then weight gradients. */
static ct_status backward(const cuda_pass *p, const cuda_step *steps) {
    int n = steps[0].n_unit, begin = first_alike(steps);
    bool is_bf16 = steps[0].forward_element == CUDA_BF16;
    const cuda_element *element = p->plan->grad_element;
    cuda_chain chain = {.n_links = n,
                        .element = steps[0].forward_element,
                        .d = cuda_grad(p, steps[n - 1].out),
                        .d_element = element[steps[n - 1].out]};
    if (begin == 1) chain.n_colours = steps[0].conv.ci;
    if (begin == 0) chain.dx = cuda_grad(p, steps[0].in), chain.dx_element = element[steps[0].in];
    if (steps[0].residual > 0) {
        chain.dresidual = cuda_grad(p, steps[0].residual);
        chain.dresidual_element = element[steps[0].residual];
    }
    cuda_wgrad layers[CUDA_MAX_LAYERS];
    for (int k = 0; k < n; k++) {
        chain.links[k] = ct_cuda_back_link(p, &steps[k]);
        layers[k] = ct_cuda_wgrad_of(p, &steps[k]);
    }
    CT_TRY(has_groups(p->plan, steps)
               ? ct_cuda_chain_backward_groups(p->run, steps[0].conv.co, &chain)
               : ct_cuda_chain_backward(p->run, steps[0].conv.co, &chain));
    CT_TRY(ct_cuda_late_follows(p));
    ct_status (*wgrad)(const cuda_run *, const cuda_conv *, const cuda_wgrad *, int) =
        is_bf16 ? ct_cuda_bf16_wgrad : ct_cuda_tile_wgrad;
    CT_TRY(wgrad(p->late, &steps[begin].conv, layers + begin, n - begin));
    return begin == 1 ? wgrad(p->late, &steps[0].conv, layers, 1) : CT_OK;
}

/* Of n layers of one shape. */
static size_t layers_partial(const cuda_step *step, int n, int n_most) {
    int splits = step->forward_element == CUDA_BF16
                     ? ct_cuda_bf16_wgrad_splits(&step->conv, n, n_most)
                     : ct_cuda_tile_wgrad_splits(&step->conv, n, n_most);
    return ct_cuda_split_floats(&step->conv, n * splits);
}

static size_t partial(const cuda_step *steps, int n_most) {
    int begin = first_alike(steps);
    size_t most = layers_partial(&steps[begin], steps[0].n_unit - begin, n_most);
    size_t first = layers_partial(&steps[0], 1, n_most);
    return begin == 1 && first > most ? first : most;
}

static const cuda_unit_kernels chain_kernels = {.forward = forward,
                                                .backward = backward,
                                                .partial = partial,
                                                .packing = packing,
                                                .is_closed = true};

/* ---- finding them ---- */

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

static bool is_link(const cuda_plan *plan, int s, int channels) {
    const cuda_backend *backend = (const cuda_backend *)plan->base.backend;
    if (s >= plan->n_steps) return false;
    const cuda_step *step = &plan->steps[s];
    return step->norm != NULL && step->norm_shape.groups == 8 && step->conv.co == channels &&
           step->family[CUDA_DGRAD] == &ct_cuda_tile && step->family[CUDA_WGRAD] == &ct_cuda_tile &&
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
        step->family[CUDA_WGRAD] == &ct_cuda_tile && is_block(plan, s + 1, channels) &&
        plan->steps[s + 1].in == step->out &&
        ct_cuda_chain_begins(&step->conv, backend->shared_limit)) {
        n = 1;
    } else if (step->residual > 0) {
        bool is_own =
            ct_graph_n_consumers(g, step->in) == 1 && ct_graph_n_consumers(g, step->residual) == 1;
        if (!is_link(plan, s, channels) || step->in <= 0 || !is_own) return 0;
        n = 1;
    }
    while (n + 2 <= CUDA_MAX_LAYERS && is_block(plan, s + n, channels) &&
           (n == 0 || plan->steps[s + n].in == plan->steps[s + n - 1].out))
        n += 2;
    return n;
}

void ct_cuda_set_unit(cuda_plan *plan, int s, int n, const cuda_unit_kernels *kernels) {
    for (int k = 0; k < n; k++) plan->steps[s + k].unit = kernels != NULL ? s : s + k;
    plan->steps[s].n_unit = kernels != NULL ? n : 1;
    plan->steps[s].together = kernels;
}

void ct_cuda_find_chains(cuda_plan *plan) {
    for (int s = 1; s < plan->n_steps; s++) move_addition(plan, s);
    for (int s = 0; s < plan->n_steps; s++) ct_cuda_set_unit(plan, s, 1, NULL);
    for (int s = 0; s < plan->n_steps; s++) {
        int n = chain_length(plan, s);
        if (n == 0) continue;
        ct_cuda_set_unit(plan, s, n, &chain_kernels);
        s += n - 1;
    }
}

/* ---- fp32 or bf16 ---- */

/* A chain's weights are packed, and its samples multiplied, in one element. */
static void set_element(cuda_step *steps, cuda_element element) {
    for (int k = 0; k < steps[0].n_unit; k++)
        steps[k].forward_element = steps[k].backward_element = element;
}

void ct_cuda_units_begin(cuda_plan *plan) {
    for (int s = 0; s < plan->n_steps; s++)
        if (plan->steps[s].together == &chain_kernels) set_element(&plan->steps[s], CUDA_BF16);
    ct_cuda_pairs_begin(plan);
}

/* Chains run in bf16 if what they read is stored so, or a picture; one that does not may take the
 * next one's input from it. */
bool ct_cuda_units_settle(cuda_plan *plan) {
    bool changed = ct_cuda_pairs_settle(plan);
    for (int s = 0; s < plan->n_steps; s++) {
        cuda_step *step = &plan->steps[s];
        if (step->together != &chain_kernels || step->forward_element == CUDA_FP32) continue;
        bool has_in = step->in == 0 || plan->value_element[step->in] == CUDA_BF16;
        bool adds = step->residual > 0;
        if (has_in && (!adds || plan->value_element[step->residual] == CUDA_BF16)) continue;
        set_element(step, CUDA_FP32);
        changed = true;
    }
    return changed;
}
