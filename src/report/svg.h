/* What every drawing shares: its frame, its lettering, and what tells curves apart. Colours are
 * given as attributes, so that a file stands alone, and as classes, by which a page that is dark
 * changes them:
 *   paper   the ground            ink   lettering       soft  lettering that steps back
 *   grid    lines behind          axis  the axis itself
 *   stroke-K, fill-K              colour K of the palette */
#ifndef CT_REPORT_SVG_H
#define CT_REPORT_SVG_H

#include <stdbool.h>

#include "report/markup.h"

#define CT_N_COLOURS  25 /* whose is which: method.h */
#define CT_FONT_SIZE  14.0
#define CT_FONT_SMALL 12.0
#define CT_BOLD       1.08      /* how much wider bold lettering is */
#define CT_HEAT_BLUE  "#0b559f" /* the dark end of every scale of shades */

/* <svg ...> with a ground, and a title for those who cannot see it. The id is the page's. */
void ct_svg_open(ct_text *out, const char *id, const char *title, double width, double height);
void ct_svg_close(ct_text *out);

/* A line of class grid or axis; more: attributes, each after a blank. */
void ct_svg_line(ct_text *out, const char *class, const char *more, double x1, double y1, double x2,
                 double y2);
/* A line of text; anchor: start, middle, end. The class is one of the above. */
void ct_svg_label(ct_text *out, double x, double y, const char *anchor, const char *class,
                  double size, const char *text);

/* A line of ink of the usual size, its middle left out where it is longer than `room` (it is shown
 * whole when it is pointed at). */
void ct_svg_text(ct_text *out, double x, double y, const char *anchor, bool is_bold, double room,
                 const char *text);
/* At most so many characters of a text, its middle left out (labels differ at their ends); `out`. */
const char *ct_svg_shorten(const char *text, int n_most, char *out, size_t size);

/* The name of an axis; what follows an underscore is set lower (L_ce), the unit ("": none) stands
 * in brackets. */
void ct_svg_axis_name(ct_text *out, double x, double y, const char *anchor, const char *name,
                      const char *unit);
/* Small lettering in lines of at most `width`, broken at blanks and where the text has '\n'; the
 * first line stands on y. Returns how many lines it takes; draws them if `out` is there. */
int ct_svg_paragraph(ct_text *out, double x, double y, double width, const char *text);
#define CT_PARAGRAPH_LINE 16.0 /* from one of its lines to the next */

/* A style is a number made of three: a place in the palette, whether marks are hollow, and which of
 * the curves of this colour it is (0, 1, ...): those differ in shade, dashes and marker, so that
 * curves can be told apart without colours. */
static inline int ct_style(int colour, bool is_hollow, int variant) {
    return colour + CT_N_COLOURS * (2 * variant + is_hollow);
}
/* The same colour and marks, another of their curves. */
static inline int ct_style_variant(int style, int variant) {
    return style % (2 * CT_N_COLOURS) + 2 * CT_N_COLOURS * variant;
}
/* Its place in the palette: K of the classes above. */
static inline int ct_style_place(int style) {
    return style % CT_N_COLOURS;
}
const char *ct_style_colour(int style);
const char *ct_style_dash(int style); /* "none" or lengths */
double ct_style_shade(int style);     /* an opacity */
/* One of eight shapes around (x, y); `title` is shown when it is pointed at (NULL: nothing). */
void ct_style_marker(ct_text *out, int style, double x, double y, const char *title);
/* The piece of line with its marker that stands for a style in a legend, 28 wide from x on. */
void ct_style_sample(ct_text *out, int style, double x, double y);

/* Keys of heat maps: from pale to dark, lettered at both ends. The id is the drawing's. */
void ct_svg_scale(ct_text *out, const char *id, double x, double y, double width, const char *low,
                  const char *high, const char *what);

#endif
