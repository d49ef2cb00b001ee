/* Winograd convolution F(2x2, 5x5) with relu and 2x2 max pooling in lanes: a tile of the output is
 * a window of the pooling (matrices: winograd5_internal.h).
 *   y[o] = max(0, bias[o] + max over the tile of A^T [ sum_i U[o][i] . V[i] ] A)
 *   x [c_in][h_in][w_in][16]   y, index [c_out][(h_in-4)/2][(w_in-4)/2][16]   blocks of 16 samples
 *   v [36][c_in][tiles][16], m [36][c_out][tiles][16]   a chunk of tiles, in scratch */
#include "backend/cpu/kernels/window.h"
#include "backend/cpu/kernels/winograd5_internal.h"

enum {
    COLUMNS = VL == 16 ? 4 : 2, /* of a register tile: up to 6 * COLUMNS accumulators */
    CHUNK_FLOATS = 80 * 1024,   /* of v and m, beside u, x and y in the second-level cache */
};

/* G g, five taps to six frequencies, for VL filters at a time. */
INLINE void weights_column(const vf g[5], vf t[6]) {
    vf even = (-1.0f / 6) * (g[0] + g[2] + g[4]), odd = (-1.0f / 6) * (g[1] + g[3]);
    t[0] = 0.25f * g[0];
    t[1] = even + odd;
    t[2] = even - odd;
    even = (1.0f / 24) * g[0] + (1.0f / 6) * g[2] + (2.0f / 3) * g[4];
    odd = (1.0f / 12) * g[1] + (1.0f / 3) * g[3];
    t[3] = even + odd;
    t[4] = even - odd;
    t[5] = g[4];
}

/* G g G^T of the 16 filters taps[5][5][16], stored 16 floats per frequency. */
static void weights_group(const float *taps, size_t stride, float *u) {
    for (int part = 0; part < PARTS; part++) {
        vf t[5][6];
        for (int j = 0; j < 5; j++) {
            vf g[5];
            for (int i = 0; i < 5; i++) g[i] = vload(taps + (5 * i + j) * CT_LANES + part * VL);
            weights_column(g, t[j]);
        }
        for (int i = 0; i < 6; i++) {
            vf row[5] = {t[0][i], t[1][i], t[2][i], t[3][i], t[4][i]}, out[6];
            weights_column(row, out);
            for (int j = 0; j < 6; j++)
                vstore(u + (size_t)(6 * i + j) * stride + part * VL, out[j]);
        }
    }
}

void KERNEL(winograd5_weights)(const float *w, int n_in, int n_out, size_t o_step, size_t i_step,
                               float *u) {
    _Alignas(64) float taps[25 * CT_LANES];
    const size_t stride = u5_stride(n_in, n_out);
    const int rows = rows_of(n_out), n = n_in * round_up(n_out, rows);
    for (int first = 0; first < n; first += CT_LANES) {
        for (int k = 0; k < CT_LANES; k++) {
            int at = first + k, o = at / (rows * n_in) * rows + at % rows, i = at / rows % n_in;
            bool absent = o >= n_out;
            const float *g = absent ? w : w + (size_t)o * o_step + (size_t)i * i_step;
            for (int s = 0; s < 25; s++) taps[s * CT_LANES + k] = absent ? 0.0f : g[s];
        }
        weights_group(taps, stride, u + first);
    }
}

/* to[R][N] = u[n_in][R]^T * from[n_in][N]. */
INLINE void product_tile(const int R, const int N, int n_in, const float *u, const float *from,
                         float *to, size_t line) {
    vf sum[6][COLUMNS];
#pragma GCC unroll 6
    for (int o = 0; o < R; o++)
#pragma GCC unroll 5
        for (int t = 0; t < N; t++) sum[o][t] = vzero();
    for (int i = 0; i < n_in; i++, u += R, from += line) {
        vf column[COLUMNS];
#pragma GCC unroll 5
        for (int t = 0; t < N; t++) column[t] = vload(from + t * VL);
#pragma GCC unroll 6
        for (int o = 0; o < R; o++) {
            vf weight = vset(u[o]);
#pragma GCC unroll 5
            for (int t = 0; t < N; t++) sum[o][t] += weight * column[t];
        }
    }
#pragma GCC unroll 6
    for (int o = 0; o < R; o++, to += line)
#pragma GCC unroll 5
        for (int t = 0; t < N; t++) vstore(to + t * VL, sum[o][t]);
}

/* All columns of R output channels. */
INLINE void product_rows(const int R, int n_in, int n, const float *u, const float *from, float *to,
                         size_t line) {
    const int N = COLUMNS;
    for (; n >= N; n -= N, from += N * VL, to += N * VL)
        product_tile(R, N, n_in, u, from, to, line);
    switch (n) {
#if VL == 16
    case 3: product_tile(R, 3, n_in, u, from, to, line); break;
    case 2: product_tile(R, 2, n_in, u, from, to, line); break;
#endif
    case 1: product_tile(R, 1, n_in, u, from, to, line); break;
    default: break;
    }
}

void KERNEL(winograd5_product)(int n_in, int n_out, int n, const float *u, const float *from,
                               float *to, size_t line) {
    const int rows = rows_of(n_out);
    for (int o = 0; o < n_out; o += rows, u += n_in * rows, to += (size_t)rows * line) {
        if (rows == 4)
            product_rows(4, n_in, n, u, from, to, line);
        else
            product_rows(6, n_in, n, u, from, to, line);
    }
}

/* v of n_rows rows of tiles from row `first` on. */
static void input(const ct_winograd5_geometry *g, const ct_winograd5_plan *p, const float *x,
                  int first, int n_rows, float *v) {
    const size_t width = (size_t)g->w_in * CT_LANES, stride = p->v_stride;
    for (int c = 0; c < g->c_in; c++)
        for (int i = 0; i < n_rows; i++)
            for (int part = 0; part < CT_LANES; part += VL) {
                const float *corner = x + (size_t)(c * g->h_in + 2 * (first + i)) * width + part;
                const float *row[6];
                for (int r = 0; r < 6; r++) row[r] = corner + (size_t)r * width;
                float *to = v + (size_t)c * p->line + (size_t)(i * p->n_across) * CT_LANES + part;
                input5_pass(ROWS_12, row, p->n_across, to + 6 * stride, to + 12 * stride, stride);
                input5_pass(ROWS_34, row, p->n_across, to + 18 * stride, to + 24 * stride, stride);
                input5_pass(ROWS_05, row, p->n_across, to, to + 30 * stride, stride);
            }
}

/* A^T m, six frequencies to two pixels. */
INLINE void output_pair(const vf m[6], vf *first, vf *second) {
    *first = m[0] + (m[1] + m[2]) + (m[3] + m[4]);
    *second = (m[1] - m[2]) + 2.0f * (m[3] - m[4]) + m[5];
}

/* The window of one tile of one channel. */
INLINE void output(const float *m, size_t stride, vf bias, float *y, uint8_t *index) {
    vf top[6], bottom[6], value[4];
    for (int j = 0; j < 6; j++) {
        vf column[6];
        for (int i = 0; i < 6; i++) column[i] = vload(m + (size_t)(6 * i + j) * stride);
        output_pair(column, &top[j], &bottom[j]);
    }
    output_pair(top, &value[0], &value[1]);
    output_pair(bottom, &value[2], &value[3]);
    for (int q = 0; q < 4; q++) value[q] += bias;
    store_window(value, y, index);
}

static void pool_block(const ct_winograd5_geometry *g, const ct_winograd5_plan *p, const float *x,
                       const float *u, const float *bias, float *y, uint8_t *index, float *v) {
    const size_t n_windows = (size_t)(p->n_across * p->n_down) * CT_LANES;
    const size_t u_stride = u5_stride(g->c_in, g->c_out);
    float *m = v + N_XI * p->v_stride;
    for (int first = 0; first < p->n_down; first += p->n_rows) {
        int left = p->n_down - first, n_rows = left < p->n_rows ? left : p->n_rows;
        int n = n_rows * p->n_across;
        input(g, p, x, first, n_rows, v);
        for (size_t xi = 0; xi < N_XI; xi++) KERNEL(winograd5_product)
        (g->c_in, g->c_out, n * PARTS, u + xi * u_stride, v + xi * p->v_stride,
         m + xi * p->m_stride, p->line);
        for (int o = 0; o < g->c_out; o++) {
            vf b = bias != NULL ? vset(bias[o]) : vzero();
            size_t at = (size_t)o * n_windows + (size_t)(first * p->n_across) * CT_LANES;
            for (size_t k = 0; k < (size_t)n * CT_LANES; k += VL)
                output(m + (size_t)o * p->line + k, p->m_stride, b, y + at + k,
                       index != NULL ? index + at + k : NULL);
        }
    }
}

static ct_winograd5_plan forward_plan(const ct_winograd5_geometry *g) {
    return plan_of(g, N_XI * (size_t)(g->c_in + g->c_out), CHUNK_FLOATS);
}

size_t KERNEL(winograd5_pool_scratch)(const ct_winograd5_geometry *g) {
    const ct_winograd5_plan p = forward_plan(g);
    return N_XI * (u5_stride(g->c_in, g->c_out) + p.v_stride + p.m_stride);
}

void KERNEL(winograd5_pool)(const ct_winograd5_geometry *g, const float *x, const float *w,
                            const float *bias, int n_blocks, float *y, uint8_t *index,
                            float *scratch) {
    const ct_winograd5_plan p = forward_plan(g);
    const size_t x_block = (size_t)(g->c_in * g->h_in * g->w_in) * CT_LANES;
    const size_t y_block = (size_t)(g->c_out * p.n_across * p.n_down) * CT_LANES;
    KERNEL(winograd5_weights)(w, g->c_in, g->c_out, 25 * (size_t)g->c_in, 25, scratch);
    for (size_t b = 0; b < (size_t)n_blocks; b++)
        pool_block(g, &p, x + b * x_block, scratch, bias, y + b * y_block,
                   index != NULL ? index + b * y_block : NULL,
                   scratch + N_XI * u5_stride(g->c_in, g->c_out));
}
