/* The run directory: config.txt, partition.csv, setting.json (graph and split), metrics.jsonl,
 * evaluation.json (the last one, in detail), summary.json, models. */
#ifndef CT_RUN_OUTPUT_H
#define CT_RUN_OUTPUT_H

#include "run/checkpoint.h"

/* Means over an epoch's iterations and agents, weighted by samples. */
typedef struct ct_epoch_losses {
    double terms[CT_N_TERMS];
    double train_accuracy;
} ct_epoch_losses;

typedef struct ct_epoch {
    long epoch; /* from 1 */
    long iteration;
    double lr;
    ct_epoch_losses losses;
    bool is_evaluated;
    ct_evaluation evaluation;
    double bytes_sent_per_agent; /* so far, mean over agents */
    double link_seconds;         /* so far, what a simulated link would have taken */
    double seconds;              /* so far */
    ct_finish finish;            /* after the last iteration only */
} ct_epoch;

/* Only the rank that leads writes anything here.
 * Names run->config.out and every world's directory: --out itself for one seed, --out/seed-<s> for
 * several, and with --lambdas the same in --out/m<lambda-m>-d<lambda-d>. */
ct_status ct_output_name(ct_run *run);
/* --out, if it is there, for this process alone, until ct_dir_unlock(lock); CT_BUSY: another
 * process trains in it. */
ct_status ct_output_lock(const ct_run *run, int *lock);
/* Creates them, --out locked from then on (refused where an earlier run is, unless forced, or it is
 * the one that goes on) and writes config.txt, partition.csv and setting.json. checkpoint: what the
 * run goes on from, or NULL; the run has taken it over already. */
ct_status ct_output_begin(const ct_run *run, const ct_checkpoint *checkpoint, int *lock);
/* The metrics.jsonl of --resume up to the checkpoint, and nothing that came after it. */
ct_status ct_output_resume(const ct_run *run, const ct_checkpoint *checkpoint);
/* Appends one line to a world's metrics.jsonl; after an evaluation, evaluation.json is replaced. */
ct_status ct_output_epoch(const ct_run *run, int world, const ct_epoch *epoch);
/* summary.json and the models of every world; for several seeds also --out/summary.json with means
 * and deviations. last: [n_worlds] */
ct_status ct_output_end(ct_run *run, const ct_epoch *last);

/* The directory of a pair of --lambdas, below --out. */
void ct_output_pair_name(double lambda_m, double lambda_d, char *out, size_t size);
/* The run's directory: --out, or a name made of what is run. */
void ct_output_dir(const ct_config *config, char *out, size_t size);

#endif
