#include "util/log.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local const ct_hooks *hooks;

void ct_hooks_use(const ct_hooks *given) {
    hooks = given;
}

const ct_hooks *ct_hooks_now(void) {
    return hooks;
}

void ct_log(ct_level level, const char *format, ...) {
    char text[2048];
    va_list args;
    if (hooks == NULL || hooks->log == NULL) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hooks->log(hooks->context, level, text);
}
