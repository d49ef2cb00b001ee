/* Outcomes and messages.
 * Every function that can fail returns ct_status. The first one that knows the reason calls
 * ct_fail(), which keeps one line; everyone above passes the status on. The command line prints
 * the line once and turns the status into an exit code. */
#ifndef CT_UTIL_STATUS_H
#define CT_UTIL_STATUS_H

typedef enum ct_status {
    CT_OK = 0,
    CT_INVAL,    /* the caller's words are off: unknown name, bad number (exit 2) */
    CT_IO,       /* the world is off: missing, truncated, corrupt, unwritable (exit 1) */
    CT_NOMEM,    /* out of memory (exit 1) */
    CT_NOTBUILT, /* a part left out at configure time (exit 2) */
    CT_DIVERGED, /* NaN or Inf during training (exit 1) */
    CT_BUSY,     /* another process is at it (exit 1) */
    CT_STOPPED,  /* the user pressed Ctrl-C; what was done is saved (exit 130) */
} ct_status;

#if defined(__GNUC__)
#define CT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define CT_PRINTF(fmt, args)
#endif

/* Keeps the message (the first one until ct_clear_message) and returns `status`. */
ct_status ct_fail(ct_status status, const char *format, ...) CT_PRINTF(2, 3);

/* The message of the first failure since ct_clear_message(); "" if there was none. */
const char *ct_message(void);
void ct_clear_message(void);

/* 0, 1, 2 or 130, as the command line promises. */
int ct_exit_code(ct_status status);

#define CT_TRY(expression)                                                                         \
    do {                                                                                           \
        ct_status try_status_ = (expression);                                                      \
        if (try_status_ != CT_OK) return try_status_;                                              \
    } while (0)

/* The same inside a function that owns something: sets `status` and jumps to `label`. */
#define CT_TRY_GOTO(expression, status, label)                                                     \
    do {                                                                                           \
        (status) = (expression);                                                                   \
        if ((status) != CT_OK) goto label;                                                         \
    } while (0)

#endif
