/* Winograd's method for 3x3 convolutions of stride 2 with a border of 1, the parts its files share.
 * Every other pixel is a picture of its own: output j reads taps 0 and 2 of the odd pixels 2j-1 and
 * 2j+1 and tap 1 of the even pixel 2j, and so on both axes. That is a convolution of stride 1 with
 * 2x2 taps over four pictures ("phases"), done by F(4x4,2x2): interpolation points 0, 1, -1, 2,
 * infinity, 25 frequencies xi = 5 * row + column.
 *
 *   B^T = 2 -1 -2  1  0    G = 1/2    0      A^T = 1  1  1  1  0
 *         0 -2 -1  1  0       -1/2  -1/2           0  1 -1  2  0
 *         0  2 -3  1  0       -1/6   1/6           0  1  1  4  0
 *         0 -1  0  1  0        1/6   1/3           0  1 -1  8  1
 *         0  2 -1 -2  1         0     1
 *
 * An even axis has one tap, its second one is 0: nothing is there at infinity, and four pixels
 * suffice. 25 + 2 * 20 + 16 = 81 products replace 144. The phases' order makes those that a
 * frequency needs neighbours. Data of one block of 16 samples: v [tiles/4][4 phases][c][25][4][16].
 */
#ifndef CT_BACKEND_CPU_KERNELS_WINOGRAD2_INTERNAL_H
#define CT_BACKEND_CPU_KERNELS_WINOGRAD2_INTERNAL_H

#include "backend/cpu/kernels/winograd_internal.h"

enum {
    N_XI2 = 25,
    N_POINTS = 5,
    INFINITE = 4,            /* the last point */
    STEP2 = N_XI2 * XI_STEP, /* floats from channel to channel */
    SPAN = 2 * TILE + 1,     /* pixels of x that a tile reads, in one direction */
};

/* Rows and columns, of one kind each. */
enum { ODD_EVEN, ODD_ODD, EVEN_ODD, EVEN_EVEN, N_PHASES };

INLINE bool has_odd_rows(int phase) {
    return phase <= ODD_ODD;
}
INLINE bool has_odd_columns(int phase) {
    return phase == ODD_ODD || phase == EVEN_ODD;
}
/* The first phase that has frequency xi, and how many have. */
INLINE int first_phase(int xi) {
    return xi % N_POINTS == INFINITE ? ODD_ODD : ODD_EVEN;
}
INLINE int n_phases(int xi) {
    const bool tall = xi / N_POINTS == INFINITE, wide = xi % N_POINTS == INFINITE;
    return tall && wide ? 1 : tall || wide ? 2 : N_PHASES;
}

/* A picture of h x w pixels and one of h_out x w_out, cut into tiles of 4x4 pixels of the latter.
 */
typedef struct ct_winograd2_plan {
    int c_in, c_out, h, w, h_out, w_out;
    int n_across, n_tiles, n_chunk;
    size_t x_group, y_group; /* floats from group to group: four phases of x's channels, y's */
} ct_winograd2_plan;

ct_winograd2_plan KERNEL(winograd2_plan)(const ct_winograd_geometry *g);
/* As ct_winograd says. */
void KERNEL(winograd2_backward)(const ct_winograd_geometry *g, const float *x, const float *dy,
                                const float *u, float *dx, bool accumulate, float *dw,
                                float *scratch);

/* Floats of the blocks of x and of y. */
INLINE size_t x_block(const ct_winograd2_plan *p) {
    return (size_t)(p->c_in * p->h * p->w) * CT_LANES;
}
INLINE size_t y_block(const ct_winograd2_plan *p) {
    return (size_t)(p->c_out * p->h_out * p->w_out) * CT_LANES;
}

/* Of transformed weights, and of the sums of their gradient. */
INLINE size_t u2_stride(int c_in, int c_out) {
    return odd_lines((size_t)(N_PHASES * c_in) * (size_t)c_out);
}

/* Where tile t of a chunk lies in the scratch. */
INLINE size_t place(size_t group_step, int c, int t) {
    return (size_t)(t / GROUP) * group_step + (size_t)c * STEP2 + (size_t)(t % GROUP) * CT_LANES;
}

/* Rows of frequencies that are made together, two points p and q of B^T d or A d. */
enum { POINTS_12, POINTS_03, POINT_4 };
INLINE int point_p(int pass) {
    return pass == POINTS_12 ? 1 : pass == POINTS_03 ? 0 : INFINITE;
}
INLINE int point_q(int pass) {
    return pass == POINTS_12 ? 2 : pass == POINTS_03 ? 3 : INFINITE;
}

/* Of a column of B^T d; d are the rows, the last of them for infinity alone. */
INLINE pair input_points(int pass, const float *const d[N_POINTS], int at) {
    const vf d1 = vload(d[1] + at), d2 = vload(d[2] + at), d3 = vload(d[3] + at);
    if (pass == POINTS_12) {
        vf most = d3 - d2;
        return (pair){most - 2.0f * d1, most - 2.0f * (d2 - d1)};
    }
    if (pass == POINTS_03) {
        vf last = d3 - d1;
        return (pair){last + 2.0f * (vload(d[0] + at) - d2), last};
    }
    vf only = vload(d[4] + at) - d2 + 2.0f * (d1 - d3);
    return (pair){only, only};
}

/* n rows of a picture from (i, j) on, black ones outside; those of a copy unless all n columns that
 * will be read are inside. `zeros` has n pixels, `copy` n x n. */
INLINE void rows_of(const float *x, int h, int w, int i, int j, int n, bool inside,
                    const float *zeros, float *copy, const float **row) {
    if (!inside) copy_square(x, h, w, i, j, n, copy);
    for (int k = 0; k < n; k++)
        row[k] = !inside                   ? copy + (size_t)(k * n) * CT_LANES
                 : i + k < 0 || i + k >= h ? zeros
                                           : x + ((ptrdiff_t)(i + k) * w + j) * CT_LANES;
}

/* d B of four pixels `step` vectors apart, the finite points. */
INLINE void input_finite(const vf *d, int step, float *v) {
    const vf last = d[3 * step] - d[step], most = d[3 * step] - d[2 * step];
    vstore(v, last + 2.0f * (d[0] - d[2 * step]));
    vstore(v + XI_STEP, most - 2.0f * d[step]);
    vstore(v + 2 * XI_STEP, most - 2.0f * (d[2 * step] - d[step]));
    vstore(v + 3 * XI_STEP, last);
}
/* And of five, the infinite one. */
INLINE void input_infinite(const vf *d, int step, float *v) {
    vstore(v + INFINITE * XI_STEP, d[4 * step] - d[2 * step] - 2.0f * (d[3 * step] - d[step]));
}

/* A^T m; without the infinite point if is_odd is false. */
INLINE void output_points(const vf m[N_POINTS], bool is_odd, vf y[TILE]) {
    const vf sum = m[1] + m[2], difference = m[1] - m[2];
    y[0] = m[0] + sum + m[3];
    y[1] = difference + 2.0f * m[3];
    y[2] = sum + 4.0f * m[3];
    y[3] = difference + 8.0f * m[3];
    if (is_odd) y[3] += m[INFINITE];
}

/* y [4][4] of one tile, A^T m A, of a phase with odd rows or columns or not. */
INLINE void output_square(const float *m, bool odd_rows, bool odd_columns, vf y[TILE][TILE]) {
    vf z[N_POINTS][TILE];
    for (int j = 0; j < (odd_columns ? N_POINTS : INFINITE); j++) {
        vf column[N_POINTS];
        for (int i = 0; i < (odd_rows ? N_POINTS : INFINITE); i++)
            column[i] = vload(m + (i * N_POINTS + j) * XI_STEP);
        output_points(column, odd_rows, z[j]);
    }
    for (int i = 0; i < TILE; i++) {
        vf row[N_POINTS];
        for (int j = 0; j < (odd_columns ? N_POINTS : INFINITE); j++) row[j] = z[j][i];
        output_points(row, odd_columns, y[i]);
    }
}

#endif
