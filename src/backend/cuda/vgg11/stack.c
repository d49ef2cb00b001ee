/* VGG-11's levels, found in a plan and run together. */
#include "backend/cuda/resnet20/resnet20.h"
#include "backend/cuda/vgg11/vgg11.h"

/* Pixels across, channels of the output, whether maxima follow. */
static const struct {
    int width, channels;
    bool pools;
} shapes[CUDA_LEVELS] = {{32, 16, true},  {16, 32, true}, {8, 64, false},  {8, 64, true},
                         {4, 128, false}, {4, 128, true}, {2, 128, false}, {2, 128, true}};

enum { N_STEPS = 22 }; /* 8 convolutions, 8 norms, 5 poolings, the average of one pixel */

/* The convolution of a level among a stack's steps; its norm is the next one. */
static const cuda_step *conv_of(const cuda_step *steps, int level) {
    for (int k = 0; k < level; k++) steps += shapes[k].pools ? 3 : 2;
    return steps;
}

static cuda_stack stack_of(const cuda_pass *p, const cuda_step *steps, cuda_direction direction) {
    bool train = p->mode == CUDA_TRAIN;
    cuda_stack stack = {.n_colours = steps[0].conv.ci, .x = cuda_value(p, steps[0].in)};
    for (int k = 0; k < CUDA_LEVELS; k++) {
        const cuda_step *conv = conv_of(steps, k), *norm = conv + 1;
        cuda_level *level = &stack.levels[k];
        *level = (cuda_level){.weight = cuda_param(p->plan, conv->node->weight),
                              .bias = cuda_param(p->plan, conv->node->bias),
                              .packed = conv->packed[direction],
                              .norm_weight = norm->norm_shape.weight,
                              .norm_bias = norm->norm_shape.bias,
                              .stats = cuda_stats(p, norm)};
        if (train) level->pre = cuda_value(p, conv->out);
        if (train) level->y = cuda_value(p, shapes[k].pools ? norm[1].out : norm->out);
    }
    stack.levels[CUDA_LEVELS - 1].y = cuda_value(p, steps[N_STEPS - 1].out);
    return stack;
}

static ct_status forward(const cuda_pass *p, const cuda_step *steps) {
    cuda_stack stack = stack_of(p, steps, CUDA_FORWARD);
    return ct_cuda_stack_forward(p->run, &stack, p->mode == CUDA_TRAIN);
}

/* The first levels' weight gradients are computed as ResNet-20's. */
enum { N_NARROW = 4 };

static size_t partial_of(const cuda_step *steps, int k, int n_most) {
    const cuda_step *step = conv_of(steps, k);
    const cuda_conv *conv = &step->conv;
    if (k >= N_NARROW) return step->family[CUDA_WGRAD]->partial(conv, n_most, n_most);
    return ct_cuda_split_floats(conv, ct_cuda_bf16_wgrad_splits(conv, 1, n_most));
}

/* Of levels first .. last - 1, one at a time. */
static size_t most_partial(const cuda_step *steps, int first, int last, int n_most) {
    size_t most = 0;
    for (int k = first; k < last; k++) {
        size_t n = partial_of(steps, k, n_most);
        if (n > most) most = n;
    }
    return most;
}

static size_t partial(const cuda_step *steps, int n_most) {
    return most_partial(steps, 0, N_NARROW, n_most) +
           most_partial(steps, N_NARROW, CUDA_LEVELS, n_most);
}

static ct_status wgrad(const cuda_pass *p, const cuda_run *run, const cuda_step *steps, int k) {
    const cuda_step *conv = conv_of(steps, k);
    cuda_conv_call call = cuda_call_of(p, conv);
    call.d = cuda_grad(p, conv->out);
    cuda_wgrad layer = {call.x, call.d, call.weight};
    if (k < N_NARROW) return ct_cuda_bf16_wgrad(run, &conv->conv, &layer, 1);
    return conv->family[CUDA_WGRAD]->launch[CUDA_WGRAD](run, &call);
}

/* Those of many channels on the main stream, beside the others: a level by itself does not fill the
 * machine. */
static ct_status run_wgrads(const cuda_pass *p, const cuda_step *steps) {
    cuda_run wide = *p->run;
    wide.partial_dev += most_partial(steps, 0, N_NARROW, wide.n_most) * (size_t)p->run->n_jobs;
    CT_TRY(ct_cuda_late_follows(p));
    for (int k = N_NARROW - 1; k >= 0; k--) CT_TRY(wgrad(p, p->late, steps, k));
    for (int k = CUDA_LEVELS - 1; k >= N_NARROW; k--) CT_TRY(wgrad(p, &wide, steps, k));
    return CT_OK;
}

static ct_status backward(const cuda_pass *p, const cuda_step *steps) {
    size_t n_samples = (size_t)p->run->n_jobs * (size_t)p->run->n_max;
    cuda_stack stack = stack_of(p, steps, CUDA_DGRAD);
    stack.dfeatures = cuda_grad(p, steps[N_STEPS - 1].out);
    for (int k = 0; k < CUDA_LEVELS; k++) {
        const cuda_step *conv = conv_of(steps, k);
        stack.levels[k].d = cuda_grad(p, conv->out);
        stack.levels[k].norm_sums = p->run->sums_dev + conv[1].sums * n_samples;
        stack.levels[k].bias_sums = p->run->sums_dev + conv->sums * n_samples;
    }
    CT_TRY(ct_cuda_stack_backward(p->run, &stack));
    return run_wgrads(p, steps);
}

static const cuda_unit_kernels stack_kernels = {
    .forward = forward, .backward = backward, .partial = partial, .is_closed = true};

/* ---- finding them ---- */

/* Whether nobody but the next step reads what a step gives. */
static bool is_inner(const cuda_plan *plan, int s) {
    const cuda_step *step = &plan->steps[s];
    return s + 1 < plan->n_steps && step[1].in == step->out && step[1].residual < 0 &&
           ct_graph_n_consumers(plan->base.graph, step->out) == 1 &&
           step->out != plan->base.graph->features;
}

static bool is_conv(const cuda_step *step, int k) {
    const cuda_conv *v = &step->conv;
    int width = shapes[k].width, depth = k > 0 ? shapes[k - 1].channels : v->ci;
    if (step->op != CT_OP_CONV || step->norm != NULL || step->relu ||
        step->node->op != CT_OP_CONV || step->node->bias == CT_NO_PARAM)
        return false;
    for (int d = CUDA_FORWARD; k > 0 && d <= CUDA_DGRAD; d++)
        if (step->family[d]->packing[d] != CUDA_PACK_FRAGMENTS) return false;
    return v->kh == 3 && v->kw == 3 && v->stride == 1 && v->pad == 1 && v->groups == 1 &&
           v->ci == depth && v->ci <= (k > 0 ? depth : 4) && v->co == shapes[k].channels &&
           v->hi == width && v->wi == width;
}

static bool is_norm(const cuda_step *step) {
    return step->op == CT_OP_EVONORM && step->norm_shape.groups == 8 &&
           step->norm_shape.slope == CUDA_NO_PARAM;
}

static bool is_pool(const cuda_step *step) {
    const ct_node *node = step->node;
    return step->op == CT_OP_MAXPOOL && node->kernel == 2 && node->stride == 2 && node->pad == 0;
}

static bool is_stack(const cuda_plan *plan) {
    const cuda_backend *backend = (const cuda_backend *)plan->base.backend;
    int s = 0;
    if (plan->n_steps <= N_STEPS || plan->steps[0].in != 0 ||
        backend->shared_limit < CUDA_STACK_BYTES)
        return false;
    for (int k = 0; k < CUDA_LEVELS; k++) {
        const cuda_step *step = &plan->steps[s];
        int n = shapes[k].pools ? 3 : 2;
        if (!is_conv(step, k) || !is_norm(step + 1) || (n == 3 && !is_pool(step + 2))) return false;
        for (int e = 0; e < n; e++)
            if (!is_inner(plan, s + e)) return false;
        s += n;
    }
    const cuda_step *last = &plan->steps[s];
    return last->op == CT_OP_AVGPOOL && last->out == plan->base.graph->features;
}

void ct_cuda_stacks_begin(cuda_plan *plan) {
    const cuda_backend *backend = (const cuda_backend *)plan->base.backend;
    if (!is_stack(plan)) return;
    ct_cuda_set_unit(plan, 0, N_STEPS, &stack_kernels);
    for (int s = 0; s < N_STEPS; s++) {
        cuda_step *step = &plan->steps[s];
        step->forward_element = step->backward_element = CUDA_BF16;
        if (step->op != CT_OP_CONV || step->conv.co < 128) continue;
        bool is_large =
            backend->is_hopper && ct_cuda_wgmma_wgrad_fits(&step->conv, backend->shared_limit);
        step->family[CUDA_WGRAD] = is_large ? &ct_cuda_wgmma : &ct_cuda_mma;
    }
}
