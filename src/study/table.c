/* A study's table, filled with what is there; and its CSV. */
#include <math.h>
#include <string.h>

#include "study/grid.h"
#include "study/study_internal.h"
#include "util/file.h"
#include "util/memory.h"
#include "util/show.h"

#define WIDEST 110 /* characters that a line of a table may have */

/* What is being filled. */
typedef struct filling {
    ct_grid grid;
    bool has_paper;
    bool says_methods; /* rows are named as methods, not as they were asked for */
} filling;

static void filling_free(filling *f) {
    ct_grid_free(&f->grid);
}

bool ct_estimate_holds(const ct_estimate *paper, double ours) {
    double off = fabs(ours - paper->mean);
    if (!isnan(paper->deviation)) return off <= 2 * paper->deviation + 1e-9;
    return off <= 0.5 * pow(10, -paper->digits) + 1e-9;
}

const ct_cell *ct_study_cell_at(const ct_study *study, int row, int column) {
    int at = study->at[row * study->n_columns + column];
    return at >= 0 ? &study->cells[at] : NULL;
}

const ct_cell *ct_study_cell_of(const ct_study *study, int row, int column) {
    const ct_cell *cell = ct_study_cell_at(study, row, column);
    return cell != NULL && cell->column == column ? cell : NULL;
}

/* ---- order ---- */

/* The larger the better; a run that has nothing to show comes last. */
static double worth(const ct_metric *metric, const ct_cell *cell) {
    double value = cell != NULL ? ct_metric_value(metric, cell->summary) : NAN;
    if (isnan(value)) return -INFINITY;
    return ct_metric_rises(metric) ? value : -value;
}

static double sort_value(const ct_study *study, int row) {
    return worth(study->sort_by, ct_study_cell_at(study, row, 0));
}

static void sort_rows(ct_study *study) {
    for (int k = 1; study->sort_by != NULL && k < study->n_rows; k++) {
        int row = study->order[k], at = k;
        for (; at > 0 && sort_value(study, study->order[at - 1]) < sort_value(study, row); at--)
            study->order[at] = study->order[at - 1];
        study->order[at] = row;
    }
}

/* The cells in a table's order: row by row, or what has ended column by column, the best first; how
 * many. */
static int list_cells(const ct_study *study, const ct_cell **cells) {
    int n = 0;
    for (int line = 0; line < study->n_rows && !study->is_ranked; line++)
        for (int k = 0; k < study->n_columns; k++) {
            const ct_cell *cell = ct_study_cell_of(study, study->order[line], k);
            if (cell != NULL) cells[n++] = cell;
        }
    for (int k = 0, first = 0; k < study->n_columns && study->is_ranked; k++, first = n)
        for (int line = 0; line < study->n_rows; line++) {
            const ct_cell *cell = ct_study_cell_of(study, study->order[line], k);
            if (!ct_cell_has_ended(cell)) continue;
            int at = n++;
            const ct_metric *by = study->shown[0];
            for (; at > first && worth(by, cells[at - 1]) < worth(by, cell); at--)
                cells[at] = cells[at - 1];
            cells[at] = cell;
        }
    return n;
}

/* ---- filling ---- */

/* The paper's numbers are known of a cell in the column. */
static bool has_paper(const ct_study *study, int column) {
    for (int k = 0; k < study->n_cells; k++) {
        const ct_cell *cell = &study->cells[k];
        if ((column == CT_ANY || cell->column == column) && !isnan(cell->paper.mean)) return true;
    }
    return false;
}

static void add_metric(ct_grid *g, const ct_cell *cell, const ct_metric *metric) {
    double value = ct_metric_value(metric, cell->summary);
    if (isnan(value))
        ct_grid_text(g, cell->state == CT_CELL_DIVERGED ? "diverged" : "-");
    else
        ct_grid_number(g, "%.*f", value, ct_metric_deviation(metric, cell->summary),
                       metric->digits);
}

/* The paper's number and the difference. */
static void add_paper(ct_grid *g, const ct_cell *cell, const ct_metric *metric) {
    const ct_estimate *p = &cell->paper;
    double ours = ct_metric_value(metric, cell->summary), off = ours - p->mean;
    if (isnan(p->mean))
        ct_grid_text(g, "");
    else
        ct_grid_number(g, "%.*f", p->mean, p->deviation, p->digits);
    if (isnan(off)) {
        ct_grid_text(g, "");
        return;
    }
    bool is_zero = fabs(off) < 0.5 * pow(10, -metric->digits); /* no -0.00 */
    ct_entry *e = ct_grid_number(g, "%+.*f", is_zero ? 0 : off, NAN, metric->digits);
    e->is_marked = !ct_estimate_holds(p, ours);
}

/* The entries of a cell are its metrics; behind the first, if so wished, the paper's number and the
 * difference. They stay empty where there is no cell. */
static void add_cell(ct_grid *g, const ct_study *study, const ct_cell *cell, bool with_paper) {
    for (int m = 0; m < study->n_shown; m++) {
        bool has_paper_s = m == 0 && with_paper;
        if (cell == NULL) {
            g->n += has_paper_s ? 3 : 1;
            continue;
        }
        add_metric(g, cell, study->shown[m]);
        if (has_paper_s) add_paper(g, cell, study->shown[m]);
    }
}

/* Their headings. */
static void add_headings(ct_grid *g, const ct_study *study, const char *label, bool with_paper) {
    for (int m = 0; m < study->n_shown; m++) {
        bool has_label = label[0] != '\0', has_title = !has_label || study->n_shown > 1;
        ct_entry *e = ct_grid_text(g, "");
        snprintf(e->text, sizeof e->text, "%s%s%s", label, has_label && has_title ? ": " : "",
                 has_title ? study->shown[m]->title : "");
        if (m > 0 || !with_paper) continue;
        ct_grid_text(g, "paper");
        ct_grid_text(g, "difference");
    }
}

static void add_row_label(filling *f, const ct_study *study, int row) {
    ct_grid *g = &f->grid;
    if (f->says_methods) {
        ct_entry *e = ct_grid_text(g, "");
        ct_study_say_row(study, row, 0, study->n_heads, e->text, sizeof e->text);
        return;
    }
    for (int k = 0; k < study->n_heads; k++) {
        ct_entry *e = ct_grid_text(g, "");
        ct_parts_get(study->rows[row].label, k, study->n_heads, e->text, sizeof e->text);
    }
}

static ct_status make_grid(const ct_study *study, bool is_long, int n_lines, filling *f) {
    ct_grid *g = &f->grid;
    int n_cells = is_long ? 1 : study->n_columns; /* in a line */
    int n_heads = study->n_heads + is_long, n_columns = n_heads + n_cells * study->n_shown;
    for (int k = 0; k < n_cells; k++) n_columns += 2 * has_paper(study, is_long ? CT_ANY : k);
    f->has_paper = has_paper(study, CT_ANY);
    ct_grid_free(g);
    CT_TRY(ct_grid_make(1 + n_lines, n_columns, n_heads, g));
    for (int k = 0; k < study->n_heads; k++) ct_grid_text(g, study->heads[k]);
    if (is_long) ct_grid_text(g, "run");
    for (int k = 0; k < n_cells; k++) {
        bool has_label = !is_long && study->columns[k].line > 0;
        add_headings(g, study, has_label ? study->columns[k].label : "",
                     has_paper(study, is_long ? CT_ANY : k));
    }
    return CT_OK;
}

/* A line for every row. */
static ct_status fill_rows(const ct_study *study, filling *f) {
    CT_TRY(make_grid(study, false, study->n_rows, f));
    for (int line = 0; line < study->n_rows; line++) {
        add_row_label(f, study, study->order[line]);
        for (int k = 0; k < study->n_columns; k++)
            add_cell(&f->grid, study, ct_study_cell_of(study, study->order[line], k),
                     has_paper(study, k));
    }
    return CT_OK;
}

/* A line for every run. */
static ct_status fill_runs(const ct_study *study, filling *f) {
    CT_SCOPED_BLOCK(const ct_cell *) cells = NULL;
    CT_TRY(ct_make(&cells, (size_t)study->n_cells, "the lines of a table"));
    int n = list_cells(study, cells);
    CT_TRY(make_grid(study, true, n, f));
    for (int k = 0; k < n; k++) {
        add_row_label(f, study, cells[k]->row);
        ct_grid_text(&f->grid, study->columns[cells[k]->column].label);
        add_cell(&f->grid, study, cells[k], has_paper(study, CT_ANY));
    }
    return CT_OK;
}

/* Rows, or runs where rows would be too wide to be read. */
static ct_status fill(const ct_study *study, filling *f) {
    int width = 0;
    if (study->is_ranked && study->n_columns > 1) return fill_runs(study, f);
    CT_TRY(fill_rows(study, f));
    for (int k = 0; k < f->grid.n_columns; k++) width += ct_grid_width(&f->grid, k) + 2;
    return width > WIDEST && study->n_columns > 1 ? fill_runs(study, f) : CT_OK;
}

/* ---- what stands around it ---- */

void ct_study_add_notes(ct_text *out, const ct_study *study, bool has_deviation, bool has_paper_s) {
    int n_missing = 0;
    for (int k = 0; k < study->n_cells; k++) {
        ct_cell_state state = study->cells[k].state;
        n_missing += state == CT_CELL_MISSING || state == CT_CELL_BEGUN;
    }
    if (study->said[0] != '\0') ct_text_add(out, "%s\n", study->said);
    if (study->with[0] != '\0') ct_text_add(out, "with%s\n", study->with);
    if (has_deviation)
        ct_text_add(out, "\xc2\xb1 is the sample deviation (n - 1) over the seeds\n");
    if (has_paper_s)
        ct_text_add(out, "difference = ours - paper's; * marks what lies outside the paper's mean "
                         "\xc2\xb1 2 deviations (or its digits, where it gives none)\n");
    if (n_missing > 0)
        ct_text_add(out, "%d of %d runs are not there yet\n", n_missing, study->n_cells);
    if (study->note[0] != '\0') ct_text_add(out, "%s\n", study->note);
}

static ct_status add_table(ct_text *out, const ct_study *study, ct_form form) {
    CT_SCOPED(filling) f = {.says_methods = form == CT_FORM_HTML && study->is_comparison};
    CT_SCOPED(ct_text) notes = {0};
    CT_TRY(fill(study, &f));
    ct_study_add_notes(&notes, study, f.grid.has_deviation, f.has_paper);
    ct_study_add_splits(&notes, study);
    CT_TRY(ct_text_status(&notes));
    ct_frame frame = {.title = study->title,
                      .label = form == CT_FORM_HTML ? "study-table" : study->name,
                      .said = study->said,
                      .notes = notes.n > 0 ? notes.chars : ""};
    return ct_grid_write(&f.grid, form, &frame, out);
}

ct_status ct_study_add_html(const ct_study *study, ct_text *out) {
    return add_table(out, study, CT_FORM_HTML);
}

ct_status ct_study_print(const ct_study *study, FILE *out) {
    CT_SCOPED(ct_text) text = {0};
    CT_TRY(add_table(&text, study, CT_FORM_PLAIN));
    ct_show_lines(out, text.chars);
    return CT_OK;
}

/* ---- CSV ---- */

static void add_csv_number(ct_text *out, double value) {
    if (isnan(value))
        ct_text_add(out, ",");
    else
        ct_text_add(out, ",%.9g", value);
}

const char *ct_cell_state_name(ct_cell_state state) {
    static const char *const names[] = {"missing", "begun", "done", "diverged"};
    return names[state];
}

static void add_csv_metric(ct_text *out, const ct_study *study, const ct_cell *cell, int m) {
    const ct_metric *metric = study->shown[m];
    double ours = ct_metric_value(metric, cell->summary);
    ct_estimate none = {NAN, NAN, 0}, paper = m == 0 ? cell->paper : none;
    ct_csv_add(out, study->rows[cell->row].label);
    ct_text_add(out, ",");
    ct_csv_add(out, study->columns[cell->column].label);
    ct_text_add(out, ",%s", metric->name);
    add_csv_number(out, ours);
    add_csv_number(out, ct_metric_deviation(metric, cell->summary));
    add_csv_number(out, paper.mean);
    add_csv_number(out, paper.deviation);
    add_csv_number(out, ours - paper.mean);
    bool is_known = !isnan(ours) && !isnan(paper.mean);
    ct_text_add(out, ",%s", !is_known ? "" : ct_estimate_holds(&paper, ours) ? "no" : "yes");
    ct_text_add(out, ",%lld,%s,%s\n", (long long)cell->resolved.epochs,
                ct_cell_state_name(cell->state), cell->name);
}

/* A line for every run and metric. */
static void add_csv(ct_text *out, const ct_study *study) {
    ct_text_add(out, "row,column,metric,ours,ours_std,paper,paper_std,difference,outside,epochs,"
                     "state,run\n");
    for (int k = 0; k < study->n_rows; k++)
        for (int column = 0; column < study->n_columns; column++) {
            const ct_cell *cell = ct_study_cell_of(study, study->order[k], column);
            for (int m = 0; cell != NULL && m < study->n_shown; m++)
                add_csv_metric(out, study, cell, m);
        }
}

/* Of a comparison, a line for every run that has ended, with what its summary.json says. */
static void add_comparison_csv(ct_text *out, const ct_study *study) {
    ct_text_add(out, "method");
    for (int m = 0; m < study->n_shown; m++) {
        const ct_metric *metric = study->shown[m];
        ct_text_add(out, ",%s", metric->key);
        if (metric->deviation != NULL) ct_text_add(out, ",%s", metric->deviation);
    }
    ct_text_add(out, "\n");
    for (int k = 0; k < study->n_cells; k++) {
        const ct_cell *cell = &study->cells[k];
        if (cell->state != CT_CELL_DONE && cell->state != CT_CELL_DIVERGED) continue;
        ct_csv_add(out, study->rows[cell->row].label);
        for (int m = 0; m < study->n_shown; m++) {
            const ct_metric *metric = study->shown[m];
            add_csv_number(out, ct_json_number(cell->summary, metric->key));
            if (metric->deviation != NULL)
                add_csv_number(out, ct_json_number(cell->summary, metric->deviation));
        }
        ct_text_add(out, "\n");
    }
}

/* ---- files ---- */

ct_status ct_study_write_file(const ct_study *study, const char *name, const ct_text *text) {
    CT_TRY(ct_text_status(text));
    return ct_file_write(ct_path_in(study->out, name).text, text->chars, text->n);
}

/* table.<ending> or compare.<ending> */
static ct_status write_text(const ct_study *study, const char *ending, const ct_text *text) {
    char name[32];
    snprintf(name, sizeof name, "%s.%s", study->is_comparison ? "compare" : "table", ending);
    return ct_study_write_file(study, name, text);
}

static ct_status write_table(const ct_study *study, const char *ending, ct_form form) {
    CT_SCOPED(ct_text) text = {0};
    CT_TRY(add_table(&text, study, form));
    return write_text(study, ending, &text);
}

static ct_status write_csv(const ct_study *study) {
    CT_SCOPED(ct_text) text = {0};
    if (study->is_comparison)
        add_comparison_csv(&text, study);
    else
        add_csv(&text, study);
    return write_text(study, "csv", &text);
}

ct_status ct_study_write(ct_study *study) {
    if (study->is_ranked && study->n_columns == 1) study->sort_by = study->shown[0];
    sort_rows(study);
    CT_TRY(ct_dir_create(study->out));
    if (study->request.tune_only) return ct_study_write_tuned(study);
    CT_TRY(ct_study_read_seeds(study));
    CT_TRY(write_table(study, "md", CT_FORM_MARKDOWN));
    CT_TRY(write_table(study, "tex", CT_FORM_LATEX));
    CT_TRY(write_csv(study));
    CT_TRY(ct_study_write_tuned(study));
    CT_TRY(ct_study_write_versus(study));
    return ct_study_write_figures(study);
}
