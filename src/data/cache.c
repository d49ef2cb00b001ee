/* The on-disk cache: one pack of small pictures for each listing and size. Its name is made of the
 * names, sizes and times of the files, so that a changed folder gets another one. A pack that is
 * damaged is made anew; several processes may make the same one, the last to finish wins. */
#include "data/pictures_internal.h"

#include "util/file.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#define CHUNK 512 /* pictures decoded before they are written */

/* Names, labels, sizes and times of the files. */
static uint64_t hash_files(const ct_listing *files) {
    uint64_t hash = ct_listing_hash(files);
    for (size_t i = 0; i < files->n; i++) {
        struct stat info;
        ct_path path = ct_listing_path(files, i);
        bool there = stat(path.text, &info) == 0;
        hash = ct_hash_number(hash, there ? (uint64_t)info.st_size : UINT64_MAX);
        hash = ct_hash_number(hash, there ? (uint64_t)info.st_mtim.tv_sec : 0);
        hash = ct_hash_number(hash, there ? (uint64_t)info.st_mtim.tv_nsec : 0);
    }
    return hash;
}

/* ---- making a pack ---- */

/* Into the place of picture i in a chunk. */
static ct_status decode_one(ct_sweep *s, size_t i, int worker) {
    ct_picture *chunk = s->context, small;
    CT_TRY(ct_pictures_decode(s->pictures, i, s->decoder[worker], &small));
    return ct_picture_copy(&small, &chunk[i % CHUNK]);
}

/* CHUNK pictures on their way. */
typedef struct picture_chunk {
    ct_picture *pictures;
} picture_chunk;

static void picture_chunk_free(picture_chunk *c) {
    for (size_t i = 0; c->pictures != NULL && i < CHUNK; i++)
        ct_free((void *)c->pictures[i].pixels);
    ct_free(c->pictures);
}

/* Adds pictures first .. end-1 of a chunk. */
static ct_status write_chunk(const ct_sweep *s, const ct_picture *chunk, size_t first, size_t end,
                             ct_pack_writer *writer) {
    const ct_listing *files = &s->pictures->files;
    for (size_t i = first; i < end; i++) {
        const ct_picture *small = &chunk[i % CHUNK];
        const char *name = files->names + files->at[i], *reason = s->reason[i];
        if (small->pixels != NULL)
            CT_TRY(ct_pack_writer_add(writer, small, (uint32_t)i, files->labels[i]));
        else if (s->pictures->spec.strict)
            return ct_fail(CT_IO, "%s/%s: %s", files->root, name, reason);
        else
            ct_note("%s/%s: %s; left out", files->root, name, reason);
    }
    return CT_OK;
}

ct_status ct_pictures_pack(ct_pictures *p, ct_pack_writer *writer) {
    CT_SCOPED_BY(ct_sweep_close, ct_sweep) s = {.pictures = p};
    size_t n = p->files.n;
    CT_TRY(ct_sweep_open(&s));
    for (size_t first = 0; first < n; first += CHUNK) {
        size_t end = n - first < CHUNK ? n : first + CHUNK;
        CT_SCOPED(picture_chunk) c = {0};
        CT_TRY(ct_make(&c.pictures, CHUNK, "the cache"));
        CT_TRY(ct_sweep_run(&s, decode_one, c.pictures, first, end, 1));
        CT_TRY(write_chunk(&s, c.pictures, first, end, writer));
    }
    return CT_OK;
}

static ct_status make_pack(ct_pictures *p, const char *path) {
    CT_SCOPED_BY(ct_pack_writer_abandon, ct_pack_writer *) writer = NULL;
    ct_pack_facts facts = {.name = "cache",
                           .n_classes = CT_LISTING_MAX_CLASSES,
                           .side = (uint32_t)p->spec.side,
                           .size = (uint32_t)p->spec.size};
    CT_TRY(ct_pack_writer_open(path, &writer));
    CT_TRY(ct_pictures_pack(p, writer));
    return ct_pack_writer_commit(&writer, &facts, NULL);
}

/* The pack's pictures are those of the listing, in order; others were left out when it was made. */
static ct_status use_pack(ct_pictures *p, const char *path, const ct_pack *pack) {
    const ct_pack_facts *facts = ct_pack_facts_of(pack);
    const ct_pack_entry *entries = ct_pack_entries(pack);
    CT_SCOPED_BLOCK(bool) keep = NULL;
    CT_TRY(ct_make(&keep, p->files.n, "the cache"));
    bool fits = facts->side == (uint32_t)p->spec.side && facts->n <= p->files.n;
    for (uint64_t i = 0; i < facts->n && fits; i++) {
        uint32_t source = entries[i].source;
        fits = source < p->files.n && entries[i].label == p->files.labels[source] &&
               (i == 0 || source > entries[i - 1].source);
        if (fits) keep[source] = true;
    }
    if (!fits) return ct_fail(CT_IO, "%s: a cache of other pictures", path);
    ct_listing_keep(&p->files, keep);
    return CT_OK;
}

static ct_status open_pack(ct_pictures *p, const char *path) {
    CT_SCOPED_BY(ct_pack_close, ct_pack *) pack = NULL;
    CT_TRY(ct_pack_open(path, &pack));
    CT_TRY(use_pack(p, path, pack));
    ct_move(&p->pack, &pack);
    return CT_OK;
}

ct_status ct_pictures_attach_cache(ct_pictures *p) {
    char name[64];
    ct_error error;
    CT_TRY(ct_dir_create(p->spec.cache));
    snprintf(name, sizeof name, "%016" PRIx64 "-%d%s.ctpack", hash_files(&p->files), p->spec.side,
             p->spec.random ? "-fast" : "");
    ct_path path = ct_path_in(p->spec.cache, name);
    if (ct_file_exists(path.text)) {
        ct_status status = CT_CATCH(&error, open_pack(p, path.text));
        if (status == CT_OK) return CT_OK;
        if (status != CT_IO) return ct_fail_again(&error);
        ct_note("%s; making it anew", error.text);
    }
    CT_TRY(make_pack(p, path.text));
    return open_pack(p, path.text);
}
