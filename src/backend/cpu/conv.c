/* Convolution steps of a job: which kernel, and the weights and pictures in the form it reads.
 * The data gradient of a convolution of stride s is s * s convolutions of stride 1 over dy, one for
 * each position of an input pixel within the stride: with t = i + pad, pixel i meets the taps
 * u = t mod s, u + s, ... and the outputs (t - u) / s below them. */
#include "backend/cpu/cpu_internal.h"

#include <string.h>

#define SMALL_TILE 4 /* of Winograd's method */

static size_t plane(int h, int w) {
    return (size_t)h * (size_t)w * CT_LANES;
}

static bool is_pointwise(const cpu_step *step) {
    return step->node->kernel == 1 && step->node->pad == 0 && step->node->groups == 1;
}

/* ---- the input as a kernel reads it ---- */

/* Pads columns (rows outside the picture are skipped), or keeps only the pixels that a 1x1 kernel with
 * a stride reads. */
typedef struct source {
    bool is_copy;
    int step;
    ct_padding padding;
    int h, w; /* of the copy */
} source;

static source source_of(const cpu_step *step) {
    const ct_node *node = step->node;
    source s = {.is_copy = node->pad > 0, .step = 1, .h = step->from.h, .w = step->from.w};
    s.padding = (ct_padding){.before_x = node->pad, .after_x = node->pad};
    s.w += 2 * node->pad;
    if (is_pointwise(step) && node->stride > 1)
        s = (source){.is_copy = true, .step = node->stride, .h = step->to.h, .w = step->to.w};
    return s;
}

static const float *read_source(const cpu_call *c, const cpu_step *step, const source *s,
                                const float *x, float *copy) {
    if (!s->is_copy) return x;
    c->k->pad(x, step->from.c, step->from.h, step->from.w, s->step, &s->padding, copy);
    return copy;
}

static ct_conv_geometry geometry(const cpu_step *step, const source *s) {
    const ct_node *node = step->node;
    ct_conv_geometry g = {.c_in = step->from.c / node->groups,
                          .c_out = step->to.c / node->groups,
                          .kh = node->kernel,
                          .kw = node->kernel,
                          .stride = node->stride / s->step,
                          .pad_y = node->pad,
                          .pad_x = node->pad,
                          .h_in = s->h,
                          .w_in = s->w - 2 * node->pad,
                          .h_out = step->to.h,
                          .w_out = step->to.w,
                          .x_channel = plane(s->h, s->w),
                          .x_row = plane(1, s->w),
                          .y_channel = plane(step->to.h, step->to.w),
                          .y_row = plane(1, step->to.w),
                          .y_pixel = CT_LANES};
    return g;
}

/* ---- forward ---- */

static void direct_forward(const cpu_call *c, const cpu_step *step) {
    const ct_node *node = step->node;
    const source s = source_of(step);
    const ct_conv_geometry g = geometry(step, &s);
    const ptrdiff_t taps = node->kernel * node->kernel;
    const ptrdiff_t steps[4] = {g.c_in * taps, taps, node->kernel, 1};
    const size_t per_group = c->k->conv_pack_size(&g);
    const float *w = cpu_param(c, node->weight), *bias = cpu_param(c, node->bias);
    float *packed = c->worker->scratch;
    float *copy = packed + cpu_round(per_group * (size_t)node->groups);
    for (size_t i = 0; i < (size_t)node->groups; i++)
        c->k->conv_pack(&g, w + i * per_group, steps, packed + i * per_group);
    for (size_t b = 0; b < (size_t)c->n_blocks; b++) {
        const float *x = cpu_value(c, step->in) + b * cpu_tensor_floats(step->from);
        float *y = cpu_value(c, step->out) + b * cpu_tensor_floats(step->to);
        x = read_source(c, step, &s, x, copy);
        for (size_t i = 0; i < (size_t)node->groups; i++)
            c->k->conv(&g, x + i * (size_t)g.c_in * g.x_channel, packed + i * per_group,
                       bias != NULL ? bias + i * (size_t)g.c_out : NULL, step->relu ? CT_RELU : 0,
                       y + i * (size_t)g.c_out * g.y_channel);
    }
}

static ct_winograd_geometry winograd_geometry(const cpu_step *step, int n_blocks) {
    return (ct_winograd_geometry){step->from.c, step->to.c, step->from.h, step->from.w, n_blocks};
}

/* Of the data gradient's convolution. */
static ct_winograd_geometry turned(ct_winograd_geometry g) {
    return (ct_winograd_geometry){g.c_out, g.c_in, g.h, g.w, g.n_blocks};
}

/* By small tiles: a value near a kink of a relu or a norm keeps its side only if it is exact to the
 * last digits, and gradients depend on the side. They themselves may be as exact as large tiles
 * are. */
static void winograd_forward(const cpu_call *c, const cpu_step *step) {
    const ct_winograd *by = c->k->winograd(step->node->stride, SMALL_TILE);
    const ct_winograd_geometry g = winograd_geometry(step, c->n_blocks);
    const float *bias = cpu_param(c, step->node->bias);
    float *u = c->worker->scratch, *y = cpu_value(c, step->out);
    by->weights(&g, cpu_param(c, step->node->weight), false, u);
    by->conv(&g, cpu_value(c, step->in), u, y, u + cpu_round(by->weights_size(&g)));
    if (bias == NULL && !step->relu) return;
    for (int b = 0; b < c->n_blocks; b++, y += cpu_tensor_floats(step->to))
        c->k->bias_relu(y, step->to.c, (size_t)(step->to.h * step->to.w), bias, step->relu);
}

/* ---- 5x5 with pooling ---- */

static ct_conv5_geometry geometry5(const cpu_step *step) {
    return (ct_conv5_geometry){step->from.c, step->to.c, step->from.h, step->from.w,
                               step->node->pad};
}

static ct_shape pooled(ct_shape s) {
    return (ct_shape){s.c, s.h / 2, s.w / 2};
}

static uint8_t *winners(const cpu_call *c, const cpu_step *step) {
    return (uint8_t *)cpu_stats(c, step->out);
}

/* In both directions or along rows. */
static void conv5_forward(const cpu_call *c, const cpu_step *step) {
    const ct_conv5_geometry g = geometry5(step);
    (step->rows5 ? c->k->rows5_pool : c->k->winograd5_pool)(
        &g, cpu_value(c, step->in), cpu_param(c, step->node->weight),
        cpu_param(c, step->node->bias), c->n_blocks, cpu_value(c, step->out),
        c->mode == CPU_TRAIN ? winners(c, step) : NULL, c->worker->scratch);
}

void ct_cpu_conv_forward(const cpu_call *c, const cpu_step *step) {
    if (step->winograd)
        winograd_forward(c, step);
    else if (step->pool)
        conv5_forward(c, step);
    else if (ct_cpu_is_depthwise(step))
        ct_cpu_depthwise_forward(c, step);
    else if (ct_cpu_is_pointwise(step))
        ct_cpu_pointwise_forward(c, step);
    else
        direct_forward(c, step);
}

/* The gradient at the convolution's output. */
static float *output_grad(const cpu_call *c, const cpu_step *step) {
    return cpu_grad(c, step->pool ? step->inner : step->out);
}

/* ---- data gradient ---- */

/* One axis: pixels first, first + stride, ... meet n_taps taps, the last one of them `tap`. */
typedef struct phase {
    int first, n_pixels, n_taps, tap;
    int from; /* the first pixel's lowest output; negative: in the padding */
} phase;

static phase phase_of(const ct_node *node, int remainder, int extent) {
    const int s = node->stride;
    phase p = {.first = ((remainder - node->pad) % s + s) % s};
    p.n_pixels = p.first < extent ? (extent - p.first + s - 1) / s : 0;
    p.n_taps = remainder < node->kernel ? (node->kernel - remainder + s - 1) / s : 0;
    p.tap = remainder + s * (p.n_taps - 1);
    p.from = (p.first + node->pad - remainder) / s - (p.n_taps - 1);
    return p;
}

/* Zeros beside dy that all phases of one axis need. */
static void phase_padding(const ct_node *node, int extent, int extent_out, int *before,
                          int *after) {
    *before = *after = 0;
    for (int r = 0; r < node->stride; r++) {
        phase p = phase_of(node, r, extent);
        if (p.n_taps == 0 || p.n_pixels == 0) continue;
        int end = p.from + p.n_pixels + p.n_taps - 1;
        if (-p.from > *before) *before = -p.from;
        if (end - extent_out > *after) *after = end - extent_out;
    }
}

static ct_padding gradient_padding(const cpu_step *step) {
    ct_padding p = {0};
    phase_padding(step->node, step->from.w, step->to.w, &p.before_x, &p.after_x);
    return p;
}

static ct_conv_geometry phase_geometry(const cpu_step *step, const ct_padding *pad, const phase *py,
                                       const phase *px) {
    const ct_node *node = step->node;
    const int w = step->to.w + pad->before_x + pad->after_x;
    return (ct_conv_geometry){.c_in = step->to.c / node->groups,
                              .c_out = step->from.c / node->groups,
                              .kh = py->n_taps,
                              .kw = px->n_taps,
                              .stride = 1,
                              .pad_y = -py->from,
                              .pad_x = -px->from,
                              .h_in = step->to.h,
                              .w_in = step->to.w,
                              .h_out = py->n_pixels,
                              .w_out = px->n_pixels,
                              .x_channel = plane(step->to.h, w),
                              .x_row = plane(1, w),
                              .y_channel = plane(step->from.h, step->from.w),
                              .y_row = plane(node->stride, step->from.w),
                              .y_pixel = (size_t)node->stride * CT_LANES};
}

/* Adds or writes the phase's pixels of dx, one block; dy is padded. */
static void run_phase(const cpu_call *c, const cpu_step *step, const ct_padding *pad,
                      const phase *py, const phase *px, const float *dy, int flags, float *packed,
                      float *dx) {
    const ct_node *node = step->node;
    const ct_conv_geometry g = phase_geometry(step, pad, py, px);
    const ptrdiff_t k = node->kernel, s = node->stride;
    const ptrdiff_t steps[4] = {k * k, g.c_out * k * k, -s * k, -s};
    const size_t per_group = (size_t)(g.c_in * g.c_out) * (size_t)(k * k);
    dy += (size_t)(px->from + pad->before_x) * CT_LANES;
    dx += plane(py->first, step->from.w) + (size_t)px->first * CT_LANES;
    for (size_t i = 0; i < (size_t)node->groups; i++) {
        const float *w = cpu_param(c, node->weight) + i * per_group;
        c->k->conv_pack(&g, w + py->tap * k + px->tap, steps, packed);
        c->k->conv(&g, dy + i * (size_t)g.c_in * g.x_channel, packed, NULL, flags,
                   dx + i * (size_t)g.c_out * g.y_channel);
    }
}

static void direct_data_gradient(const cpu_call *c, const cpu_step *step, bool accumulate) {
    const ct_node *node = step->node;
    const ct_padding pad = gradient_padding(step);
    const bool is_padded = pad.before_x + pad.after_x > 0;
    const size_t from = cpu_tensor_floats(step->from), to = cpu_tensor_floats(step->to);
    float *packed = c->worker->scratch;
    float *copy = packed + cpu_round(c->plan->base.graph->params[node->weight].count);
    for (size_t b = 0; b < (size_t)c->n_blocks; b++) {
        const float *dy = output_grad(c, step) + b * to;
        float *dx = cpu_grad(c, step->in) + b * from;
        if (is_padded) {
            c->k->pad(dy, step->to.c, step->to.h, step->to.w, 1, &pad, copy);
            dy = copy;
        }
        bool leaves_gaps = node->kernel < node->stride;
        if (leaves_gaps && !accumulate) memset(dx, 0, from * sizeof *dx);
        int flags = leaves_gaps || accumulate ? CT_ACCUMULATE : 0;
        for (int ry = 0; ry < node->stride; ry++)
            for (int rx = 0; rx < node->stride; rx++) {
                phase py = phase_of(node, ry, step->from.h), px = phase_of(node, rx, step->from.w);
                if (py.n_taps > 0 && px.n_taps > 0 && py.n_pixels > 0 && px.n_pixels > 0)
                    run_phase(c, step, &pad, &py, &px, dy, flags, packed, dx);
            }
    }
}

/* ---- weight gradient ---- */

static void direct_weight_gradient(const cpu_call *c, const cpu_step *step) {
    const ct_node *node = step->node;
    const source s = source_of(step);
    const ct_conv_geometry g = geometry(step, &s);
    const size_t from = cpu_tensor_floats(step->from), to = cpu_tensor_floats(step->to);
    const size_t per_group = (size_t)(g.c_in * g.c_out) * (size_t)(g.kh * g.kw);
    const size_t copied = (size_t)step->from.c * g.x_channel;
    const float *x = cpu_value(c, step->in), *dy = output_grad(c, step);
    float *copy = c->worker->scratch;
    for (size_t b = 0; s.is_copy && b < (size_t)c->n_blocks; b++)
        read_source(c, step, &s, x + b * from, copy + b * copied);
    if (s.is_copy) x = copy;
    for (size_t i = 0; i < (size_t)node->groups; i++)
        c->k->conv_wgrad(&g, x + i * (size_t)g.c_in * g.x_channel, s.is_copy ? copied : from,
                         dy + i * (size_t)g.c_out * g.y_channel, to, c->n_blocks,
                         cpu_dparam(c, node->weight) + i * per_group);
}

/* Of the weights and of the data. */
static void winograd_gradients(const cpu_call *c, const cpu_step *step, bool accumulate) {
    const ct_winograd *by = c->k->winograd(step->node->stride, step->winograd);
    const ct_winograd_geometry g = winograd_geometry(step, c->n_blocks), back = turned(g);
    float *u = c->worker->scratch, *dx = step->in != 0 ? cpu_grad(c, step->in) : NULL;
    if (dx != NULL) by->weights(&back, cpu_param(c, step->node->weight), true, u);
    by->backward(&g, cpu_value(c, step->in), output_grad(c, step), u, dx, accumulate,
                 cpu_dparam(c, step->node->weight), u + cpu_round(by->weights_size(&back)));
}

/* The gradient at the pooled output, back at the convolution's. */
static void unpool(const cpu_call *c, const cpu_step *step) {
    const size_t size = cpu_tensor_floats(pooled(step->to));
    for (size_t b = 0; b < (size_t)c->n_blocks; b++)
        c->k->conv_unpool(cpu_grad(c, step->out) + b * size, winners(c, step) + b * size,
                          step->to.c, step->to.h, step->to.w,
                          cpu_grad(c, step->inner) + b * cpu_tensor_floats(step->to));
}

static void winograd5_gradients(const cpu_call *c, const cpu_step *step, bool accumulate) {
    const ct_conv5_geometry g = geometry5(step);
    unpool(c, step);
    c->k->winograd5_backward(&g, cpu_value(c, step->in), cpu_param(c, step->node->weight),
                             output_grad(c, step), c->n_blocks, accumulate,
                             step->in != 0 ? cpu_grad(c, step->in) : NULL,
                             cpu_dparam(c, step->node->weight), c->worker->scratch);
}

/* Of weights and bias, from the pooled output's. */
static void rows5_gradients(const cpu_call *c, const cpu_step *step) {
    const ct_conv5_geometry g = geometry5(step);
    c->k->rows5_backward(&g, cpu_value(c, step->in), cpu_grad(c, step->out), winners(c, step),
                         c->n_blocks, cpu_dparam(c, step->node->weight),
                         cpu_dparam(c, step->node->bias), c->worker->scratch);
}

void ct_cpu_conv_backward(const cpu_call *c, const cpu_step *step) {
    const ct_node *node = step->node;
    if (step->rows5) {
        rows5_gradients(c, step);
        return;
    }
    bool *has_grad = &c->worker->has_grad[c->plan->root[step->in]];
    if (step->winograd5)
        winograd5_gradients(c, step, *has_grad);
    else if (step->winograd)
        winograd_gradients(c, step, *has_grad);
    else if (ct_cpu_is_depthwise(step))
        ct_cpu_depthwise_backward(c, step, *has_grad);
    else if (is_pointwise(step))
        ct_cpu_pointwise_backward(c, step, *has_grad);
    else
        direct_weight_gradient(c, step);
    if (node->bias != CT_NO_PARAM)
        c->k->channel_sums(output_grad(c, step), cpu_tensor_floats(step->to), c->n_blocks,
                           step->to.c, (size_t)(step->to.h * step->to.w),
                           cpu_dparam(c, node->bias));
    if (step->in == 0) return;
    if (!step->winograd && !step->winograd5 && !ct_cpu_is_pointwise(step) &&
        !ct_cpu_is_depthwise(step)) /* which have written both */
        direct_data_gradient(c, step, *has_grad);
    *has_grad = true;
}

/* ---- scratch: the most that one of the functions above cuts from it ---- */

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static size_t winograd_scratch(const cpu_plan *plan, const ct_kernels *k, const cpu_step *step,
                               int tile) {
    const ct_winograd *by = k->winograd(step->node->stride, tile);
    const ct_winograd_geometry g = winograd_geometry(step, (int)cpu_pass_blocks(plan));
    const ct_winograd_geometry back = turned(g);
    return cpu_round(larger(by->weights_size(&g), by->weights_size(&back))) + by->scratch(&g);
}

size_t ct_cpu_conv_scratch(const cpu_plan *plan, const ct_kernels *k, const cpu_step *step) {
    const int c_in = step->from.c, c_out = step->to.c, h = step->to.h, w = step->to.w;
    if (step->winograd)
        return larger(winograd_scratch(plan, k, step, SMALL_TILE),
                      winograd_scratch(plan, k, step, step->winograd));
    if (ct_cpu_is_depthwise(step)) return ct_cpu_depthwise_scratch(k, step);
    const ct_conv5_geometry g5 = geometry5(step);
    if (step->rows5) return k->rows5_scratch(&g5);
    if (step->winograd5)
        return larger(k->winograd5_pool_scratch(&g5), k->winograd5_backward_scratch(&g5));
    const size_t n_blocks = cpu_pass_blocks(plan);
    const source s = source_of(step);
    const ct_padding pad = gradient_padding(step);
    size_t weights = cpu_round(plan->base.graph->params[step->node->weight].count);
    size_t copy = s.is_copy ? (size_t)c_in * plane(s.h, s.w) : 0;
    size_t dy = (size_t)c_out * plane(h, w + pad.before_x + pad.after_x);
    size_t direct = larger(larger(weights + copy, weights + dy), n_blocks * copy);
    return is_pointwise(step) ? larger(direct, ct_cpu_pointwise_scratch(step)) : direct;
}
