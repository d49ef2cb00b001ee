/* Gradients of the Winograd convolution F(2x2, 5x5) in lanes (matrices: winograd5_internal.h).
 *   dw[o][i] = G^T [ sum over tiles and samples of (A dy[o] A^T) . (B^T x[i] B) ] G
 *   dx[i]    = sum over tiles of B [ sum_o U[o][i] . (A dy[o] A^T) ] B^T
 *   acc [36][c_out/4][c_in/CI_TILE][4][CI_TILE]   the first sum, channels padded
 *   ut [36][c_in/R][c_out][R]   weights of the second sum
 *   dv [36][c_in][tiles][16]    its result for a chunk of tiles
 *   v [12][c_in][tiles][16], m [12][c_out][tiles][16]   two of the six rows of frequencies at a
 * time: whole pictures of LeNet-5 stay in the second-level cache, so the lanes of the first sum's
 * accumulators are added up once per block. */
#include <string.h>

#include "backend/cpu/kernels/reduce.h"
#include "backend/cpu/kernels/winograd5_internal.h"

enum {
    CI_TILE = REGISTERS == 32 ? 6 : 2, /* 4 * CI_TILE accumulators beside the operands */
    CHUNK_FLOATS = 208 * 1024,         /* of dv, v and m */
    N_PASS = 12,                       /* frequencies of a pass */
};

typedef struct scratch5 {
    float *acc, *ut, *dv, *v, *m;
    size_t acc_stride, ut_stride;
} scratch5;

static size_t acc_floats(const ct_conv5_geometry *g) {
    return odd_lines((size_t)round_up(g->c_out, CO_TILE) * (size_t)round_up(g->c_in, CI_TILE));
}

static ct_winograd5_plan backward_plan(const ct_conv5_geometry *g) {
    size_t c_in = (size_t)g->c_in, c_out = (size_t)g->c_out;
    return plan_of(g, 2, N_XI * c_in + N_PASS * (c_in + c_out), CHUNK_FLOATS, round_up(g->c_in, 6),
                   round_up(g->c_out, g->c_out % 4 == 0 ? 4 : 12));
}

static scratch5 cut(const ct_conv5_geometry *g, const ct_winograd5_plan *p, float *scratch) {
    scratch5 s = {.acc = scratch, .acc_stride = acc_floats(g)};
    s.ut_stride = u5_stride(g->c_out, g->c_in);
    s.ut = s.acc + N_XI * s.acc_stride;
    s.dv = s.ut + N_XI * s.ut_stride;
    s.v = s.dv + N_XI * p->v_stride;
    s.m = s.v + N_PASS * p->v_stride;
    return s;
}

size_t KERNEL(winograd5_backward_scratch)(const ct_conv5_geometry *g) {
    const ct_winograd5_plan p = backward_plan(g);
    return N_XI * (acc_floats(g) + u5_stride(g->c_out, g->c_in) + p.v_stride) +
           N_PASS * (p.v_stride + p.m_stride);
}

/* ---- transforms ---- */

/* One row of dM, six frequencies of two columns. */
INLINE void gradient_store(vf left, vf right, float *m, size_t stride) {
    vstore(m, left);
    vstore(m + stride, left + right);
    vstore(m + 2 * stride, left - right);
    vstore(m + 3 * stride, left + 2.0f * right);
    vstore(m + 4 * stride, left - 2.0f * right);
    vstore(m + 5 * stride, right);
}

/* Two rows of A d A^T of the n tiles of one row of tiles; lines of d `row` floats apart. */
INLINE void gradient_pass(int pass, const float *d, size_t row, int n, float *m, size_t stride) {
    for (int t = 0; t < n; t++, d += 2 * CT_LANES, m += CT_LANES) {
        vf a[2], b[2];
        for (int j = 0; j < 2; j++) {
            vf top = vload(d + j * CT_LANES), bottom = vload(d + row + j * CT_LANES);
            if (pass == ROWS_34) bottom = 2.0f * bottom;
            a[j] = pass == ROWS_05 ? top : top + bottom;
            b[j] = pass == ROWS_05 ? bottom : top - bottom;
        }
        gradient_store(a[0], a[1], m, stride);
        gradient_store(b[0], b[1], m + 6 * stride, stride);
    }
}

/* v and m of one pass and n_rows rows of tiles from row `first` on. */
INLINE void transform(const int pass, const ct_conv5_geometry *g, const ct_winograd5_plan *p,
                      const float *x, const float *dy, int first, int n_rows, const scratch5 *s) {
    const size_t x_row = (size_t)g->w * CT_LANES, y_row = (size_t)p->n_across * 2 * CT_LANES;
    for (int i = 0; i < n_rows; i++)
        for (int part = 0; part < CT_LANES; part += VL) {
            size_t at = (size_t)(i * p->n_across) * CT_LANES + (size_t)part;
            for (int c = 0; c < g->c_in; c++) {
                const float *row[6];
                for (int r = 0; r < 6; r++)
                    row[r] = x + (size_t)(c * g->h + 2 * (first + i) + r) * x_row + part;
                float *to = s->v + (size_t)c * p->line + at;
                input5_pass(pass, row, p->n_across, to, to + 6 * p->v_stride, p->v_stride);
            }
            for (int o = 0; o < g->c_out; o++)
                gradient_pass(pass, dy + 2 * (size_t)(o * p->n_down + first + i) * y_row + part,
                              y_row, p->n_across, s->m + (size_t)o * p->line + at, p->m_stride);
        }
}

/* B v, six frequencies to six pixels. */
INLINE void pixels(const vf v[6], vf d[6]) {
    vf sum = v[1] + v[2], difference = v[1] - v[2];
    vf sum2 = v[3] + v[4], difference2 = 2.0f * (v[3] - v[4]);
    d[0] = 4.0f * v[0];
    d[1] = 4.0f * (v[5] - difference) - difference2;
    d[2] = -5.0f * v[0] - 4.0f * sum - sum2;
    d[3] = difference + difference2 - 5.0f * v[5];
    d[4] = v[0] + sum + sum2;
    d[5] = v[5];
}

/* d [6][6] += B v B^T of one tile, lines of d `row` floats apart. */
INLINE void add_tile(const float *v, size_t stride, float *d, size_t row) {
    _Alignas(64) float half[36 * VL]; /* B v */
    for (int j = 0; j < 6; j++) {
        vf column[6], out[6];
        for (int i = 0; i < 6; i++) column[i] = vload(v + (size_t)(6 * i + j) * stride);
        pixels(column, out);
        for (int i = 0; i < 6; i++) vstore(half + (6 * i + j) * VL, out[i]);
    }
    for (int i = 0; i < 6; i++, d += row) {
        vf line[6], out[6];
        for (int j = 0; j < 6; j++) line[j] = vload(half + (6 * i + j) * VL);
        pixels(line, out);
        for (int j = 0; j < 6; j++) vstore(d + j * CT_LANES, vload(d + j * CT_LANES) + out[j]);
    }
}

/* dx += what dv gives, n_rows rows of tiles from row `first` on. */
static void add_tiles(const ct_conv5_geometry *g, const ct_winograd5_plan *p, int first, int n_rows,
                      const float *dv, float *dx) {
    const size_t row = (size_t)g->w * CT_LANES;
    for (int c = 0; c < g->c_in; c++)
        for (int i = 0; i < n_rows; i++)
            for (int t = 0; t < p->n_across; t++)
                for (int part = 0; part < CT_LANES; part += VL)
                    add_tile(dv + (size_t)c * p->line + (size_t)(i * p->n_across + t) * CT_LANES +
                                 part,
                             p->v_stride,
                             dx + (size_t)(c * g->h + 2 * (first + i)) * row +
                                 (size_t)(2 * t) * CT_LANES + part,
                             row);
}

/* ---- products ---- */

/* acc[4][CI_TILE] += m [4][n] * v [CI_TILE][n]^T, n vectors in a row, rows `line` floats apart. */
INLINE void product_tile(int n, const float *m, const float *v, size_t line, float *acc) {
    vf sum[CO_TILE * CI_TILE];
    for (int k = 0; k < CO_TILE * CI_TILE; k++) sum[k] = vzero();
    for (int t = 0; t < n; t++) {
        vf x[CI_TILE];
        for (int i = 0; i < CI_TILE; i++) x[i] = vload(v + (size_t)i * line + t * VL);
        for (int o = 0; o < CO_TILE; o++) {
            vf d = vload(m + (size_t)o * line + t * VL);
            for (int i = 0; i < CI_TILE; i++) sum[o * CI_TILE + i] += d * x[i];
        }
    }
    for (int k = 0; k < CO_TILE * CI_TILE; k += 8) reduce(sum + k, acc + k);
}

/* One pass of n_rows rows of tiles: acc is added to, dv written for its frequencies. */
INLINE void run_pass(const int pass, const ct_conv5_geometry *g, const ct_winograd5_plan *p,
                     const float *x, const float *dy, int first, int n_rows, bool data,
                     const scratch5 *s) {
    const int n = n_rows * p->n_across * PARTS;
    transform(pass, g, p, x, dy, first, n_rows, s);
    for (int f = 0; f < N_PASS; f++) {
        int row = pass == ROWS_12 ? 1 + f / 6 : pass == ROWS_34 ? 3 + f / 6 : f / 6 * 5;
        size_t xi = (size_t)(6 * row + f % 6);
        const float *v = s->v + (size_t)f * p->v_stride, *m = s->m + (size_t)f * p->m_stride;
        float *acc = s->acc + xi * s->acc_stride;
        for (int o = 0; o < g->c_out; o += CO_TILE)
            for (int i = 0; i < g->c_in; i += CI_TILE, acc += CO_TILE * CI_TILE)
                product_tile(n, m + (size_t)o * p->line, v + (size_t)i * p->line, p->line, acc);
        if (data) KERNEL(winograd5_product)
        (g->c_out, g->c_in, n, s->ut + xi * s->ut_stride, m, s->dv + xi * p->v_stride, p->line);
    }
}

static void backward_block(const ct_conv5_geometry *g, const ct_winograd5_plan *p, const float *x,
                           const float *dy, float *dx, const scratch5 *s) {
    for (int first = 0; first < p->n_down; first += p->n_rows) {
        int left = p->n_down - first, n = left < p->n_rows ? left : p->n_rows;
        run_pass(ROWS_12, g, p, x, dy, first, n, dx != NULL, s);
        run_pass(ROWS_34, g, p, x, dy, first, n, dx != NULL, s);
        run_pass(ROWS_05, g, p, x, dy, first, n, dx != NULL, s);
        if (dx != NULL) add_tiles(g, p, first, n, s->dv, dx);
    }
}

/* Rows of absent channels, which register tiles read beside the others. */
static void clear_absent(const ct_conv5_geometry *g, const ct_winograd5_plan *p,
                         const scratch5 *s) {
    const size_t in = (size_t)g->c_in * p->line, out = (size_t)g->c_out * p->line;
    for (size_t f = 0; f < N_PASS; f++) {
        memset(s->v + f * p->v_stride + in, 0, (p->v_stride - in) * sizeof *s->v);
        memset(s->m + f * p->m_stride + out, 0, (p->m_stride - out) * sizeof *s->m);
    }
}

/* ---- weights ---- */

/* G^T t, six frequencies to five taps, for a vector of filters. */
INLINE void taps_column(const vf t[6], vf g[5]) {
    vf s1 = (-1.0f / 6) * (t[1] + t[2]), d1 = (-1.0f / 6) * (t[1] - t[2]);
    vf s2 = (1.0f / 24) * (t[3] + t[4]), d2 = (1.0f / 12) * (t[3] - t[4]);
    g[0] = 0.25f * t[0] + s1 + s2;
    g[1] = d1 + d2;
    g[2] = s1 + 4.0f * s2;
    g[3] = d1 + 4.0f * d2;
    g[4] = s1 + 16.0f * s2 + t[5];
}

/* taps [5][5] of the VL filters whose frequencies lie at acc. */
INLINE void taps_group(const float *acc, size_t stride, vf taps[25]) {
    vf t[5][6];
    for (int j = 0; j < 6; j++) {
        vf column[6], g[5];
        for (int i = 0; i < 6; i++) column[i] = vload(acc + (size_t)(6 * i + j) * stride);
        taps_column(column, g);
        for (int i = 0; i < 5; i++) t[i][j] = g[i];
    }
    for (int i = 0; i < 5; i++) taps_column(t[i], taps + 5 * i);
}

static void write_taps(const ct_conv5_geometry *g, const scratch5 *s, float *dw) {
    const int n_across = round_up(g->c_in, CI_TILE) / CI_TILE, n_sums = CO_TILE * CI_TILE;
    for (size_t k = 0; k < s->acc_stride; k += VL) {
        vf taps[25];
        taps_group(s->acc + k, s->acc_stride, taps);
        for (size_t f = k; f < k + VL; f++) {
            int tile = (int)f / n_sums, at = (int)f % n_sums;
            int o = tile / n_across * CO_TILE + at / CI_TILE;
            int i = tile % n_across * CI_TILE + at % CI_TILE;
            if (o >= g->c_out || i >= g->c_in) continue;
            float *to = dw + ((size_t)o * (size_t)g->c_in + (size_t)i) * 25;
            for (int q = 0; q < 25; q++) to[q] = taps[q][f - k];
        }
    }
}

void KERNEL(winograd5_backward)(const ct_conv5_geometry *g, const float *x, const float *w,
                                const float *dy, int n_blocks, bool accumulate, float *dx,
                                float *dw, float *scratch) {
    const ct_winograd5_plan p = backward_plan(g);
    const scratch5 s = cut(g, &p, scratch);
    const size_t x_block = (size_t)(g->c_in * g->h * g->w) * CT_LANES;
    const size_t dy_block = (size_t)(g->c_out * p.n_across * p.n_down * 4) * CT_LANES;
    memset(s.acc, 0, N_XI * s.acc_stride * sizeof *s.acc);
    clear_absent(g, &p, &s);
    if (dx != NULL)
        KERNEL(winograd5_weights)(w, g->c_out, g->c_in, 25, 25 * (size_t)g->c_in, 6, s.ut);
    if (dx != NULL && !accumulate) memset(dx, 0, (size_t)n_blocks * x_block * sizeof *dx);
    for (size_t b = 0; b < (size_t)n_blocks; b++)
        backward_block(g, &p, x + b * x_block, dy + b * dy_block,
                       dx != NULL ? dx + b * x_block : NULL, &s);
    write_taps(g, &s, dw);
}
