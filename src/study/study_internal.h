#ifndef CT_STUDY_STUDY_INTERNAL_H
#define CT_STUDY_STUDY_INTERNAL_H

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
/* Parts of a text "a | b | c", blanks trimmed: how many, and the k-th of n; the last one is all the
 * rest, and one that is not there "". */
int ct_parts_count(const char *text);
void ct_parts_get(const char *text, int k, int n, char *out, size_t size);
/* A setting of a section; NULL: it has none. */
const ct_setting *ct_study_setting(const ct_study *study, int row, int column, const char *name);

/* ---- words (check.c) ---- */
/* Names and lists that a run would refuse before it reads its data, of resolved options. */
ct_status ct_config_check(const ct_config *config);
/* The same of the graph, which is made for it. */
ct_status ct_config_check_graph(const ct_config *config);

/* ---- one cell (execute.c, data.c) ---- */
/* Looks at what is there: its state, and the summary of a finished one. */
ct_status ct_cell_inspect(ct_cell *cell);
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
/* The next entry of a directory by name, of those that begin and end so: `name` (without the
 * ending) becomes it; begin with "", which also is the end. Entries may come and go meanwhile. */
ct_status ct_study_next_name(const char *dir, const char *start, const char *ending,
                             char name[256]);
/* The next directory inside whose name begins so: *path becomes it; begin with "", as it ends. */
ct_status ct_study_next_dir(const char *dir, const char *start, ct_path *path);
/* What it is called. */
const char *ct_study_dir_name(const ct_path *path);
/* A run's directory of ours with all that is in it. */
void ct_study_remove_dir(const char *dir);

/* ---- figures (figure.c) ---- */
/* The value of `figure = ...`. */
ct_status ct_figure_parse(const char *text, ct_study_figure *out);
/* Sets the cells' x. CT_IO with file:line where an option has no number to draw over. */
ct_status ct_figure_place_cells(ct_study *study);

/* ---- curves (curves.c) ---- */
/* What finished cells have of all curves. */
typedef struct ct_study_curves {
    int n_epochs, n_curves;
    ct_epoch_sum
        *sums; /* [study->n_cells][n_epochs][n_curves] over the seeds; n = 0: there is none */
} ct_study_curves;

/* Into a zeroed one. */
ct_status ct_study_curves_read(const ct_study *study, ct_study_curves *out);
void ct_study_curves_free(ct_study_curves *curves);
static inline ct_epoch_sum *ct_study_curve_at(const ct_study_curves *c, int cell, int epoch) {
    return &c->sums[((size_t)cell * (size_t)c->n_epochs + (size_t)epoch) * (size_t)c->n_curves];
}
/* curves.csv */
ct_status ct_study_write_curves(const ct_study *study, const ct_study_curves *curves);

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
