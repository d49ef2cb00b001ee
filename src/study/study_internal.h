#ifndef CT_STUDY_STUDY_INTERNAL_H
#define CT_STUDY_STUDY_INTERNAL_H

#include "record/light.h"
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
ct_status ct_share_run(ct_study *study, ct_share *share, bool keep, bool *is_stopped);
/* The options of a launch of these lambdas in `dir`, all others as the cell has them. */
ct_status ct_share_config(const ct_cell *cell, const char *lambdas, const char *dir,
                          ct_config *out);

/* ---- what launches of several have left (unshare.c) ---- */
#define CT_SHARED "shared-" /* what their directories are called */

/* After a launch ended with `status`: finished runs go to their cells and the directory is removed;
 * one that was stopped stays as it is. */
ct_status ct_share_finish(ct_study *study, const ct_share *share, const ct_error *ended, bool keep,
                          bool *is_stopped);
/* Looks after all of them before anything else is run: what is finished goes to its cell, what was
 * interrupted goes on. */
ct_status ct_study_unshare(ct_study *study, bool keep, bool *is_stopped);

/* Nothing is there of the cell, and nobody asked to replace anything. */
bool ct_cell_is_free(const ct_cell *cell);
/* A run was made with other data than the cell's (data.c); *source: where it had them from. */
bool ct_cell_has_other_data(const ct_cell *cell, const ct_json *summary, const char **source);
/* Whether a finished run has the cell's options and data. */
ct_status ct_cell_is_like(const ct_cell *cell, const ct_json *summary, bool *out);
/* The summary of a finished cell, with ct_summary_add_late(). */
ct_status ct_cell_read_summary(ct_cell *cell);
/* A directory of ours with all that is in it, so many levels deep. */
void ct_study_remove_dir(const char *dir, int depth);

/* Moved to the record. */
#define ct_study_lighten       ct_record_lighten
#define ct_study_lighten_again ct_record_lighten_again

/* ---- figures (figure.c) ---- */
/* The value of `figure = ...`. */
ct_status ct_figure_parse(const char *text, ct_study_figure *out);
/* Sets the cells' x. CT_IO with file:line where an option has no number to draw over. */
ct_status ct_figure_place_cells(ct_study *study);

/* ---- curves (curves.c) ---- */
typedef struct ct_cell_curves {
    ct_epoch_sum *sums; /* [n_epochs][study->n_curves] over the seeds */
    long n_epochs;
} ct_cell_curves;

ct_status ct_cell_curves_read(const ct_study *study, const ct_cell *cell, ct_cell_curves *out);
void ct_cell_curves_free(ct_cell_curves *curves);

/* ---- table.c ---- */
/* The k-th part of a label "a | b | c" of n; the last one is all the rest. */
void ct_label_part(const char *label, int k, int n, char *out, size_t size);
/* What a reader must know: --quick, options, runs that are missing, the study's note. Each sentence
 * comes after `before` and ends in a newline. */
void ct_study_add_state(ct_text *out, const ct_study *study, const char *before);
void ct_study_add_remarks(ct_text *out, const ct_study *study, const char *before);
/* Sets study->order. */
void ct_study_sort(ct_study *study);
/* The table and what a reader must know, as HTML. */
ct_status ct_study_add_html(const ct_study *study, ct_text *out);

#endif
