#include "report/charts.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "report/axis.h"
#include "report/method.h"
#include "report/svg.h"
#include "util/memory.h"

#define MARGIN      10.0
#define CELL        400.0 /* a panel with the names of its rows */
#define GAP         28.0  /* between panels that share those, for the lettering of their ends */
#define GROUP_LINE  24.0
#define HEADING     24.0
#define LEGEND_LINE 20.0
#define BOTTOM      52.0 /* ticks and the axis's name */
#define APART       4.5  /* of two marks of a place, from its middle */
#define MAX_LEFT    212.0
#define MAX_SHARED  260.0
#define ABOVE       19.0 /* a name that stands above its row */

typedef struct frame {
    const ct_dots *dots;
    bool has_theirs, has_deviation, has_headings;
    bool has_own_names; /* every panel has the names of its rows; else the first one of a line */
    bool is_above;      /* they stand above the marks: they are long */
    double names;       /* room for them, left of a panel */
    double top, panel_width, row_height, area_height;
    int n_across, n_blocks; /* panels side by side, and lines of them */
    double width, height;
    int *order;  /* [n_panels][n_rows] rows from the top */
    int *n_used; /* [n_panels] so many of them: a ranking leaves out what has no place in it */
    int n_rows;  /* of the longest panel */
} frame;

static void frame_free(frame *f) {
    ct_free(f->order);
    ct_free(f->n_used);
}

/* One panel: its axis and where it lies. */
typedef struct panel {
    int column;
    ct_axis axis;
    double left, top;
    const int *order; /* [n_rows] */
    int n_rows;
} panel;

static const ct_dot_place *place_of(const ct_dots *d, int row, int column) {
    return &d->places[(size_t)row * (size_t)d->n_panels + (size_t)column];
}

/* ---- order ---- */

static bool is_better(const ct_dots *d, int column, int a, int b) {
    double x = place_of(d, a, column)->ours.mean, y = place_of(d, b, column)->ours.mean;
    return isfinite(x) && (!isfinite(y) || x > y);
}

static bool is_empty(const ct_dots *d, int row, int column) {
    const ct_dot_place *p = place_of(d, row, column);
    return p->word == NULL && !isfinite(p->ours.mean) && !isfinite(p->theirs.mean);
}

/* Rows of a group stay together. Returns how many there are. */
static int rank(const ct_dots *d, int column, int *order) {
    int n = 0;
    for (int k = 0; k < d->n_rows; k++) {
        if (d->is_ranked && is_empty(d, k, column)) continue;
        int at = n++;
        for (;
             at > 0 && d->is_ranked && strcmp(d->rows[order[at - 1]].group, d->rows[k].group) == 0;
             at--) {
            if (!is_better(d, column, k, order[at - 1])) break;
            order[at] = order[at - 1];
        }
        order[at] = k;
    }
    return n;
}

/* The row at the k-th place begins a group. */
static bool begins_group(const ct_dots *d, const int *order, int k) {
    const char *group = d->rows[order[k]].group;
    return group[0] != '\0' && (k == 0 || strcmp(d->rows[order[k - 1]].group, group) != 0);
}

/* No row of its group, of two or more with numbers, is better. */
static bool is_best(const ct_dots *d, int row, int column) {
    int n = 0;
    if (!d->marks_best || !isfinite(place_of(d, row, column)->ours.mean)) return false;
    for (int k = 0; k < d->n_rows; k++) {
        if (strcmp(d->rows[k].group, d->rows[row].group) != 0) continue;
        if (is_better(d, column, k, row)) return false;
        n += isfinite(place_of(d, k, column)->ours.mean);
    }
    return n > 1;
}

/* ---- layout ---- */

static double widest_name(const ct_dots *d) {
    double widest = 0;
    for (int row = 0; row < d->n_rows; row++)
        widest = fmax(widest, CT_FONT_SIZE * ct_markup_width(d->rows[row].label));
    return d->marks_best ? CT_BOLD * widest : widest;
}

static double heading_height(const frame *f) {
    return f->has_headings ? HEADING : 0;
}

static double block_height(const frame *f) {
    return heading_height(f) + f->area_height + BOTTOM;
}

static void look_at_values(frame *f) {
    const ct_dots *d = f->dots;
    for (int k = 0; k < d->n_rows * d->n_panels; k++) {
        const ct_dot_place *p = &d->places[k];
        f->has_theirs = f->has_theirs || !isnan(p->theirs.mean);
        f->has_deviation =
            f->has_deviation || !isnan(p->ours.deviation) || !isnan(p->theirs.deviation);
    }
    for (int k = 0; k < d->n_panels; k++)
        f->has_headings = f->has_headings || d->panels[k][0] != '\0';
}

/* Panels that share their rows' names stand in lines of two or three, others in lines of two. */
static void place_panels(frame *f) {
    int n = f->dots->n_panels;
    double widest = widest_name(f->dots);
    f->has_own_names = n == 1 || f->dots->is_ranked;
    f->is_above = f->has_own_names && widest > MAX_LEFT;
    f->names = f->is_above ? 0 : fmin(MAX_SHARED, widest) + 12;
    if (f->has_own_names) {
        f->n_across = n > 1 ? 2 : 1;
        f->panel_width = CELL - 2 * MARGIN - f->names - 8;
        f->width = f->n_across * CELL;
    } else {
        f->n_across = n > 3 && n % 2 == 0 && n % 3 != 0 ? 2 : n > 3 ? 3 : n;
        f->panel_width = f->n_across == 2 ? 240 : 190;
        f->width = 2 * MARGIN + f->names + f->n_across * (f->panel_width + GAP) - 8;
    }
    f->n_blocks = (n + f->n_across - 1) / f->n_across;
}

/* Draws it if `out` is there; returns its lines. */
static int set_legend(const frame *f, ct_text *out);

static ct_status lay_out(frame *f) {
    const ct_dots *d = f->dots;
    int n_groups = 0;
    CT_TRY(ct_make(&f->order, (size_t)d->n_panels * (size_t)d->n_rows, "a figure"));
    CT_TRY(ct_make(&f->n_used, (size_t)d->n_panels, "a figure"));
    for (int k = 0; k < d->n_panels; k++) {
        int *order = f->order + (size_t)k * (size_t)d->n_rows, n_here = 0;
        f->n_used[k] = rank(d, k, order);
        for (int i = 0; i < f->n_used[k]; i++) n_here += begins_group(d, order, i);
        if (n_here > n_groups) n_groups = n_here;
        if (f->n_used[k] > f->n_rows) f->n_rows = f->n_used[k];
    }
    look_at_values(f);
    place_panels(f);
    f->row_height = (f->has_theirs ? 27 : 22) + (f->is_above ? ABOVE : 0);
    f->area_height = f->row_height * f->n_rows + GROUP_LINE * n_groups + 6;
    f->top = 10 + LEGEND_LINE * set_legend(f, NULL);
    f->height = f->top + f->n_blocks * block_height(f);
    int n_lines = ct_svg_paragraph(NULL, 0, 0, f->width - 2 * MARGIN, d->note);
    if (n_lines > 0) f->height += CT_PARAGRAPH_LINE * n_lines + 8;
    return CT_OK;
}

/* The middle of the marks at the k-th place, from the top of the area. */
static double mark_at(const frame *f, const panel *p, int k) {
    double above = f->is_above ? ABOVE : 0;
    double y = f->row_height * k + above + (f->row_height - above) / 2 + 3;
    for (int i = 0; i <= k; i++) y += begins_group(f->dots, p->order, i) ? GROUP_LINE : 0;
    return y;
}

/* The mean with its whisker. */
static void widen(const ct_dot *dot, ct_range *range) {
    double deviation = isnan(dot->deviation) ? 0 : dot->deviation;
    ct_range_add(range, dot->mean - deviation);
    ct_range_add(range, dot->mean + deviation);
}

static ct_status fit_axis(const frame *f, panel *p) {
    int n = f->dots->n_rows;
    CT_SCOPED_BLOCK(ct_range) ranges = NULL;
    CT_TRY(ct_make(&ranges, (size_t)n, "a figure"));
    for (int row = 0; row < n; row++) {
        const ct_dot_place *place = place_of(f->dots, row, p->column);
        ranges[row] = CT_NO_RANGE;
        widen(&place->ours, &ranges[row]);
        widen(&place->theirs, &ranges[row]);
    }
    ct_range values = ct_range_core(ranges, n, false, NULL);
    ct_axis_fit(values, CT_UNIT_NUMBER, false,
                f->panel_width > 250   ? 6
                : f->panel_width > 170 ? 4
                                       : 3,
                &p->axis);
    ct_axis_tighten(&p->axis, values);
    return CT_OK;
}

static ct_status make_panel(const frame *f, int column, panel *out) {
    int line = column / f->n_across, across = column % f->n_across;
    panel p = {.column = column,
               .top = f->top + line * block_height(f) + heading_height(f),
               .order = f->order + (size_t)column * (size_t)f->dots->n_rows,
               .n_rows = f->n_used[column]};
    p.left = f->has_own_names ? across * CELL + MARGIN + f->names
                              : MARGIN + f->names + across * (f->panel_width + GAP);
    CT_TRY(fit_axis(f, &p));
    *out = p;
    return CT_OK;
}

static double x_at(const frame *f, const panel *p, double value) {
    return p->left + f->panel_width * ct_axis_place(&p->axis, value);
}

/* ---- marks ---- */

/* A line from end to end with a stroke across at both. */
static void draw_whisker(ct_text *out, int style, bool is_theirs, double from, double to,
                         double y) {
    int place = ct_style_place(style);
    const char *colour = ct_style_colour(style), *dash = " stroke-dasharray=\"3 2\"";
    ct_markup_add(out, "<path class='stroke-%d' fill='none' stroke='%s' stroke-width='1.6'", place,
                  colour);
    ct_text_add(out, "%s d=\"M%.2f,%.2fH%.2f\"/>\n", is_theirs ? dash : "", from, y, to);
    ct_markup_add(out,
                  "<path class='stroke-%d' fill='none' stroke='%s' stroke-width='1.6' "
                  "d='M%.2f,%.2fv5M%.2f,%.2fv5'/>\n",
                  place, colour, from, y - 2.5, to, y - 2.5);
}

static void draw_mark(ct_text *out, int style, bool is_theirs, double x, double y,
                      const char *title) {
    if (!is_theirs) {
        ct_style_marker(out, style, x, y, title);
        return;
    }
    ct_markup_add(out,
                  "<path class='paper stroke-%d' transform='translate(%.2f,%.2f)' "
                  "d='M0,-4.4L4.4,0L0,4.4L-4.4,0z' fill='#fff' stroke='%s' stroke-width='1.6'>",
                  CT_COLOUR_PAPER, x, y, ct_style_colour(CT_COLOUR_PAPER));
    if (title != NULL) ct_markup_add(out, "<title>%s</title>", title);
    ct_text_add(out, "</path>\n");
}

static void draw_ring(ct_text *out, int style, double x, double y) {
    ct_markup_add(out,
                  "<circle class='stroke-%d' cx='%.2f' cy='%.2f' r='7.5' fill='none' stroke='%s' "
                  "stroke-width='1.6'/>\n",
                  ct_style_place(style), x, y, ct_style_colour(style));
}

/* What lies off the axis: an arrow at its end, and the value, perhaps further in. */
static void draw_arrow(const frame *f, const panel *p, int style, double value, double y,
                       double aside, ct_text *out) {
    bool is_low = value < p->axis.from;
    double x = is_low ? p->left : p->left + f->panel_width;
    char text[32];
    snprintf(text, sizeof text, "%.4g", value);
    ct_markup_add(out,
                  "<path class='stroke-%d' fill='none' stroke='%s' stroke-width='1.8' "
                  "d='M%.2f,%.2fh%dM%.2f,%.2fl%d,-3.5m%d,7l%d,-3.5'/>\n",
                  ct_style_place(style), ct_style_colour(style), x, y, is_low ? 18 : -18, x, y,
                  is_low ? 5 : -5, 0, is_low ? -5 : 5);
    ct_svg_label(out, is_low ? x + 23 + aside : x - 23 - aside, y + 4.5, is_low ? "start" : "end",
                 "ink", CT_FONT_SMALL, text);
}

static void draw_dot(const frame *f, const panel *p, int k, bool is_theirs, ct_text *out) {
    int row = p->order[k], style = is_theirs ? CT_COLOUR_PAPER : f->dots->rows[row].style;
    const char *kind = is_theirs ? "theirs" : "ours";
    const ct_dot_place *place = place_of(f->dots, row, p->column);
    const ct_dot *dot = is_theirs ? &place->theirs : &place->ours;
    bool has_ring = !is_theirs && is_best(f->dots, row, p->column);
    double y = p->top + mark_at(f, p, k);
    char title[600];
    if (!isfinite(dot->mean)) return;
    if (f->has_theirs) y += is_theirs ? APART : -APART;
    ct_markup_add(out,
                  "<g class='dot' data-row='%d' data-panel='%d' data-kind='%s' data-value='%e'",
                  row, p->column, kind, dot->mean);
    if (isfinite(dot->deviation)) ct_markup_add(out, " data-deviation='%e'", dot->deviation);
    ct_markup_add(out, has_ring ? " data-best='1'>\n" : ">\n");
    snprintf(title, sizeof title, "%.300s, %s: %.6g", f->dots->rows[row].label, kind, dot->mean);
    if (dot->mean < p->axis.from || dot->mean > p->axis.to) {
        draw_arrow(f, p, style, dot->mean, y, is_theirs ? 44 : 0, out);
    } else {
        if (isfinite(dot->deviation) && dot->deviation > 0)
            draw_whisker(out, style, is_theirs, x_at(f, p, dot->mean - dot->deviation),
                         x_at(f, p, dot->mean + dot->deviation), y);
        draw_mark(out, style, is_theirs, x_at(f, p, dot->mean), y, title);
        if (has_ring) draw_ring(out, style, x_at(f, p, dot->mean), y);
    }
    ct_text_add(out, "</g>\n");
}

/* ---- the rest ---- */

static void draw_axis(const frame *f, const panel *p, ct_text *out) {
    char text[32];
    double bottom = p->top + f->area_height;
    for (int k = 0; k < p->axis.n_ticks; k++) {
        double x = x_at(f, p, p->axis.tick[k]);
        ct_axis_letter(&p->axis, p->axis.tick[k], text, sizeof text);
        ct_svg_line(out, "grid", "", x, p->top, x, bottom);
        ct_svg_label(out, x, bottom + 17, "middle", "soft", CT_FONT_SIZE, text);
    }
    ct_svg_line(out, "axis", "", p->left, bottom, p->left + f->panel_width, bottom);
    /* Panels that share the names of their rows share that of the axis too. */
    int first = p->column - p->column % f->n_across;
    int n = f->dots->n_panels - first < f->n_across ? f->dots->n_panels - first : f->n_across;
    double width = n * f->panel_width + (n - 1) * GAP;
    if (f->has_own_names) width = f->panel_width;
    bool fits = CT_FONT_SIZE * ct_markup_width(f->dots->axis_name) < width + GAP - 8;
    if (f->has_own_names || p->column == first)
        ct_svg_axis_name(out, p->left + (fits ? width / 2 : width), bottom + 38,
                         fits ? "middle" : "end", f->dots->axis_name, "");
}

/* The names of the rows, the best ones' in bold where they are the panel's own, and those of the
 * groups. */
static void draw_names(const frame *f, const panel *p, ct_text *out) {
    double first = p->left - f->names;
    for (int k = 0; k < p->n_rows; k++) {
        int row = p->order[k];
        const ct_dot_row *r = &f->dots->rows[row];
        double y = p->top + mark_at(f, p, k),
               room = f->is_above ? CELL - 2 * MARGIN : f->names - 12;
        bool is_bold = f->has_own_names && is_best(f->dots, row, p->column);
        double top = y - (f->row_height + (f->is_above ? ABOVE : 0)) / 2;
        if (begins_group(f->dots, p->order, k)) {
            ct_svg_text(out, first, top - 5, "start", true, f->panel_width + f->names, r->group);
            if (k > 0)
                ct_svg_line(out, "grid", "", first, top - GROUP_LINE + 2, p->left + f->panel_width,
                            top - GROUP_LINE + 2);
        }
        if (f->is_above)
            ct_svg_text(out, p->left, y - ABOVE + 5, "start", is_bold, room, r->label);
        else
            ct_svg_text(out, p->left - 12, y + 4.5, "end", is_bold, room, r->label);
    }
}

static void draw_panel(const frame *f, const panel *p, ct_text *out) {
    double middle = p->left + f->panel_width / 2, room = f->panel_width + GAP - 6;
    if (f->has_own_names)
        ct_svg_text(out, p->left - f->names, p->top - 8, "start", true, CELL - 2 * MARGIN,
                    f->dots->panels[p->column]);
    else
        ct_svg_text(out, middle, p->top - 8, "middle", false, room, f->dots->panels[p->column]);
    draw_axis(f, p, out);
    if (f->has_own_names || p->column % f->n_across == 0) draw_names(f, p, out);
    for (int k = 0; k < p->n_rows; k++) {
        const ct_dot_place *place = place_of(f->dots, p->order[k], p->column);
        double y = p->top + mark_at(f, p, k);
        /* leads the eye from the row's name to its marks */
        ct_svg_line(out, "grid", " stroke-dasharray=\"1 4\"", p->left, y, p->left + f->panel_width,
                    y);
        if (place->word != NULL)
            ct_svg_label(out, p->left + 6, y + (f->has_theirs ? 0 : 4), "start", "soft",
                         CT_FONT_SMALL, place->word);
        draw_dot(f, p, k, true, out);
        draw_dot(f, p, k, false, out);
    }
}

/* The rows' style where they share one. */
static int legend_style(const ct_dots *d) {
    for (int row = 1; row < d->n_rows; row++)
        if (d->rows[row].style != d->rows[0].style) return CT_COLOUR_OTHER;
    return d->n_rows > 0 ? d->rows[0].style : CT_COLOUR_OTHER;
}

static bool has_best(const ct_dots *d) {
    for (int row = 0; row < d->n_rows; row++)
        for (int k = 0; k < d->n_panels; k++)
            if (is_best(d, row, k)) return true;
    return false;
}

static int set_legend(const frame *f, ct_text *out) {
    const char *const names[] = {f->dots->ours, f->dots->theirs, "best"};
    const bool is_there[] = {true, f->has_theirs, has_best(f->dots)};
    double x = MARGIN;
    int line = 0;
    for (int k = 0; k < 3; k++) {
        int style = k == 1 ? CT_COLOUR_PAPER : legend_style(f->dots);
        double width = 36 + CT_FONT_SIZE * ct_markup_width(names[k]), y = 22 + LEGEND_LINE * line;
        if (!is_there[k]) continue;
        if (x > MARGIN && x + width > f->width - MARGIN) {
            x = MARGIN;
            y += LEGEND_LINE;
            line++;
        }
        if (out != NULL) {
            if (f->has_deviation && k < 2) draw_whisker(out, style, k == 1, x, x + 28, y - 4.5);
            draw_mark(out, style, k == 1, x + 14, y - 4.5, NULL);
            if (k == 2) draw_ring(out, style, x + 14, y - 4.5);
            ct_svg_label(out, x + 36, y, "start", "ink", CT_FONT_SIZE, names[k]);
        }
        x += width + 20;
    }
    return line + 1;
}

ct_status ct_dots_draw(const ct_dots *dots, ct_text *out) {
    CT_SCOPED(frame) f = {.dots = dots};
    CT_TRY(lay_out(&f));
    ct_svg_open(out, dots->id, dots->title, f.width, f.height);
    (void)set_legend(&f, out);
    for (int column = 0; column < dots->n_panels; column++) {
        panel p;
        CT_TRY(make_panel(&f, column, &p));
        draw_panel(&f, &p, out);
    }
    ct_svg_paragraph(out, MARGIN, f.top + f.n_blocks * block_height(&f) + CT_FONT_SMALL,
                     f.width - 2 * MARGIN, dots->note);
    ct_svg_close(out);
    return CT_OK;
}
