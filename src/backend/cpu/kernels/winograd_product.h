/* What Winograd's convolutions of either stride share: the product of one frequency in registers
 * and the weights as vectors of filters. */
#ifndef CT_BACKEND_CPU_KERNELS_WINOGRAD_PRODUCT_H
#define CT_BACKEND_CPU_KERNELS_WINOGRAD_PRODUCT_H

#include "backend/cpu/kernels/winograd_internal.h"

/* Vectors of a register tile beside its ROWS output channels, and so ROWS * COLUMNS accumulators:
 * what 32 or 16 registers hold together with the operands. */
#if VL == 16
#define COLUMNS GROUP
#define ROWS    (16 / GROUP)
#elif REGISTERS == 32
#define COLUMNS 4
#define ROWS    4
#else
#define COLUMNS 2
#define ROWS    4
#endif

/* Input channels whose v of a register tile's columns stay in the first-level cache. */
#define K_BLOCK 64

/* m[ROWS][COLUMNS] (+)= u[ROWS/4][k][4] * v[k][COLUMNS], channels of m and v `step` floats apart,
 * fours of output channels u_step. */
INLINE void product_tile(int k, const float *u, const size_t u_step, const float *v,
                         const size_t step, bool accumulate, float *m) {
    vf sum[ROWS][COLUMNS];
    for (int o = 0; o < ROWS; o++)
        for (int t = 0; t < COLUMNS; t++)
            sum[o][t] = accumulate ? vload(m + o * step + t * VL) : vzero();
    for (int i = 0; i < k; i++) {
        vf column[COLUMNS];
        for (int t = 0; t < COLUMNS; t++) column[t] = vload(v + t * VL);
        for (int o = 0; o < ROWS; o++) {
            const vweight w = weight_of(u + (size_t)(o / CO_TILE) * u_step, o % CO_TILE, CO_TILE);
            for (int t = 0; t < COLUMNS; t++) sum[o][t] = add_product(sum[o][t], w, column[t]);
        }
        u += CO_TILE;
        v += step;
    }
    for (int o = 0; o < ROWS; o++)
        for (int t = 0; t < COLUMNS; t++) vstore(m + o * step + t * VL, sum[o][t]);
}

/* One frequency of n_groups groups: m [n_out] = u [n_out][n_in] * v [n_in], u_row floats from output
 * to output of u, groups of v and m v_group and m_group floats apart. The sum runs over K_BLOCK
 * inputs at a time. Tiles that fill up the last group are computed too, from whatever is there, and
 * never read. Meanwhile the rows `ahead` are fetched. */
INLINE void product(int n_in, int n_out, int n_groups, const float *u, int u_row, const float *v,
                    size_t v_group, const size_t step, ct_ahead *ahead, float *m, size_t m_group) {
    for (int i = 0; i < n_in; i += K_BLOCK) {
        const int k = n_in - i < K_BLOCK ? n_in - i : K_BLOCK;
        for (int o = 0; o < n_out; o += ROWS) {
            const float *u_tile = u + (size_t)o * (size_t)u_row + (size_t)i * CO_TILE;
            const float *v_tile = v + (size_t)i * step;
            float *m_tile = m + (size_t)o * step;
            for (int g = 0; g < n_groups; g++, v_tile += v_group, m_tile += m_group) {
                for (int t = 0; t < XI_STEP; t += COLUMNS * VL)
                    product_tile(k, u_tile, (size_t)u_row * CO_TILE, v_tile + t, step, i > 0,
                                 m_tile + t);
                fetch_ahead(ahead, false);
            }
        }
    }
}

/* Filters of 4 input by 4 output channels side by side, absent ones zero: taps [9][4 in][4 out]. */
INLINE void weights_gather(const float *w, int c_in, int c_out, int i0, int o0, bool flip,
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

INLINE void weights_of(const float *w, int c_in, int c_out, int i, int o, bool flip, float *taps) {
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

#endif
