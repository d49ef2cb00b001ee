#include "report/charts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/svg.h"
#include "util/memory.h"

#define WIDTH       400.0 /* a phone shows it at nearly its size */
#define AREA_HEIGHT 230.0 /* between the axes */
#define RIGHT       16.0
#define BOTTOM      46.0
#define LEGEND_LINE 19.0
#define LEGEND_LEFT 4.0  /* below the y axis's name */
#define SAMPLE      34.0 /* a legend's piece of line with the gap behind it */
#define MAX_CURVES  256  /* of more, none is left off the scale */
#define MAX_MARKERS 10   /* of a curve; where there are more points, some have none */
#define MAX_ENTRIES 32   /* of a legend: nobody tells more curves apart */
#define MAX_LABEL   44   /* characters of a legend's entry */
#define MAX_OFF     2e4  /* where what lies off the area is drawn at most */

typedef struct frame {
    const ct_plot *plot;
    ct_axis x, y;
    double left, top, width, height; /* the area between the axes */
    double full_height;
    ct_text note; /* the plot's, and which curves are off the scale */
} frame;

static void frame_free(frame *f) {
    ct_text_free(&f->note);
}

/* A tick at every point, and some room at both ends; where there are too many, as usual. */
static void fit_to_points(const ct_plot *p, ct_axis *x) {
    double tick[CT_MAX_TICKS];
    int n = 0;
    for (int k = 0; k < p->n_curves; k++)
        for (int i = 0; i < p->curves[k].mean.n; i++) {
            double value = p->curves[k].mean.x[i];
            int at = 0;
            while (at < n && tick[at] < value) at++;
            if (at < n && tick[at] == value) continue;
            if (n == CT_MAX_TICKS) return;
            memmove(tick + at + 1, tick + at, (size_t)(n - at) * sizeof *tick);
            tick[at] = value;
            n++;
        }
    if (n < 2) return;
    double room = 0.06 * (tick[n - 1] - tick[0]), factor = pow(tick[n - 1] / tick[0], 0.06);
    if (!isfinite(room) || (x->is_log && !(tick[0] > 0))) return;
    memcpy(x->tick, tick, sizeof tick);
    x->n_ticks = n;
    x->from = x->is_log ? tick[0] / factor : tick[0] - room;
    x->to = x->is_log ? tick[n - 1] * factor : tick[n - 1] + room;
    x->digits = -2; /* as they are */
}

/* What a curve and its band span. */
static ct_range range_of(const ct_plot *p, const ct_curve *c) {
    ct_range y = CT_NO_RANGE;
    for (int i = 0; i < c->mean.n; i++) {
        ct_range_add(&y, c->mean.y[i]);
        if (c->low == NULL) continue;
        /* A logarithm has no place for what a deviation takes below 0. */
        if (!p->may_be_log || c->low[i] > 0) ct_range_add(&y, c->low[i]);
        ct_range_add(&y, c->high[i]);
    }
    return y;
}

static ct_range range_of_mean(const ct_curve *c) {
    ct_range y = CT_NO_RANGE;
    for (int i = 0; i < c->mean.n; i++) ct_range_add(&y, c->mean.y[i]);
    return y;
}

/* What the axis is made for. Curves that would squash all others are named in the note. */
static ct_range fit_most(frame *f) {
    const ct_plot *p = f->plot;
    ct_range ranges[MAX_CURVES], all = CT_NO_RANGE;
    bool is_off[MAX_CURVES];
    char value[48];
    for (int k = 0; k < p->n_curves; k++) {
        ct_range own = range_of(p, &p->curves[k]);
        ct_range_add(&all, own.low);
        ct_range_add(&all, own.high);
        if (k < MAX_CURVES) ranges[k] = range_of_mean(&p->curves[k]);
    }
    if (p->n_curves > MAX_CURVES) return all;
    bool is_log = p->may_be_log && ct_range_is_for_log(all);
    (void)ct_range_core(ranges, p->n_curves, is_log, is_off);
    ct_range most = CT_NO_RANGE;
    int n_off = 0;
    for (int k = 0; k < p->n_curves; k++) {
        const ct_curve *c = &p->curves[k];
        ct_range own = range_of(p, c);
        if (!is_off[k]) {
            ct_range_add(&most, own.low);
            ct_range_add(&most, own.high);
            continue;
        }
        ct_unit_print(p->y_unit, c->mean.y[c->mean.n - 1], value, sizeof value);
        ct_text_add(&f->note, "%s%s, %s at the end", n_off++ == 0 ? "Off the scale: " : "; ",
                    c->label, value);
    }
    if (n_off > 0) ct_text_add(&f->note, ".\n");
    return most;
}

static void fit_axes(frame *f) {
    const ct_plot *p = f->plot;
    ct_range x = CT_NO_RANGE, y = fit_most(f);
    if (p->starts_at_0) ct_range_add(&x, 0);
    for (int k = 0; k < p->n_curves; k++)
        for (int i = 0; i < p->curves[k].mean.n; i++) ct_range_add(&x, p->curves[k].mean.x[i]);
    ct_axis_fit(x, p->x_unit, p->x_may_be_log, 5, &f->x);
    if (p->has_ticks_at_points) fit_to_points(p, &f->x);
    ct_axis_fit(y, p->y_unit, p->may_be_log, 5, &f->y);
    if (p->note != NULL) ct_text_add(&f->note, "%s", p->note);
    if (p->is_tight && f->y.is_log) ct_axis_tighten(&f->y, y);
}

/* Places the legend's entries in lines; draws them if `out` is there. Returns the lines. */
static int set_legend(const frame *f, double top, ct_text *out) {
    const ct_plot *p = f->plot;
    char text[4 * MAX_LABEL + 8];
    double x = LEGEND_LEFT;
    int line = 0;
    if (p->n_curves < 2) return 0;
    int n = p->n_curves > MAX_ENTRIES ? MAX_ENTRIES : p->n_curves;
    for (int k = 0; k < n; k++) {
        ct_svg_shorten(p->curves[k].label, MAX_LABEL, text, sizeof text);
        double width = SAMPLE + CT_FONT_SIZE * ct_markup_width(text);
        if (x > LEGEND_LEFT && x + width > WIDTH - 4) {
            x = LEGEND_LEFT;
            line++;
        }
        if (out != NULL) {
            double y = top + LEGEND_LINE * line;
            ct_markup_add(out, "<g class='entry' data-group='%d'>\n", p->curves[k].group);
            ct_style_sample(out, p->curves[k].style, x, y - 4.5);
            ct_svg_label(out, x + SAMPLE, y, "start", "ink", CT_FONT_SIZE, text);
            ct_text_add(out, "</g>\n");
        }
        x += width + 16;
    }
    if (n == p->n_curves) return line + 1;
    snprintf(text, sizeof text, "and %d more", p->n_curves - n);
    if (out != NULL)
        ct_svg_label(out, LEGEND_LEFT, top + LEGEND_LINE * (line + 1), "start", "soft",
                     CT_FONT_SIZE, text);
    return line + 2;
}

static void lay_out(frame *f) {
    char text[32];
    double widest = 0;
    for (int k = 0; k < f->y.n_ticks; k++) {
        ct_axis_letter(&f->y, f->y.tick[k], text, sizeof text);
        widest = fmax(widest, ct_markup_width(text));
    }
    f->left = fmax(34, 14 + CT_FONT_SIZE * widest);
    ct_axis_letter(&f->x, f->x.tick[f->x.n_ticks - 1], text, sizeof text);
    double right = fmax(RIGHT, CT_FONT_SIZE * ct_markup_width(text) / 2 + 2);
    f->width = WIDTH - right - f->left;
    f->top = 34 + LEGEND_LINE * set_legend(f, 0, NULL);
    f->height = AREA_HEIGHT;
    f->full_height = f->top + f->height + BOTTOM;
    if (f->note.n > 0)
        f->full_height += CT_PARAGRAPH_LINE *
                          (0.5 + ct_svg_paragraph(NULL, 0, 0, WIDTH - RIGHT - 4, f->note.chars));
}

static double x_at(const frame *f, double value) {
    return f->left + f->width * ct_axis_place(&f->x, value);
}

/* Curves go on outside of the area, where they are not drawn. */
static double y_at(const frame *f, double value) {
    const ct_axis *a = &f->y;
    double part = ct_axis_place(a, value), off = 0;
    if (isfinite(value) && value > a->to)
        off = a->is_log ? log(value / a->to) / log(a->to / a->from)
                        : (value - a->to) / (a->to - a->from);
    else if (isfinite(value) && value < a->from)
        off = a->is_log && value > 0 ? log(value / a->from) / log(a->to / a->from)
              : a->is_log            ? -MAX_OFF
                                     : (value - a->from) / (a->to - a->from);
    off = fmin(fmax(off * f->height, -MAX_OFF), MAX_OFF);
    return f->top + f->height * (1 - part) - off;
}

static bool is_inside(const frame *f, double value) {
    double y = y_at(f, value);
    return y >= f->top - 0.01 && y <= f->top + f->height + 0.01;
}

static void draw_axes(const frame *f, ct_text *out) {
    char text[32];
    double bottom = f->top + f->height;
    for (int k = 0; k < f->y.n_ticks; k++) {
        double y = y_at(f, f->y.tick[k]);
        ct_axis_letter(&f->y, f->y.tick[k], text, sizeof text);
        if (y < bottom - 0.5)
            ct_svg_line(out, "grid", " stroke-width=\"1\"", f->left, y, f->left + f->width, y);
        ct_svg_label(out, f->left - 8, y + 4.5, "end", "soft", CT_FONT_SIZE, text);
    }
    ct_svg_line(out, "axis", " stroke-width=\"1\"", f->left, bottom, f->left + f->width, bottom);
    for (int k = 0; k < f->x.n_ticks; k++) {
        double x = x_at(f, f->x.tick[k]);
        ct_axis_letter(&f->x, f->x.tick[k], text, sizeof text);
        ct_svg_line(out, "axis", " stroke-width=\"1\"", x, bottom, x, bottom + 4);
        ct_svg_label(out, x, bottom + 18, "middle", "soft", CT_FONT_SIZE, text);
    }
    ct_svg_axis_name(out, 4, 16, "start", f->plot->y_name, f->y.label);
    ct_svg_axis_name(out, f->left + f->width / 2, bottom + 38, "middle", f->plot->x_name,
                     f->x.label);
}

static void add_values(ct_text *out, const char *name, const double *values, int n) {
    ct_text_add(out, " data-%s=\"", name);
    for (int i = 0; i < n; i++) ct_markup_add(out, i > 0 ? " %e" : "%e", values[i]);
    ct_text_add(out, "\"");
}

/* From point to point, at these heights. */
static void add_path(const frame *f, const ct_curve *c, const double *y, ct_text *out) {
    for (int i = 0; i < c->mean.n; i++)
        ct_text_add(out, i == 0 ? "M%.2f,%.2f" : "L%.2f,%.2f", x_at(f, c->mean.x[i]),
                    y_at(f, y[i]));
}

static void draw_band(const frame *f, const ct_curve *c, ct_text *out) {
    ct_markup_add(out,
                  "<path class='band fill-%d' data-group='%d' fill='%s' fill-opacity='%g' "
                  "clip-path='url(#%s-area)' d='",
                  ct_style_place(c->style), c->group, ct_style_colour(c->style),
                  0.16 * ct_style_shade(c->style), f->plot->id);
    add_path(f, c, c->high, out);
    for (int i = c->mean.n - 1; i >= 0; i--)
        ct_text_add(out, "L%.2f,%.2f", x_at(f, c->mean.x[i]), y_at(f, c->low[i]));
    ct_text_add(out, "z\"/>\n");
}

static void draw_path(const frame *f, const ct_curve *c, ct_text *out) {
    ct_markup_add(out,
                  "<path class='line stroke-%d' fill='none' stroke='%s' stroke-width='2' "
                  "stroke-opacity='%g' stroke-dasharray='%s' stroke-linejoin='round' "
                  "clip-path='url(#%s-area)' d='",
                  ct_style_place(c->style), ct_style_colour(c->style), ct_style_shade(c->style),
                  ct_style_dash(c->style), f->plot->id);
    add_path(f, c, c->mean.y, out);
    ct_text_add(out, "\"/>\n");
}

static void draw_markers(const frame *f, const ct_curve *c, ct_text *out) {
    char x[48], y[48], title[400];
    int step = (c->mean.n + MAX_MARKERS - 1) / MAX_MARKERS;
    /* Curves that lie on each other do not hide each other's markers. */
    int first = step > 1 ? (ct_style_place(c->style) * 3) % step : 0;
    for (int i = first; i < c->mean.n; i += step) {
        if (!is_inside(f, c->mean.y[i])) continue;
        ct_unit_print(f->x.unit, c->mean.x[i], x, sizeof x);
        ct_unit_print(f->y.unit, c->mean.y[i], y, sizeof y);
        snprintf(title, sizeof title, "%.120s: %s at %s %s", c->label, y, f->plot->x_name, x);
        ct_style_marker(out, c->style, x_at(f, c->mean.x[i]), y_at(f, c->mean.y[i]), title);
    }
}

static void draw_curve(const frame *f, const ct_curve *c, ct_text *out) {
    ct_markup_add(out, "<g class='curve' data-group='%d' data-label='%s'", c->group, c->label);
    add_values(out, "x", c->mean.x, c->mean.n);
    add_values(out, "y", c->mean.y, c->mean.n);
    if (c->low != NULL) {
        add_values(out, "low", c->low, c->mean.n);
        add_values(out, "high", c->high, c->mean.n);
    }
    ct_text_add(out, ">\n");
    for (int k = 0; k < c->n_strands; k++) {
        ct_markup_add(out, "<g class='seed' data-seed='%" PRIu64 "'", c->strands[k].seed);
        add_values(out, "x", c->strands[k].points.x, c->strands[k].points.n);
        add_values(out, "y", c->strands[k].points.y, c->strands[k].points.n);
        ct_text_add(out, "/>\n");
    }
    if (c->mean.n > 1) draw_path(f, c, out);
    draw_markers(f, c, out);
    ct_text_add(out, "</g>\n");
}

/* What a program needs to find a value from a place and back. */
static void add_facts(const frame *f, ct_text *out) {
    ct_markup_add(out,
                  "<g class='facts' data-box='%.2f %.2f %.2f %.2f' data-x-log='%d' "
                  "data-y-log='%d' data-x-unit='%s' data-y-unit='%s' data-x-from='%e' "
                  "data-x-to='%e' data-y-from='%e' data-y-to='%e' data-x-divisor='%e' "
                  "data-y-divisor='%e' data-x-name='%s'/>\n",
                  f->left, f->top, f->width, f->height, f->x.is_log, f->y.is_log, f->x.label,
                  f->y.label, f->x.from, f->x.to, f->y.from, f->y.to, f->x.divisor, f->y.divisor,
                  f->plot->x_name);
    ct_markup_add(out,
                  "<clipPath id='%s-area'><rect x='%.2f' y='%.2f' width='%.2f' height='%.2f'/>"
                  "</clipPath>\n",
                  f->plot->id, f->left - 4, f->top - 4, f->width + 8, f->height + 8);
}

void ct_plot_draw(const ct_plot *plot, ct_text *out) {
    CT_SCOPED(frame) f = {.plot = plot};
    fit_axes(&f);
    lay_out(&f);
    if (f.note.failed) out->failed = true;
    ct_svg_open(out, plot->id, plot->title, WIDTH, f.full_height);
    add_facts(&f, out);
    draw_axes(&f, out);
    set_legend(&f, 40, out);
    /* All bands first: none of them tints another curve. */
    for (int k = 0; k < plot->n_curves; k++)
        if (plot->curves[k].low != NULL && plot->curves[k].mean.n > 1)
            draw_band(&f, &plot->curves[k], out);
    for (int k = 0; k < plot->n_curves; k++)
        if (plot->curves[k].mean.n > 0) draw_curve(&f, &plot->curves[k], out);
    if (f.note.n > 0)
        ct_svg_paragraph(out, 4, f.top + f.height + BOTTOM + CT_FONT_SMALL, WIDTH - RIGHT - 4,
                         f.note.chars);
    ct_svg_close(out);
}
