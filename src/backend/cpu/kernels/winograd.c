/* Winograd convolution F(4x4, 3x3) in lanes, stride 1, border 1 (matrices: winograd_internal.h).
 *   y[o] = A^T [ sum_i U[o][i] . V[i] ] A     for every tile of 4x4 pixels of y
 *   x [c_in][h][w][16]   y [c_out][h][w][16]   one block of 16 samples, 64-byte aligned
 *   u [36][c_out/4][c_in][4]   weights transformed by winograd_weights, channels padded to 4s
 *   v [tiles/4][c_in][37][4][16], m [tiles/4][c_out][37][4][16]   a chunk of tiles, in scratch
 * For every frequency the sum over i is a matrix product [c_out x c_in] * [c_in x tiles*16]; its
 * register tile is 4 output channels by COLUMNS vectors. 36 products replace 144: 4 times fewer. */
#include "backend/cpu/kernels/winograd_internal.h"

/* Vectors of a register tile beside its 4 output channels, and so 4 * COLUMNS accumulators: what
 * 32 (AVX-512) or 16 registers hold together with the operands. */
#if VL == 16
#define COLUMNS 4
#else
#define COLUMNS 2
#endif

/* Input channels whose v of a register tile's columns stay in the first-level cache. */
#define K_BLOCK 64

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

/* Filters of 4 input by 4 output channels side by side, absent ones zero: taps [9][4 in][4 out]. */
static void weights_gather(const float *w, int c_in, int c_out, int i0, int o0, bool flip,
                           float *taps) {
    for (int k = 0; k < 16; k++) {
        int i = i0 + k / 4, o = o0 + k % 4;
        bool absent = i >= c_in || o >= c_out;
        const float *g = absent ? w : w + 9 * (flip ? (size_t)i * c_out + o : (size_t)o * c_in + i);
        for (int s = 0; s < 9; s++) taps[s * 16 + k] = absent ? 0.0f : g[flip ? 8 - s : s];
    }
}

/* The same where none is absent: four runs of four filters, four floats of each run at a time. */
INLINE void weights_turn(const float *const run[4], bool flip, float *taps) {
    for (int q = 0; q < 9; q++) {
        const float *from[4];
        float *to[4];
        for (int k = 0; k < 4; k++) {
            const int filter = (4 * q + k) / 9, tap = (4 * q + k) % 9;
            from[k] = run[k] + 4 * q;
            to[k] = taps + (flip ? 8 - tap : tap) * 16 + 4 * filter;
        }
        turn_4x4(from, to);
    }
    for (int s = 0; flip && s < 9; s++) { /* runs are input channels: [9][4 out][4 in] so far */
        float *block = taps + s * 16;
        turn_4x4((const float *[]){block, block + 4, block + 8, block + 12},
                 (float *[]){block, block + 4, block + 8, block + 12});
    }
}

static void weights_of(const float *w, int c_in, int c_out, int i, int o, bool flip, float *taps) {
    if (i + 4 > c_in || o + 4 > c_out) {
        weights_gather(w, c_in, c_out, i, o, flip, taps);
        return;
    }
    const size_t step = 9 * (size_t)(flip ? c_out : c_in);
    w += flip ? (size_t)i * step + 9 * (size_t)o : (size_t)o * step + 9 * (size_t)i;
    const float *const run[4] = {w, w + step, w + 2 * step, w + 3 * step};
    if (flip)
        weights_turn(run, true, taps);
    else
        weights_turn(run, false, taps);
}

/* Some filters are gathered before they are transformed: a load waits for what was stored just
 * before, and that for all stores before it. */
enum { N_GATHERED = 16 };

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

/* m[4][COLUMNS] (+)= u[k][4] * v[k][COLUMNS]. */
INLINE void product_tile(int k, const float *u, const float *v, bool accumulate, float *m) {
    vf sum[CO_TILE][COLUMNS];
    for (int o = 0; o < CO_TILE; o++)
        for (int t = 0; t < COLUMNS; t++)
            sum[o][t] = accumulate ? vload(m + o * CHANNEL_STEP + t * VL) : vzero();
    for (int i = 0; i < k; i++) {
        vf column[COLUMNS];
        for (int t = 0; t < COLUMNS; t++) column[t] = vload(v + t * VL);
        for (int o = 0; o < CO_TILE; o++) {
            vf weight = vset(u[o]);
            for (int t = 0; t < COLUMNS; t++) sum[o][t] = sum[o][t] + weight * column[t];
        }
        u += CO_TILE;
        v += CHANNEL_STEP;
    }
    for (int o = 0; o < CO_TILE; o++)
        for (int t = 0; t < COLUMNS; t++) vstore(m + o * CHANNEL_STEP + t * VL, sum[o][t]);
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
                    product_tile(k, u_tile, v_tile + t, i > 0, m_tile + t);
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
                           float *y, bool accumulate, float *scratch) {
    ct_winograd_plan plan = KERNEL(winograd_plan)(c_in, c_out, h, w);
    float *zeros = scratch, *v = zeros + (size_t)w * CT_LANES;
    float *m = v + (size_t)(plan.n_chunk / GROUP) * plan.v_group;
    for (int i = 0; i < w * CT_LANES; i++) zeros[i] = 0.0f;
    for (int first = 0; first < plan.n_tiles; first += plan.n_chunk) {
        int left = plan.n_tiles - first, n = left < plan.n_chunk ? left : plan.n_chunk;
        KERNEL(winograd_input)(&plan, x, first, n, zeros, v);
        KERNEL(winograd_products)(&plan, u, v, first, n, y, m);
        KERNEL(winograd_output)(&plan, m, first, n, accumulate, y);
    }
}
