/* A study's figures: dots beside the paper's, lines over an option, curves over the epochs. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/dots.h"
#include "report/plot.h"
#include "report/raster.h"
#include "study/study_internal.h"
#include "util/file.h"
#include "util/memory.h"

#define PNG_SCALE 2.0

/* ---- what is asked for ---- */

static ct_status parse_lines(const char *rest, ct_study_figure *out) {
    if (strncmp(rest, "x=", 2) != 0)
        return ct_fail(CT_INVAL, "figure = lines needs an option to draw over: lines x=agents");
    rest += 2;
    size_t n = strcspn(rest, " \t");
    snprintf(out->x, sizeof out->x, "%.*s", (int)n, rest);
    const char *name = n < sizeof out->x ? ct_config_name(out->x) : NULL;
    if (name == NULL) return ct_fail(CT_INVAL, "figure: unknown option '%.*s'", (int)n, rest);
    snprintf(out->x, sizeof out->x, "%s", name);
    rest += n + strspn(rest + n, " \t");
    bool has_label = strncmp(rest, "label=", 6) == 0;
    if (!has_label && rest[0] != '\0')
        return ct_fail(CT_INVAL, "figure: '%s' is not label=WORDS", rest);
    snprintf(out->label, sizeof out->label, "%s", has_label ? rest + 6 : name);
    return CT_OK;
}

ct_status ct_figure_parse(const char *text, ct_study_figure *out) {
    static const char *const names[] = {"none", "dots", "lines", "curves"};
    size_t n = strcspn(text, " \t");
    const char *rest = text + n + strspn(text + n, " \t");
    for (int k = 0; k < 4; k++) {
        if (strlen(names[k]) != n || strncmp(names[k], text, n) != 0) continue;
        out->kind = (ct_figure_kind)k;
        if (out->kind == CT_FIGURE_LINES) return parse_lines(rest, out);
        if (rest[0] != '\0') return ct_fail(CT_INVAL, "figure = %s takes no '%s'", names[k], rest);
        return CT_OK;
    }
    return ct_fail(CT_INVAL, "figure: '%.*s' is none of dots, lines x=OPTION, curves, none", (int)n,
                   text);
}

/* A number, or the one at the end of a word: resnet20 is 20. */
static bool number_in(const ct_json *value, double *out) {
    if (value == NULL) return false;
    if (value->kind == CT_JSON_NUMBER) {
        *out = value->number;
        return true;
    }
    if (value->kind != CT_JSON_STRING) return false;
    const char *at = value->string + strlen(value->string);
    while (at > value->string && isdigit((unsigned char)at[-1])) at--;
    *out = strtod(at, NULL);
    return *at != '\0';
}

/* The value that a cell's run has of the option. */
static ct_status find_x(const ct_study *study, ct_cell *cell) {
    ct_json *options = NULL;
    CT_TRY(ct_config_to_json(&cell->resolved, &options));
    bool is_there = number_in(ct_json_get(options, study->figure.x), &cell->x);
    ct_json_free(&options);
    if (is_there) return CT_OK;
    return ct_fail(CT_IO, "figure: %s has no number as its @%s", cell->name, study->figure.x);
}

/* Two runs of a row would lie one upon the other. */
static ct_status place_cell(const ct_study *study, ct_cell *cell) {
    CT_TRY(find_x(study, cell));
    for (const ct_cell *c = study->cells; c < cell; c++)
        if (c->row == cell->row && c->x == cell->x)
            return ct_fail(CT_IO, "figure: two runs of row '%s' have @%s %g",
                           study->rows[cell->row].label, study->figure.x, cell->x);
    return CT_OK;
}

ct_status ct_figure_place_cells(ct_study *study) {
    for (int k = 0; k < study->n_cells && study->figure.kind == CT_FIGURE_LINES; k++)
        CT_TRY_AT(study, study->figure.line, place_cell(study, &study->cells[k]));
    return CT_OK;
}

/* ---- files ---- */

/* --out/<name>.svg and, where this build can, .png */
static ct_status write_drawing(const ct_study *study, const char *name, const ct_text *svg) {
    char file[CT_STUDY_LABEL];
    snprintf(file, sizeof file, "%s.svg", name);
    CT_TRY(ct_study_write_file(study, file, svg));
    if (CT_CATCH(NULL, ct_raster_check()) != CT_OK) return CT_OK;
    snprintf(file, sizeof file, "%s.png", name);
    return ct_raster_write(ct_path_in(study->out, file).text, svg, PNG_SCALE);
}

/* "16 | CCL" as it is said: numbers with their heading, "agents 16, CCL". Parts from `first` on. */
static void say_label(const ct_study *study, int row, int first, int end, char *out, size_t size) {
    size_t n = 0;
    out[0] = '\0';
    for (int k = first; k < end && n < size; k++) {
        char part[CT_STUDY_LABEL];
        ct_parts_get(study->rows[row].label, k, study->n_heads, part, sizeof part);
        if (part[0] == '\0') continue;
        const char *head = isdigit((unsigned char)part[0]) ? study->heads[k] : "";
        n += (size_t)snprintf(out + n, size - n, "%s%s%s%s", n > 0 ? ", " : "", head,
                              head[0] != '\0' ? " " : "", part);
    }
}

/* ---- dots ---- */

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

#define ANY (-1)

/* Whether a run is there in a row and column. It is of the column where it is named, not of one
 * that shows it again (<). */
static bool has_run(const ct_study *study, int row, int column) {
    for (int k = 0; k < study->n_cells; k++) {
        const ct_cell *c = &study->cells[k];
        bool is_there = c->state == CT_CELL_DONE || c->state == CT_CELL_DIVERGED;
        if (is_there && (row == ANY || c->row == row) && (column == ANY || c->column == column))
            return true;
    }
    return false;
}

/* What a chart of dots is made of. Of a study of which a part has been run it has that part; of one
 * that has not begun, the paper's numbers. */
typedef struct dot_table {
    ct_dot_row *rows;
    ct_dot_place *places; /* [n_rows][n_panels] */
    const char **panels;
    int *columns; /* [n_panels] of the study */
    int n_rows, n_panels;
} dot_table;

static void choose_panels(const ct_study *study, bool is_whole, dot_table *t) {
    for (int column = 0; column < study->n_columns; column++) {
        if (!is_whole && !has_run(study, ANY, column)) continue;
        const ct_study_line *c = &study->columns[column];
        t->panels[t->n_panels] = c->line > 0 ? c->label : "";
        t->columns[t->n_panels++] = column;
    }
}

static void fill_dots(const ct_study *study, dot_table *t) {
    bool is_grouped = has_groups(study), is_whole = !has_run(study, ANY, ANY);
    ct_dot_place *place = t->places;
    choose_panels(study, is_whole, t);
    for (int k = 0; k < study->n_rows; k++) {
        int row = study->order[k];
        if (!is_whole && !has_run(study, row, ANY)) continue;
        ct_dot_row *r = &t->rows[t->n_rows++];
        if (is_grouped) say_label(study, row, 0, 1, r->group, sizeof r->group);
        say_label(study, row, is_grouped, study->n_heads, r->label, sizeof r->label);
        for (int panel = 0; panel < t->n_panels; panel++)
            fill_place(study, ct_study_cell_at(study, row, t->columns[panel]), place++);
    }
}

static bool has_value(const ct_dot_place *places, int n, bool *has_deviation) {
    bool has = false;
    for (int k = 0; k < n; k++) {
        has = has || !isnan(places[k].ours.mean) || !isnan(places[k].theirs.mean);
        *has_deviation = *has_deviation || !isnan(places[k].ours.deviation);
    }
    return has;
}

static ct_status draw_dots(const ct_study *study, const dot_table *t) {
    ct_text svg = {0}, note = {0};
    bool has_deviation = false;
    if (!has_value(t->places, t->n_rows * t->n_panels, &has_deviation)) return CT_OK;
    ct_study_add_notes(&note, study, "", false, false);
    ct_dots dots = {.id = "figure",
                    .title = study->title,
                    .axis_name = study->shown[0]->axis,
                    .ours = has_deviation ? "ours, \xC2\xB1 deviation over seeds" : "ours",
                    .theirs = "the paper",
                    .note = note.n > 0 ? note.chars : "",
                    .panels = t->panels,
                    .rows = t->rows,
                    .places = t->places,
                    .n_panels = t->n_panels,
                    .n_rows = t->n_rows};
    ct_dots_draw(&dots, &svg);
    ct_status status = note.failed ? ct_text_status(&note) : write_drawing(study, "figure", &svg);
    ct_text_free(&svg);
    ct_text_free(&note);
    return status;
}

static ct_status write_dots(const ct_study *study) {
    size_t n_rows = (size_t)study->n_rows, n_columns = (size_t)study->n_columns;
    dot_table t = {.rows = ct_new(ct_dot_row, n_rows),
                   .places = ct_new(ct_dot_place, n_rows * n_columns),
                   .panels = ct_new(const char *, n_columns),
                   .columns = ct_new(int, n_columns)};
    bool has_memory = t.rows != NULL && t.places != NULL && t.panels != NULL && t.columns != NULL;
    ct_status status = has_memory ? CT_OK : ct_no_memory("a figure");
    if (status == CT_OK) {
        fill_dots(study, &t);
        status = draw_dots(study, &t);
    }
    ct_free(t.rows);
    ct_free(t.places);
    ct_free(t.panels);
    ct_free(t.columns);
    return status;
}

/* ---- series: lines and curves ---- */

typedef struct series {
    ct_curve *curves;
    char (*labels)[400];
    double **points; /* [n] of each curve: x, mean, low, high */
    int n;
} series;

static void free_series(series *s) {
    for (int k = 0; k < s->n; k++) ct_free(s->points[k]);
    ct_free(s->curves);
    ct_free(s->labels);
    ct_free(s->points);
    *s = (series){0};
}

static ct_status make_series(int n, series *out) {
    *out = (series){.curves = ct_new(ct_curve, (size_t)n),
                    .labels = ct_alloc((size_t)n, sizeof *out->labels),
                    .points = ct_new(double *, (size_t)n)};
    if (out->curves != NULL && out->labels != NULL && out->points != NULL) return CT_OK;
    free_series(out);
    return ct_no_memory("a figure");
}

/* The next curve, without points; there is room for n of them. */
static ct_status add_curve(series *s, int style, long n, ct_curve **out) {
    double *points = ct_alloc((size_t)n, 4 * sizeof *points);
    if (points == NULL) return ct_no_memory("a figure");
    s->points[s->n] = points;
    *out = &s->curves[s->n];
    **out = (ct_curve){.label = s->labels[s->n],
                       .style = style,
                       .mean = {.x = points, .y = points + n},
                       .low = points + 2 * n,
                       .high = points + 3 * n};
    s->n++;
    return CT_OK;
}

/* Points come in any order and are put in that of x. */
static void add_point(ct_curve *c, double x, double mean, double deviation) {
    int at = c->mean.n++;
    double off = isnan(deviation) ? 0 : deviation;
    for (; at > 0 && c->mean.x[at - 1] > x; at--) {
        c->mean.x[at] = c->mean.x[at - 1];
        c->mean.y[at] = c->mean.y[at - 1];
        c->low[at] = c->low[at - 1];
        c->high[at] = c->high[at - 1];
    }
    c->mean.x[at] = x;
    c->mean.y[at] = mean;
    c->low[at] = mean - off;
    c->high[at] = mean + off;
}

static bool has_band(const series *s) {
    for (int k = 0; k < s->n; k++)
        for (int i = 0; i < s->curves[k].mean.n; i++)
            if (s->curves[k].high[i] > s->curves[k].low[i]) return true;
    return false;
}

static ct_status draw_series(const ct_study *study, const char *name, const series *s,
                             ct_plot *plot) {
    ct_text svg = {0}, note = {0};
    int n_points = 0;
    for (int k = 0; k < s->n; k++) n_points += s->curves[k].mean.n;
    if (n_points == 0) return CT_OK;
    if (has_band(s)) ct_text_add(&note, "mean over the seeds; bands: \xC2\xB1 sample deviation\n");
    ct_study_add_notes(&note, study, "", false, false);
    plot->id = name;
    plot->title = study->title;
    plot->curves = s->curves;
    plot->n_curves = s->n;
    plot->note = note.chars;
    ct_plot_draw(plot, &svg);
    ct_status status = note.failed ? ct_text_status(&note) : write_drawing(study, name, &svg);
    ct_text_free(&svg);
    ct_text_free(&note);
    return status;
}

static ct_status fill_lines(const ct_study *study, series *s) {
    const ct_metric *metric = study->shown[0];
    for (int k = 0; k < study->n_rows; k++) {
        int row = study->order[k];
        ct_curve *curve;
        say_label(study, row, 0, study->n_heads, s->labels[s->n], sizeof *s->labels);
        CT_TRY(add_curve(s, k, study->n_columns, &curve));
        for (int column = 0; column < study->n_columns; column++) {
            const ct_cell *cell = ct_study_cell_of(study, row, column);
            double mean = cell != NULL ? ct_metric_value(metric, cell->summary) : NAN;
            if (isfinite(mean))
                add_point(curve, cell->x, mean, ct_metric_deviation(metric, cell->summary));
        }
    }
    return CT_OK;
}

static ct_status write_lines(const ct_study *study) {
    series s;
    ct_plot plot = {.x_name = study->figure.label,
                    .y_name = study->shown[0]->axis,
                    .x_unit = CT_UNIT_NUMBER,
                    .y_unit = CT_UNIT_NUMBER,
                    .has_ticks_at_points = true};
    CT_TRY(make_series(study->n_rows, &s));
    ct_status status = fill_lines(study, &s);
    if (status == CT_OK) status = draw_series(study, "figure", &s, &plot);
    free_series(&s);
    return status;
}

/* The k-th of the study's curves, of every finished cell. */
static ct_status fill_curves(const ct_study *study, const ct_cell_curves *all, int k, series *s) {
    for (int i = 0; i < study->n_cells; i++) {
        const ct_cell *cell = &study->cells[i];
        ct_curve *curve;
        if (all[i].n_epochs == 0) continue;
        char *label = s->labels[s->n];
        say_label(study, cell->row, 0, study->n_heads, label, sizeof *s->labels);
        size_t n = strlen(label);
        if (study->columns[cell->column].line > 0)
            snprintf(label + n, sizeof *s->labels - n, ", %s", study->columns[cell->column].label);
        CT_TRY(add_curve(s, i, all[i].n_epochs, &curve));
        for (long e = 0; e < all[i].n_epochs; e++) {
            const ct_epoch_sum *sum = &all[i].sums[e * study->n_curves + k];
            if (sum->n > 0)
                add_point(curve, (double)(e + 1), ct_epoch_mean(sum), ct_epoch_deviation(sum));
        }
    }
    return CT_OK;
}

static ct_status write_curve(const ct_study *study, const ct_cell_curves *all, int k) {
    series s;
    char name[CT_STUDY_LABEL];
    const ct_metric *metric = study->curves[k];
    ct_plot plot = {.x_name = "epoch",
                    .y_name = metric->axis,
                    .x_unit = CT_UNIT_WHOLE,
                    .y_unit = CT_UNIT_NUMBER,
                    .may_be_log = !ct_metric_rises(metric),
                    .is_tight = true,
                    .starts_at_0 = true};
    snprintf(name, sizeof name, "figure-%s", metric->name);
    CT_TRY(make_series(study->n_cells, &s));
    ct_status status = fill_curves(study, all, k, &s);
    if (status == CT_OK) status = draw_series(study, name, &s, &plot);
    free_series(&s);
    return status;
}

static ct_status write_curves(const ct_study *study) {
    ct_cell_curves *all = ct_new(ct_cell_curves, (size_t)study->n_cells);
    ct_status status = all != NULL ? CT_OK : ct_no_memory("a figure");
    for (int k = 0; k < study->n_cells && status == CT_OK; k++)
        if (study->cells[k].state == CT_CELL_DONE)
            status = ct_cell_curves_read(study, &study->cells[k], &all[k]);
    for (int k = 0; k < study->n_curves && status == CT_OK; k++)
        status = write_curve(study, all, k);
    for (int k = 0; all != NULL && k < study->n_cells; k++) ct_cell_curves_free(&all[k]);
    ct_free(all);
    return status;
}

ct_status ct_study_write_figures(const ct_study *study) {
    switch (study->figure.kind) {
    case CT_FIGURE_DOTS: return write_dots(study);
    case CT_FIGURE_LINES: return write_lines(study);
    case CT_FIGURE_CURVES: return write_curves(study);
    default: return CT_OK;
    }
}
