/* Probabilities of arrays of images. Images go through the engine in pieces of up to 4096; a piece is
 * cut into batches, of which every core (or the GPU) takes one after the other. A sample's logits do
 * not depend on the others of its batch: batchnorm goes by its running statistics.
 *   p_c = exp(z_c - max z) / sum_k exp(z_k - max z)      z [n_classes] logits; in doubles */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/model_internal.h"
#include "util/log.h"
#include "util/memory.h"

#define BATCH       32
#define PIECE       4096
#define PIECE_BYTES ((size_t)64 << 20)

/* ---- the engine ---- */

/* Images of a piece: whole batches, at least one. */
static size_t choose_piece(size_t image_bytes, size_t n, size_t batch) {
    size_t most = PIECE_BYTES / image_bytes;
    if (most > PIECE) most = PIECE;
    if (most > n) most = n;
    return (most + batch - 1) / batch * batch + (most == 0 ? batch : 0);
}

static ct_status open_backend(ct_model *m, int batch) {
    ct_model_engine *e = &m->engine;
    const char *name;
    ct_device_note why;
    CT_TRY(ct_backend_choose(m->device, m->compute.precision, &name, &why));
    if (why.text[0] != '\0') ct_note("%s", why.text);
    CT_TRY(ct_backend_create(name, &m->compute, &e->backend));
    CT_TRY(ct_plan_create(e->backend, &m->graph, batch, &e->plan));
    CT_TRY(ct_bank_create(e->backend, 1, 0, m->graph.n_weights, &e->params));
    CT_TRY(ct_bank_write(&e->params, 0, 0, m->graph.n_weights, m->row));
    if (m->graph.n_buffer_values == 0) return CT_OK;
    CT_TRY(ct_bank_create(e->backend, 1, 0, m->graph.n_buffer_values, &e->running));
    return ct_bank_write(&e->running, 0, 0, m->graph.n_buffer_values, m->running);
}

static void close_images(ct_model_engine *e) {
    ct_source_free(&e->source);
    ct_free(ct_take(&e->logits));
    ct_free(ct_take(&e->scores));
    ct_free(ct_take(&e->batches));
    ct_free(ct_take(&e->jobs));
    ct_free(ct_take(&e->index));
    ct_images_free(&e->images);
}

static ct_status open_images(ct_model *m, size_t n, bool as_floats) {
    static const char what[] = "the images";
    ct_model_engine *e = &m->engine;
    const ct_facts *f = &m->facts;
    size_t n_batches = n / (size_t)e->plan->max_batch;
    CT_TRY(ct_images_create(n, f->channels, f->height, f->width, &e->images));
    if (as_floats) CT_TRY(ct_make(&e->images.values, n * ct_image_values(&e->images), what));
    CT_TRY(ct_make(&e->logits, n * (size_t)f->n_classes, what));
    CT_TRY(ct_make(&e->scores, n_batches, what));
    CT_TRY(ct_make(&e->batches, n_batches, what));
    CT_TRY(ct_make(&e->jobs, n_batches, what));
    CT_TRY(ct_make(&e->index, n, what));
    for (size_t i = 0; i < n; i++) e->index[i] = (uint32_t)i;
    for (size_t b = 0; b < n_batches; b++) e->jobs[b] = (ct_job){.batch = (int)b, .out = (int)b};
    /* floats are normalised already */
    static const float none[CT_MAX_CHANNELS];
    float one[CT_MAX_CHANNELS];
    for (int c = 0; c < CT_MAX_CHANNELS; c++) one[c] = 1;
    return ct_source_create(e->backend, &e->images, as_floats ? none : f->mean,
                            as_floats ? one : f->deviation, &e->source);
}

ct_status ct_engine_open(ct_model *m, size_t n, bool as_floats) {
    ct_model_engine *e = &m->engine;
    int batch = n < BATCH ? (int)n : BATCH; /* a few images take little memory */
    if (e->plan == NULL || e->plan->max_batch < batch) {
        ct_engine_close(m);
        CT_TRY(open_backend(m, batch));
    }
    size_t piece =
        choose_piece(ct_shape_size(m->graph.nodes[0].shape), n, (size_t)e->plan->max_batch);
    bool has_floats = e->images.values != NULL;
    if (e->source != NULL && e->images.n >= piece && has_floats == as_floats) return CT_OK;
    close_images(e);
    return open_images(m, piece, as_floats);
}

void ct_engine_close(ct_model *m) {
    ct_model_engine *e = &m->engine;
    int n_workers = e->pool != NULL ? ct_pool_size(e->pool) : 0;
    for (int k = 0; k < n_workers; k++) {
        if (e->decoders != NULL) ct_decoder_free(&e->decoders[k]);
        if (e->cutters != NULL) ct_cutter_free(&e->cutters[k]);
    }
    ct_free(e->decoders);
    ct_free(e->cutters);
    ct_pool_free(&e->pool);
    close_images(e);
    ct_bank_free(&e->running);
    ct_bank_free(&e->params);
    ct_plan_free(&e->plan);
    ct_backend_free(&e->backend);
    *e = (ct_model_engine){0};
}

static void softmax(const float *logits, int n_classes, float *out) {
    double largest = (double)logits[0], sum = 0;
    for (int c = 1; c < n_classes; c++) /* gcc 12.2 for 64-bit ARM crashes on fmax here */
        if ((double)logits[c] > largest) largest = (double)logits[c];
    for (int c = 0; c < n_classes; c++) sum += exp((double)logits[c] - largest);
    for (int c = 0; c < n_classes; c++) out[c] = (float)(exp((double)logits[c] - largest) / sum);
}

/* The first n of the engine's images, cut into batches. */
static ct_work work_on(ct_model_engine *e, size_t n) {
    size_t size = (size_t)e->plan->max_batch, n_batches = (n + size - 1) / size;
    for (size_t b = 0; b < n_batches; b++) {
        size_t first = b * size, left = n - first;
        e->batches[b] =
            (ct_batch){.n = (int)(left < size ? left : size), .index = e->index + first};
    }
    return (ct_work){.params = &e->params,
                     .buffers = e->running.n > 0 ? &e->running : NULL,
                     .source = e->source,
                     .batches = e->batches,
                     .jobs = e->jobs,
                     .n_jobs = (int)n_batches};
}

ct_status ct_engine_score(ct_model *m, size_t n, ct_score *sum) {
    ct_model_engine *e = &m->engine;
    CT_TRY(ct_source_refresh(e->source, &e->images, 0, n));
    ct_work work = work_on(e, n);
    CT_TRY(ct_evaluate(e->plan, &work, e->scores, NULL));
    for (int k = 0; k < work.n_jobs; k++) {
        sum->n += e->scores[k].n;
        sum->n_correct += e->scores[k].n_correct;
        sum->loss_sum += e->scores[k].loss_sum;
    }
    return CT_OK;
}

ct_status ct_engine_run(ct_model *m, size_t n, float *probabilities) {
    ct_model_engine *e = &m->engine;
    size_t n_classes = (size_t)m->facts.n_classes;
    CT_TRY(ct_source_refresh(e->source, &e->images, 0, n));
    ct_work work = work_on(e, n);
    CT_TRY(ct_logits(e->plan, &work, e->logits));
    for (size_t i = 0; i < n; i++)
        softmax(e->logits + i * n_classes, (int)n_classes, probabilities + i * n_classes);
    return CT_OK;
}

ct_status ct_engine_tell(size_t now, size_t total) {
    const ct_hooks *hooks = ct_hooks_now();
    if (hooks == NULL || hooks->progress == NULL) return CT_OK;
    if (hooks->progress(hooks->context, (long)now, (long)total)) return CT_OK;
    return ct_fail(CT_STOPPED, "stopped after %zu of %zu images", now, total);
}

/* ---- arrays ---- */

/* n images of `size` bytes a value, [height][width][channels], to [channels][height][width]. */
static void to_planes(const ct_images *images, const uint8_t *from, size_t size, size_t n,
                      uint8_t *to) {
    size_t plane = (size_t)images->height * (size_t)images->width;
    size_t n_channels = (size_t)images->channels;
    for (size_t i = 0; i < n; i++, to += n_channels * plane * size)
        for (size_t k = 0; k < plane; k++)
            for (size_t c = 0; c < n_channels; c++, from += size)
                memcpy(to + (c * plane + k) * size, from, size);
}

/* Images of bytes or of floats, whose values have `size` bytes. */
static ct_status predict(ct_model *m, const uint8_t *images, size_t size, ct_pixels order, size_t n,
                         float *probabilities) {
    bool as_floats = size == sizeof(float);
    if (n == 0) return CT_OK;
    CT_TRY(ct_engine_open(m, n, as_floats));
    const ct_images *room = &m->engine.images;
    size_t bytes = ct_image_values(room) * size;
    for (size_t first = 0; first < n; first += room->n, images += room->n * bytes) {
        size_t now = n - first < room->n ? n - first : room->n;
        uint8_t *to = as_floats ? (uint8_t *)room->values : room->pixels;
        if (order == CT_PIXELS_PLANES)
            memcpy(to, images, now * bytes);
        else
            to_planes(room, images, size, now, to);
        CT_TRY(ct_engine_run(m, now, probabilities + first * (size_t)m->facts.n_classes));
        CT_TRY(ct_engine_tell(first + now, n));
    }
    return CT_OK;
}

ct_status ct_model_run_bytes(ct_model *m, const uint8_t *images, ct_pixels order, size_t n,
                             float *probabilities) {
    if (m->facts.columns.n > 0)
        return ct_fail(CT_INVAL,
                       "%s: its inputs are rows of a table, not bytes; encode them as floats",
                       m->path);
    return predict(m, images, sizeof *images, order, n, probabilities);
}

ct_status ct_model_run_floats(ct_model *m, const float *images, ct_pixels order, size_t n,
                              float *probabilities) {
    return predict(m, (const uint8_t *)images, sizeof *images, order, n, probabilities);
}
