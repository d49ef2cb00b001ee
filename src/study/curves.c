/* Curves over the epochs, from the metrics.jsonl of every finished run: mean and sample deviation
 * over the seeds. */
#include <math.h>

#include "record/folder.h"
#include "study/study_internal.h"

enum { MAX_EPOCHS = 100000 };

typedef struct reader {
    const ct_study *study;
    ct_study_curves *curves;
    int cell;
} reader;

static ct_status add_epoch(const reader *r, const ct_record_row *row) {
    ct_study_curves *c = r->curves;
    int epoch = (int)row->value[CT_METRIC_EPOCH];
    if (epoch < 1 || epoch > c->n_epochs)
        return ct_fail(CT_IO, "%s: an epoch %d among the metrics",
                       r->study->cells[r->cell].config.out, epoch);
    for (int k = 0; k < c->n_curves; k++) {
        const ct_metric *metric = r->study->curves[k];
        double value = row->value[metric - ct_metrics] * metric->factor;
        if (!isnan(value)) ct_epoch_add(ct_study_curve_at(c, r->cell, epoch - 1) + k, value);
    }
    return CT_OK;
}

static ct_status read_seed(void *context, const char *dir) {
    CT_SCOPED_BY(ct_record_unload, ct_record) run = {0};
    CT_TRY(ct_record_load(dir, CT_READ_METRICS, &run));
    for (int e = 0; e < run.n_epochs; e++) CT_TRY(add_epoch(context, &run.epochs[e]));
    return CT_OK;
}

ct_status ct_study_curves_read(const ct_study *study, ct_study_curves *out) {
    out->n_curves = study->n_curves;
    for (int k = 0; k < study->n_cells; k++) {
        double n = ct_json_number(study->cells[k].summary, "epoch");
        if (n > out->n_epochs && n <= MAX_EPOCHS) out->n_epochs = (int)n;
    }
    CT_TRY(ct_make(&out->sums,
                   (size_t)study->n_cells * (size_t)out->n_epochs * (size_t)out->n_curves,
                   "curves"));
    for (int k = 0; k < study->n_cells; k++) {
        const ct_cell *cell = &study->cells[k];
        reader r = {study, out, k};
        if (cell->state == CT_CELL_DONE)
            CT_TRY(ct_record_each_world(cell->config.out, read_seed, &r));
    }
    return CT_OK;
}

void ct_study_curves_free(ct_study_curves *curves) {
    ct_free(curves->sums);
    *curves = (ct_study_curves){0};
}

/* ---- as CSV ---- */

static void add_point(ct_text *out, const ct_epoch_sum *s) {
    if (s->n > 0)
        ct_text_add(out, ",%.9g,", ct_epoch_mean(s));
    else
        ct_text_add(out, ",,");
    if (s->n > 1) ct_text_add(out, "%.6g", ct_epoch_deviation(s));
}

/* Nothing of an epoch that has no number: of a finished run not every one is kept. */
static void add_line(ct_text *out, const ct_study *study, const ct_cell *cell, int epoch,
                     const ct_epoch_sum *sums) {
    bool is_kept = false;
    for (int k = 0; k < study->n_curves; k++) is_kept = is_kept || sums[k].n > 0;
    if (!is_kept) return;
    ct_csv_add(out, study->rows[cell->row].label);
    ct_text_add(out, ",");
    ct_csv_add(out, study->columns[cell->column].label);
    ct_text_add(out, ",%d", epoch);
    for (int k = 0; k < study->n_curves; k++) add_point(out, &sums[k]);
    ct_text_add(out, "\n");
}

ct_status ct_study_write_curves(const ct_study *study, const ct_study_curves *curves) {
    CT_SCOPED(ct_text) out = {0};
    ct_text_add(&out, "row,column,epoch");
    for (int k = 0; k < study->n_curves; k++)
        ct_text_add(&out, ",%s,%s_std", study->curves[k]->name, study->curves[k]->name);
    ct_text_add(&out, "\n");
    for (int k = 0; k < study->n_cells; k++)
        for (int e = 0; e < curves->n_epochs; e++)
            add_line(&out, study, &study->cells[k], e + 1, ct_study_curve_at(curves, k, e));
    return ct_study_write_file(study, "curves.csv", &out);
}
