#include "report/charts.h"

#include <math.h>
#include <stdio.h>

#include "report/axis.h"
#include "report/svg.h"
#include "util/memory.h"

#define SIDE   336.0 /* of the square that agents' centres lie in */
#define MARGIN 32.0
#define MIDDLE (MARGIN + SIDE / 2)
#define BOW    0.2  /* how far an edge bends, as a part of its length */
#define SPREAD 0.02 /* least difference between the ends of the scale: noise is not blown up */

typedef struct frame {
    const ct_network *g;
    double *x, *y; /* [n_agents] */
    double radius;
    ct_range scale;
} frame;

static void fit_scale(frame *f) {
    ct_range *s = &f->scale;
    if (s->low > s->high || s->high - s->low >= SPREAD) return;
    s->low = fmin(fmax(0, (s->low + s->high - SPREAD) / 2), 1 - SPREAD);
    s->high = s->low + SPREAD;
}

/* Agents that are near each other are drawn small enough not to touch. */
static double fitting_radius(const frame *f) {
    double nearest = SIDE;
    for (int i = 0; i < f->g->n_agents; i++)
        for (int j = 0; j < i; j++)
            nearest = fmin(nearest, hypot(f->x[i] - f->x[j], f->y[i] - f->y[j]));
    return fmax(2, fmin(19, 0.38 * nearest));
}

/* An edge that would run through other agents, as along the rows of a torus, makes a bow. */
static bool passes_agents(const frame *f, int a, int b) {
    double dx = f->x[b] - f->x[a], dy = f->y[b] - f->y[a], length = hypot(dx, dy);
    if (f->g->n_agents > 300) return false;
    for (int k = 0; k < f->g->n_agents && length > 0; k++) {
        if (k == a || k == b) continue;
        double px = f->x[k] - f->x[a], py = f->y[k] - f->y[a];
        double along = (px * dx + py * dy) / length, off = fabs(px * dy - py * dx) / length;
        if (along > 0 && along < length && off < 0.5 * f->radius) return true;
    }
    return false;
}

static void draw_edges(const frame *f, ct_text *out) {
    const ct_network *g = f->g;
    double width = g->n_edges > 400 ? 0.5 : 1.2;
    if (g->n_edges > CT_MAX_DRAWN_EDGES) return;
    ct_markup_add(out,
                  "<path class='edges' data-edges='%d' fill='none' stroke='#8896a3' "
                  "stroke-width='%g' d='",
                  g->n_edges, width);
    for (int e = 0; e < g->n_edges; e++) {
        int a = g->edges[e][0], b = g->edges[e][1];
        double dx = f->x[b] - f->x[a], dy = f->y[b] - f->y[a];
        ct_text_add(out, "M%.1f,%.1f", f->x[a], f->y[a]);
        if (passes_agents(f, a, b)) {
            double mid_x = f->x[a] + 0.5 * dx, mid_y = f->y[a] + 0.5 * dy;
            double outward = (mid_x - MIDDLE) * -dy + (mid_y - MIDDLE) * dx;
            double bend = outward > 1 ? -BOW : BOW; /* towards the middle */
            ct_text_add(out, "Q%.1f,%.1f ", mid_x - bend * dy, mid_y + bend * dx);
        } else {
            ct_text_add(out, "L");
        }
        ct_text_add(out, "%.1f,%.1f", f->x[b], f->y[b]);
    }
    ct_text_add(out, "\"/>\n");
}

static double shade_of(const frame *f, double value) {
    if (!isfinite(value)) return 0;
    return 0.06 + 0.94 * (value - f->scale.low) / (f->scale.high - f->scale.low);
}

/* The agent's number, and where there is room its value, both in the circle. */
static void letter_agent(const frame *f, int i, double value, ct_text *out) {
    bool is_dark = shade_of(f, value) > 0.5;
    const char *class = is_dark ? "light" : "ink", *ink = is_dark ? "#fff" : "#1b242c";
    bool has_value = isfinite(value) && f->radius >= 15;
    if (f->radius < 8) return;
    double size = fmin(12, f->radius * 0.75);
    ct_markup_add(out,
                  "<text class='%s' x='%.1f' y='%.1f' font-size='%.1f' text-anchor='middle' "
                  "fill='%s'",
                  class, f->x[i], f->y[i] + (has_value ? -2 : 0.36 * size),
                  has_value ? CT_FONT_SMALL : size, ink);
    ct_markup_add(out, has_value ? " fill-opacity='0.8'>%d</text>\n" : ">%d</text>\n", i);
    if (!has_value) return;
    ct_markup_add(out,
                  "<text class='%s' x='%.1f' y='%.1f' font-size='12' font-weight='bold' "
                  "text-anchor='middle' fill='%s'>%.0f</text>\n",
                  class, f->x[i], f->y[i] + 10.5, ink, 100 * value);
}

static void draw_agent(const frame *f, int i, ct_text *out) {
    double value = f->g->value != NULL ? f->g->value[i] : NAN;
    bool is_known = isfinite(value);
    char who[96];
    ct_agent_label(f->g->names, i, who, sizeof who);
    ct_markup_add(out,
                  "<g class='agent' data-agent='%d' data-value='%e'><circle class='paper node' "
                  "cx='%.1f' cy='%.1f' r='%.1f' fill='#fff' stroke='#52606d' stroke-width='%g'",
                  i, value, f->x[i], f->y[i], f->radius, f->radius > 5 ? 1.2 : 0.6);
    ct_markup_add(out, is_known ? "/>\n" : " stroke-dasharray='3 2'/>\n");
    ct_markup_add(out,
                  "<circle class='heat' cx='%.1f' cy='%.1f' r='%.1f' fill='" CT_HEAT_BLUE
                  "' fill-opacity='%.3f'><title>%s: ",
                  f->x[i], f->y[i], f->radius, shade_of(f, value), who);
    if (is_known)
        ct_text_add(out, "%.2f %%</title></circle>\n", 100 * value);
    else
        ct_text_add(out, "not tested</title></circle>\n");
    letter_agent(f, i, value, out);
    ct_text_add(out, "</g>\n");
}

static void draw_all(const frame *f, ct_text *out) {
    double width = SIDE + 2 * MARGIN, key_y = SIDE + 2 * MARGIN - 6;
    char low[16], high[16];
    bool has_scale = f->g->value != NULL && f->scale.low <= f->scale.high;
    ct_svg_open(out, f->g->id, f->g->title, width, key_y + (has_scale ? 34 : 0));
    draw_edges(f, out);
    for (int i = 0; i < f->g->n_agents; i++) draw_agent(f, i, out);
    if (has_scale) {
        snprintf(low, sizeof low, "%.1f %%", 100 * f->scale.low);
        snprintf(high, sizeof high, "%.1f %%", 100 * f->scale.high);
        ct_svg_scale(out, f->g->id, width / 2 - 60, key_y, 120, low, high,
                     "accuracy of the agent's own model");
    }
    ct_svg_close(out);
}

ct_status ct_network_draw(const ct_network *network, ct_text *out) {
    size_t n = (size_t)network->n_agents;
    CT_SCOPED_BLOCK(double) place = NULL;
    CT_TRY(ct_make(&place, 2 * n, "a drawing"));
    frame f = {.g = network, .scale = network->scale, .x = place, .y = place + n};
    CT_TRY(ct_network_place(network, f.x, f.y));
    for (size_t i = 0; i < n; i++) {
        f.x[i] = MARGIN + SIDE * f.x[i];
        f.y[i] = MARGIN - 6 + SIDE * f.y[i];
    }
    f.radius = fitting_radius(&f);
    fit_scale(&f);
    draw_all(&f, out);
    return CT_OK;
}
