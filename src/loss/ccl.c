#include "loss/loss.h"

#include <math.h>
#include <string.h>

static double mse(const float *z, const float *t, size_t r, double weight, float *dz) {
    double sum = 0;
    for (size_t k = 0; k < r; k++) {
        double d = (double)z[k] - (double)t[k];
        sum += d * d;
        dz[k] += (float)(weight * 2.0 * d);
    }
    return sum;
}

static double l1(const float *z, const float *t, size_t r, double weight, float *dz) {
    double sum = 0;
    for (size_t k = 0; k < r; k++) {
        double d = (double)z[k] - (double)t[k];
        sum += fabs(d);
        dz[k] += (float)(weight * ((d > 0) - (d < 0)));
    }
    return sum;
}

/* d(1 - cos)/dz = (cos z / |z| - t / |t|) / |z| */
static double cosine(const float *z, const float *t, size_t r, double weight, float *dz) {
    double zz = 0, tt = 0, zt = 0;
    for (size_t k = 0; k < r; k++) {
        zz += (double)z[k] * (double)z[k];
        tt += (double)t[k] * (double)t[k];
        zt += (double)z[k] * (double)t[k];
    }
    double norms = sqrt(zz) * sqrt(tt);
    if (norms < 1e-8) return 1.0;
    double cos = zt / norms;
    for (size_t k = 0; k < r; k++)
        dz[k] += (float)(weight * (cos * (double)z[k] / zz - (double)t[k] / norms));
    return 1.0 - cos;
}

double ct_distance_to(const ct_loss_spec *spec, const float *z, const float *targets,
                      const int32_t *labels, int n, size_t r, double weight, float *dz) {
    double scale = 1.0 / n; /* of every sample's term */
    if (spec->distance != CT_COSINE && spec->reduction == CT_REDUCE_MEAN) scale /= (double)r;
    double sum = 0;
    for (int b = 0; b < n; b++) {
        size_t at = (size_t)b * r;
        const float *t = labels == NULL ? targets + at : targets + (size_t)labels[b] * r;
        switch (spec->distance) {
        case CT_MSE: sum += mse(z + at, t, r, weight * scale, dz + at); break;
        case CT_L1: sum += l1(z + at, t, r, weight * scale, dz + at); break;
        case CT_COSINE: sum += cosine(z + at, t, r, weight * scale, dz + at); break;
        }
    }
    return scale * sum;
}

void ct_class_sums(const float *features, const int32_t *labels, int n, size_t r, int n_classes,
                   float *sums) {
    memset(sums, 0, (size_t)n_classes * (r + 1) * sizeof *sums);
    for (int b = 0; b < n; b++) {
        const float *z = features + (size_t)b * r;
        float *sum = sums + (size_t)labels[b] * (r + 1);
        for (size_t k = 0; k < r; k++) sum[k] += z[k];
        sum[r] += 1.0f;
    }
}

/* zbar(c) = (own + received sums) / (own + received count); a class nobody has stays zero. */
static void class_means(const float *own, const float *received, int n_classes, size_t r,
                        float *means) {
    for (int c = 0; c < n_classes; c++) {
        const float *a = own + (size_t)c * (r + 1);
        const float *b = received + (size_t)c * (r + 1);
        double count = (double)a[r] + (double)b[r];
        for (size_t k = 0; k < r; k++)
            means[(size_t)c * r + k] =
                count > 0 ? (float)(((double)a[k] + (double)b[k]) / count) : 0.0f;
    }
}

void ct_ccl(const ct_loss_spec *spec, const ct_ccl_batch *batch, float *scratch, float *dz,
            double *terms) {
    const ct_ccl_batch *d = batch;
    float *own = scratch;
    float *means = scratch + (size_t)d->n_classes * (d->r + 1);
    memset(dz, 0, (size_t)d->n * d->r * sizeof *dz);

    /* L_mv = sum over the neighbours of D(z_ii, z_ji) */
    terms[CT_LOSS_MV] = 0;
    int n_some = ct_cross_samples(spec, d->n);
    for (int j = 0; j < d->n_cross; j++)
        terms[CT_LOSS_MV] += ct_distance_to(spec, d->z, d->cross + (size_t)j * d->cross_stride,
                                            NULL, n_some, d->r, spec->lambda_m, dz);

    /* L_dv = D(z_ii, zbar(y)) */
    ct_class_sums(d->z, d->labels, d->n, d->r, d->n_classes, own);
    class_means(own, d->received, d->n_classes, d->r, means);
    terms[CT_LOSS_DV] =
        ct_distance_to(spec, d->z, means, d->labels, d->n, d->r, spec->lambda_d, dz);
}
