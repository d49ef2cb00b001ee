/* Probabilities of picture files: a piece of them is decoded by all cores, then predicted.
 * Preprocessing is that of a data set's test part (data/pictures.c): the shorter side is made
 * `resize` pixels as Pillow does it, the middle is cut out. Where the network sees one channel, colours
 * become grey as in Pillow's convert("L"): (19595 R + 38470 G + 7471 B + 2^15) / 2^16. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "model/model_internal.h"
#include "util/memory.h"

typedef struct piece {
    ct_model *model;
    const char *const *paths; /* [n] */
    char **reasons;           /* [n] why a picture cannot be read; NULL: it can */
    atomic_int status;        /* the first failure that is no broken picture */
    uint8_t *colours;         /* [workers][3][size][size] of networks that see one channel */
} piece;

static void to_grey(const uint8_t *rgb, size_t plane, uint8_t *out) {
    for (size_t k = 0; k < plane; k++)
        out[k] = (uint8_t)((19595u * rgb[k] + 38470u * rgb[plane + k] + 7471u * rgb[2 * plane + k] +
                            0x8000u) >>
                           16);
}

/* Picture i into its place among the engine's images. CT_IO: the worker's decoder knows why not. */
static ct_status decode_one(const piece *p, int i, int worker) {
    const ct_facts *f = &p->model->facts;
    const ct_model_engine *e = &p->model->engine;
    const size_t plane = (size_t)f->height * (size_t)f->width;
    uint8_t *out = e->images.pixels + (size_t)i * ct_image_bytes(&e->images);
    uint8_t *colours = f->channels == 3 ? out : p->colours + (size_t)worker * 3 * plane;
    ct_picture small;
    int side = f->resize > 0 ? f->resize : f->height;
    CT_TRY(ct_decode_file(e->decoders[worker], p->paths[i], side, false, &small));
    ct_cut cut = ct_cut_center(small.width, small.height, f->height);
    CT_TRY(ct_cut_out(&e->cutters[worker], &small, &cut, f->height, colours));
    if (f->channels == 1) to_grey(colours, plane, out);
    return CT_OK;
}

static void decode_task(void *context, int i, int worker) {
    piece *p = context;
    const ct_model_engine *e = &p->model->engine;
    if (atomic_load(&p->status) != CT_OK) return;
    ct_status status = decode_one(p, i, worker);
    if (status == CT_IO) {
        memset(e->images.pixels + (size_t)i * ct_image_bytes(&e->images), 0,
               ct_image_bytes(&e->images));
        status = ct_make_text(&p->reasons[i], ct_decoder_reason(e->decoders[worker]));
    }
    if (status != CT_OK) atomic_store(&p->status, (int)status);
}

ct_status ct_engine_open_decoders(ct_model *m) {
    static const char what[] = "decoders of pictures";
    ct_model_engine *e = &m->engine;
    if (e->pool != NULL) return CT_OK;
    CT_SCOPED_HANDLE(ct_pool) pool = NULL;
    CT_TRY(ct_pool_create(m->compute.n_threads, &pool));
    size_t n = (size_t)ct_pool_size(pool);
    CT_TRY(ct_make(&e->decoders, n, what));
    CT_TRY(ct_make(&e->cutters, n, what));
    ct_move(&e->pool, &pool); /* closing frees as many as it has workers */
    for (size_t k = 0; k < n; k++) CT_TRY(ct_decoder_create(&e->decoders[k]));
    return CT_OK;
}

static ct_status check_shape(const ct_model *m) {
    const ct_facts *f = &m->facts;
    if (f->columns.n > 0)
        return ct_fail(CT_INVAL, "%s: its inputs are rows of a table, not pictures", m->path);
    if (f->height == f->width && (f->channels == 1 || f->channels == 3)) return CT_OK;
    return ct_fail(CT_INVAL,
                   "%s: its images are %dx%dx%d; only square ones of 1 or 3 channels are cut out "
                   "of picture files",
                   m->path, f->channels, f->height, f->width);
}

/* Pictures that cannot be read are told and have no probabilities. */
static void tell_broken(const piece *p, size_t first, size_t n, float *probabilities,
                        ct_unreadable *unreadable, void *context) {
    size_t n_classes = (size_t)p->model->facts.n_classes;
    for (size_t i = 0; i < n; i++) {
        if (p->reasons[i] == NULL) continue;
        for (size_t c = 0; c < n_classes; c++) probabilities[i * n_classes + c] = NAN;
        if (unreadable != NULL) unreadable(context, first + i, p->reasons[i]);
        ct_free(ct_take(&p->reasons[i]));
    }
}

static ct_status predict_pieces(piece *p, const char *const *paths, size_t n, float *probabilities,
                                ct_unreadable *unreadable, void *context) {
    ct_model *m = p->model;
    const size_t room = m->engine.images.n;
    for (size_t first = 0; first < n; first += room) {
        size_t now = n - first < room ? n - first : room;
        float *out = probabilities + first * (size_t)m->facts.n_classes;
        p->paths = paths + first;
        ct_pool_run(m->engine.pool, (int)now, decode_task, p);
        CT_TRY((ct_status)atomic_load(&p->status));
        CT_TRY(ct_engine_run(m, now, out));
        tell_broken(p, first, now, out, unreadable, context);
        CT_TRY(ct_engine_tell(first + now, n));
    }
    return CT_OK;
}

ct_status ct_model_run_files(ct_model *m, const char *const *paths, size_t n, float *probabilities,
                             ct_unreadable *unreadable, void *context) {
    CT_SCOPED_BLOCK(uint8_t) colours = NULL;
    CT_SCOPED_BLOCK(char *) reasons = NULL;
    if (n == 0) return CT_OK;
    CT_TRY(check_shape(m));
    CT_TRY(ct_engine_open(m, n, false));
    CT_TRY(ct_engine_open_decoders(m));
    size_t plane = (size_t)m->facts.height * (size_t)m->facts.width;
    CT_TRY(ct_make(&colours, (size_t)ct_pool_size(m->engine.pool) * 3 * plane, "the pictures"));
    CT_TRY(ct_make(&reasons, m->engine.images.n, "the pictures"));
    piece p = {.model = m, .reasons = reasons, .colours = colours};
    ct_status status = predict_pieces(&p, paths, n, probabilities, unreadable, context);
    for (size_t i = 0; i < m->engine.images.n; i++) ct_free(reasons[i]);
    return status;
}
