/* y[b,o] = bias[o] + sum_k w[o,k] x[b,k] */
#include "backend/ref/ref_internal.h"

static void forward(const ref_call *c) {
    size_t n_in = ct_shape_size(c->shape), n_out = (size_t)c->node->shape.c;
    const double *w = ref_param(c, c->node->weight), *bias = ref_param(c, c->node->bias);
    for (size_t b = 0; b < (size_t)c->n; b++) {
        for (size_t o = 0; o < n_out; o++) {
            double sum = bias[o];
            for (size_t k = 0; k < n_in; k++) sum += w[o * n_in + k] * c->in[0][b * n_in + k];
            c->out[b * n_out + o] = sum;
        }
    }
}

static void backward(const ref_call *c) {
    size_t n_in = ct_shape_size(c->shape), n_out = (size_t)c->node->shape.c;
    const double *w = ref_param(c, c->node->weight);
    double *dw = ref_dparam(c, c->node->weight), *dbias = ref_dparam(c, c->node->bias);
    for (size_t b = 0; b < (size_t)c->n; b++) {
        for (size_t o = 0; o < n_out; o++) {
            double dy = c->dout[b * n_out + o];
            dbias[o] += dy;
            for (size_t k = 0; k < n_in; k++) {
                dw[o * n_in + k] += dy * c->in[0][b * n_in + k];
                c->din[0][b * n_in + k] += dy * w[o * n_in + k];
            }
        }
    }
}

const ref_kernel ct_ref_linear = {forward, backward};
