/* Winograd F(2, 5) along the rows of a 5x5 convolution in lanes, with relu and 2x2 max pooling: for
 * the first layer, whose few channels would not pay for transforms in both directions. Matrices and
 * points: winograd5_internal.h, here in one direction.
 *   v[row][t][k] = B^T x of six pixels of a row, tiles t two apart
 *   m[a][k]      = sum_u U[u][k] v[2i + a + u][t][k],  a = 0, 1: the rows of a window
 *   y            = max(0, bias + max over A^T m[0], A^T m[1])
 *   dU[u][k]     = sum over windows and samples of dM[a][k] v[2i + a + u][t][k],  dw = dU G
 * 60 products a window and channel replace 100; sums over rows stay in registers. */
#include <string.h>

#include "backend/cpu/kernels/reduce.h"
#include "backend/cpu/kernels/window.h"
#include "backend/cpu/kernels/winograd_internal.h"

enum {
    N_K = 6,                  /* frequencies of a row */
    N_U = 5,                  /* rows of the kernel */
    SPAN = 6,                 /* rows of pixels under a window */
    NT = VL == 16 ? 2 : 1,    /* windows side by side in registers */
    TILE_V = N_K * VL,        /* floats of a tile's row */
    ROW_V = NT * TILE_V,      /* of a row of the forward pass' ring */
    CHANNEL_V = SPAN * ROW_V, /* and of a channel's ring */
    FILTER = N_K * N_U,
};

static int n_across(const ct_rows5_geometry *g) {
    return (g->w + 2 * g->pad - 4) / 2;
}
static int n_down(const ct_rows5_geometry *g) {
    return (g->h + 2 * g->pad - 4) / 2;
}

/* The six frequencies of tile t in row r of the padded picture; x is the channel's. */
INLINE void transform_row(const ct_rows5_geometry *g, const float *x, int r, int t, float *v) {
    const int y = r - g->pad, left = 2 * t - g->pad;
    vf d[6] = {0};
    const float *row = x + (ptrdiff_t)(y * g->w + left) * CT_LANES;
    if (y >= 0 && y < g->h) {
        if (left >= 0 && left + 6 <= g->w)
            for (int j = 0; j < 6; j++) d[j] = vload(row + j * CT_LANES);
        else
            for (int j = 0; j < 6; j++)
                if (left + j >= 0 && left + j < g->w) d[j] = vload(row + j * CT_LANES);
    }
    input_store(d, v, VL);
}

/* ---- forward ---- */

/* u[k][u] = G of row u of a filter. */
static void filter_rows(const float *w, float *u) {
    for (int row = 0; row < N_U; row++, w += 5, u++) {
        float even = (-1.0f / 6) * (w[0] + w[2] + w[4]), odd = (-1.0f / 6) * (w[1] + w[3]);
        u[0] = 0.25f * w[0];
        u[1 * N_U] = even + odd;
        u[2 * N_U] = even - odd;
        even = (1.0f / 24) * w[0] + (1.0f / 6) * w[2] + (2.0f / 3) * w[4];
        odd = (1.0f / 12) * w[1] + (1.0f / 3) * w[3];
        u[3 * N_U] = even + odd;
        u[4 * N_U] = even - odd;
        u[5 * N_U] = w[4];
    }
}

/* out[0], out[1] += column k of A^T times m. */
INLINE void fold(const int k, vf m, vf out[2]) {
    if (k < 5) out[0] += m;
    if (k == 1 || k == 5) out[1] += m;
    if (k == 2) out[1] -= m;
    if (k == 3) out[1] += 2.0f * m;
    if (k == 4) out[1] -= 2.0f * m;
}

/* NT windows of one channel; line[r] is row r under them in the ring of the first input channel. */
INLINE void windows(const float *const line[SPAN], int c_in, const float *u, vf bias,
                    float *const y[NT], uint8_t *const index[NT]) {
    vf value[NT][4];
    for (int t = 0; t < NT; t++)
        for (int q = 0; q < 4; q++) value[t][q] = bias;
#pragma GCC unroll 6
    for (int k = 0; k < N_K; k++) {
        vf m[NT][2] = {0};
        for (int c = 0; c < c_in; c++) {
            const float *taps = u + c * FILTER + k * N_U;
            const int at = c * CHANNEL_V + k * VL;
#pragma GCC unroll 2
            for (int t = 0; t < NT; t++) {
                vf v[SPAN];
#pragma GCC unroll 6
                for (int r = 0; r < SPAN; r++) v[r] = in_register(vload(line[r] + at + t * TILE_V));
#pragma GCC unroll 5
                for (int r = 0; r < N_U; r++) {
                    const vf weight = vset(taps[r]);
                    m[t][0] += weight * v[r];
                    m[t][1] += weight * v[r + 1];
                }
            }
        }
        for (int t = 0; t < NT; t++)
            for (int a = 0; a < 2; a++) fold(k, m[t][a], &value[t][2 * a]);
    }
    for (int t = 0; t < NT; t++) store_window(value[t], y[t], index[t]);
}

/* The windows of tiles t[] in row i, all channels. */
static void windows_of_row(const ct_rows5_geometry *g, const float *u, const float *bias, int i,
                           const int t[NT], const float *ring, float *y, uint8_t *index) {
    const float *line[SPAN];
    const size_t plane = (size_t)(n_across(g) * n_down(g)) * CT_LANES;
    for (int r = 0; r < SPAN; r++) line[r] = ring + (2 * i + r) % SPAN * ROW_V;
    for (int o = 0; o < g->c_out; o++) {
        float *to[NT];
        uint8_t *at[NT];
        for (int k = 0; k < NT; k++) {
            const size_t window = (size_t)o * plane + (size_t)(i * n_across(g) + t[k]) * CT_LANES;
            to[k] = y + window;
            at[k] = index != NULL ? index + window : NULL;
        }
        const vf b = bias != NULL ? vset(bias[o]) : vzero();
        if (g->c_in == 1)
            windows(line, 1, u + o * FILTER, b, to, at);
        else
            windows(line, g->c_in, u + o * g->c_in * FILTER, b, to, at);
    }
}

/* Down a column of windows: every row of pixels is transformed once, in a ring of six. */
static void column_of_windows(const ct_rows5_geometry *g, const float *x, const float *u,
                              const float *bias, const int t[NT], float *ring, float *y,
                              uint8_t *index) {
    const size_t plane = (size_t)(g->h * g->w) * CT_LANES;
    for (int i = 0, r = 0; i < n_down(g); i++) {
        for (; r < 2 * i + SPAN; r++)
            for (int c = 0; c < g->c_in; c++)
                for (int k = 0; k < NT; k++)
                    transform_row(g, x + (size_t)c * plane, r, t[k],
                                  ring + c * CHANNEL_V + r % SPAN * ROW_V + k * TILE_V);
        windows_of_row(g, u, bias, i, t, ring, y, index);
    }
}

static size_t filters_floats(const ct_rows5_geometry *g) {
    return ((size_t)(g->c_out * g->c_in) * FILTER + CT_LANES - 1) / CT_LANES * CT_LANES;
}

/* v of a block's samples, those of one vector, and dU before and after its lanes are summed. */
static size_t backward_floats(const ct_rows5_geometry *g) {
    return (size_t)(g->c_in * (g->h + 2 * g->pad) * n_across(g)) * TILE_V;
}

size_t KERNEL(rows5_scratch)(const ct_rows5_geometry *g) {
    const size_t ring = (size_t)g->c_in * CHANNEL_V, back = backward_floats(g);
    return filters_floats(g) + (ring > back ? ring : back);
}

void KERNEL(rows5_pool)(const ct_rows5_geometry *g, const float *x, const float *w,
                        const float *bias, int n_blocks, float *y, uint8_t *index, float *scratch) {
    const size_t x_block = (size_t)(g->c_in * g->h * g->w) * CT_LANES;
    const size_t y_block = (size_t)(g->c_out * n_across(g) * n_down(g)) * CT_LANES;
    float *ring = scratch + filters_floats(g);
    for (int f = 0; f < g->c_out * g->c_in; f++) filter_rows(w + 25 * f, scratch + FILTER * f);
    for (size_t b = 0; b < (size_t)n_blocks; b++)
        for (int first = 0; first < n_across(g); first += NT) {
            int t[NT]; /* an odd last tile is computed twice */
            for (int k = 0; k < NT; k++) t[k] = first + k < n_across(g) ? first + k : first;
            for (int part = 0; part < CT_LANES; part += VL)
                column_of_windows(g, x + b * x_block + part, scratch, bias, t, ring,
                                  y + b * y_block + part,
                                  index != NULL ? index + b * y_block + part : NULL);
        }
}

/* ---- weight gradient ---- */

enum { HALF = 3, N_SUMS = 16 }; /* frequencies 0, 1, 2 or 3, 4, 5; 15 sums and one for the bias */

/* Half of the frequencies of A times the gradient of two pixels. */
INLINE void gradient_half(const int half, vf left, vf right, vf m[HALF]) {
    if (half == 0) {
        m[0] = left;
        m[1] = left + right;
        m[2] = left - right;
    } else {
        m[0] = left + 2.0f * right;
        m[1] = left - 2.0f * right;
        m[2] = right;
    }
}

/* sum[u][k] += dM[a][k] v[a + u][k] of one window; v at its first row, rows `row` floats apart. */
INLINE void add_window(const int half, const float *v, size_t row, const float *dy,
                       const uint8_t *index, vf sum[N_SUMS]) {
    vf m[2][HALF];
    const vf d = vload(dy);
    gradient_half(half, share_of(index, 0, d), share_of(index, 1, d), m[0]);
    gradient_half(half, share_of(index, 2, d), share_of(index, 3, d), m[1]);
    if (half == 0) sum[N_SUMS - 1] += m[0][1] + m[1][1];
#pragma GCC unroll 6
    for (int r = 0; r < SPAN; r++)
#pragma GCC unroll 3
        for (int k = 0; k < HALF; k++) {
            const vf value = in_register(vload(v + (size_t)r * row + (half * HALF + k) * VL));
            if (r < N_U) sum[r * HALF + k] += m[0][k] * value;
            if (r > 0) sum[(r - 1) * HALF + k] += m[1][k] * value;
        }
}

/* All windows of a pair of channels; total[u * 3 + k] and the bias' sum are added to. */
INLINE void add_windows(const int half, const ct_rows5_geometry *g, const float *v, const float *dy,
                        const uint8_t *index, float total[N_SUMS]) {
    const size_t row = (size_t)n_across(g) * TILE_V;
    vf sum[N_SUMS];
#pragma GCC unroll 16
    for (int k = 0; k < N_SUMS; k++) sum[k] = vzero();
    for (int i = 0; i < n_down(g); i++)
        for (int t = 0; t < n_across(g); t++, dy += CT_LANES, index += CT_LANES)
            add_window(half, v + (size_t)(2 * i) * row + (size_t)t * TILE_V, row, dy, index, sum);
    reduce(sum, total);
    reduce(sum + 8, total + 8);
}

/* G^T of row u of the frequencies. */
static void taps_row(const float low[HALF], const float high[HALF], float *dw) {
    const float s1 = (-1.0f / 6) * (low[1] + low[2]), d1 = (-1.0f / 6) * (low[1] - low[2]);
    const float s2 = (1.0f / 24) * (high[0] + high[1]), d2 = (1.0f / 12) * (high[0] - high[1]);
    dw[0] += 0.25f * low[0] + s1 + s2;
    dw[1] += d1 + d2;
    dw[2] += s1 + 4.0f * s2;
    dw[3] += d1 + 4.0f * d2;
    dw[4] += s1 + 16.0f * s2 + high[2];
}

/* The share of VL samples of a block; v holds their frequencies. */
static void add_part(const ct_rows5_geometry *g, const float *v, const float *dy,
                     const uint8_t *index, float *dw, float *db) {
    const size_t plane = (size_t)(n_across(g) * n_down(g)) * CT_LANES;
    const size_t channel = (size_t)((g->h + 2 * g->pad) * n_across(g)) * TILE_V;
    for (int o = 0; o < g->c_out; o++, dy += plane, index += plane)
        for (int c = 0; c < g->c_in; c++, dw += 25) {
            float low[N_SUMS] = {0}, high[N_SUMS] = {0};
            add_windows(0, g, v + (size_t)c * channel, dy, index, low);
            add_windows(1, g, v + (size_t)c * channel, dy, index, high);
            for (int u = 0; u < N_U; u++) taps_row(low + u * HALF, high + u * HALF, dw + 5 * u);
            if (c == 0 && db != NULL) db[o] += low[N_SUMS - 1];
        }
}

void KERNEL(rows5_backward)(const ct_rows5_geometry *g, const float *x, const float *dy,
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
                    for (int t = 0; t < n_across(g); t++, v += TILE_V)
                        transform_row(g, x + (b * (size_t)g->c_in + c) * plane + part, r, t, v);
            add_part(g, scratch, dy + b * y_block + part, index + b * y_block + part, dw, db);
        }
}
