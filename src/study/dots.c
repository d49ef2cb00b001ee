/* A study's figure of dots: ours beside the paper's where it has published any, else a ranking. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/charts.h"
#include "study/study_internal.h"

/* What a chart is made of. */
typedef struct table {
    ct_dots dots;
    ct_dot_row *rows;
    ct_dot_place *places; /* [n_rows][n_panels] */
    const char **panels;
    bool has_value, has_deviation;
} table;

static void table_free(table *t) {
    ct_free(t->rows);
    ct_free(t->places);
    ct_free(t->panels);
}

static void fill_place(const ct_study *study, const ct_cell *cell, ct_dot_place *out) {
    *out = (ct_dot_place){{NAN, NAN}, {NAN, NAN}, NULL};
    if (cell == NULL) return;
    const ct_metric *metric = study->shown[0];
    out->ours.mean = ct_metric_value(metric, cell->summary);
    out->ours.deviation = ct_metric_deviation(metric, cell->summary);
    out->theirs = (ct_dot){cell->paper.mean, cell->paper.deviation};
    if (cell->state == CT_CELL_DIVERGED) out->word = "diverged";
}

/* Rows stand below the first part of their labels if some of them share it. */
static bool has_groups(const ct_study *study) {
    char before[CT_STUDY_LABEL] = "", part[CT_STUDY_LABEL];
    int n_shared = 0;
    for (int k = 0; k < study->n_rows && study->n_heads > 1; k++) {
        ct_parts_get(study->rows[study->order[k]].label, 0, study->n_heads, part, sizeof part);
        n_shared += k > 0 && strcmp(part, before) == 0;
        memcpy(before, part, sizeof before);
    }
    return n_shared > 0;
}

/* Whether a run is there in a row and column. It is of the column where it is named, not of one
 * that shows it again (<). */
static bool has_run(const ct_study *study, int row, int column) {
    for (int k = 0; k < study->n_cells; k++) {
        const ct_cell *c = &study->cells[k];
        if (ct_cell_has_ended(c) && (row == CT_ANY || c->row == row) &&
            (column == CT_ANY || c->column == column))
            return true;
    }
    return false;
}

/* Of a study of which a part has been run the chart has that part; of one that has not begun, the
 * paper's numbers. */
static bool is_drawn(const ct_study *study, int row, int column) {
    return has_run(study, row, column) || !has_run(study, CT_ANY, CT_ANY);
}

static void add_row(const ct_study *study, int row, bool is_grouped, table *t) {
    ct_dot_row *r = &t->rows[t->dots.n_rows];
    ct_dot_place *place = &t->places[t->dots.n_rows * t->dots.n_panels];
    t->dots.n_rows++;
    if (is_grouped) ct_study_say_row(study, row, 0, 1, r->group, sizeof r->group);
    ct_study_say_row(study, row, is_grouped, study->n_heads, r->label, sizeof r->label);
    r->style = ct_study_row_style(study, row);
    for (int column = 0; column < study->n_columns; column++)
        if (is_drawn(study, CT_ANY, column))
            fill_place(study, ct_study_cell_at(study, row, column), place++);
}

/* Ranked, unless there are published numbers: a table is compared with theirs line by line. */
static ct_status make_table(const ct_study *study, table *t) {
    size_t n_rows = (size_t)study->n_rows, n_columns = (size_t)study->n_columns;
    bool has_theirs = false, is_grouped = has_groups(study);
    CT_TRY(ct_make(&t->rows, n_rows, "a figure"));
    CT_TRY(ct_make(&t->places, n_rows * n_columns, "a figure"));
    CT_TRY(ct_make(&t->panels, n_columns, "a figure"));
    for (int column = 0; column < study->n_columns; column++) {
        const ct_study_line *c = &study->columns[column];
        if (is_drawn(study, CT_ANY, column))
            t->panels[t->dots.n_panels++] = c->line > 0 ? c->label : "";
    }
    for (int k = 0; k < study->n_rows; k++)
        if (is_drawn(study, study->order[k], CT_ANY))
            add_row(study, study->order[k], is_grouped, t);
    for (int k = 0; k < t->dots.n_rows * t->dots.n_panels; k++) {
        const ct_dot_place *p = &t->places[k];
        has_theirs = has_theirs || !isnan(p->theirs.mean);
        t->has_value = t->has_value || !isnan(p->ours.mean) || !isnan(p->theirs.mean);
        t->has_deviation = t->has_deviation || !isnan(p->ours.deviation);
    }
    t->dots.id = "figure";
    t->dots.title = study->title;
    t->dots.axis_name = study->shown[0]->axis;
    t->dots.ours = has_theirs && t->has_deviation ? "ours, \xC2\xB1 deviation over seeds"
                   : has_theirs                   ? "ours"
                   : t->has_deviation             ? "mean \xC2\xB1 deviation over seeds"
                                                  : "one seed";
    t->dots.theirs = "the paper";
    t->dots.note = "";
    t->dots.panels = t->panels;
    t->dots.rows = t->rows;
    t->dots.places = t->places;
    t->dots.marks_best = ct_metric_rises(study->shown[0]);
    t->dots.is_ranked = t->dots.marks_best && !has_theirs;
    return CT_OK;
}

/* Nothing is written where no place has a number. */
ct_status ct_study_write_dots(const ct_study *study) {
    CT_SCOPED(ct_text) svg = {0};
    CT_SCOPED(ct_text) note = {0};
    CT_SCOPED(table) t = {0};
    CT_TRY(make_table(study, &t));
    if (!t.has_value) return CT_OK;
    ct_study_add_notes(&note, study, false, false);
    CT_TRY(ct_text_status(&note));
    if (note.n > 0) t.dots.note = note.chars;
    CT_TRY(ct_dots_draw(&t.dots, &svg));
    return ct_study_write_drawing(study, "figure", &svg);
}

ct_status ct_study_draw_panel(const ct_study *study, int k, char *heading, size_t size,
                              ct_text *out) {
    static const char *const no_heading[] = {""};
    CT_SCOPED(table) t = {0};
    CT_SCOPED_BLOCK(ct_dot_place) places = NULL;
    char id[32];
    CT_TRY(make_table(study, &t));
    if (!t.has_value || k >= t.dots.n_panels) return CT_OK;
    CT_TRY(ct_make(&places, (size_t)t.dots.n_rows, "a figure"));
    for (int row = 0; row < t.dots.n_rows; row++) places[row] = t.places[row * t.dots.n_panels + k];
    snprintf(heading, size, "%s", t.panels[k]);
    snprintf(id, sizeof id, "figure-%d", k + 1);
    t.dots.id = id;
    t.dots.panels = no_heading;
    t.dots.places = places;
    t.dots.n_panels = 1;
    CT_TRY(ct_dots_draw(&t.dots, out));
    return ct_text_status(out);
}
