/* Winograd convolution of 5x5 in lanes, the parts its files share, and F(2x2, 5x5) of its gradients
 * (forward: winograd5_pool.c). Tiles of 6x6 pixels, the points and the input transform B of F(4x4,
 * 3x3) (winograd_internal.h); stride 1, no border, an even number of output rows and columns.
 *
 *   input     V = B^T d B   d [6 x 6] pixels of a tile, tiles 2 apart
 *   weights   U = G g G^T   g [5 x 5]
 *   output    Y = A^T M A   M = sum over input channels of U . V (elementwise), Y [2 x 2]
 *   gradient  dM = A dY A^T, dU = sum over tiles and samples of dM . V, dg = G^T dU G,
 *             dV = sum over output channels of U . dM, dd = B dV B^T, added where tiles overlap
 *
 *   G = 1/4    0    0    0    0     A^T = 1  1  1  1  1  0
 *      -1/6 -1/6 -1/6 -1/6 -1/6           0  1 -1  2 -2  1
 *      -1/6  1/6 -1/6  1/6 -1/6
 *      1/24 1/12  1/6  1/3  2/3
 *      1/24 -1/12 1/6 -1/3  2/3
 *        0    0    0    0    1
 *
 * 36 products replace 100. The data gradient is the transpose of the forward pass rather than a
 * convolution of its own: as many tiles as the output has, and dM serves both gradients. */
#ifndef CT_BACKEND_CPU_KERNELS_WINOGRAD5_INTERNAL_H
#define CT_BACKEND_CPU_KERNELS_WINOGRAD5_INTERNAL_H

#include "backend/cpu/kernels/winograd_internal.h"

/* Rows of a register tile of products. */
INLINE int rows_of(int n_out) {
    return n_out % 6 == 0 || n_out % 4 != 0 ? 6 : 4;
}

/* Tiles of a picture; tile rows are cut into chunks of n_rows. */
typedef struct ct_winograd5_plan {
    int n_across, n_down, n_rows;
    size_t line;               /* floats of a channel's tiles in a chunk */
    size_t v_stride, m_stride; /* floats between frequencies: input side, output side */
} ct_winograd5_plan;

/* Tiles of so many output pixels; as many rows of them at a time as max_floats hold, tile_floats for
 * every tile. Frequencies have n_in and n_out channels. */
INLINE ct_winograd5_plan plan_of(const ct_conv5_geometry *g, int tile, size_t tile_floats,
                                 size_t max_floats, int n_in, int n_out) {
    ct_winograd5_plan p = {.n_across = (g->w - 4 + tile - 1) / tile,
                           .n_down = (g->h - 4 + tile - 1) / tile};
    int most = (int)(max_floats / (tile_floats * CT_LANES * (size_t)p.n_across));
    if (most < 1) most = 1;
    int n_chunks = (p.n_down + most - 1) / most;
    p.n_rows = (p.n_down + n_chunks - 1) / n_chunks;
    p.line = (size_t)(p.n_rows * p.n_across) * CT_LANES;
    p.v_stride = odd_lines((size_t)n_in * p.line);
    p.m_stride = odd_lines((size_t)n_out * p.line);
    return p;
}

enum { ROWS_12, ROWS_34, ROWS_05, N_PASSES };

/* Rows (1,2), (3,4) or (0,5) of B^T d. */
INLINE pair input_rows(int pass, const float *const row[6], ptrdiff_t at) {
    if (pass == ROWS_12) {
        vf even = vload(row[4] + at) - 4.0f * vload(row[2] + at);
        vf odd = vload(row[3] + at) - 4.0f * vload(row[1] + at);
        return (pair){even + odd, even - odd};
    }
    if (pass == ROWS_34) {
        vf even = vload(row[4] + at) - vload(row[2] + at);
        vf odd = vload(row[3] + at) - vload(row[1] + at);
        return (pair){even + 2.0f * odd, even - 2.0f * odd};
    }
    vf first = vload(row[4] + at) + 4.0f * vload(row[0] + at);
    vf last = vload(row[5] + at) + 4.0f * vload(row[1] + at);
    return (pair){first - 5.0f * vload(row[2] + at), last - 5.0f * vload(row[3] + at)};
}

/* Six frequencies of one row, d B. */
INLINE void input_store(const vf d[6], float *v, size_t stride) {
    vf even = d[4] - 4.0f * d[2], odd = d[3] - 4.0f * d[1];
    vstore(v + stride, even + odd);
    vstore(v + 2 * stride, even - odd);
    even = d[4] - d[2];
    odd = d[3] - d[1];
    vstore(v, even + 4.0f * (d[0] - d[2]));
    vstore(v + 3 * stride, even + 2.0f * odd);
    vstore(v + 4 * stride, even - 2.0f * odd);
    vstore(v + 5 * stride, d[5] - d[3] - 4.0f * odd);
}

/* Two rows of frequencies (pass) of the n tiles of one row of tiles and one channel, to v_a and
 * v_b; row: the six lines of pixels that the tiles cover. */
INLINE void input5_pass(int pass, const float *const row[6], int n, float *v_a, float *v_b,
                        size_t stride) {
    vf a[6], b[6];
    for (int i = 0; i < 4; i++) {
        pair p = input_rows(pass, row, i * CT_LANES);
        a[2 + i] = p.a, b[2 + i] = p.b;
    }
    for (int t = 0; t < n; t++, v_a += CT_LANES, v_b += CT_LANES) {
        for (int i = 0; i < 4; i++) a[i] = a[i + 2], b[i] = b[i + 2];
        for (int i = 4; i < 6; i++) {
            pair p = input_rows(pass, row, (ptrdiff_t)(2 * t + i) * CT_LANES);
            a[i] = p.a, b[i] = p.b;
        }
        input_store(a, v_a, stride);
        input_store(b, v_b, stride);
    }
}

/* Floats between frequencies of u. */
INLINE size_t u5_stride(int n_in, int n_out) {
    return odd_lines((size_t)n_in * (size_t)round_up(n_out, rows_of(n_out)));
}
/* u[n_points^2][n_out/R][n_in][R], R = rows_of(n_out), of the filters at w + o * o_step +
 * i * i_step; n_points 6 or 8. */
void KERNEL(winograd5_weights)(const float *w, int n_in, int n_out, size_t o_step, size_t i_step,
                               int n_points, float *u);
/* One frequency: to [n_out][n] = u [n_out][n_in] * from [n_in][n], n vectors in a row, `line`
 * floats from row to row. Rows up to a multiple of R are written. */
void KERNEL(winograd5_product)(int n_in, int n_out, int n, const float *u, const float *from,
                               float *to, size_t line);

#endif
