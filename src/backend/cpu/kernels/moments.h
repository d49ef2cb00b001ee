/* What the norms share, of n pixels of VL samples. */
#ifndef CT_BACKEND_CPU_KERNELS_MOMENTS_H
#define CT_BACKEND_CPU_KERNELS_MOMENTS_H

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/vector.h"

/* Mean and variance in one pass: sums of x - x[0] and of its square. The shift keeps the
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

/* y = x scale + shift (+ residual) */
INLINE void scale_channel(const float *x, size_t n, vf scale, vf shift, const float *residual,
                          float *y) {
    for (size_t k = 0; k < n * CT_LANES; k += CT_LANES) {
        vf out = vload(x + k) * scale + shift;
        if (residual != NULL) out += vload(residual + k);
        vstore(y + k, out);
    }
}

/* Sums of dy and of dy (x - mean). */
INLINE void centred_sums(const float *x, const float *dy, size_t n, vf mean, vf *total,
                         vf *product) {
    vf t = vzero(), p = vzero();
    for (size_t k = 0; k < n * CT_LANES; k += CT_LANES) {
        vf d = vload(dy + k);
        t += d;
        p += d * (vload(x + k) - mean);
    }
    *total = t;
    *product = p;
}

#endif
