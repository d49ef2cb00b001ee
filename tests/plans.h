/* What tests of a backend's plans share: pictures, banks, small graphs, norms of errors. */
#ifndef CT_TESTS_PLANS_H
#define CT_TESTS_PLANS_H

#include <stdint.h>
#include <stdlib.h>

#include "backend/backend.h"
#include "nn/graph.h"
#include "test.h"
#include "util/memory.h"
#include "util/rng.h"

enum { N_IMAGES = 80 };

static inline void fill(float *x, size_t n, double scale, uint32_t index) {
    ct_rng rng;
    ct_rng_init(&rng, 7, CT_RNG_TEST, 0, 0, index);
    for (size_t k = 0; k < n; k++) x[k] = (float)(scale * ct_rng_normal(&rng));
}

static inline ct_images make_images(ct_shape s, int n_classes) {
    ct_images images = {.n = N_IMAGES, .channels = s.c, .height = s.h, .width = s.w};
    size_t count = images.n * ct_shape_size(s);
    images.pixels = ct_new(uint8_t, count);
    images.labels = ct_new(int32_t, images.n);
    ct_rng rng;
    ct_rng_init(&rng, 8, CT_RNG_TEST, 0, 0, 0);
    for (size_t k = 0; k < count; k++) images.pixels[k] = (uint8_t)ct_rng_below(&rng, 256);
    for (size_t k = 0; k < images.n; k++)
        images.labels[k] = (int32_t)ct_rng_below(&rng, (uint32_t)n_classes);
    return images;
}

static inline void free_images(ct_images *images) {
    ct_free(images->pixels);
    ct_free(images->labels);
}

static inline ct_status make_source(ct_backend *backend, const ct_images *images, ct_source **out) {
    float mean[CT_MAX_CHANNELS], std[CT_MAX_CHANNELS];
    for (int c = 0; c < CT_MAX_CHANNELS; c++) mean[c] = 0.4f + 0.01f * (float)c, std[c] = 0.25f;
    return ct_source_create(backend, images, mean, std, out);
}

/* n samples, every `step`-th from `first` on, and crops for them. */
static inline void choose_samples(int n, int step, int first, uint32_t *index) {
    for (int k = 0; k < n; k++) index[k] = (uint32_t)(k * step + first) % N_IMAGES;
}
static inline void choose_crops(int n, ct_crop *crop) {
    for (int k = 0; k < n; k++)
        crop[k] = (ct_crop){(int8_t)(k % 5 - 2), (int8_t)(k % 7 - 3), (uint8_t)(k % 2), 0};
}

typedef struct banks {
    ct_bank params, buffers, features, sums, gradient, losses;
} banks;

/* n_models models and rows for the results of n_jobs jobs. */
static inline void create_banks(ct_backend *backend, const ct_graph *g, int n_models, int n_jobs,
                                int max_batch, banks *b) {
    size_t r = ct_graph_n_features(g), n_classes = (size_t)g->n_classes;
    CHECK_OK(ct_bank_create(backend, n_models, 0, g->n_weights, &b->params));
    CHECK_OK(ct_bank_create(backend, n_models, 0, g->n_buffer_values + 1, &b->buffers));
    CHECK_OK(ct_bank_create(backend, n_jobs, 0, (size_t)max_batch * r, &b->features));
    CHECK_OK(ct_bank_create(backend, n_jobs, 0, n_classes * (r + 1), &b->sums));
    CHECK_OK(ct_bank_create(backend, n_jobs, 0, g->n_weights, &b->gradient));
    CHECK_OK(ct_bank_create(backend, n_jobs, 0, CT_LOSS_FIELDS + 1, &b->losses));
}

static inline void free_banks(banks *b) {
    ct_bank_free(&b->params);
    ct_bank_free(&b->buffers);
    ct_bank_free(&b->features);
    ct_bank_free(&b->sums);
    ct_bank_free(&b->gradient);
    ct_bank_free(&b->losses);
}

/* All rows, [n_rows][n]. */
static inline float *read_bank(const ct_bank *bank) {
    float *out = ct_new(float, (size_t)bank->n_rows * bank->n + 1);
    for (int i = 0; i < bank->n_rows; i++)
        CHECK_OK(ct_bank_read(bank, i, 0, bank->n, out + (size_t)i * bank->n));
    return out;
}

static inline double norm_of(const float *x, size_t n) {
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += (double)x[k] * (double)x[k];
    return sqrt(sum);
}

/* |a - b| / |b|, where |b| counts as `floor` at least. */
static inline double error_of(const float *a, const float *b, size_t n, double floor) {
    double sum = 0;
    for (size_t k = 0; k < n; k++) {
        double d = (double)a[k] - (double)b[k];
        sum += d * d;
    }
    double scale = norm_of(b, n);
    if (scale < floor) scale = floor;
    double error = scale > 0 ? sqrt(sum) / scale : sqrt(sum);
    return error == error ? error : INFINITY;
}

/* A graph of single nodes, and what every one of them ends with. */
static inline ct_graph begin_graph(const char *name, ct_shape shape) {
    ct_graph g = {.n_classes = 5, .features = -1};
    snprintf(g.model, sizeof g.model, "%s", name);
    ct_input(&g, shape);
    return g;
}

static inline void end_graph(ct_graph *g, int x) {
    x = ct_avgpool(g, x);
    ct_set_features(g, x);
    ct_linear(g, x, "fc", g->n_classes);
}

#endif
