/* Curves over the epochs, from the metrics.jsonl of every finished run: mean and sample deviation
 * over the seeds. */
#include <math.h>
#include <string.h>

#include "study/study.h"
#include "util/file.h"
#include "util/memory.h"

enum { MAX_EPOCHS = 100000 };

/* One metric's sums over the seeds at one epoch. */
typedef struct point {
    double sum, squares;
    int n;
} point;

typedef struct curves {
    const ct_study *study;
    point *points; /* [n_epochs][study->n_curves] */
    long n_epochs;
} curves;

static ct_status make_room(curves *c, long epoch) {
    size_t width = (size_t)c->study->n_curves;
    if (epoch < 1 || epoch > MAX_EPOCHS)
        return ct_fail(CT_IO, "an epoch %ld among the metrics", epoch);
    if (epoch <= c->n_epochs) return CT_OK;
    point *more =
        ct_grow(c->points, (size_t)c->n_epochs * width, (size_t)epoch * width, sizeof *more);
    if (more == NULL) return ct_fail(CT_NOMEM, "no memory for %ld epochs", epoch);
    c->points = more;
    c->n_epochs = epoch;
    return CT_OK;
}

static ct_status read_epoch(curves *c, const char *path, const char *line, size_t n) {
    ct_json *json = NULL;
    CT_TRY(ct_json_parse(line, n, path, &json));
    double epoch = ct_json_number(json, "epoch");
    ct_status status = make_room(c, isnan(epoch) ? 0 : (long)epoch);
    for (int k = 0; k < c->study->n_curves && status == CT_OK; k++) {
        double value = ct_metric_value(c->study->curves[k], json);
        point *p = &c->points[((long)epoch - 1) * c->study->n_curves + k];
        if (isnan(value)) continue;
        p->sum += value;
        p->squares += value * value;
        p->n++;
    }
    ct_json_free(&json);
    return status;
}

static ct_status read_metrics(curves *c, const char *dir) {
    ct_blob blob = {0};
    char *path = ct_path_join(dir, "metrics.jsonl");
    if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a path");
    ct_status status = ct_file_read(path, (size_t)1 << 30, &blob);
    for (const char *at = (const char *)blob.bytes; status == CT_OK && *at != '\0';) {
        size_t n = strcspn(at, "\n");
        if (n > 0) status = read_epoch(c, path, at, n);
        at += n + (at[n] == '\n');
    }
    ct_blob_free(&blob);
    ct_free(path);
    return status;
}

/* The seeds' own directories; a run of one seed is its own. */
static ct_status read_seeds(curves *c, const ct_cell *cell) {
    const ct_json *seeds = ct_json_get(cell->summary, "seeds");
    if (seeds == NULL) return read_metrics(c, cell->config.out);
    for (const ct_json *s = seeds->child; s != NULL; s = s->next) {
        char dir[CT_CONFIG_TEXT + 64];
        snprintf(dir, sizeof dir, "%s/seed-%.0f", cell->config.out, s->number);
        CT_TRY(read_metrics(c, dir));
    }
    return CT_OK;
}

static void add_point(ct_text *out, const point *p) {
    if (p->n == 0) {
        ct_text_add(out, ",,");
        return;
    }
    double mean = p->sum / p->n;
    double variance = p->n > 1 ? (p->squares - p->n * mean * mean) / (p->n - 1) : NAN;
    ct_text_add(out, ",%.9g,", mean);
    if (p->n > 1) ct_text_add(out, "%.6g", variance > 0 ? sqrt(variance) : 0);
}

static ct_status add_cell(ct_text *out, const ct_study *study, const ct_cell *cell) {
    curves c = {.study = study};
    ct_status status = read_seeds(&c, cell);
    for (long e = 0; e < c.n_epochs && status == CT_OK; e++) {
        ct_csv_add(out, study->rows[cell->row].label);
        ct_text_add(out, ",");
        ct_csv_add(out, study->columns[cell->column].label);
        ct_text_add(out, ",%ld", e + 1);
        for (int k = 0; k < study->n_curves; k++)
            add_point(out, &c.points[e * study->n_curves + k]);
        ct_text_add(out, "\n");
    }
    ct_free(c.points);
    return status;
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
