/* What the weight gradients of Winograd's convolutions of either stride share: sums over tiles and
 * samples of products of two channels, for one frequency. */
#ifndef CT_BACKEND_CPU_KERNELS_WINOGRAD_SUMS_H
#define CT_BACKEND_CPU_KERNELS_WINOGRAD_SUMS_H

#include "backend/cpu/kernels/winograd_internal.h"

/* 4 * CI_TILE accumulators beside the operands, and a multiple of a vector's floats. */
#if REGISTERS == 32
#define CI_TILE 4
#else
#define CI_TILE 2
#endif
#define TILE_SUMS (CO_TILE * CI_TILE)

/* acc[k] (+)= the sum of the elements of sum[k]. */
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
/* Four accumulators 4 apart: quarter q of the result is what is left of sum[first + 4 * q]. */
INLINE vf by_quarter(const vf *sum) {
    return quarters(halves(sum[0], sum[4]), halves(sum[8], sum[12]));
}
INLINE void reduce(const vf sum[TILE_SUMS], bool is_first, float *acc) {
    vf low = pairs(by_quarter(sum), by_quarter(sum + 1));
    vf high = pairs(by_quarter(sum + 2), by_quarter(sum + 3));
    vf all = singles(low, high);
    vstore(acc, is_first ? all : vload(acc) + all);
}
#elif VL == 8
/* Two accumulators 4 apart: the halves of the result are what is left of each. */
INLINE vf by_half(const vf *sum) {
    return _mm256_permute2f128_ps(sum[0], sum[4], 0x20) +
           _mm256_permute2f128_ps(sum[0], sum[4], 0x31);
}
INLINE void reduce(const vf sum[TILE_SUMS], bool is_first, float *acc) {
    vf low = _mm256_hadd_ps(by_half(sum), by_half(sum + 1));
    vf high = _mm256_hadd_ps(by_half(sum + 2), by_half(sum + 3));
    vf all = _mm256_hadd_ps(low, high);
    vstore(acc, is_first ? all : vload(acc) + all);
}
#elif defined(CT_NEON)
INLINE void reduce(const vf sum[TILE_SUMS], bool is_first, float *acc) {
    for (int k = 0; k < TILE_SUMS; k += 4) {
        vf all = sums_of_four(sum[k], sum[k + 1], sum[k + 2], sum[k + 3]);
        vstore(acc + k, is_first ? all : vload(acc + k) + all);
    }
}
#else
INLINE void reduce(const vf sum[TILE_SUMS], bool is_first, float *acc) {
    for (int k = 0; k < TILE_SUMS; k++) {
        vf s = sum[k];
        float all = (s[0] + s[1]) + (s[2] + s[3]);
        acc[k] = is_first ? all : acc[k] + all;
    }
}
#endif

/* sum[4][CI_TILE] += m [4][n] * v [CI_TILE][n]^T, n vectors in a row, channels `step` apart. */
INLINE void sum_group(int n, const float *m, const float *v, const size_t step, vf sum[TILE_SUMS]) {
    for (int t = 0; t < n; t++) {
        vf x[CI_TILE];
        for (int i = 0; i < CI_TILE; i++) x[i] = vload(v + i * step + t * VL);
        for (int o = 0; o < CO_TILE; o++) {
            vf g = vload(m + o * step + t * VL);
            for (int i = 0; i < CI_TILE; i++)
                sum[o * CI_TILE + i] = sum[o * CI_TILE + i] + g * x[i];
        }
    }
}

/* acc[4][CI_TILE] (+)= the sum over n tiles; groups of m and v are m_group and v_group floats
 * apart.
 */
INLINE void sum_tile(int n, const float *m, size_t m_group, const float *v, size_t v_group,
                     const size_t step, bool is_first, float *acc) {
    vf sum[TILE_SUMS];
    for (int k = 0; k < TILE_SUMS; k++) sum[k] = vzero();
    for (; n >= GROUP; n -= GROUP, m += m_group, v += v_group)
        sum_group(GROUP * PARTS, m, v, step, sum);
    sum_group(n * PARTS, m, v, step, sum);
    reduce(sum, is_first, acc);
}

#endif
