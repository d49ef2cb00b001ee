/* Winograd transforms of the activations in lanes (winograd_internal.h, winograd_points.h).
 *   winograd_input     V  = B^T d B   [SIDE x SIDE] -> [SIDE x SIDE]
 *   winograd_output    Y  = A^T M A   [SIDE x SIDE] -> [TILE x TILE]
 *   winograd_gradient  dM = A dY A^T  [TILE x TILE] -> [SIDE x SIDE]
 * B and A give their rows in pairs that share sums: those of two points +p and -p, those of 0 and
 * infinity, or two outputs. The tile is therefore walked through once per pair: two rows are all
 * that is live, nothing is spilled, and the columns that neighbouring tiles share are transformed
 * once. */
#ifndef CT_BACKEND_CPU_KERNELS_WINOGRAD_TRANSFORM_H
#define CT_BACKEND_CPU_KERNELS_WINOGRAD_TRANSFORM_H

#include "backend/cpu/kernels/winograd_internal.h"
#include "backend/cpu/kernels/winograd_points.h"

enum { ENDS = N_PAIRS, ROW_STEP = SIDE * XI_STEP }; /* the pass of 0 and infinity */

/* The frequencies that a pass makes. */
INLINE int first_of(int pass) {
    return pass == ENDS ? 0 : 1 + 2 * pass;
}
INLINE int second_of(int pass) {
    return pass == ENDS ? SIDE - 1 : 2 + 2 * pass;
}

/* Tile t of a chunk, channel c, the first place. */
INLINE size_t tile_at(const ct_winograd_plan *plan, int c, int t) {
    return (size_t)(t / GROUP) * plan->group + (size_t)c * CHANNEL_STEP +
           (size_t)(t % GROUP) * CT_LANES;
}

/* Some tiles of a chunk that lie in one row of tiles and one group, all within the picture's width
 * or a single one that is not: n of them from t on, the first one's corner at row i and column j.
 */
typedef struct run {
    int t, n, i, j;
    int block;
} run;

/* The run that begins with tile t of n; tile 0 is `first` of all. */
INLINE run run_at(const ct_winograd_plan *plan, int first, int t, int n) {
    const int tile = (first + t) % plan->n_tiles, tx = tile % plan->n_across;
    const int to_end = plan->n_across - tx, in_group = GROUP - t % GROUP;
    run r = {t, n - t, tile / plan->n_across * TILE, tx * TILE, (first + t) / plan->n_tiles};
    if (in_group < r.n) r.n = in_group;
    if (to_end < r.n) r.n = to_end;
    if (r.n > 1 && r.j + r.n * TILE > plan->w) r.n--;
    return r;
}

/* Where the picture of channel c of a run lies. */
INLINE size_t picture_at(const ct_winograd_plan *plan, int n_channels, run r, int c) {
    return (size_t)(r.block * n_channels + c) * plan->h * plan->w * CT_LANES;
}

/* ---- input ---- */

/* The numbers of one pass: registers, not operands in memory, of which a cycle can read one. */
typedef struct input_factors {
    vf even[N_PAIRS], odd[N_PAIRS];
} input_factors;

INLINE input_factors factors_of_input(int pass) {
    input_factors f;
#pragma GCC unroll 4
    for (int j = 0; j < N_PAIRS; j++) {
        const float even = pass == ENDS ? ct_all[j] : ct_other[pass][j];
        f.even[j] = in_register(vset(even));
        f.odd[j] = pass == ENDS || ct_power[pass][1] == 1.0f
                       ? f.even[j]
                       : in_register(vset(ct_power[pass][1] * even));
    }
    return f;
}

/* Two rows of B^T d. */
INLINE pair input_pair(int pass, const input_factors *f, const vf d[SIDE]) {
    if (pass == ENDS) {
        vf first = d[2 * N_PAIRS], last = d[2 * N_PAIRS + 1];
#pragma GCC unroll 4
        for (int j = 0; j < N_PAIRS; j++) {
            first = first + f->even[j] * d[2 * j];
            last = last + f->odd[j] * d[2 * j + 1];
        }
        return (pair){first, last};
    }
    const bool is_one = ct_power[pass][1] == 1.0f;
    vf even = d[2 * N_PAIRS], odd = d[2 * N_PAIRS - 1];
    if (!is_one) odd = f->odd[N_PAIRS - 1] * odd;
#pragma GCC unroll 4
    for (int j = 0; j < N_PAIRS - 1; j++) {
        even = even + f->even[j] * d[2 * j + 2];
        odd = odd + f->odd[j] * d[2 * j + 1];
    }
    return (pair){even + odd, even - odd};
}

/* Of column k of the picture. */
INLINE pair input_column(int pass, const input_factors *f, const float *const row[SIDE], int k) {
    vf d[SIDE];
#pragma GCC unroll 10
    for (int i = 0; i < SIDE; i++) d[i] = vload(row[i] + (ptrdiff_t)k * CT_LANES);
    return input_pair(pass, f, d);
}

#if TILE == 4
/* All frequencies of two rows, d B. */
INLINE void input_store(const vf a[SIDE], const vf b[SIDE], float *v_a, float *v_b) {
#pragma GCC unroll 5
    for (int pass = 0; pass <= ENDS; pass++) {
        const input_factors f = factors_of_input(pass);
        const pair p = input_pair(pass, &f, a), q = input_pair(pass, &f, b);
        vstore(v_a + first_of(pass) * XI_STEP, p.a);
        vstore(v_a + second_of(pass) * XI_STEP, p.b);
        vstore(v_b + first_of(pass) * XI_STEP, q.a);
        vstore(v_b + second_of(pass) * XI_STEP, q.b);
    }
}
#else
/* x^2 P(x^2) or x P(x^2) of the four pairs, and of 0 or infinity, from the five pixels d[0], d[2],
 * .. d[8]; `at` is 0 for the even part, with 0, and 1 for the odd one, with infinity. */
typedef struct row_part {
    vf one, two, three, four, end;
} row_part;

typedef struct row_factors {
    vf w1, w0, p2, p3, p4, square2, square3, square4;
} row_factors;

INLINE row_factors factors_of_row(void) {
    return (row_factors){
        .w1 = in_register(vset(-(SQUARE(P3) + SQUARE(P4)))),
        .w0 = in_register(vset(SQUARE(P3) * SQUARE(P4))),
        .p2 = in_register(vset(P2)),
        .p3 = in_register(vset(P3)),
        .p4 = in_register(vset(P4)),
        .square2 = in_register(vset(SQUARE(P2))),
        .square3 = in_register(vset(SQUARE(P3))),
        .square4 = in_register(vset(SQUARE(P4))),
    };
}

/* w[j] = (y - P3^2) (y - P4^2) and t[j] = (y - 1) (y - P2^2) of d from pixel 2 j on; the products
 * of the one with the factors of the other are P. */
INLINE row_part input_part(const row_factors *f, const vf *d, bool is_odd) {
    const vf w_a = d[4] + f->w1 * d[2] + f->w0 * d[0], w_b = d[6] + f->w1 * d[4] + f->w0 * d[2];
    const vf w_c = d[8] + f->w1 * d[6] + f->w0 * d[4];
    const vf low = is_odd ? w_a : w_b, high = is_odd ? w_b : w_c;
    const vf *x = is_odd ? d : d + 2;
    const vf d0 = x[2] - x[0], d1 = x[4] - x[2], d2 = x[6] - x[4];
    const vf t0 = d1 - f->square2 * d0, t1 = d2 - f->square2 * d1;
    row_part p;
    p.one = high - f->square2 * low;
    p.two = high - low;
    p.three = t1 - f->square4 * t0;
    p.four = t1 - f->square3 * t0;
    p.end = is_odd ? (w_c - w_b) - f->square2 * p.two : p.two - f->square2 * (w_b - w_a);
    return p;
}

INLINE void store_pair(int pass, vf even, vf odd, float *v) {
    vstore(v + first_of(pass) * XI_STEP, even + odd);
    vstore(v + second_of(pass) * XI_STEP, even - odd);
}

/* All frequencies of one row, d B. */
INLINE void input_row(const row_factors *f, const vf d[SIDE], float *v) {
    const row_part even = input_part(f, d, false), odd = input_part(f, d + 1, true);
    store_pair(0, even.one, odd.one, v);
    store_pair(1, even.two, in_register(f->p2 * odd.two), v);
    store_pair(2, even.three, in_register(f->p3 * odd.three), v);
    store_pair(3, even.four, in_register(f->p4 * odd.four), v);
    vstore(v, even.end);
    vstore(v + (SIDE - 1) * XI_STEP, odd.end);
}

INLINE void input_store(const vf a[SIDE], const vf b[SIDE], float *v_a, float *v_b) {
    const row_factors f = factors_of_row();
    input_row(&f, a, v_a);
    input_row(&f, b, v_b);
}
#endif

/* Two of the rows of n neighbouring tiles; `row` points at the first one's second column. What lies
 * to the left and to the right of the tiles' outputs is black unless has_left, has_right. */
INLINE void input_pass(int pass, const float *const row[SIDE], int n, bool has_left, bool has_right,
                       float *v) {
    float *v_a = v + first_of(pass) * ROW_STEP, *v_b = v + second_of(pass) * ROW_STEP;
    const input_factors f = factors_of_input(pass);
    const pair black = {vzero(), vzero()};
    vf a[SIDE], b[SIDE];
    pair left = has_left ? input_column(pass, &f, row, -1) : black;
    pair right = input_column(pass, &f, row, 0);
    a[TILE] = left.a, b[TILE] = left.b, a[TILE + 1] = right.a, b[TILE + 1] = right.b;
    for (int k = 1; k < n * TILE; k += TILE, v_a += CT_LANES, v_b += CT_LANES) {
        a[0] = a[TILE], b[0] = b[TILE], a[1] = a[TILE + 1], b[1] = b[TILE + 1];
#pragma GCC unroll 7
        for (int i = 0; i < TILE - 1; i++) {
            pair p = input_column(pass, &f, row, k + i);
            a[2 + i] = p.a, b[2 + i] = p.b;
        }
        const bool is_inside = has_right || k + TILE - 1 < n * TILE;
        pair last = is_inside ? input_column(pass, &f, row, k + TILE - 1) : black;
        a[TILE + 1] = last.a, b[TILE + 1] = last.b;
        input_store(a, b, v_a, v_b);
    }
}

INLINE void input_passes(const float *const line[SIDE], int n, bool has_left, bool has_right,
                         float *v) {
    for (int part = 0; part < CT_LANES; part += VL) {
        const float *row[SIDE];
        for (int k = 0; k < SIDE; k++) row[k] = line[k] + part;
#pragma GCC unroll 5
        for (int pass = 0; pass <= ENDS; pass++)
            input_pass(pass, row, n, has_left, has_right, v + part);
    }
}

/* A tile that reaches past the right end of the picture x. */
static void input_edge(const ct_winograd_plan *plan, const float *x, run r, float *v) {
    _Alignas(64) float copy[SIDE * SIDE * CT_LANES];
    const float *line[SIDE];
    copy_square(x, plan->h, plan->w, r.i - 1, r.j - 1, SIDE, copy);
    for (int k = 0; k < SIDE; k++) line[k] = copy + (SIDE * k + 1) * CT_LANES;
    input_passes(line, 1, true, true, v);
}

/* A run of one channel whose picture is x. */
static void input_tiles(const ct_winograd_plan *plan, const float *x, run r, float *v) {
    static const float black[(GROUP * TILE + 2) * CT_LANES]; /* with a column on either side */
    if (r.j + TILE > plan->w) {
        input_edge(plan, x, r, v);
        return;
    }
    const float *line[SIDE];
    for (int k = 0; k < SIDE; k++) {
        const int i = r.i - 1 + k;
        line[k] =
            i < 0 || i >= plan->h ? black + CT_LANES : x + ((size_t)i * plan->w + r.j) * CT_LANES;
    }
    input_passes(line, r.n, r.j > 0, r.j + r.n * TILE < plan->w, v);
}

/* v of the n tiles from `first` on. */
static void winograd_input(const ct_winograd_plan *plan, const float *x, int first, int n,
                           float *v) {
    for (int c = 0; c < plan->c_in; c++)
        for (run r = {0}; r.t < n; r.t += r.n) {
            r = run_at(plan, first, r.t, n);
            input_tiles(plan, x + picture_at(plan, plan->c_in, r, c), r, v + tile_at(plan, c, r.t));
        }
}

/* ---- output ---- */

/* Outputs j and j + 2 of A^T m: of two points +p and -p the even powers have the sum and the odd
 * ones the difference. */
INLINE pair output_pair(int j, const vf m[SIDE]) {
    vf a = vzero(), b = vzero();
#pragma GCC unroll 4
    for (int k = 0; k < N_PAIRS; k++) {
        const vf t = j % 2 == 0 ? m[1 + 2 * k] + m[2 + 2 * k] : m[1 + 2 * k] - m[2 + 2 * k];
        a = k == 0 ? t : a + ct_power[k][j] * t;
        b = k == 0 ? t : b + ct_power[k][j + 2] * t;
    }
    return (pair){j == 0 ? a + m[0] : a, j + 2 == TILE - 1 ? b + m[SIDE - 1] : b};
}

INLINE void put(float *y, bool accumulate, vf a) {
    vstore(y, accumulate ? vload(y) + a : a);
}

/* The first of the two outputs of a pass. */
INLINE int output_of(int pass) {
    return pass / 2 * 4 + pass % 2;
}

/* One row of outputs, m A. */
INLINE void output_store(const vf m[SIDE], bool accumulate, float *y) {
#pragma GCC unroll 4
    for (int pass = 0; pass < TILE / 2; pass++) {
        const int j = output_of(pass);
        pair p = output_pair(j, m);
        put(y + j * CT_LANES, accumulate, p.a);
        put(y + (j + 2) * CT_LANES, accumulate, p.b);
    }
}

/* y [TILE][TILE] (+)= A^T m A of one tile, rows of y `row` floats apart. */
INLINE void output_tile(const float *m, bool accumulate, float *y, size_t row) {
#pragma GCC unroll 4
    for (int pass = 0; pass < TILE / 2; pass++) {
        const int j = output_of(pass);
        vf a[SIDE], b[SIDE];
#pragma GCC unroll 10
        for (int k = 0; k < SIDE; k++) {
            vf column[SIDE];
#pragma GCC unroll 10
            for (int i = 0; i < SIDE; i++) column[i] = vload(m + i * ROW_STEP + k * XI_STEP);
            pair p = output_pair(j, column);
            a[k] = p.a, b[k] = p.b;
        }
        output_store(a, accumulate, y + j * row);
        output_store(b, accumulate, y + (j + 2) * row);
    }
}

/* A tile of which only n_rows by n_columns pixels are in the picture. */
static void output_edge(const float *m, bool accumulate, int n_rows, int n_columns, float *y,
                        size_t row) {
    _Alignas(64) float tile[TILE * TILE * CT_LANES];
    output_tile(m, false, tile, TILE * CT_LANES);
    for (int i = 0; i < n_rows; i++)
        for (int j = 0; j < n_columns; j++)
            put(y + i * row + j * CT_LANES, accumulate, vload(tile + (TILE * i + j) * CT_LANES));
}

/* A run of one channel; y is its corner. */
INLINE void output_tiles(const ct_winograd_plan *plan, const float *m, run r, bool accumulate,
                         float *y) {
    const size_t row = (size_t)plan->w * CT_LANES;
    const int n_rows = plan->h - r.i < TILE ? plan->h - r.i : TILE;
    for (int t = 0; t < r.n; t++) {
        int left = plan->w - r.j - TILE * t;
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

/* y of those tiles from m. */
static void winograd_output(const ct_winograd_plan *plan, const float *m, int first, int n,
                            bool accumulate, float *y) {
    for (int c = 0; c < plan->c_out; c++)
        for (run r = {0}; r.t < n; r.t += r.n) {
            r = run_at(plan, first, r.t, n);
            float *to =
                y + picture_at(plan, plan->c_out, r, c) + ((size_t)r.i * plan->w + r.j) * CT_LANES;
            const float *from = m + tile_at(plan, c, r.t);
            if (accumulate)
                output_tiles(plan, from, r, true, to);
            else
                output_tiles(plan, from, r, false, to);
        }
}

/* ---- gradient ---- */

/* Two rows of A d. */
INLINE pair gradient_pair(int pass, const vf d[TILE]) {
    if (pass == ENDS) return (pair){d[0], d[TILE - 1]};
    vf even = d[0], odd = ct_power[pass][1] * d[1];
#pragma GCC unroll 3
    for (int j = 2; j < TILE; j += 2) {
        even = even + ct_power[pass][j] * d[j];
        odd = odd + ct_power[pass][j + 1] * d[j + 1];
    }
    return (pair){even + odd, even - odd};
}

/* All frequencies of one row, d A^T. */
INLINE void gradient_store(const vf d[TILE], float *m) {
#pragma GCC unroll 5
    for (int pass = 0; pass <= ENDS; pass++) {
        pair p = gradient_pair(pass, d);
        vstore(m + first_of(pass) * XI_STEP, p.a);
        vstore(m + second_of(pass) * XI_STEP, p.b);
    }
}

/* A d A^T of one tile, rows of d `row` floats apart. */
INLINE void gradient_tile(const float *d, size_t row, float *m) {
#pragma GCC unroll 5
    for (int pass = 0; pass <= ENDS; pass++) {
        vf a[TILE], b[TILE];
#pragma GCC unroll 8
        for (int j = 0; j < TILE; j++) {
            vf column[TILE];
#pragma GCC unroll 8
            for (int i = 0; i < TILE; i++) column[i] = vload(d + i * row + j * CT_LANES);
            pair p = gradient_pair(pass, column);
            a[j] = p.a, b[j] = p.b;
        }
        gradient_store(a, m + first_of(pass) * ROW_STEP);
        gradient_store(b, m + second_of(pass) * ROW_STEP);
    }
}

/* A run of one channel whose picture is d; pixels outside it count as 0. */
static void gradient_tiles(const ct_winograd_plan *plan, const float *d, run r, float *m) {
    _Alignas(64) float copy[TILE * TILE * CT_LANES];
    for (int t = 0; t < r.n; t++, m += CT_LANES) {
        const int j = r.j + TILE * t;
        const bool inside = r.i + TILE <= plan->h && j + TILE <= plan->w;
        if (!inside) copy_square(d, plan->h, plan->w, r.i, j, TILE, copy);
        const float *from = inside ? d + ((size_t)r.i * plan->w + j) * CT_LANES : copy;
        const size_t row = (size_t)(inside ? plan->w : TILE) * CT_LANES;
        for (int part = 0; part < CT_LANES; part += VL) gradient_tile(from + part, row, m + part);
    }
}

/* m = A y A^T of the output side's channels. */
static void winograd_gradient(const ct_winograd_plan *plan, const float *dy, int first, int n,
                              float *m) {
    for (int c = 0; c < plan->c_out; c++)
        for (run r = {0}; r.t < n; r.t += r.n) {
            r = run_at(plan, first, r.t, n);
            gradient_tiles(plan, dy + picture_at(plan, plan->c_out, r, c), r,
                           m + tile_at(plan, c, r.t));
        }
}

#endif
