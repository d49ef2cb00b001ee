/* Sets that are made up on the spot: sample i of a part has class i mod n_classes and a stream of
 * its own, so that a set with more samples begins with the samples of a smaller one. */
#include "data/dataset_internal.h"

static ct_status make_part(const ct_made_up *set, const ct_dataset *dataset, uint64_t seed,
                           uint32_t part, size_t n, ct_images *out) {
    size_t image = (size_t)set->channels * (size_t)set->side * (size_t)set->side;
    if (n > CT_MAX_MADE_UP_BYTES / image)
        return ct_fail(CT_INVAL, "%s: %zu samples are too many; at most %zu are made up",
                       dataset->name, n, CT_MAX_MADE_UP_BYTES / image);
    CT_TRY(ct_images_create(n, set->channels, set->side, set->side, out));
    for (size_t i = 0; i < n; i++) {
        ct_rng rng;
        ct_rng_init(&rng, seed, CT_RNG_SYNTHETIC, set->stream, part, (uint32_t)i);
        out->labels[i] = (int32_t)(i % (size_t)set->n_classes);
        set->draw(&rng, out->labels[i], out->pixels + i * ct_image_bytes(out));
    }
    return CT_OK;
}

ct_status ct_made_up_open(const ct_made_up *set, const ct_dataset_options *options,
                          ct_dataset *out) {
    size_t n_train = options->n_train > 0 ? options->n_train : set->n_train;
    size_t n_test = options->n_test > 0 ? options->n_test : set->n_test;
    CT_TRY(make_part(set, out, options->seed, 0, n_train, &out->train));
    CT_TRY(make_part(set, out, options->seed, 1, n_test, &out->test));
    out->n_classes = set->n_classes;
    for (int c = 0; c < set->channels; c++) out->mean[c] = out->std[c] = 0.5f;
    snprintf(out->source, sizeof out->source, "built in");
    return CT_OK;
}
