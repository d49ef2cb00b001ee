/* The charts: what each is given, and what programs that read the page find in it. */
#ifndef CT_REPORT_CHARTS_H
#define CT_REPORT_CHARTS_H

#include "report/axis.h"
#include "util/text.h"

/* ---- plot.c ---- */

/* A chart of curves: lines with markers and dashes, bands, axes with good ticks, a legend.
 *
 * For programs that read the page: the <svg> has data-x-from, data-x-to, data-x-log and the same
 * for y, and data-box="left top width height" of the area between the axes; every curve is a
 * <g class="curve" data-group data-label data-x data-y> with exact values, blank-separated, and
 * holds one <g class="seed" data-seed data-x data-y> for each run behind it. */

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
    int group; /* what a legend switches off together */
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
    bool x_may_be_log;
    const char *note; /* small lettering below; sentences end in '\n'. NULL, "": none */
    const ct_curve *curves;
    int n_curves;
} ct_plot;

void ct_plot_draw(const ct_plot *plot, ct_text *out);

/* ---- dots.c ---- */

/* A chart of dots with whiskers: a line for every row of a table, a panel for every column, and in
 * each place up to two marks: ours (in the row's style) and, below it, the published one that ours
 * is compared with (a hollow diamond in the paper's colour, its whisker dashed). A row that lies so
 * far off that the others would be squashed has an arrow at the panel's end, with its value.
 *
 * For programs: every mark is a <g class="dot" data-row data-panel data-kind="ours|theirs"
 * data-value data-deviation> with exact values, the deviation only where there is one; data-best is
 * there in the best of a panel, or of a group of rows in it. */

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
    int style; /* of its marks, see ct_style_colour */
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
    bool marks_best; /* the highest */
    bool is_ranked;  /* the highest first, in each panel and within each group */
} ct_dots;

ct_status ct_dots_draw(const ct_dots *dots, ct_text *out);

/* ---- ranks.c ---- */

/* Mean ranks on an axis from 1, the best on the left, with names on both sides; bars join those that
 * the critical difference, drawn above, does not tell apart (Demsar, JMLR 7, 2006, figure 1).
 *
 * For programs: <g class="rank" data-label data-value>, <g class="alike" data-from data-to>, and
 * data-difference of the drawing's <g class="ranks">. */
typedef struct ct_rank {
    char label[400];
    double rank;
    int style;
} ct_rank;

typedef struct ct_rank_chart {
    const char *id, *title, *note; /* note: small lettering below */
    const ct_rank *ranks;          /* [n] the best first */
    int n;
    double difference;
} ct_rank_chart;
void ct_ranks_draw(const ct_rank_chart *chart, ct_text *out);

/* What an agent is called where there is room: its number, or its name (names may be NULL). */
void ct_agent_label(char *const *names, int agent, char *out, size_t size);

/* ---- table_chart.c: bubbles for who holds which classes, shades for a confusion matrix ---- */

/* The usual picture of a split: a bubble for every agent and class, its area the number of samples.
 * table: [n_agents][n_classes]. Agents run to the right, classes upwards. `names` (may be NULL):
 * of the classes; agent_names likewise. `heading` ("": none) is drawn above it. */
typedef struct ct_bubbles {
    const char *id, *title, *heading;
    const uint32_t *table;
    int n_agents, n_classes;
    char *const *names, *const *agent_names;
} ct_bubbles;
void ct_bubbles_draw(const ct_bubbles *bubbles, ct_text *out);

/* table: [n_classes][n_classes], rows the true classes, columns what they were taken for; drawn as
 * shares of the row, with numbers where there is room for them. */
typedef struct ct_confusion {
    const char *id, *title;
    const uint32_t *table;
    int n_classes;
    char *const *names;
} ct_confusion;
void ct_confusion_draw(const ct_confusion *confusion, ct_text *out);

/* ---- heat.c ---- */

/* A number for every pair of two options' values, as a shade and in figures; the best has a frame.
 * Further options have a panel for each of their values.
 *
 * For programs: every cell is a <g class="cell" data-panel data-row data-column data-value>, the
 * best with data-best. */
typedef struct ct_heat_cell {
    double value, deviation; /* NaN: unknown */
    const char *word;        /* in the place of a number: "diverged"; NULL: none */
} ct_heat_cell;

typedef struct ct_heat {
    const char *id, *title;
    const char *row_name, *column_name, *value_name;
    const char *note;           /* small lettering below; "": none */
    const char *const *panels;  /* [n_panels] headings; "": none */
    const char *const *rows;    /* [n_rows] */
    const char *const *columns; /* [n_columns] */
    const ct_heat_cell *cells;  /* [n_panels][n_rows][n_columns] */
    int n_panels, n_rows, n_columns;
    int digits;
    bool is_low_best;
} ct_heat;
ct_status ct_heat_draw(const ct_heat *heat, ct_text *out);

/* ---- network.c, network_place.c: the graph of the agents, each shaded by a value ---- */

#define CT_MAX_DRAWN_AGENTS 2048
#define CT_MAX_DRAWN_EDGES  6000

typedef struct ct_network {
    const char *id, *title;
    int n_agents;
    const int (*edges)[2]; /* undirected, each once */
    int n_edges;           /* more than CT_MAX_DRAWN_EDGES are not drawn */
    char *const *names;    /* [n_agents]; NULL: numbers */
    const double *value;   /* [n_agents] 0 .. 1; NaN: unknown. NULL: all are */
    ct_range scale;        /* values at its ends */
} ct_network;

/* Places of the agents in [0, 1] x [0, 1]: a circle if agents are joined to the next one, a grid if
 * they are the rows and columns of one, otherwise such that the graph's distances can be seen
 * (stress majorisation; above 512 agents a circle again). x, y: [n_agents] */
ct_status ct_network_place(const ct_network *network, double *x, double *y);

/* n_agents is at most CT_MAX_DRAWN_AGENTS. */
ct_status ct_network_draw(const ct_network *network, ct_text *out);

#endif
