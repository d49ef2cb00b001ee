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
    CT_SCOPED(ct_text) known = {0};
    for (int k = 0; k < N_ARCHIVES; k++)
        if (k == 0 || strcmp(archives[k].set, archives[k - 1].set) != 0)
            ct_text_add(&known, "%s%s", k == 0 ? "" : ", ", archives[k].set);
    CT_TRY(ct_text_status(&known));
    return ct_fail(CT_INVAL, "no archive of '%s' is known; known: %s", set, known.chars);
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
    struct stat info;
    return stat(path, &info) == 0 && info.st_size > 0 ? (uint64_t)info.st_size : 0;
}

/* Unpacks beside `target`, then moves the archive's folder to it: it appears whole or not at all.
 */
static ct_status unpack(const char *path, const char *dir, const char *folder) {
    char name[64];
    snprintf(name, sizeof name, ".unpacking-%ld", (long)getpid());
    ct_path target = ct_path_in(dir, folder), scratch = ct_path_in(dir, name);
    ct_path from = ct_path_in(scratch.text, folder);
    uint64_t most = file_bytes(path) * MAX_RATIO + (1 << 20);
    ct_status status = ct_tar_unpack(path, scratch.text, most < MAX_UNPACKED ? most : MAX_UNPACKED);
    if (status == CT_OK && rename(from.text, target.text) != 0)
        status = ct_fail(CT_IO, "%s: %s; the archive should hold %s", target.text, strerror(errno),
                         folder);
    remove_tree(scratch.text);
    return status;
}

static ct_status get_one(const archive *a, const char *dir, const ct_get_options *options) {
    ct_path url = ct_path_in(options->url != NULL ? options->url : a->url, a->file);
    ct_path path = ct_path_in(dir, a->file);
    ct_path target = ct_path_in(dir, a->folder != NULL ? a->folder : a->file);
    ct_fetch_options fetch = {.digest = options->digest != NULL ? options->digest : a->digest,
                              .progress = options->progress,
                              .pause_s = options->pause_s};
    if (ct_dir_exists(target.text) || ct_file_exists(target.text)) {
        ct_note("%s is there already", target.text);
        return CT_OK;
    }
    if (!ct_file_exists(path.text)) CT_TRY(ct_fetch(url.text, path.text, &fetch));
    if (a->folder == NULL) return CT_OK;
    CT_TRY(unpack(path.text, dir, a->folder));
    remove(path.text);
    return CT_OK;
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
