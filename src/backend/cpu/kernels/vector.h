/* The vector type of the instruction set being compiled and the few operations that plain C has no
 * operator for. A vector holds VL of the 16 samples of a pixel; kernels loop over the 16 / VL parts
 * of a block where VL is smaller, so that registers hold whole tiles on every instruction set. */
#ifndef CT_BACKEND_CPU_KERNELS_VECTOR_H
#define CT_BACKEND_CPU_KERNELS_VECTOR_H

#include <math.h>
#include <stdint.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#define VL 16
#elif defined(__AVX2__)
#include <immintrin.h>
#define VL 8
#else
#define VL 4
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

/* The sum of the elements, halves first: a fixed order on every call. */
INLINE float vsum(vf v) {
#if VL == 16
    return _mm512_reduce_add_ps((__m512)v);
#else
    float a[VL];
    vstore(a, v);
    for (int half = VL / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) a[i] += a[i + half];
    return a[0];
#endif
}

#endif
