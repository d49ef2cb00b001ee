/* Winograd convolution F(TILE x TILE, 3x3) in lanes, stride 1, border 1 (winograd_internal.h).
 *   y[o] = A^T [ sum_i U[o][i] . V[i] ] A     for every tile of y
 *   x [c_in][h][w][16]   y [c_out][h][w][16]   blocks of 16 samples, 64-byte aligned
 *   u [n_xi][c_out/4][c_in][4]   weights transformed by winograd_weights, channels padded
 *   v, m [tiles/GROUP][c][n_xi + 1][GROUP][16]   a chunk of tiles, m in v's place, in scratch
 * For every frequency the sum over i is a matrix product [c_out x c_in] * [c_in x tiles*16]; its
 * register tile is ROWS output channels by COLUMNS vectors. */
#ifndef CT_BACKEND_CPU_KERNELS_WINOGRAD_CONV_H
#define CT_BACKEND_CPU_KERNELS_WINOGRAD_CONV_H

#include "backend/cpu/kernels/winograd_product.h"
#include "backend/cpu/kernels/winograd_transform.h"

/* Bytes of v at a time, beside u, x and y in a 1 MiB second-level cache; and of v and the
 * gradient's m. Few tiles of 8x8 would be summed over before their vectors are reduced: four of 32
 * channels from the third-level cache are 15 % faster than two from the second. */
#define CHUNK_BYTES          (416 * 1024)
#define GRADIENT_CHUNK_BYTES ((TILE == 8 ? 1664 : 640) * 1024)

static size_t u_stride(int c_in, int c_out) {
    return odd_lines((size_t)round_up(c_in, 4) * (size_t)round_up(c_out, ROWS));
}

/* Of the weight gradient's sums, in either order (winograd_backward.h). */
static size_t acc_stride(int c_in, int c_out) {
    return odd_lines((size_t)round_up(c_in, CT_LANES) * (size_t)round_up(c_out, CO_TILE));
}

/* Floats of the channels of x, or of dy, of a group's samples side by side. */
static size_t turned_floats(const ct_winograd_geometry *g) {
    return (size_t)(XI_STEP * round_up(g->c_in > g->c_out ? g->c_in : g->c_out, CT_LANES));
}

static size_t winograd_weights_size(const ct_winograd_geometry *g) {
    return N_XI * u_stride(g->c_in, g->c_out);
}

/* Whole groups, at least one. */
static int tiles_within(size_t bytes, size_t group_floats) {
    const int n = (int)(bytes / (group_floats * sizeof(float))) * GROUP;
    return n < GROUP ? GROUP : n;
}

/* Of a convolution that keeps n_tensors transformed at a time. */
static ct_winograd_plan winograd_plan(const ct_winograd_geometry *g, int n_tensors) {
    ct_winograd_plan plan = {.c_in = g->c_in, .c_out = g->c_out, .h = g->h, .w = g->w};
    plan.n_across = (g->w + TILE - 1) / TILE;
    plan.n_tiles = plan.n_across * ((g->h + TILE - 1) / TILE);
    plan.n_all = plan.n_tiles * g->n_blocks;
    const int most = g->c_in > g->c_out ? g->c_in : g->c_out; /* either may be v's or m's */
    plan.group = (size_t)round_up(most, ROWS) * CHANNEL_STEP;
    int n = n_tensors == 1 ? tiles_within(CHUNK_BYTES, plan.group)
                           : tiles_within(GRADIENT_CHUNK_BYTES, (size_t)n_tensors * plan.group);
    if (n > plan.n_all) n = plan.n_all;
    plan.n_chunk = n < plan.n_tiles ? n : n / plan.n_tiles * plan.n_tiles;
    return plan;
}

/* Tiles of the chunk that begins with tile `first`; 0: there is none. */
static int chunk_at(const ct_winograd_plan *plan, int first) {
    const int end =
        plan->n_chunk < plan->n_tiles ? plan->n_tiles - first % plan->n_tiles : plan->n_all - first;
    if (first == plan->n_all) return 0;
    return plan->n_chunk < end ? plan->n_chunk : end;
}

/* Floats of a chunk of one tensor. */
static size_t chunk_floats(const ct_winograd_plan *plan) {
    return (size_t)(round_up(plan->n_chunk, GROUP) / GROUP) * plan->group;
}

static size_t winograd_scratch(const ct_winograd_geometry *g) {
    const ct_winograd_plan forward = winograd_plan(g, 1), backward = winograd_plan(g, 2);
    const size_t most =
        2 * chunk_floats(&backward) + N_XI * acc_stride(g->c_in, g->c_out) + turned_floats(g);
    const size_t least = chunk_floats(&forward);
    return most > least ? most : least;
}

/* ---- weights ---- */

/* G g, three taps to SIDE frequencies, for VL filters at a time. */
INLINE void weights_column(const vf g[3], vf t[SIDE]) {
    t[0] = (1.0f / ct_all[0]) * g[0];
    t[SIDE - 1] = g[2];
#pragma GCC unroll 4
    for (int k = 0; k < N_PAIRS; k++) {
        const float scale = ct_scale[k], p = ct_power[k][1];
        const vf even = scale * g[0] + (scale * p * p) * g[2], odd = (scale * p) * g[1];
        t[1 + 2 * k] = even + odd;
        t[2 + 2 * k] = even - odd;
    }
}

/* G g G^T of the 16 filters taps[3][3][16], stored 16 floats per frequency. */
static void weights_group(const float *taps, size_t stride, float *u) {
    for (int part = 0; part < PARTS; part++) {
        vf t[3][SIDE];
        for (int j = 0; j < 3; j++) {
            vf g[3];
            for (int i = 0; i < 3; i++) g[i] = vload(taps + (3 * i + j) * CT_LANES + part * VL);
            weights_column(g, t[j]);
        }
        for (int i = 0; i < SIDE; i++) {
            vf row[3] = {t[0][i], t[1][i], t[2][i]}, out[SIDE];
            weights_column(row, out);
            for (int j = 0; j < SIDE; j++)
                vstore(u + (size_t)(SIDE * i + j) * stride + part * VL, out[j]);
        }
    }
}

static void winograd_weights(const ct_winograd_geometry *g, const float *w, bool flip, float *u) {
    _Alignas(64) float taps[N_GATHERED][9 * CT_LANES];
    const int c_in = g->c_in, c_out = g->c_out, k_in = round_up(c_in, 4);
    const size_t stride = u_stride(c_in, c_out);
    for (int o = 0; o < round_up(c_out, ROWS); o += CO_TILE) {
        for (int first = 0; first < c_in; first += 4 * N_GATHERED) {
            const int left = round_up(c_in - first, 4) / 4;
            const int n = left < N_GATHERED ? left : N_GATHERED;
            float *to = u + (size_t)o * k_in + (size_t)first * CO_TILE;
            for (int k = 0; k < n; k++) weights_of(w, c_in, c_out, first + 4 * k, o, flip, taps[k]);
            for (int k = 0; k < n; k++) weights_group(taps[k], stride, to + 4 * k * CO_TILE);
        }
    }
}

/* ---- products ---- */

/* m of n tiles in place of v; meanwhile their rows of y are fetched. */
static void winograd_products(const ct_winograd_plan *plan, const float *u, int first, int n,
                              const float *y, float *m) {
    const size_t stride = u_stride(plan->c_in, plan->c_out);
    const int n_groups = round_up(n, GROUP) / GROUP;
    const int n_products = N_XI * (round_up(plan->c_out, ROWS) / ROWS) * n_groups;
    ct_ahead rows = tile_rows(plan, y, plan->c_out, first, n, n_products);
    for (int xi = 0; xi < N_XI; xi++, m += XI_STEP)
        product(plan->c_in, plan->c_out, n_groups, u + (size_t)xi * stride, round_up(plan->c_in, 4),
                m + XI_STEP, plan->group, CHANNEL_STEP, &rows, m, plan->group);
}

static void winograd_conv(const ct_winograd_geometry *g, const float *x, const float *u, float *y,
                          float *scratch) {
    const ct_winograd_plan plan = winograd_plan(g, 1);
    float *m = scratch;
    for (int first = 0, n; (n = chunk_at(&plan, first)) > 0; first += n) {
        winograd_input(&plan, x, first, n, m + XI_STEP);
        winograd_products(&plan, u, first, n, y, m);
        winograd_output(&plan, m, first, n, false, y);
    }
}

#endif
