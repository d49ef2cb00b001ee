#include "model/score.h"

#include <stdatomic.h>
#include <string.h>

#include "model/model_internal.h"
#include "util/memory.h"

typedef struct scorer {
    ct_model *model;
    const ct_dataset *data;
    int32_t *label_of; /* [data classes] the model's number of a class */
    size_t first;      /* of the piece at hand */
    atomic_int status; /* of a picture that could not be had */
} scorer;

static ct_status check_shape(const ct_model *m, const ct_dataset *d) {
    const ct_facts *f = &m->facts;
    const ct_images *t = &d->test;
    if (t->channels == f->channels && t->height == f->height && t->width == f->width) return CT_OK;
    return ct_fail(CT_DIFFERS, "%s was trained on images of %dx%dx%d; those of %s are %dx%dx%d",
                   m->path, f->channels, f->height, f->width, d->source, t->channels, t->height,
                   t->width);
}

/* By name where both have names, else by number. */
static ct_status match_classes(const ct_model *m, const ct_dataset *d, int32_t *label_of) {
    bool by_name = m->facts.class_names != NULL && d->class_names != NULL;
    for (int c = 0; c < d->n_classes; c++) {
        const char *name = ct_dataset_class_name(d, c);
        label_of[c] = by_name ? ct_model_find_class(m, name) : c;
        if (by_name && label_of[c] < 0)
            return ct_fail(CT_DIFFERS, "%s: class '%s' is none of %s's", d->source, name, m->path);
    }
    if (by_name || d->n_classes <= m->facts.n_classes) return CT_OK;
    return ct_fail(CT_DIFFERS, "%s has %d classes, and %s %d", d->source, d->n_classes, m->path,
                   m->facts.n_classes);
}

/* Pictures that are not in memory, decoded into the engine's images. */
static void decode_task(void *context, int i, int worker) {
    scorer *s = context;
    const ct_model_engine *e = &s->model->engine;
    ct_picture small;
    int size = s->model->facts.height;
    ct_status status =
        ct_pictures_get(s->data->test_pictures, s->first + (size_t)i, e->decoders[worker], &small);
    if (status == CT_OK) {
        ct_cut cut = ct_cut_center(small.width, small.height, size);
        status = ct_cut_out(&e->cutters[worker], &small, &cut, size,
                            e->images.pixels + (size_t)i * ct_image_bytes(&e->images));
    }
    if (status != CT_OK) atomic_store(&s->status, (int)status);
}

/* Images first .. first+n-1 with the model's labels. */
static ct_status load_piece(scorer *s, size_t n) {
    const ct_images *from = &s->data->test, *to = &s->model->engine.images;
    for (size_t i = 0; i < n; i++) to->labels[i] = s->label_of[from->labels[s->first + i]];
    const uint8_t *bytes = ct_image_at(from, s->first);
    if (bytes != NULL) {
        void *room = from->values != NULL ? (void *)to->values : to->pixels;
        memcpy(room, bytes, n * ct_image_bytes(from));
        return CT_OK;
    }
    ct_pool_run(s->model->engine.pool, (int)n, decode_task, s);
    return (ct_status)atomic_load(&s->status);
}

ct_status ct_model_evaluate(ct_model *m, const ct_dataset *d, ct_model_score *out) {
    CT_SCOPED_BLOCK(int32_t) label_of = NULL;
    ct_score sum = {0};
    CT_TRY(check_shape(m, d));
    CT_TRY(ct_make(&label_of, (size_t)d->n_classes, "the classes"));
    CT_TRY(match_classes(m, d, label_of));
    CT_TRY(ct_engine_open(m, d->test.n, d->test.values != NULL));
    if (ct_image_at(&d->test, 0) == NULL) CT_TRY(ct_engine_open_decoders(m));
    scorer s = {.model = m, .data = d, .label_of = label_of};
    const size_t room = m->engine.images.n;
    for (; s.first < d->test.n; s.first += room) {
        size_t n = d->test.n - s.first < room ? d->test.n - s.first : room;
        CT_TRY(load_piece(&s, n));
        CT_TRY(ct_engine_score(m, n, &sum));
        CT_TRY(ct_engine_tell(s.first + n, d->test.n));
    }
    *out = (ct_model_score){.n = d->test.n,
                            .accuracy = (double)sum.n_correct / (double)d->test.n,
                            .loss = sum.loss_sum / (double)d->test.n};
    return CT_OK;
}
