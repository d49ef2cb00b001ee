#include "data/listing.h"

#include "data/dataset_internal.h"
#include "util/hash.h"
#include "util/memory.h"
#include "util/text.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Strings one after the other. */
typedef struct strings {
    ct_text text;
    size_t *at; /* [n] where each begins */
    size_t n;
} strings;

static const char *string_at(const strings *s, size_t i) {
    return s->text.chars + s->at[i];
}

static ct_status strings_add(strings *s, const char *folder, const char *name) {
    CT_TRY(ct_extend(&s->at, s->n, "a list of files"));
    s->at[s->n++] = s->text.n;
    ct_text_add(&s->text, "%s%s%s%c", folder, folder[0] != '\0' ? "/" : "", name, '\0');
    return ct_text_status(&s->text);
}

static void strings_free(strings *s) {
    ct_text_free(&s->text);
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
    CT_SCOPED_BLOCK(key) keys = NULL;
    CT_TRY(ct_make(&keys, n, "a list of files"));
    for (size_t i = 0; i < n; i++) keys[i] = (key){string_at(s, first + i), s->at[first + i]};
    qsort(keys, n, sizeof *keys, by_name);
    for (size_t i = 0; i < n; i++) s->at[first + i] = keys[i].at;
    return CT_OK;
}

static void close_dir(DIR **dir) {
    if (*dir != NULL) closedir(*dir);
}

/* Adds what lies in root/folder: files to `files`, folders to `folders`, as folder/name. A link
 * that leads nowhere is a file here, so that it is reported with the pictures. */
static ct_status read_folder(const char *root, const char *folder, strings *files,
                             strings *folders) {
    ct_path path = folder[0] != '\0' ? ct_path_in(root, folder) : ct_path_in("", root);
    CT_SCOPED_BY(close_dir, DIR *) dir = opendir(path.text);
    if (dir == NULL) return ct_file_failed(path.text);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        bool is_dir = e->d_type == DT_DIR;
        if (e->d_type == DT_LNK || e->d_type == DT_UNKNOWN)
            is_dir = ct_dir_exists(ct_path_in(path.text, e->d_name).text);
        strings *list = is_dir ? folders : files;
        if (list != NULL) CT_TRY(strings_add(list, folder, e->d_name));
    }
    return CT_OK;
}

/* All files below root/folder, sorted; folders still to be read wait in a list. */
static ct_status read_class(const char *root, const char *folder, strings *files) {
    CT_SCOPED(strings) waiting = {0};
    size_t first = files->n;
    CT_TRY(strings_add(&waiting, "", folder));
    for (size_t k = 0; k < waiting.n; k++) {
        ct_path name = ct_path_in("", string_at(&waiting, k)); /* a copy: the list may move */
        CT_TRY(read_folder(root, name.text, files, &waiting));
        if (waiting.n > 100000)
            return ct_fail(CT_IO, "%s/%s: more than 100000 folders", root, folder);
    }
    return strings_sort(files, first);
}

/* A walk through the names of sorted classes. */
typedef struct class_walk {
    const char *name;
    int32_t label, n;
} class_walk;

/* Goes on to a class whose name is not before those asked for so far; false: there is none. */
static bool walk_to(class_walk *w, const char *name) {
    int order = -1;
    while (w->label < w->n && (order = strcmp(w->name, name)) < 0) {
        w->name += strlen(w->name) + 1;
        w->label++;
    }
    return order == 0;
}

static ct_status label_files(ct_listing *out, size_t n, int32_t label) {
    for (; out->n < n; out->n++) {
        CT_TRY(ct_extend(&out->labels, out->n, "a list of files"));
        out->labels[out->n] = label;
    }
    return CT_OK;
}

static ct_status read_classes(const char *root, const ct_listing *classes, const strings *folders,
                              strings *files, ct_listing *out) {
    class_walk w = {classes->class_names, 0, classes->n_classes};
    for (size_t k = 0; k < folders->n; k++) {
        const char *name = string_at(folders, k);
        if (!walk_to(&w, name))
            return ct_fail(CT_IO, "%s/%s: a class that is not among the training ones", root, name);
        CT_TRY(read_class(root, name, files));
        CT_TRY(label_files(out, files->n, w.label));
    }
    if (out->n == 0) return ct_fail(CT_IO, "%s: no files in its folders", root);
    return CT_OK;
}

/* The names of sorted folders, packed in that order. */
static ct_status keep_class_names(const strings *folders, ct_listing *out) {
    ct_text names = {0};
    for (size_t k = 0; k < folders->n; k++)
        ct_text_add(&names, "%s%c", string_at(folders, k), '\0');
    out->class_names = names.chars;
    out->n_classes = (int)folders->n;
    return ct_text_status(&names);
}

ct_status ct_listing_read(const char *root, const ct_listing *classes, ct_listing *out) {
    CT_SCOPED(strings) folders = {0};
    CT_SCOPED(strings) files = {0};
    CT_SCOPED(ct_listing) listing = {0};
    CT_TRY(ct_make_text(&listing.root, root));
    CT_TRY(read_folder(root, "", NULL, &folders));
    if (folders.n == 0 || folders.n > CT_LISTING_MAX_CLASSES)
        return ct_fail(CT_IO, "%s: %zu folders; there must be one for each class", root, folders.n);
    CT_TRY(strings_sort(&folders, 0));
    CT_TRY(keep_class_names(&folders, &listing));
    CT_TRY(read_classes(root, classes != NULL ? classes : &listing, &folders, &files, &listing));
    listing.names = ct_take(&files.text.chars);
    listing.at = ct_take(&files.at);
    ct_move(out, &listing);
    return CT_OK;
}

ct_status ct_listing_read_all(const char *root, ct_listing *out) {
    CT_SCOPED(strings) files = {0};
    CT_SCOPED(ct_listing) listing = {0};
    CT_TRY(ct_make_text(&listing.root, root));
    CT_TRY(read_class(root, "", &files));
    if (files.n == 0) return ct_fail(CT_IO, "%s: no files in it", root);
    listing.n = files.n;
    listing.names = ct_take(&files.text.chars);
    listing.at = ct_take(&files.at);
    ct_move(out, &listing);
    return CT_OK;
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
    static const char what[] = "a list of files";
    CT_SCOPED_BLOCK(size_t) count = NULL; /* of each class so far */
    CT_SCOPED_BLOCK(size_t) round = NULL; /* that takes file i: every class's r-th is in round r */
    CT_SCOPED_BLOCK(size_t) n_round = NULL; /* files of a round */
    CT_SCOPED_BLOCK(bool) keep = NULL;
    CT_TRY(ct_make(&count, CT_LISTING_MAX_CLASSES, what));
    CT_TRY(ct_make(&round, l->n, what));
    CT_TRY(ct_make(&n_round, l->n, what));
    CT_TRY(ct_make(&keep, l->n, what));
    for (size_t i = 0; i < l->n; i++) n_round[round[i] = count[l->labels[i]]++]++;
    size_t last = 0, left = n; /* the last round takes the first `left` of its files */
    while (n_round[last] < left) left -= n_round[last++];
    for (size_t i = 0; i < l->n; i++) {
        keep[i] = round[i] < last || (round[i] == last && left > 0);
        left -= keep[i] && round[i] == last;
    }
    ct_listing_keep(l, keep);
    return CT_OK;
}

ct_status ct_listing_copy(const ct_listing *from, ct_listing *out) {
    size_t n_names = 0, n_classes = ct_names_bytes(from->class_names, from->n_classes);
    for (size_t i = 0; i < from->n; i++) {
        size_t end = from->at[i] + strlen(from->names + from->at[i]) + 1;
        if (end > n_names) n_names = end;
    }
    static const char what[] = "a list of files";
    CT_SCOPED(ct_listing) copy = {.n = from->n, .n_classes = from->n_classes};
    CT_TRY(ct_make_text(&copy.root, from->root));
    CT_TRY(ct_make_copy(&copy.names, from->names, n_names, what));
    CT_TRY(ct_make_copy(&copy.at, from->at, from->n, what));
    CT_TRY(ct_make_copy(&copy.labels, from->labels, from->n, what));
    CT_TRY(ct_make_copy(&copy.class_names, from->class_names, n_classes, what));
    ct_move(out, &copy);
    return CT_OK;
}

ct_path ct_listing_path(const ct_listing *listing, size_t i) {
    return ct_path_in(listing->root, listing->names + listing->at[i]);
}

uint64_t ct_listing_hash(const ct_listing *l) {
    uint64_t hash = CT_HASH_START;
    for (size_t i = 0; i < l->n; i++) {
        const char *name = l->names + l->at[i];
        hash = ct_hash(hash, name, strlen(name) + 1);
        hash = ct_hash_step(hash, (uint32_t)l->labels[i]);
    }
    return hash;
}

static bool is_picture_name(const char *dir, const char *name) {
    (void)dir;
    const char *dot = strrchr(name, '.');
    return dot != NULL && (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0 ||
                           strcasecmp(dot, ".png") == 0);
}

/* One of the first hundred entries of a folder that are not hidden is such a one. */
static bool has_entry(const char *path, bool (*is_one)(const char *dir, const char *name)) {
    CT_SCOPED_BY(close_dir, DIR *) dir = opendir(path);
    if (dir == NULL) return errno == ENOMEM; /* perhaps: opening it tells */
    for (int k = 0; k < 100; k++) {
        const struct dirent *e = readdir(dir);
        if (e == NULL) break;
        if (e->d_name[0] != '.' && is_one(path, e->d_name)) return true;
    }
    return false;
}

static bool is_folder_of_pictures(const char *dir, const char *name) {
    return has_entry(ct_path_in(dir, name).text, is_picture_name);
}

bool ct_listing_looks_right(const char *root) {
    return has_entry(root, is_folder_of_pictures);
}
