/* What the files of the report share. */
#ifndef CT_REPORT_REPORT_INTERNAL_H
#define CT_REPORT_REPORT_INTERNAL_H

#include "report/report.h"

/* ---- load.c ---- */
ct_status ct_report_read_run(const char *path, ct_report_run *out);
void ct_report_free_run(ct_report_run *run);

/* ---- group.c ---- */
ct_status ct_report_group_runs(ct_report *report);
/* The same algorithm and loss. */
bool ct_report_same_method(const ct_report_run *a, const ct_report_run *b);

/* ---- repeat.c ---- */
/* Sections of the page. */
void ct_report_add_options(const ct_report *report, ct_text *out);
void ct_report_add_commands(const ct_report *report, ct_text *out);

/* ---- page.js, built in ---- */
extern const char ct_report_script[];

#endif
