/* Moved: the numbers of runs are the record's. */
#ifndef CT_STUDY_METRIC_H
#define CT_STUDY_METRIC_H

#include "record/metric.h"
#include "record/record.h"

#endif
