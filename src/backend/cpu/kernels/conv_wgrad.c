/* Weight gradient of a direct convolution in lanes.
 *   dw[o][c][u][v] = sum over blocks, samples, pixels (i,j) of dy[o][i][j] x[c][i s + u][j s + v]
 *   2 kh kw c_in flops per output and sample.
 * For one input channel and one kernel row, OC x KW accumulators hold vectors of samples over all
 * pixels and blocks; lanes are summed once at the end. */
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/vector.h"

/* Largest OC for a kernel width: OC * KW accumulators, OC + 1 operands. */
enum {
    OC_1 = 6,
    OC_3 = REGISTERS == 32 ? 6
           : VL == 8       ? 4
                           : 3,
    OC_5 = REGISTERS == 32 ? 4 : 2,
    OC_7 = REGISTERS == 32 ? 3 : 1,
};

typedef struct wgrad {
    const ct_conv_geometry *g;
    const float *x, *dy; /* of this input channel, of the first output channel, at row i0 */
    int n_rows;          /* output rows where this kernel row meets the picture */
    size_t x_block, dy_block;
    int n_blocks;
    float *dw; /* [OC] at `dw_step`, [KW] */
    size_t dw_step;
} wgrad;

INLINE void wgrad_tile(const wgrad *t, const int OC, const int KW) {
    const ct_conv_geometry *g = t->g;
    const size_t pixel = (size_t)g->stride * CT_LANES, plane = g->y_channel;
    float sums[6][7] = {{0}};
    for (int part = 0; part < CT_LANES; part += VL) {
        vf acc[6][7];
        for (int o = 0; o < OC; o++)
            for (int v = 0; v < KW; v++) acc[o][v] = vzero();
        for (int b = 0; b < t->n_blocks; b++) {
            const float *x = t->x + (size_t)b * t->x_block + part;
            const float *dy = t->dy + (size_t)b * t->dy_block + part;
            for (int i = 0; i < t->n_rows; i++) {
                const float *xi = x + (size_t)(i * g->stride) * g->x_row;
                const float *di = dy + (size_t)i * g->y_row;
                for (int j = 0; j < g->w_out; j++, xi += pixel, di += CT_LANES) {
                    vf in[7];
#pragma GCC unroll 8
                    for (int v = 0; v < KW; v++) in[v] = in_register(vload(xi + v * CT_LANES));
#pragma GCC unroll 8
                    for (int o = 0; o < OC; o++) {
                        vf d = in_register(vload(di + (size_t)o * plane));
#pragma GCC unroll 8
                        for (int v = 0; v < KW; v++) acc[o][v] += d * in[v];
                    }
                }
            }
        }
        for (int o = 0; o < OC; o++)
            for (int v = 0; v < KW; v++) sums[o][v] += vsum(acc[o][v]);
    }
    for (int o = 0; o < OC; o++)
        for (int v = 0; v < KW; v++) t->dw[(size_t)o * t->dw_step + (size_t)v] = sums[o][v];
}

/* Tiles of n channels of a kernel kw wide, up to the `most` of them that fit. */
#define CASE(n, kw, most)                                                                          \
    case 8 * (kw) + (n):                                                                           \
        if ((n) <= (most)) wgrad_tile(t, n, kw);                                                   \
        break

static void tile_of(const wgrad *t, int n, int kw) {
    switch (8 * kw + n) {
        CASE(1, 1, OC_1);
        CASE(2, 1, OC_1);
        CASE(3, 1, OC_1);
        CASE(4, 1, OC_1);
        CASE(5, 1, OC_1);
        CASE(6, 1, OC_1);
        CASE(1, 3, OC_3);
        CASE(2, 3, OC_3);
        CASE(3, 3, OC_3);
        CASE(4, 3, OC_3);
        CASE(5, 3, OC_3);
        CASE(6, 3, OC_3);
        CASE(1, 5, OC_5);
        CASE(2, 5, OC_5);
        CASE(3, 5, OC_5);
        CASE(4, 5, OC_5);
        CASE(1, 7, OC_7);
        CASE(2, 7, OC_7);
        CASE(3, 7, OC_7);
    default: break;
    }
}

/* A kernel row of n channels: a width without tiles of its own one column at a time. */
static void row_of(const wgrad *t, int n, int kw) {
    if (kw == 3 || kw == 5 || kw == 7) {
        tile_of(t, n, kw);
        return;
    }
    for (int v = 0; v < kw; v++) {
        wgrad column = *t;
        column.x += v * CT_LANES;
        column.dw += v;
        tile_of(&column, n, 1);
    }
}

/* Output channels of a tile: the most that divides c_out evenly, so that no thin tile is left. */
static int tile_channels(int c_out, int kw) {
    int most = kw == 3 ? OC_3 : kw == 5 ? OC_5 : kw == 7 ? OC_7 : OC_1;
    int n_tiles = (c_out + most - 1) / most;
    return (c_out + n_tiles - 1) / n_tiles;
}

void KERNEL(conv_wgrad)(const ct_conv_geometry *g, const float *x, size_t x_block, const float *dy,
                        size_t dy_block, int n_blocks, float *dw) {
    const int tile = tile_channels(g->c_out, g->kw);
    const size_t taps = (size_t)(g->kh * g->kw);
    for (int first = 0; first < g->c_out; first += tile) {
        int n = g->c_out - first < tile ? g->c_out - first : tile;
        for (int c = 0; c < g->c_in; c++)
            for (int u = 0; u < g->kh; u++) {
                int i0 = (g->pad_y - u + g->stride - 1) / g->stride;
                if (u >= g->pad_y) i0 = 0;
                int below = g->h_in - 1 + g->pad_y - u; /* lowest output row times stride */
                int end = below < 0 ? 0 : below / g->stride + 1;
                if (end > g->h_out) end = g->h_out;
                wgrad t = {.g = g,
                           .x = x + (size_t)c * g->x_channel +
                                (ptrdiff_t)(i0 * g->stride + u - g->pad_y) * (ptrdiff_t)g->x_row,
                           .dy = dy + (size_t)first * g->y_channel + (size_t)i0 * g->y_row,
                           .n_rows = end - i0,
                           .x_block = x_block,
                           .dy_block = dy_block,
                           .n_blocks = n_blocks,
                           .dw_step = (size_t)g->c_in * taps};
                t.dw = dw + (size_t)first * t.dw_step + (size_t)c * taps + (size_t)(u * g->kw);
                row_of(&t, n, g->kw);
            }
    }
}
