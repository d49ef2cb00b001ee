/* Winograd convolution in lanes, the parts its files share. Winograd, Arithmetic Complexity of
 * Computations, SIAM 1980; Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, CVPR
 * 2016. Tiles of TILE x TILE output pixels (4 unless the file that includes this says 8), SIDE =
 * TILE + 2 points in each direction (winograd_points.h), "frequencies" xi = SIDE * row + column.
 *
 *   input     V = B^T d B   d [SIDE x SIDE] pixels of a tile, tiles TILE apart, 1 pixel of border
 *   weights   U = G g G^T   g [3 x 3]
 *   output    Y = A^T M A   M = sum over input channels of U . V (elementwise), Y [TILE x TILE]
 *   gradient  dU = sum over tiles and samples of (A dY A^T) . V, dg = G^T dU G
 *
 * Data of one block of 16 samples: x [c][h][w][16], transformed v [tiles/GROUP][c][n_xi + 1][GROUP]
 * [16]: the frequencies of some tiles of a channel lie side by side, at distances the compiler
 * knows, in the order in which the transforms go through memory. There is one place more than
 * frequencies: that keeps the same frequency of all channels, which a product reads, from falling
 * into a few sets of the cache, and it lets m take v's place: v begins at the second place, m at
 * the first one, and frequency xi of m overwrites xi - 1 of v, which is done with. */
#ifndef CT_BACKEND_CPU_KERNELS_WINOGRAD_INTERNAL_H
#define CT_BACKEND_CPU_KERNELS_WINOGRAD_INTERNAL_H

#include "backend/cpu/kernels/fetch.h"
#include "backend/cpu/kernels/turn.h"

#ifndef TILE
#define TILE 4 /* output pixels of a tile in one direction */
#endif
#define N_XI    ((TILE + 2) * (TILE + 2))
#define GROUP   (16 / TILE)     /* tiles side by side: what second-level caches have room for */
#define CO_TILE 4               /* output channels side by side in transformed weights */
#define PARTS   (CT_LANES / VL) /* vectors of a pixel */

enum {
    XI_STEP = GROUP * CT_LANES,          /* floats from frequency to frequency of a group */
    CHANNEL_STEP = (N_XI + 1) * XI_STEP, /* and from channel to channel */
};

extern const ct_winograd KERNEL(winograd_tile4), KERNEL(winograd_tile8), KERNEL(winograd_stride2);

/* How a convolution is cut: tiles in row-major order, block after block, at most n_chunk of them
 * transformed at a time: some of one block or all of some blocks. */
typedef struct ct_winograd_plan {
    int c_in, c_out, h, w;
    int n_across, n_tiles; /* of a block */
    int n_all, n_chunk;
    size_t group; /* floats from group to group of v, m and the gradient's */
} ct_winograd_plan;

INLINE int round_up(int n, int to) {
    return (n + to - 1) / to * to;
}

/* n floats or a little more: an odd number of cache lines. */
INLINE size_t odd_lines(size_t n) {
    return ((n + CT_LANES - 1) / CT_LANES | 1) * CT_LANES;
}

/* The n x n pixels of a picture from (i, j) on, black outside. */
static __attribute__((noinline, unused)) void copy_square(const float *x, int h, int w, int i,
                                                          int j, int n, float *out) {
    for (int r = i; r < i + n; r++)
        for (int k = j; k < j + n; k++, out += CT_LANES) {
            const bool inside = r >= 0 && r < h && k >= 0 && k < w;
            const float *from = x + ((ptrdiff_t)r * w + k) * CT_LANES;
            for (int part = 0; part < CT_LANES; part += VL)
                vstore(out + part, inside ? vload(from + part) : vzero());
        }
}

typedef struct pair {
    vf a, b;
} pair;

/* The rows of n tiles from `first` on, in all planes of a tensor; fetched after n_steps steps. */
INLINE ct_ahead tile_rows(const ct_winograd_plan *plan, const float *x, int c, int first, int n,
                          int n_steps) {
    const size_t plane = (size_t)plan->h * plan->w * CT_LANES;
    const int n_blocks = n > plan->n_tiles ? n / plan->n_tiles : n > 0;
    const int in_block = n < plan->n_tiles ? n : plan->n_tiles, t = first % plan->n_tiles;
    const int top = t / plan->n_across * TILE;
    int end = ((t + in_block - 1) / plan->n_across + 1) * TILE;
    if (end > plan->h) end = plan->h;
    x += (size_t)(first / plan->n_tiles * c) * plane + (size_t)top * plan->w * CT_LANES;
    return ahead_of(x, plane, c * n_blocks, (end - top) * plan->w, n_steps);
}

#endif
