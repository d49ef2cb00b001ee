/* Winograd convolution F(4x4, 5x5) with relu and 2x2 max pooling in lanes: a tile of the output is
 * four windows of the pooling (matrices: winograd8.h, in both directions).
 *   y[o] = max(0, bias[o] + max over a window of A^T [ sum_i U[o][i] . V[i] ] A)
 *   x [c_in][h][w][16]   y, index [c_out][(h-4)/2][(w-4)/2][16]   blocks of 16 samples
 *   v [64][c_in][tiles][16]    a chunk of tiles, in scratch
 *   m [64][R][tiles][16]       and R output channels of it at a time
 * 64 products replace 400. */
#include "backend/cpu/kernels/window.h"
#include "backend/cpu/kernels/winograd5_internal.h"
#include "backend/cpu/kernels/winograd8.h"

enum {
    N_F = N_POINTS * N_POINTS,
    CHUNK_FLOATS = 96 * 1024, /* of v, beside m, u, x and y in the second-level cache */
};

static ct_winograd5_plan pool_plan(const ct_conv5_geometry *g) {
    return plan_of(g, 4, (size_t)(N_F * g->c_in), CHUNK_FLOATS, g->c_in, rows_of(g->c_out));
}

/* ---- input ---- */

/* Eight pixels of a row, of which n exist. */
INLINE void pixels8(const float *row, int n, vf d[8]) {
    if (n >= 8)
        for (int j = 0; j < 8; j++) d[j] = vload(row + j * CT_LANES);
    else
        for (int j = 0; j < 8; j++) d[j] = j < n ? vload(row + j * CT_LANES) : vzero();
}

/* v of one tile: n_down rows and n_across columns of it exist; lines of x `row` floats apart. */
static void input_tile(const float *x, size_t row, int n_down, int n_across, float *v,
                       size_t stride) {
    vf t[8][8];
    for (int i = 0; i < 8; i++) {
        vf d[8];
        pixels8(x + (size_t)i * row, i < n_down ? n_across : 0, d);
        input8(d, t[i]);
    }
    for (int j = 0; j < 8; j++) {
        const vf column[8] = {t[0][j], t[1][j], t[2][j], t[3][j],
                              t[4][j], t[5][j], t[6][j], t[7][j]};
        vf out[8];
        input8(column, out);
        for (int i = 0; i < 8; i++) vstore(v + (size_t)(N_POINTS * i + j) * stride, out[i]);
    }
}

/* v of n_rows rows of tiles from row `first` on. */
static void input(const ct_conv5_geometry *g, const ct_winograd5_plan *p, const float *x, int first,
                  int n_rows, float *v) {
    const size_t row = (size_t)g->w * CT_LANES;
    for (int c = 0; c < g->c_in; c++)
        for (int k = 0; k < n_rows * p->n_across; k++)
            for (int part = 0; part < CT_LANES; part += VL) {
                const int top = 4 * (first + k / p->n_across), left = 4 * (k % p->n_across);
                input_tile(x + (size_t)(c * g->h + top) * row + (size_t)left * CT_LANES + part, row,
                           g->h - top, g->w - left,
                           v + (size_t)c * p->line + (size_t)k * CT_LANES + part, p->v_stride);
            }
}

/* ---- output ---- */

/* The four windows of one tile of one channel, as far as they exist; y_row floats between rows of
 * windows. */
static void output_tile(const float *m, size_t stride, vf bias, int n_down, int n_across,
                        size_t y_row, float *y, uint8_t *index) {
    vf half[8][4], out[4][4];
    for (int j = 0; j < 8; j++) {
        vf column[8];
        for (int i = 0; i < 8; i++) column[i] = vload(m + (size_t)(N_POINTS * i + j) * stride);
        output8(column, half[j]);
    }
    for (int i = 0; i < 4; i++) {
        const vf line[8] = {half[0][i], half[1][i], half[2][i], half[3][i],
                            half[4][i], half[5][i], half[6][i], half[7][i]};
        output8(line, out[i]);
        for (int j = 0; j < 4; j++) out[i][j] += bias;
    }
    for (int k = 0; k < 4; k++) {
        const int i = k / 2, j = k % 2;
        const size_t at = (size_t)i * y_row + (size_t)(j * CT_LANES);
        const vf value[4] = {out[2 * i][2 * j], out[2 * i][2 * j + 1], out[2 * i + 1][2 * j],
                             out[2 * i + 1][2 * j + 1]};
        if (i < n_down && j < n_across)
            store_window(value, y + at, index != NULL ? index + at : NULL);
    }
}

/* One channel of n_rows rows of tiles from row `first` on; y and index are the channel's. */
static void output(const ct_conv5_geometry *g, const ct_winograd5_plan *p, const float *m, vf bias,
                   int first, int n_rows, float *y, uint8_t *index) {
    const int across = (g->w - 4) / 2, down = (g->h - 4) / 2;
    for (int k = 0; k < n_rows * p->n_across; k++) {
        const int i = 2 * (first + k / p->n_across), j = 2 * (k % p->n_across);
        const size_t at = (size_t)(i * across + j) * CT_LANES;
        for (int part = 0; part < CT_LANES; part += VL)
            output_tile(m + (size_t)k * CT_LANES + part, p->m_stride, bias, down - i, across - j,
                        (size_t)across * CT_LANES, y + at + part,
                        index != NULL ? index + at + part : NULL);
    }
}

static void pool_block(const ct_conv5_geometry *g, const ct_winograd5_plan *p, const float *x,
                       const float *u, const float *bias, float *y, uint8_t *index, float *v) {
    const size_t plane = (size_t)((g->w - 4) / 2 * ((g->h - 4) / 2)) * CT_LANES;
    const size_t u_stride = u5_stride(g->c_in, g->c_out);
    const int rows = rows_of(g->c_out);
    float *m = v + N_F * p->v_stride;
    for (int first = 0; first < p->n_down; first += p->n_rows) {
        const int left = p->n_down - first, n_rows = left < p->n_rows ? left : p->n_rows;
        input(g, p, x, first, n_rows, v);
        for (int o = 0; o < g->c_out; o += rows) {
            for (size_t f = 0; f < N_F; f++) KERNEL(winograd5_product)
            (g->c_in, rows, n_rows * p->n_across * PARTS, u + f * u_stride + (size_t)(o * g->c_in),
             v + f * p->v_stride, m + f * p->m_stride, p->line);
            for (int k = o; k < o + rows && k < g->c_out; k++)
                output(g, p, m + (size_t)(k - o) * p->line, bias != NULL ? vset(bias[k]) : vzero(),
                       first, n_rows, y + (size_t)k * plane,
                       index != NULL ? index + (size_t)k * plane : NULL);
        }
    }
}

size_t KERNEL(winograd5_pool_scratch)(const ct_conv5_geometry *g) {
    const ct_winograd5_plan p = pool_plan(g);
    return N_F * (u5_stride(g->c_in, g->c_out) + p.v_stride + p.m_stride);
}

void KERNEL(winograd5_pool)(const ct_conv5_geometry *g, const float *x, const float *w,
                            const float *bias, int n_blocks, float *y, uint8_t *index,
                            float *scratch) {
    const ct_winograd5_plan p = pool_plan(g);
    const size_t x_block = (size_t)(g->c_in * g->h * g->w) * CT_LANES;
    const size_t y_block = (size_t)(g->c_out * ((g->w - 4) / 2) * ((g->h - 4) / 2)) * CT_LANES;
    float *v = scratch + N_F * u5_stride(g->c_in, g->c_out);
    KERNEL(winograd5_weights)
    (w, g->c_in, g->c_out, 25 * (size_t)g->c_in, 25, N_POINTS, scratch);
    for (size_t b = 0; b < (size_t)n_blocks; b++)
        pool_block(g, &p, x + b * x_block, scratch, bias, y + b * y_block,
                   index != NULL ? index + b * y_block : NULL, v);
}

/* dx of the convolution's output from dy of the pooled one, all four pixels of every window. */
void KERNEL(conv_unpool)(const float *dy, const uint8_t *index, int c, int h_out, int w_out,
                         float *dx) {
    const size_t row = (size_t)w_out * CT_LANES;
    for (int i = 0; i < c * h_out / 2; i++, dx += 2 * row)
        for (size_t k = 0; k < row / 2; k += VL, dy += VL, index += VL) {
            const size_t at = k / CT_LANES * 2 * CT_LANES + k % CT_LANES;
            const vf d = vload(dy);
            vstore(dx + at, share_of(index, 0, d));
            vstore(dx + at + CT_LANES, share_of(index, 1, d));
            vstore(dx + at + row, share_of(index, 2, d));
            vstore(dx + at + row + CT_LANES, share_of(index, 3, d));
        }
}
