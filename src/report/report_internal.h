/* What the files of the report share. */
#ifndef CT_REPORT_REPORT_INTERNAL_H
#define CT_REPORT_REPORT_INTERNAL_H

#include "report/charts.h"
#include "report/report.h"

#define CT_MAX_IN_CHART 6 /* groups; more of them are parted by their settings */

static inline const ct_record *ct_report_first(const ct_report *report, int group) {
    return &report->runs[report->groups[group].runs[0]];
}

/* ---- group.c ---- */
ct_status ct_report_group_runs(ct_report *report);
typedef enum ct_naming {
    CT_NAME_SETTING = 1, /* options that say what is learnt and where, as far as they differ */
    CT_NAME_METHOD = 2,  /* the method, and its options, likewise */
    CT_NAME_ALL = 3,
} ct_naming;
ct_status ct_report_name(const ct_report *report, int group, ct_naming what, char **out);
/* All groups have the same value of an option, or none has one. */
bool ct_report_is_shared(const ct_report *report, const char *option);
/* The same algorithm and loss. */
bool ct_report_same_method(const ct_record *a, const ct_record *b);

/* ---- facet.c ---- */
ct_status ct_report_part(ct_report *report);

/* ---- curves.c: from the rows of runs to one curve for each group ---- */
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

/* ---- sites.c ---- */
/* All runs are sites' (of crosstalk site). */
bool ct_report_is_of_sites(const ct_report *report);
/* A section of the page: neighbours, and what left. */
void ct_report_add_sites(const ct_report *report, ct_text *out);

/* ---- repeat.c ---- */
/* Sections of the page. */
void ct_report_add_options(const ct_report *report, ct_text *out);
void ct_report_add_commands(const ct_report *report, ct_text *out);

#endif
