#include "backend/host.h"

#include <math.h>
#include <string.h>

#include "util/memory.h"

ct_status ct_host_bank_alloc(ct_bank *bank) {
    if (bank->stride != 0 && (size_t)bank->n_rows > SIZE_MAX / sizeof(float) / bank->stride)
        return ct_fail(CT_NOMEM, "a bank of %d rows of %zu floats is too large", bank->n_rows,
                       bank->n);
    bank->data = ct_new(float, (size_t)bank->n_rows * bank->stride);
    if (bank->data == NULL)
        return ct_fail(CT_NOMEM, "no memory for %d rows of %zu floats", bank->n_rows, bank->n);
    return CT_OK;
}

void ct_host_bank_free(ct_bank *bank) {
    ct_free(bank->data);
}

ct_status ct_host_bank_write(ct_bank *bank, int row, size_t first, size_t n, const float *values) {
    memcpy(ct_host_row(bank, row) + first, values, n * sizeof *values);
    return CT_OK;
}

ct_status ct_host_bank_read(const ct_bank *bank, int row, size_t first, size_t n, float *values) {
    memcpy(values, ct_host_row(bank, row) + first, n * sizeof *values);
    return CT_OK;
}

/* ---- rows in fewer bytes ---- */

void ct_host_decompress(const ct_packing *p, const ct_bank *packed, ct_bank *known, int row) {
    float *to = ct_host_row(known, row);
    if (p->how->is_whole) memset(to, 0, known->n * sizeof *to);
    (void)p->how->kind->decode(p->how, &p->keys[row], (const uint8_t *)ct_host_row(packed, row),
                               to);
}

void ct_host_compress(const ct_packing *p, const ct_bank *x, ct_bank *known, ct_bank *packed,
                      int row, uint32_t *scratch) {
    p->how->kind->encode(p->how, &p->keys[row], ct_host_row(x, row),
                         p->how->is_whole ? NULL : ct_host_row(known, row), scratch,
                         (uint8_t *)ct_host_row(packed, row));
    if (p->how->is_whole) ct_host_decompress(p, packed, known, row);
}

void ct_host_scale_steps(const ct_adaptive_steps *s, ct_bank *v_bank, ct_bank *r_bank, int row) {
    float *v = ct_host_row(v_bank, row), *r = ct_host_row(r_bank, row);
    for (size_t k = 0; k < r_bank->n; k++) {
        v[k] = s->beta * v[k] + (1 - s->beta) * (r[k] * r[k]);
        float step = s->gamma / (sqrtf(v[k] / s->correction) + s->epsilon);
        r[k] *= step < 1 ? step : 1;
    }
}

ct_status ct_host_source_create(ct_backend *backend, const ct_images *images, const float *mean,
                                const float *std, ct_source **out) {
    if (images->channels > CT_MAX_CHANNELS)
        return ct_fail(CT_INVAL, "pictures of %d channels; at most %d are possible",
                       images->channels, CT_MAX_CHANNELS);
    ct_host_source *source = NULL;
    CT_TRY(ct_make(&source, 1, "a data source"));
    source->base.backend = backend;
    source->images = images;
    memcpy(source->mean, mean, (size_t)images->channels * sizeof *mean);
    memcpy(source->std, std, (size_t)images->channels * sizeof *std);
    for (int c = 0; c < images->channels; c++)
        for (int p = 0; p < 256; p++)
            source->table[c][p] = (float)((p / 255.0 - (double)mean[c]) / (double)std[c]);
    *out = &source->base;
    return CT_OK;
}

void ct_host_source_free(ct_source *source) {
    ct_free(source);
}

/* ---- losses ---- */

static size_t round_up(size_t n) {
    return (n + 15) / 16 * 16; /* whole cache lines */
}

static size_t features_floats(const ct_plan *plan) {
    return round_up((size_t)plan->max_batch * ct_graph_n_features(plan->graph));
}

static size_t logits_floats(const ct_plan *plan) {
    return round_up((size_t)plan->max_batch * (size_t)plan->graph->n_classes);
}

static size_t scratch_floats(const ct_plan *plan) {
    return round_up(ct_ccl_scratch(ct_graph_n_features(plan->graph), plan->graph->n_classes));
}

size_t ct_host_outputs_floats(const ct_plan *plan) {
    return 2 * features_floats(plan) + 2 * logits_floats(plan) + scratch_floats(plan) +
           round_up((size_t)plan->max_batch);
}

ct_host_outputs ct_host_outputs_cut(const ct_plan *plan, float *block) {
    ct_host_outputs out = {.features = block};
    out.dfeatures = out.features + features_floats(plan);
    out.logits = out.dfeatures + features_floats(plan);
    out.dlogits = out.logits + logits_floats(plan);
    out.scratch = out.dlogits + logits_floats(plan);
    out.labels = (int32_t *)(void *)(out.scratch + scratch_floats(plan));
    return out;
}

/* The loss of the job that writes to row `out`: with the row's own weights where agents have them.
 */
static ct_loss_spec loss_of(const ct_objective *objective, int out) {
    ct_loss_spec spec = objective->loss;
    if (objective->lambdas == NULL) return spec;
    spec.lambda_m = (double)ct_host_row(objective->lambdas, out)[0];
    spec.lambda_d = (double)ct_host_row(objective->lambdas, out)[1];
    return spec;
}

/* The batch of job k, its labels listed. */
static const ct_batch *label_batch(const ct_work *work, int k, int32_t *labels) {
    const ct_images *images = ((const ct_host_source *)work->source)->images;
    const ct_batch *batch = &work->batches[work->jobs[k].batch];
    for (int b = 0; b < batch->n; b++) labels[b] = images->labels[batch->index[b]];
    return batch;
}

static void contrast(const ct_graph *g, const ct_objective *o, int k, int row, int n,
                     const ct_host_outputs *out, float *loss) {
    double terms[CT_N_TERMS] = {0};
    const ct_loss_spec spec = loss_of(o, row);
    const ct_ccl_batch batch = {.z = out->features,
                                .labels = out->labels,
                                .n = n,
                                .r = ct_graph_n_features(g),
                                .n_classes = g->n_classes,
                                .cross = ct_host_row(o->cross, o->cross_begin[k]),
                                .cross_stride = o->cross->stride,
                                .n_cross = o->cross_begin[k + 1] - o->cross_begin[k],
                                .received = ct_host_row(o->class_sums, row)};
    ct_ccl(&spec, &batch, out->scratch, out->dfeatures, terms);
    for (int t = 0; t < CT_N_TERMS; t++)
        if (t != CT_LOSS_CE) loss[t] = (float)terms[t];
}

/* Job k's targets; NULL: it has labels alone. */
static const float *targets_of(const ct_objective *o, int k) {
    if (o->soft.rows == NULL || o->soft.row[k] < 0) return NULL;
    return ct_host_row(o->soft.rows, o->soft.row[k]);
}

/* The cross-entropy with labels, and the gradient of it and of the soft targets, if there are some. */
static double classify(const ct_graph *g, const ct_objective *o, int k, int n,
                       const ct_host_outputs *out, int *n_correct) {
    const float *targets = targets_of(o, k);
    if (targets == NULL)
        return ct_smooth_cross_entropy(o->loss.label_smoothing, out->logits, out->labels, n,
                                       g->n_classes, out->dlogits, n_correct);
    const ct_soft_batch batch = {.logits = out->logits,
                                 .labels = out->labels,
                                 .rows = targets,
                                 .n = n,
                                 .n_classes = g->n_classes,
                                 .temperature = o->soft.temperature,
                                 .smoothing = o->loss.label_smoothing};
    double hard, soft;
    ct_soft_loss(&batch, out->dlogits, n_correct, &hard, &soft);
    return hard;
}

void ct_host_losses(const ct_plan *plan, const ct_work *work, const ct_objective *objective, int k,
                    const ct_host_outputs *out, float *loss) {
    const ct_graph *g = plan->graph;
    const int n = label_batch(work, k, out->labels)->n;
    int n_correct = 0;
    memset(loss, 0, CT_LOSS_FIELDS * sizeof *loss);
    loss[CT_LOSS_CE] = (float)classify(g, objective, k, n, out, &n_correct);
    loss[CT_LOSS_CORRECT] = (float)n_correct;
    if (objective->loss.ccl) contrast(g, objective, k, work->jobs[k].out, n, out, loss);
}

void ct_host_soften(const ct_plan *plan, const ct_work *work, int k, const ct_softening *how,
                    const ct_host_outputs *out, ct_bank *rows) {
    const ct_job *job = &work->jobs[k];
    ct_soften(how, out->logits, work->batches[job->batch].n, plan->graph->n_classes,
              ct_host_row(rows, job->out));
}

void ct_host_score(const ct_plan *plan, const ct_work *work, int k, const ct_host_outputs *out,
                   ct_score *scores, int *predictions) {
    ct_score *score = &scores[k];
    if (predictions != NULL) predictions += (size_t)k * (size_t)plan->max_batch;
    score->n = label_batch(work, k, out->labels)->n;
    score->loss_sum =
        score->n * ct_cross_entropy(out->logits, out->labels, score->n, plan->graph->n_classes,
                                    NULL, &score->n_correct, predictions);
}

void ct_host_class_sums(const ct_plan *plan, const ct_work *work, int k, const ct_host_outputs *out,
                        const ct_bank *features, ct_bank *class_sums) {
    const int row = work->jobs[k].out, n = label_batch(work, k, out->labels)->n;
    ct_class_sums(ct_host_row(features, row), out->labels, n, ct_graph_n_features(plan->graph),
                  plan->graph->n_classes, ct_host_row(class_sums, row));
}

/* A row of an image that is values, which is neither cropped nor flipped. */
static void value_row(const ct_host_source *source, uint32_t place, int c, int y, size_t step,
                      float *out) {
    const ct_images *images = source->images;
    const float *from = images->values + place * ct_image_values(images) +
                        (size_t)((c * images->height + y) * images->width);
    for (int x = 0; x < images->width; x++, out += step) *out = ct_host_scaled(source, c, *from++);
}

/* The stored pixel of x is x + dx, or with flip (width - 1 - x) + dx. */
void ct_host_sample_row(const ct_host_source *source, const ct_batch *batch, int b, int c, int y,
                        size_t step, float *out) {
    static const ct_crop none;
    const ct_images *images = source->images;
    if (images->values != NULL) {
        value_row(source, batch->index[b], c, y, step, out);
        return;
    }
    const ct_crop *crop = batch->crop != NULL ? &batch->crop[b] : &none;
    const float *table = source->table[c], black = table[0];
    const int width = images->width, row = y + crop->dy;
    const bool flip = crop->flip;
    int begin = flip ? crop->dx : -crop->dx, end = flip ? width + crop->dx : width - crop->dx;
    if (begin < 0) begin = 0;
    if (end > width) end = width;
    if (row < 0 || row >= images->height || begin > end) begin = end = 0;
    for (int x = 0; x < begin; x++) out[(size_t)x * step] = black;
    for (int x = end; x < width; x++) out[(size_t)x * step] = black;
    if (begin == end) return;
    const uint8_t *from = images->pixels + batch->index[b] * ct_image_values(images) +
                          (size_t)((c * images->height + row) * width) +
                          (flip ? width - 1 + crop->dx - begin : crop->dx + begin);
    out += (size_t)begin * step;
    if (flip)
        for (int x = begin; x < end; x++, from--, out += step) *out = table[*from];
    else
#pragma GCC unroll 8
        for (int x = begin; x < end; x++, from++, out += step) *out = table[*from];
}

void ct_host_sample(const ct_source *source, const ct_batch *batch, int b, float *out) {
    const ct_host_source *host = (const ct_host_source *)source;
    for (int c = 0; c < host->images->channels; c++)
        for (int y = 0; y < host->images->height; y++, out += host->images->width)
            ct_host_sample_row(host, batch, b, c, y, 1, out);
}
