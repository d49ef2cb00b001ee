/* What every test program uses. A test is a function whose name is a sentence; CHECK counts a
 * failed claim and goes on, REQUIRE leaves the test. The last line is "N passed, N failed, N
 * skipped". */
#ifndef CT_TEST_H
#define CT_TEST_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "util/status.h"

/* What a test's calls say lies here between two clearings. */
static ct_error test_error;
static bool test_is_listening;

static inline void ct_clear_message(void) {
    if (!test_is_listening) ct_error_begin(&test_error);
    test_is_listening = true;
    test_error = (ct_error){.status = CT_OK};
}

/* As the command line would show it. */
static inline const char *ct_message(void) {
    static char text[2048];
    ct_error_text(&test_error, "--", text, sizeof text);
    return text;
}

static int test_n_passed, test_n_failed, test_n_skipped;
static bool test_failed, test_skipped;

#define CHECK(claim)                                                                               \
    do {                                                                                           \
        if (!(claim)) {                                                                            \
            test_failed = true;                                                                    \
            printf("    %s:%d: not true: %s\n", __FILE__, __LINE__, #claim);                       \
        }                                                                                          \
    } while (0)

#define CHECK_NEAR(value, expected, tolerance)                                                     \
    do {                                                                                           \
        double value_ = (double)(value), expected_ = (double)(expected);                           \
        if (!(fabs(value_ - expected_) <= (double)(tolerance))) {                                  \
            test_failed = true;                                                                    \
            printf("    %s:%d: %s is %.9g, expected %.9g within %g\n", __FILE__, __LINE__, #value, \
                   value_, expected_, (double)(tolerance));                                        \
        }                                                                                          \
    } while (0)

/* The call succeeds; otherwise its message is shown. */
#define CHECK_OK(call)                                                                             \
    do {                                                                                           \
        ct_clear_message();                                                                        \
        if ((call) != CT_OK) {                                                                     \
            test_failed = true;                                                                    \
            printf("    %s:%d: %s: %s\n", __FILE__, __LINE__, #call, ct_message());                \
        }                                                                                          \
    } while (0)

/* The call fails with `status`, and its message contains `words`. */
#define CHECK_FAILS(call, status, words)                                                           \
    do {                                                                                           \
        ct_clear_message();                                                                        \
        ct_status got_ = (call);                                                                   \
        if (got_ != (status) || strstr(ct_message(), (words)) == NULL) {                           \
            test_failed = true;                                                                    \
            printf("    %s:%d: %s gave status %d: %s\n", __FILE__, __LINE__, #call, (int)got_,     \
                   ct_message());                                                                  \
        }                                                                                          \
        ct_clear_message();                                                                        \
    } while (0)

#define REQUIRE(claim)                                                                             \
    do {                                                                                           \
        if (!(claim)) {                                                                            \
            CHECK(claim);                                                                          \
            return;                                                                                \
        }                                                                                          \
    } while (0)

#define REQUIRE_OK(call)                                                                           \
    do {                                                                                           \
        bool before_ = test_failed;                                                                \
        test_failed = false;                                                                       \
        CHECK_OK(call);                                                                            \
        if (test_failed) return;                                                                   \
        test_failed = before_;                                                                     \
    } while (0)

#define SKIP(reason)                                                                               \
    do {                                                                                           \
        printf("    skipped: %s\n", reason);                                                       \
        test_skipped = true;                                                                       \
        return;                                                                                    \
    } while (0)

#define TEST(name)                                                                                 \
    do {                                                                                           \
        test_failed = test_skipped = false;                                                        \
        name();                                                                                    \
        printf("%s %s\n", test_failed ? "FAIL" : test_skipped ? "skip" : "ok  ", #name);           \
        fflush(stdout);                                                                            \
        if (test_failed)                                                                           \
            test_n_failed++;                                                                       \
        else if (test_skipped)                                                                     \
            test_n_skipped++;                                                                      \
        else                                                                                       \
            test_n_passed++;                                                                       \
    } while (0)

static inline int test_report(void) {
    printf("%d passed, %d failed, %d skipped\n", test_n_passed, test_n_failed, test_n_skipped);
    return test_n_failed == 0 ? 0 : 1;
}

#endif
