/* A study's table, filled with what is there: as text, Markdown, LaTeX, HTML and CSV. */
#include <math.h>
#include <string.h>

#include "report/markup.h"
#include "study/study_internal.h"
#include "util/file.h"
#include "util/show.h"

#define WIDEST 110 /* characters that a line of a table may have */

typedef struct entry {
    char text[CT_STUDY_LABEL + 32]; /* words, or a number */
    bool is_number;
    char deviation[32]; /* of a number; "": none */
    bool is_marked;     /* a difference: ours is not what the paper says */
} entry;

/* Entries are added one after the other, line by line; the first line has the headings. */
typedef struct grid {
    int n_lines, n_columns, n_heads;
    entry *entries; /* [n_lines][n_columns] */
    int n;          /* so many were added */
    bool has_paper, has_deviation;
    bool says_methods; /* rows are named as methods, not as they were asked for */
} grid;

static void grid_free(grid *g) {
    ct_free(g->entries);
    *g = (grid){0};
}

bool ct_estimate_holds(const ct_estimate *paper, double ours) {
    double off = fabs(ours - paper->mean);
    if (!isnan(paper->deviation)) return off <= 2 * paper->deviation + 1e-9;
    return off <= 0.5 * pow(10, -paper->digits) + 1e-9;
}

/* ---- order ---- */

static double sort_value(const ct_study *study, int row) {
    int at = study->at[row * study->n_columns];
    double value = at >= 0 ? ct_metric_value(study->sort_by, study->cells[at].summary) : NAN;
    if (isnan(value)) return -INFINITY;
    return ct_metric_rises(study->sort_by) ? value : -value;
}

static void sort_rows(ct_study *study) {
    for (int k = 1; study->sort_by != NULL && k < study->n_rows; k++) {
        int row = study->order[k], at = k;
        for (; at > 0 && sort_value(study, study->order[at - 1]) < sort_value(study, row); at--)
            study->order[at] = study->order[at - 1];
        study->order[at] = row;
    }
}

/* ---- filling ---- */

const ct_cell *ct_study_cell_at(const ct_study *study, int row, int column) {
    int at = study->at[row * study->n_columns + column];
    return at >= 0 ? &study->cells[at] : NULL;
}

const ct_cell *ct_study_cell_of(const ct_study *study, int row, int column) {
    const ct_cell *cell = ct_study_cell_at(study, row, column);
    return cell != NULL && cell->column == column ? cell : NULL;
}

/* The paper's numbers are known of a cell in the column. */
static bool has_paper(const ct_study *study, int column) {
    for (int k = 0; k < study->n_cells; k++) {
        const ct_cell *cell = &study->cells[k];
        if ((column == CT_ANY || cell->column == column) && !isnan(cell->paper.mean)) return true;
    }
    return false;
}

static entry *add_text(grid *g, const char *text) {
    entry *e = &g->entries[g->n++];
    snprintf(e->text, sizeof e->text, "%s", text);
    return e;
}

/* `format` is of a number with so many digits. */
static entry *add_number(grid *g, const char *format, double value, double deviation, int digits) {
    entry *e = add_text(g, "");
    e->is_number = true;
    snprintf(e->text, sizeof e->text, format, digits, value);
    if (isnan(deviation)) return e;
    snprintf(e->deviation, sizeof e->deviation, "%.*f", digits, deviation);
    g->has_deviation = true;
    return e;
}

static void add_metric(grid *g, const ct_cell *cell, const ct_metric *metric) {
    double value = ct_metric_value(metric, cell->summary);
    if (isnan(value))
        add_text(g, cell->state == CT_CELL_DIVERGED ? "diverged" : "-");
    else
        add_number(g, "%.*f", value, ct_metric_deviation(metric, cell->summary), metric->digits);
}

/* The paper's number and the difference. */
static void add_paper(grid *g, const ct_cell *cell, const ct_metric *metric) {
    const ct_estimate *p = &cell->paper;
    double ours = ct_metric_value(metric, cell->summary), off = ours - p->mean;
    if (isnan(p->mean))
        add_text(g, "");
    else
        add_number(g, "%.*f", p->mean, p->deviation, p->digits);
    if (isnan(off)) {
        add_text(g, "");
        return;
    }
    bool is_zero = fabs(off) < 0.5 * pow(10, -metric->digits); /* no -0.00 */
    entry *e = add_number(g, "%+.*f", is_zero ? 0 : off, NAN, metric->digits);
    e->is_marked = !ct_estimate_holds(p, ours);
}

/* The entries of a cell are its metrics; behind the first, if so wished, the paper's number and the
 * difference. They stay empty where there is no cell. */
static void add_cell(grid *g, const ct_study *study, const ct_cell *cell, bool with_paper) {
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
static void add_headings(grid *g, const ct_study *study, const char *label, bool with_paper) {
    for (int m = 0; m < study->n_shown; m++) {
        bool has_label = label[0] != '\0', has_title = !has_label || study->n_shown > 1;
        entry *e = add_text(g, "");
        snprintf(e->text, sizeof e->text, "%s%s%s", label, has_label && has_title ? ": " : "",
                 has_title ? study->shown[m]->title : "");
        if (m > 0 || !with_paper) continue;
        add_text(g, "paper");
        add_text(g, "difference");
    }
}

static void add_row_label(grid *g, const ct_study *study, int row) {
    if (g->says_methods) {
        entry *e = add_text(g, "");
        ct_study_say_row(study, row, 0, study->n_heads, e->text, sizeof e->text);
        return;
    }
    for (int k = 0; k < study->n_heads; k++) {
        entry *e = add_text(g, "");
        ct_parts_get(study->rows[row].label, k, study->n_heads, e->text, sizeof e->text);
    }
}

/* A line for every row; or, if it is long, for every run. */
static ct_status fill_grid(const ct_study *study, bool is_long, grid *g) {
    int n_cells = is_long ? 1 : study->n_columns; /* in a line */
    bool says_methods = g->says_methods;
    grid_free(g);
    *g = (grid){.says_methods = says_methods,
                .n_lines = 1 + (is_long ? study->n_cells : study->n_rows),
                .n_heads = study->n_heads + is_long,
                .has_paper = has_paper(study, CT_ANY)};
    g->n_columns = g->n_heads + n_cells * study->n_shown;
    for (int k = 0; k < n_cells; k++) g->n_columns += 2 * has_paper(study, is_long ? CT_ANY : k);
    CT_TRY(ct_make(&g->entries, (size_t)g->n_lines * (size_t)g->n_columns, "a table"));
    for (int k = 0; k < study->n_heads; k++) add_text(g, study->heads[k]);
    if (is_long) add_text(g, "run");
    for (int k = 0; k < n_cells; k++) {
        bool has_label = !is_long && study->columns[k].line > 0;
        add_headings(g, study, has_label ? study->columns[k].label : "",
                     has_paper(study, is_long ? CT_ANY : k));
    }
    for (int line = 0; line < study->n_rows; line++)
        for (int k = 0; k < study->n_columns; k++) {
            const ct_cell *cell = ct_study_cell_of(study, study->order[line], k);
            if (is_long && cell == NULL) continue;
            if (is_long || k == 0) add_row_label(g, study, study->order[line]);
            if (is_long) add_text(g, study->columns[k].label);
            add_cell(g, study, cell, has_paper(study, is_long ? CT_ANY : k));
        }
    return CT_OK;
}

/* ---- forms ---- */

/* What is NULL is nothing. */
typedef struct form {
    const char *plus_minus, *mark, *dollar;         /* of numbers */
    void (*escape)(ct_text *out, const char *text); /* of words */
    bool is_padded;                                 /* a column is as wide as its widest entry */
    const char *begin, *between, *end;              /* of a line */
    const char *open[3], *close[3];                 /* of an entry: words, a heading, a number */
    const char *rule[2];                            /* a line below the headings: words, numbers */
    const char *after_head;
    const char *title;             /* the sign before it; NULL: it is not there */
    const char *opening, *closing; /* of the whole table */
    bool is_labelled;              /* an entry names its column: a phone shows no headings */
    const char *note[2]; /* around each of what a reader must know; NULL: it is not said */
    void (*escape_note)(ct_text *out, const char *text);
} form;

static void add_plain(ct_text *out, const char *text) {
    if (text != NULL) ct_text_add(out, "%s", text);
}

static void add_markdown(ct_text *out, const char *text) {
    for (; *text != '\0'; text++) ct_text_add(out, *text == '|' ? "\\%c" : "%c", *text);
}

static void add_latex(ct_text *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (strchr("&%$#_{}", *text) != NULL)
            ct_text_add(out, "\\%c", *text);
        else if (*text == '\\' || *text == '^' || *text == '~')
            ct_text_add(out, "\\char%d{}", (int)*text);
        else
            ct_text_add(out, "%c", *text);
    }
}

static void open_latex(ct_text *out, const ct_study *study, const grid *g) {
    ct_text_add(out, "%% needs nothing but LaTeX\n\\begin{table}[ht]\n\\caption{");
    add_latex(out, study->title);
    if (study->said[0] != '\0') {
        ct_text_add(out, " (");
        add_latex(out, study->said);
        ct_text_add(out, ")");
    }
    ct_text_add(out, "}\n\\label{tab:%s}\n\\begin{center}\n\\begin{tabular}{", study->name);
    for (int k = 0; k < g->n_columns; k++) ct_text_add(out, k < g->n_heads ? "l" : "r");
    ct_text_add(out, "}\n\\hline\n");
}

static const form plain = {.plus_minus = "\xc2\xb1",
                           .mark = " *",
                           .escape = add_plain,
                           .is_padded = true,
                           .between = "  ",
                           .end = "\n",
                           .title = "",
                           .closing = "\n",
                           .note = {"", "\n"},
                           .escape_note = add_plain};
static const form markdown = {.plus_minus = "\xc2\xb1",
                              .mark = " \\*",
                              .escape = add_markdown,
                              .begin = "|",
                              .end = "\n",
                              .open = {" ", " ", " "},
                              .close = {" |", " |", " |"},
                              .rule = {"---|", "---:|"},
                              .title = "# ",
                              .closing = "\n",
                              .note = {"- ", "\n"},
                              .escape_note = add_plain};
static const form latex = {.plus_minus = "\\pm",
                           .mark = "^{*}",
                           .dollar = "$",
                           .escape = add_latex,
                           .between = " & ",
                           .end = " \\\\\n",
                           .after_head = "\\hline\n",
                           .closing = "\\hline\n\\end{tabular}\n\\end{center}\n\\end{table}\n"};
static const form html = {.plus_minus = "\xc2\xb1",
                          .mark = " *",
                          .escape = ct_markup_text,
                          .begin = "<tr>",
                          .end = "</tr>\n",
                          .open = {"<th class=\"word\">", "<th>", "<td>"},
                          .close = {"</th>", "</th>", "</td>"},
                          .after_head = "</thead>\n<tbody>\n",
                          .is_labelled = true,
                          .opening = "<div class=\"wide-table\"><table id=\"study-table\" "
                                     "class=\"rows\">\n<thead>\n",
                          .closing = "</tbody></table></div>\n",
                          .note = {"<p class=\"note\">", "</p>\n"},
                          .escape_note = ct_markup_text};

static void add_entry(ct_text *out, const entry *e, const form *f) {
    if (!e->is_number) {
        f->escape(out, e->text);
        return;
    }
    add_plain(out, f->dollar);
    add_plain(out, e->text);
    if (e->deviation[0] != '\0') ct_text_add(out, " %s %s", f->plus_minus, e->deviation);
    if (e->is_marked) add_plain(out, f->mark);
    add_plain(out, f->dollar);
}

/* Characters, of which some are several bytes. */
static int count_characters(const ct_text *text) {
    int n = 0;
    for (size_t k = 0; k < text->n; k++) n += ((unsigned char)text->chars[k] & 0xC0) != 0x80;
    return n;
}

static int width_of(ct_text *out, const grid *g, int column) {
    int widest = 1;
    for (int line = 0; line < g->n_lines; line++) {
        CT_SCOPED(ct_text) text = {0};
        add_entry(&text, &g->entries[line * g->n_columns + column], &plain);
        if (count_characters(&text) > widest) widest = count_characters(&text);
        if (text.failed) out->failed = true;
    }
    return widest;
}

static void add_padded(ct_text *out, const grid *g, const entry *e, int column) {
    CT_SCOPED(ct_text) text = {0};
    add_entry(&text, e, &plain);
    if (text.failed) out->failed = true;
    int width = width_of(out, g, column) + (int)text.n - count_characters(&text);
    ct_text_add(out, "%*s", column < g->n_heads ? -width : width, text.n > 0 ? text.chars : "");
}

static void add_grid(ct_text *out, const grid *g, const form *f) {
    const entry *e = g->entries;
    for (int line = 0; line < g->n_lines; line++) {
        add_plain(out, f->begin);
        for (int column = 0; column < g->n_columns; column++, e++) {
            int kind = column < g->n_heads ? 0 : line == 0 ? 1 : 2;
            if (column > 0) add_plain(out, f->between);
            bool needs_head = kind == 0 && line > 0 && strchr("0123456789.", e->text[0]) != NULL;
            if (f->is_labelled && kind == 2)
                ct_markup_add(out, "<td data-th='%s'>", g->entries[column].text);
            else if (f->is_labelled && needs_head)
                ct_markup_add(out, "<th class='word' data-th='%s'>", g->entries[column].text);
            else
                add_plain(out, f->open[kind]);
            if (f->is_padded)
                add_padded(out, g, e, column);
            else
                add_entry(out, e, f);
            add_plain(out, f->close[kind]);
        }
        add_plain(out, f->end);
        if (line == 0 && f->rule[0] != NULL) {
            add_plain(out, f->begin);
            for (int k = 0; k < g->n_columns; k++) add_plain(out, f->rule[k >= g->n_heads]);
            add_plain(out, f->end);
        }
        if (line == 0) add_plain(out, f->after_head);
    }
}

/* Rows, or runs where rows would be too wide to be read. */
static ct_status fill(ct_text *out, const ct_study *study, grid *g) {
    CT_TRY(fill_grid(study, false, g));
    int width = 0;
    for (int k = 0; k < g->n_columns; k++) width += width_of(out, g, k) + 2;
    return width > WIDEST && study->n_columns > 1 ? fill_grid(study, true, g) : CT_OK;
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

static ct_status add_table(ct_text *out, const ct_study *study, const form *f) {
    CT_SCOPED(grid) g = {.says_methods = f == &html && study->is_comparison};
    CT_SCOPED(ct_text) notes = {0};
    CT_TRY(fill(out, study, &g));
    if (f == &latex) open_latex(out, study, &g);
    add_plain(out, f->opening);
    if (f->title != NULL) ct_text_add(out, "%s%s\n\n", f->title, study->title);
    add_grid(out, &g, f);
    add_plain(out, f->closing);
    if (f->note[0] != NULL) ct_study_add_notes(&notes, study, g.has_deviation, g.has_paper);
    CT_TRY(ct_text_status(&notes));
    ct_lines lines = {.rest = notes.chars, .end = notes.chars + notes.n};
    for (char *line; (line = ct_lines_next(&lines)) != NULL;) {
        add_plain(out, f->note[0]);
        f->escape_note(out, line);
        add_plain(out, f->note[1]);
    }
    return ct_text_status(out);
}

ct_status ct_study_add_html(const ct_study *study, ct_text *out) {
    return add_table(out, study, &html);
}

ct_status ct_study_print(const ct_study *study, FILE *out) {
    CT_SCOPED(ct_text) text = {0};
    CT_TRY(add_table(&text, study, &plain));
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

/* table.<ending> or compare.<ending>; without a form, CSV. */
static ct_status write_table(const ct_study *study, const char *ending, const form *f) {
    CT_SCOPED(ct_text) text = {0};
    char name[32];
    if (f != NULL)
        CT_TRY(add_table(&text, study, f));
    else if (study->is_comparison)
        add_comparison_csv(&text, study);
    else
        add_csv(&text, study);
    snprintf(name, sizeof name, "%s.%s", study->is_comparison ? "compare" : "table", ending);
    return ct_study_write_file(study, name, &text);
}

ct_status ct_study_write(ct_study *study) {
    sort_rows(study);
    CT_TRY(ct_dir_create(study->out));
    CT_TRY(write_table(study, "md", &markdown));
    CT_TRY(write_table(study, "tex", &latex));
    CT_TRY(write_table(study, "csv", NULL));
    return ct_study_write_figures(study);
}
