/* A window of 2x2 max pooling after a relu, from registers. */
#ifndef CT_BACKEND_CPU_KERNELS_WINDOW_H
#define CT_BACKEND_CPU_KERNELS_WINDOW_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "backend/cpu/kernels/vector.h"

typedef uint8_t vb __attribute__((vector_size(VL), aligned(1), may_alias));

/* Which of the four is `most`, the first of them; 4 where it is not positive. */
INLINE void store_winner(const vf value[4], vf most, uint8_t *index) {
#if VL == 16
    const __m512 m = (__m512)most;
    __m128i at = _mm_set1_epi8(3); /* bytes: vectors a quarter as long */
    for (int q = 2; q >= 0; q--)
        at = _mm_mask_mov_epi8(at, _mm512_cmp_ps_mask((__m512)value[q], m, _CMP_EQ_OQ),
                               _mm_set1_epi8((char)q));
    at = _mm_mask_mov_epi8(at, _mm512_cmp_ps_mask(m, _mm512_setzero_ps(), _CMP_LE_OQ),
                           _mm_set1_epi8(4));
    _mm_storeu_si128((__m128i *)(void *)index, at);
#elif defined(CT_NEON)
    uint32x4_t at = vdupq_n_u32(3);
    for (uint32_t q = 3; q-- > 0;)
        at = vbslq_u32(vceqq_f32((float32x4_t)value[q], (float32x4_t)most), vdupq_n_u32(q), at);
    at = vbslq_u32(vclezq_f32((float32x4_t)most), vdupq_n_u32(4), at);
    const uint16x4_t narrow = vmovn_u32(at);
    const uint8x8_t bytes = vmovn_u16(vcombine_u16(narrow, narrow));
    const uint32_t four = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
    memcpy(index, &four, sizeof four);
#else
    vi at = (vi){0} + 3;
    for (int q = 2; q >= 0; q--) {
        vi hit = value[q] == most;
        at = (at & ~hit) | (((vi){0} + q) & hit);
    }
    vi none = most <= vzero();
    at = (at & ~none) | (((vi){0} + 4) & none);
    *(vb *)index = __builtin_convertvector(at, vb);
#endif
}

/* d where pixel q has won, 0 elsewhere. */
INLINE vf share_of(const uint8_t *index, const int q, vf d) {
#if VL == 16
    const __m128i at = _mm_loadu_si128((const __m128i *)(const void *)index);
    const __mmask16 hit = _mm_cmpeq_epi8_mask(at, _mm_set1_epi8((char)q));
    return (vf)_mm512_maskz_mov_ps(hit, (__m512)d);
#elif defined(CT_NEON) /* left to itself, gcc loads bytes one by one */
    uint32_t four;
    memcpy(&four, index, sizeof four);
    const uint16x8_t wide = vmovl_u8(vcreate_u8(four));
    const uint32x4_t at = vmovl_u16(vget_low_u16(wide));
    return vkeep((vi)vceqq_u32(at, vdupq_n_u32((uint32_t)q)), d);
#else
    return vkeep(__builtin_convertvector(*(const vb *)index, vi) == q, d);
#endif
}

/* y = max(0, the largest of value); index (may be NULL): which one it is, 4 where none is positive.
 */
INLINE void store_window(const vf value[4], float *y, uint8_t *index) {
    vf most = vmax(vmax(value[0], value[1]), vmax(value[2], value[3]));
    vstore(y, vmax(most, vzero()));
    if (index != NULL) store_winner(value, most, index);
}

#endif
