/* IDX, the format of MNIST and its kin:
 *   0, 0, type, d      type 8 = unsigned byte; d = number of dimensions
 *   d sizes            uint32, big-endian; the first one counts the samples
 *   the values         row-major, nothing after them */

#include "data/dataset_internal.h"

#include "util/memory.h"

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

static ct_status parse_images(const char *path, ct_blob *file, ct_images *out) {
    uint32_t dims[3] = {0};
    CT_TRY(check_header(path, file, 3, dims));
    CT_TRY(ct_images_create(dims[0], 1, (int)dims[1], (int)dims[2], out));
    memcpy(out->pixels, file->bytes + 16, file->n - 16);
    return CT_OK;
}

static ct_status parse_labels(const char *path, ct_blob *file, ct_images *images) {
    uint32_t n = 0;
    CT_TRY(check_header(path, file, 1, &n));
    if (n != images->n)
        return ct_fail(CT_IO, "%s: %u labels for %zu images", path, (unsigned)n, images->n);
    for (size_t i = 0; i < images->n; i++) images->labels[i] = file->bytes[8 + i];
    return CT_OK;
}

/* A set of four files, {train,t10k}-images-idx3-ubyte and {train,t10k}-labels-idx1-ubyte, each plain or
 * with .gz. */
typedef struct idx_set {
    const char *name, *hint; /* hint: how to get it */
    int n_classes;           /* 0: the largest label + 1 */
    float mean, std;
    const char *class_names; /* one after the other, each with its 0; NULL: unknown */
} idx_set;

static const idx_set sets[] = {
    /* Fashion-MNIST (Xiao et al., arXiv:1708.07747): 60,000 + 10,000 grey images of clothing. */
    {"fashion-mnist",
     "apt install dataset-fashion-mnist or @data-dir DIR (other data: @dataset auto)", 10, 0.5f,
     0.5f, "t-shirt\0trouser\0pullover\0dress\0coat\0sandal\0shirt\0sneaker\0bag\0ankle boot"},
    /* MNIST (LeCun et al., 1998): 60,000 + 10,000 handwritten digits. The mean and deviation are
     * those of its training pixels, as everyone uses them. */
    {"mnist", "give the directory of its four IDX files with @data-dir DIR", 10, 0.1307f, 0.3081f,
     NULL},
    /* Anything else: nothing is known about its pixels, so they are mapped to -1 .. 1. */
    {"idx", "give the directory of the four IDX files with @data-dir DIR", 0, 0.5f, 0.5f, NULL},
};

ct_status ct_dataset_open_idx(const ct_dataset_options *options, ct_dataset *out) {
    static const char *const train[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"};
    static const char *const test[] = {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
    static const ct_pair_format format = {parse_images, parse_labels};
    const idx_set *set = sets;
    const char *dir;
    while (strcmp(set->name, out->name) != 0) set++;
    CT_TRY(ct_data_dir(out, options, set->hint, &dir));
    out->n_classes = set->n_classes;
    CT_TRY(ct_pair_read(dir, train, set->hint, &format, out, &out->train));
    CT_TRY(ct_pair_read(dir, test, set->hint, &format, out, &out->test));
    out->mean[0] = set->mean;
    out->std[0] = set->std;
    CT_TRY(ct_pairs_check(dir, out));
    if (set->class_names == NULL) return CT_OK;
    return ct_make_copy(&out->class_names, set->class_names,
                        ct_names_bytes(set->class_names, set->n_classes), "the names of classes");
}

bool ct_dataset_probe_idx(const char *dir) {
    return ct_data_exists(dir, "train-images-idx3-ubyte") &&
           ct_data_exists(dir, "train-labels-idx1-ubyte");
}

/* Its files are named like MNIST's: only the folder's name tells. */
bool ct_dataset_probe_fashion_mnist(const char *dir) {
    return ct_dataset_probe_idx(dir) && ct_path_suggests(dir, "fashion");
}
