/* Stripes: images of 8x8 pixels with vertical (class 0) or horizontal (class 1) stripes in noise. A
 * worked example for docs/ADDING.md; a set that reads files would look for them with
 * ct_data_dir() and ct_data_find(). */
#include "data/dataset_internal.h"

#include <stdio.h>

#include "util/rng.h"

enum { N_TRAIN = 400, N_TEST = 100, SIDE = 8 };

static ct_status draw(uint64_t seed, uint32_t part, size_t n, ct_images *out) {
    CT_TRY(ct_images_create(n, 1, SIDE, SIDE, out));
    for (size_t i = 0; i < n; i++) {
        ct_rng rng;
        ct_rng_init(&rng, seed, CT_RNG_SYNTHETIC, 2, part, (uint32_t)i);
        out->labels[i] = (int32_t)(i % 2);
        for (int p = 0; p < SIDE * SIDE; p++) {
            int along = out->labels[i] == 0 ? p % SIDE : p / SIDE;
            uint32_t stripe = along % 2 == 0 ? 60 : 120;
            out->pixels[i * SIDE * SIDE + (size_t)p] = (uint8_t)(stripe + ct_rng_below(&rng, 120));
        }
    }
    return CT_OK;
}

ct_status ct_dataset_open_stripes(const ct_dataset_options *options, ct_dataset *out) {
    CT_TRY(draw(options->seed, 0, N_TRAIN, &out->train));
    CT_TRY(draw(options->seed, 1, N_TEST, &out->test));
    out->n_classes = 2;
    out->mean[0] = out->std[0] = 0.5f;
    snprintf(out->source, sizeof out->source, "built in");
    return CT_OK;
}
