/* Both gradients of a convolution by Winograd's method, in lanes (winograd_internal.h).
 *   dx = A^T [ sum_o U[i][o] . V[o] ] A,   V = B^T dy B,   U of the weights turned by half a circle
 *   dw[o][i] = G^T [ sum over tiles and samples of V[o] . (A x[i] A^T) ] G, turned as well
 *   x, dx [c_in][h][w][16]   dy [c_out][h][w][16]   one block of 16 samples, 64-byte aligned
 *   acc [n_xi][c_in/4][c_out/CI_TILE][4][CI_TILE] or [n_xi][c_out][c_in]   the sum, channels padded
 *   dw [c_out][c_in][3][3]
 * The weight gradient pairs every pixel of x with the pixels of dy around it, as well as the other
 * way round: so both gradients read the same V. Its sum over a chunk's tiles is, for every
 * frequency, a product of the rows of 4 channels of x and CI_TILE of dy whose accumulators are
 * vectors over samples; these are reduced by a fixed tree of pairs, once per chunk, and added to
 * acc. Where a chunk is two tiles the tree takes longer than the products: there x is turned so
 * that its channels are side by side, and accumulators are vectors over them. Sums of absent
 * channels, which fill up a register tile, are made of whatever is there and never read. Here the
 * convolution is the data gradient's: plan.c_in counts dy's channels, c_out x's. */
#ifndef CT_BACKEND_CPU_KERNELS_WINOGRAD_BACKWARD_H
#define CT_BACKEND_CPU_KERNELS_WINOGRAD_BACKWARD_H

#include "backend/cpu/kernels/winograd_conv.h"
#include "backend/cpu/kernels/winograd_sums.h"

/* One frequency. */
static void sums(const ct_winograd_plan *plan, int n, const float *m, const float *v, bool is_first,
                 ct_ahead *ahead, float *acc) {
    for (int o = 0; o < plan->c_out; o += CO_TILE) {
        for (int i = 0; i < plan->c_in; i += CI_TILE) {
            sum_tile(n, m + (size_t)o * CHANNEL_STEP, plan->group, v + (size_t)i * CHANNEL_STEP,
                     plan->group, CHANNEL_STEP, is_first, acc);
            acc += TILE_SUMS;
            fetch_ahead(ahead, false);
        }
    }
}

static bool turns_x(const ct_winograd_plan *plan) {
    return plan->n_chunk <= 2;
}

/* The same of one group, by way of x turned: [n * 16][c_in]. */
static void turned_sums(const ct_winograd_plan *plan, int n, const float *m, const float *v,
                        bool is_first, float *turned, float *acc) {
    const size_t row = (size_t)round_up(plan->c_out, CT_LANES);
    KERNEL(transpose)(m, CHANNEL_STEP, plan->c_out, n, turned, row);
    const int n_out = plan->c_in, n_in = plan->c_out;
    KERNEL(outer)
    (n_out, n_in, 1, n * CT_LANES, v, CHANNEL_STEP, 0, turned, row, !is_first, acc, row);
}

/* The weight gradient's products of a chunk, n tiles; meanwhile the next chunk of x is fetched. */
static void add_products(const ct_winograd_plan *plan, const float *x, int first, int n,
                         const float *v, const float *m, float *turned, float *acc) {
    const size_t stride = acc_stride(plan->c_out, plan->c_in);
    const int n_products = N_XI * (round_up(plan->c_out, CO_TILE) / CO_TILE) *
                           (round_up(plan->c_in, CI_TILE) / CI_TILE);
    ct_ahead rows =
        tile_rows(plan, x, plan->c_out, first + n, chunk_at(plan, first + n), n_products);
    for (int xi = 0; xi < N_XI; xi++, m += XI_STEP, v += XI_STEP, acc += stride)
        if (turns_x(plan))
            turned_sums(plan, n, m, v, first == 0, turned, acc);
        else
            sums(plan, n, m, v, first == 0, &rows, acc);
}

/* G^T t, SIDE frequencies to three taps, for a vector of filters. */
INLINE void taps_column(const vf t[SIDE], vf g[3]) {
    g[0] = (1.0f / ct_all[0]) * t[0];
    g[1] = vzero();
    g[2] = t[SIDE - 1];
#pragma GCC unroll 4
    for (int k = 0; k < N_PAIRS; k++) {
        const float scale = ct_scale[k], p = ct_power[k][1];
        const vf sum = t[1 + 2 * k] + t[2 + 2 * k], difference = t[1 + 2 * k] - t[2 + 2 * k];
        g[0] = g[0] + scale * sum;
        g[1] = g[1] + (scale * p) * difference;
        g[2] = g[2] + (scale * p * p) * sum;
    }
}

/* taps [3][3] of the VL filters whose frequencies lie at acc. */
INLINE void taps_group(const float *acc, size_t stride, vf taps[9]) {
    vf t[3][SIDE];
    for (int j = 0; j < SIDE; j++) {
        vf column[SIDE], g[3];
        for (int i = 0; i < SIDE; i++) column[i] = vload(acc + (size_t)(SIDE * i + j) * stride);
        taps_column(column, g);
        for (int i = 0; i < 3; i++) t[i][j] = g[i];
    }
    for (int i = 0; i < 3; i++) taps_column(t[i], taps + 3 * i);
}

/* Where the taps of VL filters of acc belong, those from k on; `absent` if a filter is. */
static void taps_at(const ct_winograd_plan *plan, size_t k, float *dw, float *absent,
                    float *to[VL]) {
    const int c_in = plan->c_out, c_out = plan->c_in, row = round_up(c_in, CT_LANES);
    const int n_across = round_up(c_out, CI_TILE) / CI_TILE, tile = (int)(k / TILE_SUMS);
    const bool turned = turns_x(plan);
    const int i0 = turned ? (int)k % row : tile / n_across * CO_TILE;
    const int o0 = turned ? (int)k / row : tile % n_across * CI_TILE;
    for (int q = 0; q < VL; q++) {
        const int at = (int)(k % TILE_SUMS) + q;
        const int i = i0 + (turned ? q : at / CI_TILE), o = o0 + (turned ? 0 : at % CI_TILE);
        to[q] = o < c_out && i < c_in ? dw + ((size_t)o * c_in + i) * 9 : absent;
    }
}

/* The taps of four filters, turned by half a circle; vectors of them are VL floats apart. */
INLINE void write_four(const float *taps, float *const to[4]) {
    for (int s = 0; s < 8; s += 4) {
        const float *from[4];
        float *at[4];
        for (int k = 0; k < 4; k++) from[k] = taps + (8 - s - k) * VL, at[k] = to[k] + s;
        turn_4x4(from, at);
    }
    for (int k = 0; k < 4; k++) to[k][8] = taps[k];
}

/* dw = G^T acc G. */
static void write_taps(const ct_winograd_plan *plan, const float *acc, float *dw) {
    const size_t stride = acc_stride(plan->c_out, plan->c_in);
    for (size_t k = 0; k < stride; k += VL) {
        _Alignas(64) float taps[9 * VL], absent[9];
        float *to[VL];
        vf t[9];
        taps_group(acc + k, stride, t);
        for (int s = 0; s < 9; s++) vstore(taps + s * VL, t[s]);
        taps_at(plan, k, dw, absent, to);
        for (int q = 0; q < VL; q += 4) write_four(taps + q, to + q);
    }
}

/* dx of a chunk of v, in parts that stay in the second-level cache until they are written. */
static void convolve(const ct_winograd_plan *plan, const float *u, int first, int n, float *m,
                     bool accumulate, float *dx) {
    const int most = tiles_within(CHUNK_BYTES, plan->group);
    for (int t = 0; t < n; t += most, m += (size_t)(most / GROUP) * plan->group) {
        const int n_part = n - t < most ? n - t : most;
        winograd_products(plan, u, first + t, n_part, dx, m);
        winograd_output(plan, m, first + t, n_part, accumulate, dx);
    }
}

static void winograd_backward(const ct_winograd_geometry *g, const float *x, const float *dy,
                              const float *u, float *dx, bool accumulate, float *dw,
                              float *scratch) {
    const ct_winograd_geometry back = {g->c_out, g->c_in, g->h, g->w, g->n_blocks};
    const ct_winograd_plan plan = winograd_plan(&back, 2);
    float *acc = scratch, *turned = acc + N_XI * acc_stride(g->c_in, g->c_out);
    float *m = turned + turned_floats(g), *m_x = m + chunk_floats(&plan);
    for (int first = 0, n; (n = chunk_at(&plan, first)) > 0; first += n) {
        winograd_input(&plan, dy, first, n, m + XI_STEP);
        winograd_gradient(&plan, x, first, n, m_x);
        add_products(&plan, x, first, n, m + XI_STEP, m_x, turned, acc);
        if (dx == NULL) continue;
        convolve(&plan, u, first, n, m, accumulate, dx);
    }
    write_taps(&plan, acc, dw);
}

#define WINOGRAD_FORM                                                                              \
    {                                                                                              \
        .scratch = winograd_scratch, .weights_size = winograd_weights_size,                        \
        .weights = winograd_weights, .conv = winograd_conv, .backward = winograd_backward          \
    }

#endif
