/* The list of runs: what there is, how it ended, and which of it to look at. */
#ifndef CT_SERVE_LIST_H
#define CT_SERVE_LIST_H

#include "report/report.h"

/* The main element: a line for every group of runs below `dir`, the one that changed last first.
 * live.js sorts them otherwise. complaints: paragraphs to put below. */
void ct_list_add(const char *dir, const ct_report *report, const ct_text *complaints, ct_text *out);

/* A word as a part of an address. */
void ct_list_add_encoded(ct_text *out, const char *word);

#endif
