#include "backend/host.h"

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

ct_status ct_host_source_create(ct_backend *backend, const ct_images *images, const float *mean,
                                const float *std, ct_source **out) {
    if (images->channels > CT_MAX_CHANNELS)
        return ct_fail(CT_INVAL, "pictures of %d channels; at most %d are possible",
                       images->channels, CT_MAX_CHANNELS);
    ct_host_source *source = NULL;
    CT_TRY(ct_make(&source, 1, "a data source"));
    source->base.backend = backend;
    source->images = images;
    for (int c = 0; c < images->channels; c++)
        for (int p = 0; p < 256; p++)
            source->table[c][p] = (float)((p / 255.0 - (double)mean[c]) / (double)std[c]);
    *out = &source->base;
    return CT_OK;
}

void ct_host_source_free(ct_source *source) {
    ct_free(source);
}

void ct_host_entropy(const ct_objective *o, const float *logits, const int32_t *labels, int n,
                     int n_classes, float *dlogits, float *losses) {
    int n_correct = 0;
    double ce = ct_smooth_cross_entropy(o->loss.label_smoothing, logits, labels, n, n_classes,
                                        dlogits, &n_correct);
    memset(losses, 0, CT_LOSS_FIELDS * sizeof *losses);
    losses[CT_LOSS_CE] = (float)ce;
    losses[CT_LOSS_CORRECT] = (float)n_correct;
}

void ct_host_contrast(const ct_objective *o, const ct_graph *g, int k, int out, const float *z,
                      const int32_t *labels, int n, float *scratch, float *dz, float *losses) {
    ct_ccl_batch batch = {.z = z,
                          .labels = labels,
                          .n = n,
                          .r = ct_graph_n_features(g),
                          .n_classes = g->n_classes,
                          .cross = ct_host_row(o->cross, o->cross_begin[k]),
                          .cross_stride = o->cross->stride,
                          .n_cross = o->cross_begin[k + 1] - o->cross_begin[k],
                          .received = ct_host_row(o->class_sums, out)};
    ct_loss_spec spec = o->loss;
    double terms[CT_N_TERMS] = {0};
    if (o->lambdas != NULL) {
        spec.lambda_m = (double)ct_host_row(o->lambdas, out)[0];
        spec.lambda_d = (double)ct_host_row(o->lambdas, out)[1];
    }
    ct_ccl(&spec, &batch, scratch, dz, terms);
    for (int t = 0; t < CT_N_TERMS; t++)
        if (t != CT_LOSS_CE) losses[t] = (float)terms[t];
}

void ct_host_labels(const ct_source *source, const ct_batch *batch, int32_t *labels) {
    const ct_images *images = ((const ct_host_source *)source)->images;
    for (int b = 0; b < batch->n; b++) labels[b] = images->labels[batch->index[b]];
}

void ct_host_sample(const ct_source *source, const ct_batch *batch, int b, size_t step,
                    float *out) {
    const ct_host_source *host = (const ct_host_source *)source;
    const ct_images *images = host->images;
    const int height = images->height, width = images->width;
    const ct_crop none = {0};
    const ct_crop *crop = batch->crop != NULL ? &batch->crop[b] : &none;
    const uint8_t *plane = images->pixels + (size_t)batch->index[b] * (size_t)images->channels *
                                                (size_t)height * (size_t)width;
    for (int c = 0; c < images->channels; c++, plane += (size_t)height * (size_t)width) {
        for (int y = 0; y < height; y++) {
            int from_y = y + crop->dy;
            for (int x = 0; x < width; x++, out += step) {
                int from_x = (crop->flip ? width - 1 - x : x) + crop->dx;
                bool inside = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
                uint8_t pixel = inside ? plane[from_y * width + from_x] : 0;
                *out = host->table[c][pixel];
            }
        }
    }
}
