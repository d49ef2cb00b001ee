/* Options about data, turned into a data set. */
#include <string.h>

#include "run/run.h"

/* Made-up data sets and held-out test parts are the same for every --seed, like real ones. */
#define DATA_SEED 1

static const char *given(const char *text) {
    return text[0] != '\0' ? text : NULL;
}

static ct_dataset_options options_of(const ct_config *c) {
    return (ct_dataset_options){.dir = given(c->data_dir),
                                .seed = DATA_SEED,
                                .n_train = (size_t)c->train_samples,
                                .n_test = (size_t)c->test_samples,
                                .coarse_labels = strcmp(c->labels, "coarse") == 0,
                                .test_fraction = c->test_fraction,
                                .image_size = (int)c->image_size,
                                .augment = c->augment,
                                .strict = c->strict,
                                .n_workers = (int)c->workers,
                                .memory_bytes = (size_t)c->memory << 20,
                                .cache = given(c->cache)};
}

ct_status ct_run_name_data(ct_config *c) {
    const char *name;
    if (strcmp(c->labels, "fine") != 0 && strcmp(c->labels, "coarse") != 0)
        return ct_fail(CT_INVAL, "--labels: no '%s'; known: fine, coarse", c->labels);
    if (strcmp(c->dataset, "auto") != 0) return CT_OK;
    ct_dataset_options options = options_of(c);
    CT_TRY(ct_dataset_recognise(&options, &name));
    snprintf(c->dataset, sizeof c->dataset, "%s", name);
    return CT_OK;
}

static void keep_first(ct_images *images, int64_t n) {
    if (n > 0 && (size_t)n < images->n) images->n = (size_t)n;
}

ct_status ct_run_open_data(const ct_config *c, ct_dataset *out) {
    ct_dataset_options options = options_of(c);
    CT_TRY(ct_dataset_open(c->dataset, &options, out));
    keep_first(&out->train, c->train_samples);
    keep_first(&out->test, c->test_samples);
    return CT_OK;
}
