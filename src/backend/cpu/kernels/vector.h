/* The vector type of the instruction set being compiled and the few operations that plain C has no
 * operator for. A vector holds VL of the 16 samples of a pixel; kernels loop over the 16 / VL parts
 * of a block where VL is smaller, so that registers hold whole tiles on every instruction set. */
#ifndef CT_BACKEND_CPU_KERNELS_VECTOR_H
#define CT_BACKEND_CPU_KERNELS_VECTOR_H

#include <math.h>
#include <stdint.h>

/* VL floats in each of REGISTERS vector registers, for which tiles are cut. CT_NEON tells the neon
 * set from the portable one, whose plain C becomes the same instructions on 64-bit ARM. */
#if defined(__AVX512F__)
#include <immintrin.h>
#define VL        16
#define REGISTERS 32
#elif defined(__AVX2__)
#include <immintrin.h>
#define VL        8
#define REGISTERS 16
#elif defined(CT_NEON)
#include <arm_neon.h>
#define VL        4
#define REGISTERS 32
#else
#define VL        4
#define REGISTERS 16
#endif

typedef float vf __attribute__((vector_size(VL * 4)));
typedef int32_t vi __attribute__((vector_size(VL * 4)));
/* the same at any address, and free to alias a float array */
typedef float vfu __attribute__((vector_size(VL * 4), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline, unused))

INLINE vf vload(const float *p) {
    return *(const vfu *)p;
}
INLINE void vstore(float *p, vf v) {
    *(vfu *)p = v;
}
INLINE vf vset(float a) {
    return a - (vf){0};
}
INLINE vf vzero(void) {
    return (vf){0};
}

INLINE vf vmax(vf a, vf b) {
#if VL == 16
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif VL == 8
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(CT_NEON)
    return (vf)vmaxnmq_f32((float32x4_t)a, (float32x4_t)b);
#else
    vi m = a > b;
    return (vf)(((vi)a & m) | ((vi)b & ~m));
#endif
}

INLINE vf vmin(vf a, vf b) {
#if VL == 16
    return (vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif VL == 8
    return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(CT_NEON)
    return (vf)vminnmq_f32((float32x4_t)a, (float32x4_t)b);
#else
    vi m = a < b;
    return (vf)(((vi)a & m) | ((vi)b & ~m));
#endif
}

INLINE vf vsqrt(vf a) {
#if VL == 16
    return (vf)_mm512_sqrt_ps((__m512)a);
#elif VL == 8
    return (vf)_mm256_sqrt_ps((__m256)a);
#elif defined(CT_NEON)
    return (vf)vsqrtq_f32((float32x4_t)a);
#else
    vf r;
    for (int i = 0; i < VL; i++) r[i] = sqrtf(a[i]);
    return r;
#endif
}

/* Left to itself the compiler reads an operand from memory again for every product: as many loads
 * as multiply-adds, of which a cycle can do one each. */
INLINE vf in_register(vf v) {
#if VL == 16
    __asm__("" : "+v"(v));
#endif
    return v;
}

/* mask (all ones or zeros per element, as comparisons give it) ? a : b */
INLINE vf vselect(vi mask, vf a, vf b) {
    return (vf)(((vi)a & mask) | ((vi)b & ~mask));
}
INLINE vf vkeep(vi mask, vf a) {
    return (vf)((vi)a & mask);
}

/* The sum of the elements: a fixed order on every call. */
INLINE float vsum(vf v) {
#if VL == 16
    return _mm512_reduce_add_ps((__m512)v);
#elif defined(CT_NEON)
    return vaddvq_f32((float32x4_t)v);
#else
    float a[VL];
    vstore(a, v);
    for (int half = VL / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) a[i] += a[i + half];
    return a[0];
#endif
}

/* weight_of: number k, a constant, of n weights side by side; add_product: sum + weight * v. With NEON
 * an element of a register is an operand of the multiply-add: one load for four weights, and no
 * broadcast. */
#if defined(CT_NEON)
typedef struct vweight {
    float32x4_t four;
    int k;
} vweight;

INLINE vweight weight_of(const float *p, const int k, const int n) {
    const int left = n - k / 4 * 4; /* what is not there is not read */
    p += k / 4 * 4;
    if (left >= 4) return (vweight){vld1q_f32(p), k % 4};
    if (left == 1) return (vweight){vdupq_n_f32(*p), 0};
    const float32x2_t rest = left == 3 ? vld1_dup_f32(p + 2) : vdup_n_f32(0);
    return (vweight){vcombine_f32(vld1_f32(p), rest), k % 4};
}
INLINE vf add_product(vf sum, vweight w, vf v) {
    switch (w.k) {
    case 0: return (vf)vfmaq_laneq_f32((float32x4_t)sum, (float32x4_t)v, w.four, 0);
    case 1: return (vf)vfmaq_laneq_f32((float32x4_t)sum, (float32x4_t)v, w.four, 1);
    case 2: return (vf)vfmaq_laneq_f32((float32x4_t)sum, (float32x4_t)v, w.four, 2);
    default: return (vf)vfmaq_laneq_f32((float32x4_t)sum, (float32x4_t)v, w.four, 3);
    }
}

/* Four vectors to one of their sums. */
INLINE vf sums_of_four(vf a, vf b, vf c, vf d) {
    const float32x4_t ab = vpaddq_f32((float32x4_t)a, (float32x4_t)b);
    return (vf)vpaddq_f32(ab, vpaddq_f32((float32x4_t)c, (float32x4_t)d));
}
#else
typedef vf vweight;

INLINE vweight weight_of(const float *p, const int k, const int n) {
    (void)n;
    return vset(p[k]);
}
INLINE vf add_product(vf sum, vweight w, vf v) {
    return sum + w * v;
}
#endif

#endif
