/* The consensus model's accuracy towards the end of a run: the mean of its evaluations in the last
 * two fifths of the epochs. With strong skew it moves from one evaluation to the next, so that the
 * last one alone is a matter of luck. */
#include <math.h>

#include "study/study_internal.h"
#include "util/file.h"

#define LATE_FROM 0.6 /* of the epochs */
#define KEY       "consensus_accuracy"

typedef struct late {
    double from;
    ct_epoch_sum seed, all; /* evaluations of this seed; seeds */
} late;

static ct_status take_epoch(void *context, const ct_json *epoch) {
    late *l = context;
    double accuracy = ct_json_number(epoch, KEY);
    if (ct_json_number(epoch, "epoch") < l->from || isnan(accuracy)) return CT_OK;
    ct_epoch_add(&l->seed, accuracy);
    return CT_OK;
}

static ct_status take_seed(void *context, const char *dir) {
    late *l = context;
    if (!ct_dir_has(dir, "metrics.jsonl")) return CT_OK; /* somebody kept the summary alone */
    l->seed = (ct_epoch_sum){0};
    CT_TRY(ct_run_each_epoch(dir, take_epoch, l));
    if (l->seed.n > 0) ct_epoch_add(&l->all, ct_epoch_mean(&l->seed));
    return CT_OK;
}

static ct_status add_late(ct_cell *cell) {
    late l = {.from = LATE_FROM * ct_json_number(cell->summary, "epoch")};
    CT_TRY(ct_cell_each_seed(cell, take_seed, &l));
    CT_TRY(ct_json_insert(cell->summary, KEY "_late", ct_epoch_mean(&l.all)));
    return ct_json_insert(cell->summary, KEY "_late_std", ct_epoch_deviation(&l.all));
}

ct_status ct_cell_read_summary(ct_cell *cell) {
    CT_TRY(ct_summary_read(cell->config.out, &cell->summary));
    return add_late(cell);
}
