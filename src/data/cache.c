/* The on-disk cache: one pack of small pictures for each listing and size. Its name is made of the
 * names, sizes and times of the files, so that a changed folder gets another one. A pack that is
 * damaged is made anew; several processes may make the same one, the last to finish wins. */
#include "data/pictures_internal.h"

#include "util/file.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/memory.h"
#include "util/threads.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
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

typedef struct chunk {
    ct_pictures *pictures;
    size_t first;
    ct_decoder **decoder;    /* [n_workers] */
    ct_picture small[CHUNK]; /* pixels NULL: cannot be read */
    char reason[CHUNK][96];
    atomic_int status;
} chunk;

static void decode_task(void *context, int task, int worker) {
    chunk *c = context;
    ct_picture p;
    c->small[task].pixels = NULL;
    ct_status status =
        ct_pictures_decode(c->pictures, c->first + (size_t)task, c->decoder[worker], &p);
    if (status == CT_IO) {
        snprintf(c->reason[task], sizeof c->reason[task], "%s",
                 ct_decoder_reason(c->decoder[worker]));
        return;
    }
    size_t n = status == CT_OK ? (size_t)p.width * (size_t)p.height * CT_PIXEL : 0;
    uint8_t *copy = status == CT_OK ? ct_alloc(n, 1) : NULL;
    if (copy == NULL) {
        atomic_store(&c->status, (int)(status == CT_OK ? CT_NOMEM : status));
        return;
    }
    memcpy(copy, p.pixels, n);
    p.pixels = copy;
    c->small[task] = p;
}

static ct_status write_chunk(chunk *c, int n, ct_pack_writer *writer) {
    const ct_listing *files = &c->pictures->files;
    ct_status status = (ct_status)atomic_load(&c->status);
    for (int k = 0; k < n; k++) {
        size_t i = c->first + (size_t)k;
        const char *name = files->names + files->at[i];
        if (c->small[k].pixels == NULL) {
            if (status == CT_OK && c->pictures->spec.strict)
                status = ct_fail(CT_IO, "%s/%s: %s", files->root, name, c->reason[k]);
            if (status == CT_OK) ct_note("%s/%s: %s; left out", files->root, name, c->reason[k]);
            continue;
        }
        if (status == CT_OK)
            status = ct_pack_writer_add(writer, &c->small[k], (uint32_t)i, files->labels[i]);
        ct_free((void *)c->small[k].pixels);
    }
    return status;
}

static ct_status write_all(ct_pictures *p, ct_pool *pool, ct_pack_writer *writer) {
    chunk *c = NULL;
    int n_workers = ct_pool_size(pool);
    ct_decoder **decoder = NULL;
    ct_status status = ct_make(&c, 1, "the cache");
    if (status == CT_OK) status = ct_make(&decoder, (size_t)n_workers, "the cache");
    for (int k = 0; k < n_workers && status == CT_OK; k++) status = ct_decoder_create(&decoder[k]);
    for (size_t first = 0; first < p->files.n && status == CT_OK; first += CHUNK) {
        int n = p->files.n - first < CHUNK ? (int)(p->files.n - first) : CHUNK;
        c->pictures = p;
        c->first = first;
        c->decoder = decoder;
        ct_pool_run(pool, n, decode_task, c);
        status = write_chunk(c, n, writer);
    }
    for (int k = 0; k < n_workers && decoder != NULL; k++) ct_decoder_free(&decoder[k]);
    ct_free(decoder);
    ct_free(c);
    return status;
}

ct_status ct_pictures_pack(ct_pictures *p, ct_pack_writer *writer) {
    ct_pool *pool = NULL;
    CT_TRY(ct_pool_create(p->spec.n_workers, &pool));
    ct_status status = write_all(p, pool, writer);
    ct_pool_free(&pool);
    return status;
}

static ct_status make_pack(ct_pictures *p, const char *path) {
    ct_pack_writer *writer = NULL;
    ct_pack_facts facts = {.name = "cache",
                           .n_classes = CT_LISTING_MAX_CLASSES,
                           .side = (uint32_t)p->spec.side,
                           .size = (uint32_t)p->spec.size};
    CT_TRY(ct_pack_writer_open(path, &writer));
    ct_status status = ct_pictures_pack(p, writer);
    if (status == CT_OK) return ct_pack_writer_commit(&writer, &facts, NULL);
    ct_pack_writer_abandon(&writer);
    return status;
}

/* The pack's pictures are those of the listing, in order; others were left out when it was made. */
static ct_status use_pack(ct_pictures *p, const char *path) {
    const ct_pack_facts *facts = ct_pack_facts_of(p->pack);
    const ct_pack_entry *entries = ct_pack_entries(p->pack);
    bool *keep = NULL;
    CT_TRY(ct_make(&keep, p->files.n, "the cache"));
    bool fits = facts->side == (uint32_t)p->spec.side && facts->n <= p->files.n;
    for (uint64_t i = 0; i < facts->n && fits; i++) {
        uint32_t source = entries[i].source;
        fits = source < p->files.n && entries[i].label == p->files.labels[source] &&
               (i == 0 || source > entries[i - 1].source);
        if (fits) keep[source] = true;
    }
    if (fits) ct_listing_keep(&p->files, keep);
    ct_free(keep);
    return fits ? CT_OK : ct_fail(CT_IO, "%s: a cache of other pictures", path);
}

static ct_status open_pack(ct_pictures *p, const char *path) {
    CT_TRY(ct_pack_open(path, &p->pack));
    ct_status status = use_pack(p, path);
    if (status != CT_OK) ct_pack_close(&p->pack);
    return status;
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
