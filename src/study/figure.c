/* A study's figures: which there are, and lines over an option and curves over the epochs. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/folder.h"
#include "report/charts.h"
#include "report/method.h"
#include "report/raster.h"
#include "report/svg.h"
#include "study/study_internal.h"
#include "util/file.h"

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

/* The value that a run has of the option: a number, or the one at the end of a word (resnet20 is
 * 20). False: there is none. */
static bool find_x(const ct_config *config, const char *name, double *out) {
    const ct_option *option = ct_schema_find(name);
    if (config->is_auto[option - ct_run_options]) return false;
    if (option->kind == CT_KIND_WHOLE || option->kind == CT_KIND_REAL) {
        *out = ct_config_number(config, name);
        return true;
    }
    if (option->kind != CT_KIND_TEXT) return false;
    const char *word = ct_config_word(config, name), *at = word + strlen(word);
    while (at > word && isdigit((unsigned char)at[-1])) at--;
    *out = strtod(at, NULL);
    return *at != '\0';
}

/* Two runs of a row would lie one upon the other. */
static ct_status place_cell(const ct_study *study, ct_cell *cell) {
    if (!find_x(&cell->resolved, study->figure.x, &cell->x))
        return ct_fail(CT_IO, "figure: %s has no number as its @%s", cell->name, study->figure.x);
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

ct_status ct_study_write_drawing(const ct_study *study, const char *name, const ct_text *svg) {
    char file[CT_STUDY_LABEL];
    snprintf(file, sizeof file, "%s.svg", name);
    CT_TRY(ct_study_write_file(study, file, svg));
    if (CT_CATCH(NULL, ct_raster_check()) != CT_OK) return CT_OK;
    snprintf(file, sizeof file, "%s.png", name);
    CT_TRY(ct_raster_write(ct_path_in(study->out, file).text, svg, PNG_SCALE));
    snprintf(file, sizeof file, "%s.pdf", name);
    return ct_raster_write_pdf(ct_path_in(study->out, file).text, svg);
}

/* A cell of the row; NULL: it has none. */
static const ct_cell *first_cell(const ct_study *study, int row) {
    for (int k = 0; k < study->n_cells; k++)
        if (study->cells[k].row == row) return &study->cells[k];
    return NULL;
}

int ct_study_row_style(const ct_study *study, int row) {
    const ct_cell *cell = first_cell(study, row);
    return cell != NULL ? ct_method_style_to_be(&cell->resolved) : CT_COLOUR_OTHER;
}

/* "gt+ccl:lr=0.05" as a method and its options: "Gradient tracking + CCL, lr 0.05". */
static void say_method(const ct_study *study, int row, char *out, size_t size) {
    const ct_cell *cell = first_cell(study, row);
    const char *options = strchr(study->rows[row].label, ':');
    if (cell == NULL) {
        snprintf(out, size, "%s", study->rows[row].label);
        return;
    }
    ct_method_name(ct_config_word(&cell->resolved, "algorithm"),
                   ct_config_word(&cell->resolved, "loss"), out, size);
    size_t n = strlen(out);
    for (; options != NULL && *options != '\0' && n + 3 < size; options++)
        n += (size_t)snprintf(out + n, size - n, "%s%.*s", *options == ':' ? ", " : "",
                              *options != ':', *options == '=' ? " " : options);
}

void ct_study_say_part(const ct_study *study, int row, int k, char *out, size_t size) {
    char part[CT_STUDY_LABEL];
    ct_parts_get(study->rows[row].label, k, study->n_heads, part, sizeof part);
    if (strcmp(study->heads[k], "algorithm") == 0)
        ct_method_name(part, NULL, out, size);
    else
        snprintf(out, size, "%s", part);
}

void ct_study_say_row(const ct_study *study, int row, int first, int end, char *out, size_t size) {
    size_t n = 0;
    out[0] = '\0';
    if (study->is_comparison) {
        say_method(study, row, out, size);
        return;
    }
    for (int k = first; k < end && n < size; k++) {
        char part[CT_STUDY_LABEL];
        ct_study_say_part(study, row, k, part, sizeof part);
        double number;
        if (part[0] == '\0' || strcmp(part, "-") == 0) continue;
        const char *head = ct_parse_double(part, &number) ? study->heads[k] : "";
        n += (size_t)snprintf(out + n, size - n, "%s%s%s%s", n > 0 ? ", " : "", head,
                              head[0] != '\0' ? " " : "", part);
    }
}

/* ---- series: lines and curves ---- */

typedef struct series {
    ct_curve *curves;
    char (*labels)[400];
    double *points; /* [n][4][room]: x, mean, low, high */
    int n, room;
    int n_points;
    bool has_band;
} series;

static void series_free(series *s) {
    ct_free(s->curves);
    ct_free(s->labels);
    ct_free(s->points);
}

/* Room for n curves of so many points. */
static ct_status make_series(int n, int room, series *s) {
    s->room = room;
    CT_TRY(ct_make(&s->curves, (size_t)n, "a figure"));
    CT_TRY(ct_make(&s->labels, (size_t)n, "a figure"));
    return ct_make(&s->points, 4 * (size_t)n * (size_t)room, "a figure");
}

/* The next curve, without points, named as the row. */
static ct_curve *add_curve(series *s, const ct_study *study, int row, int variant) {
    double *points = s->points + 4 * (size_t)s->n * (size_t)s->room;
    ct_curve *curve = &s->curves[s->n];
    *curve = (ct_curve){.label = s->labels[s->n],
                        .group = s->n,
                        .style = ct_style_variant(ct_study_row_style(study, row), variant),
                        .mean = {.x = points, .y = points + s->room},
                        .low = points + 2 * s->room,
                        .high = points + 3 * s->room};
    ct_study_say_row(study, row, 0, study->n_heads, s->labels[s->n++], sizeof *s->labels);
    return curve;
}

/* Points come in any order and are put in that of x. */
static void add_point(series *s, ct_curve *c, double x, double mean, double deviation) {
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
    s->n_points++;
    s->has_band = s->has_band || c->high[at] > c->low[at];
}

static ct_status draw_series(const ct_study *study, const char *name, const series *s,
                             ct_plot *plot) {
    CT_SCOPED(ct_text) svg = {0};
    CT_SCOPED(ct_text) note = {0};
    if (s->n_points == 0) return CT_OK;
    if (s->has_band) ct_text_add(&note, "mean over the seeds; bands: \xC2\xB1 sample deviation\n");
    ct_study_add_notes(&note, study, false, false);
    CT_TRY(ct_text_status(&note));
    plot->id = name;
    plot->title = study->title;
    plot->curves = s->curves;
    plot->n_curves = s->n;
    plot->note = note.chars;
    ct_plot_draw(plot, &svg);
    return ct_study_write_drawing(study, name, &svg);
}

/* How many rows above this one have its method. */
static int row_variant(const ct_study *study, int row) {
    int n = 0;
    for (int k = 0; k < row; k++)
        n += ct_study_row_style(study, k) == ct_study_row_style(study, row);
    return n;
}

static ct_status write_line_figure(const ct_study *study, const ct_metric *metric,
                                   const char *name) {
    CT_SCOPED(series) s = {0};
    ct_plot plot = {.x_may_be_log = true,
                    .may_be_log = !ct_metric_rises(metric),
                    .x_name = study->figure.label,
                    .y_name = metric->axis,
                    .x_unit = CT_UNIT_NUMBER,
                    .y_unit = CT_UNIT_NUMBER,
                    .has_ticks_at_points = true};
    CT_TRY(make_series(study->n_rows, study->n_columns, &s));
    for (int k = 0; k < study->n_rows; k++) {
        int row = study->order[k];
        ct_curve *curve = add_curve(&s, study, row, row_variant(study, row));
        for (int column = 0; column < study->n_columns; column++) {
            const ct_cell *cell = ct_study_cell_of(study, study->order[k], column);
            double mean = cell != NULL ? ct_metric_value(metric, cell->summary) : NAN;
            if (isfinite(mean))
                add_point(&s, curve, cell->x, mean, ct_metric_deviation(metric, cell->summary));
        }
    }
    return draw_series(study, name, &s, &plot);
}

/* Of the first number shown, figure; of the others, figure-<name>. */
static ct_status write_lines(const ct_study *study) {
    CT_TRY(write_line_figure(study, study->shown[0], "figure"));
    for (int k = 1; k < study->n_shown; k++) {
        char name[64];
        snprintf(name, sizeof name, "figure-%s", study->shown[k]->name);
        CT_TRY(write_line_figure(study, study->shown[k], name));
    }
    return CT_OK;
}

/* ---- curves over the epochs ---- */

enum { MAX_EPOCHS = 100000 };

/* What finished cells have of all curves: mean and sample deviation over the seeds, from the
 * metrics.jsonl of every run. */
typedef struct curves {
    const ct_study *study;
    int n_epochs;
    ct_epoch_sum *sums; /* [n_cells][n_epochs][n_curves]; n = 0: there is none */
    int cell;           /* which is being read */
} curves;

static void curves_free(curves *c) {
    ct_free(c->sums);
}

/* [n_curves] of an epoch, from 1 on. */
static ct_epoch_sum *sums_at(const curves *c, int cell, int epoch) {
    size_t place = (size_t)cell * (size_t)c->n_epochs + (size_t)epoch - 1;
    return &c->sums[place * (size_t)c->study->n_curves];
}

static ct_status read_seed(void *context, const char *dir) {
    const curves *c = context;
    CT_SCOPED_BY(ct_record_unload, ct_record) run = {0};
    CT_TRY(ct_record_load(dir, CT_READ_METRICS, &run));
    for (const ct_record_row *row = run.epochs; row < run.epochs + run.n_epochs; row++) {
        int epoch = (int)row->value[CT_METRIC_EPOCH];
        if (epoch < 1 || epoch > c->n_epochs)
            return ct_fail(CT_IO, "%s: an epoch %d among the metrics",
                           c->study->cells[c->cell].config.out, epoch);
        for (int k = 0; k < c->study->n_curves; k++) {
            const ct_metric *metric = c->study->curves[k];
            double value = row->value[metric - ct_metrics] * metric->factor;
            if (!isnan(value)) ct_epoch_add(sums_at(c, c->cell, epoch) + k, value);
        }
    }
    return CT_OK;
}

static ct_status read_curves(const ct_study *study, curves *out) {
    out->study = study;
    for (int k = 0; k < study->n_cells; k++) {
        double n = ct_json_number(study->cells[k].summary, "epoch");
        if (n > out->n_epochs && n <= MAX_EPOCHS) out->n_epochs = (int)n;
    }
    CT_TRY(ct_make(&out->sums,
                   (size_t)study->n_cells * (size_t)out->n_epochs * (size_t)study->n_curves,
                   "curves"));
    for (int *k = &out->cell; *k < study->n_cells; ++*k)
        if (study->cells[*k].state == CT_CELL_DONE)
            CT_TRY(ct_record_each_world(study->cells[*k].config.out, read_seed, out));
    return CT_OK;
}

static void add_csv_point(ct_text *out, const ct_epoch_sum *s) {
    if (s->n > 0)
        ct_text_add(out, ",%.9g,", ct_epoch_mean(s));
    else
        ct_text_add(out, ",,");
    if (s->n > 1) ct_text_add(out, "%.6g", ct_epoch_deviation(s));
}

/* Nothing of an epoch that has no number: of a finished run not every one is kept. */
static void add_csv_line(ct_text *out, const ct_study *study, const ct_cell *cell, int epoch,
                         const ct_epoch_sum *sums) {
    bool is_kept = false;
    for (int k = 0; k < study->n_curves; k++) is_kept = is_kept || sums[k].n > 0;
    if (!is_kept) return;
    ct_csv_add(out, study->rows[cell->row].label);
    ct_text_add(out, ",");
    ct_csv_add(out, study->columns[cell->column].label);
    ct_text_add(out, ",%d", epoch);
    for (int k = 0; k < study->n_curves; k++) add_csv_point(out, &sums[k]);
    ct_text_add(out, "\n");
}

static ct_status write_csv(const curves *c) {
    const ct_study *study = c->study;
    CT_SCOPED(ct_text) out = {0};
    ct_text_add(&out, "row,column,epoch");
    for (int k = 0; k < study->n_curves; k++)
        ct_text_add(&out, ",%s,%s_std", study->curves[k]->name, study->curves[k]->name);
    ct_text_add(&out, "\n");
    for (int k = 0; k < study->n_cells; k++)
        for (int e = 1; e <= c->n_epochs; e++)
            add_csv_line(&out, study, &study->cells[k], e, sums_at(c, k, e));
    return ct_study_write_file(study, "curves.csv", &out);
}

/* How many cells before it have its method, be they finished or not. */
static int cell_variant(const ct_study *study, int cell) {
    int n = 0;
    for (int k = 0; k < cell; k++)
        n += ct_study_row_style(study, study->cells[k].row) ==
             ct_study_row_style(study, study->cells[cell].row);
    return n;
}

/* The k-th of the study's curves, of every finished cell. */
static ct_status write_curve(const curves *all, int k) {
    const ct_study *study = all->study;
    CT_SCOPED(series) s = {0};
    char name[CT_STUDY_LABEL];
    const ct_metric *metric = study->curves[k];
    ct_plot plot = {.x_name = "epoch",
                    .y_name = metric->axis,
                    .x_unit = CT_UNIT_WHOLE,
                    .y_unit = CT_UNIT_NUMBER,
                    .may_be_log = !ct_metric_rises(metric),
                    .is_tight = true,
                    .starts_at_0 = true};
    CT_TRY(make_series(study->n_cells, all->n_epochs, &s));
    for (int i = 0; i < study->n_cells; i++) {
        const ct_cell *cell = &study->cells[i];
        const ct_study_line *column = &study->columns[cell->column];
        if (cell->state != CT_CELL_DONE) continue;
        ct_curve *curve = add_curve(&s, study, cell->row, cell_variant(study, i));
        char *label = s.labels[s.n - 1];
        size_t n = strlen(label);
        if (column->line > 0) snprintf(label + n, sizeof *s.labels - n, ", %s", column->label);
        for (int e = 1; e <= all->n_epochs; e++) {
            const ct_epoch_sum *sum = sums_at(all, i, e) + k;
            if (sum->n > 0) add_point(&s, curve, e, ct_epoch_mean(sum), ct_epoch_deviation(sum));
        }
    }
    snprintf(name, sizeof name, "figure-%s", metric->name);
    return draw_series(study, name, &s, &plot);
}

static ct_status write_curves(const ct_study *study) {
    CT_SCOPED(curves) all = {0};
    CT_TRY(read_curves(study, &all));
    CT_TRY(write_csv(&all));
    for (int k = 0; k < study->n_curves && study->figure.kind == CT_FIGURE_CURVES; k++)
        CT_TRY(write_curve(&all, k));
    return CT_OK;
}

/* ---- all ---- */

/* Of a comparison or a sweep, which nobody has described: methods are ranked, an option with numbers
 * is drawn over, two or more have heat maps. */
static ct_figure_kind kind_of_command(const ct_study *study) {
    if (study->is_comparison) return CT_FIGURE_DOTS;
    if (study->n_heads > 1) return CT_FIGURE_HEAT;
    for (int k = 0; k < study->n_rows; k++) {
        double value;
        if (!ct_parse_double(study->rows[k].label, &value)) return CT_FIGURE_DOTS;
    }
    return CT_FIGURE_SWEEP;
}

ct_figure_kind ct_study_figure_kind(const ct_study *study) {
    bool is_described = study->path[0] != '\0' || study->figure.kind != CT_FIGURE_NONE;
    return is_described ? study->figure.kind : kind_of_command(study);
}

/* One curve over the option that is swept over: its values are the rows. */
static ct_status write_sweep(const ct_study *study) {
    CT_SCOPED(series) s = {0};
    const ct_metric *metric = study->shown[0];
    ct_plot plot = {.x_name = study->heads[0],
                    .y_name = metric->axis,
                    .x_unit = CT_UNIT_NUMBER,
                    .y_unit = CT_UNIT_NUMBER,
                    .x_may_be_log = true,
                    .has_ticks_at_points = true};
    CT_TRY(make_series(1, study->n_rows, &s));
    ct_curve *curve = add_curve(&s, study, 0, 0);
    for (int row = 0; row < study->n_rows; row++) {
        const ct_cell *cell = ct_study_cell_of(study, row, 0);
        double x, mean = cell != NULL ? ct_metric_value(metric, cell->summary) : NAN;
        if (isfinite(mean) && ct_parse_double(study->rows[row].label, &x))
            add_point(&s, curve, x, mean, ct_metric_deviation(metric, cell->summary));
    }
    return draw_series(study, "figure", &s, &plot);
}

ct_status ct_study_write_figures(const ct_study *study) {
    if (study->n_curves > 0) CT_TRY(write_curves(study));
    switch (ct_study_figure_kind(study)) {
    case CT_FIGURE_DOTS: return ct_study_write_dots(study);
    case CT_FIGURE_LINES: return write_lines(study);
    case CT_FIGURE_SWEEP: return write_sweep(study);
    case CT_FIGURE_HEAT: return ct_study_write_heat(study);
    default: return CT_OK;
    }
}
