/* What the Winograd convolutions of 5x5 share: the weights of F(2x2, 5x5) and F(4x4, 5x5) (matrices:
 * winograd5_internal.h, winograd8.h) and the product of a frequency. */
#include "backend/cpu/kernels/winograd5_internal.h"
#include "backend/cpu/kernels/winograd8.h"

enum { COLUMNS = REGISTERS == 32 ? 4 : 2 }; /* of a register tile: up to 6 * COLUMNS accumulators */

/* G g, five taps to six frequencies, for VL filters at a time. */
INLINE void weights6(const vf g[5], vf t[6]) {
    vf even = (-1.0f / 6) * (g[0] + g[2] + g[4]), odd = (-1.0f / 6) * (g[1] + g[3]);
    t[0] = 0.25f * g[0];
    t[1] = even + odd;
    t[2] = even - odd;
    even = (1.0f / 24) * g[0] + (1.0f / 6) * g[2] + (2.0f / 3) * g[4];
    odd = (1.0f / 12) * g[1] + (1.0f / 3) * g[3];
    t[3] = even + odd;
    t[4] = even - odd;
    t[5] = g[4];
}

/* To N of them. */
INLINE void weights_column(const vf g[5], const int N, vf *t) {
    if (N == 8)
        weights8(g, t);
    else
        weights6(g, t);
}

/* G g G^T of the 16 filters taps[5][5][16], stored 16 floats per frequency. */
INLINE void weights_group(const float *taps, const int N, size_t stride, float *u) {
    for (int part = 0; part < PARTS; part++) {
        vf t[5][8];
        for (int j = 0; j < 5; j++) {
            vf g[5];
            for (int i = 0; i < 5; i++) g[i] = vload(taps + (5 * i + j) * CT_LANES + part * VL);
            weights_column(g, N, t[j]);
        }
        for (int i = 0; i < N; i++) {
            vf row[5] = {t[0][i], t[1][i], t[2][i], t[3][i], t[4][i]}, out[8];
            weights_column(row, N, out);
            for (int j = 0; j < N; j++)
                vstore(u + (size_t)(N * i + j) * stride + part * VL, out[j]);
        }
    }
}

void KERNEL(winograd5_weights)(const float *w, int n_in, int n_out, size_t o_step, size_t i_step,
                               int n_points, float *u) {
    _Alignas(64) float taps[25 * CT_LANES];
    const size_t stride = u5_stride(n_in, n_out);
    const int rows = rows_of(n_out), n = n_in * round_up(n_out, rows);
    for (int first = 0; first < n; first += CT_LANES) {
        for (int k = 0; k < CT_LANES; k++) {
            int at = first + k, o = at / (rows * n_in) * rows + at % rows, i = at / rows % n_in;
            bool absent = o >= n_out;
            const float *g = absent ? w : w + (size_t)o * o_step + (size_t)i * i_step;
            for (int s = 0; s < 25; s++) taps[s * CT_LANES + k] = absent ? 0.0f : g[s];
        }
        if (n_points == 8)
            weights_group(taps, 8, stride, u + first);
        else
            weights_group(taps, 6, stride, u + first);
    }
}

/* to[R][N] = u[n_in][R]^T * from[n_in][N]. */
INLINE void product_tile(const int R, const int N, int n_in, const float *u, const float *from,
                         float *to, size_t line) {
    vf sum[6][COLUMNS];
#pragma GCC unroll 6
    for (int o = 0; o < R; o++)
#pragma GCC unroll 5
        for (int t = 0; t < N; t++) sum[o][t] = vzero();
    for (int i = 0; i < n_in; i++, u += R, from += line) {
        vf column[COLUMNS];
#pragma GCC unroll 5
        for (int t = 0; t < N; t++) column[t] = vload(from + t * VL);
#pragma GCC unroll 6
        for (int o = 0; o < R; o++) {
            const vweight w = weight_of(u, o, R);
#pragma GCC unroll 5
            for (int t = 0; t < N; t++) sum[o][t] = add_product(sum[o][t], w, column[t]);
        }
    }
#pragma GCC unroll 6
    for (int o = 0; o < R; o++, to += line)
#pragma GCC unroll 5
        for (int t = 0; t < N; t++) vstore(to + t * VL, sum[o][t]);
}

/* All columns of R output channels. */
INLINE void product_rows(const int R, int n_in, int n, const float *u, const float *from, float *to,
                         size_t line) {
    const int N = COLUMNS;
    for (; n >= N; n -= N, from += N * VL, to += N * VL)
        product_tile(R, N, n_in, u, from, to, line);
    switch (n) {
#if REGISTERS == 32
    case 3: product_tile(R, 3, n_in, u, from, to, line); break;
    case 2: product_tile(R, 2, n_in, u, from, to, line); break;
#endif
    case 1: product_tile(R, 1, n_in, u, from, to, line); break;
    default: break;
    }
}

void KERNEL(winograd5_product)(int n_in, int n_out, int n, const float *u, const float *from,
                               float *to, size_t line) {
    const int rows = rows_of(n_out);
    for (int o = 0; o < n_out; o += rows, u += n_in * rows, to += (size_t)rows * line) {
        if (rows == 4)
            product_rows(4, n_in, n, u, from, to, line);
        else
            product_rows(6, n_in, n, u, from, to, line);
    }
}
