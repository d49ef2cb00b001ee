/* Winograd convolution F(4x4, 3x3) in lanes, stride 1, border 1 (matrices: winograd_internal.h).
 *   y[o] = A^T [ sum_i U[o][i] . V[i] ] A     for every tile of 4x4 pixels of y
 *   x [c_in][h][w][16]   y [c_out][h][w][16]   one block of 16 samples, 64-byte aligned
 *   u [36][c_out/4][c_in][4]   weights transformed by winograd_weights, channels padded to 4s
 *   v [tiles/4][c_in][37][4][16], m [tiles/4][c_out][37][4][16]   a chunk of tiles, in scratch
 * For every frequency the sum over i is a matrix product [c_out x c_in] * [c_in x tiles*16]; its
 * register tile is 4 output channels by COLUMNS vectors. 36 products replace 144: 4 times fewer. */
#include "backend/cpu/kernels/winograd_product.h"

/* Bytes of v and m at a time, beside u, x and y in a 1 MiB second-level cache. */
#define CHUNK_BYTES (640 * 1024)

ct_winograd_plan KERNEL(winograd_plan)(int c_in, int c_out, int h, int w) {
    ct_winograd_plan plan = {.c_in = c_in, .c_out = c_out, .h = h, .w = w};
    plan.n_across = (w + TILE - 1) / TILE;
    plan.n_tiles = plan.n_across * ((h + TILE - 1) / TILE);
    size_t tile_bytes = (size_t)N_XI * CT_LANES * sizeof(float) * (size_t)(c_in + c_out);
    int n_chunk = (int)(CHUNK_BYTES / tile_bytes) / GROUP * GROUP;
    int n_all = round_up(plan.n_tiles, GROUP);
    plan.n_chunk = n_chunk < GROUP ? GROUP : n_chunk < n_all ? n_chunk : n_all;
    plan.v_group = (size_t)round_up(c_in, 4) * CHANNEL_STEP;
    plan.m_group = (size_t)round_up(c_out, CO_TILE) * CHANNEL_STEP;
    return plan;
}

size_t KERNEL(winograd_scratch)(int c_in, int c_out, int h, int w) {
    ct_winograd_plan plan = KERNEL(winograd_plan)(c_in, c_out, h, w);
    return (size_t)w * CT_LANES + (size_t)(plan.n_chunk / GROUP) * (plan.v_group + plan.m_group);
}

static size_t u_stride(int c_in, int c_out) {
    return odd_lines((size_t)round_up(c_in, 4) * (size_t)round_up(c_out, CO_TILE));
}

size_t KERNEL(winograd_weights_size)(int c_in, int c_out) {
    return N_XI * u_stride(c_in, c_out);
}

/* G g, three taps to six frequencies, for VL filters at a time. */
INLINE void weights_column(const vf g[3], vf t[6]) {
    vf even = (-1.0f / 6) * (g[0] + g[2]), odd = (-1.0f / 6) * g[1];
    t[0] = 0.25f * g[0];
    t[1] = even + odd;
    t[2] = even - odd;
    even = (1.0f / 24) * g[0] + (1.0f / 6) * g[2];
    odd = (1.0f / 12) * g[1];
    t[3] = even + odd;
    t[4] = even - odd;
    t[5] = g[2];
}

/* G g G^T of the 16 filters taps[3][3][16], stored 16 floats per frequency. */
static void weights_group(const float *taps, size_t stride, float *u) {
    for (int part = 0; part < PARTS; part++) {
        vf t[3][6];
        for (int j = 0; j < 3; j++) {
            vf g[3];
            for (int i = 0; i < 3; i++) g[i] = vload(taps + (3 * i + j) * CT_LANES + part * VL);
            weights_column(g, t[j]);
        }
        for (int i = 0; i < 6; i++) {
            vf row[3] = {t[0][i], t[1][i], t[2][i]}, out[6];
            weights_column(row, out);
            for (int j = 0; j < 6; j++)
                vstore(u + (size_t)(6 * i + j) * stride + part * VL, out[j]);
        }
    }
}

void KERNEL(winograd_weights)(const float *w, int c_in, int c_out, bool flip, float *u) {
    _Alignas(64) float taps[N_GATHERED][9 * CT_LANES];
    const int k_in = round_up(c_in, 4);
    const size_t stride = u_stride(c_in, c_out);
    for (int o = 0; o < c_out; o += CO_TILE) {
        for (int first = 0; first < c_in; first += 4 * N_GATHERED) {
            const int left = round_up(c_in - first, 4) / 4;
            const int n = left < N_GATHERED ? left : N_GATHERED;
            float *to = u + (size_t)o * k_in + (size_t)first * CO_TILE;
            for (int k = 0; k < n; k++) weights_of(w, c_in, c_out, first + 4 * k, o, flip, taps[k]);
            for (int k = 0; k < n; k++) weights_group(taps[k], stride, to + 4 * k * CO_TILE);
        }
    }
}

/* One frequency of n_groups groups: m [c_out] = u [c_out][c_in] * v [c_in]. Tiles that fill up the
 * last group are computed too, from whatever is there, and never read. */
static void product(const ct_winograd_plan *plan, int n_groups, const float *u, const float *v,
                    ct_winograd_rows *ahead, float *m) {
    const int c_in = plan->c_in, k_in = round_up(c_in, 4);
    for (int i = 0; i < c_in; i += K_BLOCK) {
        int k = c_in - i < K_BLOCK ? c_in - i : K_BLOCK;
        for (int o = 0; o < plan->c_out; o += CO_TILE) {
            const float *u_tile = u + (size_t)o * k_in + (size_t)i * CO_TILE;
            const float *v_tile = v + (size_t)i * CHANNEL_STEP;
            float *m_tile = m + (size_t)o * CHANNEL_STEP;
            for (int g = 0; g < n_groups; g++, v_tile += plan->v_group, m_tile += plan->m_group) {
                for (int t = 0; t < XI_STEP; t += COLUMNS * VL)
                    product_tile(k, u_tile, v_tile + t, CHANNEL_STEP, i > 0, m_tile + t);
                fetch_rows(ahead);
            }
        }
    }
}

void KERNEL(winograd_products)(const ct_winograd_plan *plan, const float *u, const float *v,
                               int first, int n, const float *y, float *m) {
    const size_t stride = u_stride(plan->c_in, plan->c_out);
    const int n_groups = round_up(n, GROUP) / GROUP;
    const int n_products = N_XI * (round_up(plan->c_out, CO_TILE) / CO_TILE) * n_groups;
    ct_winograd_rows rows = winograd_rows(plan, y, plan->c_out, first, n, n_products);
    for (int xi = 0; xi < N_XI; xi++)
        product(plan, n_groups, u + (size_t)xi * stride, v + (size_t)xi * XI_STEP, &rows,
                m + (size_t)xi * XI_STEP);
}

void KERNEL(winograd_conv)(const float *x, const float *u, int c_in, int c_out, int h, int w,
                           float *y, float *scratch) {
    ct_winograd_plan plan = KERNEL(winograd_plan)(c_in, c_out, h, w);
    float *zeros = scratch, *v = zeros + (size_t)w * CT_LANES;
    float *m = v + (size_t)(plan.n_chunk / GROUP) * plan.v_group;
    for (int i = 0; i < w * CT_LANES; i++) zeros[i] = 0.0f;
    for (int first = 0; first < plan.n_tiles; first += plan.n_chunk) {
        int left = plan.n_tiles - first, n = left < plan.n_chunk ? left : plan.n_chunk;
        KERNEL(winograd_input)(&plan, x, first, n, zeros, v);
        KERNEL(winograd_products)(&plan, u, v, first, n, y, m);
        KERNEL(winograd_output)(&plan, m, first, n, false, y);
    }
}
