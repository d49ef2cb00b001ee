/* Model files with random weights, written as a run writes them. */
#ifndef CT_TESTS_MODELS_H
#define CT_TESTS_MODELS_H

#include "model/facts.h"
#include "model/weights.h"
#include "nn/graph.h"
#include "test.h"
#include "util/memory.h"
#include "util/rng.h"

static const float test_mean[3] = {0.485f, 0.456f, 0.406f};
static const float test_deviation[3] = {0.229f, 0.224f, 0.225f};

static inline ct_model_facts model_facts(const char *network, const char *norm, int channels,
                                         int side) {
    return (ct_model_facts){.network = network,
                            .norm = norm,
                            .channels = channels,
                            .height = side,
                            .width = side,
                            .mean = test_mean,
                            .deviation = test_deviation,
                            .n_classes = 10};
}

/* Start values and statistics a little off: 1 and 0 would hide what is left out. */
static inline void disturb(ct_rng *rng, const ct_param *params, int n, float *row) {
    for (int p = 0; p < n; p++) {
        if (params[p].init != CT_INIT_ONE && params[p].init != CT_INIT_ZERO) continue;
        for (size_t k = 0; k < params[p].count; k++)
            row[params[p].offset + k] += 0.2f * (float)ct_rng_uniform(rng);
    }
}

/* Tensors of `graph` and notes of `facts` (NULL: none) into a file; names are prefix + name. */
static inline ct_status model_write_as(const char *path, const ct_model_facts *facts,
                                       const ct_model_facts *said, const char *prefix,
                                       unsigned seed) {
    CT_SCOPED(ct_graph) g = {0};
    CT_SCOPED(ct_fact_notes) notes = {.n = 0};
    CT_SCOPED_BLOCK(float) row = NULL;
    CT_SCOPED_BLOCK(float) running = NULL;
    CT_SCOPED_BLOCK(ct_tensor) tensors = NULL;
    ct_rng rng;
    ct_model_spec spec = {facts->network,
                          {facts->channels, facts->height, facts->width},
                          facts->n_classes,
                          facts->norm};
    CT_TRY(ct_graph_create(&spec, &g));
    size_t n = (size_t)(g.n_params + g.n_buffers);
    CT_TRY(ct_make(&row, g.n_weights, "a model"));
    CT_TRY(ct_make(&running, g.n_buffer_values, "a model"));
    CT_TRY(ct_make(&tensors, n, "a model"));
    ct_rng_init(&rng, seed, CT_RNG_SYNTHETIC, 1, 2, 3);
    ct_init_params(&g, seed, row);
    ct_init_buffers(&g, running);
    disturb(&rng, g.params, g.n_params, row);
    disturb(&rng, g.buffers, g.n_buffers, running);
    ct_status status = said != NULL ? ct_facts_write(said, &notes) : CT_OK;
    if (status == CT_OK) status = ct_weights_describe(&g, prefix, row, running, tensors);
    if (status == CT_OK) status = ct_tensors_write_noted(path, tensors, n, notes.notes, notes.n);
    for (size_t t = 0; t < n; t++) ct_free(tensors[t].name);
    return status;
}

static inline ct_status model_write(const char *path, const ct_model_facts *facts, unsigned seed) {
    return model_write_as(path, facts, facts, "", seed);
}

static inline ct_status model_open_on(const char *path, const char *device, int n_threads,
                                      ct_model **out) {
    ct_model_options options = CT_MODEL_OPTIONS;
    options.device = device;
    options.n_threads = n_threads;
    return ct_model_load(path, &options, out);
}

static inline void random_pixels(uint8_t *pixels, size_t n, unsigned seed) {
    ct_rng rng;
    ct_rng_init(&rng, seed, CT_RNG_SYNTHETIC, 4, 5, 6);
    for (size_t k = 0; k < n; k++) pixels[k] = (uint8_t)ct_rng_below(&rng, 256);
}

static inline double largest_difference(const float *a, const float *b, size_t n) {
    double largest = 0;
    for (size_t k = 0; k < n; k++)
        largest =
            isnan(a[k]) || isnan(b[k]) ? INFINITY : fmax(largest, fabs((double)(a[k] - b[k])));
    return largest;
}

#endif
