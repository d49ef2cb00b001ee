/* What every drawing shares: its frame, its lettering, and what tells curves apart. Colours are
 * given as attributes, so that a file stands alone, and as classes, by which a page that is dark
 * changes them:
 *   paper   the ground            ink   lettering       soft  lettering that steps back
 *   grid    lines behind          axis  the axis itself
 *   stroke-K, fill-K              colour K of the palette */
#ifndef CT_REPORT_SVG_H
#define CT_REPORT_SVG_H

#include "report/markup.h"

#define CT_N_COLOURS  8
#define CT_FONT_SIZE  14.0
#define CT_FONT_SMALL 12.0
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

/* The name of an axis; what follows an underscore is set lower (L_ce), the unit ("": none) stands
 * in brackets. */
void ct_svg_axis_name(ct_text *out, double x, double y, const char *anchor, const char *name,
                      const char *unit);
/* Small lettering in lines of at most `width`, broken at blanks and where the text has '\n'; the
 * first line stands on y. Returns how many lines it takes; draws them if `out` is there. */
int ct_svg_paragraph(ct_text *out, double x, double y, double width, const char *text);
#define CT_PARAGRAPH_LINE 16.0 /* from one of its lines to the next */

/* The colour, dash pattern ("none" or lengths) and marker of style k; the three together differ for
 * the first 64 styles, so that curves can be told apart without colours. */
const char *ct_style_colour(int k);
const char *ct_style_dash(int k);
/* One of eight shapes around (x, y); `title` is shown when it is pointed at (NULL: nothing). */
void ct_style_marker(ct_text *out, int k, double x, double y, const char *title);
/* The piece of line with its marker that stands for style k in a legend, 28 wide from x on. */
void ct_style_sample(ct_text *out, int k, double x, double y);

/* Keys of heat maps: from pale to dark, lettered at both ends. The id is the drawing's. */
void ct_svg_scale(ct_text *out, const char *id, double x, double y, double width, const char *low,
                  const char *high, const char *what);

#endif
