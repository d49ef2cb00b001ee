/* Steps of a job, forward and backward, except convolutions. */
#include "backend/cpu/cpu_internal.h"

#include <assert.h>
#include <string.h>

float *ct_cpu_begin_grad(const cpu_call *c, int node) {
    if (node == 0) return NULL;
    return c->worker->has_grad[c->plan->root[node]] ? c->worker->spare : cpu_grad(c, node);
}

void ct_cpu_end_grad(const cpu_call *c, int node) {
    bool *has_grad = &c->worker->has_grad[c->plan->root[node]];
    size_t size = cpu_tensor_floats(c->plan->base.graph->nodes[node].shape) * (size_t)c->n_blocks;
    float *grad = cpu_grad(c, node);
    if (*has_grad) c->k->add(grad, c->worker->spare, size, grad);
    *has_grad = true;
}

/* ---- linear ---- */

static size_t linear_scratch(const cpu_plan *plan, const cpu_step *step) {
    return cpu_pass_blocks(plan) * CT_LANES * cpu_round(ct_shape_size(step->from));
}

/* The product of all blocks: of weights with an input `from` or, turned, with a gradient. */
static ct_linear_geometry linear_geometry(const cpu_call *c, ct_shape from, ct_shape to,
                                          size_t out_step, size_t in_step) {
    return (ct_linear_geometry){.n_out = (int)ct_shape_size(to),
                                .n_in = (int)ct_shape_size(from),
                                .out_step = out_step,
                                .in_step = in_step,
                                .n_columns = c->n_blocks,
                                .x_row = CT_LANES,
                                .x_column = cpu_tensor_floats(from),
                                .y_row = CT_LANES,
                                .y_column = cpu_tensor_floats(to)};
}

static void linear_forward(const cpu_call *c, const cpu_step *step) {
    const ct_linear_geometry g =
        linear_geometry(c, step->from, step->to, ct_shape_size(step->from), 1);
    c->k->linear(&g, cpu_param(c, step->node->weight), cpu_value(c, step->in),
                 cpu_param(c, step->node->bias), step->relu ? CT_RELU : 0, cpu_value(c, step->out));
}

static void linear_data_gradient(const cpu_call *c, const cpu_step *step) {
    const ct_linear_geometry g =
        linear_geometry(c, step->to, step->from, 1, ct_shape_size(step->from));
    bool *has_grad = &c->worker->has_grad[c->plan->root[step->in]];
    c->k->linear(&g, cpu_param(c, step->node->weight), cpu_grad(c, step->out), NULL,
                 *has_grad ? CT_ACCUMULATE : 0, cpu_grad(c, step->in));
    *has_grad = true;
}

static void linear_backward(const cpu_call *c, const cpu_step *step) {
    const int n_in = (int)ct_shape_size(step->from), n_out = step->to.c;
    const size_t from = cpu_tensor_floats(step->from), to = cpu_tensor_floats(step->to);
    const size_t row = cpu_round((size_t)n_in);
    const float *x = cpu_value(c, step->in), *dy = cpu_grad(c, step->out);
    float *turned = c->worker->scratch; /* [samples][row] */
    for (int b = 0; b < c->n_blocks; b++)
        c->k->transpose(x + (size_t)b * from, CT_LANES, n_in, 1,
                        turned + (size_t)b * CT_LANES * row, row);
    c->k->outer(n_out, n_in, c->n_blocks, CT_LANES, dy, CT_LANES, to, turned, row, false,
                cpu_dparam(c, step->node->weight), (size_t)n_in);
    if (step->node->bias != CT_NO_PARAM)
        c->k->channel_sums(dy, to, c->n_blocks, n_out, 1, cpu_dparam(c, step->node->bias));
    if (step->in != 0) linear_data_gradient(c, step);
}

/* ---- pooling, relu, addition ---- */

static ct_pool_geometry pool_geometry(const cpu_step *step) {
    const ct_node *node = step->node;
    return (ct_pool_geometry){step->from.c, step->from.h, step->from.w, step->to.h,
                              step->to.w,   node->kernel, node->stride, node->pad};
}

static void simple_forward(const cpu_call *c, const cpu_step *step) {
    const size_t from = cpu_tensor_floats(step->from), to = cpu_tensor_floats(step->to);
    const size_t n_pixels = (size_t)step->from.h * (size_t)step->from.w;
    const ct_pool_geometry pool = pool_geometry(step);
    const float *x = cpu_value(c, step->in);
    float *y = cpu_value(c, step->out);
    if (step->op == CT_OP_RELU) c->k->relu(x, to * (size_t)c->n_blocks, y);
    if (step->op == CT_OP_ADD)
        c->k->add(x, cpu_value(c, step->residual), to * (size_t)c->n_blocks, y);
    for (int b = 0; b < c->n_blocks; b++, x += from, y += to) {
        if (step->op == CT_OP_MAXPOOL) c->k->maxpool(x, &pool, y);
        if (step->op == CT_OP_AVGPOOL) c->k->avgpool(x, step->to.c, n_pixels, y);
    }
}

static void simple_backward(const cpu_call *c, const cpu_step *step) {
    const size_t from = cpu_tensor_floats(step->from), to = cpu_tensor_floats(step->to);
    const size_t n_pixels = (size_t)step->from.h * (size_t)step->from.w;
    const ct_pool_geometry pool = pool_geometry(step);
    const float *x = cpu_value(c, step->in), *y = cpu_value(c, step->out);
    const float *dy = cpu_grad(c, step->out);
    float *dx = ct_cpu_begin_grad(c, step->in);
    if (dx == NULL) return;
    if (step->op == CT_OP_RELU) c->k->relu_backward(y, dy, to * (size_t)c->n_blocks, dx);
    for (int b = 0; b < c->n_blocks; b++, x += from, y += to, dx += from, dy += to) {
        if (step->op == CT_OP_MAXPOOL) c->k->maxpool_backward(x, y, dy, &pool, dx);
        if (step->op == CT_OP_AVGPOOL) c->k->avgpool_backward(dy, step->to.c, n_pixels, dx);
    }
    ct_cpu_end_grad(c, step->in);
}

/* An addition's operand gets the gradient of the sum, unless it shares its place. */
static void pass_gradient(const cpu_call *c, const cpu_step *step, int node) {
    if (node <= 0 || c->plan->root[node] == c->plan->root[step->out]) return;
    bool *has_grad = &c->worker->has_grad[c->plan->root[node]];
    size_t size = cpu_tensor_floats(step->to) * (size_t)c->n_blocks;
    float *grad = cpu_grad(c, node);
    const float *dy = cpu_grad(c, step->out);
    if (*has_grad)
        c->k->add(grad, dy, size, grad);
    else
        memcpy(grad, dy, size * sizeof *dy);
    *has_grad = true;
}

/* ---- any step ---- */

size_t ct_cpu_step_scratch(const cpu_plan *plan, const ct_kernels *k, const cpu_step *step) {
    if (step->op == CT_OP_CONV) return ct_cpu_conv_scratch(plan, k, step);
    if (step->op == CT_OP_LINEAR) return linear_scratch(plan, step);
    return 0;
}

void ct_cpu_step_forward(const cpu_call *c, const cpu_step *step) {
    if (step->op == CT_OP_CONV)
        ct_cpu_conv_forward(c, step);
    else if (step->op == CT_OP_LINEAR)
        linear_forward(c, step);
    else if (ct_op_is_norm(step->op))
        ct_cpu_norm_forward(c, step);
    else
        simple_forward(c, step);
}

void ct_cpu_step_backward(const cpu_call *c, const cpu_step *step) {
    if (step->remake >= 0) ct_cpu_norm_again(c, &c->plan->steps[step->remake]);
    if (!c->worker->has_grad[c->plan->root[step->out]]) return; /* nothing depends on it */
    if (step->relu && !step->pool) {
        float *dy = cpu_grad(c, step->out);
        size_t size = cpu_tensor_floats(step->to) * (size_t)c->n_blocks;
        c->k->relu_backward(cpu_value(c, step->out), dy, size, dy);
    }
    if (step->op == CT_OP_CONV)
        ct_cpu_conv_backward(c, step);
    else if (step->op == CT_OP_LINEAR)
        linear_backward(c, step);
    else if (ct_op_is_norm(step->op))
        ct_cpu_norm_backward(c, step);
    else if (step->op == CT_OP_ADD)
        pass_gradient(c, step, step->in);
    else
        simple_backward(c, step);
    pass_gradient(c, step, step->residual);
}
