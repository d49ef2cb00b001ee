/* 1x1 and depthwise convolutions: MobileNet's layers. Planes of 32x32 or 16x16 pixels are powers of
 * two apart, so that one pixel of all channels would fall into a few sets of the cache: a few
 * pixels of all channels are copied side by side before the product reads them c_out times. */
#include "backend/cpu/cpu_internal.h"

#include <string.h>

/* Pixels copied at a time: as many as keep all channels in the second-level cache, in long runs. An
 * odd distance in cache lines spreads the channels over all sets. */
static int panel_pixels(int c_in) {
    const int n = (256 << 10) / (CT_LANES * (int)sizeof(float)) / c_in / 2 * 2;
    return n < 16 ? 16 : n > 128 ? 128 : n;
}

static size_t panel_row(int c_in) {
    return (size_t)(panel_pixels(c_in) + 1) * CT_LANES;
}

/* So few outputs read the input so few times that a copy does not pay. */
enum { FEW_OUTPUTS = 36 };
/* Pixels of the weight gradient's products: 2 KiB of each channel, and 256 channels stay in the
 * second-level cache. */
enum { CHUNK = 32, CHUNK_ROW = CHUNK * CT_LANES + CT_LANES };

static size_t plane(ct_shape s) {
    return (size_t)s.h * (size_t)s.w * CT_LANES;
}

static void copy_pixels(const float *x, int c, size_t channel, int n, size_t row, float *out) {
    for (int i = 0; i < c; i++)
        memcpy(out + (size_t)i * row, x + (size_t)i * channel, (size_t)(n * CT_LANES) * sizeof *x);
}

/* y = w x for all pixels of one block. */
static void multiply(const cpu_call *c, ct_linear_geometry g, const float *w, const float *x,
                     size_t x_channel, int n_pixels, const float *bias, int flags, float *y) {
    const int most = panel_pixels(g.n_in);
    g.x_column = g.y_column = CT_LANES;
    if (g.n_out <= FEW_OUTPUTS) {
        g.x_row = x_channel;
        g.n_columns = n_pixels;
        c->k->linear(&g, w, x, bias, flags, y);
        return;
    }
    g.x_row = panel_row(g.n_in);
    for (int p = 0; p < n_pixels; p += most) {
        g.n_columns = n_pixels - p < most ? n_pixels - p : most;
        copy_pixels(x + p * CT_LANES, g.n_in, x_channel, g.n_columns, g.x_row, c->worker->scratch);
        c->k->linear(&g, w, c->worker->scratch, bias, flags, y + p * CT_LANES);
    }
}

void ct_cpu_pointwise_forward(const cpu_call *c, const cpu_step *step) {
    const ct_linear_geometry g = {.n_out = step->to.c,
                                  .n_in = step->from.c,
                                  .out_step = (size_t)step->from.c,
                                  .in_step = 1,
                                  .y_row = plane(step->to)};
    for (size_t b = 0; b < (size_t)c->n_blocks; b++)
        multiply(c, g, cpu_param(c, step->node->weight),
                 cpu_value(c, step->in) + b * cpu_tensor_floats(step->from), plane(step->from),
                 step->to.h * step->to.w, cpu_param(c, step->node->bias), step->relu ? CT_RELU : 0,
                 cpu_value(c, step->out) + b * cpu_tensor_floats(step->to));
}

void ct_cpu_pointwise_data(const cpu_call *c, const cpu_step *step, bool accumulate) {
    const ct_linear_geometry g = {.n_out = step->from.c,
                                  .n_in = step->to.c,
                                  .out_step = 1,
                                  .in_step = (size_t)step->from.c,
                                  .y_row = plane(step->from)};
    for (size_t b = 0; b < (size_t)c->n_blocks; b++)
        multiply(c, g, cpu_param(c, step->node->weight),
                 cpu_grad(c, step->out) + b * cpu_tensor_floats(step->to), plane(step->to),
                 step->to.h * step->to.w, NULL, accumulate ? CT_ACCUMULATE : 0,
                 cpu_grad(c, step->in) + b * cpu_tensor_floats(step->from));
}

/* A 1x1 kernel's weight gradient is a product of matrices over samples and pixels. */
void ct_cpu_pointwise_weights(const cpu_call *c, const cpu_step *step) {
    const int n_pixels = step->to.h * step->to.w, c_in = step->from.c, c_out = step->to.c;
    const size_t channel = plane(step->to), row = cpu_round((size_t)c_in);
    const ct_padding none = {0};
    float *turned = c->worker->scratch, *side = turned + CHUNK * CT_LANES * row;
    float *copy = side + CHUNK_ROW * (size_t)c_out;
    bool accumulate = false;
    for (size_t b = 0; b < (size_t)c->n_blocks; b++) {
        const float *x = cpu_value(c, step->in) + b * cpu_tensor_floats(step->from);
        const float *dy = cpu_grad(c, step->out) + b * cpu_tensor_floats(step->to);
        if (step->node->stride > 1) { /* only the pixels that are read */
            c->k->pad(x, c_in, step->from.h, step->from.w, step->node->stride, &none, copy);
            x = copy;
        }
        for (int p = 0; p < n_pixels; p += CHUNK) {
            const int n = n_pixels - p < CHUNK ? n_pixels - p : CHUNK;
            c->k->transpose(x + p * CT_LANES, channel, c_in, n, turned, row);
            copy_pixels(dy + p * CT_LANES, c_out, channel, n, CHUNK_ROW, side);
            c->k->outer(c_out, c_in, 1, n * CT_LANES, side, CHUNK_ROW, 0, turned, row, accumulate,
                        cpu_dparam(c, step->node->weight), (size_t)c_in);
            accumulate = true;
        }
    }
}

size_t ct_cpu_pointwise_scratch(const cpu_step *step) {
    const size_t c_in = (size_t)step->from.c, c_out = (size_t)step->to.c;
    const size_t forward = c_in * panel_row(step->from.c), data = c_out * panel_row(step->to.c);
    const size_t panel = forward > data ? forward : data;
    const size_t products =
        CHUNK * CT_LANES * cpu_round(c_in) + CHUNK_ROW * c_out + c_in * plane(step->to);
    return panel > products ? panel : products;
}

/* ---- depthwise ---- */

static ct_depthwise_geometry depthwise(const cpu_step *step) {
    return (ct_depthwise_geometry){step->from.c, step->from.h, step->from.w,
                                   step->to.h,   step->to.w,   step->node->stride};
}

void ct_cpu_depthwise_forward(const cpu_call *c, const cpu_step *step) {
    const ct_depthwise_geometry g = depthwise(step);
    for (size_t b = 0; b < (size_t)c->n_blocks; b++)
        c->k->depthwise(&g, cpu_value(c, step->in) + b * cpu_tensor_floats(step->from),
                        cpu_param(c, step->node->weight), false, cpu_param(c, step->node->bias),
                        step->relu ? CT_RELU : 0,
                        cpu_value(c, step->out) + b * cpu_tensor_floats(step->to));
}

void ct_cpu_depthwise_data(const cpu_call *c, const cpu_step *step, bool accumulate) {
    const ct_depthwise_geometry g = depthwise(step);
    for (size_t b = 0; b < (size_t)c->n_blocks; b++)
        c->k->depthwise_data(&g, cpu_grad(c, step->out) + b * cpu_tensor_floats(step->to),
                             cpu_param(c, step->node->weight), accumulate ? CT_ACCUMULATE : 0,
                             cpu_grad(c, step->in) + b * cpu_tensor_floats(step->from));
}

void ct_cpu_depthwise_weights(const cpu_call *c, const cpu_step *step) {
    const ct_depthwise_geometry g = depthwise(step);
    c->k->depthwise_weights(&g, cpu_value(c, step->in), cpu_tensor_floats(step->from),
                            cpu_grad(c, step->out), cpu_tensor_floats(step->to), c->n_blocks,
                            cpu_dparam(c, step->node->weight));
}
