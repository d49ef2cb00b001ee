/* What a finished run's summary.json says, by the short names that tables use. */
#ifndef CT_STUDY_METRIC_H
#define CT_STUDY_METRIC_H

#include <stdbool.h>

#include "util/json.h"
#include "util/status.h"

typedef struct ct_metric {
    const char *name;      /* as in `show = consensus, mean` */
    const char *title;     /* of a table's column */
    const char *axis;      /* of a figure's axis */
    const char *key;       /* in summary.json and metrics.jsonl */
    const char *deviation; /* key of its deviation over the seeds; NULL: it has none */
    double factor;         /* from the file's unit to the table's */
    int digits;
} ct_metric;

/* All of them; the last one has no name. */
extern const ct_metric ct_metrics[];

/* The more the better: an accuracy. Of all others, the less the better. */
bool ct_metric_rises(const ct_metric *metric);
/* A metric by name; CT_INVAL lists the known ones. */
ct_status ct_metric_find(const char *name, const ct_metric **out);

/* dir/summary.json; ct_json_free() it. */
ct_status ct_summary_read(const char *dir, ct_json **out);
/* A number of an object; NaN where it is missing, null or no number, or there is no object. */
double ct_json_number(const ct_json *object, const char *key);

/* The metric, and its deviation, in the table's unit; NaN: unknown. */
double ct_metric_value(const ct_metric *metric, const ct_json *summary);
double ct_metric_deviation(const ct_metric *metric, const ct_json *summary);

#endif
