/* What the files of the record share. */
#ifndef CT_RECORD_RECORD_INTERNAL_H
#define CT_RECORD_RECORD_INTERNAL_H

#include "record/record.h"
#include "util/file.h"

/* A line of a text, without its end. */
typedef struct ct_line {
    const char *text;
    size_t n;
    int number; /* from 1 */
    bool is_ended;
} ct_line;

/* The next line; begin with a zeroed one. False: there is none. */
bool ct_line_next(const char *text, ct_line *line);
/* The last line that is not empty; n = 0: there is none. */
ct_line ct_line_last(const char *text, size_t n);

/* ---- details.c ---- */
ct_status ct_record_read_setting(const char *path, const ct_json *object, ct_record *run);
ct_status ct_record_read_evaluation(const char *path, const ct_json *object, ct_record *run);

/* ---- tensorboard.c: the metrics once more as TensorBoard's event file ---- */
/* Appends one line of metrics.jsonl, measured now; a file that is not there begins. */
ct_status ct_tensorboard_add(const char *dir, const char *text, size_t n);
/* The event file afresh from metrics.jsonl (none: no event file), for a run that goes on. */
ct_status ct_tensorboard_rewrite(const char *dir);

#endif
