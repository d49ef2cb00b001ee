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
#include <unistd.h>

typedef struct archive {
    const char *set, *file, *folder, *url, *digest;
} archive;

static const archive archives[] = {
#define ARCHIVE(set, file, folder, url, digest) {set, file, folder, url, digest},
#include "data/archive_list.h"
#undef ARCHIVE
};
enum { N_ARCHIVES = sizeof archives / sizeof *archives };

#define MAX_UNPACKED ((uint64_t)1 << 42) /* ImageNet has 150 GB */
#define MAX_RATIO    40 /* pictures and CIFAR pack to 1/1 .. 1/2; bombs to 1/1000 */

const char *ct_known_digest(const char *set, const char *file) {
    for (int k = 0; k < N_ARCHIVES; k++)
        if (strcmp(archives[k].set, set) == 0 && strcmp(archives[k].file, file) == 0)
            return archives[k].digest;
    return NULL;
}

static ct_status unknown(const char *set) {
    ct_text known = {0};
    for (int k = 0; k < N_ARCHIVES; k++)
        if (k == 0 || strcmp(archives[k].set, archives[k - 1].set) != 0)
            ct_text_add(&known, "%s%s", k == 0 ? "" : ", ", archives[k].set);
    ct_status status = ct_text_status(&known);
    if (status == CT_OK)
        status = ct_fail(CT_INVAL, "no archive of '%s' is known; known: %s", set, known.chars);
    ct_text_free(&known);
    return status;
}

static void remove_tree(char *path) {
    char *roots[] = {path, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (walk == NULL) return;
    for (FTSENT *e = fts_read(walk); e != NULL; e = fts_read(walk))
        if (e->fts_info != FTS_D) remove(e->fts_accpath);
    fts_close(walk);
}

static uint64_t file_bytes(const char *path) {
    FILE *f = fopen(path, "rb");
    long n = f != NULL && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : 0;
    if (f != NULL) fclose(f);
    return n > 0 ? (uint64_t)n : 0;
}

/* Unpacks beside `target`, then moves the archive's folder to it: it appears whole or not at all.
 */
static ct_status unpack(const char *path, const char *dir, const char *folder) {
    ct_text scratch = {0}, from = {0};
    char *target = ct_path_join(dir, folder);
    ct_text_add(&scratch, "%s/.unpacking-%ld", dir, (long)getpid());
    ct_text_add(&from, "%s/.unpacking-%ld/%s", dir, (long)getpid(), folder);
    uint64_t most = file_bytes(path) * MAX_RATIO + (1 << 20);
    ct_status status =
        target != NULL && !scratch.failed && !from.failed
            ? ct_tar_unpack(path, scratch.chars, most < MAX_UNPACKED ? most : MAX_UNPACKED)
            : ct_fail(CT_NOMEM, "no memory for a file name");
    if (status == CT_OK && rename(from.chars, target) != 0)
        status =
            ct_fail(CT_IO, "%s: %s; the archive should hold %s", target, strerror(errno), folder);
    if (!scratch.failed) remove_tree(scratch.chars);
    ct_text_free(&from);
    ct_text_free(&scratch);
    ct_free(target);
    return status;
}

static ct_status get_one(const archive *a, const char *dir, const ct_get_options *options) {
    const char *base = options->url != NULL ? options->url : a->url;
    const char *digest = options->digest != NULL ? options->digest : a->digest;
    ct_text url = {0};
    size_t n = strlen(base);
    ct_text_add(&url, "%s%s%s", base, n > 0 && base[n - 1] == '/' ? "" : "/", a->file);
    char *path = ct_path_join(dir, a->file);
    char *target = ct_path_join(dir, a->folder != NULL ? a->folder : a->file);
    ct_fetch_options fetch = {
        .digest = digest, .progress = options->progress, .pause_s = options->pause_s};
    ct_status status = path != NULL && target != NULL && !url.failed
                           ? CT_OK
                           : ct_fail(CT_NOMEM, "no memory for a file name");
    bool is_there = status == CT_OK && (ct_dir_exists(target) || ct_file_exists(target));
    if (is_there) ct_note("%s is there already", target);
    if (status == CT_OK && !is_there && !ct_file_exists(path))
        status = ct_fetch(url.chars, path, &fetch);
    if (status == CT_OK && !is_there && a->folder != NULL) {
        status = unpack(path, dir, a->folder);
        if (status == CT_OK) remove(path);
    }
    ct_free(target);
    ct_free(path);
    ct_text_free(&url);
    return status;
}

ct_status ct_get(const char *set, const char *dir, const ct_get_options *options) {
    bool found = false;
    for (int k = 0; k < N_ARCHIVES; k++) {
        if (strcmp(archives[k].set, set) != 0) continue;
        if (!found) CT_TRY(ct_dir_create(dir));
        found = true;
        CT_TRY(get_one(&archives[k], dir, options));
    }
    return found ? CT_OK : unknown(set);
}
