/* Curves over the epochs, from the metrics.jsonl of every finished run: mean and sample deviation
 * over the seeds. */
#include <math.h>
#include <string.h>

#include "study/study_internal.h"
#include "util/file.h"
#include "util/memory.h"

enum { MAX_EPOCHS = 100000 };

typedef struct reader {
    const ct_study *study;
    ct_cell_curves *curves;
} reader;

static ct_status make_room(reader *r, long epoch) {
    ct_cell_curves *c = r->curves;
    size_t width = (size_t)r->study->n_curves;
    if (epoch < 1 || epoch > MAX_EPOCHS)
        return ct_fail(CT_IO, "an epoch %ld among the metrics", epoch);
    if (epoch <= c->n_epochs) return CT_OK;
    ct_epoch_sum *more =
        ct_grow(c->sums, (size_t)c->n_epochs * width, (size_t)epoch * width, sizeof *more);
    if (more == NULL) return ct_fail(CT_NOMEM, "no memory for %ld epochs", epoch);
    c->sums = more;
    c->n_epochs = epoch;
    return CT_OK;
}

void ct_epoch_add(ct_epoch_sum *s, double value) {
    s->sum += value;
    s->squares += value * value;
    s->n++;
}

static ct_status read_epoch(void *context, const ct_json *line) {
    reader *r = context;
    double epoch = ct_json_number(line, "epoch");
    CT_TRY(make_room(r, isnan(epoch) ? 0 : (long)epoch));
    for (int k = 0; k < r->study->n_curves; k++) {
        double value = ct_metric_value(r->study->curves[k], line);
        if (isnan(value)) continue;
        ct_epoch_add(&r->curves->sums[((long)epoch - 1) * r->study->n_curves + k], value);
    }
    return CT_OK;
}

static ct_status read_seed(void *context, const char *dir) {
    return ct_run_each_epoch(dir, read_epoch, context);
}

static ct_status read_line(const char *path, const char *line, size_t n,
                           ct_status (*each)(void *context, const ct_json *epoch), void *context) {
    ct_json *json = NULL;
    CT_TRY(ct_json_parse(line, n, path, &json));
    ct_status status = each(context, json);
    ct_json_free(&json);
    return status;
}

ct_status ct_run_each_epoch(const char *dir, ct_status (*each)(void *context, const ct_json *epoch),
                            void *context) {
    ct_blob blob = {0};
    char *path = ct_path_join(dir, "metrics.jsonl");
    if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a path");
    ct_status status = ct_file_read(path, (size_t)1 << 30, &blob);
    for (const char *at = (const char *)blob.bytes; status == CT_OK && *at != '\0';) {
        size_t n = strcspn(at, "\n");
        if (n > 0) status = read_line(path, at, n, each, context);
        at += n + (at[n] == '\n');
    }
    ct_blob_free(&blob);
    ct_free(path);
    return status;
}

ct_status ct_cell_each_seed(const ct_cell *cell, ct_status (*each)(void *context, const char *dir),
                            void *context) {
    const ct_json *seeds = ct_json_get(cell->summary, "seeds");
    if (seeds == NULL) return each(context, cell->config.out);
    for (const ct_json *s = seeds->child; s != NULL; s = s->next) {
        char dir[CT_CONFIG_TEXT + 64];
        snprintf(dir, sizeof dir, "%s/seed-%.0f", cell->config.out, s->number);
        CT_TRY(each(context, dir));
    }
    return CT_OK;
}

ct_status ct_cell_curves_read(const ct_study *study, const ct_cell *cell, ct_cell_curves *out) {
    *out = (ct_cell_curves){0};
    reader r = {study, out};
    ct_status status = ct_cell_each_seed(cell, read_seed, &r);
    if (status != CT_OK) ct_cell_curves_free(out);
    return status;
}

void ct_cell_curves_free(ct_cell_curves *curves) {
    ct_free(curves->sums);
    *curves = (ct_cell_curves){0};
}

double ct_epoch_mean(const ct_epoch_sum *s) {
    return s->n > 0 ? s->sum / s->n : NAN;
}

double ct_epoch_deviation(const ct_epoch_sum *s) {
    if (s->n < 2) return NAN;
    double mean = s->sum / s->n, variance = (s->squares - s->n * mean * mean) / (s->n - 1);
    return variance > 0 ? sqrt(variance) : 0;
}

/* ---- as CSV ---- */

static void add_point(ct_text *out, const ct_epoch_sum *s) {
    if (s->n > 0)
        ct_text_add(out, ",%.9g,", ct_epoch_mean(s));
    else
        ct_text_add(out, ",,");
    if (s->n > 1) ct_text_add(out, "%.6g", ct_epoch_deviation(s));
}

/* Of a finished run not every epoch is kept. */
static bool is_kept(const ct_study *study, const ct_epoch_sum *epoch) {
    for (int k = 0; k < study->n_curves; k++)
        if (epoch[k].n > 0) return true;
    return false;
}

static ct_status add_cell(ct_text *out, const ct_study *study, const ct_cell *cell) {
    ct_cell_curves c;
    CT_TRY(ct_cell_curves_read(study, cell, &c));
    for (long e = 0; e < c.n_epochs; e++) {
        const ct_epoch_sum *epoch = &c.sums[e * study->n_curves];
        if (!is_kept(study, epoch)) continue;
        ct_csv_add(out, study->rows[cell->row].label);
        ct_text_add(out, ",");
        ct_csv_add(out, study->columns[cell->column].label);
        ct_text_add(out, ",%ld", e + 1);
        for (int k = 0; k < study->n_curves; k++) add_point(out, &epoch[k]);
        ct_text_add(out, "\n");
    }
    ct_cell_curves_free(&c);
    return CT_OK;
}

ct_status ct_study_write_curves(const ct_study *study) {
    ct_text out = {0};
    ct_status status = CT_OK;
    ct_text_add(&out, "row,column,epoch");
    for (int k = 0; k < study->n_curves; k++)
        ct_text_add(&out, ",%s,%s_std", study->curves[k]->name, study->curves[k]->name);
    ct_text_add(&out, "\n");
    for (int k = 0; k < study->n_cells && status == CT_OK; k++)
        if (study->cells[k].state == CT_CELL_DONE) status = add_cell(&out, study, &study->cells[k]);
    if (status == CT_OK) status = ct_study_write_file(study, "curves.csv", &out);
    ct_text_free(&out);
    return status;
}
