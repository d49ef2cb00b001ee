/* Convolution 3x3 of stride 2, border 1, by Winograd's method in lanes (winograd2_internal.h).
 *   y[o] = A^T [ sum over phases p and channels i of U[o][p][i] . V[p][i] ] A
 *   x [c_in][h][w][16]   y [c_out][h_out][w_out][16]   one block of 16 samples, 64-byte aligned
 *   u [25][c_out/4][4 phases][c_in][4]   weights transformed by winograd2_weights
 *   v [tiles/4][4 phases][c_in][25][4][16], m [tiles/4][c_out][25][4][16]   in scratch
 * c_in and c_out are multiples of 4. */
#include "backend/cpu/kernels/winograd2_internal.h"
#include "backend/cpu/kernels/winograd_product.h"

/* Bytes of v and m at a time, beside u, x and y in a 1 MiB second-level cache. */
#define CHUNK_BYTES (640 * 1024)

ct_winograd2_plan KERNEL(winograd2_plan)(const ct_winograd_geometry *g) {
    ct_winograd2_plan p = {.c_in = g->c_in, .c_out = g->c_out, .h = g->h, .w = g->w};
    p.h_out = (g->h + 1) / 2;
    p.w_out = (g->w + 1) / 2;
    p.n_across = (p.w_out + TILE - 1) / TILE;
    p.n_tiles = p.n_across * ((p.h_out + TILE - 1) / TILE);
    p.x_group = (size_t)(N_PHASES * g->c_in) * STEP2;
    p.y_group = (size_t)g->c_out * STEP2;
    const int n = (int)(CHUNK_BYTES / sizeof(float) / (p.x_group + p.y_group)) * GROUP;
    const int n_all = round_up(p.n_tiles, GROUP);
    p.n_chunk = n < GROUP ? GROUP : n < n_all ? n : n_all;
    return p;
}

static size_t weights_size(const ct_winograd_geometry *g) {
    return N_XI2 * u2_stride(g->c_in, g->c_out);
}

/* v and m, and the sums of the weight gradient. */
static size_t scratch_floats(const ct_winograd_geometry *g) {
    const ct_winograd2_plan p = KERNEL(winograd2_plan)(g);
    return weights_size(g) + (size_t)(p.n_chunk / GROUP) * (p.x_group + p.y_group);
}

/* ---- weights ---- */

/* G g of the taps 0 and 2, five points. */
INLINE void odd_taps(vf first, vf last, vf t[N_POINTS]) {
    vf sum = -0.5f * (first + last), third = (1.0f / 6) * first;
    t[0] = 0.5f * first;
    t[1] = sum;
    t[2] = (1.0f / 6) * last - third;
    t[3] = third + (1.0f / 3) * last;
    t[4] = last;
}
/* And of tap 1 alone, four points. */
INLINE void even_taps(vf only, vf t[N_POINTS]) {
    t[0] = 0.5f * only;
    t[1] = -0.5f * only;
    t[2] = (-1.0f / 6) * only;
    t[3] = (1.0f / 6) * only;
}

/* The frequencies of one row of taps, [3] at row frequency `point` of two phases. */
INLINE void weights_row(const vf row[3], int point, bool is_odd, size_t stride, size_t phase_step,
                        float *u) {
    vf odd[N_POINTS], even[N_POINTS];
    odd_taps(row[0], row[2], odd);
    even_taps(row[1], even);
    float *at = u + (size_t)(point * N_POINTS) * stride;
    float *at_odd = at + (is_odd ? ODD_ODD : EVEN_ODD) * phase_step;
    float *at_even = at + (is_odd ? ODD_EVEN : EVEN_EVEN) * phase_step;
    for (int k = 0; k < N_POINTS; k++) vstore(at_odd + (size_t)k * stride, odd[k]);
    for (int k = 0; k < INFINITE; k++) vstore(at_even + (size_t)k * stride, even[k]);
}

/* Of the 16 filters taps[3][3][16], phases phase_step floats apart. */
static void weights_group(const float *taps, size_t stride, size_t phase_step, float *u) {
    for (int part = 0; part < CT_LANES; part += VL, taps += VL, u += VL) {
        vf odd[3][N_POINTS], even[3][N_POINTS];
        for (int j = 0; j < 3; j++) {
            odd_taps(vload(taps + j * CT_LANES), vload(taps + (6 + j) * CT_LANES), odd[j]);
            even_taps(vload(taps + (3 + j) * CT_LANES), even[j]);
        }
        for (int k = 0; k < N_POINTS; k++)
            weights_row((vf[]){odd[0][k], odd[1][k], odd[2][k]}, k, true, stride, phase_step, u);
        for (int k = 0; k < INFINITE; k++)
            weights_row((vf[]){even[0][k], even[1][k], even[2][k]}, k, false, stride, phase_step,
                        u);
    }
}

static void weights(const ct_winograd_geometry *g, const float *w, bool flip, float *u) {
    _Alignas(64) float taps[N_GATHERED][9 * CT_LANES];
    const int c_in = g->c_in, c_out = g->c_out;
    const size_t stride = u2_stride(c_in, c_out), channels = (size_t)c_in;
    const size_t phase_step = flip ? channels * (size_t)c_out : channels * CO_TILE;
    for (int o = 0; o < c_out; o += CO_TILE) {
        float *to = u + (size_t)o * (flip ? channels : N_PHASES * channels);
        for (int first = 0; first < c_in; first += 4 * N_GATHERED) {
            const int left = (c_in - first) / 4, n = left < N_GATHERED ? left : N_GATHERED;
            for (int k = 0; k < n; k++) weights_of(w, c_in, c_out, first + 4 * k, o, flip, taps[k]);
            for (int k = 0; k < n; k++)
                weights_group(taps[k], stride, phase_step, to + (size_t)(first + 4 * k) * CO_TILE);
        }
    }
}

/* ---- input ---- */

/* One row of frequencies: odd pixels 0, 2, .., 8 and even ones 1, 3, 5, 7. */
INLINE void input_row(const vf d[SPAN], float *v_odd, float *v_even) {
    input_finite(d, 2, v_odd);
    input_infinite(d, 2, v_odd);
    input_finite(d + 1, 2, v_even);
}

/* Two rows of frequencies of the phases whose rows d are, at the first column; it is black unless
 * has_left. */
INLINE void input_pass(int pass, const float *const d[N_POINTS], bool has_left, float *v_odd,
                       float *v_even) {
    const int p = point_p(pass), q = point_q(pass);
    const size_t row = N_POINTS * XI_STEP;
    vf a[SPAN] = {vzero()}, b[SPAN] = {vzero()};
    for (int j = 0; j < SPAN; j++) {
        if (j == 0 && !has_left) continue;
        pair both = input_points(pass, d, j * CT_LANES);
        a[j] = both.a, b[j] = both.b;
    }
    input_row(a, v_odd + (size_t)p * row, v_even + (size_t)p * row);
    if (p != q) input_row(b, v_odd + (size_t)q * row, v_even + (size_t)q * row);
}

/* One tile of one channel, 9x9 pixels. */
static void input_tile(const float *const row[SPAN], bool has_left, size_t phase_step, float *v) {
    for (int part = 0; part < CT_LANES; part += VL, v += VL) {
        const float *odd[N_POINTS], *even[N_POINTS];
        for (int k = 0; k < N_POINTS; k++) {
            odd[k] = row[2 * k] + part;
            even[k] = row[k < INFINITE ? 2 * k + 1 : 0] + part; /* the last one is not read */
        }
        float *odd_odd = v + ODD_ODD * phase_step, *odd_even = v + ODD_EVEN * phase_step;
        input_pass(POINTS_12, odd, has_left, odd_odd, odd_even);
        input_pass(POINTS_03, odd, has_left, odd_odd, odd_even);
        input_pass(POINT_4, odd, has_left, odd_odd, odd_even);
        float *even_odd = v + EVEN_ODD * phase_step, *even_even = v + EVEN_EVEN * phase_step;
        input_pass(POINTS_12, even, has_left, even_odd, even_even);
        input_pass(POINTS_03, even, has_left, even_odd, even_even);
    }
}

static void input(const ct_winograd2_plan *p, const float *x, int first, int n, float *v) {
    static const float zeros[SPAN * CT_LANES];
    _Alignas(64) float copy[SPAN * SPAN * CT_LANES];
    const size_t phase_step = (size_t)p->c_in * STEP2;
    for (int c = 0; c < p->c_in; c++, x += (size_t)p->h * p->w * CT_LANES)
        for (int t = 0; t < n; t++) {
            const int i = (first + t) / p->n_across * 2 * TILE - 1;
            const int j = (first + t) % p->n_across * 2 * TILE - 1;
            const float *row[SPAN];
            const bool inside = j + SPAN <= p->w;
            rows_of(x, p->h, p->w, i, j, SPAN, inside, zeros, copy, row);
            input_tile(row, !inside || j >= 0, phase_step, v + place(p->x_group, c, t));
        }
}

/* ---- output ---- */

/* The n_rows by n_columns pixels of a tile that are in the picture. */
INLINE void output_tile(const float *m, int n_rows, int n_columns, size_t line, float *y) {
    vf tile[TILE][TILE];
    output_square(m, true, true, tile);
    for (int i = 0; i < n_rows; i++)
        for (int j = 0; j < n_columns; j++) vstore(y + i * line + j * CT_LANES, tile[i][j]);
}

static int least(int a, int b) {
    return a < b ? a : b;
}

static void output(const ct_winograd2_plan *p, const float *m, int first, int n, float *y) {
    const size_t line = (size_t)p->w_out * CT_LANES;
    for (int c = 0; c < p->c_out; c++, y += (size_t)p->h_out * line)
        for (int t = 0; t < n; t++) {
            const int i = (first + t) / p->n_across * TILE, j = (first + t) % p->n_across * TILE;
            const float *from = m + place(p->y_group, c, t);
            float *to = y + (size_t)i * line + (size_t)j * CT_LANES;
            const bool whole = i + TILE <= p->h_out && j + TILE <= p->w_out;
            for (int part = 0; part < CT_LANES; part += VL)
                if (whole)
                    output_tile(from + part, TILE, TILE, line, to + part);
                else
                    output_tile(from + part, least(p->h_out - i, TILE), least(p->w_out - j, TILE),
                                line, to + part);
        }
}

/* ---- products ---- */

/* All frequencies of n tiles; meanwhile their rows of y are fetched. */
static void products(const ct_winograd2_plan *p, const float *u, const float *v, int first, int n,
                     const float *y, float *m) {
    const size_t stride = u2_stride(p->c_in, p->c_out);
    const int n_groups = round_up(n, GROUP) / GROUP;
    const ct_winograd_plan tiles = {
        .h = p->h_out, .w = p->w_out, .n_across = p->n_across, .n_tiles = p->n_tiles};
    ct_ahead rows =
        tile_rows(&tiles, y, p->c_out, first, n, N_XI2 * (p->c_out / CO_TILE) * n_groups);
    for (int xi = 0; xi < N_XI2; xi++) {
        const int skipped = first_phase(xi) * p->c_in; /* channels of phases without it */
        product(n_phases(xi) * p->c_in, p->c_out, n_groups,
                u + (size_t)xi * stride + (size_t)skipped * CO_TILE, N_PHASES * p->c_in,
                v + (size_t)skipped * STEP2 + xi * XI_STEP, p->x_group, STEP2, &rows,
                m + xi * XI_STEP, p->y_group);
    }
}

static void conv(const ct_winograd_geometry *g, const float *x, const float *u, float *y,
                 float *scratch) {
    const ct_winograd2_plan p = KERNEL(winograd2_plan)(g);
    float *v = scratch, *m = v + (size_t)(p.n_chunk / GROUP) * p.x_group;
    for (int b = 0; b < g->n_blocks; b++, x += x_block(&p), y += y_block(&p))
        for (int first = 0; first < p.n_tiles; first += p.n_chunk) {
            const int n = least(p.n_tiles - first, p.n_chunk);
            input(&p, x, first, n, v);
            products(&p, u, v, first, n, y, m);
            output(&p, m, first, n, y);
        }
}

const ct_winograd KERNEL(winograd_stride2) = {scratch_floats, weights_size, weights, conv,
                                              KERNEL(winograd2_backward)};
