/* The metrics once more as TensorBoard's event file: records of protobuf messages with checksums.
 * Step = epoch. What was not measured in an epoch has no point there. */
#ifndef CT_RUN_TENSORBOARD_H
#define CT_RUN_TENSORBOARD_H

#include "util/status.h"

#define CT_TENSORBOARD_FILE "events.out.tfevents.0.crosstalk"

/* Appends one line of metrics.jsonl, measured now; a file that is not there begins. */
ct_status ct_tensorboard_add(const char *dir, const char *line);
/* The event file afresh from dir/metrics.jsonl (none: no event file), for a run that goes on. */
ct_status ct_tensorboard_rewrite(const char *dir);

#endif
