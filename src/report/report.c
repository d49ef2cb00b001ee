#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_internal.h"
#include "util/memory.h"

/* A run named twice, perhaps by different paths, counts once. */
static bool is_known(const ct_report *r, const ct_record *run) {
    for (int k = 0; k < r->n_runs; k++)
        if (memcmp(&r->runs[k].stamp.dir, &run->stamp.dir, sizeof run->stamp.dir) == 0) return true;
    return false;
}

/* Which runs belong together. The report is the caller's now. */
static ct_status finish(ct_report *report, ct_report *out) {
    CT_TRY(ct_report_group_runs(report));
    CT_TRY(ct_report_part(report));
    ct_move(out, report);
    return CT_OK;
}

ct_status ct_report_lend(const ct_record *const *runs, int n_runs, ct_report *out) {
    CT_SCOPED(ct_report) r = {.is_lent = true};
    CT_TRY(ct_make(&r.runs, (size_t)n_runs, "the runs"));
    for (int k = 0; k < n_runs; k++) r.runs[r.n_runs++] = *runs[k];
    return finish(&r, out);
}

ct_status ct_report_load(const char *const *names, int n_names, ct_report *out) {
    CT_SCOPED(ct_name_list) paths = {0};
    CT_SCOPED(ct_report) r = {0};
    for (int k = 0; k < n_names; k++) CT_TRY(ct_record_find(names[k], &paths));
    if (paths.n == 0) return ct_fail(CT_INVAL, "name one run or more");
    CT_TRY(ct_make(&r.runs, (size_t)paths.n, "the runs"));
    for (int k = 0; k < paths.n; k++) {
        ct_record *run = &r.runs[r.n_runs];
        CT_TRY(ct_record_load(paths.name[k], CT_READ_ALL, run));
        if (is_known(&r, run))
            ct_record_unload(run);
        else
            r.n_runs++;
    }
    return finish(&r, out);
}

void ct_report_free(ct_report *r) {
    for (int k = 0; k < r->n_runs && !r->is_lent; k++) ct_record_unload(&r->runs[k]);
    for (int k = 0; k < r->n_groups; k++) {
        ct_free(r->groups[k].label);
        ct_free(r->groups[k].setting);
        ct_free(r->groups[k].name);
        ct_free(r->groups[k].runs);
    }
    for (int k = 0; k < r->n_facets; k++) ct_free(r->facets[k].groups);
    ct_name_list_free(&r->differing);
    ct_free(r->facets);
    ct_free(r->runs);
    ct_free(r->groups);
    *r = (ct_report){0};
}

double ct_report_mean(const ct_report *r, const ct_report_group *g, ct_metric_id metric,
                      double *deviation) {
    double sum = 0, squares = 0;
    int n = 0;
    for (int k = 0; k < g->n_runs; k++) {
        double value = ct_record_last(&r->runs[g->runs[k]], metric);
        if (!isfinite(value)) continue;
        sum += value;
        n++;
    }
    double mean = n > 0 ? sum / n : NAN;
    for (int k = 0; k < g->n_runs; k++) {
        double value = ct_record_last(&r->runs[g->runs[k]], metric);
        if (isfinite(value)) squares += (value - mean) * (value - mean);
    }
    *deviation = n > 1 ? sqrt(squares / (n - 1)) : NAN;
    return mean;
}

const ct_record_end *ct_report_end(const ct_report *r, const ct_report_group *g) {
    static const int badness[] = {[CT_RECORD_DONE] = 0,
                                  [CT_RECORD_NONE] = 1,
                                  [CT_RECORD_BEGUN] = 2,
                                  [CT_RECORD_FAILED] = 3,
                                  [CT_RECORD_DIVERGED] = 4};
    const ct_record_end *worst = &r->runs[g->runs[0]].end;
    for (int k = 1; k < g->n_runs; k++) {
        const ct_record_end *end = &r->runs[g->runs[k]].end;
        if (badness[end->state] > badness[worst->state]) worst = end;
    }
    return worst;
}
