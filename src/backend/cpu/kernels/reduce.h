/* Products of rows of vectors, and sums over the lanes of several vectors at once. */
#ifndef CT_BACKEND_CPU_KERNELS_REDUCE_H
#define CT_BACKEND_CPU_KERNELS_REDUCE_H

#include <stdbool.h>
#include <stddef.h>

#include "backend/cpu/kernels/vector.h"

/* sum[p * N + q] += a [M][n] * b [N][n]^T, n vectors in a row, rows `row` floats apart; pinned:
 * operands are in registers before they are used. */
INLINE void row_products(int n, const float *a, const float *b, const size_t row, const int M,
                         const int N, const bool pinned, vf *sum) {
    for (int t = 0; t < n; t++, a += VL, b += VL) {
        vf y[6];
#pragma GCC unroll 6
        for (int q = 0; q < N; q++) {
            y[q] = vload(b + (size_t)q * row);
            if (pinned) y[q] = in_register(y[q]);
        }
#pragma GCC unroll 4
        for (int p = 0; p < M; p++) {
            vf x = vload(a + (size_t)p * row);
            if (pinned) x = in_register(x);
#pragma GCC unroll 6
            for (int q = 0; q < N; q++) sum[p * N + q] += x * y[q];
        }
    }
}

#if VL == 16
INLINE vf halves(vf a, vf b) {
    return (vf)_mm512_shuffle_f32x4((__m512)a, (__m512)b, 0x44) +
           (vf)_mm512_shuffle_f32x4((__m512)a, (__m512)b, 0xee);
}
INLINE vf quarters(vf a, vf b) {
    return (vf)_mm512_shuffle_f32x4((__m512)a, (__m512)b, 0x88) +
           (vf)_mm512_shuffle_f32x4((__m512)a, (__m512)b, 0xdd);
}
/* From here on within each quarter of four floats. */
INLINE vf pairs(vf a, vf b) {
    return _mm512_shuffle_ps(a, b, 0x44) + _mm512_shuffle_ps(a, b, 0xee);
}
INLINE vf singles(vf a, vf b) {
    return _mm512_shuffle_ps(a, b, 0x88) + _mm512_shuffle_ps(a, b, 0xdd);
}
#endif

/* acc[k] += the sum of the elements of sum[k], 8 of them, in a fixed order. */
INLINE void reduce(const vf *sum, float *acc) {
#if VL == 16
    const vf low = quarters(halves(sum[0], sum[1]), halves(sum[2], sum[3]));
    const vf high = quarters(halves(sum[4], sum[5]), halves(sum[6], sum[7]));
    const vf both = pairs(low, high), all = singles(both, both);
    /* quarter k holds the sums k and k + 4 */
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 4, 8, 12, 1, 5, 9, 13);
    __m256 sums = _mm512_castps512_ps256(_mm512_permutexvar_ps(order, all));
    _mm256_storeu_ps(acc, _mm256_loadu_ps(acc) + sums);
#else
    for (int k = 0; k < 8; k++) acc[k] += vsum(sum[k]);
#endif
}

#endif
