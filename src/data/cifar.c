#include "data/cifar_internal.h"

#include "data/dataset_internal.h"
#include "data/tar.h"
#include "util/file.h"
#include "util/memory.h"
#include "util/text.h"

#include <stdio.h>
#include <string.h>

#define CHANNELS  3
#define SIDE      32
#define N_PIXELS  ((size_t)CHANNELS * SIDE * SIDE)
#define MAX_FILES (CT_CIFAR_MAX_FILES + 2) /* training files, test file, class names */

/* The files of a set: training ones, the test one, and the class names, which may be missing. */
typedef struct files {
    const ct_cifar_layout *layout;
    int n_train;
    const char *names[MAX_FILES];
    char *paths[MAX_FILES]; /* for messages */
    ct_blob blobs[MAX_FILES];
} files;

static void files_init(const ct_cifar_layout *layout, files *out) {
    *out = (files){.layout = layout};
    while (out->n_train < CT_CIFAR_MAX_FILES && layout->train[out->n_train] != NULL) {
        out->names[out->n_train] = layout->train[out->n_train];
        out->n_train++;
    }
    out->names[out->n_train] = layout->test;
    out->names[out->n_train + 1] = layout->names;
}

static void files_free(files *f) {
    for (int k = 0; k < MAX_FILES; k++) {
        ct_blob_free(&f->blobs[k]);
        ct_free(f->paths[k]);
    }
}

static size_t record_bytes(const ct_cifar_layout *layout) {
    return (size_t)layout->n_label_bytes + N_PIXELS;
}

static ct_status check_records(const char *path, size_t n, size_t record) {
    if (n == 0) return ct_fail(CT_IO, "%s: empty", path);
    if (n % record != 0)
        return ct_fail(CT_IO, "%s: %zu bytes are not a whole number of records of %zu", path, n,
                       record);
    return CT_OK;
}

static ct_status read_dir(const char *dir, const char *hint, files *f) {
    for (int k = 0; k <= f->n_train; k++) {
        CT_TRY(ct_data_find(dir, f->names[k], hint, &f->paths[k]));
        CT_TRY(ct_file_read(f->paths[k], CT_DATA_MAX_BYTES, &f->blobs[k]));
        CT_TRY(check_records(f->paths[k], f->blobs[k].n, record_bytes(f->layout)));
    }
    int last = f->n_train + 1;
    if (f->names[last] == NULL || !ct_data_exists(dir, f->names[last])) return CT_OK;
    CT_TRY(ct_data_find(dir, f->names[last], hint, &f->paths[last]));
    return ct_file_read(f->paths[last], CT_DATA_MAX_BYTES, &f->blobs[last]);
}

/* A member of the archive, if it is one of the files. */
static ct_status read_member(ct_tar *tar, const char *archive, const ct_tar_entry *entry,
                             files *f) {
    const char *slash = strrchr(entry->name, '/');
    const char *name = slash != NULL ? slash + 1 : entry->name;
    for (int k = 0; k < f->n_train + 2; k++) {
        if (f->names[k] == NULL || strcmp(name, f->names[k]) != 0) continue;
        if (f->paths[k] != NULL)
            return ct_fail(CT_IO, "%s: two members are named %s", archive, name);
        f->paths[k] = ct_path_join(archive, entry->name);
        if (f->paths[k] == NULL) return ct_fail(CT_NOMEM, "no memory for a file name");
        CT_TRY(ct_tar_blob(tar, entry, CT_DATA_MAX_BYTES, &f->blobs[k]));
        if (k <= f->n_train)
            CT_TRY(check_records(f->paths[k], f->blobs[k].n, record_bytes(f->layout)));
    }
    return CT_OK;
}

static ct_status read_archive(const char *archive, files *f) {
    ct_tar *tar = NULL;
    bool more = true;
    CT_TRY(ct_tar_open(archive, CT_DATA_MAX_BYTES, &tar));
    ct_status status = CT_OK;
    while (status == CT_OK && more) {
        ct_tar_entry entry;
        status = ct_tar_next(tar, &entry, &more);
        if (status == CT_OK && more && !entry.is_dir) status = read_member(tar, archive, &entry, f);
    }
    ct_tar_close(&tar);
    for (int k = 0; k <= f->n_train && status == CT_OK; k++)
        if (f->paths[k] == NULL)
            status = ct_fail(CT_IO, "%s: %s is not in the archive", archive, f->names[k]);
    return status;
}

/* Takes the records of files first .. last apart. */
static ct_status unpack(const files *f, int first, int last, ct_images *out) {
    const ct_cifar_layout *layout = f->layout;
    size_t record = record_bytes(layout), n = 0;
    for (int k = first; k <= last; k++) n += f->blobs[k].n / record;
    CT_TRY(ct_images_create(n, CHANNELS, SIDE, SIDE, out));
    size_t at = 0;
    for (int k = first; k <= last; k++) {
        size_t n_here = f->blobs[k].n / record;
        const uint8_t *from = f->blobs[k].bytes;
        for (size_t i = 0; i < n_here; i++, from += record) {
            out->labels[at + i] = from[layout->label_byte];
            memcpy(out->pixels + (at + i) * N_PIXELS, from + layout->n_label_bytes, N_PIXELS);
        }
        CT_TRY(ct_labels_check(f->paths[k], out->labels + at, n_here, layout->n_classes));
        at += n_here;
    }
    return CT_OK;
}

/* The names, one a line, if there are as many as classes. */
static ct_status keep_names(const ct_blob *text, int n_classes, char **out) {
    ct_text names = {0};
    int n = 0;
    for (const char *line = (const char *)text->bytes; line != NULL && *line != '\0';) {
        size_t length = strcspn(line, "\r\n");
        if (length > 0 && n < n_classes) {
            ct_text_add(&names, "%.*s%c", (int)length, line, '\0');
            n++;
        }
        line += length + strspn(line + length, "\r\n");
    }
    if (n == n_classes && !names.failed)
        *out = names.chars;
    else
        ct_text_free(&names);
    return CT_OK;
}

static void describe(const ct_cifar_layout *layout, const char *source, ct_dataset *out) {
    out->n_classes = layout->n_classes;
    for (int c = 0; c < CHANNELS; c++) {
        out->mean[c] = layout->mean[c];
        out->std[c] = layout->std[c];
    }
    out->crop_padding = 4;
    out->flip = true;
    snprintf(out->source, sizeof out->source, "%s", source);
}

/* The archive, if the files themselves are not there: `asked` itself, or in it. NULL: none. */
static ct_status find_archive(const ct_cifar_layout *layout, const char *asked, char **out) {
    *out = NULL;
    if (layout->archive == NULL) return CT_OK;
    char *path = ct_file_exists(asked) ? ct_strdup(asked) : ct_path_join(asked, layout->archive);
    if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a file name");
    if (ct_file_exists(path))
        *out = path;
    else
        ct_free(path);
    return CT_OK;
}

static ct_status read_files(const char *asked, files *f, char **source) {
    char hint[192];
    snprintf(hint, sizeof hint, "give the directory of %s and %s with @data-dir DIR",
             f->layout->train[0], f->layout->test);
    CT_TRY(ct_data_inner(asked, f->layout->subdir, f->layout->train[0], source));
    if (ct_data_exists(*source, f->layout->train[0])) return read_dir(*source, hint, f);
    char *archive = NULL;
    CT_TRY(find_archive(f->layout, asked, &archive));
    if (archive == NULL) return read_dir(*source, hint, f);
    ct_free(*source);
    *source = archive;
    return read_archive(archive, f);
}

ct_status ct_cifar_open(const ct_cifar_layout *layout, const ct_dataset_options *options,
                        ct_dataset *out) {
    const char *asked;
    char *source = NULL;
    files f;
    CT_TRY(ct_data_dir(out, options, NULL, "give its directory with @data-dir DIR", &asked));
    files_init(layout, &f);
    ct_status status = read_files(asked, &f, &source);
    if (status == CT_OK) status = unpack(&f, 0, f.n_train - 1, &out->train);
    if (status == CT_OK) status = unpack(&f, f.n_train, f.n_train, &out->test);
    if (status == CT_OK) describe(layout, source, out);
    if (status == CT_OK && f.blobs[f.n_train + 1].n > 0)
        status = keep_names(&f.blobs[f.n_train + 1], layout->n_classes, &out->class_names);
    files_free(&f);
    ct_free(source);
    return status;
}

bool ct_cifar_probe(const ct_cifar_layout *layout, const char *dir) {
    if (ct_file_exists(dir))
        return layout->archive != NULL && ct_path_suggests(dir, layout->archive);
    if (layout->archive != NULL && ct_data_has(dir, layout->archive)) return true;
    char *inner = NULL;
    if (ct_data_inner(dir, layout->subdir, layout->train[0], &inner) != CT_OK) return false;
    bool found = ct_data_exists(inner, layout->train[0]) && ct_data_exists(inner, layout->test);
    ct_free(inner);
    return found;
}
