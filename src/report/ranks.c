#include <math.h>
#include <stdio.h>

#include "report/charts.h"
#include "report/svg.h"

#define WIDTH  720.0
#define SIDE   230.0 /* for names */
#define TOP    64.0  /* the axis */
#define LINE   24.0
#define BAR    8.0  /* between bars */
#define GAP    16.0 /* between the axis and what is below */
#define MARGIN 12.0

typedef struct frame {
    const ct_rank_chart *chart;
    int n_bars;
    double left, right, last; /* of the axis; its highest rank */
    double names;             /* the first line of names */
} frame;

static double place(const frame *f, double rank) {
    return f->left + (rank - 1) / (f->last - 1) * (f->right - f->left);
}

/* The k-th longest run of ranks that are not told apart, from `first` on; false: no more. */
static bool next_group(const ct_rank_chart *c, int *first, int *end) {
    for (int k = *first; k < c->n; k++) {
        int last = k;
        while (last + 1 < c->n && c->ranks[last + 1].rank - c->ranks[k].rank < c->difference)
            last++;
        if (last == k || last < *end) continue; /* alone, or inside the one before */
        *first = k;
        *end = last + 1;
        return true;
    }
    return false;
}

static int count_groups(const ct_rank_chart *c) {
    int n = 0;
    for (int first = 0, end = 0; next_group(c, &first, &end); first++) n++;
    return n;
}

static void draw_axis(const frame *f, ct_text *out) {
    char text[32];
    int step = f->last > 24 ? 5 : f->last > 12 ? 2 : 1;
    ct_svg_line(out, "axis", "", f->left, TOP, f->right, TOP);
    for (int k = 1; k <= (int)f->last; k++) {
        bool is_named = k == 1 || k % step == 0;
        ct_svg_line(out, "axis", "", place(f, k), TOP, place(f, k), TOP - (is_named ? 8 : 4));
        snprintf(text, sizeof text, "%d", k);
        if (is_named) ct_svg_label(out, place(f, k), TOP - 12, "middle", "soft", 12, text);
    }
}

/* The critical difference, to scale. */
static void draw_difference(const frame *f, ct_text *out) {
    char text[64];
    double to = fmin(place(f, 1 + f->chart->difference), WIDTH - MARGIN);
    ct_svg_line(out, "axis", "", f->left, 26, to, 26);
    ct_svg_line(out, "axis", "", f->left, 22, f->left, 30);
    ct_svg_line(out, "axis", "", to, 22, to, 30);
    snprintf(text, sizeof text, "critical difference %.2f", f->chart->difference);
    ct_svg_label(out, f->left, 17, "start", "soft", 12, text);
}

static void draw_groups(const frame *f, ct_text *out) {
    const ct_rank_chart *c = f->chart;
    double y = TOP + GAP / 2;
    for (int first = 0, end = 0; next_group(c, &first, &end); first++, y += BAR) {
        double from = c->ranks[first].rank, to = c->ranks[end - 1].rank;
        ct_markup_add(out, "<g class='alike' data-from='%e' data-to='%e'>", from, to);
        ct_svg_line(out, "axis", " stroke-width=\"4\"", place(f, from) - 3, y, place(f, to) + 3, y);
        ct_text_add(out, "</g>\n");
    }
}

/* The better half has its names on the left, the other on the right, each from the outside in. */
static void draw_rank(const frame *f, int k, ct_text *out) {
    const ct_rank *r = &f->chart->ranks[k];
    int n_left = (f->chart->n + 1) / 2, line = k < n_left ? k : f->chart->n - 1 - k;
    bool is_left = k < n_left;
    double x = place(f, r->rank), y = f->names + LINE * line;
    double side = is_left ? f->left - 14 : f->right + 14;
    char text[420];
    ct_markup_add(out, "<g class='rank' data-label='%s' data-value='%e'>", r->label, r->rank);
    ct_svg_line(out, "grid", "", x, TOP, x, y);
    ct_svg_line(out, "grid", "", x, y, side, y);
    ct_style_marker(out, r->style, x, TOP, r->label);
    ct_svg_text(out, is_left ? side - 4 : side + 4, y + 4, is_left ? "end" : "start", false,
                SIDE - 64, r->label);
    snprintf(text, sizeof text, "%.2f", r->rank);
    ct_svg_label(out, side + (is_left ? 14 : -14), y - 3, is_left ? "start" : "end", "soft", 11,
                 text);
    ct_text_add(out, "</g>\n");
}

void ct_ranks_draw(const ct_rank_chart *c, ct_text *out) {
    frame f = {.chart = c,
               .n_bars = count_groups(c),
               .left = SIDE,
               .right = WIDTH - SIDE,
               .last = c->n > 2 ? c->n : 2};
    f.names = TOP + GAP + BAR * f.n_bars + LINE / 2;
    double bottom = f.names + LINE * ((c->n + 1) / 2);
    int n_lines = ct_svg_paragraph(NULL, MARGIN, 0, WIDTH - 2 * MARGIN, c->note);
    ct_svg_open(out, c->id, c->title, WIDTH, bottom + CT_PARAGRAPH_LINE * n_lines + MARGIN);
    ct_markup_add(out, "<g class='ranks' data-difference='%e'>\n", c->difference);
    draw_difference(&f, out);
    draw_axis(&f, out);
    for (int k = 0; k < c->n; k++) draw_rank(&f, k, out);
    draw_groups(&f, out);
    ct_text_add(out, "</g>\n");
    ct_svg_paragraph(out, MARGIN, bottom + 4, WIDTH - 2 * MARGIN, c->note);
    ct_svg_close(out);
}
