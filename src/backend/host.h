/* What backends whose memory is the host's share: banks, sources, and a sample as floats. */
#ifndef CT_BACKEND_HOST_H
#define CT_BACKEND_HOST_H

#include "backend/backend.h"

ct_status ct_host_bank_alloc(ct_bank *bank);
void ct_host_bank_free(ct_bank *bank);
ct_status ct_host_bank_write(ct_bank *bank, int row, size_t first, size_t n, const float *values);
ct_status ct_host_bank_read(const ct_bank *bank, int row, size_t first, size_t n, float *values);

static inline float *ct_host_row(const ct_bank *bank, int row) {
    return bank->data + (size_t)row * bank->stride;
}

typedef struct ct_host_source {
    ct_source base;
    const ct_images *images;
    float table[CT_MAX_CHANNELS][256]; /* a stored pixel's value after normalisation */
} ct_host_source;

ct_status ct_host_source_create(ct_backend *backend, const ct_images *images, const float *mean,
                                const float *std, ct_source **out);
void ct_host_source_free(ct_source *source);

/* The losses of job k at the logits z of its n samples: all of `losses` [CT_LOSS_FIELDS], with
 * cross-entropy's gradient in dlogits; contrastive terms are 0. */
void ct_host_entropy(const ct_objective *objective, const float *logits, const int32_t *labels,
                     int n, int n_classes, float *dlogits, float *losses);
/* With CCL: the contrastive terms at its features z [n][r], with the weights of row `out` where
 * agents have their own, and their gradient in dz. scratch: ct_ccl_scratch(). */
void ct_host_contrast(const ct_objective *objective, const ct_graph *g, int k, int out,
                      const float *z, const int32_t *labels, int n, float *scratch, float *dz,
                      float *losses);

/* Labels of a batch: labels[b] for its samples. */
void ct_host_labels(const ct_source *source, const ct_batch *batch, int32_t *labels);

/* One sample of a batch, cropped, flipped and normalised: out[(c * h + y) * w + x] * at `step`
 * floats apart. */
void ct_host_sample(const ct_source *source, const ct_batch *batch, int b, size_t step, float *out);

#endif
