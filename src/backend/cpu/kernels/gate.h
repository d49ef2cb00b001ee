/* EvoNorm-S0's gate s(x), shared by the norm itself and by what reads its output unstored. */
#ifndef CT_BACKEND_CPU_KERNELS_GATE_H
#define CT_BACKEND_CPU_KERNELS_GATE_H

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/vector.h"

/* e^z after Cephes: z = n ln 2 + r, |r| <= ln 2 / 2, a polynomial in r; relative error 1e-7. */
INLINE vf vexp(vf z) {
    z = vmin(vmax(z, vset(-87.0f)), vset(88.0f));
    vf scaled = z * 1.44269504f + 0.5f;
    vi n = __builtin_convertvector(scaled, vi);
    n += __builtin_convertvector(n, vf) > scaled; /* true is -1: floor instead of truncation */
    vf whole = __builtin_convertvector(n, vf);
    vf r = z - whole * 0.693359375f + whole * 2.12194440e-4f;
    vf p = vset(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return p * (vf)((n + 127) << 23);
}

INLINE vf gate(vf x, vf v, const bool S0) {
    if (S0) return 1.0f / (1.0f + vexp(-(v * x)));
    return vmin(vmax(x * (1.0f / 6) + 0.5f, vzero()), vset(1.0f));
}

/* What the norm makes of x, scale = rho w and shift = b: x s(x) scale + shift. */
typedef struct gated {
    vf slope, scale, shift;
    vf sixth, half, low, high; /* s scale = x sixth + half, kept between low and high */
} gated;

INLINE gated gated_of(vf slope, vf scale, vf shift) {
    return (gated){slope,
                   scale,
                   shift,
                   scale * (1.0f / 6),
                   scale * 0.5f,
                   vmin(scale, vzero()),
                   vmax(scale, vzero())};
}

/* Channel c of the norm. */
INLINE gated gated_channel(const ct_norm_args *norm, int c, vf rho) {
    return gated_of(norm->v != NULL ? vset(norm->v[c]) : vzero(), rho * norm->w[c],
                    vset(norm->b[c]));
}

INLINE vf gated_value(const gated *g, vf x, const bool S0) {
    if (S0) return x * gate(x, g->slope, S0) * g->scale + g->shift;
    return x * vmin(vmax(x * g->sixth + g->half, g->low), g->high) + g->shift;
}

#endif
