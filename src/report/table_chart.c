#include "report/charts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/svg.h"

#define MAX_NAME 14 /* characters of a class's name beside a chart */

/* Pixels from one bubble, or cell, to the next: as many as fit a page's width, within bounds. */
static double cell_size(int n, double width, double lowest, double highest) {
    return fmin(highest, fmax(lowest, width / n));
}

/* Letter every so many-th row or column, so that lettering has `room` pixels. */
static int letter_step(double cell, double room) {
    static const int steps[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
        if (cell * steps[k] >= room) return steps[k];
    return 5000;
}

/* A class as it is lettered: its name, cut, or its number. */
static void class_label(char *const *names, int class, char *out, size_t size) {
    if (names == NULL || names[class][0] == '\0') {
        snprintf(out, size, "%d", class);
        return;
    }
    int n = 0, characters = 0;
    const char *name = names[class];
    for (; name[n] != '\0' && characters < MAX_NAME; n++)
        characters += ((unsigned char)name[n + 1] & 0xC0) != 0x80;
    snprintf(out, size, name[n] == '\0' ? "%.*s" : "%.*s\xE2\x80\xA6", n, name);
}

static double widest_label(char *const *names, int n_classes) {
    double widest = 0;
    char text[80];
    for (int c = 0; c < n_classes; c++) {
        class_label(names, c, text, sizeof text);
        widest = fmax(widest, ct_markup_width(text));
    }
    return widest;
}

static void draw_box(ct_text *out, double left, double top, double width, double height) {
    ct_markup_add(out,
                  "<rect class='axis' x='%.2f' y='%.2f' width='%.2f' height='%.2f' fill='none' "
                  "stroke='#8896a3'/>\n",
                  left, top, width, height);
}

/* A line of lettering that reads upwards. */
static void draw_upright(ct_text *out, double x, double y, const char *anchor, const char *class,
                         const char *text) {
    ct_markup_add(out, "<g transform='translate(%.2f,%.2f) rotate(-90)'>\n", x, y);
    ct_svg_label(out, 0, 0, anchor, class, CT_FONT_SIZE, text);
    ct_text_add(out, "</g>\n");
}

/* ---- bubbles ---- */

#define DRAWING     400.0 /* wide; more agents than fit stand in several lines */
#define LEAST_CELL  5.0
#define AGENTS_LINE 26.0 /* their numbers, below each line */

typedef struct bubble_frame {
    const ct_bubbles *b;
    double cell, left, top, width, height; /* of the first line's area */
    int n_across, n_lines;                 /* agents of a line, and lines */
    uint32_t largest;
} bubble_frame;

static uint32_t largest_of(const uint32_t *table, size_t n) {
    uint32_t largest = 1;
    for (size_t k = 0; k < n; k++)
        if (table[k] > largest) largest = table[k];
    return largest;
}

/* The largest bubble nearly fills its cell; area is proportional to the count, and what is there at
 * all can be seen. */
static double radius_of(const bubble_frame *f, uint32_t count) {
    double r = 0.48 * f->cell * sqrt((double)count / f->largest);
    return count == 0 ? 0 : fmax(r, 0.6);
}

static double agent_x(const bubble_frame *f, int agent) {
    return f->left + (agent % f->n_across + 0.5) * f->cell;
}

static double line_top(const bubble_frame *f, int line) {
    return f->top + line * (f->height + AGENTS_LINE);
}

static double class_y(const bubble_frame *f, int line, int class) {
    return line_top(f, line) + (f->b->n_classes - 1 - class + 0.5) * f->cell;
}

static void letter_bubbles(const bubble_frame *f, ct_text *out) {
    const ct_bubbles *b = f->b;
    char text[80];
    int step_x = letter_step(f->cell, 26), step_y = letter_step(f->cell, 17);
    for (int a = 0; a < b->n_agents; a += step_x) {
        snprintf(text, sizeof text, "%d", a);
        ct_svg_label(out, agent_x(f, a), line_top(f, a / f->n_across) + f->height + 16, "middle",
                     "soft", CT_FONT_SIZE, text);
    }
    for (int line = 0; line < f->n_lines; line++) {
        for (int c = 0; c < b->n_classes; c += step_y) {
            class_label(b->names, c, text, sizeof text);
            ct_svg_label(out, f->left - 7, class_y(f, line, c) + 4.5, "end", "soft", CT_FONT_SIZE,
                         text);
        }
        draw_upright(out, 15, line_top(f, line) + f->height / 2, "middle", "ink", "class");
    }
    ct_svg_label(out, f->left + f->width / 2, line_top(f, f->n_lines) + 9, "middle", "ink",
                 CT_FONT_SIZE, "agent");
}

/* Bubbles of known size under the chart, to compare with. */
static void draw_key(const bubble_frame *f, double y, ct_text *out) {
    char text[32];
    uint32_t few = (f->largest + 3) / 4;
    double x = f->left;
    for (int k = 0; k < 2; k++) {
        uint32_t count = k == 0 ? few : f->largest;
        double r = radius_of(f, count);
        snprintf(text, sizeof text, "%u samples", count);
        ct_markup_add(
            out, "<circle class='heat' cx='%.2f' cy='%.2f' r='%.2f' fill='" CT_HEAT_BLUE "'/>\n",
            x + r, y, r);
        ct_svg_label(out, x + 2 * r + 6, y + 4, "start", "soft", CT_FONT_SMALL, text);
        x += 2 * r + 24 + CT_FONT_SMALL * ct_markup_width(text);
    }
}

void ct_agent_label(char *const *names, int agent, char *out, size_t size) {
    snprintf(out, size, "agent %d", agent);
    if (names != NULL) snprintf(out, size, "agent %d (%s)", agent, names[agent]);
}

static void draw_bubbles(const bubble_frame *f, ct_text *out) {
    const ct_bubbles *b = f->b;
    char who[96];
    ct_markup_add(out, "<g class='heat' fill='" CT_HEAT_BLUE "'>\n");
    for (int a = 0; a < b->n_agents; a++)
        for (int c = 0; c < b->n_classes; c++) {
            uint32_t count = b->table[(size_t)a * (size_t)b->n_classes + (size_t)c];
            if (count == 0) continue;
            ct_agent_label(b->agent_names, a, who, sizeof who);
            ct_markup_add(out,
                          "<circle cx='%.1f' cy='%.1f' r='%.2f' data-agent='%d' data-class='%d' "
                          "data-count='%u'><title>%s, class %d: %u</title></circle>\n",
                          agent_x(f, a), class_y(f, a / f->n_across, c), radius_of(f, count), a, c,
                          count, who, c, count);
        }
    ct_text_add(out, "</g>\n");
}

void ct_bubbles_draw(const ct_bubbles *b, ct_text *out) {
    size_t n = (size_t)b->n_agents * (size_t)b->n_classes;
    bubble_frame f = {.b = b, .largest = largest_of(b->table, n)};
    f.left = 32 + CT_FONT_SIZE * widest_label(b->names, b->n_classes);
    f.top = b->heading[0] != '\0' ? 34 : 10;
    double room = DRAWING - f.left - 12;
    f.cell = cell_size(b->n_agents, room, LEAST_CELL, 26);
    f.n_across = (int)fmin(b->n_agents, floor(room / f.cell + 1e-9));
    f.n_lines = (b->n_agents + f.n_across - 1) / f.n_across;
    f.width = f.n_across * f.cell;
    f.height = b->n_classes * f.cell;
    double key_y = line_top(&f, f.n_lines) + 36;
    double width = fmax(f.left + f.width + 12, f.left + 250);
    if (b->heading[0] != '\0')
        width = fmax(width, f.left + CT_FONT_SIZE * ct_markup_width(b->heading));
    ct_svg_open(out, b->id, b->title, width, key_y + 18);
    if (b->heading[0] != '\0')
        ct_svg_label(out, f.left, 20, "start", "ink", CT_FONT_SIZE, b->heading);
    for (int line = 0; line < f.n_lines; line++) {
        int n_here = b->n_agents - line * f.n_across;
        if (n_here > f.n_across) n_here = f.n_across;
        draw_box(out, f.left, line_top(&f, line), n_here * f.cell, f.height);
    }
    letter_bubbles(&f, out);
    draw_bubbles(&f, out);
    draw_key(&f, key_y, out);
    ct_svg_close(out);
}

/* ---- confusion ---- */

typedef struct heat_frame {
    const ct_confusion *c;
    double cell, left, top, size;
} heat_frame;

/* Where a cell is dark, its number is light; the number leaves out the percent sign. */
static void draw_cell(const heat_frame *f, int row, int column, double share, uint32_t count,
                      ct_text *out) {
    double x = f->left + column * f->cell, y = f->top + row * f->cell;
    char text[16];
    ct_markup_add(out,
                  "<rect class='heat' x='%.2f' y='%.2f' width='%.2f' height='%.2f' "
                  "fill='" CT_HEAT_BLUE "' fill-opacity='%.3f' data-true='%d' data-taken='%d' "
                  "data-count='%u'><title>class %d taken for %d: %u (%.1f %%)</title></rect>\n",
                  x, y, f->cell, f->cell, share, row, column, count, row, column, count,
                  100 * share);
    snprintf(text, sizeof text, "%.0f", 100 * share);
    if (f->cell < 22 || strcmp(text, "0") == 0) return;
    ct_markup_add(out,
                  "<text class='%s' x='%.2f' y='%.2f' font-size='%g' text-anchor='middle' "
                  "fill='%s'>%s</text>\n",
                  share > 0.55 ? "light" : "ink", x + f->cell / 2, y + f->cell / 2 + 4,
                  CT_FONT_SMALL, share > 0.55 ? "#fff" : "#1b242c", text);
}

static void draw_row(const heat_frame *f, int row, ct_text *out) {
    int n = f->c->n_classes;
    const uint32_t *counts = f->c->table + (size_t)row * (size_t)n;
    double total = 0;
    for (int k = 0; k < n; k++) total += counts[k];
    for (int k = 0; k < n; k++)
        if (counts[k] > 0) draw_cell(f, row, k, counts[k] / total, counts[k], out);
}

static void letter_heat(const heat_frame *f, ct_text *out) {
    char text[80];
    bool has_names = f->c->names != NULL;
    int step = letter_step(f->cell, has_names ? 17 : 20);
    for (int k = 0; k < f->c->n_classes; k += step) {
        double at = (k + 0.5) * f->cell;
        class_label(f->c->names, k, text, sizeof text);
        ct_svg_label(out, f->left - 7, f->top + at + 4.5, "end", "soft", CT_FONT_SIZE, text);
        if (has_names)
            draw_upright(out, f->left + at + 4.5, f->top + f->size + 7, "end", "soft", text);
        else
            ct_svg_label(out, f->left + at, f->top + f->size + 17, "middle", "soft", CT_FONT_SIZE,
                         text);
    }
}

void ct_confusion_draw(const ct_confusion *c, ct_text *out) {
    heat_frame f = {.c = c, .cell = cell_size(c->n_classes, 300, 3, 34), .top = 10};
    double label = CT_FONT_SIZE * widest_label(c->names, c->n_classes);
    double below = c->names != NULL ? label + 12 : 20;
    f.left = 32 + label;
    f.cell = fmin(f.cell, fmax(2.6, (DRAWING - f.left - 14) / c->n_classes));
    f.size = f.cell * c->n_classes;
    double width = fmax(f.left + f.size + 14, 330), key_y = f.top + f.size + below + 34;
    ct_svg_open(out, c->id, c->title, width, key_y + 32);
    for (int row = 0; row < c->n_classes; row++) draw_row(&f, row, out);
    draw_box(out, f.left, f.top, f.size, f.size);
    letter_heat(&f, out);
    ct_svg_label(out, f.left + f.size / 2, f.top + f.size + below + 16, "middle", "ink",
                 CT_FONT_SIZE, "taken for");
    draw_upright(out, 15, f.top + f.size / 2, "middle", "ink", "true class");
    ct_svg_scale(out, c->id, width / 2 - 60, key_y, 120, "0", "100 %", "share of the true class");
    ct_svg_close(out);
}
