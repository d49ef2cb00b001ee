/* A heat map of numbers: two options of a sweep, shades and figures in the cells. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/axis.h"
#include "report/charts.h"
#include "report/svg.h"
#include "util/memory.h"

#define WIDTH       400.0
#define MARGIN      10.0
#define HEADING     24.0
#define CELL_HEIGHT 34.0
#define BELOW       50.0 /* labels of the columns, and what they are */
#define KEY         50.0
#define MOST_LEFT   150.0
#define PALE        0.06 /* the lowest value's shade */

typedef struct frame {
    const ct_heat *heat;
    double left, top, cell;
    double panel_height;
    ct_range scale; /* of the shades: without what would squash it */
    double best;    /* of all panels */
} frame;

static const ct_heat_cell *cell_of(const ct_heat *h, int panel, int row, int column) {
    size_t at = ((size_t)panel * (size_t)h->n_rows + (size_t)row) * (size_t)h->n_columns;
    return &h->cells[at + (size_t)column];
}

static bool is_better(const ct_heat *h, double a, double b) {
    return h->is_low_best ? a < b : a > b;
}

static ct_status measure(frame *f) {
    const ct_heat *h = f->heat;
    int n = h->n_panels * h->n_rows * h->n_columns;
    CT_SCOPED_BLOCK(ct_range) values = NULL;
    CT_TRY(ct_make(&values, (size_t)n, "a figure"));
    f->best = NAN;
    for (int k = 0; k < n; k++) {
        double value = h->cells[k].value;
        values[k] = CT_NO_RANGE;
        ct_range_add(&values[k], value);
        if (isfinite(value) && (isnan(f->best) || is_better(h, value, f->best))) f->best = value;
    }
    f->scale = ct_range_core(values, n, false, NULL);
    return CT_OK;
}

static ct_status lay_out(frame *f) {
    const ct_heat *h = f->heat;
    double widest = 0;
    CT_TRY(measure(f));
    for (int k = 0; k < h->n_rows; k++)
        widest = fmax(widest, CT_FONT_SIZE * ct_markup_width(h->rows[k]));
    f->left = MARGIN + 22 + fmin(widest, MOST_LEFT) + 8;
    f->cell = fmin(96, (WIDTH - MARGIN - f->left) / h->n_columns);
    f->top = h->panels[0][0] != '\0' ? 4 + HEADING : 10;
    f->panel_height = h->n_rows * CELL_HEIGHT + BELOW + (f->top > 10 ? HEADING : 0);
    return CT_OK;
}

/* From 0 to 1. */
static double shade_of(const frame *f, double value) {
    double span = f->scale.high - f->scale.low;
    double part = span > 0 ? (value - f->scale.low) / span : 1;
    return PALE + (1 - PALE) * fmin(fmax(part, 0), 1);
}

static void letter_cell(const frame *f, const ct_heat_cell *c, double x, double y, ct_text *out) {
    bool is_known = isfinite(c->value), is_dark = is_known && shade_of(f, c->value) > 0.55;
    char text[32];
    const char *word = c->word != NULL ? c->word : "";
    snprintf(text, sizeof text, "%.*f", f->heat->digits, c->value);
    if (!is_known) snprintf(text, sizeof text, "%.20s", word);
    if (CT_FONT_SMALL * ct_markup_width(text) > f->cell - 2) {
        if (is_known || word[0] == '\0') return;
        snprintf(text, sizeof text, "\xC3\x97"); /* its title says what it stands for */
    }
    ct_markup_add(out,
                  "<text class='%s' x='%.2f' y='%.2f' font-size='%g' text-anchor='middle' "
                  "fill='%s'",
                  is_dark ? "light" : "ink", x + f->cell / 2, y + CELL_HEIGHT / 2 + 4.5,
                  CT_FONT_SMALL, is_dark ? "#fff" : "#1b242c");
    ct_markup_add(
        out, is_known && c->value == f->best ? " font-weight='bold'>%s</text>\n" : ">%s</text>\n",
        text);
}

static void draw_cell(const frame *f, int panel, int row, int column, double x, double y,
                      ct_text *out) {
    const ct_heat *h = f->heat;
    const ct_heat_cell *c = cell_of(h, panel, row, column);
    bool is_known = isfinite(c->value), is_best = is_known && c->value == f->best;
    ct_markup_add(out,
                  "<g class='cell' data-panel='%d' data-row='%s' data-column='%s' data-value='%e'",
                  panel, h->rows[row], h->columns[column], c->value);
    ct_markup_add(out, is_best ? " data-best='1'>" : ">");
    ct_markup_add(out,
                  "<rect class='heat' x='%.2f' y='%.2f' width='%.2f' height='%.2f' "
                  "fill='" CT_HEAT_BLUE "' fill-opacity='%.3f'><title>%s %s, %s %s: ",
                  x, y, f->cell, CELL_HEIGHT, is_known ? shade_of(f, c->value) : 0, h->row_name,
                  h->rows[row], h->column_name, h->columns[column]);
    if (is_known)
        ct_text_add(out, "%.*f", h->digits, c->value);
    else
        ct_markup_add(out, "%s", c->word != NULL ? c->word : "missing");
    if (is_known && isfinite(c->deviation))
        ct_text_add(out, " \xC2\xB1 %.*f", h->digits, c->deviation);
    ct_text_add(out, "</title></rect>\n");
    letter_cell(f, c, x, y, out);
    ct_text_add(out, "</g>\n");
}

static void draw_box(ct_text *out, const char *class, const char *colour, double line, double x,
                     double y, double width, double height) {
    ct_markup_add(out,
                  "<rect class='%s' x='%.2f' y='%.2f' width='%.2f' height='%.2f' fill='none' "
                  "stroke='%s' stroke-width='%g'/>\n",
                  class, x, y, width, height, colour, line);
}

static void letter_panel(const frame *f, double top, ct_text *out) {
    const ct_heat *h = f->heat;
    double bottom = top + h->n_rows * CELL_HEIGHT, widest = 0;
    for (int k = 0; k < h->n_columns; k++)
        widest = fmax(widest, CT_FONT_SIZE * ct_markup_width(h->columns[k]) + 6);
    int step = (int)ceil(fmax(1, widest / f->cell - 1e-9));
    for (int k = 0; k < h->n_columns; k += step)
        ct_svg_label(out, f->left + (k + 0.5) * f->cell, bottom + 17, "middle", "soft",
                     CT_FONT_SIZE, h->columns[k]);
    for (int k = 0; k < h->n_rows; k++)
        ct_svg_text(out, f->left - 8, top + (k + 0.5) * CELL_HEIGHT + 4.5, "end", false, MOST_LEFT,
                    h->rows[k]);
    ct_svg_axis_name(out, f->left + h->n_columns * f->cell / 2, bottom + 37, "middle",
                     h->column_name, "");
    ct_markup_add(out, "<g transform='translate(%.2f,%.2f) rotate(-90)'>\n", MARGIN + 10,
                  (top + bottom) / 2);
    ct_svg_axis_name(out, 0, 0, "middle", h->row_name, "");
    ct_text_add(out, "</g>\n");
}

static void draw_panel(const frame *f, int panel, ct_text *out) {
    const ct_heat *h = f->heat;
    double top = f->top + panel * f->panel_height;
    if (h->panels[panel][0] != '\0')
        ct_svg_text(out, MARGIN, top - 8, "start", true, WIDTH - 2 * MARGIN, h->panels[panel]);
    for (int row = 0; row < h->n_rows; row++)
        for (int column = 0; column < h->n_columns; column++)
            draw_cell(f, panel, row, column, f->left + column * f->cell, top + row * CELL_HEIGHT,
                      out);
    draw_box(out, "axis", "#8896a3", 1, f->left, top, h->n_columns * f->cell,
             h->n_rows * CELL_HEIGHT);
    for (int row = 0; row < h->n_rows; row++)
        for (int column = 0; column < h->n_columns; column++)
            if (cell_of(h, panel, row, column)->value == f->best)
                draw_box(out, "frame", "#1b242c", 2.4, f->left + column * f->cell + 1.5,
                         top + row * CELL_HEIGHT + 1.5, f->cell - 3, CELL_HEIGHT - 3);
    letter_panel(f, top, out);
}

ct_status ct_heat_draw(const ct_heat *heat, ct_text *out) {
    frame f = {.heat = heat};
    char low[32], high[32], what[160];
    CT_TRY(lay_out(&f));
    double key_y = f.top + heat->n_panels * f.panel_height - (f.top > 10 ? HEADING : 0) + 10;
    int n_lines = ct_svg_paragraph(NULL, 0, 0, WIDTH - 2 * MARGIN, heat->note);
    double end = key_y + KEY + (n_lines > 0 ? CT_PARAGRAPH_LINE * n_lines + 4 : 0);
    ct_svg_open(out, heat->id, heat->title, WIDTH, end);
    for (int panel = 0; panel < heat->n_panels; panel++) draw_panel(&f, panel, out);
    snprintf(low, sizeof low, "%.*f", heat->digits, f.scale.low);
    snprintf(high, sizeof high, "%.*f", heat->digits, f.scale.high);
    snprintf(what, sizeof what, "%.120s; framed: the best", heat->value_name);
    if (f.scale.low <= f.scale.high)
        ct_svg_scale(out, heat->id, WIDTH / 2 - 70, key_y, 140, low, high, what);
    ct_svg_paragraph(out, MARGIN, key_y + KEY, WIDTH - 2 * MARGIN, heat->note);
    ct_svg_close(out);
    return CT_OK;
}
