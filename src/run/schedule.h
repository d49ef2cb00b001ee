/* The learning rate over a run. */
#ifndef CT_RUN_SCHEDULE_H
#define CT_RUN_SCHEDULE_H

#include "schema/config.h"

#define CT_MAX_MILESTONES 64

/* What --lr-schedule and its companions say, read once. */
typedef struct ct_lr_schedule {
    enum { CT_LR_STEP, CT_LR_COSINE, CT_LR_POLY, CT_LR_CONSTANT } kind;
    double lr;                            /* the highest */
    double lr_end;                        /* cosine, poly: what the last iteration comes close to */
    double power;                         /* poly */
    double decay;                         /* step: factor at every milestone */
    double milestones[CT_MAX_MILESTONES]; /* step: parts of all epochs */
    int n_milestones;
    double epochs, warmup_epochs;
} ct_lr_schedule;

ct_status ct_lr_schedule_create(const ct_config *config, ct_lr_schedule *out);

/* eta of an iteration (from 0), with so many iterations an epoch:
 *   step      lr * decay^(milestones m with epoch >= m * epochs); the epoch is a whole number
 *   cosine    lr_end + (lr - lr_end) (1 + cos(pi p)) / 2
 *   poly      lr_end + (lr - lr_end) (1 - p)^power
 *   constant  lr
 * p goes from 0 at the end of the warm-up to 1 at the end of the run, iteration by iteration. While
 * the warm-up of w iterations lasts, iteration k has (k + 1) / w of the rate that follows it. */
double ct_lr_at(const ct_lr_schedule *schedule, long iteration, long epoch_iterations);

#endif
