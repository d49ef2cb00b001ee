/* What --resume finds in a run directory, and what a new run finds in its way. */
#ifndef CT_RUN_RESTART_H
#define CT_RUN_RESTART_H

#include "run/checkpoint.h"

/* Where a run with these options begins, as their `resume` says: a directory or "on" (that of
 * --out), whose run gives the options that were not named; or "auto" (that of --out, where there may
 * be nothing yet), whose run must be the one that the options make by themselves. The config gets
 * the directories' names in `out` and `resume`; the latter becomes "" if nothing is there.
 *   *checkpoint: what it goes on from; NULL: it begins, perhaps again, as it had no checkpoint
 *   *is_done: with auto, the run is there and finished
 * CT_DIFFERS: another run is there; auto with --force takes that for nothing.
 * All ranks of a job call it, each may look at a disk of its own, and all get the same answer. */
ct_status ct_restart_find(ct_config *config, ct_checkpoint **checkpoint, bool *is_done);
/* Where no --out was named and `dir`, the name made of what is run, may be taken: the number of the
 * first of dir, dir-2, dir-3, ... that is not. It exists then, so that nobody else takes it; or
 * it has an unfinished run with these options, to be offered (below). */
ct_status ct_restart_number(const ct_config *config, const char *dir, int *number);
/* `dir` with its number; 1: as it is. */
ct_status ct_restart_name(const char *dir, int number, char *out, size_t size);
/* Nothing in --out can be resumed as this run; CT_IO says that it can, and how. named: --out as it
 * was given. */
ct_status ct_restart_offer(const ct_config *config, const char *named);

#endif
