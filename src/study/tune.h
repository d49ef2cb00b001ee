/* Options of a cell chosen by successive halving (Jamieson and Talwalkar, AISTATS 2016): all
 * combinations are trained for a part of the epochs, the better half for a larger part, and so on;
 * the best of the last rung is taken. Where all of a rung diverge, the next best of an earlier rung
 * has its turn. The score is the accuracy of the consensus model on training
 * samples that were held out; the test set plays no part, and the runs have one sample of it.
 *
 * A longer run begins anew and does not resume the shorter one: rates fall at fractions of the
 * epochs, so that a short run has been through the whole schedule, and what is compared is what a
 * whole run of that length gives. Resumed, it would have spent its last part at a rate that the
 * longer run has not come to yet.
 *
 * What was tried lies in --out/tune/<cell>/. The choice is in the tuned.json there and, with the
 * cell's run, in the run's own. While trials are still to come the former has the scores so far and
 * no choice: they need not be trained again, even where their runs are not (on another machine, to
 * which a bundle was carried). */
#ifndef CT_STUDY_TUNE_H
#define CT_STUDY_TUNE_H

#include "study/axes.h"
#include "study/study.h"

/* What was tried, with which scores, and what was chosen. */
struct ct_choice {
    char grid[CT_CONFIG_TEXT], seeds[CT_CONFIG_TEXT];
    double fraction;
    ct_axes axes;
    int n_trials, n_rungs;
    int64_t epochs[CT_MAX_RUNGS];
    double *scores; /* [n_rungs][n_trials]; NaN: it diverged, or was not tried */
    bool *is_tried; /* [n_rungs][n_trials]: it is one of the rung */
    bool *is_done;  /* [n_rungs][n_trials]: its score is known */
    int chosen;     /* -1: none came through the last rung */
    bool is_open;   /* trials are still to come; nothing is chosen */
};

/* "0.25,0.5,1": ascending parts of the epochs. */
ct_status ct_rungs_parse(const char *text, ct_tune_rule *rule);
/* Orders n trials, the best first (scores: by trial; NaN last, ties in the order of the trials). */
void ct_halving_rank(const double *scores, int *trials, int n);
/* How many of n go on: half of them, rounded up. */
int ct_halving_size(int n);
/* The trials of a rung, the best first; how many. */
int ct_choice_rank(const ct_choice *choice, int rung, int *trials);
/* What halving of these scores comes to: whether every rung has the trials that it should have, and
 * the choice is the best of the last. False: it is another one, and `why` says a sentence. */
bool ct_choice_holds(const ct_choice *choice, char *why, size_t size);

ct_status ct_choice_take(const ct_json *json, const char *what, ct_choice **out);
void ct_choice_print(const ct_choice *choice, ct_text *out);
void ct_choice_free(ct_choice **choice);

/* The seeds with which options of a cell are tried, and the epochs of a rung. */
void ct_tune_name_seeds(const ct_study *study, const ct_cell *cell, char *out, size_t size);
int64_t ct_tune_epochs(const ct_study *study, const ct_cell *cell, int rung);

#endif
