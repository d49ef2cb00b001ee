#include "data/dataset.h"

#include "data/dataset_internal.h"
#include "util/file.h"
#include "util/memory.h"
#include "util/text.h"

#include <stdio.h>
#include <string.h>

typedef struct kind {
    const char *name, *text;
    ct_status (*open)(const ct_dataset_options *options, ct_dataset *out);
} kind;

static const kind kinds[] = {
#define DATASET(id, name, text) {name, text, ct_dataset_open_##id},
#include "data/dataset_list.h"
#undef DATASET
};
static const size_t n_kinds = sizeof kinds / sizeof kinds[0];

void ct_dataset_each(void (*each)(void *context, const char *name, const char *text),
                     void *context) {
    for (size_t k = 0; k < n_kinds; k++) each(context, kinds[k].name, kinds[k].text);
}

static ct_status unknown(const char *name) {
    ct_text known = {0};
    for (size_t k = 0; k < n_kinds; k++)
        ct_text_add(&known, "%s%s", k == 0 ? "" : ", ", kinds[k].name);
    ct_status status = ct_text_status(&known);
    if (status == CT_OK)
        status = ct_fail(CT_INVAL, "no data set '%s'; known: %s", name, known.chars);
    ct_text_free(&known);
    return status;
}

ct_status ct_dataset_open(const char *name, const ct_dataset_options *options, ct_dataset *out) {
    const kind *found = NULL;
    for (size_t k = 0; k < n_kinds; k++)
        if (strcmp(kinds[k].name, name) == 0) found = &kinds[k];
    if (found == NULL) return unknown(name);

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
    ct_images_free(&dataset->test);
    ct_images_free(&dataset->train);
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

/* dir/name or, if that is not there, dir/name.gz; NULL in *out if neither is. */
static ct_status look_for(const char *dir, const char *name, char **out) {
    static const char *const endings[] = {"", ".gz"};
    *out = NULL;
    for (int k = 0; k < 2; k++) {
        char file[128];
        snprintf(file, sizeof file, "%s%s", name, endings[k]);
        char *path = ct_path_join(dir, file);
        if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a file name");
        if (ct_file_exists(path)) {
            *out = path;
            return CT_OK;
        }
        ct_free(path);
    }
    return CT_OK;
}

bool ct_data_exists(const char *dir, const char *name) {
    char *path = NULL;
    bool there = look_for(dir, name, &path) == CT_OK && path != NULL;
    ct_free(path);
    return there;
}

ct_status ct_data_find(const char *dir, const char *name, const char *hint, char **out) {
    if (!ct_dir_exists(dir)) return ct_fail(CT_IO, "%s: no such directory; %s", dir, hint);
    char *path = NULL;
    CT_TRY(look_for(dir, name, &path));
    if (path == NULL)
        return ct_fail(CT_IO, "%s: neither %s nor %s.gz is there; %s", dir, name, name, hint);
    *out = path;
    return CT_OK;
}

ct_status ct_labels_check(const char *path, const int32_t *labels, size_t n, int n_classes) {
    for (size_t i = 0; i < n; i++)
        if (labels[i] < 0 || labels[i] >= n_classes)
            return ct_fail(CT_IO, "%s: label %d of sample %zu is not one of 0..%d", path,
                           (int)labels[i], i, n_classes - 1);
    return CT_OK;
}

ct_status ct_data_dir(const ct_dataset *dataset, const ct_dataset_options *options,
                      const char *usual, const char *hint, const char **out) {
    const char *dir = options->dir != NULL ? options->dir : usual;
    if (dir == NULL)
        return ct_fail(CT_INVAL, "data set %s has no usual place; %s", dataset->name, hint);
    *out = dir;
    return CT_OK;
}
