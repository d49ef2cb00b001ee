/* Both gradients of a convolution by Winograd's method, in lanes (matrices: winograd_internal.h).
 *   dx = A^T [ sum_o U[i][o] . V[o] ] A,   V = B^T dy B,   U of the weights turned by half a circle
 *   dw[o][i] = G^T [ sum over tiles and samples of V[o] . (A x[i] A^T) ] G, turned as well
 *   x, dx [c_in][h][w][16]   dy [c_out][h][w][16]   one block of 16 samples, 64-byte aligned
 *   acc [36][c_in/4][c_out/CI_TILE][4][CI_TILE]   the sum, channels padded
 *   dw [c_out][c_in][3][3]
 * The weight gradient pairs every pixel of x with the pixels of dy around it, as well as the other
 * way round: so both gradients read the same V. Its sum over a chunk's tiles is, for every
 * frequency, a product of the rows of 4 channels of x and CI_TILE of dy whose accumulators are
 * vectors over samples; these are reduced by a fixed tree of pairs, once per chunk, and added to
 * acc. Here the convolution is the data gradient's: plan.c_in counts dy's channels, c_out x's. */
#include "backend/cpu/kernels/winograd_sums.h"

static size_t acc_stride(int c_in, int c_out) {
    return odd_lines((size_t)round_up(c_in, CO_TILE) * (size_t)round_up(c_out, CI_TILE));
}

size_t KERNEL(winograd_backward_size)(int c_in, int c_out) {
    return N_XI * acc_stride(c_in, c_out);
}

void KERNEL(winograd_backward_begin)(int c_in, int c_out, float *acc) {
    size_t n = N_XI * acc_stride(c_in, c_out);
    for (size_t k = 0; k < n; k++) acc[k] = 0.0f;
}

/* One frequency. */
static void product(const ct_winograd_plan *plan, int n, const float *m, const float *v,
                    ct_winograd_rows *ahead, float *acc) {
    for (int o = 0; o < plan->c_out; o += CO_TILE) {
        for (int i = 0; i < plan->c_in; i += CI_TILE) {
            sum_tile(n, m + (size_t)o * CHANNEL_STEP, plan->m_group, v + (size_t)i * CHANNEL_STEP,
                     plan->v_group, CHANNEL_STEP, acc);
            acc += TILE_SUMS;
            fetch_rows(ahead);
        }
    }
}

/* The rows of absent channels, which a register tile reads beside the others. */
static void clear_absent(const ct_winograd_plan *plan, float *v, float *m) {
    for (int g = 0; g < plan->n_chunk / GROUP; g++, v += plan->v_group, m += plan->m_group) {
        for (size_t k = (size_t)plan->c_in * CHANNEL_STEP; k < plan->v_group; k++) v[k] = 0.0f;
        for (size_t k = (size_t)plan->c_out * CHANNEL_STEP; k < plan->m_group; k++) m[k] = 0.0f;
    }
}

/* The weight gradient's products of a chunk, n tiles; meanwhile the next chunk of x is fetched. */
static void add_products(const ct_winograd_plan *plan, const float *x, int first, int n,
                         const float *v, const float *m, float *acc) {
    const size_t stride = acc_stride(plan->c_out, plan->c_in);
    const int n_products = N_XI * (round_up(plan->c_out, CO_TILE) / CO_TILE) *
                           (round_up(plan->c_in, CI_TILE) / CI_TILE);
    const int left = plan->n_tiles - first - n,
              n_next = left < plan->n_chunk ? left : plan->n_chunk;
    ct_winograd_rows rows = winograd_rows(plan, x, plan->c_out, first + n, n_next, n_products);
    for (int xi = 0; xi < N_XI; xi++)
        product(plan, n, m + (size_t)xi * XI_STEP, v + (size_t)xi * XI_STEP, &rows,
                acc + (size_t)xi * stride);
}

void KERNEL(winograd_backward_add)(const float *x, const float *dy, const float *u, int c_in,
                                   int c_out, int h, int w, float *dx, bool accumulate, float *acc,
                                   float *scratch) {
    ct_winograd_plan plan = KERNEL(winograd_plan)(c_out, c_in, h, w);
    float *zeros = scratch, *v = zeros + (size_t)w * CT_LANES;
    float *m = v + (size_t)(plan.n_chunk / GROUP) * plan.v_group;
    for (int i = 0; i < w * CT_LANES; i++) zeros[i] = 0.0f;
    clear_absent(&plan, v, m);
    for (int first = 0; first < plan.n_tiles; first += plan.n_chunk) {
        int left = plan.n_tiles - first, n = left < plan.n_chunk ? left : plan.n_chunk;
        KERNEL(winograd_input)(&plan, dy, first, n, zeros, v);
        KERNEL(winograd_gradient)(&plan, x, first, n, m);
        add_products(&plan, x, first, n, v, m, acc);
        if (dx == NULL) continue;
        KERNEL(winograd_products)(&plan, u, v, first, n, dx, m); /* in place of x's */
        KERNEL(winograd_output)(&plan, m, first, n, accumulate, dx);
    }
}

/* G^T t, six frequencies to three taps, for a vector of filters. */
INLINE void taps_column(const vf t[6], vf g[3]) {
    vf s1 = (-1.0f / 6) * (t[1] + t[2]), d1 = (-1.0f / 6) * (t[1] - t[2]);
    vf s2 = t[3] + t[4], d2 = t[3] - t[4];
    g[0] = 0.25f * t[0] + s1 + (1.0f / 24) * s2;
    g[1] = d1 + (1.0f / 12) * d2;
    g[2] = s1 + (1.0f / 6) * s2 + t[5];
}

/* taps [3][3] of the VL filters whose frequencies lie at acc. */
INLINE void taps_group(const float *acc, size_t stride, vf taps[9]) {
    vf t[3][6];
    for (int j = 0; j < 6; j++) {
        vf column[6], g[3];
        for (int i = 0; i < 6; i++) column[i] = vload(acc + (size_t)(6 * i + j) * stride);
        taps_column(column, g);
        for (int i = 0; i < 3; i++) t[i][j] = g[i];
    }
    for (int i = 0; i < 3; i++) taps_column(t[i], taps + 3 * i);
}

void KERNEL(winograd_backward_end)(const float *acc, int c_in, int c_out, float *dw) {
    const size_t stride = acc_stride(c_in, c_out);
    const int n_across = round_up(c_out, CI_TILE) / CI_TILE;
    for (size_t k = 0; k < stride; k += VL) {
        vf taps[9];
        taps_group(acc + k, stride, taps);
        for (size_t f = k; f < k + VL; f++) {
            int tile = (int)(f / TILE_SUMS), at = (int)(f % TILE_SUMS);
            int i = tile / n_across * CO_TILE + at / CI_TILE;
            int o = tile % n_across * CI_TILE + at % CI_TILE;
            if (o >= c_out || i >= c_in) continue;
            float *g = dw + ((size_t)o * c_in + i) * 9;
            for (int s = 0; s < 9; s++) g[8 - s] = taps[s][f - k];
        }
    }
}
