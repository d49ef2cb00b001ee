/* Depthwise 3x3 convolution in lanes, pad 1, stride 1 or 2: every channel by itself.
 *   y[c][i][j] = b[c] + sum_{u,v} w[c][u][v] x[c][i s + u - 1][j s + v - 1]
 *   18 flops per output and sample, 1 to 4 loads: bound by memory for large pictures.
 * The lines of a picture that an output row meets are copied into a ring in the first-level cache,
 * with a zero at both ends and lines of zeros above and below: every output is an inner one. An
 * EvoNorm is applied on the way. */
#include "backend/cpu/kernels/gate.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/reduce.h"
#include "backend/cpu/kernels/vector.h"

#include <string.h>

enum { RING = 3, N_LINES = RING + 1 }; /* and a line of zeros */

/* Outputs side by side: with nine taps and ten inputs 27 of 32 registers. AVX-512 has enough sums under
 * way with four. */
enum { MAX_PX = VL == 4 && REGISTERS == 32 ? 8 : 4 };

/* A channel of VL samples, read line by line. */
typedef struct reader {
    const float *x;
    int h, w;
    const ct_norm_args *norm; /* NULL: x as it is */
    gated gate;               /* of the norm */
    float *lines;             /* [N_LINES][w + 2][VL] */
} reader;

static size_t line_floats(int w) {
    return (size_t)(w + 2) * VL;
}

size_t KERNEL(depthwise_scratch)(const ct_depthwise_geometry *g) {
    return 2 * N_LINES * (size_t)(g->w + 2) * CT_LANES;
}

static void clear_lines(float *lines, int w) {
    memset(lines, 0, N_LINES * line_floats(w) * sizeof *lines);
}

/* Channel c, samples part .. part+VL-1 of a block. */
static reader reader_of(const float *x, int h, int w, int c, int part, float *lines) {
    return (reader){.x = x + (size_t)(c * h * w) * CT_LANES + part, .h = h, .w = w, .lines = lines};
}

/* Channel c of the norm is applied on the way. */
static void apply_norm(reader *r, const ct_norm_args *norm, const float *stats, int c, int part) {
    if (norm == NULL) return;
    const size_t group = (size_t)(c / (norm->c / norm->groups));
    r->norm = norm;
    r->gate = gated_channel(norm, c, vload(stats + (group * 2 + 1) * CT_LANES + (size_t)part));
}

/* Line i of the picture, from the zero before it on. */
INLINE float *line_at(const reader *r, int i) {
    const int slot = i < 0 || i >= r->h ? RING : i % RING;
    return r->lines + (size_t)slot * line_floats(r->w);
}

INLINE void norm_line(const reader *r, const float *x, float *line, const bool S0) {
    const gated gate = r->gate;
    for (int j = 0; j < r->w; j++) {
        vstore(line + j * VL, gated_value(&gate, vload(x + j * CT_LANES), S0));
    }
}

/* Lines come in order, so that the one that is overwritten has been used. */
static void read_line(const reader *r, int i) {
    if (i >= r->h) return;
    const float *x = r->x + (size_t)(i * r->w) * CT_LANES;
    float *line = line_at(r, i) + VL;
    if (r->norm == NULL)
        for (int j = 0; j < r->w; j++) vstore(line + j * VL, vload(x + j * CT_LANES));
    else if (r->norm->v != NULL)
        norm_line(r, x, line, true);
    else
        norm_line(r, x, line, false);
}

/* Lines i - 1 .. i + 1. */
typedef struct window3 {
    const float *line[3];
} window3;

static window3 window_at(const reader *r, int i) {
    return (window3){{line_at(r, i - 1), line_at(r, i), line_at(r, i + 1)}};
}

INLINE vf finish(vf sum, int flags) {
    return flags & CT_RELU ? vmax(sum, vzero()) : sum;
}

/* PX outputs of a row from column `at` of the lines on. */
INLINE void forward_tile(const window3 *x, int at, const vf *w, vf bias, int flags, float *y,
                         const int PX, const int S) {
    vf acc[MAX_PX];
#pragma GCC unroll 8
    for (int p = 0; p < PX; p++) acc[p] = flags & CT_ACCUMULATE ? vload(y + p * CT_LANES) : bias;
#pragma GCC unroll 3
    for (int u = 0; u < 3; u++) {
        vf in[MAX_PX + 5];
#pragma GCC unroll 10
        for (int k = 0; k < (PX - 1) * S + 3; k++)
            in[k] = in_register(vload(x->line[u] + (at + k) * VL));
#pragma GCC unroll 3
        for (int v = 0; v < 3; v++)
#pragma GCC unroll 8
            for (int p = 0; p < PX; p++) acc[p] += w[3 * u + v] * in[p * S + v];
    }
#pragma GCC unroll 8
    for (int p = 0; p < PX; p++) vstore(y + p * CT_LANES, finish(acc[p], flags));
}

INLINE void forward_row(const window3 *x, int n, const vf *w, vf bias, int flags, float *y,
                        const int S) {
    int j = 0;
    for (; MAX_PX == 8 && S == 1 && j + 8 <= n; j += 8)
        forward_tile(x, j, w, bias, flags, y + j * CT_LANES, 8, S);
    for (; j + 4 <= n; j += 4) forward_tile(x, j * S, w, bias, flags, y + j * CT_LANES, 4, S);
    for (; j < n; j++) forward_tile(x, j * S, w, bias, flags, y + j * CT_LANES, 1, S);
}

INLINE void forward_plane(const reader *x, const ct_depthwise_geometry *g, const float *w, vf bias,
                          int flags, float *y, const int S) {
    vf taps[9];
    for (int k = 0; k < 9; k++) taps[k] = vset(w[k]);
    read_line(x, 0);
    for (int i = 0; i < g->h_out; i++, y += g->w_out * CT_LANES) {
        if (S == 2 && i > 0) read_line(x, 2 * i);
        read_line(x, i * S + 1);
        const window3 lines = window_at(x, i * S);
        forward_row(&lines, g->w_out, taps, bias, flags, y, S);
    }
}

void KERNEL(depthwise)(const ct_depthwise_geometry *g, const float *x, const ct_norm_args *norm,
                       const float *stats, const float *w, const float *bias, int flags, float *y,
                       float *scratch) {
    clear_lines(scratch, g->w);
    for (int c = 0; c < g->c; c++, w += 9, y += g->h_out * g->w_out * CT_LANES) {
        const vf b = bias != NULL ? vset(bias[c]) : vzero();
        for (int part = 0; part < CT_LANES; part += VL) {
            reader r = reader_of(x, g->h, g->w, c, part, scratch);
            apply_norm(&r, norm, stats, g->first + c, part);
            if (g->stride == 1)
                forward_plane(&r, g, w, b, flags, y + part, 1);
            else
                forward_plane(&r, g, w, b, flags, y + part, 2);
        }
    }
}

/* ---- backward ---- */

/* Adds PX outputs' share to the nine sums; dy and x are lines, from the zero before them on. */
INLINE void weights_tile(const window3 *x, const float *dy, int j, vf *sums, const int PX,
                         const int S) {
    vf d[4];
#pragma GCC unroll 4
    for (int p = 0; p < PX; p++) d[p] = vload(dy + (j + p + 1) * VL);
#pragma GCC unroll 3
    for (int u = 0; u < 3; u++) {
        vf in[9];
#pragma GCC unroll 9
        for (int k = 0; k < (PX - 1) * S + 3; k++) in[k] = vload(x->line[u] + (j * S + k) * VL);
#pragma GCC unroll 3
        for (int v = 0; v < 3; v++)
#pragma GCC unroll 4
            for (int p = 0; p < PX; p++) sums[3 * u + v] += d[p] * in[p * S + v];
    }
}

INLINE void weights_row(const window3 *x, const float *dy, int n, vf *out, const int S) {
    vf sums[9];
#pragma GCC unroll 9
    for (int k = 0; k < 9; k++) sums[k] = out[k];
    int j = 0;
    for (; j + 4 <= n; j += 4) weights_tile(x, dy, j, sums, 4, S);
    for (; j < n; j++) weights_tile(x, dy, j, sums, 1, S);
#pragma GCC unroll 9
    for (int k = 0; k < 9; k++) out[k] = sums[k];
}

INLINE void put(float *dx, vf d, int flags) {
    vstore(dx, flags & CT_ACCUMULATE ? vload(dx) + d : d);
}

/* dx of the pixels (2 i, 2 j) .. (2 i + 1, 2 j + 1) of stride 2 that exist: the taps of their
 * parity meet the outputs i, i + 1 and j, j + 1. */
INLINE void spread_row(const ct_depthwise_geometry *g, const float *dy, const float *below, int i,
                       const vf *w, int flags, float *dx) {
    float *lower = dx + g->w * CT_LANES;
    const bool has_lower = 2 * i + 1 < g->h;
    for (int j = 0; j < g->w_out; j++) {
        const vf a = vload(dy + (j + 1) * VL), b = vload(dy + (j + 2) * VL);
        const vf c = vload(below + (j + 1) * VL), d = vload(below + (j + 2) * VL);
        const int left = 2 * j * CT_LANES, right = left + CT_LANES;
        const bool has_right = 2 * j + 1 < g->w;
        put(dx + left, w[4] * a, flags);
        if (has_right) put(dx + right, w[5] * a + w[3] * b, flags);
        if (has_lower) put(lower + left, w[7] * a + w[1] * c, flags);
        if (has_lower && has_right)
            put(lower + right, w[8] * a + w[6] * b + w[2] * c + w[0] * d, flags);
    }
}

typedef struct gradient {
    const ct_depthwise_geometry *g;
    reader x, dy;
    vf sums[9];
    vf w[9]; /* stride 1: turned by half a circle, as the data gradient reads them */
    int flags;
    float *dx; /* NULL: the weights' gradient alone */
} gradient;

INLINE void backward_plane(gradient *t, const int S) {
    const ct_depthwise_geometry *g = t->g;
    read_line(&t->x, 0);
    read_line(&t->dy, 0);
    for (int i = 0; i < g->h_out; i++) {
        if (S == 2 && i > 0) read_line(&t->x, 2 * i);
        read_line(&t->x, i * S + 1);
        read_line(&t->dy, i + 1);
        const window3 x = window_at(&t->x, i * S), dy = window_at(&t->dy, i);
        weights_row(&x, dy.line[1], g->w_out, t->sums, S);
        if (t->dx == NULL) continue;
        float *dx = t->dx + (size_t)(i * S * g->w) * CT_LANES;
        if (S == 1)
            forward_row(&dy, g->w, t->w, vzero(), t->flags, dx, 1);
        else
            spread_row(g, dy.line[1], dy.line[2], i, t->w, t->flags, dx);
    }
}

void KERNEL(depthwise_backward)(const ct_depthwise_geometry *g, const float *x,
                                const ct_norm_args *norm, const float *stats, const float *dy,
                                const float *w, int flags, bool add_weights, float *dx, float *dw,
                                float *scratch) {
    float *dy_lines = scratch + N_LINES * line_floats(g->w);
    clear_lines(scratch, g->w);
    clear_lines(dy_lines, g->w_out);
    for (int c = 0; c < g->c; c++, w += 9, dw += 9) {
        const size_t at = (size_t)(c * g->h * g->w) * CT_LANES;
        for (int k = 0; k < 9 && !add_weights; k++) dw[k] = 0;
        for (int part = 0; part < CT_LANES; part += VL) {
            gradient t = {.g = g, .flags = flags};
            if (dx != NULL) t.dx = dx + at + part;
            t.x = reader_of(x, g->h, g->w, c, part, scratch);
            apply_norm(&t.x, norm, stats, g->first + c, part);
            t.dy = reader_of(dy, g->h_out, g->w_out, c, part, dy_lines);
            for (int k = 0; k < 9; k++) t.w[k] = vset(g->stride == 1 ? w[8 - k] : w[k]);
            if (g->stride == 1)
                backward_plane(&t, 1);
            else
                backward_plane(&t, 2);
            reduce(t.sums, dw);
            dw[8] += vsum(t.sums[8]);
        }
    }
}
