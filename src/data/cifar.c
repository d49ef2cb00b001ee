#include "data/cifar_internal.h"

#include "data/dataset_internal.h"
#include "util/file.h"
#include "util/memory.h"

#include <stdio.h>
#include <string.h>

#define CHANNELS 3
#define SIDE     32
#define N_PIXELS ((size_t)CHANNELS * SIDE * SIDE)

static ct_status read_records(const char *path, size_t record, ct_blob *out) {
    CT_TRY(ct_file_read(path, CT_DATA_MAX_BYTES, out));
    if (out->n == 0) return ct_fail(CT_IO, "%s: empty", path);
    if (out->n % record != 0)
        return ct_fail(CT_IO, "%s: %zu bytes are not a whole number of records of %zu", path,
                       out->n, record);
    return CT_OK;
}

/* Takes a file's records apart into images from number `first` on. */
static ct_status unpack(const char *path, const ct_blob *file, const ct_cifar_layout *layout,
                        size_t first, ct_images *images) {
    size_t record = (size_t)layout->n_label_bytes + N_PIXELS;
    size_t n = file->n / record;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *from = file->bytes + i * record;
        images->labels[first + i] = from[layout->label_byte];
        memcpy(images->pixels + (first + i) * N_PIXELS, from + layout->n_label_bytes, N_PIXELS);
    }
    return ct_labels_check(path, images->labels + first, n, layout->n_classes);
}

/* Reads all files of one part; they are held until the number of images is known. */
static ct_status read_part(const char *dir, const char *hint, const ct_cifar_layout *layout,
                           const char *const *names, int n_names, ct_images *out) {
    size_t record = (size_t)layout->n_label_bytes + N_PIXELS, n = 0;
    char *paths[CT_CIFAR_MAX_FILES] = {0};
    ct_blob files[CT_CIFAR_MAX_FILES] = {0};
    ct_status status;
    for (int k = 0; k < n_names; k++) {
        CT_TRY_GOTO(ct_data_find(dir, names[k], hint, &paths[k]), status, done);
        CT_TRY_GOTO(read_records(paths[k], record, &files[k]), status, done);
        n += files[k].n / record;
    }
    CT_TRY_GOTO(ct_images_create(n, CHANNELS, SIDE, SIDE, out), status, done);
    n = 0;
    for (int k = 0; k < n_names; k++) {
        CT_TRY_GOTO(unpack(paths[k], &files[k], layout, n, out), status, done);
        n += files[k].n / record;
    }
done:
    for (int k = 0; k < n_names; k++) {
        ct_blob_free(&files[k]);
        ct_free(paths[k]);
    }
    return status;
}

/* DIR itself, or the folder in it that the archive makes. */
static ct_status choose_dir(const char *dir, const ct_cifar_layout *layout, char **out) {
    char *inner = ct_path_join(dir, layout->subdir);
    if (inner == NULL) return ct_fail(CT_NOMEM, "no memory for a file name");
    if (ct_data_exists(dir, layout->train[0]) || !ct_data_exists(inner, layout->train[0])) {
        ct_free(inner);
        inner = ct_strdup(dir);
        if (inner == NULL) return ct_fail(CT_NOMEM, "no memory for a file name");
    }
    *out = inner;
    return CT_OK;
}

static void describe(const ct_cifar_layout *layout, const char *dir, ct_dataset *out) {
    out->n_classes = layout->n_classes;
    for (int c = 0; c < CHANNELS; c++) {
        out->mean[c] = layout->mean[c];
        out->std[c] = layout->std[c];
    }
    out->crop_padding = 4;
    out->flip = true;
    snprintf(out->source, sizeof out->source, "%s", dir);
}

ct_status ct_cifar_open(const ct_cifar_layout *layout, const ct_dataset_options *options,
                        ct_dataset *out) {
    char hint[160];
    snprintf(hint, sizeof hint, "give the directory of %s and %s with --data-dir DIR",
             layout->train[0], layout->test);
    const char *asked;
    char *dir = NULL;
    CT_TRY(ct_data_dir(out, options, NULL, hint, &asked));
    CT_TRY(choose_dir(asked, layout, &dir));
    int n_train = 0;
    while (n_train < CT_CIFAR_MAX_FILES && layout->train[n_train] != NULL) n_train++;
    ct_status status = read_part(dir, hint, layout, layout->train, n_train, &out->train);
    if (status == CT_OK) status = read_part(dir, hint, layout, &layout->test, 1, &out->test);
    if (status == CT_OK) describe(layout, dir, out);
    ct_free(dir);
    return status;
}
