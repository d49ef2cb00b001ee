/* Winograd transforms of the activations in lanes (matrices and sources: winograd_internal.h).
 *   winograd_input     V  = B^T d B   [6 x 6] -> [6 x 6]
 *   winograd_output    Y  = A^T M A   [6 x 6] -> [4 x 4]
 *   winograd_gradient  dM = A dY A^T  [4 x 4] -> [6 x 6]
 * B and A give their rows in pairs that share sums, (1,2), (3,4) and (0,5). The input is therefore
 * walked through once per pair: two rows of six are all that is live, nothing is spilled, and the
 * columns that neighbouring tiles share are transformed once. */
#include "backend/cpu/kernels/winograd_internal.h"

/* The same for column k of the image, black outside. */
INLINE pair input_column(int pass, const float *const row[6], int k, int w) {
    if (k < 0 || k >= w) return (pair){vzero(), vzero()};
    return input_rows(pass, row, (ptrdiff_t)k * CT_LANES);
}

/* Two of the six rows of n neighbouring tiles, the first of them being tile tx of its row. */
INLINE void input_pass(int pass, const float *const row[6], int tx, int n, int w, float *v) {
    const int first_row = pass == ROWS_12 ? 1 : pass == ROWS_34 ? 3 : 0;
    const int second_row = pass == ROWS_12 ? 2 : pass == ROWS_34 ? 4 : 5;
    float *v_a = v + first_row * 6 * XI_STEP, *v_b = v + second_row * 6 * XI_STEP;
    vf a[6], b[6];
    pair left = input_column(pass, row, TILE * tx - 1, w);
    pair right = input_column(pass, row, TILE * tx, w);
    a[4] = left.a, b[4] = left.b, a[5] = right.a, b[5] = right.b;
    for (int t = 0; t < n; t++) {
        int k = TILE * (tx + t) + 1;
        a[0] = a[4], b[0] = b[4], a[1] = a[5], b[1] = b[5];
        if (k + TILE <= w) {
            for (int i = 0; i < TILE; i++) {
                pair p = input_rows(pass, row, (ptrdiff_t)(k + i) * CT_LANES);
                a[2 + i] = p.a, b[2 + i] = p.b;
            }
        } else {
            for (int i = 0; i < TILE; i++) {
                pair p = input_column(pass, row, k + i, w);
                a[2 + i] = p.a, b[2 + i] = p.b;
            }
        }
        input_store(a, v_a + (size_t)t * CT_LANES, XI_STEP);
        input_store(b, v_b + (size_t)t * CT_LANES, XI_STEP);
    }
}

/* n tiles of tile row ty of one channel, all of one group. */
static void input_tiles(const ct_winograd_plan *plan, const float *x, int ty, int tx, int n,
                        const float *zeros, float *v) {
    const float *row[6];
    for (int part = 0; part < PARTS; part++) {
        for (int i = 0; i < 6; i++) {
            int r = TILE * ty - 1 + i;
            const float *line = r < 0 || r >= plan->h ? zeros : x + (size_t)r * plan->w * CT_LANES;
            row[i] = line + part * VL;
        }
        float *to = v + part * VL;
        input_pass(ROWS_12, row, tx, n, plan->w, to);
        input_pass(ROWS_34, row, tx, n, plan->w, to);
        input_pass(ROWS_05, row, tx, n, plan->w, to);
    }
}

/* How many of the n tiles from `tile` on lie in one row of tiles and one group. */
INLINE int tiles_in_row(const ct_winograd_plan *plan, int tile, int n) {
    int to_end = plan->n_across - tile % plan->n_across, in_group = GROUP - tile % GROUP;
    if (in_group < n) n = in_group;
    return to_end < n ? to_end : n;
}

void KERNEL(winograd_input)(const ct_winograd_plan *plan, const float *x, int first, int n,
                            const float *zeros, float *v) {
    for (int c = 0; c < plan->c_in; c++) {
        const float *image = x + (size_t)c * plan->h * plan->w * CT_LANES;
        for (int t = 0, run; t < n; t += run) {
            int tile = first + t;
            run = tiles_in_row(plan, tile, n - t);
            input_tiles(plan, image, tile / plan->n_across, tile % plan->n_across, run, zeros,
                        v + tile_at(plan->v_group, c, t));
        }
    }
}

/* One column of A^T m, z [4]. */
INLINE void output_column(const float *m, vf z[4]) {
    vf m1 = vload(m + 6 * XI_STEP), m2 = vload(m + 12 * XI_STEP);
    vf m3 = vload(m + 18 * XI_STEP), m4 = vload(m + 24 * XI_STEP);
    vf s1 = m1 + m2, d1 = m1 - m2, s2 = m3 + m4, d2 = m3 - m4;
    z[0] = vload(m) + s1 + s2;
    z[1] = d1 + 2.0f * d2;
    z[2] = s1 + 4.0f * s2;
    z[3] = d1 + 8.0f * d2 + vload(m + 30 * XI_STEP);
}

INLINE void put(float *y, bool accumulate, vf a) {
    vstore(y, accumulate ? vload(y) + a : a);
}

/* y [4][4] (+)= A^T m A of one tile, rows of y `row` floats apart. */
INLINE void output_tile(const float *m, bool accumulate, float *y, size_t row) {
    vf s1[4], d1[4], p[4], q[4], first[4], last[4];
    output_column(m + XI_STEP, p);
    output_column(m + 2 * XI_STEP, q);
    for (int i = 0; i < 4; i++) s1[i] = p[i] + q[i], d1[i] = p[i] - q[i];
    output_column(m + 3 * XI_STEP, p);
    output_column(m + 4 * XI_STEP, q);
    for (int i = 0; i < 4; i++) {
        vf s2 = p[i] + q[i], d2 = p[i] - q[i];
        first[i] = s1[i] + s2;
        last[i] = d1[i] + 8.0f * d2;
        put(y + i * row + CT_LANES, accumulate, d1[i] + 2.0f * d2);
        put(y + i * row + 2 * CT_LANES, accumulate, s1[i] + 4.0f * s2);
    }
    output_column(m, p);
    for (int i = 0; i < 4; i++) put(y + i * row, accumulate, first[i] + p[i]);
    output_column(m + 5 * XI_STEP, q);
    for (int i = 0; i < 4; i++) put(y + i * row + 3 * CT_LANES, accumulate, last[i] + q[i]);
}

/* A tile of which only n_rows by n_columns pixels are in the image. */
static void output_edge(const float *m, bool accumulate, int n_rows, int n_columns, float *y,
                        size_t row) {
    _Alignas(64) float tile[TILE * TILE * CT_LANES];
    output_tile(m, false, tile, TILE * CT_LANES);
    for (int i = 0; i < n_rows; i++)
        for (int j = 0; j < n_columns; j++)
            put(y + i * row + j * CT_LANES, accumulate, vload(tile + (TILE * i + j) * CT_LANES));
}

/* n tiles of one channel and row of tiles; y is the first one's corner, (i, j) in the image. */
INLINE void output_tiles(const ct_winograd_plan *plan, const float *m, int i, int j, int n,
                         bool accumulate, float *y) {
    const size_t row = (size_t)plan->w * CT_LANES;
    const int n_rows = plan->h - i < TILE ? plan->h - i : TILE;
    for (int t = 0; t < n; t++) {
        int left = plan->w - j - TILE * t;
        for (int part = 0; part < CT_LANES; part += VL) {
            if (n_rows == TILE && left >= TILE)
                output_tile(m + part, accumulate, y + part, row);
            else
                output_edge(m + part, accumulate, n_rows, left < TILE ? left : TILE, y + part, row);
        }
        m += CT_LANES;
        y += TILE * CT_LANES;
    }
}

void KERNEL(winograd_output)(const ct_winograd_plan *plan, const float *m, int first, int n,
                             bool accumulate, float *y) {
    for (int c = 0; c < plan->c_out; c++) {
        for (int t = 0, run; t < n; t += run) {
            int i = (first + t) / plan->n_across * TILE, j = (first + t) % plan->n_across * TILE;
            float *to = y + (((size_t)c * plan->h + i) * plan->w + j) * CT_LANES;
            const float *from = m + tile_at(plan->m_group, c, t);
            run = tiles_in_row(plan, first + t, n - t);
            if (accumulate)
                output_tiles(plan, from, i, j, run, true, to);
            else
                output_tiles(plan, from, i, j, run, false, to);
        }
    }
}

/* One row d A^T, six frequencies. */
INLINE void gradient_store(const vf d[4], float *m) {
    vf even = d[0] + d[2], odd = d[1] + d[3];
    vstore(m, d[0]);
    vstore(m + XI_STEP, even + odd);
    vstore(m + 2 * XI_STEP, even - odd);
    even = d[0] + 4.0f * d[2];
    odd = d[1] + 4.0f * d[3];
    vstore(m + 3 * XI_STEP, even + 2.0f * odd);
    vstore(m + 4 * XI_STEP, even - 2.0f * odd);
    vstore(m + 5 * XI_STEP, d[3]);
}

/* A d A^T of one tile, rows of d `row` floats apart. */
INLINE void gradient_tile(const float *d, size_t row, float *m) {
    vf a[4], b[4];
    for (int j = 0; j < 4; j++) {
        const float *p = d + j * CT_LANES;
        vf even = vload(p) + vload(p + 2 * row), odd = vload(p + row) + vload(p + 3 * row);
        a[j] = even + odd, b[j] = even - odd;
    }
    gradient_store(a, m + 6 * XI_STEP);
    gradient_store(b, m + 12 * XI_STEP);
    for (int j = 0; j < 4; j++) {
        const float *p = d + j * CT_LANES;
        vf even = vload(p) + 4.0f * vload(p + 2 * row);
        vf odd = vload(p + row) + 4.0f * vload(p + 3 * row);
        a[j] = even + 2.0f * odd, b[j] = even - 2.0f * odd;
    }
    gradient_store(a, m + 18 * XI_STEP);
    gradient_store(b, m + 24 * XI_STEP);
    for (int j = 0; j < 4; j++) {
        a[j] = vload(d + j * CT_LANES);
        b[j] = vload(d + 3 * row + j * CT_LANES);
    }
    gradient_store(a, m);
    gradient_store(b, m + 30 * XI_STEP);
}

/* A tile of which only n_rows by n_columns pixels are in the image; the others count as 0. */
static void gradient_edge(const float *d, size_t row, int n_rows, int n_columns, float *m) {
    _Alignas(64) float tile[TILE * TILE * CT_LANES];
    for (int i = 0; i < TILE; i++) {
        for (int j = 0; j < TILE; j++) {
            bool inside = i < n_rows && j < n_columns;
            vstore(tile + (TILE * i + j) * CT_LANES,
                   inside ? vload(d + i * row + j * CT_LANES) : vzero());
        }
    }
    gradient_tile(tile, TILE * CT_LANES, m);
}

/* n tiles of one channel and row of tiles; d is the first one's corner, (i, j) in the image. */
static void gradient_tiles(const ct_winograd_plan *plan, const float *d, int i, int j, int n,
                           float *m) {
    const size_t row = (size_t)plan->w * CT_LANES;
    const int n_rows = plan->h - i < TILE ? plan->h - i : TILE;
    for (int t = 0; t < n; t++) {
        int left = plan->w - j - TILE * t;
        for (int part = 0; part < CT_LANES; part += VL) {
            if (n_rows == TILE && left >= TILE)
                gradient_tile(d + part, row, m + part);
            else
                gradient_edge(d + part, row, n_rows, left, m + part);
        }
        d += TILE * CT_LANES;
        m += CT_LANES;
    }
}

void KERNEL(winograd_gradient)(const ct_winograd_plan *plan, const float *dy, int first, int n,
                               float *m) {
    for (int c = 0; c < plan->c_out; c++) {
        for (int t = 0, run; t < n; t += run) {
            int i = (first + t) / plan->n_across * TILE, j = (first + t) % plan->n_across * TILE;
            const float *from = dy + (((size_t)c * plan->h + i) * plan->w + j) * CT_LANES;
            run = tiles_in_row(plan, first + t, n - t);
            gradient_tiles(plan, from, i, j, run, m + tile_at(plan->m_group, c, t));
        }
    }
}
