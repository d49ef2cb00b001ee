/* 1x1 and depthwise convolutions: MobileNet's layers. Planes of 32x32 or 16x16 pixels are powers of
 * two apart, so that one pixel of all channels would fall into a few sets of the cache: a few
 * pixels of all channels are copied side by side before the product reads them c_out times. A norm
 * that only the convolution reads is applied on the way. */
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
/* So few outputs, or inputs that do not fill vectors, that transposing the input does not pay. */
enum { FEW_SUMS = 64 };
/* Pixels of the gradients' products: 2 KiB of each channel, and 256 channels stay in the
 * second-level cache; half as many where dy has more channels. */
enum { CHUNK = 32, CHUNK_ROW = CHUNK * CT_LANES + CT_LANES, MANY_OUTPUTS = 256 };

static size_t plane(ct_shape s) {
    return (size_t)s.h * (size_t)s.w * CT_LANES;
}

static void copy_pixels(const float *x, int c, size_t channel, int n, size_t row, float *out) {
    for (int i = 0; i < c; i++)
        memcpy(out + (size_t)i * row, x + (size_t)i * channel, (size_t)(n * CT_LANES) * sizeof *x);
}

/* What a product reads: block b of a tensor, or of a norm's output that is not stored. */
typedef struct operand {
    const float *x;       /* the block, or that of the norm's input */
    const cpu_step *norm; /* NULL: x is what is read */
    size_t b;
    int c;
    size_t channel;
} operand;

static void read_pixels(const cpu_call *call, const operand *o, int first, int n, size_t row,
                        float *out) {
    if (o->norm == NULL) {
        copy_pixels(o->x + first * CT_LANES, o->c, o->channel, n, row, out);
        return;
    }
    const ct_norm_args norm = ct_cpu_norm(call, o->norm);
    const float *stats = cpu_stats(call, o->norm->out) + o->b * (size_t)norm.groups * 2 * CT_LANES;
    call->k->norm_pixels(&norm, o->x, first, n, stats, out, row);
}

/* The input of a convolution. */
static operand input_of(const cpu_call *c, const cpu_step *step, size_t b) {
    const float *x = cpu_value(c, ct_cpu_source(c->plan, step));
    const cpu_step *norm = step->norm >= 0 ? &c->plan->steps[step->norm] : NULL;
    return (operand){x + b * cpu_tensor_floats(step->from), norm, b, step->from.c,
                     plane(step->from)};
}

/* y = w x for all pixels of one block. */
static void multiply(const cpu_call *c, ct_linear_geometry g, const float *w, const operand *x,
                     int n_pixels, const float *bias, int flags, float *y) {
    const int most = panel_pixels(g.n_in);
    g.x_column = g.y_column = CT_LANES;
    if (g.n_out <= FEW_OUTPUTS && x->norm == NULL) {
        g.x_row = x->channel;
        g.n_columns = n_pixels;
        c->k->linear(&g, w, x->x, bias, flags, y);
        return;
    }
    g.x_row = panel_row(g.n_in);
    for (int p = 0; p < n_pixels; p += most) {
        g.n_columns = n_pixels - p < most ? n_pixels - p : most;
        read_pixels(c, x, p, g.n_columns, g.x_row, c->worker->scratch);
        c->k->linear(&g, w, c->worker->scratch, bias, flags, y + p * CT_LANES);
    }
}

void ct_cpu_pointwise_forward(const cpu_call *c, const cpu_step *step) {
    const ct_linear_geometry g = {.n_out = step->to.c,
                                  .n_in = step->from.c,
                                  .out_step = (size_t)step->from.c,
                                  .in_step = 1,
                                  .y_row = plane(step->to)};
    for (size_t b = 0; b < (size_t)c->n_blocks; b++) {
        const operand x = input_of(c, step, b);
        multiply(c, g, cpu_param(c, step->node->weight), &x, step->to.h * step->to.w,
                 cpu_param(c, step->node->bias), step->relu ? CT_RELU : 0,
                 cpu_value(c, step->out) + b * cpu_tensor_floats(step->to));
    }
}

/* What the backward pass cuts from the scratch. */
typedef struct products {
    float *turned; /* [pixels and samples][c_in] */
    float *dy;     /* [c_out][CHUNK_ROW] */
    float *x;      /* [c_in][CHUNK_ROW] */
    float *copy;   /* of a stride: the pixels that are read */
} products;

static products cut_products(const cpu_call *c, const cpu_step *step) {
    products s = {.turned = c->worker->scratch};
    s.dy = s.turned + CHUNK * CT_LANES * cpu_round((size_t)step->from.c);
    s.x = s.dy + CHUNK_ROW * (size_t)step->to.c;
    s.copy = s.x + CHUNK_ROW * (size_t)step->from.c;
    return s;
}

/* Some pixels, and how many are in the next chunk. */
typedef struct chunk {
    int first, n, n_next;
} chunk;

static chunk chunk_at(int first, int n_pixels, int most) {
    const int left = n_pixels - first, n = left < most ? left : most;
    return (chunk){first, n, left - n < most ? left - n : most};
}

/* Sixes along the channels that they divide. */
static void lanes_weights(const cpu_call *c, const cpu_step *step, const products *s, int n,
                          bool accumulate) {
    const int c_in = step->from.c, c_out = step->to.c;
    float *dw = cpu_dparam(c, step->node->weight);
    if (c_in % 6 == 0 || c_out % 6 != 0)
        c->k->lanes_outer(c_out, c_in, n, s->dy, s->x, CHUNK_ROW, accumulate, dw, (size_t)c_in, 1);
    else
        c->k->lanes_outer(c_in, c_out, n, s->x, s->dy, CHUNK_ROW, accumulate, dw, 1, (size_t)c_in);
}

/* The weight gradient is a product of matrices over samples and pixels: dw (+)= dy x^T. */
static void chunk_weights(const cpu_call *c, const cpu_step *step, const products *s, int n,
                          bool accumulate) {
    const size_t row = cpu_round((size_t)step->from.c);
    const bool is_narrow = step->to.c <= FEW_SUMS || step->from.c % CT_LANES != 0;
    if (is_narrow && n == CHUNK) {
        lanes_weights(c, step, s, n, accumulate);
        return;
    }
    c->k->transpose(s->x, CHUNK_ROW, step->from.c, n, s->turned, row);
    c->k->outer(step->to.c, step->from.c, 1, n * CT_LANES, s->dy, CHUNK_ROW, 0, s->turned, row,
                accumulate, cpu_dparam(c, step->node->weight), (size_t)step->from.c);
}

/* The product before the chunk that reads pixels first .. first+n-1 asks for them: values of the
 * forward pass were written long ago. */
static void ask_for(const operand *o, int first, int n, ct_linear_geometry *g) {
    g->ahead = o->x + first * CT_LANES;
    g->ahead_row = o->channel;
    g->ahead_rows = o->c;
    g->ahead_pixels = n;
}

/* dx (+)= w^T dy */
static void chunk_data(const cpu_call *c, const cpu_step *step, const products *s, const chunk *k,
                       const operand *x, bool accumulate, float *dx) {
    ct_linear_geometry g = {.n_out = step->from.c,
                            .n_in = step->to.c,
                            .out_step = 1,
                            .in_step = (size_t)step->from.c,
                            .n_columns = k->n,
                            .x_row = CHUNK_ROW,
                            .x_column = CT_LANES,
                            .y_row = plane(step->from),
                            .y_column = CT_LANES};
    if (x->c > step->to.c && k->n_next > 0) ask_for(x, k->first + k->n, k->n_next, &g);
    c->k->linear(&g, cpu_param(c, step->node->weight), s->dy, NULL, accumulate ? CT_ACCUMULATE : 0,
                 dx);
}

/* A few pixels of dy are copied side by side once and serve both gradients. */
void ct_cpu_pointwise_backward(const cpu_call *c, const cpu_step *step, bool accumulate) {
    const int n_pixels = step->to.h * step->to.w;
    const int most = step->to.c > MANY_OUTPUTS ? CHUNK / 2 : CHUNK;
    const bool wants_data = step->in != 0 && step->node->stride == 1;
    const ct_padding none = {0};
    const products s = cut_products(c, step);
    for (size_t b = 0; b < (size_t)c->n_blocks; b++) {
        operand x = input_of(c, step, b);
        if (step->node->stride > 1) {
            c->k->pad(x.x, x.c, step->from.h, step->from.w, step->node->stride, &none, s.copy);
            x.x = s.copy;
            x.channel = plane(step->to);
        }
        const operand dy = {cpu_grad(c, step->out) + b * cpu_tensor_floats(step->to), NULL, b,
                            step->to.c, plane(step->to)};
        for (int p = 0; p < n_pixels; p += most) {
            const chunk k = chunk_at(p, n_pixels, most);
            read_pixels(c, &dy, p, k.n, CHUNK_ROW, s.dy);
            read_pixels(c, &x, p, k.n, CHUNK_ROW, s.x);
            chunk_weights(c, step, &s, k.n, b > 0 || p > 0);
            if (wants_data)
                chunk_data(c, step, &s, &k, &x, accumulate,
                           cpu_grad(c, step->in) + b * cpu_tensor_floats(step->from) +
                               p * CT_LANES);
        }
    }
}

size_t ct_cpu_pointwise_scratch(const cpu_step *step) {
    const size_t c_in = (size_t)step->from.c, c_out = (size_t)step->to.c;
    const size_t panel = c_in * panel_row(step->from.c);
    size_t backward = CHUNK * CT_LANES * cpu_round(c_in) + CHUNK_ROW * (c_out + c_in);
    if (step->node->stride > 1) backward += c_in * plane(step->to);
    return panel > backward ? panel : backward;
}

/* ---- depthwise ---- */

static ct_depthwise_geometry depthwise(const cpu_step *step) {
    return (ct_depthwise_geometry){step->from.c, step->from.h, step->from.w,
                                   step->to.h,   step->to.w,   step->node->stride};
}

size_t ct_cpu_depthwise_scratch(const ct_kernels *k, const cpu_step *step) {
    const ct_depthwise_geometry g = depthwise(step);
    return k->depthwise_scratch(&g);
}

/* Channels first .. first+n-1 of block b, with the norm that the convolution applies. */
typedef struct channels {
    ct_depthwise_geometry g;
    const float *x;
    ct_norm_args norm;
    const ct_norm_args *applied; /* NULL: no norm is */
    const float *stats;          /* its */
    size_t from, to;             /* where they begin in the input and in the output */
} channels;

static void find_channels(const cpu_call *c, const cpu_step *step, size_t b, int first, int n,
                          channels *k) {
    *k = (channels){.g = depthwise(step)};
    k->g.c = n;
    k->g.first = first;
    k->from = b * cpu_tensor_floats(step->from) + (size_t)first * plane(step->from);
    k->to = b * cpu_tensor_floats(step->to) + (size_t)first * plane(step->to);
    k->x = cpu_value(c, ct_cpu_source(c->plan, step)) + k->from;
    if (step->norm < 0) return;
    k->norm = ct_cpu_norm(c, &c->plan->steps[step->norm]);
    k->applied = &k->norm;
    k->stats = cpu_stats(c, step->in) + b * (size_t)k->norm.groups * 2 * CT_LANES;
}

static void depthwise_some(const cpu_call *c, const cpu_step *step, int first, int n) {
    const float *bias = cpu_param(c, step->node->bias);
    channels k;
    for (size_t b = 0; b < (size_t)c->n_blocks; b++) {
        find_channels(c, step, b, first, n, &k);
        c->k->depthwise(&k.g, k.x, k.applied, k.stats, cpu_param(c, step->node->weight) + 9 * first,
                        bias != NULL ? bias + first : NULL, step->relu ? CT_RELU : 0,
                        cpu_value(c, step->out) + k.to, c->worker->scratch);
    }
}

/* Group by group of the norm: what its statistics were taken of is still near when it is applied.
 */
void ct_cpu_depthwise_forward(const cpu_call *c, const cpu_step *step) {
    if (step->norm < 0) {
        depthwise_some(c, step, 0, step->from.c);
        return;
    }
    const cpu_step *norm = &c->plan->steps[step->norm];
    const int n_groups = norm->node->groups, per_group = step->from.c / n_groups;
    for (int group = 0; group < n_groups; group++) {
        ct_cpu_norm_stats(c, norm, group);
        depthwise_some(c, step, group * per_group, per_group);
    }
}

void ct_cpu_depthwise_backward(const cpu_call *c, const cpu_step *step, bool accumulate) {
    channels k;
    for (size_t b = 0; b < (size_t)c->n_blocks; b++) {
        find_channels(c, step, b, 0, step->from.c, &k);
        c->k->depthwise_backward(&k.g, k.x, k.applied, k.stats, cpu_grad(c, step->out) + k.to,
                                 cpu_param(c, step->node->weight), accumulate ? CT_ACCUMULATE : 0,
                                 b > 0, step->in != 0 ? cpu_grad(c, step->in) + k.from : NULL,
                                 cpu_dparam(c, step->node->weight), c->worker->scratch);
    }
}
