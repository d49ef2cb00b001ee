/* What a run hands over to its record (src/record), which writes the run directory. */
#ifndef CT_RUN_OUTPUT_H
#define CT_RUN_OUTPUT_H

#include "record/write.h"
#include "run/checkpoint.h"

/* Metrics and evaluations are written by the rank that leads, everything else in every folder that
 * ranks do not share with it: by the first rank that has it (ct_run_keeps).
 * Names run->config.out and every world's directory: --out itself for one seed, --out/seed-<s> for
 * several, and with --lambdas the same in --out/m<lambda-m>-d<lambda-d>. */
ct_status ct_output_name(ct_run *run);
/* Fills run->homes: who has the same --out as whom. All ranks call it. */
ct_status ct_output_find_homes(ct_run *run);
/* --out, if it is there, for this process alone, until ct_dir_unlock(lock); CT_BUSY: another
 * process trains in it. */
ct_status ct_output_lock(const ct_run *run, int *lock);
/* Creates them, --out locked from then on (refused where an earlier run is, unless forced, or it is
 * the one that goes on or begins again) and writes config.txt, partition.csv and setting.json. checkpoint: what the
 * run goes on from, or NULL; the run has taken it over already. */
ct_status ct_output_begin(const ct_run *run, const ct_checkpoint *checkpoint, int *lock);
/* The metrics.jsonl of --resume up to the checkpoint, and nothing that came after it. */
ct_status ct_output_resume(const ct_run *run, const ct_checkpoint *checkpoint);
/* Appends one line to a world's metrics.jsonl; after an evaluation, evaluation.json is replaced. A
 * line that there is no room for is kept for the next time. */
ct_status ct_output_epoch(ct_run *run, int world, const ct_epoch *epoch);
/* Writes the lines that there was no room for. */
ct_status ct_output_settle(ct_run *run);
/* summary.json and the models of every world; for several seeds also --out/summary.json with means
 * and deviations. last: [n_worlds]; what this rank does not know of it becomes NaN. All ranks call
 * it: rank 0's summary is the last thing that is written. */
ct_status ct_output_end(ct_run *run, ct_epoch *last);
/* After ct_output_begin: why the run ended before its time, in the directories of all its worlds.
 * CT_STOPPED leaves nothing. iteration: from 1; row: who diverged, -1 = unknown. */
ct_status ct_output_fail(const ct_run *run, const ct_error *error, long iteration, int row);

/* A directory as this rank has it: %r is the rank's number. dir may be `named`. */
ct_status ct_output_place(const char *named, int rank, char *dir, size_t size);
/* The run's directory: --out, or a name made of what is run. */
void ct_output_dir(const ct_config *config, char *out, size_t size);

#endif
