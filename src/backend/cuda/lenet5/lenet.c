/* LeNet-5's layers up to the features, found in a plan and run together. */
#include "backend/cuda/lenet5/lenet5.h"

#include "backend/cuda/resnet20/resnet20.h"

/* Steps: convolution, pooling, convolution, pooling, two linear layers. */
enum { CONV_1, POOL_1, CONV_2, POOL_2, FC_1, FC_2, N_STEPS };
static const int layers[CUDA_LENET_LAYERS] = {CONV_1, CONV_2, FC_1, FC_2};

static cuda_lenet lenet_of(const cuda_pass *p, const cuda_step *steps) {
    cuda_lenet v = {.x = cuda_value(p, steps[CONV_1].in),
                    .features = cuda_value(p, steps[FC_2].out)};
    for (int k = 0; k < CUDA_LENET_LAYERS; k++) {
        const cuda_step *step = &steps[layers[k]];
        v.weight[k] = cuda_param(p->plan, step->node->weight);
        v.bias[k] = cuda_param(p->plan, step->node->bias);
        v.packed[k] = step->packed[CUDA_FORWARD];
    }
    if (p->mode != CUDA_TRAIN) return v;
    for (int k = 0; k < 2; k++) { /* places lie where the convolution's own values would */
        v.maxima[k] = cuda_value(p, steps[2 * k].pooled);
        v.places[k] = (uint8_t *)cuda_value(p, steps[2 * k].out);
    }
    v.hidden = cuda_value(p, steps[FC_1].out);
    return v;
}

static ct_status forward(const cuda_pass *p, const cuda_step *steps) {
    cuda_lenet v = lenet_of(p, steps);
    return ct_cuda_lenet_forward(p->run, &v, p->mode == CUDA_TRAIN);
}

/* A linear layer's weight gradient. */
static ct_status wgrad(const cuda_pass *p, const cuda_step *step) {
    cuda_conv_call call = cuda_call_of(p, step);
    call.d = cuda_grad(p, step->out);
    return step->family[CUDA_WGRAD]->launch[CUDA_WGRAD](p->late, &call);
}

static ct_status backward(const cuda_pass *p, const cuda_step *steps) {
    cuda_lenet v = lenet_of(p, steps);
    v.dfeatures = cuda_grad(p, steps[FC_2].out);
    v.dhidden = cuda_grad(p, steps[FC_1].out);
    CT_TRY(ct_cuda_late_follows(p));
    CT_TRY(wgrad(p, &steps[FC_2]));
    CT_TRY(ct_cuda_lenet_backward(p->run, &v));
    CT_TRY(ct_cuda_late_follows(p));
    return wgrad(p, &steps[FC_1]);
}

static size_t partial(const cuda_step *steps, int n_most) {
    (void)steps;
    return ct_cuda_lenet_partial(n_most);
}

static const cuda_unit_kernels lenet_kernels = {.forward = forward,
                                                .backward = backward,
                                                .partial = partial,
                                                .is_closed = true,
                                                .is_plain = true};

/* ---- finding them ---- */

static bool is_conv(const cuda_step *step, int maps_in, int side, int pad, int maps) {
    const cuda_conv *v = &step->conv;
    return step->op == CT_OP_CONV && step->node->op == CT_OP_CONV && step->relu &&
           step->pooled >= 0 && step->unpools && step->node->bias != CT_NO_PARAM && v->kh == 5 &&
           v->kw == 5 && v->stride == 1 && v->groups == 1 && v->pad == pad && v->ci == maps_in &&
           v->hi == side && v->wi == side && v->co == maps;
}

/* Its weights are read in quads, as they are. */
static bool is_linear(const cuda_plan *plan, const cuda_step *step, int n_in, int taps, int n_out) {
    return cuda_param(plan, step->node->weight) % 4 == 0 && step->op == CT_OP_CONV &&
           step->node->op == CT_OP_LINEAR && step->relu && step->masked &&
           step->node->bias != CT_NO_PARAM && step->conv.ci == n_in &&
           step->conv.weight_taps == taps && step->conv.co == n_out &&
           step->family[CUDA_FORWARD] == &ct_cuda_linear;
}

static bool is_lenet(const cuda_plan *plan) {
    const cuda_backend *backend = (const cuda_backend *)plan->base.backend;
    const ct_graph *g = plan->base.graph;
    const cuda_step *steps = plan->steps;
    if (!cuda_rounds(backend) || plan->n_steps <= N_STEPS || steps[CONV_1].in != 0 ||
        backend->shared_limit < CUDA_LENET_BYTES || !is_conv(&steps[CONV_1], 1, 28, 2, 6) ||
        !is_conv(&steps[CONV_2], 6, 14, 0, 16) || !is_linear(plan, &steps[FC_1], 400, 25, 120) ||
        !is_linear(plan, &steps[FC_2], 120, 1, 84) || steps[FC_2].out != g->features)
        return false;
    for (int s = CONV_1; s < FC_2; s++)
        if (steps[s + 1].in != steps[s].out || ct_graph_n_consumers(g, steps[s].out) != 1)
            return false;
    return true;
}

void ct_cuda_find_lenet(cuda_plan *plan) {
    if (is_lenet(plan)) ct_cuda_set_unit(plan, 0, N_STEPS, &lenet_kernels);
}
