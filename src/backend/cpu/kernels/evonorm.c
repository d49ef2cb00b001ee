/* EvoNorm-S0 (Liu et al. 2020) in lanes, one group (contiguous channels) at a time.
 *   y = x s(x) rho w + b,   rho = 1 / sqrt(var_g + eps),   s = clamp(x/6 + 1/2, 0, 1) or sigmoid(v
 * x) A = sum_group dy w x s,   n = values in the group dx = rho w dy (s + x s') - A rho^3 (x -
 * mean) / n dw = sum dy x s rho,  db = sum dy,  dv = sum dy w rho x^2 s (1 - s) Two passes each
 * way: the first one over a group leaves it in the cache for the second. */
#include "backend/cpu/kernels/gate.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/moments.h"
#include "backend/cpu/kernels/vector.h"

/* s + x s'(x) of the hard sigmoid: 0 below -3, 1 above 3, x/3 + 1/2 between. */
INLINE vf hard_slope(vf x) {
    vf inside = x * (1.0f / 3) + 0.5f;
    vf s = vkeep(x > vset(-3.0f), inside);
    return vselect(x < vset(3.0f), s, vset(1.0f));
}

INLINE void forward_channel(const float *x, size_t n, vf v, vf scale, vf shift,
                            const float *residual, float *y, const bool S0) {
    const gated g = gated_of(v, scale, shift);
    if (residual == NULL) {
        for (size_t k = 0; k < n * CT_LANES; k += CT_LANES)
            vstore(y + k, gated_value(&g, vload(x + k), S0));
        return;
    }
    for (size_t k = 0; k < n * CT_LANES; k += CT_LANES)
        vstore(y + k, gated_value(&g, vload(x + k), S0) + vload(residual + k));
}

INLINE void forward(const float *x, const ct_norm_geometry *g, const float *w, const float *b,
                    const float *v, const float *residual, float *stats, float *y, const bool S0) {
    const int per_group = g->c / g->groups;
    const size_t plane = g->n_pixels * CT_LANES;
    for (int group = 0; group < g->groups; group++)
        for (int part = 0; part < CT_LANES; part += VL) {
            const size_t first = (size_t)(group * per_group) * plane + (size_t)part;
            float *at_rho = stats + (group * 2 + 1) * CT_LANES + part;
            if (!g->has_stats) {
                vf mean, var;
                moments(x + first, (size_t)per_group * g->n_pixels, &mean, &var);
                vstore(stats + group * 2 * CT_LANES + part, mean);
                vstore(at_rho, 1.0f / vsqrt(var + g->epsilon));
            }
            const vf rho = vload(at_rho);
            for (int k = 0; k < per_group && y != NULL; k++) {
                const int c = group * per_group + k;
                const size_t at = (size_t)c * plane + (size_t)part;
                forward_channel(x + at, g->n_pixels, S0 ? vset(v[c]) : vzero(), rho * w[c],
                                vset(b[c]), residual != NULL ? residual + at : NULL, y + at, S0);
            }
        }
}

void KERNEL(evonorm)(const float *x, const ct_norm_geometry *g, const float *w, const float *b,
                     const float *v, const float *residual, float *stats, float *y) {
    if (v != NULL)
        forward(x, g, w, b, v, residual, stats, y, true);
    else
        forward(x, g, w, b, v, residual, stats, y, false);
}

INLINE void pixels(const float *x, size_t channel, const ct_norm_geometry *g, int first, int n,
                   int n_pixels, const float *w, const float *b, const float *v, const float *stats,
                   float *y, size_t row, const bool S0) {
    const int per_group = g->c / g->groups;
    for (int c = 0; c < n; c++, x += channel, y += row)
        for (int part = 0; part < CT_LANES; part += VL) {
            const vf rho = vload(stats + ((first + c) / per_group * 2 + 1) * CT_LANES + part);
            forward_channel(x + part, (size_t)n_pixels, S0 ? vset(v[c]) : vzero(), rho * w[c],
                            vset(b[c]), NULL, y + part, S0);
        }
}

void KERNEL(evonorm_pixels)(const float *x, size_t channel, const ct_norm_geometry *g, int first,
                            int n, int n_pixels, const float *w, const float *b, const float *v,
                            const float *stats, float *y, size_t row) {
    if (v != NULL)
        pixels(x, channel, g, first, n, n_pixels, w, b, v, stats, y, row, true);
    else
        pixels(x, channel, g, first, n, n_pixels, w, b, v, stats, y, row, false);
}

/* Sums of one channel: dy x s, dy, and dy x^2 s (1 - s). */
INLINE void channel_sums(const float *x, const float *dy, size_t n, vf v, vf out[3],
                         const bool S0) {
    vf product = vzero(), total = vzero(), slope = vzero();
    for (size_t first = 0; first < n; first += 64) {
        size_t end = first + 64 < n ? first + 64 : n;
        vf p = vzero(), t = vzero(), q = vzero();
        for (size_t k = first * CT_LANES; k < end * CT_LANES; k += CT_LANES) {
            vf value = vload(x + k), d = vload(dy + k), s = gate(value, v, S0);
            vf dxs = d * value * s;
            p += dxs;
            t += d;
            if (S0) q += dxs * value * (1.0f - s);
        }
        product += p;
        total += t;
        slope += q;
    }
    out[0] = product;
    out[1] = total;
    out[2] = slope;
}

INLINE void backward_channel(const float *x, const float *dy, size_t n, vf v, vf scale, vf pull,
                             vf mean, float *dx, const bool S0) {
    for (size_t k = 0; k < n * CT_LANES; k += CT_LANES) {
        vf value = vload(x + k), slope;
        if (S0) {
            vf s = gate(value, v, S0);
            slope = s + value * v * s * (1.0f - s);
        } else {
            slope = hard_slope(value);
        }
        vstore(dx + k, scale * vload(dy + k) * slope - pull * (value - mean));
    }
}

INLINE void backward(const float *x, const float *dy, const ct_norm_geometry *g, const float *w,
                     const float *v, const float *stats, float *dx, float *dw, float *db, float *dv,
                     const bool S0) {
    const int per_group = g->c / g->groups;
    const size_t n = g->n_pixels, plane = n * CT_LANES;
    for (int group = 0; group < g->groups; group++)
        for (int part = 0; part < CT_LANES; part += VL) {
            const vf mean = vload(stats + group * 2 * CT_LANES + part);
            const vf rho = vload(stats + (group * 2 + 1) * CT_LANES + part);
            vf total = vzero();
            for (int c = group * per_group; c < (group + 1) * per_group; c++) {
                const size_t at = (size_t)c * plane + (size_t)part;
                vf sums[3];
                channel_sums(x + at, dy + at, n, S0 ? vset(v[c]) : vzero(), sums, S0);
                total += sums[0] * w[c];
                dw[c] += vsum(sums[0] * rho);
                db[c] += vsum(sums[1]);
                if (S0) dv[c] += vsum(sums[2] * rho * w[c]);
            }
            const vf pull = total * rho * rho * rho / (float)((size_t)per_group * n);
            for (int c = group * per_group; c < (group + 1) * per_group; c++) {
                const size_t at = (size_t)c * plane + (size_t)part;
                backward_channel(x + at, dy + at, n, S0 ? vset(v[c]) : vzero(), rho * w[c], pull,
                                 mean, dx + at, S0);
            }
        }
}

void KERNEL(evonorm_backward)(const float *x, const float *dy, const ct_norm_geometry *g,
                              const float *w, const float *v, const float *stats, float *dx,
                              float *dw, float *db, float *dv) {
    if (v != NULL)
        backward(x, dy, g, w, v, stats, dx, dw, db, dv, true);
    else
        backward(x, dy, g, w, v, stats, dx, dw, db, dv, false);
}
