/* The numbers that a run reports: how files, tables and figures call them (metric_list.h). */
#ifndef CT_RECORD_METRIC_H
#define CT_RECORD_METRIC_H

#include <stdbool.h>

#include "util/json.h"
#include "util/status.h"

typedef enum ct_metric_id {
#define METRIC(id, key, name, title, axis, deviation, factor, digits) CT_METRIC_##id,
#include "record/metric_list.h"
#undef METRIC
    CT_N_METRICS,
} ct_metric_id;

typedef struct ct_metric {
    const char *name;      /* as in `show = consensus, mean`; NULL: tables do not have it */
    const char *title;     /* of a table's column */
    const char *axis;      /* of a figure's axis */
    const char *key;       /* in summary.json and metrics.jsonl */
    const char *deviation; /* key of its deviation over the seeds; NULL: it has none */
    double factor;         /* from the file's unit to the table's */
    int digits;
} ct_metric;

extern const ct_metric ct_metrics[CT_N_METRICS];

/* The more the better: an accuracy. Of all others, the less the better. */
bool ct_metric_rises(const ct_metric *metric);
/* A metric by its key in the files; false: there is none. */
bool ct_metric_by_key(const char *key, ct_metric_id *out);
/* A metric by name; CT_INVAL lists the known ones. */
ct_status ct_metric_find(const char *name, const ct_metric **out);

/* A number of an object; NaN where it is missing, null or no number, or there is no object. */
double ct_json_number(const ct_json *object, const char *key);
/* The metric, and its deviation, in the table's unit; NaN: unknown. */
double ct_metric_value(const ct_metric *metric, const ct_json *summary);
double ct_metric_deviation(const ct_metric *metric, const ct_json *summary);

/* A mean over seeds, or over epochs, and the sample deviation. */
typedef struct ct_epoch_sum {
    double sum, squares;
    int n;
} ct_epoch_sum;
void ct_epoch_add(ct_epoch_sum *sum, double value);
/* NaN where nothing was added; the deviation where less than two were. */
double ct_epoch_mean(const ct_epoch_sum *sum);
double ct_epoch_deviation(const ct_epoch_sum *sum);

#endif
