/* EvoNorm-S0 (Liu et al. 2020) and GroupNorm (Wu and He 2018) in lanes, one group (contiguous
 * channels) at a time; n values in the group, mean and var of them, rho = 1 / sqrt(var + eps).
 * EvoNorm:
 *   y  = x s(x) rho w + b,   s = clamp(x/6 + 1/2, 0, 1) or sigmoid(v x)
 *   A  = sum_group dy w x s
 *   dx = rho w dy (s + x s') - A rho^3 (x - mean) / n
 *   dw = sum dy x s rho,  db = sum dy,  dv = sum dy w rho x^2 s (1 - s)
 * GroupNorm:
 *   y  = h w + b,   h = (x - mean) rho
 *   q  = dy w
 *   dx = rho (q - mean_group(q) - h mean_group(q h))
 *   dw = sum dy h,  db = sum dy
 * Two passes each way: the first one over a group leaves it in the cache for the second. */
#include "backend/cpu/kernels/gate.h"
#include "backend/cpu/kernels/moments.h"

/* Some function of a norm, compiled for its kind. */
#define BY_KIND(function, norm, ...)                                                               \
    do {                                                                                           \
        if ((norm)->kind == CT_GROUPNORM)                                                          \
            function(norm, __VA_ARGS__, CT_GROUPNORM);                                             \
        else if ((norm)->kind == CT_EVONORM_S0)                                                    \
            function(norm, __VA_ARGS__, CT_EVONORM_S0);                                            \
        else                                                                                       \
            function(norm, __VA_ARGS__, CT_EVONORM_HARD);                                          \
    } while (0)

static size_t block_floats(const ct_norm_args *norm) {
    return (size_t)norm->c * norm->n_pixels * CT_LANES;
}

static size_t stats_floats(const ct_norm_args *norm) {
    return (size_t)norm->groups * 2 * CT_LANES;
}

/* Of one block. */
static void measure(const ct_norm_args *norm, const float *x, int group, float *stats) {
    const size_t n = (size_t)(norm->c / norm->groups) * norm->n_pixels;
    stats += group * 2 * CT_LANES;
    for (int part = 0; part < CT_LANES; part += VL) {
        vf mean, var;
        moments(x + (size_t)group * n * CT_LANES + part, n, &mean, &var);
        vstore(stats + part, mean);
        vstore(stats + CT_LANES + part, 1.0f / vsqrt(var + norm->epsilon));
    }
}

void KERNEL(norm_stats)(const ct_norm_args *norm, const float *x, int group, float *stats) {
    for (int first = 0; first < norm->n; first += CT_LANES) {
        measure(norm, x, group, stats);
        x += block_floats(norm);
        stats += stats_floats(norm);
    }
}

/* ---- forward ---- */

/* n pixels of channel c; stats are its group's. */
INLINE void forward_channel(const ct_norm_args *norm, int c, const float *stats, const float *x,
                            size_t n, const float *residual, float *y, const ct_norm_kind KIND) {
    const vf rho = vload(stats + CT_LANES);
    if (KIND == CT_GROUPNORM) {
        const vf scale = rho * norm->w[c];
        scale_channel(x, n, scale, norm->b[c] - vload(stats) * scale, residual, y);
        return;
    }
    const gated g = gated_channel(norm, c, rho);
    const bool is_s0 = KIND == CT_EVONORM_S0;
    if (residual == NULL) {
        for (size_t k = 0; k < n * CT_LANES; k += CT_LANES)
            vstore(y + k, gated_value(&g, vload(x + k), is_s0));
        return;
    }
    for (size_t k = 0; k < n * CT_LANES; k += CT_LANES)
        vstore(y + k, gated_value(&g, vload(x + k), is_s0) + vload(residual + k));
}

/* One group of one block. */
INLINE void forward(const ct_norm_args *norm, int group, const float *x, const float *residual,
                    const float *stats, float *y, const ct_norm_kind KIND) {
    const int per_group = norm->c / norm->groups;
    for (int part = 0; part < CT_LANES; part += VL)
        for (int c = group * per_group; c < (group + 1) * per_group; c++) {
            const size_t at = (size_t)c * norm->n_pixels * CT_LANES + (size_t)part;
            forward_channel(norm, c, stats + group * 2 * CT_LANES + part, x + at, norm->n_pixels,
                            residual != NULL ? residual + at : NULL, y + at, KIND);
        }
}

void KERNEL(norm)(const ct_norm_args *norm, const float *x, const float *residual, bool has_stats,
                  float *stats, float *y) {
    for (int first = 0; first < norm->n; first += CT_LANES) {
        for (int group = 0; group < norm->groups; group++) {
            if (!has_stats) measure(norm, x, group, stats);
            BY_KIND(forward, norm, group, x, residual, stats, y);
        }
        x += block_floats(norm);
        y += block_floats(norm);
        if (residual != NULL) residual += block_floats(norm);
        stats += stats_floats(norm);
    }
}

INLINE void pixels(const ct_norm_args *norm, const float *x, int n, const float *stats, float *y,
                   size_t row, const ct_norm_kind KIND) {
    const int per_group = norm->c / norm->groups;
    for (int c = 0; c < norm->c; c++, x += norm->n_pixels * CT_LANES, y += row)
        for (int part = 0; part < CT_LANES; part += VL)
            forward_channel(norm, c, stats + c / per_group * 2 * CT_LANES + part, x + part,
                            (size_t)n, NULL, y + part, KIND);
}

void KERNEL(norm_pixels)(const ct_norm_args *norm, const float *x, int first, int n,
                         const float *stats, float *y, size_t row) {
    BY_KIND(pixels, norm, x + first * CT_LANES, n, stats, y, row);
}

/* ---- backward ---- */

/* EvoNorm's sums of one channel: dy x s, dy, and dy x^2 s (1 - s). */
INLINE void gated_sums(const float *x, const float *dy, size_t n, vf v, vf out[3], const bool S0) {
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

/* s + x s'(x) of the hard sigmoid: 0 below -3, 1 above 3, x/3 + 1/2 between. */
INLINE vf hard_slope(vf x) {
    vf inside = x * (1.0f / 3) + 0.5f;
    vf s = vkeep(x > vset(-3.0f), inside);
    return vselect(x < vset(3.0f), s, vset(1.0f));
}

INLINE void gated_backward(const float *x, const float *dy, size_t n, vf v, vf scale, vf pull,
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

/* One group of one block. */
INLINE void backward(const ct_norm_args *norm, int group, const float *x, const float *dy,
                     const float *stats, float *dx, const ct_norm_kind KIND) {
    const bool is_s0 = KIND == CT_EVONORM_S0, has_gate = KIND != CT_GROUPNORM;
    const int begin = group * (norm->c / norm->groups), end = begin + norm->c / norm->groups;
    const size_t n = norm->n_pixels, plane = n * CT_LANES, n_values = (size_t)(end - begin) * n;
    for (int part = 0; part < CT_LANES; part += VL) {
        const vf mean = vload(stats + group * 2 * CT_LANES + part);
        const vf rho = vload(stats + (group * 2 + 1) * CT_LANES + part);
        vf total = vzero(), product = vzero(); /* over the group, of q and of q times x s or h */
        for (int c = begin; c < end; c++) {
            const size_t at = (size_t)c * plane + (size_t)part;
            vf sums[3];
            if (has_gate)
                gated_sums(x + at, dy + at, n, is_s0 ? vset(norm->v[c]) : vzero(), sums, is_s0);
            else
                centred_sums(x + at, dy + at, n, mean, &sums[1], &sums[0]);
            total += sums[1] * norm->w[c];
            product += has_gate ? sums[0] * norm->w[c] : sums[0] * rho * norm->w[c];
            norm->dw[c] += vsum(sums[0] * rho);
            norm->db[c] += vsum(sums[1]);
            if (is_s0) norm->dv[c] += vsum(sums[2] * rho * norm->w[c]);
        }
        const float share = 1.0f / (float)n_values;
        const vf mean_q = total * share;
        const vf pull =
            has_gate ? product * rho * rho * rho / (float)n_values : product * share * rho;
        for (int c = begin; c < end; c++) {
            const size_t at = (size_t)c * plane + (size_t)part;
            if (has_gate)
                gated_backward(x + at, dy + at, n, is_s0 ? vset(norm->v[c]) : vzero(),
                               rho * norm->w[c], pull, mean, dx + at, is_s0);
            for (size_t k = at; !has_gate && k < at + plane; k += CT_LANES) {
                vf q = vload(dy + k) * norm->w[c];
                vstore(dx + k, rho * (q - mean_q - pull * (vload(x + k) - mean)));
            }
        }
    }
}

void KERNEL(norm_backward)(const ct_norm_args *norm, const float *x, const float *dy,
                           const float *stats, float *dx) {
    for (int first = 0; first < norm->n; first += CT_LANES) {
        for (int group = 0; group < norm->groups; group++)
            BY_KIND(backward, norm, group, x, dy, stats, dx);
        x += block_floats(norm);
        dy += block_floats(norm);
        dx += block_floats(norm);
        stats += stats_floats(norm);
    }
}
