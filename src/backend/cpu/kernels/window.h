/* A window of 2x2 max pooling after a relu, from registers. */
#ifndef CT_BACKEND_CPU_KERNELS_WINDOW_H
#define CT_BACKEND_CPU_KERNELS_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "backend/cpu/kernels/vector.h"

typedef uint8_t vb __attribute__((vector_size(VL), aligned(1), may_alias));

/* y = max(0, the largest of value); index (may be NULL): which one it is, 4 where none is positive.
 */
INLINE void store_window(const vf value[4], float *y, uint8_t *index) {
    vf most = vmax(vmax(value[0], value[1]), vmax(value[2], value[3]));
    vstore(y, vmax(most, vzero()));
    if (index == NULL) return;
    vi at = (vi){0} + 3;
    at = at + (value[2] == most); /* true is -1: 2 where it is the third */
    for (int q = 1; q >= 0; q--) {
        vi hit = value[q] == most;
        at = (at & ~hit) | (((vi){0} + q) & hit);
    }
    vi none = most <= vzero();
    at = (at & ~none) | (((vi){0} + 4) & none);
    *(vb *)index = __builtin_convertvector(at, vb);
}

#endif
