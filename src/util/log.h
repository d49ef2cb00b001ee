/* What a caller hears while a call lasts. Nothing below the command line prints: notes, lines and
 * passing lines go to the hooks of the thread, and without hooks nowhere. */
#ifndef CT_UTIL_LOG_H
#define CT_UTIL_LOG_H

#include "util/status.h"

typedef enum ct_level {
    CT_LOG_PASSING, /* where something stands; the next line takes its place */
    CT_LOG_LINE,    /* what has happened */
    CT_LOG_NOTE,    /* what one should know */
    CT_LOG_WARNING, /* what one must know, even if notes are not wanted */
} ct_level;

typedef struct ct_hooks {
    void *context;
    /* One line, without its end; options are spelled @name (status.h). */
    void (*log)(void *context, ct_level level, const char *text);
    /* So many iterations of a run are done; false stops it as Ctrl-C does. NULL: never. */
    bool (*progress)(void *context, long now, long total);
} ct_hooks;

/* The hooks of this thread from now on, lent; NULL: none. */
void ct_hooks_use(const ct_hooks *hooks);
const ct_hooks *ct_hooks_now(void);

void ct_log(ct_level level, const char *format, ...) CT_PRINTF(2, 3);
#define ct_note(...) ct_log(CT_LOG_NOTE, __VA_ARGS__)

#endif
