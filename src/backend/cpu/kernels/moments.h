/* Mean and variance per sample of a run of vectors, shared by the norms. */
#ifndef CT_BACKEND_CPU_KERNELS_MOMENTS_H
#define CT_BACKEND_CPU_KERNELS_MOMENTS_H

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/vector.h"

/* One pass over n pixels of VL samples: sums of x - x[0] and of its square. The shift keeps the
 * difference of squares from cancelling; partial sums of 64 pixels keep rounding small. */
INLINE void moments(const float *x, size_t n, vf *mean, vf *var) {
    const vf shift = vload(x);
    vf sum = vzero(), square = vzero();
    for (size_t first = 0; first < n; first += 64) {
        size_t end = first + 64 < n ? first + 64 : n, k = first;
        vf s0 = vzero(), s1 = vzero(), q0 = vzero(), q1 = vzero();
        for (; k + 2 <= end; k += 2) {
            vf d0 = vload(x + k * CT_LANES) - shift, d1 = vload(x + (k + 1) * CT_LANES) - shift;
            s0 += d0;
            s1 += d1;
            q0 += d0 * d0;
            q1 += d1 * d1;
        }
        if (k < end) {
            vf d = vload(x + k * CT_LANES) - shift;
            s0 += d;
            q0 += d * d;
        }
        sum += s0 + s1;
        square += q0 + q1;
    }
    const float scale = 1.0f / (float)n;
    vf offset = sum * scale;
    *mean = shift + offset;
    *var = vmax(square * scale - offset * offset, vzero());
}

#endif
