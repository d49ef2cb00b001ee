/* IDX, the format of MNIST and its kin:
 *   0, 0, type, d      type 8 = unsigned byte; d = number of dimensions
 *   d sizes            uint32, big-endian; the first one counts the samples
 *   the values         row-major, nothing after them */
#include "data/idx_internal.h"

#include "data/dataset_internal.h"
#include "util/file.h"
#include "util/memory.h"

#include <stdio.h>
#include <string.h>

#define TYPE_UBYTE 8u
#define MAX_SIDE   65535u /* so that n * height * width fits 64 bits */

static uint32_t big_endian(const uint8_t *b) {
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* The header against what was asked for and against the length of the file. */
static ct_status check_header(const char *path, const ct_blob *file, uint32_t n_dims,
                              uint32_t *dims) {
    size_t header = 4 + 4 * (size_t)n_dims;
    uint32_t magic = TYPE_UBYTE << 8 | n_dims;
    if (file->n < header)
        return ct_fail(CT_IO, "%s: cut short: %zu bytes, the IDX header alone has %zu", path,
                       file->n, header);
    if (big_endian(file->bytes) != magic)
        return ct_fail(CT_IO,
                       "%s: begins with 0x%08x, not 0x%08x (IDX, unsigned bytes, %u dimensions)",
                       path, (unsigned)big_endian(file->bytes), (unsigned)magic, (unsigned)n_dims);
    uint64_t n_bytes = 1;
    for (uint32_t k = 0; k < n_dims; k++) {
        dims[k] = big_endian(file->bytes + 4 + 4 * k);
        if (dims[k] == 0) return ct_fail(CT_IO, "%s: empty: size %u is 0", path, (unsigned)k);
        if (k > 0 && dims[k] > MAX_SIDE)
            return ct_fail(CT_IO, "%s: images of %u pixels a side; at most %u", path,
                           (unsigned)dims[k], MAX_SIDE);
        n_bytes *= dims[k];
    }
    if (file->n - header != n_bytes)
        return ct_fail(CT_IO, "%s: %zu bytes after the header, which promises %llu", path,
                       file->n - header, (unsigned long long)n_bytes);
    return CT_OK;
}

/* Pixels of an image file; `out` gets room for as many labels. */
static ct_status read_images(const char *path, ct_images *out) {
    ct_blob file = {0};
    uint32_t dims[3] = {0};
    CT_TRY(ct_file_read(path, CT_DATA_MAX_BYTES, &file));
    ct_status status = check_header(path, &file, 3, dims);
    if (status == CT_OK) status = ct_images_create(dims[0], 1, (int)dims[1], (int)dims[2], out);
    if (status == CT_OK) memcpy(out->pixels, file.bytes + 16, file.n - 16);
    ct_blob_free(&file);
    return status;
}

static ct_status read_labels(const char *path, size_t n_images, int n_classes, int32_t *labels) {
    ct_blob file = {0};
    uint32_t n = 0;
    CT_TRY(ct_file_read(path, CT_DATA_MAX_BYTES, &file));
    ct_status status = check_header(path, &file, 1, &n);
    if (status == CT_OK && n != n_images)
        status = ct_fail(CT_IO, "%s: %u labels for %zu images", path, (unsigned)n, n_images);
    if (status == CT_OK) {
        for (size_t i = 0; i < n_images; i++) labels[i] = file.bytes[8 + i];
        status = ct_labels_check(path, labels, n_images, n_classes);
    }
    ct_blob_free(&file);
    return status;
}

/* One of the two parts: `part` is "train" or "t10k". */
static ct_status read_part(const char *dir, const char *part, const char *hint, int n_classes,
                           ct_images *out) {
    char images_name[64], labels_name[64];
    char *images_path = NULL, *labels_path = NULL;
    ct_status status;
    snprintf(images_name, sizeof images_name, "%s-images-idx3-ubyte", part);
    snprintf(labels_name, sizeof labels_name, "%s-labels-idx1-ubyte", part);
    CT_TRY_GOTO(ct_data_find(dir, images_name, hint, &images_path), status, done);
    CT_TRY_GOTO(ct_data_find(dir, labels_name, hint, &labels_path), status, done);
    CT_TRY_GOTO(read_images(images_path, out), status, done);
    CT_TRY_GOTO(read_labels(labels_path, out->n, n_classes, out->labels), status, done);
done:
    ct_free(labels_path);
    ct_free(images_path);
    return status;
}

static int largest_label(const ct_images *images) {
    int largest = 0;
    for (size_t i = 0; i < images->n; i++)
        if (images->labels[i] > largest) largest = images->labels[i];
    return largest;
}

ct_status ct_idx_open(const char *dir, const char *hint, int n_classes, ct_dataset *out) {
    int n_allowed = n_classes > 0 ? n_classes : 256; /* a label is one byte */
    CT_TRY(read_part(dir, "train", hint, n_allowed, &out->train));
    CT_TRY(read_part(dir, "t10k", hint, n_allowed, &out->test));
    if (out->train.height != out->test.height || out->train.width != out->test.width)
        return ct_fail(CT_IO, "%s: training images are %dx%d but test images %dx%d", dir,
                       out->train.height, out->train.width, out->test.height, out->test.width);
    if (n_classes == 0) {
        int a = largest_label(&out->train), b = largest_label(&out->test);
        n_classes = (a > b ? a : b) + 1;
    }
    out->n_classes = n_classes < 2 ? 2 : n_classes;
    snprintf(out->source, sizeof out->source, "%s", dir);
    return CT_OK;
}

/* The data set `idx`: nothing is known about its pixels, so they are mapped to -1 .. 1. */
ct_status ct_dataset_open_idx(const ct_dataset_options *options, ct_dataset *out) {
    static const char hint[] = "give the directory of the four IDX files with @data-dir DIR";
    const char *dir;
    CT_TRY(ct_data_dir(out, options, NULL, hint, &dir));
    CT_TRY(ct_idx_open(dir, hint, 0, out));
    out->mean[0] = 0.5f;
    out->std[0] = 0.5f;
    return CT_OK;
}

bool ct_dataset_probe_idx(const char *dir) {
    return ct_data_exists(dir, "train-images-idx3-ubyte") &&
           ct_data_exists(dir, "train-labels-idx1-ubyte");
}
