#include "util/log.h"

#include <stdarg.h>
#include <stdio.h>

static bool is_quiet;

void ct_log_quiet(bool quiet) {
    is_quiet = quiet;
}

void ct_note(const char *format, ...) {
    if (is_quiet) return;
    va_list args;
    va_start(args, format);
    fputs("note: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}
