/* Normalisation layers, one group of one sample (batchnorm: one channel of the batch) at a time.
 *   EvoNorm-S0 (Liu et al. 2020):  y = x s(x) / sigma * w + b,   sigma = sqrt(var_g(x) + eps)
 *     s(x) = clamp(x/6 + 1/2, 0, 1)  or  sigmoid(v x);  var over (channels of the group, H, W),
 * biased GroupNorm (Wu and He 2018):    y = (x - mean_g) / sigma * w + b BatchNorm (Ioffe and
 * Szegedy 2015): the same with statistics of a channel over the batch With n values in a group and
 * q = d(loss)/d(numerator / sigma): d sigma = -sum(q * numerator) / sigma^2,  d sigma / d x = (x -
 * mean) / (n sigma) */
#include "backend/ref/ref_internal.h"

#include <math.h>

typedef struct moments {
    double mean, var;
} moments;

static moments measure(const double *x, size_t n) {
    moments m = {0, 0};
    for (size_t k = 0; k < n; k++) m.mean += x[k];
    m.mean /= (double)n;
    for (size_t k = 0; k < n; k++) m.var += (x[k] - m.mean) * (x[k] - m.mean);
    m.var /= (double)n;
    return m;
}

/* x s(x) and its derivative; `v` is NULL for the hard sigmoid, else the channel's slope. */
static double gated(double x, const double *v, double *dx, double *dv) {
    double s = 0, ds = 0;
    if (v == NULL) {
        s = fmin(fmax(x / 6 + 0.5, 0), 1);
        ds = s > 0 && s < 1 ? 1.0 / 6 : 0;
        *dv = 0;
    } else {
        s = 1 / (1 + exp(-*v * x));
        ds = *v * s * (1 - s);
        *dv = x * x * s * (1 - s);
    }
    *dx = s + x * ds;
    return x * s;
}

/* One (sample, group) of EvoNorm: channels first .. first+n_channels-1 from element `at` on. */
static void evonorm_group(const ref_call *c, size_t at, int first, int n_channels,
                          bool is_forward) {
    const ct_node *node = c->node;
    size_t plane = (size_t)c->shape.h * (size_t)c->shape.w, n = plane * (size_t)n_channels;
    const double *x = c->in[0] + at, *w = ref_param(c, node->weight);
    const double *bias = ref_param(c, node->bias);
    const double *v = node->slope == CT_NO_PARAM ? NULL : ref_param(c, node->slope);
    moments m = measure(x, n);
    double sigma = sqrt(m.var + CT_NORM_EPSILON), dsigma = 0, dx, dv;
    for (size_t k = 0; k < n; k++) {
        size_t ch = (size_t)first + k / plane;
        double numerator = gated(x[k], v != NULL ? &v[ch] : NULL, &dx, &dv);
        if (is_forward) {
            c->out[at + k] = numerator / sigma * w[ch] + bias[ch];
            continue;
        }
        double dy = c->dout[at + k], q = dy * w[ch];
        ref_dparam(c, node->weight)[ch] += dy * numerator / sigma;
        ref_dparam(c, node->bias)[ch] += dy;
        if (v != NULL) ref_dparam(c, node->slope)[ch] += q * dv / sigma;
        c->din[0][at + k] += q * dx / sigma;
        dsigma -= q * numerator / (sigma * sigma);
    }
    if (is_forward) return;
    for (size_t k = 0; k < n; k++)
        c->din[0][at + k] += dsigma * (x[k] - m.mean) / ((double)n * sigma);
}

/* One group of GroupNorm: y = (x - mean) / sigma * w + b. */
static void groupnorm_group(const ref_call *c, size_t at, int first, int n_channels,
                            bool is_forward) {
    const ct_node *node = c->node;
    size_t plane = (size_t)c->shape.h * (size_t)c->shape.w, n = plane * (size_t)n_channels;
    const double *x = c->in[0] + at, *w = ref_param(c, node->weight);
    const double *bias = ref_param(c, node->bias);
    moments m = measure(x, n);
    double sigma = sqrt(m.var + CT_NORM_EPSILON), sum_q = 0, sum_qh = 0;
    for (size_t k = 0; k < n; k++) {
        size_t ch = (size_t)first + k / plane;
        double h = (x[k] - m.mean) / sigma;
        if (is_forward) {
            c->out[at + k] = h * w[ch] + bias[ch];
            continue;
        }
        double dy = c->dout[at + k];
        ref_dparam(c, node->weight)[ch] += dy * h;
        ref_dparam(c, node->bias)[ch] += dy;
        sum_q += dy * w[ch];
        sum_qh += dy * w[ch] * h;
    }
    if (is_forward) return;
    for (size_t k = 0; k < n; k++) {
        double h = (x[k] - m.mean) / sigma, q = c->dout[at + k] * w[(size_t)first + k / plane];
        c->din[0][at + k] += (q - sum_q / (double)n - h * sum_qh / (double)n) / sigma;
    }
}

typedef void (*group_function)(const ref_call *c, size_t at, int first, int n_channels,
                               bool is_forward);

static void each_group(const ref_call *c, group_function group, bool is_forward) {
    int n_channels = c->shape.c / c->node->groups;
    size_t plane = (size_t)c->shape.h * (size_t)c->shape.w;
    for (int b = 0; b < c->n; b++)
        for (int g = 0; g < c->node->groups; g++)
            group(c, ((size_t)b * (size_t)c->shape.c + (size_t)(g * n_channels)) * plane,
                  g * n_channels, n_channels, is_forward);
}

static void evonorm_forward(const ref_call *c) {
    each_group(c, evonorm_group, true);
}
static void evonorm_backward(const ref_call *c) {
    each_group(c, evonorm_group, false);
}
const ref_kernel ct_ref_evonorm = {evonorm_forward, evonorm_backward};

static void groupnorm_forward(const ref_call *c) {
    each_group(c, groupnorm_group, true);
}
static void groupnorm_backward(const ref_call *c) {
    each_group(c, groupnorm_group, false);
}
const ref_kernel ct_ref_groupnorm = {groupnorm_forward, groupnorm_backward};

/* Element k of channel ch over the batch. */
static size_t batch_element(const ref_call *c, size_t ch, size_t k) {
    size_t plane = (size_t)c->shape.h * (size_t)c->shape.w;
    return (k / plane * (size_t)c->shape.c + ch) * plane + k % plane;
}

static moments batch_moments(const ref_call *c, size_t ch, size_t n) {
    moments m = {0, 0};
    if (c->mode == REF_EVALUATE) {
        const float *running = c->buffers + c->node->buffer;
        return (moments){(double)running[ch], (double)running[(size_t)c->shape.c + ch]};
    }
    for (size_t k = 0; k < n; k++) m.mean += c->in[0][batch_element(c, ch, k)];
    m.mean /= (double)n;
    for (size_t k = 0; k < n; k++) {
        double d = c->in[0][batch_element(c, ch, k)] - m.mean;
        m.var += d * d;
    }
    m.var /= (double)n;
    return m;
}

/* The running variance is of the unbiased kind, as in PyTorch. */
static void move_running(const ref_call *c, size_t ch, moments m, size_t n) {
    float *mean = c->buffers + c->node->buffer + ch, *var = mean + c->shape.c;
    double unbiased = n > 1 ? m.var * (double)n / (double)(n - 1) : m.var;
    *mean = (float)((double)*mean + CT_BATCHNORM_MOMENTUM * (m.mean - (double)*mean));
    *var = (float)((double)*var + CT_BATCHNORM_MOMENTUM * (unbiased - (double)*var));
}

static void batchnorm_forward(const ref_call *c) {
    size_t n = (size_t)c->n * (size_t)c->shape.h * (size_t)c->shape.w;
    const double *w = ref_param(c, c->node->weight), *bias = ref_param(c, c->node->bias);
    for (size_t ch = 0; ch < (size_t)c->shape.c; ch++) {
        moments m = batch_moments(c, ch, n);
        double sigma = sqrt(m.var + CT_NORM_EPSILON);
        for (size_t k = 0; k < n; k++) {
            size_t at = batch_element(c, ch, k);
            c->out[at] = (c->in[0][at] - m.mean) / sigma * w[ch] + bias[ch];
        }
        if (c->mode == REF_TRAIN) move_running(c, ch, m, n);
    }
}

static void batchnorm_backward(const ref_call *c) {
    size_t n = (size_t)c->n * (size_t)c->shape.h * (size_t)c->shape.w;
    const double *w = ref_param(c, c->node->weight);
    for (size_t ch = 0; ch < (size_t)c->shape.c; ch++) {
        moments m = batch_moments(c, ch, n);
        double sigma = sqrt(m.var + CT_NORM_EPSILON), sum = 0, sum_h = 0;
        for (size_t k = 0; k < n; k++) {
            size_t at = batch_element(c, ch, k);
            sum += c->dout[at];
            sum_h += c->dout[at] * (c->in[0][at] - m.mean) / sigma;
        }
        ref_dparam(c, c->node->weight)[ch] += sum_h;
        ref_dparam(c, c->node->bias)[ch] += sum;
        for (size_t k = 0; k < n; k++) {
            size_t at = batch_element(c, ch, k);
            double h = (c->in[0][at] - m.mean) / sigma;
            c->din[0][at] +=
                w[ch] / sigma * (c->dout[at] - sum / (double)n - h * sum_h / (double)n);
        }
    }
}

const ref_kernel ct_ref_batchnorm = {batchnorm_forward, batchnorm_backward};
