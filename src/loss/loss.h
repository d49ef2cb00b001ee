/* What an agent minimises, on plain arrays of one mini-batch (all sums in double).
 * Cross-feature contrastive loss (CCL), Aketi and Roy, WACV 2024 (arXiv:2310.15890), eq. (3)-(5):
 *   L    = CE + lambda_m L_mv + lambda_d L_dv
 *   L_mv = sum_j D(z, z_j)        model-variant: the same batch under neighbour j's weights
 *   L_dv = D(z, zbar(y))          data-variant: the neighbourhood's mean feature of y's class
 *   z      [B x r]  features of this agent's batch under its own weights; carry the gradient
 *   z_j    [B x r]  the same batch under neighbour j's weights; constant
 *   zbar   [C x r]  mean feature of every class over this and the neighbours' batches; constant
 *   y      [B]      labels
 * D(z, t), t the targets, with the reduction `mean` (`sum`: without 1/r):
 *   mse     1/(B r) sum_b |z_b - t_b|^2    dD/dz_b = 2/(B r) (z_b - t_b)
 *   l1      1/(B r) sum_b |z_b - t_b|_1    dD/dz_b = 1/(B r) sign(z_b - t_b)
 *   cosine  1/B sum_b (1 - cos(z_b, t_b))  dD/dz_b = 1/B (cos z_b / |z_b| - t_b / |t_b|) / |z_b| */
#ifndef CT_LOSS_LOSS_H
#define CT_LOSS_LOSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One job's losses in a loss bank: every term, then the number of samples that were right. */
enum {
#define TERM(id, name, axis, digits) CT_LOSS_##id,
#include "loss/term_list.h"
#undef TERM
    CT_N_TERMS,
    CT_LOSS_CORRECT = CT_N_TERMS,
    CT_LOSS_FIELDS,
};

typedef struct ct_loss_term {
    const char *name, *axis;
    int digits;
} ct_loss_term;
extern const ct_loss_term ct_loss_terms[CT_N_TERMS];

typedef enum ct_distance { CT_MSE, CT_L1, CT_COSINE } ct_distance;
/* mean: over batch and features (the authors' code, whose lambdas are the published ones);
 * sum: over the features, mean over the batch (the paper's equation to the letter). */
typedef enum ct_reduction { CT_REDUCE_MEAN, CT_REDUCE_SUM } ct_reduction;

typedef struct ct_loss_spec {
    bool ccl; /* false: cross-entropy alone */
    double lambda_m, lambda_d;
    ct_distance distance;
    ct_reduction reduction;
    double cross_fraction;  /* part of a batch that has cross-features; 0: all of it */
    double label_smoothing; /* part of a label that is spread over all classes */
} ct_loss_spec;

/* The first so many of a batch's n samples have cross-features. */
static inline int ct_cross_samples(const ct_loss_spec *spec, int n) {
    if (spec->cross_fraction <= 0 || spec->cross_fraction >= 1) return n;
    int some = (int)(spec->cross_fraction * n + 0.999999);
    return some < 1 ? 1 : some;
}

/* Mean cross-entropy over n samples; dlogits = its gradient (NULL: not wanted). *n_correct counts
 * samples whose largest logit (the first of equals) is the label's; predictions may be NULL. */
double ct_cross_entropy(const float *logits, const int32_t *labels, int n, int n_classes,
                        float *dlogits, int *n_correct, int *predictions);

/* The same with smoothed labels: the target of a sample is (1 - s) for its class and s / n_classes
 * more for every class; s = 0 is the plain one to the bit. */
double ct_smooth_cross_entropy(double smoothing, const float *logits, const int32_t *labels, int n,
                               int n_classes, float *dlogits, int *n_correct);

/* Soft targets: what a teacher says of a batch, beside or instead of its labels (Hinton, Vinyals and
 * Dean, 2015). Over the n samples of a batch
 *   L  = 1/n sum_b ( h_b CE(z_b, y_b) + s_b T^2 KL(t_b | p_b) ),   p_b = softmax(z_b / T)
 *   dL/dz_b = 1/n ( h_b (softmax(z_b) - [y_b]) + s_b T (p_b - t_b) )
 *   z_b [C] logits, y_b the label, t_b [C] probabilities (constant), T the temperature
 *   h_b, s_b  weights of the sample's label and of its targets
 * A sample's row is t_b, then h_b and s_b. */
static inline size_t ct_soft_width(int n_classes) {
    return (size_t)n_classes + 2;
}

/* What becomes of logits that are targets: t = softmax(logits / temperature). */
typedef struct ct_softening {
    double temperature;
    double hard, soft; /* h and s of every sample */
} ct_softening;
/* rows [n][ct_soft_width] of logits [n][n_classes] */
void ct_soften(const ct_softening *how, const float *logits, int n, int n_classes, float *rows);

typedef struct ct_soft_batch {
    const float *logits;   /* [n][n_classes] */
    const int32_t *labels; /* [n] */
    const float *rows;     /* [n][ct_soft_width] */
    int n, n_classes;
    double temperature, smoothing; /* smoothing: of the labels */
} ct_soft_batch;
/* dlogits = dL/dz; *hard and *soft: the two parts of L. */
void ct_soft_loss(const ct_soft_batch *batch, float *dlogits, int *n_correct, double *hard,
                  double *soft);

/* sums[c] = sum of the features of class c, then their count: [n_classes][r + 1]. */
void ct_class_sums(const float *features, const int32_t *labels, int n, size_t r, int n_classes,
                   float *sums);

/* D(z, t) over n samples, where sample b's target is row b of `targets` [n][r], or row labels[b] of
 * it if labels are given. Adds weight * dD/dz to dz [n][r] and returns D. With the cosine distance
 * a zero vector has no direction: its cosine counts as 0 and it gets no gradient. */
double ct_distance_to(const ct_loss_spec *spec, const float *z, const float *targets,
                      const int32_t *labels, int n, size_t r, double weight, float *dz);

/* The contrastive terms of one agent's batch. */
typedef struct ct_ccl_batch {
    const float *z;        /* [n][r] features under the agent's own weights */
    const int32_t *labels; /* [n] */
    int n;
    size_t r;
    int n_classes;
    const float *cross; /* neighbour j's features of the first ct_cross_samples(n) samples, [.][r],
                           at cross + j * stride */
    size_t cross_stride;
    int n_cross;
    const float
        *received; /* [n_classes][r + 1] what the neighbours sent about this agent's model */
} ct_ccl_batch;

/* Floats of scratch that ct_ccl needs. */
static inline size_t ct_ccl_scratch(size_t r, int n_classes) {
    return (size_t)n_classes * (2 * r + 1);
}
/* dz = lambda_m dL_mv/dz + lambda_d dL_dv/dz [n][r]; terms[CT_LOSS_MV] = L_mv and
 * terms[CT_LOSS_DV] = L_dv, unweighted. */
void ct_ccl(const ct_loss_spec *spec, const ct_ccl_batch *batch, float *scratch, float *dz,
            double *terms);

#endif
