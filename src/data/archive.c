/* Which files the official sets are made of, and getting them. */
#include "data/fetch.h"

#include "data/tar.h"
#include "util/file.h"
#include "util/log.h"
#include "util/memory.h"
#include "util/text.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct archive {
    const char *set, *file;
    int64_t n_bytes;
    const char *digest, *url, *folder, *contents;
} archive;

static const archive archives[] = {
#define ARCHIVE(set, file, n_bytes, digest, url, folder, contents)                                 \
    {set, file, n_bytes, digest, url, folder, contents},
#include "data/archive_list.h"
#undef ARCHIVE
};
enum { N_ARCHIVES = sizeof archives / sizeof *archives };

#define MAX_OTHER    ((int64_t)4 << 30)  /* bytes of an archive that the user names */
#define MAX_UNPACKED ((uint64_t)1 << 42) /* ImageNet has 150 GB */
#define MAX_RATIO    40                /* pictures and CIFAR pack to 1/1 .. 1/2; bombs to 1/1000 */
#define MAX_LIST     ((size_t)1 << 28) /* of digests: ImageNet's would have 120 MB */

static ct_status unknown(const char *set) {
    CT_SCOPED(ct_text) known = {0};
    ct_guess guess = {.word = set};
    for (int k = 0; k < N_ARCHIVES; k++) {
        if (k > 0 && strcmp(archives[k].set, archives[k - 1].set) == 0) continue;
        ct_guess_try(&guess, archives[k].set);
        ct_text_add(&known, "%s%s", k == 0 ? "" : ", ", archives[k].set);
    }
    CT_TRY(ct_text_status(&known));
    bool is_near = guess.nearest[0] != '\0';
    return ct_fail(CT_INVAL, "no archive of '%s' is known; %s%s%sknown: %s", set,
                   is_near ? "did you mean " : "", guess.nearest, is_near ? "? " : "", known.chars);
}

/* ---- what was published ---- */

/* The next "digest  name" of a list; false at its end, or where it is damaged. */
static bool next_line(const char **list, ct_published *out) {
    const size_t head = CT_DIGEST_TEXT - 1 + 2;
    const char *end = strchr(*list, '\n');
    size_t n = end != NULL ? (size_t)(end - *list) : 0;
    if (n <= head || n - head >= sizeof out->name) return false;
    out->kind = CT_UNPACKED;
    snprintf(out->digest, sizeof out->digest, "%.64s", *list);
    snprintf(out->name, sizeof out->name, "%.*s", (int)(n - head), *list + head);
    *list = end + 1;
    return true;
}

bool ct_published_file(const char *set, int k, ct_published *out) {
    for (const archive *a = archives; a < archives + N_ARCHIVES; a++) {
        if (strcmp(a->set, set) != 0) continue;
        out->kind = a->folder != NULL ? CT_ARCHIVE : CT_PACKED;
        snprintf(out->name, sizeof out->name, "%s", a->file);
        snprintf(out->digest, sizeof out->digest, "%s", a->digest);
        if (k-- == 0) return true;
        for (const char *list = a->contents; list != NULL && next_line(&list, out);)
            if (k-- == 0) return true;
    }
    return false;
}

static ct_status check_file(const char *path, const char *digest) {
    char got[CT_DIGEST_TEXT];
    CT_TRY(ct_digest_file(path, got));
    if (strcmp(got, digest) == 0) return CT_OK;
    return ct_fail(CT_IO, "%s is not as published: its SHA-256 is %s, not %s", path, got, digest);
}

/* Every file of the list is in the folder, and right. */
static ct_status check_folder(const char *folder, const char *list) {
    ct_published file;
    while (next_line(&list, &file))
        CT_TRY(check_file(ct_path_in(folder, file.name).text, file.digest));
    return *list == '\0' ? CT_OK : ct_fail(CT_IO, "%s: its list of digests is damaged", folder);
}

/* ---- one file of a set ---- */

typedef struct order {
    const archive *a;
    const ct_get_options *options;
    const char *digest;
    ct_path path, target;     /* the file, and what is made of it */
    ct_path scratch, list;    /* to unpack in; digests of what was unpacked */
    bool has_published_files; /* their digests are built in */
} order;

static order order_of(const archive *a, const char *dir, const ct_get_options *options) {
    order o = {.a = a, .options = options};
    o.digest = options->digest != NULL ? options->digest : a->digest;
    o.path = ct_path_in(dir, a->file);
    o.target = ct_path_in(dir, a->folder != NULL ? a->folder : a->file);
    o.scratch = ct_path_in(dir, ".unpacking");
    char list[128];
    snprintf(list, sizeof list, "%s.sha256", a->folder != NULL ? a->folder : a->file);
    o.list = ct_path_in(dir, list);
    o.has_published_files = a->contents != NULL && options->digest == NULL;
    return o;
}

static ct_status check_target(const order *o) {
    CT_SCOPED(ct_blob) list = {0};
    if (o->a->folder == NULL) return check_file(o->target.text, o->digest);
    if (o->has_published_files) return check_folder(o->target.text, o->a->contents);
    if (!ct_file_exists(o->list.text))
        return ct_fail(CT_IO, "%s cannot be checked without %s", o->target.text, o->list.text);
    CT_TRY(ct_file_read(o->list.text, MAX_LIST, &list));
    return check_folder(o->target.text, (const char *)list.bytes);
}

static ct_status check_archive(const order *o) {
    return check_file(o->path.text, o->digest);
}

/* *right: what lies at `path` is as published. What is not is the user's, who says what becomes of
 * it. */
static ct_status look(const order *o, const char *path, ct_status (*check)(const order *o),
                      bool *right) {
    struct stat info;
    ct_error error;
    *right = false;
    if (lstat(path, &info) != 0) return CT_OK;
    ct_status status = CT_CATCH(&error, check(o));
    *right = status == CT_OK;
    if (*right) return CT_OK;
    if (!o->options->replace) return ct_fail(status, "%s; get it anew with @force", error.text);
    ct_note("%s; getting it anew", error.text);
    return CT_OK;
}

static void remove_tree(char *path) {
    char *roots[] = {path, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (walk == NULL) return;
    for (FTSENT *e = fts_read(walk); e != NULL; e = fts_read(walk))
        if (e->fts_info != FTS_D) remove(e->fts_accpath);
    fts_close(walk);
}

static int by_name(const FTSENT **a, const FTSENT **b) {
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static void close_walk(FTS **walk) {
    if (*walk != NULL) fts_close(*walk);
}

/* Notes the digests of all that is in the folder. */
static ct_status write_list(const order *o, char *folder) {
    char *roots[] = {folder, NULL};
    CT_SCOPED(ct_text) list = {0};
    CT_SCOPED_BY(close_walk, FTS *) walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    if (walk == NULL) return ct_file_failed(folder);
    for (FTSENT *e = fts_read(walk); e != NULL; e = fts_read(walk)) {
        char digest[CT_DIGEST_TEXT];
        if (e->fts_info == FTS_D || e->fts_info == FTS_DP) continue;
        CT_TRY(ct_digest_file(e->fts_path, digest));
        ct_text_add(&list, "%s  %s\n", digest, e->fts_path + strlen(folder) + 1);
    }
    CT_TRY(ct_text_status(&list));
    return ct_file_write(o->list.text, list.chars, list.n);
}

static uint64_t file_bytes(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && info.st_size > 0 ? (uint64_t)info.st_size : 0;
}

/* Moves the unpacked folder to its place; what is there is to be replaced. */
static ct_status move_in(const order *o, char *from) {
    ct_path old = ct_path_in(o->scratch.text, ".replaced");
    if (!ct_dir_exists(from))
        return ct_fail(CT_IO, "%s: the archive should hold %s", o->path.text, o->a->folder);
    CT_TRY(o->has_published_files ? check_folder(from, o->a->contents) : write_list(o, from));
    if (rename(o->target.text, old.text) != 0 && errno != ENOENT)
        return ct_file_failed(o->target.text);
    if (rename(from, o->target.text) == 0) return CT_OK;
    ct_status status = ct_file_failed(o->target.text);
    (void)rename(old.text, o->target.text);
    return status;
}

/* Unpacks beside the target: it appears whole or not at all. */
static ct_status unpack(order *o) {
    ct_path from = ct_path_in(o->scratch.text, o->a->folder);
    uint64_t most = file_bytes(o->path.text) * MAX_RATIO + (1 << 20);
    remove_tree(o->scratch.text); /* of one that was killed */
    ct_status status =
        ct_tar_unpack(o->path.text, o->scratch.text, most < MAX_UNPACKED ? most : MAX_UNPACKED);
    if (status == CT_OK) status = move_in(o, from.text);
    remove_tree(o->scratch.text);
    return status;
}

static ct_status get_one(const archive *a, const char *dir, const ct_get_options *options) {
    order o = order_of(a, dir, options);
    ct_path url = ct_path_in(options->url != NULL ? options->url : a->url, a->file);
    ct_fetch_options fetch = {.digest = o.digest,
                              .max_bytes = options->digest != NULL ? MAX_OTHER : a->n_bytes,
                              .progress = options->progress,
                              .pause_s = options->pause_s};
    bool is_right, has_archive = false;
    CT_TRY(look(&o, o.target.text, check_target, &is_right));
    if (is_right) {
        ct_note("%s is there already, as published", o.target.text);
        return CT_OK;
    }
    if (a->folder == NULL) return ct_fetch(url.text, o.path.text, &fetch);
    CT_TRY(look(&o, o.path.text, check_archive, &has_archive));
    if (!has_archive) CT_TRY(ct_fetch(url.text, o.path.text, &fetch));
    CT_TRY(unpack(&o));
    if (!has_archive) remove(o.path.text); /* one that was there before is the user's */
    return CT_OK;
}

ct_status ct_get(const char *set, const char *dir, const ct_get_options *options) {
    CT_SCOPED_BY(ct_dir_unlock, int) lock = -1;
    bool found = false;
    for (int k = 0; k < N_ARCHIVES; k++) {
        if (strcmp(archives[k].set, set) != 0) continue;
        if (!found) CT_TRY(ct_dir_create(dir));
        if (!found && !ct_dir_lock(dir, &lock))
            return ct_fail(CT_BUSY, "%s: another process is getting a set into it", dir);
        found = true;
        CT_TRY(get_one(&archives[k], dir, options));
    }
    return found ? CT_OK : unknown(set);
}
