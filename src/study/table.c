/* A study's table, filled with what is there: as text, Markdown, LaTeX, HTML and CSV. */
#include <math.h>
#include <string.h>

#include "report/markup.h"
#include "study/study_internal.h"
#include "util/file.h"
#include "util/memory.h"

#define WIDEST 110 /* characters that a line of a table may have */

typedef enum entry_kind { TEXT, NUMBER, DIFFERENCE } entry_kind;

typedef struct entry {
    entry_kind kind;
    char text[CT_STUDY_LABEL + 32]; /* TEXT */
    double value, deviation;        /* deviation: NaN = none */
    int digits;
    bool is_marked; /* DIFFERENCE: ours is not what the paper says */
} entry;

typedef struct grid {
    int n_lines, n_columns, n_heads;
    entry *entries; /* [n_lines][n_columns], the first line the headings */
    bool has_marks, has_paper, has_deviation;
} grid;

typedef enum style { PLAIN, MARKDOWN, LATEX, HTML } style;

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

void ct_study_sort(ct_study *study) {
    for (int k = 1; study->sort_by != NULL && k < study->n_rows; k++) {
        int row = study->order[k], at = k;
        for (; at > 0 && sort_value(study, study->order[at - 1]) < sort_value(study, row); at--)
            study->order[at] = study->order[at - 1];
        study->order[at] = row;
    }
}

/* ---- filling ---- */

static const ct_cell *cell_at(const ct_study *study, int row, int column) {
    int at = study->at[row * study->n_columns + column];
    return at >= 0 ? &study->cells[at] : NULL;
}

/* The cell of this place, if it begins here. */
static const ct_cell *cell_from(const ct_study *study, int row, int column) {
    const ct_cell *cell = cell_at(study, row, column);
    return cell != NULL && cell->column == column ? cell : NULL;
}

static bool has_paper(const ct_study *study, int column) {
    for (int row = 0; row < study->n_rows; row++) {
        const ct_cell *cell = cell_from(study, row, column);
        if (cell != NULL && !isnan(cell->paper.mean)) return true;
    }
    return false;
}

static int count_columns(const ct_study *study) {
    int n = study->n_heads;
    for (int k = 0; k < study->n_columns; k++) n += study->n_shown + 2 * has_paper(study, k);
    return n;
}

static void set_text(entry *e, const char *text) {
    snprintf(e->text, sizeof e->text, "%s", text);
}

void ct_label_part(const char *label, int k, int n, char *out, size_t size) {
    out[0] = '\0';
    for (; k > 0 && label != NULL; k--, n--) {
        label = strchr(label, '|');
        if (label != NULL) label++;
    }
    if (label == NULL) return;
    label += strspn(label, " ");
    size_t length = n > 1 ? strcspn(label, "|") : strlen(label);
    while (length > 0 && label[length - 1] == ' ') length--;
    snprintf(out, size, "%.*s", (int)length, label);
}

static void set_part(entry *e, const char *label, int k, int n) {
    ct_label_part(label, k, n, e->text, sizeof e->text);
}

static void fill_headings(const ct_study *study, entry *line) {
    for (int k = 0; k < study->n_heads; k++) set_text(line++, study->heads[k]);
    for (int column = 0; column < study->n_columns; column++) {
        const ct_study_line *c = &study->columns[column];
        for (int m = 0; m < study->n_shown; m++) {
            const char *title = study->shown[m]->title;
            if (study->n_shown == 1 || c->line == 0)
                set_text(line, c->line == 0 ? title : c->label);
            else
                snprintf(line->text, sizeof line->text, "%s: %s", c->label, title);
            line++;
            if (m > 0 || !has_paper(study, column)) continue;
            set_text(line++, "paper");
            set_text(line++, "difference");
        }
    }
}

static void fill_metric(const ct_cell *cell, const ct_metric *metric, entry *e) {
    double value = ct_metric_value(metric, cell->summary);
    if (isnan(value)) {
        set_text(e, cell->state == CT_CELL_DIVERGED ? "diverged" : "-");
        return;
    }
    *e = (entry){NUMBER, "", value, ct_metric_deviation(metric, cell->summary), metric->digits, 0};
}

static void fill_paper(const ct_cell *cell, const ct_metric *metric, entry *paper, entry *off) {
    const ct_estimate *p = &cell->paper;
    double ours = ct_metric_value(metric, cell->summary);
    if (isnan(p->mean)) return;
    *paper = (entry){NUMBER, "", p->mean, p->deviation, p->digits, 0};
    if (isnan(ours)) return;
    *off =
        (entry){DIFFERENCE, "", ours - p->mean, NAN, metric->digits, !ct_estimate_holds(p, ours)};
}

static void fill_row(const ct_study *study, int row, entry *line) {
    for (int k = 0; k < study->n_heads; k++)
        set_part(line++, study->rows[row].label, k, study->n_heads);
    for (int column = 0; column < study->n_columns; column++) {
        const ct_cell *cell = cell_from(study, row, column);
        bool with_paper = has_paper(study, column);
        for (int m = 0; m < study->n_shown; m++) {
            entry *e = line++;
            if (cell != NULL) fill_metric(cell, study->shown[m], e);
            if (m > 0 || !with_paper) continue;
            if (cell != NULL) fill_paper(cell, study->shown[0], line, line + 1);
            line += 2;
        }
    }
}

static ct_status take_entries(grid *g) {
    g->entries = ct_new(entry, (size_t)g->n_lines * (size_t)g->n_columns);
    return g->entries != NULL ? CT_OK : ct_fail(CT_NOMEM, "no memory for a table");
}

/* A line for every row. */
static ct_status fill_wide(const ct_study *study, grid *g) {
    *g = (grid){
        .n_lines = study->n_rows + 1, .n_columns = count_columns(study), .n_heads = study->n_heads};
    CT_TRY(take_entries(g));
    fill_headings(study, g->entries);
    for (int k = 0; k < study->n_rows; k++)
        fill_row(study, study->order[k], g->entries + (size_t)(k + 1) * (size_t)g->n_columns);
    return CT_OK;
}

static void fill_long_headings(const ct_study *study, bool with_paper, entry *line) {
    for (int k = 0; k < study->n_heads; k++) set_text(line++, study->heads[k]);
    set_text(line++, "run");
    for (int m = 0; m < study->n_shown; m++) {
        set_text(line++, study->shown[m]->title);
        if (m > 0 || !with_paper) continue;
        set_text(line++, "paper");
        set_text(line++, "difference");
    }
}

static void fill_long_line(const ct_study *study, const ct_cell *cell, bool with_paper,
                           entry *line) {
    const char *label = study->rows[cell->row].label;
    for (int k = 0; k < study->n_heads; k++) set_part(line++, label, k, study->n_heads);
    set_text(line++, study->columns[cell->column].label);
    for (int m = 0; m < study->n_shown; m++) {
        fill_metric(cell, study->shown[m], line++);
        if (m > 0 || !with_paper) continue;
        fill_paper(cell, study->shown[0], line, line + 1);
        line += 2;
    }
}

/* A line for every run. */
static ct_status fill_long(const ct_study *study, grid *g) {
    bool with_paper = false;
    for (int k = 0; k < study->n_columns; k++) with_paper = with_paper || has_paper(study, k);
    *g = (grid){.n_lines = study->n_cells + 1,
                .n_columns = study->n_heads + 1 + study->n_shown + 2 * with_paper,
                .n_heads = study->n_heads + 1};
    CT_TRY(take_entries(g));
    fill_long_headings(study, with_paper, g->entries);
    entry *line = g->entries;
    for (int k = 0; k < study->n_rows; k++) {
        for (int column = 0; column < study->n_columns; column++) {
            const ct_cell *cell = cell_from(study, study->order[k], column);
            if (cell == NULL) continue;
            line += g->n_columns;
            fill_long_line(study, cell, with_paper, line);
        }
    }
    return CT_OK;
}

/* ---- one entry ---- */

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

static void add_markdown(ct_text *out, const char *text) {
    for (; *text != '\0'; text++) ct_text_add(out, *text == '|' ? "\\%c" : "%c", *text);
}

static void add_number(ct_text *out, const entry *e, style s) {
    static const char *const signs[] = {"+-", "\xc2\xb1", "\\pm", "\xc2\xb1"};
    const char *dollar = s == LATEX ? "$" : "";
    ct_text_add(out, "%s%.*f", dollar, e->digits, e->value);
    if (!isnan(e->deviation)) ct_text_add(out, " %s %.*f", signs[s], e->digits, e->deviation);
    ct_text_add(out, "%s", dollar);
}

static void add_difference(ct_text *out, const entry *e, style s) {
    static const char *const marks[] = {" *", " \\*", "^{*}", " *"};
    const char *dollar = s == LATEX ? "$" : "";
    double value = fabs(e->value) < 0.5 * pow(10, -e->digits) ? 0 : e->value; /* no -0.00 */
    ct_text_add(out, "%s%+.*f%s%s", dollar, e->digits, value, e->is_marked ? marks[s] : "", dollar);
}

static void add_entry(ct_text *out, const entry *e, style s) {
    switch (e->kind) {
    case NUMBER: add_number(out, e, s); return;
    case DIFFERENCE: add_difference(out, e, s); return;
    default: break;
    }
    if (s == LATEX)
        add_latex(out, e->text);
    else if (s == MARKDOWN)
        add_markdown(out, e->text);
    else if (s == HTML)
        ct_markup_text(out, e->text);
    else
        ct_text_add(out, "%s", e->text);
}

/* ---- whole tables ---- */

static int width_of(const grid *g, int column) {
    size_t widest = 1;
    for (int line = 0; line < g->n_lines; line++) {
        ct_text text = {0};
        add_entry(&text, &g->entries[line * g->n_columns + column], PLAIN);
        if (text.n > widest) widest = text.n;
        ct_text_free(&text);
    }
    return (int)widest;
}

/* Rows, or runs where rows would be too wide to be read. */
static ct_status fill(const ct_study *study, grid *g) {
    CT_TRY(fill_wide(study, g));
    int width = 0;
    for (int k = 0; k < g->n_columns; k++) width += width_of(g, k) + 2;
    if (width > WIDEST && study->n_columns > 1) {
        ct_free(g->entries);
        CT_TRY(fill_long(study, g));
    }
    size_t n = (size_t)g->n_lines * (size_t)g->n_columns;
    for (size_t k = 0; k < n; k++) {
        g->has_marks = g->has_marks || g->entries[k].is_marked;
        g->has_deviation =
            g->has_deviation || (g->entries[k].kind == NUMBER && !isnan(g->entries[k].deviation));
    }
    for (int k = 0; k < study->n_columns; k++) g->has_paper = g->has_paper || has_paper(study, k);
    return CT_OK;
}

static void add_plain(ct_text *out, const grid *g) {
    for (int line = 0; line < g->n_lines; line++) {
        for (int column = 0; column < g->n_columns; column++) {
            ct_text text = {0};
            int width = width_of(g, column);
            add_entry(&text, &g->entries[line * g->n_columns + column], PLAIN);
            bool is_last = column + 1 == g->n_columns;
            ct_text_add(out, "%*s%s", column < g->n_heads ? -width : width,
                        text.n > 0 ? text.chars : "", is_last ? "\n" : "  ");
            ct_text_free(&text);
        }
    }
}

static void add_markdown_table(ct_text *out, const grid *g) {
    for (int line = 0; line < g->n_lines; line++) {
        for (int column = 0; column < g->n_columns; column++) {
            ct_text_add(out, column == 0 ? "| " : " ");
            add_entry(out, &g->entries[line * g->n_columns + column], MARKDOWN);
            ct_text_add(out, " |");
        }
        ct_text_add(out, "\n");
        for (int column = 0; column < g->n_columns && line == 0; column++)
            ct_text_add(out, "%s%s", column == 0 ? "|" : "",
                        column < g->n_heads ? "---|" : "---:|");
        if (line == 0) ct_text_add(out, "\n");
    }
}

static void add_latex_table(ct_text *out, const ct_study *study, const grid *g) {
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
    for (int line = 0; line < g->n_lines; line++) {
        for (int column = 0; column < g->n_columns; column++) {
            ct_text_add(out, column == 0 ? "" : " & ");
            add_entry(out, &g->entries[line * g->n_columns + column], LATEX);
        }
        ct_text_add(out, " \\\\\n%s", line == 0 || line + 1 == g->n_lines ? "\\hline\n" : "");
    }
    ct_text_add(out, "\\end{tabular}\n\\end{center}\n\\end{table}\n");
}

static void add_html_table(ct_text *out, const grid *g) {
    ct_text_add(out, "<div class=\"wide-table\"><table id=\"study-table\">\n<thead>\n");
    for (int line = 0; line < g->n_lines; line++) {
        ct_text_add(out, "<tr>");
        for (int column = 0; column < g->n_columns; column++) {
            bool is_head = column < g->n_heads;
            const char *tag = line == 0 || is_head ? "th" : "td";
            ct_text_add(out, "<%s%s>", tag, is_head ? " class=\"word\"" : "");
            add_entry(out, &g->entries[line * g->n_columns + column], HTML);
            ct_text_add(out, "</%s>", tag);
        }
        ct_text_add(out, "</tr>\n%s", line == 0 ? "</thead>\n<tbody>\n" : "");
    }
    ct_text_add(out, "</tbody></table></div>\n");
}

void ct_study_add_state(ct_text *out, const ct_study *study, const char *before) {
    if (study->said[0] != '\0') ct_text_add(out, "%s%s\n", before, study->said);
    if (study->with[0] != '\0') ct_text_add(out, "%swith%s\n", before, study->with);
}

void ct_study_add_remarks(ct_text *out, const ct_study *study, const char *before) {
    int n_missing = 0;
    for (int k = 0; k < study->n_cells; k++) {
        ct_cell_state state = study->cells[k].state;
        n_missing += state == CT_CELL_MISSING || state == CT_CELL_BEGUN;
    }
    if (n_missing > 0)
        ct_text_add(out, "%s%d of %d runs are not there yet\n", before, n_missing, study->n_cells);
    if (study->note[0] != '\0') ct_text_add(out, "%s%s\n", before, study->note);
}

/* What a reader of the table must know, a sentence a line. */
static void add_notes(ct_text *out, const ct_study *study, const grid *g, const char *before) {
    ct_study_add_state(out, study, before);
    if (g->has_deviation)
        ct_text_add(out, "%s+- is the sample deviation (n - 1) over the seeds\n", before);
    if (g->has_paper)
        ct_text_add(out,
                    "%sdifference = ours - paper's; * marks what lies outside the paper's mean "
                    "+- 2 deviations (or its digits, where it gives none)\n",
                    before);
    ct_study_add_remarks(out, study, before);
}

/* The same as paragraphs. */
static void add_html_notes(ct_text *out, const ct_study *study, const grid *g) {
    ct_text notes = {0};
    add_notes(&notes, study, g, "");
    for (char *at = notes.chars, *end; at != NULL && (end = strchr(at, '\n')) != NULL;
         at = end + 1) {
        *end = '\0';
        ct_text_add(out, "<p class=\"note\">");
        ct_markup_text(out, at);
        ct_text_add(out, "</p>\n");
    }
    out->failed = out->failed || notes.failed;
    ct_text_free(&notes);
}

/* ---- CSV: a line for every cell and metric ---- */

void ct_csv_add(ct_text *out, const char *field) {
    if (strpbrk(field, ",\"\n") == NULL) {
        ct_text_add(out, "%s", field);
        return;
    }
    ct_text_add(out, "\"");
    for (; *field != '\0'; field++) ct_text_add(out, *field == '"' ? "\"\"" : "%c", *field);
    ct_text_add(out, "\"");
}

static void add_csv_number(ct_text *out, double value) {
    if (isnan(value))
        ct_text_add(out, ",");
    else
        ct_text_add(out, ",%.9g", value);
}

static void add_csv_metric(ct_text *out, const ct_study *study, const ct_cell *cell, int m) {
    static const char *const states[] = {"missing", "begun", "done", "diverged"};
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
    ct_text_add(out, ",%lld,%s,%s\n", (long long)cell->epochs, states[cell->state], cell->name);
}

static ct_status write_csv(const ct_study *study) {
    ct_text out = {0};
    ct_text_add(&out, "row,column,metric,ours,ours_std,paper,paper_std,difference,outside,epochs,"
                      "state,run\n");
    for (int k = 0; k < study->n_rows; k++) {
        for (int column = 0; column < study->n_columns; column++) {
            const ct_cell *cell = cell_from(study, study->order[k], column);
            for (int m = 0; cell != NULL && m < study->n_shown; m++)
                add_csv_metric(&out, study, cell, m);
        }
    }
    ct_status status = ct_study_write_file(study, "table.csv", &out);
    ct_text_free(&out);
    return status;
}

/* ---- files ---- */

ct_status ct_study_write_file(const ct_study *study, const char *name, const ct_text *text) {
    CT_TRY(ct_text_status(text));
    char *path = ct_path_join(study->out, name);
    if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a path");
    ct_status status = ct_file_write(path, text->chars, text->n);
    ct_free(path);
    return status;
}

ct_status ct_study_print(const ct_study *study, FILE *out) {
    grid g;
    ct_text text = {0};
    CT_TRY(fill(study, &g));
    ct_text_add(&text, "%s\n\n", study->title);
    add_plain(&text, &g);
    ct_text_add(&text, "\n");
    add_notes(&text, study, &g, "");
    ct_status status = ct_text_status(&text);
    if (status == CT_OK) fputs(text.chars, out);
    ct_text_free(&text);
    ct_free(g.entries);
    return status;
}

ct_status ct_study_add_html(const ct_study *study, ct_text *out) {
    grid g;
    CT_TRY(fill(study, &g));
    add_html_table(out, &g);
    add_html_notes(out, study, &g);
    ct_free(g.entries);
    return ct_text_status(out);
}

ct_status ct_study_write(ct_study *study) {
    grid g;
    ct_text markdown = {0}, latex = {0};
    ct_study_sort(study);
    CT_TRY(ct_dir_create(study->out));
    CT_TRY(fill(study, &g));
    ct_text_add(&markdown, "# %s\n\n", study->title);
    add_markdown_table(&markdown, &g);
    ct_text_add(&markdown, "\n");
    add_notes(&markdown, study, &g, "- ");
    add_latex_table(&latex, study, &g);
    ct_status status = ct_study_write_file(study, "table.md", &markdown);
    if (status == CT_OK) status = ct_study_write_file(study, "table.tex", &latex);
    if (status == CT_OK) status = write_csv(study);
    if (status == CT_OK && study->n_curves > 0) status = ct_study_write_curves(study);
    if (status == CT_OK) status = ct_study_write_figures(study);
    ct_text_free(&markdown);
    ct_text_free(&latex);
    ct_free(g.entries);
    return status;
}
