/* Random pixels and labels in the shapes of CIFAR-10 and CIFAR-100: nothing to learn, made for
 * measuring speed where no real data is at hand. */
#include "data/dataset_internal.h"

#include <stdio.h>

#include "util/rng.h"

enum { N_TRAIN = 4096, N_TEST = 512, CHANNELS = 3, SIDE = 32 };

static ct_status make_part(uint64_t seed, uint32_t part, size_t n, int n_classes, ct_images *out) {
    CT_TRY(ct_images_create(n, CHANNELS, SIDE, SIDE, out));
    for (size_t i = 0; i < n; i++) {
        ct_rng rng;
        ct_rng_init(&rng, seed, CT_RNG_SYNTHETIC, 1, part, (uint32_t)i);
        out->labels[i] = (int32_t)(i % (size_t)n_classes);
        uint8_t *pixels = out->pixels + i * (CHANNELS * SIDE * SIDE);
        for (int p = 0; p < CHANNELS * SIDE * SIDE; p++) pixels[p] = (uint8_t)ct_rng_u32(&rng);
    }
    return CT_OK;
}

static ct_status open_noise(const ct_dataset_options *options, int n_classes, ct_dataset *out) {
    size_t n_train = options->n_train > 0 ? options->n_train : N_TRAIN;
    size_t n_test = options->n_test > 0 ? options->n_test : N_TEST;
    CT_TRY(make_part(options->seed, 0, n_train, n_classes, &out->train));
    CT_TRY(make_part(options->seed, 1, n_test, n_classes, &out->test));
    out->n_classes = n_classes;
    for (int c = 0; c < CHANNELS; c++) out->mean[c] = out->std[c] = 0.5f;
    snprintf(out->source, sizeof out->source, "built in");
    return CT_OK;
}

ct_status ct_dataset_open_noise(const ct_dataset_options *options, ct_dataset *out) {
    return open_noise(options, 10, out);
}

ct_status ct_dataset_open_noise100(const ct_dataset_options *options, ct_dataset *out) {
    return open_noise(options, 100, out);
}
