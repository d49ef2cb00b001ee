#ifndef CT_STUDY_STUDY_INTERNAL_H
#define CT_STUDY_STUDY_INTERNAL_H

#include "record/find.h"
#include "study/study.h"
#include "util/memory.h"

/* ---- the study's file (conf.c) ---- */
/* Says again what was caught, with file and line in front; line 0: it was not written there. */
ct_status ct_study_fail_at(const ct_study *study, int line, ct_error *error);
#define CT_TRY_AT(study, line, call)                                                               \
    do {                                                                                           \
        ct_error error_;                                                                           \
        if (CT_CATCH(&error_, call) != CT_OK) return ct_study_fail_at(study, line, &error_);       \
    } while (0)
/* The k-th of the n parts of a text "a | b | c", blanks trimmed; the last one is all the rest, and
 * one that is not there "". */
void ct_parts_get(const char *text, int k, int n, char *out, size_t size);
/* A setting of a section; NULL: it has none. */
const ct_setting *ct_study_setting(const ct_study *study, int row, int column, const char *name);

/* ---- one cell (cells.c, execute.c, data.c) ---- */
/* What its options come to, after some were put in its config. */
ct_status ct_cell_resolve(const ct_study *study, ct_cell *cell);
/* Nothing is there, and nobody asked to replace anything. */
bool ct_cell_is_free(const ct_cell *cell);
/* Whether a run with these saved options, and this summary if it is finished (else NULL), is the
 * cell's. */
ct_status ct_cell_is_run(const ct_cell *cell, const ct_json *options, const ct_json *summary,
                         bool *is_run);
/* Whether it was made with other data than the cell's: where it had them from, or NULL. */
ct_status ct_cell_find_other_data(const ct_cell *cell, const ct_json *summary, const char **source);
/* A finished run elsewhere becomes the cell's, made light unless all of it is to be kept. */
ct_status ct_cell_take(ct_cell *cell, const char *from, bool keep);
/* The run directory has a checkpoint to resume from. A damaged one is no reason to stop: a note
 * says that `name` begins again. */
ct_status ct_study_can_resume(const char *dir, const char *name, bool *can);
/* Selected cells that are neither finished nor found elsewhere. */
int ct_study_count_to_do(const ct_study *study);
/* After a run: a signal in its last evaluation let it end, but was for all of them:
 * CT_STOPPED. */
ct_status ct_study_heed_signal(void);

/* Runs what is selected and not there yet, without tables. *n_left: what time has left over. */
ct_status ct_study_run_cells(ct_study *study, int *n_left);

/* ---- choosing (tune.c, choice.c) ---- */
/* The study's [tune]; *line gets that of an error. */
ct_status ct_tune_read_rule(ct_study *study, int *line);
/* All cells try the same number of combinations. */
ct_status ct_tune_check(const ct_study *study);
/* Finds the cells whose choices those of a column with "tuned-in" take. */
ct_status ct_tune_link(ct_study *study);
/* What was chosen for a cell before, if it was: into its options. */
ct_status ct_tune_recall(const ct_study *study, ct_cell *cell);
void ct_tune_forget(ct_cell *cell);
/* Chooses; the cell waits no more, unless time is up. */
ct_status ct_tune_cell(const ct_study *study, ct_cell *cell);
/* tuned.md, .tex and .csv: what was tried and chosen; nothing where nothing is tuned. And as HTML. */
ct_status ct_study_write_tuned(const ct_study *study);
ct_status ct_study_add_tuned(const ct_study *study, ct_text *out);
/* ---- statistics of a study with a baseline (seeds.c, versus.c, pareto.c) ---- */
/* What every seed of the finished cells gave. */
ct_status ct_study_read_seeds(ct_study *study);
/* The hash of a column's split of a seed, as the study's file has it; false: it does not. */
bool ct_study_find_split(const ct_study *study, int column, uint64_t seed, char *out, size_t size);
/* Notes: the splits of every column, and rows that have others; runs that are missing. */
void ct_study_add_splits(ct_text *out, const ct_study *study);
/* versus.* and ranks.*: every row against the baseline, and which are told apart; figure-ranks, and
 * pareto-mib-K and pareto-compute-K of the K-th column. And the tables as HTML. */
ct_status ct_study_write_versus(const ct_study *study);
ct_status ct_study_add_versus(const ct_study *study, ct_text *out);
ct_status ct_study_write_pareto(const ct_study *study);

/* The choice is where it was made, too, before the cell's run begins. */
ct_status ct_tune_keep(const ct_cell *cell);
/* The choice goes with the cell's finished run. */
ct_status ct_tune_attach(const ct_cell *cell);

/* ---- several cells in one launch (share.c) ---- */
#define CT_SHARED "shared-" /* what the directories of launches are called */

/* Runs cell `first` and, as worlds of one launch, those that differ from it in the lambdas alone,
 * request.at_once worlds together. *n: how many cells; 0: there are no others, and nothing was
 * done. If one diverges, each is left to be run alone. */
ct_status ct_share_run(ct_study *study, int first, int *n);
/* What launches have left, before anything else is run: finished runs are filed to their cells,
 * interrupted launches resumed. */
ct_status ct_share_resume_all(ct_study *study);

/* ---- directories (find.c) ---- */
/* Names in a directory of what begins and ends so, without the ending, in order; those that begin
 * with a point are left out. */
ct_status ct_study_list_names(const char *dir, const char *start, const char *ending,
                              ct_name_list *out);
/* A run's directory of ours with all that is in it. */
void ct_study_remove_dir(const char *dir);

/* ---- figures (figure.c) ---- */
/* The value of `figure = ...`. */
ct_status ct_figure_parse(const char *text, ct_study_figure *out);
/* Sets the cells' x. CT_IO with file:line where an option has no number to draw over. */
ct_status ct_figure_place_cells(ct_study *study);
/* What is drawn of it. */
ct_figure_kind ct_study_figure_kind(const ct_study *study);
/* --out/<name>.svg and, where this build can, .png and .pdf */
ct_status ct_study_write_drawing(const ct_study *study, const char *name, const ct_text *svg);
/* The row's label as it is said: "16 | CCL" is "agents 16, CCL", its numbers with their heading;
 * parts from `first` on. Of a comparison the method as all pages call it, and its options. */
void ct_study_say_row(const ct_study *study, int row, int first, int end, char *out, size_t size);
/* The k-th part of it; of the option algorithm as all pages call it. */
void ct_study_say_part(const ct_study *study, int row, int k, char *out, size_t size);
/* How the method of its runs looks (method.h). */
int ct_study_row_style(const ct_study *study, int row);

/* ---- dots.c, heat.c ---- */
ct_status ct_study_write_dots(const ct_study *study);
/* The k-th panel alone, "figure-<k+1>", with its heading; "" after the last one. */
ct_status ct_study_draw_panel(const ct_study *study, int k, char *heading, size_t size,
                              ct_text *out);
ct_status ct_study_write_heat(const ct_study *study);

/* ---- table.c ---- */
/* The cell that a place shows; NULL: none. One of another column is shown again (<). */
const ct_cell *ct_study_cell_at(const ct_study *study, int row, int column);
/* The same, if it is of this column. */
const ct_cell *ct_study_cell_of(const ct_study *study, int row, int column);
/* What a reader must know, a sentence a line: --quick, options, signs of the table (deviations, the
 * paper's numbers), runs that are missing, the study's note. */
void ct_study_add_notes(ct_text *out, const ct_study *study, bool has_deviation, bool has_paper);
/* The table and what a reader must know, as HTML. */
ct_status ct_study_add_html(const ct_study *study, ct_text *out);
/* `text` to --out/name. */
ct_status ct_study_write_file(const ct_study *study, const char *name, const ct_text *text);
#endif
