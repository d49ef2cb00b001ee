/* Samples of every agent that are never trained on (--validation-fraction): what rates and lambdas are
 * chosen by, so that the test set stays out of it. An agent's are the last of its list in
 * run->partition. */
#ifndef CT_RUN_VALIDATION_H
#define CT_RUN_VALIDATION_H

#include "run/run.h"

/* Moves the fraction of every agent's list to its end: those whose keyed draws are least, so that the
 * choice depends on the seed and the samples alone. */
ct_status ct_validation_choose(const ct_run *run, uint64_t seed, ct_partition *split);
/* What is left to train on of an agent's n samples. */
size_t ct_validation_left(const ct_run *run, size_t n);
/* run->trained and run->held, of run->partition as it is now. */
ct_status ct_validation_place(ct_run *run);
/* The consensus models on all held samples of their worlds. Every rank calls it. */
ct_status ct_validation_score(ct_run *run, ct_evaluation *out);

#endif
