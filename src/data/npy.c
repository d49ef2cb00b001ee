/* NumPy's .npy files: images [N][C][H][W] (or [N][H][W]) uint8 or float32, labels [N] of integers.
 *   "\x93NUMPY", version (2 bytes), length of the header (2 bytes; 4 from version 2 on),
 *   the header: {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 1, 28, 28), }, the values
 * Deviation: images are held in 8 bits. float32 values of 0 .. 1 (or 0 .. 255) are rounded to the
 * nearest of 256 levels; values outside are refused. */
#include "data/dataset_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DIMS 4

typedef struct array {
    char type[4]; /* "|u1", "<f4", ... */
    size_t dims[MAX_DIMS];
    int n_dims;
    size_t item; /* bytes of a value */
    size_t n;    /* values */
    const uint8_t *values;
} array;

static ct_status damaged(const char *path, const char *what) {
    return ct_fail(CT_IO, "%s: not a .npy file that can be read: %s", path, what);
}

/* What follows 'key': in the header. */
static const char *find_key(const char *header, const char *key) {
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s':", key);
    const char *at = strstr(header, quoted);
    if (at == NULL) return NULL;
    at += strlen(quoted);
    return at + strspn(at, " ");
}

static ct_status parse_shape(const char *path, const char *at, array *out) {
    if (at == NULL || *at != '(') return damaged(path, "no shape");
    out->n = 1;
    for (at++; *at != ')';) {
        char *end;
        if (*at < '0' || *at > '9') return damaged(path, "a size is no number");
        unsigned long long size = strtoull(at, &end, 10);
        if (out->n_dims == MAX_DIMS) return damaged(path, "more than 4 dimensions");
        if (size == 0) return ct_fail(CT_IO, "%s: empty: a size is 0", path);
        if (size > CT_MAX_DATA_BYTES || out->n > CT_MAX_DATA_BYTES / size)
            return ct_fail(CT_IO, "%s: the shape is too large", path);
        out->dims[out->n_dims++] = (size_t)size;
        out->n *= (size_t)size;
        at = end + strspn(end, ", ");
    }
    return CT_OK;
}

static ct_status parse_header(const char *path, const char *header, array *out) {
    const char *type = find_key(header, "descr"), *order = find_key(header, "fortran_order");
    if (type == NULL || *type != '\'' || strlen(type) < 5 || type[4] != '\'')
        return damaged(path, "no simple type");
    memcpy(out->type, type + 1, 3);
    if (out->type[0] == '>') return damaged(path, "big-endian values");
    if (order == NULL || strncmp(order, "False", 5) != 0)
        return damaged(path, "Fortran order; save it with np.ascontiguousarray");
    out->item = (size_t)(out->type[2] - '0');
    if (strchr("uif", out->type[1]) == NULL || strchr("1248", out->type[2]) == NULL)
        return damaged(path, "neither whole nor floating numbers");
    return parse_shape(path, find_key(header, "shape"), out);
}

static ct_status parse(const char *path, ct_blob *file, array *out) {
    *out = (array){0};
    if (file->n < 12 || memcmp(file->bytes, "\x93NUMPY", 6) != 0)
        return damaged(path, "it does not begin with \\x93NUMPY");
    int version = file->bytes[6];
    size_t begin = version == 1 ? 10 : 12;
    size_t n = file->bytes[8] | (size_t)file->bytes[9] << 8;
    if (version > 1) n |= (size_t)file->bytes[10] << 16 | (size_t)file->bytes[11] << 24;
    if (version < 1 || version > 3 || n < 2 || n > file->n - begin || n > 65536)
        return damaged(path, "the header is cut short or of an unknown version");
    file->bytes[begin + n - 1] = '\0'; /* over the header's newline */
    CT_TRY(parse_header(path, (const char *)file->bytes + begin, out));
    out->values = file->bytes + begin + n;
    if (out->n > (file->n - begin - n) / out->item || out->n * out->item != file->n - begin - n)
        return ct_fail(CT_IO, "%s: %zu bytes after the header, whose shape needs %zu of %zu each",
                       path, file->n - begin - n, out->n, out->item);
    return CT_OK;
}

static float float_at(const array *a, size_t i) {
    float value;
    memcpy(&value, a->values + i * sizeof value, sizeof value);
    return value;
}

/* float32 pixels to bytes: 0 .. 1, or 0 .. 255 if any is above 1. */
static ct_status quantise(const char *path, const array *a, uint8_t *out) {
    float low = 0, high = 0;
    for (size_t i = 0; i < a->n; i++) {
        float value = float_at(a, i);
        if (!isfinite(value)) return ct_fail(CT_IO, "%s: value %zu is not finite", path, i);
        if (value < low) low = value;
        if (value > high) high = value;
    }
    if (low < 0 || high > 255)
        return ct_fail(CT_IO,
                       "%s: values from %g to %g; pixels must be 0 .. 1 or 0 .. 255, before any "
                       "normalisation",
                       path, (double)low, (double)high);
    float scale = high > 1 ? 1 : 255;
    for (size_t i = 0; i < a->n; i++) out[i] = (uint8_t)(float_at(a, i) * scale + 0.5f);
    return CT_OK;
}

ct_status ct_npy_images(const char *path, ct_blob *file, ct_images *out) {
    array whole, *a = &whole;
    CT_TRY(parse(path, file, a));
    bool is_byte = strcmp(a->type, "|u1") == 0, is_float = strcmp(a->type, "<f4") == 0;
    if (!is_byte && !is_float)
        return ct_fail(CT_IO, "%s: images of type %s; must be uint8 or float32", path, a->type);
    if (a->n_dims < 3)
        return ct_fail(CT_IO, "%s: %d dimensions; images are [N][C][H][W] or [N][H][W]", path,
                       a->n_dims);
    size_t channels = a->n_dims == 4 ? a->dims[1] : 1;
    size_t height = a->dims[a->n_dims - 2], width = a->dims[a->n_dims - 1];
    if (channels > CT_MAX_CHANNELS || height > 65535 || width > 65535)
        return ct_fail(CT_IO,
                       "%s: %zux%zux%zu is no channels x height x width; channels come first "
                       "(np.transpose(x, (0, 3, 1, 2)))",
                       path, channels, height, width);
    CT_TRY(ct_images_create(a->dims[0], (int)channels, (int)height, (int)width, out));
    if (is_float) return quantise(path, a, out->pixels);
    memcpy(out->pixels, a->values, a->n);
    return CT_OK;
}

static int64_t label_at(const array *a, size_t i) {
    const uint8_t *at = a->values + i * a->item;
    uint64_t value = 0;
    for (size_t k = 0; k < a->item; k++) value |= (uint64_t)at[k] << 8 * k;
    if (a->type[1] == 'i' && a->item < 8 && value >> (8 * a->item - 1) != 0)
        value |= UINT64_MAX << 8 * a->item;
    return (int64_t)value;
}

ct_status ct_npy_labels(const char *path, ct_blob *file, ct_images *images) {
    array whole, *a = &whole;
    CT_TRY(parse(path, file, a));
    if (a->type[1] == 'f' || a->n_dims != 1)
        return ct_fail(CT_IO, "%s: labels must be one row of whole numbers", path);
    if (a->n != images->n)
        return ct_fail(CT_IO, "%s: %zu labels for %zu images", path, a->n, images->n);
    for (size_t i = 0; i < a->n; i++) {
        int64_t label = label_at(a, i);
        if (label < 0 || label >= CT_MAX_CLASSES)
            return ct_fail(CT_IO, "%s: label %lld of sample %zu is not one of 0..%d", path,
                           (long long)label, i, CT_MAX_CLASSES - 1);
        images->labels[i] = (int32_t)label;
    }
    return CT_OK;
}

/* How the files may be called: training images and labels, then test ones. */
static const char *const names[][4] = {
    {"train_images.npy", "train_labels.npy", "test_images.npy", "test_labels.npy"},
    {"x_train.npy", "y_train.npy", "x_test.npy", "y_test.npy"},
    {"images.npy", "labels.npy", NULL, NULL},
};
enum { N_NAMES = sizeof names / sizeof *names };

static ct_status read_parts(const char *dir, const char *const *four,
                            const ct_dataset_options *options, ct_dataset *out) {
    static const char hint[] = "images and labels come in pairs";
    static const ct_pair_format format = {ct_npy_images, ct_npy_labels};
    CT_TRY(ct_pair_read(dir, four, hint, &format, out, &out->train));
    if (four[2] != NULL && ct_data_exists(dir, four[2]))
        return ct_pair_read(dir, four + 2, hint, &format, out, &out->test);
    ct_images all = out->train;
    if (options->is_agents && options->test_fraction == 0) {
        out->test = (ct_images){.channels = all.channels, .height = all.height, .width = all.width};
        return CT_OK;
    }
    out->train = (ct_images){0};
    return ct_images_split(&all, ct_images_classes(&all), options->test_fraction, options->seed,
                           &out->train, &out->test);
}

static int naming_of(const char *dir) {
    int k = 0;
    while (k < N_NAMES && !ct_data_exists(dir, names[k][0])) k++;
    return k;
}

ct_status ct_dataset_open_npy(const ct_dataset_options *options, ct_dataset *out) {
    static const char hint[] = "give the directory of train_images.npy, train_labels.npy, "
                               "test_images.npy and test_labels.npy with @data-dir DIR";
    const char *dir;
    CT_TRY(ct_data_dir(out, options, hint, &dir));
    int k = naming_of(dir);
    CT_TRY(read_parts(dir, names[k < N_NAMES ? k : 0], options, out));
    ct_images_measure(&out->train, out->mean, out->std);
    out->is_measured = true;
    return ct_pairs_check(dir, out);
}

bool ct_dataset_probe_npy(const char *dir) {
    return naming_of(dir) < N_NAMES;
}
