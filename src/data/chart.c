#include "data/chart.h"

#include "data/png_write.h"
#include "util/file.h"
#include "util/memory.h"
#include "util/text.h"

#include <math.h>
#include <string.h>

#define CELL   28 /* pixels from bubble to bubble */
#define MARGIN 44
#define SHARP  3 /* sub-pixels a side for smooth edges in the PNG */

static const uint8_t colour[3] = {31, 119, 180};

static uint32_t largest_of(const uint32_t *table, int n) {
    uint32_t largest = 1;
    for (int k = 0; k < n; k++)
        if (table[k] > largest) largest = table[k];
    return largest;
}

/* The largest bubble nearly fills its cell; area is proportional to the count, and what is there at
 * all can be seen. */
static double radius_of(uint32_t count, uint32_t largest) {
    double r = 0.48 * CELL * sqrt((double)count / largest);
    return count == 0 ? 0 : r < 0.7 ? 0.7 : r;
}

static double x_of(int agent) {
    return MARGIN + (agent + 0.5) * CELL;
}

static double y_of(int class, int n_classes) {
    return MARGIN + (n_classes - 1 - class + 0.5) * CELL;
}

static void add_escaped(ct_text *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '<' || *text == '&')
            ct_text_add(out, "%s", *text == '<' ? "&lt;" : "&amp;");
        else
            ct_text_add(out, "%c", *text);
    }
}

static void add_labels(ct_text *svg, int n_agents, int n_classes, const char *title) {
    int step_x = (n_agents + 39) / 40, step_y = (n_classes + 39) / 40;
    ct_text_add(svg, "<text x='%d' y='20'>", MARGIN);
    add_escaped(svg, title);
    ct_text_add(svg, "</text>\n<g text-anchor='middle'>\n");
    for (int a = 0; a < n_agents; a += step_x)
        ct_text_add(svg, "<text x='%.1f' y='%d'>%d</text>\n", x_of(a),
                    MARGIN + n_classes * CELL + 16, a);
    for (int c = 0; c < n_classes; c += step_y)
        ct_text_add(svg, "<text x='%d' y='%.1f'>%d</text>\n", MARGIN - 14, y_of(c, n_classes) + 4,
                    c);
    ct_text_add(svg, "<text x='%d' y='%d'>agent</text>\n", MARGIN + n_agents * CELL / 2,
                MARGIN + n_classes * CELL + 34);
    ct_text_add(svg, "<text transform='translate(14,%d) rotate(-90)'>class</text>\n</g>\n",
                MARGIN + n_classes * CELL / 2);
}

ct_status ct_chart_svg(const char *path, const uint32_t *table, int n_agents, int n_classes,
                       const char *title) {
    ct_text svg = {0};
    uint32_t largest = largest_of(table, n_agents * n_classes);
    int width = 2 * MARGIN + n_agents * CELL, height = 2 * MARGIN + n_classes * CELL;
    ct_text_add(&svg,
                "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
                "font-family='sans-serif' font-size='12'>\n"
                "<rect width='%d' height='%d' fill='white'/>\n"
                "<rect x='%d' y='%d' width='%d' height='%d' fill='none' stroke='#888'/>\n",
                width, height, width, height, MARGIN, MARGIN, n_agents * CELL, n_classes * CELL);
    add_labels(&svg, n_agents, n_classes, title);
    ct_text_add(&svg, "<g fill='#1f77b4'>\n");
    for (int a = 0; a < n_agents; a++)
        for (int c = 0; c < n_classes; c++) {
            uint32_t count = table[a * n_classes + c];
            if (count == 0) continue;
            ct_text_add(&svg,
                        "<circle cx='%.1f' cy='%.1f' r='%.2f'><title>agent %d, class %d: %u"
                        "</title></circle>\n",
                        x_of(a), y_of(c, n_classes), radius_of(count, largest), a, c, count);
        }
    ct_text_add(&svg, "</g>\n</svg>\n");
    ct_status status = ct_text_status(&svg);
    if (status == CT_OK) status = ct_file_write(path, svg.chars, svg.n);
    ct_text_free(&svg);
    return status;
}

/* How much of pixel (x, y) lies within the circle. */
static double cover(double cx, double cy, double r, int x, int y) {
    int n = 0;
    for (int k = 0; k < SHARP * SHARP; k++) {
        double dx = x + (k % SHARP + 0.5) / SHARP - cx, dy = y + (k / SHARP + 0.5) / SHARP - cy;
        n += dx * dx + dy * dy <= r * r;
    }
    return (double)n / (SHARP * SHARP);
}

static void draw_bubble(uint8_t *pixels, int width, double cx, double cy, double r) {
    for (int y = (int)(cy - r); y <= (int)(cy + r); y++)
        for (int x = (int)(cx - r); x <= (int)(cx + r); x++) {
            double part = cover(cx, cy, r, x, y);
            uint8_t *p = pixels + ((size_t)y * (size_t)width + (size_t)x) * 3;
            for (int c = 0; c < 3; c++)
                p[c] = (uint8_t)(part * colour[c] + (1 - part) * p[c] + 0.5);
        }
}

static void draw_frame(uint8_t *pixels, int width, int height) {
    for (int y = MARGIN; y <= height - MARGIN; y++)
        for (int x = MARGIN; x <= width - MARGIN; x++) {
            bool is_edge =
                y == MARGIN || y == height - MARGIN || x == MARGIN || x == width - MARGIN;
            if (is_edge) memset(pixels + ((size_t)y * (size_t)width + (size_t)x) * 3, 136, 3);
        }
}

ct_status ct_chart_png(const char *path, const uint32_t *table, int n_agents, int n_classes) {
    uint32_t largest = largest_of(table, n_agents * n_classes);
    int width = 2 * MARGIN + n_agents * CELL, height = 2 * MARGIN + n_classes * CELL;
    if ((double)width * height > 1e8)
        return ct_fail(CT_INVAL, "%d agents and %d classes are too many for a PNG; take --svg",
                       n_agents, n_classes);
    size_t n = (size_t)width * (size_t)height * 3;
    uint8_t *pixels = ct_alloc(n, 1);
    if (pixels == NULL) return ct_fail(CT_NOMEM, "no memory for a chart");
    memset(pixels, 255, n);
    draw_frame(pixels, width, height);
    for (int a = 0; a < n_agents; a++)
        for (int c = 0; c < n_classes; c++) {
            double r = radius_of(table[a * n_classes + c], largest);
            if (r > 0) draw_bubble(pixels, width, x_of(a), y_of(c, n_classes), r);
        }
    ct_status status = ct_png_write(path, width, height, pixels);
    ct_free(pixels);
    return status;
}
