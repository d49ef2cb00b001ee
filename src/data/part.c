/* A .ctpart file: a header with its checksum, then numbers and labels of the training samples,
 * labels of the test samples, class names, and both parts' pixels. Little-endian machines only: the
 * magic is written as a number, so that another machine refuses the file. */
#include "data/part.h"

#include "data/dataset_internal.h"
#include "data/pack.h"
#include "data/pictures.h"
#include "util/file.h"
#include "util/memory.h"

#include <stdio.h>
#include <string.h>

#define MAGIC UINT64_C(0x0a31545241505443) /* "CTPART1\n" */

typedef struct header {
    uint64_t magic;
    char name[64]; /* of the set */
    uint64_t n_whole, n_train, n_test, names_bytes;
    uint32_t n_classes, channels, height, width;
    uint32_t crop_padding, flip, coarse_labels;
    uint32_t body_crc; /* of all bytes behind the header */
    float mean[CT_MAX_CHANNELS], std[CT_MAX_CHANNELS];
    uint32_t reserved;
    uint32_t header_crc; /* of all fields before */
} header;

static uint32_t header_crc(const header *h) {
    return ct_crc32(0, h, offsetof(header, header_crc));
}

static bool header_is_right(const header *h) {
    return h->magic == MAGIC && h->header_crc == header_crc(h) &&
           h->name[sizeof h->name - 1] == '\0';
}

/* What follows the header, one after the other. */
enum { N_PIECES = 6 };
typedef struct piece {
    void *bytes;
    size_t n;
} piece;

static void list_pieces(const ct_dataset *d, size_t names_bytes, piece out[N_PIECES]) {
    const ct_images *train = &d->train, *test = &d->test;
    out[0] = (piece){d->train_numbers, train->n * sizeof *d->train_numbers};
    out[1] = (piece){train->labels, train->n * sizeof *train->labels};
    out[2] = (piece){test->labels, test->n * sizeof *test->labels};
    out[3] = (piece){d->class_names, names_bytes};
    out[4] = (piece){train->pixels, train->n * ct_image_bytes(train)};
    out[5] = (piece){test->pixels, test->n * ct_image_bytes(test)};
}

/* ---- keeping a part ---- */

/* The training samples with keep[i], and their numbers. */
static ct_status pick(const ct_dataset *d, const bool *keep, ct_dataset *out) {
    CT_TRY(ct_images_pick(&d->train, keep, true, &out->train));
    CT_TRY(ct_make(&out->train_numbers, out->train.n, "a part of the samples"));
    for (size_t i = 0, at = 0; i < d->train.n; i++)
        if (keep[i]) out->train_numbers[at++] = ct_dataset_number(d, i);
    out->n_whole = ct_dataset_n_whole(d);
    return CT_OK;
}

ct_status ct_dataset_keep(ct_dataset *d, const bool *keep) {
    CT_SCOPED(ct_dataset) part = {0};
    CT_TRY(pick(d, keep, &part));
    if (d->train_pictures != NULL) CT_TRY(ct_pictures_keep(d->train_pictures, keep));
    ct_images_free(&d->train);
    ct_free(d->train_numbers);
    ct_move(&d->train, &part.train);
    ct_move(&d->train_numbers, &part.train_numbers);
    d->n_whole = part.n_whole;
    return CT_OK;
}

/* ---- writing ---- */

static void describe(const ct_dataset *d, bool coarse_labels, header *h) {
    memset(h, 0, sizeof *h); /* gaps too: they are part of the checksum */
    h->magic = MAGIC;
    memcpy(h->name, d->name, sizeof h->name);
    h->n_whole = d->n_whole;
    h->n_train = d->train.n;
    h->n_test = d->test.n;
    h->names_bytes = ct_names_bytes(d->class_names, d->n_classes);
    h->n_classes = (uint32_t)d->n_classes;
    h->channels = (uint32_t)d->train.channels;
    h->height = (uint32_t)d->train.height;
    h->width = (uint32_t)d->train.width;
    h->crop_padding = (uint32_t)d->crop_padding;
    h->flip = d->flip;
    h->coarse_labels = coarse_labels;
    memcpy(h->mean, d->mean, sizeof h->mean);
    memcpy(h->std, d->std, sizeof h->std);
}

static ct_status write_images(const ct_dataset *d, bool coarse_labels, const bool *keep,
                              const char *path) {
    CT_SCOPED(ct_dataset) picked = {0};
    CT_SCOPED_BY(ct_writer_abandon, ct_writer *) file = NULL;
    CT_TRY(pick(d, keep, &picked));
    ct_dataset part = *d;
    part.train = picked.train;
    part.train_numbers = picked.train_numbers;
    part.n_whole = picked.n_whole;
    header h;
    piece body[N_PIECES];
    describe(&part, coarse_labels, &h);
    list_pieces(&part, (size_t)h.names_bytes, body);
    for (int k = 0; k < N_PIECES; k++) h.body_crc = ct_crc32(h.body_crc, body[k].bytes, body[k].n);
    h.header_crc = header_crc(&h);
    CT_TRY(ct_writer_open(path, &file));
    CT_TRY(ct_writer_add(file, &h, sizeof h));
    for (int k = 0; k < N_PIECES; k++) CT_TRY(ct_writer_add(file, body[k].bytes, body[k].n));
    return ct_writer_commit(&file);
}

/* Picture i of a pack into another one, under the number it has in the whole set. */
static ct_status copy_picture(const ct_pack *from, size_t i, uint32_t number, ct_decoder *decoder,
                              ct_pack_writer *to) {
    ct_picture picture;
    ct_status status = ct_pack_read(from, i, decoder, &picture);
    if (status == CT_NOMEM) return ct_fail(CT_NOMEM, "no memory for a picture");
    if (status != CT_OK)
        return ct_fail(CT_IO, "picture %zu of the packed file is damaged: import it again", i);
    return ct_pack_writer_add(to, &picture, number, ct_pack_entries(from)[i].label);
}

static ct_status copy_pack(const ct_dataset *d, const bool *keep, const ct_pack *from,
                           ct_decoder *decoder, ct_pack_writer **to) {
    ct_pack_facts facts = *ct_pack_facts_of(from);
    size_t n_train = (size_t)(facts.n - facts.n_test);
    for (size_t i = 0; i < d->train.n; i++)
        if (keep[i]) CT_TRY(copy_picture(from, i, ct_dataset_number(d, i), decoder, *to));
    for (size_t i = n_train; i < n_train + d->test.n; i++)
        CT_TRY(copy_picture(from, i, ct_pack_entries(from)[i].source, decoder, *to));
    facts.n_test = d->test.n;
    facts.n_whole = (uint32_t)ct_dataset_n_whole(d);
    return ct_pack_writer_commit(to, &facts, ct_pack_class_names(from));
}

static ct_status write_pack(const ct_dataset *d, const bool *keep, const char *path) {
    CT_SCOPED_BY(ct_pack_close, ct_pack *) from = NULL;
    CT_SCOPED_HANDLE(ct_decoder) decoder = NULL;
    CT_SCOPED_BY(ct_pack_writer_abandon, ct_pack_writer *) to = NULL;
    CT_TRY(ct_pack_open(d->source, &from));
    CT_TRY(ct_decoder_create(&decoder));
    CT_TRY(ct_pack_writer_open(path, &to));
    return copy_pack(d, keep, from, decoder, &to);
}

ct_status ct_part_check(const ct_dataset *d) {
    if (d->train_numbers != NULL)
        return ct_fail(CT_INVAL, "%s is a part already, and only the whole is split", d->source);
    if (ct_pack_looks_right(d->source) || (d->train.pixels != NULL && d->test.pixels != NULL))
        return CT_OK;
    if (d->columns != NULL)
        return ct_fail(CT_INVAL,
                       "%s: tables are not split into parts; give every rank the table, or every "
                       "agent one of its own",
                       d->source);
    return ct_fail(CT_INVAL,
                   "%s: folders of pictures are split as one file; make it with crosstalk data "
                   "import %s FILE.ctpack",
                   d->source, d->source);
}

ct_status ct_part_write(const ct_dataset *d, const ct_dataset_options *options, const bool *keep,
                        const char *path) {
    CT_TRY(ct_part_check(d));
    if (ct_pack_looks_right(d->source)) return write_pack(d, keep, path);
    return write_images(d, options->coarse_labels, keep, path);
}

/* ---- reading ---- */

bool ct_part_looks_right(const char *path) {
    return ct_file_begins(path, &(uint64_t){MAGIC}, sizeof(uint64_t));
}

static ct_status damaged(const char *path) {
    return ct_fail(CT_IO, "%s: a damaged part of a data set; split it again", path);
}

static ct_status check_fields(const char *path, const header *h) {
    double n_train = (double)h->n_train, image = (double)h->channels * h->height * h->width;
    const ct_field fields[] = {
        {"the number of training samples", n_train, 1, UINT32_MAX},
        {"the number of test samples", (double)h->n_test, 1, UINT32_MAX},
        {"the whole", (double)h->n_whole, n_train, UINT32_MAX},
        {"the length of the names", (double)h->names_bytes, 0, CT_MAX_NAMES_BYTES},
        {"the number of classes", h->n_classes, 1, CT_MAX_CLASSES},
        {"the number of channels", h->channels, 1, CT_MAX_CHANNELS},
        {"the height", h->height, 1, CT_MAX_PICTURE_SIDE},
        {"the width", h->width, 1, CT_MAX_PICTURE_SIDE},
        {"the length", (n_train + (double)h->n_test) * image, 1, (double)CT_MAX_MODEL_BYTES},
        {"the crop's padding", h->crop_padding, 0, h->height < h->width ? h->height : h->width},
        {"the flip", h->flip, 0, 1},
        {"the kind of labels", h->coarse_labels, 0, 1},
        {"a reserved field", h->reserved, 0, 0}};
    CT_TRY(ct_fields_check(path, fields, sizeof fields / sizeof *fields));
    for (uint32_t c = 0; c < h->channels; c++) {
        const ct_field scale[] = {{"a mean", (double)h->mean[c], 0, 1},
                                  {"a deviation", (double)h->std[c], 1e-9, 1}};
        CT_TRY(ct_fields_check(path, scale, 2));
    }
    return CT_OK;
}

/* The length that the header promises. */
static uint64_t body_bytes(const header *h) {
    uint64_t image = (uint64_t)h->channels * h->height * h->width;
    return h->n_train * 8 + h->n_test * 4 + h->names_bytes + (h->n_train + h->n_test) * image;
}

static ct_status read_header(const char *path, const ct_blob *file, header *h) {
    if (file->n < sizeof *h) return damaged(path);
    memcpy(h, file->bytes, sizeof *h);
    if (!header_is_right(h)) return damaged(path);
    CT_TRY(check_fields(path, h));
    if (body_bytes(h) != file->n - sizeof *h ||
        ct_crc32(0, file->bytes + sizeof *h, file->n - sizeof *h) != h->body_crc)
        return damaged(path);
    return CT_OK;
}

static ct_status read_body(const char *path, const header *h, const uint8_t *at, ct_dataset *d) {
    int c = (int)h->channels, y = (int)h->height, x = (int)h->width;
    CT_TRY(ct_images_create((size_t)h->n_train, c, y, x, &d->train));
    CT_TRY(ct_images_create((size_t)h->n_test, c, y, x, &d->test));
    CT_TRY(ct_make(&d->train_numbers, d->train.n, path));
    if (h->names_bytes > 0) CT_TRY(ct_make(&d->class_names, (size_t)h->names_bytes, path));
    piece body[N_PIECES];
    list_pieces(d, (size_t)h->names_bytes, body);
    for (int k = 0; k < N_PIECES; at += body[k++].n)
        if (body[k].n > 0) memcpy(body[k].bytes, at, body[k].n);
    if (!ct_names_are_right(d->class_names, (size_t)h->names_bytes, h->n_classes) ||
        !ct_numbers_are_right(d->train_numbers, d->train.n, d->n_whole))
        return damaged(path);
    CT_TRY(ct_labels_check(path, d->train.labels, d->train.n, d->n_classes));
    return ct_labels_check(path, d->test.labels, d->test.n, d->n_classes);
}

static ct_status check_asked(const char *path, const char *name, const ct_dataset_options *options,
                             const header *h) {
    if (strcmp(name, h->name) != 0)
        return ct_fail(CT_INVAL, "%s is a part of %s, not of %s", path, h->name, name);
    if (options->coarse_labels != (h->coarse_labels != 0))
        return ct_fail(CT_INVAL, "%s was split with @labels %s", path,
                       h->coarse_labels != 0 ? "coarse" : "fine");
    return CT_OK;
}

static ct_status fill(const char *path, const char *name, const ct_dataset_options *options,
                      const ct_blob *file, ct_dataset *d) {
    header h;
    CT_TRY(read_header(path, file, &h));
    CT_TRY(check_asked(path, name, options, &h));
    snprintf(d->name, sizeof d->name, "%s", name);
    snprintf(d->source, sizeof d->source, "%s", path);
    d->n_classes = (int)h.n_classes;
    d->n_whole = (size_t)h.n_whole;
    d->crop_padding = (int)h.crop_padding;
    d->flip = h.flip != 0;
    memcpy(d->mean, h.mean, sizeof d->mean);
    memcpy(d->std, h.std, sizeof d->std);
    return read_body(path, &h, file->bytes + sizeof h, d);
}

ct_status ct_part_open(const char *path, const char *name, const ct_dataset_options *options,
                       ct_dataset *out) {
    CT_SCOPED(ct_blob) file = {0};
    CT_SCOPED(ct_dataset) d = {0};
    CT_TRY(ct_file_read(path, CT_MAX_MODEL_BYTES, &file));
    CT_TRY(fill(path, name, options, &file, &d));
    ct_move(out, &d);
    return CT_OK;
}

ct_status ct_part_name(const char *path, char *name) {
    header h;
    if (ct_file_head(path, &h, sizeof h) != sizeof h || !header_is_right(&h)) return damaged(path);
    memcpy(name, h.name, sizeof h.name);
    return CT_OK;
}
