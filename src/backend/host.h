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

/* One row of ct_bank_compress (scratch: how->n_scratch words) and ct_bank_decompress. */
void ct_host_compress(const ct_packing *packing, const ct_bank *x, ct_bank *known, ct_bank *packed,
                      int row, uint32_t *scratch);
void ct_host_decompress(const ct_packing *packing, const ct_bank *packed, ct_bank *known, int row);
/* One row of ct_bank_scale_steps. */
void ct_host_scale_steps(const ct_adaptive_steps *steps, ct_bank *v, ct_bank *r, int row);

typedef struct ct_host_source {
    ct_source base;
    const ct_images *images;
    float table[CT_MAX_CHANNELS][256]; /* a stored pixel's value after normalisation */
    float mean[CT_MAX_CHANNELS], std[CT_MAX_CHANNELS]; /* of images that are values */
} ct_host_source;

/* The same of a stored value, in channel c. */
static inline float ct_host_scaled(const ct_host_source *source, int c, float value) {
    return (float)(((double)value - (double)source->mean[c]) / (double)source->std[c]);
}

ct_status ct_host_source_create(ct_backend *backend, const ct_images *images, const float *mean,
                                const float *std, ct_source **out);
void ct_host_source_free(ct_source *source);

/* The columns of an update: those of any bank with memory. */
static inline size_t ct_host_columns(const ct_update *update) {
    for (int a = 0; a < update->n_assigns; a++)
        if (update->assigns[a].target->temp == 0) return update->assigns[a].target->n;
    return 0;
}

/* What a job computes and the gradients there, as losses read and leave them, in one block of
 * floats. */
typedef struct ct_host_outputs {
    int32_t *labels;             /* [max_batch] */
    float *features, *dfeatures; /* [max_batch][r] */
    float *logits, *dlogits;     /* [max_batch][n_classes] */
    float *scratch;              /* of ct_ccl */
} ct_host_outputs;

size_t ct_host_outputs_floats(const ct_plan *plan);
ct_host_outputs ct_host_outputs_cut(const ct_plan *plan, float *block);

/* Job k's losses (loss[CT_LOSS_CE] and so on) and their gradients at the logits and, with the
 * contrastive terms, at the features. */
void ct_host_losses(const ct_plan *plan, const ct_work *work, const ct_objective *objective, int k,
                    const ct_host_outputs *out, float *loss);
/* Job k's logits as soft targets. */
void ct_host_soften(const ct_plan *plan, const ct_work *work, int k, const ct_softening *how,
                    const ct_host_outputs *out, ct_bank *rows);
/* Job k's score and, unless predictions is NULL, its predictions, from the logits. */
void ct_host_score(const ct_plan *plan, const ct_work *work, int k, const ct_host_outputs *out,
                   ct_score *scores, int *predictions);
/* Job k's class sums of the features that it has left in its row. */
void ct_host_class_sums(const ct_plan *plan, const ct_work *work, int k, const ct_host_outputs *out,
                        const ct_bank *features, ct_bank *class_sums);

/* Sample b of a batch, cropped and flipped (values are neither), normalised: out[(c * h + y) * w + x]. */
void ct_host_sample(const ct_source *source, const ct_batch *batch, int b, float *out);
/* Row y of its channel c: out[x * step]. */
void ct_host_sample_row(const ct_host_source *source, const ct_batch *batch, int b, int c, int y,
                        size_t step, float *out);

#endif
