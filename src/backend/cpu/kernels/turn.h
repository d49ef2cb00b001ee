/* Transposes of four by four floats in registers. */
#ifndef CT_BACKEND_CPU_KERNELS_TURN_H
#define CT_BACKEND_CPU_KERNELS_TURN_H

#include "backend/cpu/kernels/vector.h"

/* Elements of a and b, numbered 0 to 3 and 4 to 7. gcc before 12 has no __builtin_shufflevector, clang
 * no __builtin_shuffle. */
typedef float v4 __attribute__((vector_size(16), aligned(4), may_alias));
#if __has_builtin(__builtin_shufflevector)
#define PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
typedef int32_t i4 __attribute__((vector_size(16)));
#define PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, (i4){i, j, k, l})
#endif

/* Four rows of four floats become four columns. */
INLINE void turn_4x4(const float *const row[4], float *const column[4]) {
    const v4 a = *(const v4 *)row[0], b = *(const v4 *)row[1];
    const v4 c = *(const v4 *)row[2], d = *(const v4 *)row[3];
    const v4 ab = PICK(a, b, 0, 4, 1, 5), cd = PICK(c, d, 0, 4, 1, 5);
    const v4 ab_high = PICK(a, b, 2, 6, 3, 7), cd_high = PICK(c, d, 2, 6, 3, 7);
    *(v4 *)column[0] = PICK(ab, cd, 0, 1, 4, 5);
    *(v4 *)column[1] = PICK(ab, cd, 2, 3, 6, 7);
    *(v4 *)column[2] = PICK(ab_high, cd_high, 0, 1, 4, 5);
    *(v4 *)column[3] = PICK(ab_high, cd_high, 2, 3, 6, 7);
}

#endif
