/* Sums over the lanes of several vectors at once. */
#ifndef CT_BACKEND_CPU_KERNELS_REDUCE_H
#define CT_BACKEND_CPU_KERNELS_REDUCE_H

#include "backend/cpu/kernels/vector.h"

/* acc[k] += the sum of the elements of sum[k], 8 of them, in a fixed order. */
INLINE void reduce(const vf *sum, float *acc) {
#if VL == 16
    __m512 q[4]; /* quarters: what is left of two accumulators each, twice over */
    for (int k = 0; k < 4; k++) {
        __m512 a = _mm512_shuffle_f32x4(sum[2 * k], sum[2 * k + 1], 0x44);
        q[k] = a + _mm512_shuffle_f32x4(sum[2 * k], sum[2 * k + 1], 0xee);
    }
    for (int k = 0; k < 2; k++) {
        __m512 a = _mm512_shuffle_f32x4(q[2 * k], q[2 * k + 1], 0x88);
        q[k] = a + _mm512_shuffle_f32x4(q[2 * k], q[2 * k + 1], 0xdd);
    }
    q[0] = _mm512_shuffle_ps(q[0], q[1], 0x44) + _mm512_shuffle_ps(q[0], q[1], 0xee);
    q[0] = _mm512_shuffle_ps(q[0], q[0], 0x88) + _mm512_shuffle_ps(q[0], q[0], 0xdd);
    /* quarter k holds the sums k and k + 4 */
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 4, 8, 12, 1, 5, 9, 13);
    __m256 sums = _mm512_castps512_ps256(_mm512_permutexvar_ps(order, q[0]));
    _mm256_storeu_ps(acc, _mm256_loadu_ps(acc) + sums);
#elif defined(CT_NEON)
    for (int k = 0; k < 8; k += 4)
        vstore(acc + k, vload(acc + k) + sums_of_four(sum[k], sum[k + 1], sum[k + 2], sum[k + 3]));
#else
    for (int k = 0; k < 8; k++) acc[k] += vsum(sum[k]);
#endif
}

#endif
