/* BatchNorm (Ioffe and Szegedy 2015) in lanes; means run over a channel of all samples.
 *   h = (x - mean) rho,  rho = 1 / sqrt(var + eps),  y = h w + b
 *   q = dy w,  dx = rho (q - mean(q) - h mean(q h)),  dw = sum dy h,  db = sum dy
 * The unused lanes of the last block stay out of every sum and get no gradient. */
#include "backend/cpu/kernels/moments.h"

#include <math.h>

/* VL samples of one channel. */
typedef struct slice {
    size_t at;  /* where they begin in a tensor */
    int n_used; /* lanes with a sample */
} slice;

/* Slice k of channel c, in the order of the samples. */
INLINE slice slice_of(const ct_norm_args *norm, int c, int k) {
    const int block = k * VL / CT_LANES, part = k * VL % CT_LANES, left = norm->n - k * VL;
    return (slice){((size_t)(block * norm->c + c) * norm->n_pixels) * CT_LANES + (size_t)part,
                   left < 0    ? 0
                   : left < VL ? left
                               : VL};
}

INLINE int n_slices(const ct_norm_args *norm) {
    return (norm->n + CT_LANES - 1) / CT_LANES * (CT_LANES / VL);
}

/* The sum over the first n of a vector's lanes. */
INLINE double used_sum(vf v, int n) {
    float values[VL];
    vstore(values, v);
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)values[i];
    return sum;
}

/* The sum of x - mean of a channel, or of its square. */
INLINE double deviations(const ct_norm_args *norm, const float *x, int c, float mean,
                         const bool square) {
    double sum = 0;
    for (int i = 0; i < n_slices(norm); i++) {
        const slice p = slice_of(norm, c, i);
        vf s = vzero();
        for (size_t k = 0; k < norm->n_pixels; k++) {
            vf d = vload(x + p.at + k * CT_LANES) - mean;
            s += square ? d * d : d;
        }
        sum += used_sum(s, p.n_used);
    }
    return sum;
}

void KERNEL(batch_moments)(const ct_norm_args *norm, const float *x, float *stats) {
    const double count = (double)norm->n * (double)norm->n_pixels;
    for (int c = 0; c < norm->c; c++) {
        const double mean = deviations(norm, x, c, 0, false) / count;
        stats[c] = (float)mean;
        stats[norm->c + c] = (float)(deviations(norm, x, c, (float)mean, true) / count);
    }
}

void KERNEL(batchnorm)(const ct_norm_args *norm, const float *x, const float *stats,
                       const float *residual, float *y) {
    for (int c = 0; c < norm->c; c++) {
        const float scale = norm->w[c] / sqrtf(stats[norm->c + c] + norm->epsilon);
        const float shift = norm->b[c] - stats[c] * scale;
        for (int i = 0; i < n_slices(norm); i++) {
            const size_t at = slice_of(norm, c, i).at;
            scale_channel(x + at, norm->n_pixels, vset(scale), vset(shift),
                          residual != NULL ? residual + at : NULL, y + at);
        }
    }
}

/* All ones in the first n lanes. */
INLINE vi used_lanes(int n) {
    vi mask;
    for (int i = 0; i < VL; i++) mask[i] = i < n ? -1 : 0;
    return mask;
}

void KERNEL(batchnorm_backward)(const ct_norm_args *norm, const float *x, const float *dy,
                                const float *stats, float *dx) {
    const double count = (double)norm->n * (double)norm->n_pixels;
    for (int c = 0; c < norm->c; c++) {
        const float mean = stats[c], rho = 1.0f / sqrtf(stats[norm->c + c] + norm->epsilon);
        double total = 0, product = 0;
        for (int i = 0; i < n_slices(norm); i++) {
            const slice s = slice_of(norm, c, i);
            vf t, p;
            centred_sums(x + s.at, dy + s.at, norm->n_pixels, vset(mean), &t, &p);
            total += used_sum(t, s.n_used);
            product += used_sum(p, s.n_used);
        }
        norm->dw[c] += (float)product * rho;
        norm->db[c] += (float)total;
        const float scale = norm->w[c] * rho, mean_d = (float)(total / count);
        const float pull = (float)(product / count) * rho * rho;
        for (int i = 0; i < n_slices(norm); i++) {
            const slice s = slice_of(norm, c, i);
            const vi used = used_lanes(s.n_used);
            for (size_t k = s.at; k < s.at + norm->n_pixels * CT_LANES; k += CT_LANES) {
                vf d = scale * (vload(dy + k) - mean_d - pull * (vload(x + k) - mean));
                vstore(dx + k, vkeep(used, d));
            }
        }
    }
}
