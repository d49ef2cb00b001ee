#include "data/dataset.h"

#include "data/dataset_internal.h"
#include "data/part.h"
#include "data/pictures.h"
#include "util/memory.h"
#include "util/registry.h"

#include <stdio.h>
#include <string.h>

typedef struct kind {
    const char *name, *text;
    ct_status (*open)(const ct_dataset_options *options, ct_dataset *out);
    bool (*probe)(const char *dir);
} kind;

static const kind kinds[] = {
#define DATASET(id, name, probe, text) {name, text, ct_dataset_open_##id, ct_dataset_probe_##probe},
#include "data/dataset_list.h"
#undef DATASET
};
static const size_t n_kinds = sizeof kinds / sizeof kinds[0];

void ct_dataset_each(void (*each)(void *context, const char *name, const char *text),
                     void *context) {
    for (size_t k = 0; k < n_kinds; k++) each(context, kinds[k].name, kinds[k].text);
}

bool ct_dataset_probe_never(const char *dir) {
    (void)dir;
    return false;
}

ct_status ct_dataset_recognise(const ct_dataset_options *options, const char **name) {
    if (options->dir == NULL)
        return ct_fail(CT_INVAL, "say which directory holds the data with @data-dir DIR");
    char whole[64] = "";
    if (ct_part_looks_right(options->dir)) CT_TRY(ct_part_name(options->dir, whole));
    for (size_t k = 0; k < n_kinds; k++) {
        bool found =
            whole[0] != '\0' ? strcmp(whole, kinds[k].name) == 0 : kinds[k].probe(options->dir);
        if (!found) continue;
        *name = kinds[k].name;
        return CT_OK;
    }
    return ct_fail(CT_IO,
                   "%s: no data that is known here: neither IDX, CIFAR or .npy files nor folders "
                   "of pictures; crosstalk list datasets",
                   options->dir);
}

ct_status ct_dataset_open(const char *name, const ct_dataset_options *options, ct_dataset *out) {
    const kind *found = NULL;
    if (strcmp(name, "auto") == 0) CT_TRY(ct_dataset_recognise(options, &name));
    for (size_t k = 0; k < n_kinds; k++)
        if (strcmp(kinds[k].name, name) == 0) found = &kinds[k];
    if (found == NULL) return ct_unknown_name("data set", name, NULL, ct_dataset_each);
    if (options->dir != NULL && ct_part_looks_right(options->dir))
        return ct_part_open(options->dir, found->name, options, out);

    ct_dataset dataset = {0};
    snprintf(dataset.name, sizeof dataset.name, "%s", found->name);
    ct_status status = found->open(options, &dataset);
    if (status != CT_OK) {
        ct_dataset_free(&dataset);
        return status;
    }
    *out = dataset;
    return CT_OK;
}

void ct_dataset_free(ct_dataset *dataset) {
    ct_pictures_free(&dataset->test_pictures);
    ct_pictures_free(&dataset->train_pictures);
    ct_images_free(&dataset->test);
    ct_images_free(&dataset->train);
    ct_free(dataset->class_names);
    ct_free(dataset->train_numbers);
    *dataset = (ct_dataset){0};
}

ct_status ct_images_create(size_t n, int channels, int height, int width, ct_images *out) {
    ct_images images = {.n = n, .channels = channels, .height = height, .width = width};
    images.pixels = ct_alloc(n, (size_t)channels * (size_t)height * (size_t)width);
    images.labels = ct_new(int32_t, n);
    if (images.pixels == NULL || images.labels == NULL) {
        ct_images_free(&images);
        return ct_fail(CT_NOMEM, "no memory for %zu images of %dx%dx%d", n, channels, height,
                       width);
    }
    *out = images;
    return CT_OK;
}

void ct_images_free(ct_images *images) {
    ct_free(images->labels);
    ct_free(images->pixels);
    *images = (ct_images){0};
}

ct_status ct_labels_check(const char *path, const int32_t *labels, size_t n, int n_classes) {
    for (size_t i = 0; i < n; i++)
        if (labels[i] < 0 || labels[i] >= n_classes)
            return ct_fail(CT_IO, "%s: label %d of sample %zu is not one of 0..%d", path,
                           (int)labels[i], i, n_classes - 1);
    return CT_OK;
}

const char *ct_dataset_class_name(const ct_dataset *dataset, int label) {
    const char *name = dataset->class_names;
    if (name == NULL || label < 0 || label >= dataset->n_classes) return "";
    for (int k = 0; k < label; k++) name += strlen(name) + 1;
    return name;
}
