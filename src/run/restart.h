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
 * CT_DIFFERS: another run is there; auto with --force takes that for nothing. */
ct_status ct_restart_find(ct_config *config, ct_checkpoint **checkpoint, bool *is_done);
/* Nothing in --out can be resumed as this run; CT_IO says that it can, and how. */
ct_status ct_restart_offer(const ct_config *config);

#endif
