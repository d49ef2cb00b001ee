/* Notes to the person watching: one line each on stderr, off with --quiet. Errors do not go here
 * (status.h), results do not either (stdout). */
#ifndef CT_UTIL_LOG_H
#define CT_UTIL_LOG_H

#include <stdbool.h>

#include "util/status.h"

void ct_note(const char *format, ...) CT_PRINTF(1, 2);
void ct_log_quiet(bool quiet);

#endif
