#include "report/charts.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "report/axis.h"
#include "report/svg.h"

#define MARGIN      16.0
#define GAP         28.0 /* between panels, for the lettering of their ends */
#define GROUP_LINE  22.0
#define HEADING     24.0
#define LEGEND_LINE 30.0
#define BOTTOM      52.0 /* ticks and the axis's name */
#define APART       4.5  /* of two marks of a place, from its middle */
#define MAX_LEFT    260.0

typedef struct frame {
    const ct_dots *dots;
    bool has_theirs, has_deviation, has_headings;
    double left, top, panel_width, row_height, area_height;
    int n_across, n_blocks; /* panels side by side, and lines of them */
    double width, height;
} frame;

/* One panel: its axis and where it lies. */
typedef struct panel {
    int column;
    ct_axis axis;
    double left, top;
} panel;

static const ct_dot_place *place_of(const ct_dots *d, int row, int column) {
    return &d->places[(size_t)row * (size_t)d->n_panels + (size_t)column];
}

static bool begins_group(const ct_dots *d, int row) {
    const char *group = d->rows[row].group;
    return group[0] != '\0' && (row == 0 || strcmp(d->rows[row - 1].group, group) != 0);
}

/* ---- layout ---- */

static double left_room(const ct_dots *d) {
    double widest = 0;
    for (int row = 0; row < d->n_rows; row++) {
        double indent = d->rows[row].group[0] != '\0' ? 10 : 0;
        widest = fmax(widest, CT_FONT_SIZE * ct_markup_width(d->rows[row].label) + indent);
        widest = fmax(widest, 1.06 * CT_FONT_SIZE * ct_markup_width(d->rows[row].group));
    }
    return fmin(MAX_LEFT, widest) + MARGIN + 12;
}

static int count_groups(const ct_dots *d) {
    int n = 0;
    for (int row = 0; row < d->n_rows; row++) n += begins_group(d, row);
    return n;
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

static void lay_out(frame *f) {
    const ct_dots *d = f->dots;
    look_at_values(f);
    f->n_across = d->n_panels > 3 && d->n_panels % 2 == 0 && d->n_panels % 3 != 0 ? 2
                  : d->n_panels > 3                                               ? 3
                                                                                  : d->n_panels;
    f->n_blocks = (d->n_panels + f->n_across - 1) / f->n_across;
    f->panel_width = f->n_across == 1 ? 340 : f->n_across == 2 ? 240 : 190;
    f->left = left_room(d);
    f->row_height = f->has_theirs ? 27 : 22;
    f->area_height = f->row_height * d->n_rows + GROUP_LINE * count_groups(d) + 6;
    f->top = 8 + LEGEND_LINE;
    f->width = f->left + f->n_across * f->panel_width + (f->n_across - 1) * GAP + MARGIN;
    f->height = f->top + f->n_blocks * block_height(f);
    int n_lines = ct_svg_paragraph(NULL, 0, 0, f->width - 2 * MARGIN, d->note);
    if (n_lines > 0) f->height += CT_PARAGRAPH_LINE * n_lines + 8;
}

/* The middle of a row, from the top of the area. */
static double row_at(const frame *f, int row) {
    double y = f->row_height * (row + 0.5) + 3;
    for (int k = 0; k <= row; k++) y += begins_group(f->dots, k) ? GROUP_LINE : 0;
    return y;
}

/* The mean with its whisker. */
static void widen(const ct_dot *dot, ct_range *range) {
    double deviation = isnan(dot->deviation) ? 0 : dot->deviation;
    ct_range_add(range, dot->mean - deviation);
    ct_range_add(range, dot->mean + deviation);
}

static panel make_panel(const frame *f, int column) {
    ct_range values = CT_NO_RANGE;
    for (int row = 0; row < f->dots->n_rows; row++) {
        const ct_dot_place *place = place_of(f->dots, row, column);
        widen(&place->ours, &values);
        widen(&place->theirs, &values);
    }
    panel p = {.column = column};
    int line = column / f->n_across, across = column % f->n_across;
    p.left = f->left + across * (f->panel_width + GAP);
    p.top = f->top + line * block_height(f) + heading_height(f);
    ct_axis_fit(values, CT_UNIT_NUMBER, false, f->n_across == 1 ? 6 : 4, &p.axis);
    ct_axis_tighten(&p.axis, values);
    return p;
}

static double x_at(const frame *f, const panel *p, double value) {
    return p->left + f->panel_width * ct_axis_place(&p->axis, value);
}

/* ---- marks ---- */

/* A line from end to end with a stroke across at both; theirs is dashed. */
static void draw_whisker(ct_text *out, int style, double from, double to, double y) {
    const char *colour = ct_style_colour(style), *dash = " stroke-dasharray=\"3 2\"";
    ct_markup_add(out, "<path class='stroke-%d' fill='none' stroke='%s' stroke-width='1.6'", style,
                  colour);
    ct_text_add(out, "%s d=\"M%.2f,%.2fH%.2f\"/>\n", style > 0 ? dash : "", from, y, to);
    ct_markup_add(out,
                  "<path class='stroke-%d' fill='none' stroke='%s' stroke-width='1.6' "
                  "d='M%.2f,%.2fv5M%.2f,%.2fv5'/>\n",
                  style, colour, from, y - 2.5, to, y - 2.5);
}

static void draw_mark(ct_text *out, int style, double x, double y, const char *title) {
    if (style == 0) {
        ct_style_marker(out, 0, x, y, title);
        return;
    }
    ct_markup_add(out,
                  "<path class='paper stroke-1' transform='translate(%.2f,%.2f)' "
                  "d='M0,-4.4L4.4,0L0,4.4L-4.4,0z' fill='#fff' stroke='%s' stroke-width='1.6'>",
                  x, y, ct_style_colour(1));
    if (title != NULL) ct_markup_add(out, "<title>%s</title>", title);
    ct_text_add(out, "</path>\n");
}

/* Ours has style 0, theirs 1. */
static void draw_dot(const frame *f, const panel *p, int row, int style, ct_text *out) {
    static const char *const kinds[] = {"ours", "theirs"};
    const ct_dot_place *place = place_of(f->dots, row, p->column);
    const ct_dot *dot = style == 0 ? &place->ours : &place->theirs;
    double y = p->top + row_at(f, row);
    char title[600];
    if (!isfinite(dot->mean)) return;
    if (f->has_theirs) y += style == 0 ? -APART : APART;
    ct_markup_add(out,
                  "<g class='dot' data-row='%d' data-panel='%d' data-kind='%s' data-value='%e'",
                  row, p->column, kinds[style], dot->mean);
    if (isfinite(dot->deviation)) ct_markup_add(out, " data-deviation='%e'", dot->deviation);
    ct_text_add(out, ">\n");
    if (isfinite(dot->deviation) && dot->deviation > 0)
        draw_whisker(out, style, x_at(f, p, dot->mean - dot->deviation),
                     x_at(f, p, dot->mean + dot->deviation), y);
    snprintf(title, sizeof title, "%.300s, %s: %.6g", f->dots->rows[row].label, kinds[style],
             dot->mean);
    draw_mark(out, style, x_at(f, p, dot->mean), y, title);
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
}

static void draw_panel(const frame *f, int column, ct_text *out) {
    panel p = make_panel(f, column);
    const char *heading = f->dots->panels[column];
    double size =
        fmin(CT_FONT_SIZE, (f->panel_width + GAP - 8) / fmax(1, ct_markup_width(heading)));
    ct_svg_label(out, p.left + f->panel_width / 2, p.top - 8, "middle", "ink", size, heading);
    draw_axis(f, &p, out);
    for (int row = 0; row < f->dots->n_rows; row++) {
        const ct_dot_place *place = place_of(f->dots, row, column);
        double y = p.top + row_at(f, row);
        /* leads the eye from the row's name to its marks */
        ct_svg_line(out, "grid", " stroke-dasharray=\"1 4\"", p.left, y, p.left + f->panel_width,
                    y);
        if (place->word != NULL)
            ct_svg_label(out, p.left + 6, y + (f->has_theirs ? 0 : 4), "start", "soft",
                         CT_FONT_SMALL, place->word);
        draw_dot(f, &p, row, 1, out);
        draw_dot(f, &p, row, 0, out);
    }
}

/* The names of the rows, and a hair between groups. */
static void draw_rows(const frame *f, int block, ct_text *out) {
    double top = f->top + block * block_height(f) + heading_height(f);
    for (int row = 0; row < f->dots->n_rows; row++) {
        const ct_dot_row *r = &f->dots->rows[row];
        double y = top + row_at(f, row), size = CT_FONT_SIZE;
        double width = ct_markup_width(r->label);
        if (begins_group(f->dots, row)) {
            ct_markup_add(out,
                          "<text class='ink' x='%.2f' y='%.2f' font-size='%g' font-weight='bold' "
                          "fill='#1b242c'>%s</text>\n",
                          MARGIN, y - f->row_height / 2 - 4, CT_FONT_SIZE, r->group);
            if (row > 0)
                ct_svg_line(out, "grid", "", MARGIN, y - f->row_height / 2 - GROUP_LINE,
                            f->width - MARGIN, y - f->row_height / 2 - GROUP_LINE);
        }
        if (width * size > MAX_LEFT) size = MAX_LEFT / width;
        ct_svg_label(out, f->left - 12, y + 4.5, "end", "ink", size, r->label);
    }
}

static void draw_legend(const frame *f, ct_text *out) {
    const char *const names[] = {f->dots->ours, f->dots->theirs};
    double x = MARGIN, y = 24;
    for (int style = 0; style <= f->has_theirs; style++) {
        if (f->has_deviation) draw_whisker(out, style, x, x + 28, y - 4.5);
        draw_mark(out, style, x + 14, y - 4.5, NULL);
        ct_svg_label(out, x + 36, y, "start", "ink", CT_FONT_SIZE, names[style]);
        x += 36 + CT_FONT_SIZE * ct_markup_width(names[style]) + 24;
    }
}

void ct_dots_draw(const ct_dots *dots, ct_text *out) {
    frame f = {.dots = dots};
    lay_out(&f);
    ct_svg_open(out, dots->id, dots->title, f.width, f.height);
    draw_legend(&f, out);
    for (int block = 0; block < f.n_blocks; block++) {
        int n = dots->n_panels - block * f.n_across;
        if (n > f.n_across) n = f.n_across;
        double middle = f.left + (n * f.panel_width + (n - 1) * GAP) / 2;
        draw_rows(&f, block, out);
        ct_svg_axis_name(out, middle, f.top + (block + 1) * block_height(&f) - 14, "middle",
                         dots->axis_name, "");
    }
    for (int column = 0; column < dots->n_panels; column++) draw_panel(&f, column, out);
    ct_svg_paragraph(out, MARGIN, f.top + f.n_blocks * block_height(&f) + CT_FONT_SMALL,
                     f.width - 2 * MARGIN, dots->note);
    ct_svg_close(out);
}
