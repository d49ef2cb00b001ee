/* What the files of the run directory share. */
#ifndef CT_RUN_OUTPUT_INTERNAL_H
#define CT_RUN_OUTPUT_INTERNAL_H

#include "run/output.h"

/* ---- folders (folder.c) ---- */
/* The directory of all seeds of a world's pair of lambdas, and the world's own, below `out`. */
ct_status ct_output_pair_dir(const ct_run *run, const char *out, int world, char *dir, size_t size);
ct_status ct_output_world_dir(const ct_run *run, const char *out, int world, char *dir,
                              size_t size);
/* Creates them all; where an earlier run is it is refused, or deleted with --force. */
ct_status ct_output_claim(const ct_run *run);
/* Removes what a run writes at its end, and evaluation.json: of one that goes on, they say what has
 * not happened yet. */
ct_status ct_output_forget(const ct_run *run);
/* Removes a file that may be missing. */
ct_status ct_output_delete(const char *path);

/* ---- what is in them ---- */
/* A file of the directory, whole or not at all. */
ct_status ct_output_write(const char *dir, const char *name, const ct_text *text);

/* setting.json of a world: the graph's edges, the names of the classes, how many samples of each
 * class every agent holds. What would be very long is null. */
ct_status ct_output_setting(const ct_run *run, int world);
/* evaluation.json of a world: every agent's accuracy and the confusion matrix of the consensus
 * model, as the last evaluation left them in the run. */
ct_status ct_output_evaluation(const ct_run *run, int world, const ct_epoch *epoch);

#endif
