/* What the files of the run directory share. */
#ifndef CT_RUN_OUTPUT_INTERNAL_H
#define CT_RUN_OUTPUT_INTERNAL_H

#include "run/output.h"

/* A file of the directory, whole or not at all. */
ct_status ct_output_write(const char *dir, const char *name, const ct_text *text);

/* setting.json of a world: the graph's edges, the names of the classes, how many samples of each
 * class every agent holds. What would be very long is null. */
ct_status ct_output_setting(const ct_run *run, int world);
/* evaluation.json of a world: every agent's accuracy and the confusion matrix of the consensus
 * model, as the last evaluation left them in the run. */
ct_status ct_output_evaluation(const ct_run *run, int world, const ct_epoch *epoch);

#endif
