/* Outcomes and errors.
 * Every function that can fail returns ct_status. The first one that knows the reason says it with
 * ct_fail() or ct_refuse(), once; everyone above passes the status on. What was said goes into the
 * ct_error of the innermost CT_CATCH around the call, on the same thread (a pool's tasks count as
 * their caller's): it is in the caller's hands, and two threads with two runs never meet.
 *
 * A text is one sentence in lower case. It names options as @name; whoever shows it spells them
 * (ct_error_text): --name on a command line, a keyword in a binding. */
#ifndef CT_UTIL_STATUS_H
#define CT_UTIL_STATUS_H

/* Every header of ours includes this one; what nearly all of them need comes with it. */
#include <crosstalk/base.h> /* ct_status, ct_error, ct_error_text */

#if defined(__GNUC__)
#define CT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define CT_PRINTF(fmt, args)
#endif

/* Says why, unless something was said before, and returns `status`. */
#define ct_fail(status, ...) ct_fail_about((status), "", __VA_ARGS__)
/* The same about an option; CT_INVAL. */
#define ct_refuse(option, ...) ct_fail_about(CT_INVAL, (option), __VA_ARGS__)
ct_status ct_fail_about(ct_status status, const char *about, const char *format, ...)
    CT_PRINTF(3, 4);
/* There is no memory for `what`; CT_NOMEM. */
ct_status ct_no_memory(const char *what);

/* The status of a call; what it says goes to *error, empty if it says nothing. NULL: nobody wants
 * to know. */
#define CT_CATCH(error, call) (ct_error_begin(error), ct_error_end(error, (call)))
/* Says again what was caught, and the same with a place in front: "file:12: @lr: ...". */
ct_status ct_fail_again(const ct_error *error);
ct_status ct_fail_in(const ct_error *error, const char *place, ...) CT_PRINTF(2, 3);

/* Text with every @name spelled as `dashes` and the name. */
void ct_spell(const char *text, const char *dashes, char *out, size_t size);

/* 0, 1, 2, or for CT_STOPPED 128 + the signal, as the command line promises; signal 0: it was a
 * time limit, which counts as SIGTERM. */
int ct_exit_code(ct_status status, int signal);

/* For CT_CATCH. */
void ct_error_begin(ct_error *error);
ct_status ct_error_end(ct_error *error, ct_status status);
/* For threads that work for another one: where its errors go now; and to adopt that. */
ct_error *ct_error_place(void);
void ct_error_adopt(ct_error *place);

#define CT_TRY(expression)                                                                         \
    do {                                                                                           \
        ct_status try_status_ = (expression);                                                      \
        if (try_status_ != CT_OK) return try_status_;                                              \
    } while (0)

#endif
