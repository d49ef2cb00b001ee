/* Winograd F(4, 5) along the rows of a 5x5 convolution in lanes, with relu and 2x2 max pooling: for
 * the first layer, whose few channels would not pay for transforms in both directions. A tile is
 * two windows of the pooling side by side: eight pixels of six rows.
 *   v[row][t][k] = B^T x of eight pixels of a row, tiles t four apart
 *   m[a][k]      = sum_u U[u][k] v[2i + a + u][t][k],  a = 0, 1: the rows of a window,  U = G w
 *   y            = max(0, bias + max over a window of A^T m[0], A^T m[1])
 *   dU[u][k]     = sum over tiles and samples of dM[a][k] v[2i + a + u][t][k],
 *                  dM = A dy, dw = G^T dU
 * Matrices: winograd8.h. 80 products a tile and channel replace 200;
 * sums over rows stay in registers. */
#include <string.h>

#include "backend/cpu/kernels/reduce.h"
#include "backend/cpu/kernels/window.h"
#include "backend/cpu/kernels/winograd8.h"
#include "backend/cpu/kernels/winograd_internal.h"

enum {
    N_K = N_POINTS,            /* frequencies of a row */
    N_U = 5,                   /* rows of the kernel */
    SPAN = 6,                  /* rows of pixels under a tile */
    LINE_V = N_K * VL,         /* floats of a tile's row */
    CHANNEL_V = SPAN * LINE_V, /* and of a channel's ring of rows */
    FILTER = N_K * N_U,
};

/* Windows of a row and of a column, tiles of a row. */
static int n_across(const ct_conv5_geometry *g) {
    return (g->w + 2 * g->pad - 4) / 2;
}
static int n_down(const ct_conv5_geometry *g) {
    return (g->h + 2 * g->pad - 4) / 2;
}
static int n_tiles(const ct_conv5_geometry *g) {
    return (n_across(g) + 1) / 2;
}

/* The frequencies of tile t in row r of the picture with its border; x is the channel's. */
INLINE void transform_row(const ct_conv5_geometry *g, const float *x, int r, int t, float *v) {
    const int y = r - g->pad, left = 4 * t - g->pad;
    vf d[8] = {0};
    const float *row = x + (ptrdiff_t)(y * g->w + left) * CT_LANES;
    if (y >= 0 && y < g->h) {
        if (left >= 0 && left + 8 <= g->w)
            for (int j = 0; j < 8; j++) d[j] = vload(row + j * CT_LANES);
        else
            for (int j = 0; j < 8; j++)
                if (left + j >= 0 && left + j < g->w) d[j] = vload(row + j * CT_LANES);
    }
    vf out[N_K];
    input8(d, out);
    for (int k = 0; k < N_K; k++) vstore(v + k * VL, out[k]);
}

/* ---- forward ---- */

/* u[k][u] of a filter. */
static void filter_rows(const float *w, float *u) {
    for (int row = 0; row < N_U; row++, w += 5, u++) {
        const vf g[5] = {vset(w[0]), vset(w[1]), vset(w[2]), vset(w[3]), vset(w[4])};
        vf t[N_K];
        weights8(g, t);
        for (int k = 0; k < N_K; k++) u[k * N_U] = t[k][0];
    }
}

/* m[a] of frequency k; line[r] is row r under the tile in the ring of the first input channel. */
INLINE void products(const float *const line[SPAN], int c_in, const float *u, const int k,
                     vf m[2]) {
    m[0] = m[1] = vzero();
    for (int c = 0; c < c_in; c++) {
        vf v[SPAN];
#pragma GCC unroll 6
        for (int r = 0; r < SPAN; r++) v[r] = in_register(vload(line[r] + c * CHANNEL_V + k * VL));
#pragma GCC unroll 5
        for (int r = 0; r < N_U; r++) {
            const vweight w = weight_of(u + c * FILTER, k * N_U + r, FILTER);
            m[0] = add_product(m[0], w, v[r]);
            m[1] = add_product(m[1], w, v[r + 1]);
        }
    }
}

/* Four outputs of a row += columns p and -p of A^T times m. */
INLINE void fold_pair(const float p, vf plus, vf minus, vf out[4]) {
    const vf sum = plus + minus, difference = plus - minus;
    out[0] += sum;
    out[1] += p * difference;
    out[2] += p * p * sum;
    out[3] += p * p * p * difference;
}

/* A tile of one channel, its second window unless y[1] is NULL. */
INLINE void windows(const float *const line[SPAN], int c_in, const float *u, vf bias,
                    float *const y[2], uint8_t *const index[2]) {
    vf out[2][4], m[2], minus[2];
    products(line, c_in, u, 0, m);
    products(line, c_in, u, 1, minus);
    for (int a = 0; a < 2; a++) {
        out[a][0] = bias + m[a];
        out[a][1] = out[a][2] = bias;
        out[a][3] = bias + minus[a];
    }
#pragma GCC unroll 3
    for (int k = 0; k < N_PAIRS; k++) {
        products(line, c_in, u, 2 + 2 * k, m);
        products(line, c_in, u, 3 + 2 * k, minus);
        for (int a = 0; a < 2; a++)
            fold_pair(k == 0 ? 1 : k == 1 ? 2 : 0.5f, m[a], minus[a], out[a]);
    }
    const vf first[4] = {out[0][0], out[0][1], out[1][0], out[1][1]};
    const vf second[4] = {out[0][2], out[0][3], out[1][2], out[1][3]};
    store_window(first, y[0], index[0]);
    if (y[1] != NULL) store_window(second, y[1], index[1]);
}

/* Tile t of row i of the windows, all channels. */
static void tile_of_row(const ct_conv5_geometry *g, const float *u, const float *bias, int i, int t,
                        const float *ring, float *y, uint8_t *index) {
    const float *line[SPAN];
    const size_t plane = (size_t)(n_across(g) * n_down(g)) * CT_LANES;
    const bool has_second = 2 * t + 1 < n_across(g);
    for (int r = 0; r < SPAN; r++) line[r] = ring + (2 * i + r) % SPAN * LINE_V;
    for (int o = 0; o < g->c_out; o++) {
        const size_t at = (size_t)o * plane + (size_t)(i * n_across(g) + 2 * t) * CT_LANES;
        float *const to[2] = {y + at, has_second ? y + at + CT_LANES : NULL};
        uint8_t *const winner[2] = {index != NULL ? index + at : NULL,
                                    index != NULL ? index + at + CT_LANES : NULL};
        const vf b = bias != NULL ? vset(bias[o]) : vzero();
        if (g->c_in == 1)
            windows(line, 1, u + o * FILTER, b, to, winner);
        else if (VL == 4 && REGISTERS == 32 && g->c_in == 3) /* unrolled: more sums run at once */
            windows(line, 3, u + o * 3 * FILTER, b, to, winner);
        else
            windows(line, g->c_in, u + o * g->c_in * FILTER, b, to, winner);
    }
}

/* Down a column of tiles: every row of pixels is transformed once, in a ring of six. */
static void column_of_tiles(const ct_conv5_geometry *g, const float *x, const float *u,
                            const float *bias, int t, float *ring, float *y, uint8_t *index) {
    const size_t plane = (size_t)(g->h * g->w) * CT_LANES;
    for (int i = 0, r = 0; i < n_down(g); i++) {
        for (; r < 2 * i + SPAN; r++)
            for (int c = 0; c < g->c_in; c++)
                transform_row(g, x + (size_t)c * plane, r, t,
                              ring + c * CHANNEL_V + r % SPAN * LINE_V);
        tile_of_row(g, u, bias, i, t, ring, y, index);
    }
}

static size_t filters_floats(const ct_conv5_geometry *g) {
    return ((size_t)(g->c_out * g->c_in) * FILTER + CT_LANES - 1) / CT_LANES * CT_LANES;
}

size_t KERNEL(rows5_scratch)(const ct_conv5_geometry *g) {
    const size_t ring = filters_floats(g) + (size_t)g->c_in * CHANNEL_V;
    const size_t back = (size_t)(g->c_in * (g->h + 2 * g->pad) * n_tiles(g)) * LINE_V;
    return ring > back ? ring : back;
}

void KERNEL(rows5_pool)(const ct_conv5_geometry *g, const float *x, const float *w,
                        const float *bias, int n_blocks, float *y, uint8_t *index, float *scratch) {
    const size_t x_block = (size_t)(g->c_in * g->h * g->w) * CT_LANES;
    const size_t y_block = (size_t)(g->c_out * n_across(g) * n_down(g)) * CT_LANES;
    float *ring = scratch + filters_floats(g);
    for (int f = 0; f < g->c_out * g->c_in; f++) filter_rows(w + 25 * f, scratch + FILTER * f);
    for (size_t b = 0; b < (size_t)n_blocks; b++)
        for (int t = 0; t < n_tiles(g); t++)
            for (int part = 0; part < CT_LANES; part += VL)
                column_of_tiles(g, x + b * x_block + part, scratch, bias, t, ring,
                                y + b * y_block + part,
                                index != NULL ? index + b * y_block + part : NULL);
}

/* ---- weight gradient ---- */

enum { HALF = N_K / 2, BIAS = N_U * HALF, N_SUMS = 24 }; /* 20 sums, one for the bias, 3 unused */

/* Half of the frequencies of A times the gradient of four pixels. */
INLINE void gradient_half(const int half, const vf y[4], vf m[HALF]) {
    if (half == 0) {
        const vf even = y[0] + y[2], odd = y[1] + y[3];
        m[0] = y[0];
        m[1] = y[3];
        m[2] = even + odd;
        m[3] = even - odd;
    } else {
        vf even = y[0] + 4.0f * y[2], odd = 2.0f * y[1] + 8.0f * y[3];
        m[0] = even + odd;
        m[1] = even - odd;
        even = y[0] + 0.25f * y[2];
        odd = 0.5f * y[1] + 0.125f * y[3];
        m[2] = even + odd;
        m[3] = even - odd;
    }
}

/* sum[u][k] += dM[a][k] v[a + u][k] of a tile of one or two windows; v at its first row, rows `row`
 * floats apart. */
INLINE void add_tile(const int half, const float *v, size_t row, const float *dy,
                     const uint8_t *index, const bool two, vf sum[N_SUMS]) {
    vf m[2][HALF];
    const vf left = vload(dy), right = two ? vload(dy + CT_LANES) : vzero();
    const uint8_t *next = two ? index + CT_LANES : index;
    for (int a = 0; a < 2; a++) {
        const vf y[4] = {share_of(index, 2 * a, left), share_of(index, 2 * a + 1, left),
                         share_of(next, 2 * a, right), share_of(next, 2 * a + 1, right)};
        gradient_half(half, y, m[a]);
    }
    if (half == 0) sum[BIAS] += m[0][2] + m[1][2];
#pragma GCC unroll 6
    for (int r = 0; r < SPAN; r++)
#pragma GCC unroll 4
        for (int k = 0; k < HALF; k++) {
            const vf value = in_register(vload(v + (size_t)r * row + (half * HALF + k) * VL));
            if (r < N_U) sum[r * HALF + k] += m[0][k] * value;
            if (r > 0) sum[(r - 1) * HALF + k] += m[1][k] * value;
        }
}

/* All tiles of a pair of channels; total[u * 4 + k] and the bias' sum are added to. */
INLINE void add_tiles(const int half, const ct_conv5_geometry *g, const float *v, const float *dy,
                      const uint8_t *index, float total[N_SUMS]) {
    const size_t row = (size_t)n_tiles(g) * LINE_V;
    const int n_pairs = n_across(g) / 2;
    vf sum[N_SUMS];
#pragma GCC unroll 24
    for (int k = 0; k < N_SUMS; k++) sum[k] = vzero();
    for (int i = 0; i < n_down(g); i++) {
        const float *line = v + (size_t)(2 * i) * row;
        for (int t = 0; t < n_pairs; t++, line += LINE_V, dy += 2 * CT_LANES, index += 2 * CT_LANES)
            add_tile(half, line, row, dy, index, true, sum);
        if (n_across(g) % 2 == 0) continue;
        add_tile(half, line, row, dy, index, false, sum);
        dy += CT_LANES;
        index += CT_LANES;
    }
    for (int k = 0; k < N_SUMS; k += 8) reduce(sum + k, total + k);
}

/* dw += G^T of row u of the frequencies. */
static void add_taps(const float low[HALF], const float high[HALF], float *dw) {
    const float plus[N_PAIRS] = {low[2], high[0], high[2]};
    const float minus[N_PAIRS] = {low[3], high[1], high[3]};
    dw[0] += low[0];
    dw[4] += low[1];
    for (int k = 0; k < N_PAIRS; k++) {
        const float p = ct_points[k];
        const float even = ct_factors[k] * (plus[k] + minus[k]);
        const float odd = ct_factors[k] * p * (plus[k] - minus[k]);
        dw[0] += even;
        dw[1] += odd;
        dw[2] += p * p * even;
        dw[3] += p * p * odd;
        dw[4] += p * p * p * p * even;
    }
}

/* The share of VL samples of a block; v holds their frequencies. */
static void add_part(const ct_conv5_geometry *g, const float *v, const float *dy,
                     const uint8_t *index, float *dw, float *db) {
    const size_t plane = (size_t)(n_across(g) * n_down(g)) * CT_LANES;
    const size_t channel = (size_t)((g->h + 2 * g->pad) * n_tiles(g)) * LINE_V;
    for (int o = 0; o < g->c_out; o++, dy += plane, index += plane)
        for (int c = 0; c < g->c_in; c++, dw += 25) {
            float low[N_SUMS] = {0}, high[N_SUMS] = {0};
            add_tiles(0, g, v + (size_t)c * channel, dy, index, low);
            add_tiles(1, g, v + (size_t)c * channel, dy, index, high);
            for (int u = 0; u < N_U; u++) add_taps(low + u * HALF, high + u * HALF, dw + 5 * u);
            if (c == 0 && db != NULL) db[o] += low[BIAS];
        }
}

void KERNEL(rows5_backward)(const ct_conv5_geometry *g, const float *x, const float *dy,
                            const uint8_t *index, int n_blocks, float *dw, float *db,
                            float *scratch) {
    const size_t plane = (size_t)(g->h * g->w) * CT_LANES;
    const size_t y_block = (size_t)(g->c_out * n_across(g) * n_down(g)) * CT_LANES;
    memset(dw, 0, (size_t)(g->c_out * g->c_in) * 25 * sizeof *dw);
    if (db != NULL) memset(db, 0, (size_t)g->c_out * sizeof *db);
    for (size_t b = 0; b < (size_t)n_blocks; b++)
        for (int part = 0; part < CT_LANES; part += VL) {
            float *v = scratch;
            for (size_t c = 0; c < (size_t)g->c_in; c++)
                for (int r = 0; r < g->h + 2 * g->pad; r++)
                    for (int t = 0; t < n_tiles(g); t++, v += LINE_V)
                        transform_row(g, x + (b * (size_t)g->c_in + c) * plane + part, r, t, v);
            add_part(g, scratch, dy + b * y_block + part, index + b * y_block + part, dw, db);
        }
}
