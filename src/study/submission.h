/* Runs that somebody sends in for a study, a leaderboard: do they keep its rules, and are their numbers
 * theirs? Checked are, of every run,
 *
 *   options   those of the column that it belongs to, but for what the study's `free` names
 *   splits    their hashes, by seed
 *   version   of the program, and the machine
 *   numbers   that summary, metrics, evaluation and the means over the seeds agree
 *   tuning    that as much was tried as of all others, on held-out samples, and the best was taken
 *   bits      on request: the first seed, or its first epochs, trained again
 */
#ifndef CT_STUDY_SUBMISSION_H
#define CT_STUDY_SUBMISSION_H

#include "study/study.h"

typedef enum ct_verdict {
    CT_FINDING_OK,
    CT_FINDING_NOTE, /* nobody can tell, or it need not be wrong */
    CT_FINDING_WRONG,
} ct_verdict;

typedef struct ct_submission {
    ct_study *study;        /* built; nothing of it is run */
    const ct_config *given; /* data-dir, device and threads of a training */
    bool trains;            /* again: */
    int64_t epochs;         /* so many; 0: all */
    void (*say)(ct_verdict verdict, const char *run, const char *text);
    int n_runs, n_wrong; /* out */
} ct_submission;

/* `path`: a run directory, a folder of them, or a bundle. Fails only where that cannot be read. */
ct_status ct_submission_check(ct_submission *submission, const char *path);

#endif
