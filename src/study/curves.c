/* Curves over the epochs, from the metrics.jsonl of every finished run: mean and sample deviation
 * over the seeds. */
#include <math.h>

#include "record/folder.h"
#include "study/study_internal.h"

enum { MAX_EPOCHS = 100000 };

typedef struct reader {
    const ct_study *study;
    ct_cell_curves *curves;
} reader;

static ct_status add_epoch(reader *r, const ct_record_row *row) {
    ct_cell_curves *c = r->curves;
    size_t width = (size_t)r->study->n_curves;
    long epoch = (long)row->value[CT_METRIC_EPOCH];
    if (epoch < 1 || epoch > MAX_EPOCHS)
        return ct_fail(CT_IO, "an epoch %ld among the metrics", epoch);
    if (epoch > c->n_epochs) {
        ct_epoch_sum *more =
            ct_grow(c->sums, (size_t)c->n_epochs * width, (size_t)epoch * width, sizeof *more);
        if (more == NULL) return ct_no_memory("curves");
        *c = (ct_cell_curves){more, epoch};
    }
    for (size_t k = 0; k < width; k++) {
        const ct_metric *metric = r->study->curves[k];
        double value = row->value[metric - ct_metrics] * metric->factor;
        if (!isnan(value)) ct_epoch_add(&c->sums[(size_t)(epoch - 1) * width + k], value);
    }
    return CT_OK;
}

static ct_status read_seed(void *context, const char *dir) {
    CT_SCOPED(ct_record) run = {0};
    CT_TRY(ct_record_open(dir, CT_READ_METRICS, &run));
    for (int e = 0; e < run.n_epochs; e++) CT_TRY(add_epoch(context, &run.epochs[e]));
    return CT_OK;
}

ct_status ct_cell_curves_read(const ct_study *study, const ct_cell *cell, ct_cell_curves *out) {
    reader r = {study, out};
    return ct_record_each_world(cell->config.out, read_seed, &r);
}

void ct_cell_curves_free(ct_cell_curves *curves) {
    ct_free(curves->sums);
    *curves = (ct_cell_curves){0};
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
    CT_SCOPED(ct_cell_curves) c = {0};
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
    return CT_OK;
}

ct_status ct_study_write_curves(const ct_study *study) {
    CT_SCOPED(ct_text) out = {0};
    ct_text_add(&out, "row,column,epoch");
    for (int k = 0; k < study->n_curves; k++)
        ct_text_add(&out, ",%s,%s_std", study->curves[k]->name, study->curves[k]->name);
    ct_text_add(&out, "\n");
    for (int k = 0; k < study->n_cells; k++)
        if (study->cells[k].state == CT_CELL_DONE) CT_TRY(add_cell(&out, study, &study->cells[k]));
    return ct_study_write_file(study, "curves.csv", &out);
}
