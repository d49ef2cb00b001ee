#include "util/status.h"

#include <assert.h>
#include <ctype.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_CATCHES = 32 }; /* one inside the other */

/* The ct_errors of this thread's CT_CATCHes, the innermost last. */
static _Thread_local ct_error *catches[MAX_CATCHES];
static _Thread_local int n_catches;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* a pool's tasks share one ct_error */

ct_error *ct_error_place(void) {
    return n_catches > 0 ? catches[n_catches - 1] : NULL;
}

void ct_error_adopt(ct_error *place) {
    catches[0] = place;
    n_catches = 1;
}

void ct_error_begin(ct_error *error) {
    assert(n_catches < MAX_CATCHES);
    catches[n_catches++] = error;
    if (error != NULL) *error = (ct_error){.status = CT_OK};
}

ct_status ct_error_end(ct_error *error, ct_status status) {
    n_catches--;
    if (error != NULL) error->status = status;
    return status;
}

ct_status ct_fail_about(ct_status status, const char *about, const char *format, ...) {
    ct_error *error = ct_error_place();
    if (error == NULL) return status;
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&lock);
    if (error->text[0] == '\0') {
        snprintf(error->about, sizeof error->about, "%s", about);
        vsnprintf(error->text, sizeof error->text, format, args);
    }
    pthread_mutex_unlock(&lock);
    va_end(args);
    return status;
}

ct_status ct_no_memory(const char *what) {
    return ct_fail(CT_NOMEM, "no memory for %s", what);
}

/* The text says which option it is about, wherever that stands in it. */
static bool names_option(const ct_error *error) {
    size_t n = strlen(error->about);
    for (const char *at = error->text; (at = strchr(at, '@')) != NULL; at++) {
        char end = strncmp(at + 1, error->about, n) == 0 ? at[1 + n] : 'x';
        if (!isalnum((unsigned char)end) && end != '-') return true;
    }
    return n == 0;
}

ct_status ct_fail_again(const ct_error *error) {
    return ct_fail_about(error->status, error->about, "%s", error->text);
}

ct_status ct_fail_in(const ct_error *error, const char *place, ...) {
    char where[512];
    va_list args;
    va_start(args, place);
    vsnprintf(where, sizeof where, place, args);
    va_end(args);
    bool is_named = names_option(error);
    return ct_fail_about(error->status, error->about, "%s: %s%s%s%s", where, is_named ? "" : "@",
                         is_named ? "" : error->about, is_named ? "" : ": ", error->text);
}

void ct_spell(const char *text, const char *dashes, char *out, size_t size) {
    size_t n = 0;
    for (const char *at = text; *at != '\0' && n + 1 < size; at++) {
        bool is_option = *at == '@' && islower((unsigned char)at[1]) &&
                         (at == text || !isalnum((unsigned char)at[-1]));
        int more = snprintf(out + n, size - n, is_option ? "%s" : "%.1s", is_option ? dashes : at);
        n += more > 0 ? (size_t)more : 0;
    }
    out[n < size ? n : size - 1] = '\0';
}

void ct_error_text(const ct_error *error, const char *dashes, char *out, size_t size) {
    char text[sizeof error->text + sizeof error->about + 8];
    bool is_named = names_option(error);
    snprintf(text, sizeof text, "%s%s%s%s", is_named ? "" : "@", is_named ? "" : error->about,
             is_named ? "" : ": ", error->text);
    ct_spell(text, dashes, out, size);
}

int ct_exit_code(ct_status status, int signal) {
    switch (status) {
    case CT_OK: return 0;
    case CT_INVAL:
    case CT_DIFFERS:
    case CT_NOTBUILT: return 2;
    case CT_STOPPED: return 128 + (signal != 0 ? signal : SIGTERM);
    default: return 1;
    }
}
