#include "report/charts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/svg.h"

#define WIDTH       460.0
#define AREA_HEIGHT 230.0 /* between the axes */
#define RIGHT       16.0
#define BOTTOM      46.0
#define LEGEND_LINE 19.0
#define LEGEND_LEFT 4.0  /* below the y axis's name */
#define SAMPLE      34.0 /* a legend's piece of line with the gap behind it */
#define MAX_MARKERS 10   /* of a curve; where there are more points, some have none */
#define MAX_LABEL   52   /* characters of a legend's entry */

typedef struct frame {
    const ct_plot *plot;
    ct_axis x, y;
    double left, top, width, height; /* the area between the axes */
    double full_height;
} frame;

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
    double room = 0.06 * (tick[n - 1] - tick[0]);
    if (!isfinite(room)) return;
    memcpy(x->tick, tick, sizeof tick);
    x->n_ticks = n;
    x->from = tick[0] - room;
    x->to = tick[n - 1] + room;
    x->digits = -2; /* as they are */
}

static void fit_axes(frame *f) {
    const ct_plot *p = f->plot;
    ct_range x = CT_NO_RANGE, y = CT_NO_RANGE;
    if (p->starts_at_0) ct_range_add(&x, 0);
    for (int k = 0; k < p->n_curves; k++) {
        const ct_curve *c = &p->curves[k];
        for (int i = 0; i < c->mean.n; i++) {
            ct_range_add(&x, c->mean.x[i]);
            ct_range_add(&y, c->mean.y[i]);
            if (c->low == NULL) continue;
            /* A logarithm has no place for what a deviation takes below 0. */
            if (!p->may_be_log || c->low[i] > 0) ct_range_add(&y, c->low[i]);
            ct_range_add(&y, c->high[i]);
        }
    }
    ct_axis_fit(x, p->x_unit, false, 6, &f->x);
    if (p->has_ticks_at_points) fit_to_points(p, &f->x);
    ct_axis_fit(y, p->y_unit, p->may_be_log, 5, &f->y);
    if (p->is_tight && f->y.is_log) ct_axis_tighten(&f->y, y);
}

static bool begins_character(char c) {
    return ((unsigned char)c & 0xC0) != 0x80;
}

/* The middle is left out: labels of a study differ at their ends. */
static const char *shortened(const char *label, char *out, size_t size) {
    int n_characters = 0, head = 0, tail = (int)strlen(label);
    for (const char *c = label; *c != '\0'; c++) n_characters += begins_character(*c);
    if (n_characters <= MAX_LABEL) {
        snprintf(out, size, "%s", label);
        return out;
    }
    for (int k = 0; k < MAX_LABEL / 2; k++) {
        do head++;
        while (!begins_character(label[head]));
        do tail--;
        while (!begins_character(label[tail]));
    }
    snprintf(out, size, "%.*s\xE2\x80\xA6%s", head, label, label + tail);
    return out;
}

/* Places the legend's entries in lines; draws them if `out` is there. Returns the lines. */
static int set_legend(const frame *f, double top, ct_text *out) {
    const ct_plot *p = f->plot;
    char text[4 * MAX_LABEL + 8];
    double x = LEGEND_LEFT;
    int line = 0;
    if (p->n_curves < 2 || p->has_no_legend) return 0;
    for (int k = 0; k < p->n_curves; k++) {
        shortened(p->curves[k].label, text, sizeof text);
        double width = SAMPLE + CT_FONT_SIZE * ct_markup_width(text);
        if (x > LEGEND_LEFT && x + width > WIDTH - 4) {
            x = LEGEND_LEFT;
            line++;
        }
        if (out != NULL) {
            double y = top + LEGEND_LINE * line;
            ct_markup_add(out, "<g class='entry' data-group='%d'>\n", p->curves[k].style);
            ct_style_sample(out, p->curves[k].style, x, y - 4.5);
            ct_svg_label(out, x + SAMPLE, y, "start", "ink", CT_FONT_SIZE, text);
            ct_text_add(out, "</g>\n");
        }
        x += width + 16;
    }
    return line + 1;
}

static bool has_note(const ct_plot *plot) {
    return plot->note != NULL && plot->note[0] != '\0';
}

static void lay_out(frame *f) {
    char text[32];
    double widest = 0;
    for (int k = 0; k < f->y.n_ticks; k++) {
        ct_axis_letter(&f->y, f->y.tick[k], text, sizeof text);
        widest = fmax(widest, ct_markup_width(text));
    }
    f->left = fmax(34, 14 + CT_FONT_SIZE * widest);
    f->width = WIDTH - RIGHT - f->left;
    f->top = 34 + LEGEND_LINE * set_legend(f, 0, NULL);
    f->height = AREA_HEIGHT + (f->plot->has_no_legend ? 2 * LEGEND_LINE : 0);
    f->full_height = f->top + f->height + BOTTOM;
    if (has_note(f->plot))
        f->full_height += CT_PARAGRAPH_LINE *
                          (0.5 + ct_svg_paragraph(NULL, 0, 0, WIDTH - RIGHT - 4, f->plot->note));
}

static double x_at(const frame *f, double value) {
    return f->left + f->width * ct_axis_place(&f->x, value);
}

static double y_at(const frame *f, double value) {
    return f->top + f->height * (1 - ct_axis_place(&f->y, value));
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
                  "<path class='band fill-%d' data-group='%d' fill='%s' fill-opacity='0.16' d='",
                  c->style % CT_N_COLOURS, c->style, ct_style_colour(c->style));
    add_path(f, c, c->high, out);
    for (int i = c->mean.n - 1; i >= 0; i--)
        ct_text_add(out, "L%.2f,%.2f", x_at(f, c->mean.x[i]), y_at(f, c->low[i]));
    ct_text_add(out, "z\"/>\n");
}

static void draw_path(const frame *f, const ct_curve *c, ct_text *out) {
    ct_markup_add(out,
                  "<path class='line stroke-%d' fill='none' stroke='%s' stroke-width='2' "
                  "stroke-dasharray='%s' stroke-linejoin='round' d='",
                  c->style % CT_N_COLOURS, ct_style_colour(c->style), ct_style_dash(c->style));
    add_path(f, c, c->mean.y, out);
    ct_text_add(out, "\"/>\n");
}

static void draw_markers(const frame *f, const ct_curve *c, ct_text *out) {
    char x[48], y[48], title[400];
    int step = (c->mean.n + MAX_MARKERS - 1) / MAX_MARKERS;
    /* Curves that lie on each other do not hide each other's markers. */
    int first = step > 1 ? (c->style * 3) % step : 0;
    for (int i = first; i < c->mean.n; i += step) {
        ct_unit_print(f->x.unit, c->mean.x[i], x, sizeof x);
        ct_unit_print(f->y.unit, c->mean.y[i], y, sizeof y);
        snprintf(title, sizeof title, "%.120s: %s at %s %s", c->label, y, f->plot->x_name, x);
        ct_style_marker(out, c->style, x_at(f, c->mean.x[i]), y_at(f, c->mean.y[i]), title);
    }
}

static void draw_curve(const frame *f, const ct_curve *c, ct_text *out) {
    ct_markup_add(out, "<g class='curve' data-group='%d' data-label='%s'", c->style, c->label);
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
}

void ct_plot_draw(const ct_plot *plot, ct_text *out) {
    frame f = {.plot = plot};
    fit_axes(&f);
    lay_out(&f);
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
    if (has_note(plot))
        ct_svg_paragraph(out, 4, f.top + f.height + BOTTOM + CT_FONT_SMALL, WIDTH - RIGHT - 4,
                         plot->note);
    ct_svg_close(out);
}
