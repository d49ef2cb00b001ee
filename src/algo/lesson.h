/* Samples that agents learn from beside their own, by what somebody says of them (soft targets):
 *   g = ( n g_own + b g_other ) / (n + b)        n own samples in an iteration, b others     [n x P]
 * g_other is the gradient of the mean cross-entropy with the targets, weight decay included. */
#ifndef CT_ALGO_LESSON_H
#define CT_ALGO_LESSON_H

#include "backend/backend.h"

struct ct_agents;

typedef struct ct_lesson {
    const ct_source *source; /* given; NULL: there are none, ever */
    ct_batch *batches;       /* [n] */
    ct_job *jobs;            /* [n] */
    int *row;                /* [n] of the targets, by job */
    int n_jobs;
    ct_bank targets;       /* [n][max_batch * ct_soft_width] */
    ct_bank g;             /* [n x P] */
    ct_bank losses;        /* [n][CT_LOSS_FIELDS]: nobody looks */
    ct_sparse own, others; /* [n x n] shares on the diagonal */
} ct_lesson;

ct_status ct_lesson_create(struct ct_agents *a, const ct_source *source);
void ct_lesson_free(ct_lesson *lesson);

/* Of the next iteration: nothing; n samples of own agent i, with targets [n][ct_soft_width]. The
 * index is the caller's until the iteration is over. */
void ct_lesson_clear(struct ct_agents *a);
ct_status ct_lesson_add(struct ct_agents *a, int i, int n, const uint32_t *index,
                        const float *targets);

/* a->g, that of own samples at `at`, becomes that of all. */
ct_status ct_lesson_gradient(struct ct_agents *a, const ct_bank *at);

#endif
