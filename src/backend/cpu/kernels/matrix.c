/* Products of matrices: linear layers and 1x1 convolutions, and their weight gradients (those of
 * narrow 1x1 convolutions: lanes_outer.c).
 *   linear: y[o][lane] = b[o] + sum_i w(o, i) x[i][lane]; 2 n_in flops per output and sample.
 *           Tile: M outputs x 2 vectors of samples (of two blocks or pixels) in registers; weights
 *           are read where they are.
 *   outer:  c[i][j] = sum_k a(i, k) b[k][j]; 2 flops per (i, j, k). Tile: M rows x 2 vectors of j.
 * In the weight gradient the sum runs over samples, so x is transposed first (samples become rows):
 * a vector is then 16 inputs, and no sum across lanes is left. */
#include "backend/cpu/kernels/fetch.h"

/* 2 M accumulators: 24 of 32, 12 or 8 of 16; with NEON 16 of 32, beside M vectors of weights. */
enum { TILE_M = VL == 16 ? 12 : VL == 8 ? 6 : REGISTERS == 32 ? 8 : 4 };

/* The address of row m of a tile whose rows are `step` apart: three bases and three multiples, so
 * that all of them fit the general registers. */
#define ROW(base, m, step) ((base)[(m) / 4] + (size_t)((m) % 4) * (step))

#if defined(CT_NEON)
/* Four steps of the sums of M rows whose weights lie side by side: v0 and v1 of a step at x0, x1. */
INLINE void four_steps(vf *sum0, vf *sum1, const float *const base[3], size_t row, const float *x0,
                       const float *x1, size_t x_step, const int M, const bool two) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++, x0 += x_step, x1 += x_step) {
        const vf v0 = vload(x0), v1 = two ? vload(x1) : vzero();
#pragma GCC unroll 12
        for (int m = 0; m < M; m++) {
            const vweight w = weight_of(ROW(base, m, row), k, 4);
            sum0[m] = add_product(sum0[m], w, v0);
            if (two) sum1[m] = add_product(sum1[m], w, v1);
        }
    }
}
#endif

typedef struct linear_args {
    const float *w;
    size_t out_step, in_step;
    int n_in;
    const float *bias;
    int flags;
    size_t x_row, y_row;
    bool fetch; /* a large output, not in the cache yet */
} linear_args;

/* M outputs for one or two vectors of samples; w, bias and y are at the first output. */
INLINE void linear_tile(const linear_args *a, const float *w, const size_t out_step,
                        const size_t in_step, const bool IN_ROWS, const float *bias,
                        const float *x0, const float *x1, float *y0, float *y1, const int M,
                        const bool two) {
    vf a0[TILE_M], a1[TILE_M];
    const size_t y_row = a->y_row, x_row = a->x_row;
    const float *base[3] = {w, w + (M > 4 ? 4 * out_step : 0), w + (M > 8 ? 8 * out_step : 0)};
    for (int m = 0; m < M && a->fetch; m++) { /* while the sum runs: the stores would wait for it */
        __builtin_prefetch(y0 + (size_t)m * y_row, 1);
        if (two) __builtin_prefetch(y1 + (size_t)m * y_row, 1);
    }
#pragma GCC unroll 12
    for (int m = 0; m < M; m++) {
        a0[m] = bias != NULL ? vset(bias[m]) : vzero();
        a1[m] = a0[m];
        if (a->flags & CT_ACCUMULATE) {
            a0[m] += vload(y0 + (size_t)m * y_row);
            if (two) a1[m] += vload(y1 + (size_t)m * y_row);
        }
    }
    int i = 0;
#if defined(CT_NEON)
    for (; IN_ROWS && i + 4 <= a->n_in; i += 4, x0 += 4 * x_row, x1 += 4 * x_row) {
        four_steps(a0, a1, base, out_step, x0, x1, x_row, M, two);
        for (int k = 0; k < 3; k++) base[k] += 4;
    }
#endif
    for (; i < a->n_in; i++, x0 += x_row, x1 += x_row) {
        vf v0 = vload(x0), v1 = vzero();
        if (two) v1 = vload(x1);
#pragma GCC unroll 12
        for (int m = 0; m < M; m++) {
            const vweight w_m = IN_ROWS ? weight_of(ROW(base, m, out_step), 0, 1)
                                        : weight_of(base[m / 4], m % 4, M - m / 4 * 4);
            a0[m] = add_product(a0[m], w_m, v0);
            if (two) a1[m] = add_product(a1[m], w_m, v1);
        }
        for (int k = 0; k < 3; k++) base[k] += in_step;
    }
#pragma GCC unroll 12
    for (int m = 0; m < M; m++) {
        vf out0 = a->flags & CT_RELU ? vmax(a0[m], vzero()) : a0[m];
        vf out1 = a->flags & CT_RELU ? vmax(a1[m], vzero()) : a1[m];
        vstore(y0 + (size_t)m * y_row, out0);
        if (two) vstore(y1 + (size_t)m * y_row, out1);
    }
}

INLINE void linear_pair(const linear_args *a, int o, const float *x0, const float *x1, float *y0,
                        float *y1, const int M, const bool two) {
    const float *w = a->w + (size_t)o * a->out_step;
    const float *bias = a->bias != NULL ? a->bias + o : NULL;
    y0 += (size_t)o * a->y_row;
    y1 += (size_t)o * a->y_row;
    if (a->in_step == 1)
        linear_tile(a, w, a->out_step, 1, true, bias, x0, x1, y0, y1, M, two);
    else
        linear_tile(a, w, 1, a->in_step, false, bias, x0, x1, y0, y1, M, two);
}

/* The weights of the outputs after a tile's, while its n columns are computed: a model's weights are
 * read once a pass and come from far away. Long rows are fetched early by the machine itself. */
enum { SHORT_ROW = 512, FEW_COLUMNS = 8 };

static ct_ahead next_weights(const linear_args *a, int o, int M, int n) {
    if (a->in_step != 1 || a->n_in > SHORT_ROW || n < FEW_COLUMNS) return (ct_ahead){0};
    return ahead_of(a->w + (size_t)(o + M) * a->out_step, 0, 1, M * a->n_in / CT_LANES, n / 2);
}

/* M outputs, all columns: their weights stay in the first-level cache. */
INLINE void linear_rows(const linear_args *a, int o, const float *x, size_t x_column, int n_columns,
                        float *y, size_t y_column, ct_ahead *next, const int M) {
    const int n_parts = CT_LANES / VL, n = n_columns * n_parts;
    ct_ahead weights = next_weights(a, o, M, n);
    int k = 0;
    for (; k + 2 <= n; k += 2) {
        fetch_ahead(&weights, true);
        fetch_ahead(next, false);
        size_t b0 = (size_t)(k / n_parts), p0 = (size_t)(k % n_parts * VL);
        size_t b1 = (size_t)((k + 1) / n_parts), p1 = (size_t)((k + 1) % n_parts * VL);
        linear_pair(a, o, x + b0 * x_column + p0, x + b1 * x_column + p1, y + b0 * y_column + p0,
                    y + b1 * y_column + p1, M, true);
    }
    if (k == n) return;
    size_t b0 = (size_t)(k / n_parts), p0 = (size_t)(k % n_parts * VL);
    const float *x0 = x + b0 * x_column + p0;
    float *y0 = y + b0 * y_column + p0;
    linear_pair(a, o, x0, x0, y0, y0, M, false);
}

void KERNEL(linear)(const ct_linear_geometry *g, const float *w, const float *x, const float *bias,
                    int flags, float *y) {
    const linear_args a = {w,     g->out_step, g->in_step, g->n_in,          bias,
                           flags, g->x_row,    g->y_row,   g->n_columns > 16};
    const int n_tiles = (g->n_out + TILE_M - 1) / TILE_M;
    ct_ahead next = ahead_of(g->ahead, g->ahead_row, g->ahead_rows, g->ahead_pixels,
                             n_tiles * (g->n_columns * (CT_LANES / VL) / 2));
    int o = 0;
    for (; o + TILE_M <= g->n_out; o += TILE_M)
        linear_rows(&a, o, x, g->x_column, g->n_columns, y, g->y_column, &next, TILE_M);
    for (; o + 4 <= g->n_out; o += 4)
        linear_rows(&a, o, x, g->x_column, g->n_columns, y, g->y_column, &next, 4);
    for (; o < g->n_out; o++)
        linear_rows(&a, o, x, g->x_column, g->n_columns, y, g->y_column, &next, 1);
}

/* The first n floats of a vector, to an address that may end there. */
INLINE void store_some(float *p, vf v, int n) {
    if (n >= VL) {
        vstore(p, v);
        return;
    }
    float values[VL];
    vstore(values, v);
    for (int k = 0; k < n; k++) p[k] = values[k];
}

INLINE vf load_some(const float *p, int n) {
    if (n >= VL) return vload(p);
    float values[VL] = {0};
    for (int k = 0; k < n; k++) values[k] = p[k];
    return vload(values);
}

typedef struct outer_args {
    int n_segments, segment;
    const float *a;
    size_t a_row, a_segment;
    const float *b;
    size_t b_row;
    bool accumulate;
    float *c;
    size_t c_row;
} outer_args;

/* Columns j .. j+2*VL-1 of M rows; `left` of them exist. */
INLINE void outer_tile(const outer_args *t, int i, int j, int left, const int M, const bool two) {
    vf c0[TILE_M], c1[TILE_M];
    const float *a = t->a + (size_t)i * t->a_row, *b = t->b + j;
    float *c = t->c + (size_t)i * t->c_row + j;
#pragma GCC unroll 12
    for (int m = 0; m < M; m++) {
        c0[m] = c1[m] = vzero();
        if (!t->accumulate) continue;
        c0[m] = load_some(c + (size_t)m * t->c_row, left);
        if (two) c1[m] = load_some(c + (size_t)m * t->c_row + VL, left - VL);
    }
    for (int s = 0; s < t->n_segments; s++, a += t->a_segment) {
        const float *base[3] = {a, a + (M > 4 ? 4 * t->a_row : 0), a + (M > 8 ? 8 * t->a_row : 0)};
        int k = 0;
#if defined(CT_NEON)
        for (; k + 4 <= t->segment; k += 4, b += 4 * t->b_row) {
            four_steps(c0, c1, base, t->a_row, b, b + VL, t->b_row, M, two);
            for (int r = 0; r < 3; r++) base[r] += 4;
        }
#endif
        for (; k < t->segment; k++, b += t->b_row) {
            vf v0 = vload(b), v1 = vzero();
            if (two) v1 = vload(b + VL);
#pragma GCC unroll 12
            for (int m = 0; m < M; m++) {
                const vweight value = weight_of(ROW(base, m, t->a_row), 0, 1);
                c0[m] = add_product(c0[m], value, v0);
                if (two) c1[m] = add_product(c1[m], value, v1);
            }
            for (int r = 0; r < 3; r++) base[r]++;
        }
    }
#pragma GCC unroll 12
    for (int m = 0; m < M; m++) {
        store_some(c + (size_t)m * t->c_row, c0[m], left);
        if (two) store_some(c + (size_t)m * t->c_row + VL, c1[m], left - VL);
    }
}

INLINE void outer_rows(const outer_args *t, int i, int n, const int M) {
    int j = 0;
    for (; n - j > VL; j += 2 * VL) outer_tile(t, i, j, n - j, M, true);
    if (j < n) outer_tile(t, i, j, n - j, M, false);
}

void KERNEL(outer)(int m, int n, int n_segments, int segment, const float *a, size_t a_row,
                   size_t a_segment, const float *b, size_t b_row, bool accumulate, float *c,
                   size_t c_row) {
    const outer_args t = {n_segments, segment, a, a_row, a_segment, b, b_row, accumulate, c, c_row};
    int i = 0;
    for (; i + TILE_M <= m; i += TILE_M) outer_rows(&t, i, n, TILE_M);
    for (; i + 4 <= m; i += 4) outer_rows(&t, i, n, 4);
    for (; i < m; i++) outer_rows(&t, i, n, 1);
}
