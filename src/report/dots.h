/* A chart of dots with whiskers: a line for every row of a table, a panel for every column, and in
 * each place up to two marks: ours (a filled circle) and, below it, the one that ours is compared
 * with (a hollow diamond, its whisker dashed).
 *
 * For programs: every mark is a <g class="dot" data-row data-panel data-kind="ours|theirs"
 * data-value data-deviation> with exact values, the deviation only where there is one. */
#ifndef CT_REPORT_DOTS_H
#define CT_REPORT_DOTS_H

#include "util/text.h"

/* NaN: unknown. */
typedef struct ct_dot {
    double mean, deviation;
} ct_dot;

typedef struct ct_dot_place {
    ct_dot ours, theirs;
    const char *word; /* in the place of a mark: "diverged"; NULL: none */
} ct_dot_place;

typedef struct ct_dot_row {
    char group[160]; /* rows of the same one stand below its name; "": none */
    char label[400];
} ct_dot_row;

typedef struct ct_dots {
    const char *id, *title;
    const char *axis_name;      /* of the values */
    const char *ours, *theirs;  /* the legend */
    const char *note;           /* small lettering below; "": none */
    const char *const *panels;  /* [n_panels] headings; "": none */
    const ct_dot_row *rows;     /* [n_rows] */
    const ct_dot_place *places; /* [n_rows][n_panels] */
    int n_panels, n_rows;
} ct_dots;

void ct_dots_draw(const ct_dots *dots, ct_text *out);

#endif
