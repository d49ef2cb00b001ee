/* Sets whose parts are a file of images and a file of labels each. */
#include "data/dataset_internal.h"

#include "util/memory.h"

#include <stdio.h>

ct_status ct_pair_read(const char *dir, const char *const *names, const char *hint,
                       const ct_pair_format *format, const ct_dataset *dataset, ct_images *out) {
    ct_path path;
    CT_SCOPED(ct_blob) images = {0};
    CT_TRY(ct_data_read(dir, names[0], hint, &path, &images));
    CT_TRY(format->images(path.text, &images, out));
    ct_blob_free(&images);
    CT_SCOPED(ct_blob) labels = {0};
    CT_TRY(ct_data_read(dir, names[1], hint, &path, &labels));
    CT_TRY(format->labels(path.text, &labels, out));
    if (dataset->n_classes == 0) return CT_OK;
    return ct_labels_check(path.text, out->labels, out->n, dataset->n_classes);
}

int ct_images_classes(const ct_images *images) {
    int largest = 0;
    for (size_t i = 0; i < images->n; i++)
        if (images->labels[i] > largest) largest = images->labels[i];
    return largest + 1;
}

ct_status ct_pairs_check(const char *dir, ct_dataset *d) {
    const ct_images *a = &d->train, *b = &d->test;
    if (a->channels != b->channels || a->height != b->height || a->width != b->width)
        return ct_fail(CT_IO, "%s: training images are %dx%dx%d but test images %dx%dx%d", dir,
                       a->channels, a->height, a->width, b->channels, b->height, b->width);
    int n_train = ct_images_classes(a), n_test = ct_images_classes(b);
    if (d->n_classes == 0) d->n_classes = n_train > n_test ? n_train : n_test;
    if (d->n_classes < 2) d->n_classes = 2; /* as many as a loss needs */
    snprintf(d->source, sizeof d->source, "%s", dir);
    return CT_OK;
}
