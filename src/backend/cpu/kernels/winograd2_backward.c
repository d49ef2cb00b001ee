/* Both gradients of a 3x3 convolution of stride 2 by Winograd's method (winograd2_internal.h).
 * Pixel 2j of an even axis is read by output j with tap 1, pixel 2j+1 of an odd one by output j
 * with tap 2 and by j+1 with tap 0: each phase of dx is a convolution of dy with turned taps.
 *   dx[p][i] = A^T [ sum_o U[p][i][o] . V[o] ] A,   V = B^T dy B
 *   dw[p][o][i] = G^T [ sum over tiles and samples of V[o] . (A x[p][i] A^T) ] G
 *   x, dx [c_in][h][w][16]   dy [c_out][h_out][w_out][16]   one block of 16 samples, aligned
 *   u [25][4 phases][c_in/4][c_out][4]   flipped weights
 *   acc [25][4 phases][c_in/4][c_out/CI_TILE][4][CI_TILE]   dw [c_out][c_in][3][3] */
#include <string.h>

#include "backend/cpu/kernels/winograd2_internal.h"
#include "backend/cpu/kernels/winograd_product.h"
#include "backend/cpu/kernels/winograd_sums.h"

/* ---- V = B^T dy B ---- */

/* d are rows at the first column; the fifth one is black unless has_right. */
INLINE void dy_pass(int pass, const float *const d[N_POINTS], bool has_right, float *v) {
    const int p = point_p(pass), q = point_q(pass);
    vf a[N_POINTS], b[N_POINTS];
    for (int j = 0; j < N_POINTS; j++) {
        pair both = {vzero(), vzero()};
        if (j < TILE || has_right) both = input_points(pass, d, j * CT_LANES);
        a[j] = both.a, b[j] = both.b;
    }
    input_finite(a, 1, v + p * N_POINTS * XI_STEP);
    input_infinite(a, 1, v + p * N_POINTS * XI_STEP);
    if (p == q) return;
    input_finite(b, 1, v + q * N_POINTS * XI_STEP);
    input_infinite(b, 1, v + q * N_POINTS * XI_STEP);
}

static void dy_tile(const float *const row[N_POINTS], bool has_right, float *v) {
    for (int part = 0; part < CT_LANES; part += VL) {
        const float *d[N_POINTS];
        for (int k = 0; k < N_POINTS; k++) d[k] = row[k] + part;
        dy_pass(POINTS_12, d, has_right, v + part);
        dy_pass(POINTS_03, d, has_right, v + part);
        dy_pass(POINT_4, d, has_right, v + part);
    }
}

static void transform_dy(const ct_winograd2_plan *p, const float *dy, int first, int n, float *v) {
    static const float zeros[N_POINTS * CT_LANES];
    _Alignas(64) float copy[N_POINTS * N_POINTS * CT_LANES];
    for (int c = 0; c < p->c_out; c++, dy += (size_t)p->h_out * p->w_out * CT_LANES)
        for (int t = 0; t < n; t++) {
            const int i = (first + t) / p->n_across * TILE, j = (first + t) % p->n_across * TILE;
            const float *row[N_POINTS];
            const bool inside = j + TILE <= p->w_out;
            rows_of(dy, p->h_out, p->w_out, i, j, N_POINTS, inside, zeros, copy, row);
            dy_tile(row, !inside || j + TILE < p->w_out, v + place(p->y_group, c, t));
        }
}

/* ---- A x A^T of the phases ---- */

/* Of a column of A d; pixels are `step` apart. */
INLINE pair phase_points(int pass, const float *x, size_t step) {
    if (pass == POINT_4) {
        const vf last = vload(x + 3 * step);
        return (pair){last, last};
    }
    const vf d0 = vload(x), d1 = vload(x + step), d2 = vload(x + 2 * step);
    const vf d3 = vload(x + 3 * step);
    if (pass == POINTS_12) {
        const vf even = d0 + d2, odd = d1 + d3;
        return (pair){even + odd, even - odd};
    }
    return (pair){d0, d0 + 4.0f * d2 + 2.0f * (d1 + 4.0f * d3)};
}

/* d A^T of every other of eight pixels. */
INLINE void phase_finite(const vf *d, float *m) {
    const vf even = d[0] + d[4], odd = d[2] + d[6];
    vstore(m, d[0]);
    vstore(m + XI_STEP, even + odd);
    vstore(m + 2 * XI_STEP, even - odd);
    vstore(m + 3 * XI_STEP, d[0] + 4.0f * d[4] + 2.0f * (d[2] + 4.0f * d[6]));
}

INLINE void phase_row(const vf d[2 * TILE], float *m_odd, float *m_even) {
    phase_finite(d, m_even);
    phase_finite(d + 1, m_odd);
    vstore(m_odd + INFINITE * XI_STEP, d[2 * TILE - 1]);
}

INLINE void phase_pass(int pass, const float *x, size_t line, float *m_odd, float *m_even) {
    const int p = point_p(pass), q = point_q(pass);
    const size_t row = N_POINTS * XI_STEP;
    vf a[2 * TILE], b[2 * TILE];
    for (int j = 0; j < 2 * TILE; j++) {
        pair both = phase_points(pass, x + j * CT_LANES, 2 * line);
        a[j] = both.a, b[j] = both.b;
    }
    phase_row(a, m_odd + (size_t)p * row, m_even + (size_t)p * row);
    if (p != q) phase_row(b, m_odd + (size_t)q * row, m_even + (size_t)q * row);
}

/* One tile of one channel, 8x8 pixels of x. */
static void x_tile(const float *x, size_t line, size_t phase_step, float *m) {
    for (int part = 0; part < CT_LANES; part += VL, x += VL, m += VL) {
        float *even_odd = m + EVEN_ODD * phase_step, *even_even = m + EVEN_EVEN * phase_step;
        phase_pass(POINTS_12, x, line, even_odd, even_even);
        phase_pass(POINTS_03, x, line, even_odd, even_even);
        float *odd_odd = m + ODD_ODD * phase_step, *odd_even = m + ODD_EVEN * phase_step;
        phase_pass(POINTS_12, x + line, line, odd_odd, odd_even);
        phase_pass(POINTS_03, x + line, line, odd_odd, odd_even);
        phase_pass(POINT_4, x + line, line, odd_odd, odd_even);
    }
}

static void transform_x(const ct_winograd2_plan *p, const float *x, int first, int n, float *m) {
    enum { SIDE = 2 * TILE };
    _Alignas(64) float copy[SIDE * SIDE * CT_LANES];
    const size_t line = (size_t)p->w * CT_LANES, phase_step = (size_t)p->c_in * STEP2;
    for (int c = 0; c < p->c_in; c++, x += (size_t)p->h * line)
        for (int t = 0; t < n; t++) {
            const int i = (first + t) / p->n_across * SIDE, j = (first + t) % p->n_across * SIDE;
            const bool inside = i + SIDE <= p->h && j + SIDE <= p->w;
            if (!inside) copy_square(x, p->h, p->w, i, j, SIDE, copy);
            x_tile(inside ? x + (size_t)i * line + (size_t)j * CT_LANES : copy,
                   inside ? line : SIDE * CT_LANES, phase_step, m + place(p->x_group, c, t));
        }
}

/* ---- products of one frequency ---- */

static void weight_product(const ct_winograd2_plan *p, int xi, int n, const float *m,
                           const float *v, float *acc) {
    const int first = first_phase(xi) * p->c_in, end = first + n_phases(xi) * p->c_in;
    acc += (size_t)first * (size_t)p->c_out;
    for (int i = first; i < end; i += CO_TILE)
        for (int o = 0; o < p->c_out; o += CI_TILE, acc += TILE_SUMS)
            sum_tile(n, m + (size_t)i * STEP2, p->x_group, v + (size_t)o * STEP2, p->y_group, STEP2,
                     false, acc);
}

/* In place of x's, of all frequencies. */
static void data_products(const ct_winograd2_plan *p, int n, const float *u, const float *v,
                          float *m) {
    const size_t stride = u2_stride(p->c_in, p->c_out);
    ct_ahead none = {0};
    for (int xi = 0; xi < N_XI2; xi++) {
        const size_t skipped = (size_t)(first_phase(xi) * p->c_in); /* phases without it */
        product(p->c_out, n_phases(xi) * p->c_in, round_up(n, GROUP) / GROUP,
                u + (size_t)xi * stride + skipped * (size_t)p->c_out, p->c_out, v + xi * XI_STEP,
                p->y_group, STEP2, &none, m + skipped * STEP2 + xi * XI_STEP, p->x_group);
    }
}

/* ---- dx ---- */

/* The n_rows by n_columns pixels of a phase's tile that are in the picture; dx is the first. */
INLINE void dx_tile(const float *m, bool odd_rows, bool odd_columns, int n_rows, int n_columns,
                    size_t line, bool accumulate, float *dx) {
    vf tile[TILE][TILE];
    output_square(m, odd_rows, odd_columns, tile);
    for (int i = 0; i < n_rows; i++)
        for (int j = 0; j < n_columns; j++) {
            float *to = dx + 2 * ((size_t)i * line + (size_t)j * CT_LANES);
            vstore(to, accumulate ? vload(to) + tile[i][j] : tile[i][j]);
        }
}

/* Pixels first, first + 2, .. of a tile that lie below `extent`. */
INLINE int n_inside(int first, int extent) {
    const int n = (extent - first + 1) / 2;
    return n < 0 ? 0 : n < TILE ? n : TILE;
}

/* Tile (i, j) of one phase of one channel. */
INLINE void dx_phase(const ct_winograd2_plan *p, const float *m, const int phase, int i, int j,
                     bool accumulate, float *dx) {
    const bool odd_rows = has_odd_rows(phase), odd_columns = has_odd_columns(phase);
    const size_t line = (size_t)p->w * CT_LANES;
    i += odd_rows;
    j += odd_columns;
    const int n_rows = n_inside(i, p->h), n_columns = n_inside(j, p->w);
    dx += (size_t)i * line + (size_t)j * CT_LANES;
    for (int part = 0; part < CT_LANES; part += VL, m += VL, dx += VL)
        if (n_rows < TILE || n_columns < TILE)
            dx_tile(m, odd_rows, odd_columns, n_rows, n_columns, line, accumulate, dx);
        else if (accumulate)
            dx_tile(m, odd_rows, odd_columns, TILE, TILE, line, true, dx);
        else
            dx_tile(m, odd_rows, odd_columns, TILE, TILE, line, false, dx);
}

static void transform_dx(const ct_winograd2_plan *p, const float *m, int first, int n,
                         bool accumulate, float *dx) {
    const size_t phase_step = (size_t)p->c_in * STEP2;
    for (int c = 0; c < p->c_in; c++, dx += (size_t)p->h * p->w * CT_LANES)
        for (int t = 0; t < n; t++) {
            const int i = (first + t) / p->n_across * 2 * TILE;
            const int j = (first + t) % p->n_across * 2 * TILE;
            const float *from = m + place(p->x_group, c, t);
            dx_phase(p, from + EVEN_EVEN * phase_step, EVEN_EVEN, i, j, accumulate, dx);
            dx_phase(p, from + EVEN_ODD * phase_step, EVEN_ODD, i, j, accumulate, dx);
            dx_phase(p, from + ODD_EVEN * phase_step, ODD_EVEN, i, j, accumulate, dx);
            dx_phase(p, from + ODD_ODD * phase_step, ODD_ODD, i, j, accumulate, dx);
        }
}

/* One block: acc is added to. */
static void add_block(const ct_winograd2_plan *p, const float *x, const float *dy, const float *u,
                      float *dx, bool accumulate, float *acc, float *m) {
    const size_t stride = u2_stride(p->c_in, p->c_out);
    float *v = m + (size_t)(p->n_chunk / GROUP) * p->x_group;
    for (int first = 0; first < p->n_tiles; first += p->n_chunk) {
        const int left = p->n_tiles - first, n = left < p->n_chunk ? left : p->n_chunk;
        transform_dy(p, dy, first, n, v);
        transform_x(p, x, first, n, m);
        for (size_t xi = 0; xi < N_XI2; xi++)
            weight_product(p, (int)xi, n, m + xi * XI_STEP, v + xi * XI_STEP, acc + xi * stride);
        if (dx == NULL) continue;
        data_products(p, n, u, v, m);
        transform_dx(p, m, first, n, accumulate, dx);
    }
}

/* ---- dw ---- */

/* G^T t, to one tap of an even axis or two of an odd one, turned back. */
INLINE void taps_points(const vf t[N_POINTS], bool is_odd, vf taps[2]) {
    vf low = 0.5f * (t[0] - t[1]) + (1.0f / 6) * (t[3] - t[2]);
    taps[is_odd ? 1 : 0] = low;
    if (is_odd) taps[0] = (1.0f / 6) * t[2] - 0.5f * t[1] + (1.0f / 3) * t[3] + t[INFINITE];
}

/* The taps of a phase of the VL filters whose frequencies lie at acc, where they belong in [9]. */
INLINE void taps_phase(const float *acc, size_t stride, bool odd_rows, bool odd_columns,
                       vf taps[9]) {
    vf rows[N_POINTS][2];
    for (int j = 0; j < (odd_columns ? N_POINTS : INFINITE); j++) {
        vf column[N_POINTS];
        for (int i = 0; i < (odd_rows ? N_POINTS : INFINITE); i++)
            column[i] = vload(acc + (size_t)(i * N_POINTS + j) * stride);
        taps_points(column, odd_rows, rows[j]);
    }
    for (int i = 0; i < (odd_rows ? 2 : 1); i++) {
        vf row[N_POINTS], found[2];
        for (int j = 0; j < (odd_columns ? N_POINTS : INFINITE); j++) row[j] = rows[j][i];
        taps_points(row, odd_columns, found);
        vf *to = taps + 3 * (odd_rows ? 2 * i : 1);
        to[odd_columns ? 0 : 1] = found[0];
        if (odd_columns) to[2] = found[1];
    }
}

static void write_taps(const ct_winograd2_plan *p, const float *acc, float *dw) {
    const int c_in = p->c_in, c_out = p->c_out;
    const size_t stride = u2_stride(c_in, c_out), n = (size_t)c_in * (size_t)c_out;
    const int n_across = c_out / CI_TILE;
    for (size_t k = 0; k < n; k += VL) {
        vf taps[9];
        taps_phase(acc + EVEN_EVEN * n + k, stride, false, false, taps);
        taps_phase(acc + EVEN_ODD * n + k, stride, false, true, taps);
        taps_phase(acc + ODD_EVEN * n + k, stride, true, false, taps);
        taps_phase(acc + ODD_ODD * n + k, stride, true, true, taps);
        for (size_t f = k; f < k + VL; f++) {
            const int tile = (int)(f / TILE_SUMS), at = (int)(f % TILE_SUMS);
            const int i = tile / n_across * CO_TILE + at / CI_TILE;
            const int o = tile % n_across * CI_TILE + at % CI_TILE;
            float *g = dw + ((size_t)o * c_in + i) * 9;
            for (int s = 0; s < 9; s++) g[s] = taps[s][f - k];
        }
    }
}

void KERNEL(winograd2_backward)(const ct_winograd_geometry *g, const float *x, const float *dy,
                                const float *u, float *dx, bool accumulate, float *dw,
                                float *scratch) {
    const ct_winograd2_plan p = KERNEL(winograd2_plan)(g);
    const size_t n_sums = N_XI2 * u2_stride(g->c_in, g->c_out);
    memset(scratch, 0, n_sums * sizeof *scratch);
    for (int b = 0; b < g->n_blocks; b++, x += x_block(&p), dy += y_block(&p)) {
        add_block(&p, x, dy, u, dx, accumulate, scratch, scratch + n_sums);
        if (dx != NULL) dx += x_block(&p);
    }
    write_taps(&p, scratch, dw);
}
