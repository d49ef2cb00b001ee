/* Pieces of HTML and SVG: every word that did not grow here goes through ct_markup_text. */
#ifndef CT_REPORT_MARKUP_H
#define CT_REPORT_MARKUP_H

#include <stddef.h>

#include "util/text.h"

/* Adds text with & < > " ' as entities; what no XML may hold (control characters, broken UTF-8)
 * becomes U+FFFD. Good for content and for quoted attributes. */
void ct_markup_text(ct_text *out, const char *text);

/* The text so, between two pieces that are markup already. */
void ct_markup_wrap(ct_text *out, const char *before, const char *text, const char *after);

/* A number that reads back to the same double; "nan" if it is not finite. */
void ct_markup_number(ct_text *out, double value);

/* Width of a text in a sans-serif font, in units of its size; near enough to place things by. */
double ct_markup_width(const char *text);

/* A coordinate: two digits behind the point are enough for any printer. */
#define CT_AT "%.2f"

#endif
