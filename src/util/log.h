/* What a caller hears while a call lasts. Nothing below the command line prints: notes, lines and
 * passing lines go to the hooks of the thread, and without hooks nowhere. */
#ifndef CT_UTIL_LOG_H
#define CT_UTIL_LOG_H

#include "util/status.h" /* ct_level, ct_hooks */

/* The hooks of this thread from now on, lent; NULL: none. */
void ct_hooks_use(const ct_hooks *hooks);
const ct_hooks *ct_hooks_now(void);

void ct_log(ct_level level, const char *format, ...) CT_PRINTF(2, 3);
#define ct_note(...) ct_log(CT_LOG_NOTE, __VA_ARGS__)

#endif
