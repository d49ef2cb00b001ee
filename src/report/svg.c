#include "report/svg.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Published numbers and what is no method; methods in the order of method.c, the first of them in
 * Okabe and Ito's colours, which the colour-blind can tell apart; colours for those to come. A dark
 * page has its own of each (page.css). */
static const char *const colours[CT_N_COLOURS] = {
    "#3a3a3a", "#6b7a87", "#d55e00", "#0072b2", "#009e73", "#7a5c00", "#aa3f86",
    "#5b4bb5", "#1f93c4", "#c08a00", "#8c1d40", "#4f7d1e", "#e0457b", "#00757f",
    "#1c2f6e", "#9c6b4a", "#b06fd0", "#3a9140", "#a33b20", "#3f6fd0", "#8a8a00",
    "#d0408f", "#006d4a", "#7f6a9c", "#b35c6f"};
enum { N_SHAPES = 8, N_SHADES = 4 };
static const char *const dashes[N_SHAPES] = {"none", "7 3",     "2 3", "9 3 2 3",
                                             "12 4", "4 2 1 2", "5 5", "9 2 2 2 2 2"};
static const double shades[N_SHADES] = {1, 0.78, 0.6, 0.48};

/* Eight shapes of about the same weight, as paths around (0, 0). */
static const char *const shapes[N_SHAPES] = {
    "M-3.4,0a3.4,3.4 0 1,0 6.8,0a3.4,3.4 0 1,0 -6.8,0z",
    "M-3,-3h6v6h-6z",
    "M0,-4L3.8,3H-3.8z",
    "M0,-4.4L4.4,0L0,4.4L-4.4,0z",
    "M0,4L3.8,-3H-3.8z",
    "M-1.2,-4h2.4v2.8h2.8v2.4h-2.8v2.8h-2.4v-2.8h-2.8v-2.4h2.8z",
    "M-4,-2L-2,-4L0,-2L2,-4L4,-2L2,0L4,2L2,4L0,2L-2,4L-4,2L-2,0z",
    "M0,-4.6L1.3,-1.5L4.4,-1.4L2,0.6L2.8,3.7L0,2L-2.8,3.7L-2,0.6L-4.4,-1.4L-1.3,-1.5z",
};

/* A page's policy allows no style but its own: it has classes for the digits of a width. What is
 * wider than a page is as wide as that. */
static void add_width(ct_text *out, double width) {
    int w = (int)fmin(1199, fmax(100, round(width)));
    ct_text_add(out, " h%d t%d u%d", w / 100, w / 10 % 10, w % 10);
}

void ct_svg_open(ct_text *out, const char *id, const char *title, double width, double height) {
    ct_markup_add(out, "<svg xmlns='http://www.w3.org/2000/svg' id='%s' class='figure", id);
    add_width(out, width);
    ct_markup_add(out, "' role='img' viewBox='0 0 %.0f %.0f' width='%.0f' height='%.0f' ", width,
                  height, width, height);
    ct_text_add(out, "font-family=\"Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', "
                     "sans-serif\">\n");
    ct_markup_add(out,
                  "<title>%s</title>\n<rect class='paper' width='%.0f' height='%.0f' "
                  "fill='#fff'/>\n",
                  title, width, height);
}

void ct_svg_close(ct_text *out) {
    ct_text_add(out, "</svg>\n");
}

void ct_svg_line(ct_text *out, const char *class, const char *more, double x1, double y1, double x2,
                 double y2) {
    ct_markup_add(out, "<line class='%s' x1='%.2f' y1='%.2f' x2='%.2f' y2='%.2f' stroke='%s'",
                  class, x1, y1, x2, y2, class[0] == 'g' ? "#dfe5ea" : "#8896a3");
    ct_text_add(out, "%s/>\n", more);
}

void ct_svg_label(ct_text *out, double x, double y, const char *anchor, const char *class,
                  double size, const char *text) {
    ct_markup_add(out, "<text class='%s' x='%.2f' y='%.2f' font-size='%g' fill='%s'", class, x, y,
                  size, class[0] == 's' ? "#52606d" : "#1b242c");
    if (anchor[0] != 's') ct_markup_add(out, " text-anchor='%s'", anchor);
    ct_markup_add(out, ">%s</text>\n", text);
}

static bool begins_character(char c) {
    return ((unsigned char)c & 0xC0) != 0x80;
}

const char *ct_svg_shorten(const char *text, int n_most, char *out, size_t size) {
    int n_characters = 0, head = 0, tail = (int)strlen(text);
    for (const char *c = text; *c != '\0'; c++) n_characters += begins_character(*c);
    if (n_characters <= n_most) {
        snprintf(out, size, "%s", text);
        return out;
    }
    for (int k = 0; k < n_most / 2; k++) {
        do head++;
        while (!begins_character(text[head]));
        do tail--;
        while (!begins_character(text[tail]));
    }
    snprintf(out, size, "%.*s\xE2\x80\xA6%s", head, text, text + tail);
    return out;
}

void ct_svg_text(ct_text *out, double x, double y, const char *anchor, bool is_bold, double room,
                 const char *text) {
    char shown[512];
    double size = CT_FONT_SIZE * (is_bold ? CT_BOLD : 1);
    int n_most = (int)strlen(text);
    ct_svg_shorten(text, n_most, shown, sizeof shown);
    while (n_most > 4 && size * ct_markup_width(shown) > room + 0.01) /* of roundings */
        ct_svg_shorten(text, n_most -= 2, shown, sizeof shown);
    ct_markup_add(out, "<text class='ink' x='%.2f' y='%.2f' font-size='%g' fill='#1b242c'", x, y,
                  CT_FONT_SIZE);
    if (is_bold) ct_markup_add(out, " font-weight='bold'");
    if (anchor[0] != 's') ct_markup_add(out, " text-anchor='%s'", anchor);
    ct_markup_add(out, ">%s", shown);
    if (strcmp(shown, text) != 0) ct_markup_add(out, "<title>%s</title>", text);
    ct_text_add(out, "</text>\n");
}

void ct_svg_axis_name(ct_text *out, double x, double y, const char *anchor, const char *name,
                      const char *unit) {
    char stem[128];
    size_t n = strcspn(name, "_");
    snprintf(stem, sizeof stem, "%.*s", (int)n, name);
    ct_markup_add(out,
                  "<text class='ink' x='%.2f' y='%.2f' font-size='%g' text-anchor='%s' "
                  "fill='#1b242c'>%s",
                  x, y, CT_FONT_SIZE, anchor, stem);
    if (name[n] == '_')
        ct_markup_add(out, "<tspan dy='3' font-size='%g'>%s</tspan>", CT_FONT_SMALL - 1,
                      name + n + 1);
    ct_text_add(out, unit[0] != '\0' ? " (%s)</text>\n" : "%s</text>\n", unit);
}

/* How much of the text goes into one line: up to a blank or its end, at least a word. */
static size_t line_of(const char *text, double width) {
    char piece[512];
    size_t fits = 0;
    for (size_t n = 0;; n++) {
        bool is_end = text[n] == '\0' || text[n] == '\n';
        if (!is_end && text[n] != ' ') continue;
        snprintf(piece, sizeof piece, "%.*s", (int)(n < 500 ? n : 500), text);
        if (fits > 0 && (n > 500 || CT_FONT_SMALL * ct_markup_width(piece) > width)) return fits;
        fits = n;
        if (is_end) return fits;
    }
}

int ct_svg_paragraph(ct_text *out, double x, double y, double width, const char *text) {
    char piece[512];
    int line = 0;
    for (; *text != '\0'; line++) {
        size_t n = line_of(text, width);
        snprintf(piece, sizeof piece, "%.*s", (int)n, text);
        if (out != NULL)
            ct_svg_label(out, x, y + CT_PARAGRAPH_LINE * line, "start", "soft", CT_FONT_SMALL,
                         piece);
        text += n;
        if (*text != '\0') text++;
    }
    return line;
}

static int variant_of(int style) {
    return style / CT_N_COLOURS / 2;
}

static bool is_hollow(int style) {
    return style / CT_N_COLOURS % 2 == 1;
}

const char *ct_style_colour(int style) {
    return colours[ct_style_place(style)];
}

const char *ct_style_dash(int style) {
    int k = ct_style_place(style) / N_SHAPES + 3 * variant_of(style) + is_hollow(style);
    return dashes[k % N_SHAPES];
}

double ct_style_shade(int style) {
    return shades[variant_of(style) % N_SHADES];
}

void ct_style_marker(ct_text *out, int style, double x, double y, const char *title) {
    int place = ct_style_place(style);
    ct_markup_add(out, "<path class='marker ");
    ct_markup_add(out,
                  is_hollow(style) ? "paper stroke-%d' fill='#fff' stroke-width='1.6' stroke='%s'"
                                   : "fill-%d' fill='%s'",
                  place, colours[place]);
    if (ct_style_shade(style) < 1) ct_markup_add(out, " opacity='%g'", ct_style_shade(style));
    ct_markup_add(out, " transform='translate(%.2f,%.2f)' d='%s'", x, y,
                  shapes[(place + variant_of(style)) % N_SHAPES]);
    if (title != NULL)
        ct_markup_add(out, "><title>%s</title></path>\n", title);
    else
        ct_text_add(out, "/>\n");
}

void ct_style_sample(ct_text *out, int style, double x, double y) {
    ct_markup_add(out,
                  "<line class='stroke-%d' x1='%.2f' y1='%.2f' x2='%.2f' y2='%.2f' stroke='%s' "
                  "stroke-width='2' stroke-opacity='%g' stroke-dasharray='%s'/>\n",
                  ct_style_place(style), x, y, x + 28, y, ct_style_colour(style),
                  ct_style_shade(style), ct_style_dash(style));
    ct_style_marker(out, style, x + 14, y, NULL);
}

void ct_svg_scale(ct_text *out, const char *id, double x, double y, double width, const char *low,
                  const char *high, const char *what) {
    ct_markup_add(out,
                  "<linearGradient id='%s-scale'><stop class='heat-stop' offset='0' "
                  "stop-color='" CT_HEAT_BLUE "' stop-opacity='0'/><stop class='heat-stop' "
                  "offset='1' stop-color='" CT_HEAT_BLUE "'/></linearGradient>\n"
                  "<rect x='%.2f' y='%.2f' width='%.2f' height='9' fill='url(#%s-scale)'/>\n",
                  id, x, y, width, id);
    ct_markup_add(out,
                  "<rect class='axis' x='%.2f' y='%.2f' width='%.2f' height='9' fill='none' "
                  "stroke='#8896a3' stroke-width='0.7'/>\n",
                  x, y, width);
    ct_svg_label(out, x - 6, y + 8.5, "end", "soft", CT_FONT_SMALL, low);
    ct_svg_label(out, x + width + 6, y + 8.5, "start", "soft", CT_FONT_SMALL, high);
    ct_svg_label(out, x + width / 2, y + 23, "middle", "soft", CT_FONT_SMALL, what);
}
