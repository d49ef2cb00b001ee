/* y[b,o,i,j] = bias[o] + sum_{c,u,v} w[o,c,u,v] x[b, c, i*stride + u - pad, j*stride + v - pad]
 * with c over the input channels of o's group; pixels outside the picture are zero. */
#include "backend/ref/ref_internal.h"

/* Calls visit(context, w index, x index, y index) for every product of the sum. */
typedef void (*visitor)(const ref_call *c, size_t w, size_t x, size_t y);

static void each_product(const ref_call *c, size_t b, int o, int i, int j, visitor visit) {
    const ct_node *node = c->node;
    ct_shape in = c->shape, out = node->shape;
    int n_channels = in.c / node->groups;
    int first = o / (out.c / node->groups) * n_channels;
    size_t y =
        ((b * (size_t)out.c + (size_t)o) * (size_t)out.h + (size_t)i) * (size_t)out.w + (size_t)j;
    for (int ch = 0; ch < n_channels; ch++) {
        for (int u = 0; u < node->kernel; u++) {
            int row = i * node->stride + u - node->pad;
            if (row < 0 || row >= in.h) continue;
            for (int v = 0; v < node->kernel; v++) {
                int col = j * node->stride + v - node->pad;
                if (col < 0 || col >= in.w) continue;
                size_t k = (size_t)node->kernel;
                size_t w =
                    (((size_t)o * (size_t)n_channels + (size_t)ch) * k + (size_t)u) * k + (size_t)v;
                size_t x =
                    ((b * (size_t)in.c + (size_t)(first + ch)) * (size_t)in.h + (size_t)row) *
                        (size_t)in.w +
                    (size_t)col;
                visit(c, w, x, y);
            }
        }
    }
}

static void each_output(const ref_call *c, visitor visit) {
    ct_shape out = c->node->shape;
    for (int b = 0; b < c->n; b++)
        for (int o = 0; o < out.c; o++)
            for (int i = 0; i < out.h; i++)
                for (int j = 0; j < out.w; j++) each_product(c, (size_t)b, o, i, j, visit);
}

static void add_product(const ref_call *c, size_t w, size_t x, size_t y) {
    c->out[y] += ref_param(c, c->node->weight)[w] * c->in[0][x];
}

static void add_gradients(const ref_call *c, size_t w, size_t x, size_t y) {
    c->din[0][x] += ref_param(c, c->node->weight)[w] * c->dout[y];
    ref_dparam(c, c->node->weight)[w] += c->in[0][x] * c->dout[y];
}

static void forward(const ref_call *c) {
    const ct_node *node = c->node;
    size_t plane = (size_t)node->shape.h * (size_t)node->shape.w;
    size_t channels = (size_t)node->shape.c;
    for (size_t y = 0; y < (size_t)c->n * channels * plane; y++)
        c->out[y] =
            node->bias == CT_NO_PARAM ? 0.0 : ref_param(c, node->bias)[y / plane % channels];
    each_output(c, add_product);
}

static void backward(const ref_call *c) {
    const ct_node *node = c->node;
    size_t plane = (size_t)node->shape.h * (size_t)node->shape.w;
    size_t channels = (size_t)node->shape.c;
    if (node->bias != CT_NO_PARAM)
        for (size_t y = 0; y < (size_t)c->n * channels * plane; y++)
            ref_dparam(c, node->bias)[y / plane % channels] += c->dout[y];
    each_output(c, add_gradients);
}

const ref_kernel ct_ref_conv = {forward, backward};
