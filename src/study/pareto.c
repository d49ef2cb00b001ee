/* Accuracy against what it costs, of every column of a study: bytes sent, and arithmetic. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/charts.h"
#include "report/method.h"
#include "report/svg.h"
#include "study/study_internal.h"

typedef struct cost {
    const char *name, *axis;
} cost;
static const cost costs[] = {{"mib", "MiB sent by an agent"}, {"compute", "TMAC of an agent"}};

static double cost_of(const ct_cell *cell, int which) {
    if (which == 0) return ct_metric_value(&ct_metrics[CT_METRIC_BYTES], cell->summary);
    return ct_metric_value(&ct_metrics[CT_METRIC_GMACS], cell->summary) *
           ct_json_number(cell->summary, "iteration") / 1000;
}

/* The points of a drawing: a curve for each, behind the one through those that nothing beats. */
typedef struct points {
    ct_curve *curves;
    char (*labels)[400];
    double *x, *y;             /* [n] */
    double *front_x, *front_y; /* [n_front] */
    int n, n_front;
} points;

static void points_free(points *p) {
    ct_free(p->curves);
    ct_free(p->labels);
    ct_free(p->x);
    ct_free(p->y);
    ct_free(p->front_x);
    ct_free(p->front_y);
}

static ct_status make_points(int n, points *p) {
    size_t most = (size_t)n + 1;
    CT_TRY(ct_make(&p->curves, most, "a figure"));
    CT_TRY(ct_make(&p->labels, most, "a figure"));
    CT_TRY(ct_make(&p->x, most, "a figure"));
    CT_TRY(ct_make(&p->y, most, "a figure"));
    CT_TRY(ct_make(&p->front_x, most, "a figure"));
    return ct_make(&p->front_y, most, "a figure");
}

static void add_point(const ct_study *study, const ct_cell *cell, int which, points *p) {
    int style = ct_study_row_style(study, cell->row), variant = 0;
    double x = cost_of(cell, which), y = ct_metric_value(study->shown[0], cell->summary);
    if (!isfinite(x) || !isfinite(y)) return;
    for (int row = 0; row < cell->row; row++) variant += ct_study_row_style(study, row) == style;
    p->x[p->n] = x;
    p->y[p->n] = y;
    p->curves[p->n + 1] = (ct_curve){.label = p->labels[p->n],
                                     .group = p->n,
                                     .style = ct_style_variant(style, variant),
                                     .mean = {.n = 1, .x = &p->x[p->n], .y = &p->y[p->n]}};
    ct_study_say_row(study, cell->row, 0, study->n_heads, p->labels[p->n], sizeof *p->labels);
    p->n++;
}

/* Nothing gives more for as little, nor as much for less. */
static bool is_front(const points *p, int k) {
    for (int j = 0; j < p->n; j++) {
        bool is_no_worse = p->x[j] <= p->x[k] && p->y[j] >= p->y[k];
        if (is_no_worse && (p->x[j] < p->x[k] || p->y[j] > p->y[k])) return false;
    }
    return true;
}

static void find_front(points *p) {
    for (int k = 0; k < p->n; k++) {
        int at = p->n_front;
        if (!is_front(p, k)) continue;
        for (; at > 0 && p->front_x[at - 1] > p->x[k]; at--) {
            p->front_x[at] = p->front_x[at - 1];
            p->front_y[at] = p->front_y[at - 1];
        }
        p->front_x[at] = p->x[k];
        p->front_y[at] = p->y[k];
        p->n_front++;
    }
    p->curves[0] = (ct_curve){.label = "front: nothing is better for less",
                              .group = p->n,
                              .style = CT_COLOUR_OTHER,
                              .mean = {.n = p->n_front, .x = p->front_x, .y = p->front_y}};
}

static ct_status draw(const ct_study *study, int column, int which) {
    CT_SCOPED(points) p = {0};
    CT_SCOPED(ct_text) svg = {0}, note = {0};
    char name[64], title[CT_CONFIG_TEXT + CT_STUDY_LABEL + 4];
    CT_TRY(make_points(study->n_rows, &p));
    for (int row = 0; row < study->n_rows; row++) {
        const ct_cell *cell = ct_study_cell_at(study, row, column);
        if (cell != NULL && cell->state == CT_CELL_DONE) add_point(study, cell, which, &p);
    }
    if (p.n < 2) return CT_OK;
    find_front(&p);
    bool has_label = study->columns[column].line > 0;
    snprintf(title, sizeof title, "%s%s%s", study->title, has_label ? ", " : "",
             has_label ? study->columns[column].label : "");
    snprintf(name, sizeof name, "pareto-%s-%d", costs[which].name, column + 1);
    ct_text_add(&note, "%s\n", title);
    ct_study_add_notes(&note, study, false, false);
    CT_TRY(ct_text_status(&note));
    ct_plot plot = {.id = name,
                    .title = title,
                    .x_name = costs[which].axis,
                    .y_name = study->shown[0]->axis,
                    .x_may_be_log = true,
                    .note = note.chars,
                    .curves = p.curves,
                    .n_curves = p.n + 1};
    ct_plot_draw(&plot, &svg);
    return ct_study_write_drawing(study, name, &svg);
}

ct_status ct_study_write_pareto(const ct_study *study) {
    for (int column = 0; column < study->n_columns; column++)
        for (int which = 0; which < 2; which++) CT_TRY(draw(study, column, which));
    return CT_OK;
}
