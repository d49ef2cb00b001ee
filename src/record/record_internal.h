/* What the files of the record share. */
#ifndef CT_RECORD_RECORD_INTERNAL_H
#define CT_RECORD_RECORD_INTERNAL_H

#include "record/record.h"
#include "util/file.h"

/* The last line of metrics.jsonl that is not empty; NULL: there is none. */
ct_status ct_metrics_last(const char *path, const ct_blob *blob, ct_json **out);

/* ---- details.c ---- */
ct_status ct_record_read_setting(const char *path, const ct_blob *blob, ct_record *run);
ct_status ct_record_read_evaluation(const char *path, const ct_blob *blob, ct_record *run);

/* ---- tensorboard.c: the metrics once more as TensorBoard's event file ---- */
/* Appends one line of metrics.jsonl, measured now; a file that is not there begins. */
ct_status ct_tensorboard_add(const char *dir, const char *text, size_t n);
/* The event file afresh from metrics.jsonl (none: no event file), for a run that goes on. */
ct_status ct_tensorboard_rewrite(const char *dir);

#endif
