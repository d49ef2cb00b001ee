/* What the files of the run's output share (folder.c). */
#ifndef CT_RUN_OUTPUT_INTERNAL_H
#define CT_RUN_OUTPUT_INTERNAL_H

#include "run/output.h"

/* The directory of all seeds of a world's pair of lambdas, and the world's own, below `out`. */
ct_status ct_output_pair_dir(const ct_run *run, const char *out, int world, char *dir, size_t size);
ct_status ct_output_world_dir(const ct_run *run, const char *out, int world, char *dir,
                              size_t size);
/* Calls act(run, dir) for --out, the worlds' directories and those of their pairs, each once, until
 * it fails. */
ct_status ct_output_each(const ct_run *run, ct_status (*act)(const ct_run *run, const char *dir));

#endif
