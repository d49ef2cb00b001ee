#ifndef CT_STUDY_STUDY_INTERNAL_H
#define CT_STUDY_STUDY_INTERNAL_H

#include "study/study.h"

#define CT_SHARE_MAX 64

/* Runs that differ in the lambdas alone (share.c). */
typedef struct ct_share {
    ct_cell *cells[CT_SHARE_MAX];
    int n; /* 0: there are no others to share a launch with */
    ct_text lambdas;
    char dir[CT_CONFIG_TEXT];
} ct_share;

/* Those that may be run with cell `first`, of at most at_once worlds together. */
ct_status ct_share_collect(ct_study *study, int first, int at_once, ct_share *out);
/* Runs and frees them; if one diverges, each is left to be run alone. */
ct_status ct_share_run(ct_share *share, bool keep, bool *is_stopped);

/* Models, splits and checkpoints of a finished run go: what is left is small enough to be kept. */
ct_status ct_study_lighten(const char *dir);
/* Sets study->order. */
void ct_study_sort(ct_study *study);

#endif
