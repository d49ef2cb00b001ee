/* GroupNorm (Wu and He 2018) and BatchNorm (Ioffe and Szegedy 2015) in lanes.
 *   h = (x - mean) rho,  rho = 1 / sqrt(var + eps),  y = h w + b
 *   q = dy w,  dx = rho (q - mean(q) - h mean(q h)),  dw = sum dy h,  db = sum dy
 * GroupNorm's means run over a group of channels of one sample, BatchNorm's over a channel of all
 * samples; there the unused lanes of the last block stay out of every sum and get no gradient. */
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/moments.h"
#include "backend/cpu/kernels/vector.h"

#include <math.h>

INLINE void scale_channel(const float *x, size_t n, vf scale, vf shift, const float *residual,
                          float *y) {
    for (size_t k = 0; k < n * CT_LANES; k += CT_LANES) {
        vf out = vload(x + k) * scale + shift;
        if (residual != NULL) out += vload(residual + k);
        vstore(y + k, out);
    }
}

/* sums of dy and of dy (x - mean) */
INLINE void channel_sums(const float *x, const float *dy, size_t n, vf mean, vf *total,
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

void KERNEL(groupnorm)(const float *x, const ct_norm_geometry *g, const float *w, const float *b,
                       const float *residual, float *stats, float *y) {
    const int per_group = g->c / g->groups;
    const size_t plane = g->n_pixels * CT_LANES;
    for (int group = 0; group < g->groups; group++)
        for (int part = 0; part < CT_LANES; part += VL) {
            vf mean, var;
            moments(x + (size_t)(group * per_group) * plane + part, (size_t)per_group * g->n_pixels,
                    &mean, &var);
            vf rho = 1.0f / vsqrt(var + g->epsilon);
            vstore(stats + group * 2 * CT_LANES + part, mean);
            vstore(stats + (group * 2 + 1) * CT_LANES + part, rho);
            for (int c = group * per_group; c < (group + 1) * per_group; c++) {
                const size_t at = (size_t)c * plane + (size_t)part;
                vf scale = rho * w[c];
                scale_channel(x + at, g->n_pixels, scale, b[c] - mean * scale,
                              residual != NULL ? residual + at : NULL, y + at);
            }
        }
}

void KERNEL(groupnorm_backward)(const float *x, const float *dy, const ct_norm_geometry *g,
                                const float *w, const float *stats, float *dx, float *dw,
                                float *db) {
    const int per_group = g->c / g->groups;
    const size_t n = g->n_pixels, plane = n * CT_LANES;
    const float scale = 1.0f / (float)((size_t)per_group * n);
    for (int group = 0; group < g->groups; group++)
        for (int part = 0; part < CT_LANES; part += VL) {
            const vf mean = vload(stats + group * 2 * CT_LANES + part);
            const vf rho = vload(stats + (group * 2 + 1) * CT_LANES + part);
            vf sum_q = vzero(), sum_qh = vzero();
            for (int c = group * per_group; c < (group + 1) * per_group; c++) {
                const size_t at = (size_t)c * plane + (size_t)part;
                vf total, product;
                channel_sums(x + at, dy + at, n, mean, &total, &product);
                dw[c] += vsum(product * rho);
                db[c] += vsum(total);
                sum_q += total * w[c];
                sum_qh += product * rho * w[c];
            }
            const vf mean_q = sum_q * scale, pull = sum_qh * scale * rho;
            for (int c = group * per_group; c < (group + 1) * per_group; c++) {
                const size_t at = (size_t)c * plane + (size_t)part;
                for (size_t k = at; k < at + plane; k += CT_LANES) {
                    vf q = vload(dy + k) * w[c];
                    vstore(dx + k, rho * (q - mean_q - pull * (vload(x + k) - mean)));
                }
            }
        }
}

/* The sum over the first n of a vector's lanes, for part `part` of a block with n_left samples. */
INLINE double used_sum(vf v, int n_left, int part) {
    float values[VL];
    vstore(values, v);
    double sum = 0;
    for (int i = 0; i < VL && part + i < n_left; i++) sum += (double)values[i];
    return sum;
}

void KERNEL(batch_moments)(const float *x, size_t x_block, int n, const ct_norm_geometry *g,
                           float *stats) {
    const size_t plane = g->n_pixels * CT_LANES;
    const double count = (double)n * (double)g->n_pixels;
    for (int c = 0; c < g->c; c++) {
        double mean = 0, var = 0;
        for (int pass = 0; pass < 2; pass++) {
            double sum = 0;
            for (int first = 0; first < n; first += CT_LANES)
                for (int part = 0; part < CT_LANES; part += VL) {
                    const float *p =
                        x + (size_t)(first / CT_LANES) * x_block + (size_t)c * plane + part;
                    vf s = vzero();
                    for (size_t k = 0; k < plane; k += CT_LANES) {
                        vf d = vload(p + k) - (float)mean;
                        s += pass == 0 ? d : d * d;
                    }
                    sum += used_sum(s, n - first, part);
                }
            if (pass == 0)
                mean = sum / count;
            else
                var = sum / count;
        }
        stats[c] = (float)mean;
        stats[g->c + c] = (float)var;
    }
}

void KERNEL(batchnorm)(const float *x, const ct_norm_geometry *g, const float *w, const float *b,
                       const float *stats, const float *residual, float *y) {
    const size_t plane = g->n_pixels * CT_LANES;
    for (int c = 0; c < g->c; c++) {
        const float scale = w[c] / sqrtf(stats[g->c + c] + g->epsilon);
        const float shift = b[c] - stats[c] * scale;
        for (int part = 0; part < CT_LANES; part += VL) {
            const size_t at = (size_t)c * plane + (size_t)part;
            scale_channel(x + at, g->n_pixels, vset(scale), vset(shift),
                          residual != NULL ? residual + at : NULL, y + at);
        }
    }
}

/* Lanes part .. part+VL-1 of a block with n_left samples: all ones where there is a sample. */
INLINE vi used_lanes(int n_left, int part) {
    vi mask;
    for (int i = 0; i < VL; i++) mask[i] = part + i < n_left ? -1 : 0;
    return mask;
}

void KERNEL(batchnorm_backward)(const float *x, size_t x_block, const float *dy, size_t dy_block,
                                int n, const ct_norm_geometry *g, const float *w,
                                const float *stats, float *dx, size_t dx_block, float *dw,
                                float *db) {
    const size_t plane = g->n_pixels * CT_LANES;
    const double count = (double)n * (double)g->n_pixels;
    for (int c = 0; c < g->c; c++) {
        const float mean = stats[c], rho = 1.0f / sqrtf(stats[g->c + c] + g->epsilon);
        double total = 0, product = 0;
        for (int b = 0; b * CT_LANES < n; b++)
            for (int part = 0; part < CT_LANES; part += VL) {
                const size_t at = (size_t)c * plane + (size_t)part;
                vf t, p;
                channel_sums(x + (size_t)b * x_block + at, dy + (size_t)b * dy_block + at,
                             g->n_pixels, vset(mean), &t, &p);
                total += used_sum(t, n - b * CT_LANES, part);
                product += used_sum(p, n - b * CT_LANES, part);
            }
        dw[c] += (float)product * rho;
        db[c] += (float)total;
        const float scale = w[c] * rho, mean_d = (float)(total / count);
        const float pull = (float)(product / count) * rho * rho;
        for (int b = 0; b * CT_LANES < n; b++)
            for (int part = 0; part < CT_LANES; part += VL) {
                const size_t at = (size_t)c * plane + (size_t)part;
                const float *px = x + (size_t)b * x_block + at,
                            *pd = dy + (size_t)b * dy_block + at;
                float *to = dx + (size_t)b * dx_block + at;
                const vi used = used_lanes(n - b * CT_LANES, part);
                for (size_t k = 0; k < plane; k += CT_LANES) {
                    vf d = scale * (vload(pd + k) - mean_d - pull * (vload(px + k) - mean));
                    vstore(to + k, vkeep(used, d));
                }
            }
    }
}
