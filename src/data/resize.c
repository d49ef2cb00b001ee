/* Along rows first, rounded to 8 bits, then along columns:
 *   out(x)  = sum_i w(x, i) in(i)
 *   w(x, i) = t((i + 1/2 - c_x) / s) / sum_i t((i + 1/2 - c_x) / s)
 *   t(u)    = max(0, 1 - |u|)
 *   c_x     = (x + 1/2) * n_in / n_out, the middle of output pixel x on the input
 *   s       = max(1, n_in / n_out)
 * Weights are rounded to 22 bits. */
#include "data/resize.h"

#include <math.h>
#include <string.h>

#include "util/memory.h"
#include "util/vectors.h"

#define BITS 22

/* One and two pixels of 32 bits a channel. */
typedef int32_t half_lanes __attribute__((vector_size(16)));
typedef int32_t lanes __attribute__((vector_size(32)));
#define N_LANES 8

static ct_status axis_reserve(ct_axis *a) {
    size_t n = (size_t)a->n_out;
    CT_TRY(ct_reserve(&a->first, &a->capacity_n, 2 * n, "a smaller picture"));
    a->n = a->first + n;
    return ct_reserve(&a->weight, &a->capacity_weight, n * (size_t)a->n_taps * CT_PIXEL,
                      "a smaller picture");
}

static double triangle(double u) {
    u = fabs(u);
    return u < 1 ? 1 - u : 0;
}

/* The weights of output coordinate k. */
static void axis_fill(ct_axis *a, double scale, double stretch, int k) {
    double center = (k + 0.5) * scale, sum = 0;
    int first = (int)(center - stretch + 0.5), end = (int)(center + stretch + 0.5);
    if (first < 0) first = 0;
    if (end > a->n_in) end = a->n_in;
    int32_t *weight = a->weight + (size_t)k * (size_t)a->n_taps * CT_PIXEL;
    double inverse = 1.0 / stretch;
    for (int i = first; i < end; i++) sum += triangle((i - center + 0.5) * inverse);
    for (int i = first; i < end; i++) {
        double w = triangle((i - center + 0.5) * inverse) / sum;
        for (int c = 0; c < CT_PIXEL; c++) *weight++ = (int32_t)(0.5 + w * (1 << BITS));
    }
    for (int i = end - first; i < a->n_taps; i++)
        for (int c = 0; c < CT_PIXEL; c++) *weight++ = 0;
    a->first[k] = first;
    a->n[k] = end - first;
}

static ct_status axis_begin(ct_axis *a, int n_in, double span, int n_out) {
    double scale = span / n_out, stretch = scale < 1 ? 1 : scale;
    a->n_in = n_in;
    a->n_out = n_out;
    a->n_taps = (int)ceil(stretch) * 2 + 2;
    CT_TRY(axis_reserve(a));
    for (int k = 0; k < n_out; k++) axis_fill(a, scale, stretch, k);
    return CT_OK;
}

ct_status ct_resizer_begin(ct_resizer *r, int in_width, int in_height, double span_x, double span_y,
                           int out_width, int out_height) {
    CT_TRY(axis_begin(&r->x, in_width, span_x, out_width));
    CT_TRY(axis_begin(&r->y, in_height, span_y, out_height));
    CT_TRY(ct_reserve(&r->wide, &r->capacity_wide,
                      ((size_t)in_width + (size_t)out_width) * CT_PIXEL + (size_t)2 * N_LANES,
                      "a smaller picture"));
    return ct_reserve(&r->middle, &r->capacity, (size_t)in_height * (size_t)out_width * CT_PIXEL,
                      "a smaller picture");
}

/* Weights are not negative and add up to one, but for roundings of a few in 2^22: sums stay within
 * 8 bits. */
CT_TWICE static void mix_columns(const ct_axis *a, const uint8_t *row, int32_t *wide,
                                 uint8_t *out) {
    size_t n_in = (size_t)a->n_in * CT_PIXEL, n_out = (size_t)a->n_out * CT_PIXEL;
    int32_t *sums = wide + n_in + N_LANES;
    for (size_t i = 0; i < n_in; i++) wide[i] = row[i];
    for (size_t i = 0; i < N_LANES; i++) wide[n_in + i] = 0; /* read with zero weight */
    for (int x = 0; x < a->n_out; x++) {
        const int32_t *weight = a->weight + (size_t)x * (size_t)a->n_taps * CT_PIXEL;
        const int32_t *from = wide + (size_t)a->first[x] * CT_PIXEL;
        lanes sum = {0};
        for (int k = 0; k < a->n[x]; k += 2) {
            lanes p, w;
            memcpy(&p, from + (size_t)k * CT_PIXEL, sizeof p);
            memcpy(&w, weight + (size_t)k * CT_PIXEL, sizeof w);
            sum += p * w;
        }
        half_lanes low, high;
        memcpy(&low, &sum, sizeof low);
        memcpy(&high, (const char *)&sum + sizeof low, sizeof high);
        low += high;
        memcpy(sums + (size_t)x * CT_PIXEL, &low, sizeof low);
    }
    for (size_t i = 0; i < n_out; i++) out[i] = (uint8_t)((sums[i] + (1 << (BITS - 1))) >> BITS);
}

/* One output row of n bytes: the sum of input rows `stride` bytes apart. */
CT_TWICE static void mix_rows(const uint8_t *rows, size_t stride, const int32_t *weight, int n_rows,
                              size_t n, uint8_t *out) {
    enum { BLOCK = 64 };
    for (size_t at = 0; at < n; at += BLOCK) {
        int32_t sum[BLOCK];
        size_t n_here = n - at < BLOCK ? n - at : BLOCK;
        for (size_t i = 0; i < BLOCK; i++) sum[i] = 1 << (BITS - 1);
        for (int k = 0; k < n_rows; k++) {
            const uint8_t *from = rows + (size_t)k * stride + at;
            if (n_here == BLOCK)
                for (size_t i = 0; i < BLOCK; i++) sum[i] += from[i] * weight[k * CT_PIXEL];
            else
                for (size_t i = 0; i < n_here; i++) sum[i] += from[i] * weight[k * CT_PIXEL];
        }
        for (size_t i = 0; i < n_here; i++) out[at + i] = (uint8_t)(sum[i] >> BITS);
    }
}

static bool is_identity(const ct_axis *a) {
    return a->n_in == a->n_out && a->n_taps == 4 && a->n[0] == 1;
}

void ct_resizer_row(ct_resizer *r, int y, const uint8_t *row) {
    size_t width = (size_t)r->x.n_out * CT_PIXEL;
    uint8_t *out = r->middle + (size_t)y * width;
    if (is_identity(&r->x))
        memcpy(out, row, width);
    else
        mix_columns(&r->x, row, r->wide, out);
}

void ct_resizer_end(const ct_resizer *r, uint8_t *out) {
    size_t width = (size_t)r->x.n_out * CT_PIXEL;
    if (is_identity(&r->y)) {
        memcpy(out, r->middle, (size_t)r->y.n_out * width);
        return;
    }
    for (int y = 0; y < r->y.n_out; y++)
        mix_rows(r->middle + (size_t)r->y.first[y] * width, width,
                 r->y.weight + (size_t)y * (size_t)r->y.n_taps * CT_PIXEL, r->y.n[y], width,
                 out + (size_t)y * width);
}

static void axis_free(ct_axis *a) {
    ct_free(a->weight);
    ct_free(a->first);
}

void ct_resizer_free(ct_resizer *r) {
    ct_free(r->middle);
    ct_free(r->wide);
    axis_free(&r->y);
    axis_free(&r->x);
    *r = (ct_resizer){0};
}
