/* When checkpoints are written: --checkpoint-every. */
#ifndef CT_SCHEMA_INTERVAL_H
#define CT_SCHEMA_INTERVAL_H

#include <stdbool.h>

#include "util/status.h"

typedef struct ct_interval {
    long epochs;      /* every so many; 0 = not by epochs */
    double every_s;   /* every so many seconds; 0 = not by time */
    bool is_off;      /* none, not even at the end */
    bool has_written; /* one has been */
} ct_interval;

/* "5" (epochs), "90s", "10m", "2h", "end" or "0". */
ct_status ct_interval_parse(const char *text, ct_interval *out);

#endif
