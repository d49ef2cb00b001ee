/* A model of the caller's: any framework, any network. The library decides which agent sees which
 * samples when, and does all that lies between gradients: mixing, momentum, CCL, faults, MPI,
 * checkpoints. The caller computes losses and gradients.
 *
 * A job is "this model on this batch". Per iteration every agent has one gradient job (its own
 * model on its own batch); CCL adds features jobs (a neighbour's model on an agent's batch), CGA
 * and NGC gradient jobs of the same kind. Jobs come one after the other, on the thread that called
 * ct_run_step.
 *
 * A gradient job, in the middle of which CCL has its say:
 *     z, logits = network(x, batch)
 *     copy z to job->z;  ct_job_contrast(job)       fills job->dz; without CCL it is all zeros
 *     job->g = d(mean cross-entropy)/dx + (dz/dx)^T job->dz
 *     job->loss = mean cross-entropy;  job->n_correct = how many were right */
#ifndef CROSSTALK_EXTERNAL_H
#define CROSSTALK_EXTERNAL_H

#include <crosstalk/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ct_external_job {
    size_t size;
    long iteration;        /* from 0 */
    int world, agent;      /* whose batch; -1 in evaluations */
    int n;                 /* samples in it */
    const uint32_t *index; /* [n] their numbers among the training samples (evaluation: test) */
    int32_t *labels;       /* [n] their labels, as given with the data. Callers that draw batches of
                            * their own write theirs, and n if they have fewer: the same batch for
                            * all jobs of an agent in an iteration */
    const float *x;        /* [n_parameters] the model */
    float *g;              /* [n_parameters] gradient jobs: to be written */
    float *z;              /* [n][n_features] to be written by features jobs and, with CCL,
                            * gradient jobs; host memory. NULL: not needed */
    const float *dz;      /* [n][n_features] after ct_job_contrast; host memory. NULL without CCL */
    int32_t *predictions; /* [n] evaluation: to be written, a class each */
    double loss;          /* to be written: mean over the samples */
    int n_correct;        /* gradient jobs: to be written */
    const void *internal; /* the library's */
} ct_external_job;

typedef struct ct_parameter {
    const char *name; /* as in a state dict */
    int n_dims;       /* 0 .. CT_MAX_DIMS */
    size_t dims[CT_MAX_DIMS];
} ct_parameter;

/* Functions return 0, or anything else to fail the run: it ends with CT_INVAL and "the caller's
 * gradient failed". */
typedef struct ct_external {
    size_t size;
    void *context;
    const char *name;               /* for the record; NULL: "external" */
    const ct_parameter *parameters; /* [n_parameters] in the order in which x holds them */
    int n_parameters;
    const float *start; /* start values of every agent; NULL: zeros. Option init goes before */
    int n_features;     /* of a sample, for CCL; 0: CCL is refused */
    bool on_device; /* x and g are CUDA pointers (option device: cuda), and what writes g has ended
                         * when a function returns; false: they are in host memory */
    int (*gradient)(void *context, ct_external_job *job);
    int (*features)(void *context, ct_external_job *job); /* NULL: CCL is refused */
    int (*evaluate)(void *context, ct_external_job *job); /* NULL: nothing is tested */
} ct_external;
#define CT_EXTERNAL_INIT                                                                           \
    { sizeof(ct_external), 0, 0, 0, 0, 0, 0, false, 0, 0, 0 }

/* Within a gradient job, once job->z is written: the gradient of CCL's terms goes to job->dz. Does
 * nothing in an iteration without CCL. */
CT_API void ct_job_contrast(ct_external_job *job);

#ifdef __cplusplus
}
#endif

#endif
