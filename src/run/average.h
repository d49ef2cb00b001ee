/* Means of models over the iterations: --average. */
#ifndef CT_RUN_AVERAGE_H
#define CT_RUN_AVERAGE_H

#include "backend/backend.h"

typedef struct ct_average {
    enum { CT_AVERAGE_NONE, CT_AVERAGE_EMA, CT_AVERAGE_TAIL } kind;
    double number;                        /* B, or F */
    long start;                           /* the first iteration that counts */
    long done;                            /* iterations so far */
    ct_bank x, running;                   /* [own rows] each agent's; running: of batchnorm */
    ct_bank consensus, consensus_running; /* [n_worlds] the mean of all agents' */
} ct_average;

/* "none", "ema:B" or "tail:F". */
ct_status ct_average_parse(const char *text, ct_average *out);
/* The first iteration that counts, of a run of so many. */
long ct_average_start(const ct_average *average, double n_iterations);
/* It has begun after so many iterations. */
bool ct_average_is_begun(const ct_average *average, long done);
void ct_average_free(ct_average *average);

struct ct_run;

ct_status ct_run_create_average(struct ct_run *run);
/* After an iteration. */
ct_status ct_run_add_average(struct ct_run *run, long iteration);
/* A site goes on with this iteration, having missed some: an average that would have begun, or one of
 * a model that is no more (is_new), begins with the model of now. */
ct_status ct_run_miss_average(struct ct_run *run, long iteration, bool is_new);
/* It has begun. */
bool ct_run_has_average(const struct ct_run *run);
/* Updates the averaged consensus on all ranks, which all call it. */
ct_status ct_run_find_averaged(struct ct_run *run);

#endif
