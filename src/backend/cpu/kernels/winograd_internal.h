/* Winograd convolution in lanes, the parts its files share. Winograd, Arithmetic Complexity of
 * Computations, SIAM 1980; Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, CVPR
 * 2016. Interpolation points 0, 1, -1, 2, -2, infinity; 36 "frequencies" xi = 6 * row + column.
 *
 *   input     V = B^T d B   d [6 x 6] pixels of a tile, tiles 4 apart, 1 pixel of border
 *   weights   U = G g G^T   g [3 x 3]
 *   output    Y = A^T M A   M = sum over input channels of U . V (elementwise), Y [4 x 4]
 *   gradient  dU = sum over tiles and samples of (A dY A^T) . V, dg = G^T dU G
 *
 *   B^T = 4  0 -5  0  1  0    G = 1/4    0     0      A^T = 1  1  1  1  1  0
 *         0 -4 -4  1  1  0        -1/6 -1/6  -1/6           0  1 -1  2 -2  0
 *         0  4 -4 -1  1  0        -1/6  1/6  -1/6           0  1  1  4  4  0
 *         0 -2 -1  2  1  0        1/24  1/12  1/6           0  1 -1  8 -8  1
 *         0  2 -1 -2  1  0        1/24 -1/12  1/6
 *         0  4  0 -5  0  1         0    0     1
 *
 * Data of one block of 16 samples: x [c][h][w][16], transformed v [tiles/4][c][37][4][16]: the 36
 * frequencies of four tiles of a channel lie side by side, at distances the compiler knows, in the
 * order in which the transforms go through memory. The 37th keeps the same frequency of all
 * channels, which a product reads, from falling into a few sets of the cache. */
#ifndef CT_BACKEND_CPU_KERNELS_WINOGRAD_INTERNAL_H
#define CT_BACKEND_CPU_KERNELS_WINOGRAD_INTERNAL_H

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/vector.h"

#define N_XI    36
#define TILE    4               /* output pixels of a tile in one direction */
#define CO_TILE 4               /* output channels of a register tile */
#define GROUP   4               /* tiles side by side */
#define PARTS   (CT_LANES / VL) /* vectors of a pixel */

enum {
    XI_STEP = GROUP * CT_LANES,          /* floats from frequency to frequency of a group */
    CHANNEL_STEP = (N_XI + 1) * XI_STEP, /* and from channel to channel */
};

/* How a convolution is cut: tiles in row-major order, n_chunk of them (whole groups) transformed at
 * a time. */
typedef struct ct_winograd_plan {
    int c_in, c_out, h, w;
    int n_across, n_tiles, n_chunk;
    size_t v_group, m_group; /* floats from group to group: input side, output side */
} ct_winograd_plan;

INLINE int round_up(int n, int to) {
    return (n + to - 1) / to * to;
}

/* n floats or a little more: an odd number of cache lines. */
INLINE size_t odd_lines(size_t n) {
    return ((n + CT_LANES - 1) / CT_LANES | 1) * CT_LANES;
}

/* Four rows of four floats become four columns. */
INLINE void turn_4x4(const float *const row[4], float *const column[4]) {
    typedef float v4 __attribute__((vector_size(16), aligned(4), may_alias));
    typedef int32_t i4 __attribute__((vector_size(16)));
    const v4 a = *(const v4 *)row[0], b = *(const v4 *)row[1];
    const v4 c = *(const v4 *)row[2], d = *(const v4 *)row[3];
    const i4 low = {0, 4, 1, 5}, high = {2, 6, 3, 7}, first = {0, 1, 4, 5}, second = {2, 3, 6, 7};
    const v4 ab = __builtin_shuffle(a, b, low), cd = __builtin_shuffle(c, d, low);
    const v4 ab_high = __builtin_shuffle(a, b, high), cd_high = __builtin_shuffle(c, d, high);
    *(v4 *)column[0] = __builtin_shuffle(ab, cd, first);
    *(v4 *)column[1] = __builtin_shuffle(ab, cd, second);
    *(v4 *)column[2] = __builtin_shuffle(ab_high, cd_high, first);
    *(v4 *)column[3] = __builtin_shuffle(ab_high, cd_high, second);
}

enum { ROWS_12, ROWS_34, ROWS_05, N_PASSES };

typedef struct pair {
    vf a, b;
} pair;

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

ct_winograd_plan KERNEL(winograd_plan)(int c_in, int c_out, int h, int w);

/* Tile t of a chunk, channel c, frequency 0. */
INLINE size_t tile_at(size_t group_step, int c, int t) {
    return (size_t)(t / GROUP) * group_step + (size_t)c * CHANNEL_STEP +
           (size_t)(t % GROUP) * CT_LANES;
}

/* The rows of some tiles in all planes of a tensor, to be fetched a few lines at a time by loops
 * that leave the memory idle. */
typedef struct ct_winograd_rows {
    const float *at; /* the next line */
    int n_left;      /* lines of its plane from there on */
    int n_planes;    /* left, with that one */
    int n_lines;     /* of a plane */
    size_t plane;    /* floats from plane to plane */
    int n_together;  /* lines fetched at a time */
} ct_winograd_rows;

/* The rows of n tiles from `first` on, all fetched after n_steps steps. */
INLINE ct_winograd_rows winograd_rows(const ct_winograd_plan *plan, const float *x, int c,
                                      int first, int n, int n_steps) {
    const int top = first / plan->n_across * TILE;
    int end = ((first + n - 1) / plan->n_across + 1) * TILE;
    if (end > plan->h) end = plan->h;
    ct_winograd_rows rows = {.n_planes = n > 0 ? c : 0,
                             .n_lines = (end - top) * plan->w,
                             .plane = (size_t)plan->h * plan->w * CT_LANES};
    rows.at = x + (size_t)top * plan->w * CT_LANES;
    rows.n_left = rows.n_lines;
    rows.n_together = (rows.n_planes * rows.n_lines + n_steps - 1) / n_steps;
    return rows;
}

INLINE void fetch_rows(ct_winograd_rows *r) {
    if (r->n_planes == 0) return;
    const int n = r->n_left < r->n_together ? r->n_left : r->n_together;
    for (int k = 0; k < n; k++) __builtin_prefetch(r->at + k * CT_LANES, 0, 2);
    r->at += n * CT_LANES;
    r->n_left -= n;
    if (r->n_left > 0) return;
    r->at += r->plane - (size_t)r->n_lines * CT_LANES;
    r->n_left = r->n_lines;
    r->n_planes--;
}

/* v of the n tiles from `first` on, a multiple of GROUP; zeros is a row of w black pixels. */
void KERNEL(winograd_input)(const ct_winograd_plan *plan, const float *x, int first, int n,
                            const float *zeros, float *v);
/* m of those tiles from v; meanwhile their rows of y are fetched. */
void KERNEL(winograd_products)(const ct_winograd_plan *plan, const float *u, const float *v,
                               int first, int n, const float *y, float *m);
/* y of those tiles from m. */
void KERNEL(winograd_output)(const ct_winograd_plan *plan, const float *m, int first, int n,
                             bool accumulate, float *y);
/* m = A y A^T of the output side's channels. */
void KERNEL(winograd_gradient)(const ct_winograd_plan *plan, const float *y, int first, int n,
                               float *m);

#endif
