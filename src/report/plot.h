/* A chart of curves: lines with markers and dashes, bands, axes with good ticks, a legend.
 *
 * For programs that read the page: the <svg> has data-x-from, data-x-to, data-x-log and the same
 * for y, and data-box="left top width height" of the area between the axes; every curve is a
 * <g class="curve" data-group data-label data-x data-y> with exact values, blank-separated, and
 * holds one <g class="seed" data-seed data-x data-y> for each run behind it. */
#ifndef CT_REPORT_PLOT_H
#define CT_REPORT_PLOT_H

#include <stdint.h>

#include "report/axis.h"
#include "util/text.h"

typedef struct ct_points {
    int n;
    double *x, *y; /* [n] all finite, x ascending */
} ct_points;

/* One of the runs that a curve is the mean of. */
typedef struct ct_strand {
    uint64_t seed;
    ct_points points;
} ct_strand;

typedef struct ct_curve {
    const char *label;
    int style; /* see ct_style_colour */
    ct_points mean;
    double *low, *high; /* [mean.n] the band; NULL: none */
    const ct_strand *strands;
    int n_strands;
} ct_curve;

typedef struct ct_plot {
    const char *id, *title;
    const char *x_name, *y_name; /* of the axes; units are added */
    ct_unit x_unit, y_unit;
    bool may_be_log;          /* the y axis */
    bool is_tight;            /* a logarithmic y axis ends at the values, not at powers of ten */
    bool starts_at_0;         /* the x axis */
    bool has_ticks_at_points; /* the x axis, where there are few: sizes that were tried */
    bool has_no_legend;       /* the page has one for several charts */
    const char *note;         /* small lettering below; sentences end in '\n'. NULL, "": none */
    const ct_curve *curves;
    int n_curves;
} ct_plot;

void ct_plot_draw(const ct_plot *plot, ct_text *out);

#endif
