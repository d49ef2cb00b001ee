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

/* Tiles of a picture; tile rows are cut into chunks of n_rows. */
typedef struct pool_plan {
    int n_across, n_down, n_rows;
    size_t line;                         /* floats of a channel's tiles in a chunk */
    size_t u_stride, v_stride, m_stride; /* floats between frequencies */
} pool_plan;

static pool_plan pool_plan_of(const ct_conv5_geometry *g) {
    pool_plan p = {.n_across = (g->w - 1) / 4, .n_down = (g->h - 1) / 4};
    int most = CHUNK_FLOATS / (N_F * CT_LANES * g->c_in * p.n_across);
    if (most < 1) most = 1;
    const int n_chunks = (p.n_down + most - 1) / most;
    p.n_rows = (p.n_down + n_chunks - 1) / n_chunks;
    p.line = (size_t)(p.n_rows * p.n_across) * CT_LANES;
    p.u_stride = u5_stride(g->c_in, g->c_out);
    p.v_stride = odd_lines((size_t)g->c_in * p.line);
    p.m_stride = odd_lines((size_t)rows_of(g->c_out) * p.line);
    return p;
}

/* ---- weights ---- */

/* G g G^T of the 16 filters taps[5][5][16], stored 16 floats per frequency. */
static void weights_group(const float *taps, size_t stride, float *u) {
    for (int part = 0; part < PARTS; part++) {
        vf t[5][N_POINTS];
        for (int j = 0; j < 5; j++) {
            vf g[5];
            for (int i = 0; i < 5; i++) g[i] = vload(taps + (5 * i + j) * CT_LANES + part * VL);
            weights8(g, t[j]);
        }
        for (int i = 0; i < N_POINTS; i++) {
            vf row[5] = {t[0][i], t[1][i], t[2][i], t[3][i], t[4][i]}, out[N_POINTS];
            weights8(row, out);
            for (int j = 0; j < N_POINTS; j++)
                vstore(u + (size_t)(N_POINTS * i + j) * stride + part * VL, out[j]);
        }
    }
}

/* u[64][c_out/R][c_in][R], R = rows_of(c_out). */
static void weights(const ct_conv5_geometry *g, const float *w, size_t stride, float *u) {
    _Alignas(64) float taps[25 * CT_LANES];
    const int rows = rows_of(g->c_out), n = g->c_in * round_up(g->c_out, rows);
    for (int first = 0; first < n; first += CT_LANES) {
        for (int k = 0; k < CT_LANES; k++) {
            int at = first + k, o = at / (rows * g->c_in) * rows + at % rows;
            int i = at / rows % g->c_in;
            const bool absent = o >= g->c_out;
            const float *filter = absent ? w : w + 25 * (size_t)(o * g->c_in + i);
            for (int s = 0; s < 25; s++) taps[s * CT_LANES + k] = absent ? 0.0f : filter[s];
        }
        weights_group(taps, stride, u + first);
    }
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
static void input(const ct_conv5_geometry *g, const pool_plan *p, const float *x, int first,
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
static void output(const ct_conv5_geometry *g, const pool_plan *p, const float *m, vf bias,
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

static void pool_block(const ct_conv5_geometry *g, const pool_plan *p, const float *x,
                       const float *u, const float *bias, float *y, uint8_t *index, float *v) {
    const size_t plane = (size_t)((g->w - 4) / 2 * ((g->h - 4) / 2)) * CT_LANES;
    const int rows = rows_of(g->c_out);
    float *m = v + N_F * p->v_stride;
    for (int first = 0; first < p->n_down; first += p->n_rows) {
        const int left = p->n_down - first, n_rows = left < p->n_rows ? left : p->n_rows;
        input(g, p, x, first, n_rows, v);
        for (int o = 0; o < g->c_out; o += rows) {
            for (size_t f = 0; f < N_F; f++) KERNEL(winograd5_product)
            (g->c_in, rows, n_rows * p->n_across * PARTS,
             u + f * p->u_stride + (size_t)(o * g->c_in), v + f * p->v_stride, m + f * p->m_stride,
             p->line);
            for (int k = o; k < o + rows && k < g->c_out; k++)
                output(g, p, m + (size_t)(k - o) * p->line, bias != NULL ? vset(bias[k]) : vzero(),
                       first, n_rows, y + (size_t)k * plane,
                       index != NULL ? index + (size_t)k * plane : NULL);
        }
    }
}

size_t KERNEL(winograd5_pool_scratch)(const ct_conv5_geometry *g) {
    const pool_plan p = pool_plan_of(g);
    return N_F * (p.u_stride + p.v_stride + p.m_stride);
}

void KERNEL(winograd5_pool)(const ct_conv5_geometry *g, const float *x, const float *w,
                            const float *bias, int n_blocks, float *y, uint8_t *index,
                            float *scratch) {
    const pool_plan p = pool_plan_of(g);
    const size_t x_block = (size_t)(g->c_in * g->h * g->w) * CT_LANES;
    const size_t y_block = (size_t)(g->c_out * ((g->w - 4) / 2) * ((g->h - 4) / 2)) * CT_LANES;
    weights(g, w, p.u_stride, scratch);
    for (size_t b = 0; b < (size_t)n_blocks; b++)
        pool_block(g, &p, x + b * x_block, scratch, bias, y + b * y_block,
                   index != NULL ? index + b * y_block : NULL, scratch + N_F * p.u_stride);
}
