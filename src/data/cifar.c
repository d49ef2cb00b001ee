/* Data sets in CIFAR's binary layout: records of label byte(s), then 32x32 R, G and B planes.
 * Augmentation: crops after a border of 4 pixels, and flips. */
#include "data/dataset_internal.h"

#include "data/tar.h"
#include "util/memory.h"
#include "util/text.h"

#include <stdio.h>
#include <string.h>

#define CHANNELS  3
#define SIDE      32
#define N_PIXELS  ((size_t)CHANNELS * SIDE * SIDE)
#define MAX_TRAIN 5
#define MAX_FILES (MAX_TRAIN + 2) /* training files, test file, class names */

#define SOME_RECORDS ((size_t)64) /* read at once: 192 KiB */

typedef struct layout {
    const char *name;    /* of the set */
    const char *archive; /* the official .tar.gz: DIR with it, or its path itself, works too */
    const char *subdir;  /* where the archive unpacks to: DIR/subdir works as DIR */
    const char *names;   /* text file of class names beside the data; NULL: none */
    const char *train[MAX_TRAIN]; /* file names; NULL after the last */
    const char *test;
    int n_label_bytes; /* 1, or 2: coarse then fine */
    int label_byte;    /* which of them is the label */
    int n_classes;
    float mean[3], std[3];
} layout;

/* The files of a set: training ones, the test one, and the class names, which may be missing. */
typedef struct files {
    const layout *layout;
    int n_train;
    const char *names[MAX_FILES];
    ct_path paths[MAX_FILES]; /* for messages; "": not found yet */
    ct_blob blobs[MAX_FILES];
    size_t n_plain[MAX_FILES]; /* records of a file that is read where they go, not as a blob */
} files;

static void files_init(const layout *l, files *out) {
    *out = (files){.layout = l};
    while (out->n_train < MAX_TRAIN && l->train[out->n_train] != NULL) {
        out->names[out->n_train] = l->train[out->n_train];
        out->n_train++;
    }
    out->names[out->n_train] = l->test;
    out->names[out->n_train + 1] = l->names;
}

static void files_free(files *f) {
    for (int k = 0; k < MAX_FILES; k++) ct_blob_free(&f->blobs[k]);
}

static size_t record_bytes(const layout *l) {
    return (size_t)l->n_label_bytes + N_PIXELS;
}

/* File k holds whole records, unless it has the names of the classes. */
static ct_status check_records(const files *f, int k) {
    size_t n = f->blobs[k].n, record = record_bytes(f->layout);
    if (k > f->n_train) return CT_OK;
    if (n == 0) return ct_fail(CT_IO, "%s: empty", f->paths[k].text);
    if (n % record != 0)
        return ct_fail(CT_IO, "%s: %zu bytes are not a whole number of records of %zu",
                       f->paths[k].text, n, record);
    return CT_OK;
}

/* Whole records in a file that is not packed; 0: it is none such, and is read as a blob, which says
 * what is wrong with it. */
static size_t count_plain(const files *f, const char *path) {
    CT_SCOPED_BY(ct_fd_close, int) fd = -1;
    uint8_t head[2];
    uint64_t size = 0;
    size_t record = record_bytes(f->layout);
    if (CT_CATCH(NULL, ct_file_open(path, &fd, &size)) != CT_OK) return 0;
    bool is_packed = ct_fd_read(fd, head, 2) != 2 || (head[0] == 0x1f && head[1] == 0x8b);
    return is_packed || size > CT_MAX_DATA_BYTES || size % record != 0 ? 0 : (size_t)size / record;
}

static ct_status read_dir(const char *dir, const char *hint, files *f) {
    for (int k = 0; k < f->n_train + 2; k++) {
        bool may_miss = k > f->n_train;
        f->paths[k] = f->names[k] != NULL ? ct_path_in(dir, f->names[k]) : (ct_path){""};
        f->n_plain[k] = may_miss ? 0 : count_plain(f, f->paths[k].text);
        if (f->n_plain[k] > 0) continue;
        if (may_miss && (f->names[k] == NULL || !ct_data_exists(dir, f->names[k]))) continue;
        CT_TRY(ct_data_read(dir, f->names[k], hint, &f->paths[k], &f->blobs[k]));
        CT_TRY(check_records(f, k));
    }
    return CT_OK;
}

/* A member of the archive, if it is one of the files. */
static ct_status read_member(ct_tar *tar, const char *archive, const ct_tar_entry *entry,
                             files *f) {
    const char *slash = strrchr(entry->name, '/');
    const char *name = slash != NULL ? slash + 1 : entry->name;
    for (int k = 0; k < f->n_train + 2; k++) {
        if (f->names[k] == NULL || strcmp(name, f->names[k]) != 0) continue;
        if (f->paths[k].text[0] != '\0')
            return ct_fail(CT_IO, "%s: two members are named %s", archive, name);
        f->paths[k] = ct_path_in(archive, entry->name);
        CT_TRY(ct_tar_blob(tar, entry, CT_MAX_DATA_BYTES, &f->blobs[k]));
        CT_TRY(check_records(f, k));
    }
    return CT_OK;
}

static ct_status read_archive(const char *archive, files *f) {
    CT_SCOPED_BY(ct_tar_close, ct_tar *) tar = NULL;
    CT_TRY(ct_tar_open(archive, CT_MAX_DATA_BYTES, &tar));
    for (bool more = true; more;) {
        ct_tar_entry entry;
        CT_TRY(ct_tar_next(tar, &entry, &more));
        if (more && !entry.is_dir) CT_TRY(read_member(tar, archive, &entry, f));
    }
    for (int k = 0; k <= f->n_train; k++)
        if (f->paths[k].text[0] == '\0')
            return ct_fail(CT_IO, "%s: %s is not in the archive", archive, f->names[k]);
    return CT_OK;
}

/* Takes n records apart; they are samples `at` and on. */
static void take_records(const layout *l, const uint8_t *from, size_t n, size_t at,
                         ct_images *out) {
    for (size_t i = at; i < at + n; i++, from += record_bytes(l)) {
        out->labels[i] = from[l->label_byte];
        memcpy(out->pixels + i * N_PIXELS, from + l->n_label_bytes, N_PIXELS);
    }
}

/* The same of a file's records, some at a time: what is read stays in the cache. */
static ct_status take_file(const files *f, int k, size_t at, ct_images *out) {
    size_t record = record_bytes(f->layout), left = f->n_plain[k];
    const char *path = f->paths[k].text;
    CT_SCOPED_BLOCK(uint8_t) some = NULL;
    CT_SCOPED_BY(ct_fd_close, int) fd = -1;
    uint64_t size = 0;
    CT_TRY(ct_file_open(path, &fd, &size));
    CT_TRY(ct_make(&some, SOME_RECORDS * record, path));
    while (left > 0) {
        size_t n = left < SOME_RECORDS ? left : SOME_RECORDS;
        ssize_t got = ct_fd_read(fd, some, n * record);
        if (got < 0) return ct_file_failed(path);
        if ((size_t)got != n * record) return ct_fail(CT_IO, "%s: shorter than it was", path);
        take_records(f->layout, some, n, at, out);
        at += n;
        left -= n;
    }
    return CT_OK;
}

static size_t count_records(const files *f, int k) {
    return f->n_plain[k] > 0 ? f->n_plain[k] : f->blobs[k].n / record_bytes(f->layout);
}

/* Takes the records of files first .. last apart. */
static ct_status unpack(const files *f, int first, int last, ct_images *out) {
    const layout *l = f->layout;
    size_t n = 0, at = 0;
    for (int k = first; k <= last; k++) n += count_records(f, k);
    CT_TRY(ct_images_create(n, CHANNELS, SIDE, SIDE, out));
    for (int k = first; k <= last; k++) {
        size_t n_here = count_records(f, k);
        if (f->n_plain[k] > 0)
            CT_TRY(take_file(f, k, at, out));
        else
            take_records(l, f->blobs[k].bytes, n_here, at, out);
        CT_TRY(ct_labels_check(f->paths[k].text, out->labels + at, n_here, l->n_classes));
        at += n_here;
    }
    return CT_OK;
}

/* The names, one a line, if there are as many as classes. */
static void keep_names(const ct_blob *file, int n_classes, char **out) {
    ct_lines lines = ct_blob_lines(file);
    CT_SCOPED(ct_text) names = {0};
    int n = 0;
    for (const char *line; n < n_classes && (line = ct_lines_next(&lines)) != NULL;) {
        if (line[0] == '\0') continue;
        ct_text_add(&names, "%s%c", line, '\0');
        n++;
    }
    if (n == n_classes && !names.failed) ct_move(out, &names.chars);
}

/* The archive, if the files themselves are not there: `asked` itself, or in it. */
static bool find_archive(const layout *l, const char *asked, ct_path *out) {
    if (l->archive == NULL) return false;
    if (ct_file_exists(asked))
        snprintf(out->text, sizeof out->text, "%s", asked);
    else
        *out = ct_path_in(asked, l->archive);
    return ct_file_exists(out->text);
}

static ct_status read_files(const char *asked, files *f, ct_path *source) {
    char hint[192];
    snprintf(hint, sizeof hint, "give the directory of %s and %s with @data-dir DIR",
             f->layout->train[0], f->layout->test);
    ct_path archive;
    *source = ct_data_inner(asked, f->layout->subdir, f->layout->train[0]);
    if (ct_data_exists(source->text, f->layout->train[0]) ||
        !find_archive(f->layout, asked, &archive))
        return read_dir(source->text, hint, f);
    *source = archive;
    return read_archive(source->text, f);
}

static ct_status open_layout(const layout *l, const ct_dataset_options *options, ct_dataset *out) {
    const char *asked;
    ct_path source;
    CT_SCOPED(files) f = {0};
    CT_TRY(ct_data_dir(out, options, "give its directory with @data-dir DIR", &asked));
    files_init(l, &f);
    CT_TRY(read_files(asked, &f, &source));
    CT_TRY(unpack(&f, 0, f.n_train - 1, &out->train));
    CT_TRY(unpack(&f, f.n_train, f.n_train, &out->test));
    if (f.blobs[f.n_train + 1].n > 0)
        keep_names(&f.blobs[f.n_train + 1], l->n_classes, &out->class_names);
    out->n_classes = l->n_classes;
    ct_dataset_scale(out, l->mean, l->std);
    out->crop_padding = 4;
    out->flip = true;
    snprintf(out->source, sizeof out->source, "%.511s", source.text);
    return CT_OK;
}

/* The layout's files lie in `dir`, or its archive, or dir is the archive. */
static bool probe(const layout *l, const char *dir) {
    if (ct_file_exists(dir)) return l->archive != NULL && ct_path_suggests(dir, l->archive);
    if (l->archive != NULL && ct_data_has(dir, l->archive)) return true;
    ct_path inner = ct_data_inner(dir, l->subdir, l->train[0]);
    return ct_data_exists(inner.text, l->train[0]) && ct_data_exists(inner.text, l->test);
}

/* CIFAR-10 (Krizhevsky, 2009), binary version: 50,000 + 10,000 images. */
static const layout cifar10 = {
    .name = "cifar10",
    .archive = "cifar-10-binary.tar.gz",
    .subdir = "cifar-10-batches-bin",
    .names = "batches.meta.txt",
    .train = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
              "data_batch_5.bin"},
    .test = "test_batch.bin",
    .n_label_bytes = 1,
    .label_byte = 0,
    .n_classes = 10,
    .mean = {0.4914f, 0.4822f, 0.4465f},
    .std = {0.2023f, 0.1994f, 0.2010f},
};

bool ct_dataset_probe_cifar10(const char *dir) {
    return probe(&cifar10, dir);
}

/* CIFAR-100 (Krizhevsky, 2009), binary version: 50,000 + 10,000 images with a coarse and a fine
 * label each, of which the fine one counts unless asked otherwise. */
static const layout cifar100 = {
    .name = "cifar100",
    .archive = "cifar-100-binary.tar.gz",
    .subdir = "cifar-100-binary",
    .names = "fine_label_names.txt",
    .train = {"train.bin"},
    .test = "test.bin",
    .n_label_bytes = 2,
    .label_byte = 1,
    .n_classes = 100,
    .mean = {0.5071f, 0.4867f, 0.4408f},
    .std = {0.2675f, 0.2565f, 0.2761f},
};

bool ct_dataset_probe_cifar100(const char *dir) {
    return probe(&cifar100, dir);
}

/* mini-ImageNet (Vinyals et al., 2016) shrunk to 32 pixels and kept in the layout of CIFAR-100, for
 * which it stands in: same mean and deviation, so that the same runs apply. */
static const layout miniimagenet = {
    .name = "miniimagenet",
    .subdir = "miniimagenet-32",
    .train = {"train.bin"},
    .test = "test.bin",
    .n_label_bytes = 2,
    .label_byte = 1,
    .n_classes = 100,
    .mean = {0.5071f, 0.4867f, 0.4408f},
    .std = {0.2675f, 0.2565f, 0.2761f},
};

/* Named like CIFAR-100's: the folder's name or its list of labels tells. */
bool ct_dataset_probe_miniimagenet(const char *dir) {
    return probe(&miniimagenet, dir) &&
           (ct_path_suggests(dir, "miniimagenet") || ct_data_has(dir, "miniimagenet-32"));
}

ct_status ct_dataset_open_cifar(const ct_dataset_options *options, ct_dataset *out) {
    static const layout *const layouts[] = {&cifar10, &cifar100, &miniimagenet};
    int k = 0;
    while (strcmp(layouts[k]->name, out->name) != 0) k++;
    layout l = *layouts[k];
    if (options->coarse_labels && layouts[k] == &cifar100) {
        l.names = "coarse_label_names.txt";
        l.label_byte = 0;
        l.n_classes = 20;
    }
    return open_layout(&l, options, out);
}
