/* The boundary between what is computed and how.
 *
 * All agents of a process are rows of matrices: a *bank* is float [rows][stride], one row an agent
 * (parameters, gradients, optimizer buffers) or one row an edge (features, class sums). A *plan* is
 * a network compiled for this backend; it runs *jobs*, each "model row m on batch d". An *update*
 * is a short program of assignments over whole banks. Nothing above this header knows where the
 * memory is. */
#ifndef CT_BACKEND_BACKEND_H
#define CT_BACKEND_BACKEND_H

#include <stdbool.h>
#include <stddef.h>

#include "compress/compress.h"
#include "data/batch.h"
#include "data/dataset.h"
#include "loss/loss.h"
#include "nn/graph.h"
#include "util/sparse.h"
#include "util/status.h"

typedef struct ct_backend ct_backend;
typedef struct ct_source ct_source; /* a backend's view of labelled images */
typedef struct ct_plan ct_plan;     /* a network compiled by a backend */

/* ---- banks ---- */

#define CT_ROW_ALIGN 16 /* floats: rows start on a cache line */

typedef struct ct_bank {
    ct_backend *backend;
    int n_rows;    /* rows in memory: own ones first, then halo rows filled by the transport */
    int n_own;     /* rows this process computes */
    size_t n;      /* columns in use */
    size_t stride; /* floats from row to row; columns n .. stride-1 stay zero */
    float *data;   /* host or device memory: only the backend and its tests look inside */
    int temp;      /* > 0: a temporary of an update, without memory of its own */
    bool fresh;    /* the halo rows hold what their owners hold now */
} ct_bank;

/* Temporaries of an update, ct_temp(1) .. ct_temp(CT_MAX_TEMPS): they hold a value from their
 * assignment to the end of the update. */
#define CT_MAX_TEMPS 6
static inline ct_bank ct_temp(int number) {
    return (ct_bank){.temp = number};
}

ct_status ct_bank_create(ct_backend *backend, int n_own, int n_halo, size_t n, ct_bank *out);
void ct_bank_free(ct_bank *bank);
/* Columns first .. first+n-1 of one row, to and from host memory. */
ct_status ct_bank_write(ct_bank *bank, int row, size_t first, size_t n, const float *values);
ct_status ct_bank_read(const ct_bank *bank, int row, size_t first, size_t n, float *values);

/* Memory in which whole rows wait to travel, one after the other: the device's (if the backend has
 * one, and whoever sends them can read it), or the host's, from where a device copies fast. */
bool ct_backend_has_device(const ct_backend *backend);
ct_status ct_stage_create(ct_backend *backend, size_t n, bool on_device, float **out);
void ct_stage_free(ct_backend *backend, bool on_device, float *stage);
/* Rows rows[0] .. rows[n_rows-1] to a stage, and a stage to rows first .. first+n_rows-1; done when
 * they return. */
ct_status ct_bank_pack(const ct_bank *bank, const int *rows, int n_rows, float *stage);
ct_status ct_bank_unpack(ct_bank *bank, int first, int n_rows, const float *stage);

/* ---- rows in fewer bytes ---- */

/* Rows first .. first+n_rows-1 of banks, their random numbers by row. */
typedef struct ct_packing {
    const ct_compressor *how;
    const ct_compress_key *keys;
    int first, n_rows;
} ct_packing;

/* Columns of a bank whose rows hold packed ones. */
static inline size_t ct_packed_columns(const ct_compressor *how) {
    return how->n_bytes / sizeof(float);
}
/* packed = Q(x - known), and known += what it says, row by row. Numbers that are not finite may be
 * left out: the losses will tell. */
ct_status ct_bank_compress(const ct_packing *packing, const ct_bank *x, ct_bank *known,
                           ct_bank *packed);
/* known += what the packed rows of others say. */
ct_status ct_bank_decompress(const ct_packing *packing, const ct_bank *packed, ct_bank *known);

/* A step of its own for every value of r, from the mean square v of what it was:
 *   v <- beta v + (1 - beta) r^2
 *   r <- r min(1, gamma / (sqrt(v / correction) + epsilon)) */
typedef struct ct_adaptive_steps {
    float gamma, beta, correction, epsilon;
} ct_adaptive_steps;
ct_status ct_bank_scale_steps(const ct_adaptive_steps *steps, ct_bank *v, ct_bank *r);

/* ---- updates ---- */

#define CT_MAX_TERMS   6
#define CT_MAX_ASSIGNS 12

/* coef * bank, or coef * (matrix * bank) where the matrix takes the bank's rows to the target's. */
typedef struct ct_term {
    double coef;
    const ct_bank *bank;
    const ct_sparse *matrix;
} ct_term;

typedef struct ct_assign {
    ct_bank *target;
    int n_terms;
    ct_term terms[CT_MAX_TERMS];
} ct_assign;

/* Assignments run one after the other over the own rows of their targets, all columns; sums run in
 * the order of the terms. A target may stand among its own terms, but not under a matrix. Banks of
 * one update have the same number of columns. As columns do not depend on each other, a backend may
 * run the whole program block of columns by block of columns. */
typedef struct ct_update {
    int n_rows; /* rows of the temporaries */
    int n_assigns;
    ct_assign assigns[CT_MAX_ASSIGNS];
} ct_update;

void ct_update_add(ct_update *update, ct_bank *target, const ct_term *terms, int n_terms);

/* SET(u, m, {beta, m_hat}, {1, g}) appends "m = beta * m_hat + g" to the update u. */
#define SET(update, target, ...)                                                                   \
    ct_update_add(update, target, (const ct_term[]){__VA_ARGS__},                                  \
                  (int)(sizeof((const ct_term[]){__VA_ARGS__}) / sizeof(ct_term)))

ct_status ct_update_run(ct_backend *backend, const ct_update *update);

/* ---- work of a plan ---- */

typedef struct ct_job {
    int model; /* row of the parameter bank */
    int batch; /* entry of the batch list */
    int out;   /* row of the output banks */
} ct_job;

typedef struct ct_work {
    const ct_bank *params;
    ct_bank *buffers; /* running statistics by model row; NULL if the graph has none */
    const ct_source *source;
    const ct_batch *batches;
    const ct_job *jobs;
    int n_jobs;
} ct_work;

/* What teachers say of the jobs' batches (loss.h). */
typedef struct ct_soft_targets {
    const ct_bank *rows; /* [...][max_batch * ct_soft_width]; NULL: labels alone */
    const int *row;      /* [n_jobs] of job k; -1: labels alone */
    double temperature;
} ct_soft_targets;

/* What a gradient is taken of: cross-entropy, with `ccl` the contrastive terms, and soft targets. */
typedef struct ct_objective {
    ct_loss_spec loss;
    const ct_bank *cross;   /* [edges][max_batch * r] neighbours' features of a job's batch */
    const int *cross_begin; /* [n_jobs + 1] job k's rows of `cross` are cross_begin[k] .. */
    const ct_bank *lambdas; /* [job.out][2] lambda_m, lambda_d instead of the loss'; may be NULL */
    const ct_bank *class_sums; /* [job.out][C * (r + 1)] neighbours' sums about the job's model */
    ct_soft_targets soft;
    double weight_decay; /* so much of the parameters is added; then job.model is job.out */
} ct_objective;

/* One job's losses in a loss bank (loss.h): CT_LOSS_FIELDS columns from `column` on. */

/* Result of evaluating one job. */
typedef struct ct_score {
    double loss_sum; /* cross-entropy summed over the samples */
    int n_correct;
    int n;
} ct_score;

typedef struct ct_backend_ops {
    const char *name;
    void (*free)(ct_backend *backend);
    ct_status (*bank_alloc)(ct_bank *bank);
    void (*bank_free)(ct_bank *bank);
    ct_status (*bank_write)(ct_bank *bank, int row, size_t first, size_t n, const float *values);
    ct_status (*bank_read)(const ct_bank *bank, int row, size_t first, size_t n, float *values);
    /* all four or none: rows are then read and written one by one, in plain memory */
    ct_status (*stage_create)(ct_backend *backend, size_t n, bool on_device, float **out);
    void (*stage_free)(ct_backend *backend, bool on_device, float *stage);
    ct_status (*bank_pack)(const ct_bank *bank, const int *rows, int n_rows, float *stage);
    ct_status (*bank_unpack)(ct_bank *bank, int first, int n_rows, const float *stage);
    ct_status (*compress)(const ct_packing *packing, const ct_bank *x, ct_bank *known,
                          ct_bank *packed);
    ct_status (*decompress)(const ct_packing *packing, const ct_bank *packed, ct_bank *known);
    ct_status (*scale_steps)(const ct_adaptive_steps *steps, ct_bank *v, ct_bank *r);
    ct_status (*update)(ct_backend *backend, const ct_update *update);
    ct_status (*source_create)(ct_backend *backend, const ct_images *images, const float *mean,
                               const float *std, ct_source **out);
    void (*source_free)(ct_source *source);
    /* may be NULL: images are read where they lie */
    ct_status (*source_refresh)(ct_source *source, const ct_images *images, size_t first, size_t n);
    ct_status (*plan_create)(ct_backend *backend, const ct_graph *graph, int max_batch,
                             ct_plan **out);
    void (*plan_free)(ct_plan *plan);
    ct_status (*features)(ct_plan *plan, const ct_work *work, ct_bank *features,
                          ct_bank *class_sums);
    /* NULL: its plans do not say what a model predicts */
    ct_status (*soften)(ct_plan *plan, const ct_work *work, const ct_softening *how, ct_bank *rows);
    ct_status (*gradient)(ct_plan *plan, const ct_work *work, const ct_objective *objective,
                          ct_bank *gradient, ct_bank *losses, size_t column);
    ct_status (*evaluate)(ct_plan *plan, const ct_work *work, ct_score *scores, int *predictions);
    ct_status (*logits)(ct_plan *plan, const ct_work *work, float *logits);
    /* may be NULL: the calls between them are one iteration, which a backend may record and replay
     */
    ct_status (*step_begin)(ct_backend *backend);
    ct_status (*step_end)(ct_backend *backend);
    double (*peak_gflops)(ct_backend *backend); /* measured; may be NULL */
    bool adds_decay; /* `gradient` adds the weight decay itself, while the row is in the cache */
} ct_backend_ops;

/* How factors of convolutions and linear layers are rounded; sums are fp32 or better. bf16 also
 * stores what lies between layers in bf16 where its kernels can; parameters, their gradients,
 * optimizer state, statistics, features, logits and losses stay fp32. Only GPUs have anything but
 * fp32. */
typedef enum ct_precision {
    CT_PRECISION_AUTO, /* the backend's own: tf32 on cuda, else fp32 */
    CT_PRECISION_FP32,
    CT_PRECISION_TF32,
    CT_PRECISION_BF16,
} ct_precision;

/* auto, fp32, tf32, bf16; others: CT_INVAL. */
ct_status ct_precision_parse(const char *name, ct_precision *out);
const char *ct_precision_name(ct_precision precision);

struct ct_backend {
    const ct_backend_ops *ops;
    ct_precision precision;   /* what it computes in, never auto */
    const char *instructions; /* vector instructions, the GPU's generation; "": plain C */
    int n_threads;
    int device;     /* its number, where memory is a device's */
    int poll_every; /* iterations between looks at the losses: reading them may cost a wait */
};
/* Plans and sources are their backend's, or the caller's own (external.h). */
struct ct_source {
    ct_backend *backend;
    const ct_backend_ops *ops;
};
struct ct_plan {
    ct_backend *backend;
    const ct_backend_ops *ops;
    const ct_graph *graph;
    int max_batch;
    size_t workspace_bytes;
};

typedef struct ct_backend_options {
    int n_threads;     /* 0 = as many as the process may use */
    bool exact_conv;   /* direct convolutions instead of Winograd's */
    bool only_forward; /* there will be no ct_gradient: cpu keeps no room for what it needs */
    ct_precision precision;
    const char *instructions; /* of cpu, if the processor has them: NULL or "" = its best */
} ct_backend_options;

/* How good the vector instructions are that cpu would take: CROSSTALK_ISA's, else these if the
 * processor has them ("": its best), else the next best. 0 is plain C. */
ct_status ct_cpu_level(const char *instructions, int *out);
const char *ct_cpu_instructions(int level);

/* What there is to say about the choice of auto; "": nothing. */
typedef struct ct_device_note {
    char text[512];
} ct_device_note;
/* The name of a backend: of auto (cuda if a GPU works, else cpu), cpu, cuda, ref.
 * CT_INVAL for others, with the known ones, and for one that has not this precision. */
ct_status ct_backend_choose(const char *name, ct_precision precision, const char **out,
                            ct_device_note *why);
ct_status ct_backend_create(const char *name, const ct_backend_options *options, ct_backend **out);
void ct_backend_free(ct_backend **backend);
void ct_backend_each(void (*each)(void *context, const char *name, const char *text),
                     void *context);

/* The source refers to `images`, which must outlive it. */
ct_status ct_source_create(ct_backend *backend, const ct_images *images, const float *mean,
                           const float *std, ct_source **out);
void ct_source_free(ct_source **source);
/* Images first .. first+n-1 of those it was made of have new pixels and labels. Not within a step.
 */
ct_status ct_source_refresh(ct_source *source, const ct_images *images, size_t first, size_t n);

/* The plan refers to `graph`, which must outlive it. All memory of later calls is taken here. */
ct_status ct_plan_create(ct_backend *backend, const ct_graph *graph, int max_batch, ct_plan **out);
void ct_plan_free(ct_plan **plan);

/* Forward only, up to the features: features[job.out] = phi(model; batch), [n][r] without gaps, and
 * class_sums[job.out] = per class c: r sums of the features of class c, then their count.
 * Batchnorm uses the batch's statistics. */
ct_status ct_features(ct_plan *plan, const ct_work *work, ct_bank *features, ct_bank *class_sums);

/* Forward only: rows[job.out] = what the model says of the batch, as soft targets (ct_soften).
 * Batchnorm uses the batch's statistics. */
ct_status ct_soften_jobs(ct_plan *plan, const ct_work *work, const ct_softening *how,
                         ct_bank *rows);
/* CT_INVAL: it cannot, nor learn from soft targets. */
ct_status ct_plan_check_soft(const ct_plan *plan);

/* Forward, objective and backward: gradient[job.out] = d(objective)/d(model), and the job's losses
 * at losses[job.out][column ...]. Batchnorm updates its running statistics. */
ct_status ct_gradient(ct_plan *plan, const ct_work *work, const ct_objective *objective,
                      ct_bank *gradient, ct_bank *losses, size_t column);

/* The device's multiply-add rate, measured now; 0 if this backend does not know. */
double ct_peak_gflops(ct_backend *backend);

/* Around the calls of one training iteration. */
ct_status ct_step_begin(ct_backend *backend);
ct_status ct_step_end(ct_backend *backend);

/* Forward only: scores[k] of job k; predictions (may be NULL) [n_jobs][max_batch] classes.
 * Batchnorm uses its running statistics. */
ct_status ct_evaluate(ct_plan *plan, const ct_work *work, ct_score *scores, int *predictions);
/* The same without labels: logits [n_jobs][max_batch][n_classes], in host memory. */
ct_status ct_logits(ct_plan *plan, const ct_work *work, float *logits);

#endif
