/* ReLU, addition and pooling. */
#include "backend/ref/ref_internal.h"

#include <math.h>

static size_t n_outputs(const ref_call *c) {
    return (size_t)c->n * ct_shape_size(c->node->shape);
}

static void relu_forward(const ref_call *c) {
    for (size_t k = 0; k < n_outputs(c); k++) c->out[k] = c->in[0][k] > 0 ? c->in[0][k] : 0;
}

static void relu_backward(const ref_call *c) {
    for (size_t k = 0; k < n_outputs(c); k++)
        if (c->in[0][k] > 0) c->din[0][k] += c->dout[k];
}

const ref_kernel ct_ref_relu = {relu_forward, relu_backward};

static void add_forward(const ref_call *c) {
    for (size_t k = 0; k < n_outputs(c); k++) c->out[k] = c->in[0][k] + c->in[1][k];
}

static void add_backward(const ref_call *c) {
    for (size_t k = 0; k < n_outputs(c); k++) {
        c->din[0][k] += c->dout[k];
        c->din[1][k] += c->dout[k];
    }
}

const ref_kernel ct_ref_add = {add_forward, add_backward};

static void avgpool_forward(const ref_call *c) {
    size_t plane = (size_t)c->shape.h * (size_t)c->shape.w;
    for (size_t k = 0; k < n_outputs(c); k++) {
        double sum = 0;
        for (size_t p = 0; p < plane; p++) sum += c->in[0][k * plane + p];
        c->out[k] = sum / (double)plane;
    }
}

static void avgpool_backward(const ref_call *c) {
    size_t plane = (size_t)c->shape.h * (size_t)c->shape.w;
    for (size_t k = 0; k < n_outputs(c); k++)
        for (size_t p = 0; p < plane; p++) c->din[0][k * plane + p] += c->dout[k] / (double)plane;
}

const ref_kernel ct_ref_avgpool = {avgpool_forward, avgpool_backward};

/* Index in the input plane of the first largest pixel of window (i, j); padding never wins. */
static size_t largest(const ref_call *c, const double *plane, int i, int j) {
    const ct_node *node = c->node;
    size_t best = 0;
    double value = -INFINITY;
    for (int u = 0; u < node->kernel; u++) {
        for (int v = 0; v < node->kernel; v++) {
            int y = i * node->stride + u - node->pad, x = j * node->stride + v - node->pad;
            if (y < 0 || y >= c->shape.h || x < 0 || x >= c->shape.w) continue;
            size_t at = (size_t)y * (size_t)c->shape.w + (size_t)x;
            if (plane[at] > value) {
                value = plane[at];
                best = at;
            }
        }
    }
    return best;
}

static void each_window(const ref_call *c, bool is_forward) {
    ct_shape out = c->node->shape;
    size_t plane = (size_t)c->shape.h * (size_t)c->shape.w, y = 0;
    for (size_t p = 0; p < (size_t)c->n * (size_t)out.c; p++) {
        const double *in = c->in[0] + p * plane;
        for (int i = 0; i < out.h; i++) {
            for (int j = 0; j < out.w; j++, y++) {
                size_t at = largest(c, in, i, j);
                if (is_forward)
                    c->out[y] = in[at];
                else
                    c->din[0][p * plane + at] += c->dout[y];
            }
        }
    }
}

static void maxpool_forward(const ref_call *c) {
    each_window(c, true);
}
static void maxpool_backward(const ref_call *c) {
    each_window(c, false);
}

const ref_kernel ct_ref_maxpool = {maxpool_forward, maxpool_backward};
