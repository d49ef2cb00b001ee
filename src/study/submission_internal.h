#ifndef CT_STUDY_SUBMISSION_INTERNAL_H
#define CT_STUDY_SUBMISSION_INTERNAL_H

#include "study/study_internal.h"
#include "study/submission.h"

/* One run that is looked at. */
typedef struct ct_candidate {
    ct_submission *submission;
    const char *dir;
    char name[CT_STUDY_LABEL]; /* as findings call it */
    ct_json *summary;
    const ct_json *options; /* of the summary, or of what a diverged run has left */
    bool has_diverged;
    const ct_cell *cell; /* one of the column that it belongs to */
} ct_candidate;

void ct_find(ct_candidate *c, ct_verdict verdict, const char *format, ...) CT_PRINTF(3, 4);
/* Calls visit(candidate, dir) for each of its seeds, as record/folder.h does. */
ct_status ct_candidate_each_seed(ct_candidate *c,
                                 ct_status (*visit)(ct_candidate *c, const ct_record *run));

/* ---- numbers.c ---- */
ct_status ct_check_numbers(ct_candidate *c);
/* ---- retrain.c ---- */
ct_status ct_check_bits(ct_candidate *c);

#endif
