/* Text for people's eyes, on a terminal or in a log. A terminal obeys control characters, and names,
 * options and messages come from files that others wrote: whatever is printed goes through here. */
#ifndef CT_UTIL_SHOW_H
#define CT_UTIL_SHOW_H

#include <stdio.h>

#include "util/status.h"

/* fprintf with what could steer a terminal spelled out: control characters (\x1b; in values a new
 * line too, so that none of them looks like two), C1 ones and those that turn the direction of
 * letters (\u009b, \u202e), and bytes that are no UTF-8 (\xff). */
void ct_show(FILE *out, const char *format, ...) CT_PRINTF(2, 3);
/* The same of a text of several lines. */
void ct_show_lines(FILE *out, const char *text);
/* A line was so long that there was no memory for it. */
bool ct_show_has_failed(void);

#endif
