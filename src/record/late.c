/* The consensus model's accuracy towards the end of a run: the mean of its evaluations in the last
 * two fifths of the epochs. With strong skew it moves from one evaluation to the next, so that the
 * last one alone is a matter of luck. */
#include <math.h>

#include "record/folder.h"
#include "record/record.h"
#include "util/memory.h"

#define LATE_FROM 0.6 /* of the epochs */

typedef struct late {
    double from;
    ct_epoch_sum seeds;
} late;

static ct_status take_seed(void *context, const char *dir) {
    late *l = context;
    CT_SCOPED_BY(ct_record_unload, ct_record) run = {0};
    ct_epoch_sum own = {0};
    CT_TRY(ct_record_load(dir, CT_READ_METRICS, &run)); /* none: somebody kept the summary alone */
    for (int e = 0; e < run.n_epochs; e++) {
        double accuracy = run.epochs[e].value[CT_METRIC_CONSENSUS_ACCURACY];
        if (run.epochs[e].value[CT_METRIC_EPOCH] < l->from || isnan(accuracy)) continue;
        ct_epoch_add(&own, accuracy);
    }
    if (own.n > 0) ct_epoch_add(&l->seeds, ct_epoch_mean(&own));
    return CT_OK;
}

ct_status ct_summary_add_late(const char *dir, ct_json *summary) {
    const ct_metric *metric = &ct_metrics[CT_METRIC_LATE_ACCURACY];
    late l = {.from = LATE_FROM * ct_json_number(summary, "epoch")};
    CT_TRY(ct_record_each_world(dir, take_seed, &l));
    CT_TRY(ct_json_insert(summary, metric->key, ct_epoch_mean(&l.seeds)));
    return ct_json_insert(summary, metric->deviation, ct_epoch_deviation(&l.seeds));
}
