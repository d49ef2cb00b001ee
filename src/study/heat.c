/* A sweep over two options, or more, as heat maps: the last two options are rows and columns, each
 * combination of the others has a panel. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/charts.h"
#include "study/study_internal.h"

#define MAX_VALUES 64 /* of an option that is swept over */

/* The values of an option, or the combinations of several: rising numbers, else as given. */
typedef struct values {
    char text[MAX_VALUES][CT_STUDY_LABEL];
    const char *shown[MAX_VALUES];
    int n;
} values;

static int find_value(const values *v, const char *text) {
    for (int k = 0; k < v->n; k++)
        if (strcmp(v->text[k], text) == 0) return k;
    return -1;
}

/* Numbers come in their order, words where they were named. */
static void add_value(values *v, const char *text) {
    double own, other;
    int at = v->n;
    if (v->n == MAX_VALUES || find_value(v, text) >= 0) return;
    bool is_number = ct_parse_double(text, &own);
    for (; at > 0 && is_number && ct_parse_double(v->text[at - 1], &other) && other > own; at--)
        memcpy(v->text[at], v->text[at - 1], sizeof v->text[at]);
    snprintf(v->text[at], sizeof v->text[at], "%s", text);
    v->n++;
}

typedef struct map {
    values panels, rows, columns;
    ct_heat_cell *cells; /* [panels][rows][columns], lent */
} map;

/* The row's values: of the panel's options ("": none), of the last but one, of the last. */
static void take_apart(const ct_study *study, int row, char *panel, char *y, char *x) {
    int n = study->n_heads;
    ct_study_say_row(study, row, 0, n - 2, panel, CT_STUDY_LABEL);
    ct_study_say_part(study, row, n - 2, y, CT_STUDY_LABEL);
    ct_study_say_part(study, row, n - 1, x, CT_STUDY_LABEL);
}

static void list_values(const ct_study *study, map *m) {
    char panel[CT_STUDY_LABEL], y[CT_STUDY_LABEL], x[CT_STUDY_LABEL];
    for (int row = 0; row < study->n_rows; row++) {
        take_apart(study, row, panel, y, x);
        add_value(&m->panels, panel);
        add_value(&m->rows, y);
        add_value(&m->columns, x);
    }
    for (int k = 0; k < MAX_VALUES; k++) {
        m->panels.shown[k] = m->panels.text[k];
        m->rows.shown[k] = m->rows.text[k];
        m->columns.shown[k] = m->columns.text[k];
    }
}

static void fill_cell(const ct_study *study, int row, map *m, bool *has_value) {
    char panel[CT_STUDY_LABEL], y[CT_STUDY_LABEL], x[CT_STUDY_LABEL];
    const ct_cell *cell = ct_study_cell_of(study, row, 0);
    take_apart(study, row, panel, y, x);
    int p = find_value(&m->panels, panel), r = find_value(&m->rows, y);
    int c = find_value(&m->columns, x);
    if (cell == NULL || p < 0 || r < 0 || c < 0) return;
    ct_heat_cell *out = &m->cells[(p * m->rows.n + r) * m->columns.n + c];
    out->value = ct_metric_value(study->shown[0], cell->summary);
    out->deviation = ct_metric_deviation(study->shown[0], cell->summary);
    if (cell->state == CT_CELL_DIVERGED) out->word = "diverged";
    *has_value = *has_value || isfinite(out->value);
}

ct_status ct_study_write_heat(const ct_study *study) {
    CT_SCOPED_BLOCK(map) m = NULL; /* too large for the stack */
    CT_SCOPED(ct_text) svg = {0};
    CT_SCOPED(ct_text) note = {0};
    CT_SCOPED_BLOCK(ct_heat_cell) cells = NULL;
    bool has_value = false;
    CT_TRY(ct_make(&m, 1, "a figure"));
    list_values(study, m);
    size_t n = (size_t)m->panels.n * (size_t)m->rows.n * (size_t)m->columns.n;
    CT_TRY(ct_make(&cells, n, "a figure"));
    m->cells = cells;
    for (size_t k = 0; k < n; k++) cells[k] = (ct_heat_cell){NAN, NAN, NULL};
    for (int row = 0; row < study->n_rows; row++) fill_cell(study, row, m, &has_value);
    if (!has_value) return CT_OK;
    ct_study_add_notes(&note, study, false, false);
    CT_TRY(ct_text_status(&note));
    ct_heat heat = {.id = "figure",
                    .title = study->title,
                    .row_name = study->heads[study->n_heads - 2],
                    .column_name = study->heads[study->n_heads - 1],
                    .value_name = study->shown[0]->axis,
                    .note = note.n > 0 ? note.chars : "",
                    .panels = m->panels.shown,
                    .rows = m->rows.shown,
                    .columns = m->columns.shown,
                    .cells = cells,
                    .n_panels = m->panels.n,
                    .n_rows = m->rows.n,
                    .n_columns = m->columns.n,
                    .digits = study->shown[0]->digits,
                    .is_low_best = !ct_metric_rises(study->shown[0])};
    CT_TRY(ct_heat_draw(&heat, &svg));
    return ct_study_write_drawing(study, "figure", &svg);
}
