/* A study: runs as the cells of a table, described in a small text file or on the command line, run
 * where they are missing, and shown beside the numbers they should give.
 *
 *   title = CIFAR-10, ring            what the table shows
 *   rows = agents | method            headings of the parts of a row's label
 *   show = consensus, mean            metrics (metric.h); the paper's numbers are of the first
 *   curves = ce, mv, dv               metrics to be written epoch by epoch
 *   figure = dots                     what is drawn of it (figure.c):
 *                                     dots, the default: ours beside the paper's, of every cell
 *                                     lines x=agents: the first metric against an option's value, a
 *                                     line a row; label=WORDS at the end names that axis
 *                                     curves: a file for each of the curves, over the epochs
 *                                     none
 *   order = best                      a column's runs together, best first, without the missing
 *   baseline = QG-DSGDm-N             statistics: every row against this one (versus.c); a run may
 *                                     have further seeds behind the study's
 *   free = lr, gut-mu                 a row that is sent in may have its own of these (submission.h)
 *   [tune]                            how options are chosen on held-out samples (tune.h):
 *   rungs = 0.25, 0.5, 1              parts of the epochs, for all, half, a quarter of what is tried
 *   seeds = 1                         of these runs; default: the first of the run's
 *   validation-fraction = 0.1
 *   [options]                         of every run: name = value, as in a config.txt
 *   tune = lr=0.1,0.05; lambda-m+lambda-d=1,0.1   of every run, a column's or a row's: what is
 *                                     tried; all have the same number of combinations; "none"
 *   seeds = 1,2,3
 *   [column alpha = 0.1]              a label, then options of this column's runs
 *   alpha = 0.1
 *   splits = 77d7c3a5bc7b0db5,-       hashes of this column's splits, by seed; - where unknown
 *   tuned-in = LABEL                  its rows take what was chosen for them in another column
 *   [row 16 | CCL]                    a label, then options of this row's runs; a value with | has
 *   lambda-d = 0 | 0.01               an entry for every column
 *   paper = 86.63 +- 0.52 | -         what the cells should give; - where nothing is known
 *   cells = + | <                     + a run (default), - none, < the run of the cell before
 *
 * A # with blanks around it, and a line that begins with one, is a comment.
 * Where an option is named several times the row wins over the column, the column over [options],
 * and the command line over all. */
#ifndef CT_STUDY_STUDY_H
#define CT_STUDY_STUDY_H

#include <stdio.h>

#include "data/dataset.h"
#include "record/record.h"
#include "run/resolve.h"

#define CT_STUDY_LABEL 128
#define CT_STUDY_HEADS 6
#define CT_STUDY_SHOWN 12
#define CT_STUDY_CELLS 4096

#define CT_ANY  (-1) /* row or column */
#define CT_TUNE (-2) /* the section [tune] */

/* A line of the file below a section: an option of every run, of a column's or of a row's; or what
 * a row says of its cells, `paper` and `cells`. */
typedef struct ct_setting {
    int row, column; /* the section; CT_ANY: it is no row, no column */
    int line;        /* of the file; 0: of the command line */
    char name[64], value[CT_CONFIG_TEXT];
} ct_setting;

/* A row or a column. */
typedef struct ct_study_line {
    char label[CT_STUDY_LABEL];
    char name[2 * CT_STUDY_LABEL]; /* of its runs' directories; "" = made of the label */
    int line;                      /* of the file; 0: of the command line, or nobody's */
} ct_study_line;

typedef enum ct_figure_kind {
    CT_FIGURE_NONE,
    CT_FIGURE_DOTS,
    CT_FIGURE_LINES,
    CT_FIGURE_CURVES,
    CT_FIGURE_SWEEP, /* a line over the option that is swept over */
    CT_FIGURE_HEAT,  /* two options, or more in panels */
} ct_figure_kind;

typedef struct ct_study_figure {
    ct_figure_kind kind;
    char x[64], label[CT_STUDY_LABEL]; /* of lines: the option, and the name of its axis */
    int line;                          /* of the file; 0: nobody asked */
} ct_study_figure;

typedef struct ct_estimate {
    double mean, deviation; /* NaN: not given */
    int digits;
} ct_estimate;

typedef enum ct_cell_state {
    CT_CELL_MISSING,
    CT_CELL_BEGUN, /* interrupted: files are there, perhaps a checkpoint */
    CT_CELL_DONE,
    CT_CELL_DIVERGED,
} ct_cell_state;

#define CT_MAX_RUNGS 8

/* How options are tuned. */
typedef struct ct_tune_rule {
    double parts[CT_MAX_RUNGS]; /* of the epochs */
    int n_rungs;                /* 0: nothing is tuned */
    char seeds[CT_CONFIG_TEXT]; /* "": the cell's first */
    double fraction;            /* held out */
} ct_tune_rule;

typedef struct ct_choice ct_choice; /* tune.h */

/* What one seed of a finished run gave. */
typedef struct ct_seed_score {
    uint64_t seed;
    double value;   /* of the study's first metric, in the table's unit */
    char split[24]; /* the hash of who has which sample; "": unknown */
} ct_seed_score;

/* What is known of the data that a cell was looked at with last, so that the next one need not read
 * it again (data.c). */
typedef struct ct_study_data {
    char key[3 * CT_CONFIG_TEXT]; /* what it was opened with */
    uint64_t fingerprint;         /* 0: it cannot be opened */
} ct_study_data;

typedef struct ct_cell {
    int row, column;
    char name[2 * CT_STUDY_LABEL]; /* its directory below --out */
    ct_config config;              /* what was asked for; out is its directory */
    ct_config resolved;            /* what that comes to: the options of its run */
    bool is_selected;
    bool is_alone;             /* not to be run with others */
    bool takes_more_seeds;     /* a run with these and further ones is its own, too */
    char tune[CT_CONFIG_TEXT]; /* what is tried of it; "": nothing */
    bool is_waiting;           /* nothing has been chosen yet: it cannot be run */
    ct_choice *choice;         /* NULL: likewise, or nothing is tuned */
    struct ct_cell *tuned_in;  /* whose choice it takes; NULL: it has its own */
    ct_estimate paper;
    double x; /* where a figure of lines has it */
    ct_cell_state state;
    ct_json *summary;     /* of a finished one */
    ct_seed_score *seeds; /* [n_seeds] of a study with a baseline: of a finished one */
    int n_seeds;
    char *elsewhere;     /* of a missing one: another study's run with the same options, or NULL */
    ct_study_data *data; /* lent */
} ct_cell;

/* There is a cell, and its run is done or diverged. */
static inline bool ct_cell_has_ended(const ct_cell *cell) {
    return cell != NULL && (cell->state == CT_CELL_DONE || cell->state == CT_CELL_DIVERGED);
}

/* What the command line asks for. */
typedef struct ct_study_request {
    const char *only;     /* names that contain or match one of these, with commas; NULL = all */
    bool is_quick;        /* fewer epochs: */
    int64_t quick_epochs; /* so many; 0 = a twentieth */
    bool dry_run, table_only, keep, json;
    bool tune_only;  /* choose, and do not train with the choice */
    bool hides_test; /* the lines of runs do not tell accuracies on the test set */
    bool reuse;      /* runs of the studies beside this one */
    int at_once; /* worlds of one launch, where runs differ in the lambdas alone; 0, 1 = one run */
    double time_limit_s; /* 0 = none */
    double started_s;    /* on the monotonic clock */
} ct_study_request;

typedef struct ct_study {
    char name[CT_STUDY_LABEL], path[CT_CONFIG_TEXT];
    char title[CT_CONFIG_TEXT], note[CT_CONFIG_TEXT];
    char heads[CT_STUDY_HEADS][CT_STUDY_LABEL];
    int n_heads;
    const ct_metric *shown[CT_STUDY_SHOWN], *curves[CT_STUDY_SHOWN];
    int n_shown, n_curves;
    ct_study_figure figure;
    char baseline[CT_STUDY_LABEL]; /* the label of a row; "": no statistics */
    int baseline_line;
    char free[CT_CONFIG_TEXT]; /* options that a row sent in may choose (submission.h) */
    ct_tune_rule tune;
    ct_study_line *rows, *columns;
    int n_rows, n_columns;
    ct_setting *settings;
    int n_settings;
    ct_cell *cells;
    int n_cells;
    int *at;                  /* [n_rows][n_columns] the cell of a place; -1 = none */
    int *order;               /* [n_rows] in which a table lists them */
    bool is_comparison;       /* crosstalk compare: a row wins over the command line, the table is
                               * compare.*, its CSV has a line for every run */
    const ct_metric *sort_by; /* order: the best first; NULL = as written */
    bool is_ranked;           /* the table lists runs by column, the best first */
    ct_study_data data;
    char out[CT_CONFIG_TEXT];
    ct_study_request request;
    char with[CT_CONFIG_TEXT]; /* options of the command line that change the numbers */
    char said[CT_STUDY_LABEL]; /* what tables have to say about --quick; "" = nothing */
} ct_study;

/* ---- from a file (conf.c, find.c) ---- */
/* A study from its text; CT_IO with file:line. */
ct_status ct_study_parse(const char *path, const char *text, ct_study *out);
/* The same of a file, by path or by the name of one that came with the program. */
ct_status ct_study_open(const char *name, ct_study *out);
void ct_study_free(ct_study *study);
/* A row or column more; `line` is where it was written. */
ct_status ct_study_add_line(ct_study_line **lines, int *n, const char *label, int line);
/* The one of this label; NULL: there is none. */
const ct_study_line *ct_study_find_line(const ct_study_line *lines, int n, const char *label);
/* An option of a row, from the command line. */
ct_status ct_study_set(ct_study *study, int row, const char *name, const char *value);
/* Adds the metrics of a list to one of at most CT_STUDY_SHOWN. */
ct_status ct_study_add_metrics(const char *names, const ct_metric **list, int *n);
/* The names of the studies that came with the program, with their titles. */
ct_status ct_study_list(FILE *out);

/* ---- cells (cells.c) ---- */
/* The runs, with the command line's options over the file's; the request is kept. */
ct_status ct_study_build(ct_study *study, const ct_config *given, const ct_study_request *request);

/* ---- runs (execute.c) ---- */
/* Looks at what is there. CT_INVAL where a cell was run with other options. */
ct_status ct_study_inspect(ct_study *study);
/* Lets its runs lie in another folder, and looks at what is there. CT_INVAL where that is another
 * study's, also one that was only begun. */
ct_status ct_study_move(ct_study *study, const char *out);
/* Finds runs of the studies beside this one that have the options of missing cells (reuse.c). */
ct_status ct_study_find_elsewhere(ct_study *study);
/* Copies them to this one. */
ct_status ct_study_reuse(ct_study *study);
/* Runs what is selected and not there yet; tables are written now and then. *n_left: cells that
 * time or a signal left over. */
ct_status ct_study_run(ct_study *study, int *n_left);
/* Lists the cells with their state and their commands. */
ct_status ct_study_print_plan(const ct_study *study, FILE *out);

/* ---- results (table.c, figure.c, page.c) ---- */
/* table.md, table.csv, table.tex (and curves.csv, and figures) into --out; compare.* of a
 * comparison. */
ct_status ct_study_write(ct_study *study);
/* The table as text. */
/* "missing", "begun", "done", "diverged" */
const char *ct_cell_state_name(ct_cell_state state);
ct_status ct_study_print(const ct_study *study, FILE *out);
/* What was tuned, as text. */
ct_status ct_study_print_tuned(const ct_study *study, FILE *out);
/* figure.svg, or figure-<metric>.svg for each of the curves; PNG and PDF too where librsvg is built
 * in. A study's figure is what its file says; of a comparison it is a ranking, of a sweep a line or
 * heat maps.
 * Nothing where there is nothing to draw yet. The curves also as curves.csv. */
ct_status ct_study_write_figures(const ct_study *study);
/* report.html: table, figures, and a report of the finished runs; nothing before one is finished.
 * Reads what ct_study_write() wrote. */
ct_status ct_study_write_page(const ct_study *study);
/* Is ours as the paper says: within two of its deviations, or without one, to its digits. */
bool ct_estimate_holds(const ct_estimate *paper, double ours);

#endif
