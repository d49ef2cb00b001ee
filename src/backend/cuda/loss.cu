/* What an agent minimises (src/loss, the equations are there), a warp a sample, sums in double.
 * Grid: x over samples, y = job. Small: a few hundred bytes a sample. */
#include "backend/cuda/device.cuh"

#include <math.h>

enum { THREADS = 256, WARPS = THREADS / 32 };
enum { /* CT_LOSS_* of loss.h */
#define TERM(id, name, axis, digits) id,
#include "loss/term_list.h"
#undef TERM
       CORRECT,
       FIELDS,
};

static dim3 grid_of(const cuda_run *run) {
    return dim3((unsigned)(run->n_max + WARPS - 1) / WARPS, (unsigned)run->n_jobs);
}

/* The warp's first largest logit. */
static __device__ int first_largest(const float *logits, int n_classes, int lane) {
    float value = -INFINITY;
    int best = n_classes;
    for (int c = lane; c < n_classes; c += 32)
        if (best == n_classes || logits[c] > value) value = logits[c], best = c;
    for (int k = 16; k > 0; k >>= 1) {
        float other = __shfl_xor_sync(0xffffffffu, value, k);
        int at = __shfl_xor_sync(0xffffffffu, best, k);
        bool wins =
            at < n_classes && (best == n_classes || other > value || (other == value && at < best));
        if (wins) value = other, best = at;
    }
    return best;
}

/* The warp's log of sum_c exp(z_c / T). */
static __device__ double soft_log_sum(const float *z, double largest, int n_classes, int lane,
                                      double temperature) {
    double sum = 0.0;
    for (int c = lane; c < n_classes; c += 32) sum += exp((z[c] - largest) / temperature);
    return log(warp_sum(sum)) + largest / temperature;
}

/* The row of a sample's soft targets; NULL: it has none. */
static __device__ const float *soft_row(const cuda_loss &loss, int b) {
    int row = loss.soft_dev != NULL ? loss.soft_row_dev[blockIdx.y] : -1;
    if (row < 0) return NULL;
    return loss.soft_dev + row * loss.soft_stride + (size_t)b * (loss.n_classes + 2);
}

/* dlogits = h / n dlogits' + s T / n (p - t), where dlogits' / n is what is there. */
static __device__ void add_soft(const cuda_loss &loss, const float *row, const float *z,
                                double largest, int lane, int n, float *dlogits) {
    double all = soft_log_sum(z, largest, loss.n_classes, lane, loss.temperature);
    double hard = row[loss.n_classes], soft = row[loss.n_classes + 1] * loss.temperature / n;
    for (int c = lane; c < loss.n_classes; c += 32)
        dlogits[c] =
            (float)(hard * dlogits[c] + soft * (exp(z[c] / loss.temperature - all) - row[c]));
}

static __global__ void entropy_kernel(const cuda_job *jobs, int n_max, cuda_loss loss,
                                      const float *logits, float *dlogits, double *samples,
                                      int *predictions) {
    int b = (int)(blockIdx.x * WARPS + threadIdx.x / 32), lane = threadIdx.x & 31;
    const cuda_job job = jobs[blockIdx.y];
    if (b >= job.n) return;
    size_t sample = (size_t)blockIdx.y * n_max + b;
    const float *z = logits + sample * loss.n_classes;
    int best = first_largest(z, loss.n_classes, lane), label = loss.labels_dev[sample];
    double largest = z[best], sum = 0.0, all = 0.0, part = loss.smoothing / loss.n_classes;
    for (int c = lane; c < loss.n_classes; c += 32) {
        sum += exp(z[c] - largest);
        all += part * z[c];
    }
    sum = warp_sum(sum), all = warp_sum(all);
    if (dlogits != NULL)
        for (int c = lane; c < loss.n_classes; c += 32)
            dlogits[sample * loss.n_classes + c] =
                (float)((exp(z[c] - largest) / sum -
                         ((1.0 - loss.smoothing) * (c == label) + part)) /
                        job.n);
    const float *row = soft_row(loss, b);
    if (row != NULL && dlogits != NULL)
        add_soft(loss, row, z, largest, lane, job.n, dlogits + sample * loss.n_classes);
    if (lane != 0) return;
    double hard = row != NULL ? row[loss.n_classes] : 1.0;
    samples[sample * FIELDS + CE] =
        hard * (log(sum) + largest - (1.0 - loss.smoothing) * z[label] - all);
    samples[sample * FIELDS + MV] = samples[sample * FIELDS + DV] = 0.0;
    samples[sample * FIELDS + CORRECT] = best == label;
    if (predictions != NULL) predictions[sample] = best;
}

ct_status ct_cuda_cross_entropy(const cuda_run *run, const cuda_loss *loss, const float *logits_dev,
                                float *dlogits_dev, double *samples_dev, int *predictions_dev) {
    return launch_kernel(run, entropy_kernel, grid_of(run), THREADS, 0, run->jobs_dev, run->n_max,
                         *loss, logits_dev, dlogits_dev, samples_dev, predictions_dev);
}

/* ct_soften(): a warp a sample. */
static __global__ void soften_kernel(const cuda_job *jobs, int n_max, int n_classes,
                                     double temperature, double hard, double soft,
                                     const float *logits, float *rows, size_t rows_stride) {
    int b = (int)(blockIdx.x * WARPS + threadIdx.x / 32), lane = threadIdx.x & 31;
    const cuda_job job = jobs[blockIdx.y];
    if (b >= job.n) return;
    const float *z = logits + ((size_t)blockIdx.y * n_max + b) * n_classes;
    float *row = rows + job.out * rows_stride + (size_t)b * (n_classes + 2);
    double all =
        soft_log_sum(z, z[first_largest(z, n_classes, lane)], n_classes, lane, temperature);
    for (int c = lane; c < n_classes; c += 32) row[c] = (float)exp(z[c] / temperature - all);
    if (lane != 0) return;
    row[n_classes] = (float)hard;
    row[n_classes + 1] = (float)soft;
}

ct_status ct_cuda_soften_logits(const cuda_run *run, int n_classes, double temperature, double hard,
                                double soft, const float *logits_dev, float *rows_dev,
                                size_t rows_stride) {
    return launch_kernel(run, soften_kernel, grid_of(run), THREADS, 0, run->jobs_dev, run->n_max,
                         n_classes, temperature, hard, soft, logits_dev, rows_dev, rows_stride);
}

enum { FEATURES = 64, CLASSES = 128 }; /* a block of the class sums: 32 KB of shared memory */
enum { AHEAD = 16 };                   /* samples on their way at a time */

/* sums[c][k] = sum over the samples of class c of feature k, in the order of the samples; column r
 * counts them. Grid: x over blocks of FEATURES of the r + 1 columns, y = job. With `features`, the
 * features go there too, without gaps. Rows by job.out, or by job where `by_job`. */
static __global__ void class_kernel(const cuda_job *jobs, int n_max, cuda_loss loss, const float *z,
                                    float *features, size_t features_stride, float *sums,
                                    size_t sums_stride, bool by_job) {
    __shared__ float table[CLASSES][FEATURES];
    const cuda_job job = jobs[blockIdx.y];
    int r = loss.channels * loss.pixels, k = (int)(blockIdx.x * FEATURES + threadIdx.x);
    if (k > r) return; /* threads share nothing: no barrier below */
    int row = by_job ? (int)blockIdx.y : job.out;
    const int32_t *labels = loss.labels_dev + (size_t)blockIdx.y * n_max;
    const float *zk = z + (size_t)blockIdx.y * n_max * r;
    int from = k < r ? k % loss.pixels * loss.channels + k / loss.pixels : 0;
    float *out = sums + row * sums_stride;
    for (int first = 0; first < loss.n_classes; first += CLASSES) {
        int n = min((int)CLASSES, loss.n_classes - first);
        for (int c = 0; c < n; c++) table[c][threadIdx.x] = 0.0f;
        for (int b0 = 0; b0 < job.n; b0 += AHEAD) {
            float value[AHEAD];
            int class_of[AHEAD];
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                int b = min(b0 + i, job.n - 1);
                value[i] = k < r ? zk[(size_t)b * r + from] : 1.0f;
                class_of[i] = labels[b] - first;
            }
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                if (b0 + i >= job.n) break;
                int c = class_of[i];
                if (c >= 0 && c < n) table[c][threadIdx.x] += value[i];
                if (features != NULL && first == 0 && k < r)
                    features[row * features_stride + (size_t)(b0 + i) * r + k] = value[i];
            }
        }
        for (int c = 0; c < n; c++) out[(size_t)(first + c) * (r + 1) + k] = table[c][threadIdx.x];
    }
}

static ct_status class_sums(const cuda_run *run, const cuda_loss *loss, const float *z_dev,
                            float *features_dev, size_t features_stride, float *sums_dev,
                            size_t sums_stride, bool by_job) {
    unsigned columns = (unsigned)(loss->channels * loss->pixels + 1);
    dim3 grid((columns + FEATURES - 1) / FEATURES, (unsigned)run->n_jobs);
    return launch_kernel(run, class_kernel, grid, FEATURES, 0, run->jobs_dev, run->n_max, *loss,
                         z_dev, features_dev, features_stride, sums_dev, sums_stride, by_job);
}

ct_status ct_cuda_take_features(const cuda_run *run, const cuda_loss *loss, const float *z_dev,
                                float *features_dev, size_t features_stride, float *sums_dev,
                                size_t sums_stride) {
    return class_sums(run, loss, z_dev, features_dev, features_stride, sums_dev, sums_stride,
                      false);
}

/* What a sample's features are compared with: a neighbour's, or its class' mean. */
typedef struct target {
    const float *data;           /* [r] neighbour's features; NULL: the mean */
    const float *own, *received; /* [r + 1] sums of the class */
} target;

static __device__ __forceinline__ double target_value(const target &t, int k, double count) {
    if (t.data != NULL) return t.data[k];
    return count > 0 ? (double)(float)(((double)t.own[k] + (double)t.received[k]) / count) : 0.0;
}

/* The warp's distance D(z, t) of one sample, unscaled; adds weight * dD/dz to dz. */
static __device__ double distance(const cuda_loss &loss, const float *z, const target &t, int lane,
                                  double weight, float *dz) {
    int r = loss.channels * loss.pixels;
    double count = t.data == NULL ? (double)t.own[r] + (double)t.received[r] : 0.0;
    double sum = 0.0, zz = 0.0, tt = 0.0, zt = 0.0;
    for (int k = lane; k < r; k += 32) {
        int at = k % loss.pixels * loss.channels + k / loss.pixels;
        double v = target_value(t, k, count), d = z[at] - v;
        if (loss.distance == 0) {
            sum += d * d;
            dz[at] += (float)(weight * 2.0 * d);
        } else if (loss.distance == 1) {
            sum += fabs(d);
            dz[at] += (float)(weight * ((d > 0) - (d < 0)));
        } else {
            zz += (double)z[at] * z[at], tt += v * v, zt += z[at] * v;
        }
    }
    if (loss.distance != 2) return warp_sum(sum);
    zz = warp_sum(zz), tt = warp_sum(tt), zt = warp_sum(zt);
    double norms = sqrt(zz) * sqrt(tt);
    if (norms < 1e-8) return 1.0;
    for (int k = lane; k < r; k += 32) {
        int at = k % loss.pixels * loss.channels + k / loss.pixels;
        double v = target_value(t, k, count);
        dz[at] += (float)(weight * (zt / norms * z[at] / zz - v / norms));
    }
    return 1.0 - zt / norms;
}

/* ct_cross_samples() */
static __device__ int cross_samples(const cuda_loss &loss, int n) {
    if (loss.cross_fraction <= 0.0 || loss.cross_fraction >= 1.0) return n;
    return max(1, (int)(loss.cross_fraction * n + 0.999999));
}

static __global__ void contrast_kernel(const cuda_job *jobs, int n_max, cuda_loss loss,
                                       cuda_contrast contrast, const float *z, double *samples,
                                       float *dz) {
    int b = (int)(blockIdx.x * WARPS + threadIdx.x / 32), lane = threadIdx.x & 31;
    const cuda_job job = jobs[blockIdx.y];
    if (b >= job.n) return;
    int r = loss.channels * loss.pixels;
    size_t sample = (size_t)blockIdx.y * n_max + b, row = (size_t)loss.labels_dev[sample] * (r + 1);
    const float *zs = z + sample * r;
    float *ds = dz + sample * r;
    double share = loss.distance != 2 && !loss.sum_features ? 1.0 / r : 1.0;
    double scale = share / job.n, mv = 0.0, dv = 0.0, lambda_m = loss.lambda_m;
    double lambda_d = loss.lambda_d, part = (double)job.n / cross_samples(loss, job.n);
    if (loss.lambdas_dev != NULL) {
        lambda_m = loss.lambdas_dev[job.out * loss.lambdas_stride];
        lambda_d = loss.lambdas_dev[job.out * loss.lambdas_stride + 1];
    }
    for (int k = lane; k < r; k += 32) ds[k % loss.pixels * loss.channels + k / loss.pixels] = 0.0f;
    int first = contrast.cross_begin_dev[blockIdx.y], last = first;
    if (b < cross_samples(loss, job.n)) last = contrast.cross_begin_dev[blockIdx.y + 1];
    for (int e = first; e < last; e++) {
        target t = {contrast.cross_dev + e * contrast.cross_stride + (size_t)b * r, NULL, NULL};
        mv += distance(loss, zs, t, lane, lambda_m * scale * part, ds);
    }
    target mean = {NULL, contrast.own_dev + (size_t)blockIdx.y * loss.n_classes * (r + 1) + row,
                   contrast.received_dev + job.out * contrast.received_stride + row};
    dv = distance(loss, zs, mean, lane, lambda_d * scale, ds);
    if (lane != 0) return;
    samples[sample * FIELDS + MV] = share * mv * part;
    samples[sample * FIELDS + DV] = share * dv;
}

ct_status ct_cuda_own_sums(const cuda_run *run, const cuda_loss *loss,
                           const cuda_contrast *contrast, const float *z_dev) {
    size_t columns = (size_t)loss->n_classes * (size_t)(loss->channels * loss->pixels + 1);
    return class_sums(run, loss, z_dev, NULL, 0, contrast->own_dev, columns, true);
}

ct_status ct_cuda_contrast(const cuda_run *run, const cuda_loss *loss,
                           const cuda_contrast *contrast, const float *z_dev, double *samples_dev,
                           float *dz_dev) {
    return launch_kernel(run, contrast_kernel, grid_of(run), THREADS, 0, run->jobs_dev, run->n_max,
                         *loss, *contrast, z_dev, samples_dev, dz_dev);
}

/* One warp a job; lanes take samples in turn. */
static __global__ void sums_kernel(const cuda_job *jobs, int n_max, const double *samples,
                                   float *losses, size_t losses_stride, const size_t *column,
                                   double *scores) {
    const cuda_job job = jobs[blockIdx.x];
    double sums[FIELDS] = {};
    for (int b = (int)threadIdx.x; b < job.n; b += 32)
        for (int f = 0; f < FIELDS; f++)
            sums[f] += samples[((size_t)blockIdx.x * n_max + b) * FIELDS + f];
    for (int f = 0; f < FIELDS; f++) sums[f] = warp_sum(sums[f]);
    if (threadIdx.x != 0) return;
    if (scores != NULL) {
        scores[2 * blockIdx.x] = sums[CE];
        scores[2 * blockIdx.x + 1] = sums[CORRECT];
    }
    if (losses == NULL) return;
    float *out = losses + job.out * losses_stride + *column;
    for (int f = 0; f < FIELDS; f++) out[f] = (float)(f == CORRECT ? sums[f] : sums[f] / job.n);
}

ct_status ct_cuda_loss_sums(const cuda_run *run, const double *samples_dev, float *losses_dev,
                            size_t losses_stride, const size_t *column_dev, double *scores_dev) {
    return launch_kernel(run, sums_kernel, (unsigned)run->n_jobs, 32, 0, run->jobs_dev, run->n_max,
                         samples_dev, losses_dev, losses_stride, column_dev, scores_dev);
}
