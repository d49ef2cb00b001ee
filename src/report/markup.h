/* Pieces of HTML and SVG: every word that did not grow here goes through ct_markup_text. */
#ifndef CT_REPORT_MARKUP_H
#define CT_REPORT_MARKUP_H

#include <stddef.h>

#include "util/text.h"

/* Adds text with & < > " ' as entities; what no XML may hold (control characters, broken UTF-8)
 * becomes U+FFFD. Good for content and for quoted attributes. */
void ct_markup_text(ct_text *out, const char *text);

/* printf for markup. A %s goes through ct_markup_text; a ' of the format is written as "; %e is a
 * number that reads back to the same double ("nan" if it is not finite). Knows %s, %d, %u, %ld, %zu,
 * PRIu64, %f, %g and %e. Coordinates are %.2f: two digits are enough for any printer. */
void ct_markup_add(ct_text *out, const char *format, ...) CT_PRINTF(2, 3);

/* Width of a text in a sans-serif font, in units of its size: of a wide one (DejaVu Sans), as nobody
 * knows which the reader has. */
double ct_markup_width(const char *text);

#endif
