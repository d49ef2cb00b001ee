#include "data/listing.h"

#include "util/file.h"
#include "util/memory.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* Strings one after the other. */
typedef struct strings {
    char *chars;
    size_t n_chars, capacity;
    size_t *at;
    size_t n, capacity_at;
} strings;

static ct_status no_memory(void) {
    return ct_fail(CT_NOMEM, "no memory to list files");
}

static ct_status strings_add(strings *s, const char *first, const char *second) {
    size_t n_first = strlen(first), n = n_first + strlen(second) + 2;
    if (s->n_chars + n > s->capacity) {
        size_t wanted = 2 * (s->n_chars + n) + 4096;
        char *chars = ct_grow(s->chars, s->n_chars, wanted, 1);
        if (chars == NULL) return no_memory();
        s->chars = chars;
        s->capacity = wanted;
    }
    if (s->n == s->capacity_at) {
        size_t wanted = 2 * s->n + 256;
        size_t *at = ct_grow(s->at, s->n, wanted, sizeof *at);
        if (at == NULL) return no_memory();
        s->at = at;
        s->capacity_at = wanted;
    }
    s->at[s->n++] = s->n_chars;
    char *to = s->chars + s->n_chars;
    memcpy(to, first, n_first);
    if (n_first > 0) to[n_first++] = '/';
    memcpy(to + n_first, second, strlen(second) + 1);
    s->n_chars += n_first + strlen(second) + 1;
    return CT_OK;
}

static void strings_free(strings *s) {
    ct_free(s->chars);
    ct_free(s->at);
    *s = (strings){0};
}

typedef struct key {
    const char *name;
    size_t at;
} key;

static int by_name(const void *a, const void *b) {
    return strcmp(((const key *)a)->name, ((const key *)b)->name);
}

/* Sorts strings first .. n-1. */
static ct_status strings_sort(strings *s, size_t first) {
    size_t n = s->n - first;
    key *keys = ct_new(key, n);
    if (keys == NULL) return no_memory();
    for (size_t i = 0; i < n; i++) keys[i] = (key){s->chars + s->at[first + i], s->at[first + i]};
    qsort(keys, n, sizeof *keys, by_name);
    for (size_t i = 0; i < n; i++) s->at[first + i] = keys[i].at;
    ct_free(keys);
    return CT_OK;
}

/* Adds what lies in root/folder: files to `files`, folders to `folders`, as folder/name. A link
 * that leads nowhere is a file here, so that it is reported with the pictures. */
static ct_status read_folder(const char *root, const char *folder, strings *files,
                             strings *folders) {
    char *path = folder[0] != '\0' ? ct_path_join(root, folder) : ct_strdup(root);
    if (path == NULL) return no_memory();
    DIR *dir = opendir(path);
    ct_status status = CT_OK;
    if (dir == NULL) status = ct_fail(CT_IO, "%s: %s", path, strerror(errno));
    for (struct dirent *e; status == CT_OK && (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        bool is_dir = e->d_type == DT_DIR;
        if (e->d_type == DT_LNK || e->d_type == DT_UNKNOWN) {
            char *full = ct_path_join(path, e->d_name);
            if (full == NULL) status = no_memory();
            is_dir = full != NULL && ct_dir_exists(full);
            ct_free(full);
        }
        strings *list = is_dir ? folders : files;
        if (list != NULL && status == CT_OK) status = strings_add(list, folder, e->d_name);
    }
    if (dir != NULL) closedir(dir);
    ct_free(path);
    return status;
}

/* All files below root/folder, sorted; folders still to be read wait in a list. */
static ct_status read_class(const char *root, const char *folder, strings *files) {
    strings waiting = {0};
    size_t first = files->n;
    ct_status status = strings_add(&waiting, "", folder);
    for (size_t k = 0; k < waiting.n && status == CT_OK; k++) {
        char *name = ct_strdup(waiting.chars + waiting.at[k]); /* the list may move */
        status = name != NULL ? read_folder(root, name, files, &waiting) : no_memory();
        ct_free(name);
        if (waiting.n > 100000)
            status = ct_fail(CT_IO, "%s/%s: more than 100000 folders", root, folder);
    }
    strings_free(&waiting);
    return status == CT_OK ? strings_sort(files, first) : status;
}

/* Place of a name among class names; -1: not there. */
static int32_t find_class(const ct_listing *classes, const char *name) {
    const char *at = classes->class_names;
    for (int32_t k = 0; k < classes->n_classes; k++, at += strlen(at) + 1)
        if (strcmp(at, name) == 0) return k;
    return -1;
}

static ct_status label_files(ct_listing *out, size_t n, int32_t label) {
    int32_t *labels = ct_grow(out->labels, out->n, n, sizeof *labels);
    if (labels == NULL) return no_memory();
    for (size_t i = out->n; i < n; i++) labels[i] = label;
    out->labels = labels;
    out->n = n;
    return CT_OK;
}

static ct_status read_classes(const char *root, const ct_listing *classes, const strings *folders,
                              strings *files, ct_listing *out) {
    for (size_t k = 0; k < folders->n; k++) {
        const char *name = folders->chars + folders->at[k];
        int32_t label = classes != NULL ? find_class(classes, name) : (int32_t)k;
        if (label < 0)
            return ct_fail(CT_IO, "%s/%s: a class that is not among the training ones", root, name);
        CT_TRY(read_class(root, name, files));
        CT_TRY(label_files(out, files->n, label));
    }
    if (out->n == 0) return ct_fail(CT_IO, "%s: no files in its folders", root);
    return CT_OK;
}

/* The names of sorted folders, packed in that order. */
static ct_status keep_class_names(const strings *folders, ct_listing *out) {
    strings sorted = {0};
    for (size_t k = 0; k < folders->n; k++) {
        ct_status status = strings_add(&sorted, "", folders->chars + folders->at[k]);
        if (status == CT_OK) continue;
        strings_free(&sorted);
        return status;
    }
    ct_free(sorted.at);
    out->class_names = sorted.chars;
    out->n_classes = (int)folders->n;
    return CT_OK;
}

ct_status ct_listing_read(const char *root, const ct_listing *classes, ct_listing *out) {
    strings folders = {0}, files = {0};
    ct_listing listing = {.root = ct_strdup(root)};
    ct_status status = listing.root != NULL ? CT_OK : no_memory();
    if (status == CT_OK) status = read_folder(root, "", NULL, &folders);
    if (status == CT_OK && (folders.n == 0 || folders.n > CT_LISTING_MAX_CLASSES))
        status =
            ct_fail(CT_IO, "%s: %zu folders; there must be one for each class", root, folders.n);
    if (status == CT_OK) status = strings_sort(&folders, 0);
    if (status == CT_OK) status = keep_class_names(&folders, &listing);
    if (status == CT_OK) status = read_classes(root, classes, &folders, &files, &listing);
    listing.names = files.chars;
    listing.at = files.at;
    strings_free(&folders);
    if (status == CT_OK)
        *out = listing;
    else
        ct_listing_free(&listing);
    return status;
}

void ct_listing_free(ct_listing *listing) {
    ct_free(listing->class_names);
    ct_free(listing->labels);
    ct_free(listing->at);
    ct_free(listing->names);
    ct_free(listing->root);
    *listing = (ct_listing){0};
}

void ct_listing_keep(ct_listing *l, const bool *keep) {
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        if (!keep[i]) continue;
        l->at[n] = l->at[i];
        l->labels[n++] = l->labels[i];
    }
    l->n = n;
}

ct_status ct_listing_shorten(ct_listing *l, size_t n) {
    if (n == 0 || n >= l->n) return CT_OK;
    size_t *count = ct_new(size_t, CT_LISTING_MAX_CLASSES);
    bool *keep = ct_new(bool, l->n);
    ct_status status = count != NULL && keep != NULL ? CT_OK : no_memory();
    size_t kept = 0;
    /* Round r takes every class's r-th file; a round that would be too many takes the first ones.
     */
    for (size_t r = 0; kept < n && status == CT_OK; r++) {
        memset(count, 0, CT_LISTING_MAX_CLASSES * sizeof *count);
        for (size_t i = 0; i < l->n && kept < n; i++)
            if (count[l->labels[i]]++ == r) {
                keep[i] = true;
                kept++;
            }
    }
    if (status == CT_OK) ct_listing_keep(l, keep);
    ct_free(keep);
    ct_free(count);
    return status;
}

ct_status ct_listing_copy(const ct_listing *from, ct_listing *out) {
    size_t n_names = 0, n_classes = 0;
    for (size_t i = 0; i < from->n; i++) {
        size_t end = from->at[i] + strlen(from->names + from->at[i]) + 1;
        if (end > n_names) n_names = end;
    }
    for (int k = 0; k < from->n_classes; k++)
        n_classes += strlen(from->class_names + n_classes) + 1;
    ct_listing copy = {.root = ct_strdup(from->root), .n = from->n, .n_classes = from->n_classes};
    copy.names = ct_new(char, n_names);
    copy.at = ct_new(size_t, from->n);
    copy.labels = ct_new(int32_t, from->n);
    copy.class_names = ct_new(char, n_classes);
    if (copy.root == NULL || copy.names == NULL || copy.at == NULL || copy.labels == NULL ||
        copy.class_names == NULL) {
        ct_listing_free(&copy);
        return no_memory();
    }
    memcpy(copy.names, from->names, n_names);
    memcpy(copy.at, from->at, from->n * sizeof *copy.at);
    memcpy(copy.labels, from->labels, from->n * sizeof *copy.labels);
    memcpy(copy.class_names, from->class_names, n_classes);
    *out = copy;
    return CT_OK;
}

char *ct_listing_path(const ct_listing *listing, size_t i) {
    return ct_path_join(listing->root, listing->names + listing->at[i]);
}

uint64_t ct_listing_hash(const ct_listing *l) {
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < l->n; i++) {
        for (const char *c = l->names + l->at[i];; c++) {
            hash = (hash ^ (uint8_t)*c) * 0x100000001b3u;
            if (*c == '\0') break;
        }
        hash = (hash ^ (uint32_t)l->labels[i]) * 0x100000001b3u;
    }
    return hash;
}

static bool is_picture_name(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot != NULL && (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0 ||
                           strcasecmp(dot, ".png") == 0);
}

/* A picture's name among the first hundred entries of a folder. */
static bool has_picture(const char *path) {
    DIR *dir = opendir(path);
    bool found = false;
    if (dir == NULL) return false;
    for (int k = 0; k < 100 && !found; k++) {
        const struct dirent *e = readdir(dir);
        if (e == NULL) break;
        found = is_picture_name(e->d_name);
    }
    closedir(dir);
    return found;
}

bool ct_listing_looks_right(const char *root) {
    DIR *dir = opendir(root);
    bool found = false;
    if (dir == NULL) return false;
    for (int k = 0; k < 100 && !found; k++) {
        const struct dirent *e = readdir(dir);
        if (e == NULL) break;
        if (e->d_name[0] == '.') continue;
        char *path = ct_path_join(root, e->d_name);
        found = path != NULL && ct_dir_exists(path) && has_picture(path);
        ct_free(path);
    }
    closedir(dir);
    return found;
}
