/* From the rows of runs to curves: one for each group, the mean over its seeds with a band. */
#ifndef CT_REPORT_CURVES_H
#define CT_REPORT_CURVES_H

#include "report/plot.h"
#include "report/report.h"

typedef struct ct_curve_spec {
    ct_metric_id x, y;
    bool skips_zero; /* runs in which y is 0 throughout do not know it (the terms of CCL) */
} ct_curve_spec;

typedef struct ct_curve_set {
    ct_curve *curves; /* [n_curves] groups without a point are left out */
    int n_curves;
    ct_strand *strands; /* what follows is the curves' memory */
    double *values;
} ct_curve_set;

/* Of the facet's groups. Rows are matched by their epoch; at each, the mean of x and of y, the
 * lowest and the highest y of the seeds that have them. Groups of several seeds have a band. */
ct_status ct_curve_set_create(const ct_report *report, const ct_report_facet *facet,
                              const ct_curve_spec *spec, ct_curve_set *out);
void ct_curve_set_free(ct_curve_set *set);

#endif
