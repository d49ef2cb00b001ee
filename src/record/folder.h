/* The directories of a run: how they are called, which ones a run has, whose they are.
 * A run of several seeds has a directory for each of them, dir/seed-<s>; one of several pairs of
 * lambdas has the same in dir/m<lambda-m>-d<lambda-d>. */
#ifndef CT_RECORD_FOLDER_H
#define CT_RECORD_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/status.h"

/* "m:d", one of --lambdas; and what its directory is called. */
bool ct_record_parse_pair(const char *field, double pair[2]);
void ct_record_name_pair(double lambda_m, double lambda_d, char *out, size_t size);
void ct_record_name_seed(uint64_t seed, char *out, size_t size);

typedef ct_status ct_record_visit(void *context, const char *dir);
/* Calls visit(context, dir) until it fails for the directories of all seeds and pairs of the run in `dir`, as its options say; of a run of one,
 * `dir` itself. */
ct_status ct_record_each_world(const char *dir, ct_record_visit *visit, void *context);

/* All of the run's directories have a summary: the last thing that is written of it. */
ct_status ct_record_is_finished(const char *dir, bool *out);

#define CT_TUNING    "tune" /* in a study's folder: tune/<run> has what was tried for a run */
#define CT_RANK_MARK ".crosstalk-rank-" /* what files begin with that ranks leave for a moment */

/* Creates the directory; where an earlier run is it is refused, or deleted with `force`. */
ct_status ct_record_claim(const char *dir, bool force);
/* The same for the run that is here: all that is left of it are its options. */
ct_status ct_record_begin_again(const char *dir);
/* Deletes what a killed process has left half-written: files that were still to be renamed, marks,
 * checkpoints without a manifest. */
void ct_record_clean(const char *dir);
/* Deletes the directories of seeds and pairs of the run that is here, which its options name:
 * others are runs of their own. `keep` stays, and what someone trains. */
ct_status ct_record_clear_inside(const char *dir, const char *keep);
/* Deletes every file of the run in `dir`, and the directory if it is empty then. */
ct_status ct_record_remove_all(const char *dir);
/* Removes what says how the run ended: of one that goes on, it has not happened yet. */
ct_status ct_record_forget(const char *dir);

#endif
