#include "data/pictures.h"

#include "data/dataset_internal.h"
#include "data/pictures_internal.h"
#include "util/log.h"
#include "util/memory.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define N_SHOWN    20 /* names of broken pictures shown */
#define N_MEASURED 4096

/* ---- work on all pictures in parallel ---- */

static void sweep_task(void *context, int task, int worker) {
    ct_sweep *s = context;
    size_t i = s->first + (size_t)task * s->step;
    if (atomic_load(&s->status) != CT_OK) return;
    ct_status status = s->visit(s, i, worker);
    if (status == CT_IO)
        status = ct_make_text(&s->reason[i], ct_decoder_reason(s->decoder[worker]));
    if (status != CT_OK) atomic_store(&s->status, (int)status);
}

ct_status ct_sweep_open(ct_sweep *s) {
    static const char what[] = "decoders of pictures";
    CT_TRY(ct_pool_create(s->pictures->spec.n_workers, &s->pool));
    size_t n_workers = (size_t)ct_pool_size(s->pool);
    CT_TRY(ct_make(&s->decoder, n_workers, what));
    CT_TRY(ct_make(&s->cutter, n_workers, what));
    CT_TRY(ct_make(&s->reason, s->pictures->files.n, what));
    for (size_t k = 0; k < n_workers; k++) CT_TRY(ct_decoder_create(&s->decoder[k]));
    return CT_OK;
}

ct_status ct_sweep_run(ct_sweep *s, ct_visitor visit, void *context, size_t first, size_t end,
                       size_t step) {
    s->visit = visit;
    s->context = context;
    s->first = first;
    s->step = step;
    ct_pool_run(s->pool, (int)((end - first + step - 1) / step), sweep_task, s);
    return (ct_status)atomic_load(&s->status);
}

void ct_sweep_close(ct_sweep *s) {
    int n_workers = s->pool != NULL ? ct_pool_size(s->pool) : 0;
    for (int k = 0; k < n_workers; k++) {
        if (s->decoder != NULL) ct_decoder_free(&s->decoder[k]);
        if (s->cutter != NULL) ct_cutter_free(&s->cutter[k]);
    }
    for (size_t i = 0; s->reason != NULL && i < s->pictures->files.n; i++) ct_free(s->reason[i]);
    ct_free(s->reason);
    ct_free(s->cutter);
    ct_free(s->decoder);
    ct_pool_free(&s->pool);
}

/* Says which pictures are left out, or fails with the first one if strict. */
static ct_status report_broken(const ct_sweep *s) {
    const ct_pictures *p = s->pictures;
    size_t n_broken = 0;
    for (size_t i = 0; i < p->files.n; i++) n_broken += s->reason[i] != NULL;
    if (n_broken == 0) return CT_OK;
    if (!p->spec.strict)
        ct_note("%s: %zu of %zu pictures cannot be read and are left out:", p->files.root, n_broken,
                p->files.n);
    size_t n_shown = 0;
    for (size_t i = 0; i < p->files.n && (n_shown < N_SHOWN || p->spec.list_all); i++) {
        if (s->reason[i] == NULL) continue;
        const char *name = p->files.names + p->files.at[i];
        if (p->spec.strict)
            return ct_fail(CT_IO, "%s/%s: %s (without @strict it is left out)", p->files.root, name,
                           s->reason[i]);
        ct_note("  %s: %s", name, s->reason[i]);
        n_shown++;
    }
    if (n_broken > n_shown)
        ct_note("  and %zu more (crosstalk data verify lists them all)", n_broken - n_shown);
    return CT_OK;
}

/* Visits every step-th picture; keep[i] (may be NULL) = it can be read. */
static ct_status sweep_run(ct_pictures *p, ct_visitor visit, void *context, size_t step,
                           bool *keep) {
    CT_SCOPED_BY(ct_sweep_close, ct_sweep) s = {.pictures = p};
    CT_TRY(ct_sweep_open(&s));
    CT_TRY(ct_sweep_run(&s, visit, context, 0, p->files.n, step));
    if (keep == NULL) return CT_OK;
    for (size_t i = 0; i < p->files.n; i++) keep[i] = s.reason[i] == NULL;
    return report_broken(&s);
}

/* ---- one picture ---- */

ct_status ct_pictures_decode(const ct_pictures *p, size_t i, ct_decoder *d, ct_picture *out) {
    ct_path path = ct_listing_path(&p->files, i);
    return ct_decode_file(d, path.text, p->spec.side, p->spec.random, out);
}

static ct_status fetch(const ct_pictures *p, size_t i, ct_decoder *d, ct_picture *out) {
    if (p->kept != NULL && p->kept[i].pixels != NULL) {
        *out = p->kept[i];
        return CT_OK;
    }
    if (p->pack == NULL) return ct_pictures_decode(p, i, d, out);
    size_t place = p->in_pack != NULL ? p->in_pack[i] : p->pack_first + i;
    ct_status status = ct_pack_read(p->pack, place, d, out);
    /* A cache that got damaged does not matter: the file is still there. */
    return status == CT_IO && !p->is_imported ? ct_pictures_decode(p, i, d, out) : status;
}

/* Notes a picture found broken in the middle of things, once. */
static void note_broken(ct_pictures *p, size_t i, const char *reason) {
    pthread_mutex_lock(&p->lock);
    bool is_new = !p->is_broken[i];
    p->is_broken[i] = true;
    p->n_broken += is_new;
    size_t n = p->n_broken;
    pthread_mutex_unlock(&p->lock);
    if (is_new && n <= N_SHOWN)
        ct_note("%s/%s: %s; another picture of its class takes its place", p->files.root,
                p->files.names + p->files.at[i], reason);
}

ct_status ct_pictures_get(ct_pictures *p, size_t i, ct_decoder *d, ct_picture *out) {
    if (p->parts != NULL) p = ct_pictures_part(p, &i);
    size_t n = p->files.n;
    for (size_t k = 0; k < n; k++) {
        size_t j = i + k < n ? i + k : i + k - n;
        if (p->files.labels[j] != p->files.labels[i]) continue;
        ct_status status = fetch(p, j, d, out);
        if (status != CT_IO) return status;
        if (p->spec.strict)
            return ct_fail(CT_IO, "%s/%s: %s", p->files.root, p->files.names + p->files.at[j],
                           ct_decoder_reason(d));
        note_broken(p, j, ct_decoder_reason(d));
    }
    return ct_fail(CT_IO, "%s: no picture of class %d can be read", p->files.root,
                   (int)p->files.labels[i]);
}

/* ---- kept in memory, or only looked at ---- */

ct_status ct_picture_copy(const ct_picture *from, ct_picture *out) {
    size_t n = (size_t)from->width * (size_t)from->height * CT_PIXEL;
    *out = *from;
    return ct_make_copy(&out->pixels, from->pixels, n, "a picture");
}

static ct_status keep_one(ct_sweep *s, size_t i, int worker) {
    ct_picture small;
    CT_TRY(fetch(s->pictures, i, s->decoder[worker], &small));
    return ct_picture_copy(&small, &s->pictures->kept[i]);
}

/* The first bytes alone. */
static ct_status look_at(ct_sweep *s, size_t i, int worker) {
    ct_path path = ct_listing_path(&s->pictures->files, i);
    ct_picture unused;
    uint8_t bytes[8] = {0};
    size_t n = ct_file_head(path.text, bytes, sizeof bytes);
    if (ct_picture_kind(bytes, n) != NULL) return CT_OK;
    /* The decoder knows the reason. */
    return ct_decode_file(s->decoder[worker], path.text, s->pictures->spec.side, true, &unused);
}

/* Where those that stay lie in the pack. */
static ct_status keep_places(ct_pictures *p, const bool *keep) {
    size_t *places = NULL, n = 0;
    CT_TRY(ct_make(&places, p->files.n, "a list of pictures"));
    for (size_t i = 0; i < p->files.n; i++)
        if (keep[i]) places[n++] = p->in_pack != NULL ? p->in_pack[i] : p->pack_first + i;
    ct_free(p->in_pack);
    p->in_pack = places;
    return CT_OK;
}

ct_status ct_pictures_keep(ct_pictures *p, const bool *keep) {
    if (p->pack != NULL) CT_TRY(keep_places(p, keep));
    size_t n = 0;
    for (size_t i = 0; i < p->files.n && p->kept != NULL; i++) {
        ct_picture picture = p->kept[i];
        p->kept[i] = (ct_picture){0};
        if (keep[i])
            p->kept[n++] = picture;
        else
            ct_free((void *)picture.pixels);
    }
    ct_listing_keep(&p->files, keep);
    if (p->files.n == 0) return ct_fail(CT_IO, "%s: none of its files is a picture", p->files.root);
    return CT_OK;
}

/* A picture with sides as 3:2, the most common, takes this; a part's need is estimated by it. */
static bool fits_memory(const ct_pictures *p) {
    double side = p->spec.side, each = side * side * 1.5 * CT_PIXEL;
    return each * (double)p->files.n <= (double)p->spec.memory_bytes;
}

static ct_status prepare(ct_pictures *p) {
    if (p->spec.cache != NULL && !p->is_imported) CT_TRY(ct_pictures_attach_cache(p));
    CT_TRY(ct_make(&p->is_broken, p->files.n, "a list of pictures"));
    bool is_kept = p->spec.random && fits_memory(p);
    if (p->pack != NULL && !is_kept) return CT_OK; /* looked at before */
    if (is_kept) CT_TRY(ct_make(&p->kept, p->files.n, "a list of pictures"));
    p->n_kept = is_kept ? p->files.n : 0;
    CT_SCOPED_BLOCK(bool) keep = NULL;
    CT_TRY(ct_make(&keep, p->files.n, "a list of pictures"));
    CT_TRY(sweep_run(p, p->kept != NULL ? keep_one : look_at, NULL, 1, keep));
    return ct_pictures_keep(p, keep);
}

/* Names and labels of a part of a pack; what there is of them is freed by the caller. */
static ct_status list_pack(const char *path, const ct_pack_entry *entries, size_t n,
                           ct_listing *out) {
    enum { NAME = 24 };
    CT_TRY(ct_make_text(&out->root, path));
    CT_TRY(ct_make(&out->names, n * NAME, path));
    CT_TRY(ct_make(&out->at, n, path));
    CT_TRY(ct_make(&out->labels, n, path));
    out->n = n;
    for (size_t i = 0; i < n; i++) {
        out->at[i] = i * NAME;
        out->labels[i] = entries[i].label;
        snprintf(out->names + i * NAME, NAME, "picture %u", (unsigned)entries[i].source);
    }
    return CT_OK;
}

/* Files in a listing, which is taken, or pictures first .. first+n-1 of the pack at `path`. */
static ct_status create(const ct_pictures_spec *spec, ct_listing *files, const char *path,
                        size_t first, size_t n, ct_pictures **out) {
    CT_SCOPED_HANDLE(ct_pictures) p = NULL;
    CT_TRY(ct_make(&p, 1, "pictures"));
    p->spec = *spec;
    p->is_imported = files == NULL;
    p->pack_first = first;
    pthread_mutex_init(&p->lock, NULL);
    if (files != NULL) {
        ct_move(&p->files, files);
    } else {
        CT_TRY(ct_pack_open(path, &p->pack));
        CT_TRY(list_pack(path, ct_pack_entries(p->pack) + first, n, &p->files));
    }
    p->n_listed = p->files.n;
    CT_TRY(prepare(p));
    ct_move(out, &p);
    return CT_OK;
}

ct_status ct_pictures_create(const ct_pictures_spec *spec, ct_listing *files, ct_pictures **out) {
    return create(spec, files, NULL, 0, 0, out);
}

ct_status ct_pictures_open_pack(const ct_pictures_spec *spec, const char *path, size_t first,
                                size_t n, ct_pictures **out) {
    return create(spec, NULL, path, first, n, out);
}

void ct_pictures_free(ct_pictures **pictures) {
    ct_pictures *p = *pictures;
    if (p == NULL) return;
    for (int k = 0; p->parts != NULL && k < p->n_parts; k++) ct_pictures_free(&p->parts[k]);
    ct_free(p->parts);
    ct_free(p->part_begin);
    for (size_t i = 0; p->kept != NULL && i < p->n_kept; i++) ct_free((void *)p->kept[i].pixels);
    ct_free(p->kept);
    ct_free(p->in_pack);
    ct_pack_close(&p->pack);
    ct_free(p->is_broken);
    ct_listing_free(&p->files);
    pthread_mutex_destroy(&p->lock);
    ct_free(p);
    *pictures = NULL;
}

size_t ct_pictures_count(const ct_pictures *pictures) {
    return pictures->files.n;
}

const ct_pictures_spec *ct_pictures_spec_of(const ct_pictures *pictures) {
    return &pictures->spec;
}

bool ct_pictures_in_memory(const ct_pictures *pictures) {
    return pictures->kept != NULL;
}

/* ---- all at once ---- */

static ct_status decode_only(ct_sweep *s, size_t i, int worker) {
    ct_picture unused;
    return fetch(s->pictures, i, s->decoder[worker], &unused);
}

ct_status ct_pictures_verify(ct_pictures *p, size_t *n_broken) {
    CT_SCOPED_BLOCK(bool) keep = NULL;
    CT_TRY(ct_make(&keep, p->files.n, "a list of pictures"));
    CT_TRY(sweep_run(p, decode_only, NULL, 1, keep));
    for (size_t i = 0; i < p->files.n; i++) *n_broken += !keep[i];
    return CT_OK;
}

static ct_status cut_middle(ct_sweep *s, size_t i, int worker, uint8_t *out) {
    ct_picture small;
    int size = s->pictures->spec.size;
    CT_TRY(fetch(s->pictures, i, s->decoder[worker], &small));
    ct_cut cut = ct_cut_center(small.width, small.height, size);
    return ct_cut_out(&s->cutter[worker], &small, &cut, size, out);
}

static ct_status image_one(ct_sweep *s, size_t i, int worker) {
    ct_images *images = s->context;
    return cut_middle(s, i, worker, images->pixels + i * ct_image_bytes(images));
}

ct_status ct_pictures_images(ct_pictures *p, ct_images *out) {
    CT_SCOPED(ct_images) images = {0};
    CT_SCOPED_BLOCK(bool) keep = NULL;
    CT_TRY(ct_make(&keep, p->files.n, "a list of pictures"));
    CT_TRY(ct_images_create(p->files.n, 3, p->spec.size, p->spec.size, &images));
    CT_TRY(sweep_run(p, image_one, &images, 1, keep));
    size_t image = ct_image_bytes(&images), n = 0;
    for (size_t i = 0; i < p->files.n; i++) {
        if (!keep[i]) continue;
        if (n != i) memcpy(images.pixels + n * image, images.pixels + i * image, image);
        images.labels[n++] = p->files.labels[i];
    }
    images.n = n;
    if (n == 0) return ct_fail(CT_IO, "%s: none of its files is a picture", p->files.root);
    ct_move(out, &images);
    return CT_OK;
}

static ct_status measure_one(ct_sweep *s, size_t i, int worker) {
    ct_images *images = s->context;
    size_t k = i / s->step;
    CT_TRY(cut_middle(s, i, worker, images->pixels + k * ct_image_bytes(images)));
    images->labels[k] = true;
    return CT_OK;
}

/* The middles of every step-th picture that can be read. */
static ct_status take_middles(ct_pictures *p, size_t *step, ct_images *images) {
    *step = (p->files.n + N_MEASURED - 1) / N_MEASURED;
    size_t n = (p->files.n + *step - 1) / *step;
    /* labels say which of them can be read */
    CT_TRY(ct_images_create(n, 3, p->spec.size, p->spec.size, images));
    CT_TRY(sweep_run(p, measure_one, images, *step, NULL));
    size_t image = ct_image_bytes(images);
    images->n = 0;
    for (size_t k = 0; k < n; k++)
        if (images->labels[k])
            memmove(images->pixels + images->n++ * image, images->pixels + k * image, image);
    return CT_OK;
}

ct_status ct_pictures_measure(ct_pictures *p, float *mean, float *std) {
    size_t step;
    CT_SCOPED(ct_images) images = {0};
    CT_TRY(take_middles(p, &step, &images));
    if (images.n > 0) ct_images_measure(&images, mean, std);
    return CT_OK;
}

ct_status ct_pictures_sum(ct_pictures *p, ct_pixel_sums *out) {
    size_t step;
    CT_SCOPED(ct_images) images = {0};
    CT_TRY(take_middles(p, &step, &images));
    ct_images_sum(&images, step, out);
    return CT_OK;
}
