/* Outcomes, errors and hooks, which every other part uses. */
#ifndef CROSSTALK_BASE_H
#define CROSSTALK_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CT_API __attribute__((visibility("default")))
#else
#define CT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ct_status {
    CT_OK = 0,
    CT_INVAL,    /* the caller's words are off: unknown name, bad number (exit 2) */
    CT_IO,       /* the world is off: missing, truncated, corrupt, unwritable (exit 1) */
    CT_NOMEM,    /* out of memory (exit 1) */
    CT_NOTBUILT, /* a part left out at configure time (exit 2) */
    CT_DIVERGED, /* NaN or Inf during training (exit 1) */
    CT_BUSY,     /* another process is at it (exit 1) */
    CT_STOPPED, /* by a signal, a time limit or a hook; what was done is saved (exit 128 + signal) */
    CT_DIFFERS, /* a saved run has other options or data than asked for (exit 2) */
} ct_status;

typedef struct ct_error {
    ct_status status;
    char about[64];  /* the option it is about, or "" */
    char text[1024]; /* one sentence in lower case; options are named @name */
} ct_error;

#define CT_MAX_DIMS 8 /* of a tensor */

/* Writes the sentence with every @name spelled as `prefix` and the name: "--" on a command line, ""
 * in a binding. */
CT_API void ct_error_text(const ct_error *error, const char *prefix, char *out, size_t size);

typedef enum ct_level {
    CT_LOG_PASSING, /* where something stands; the next line takes its place */
    CT_LOG_LINE,    /* what has happened */
    CT_LOG_NOTE,    /* what one should know */
    CT_LOG_WARNING, /* what one must know, even if notes are not wanted */
} ct_level;

/* What a caller hears while a call lasts; the calls come on the thread that made the call. */
typedef struct ct_hooks {
    void *context;
    /* One line, without its end; options are named @name. NULL: nobody listens. */
    void (*log)(void *context, ct_level level, const char *text);
    /* So many iterations of a run are done. False stops it: a checkpoint is written, and the call
     * returns CT_STOPPED. NULL: never. */
    bool (*progress)(void *context, long now, long total);
} ct_hooks;

/* The version of the library that runs, as in CT_VERSION of the headers that one compiled
 * against: "0.2.0". */
CT_API const char *ct_version(void);

#ifdef __cplusplus
}
#endif

#endif
