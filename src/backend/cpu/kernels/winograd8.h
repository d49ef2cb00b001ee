/* Winograd with eight points, F(4, 5), in one direction.
 * Points p = 0, infinity, 1, -1, 2, -2, 1/2, -1/2 are the frequencies in this order. With f = 1 for
 * 0 and infinity and -2/9, 1/90, 32/45 for the pairs, A^T[j][k] = p^j and G[k][j] = f p^j
 * (infinity: 1 for the highest power, else 0); B^T of 0 is (1 0 -21/4 0 21/4 0 -1 0), of infinity
 * (0 -1 0 21/4 0 -21/4 0 1), of a pair an even and an odd part. */
#ifndef CT_BACKEND_CPU_KERNELS_WINOGRAD8_H
#define CT_BACKEND_CPU_KERNELS_WINOGRAD8_H

#include "backend/cpu/kernels/vector.h"

enum { N_POINTS = 8, N_PAIRS = 3 };

/* p and f of the pairs of points. */
static const float ct_points[N_PAIRS] = {1.0f, 2.0f, 0.5f};
static const float ct_factors[N_PAIRS] = {-2.0f / 9, 1.0f / 90, 32.0f / 45};

INLINE void input_pair8(vf even, vf odd, vf *v) {
    v[0] = even + odd;
    v[1] = even - odd;
}

/* B^T d */
INLINE void input8(const vf d[8], vf v[8]) {
    v[0] = (d[0] - d[6]) + 5.25f * (d[4] - d[2]);
    v[1] = (d[7] - d[1]) + 5.25f * (d[3] - d[5]);
    input_pair8(d[2] + d[6] - 4.25f * d[4], d[1] + d[5] - 4.25f * d[3], v + 2);
    input_pair8(0.25f * d[2] - 1.25f * d[4] + d[6], 0.5f * d[1] - 2.5f * d[3] + 2.0f * d[5], v + 4);
    input_pair8(4.0f * d[2] - 5.0f * d[4] + d[6], 2.0f * d[1] - 2.5f * d[3] + 0.5f * d[5], v + 6);
}

/* G g, five taps of a vector of filters. */
INLINE void weights8(const vf g[5], vf u[8]) {
    u[0] = g[0];
    u[1] = g[4];
#pragma GCC unroll 3
    for (int k = 0; k < N_PAIRS; k++) {
        const float p = ct_points[k], f = ct_factors[k];
        const vf even = f * (g[0] + p * p * (g[2] + p * p * g[4])),
                 odd = f * p * (g[1] + p * p * g[3]);
        u[2 + 2 * k] = even + odd;
        u[3 + 2 * k] = even - odd;
    }
}

/* A^T m, four outputs. */
INLINE void output8(const vf m[8], vf y[4]) {
    const vf s1 = m[2] + m[3], d1 = m[2] - m[3], s2 = m[4] + m[5], d2 = m[4] - m[5];
    const vf s3 = m[6] + m[7], d3 = m[6] - m[7];
    y[0] = (m[0] + s1) + (s2 + s3);
    y[1] = d1 + 2.0f * d2 + 0.5f * d3;
    y[2] = s1 + 4.0f * s2 + 0.25f * s3;
    y[3] = (d1 + m[1]) + 8.0f * d2 + 0.125f * d3;
}

#endif
