/* The folders of checkpoints below a run directory. What is in them is the run's
 * (run/checkpoint.h): files of its agents, and a manifest that is written last. */
#ifndef CT_RECORD_CHECKPOINT_H
#define CT_RECORD_CHECKPOINT_H

#include <stdbool.h>

#include "util/file.h"

#define CT_MANIFEST "manifest.json"

/* <dir>/checkpoint/<iteration>, or <dir>/checkpoint for -1. */
ct_path ct_checkpoint_folder(const char *dir, long iteration);
/* Iterations of the checkpoints there are, whole or not, newest first; ct_free() them. */
ct_status ct_checkpoint_list(const char *dir, long **out, int *n);
/* It has a manifest. */
bool ct_checkpoint_is_whole(const char *dir, long iteration);

/* <dir>/checkpoint exists. */
bool ct_checkpoint_exists(const char *dir);
/* Some checkpoint is whole. */
bool ct_checkpoint_any_whole(const char *dir);
/* Remove what checkpoints write, the manifest first, and nothing else; of all, those that are not
 * whole, and files that others have left half-written. */
void ct_checkpoint_remove(const char *dir, long iteration);
ct_status ct_checkpoint_remove_all(const char *dir);
void ct_checkpoint_clean(const char *dir);

#endif
