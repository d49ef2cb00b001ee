/* Statistics of comparisons, against numbers computed in other ways (tests/oracle). */
#include "test.h"

#include <stdlib.h>

#include "study/statistics.h"
#include "util/file.h"
#include "util/text.h"

enum { MOST = 1024 };

typedef struct words {
    char name[16];
    double numbers[MOST];
    int n;
} words;

static void read_words(char *line, words *w) {
    char *at = line + strcspn(line, " ");
    snprintf(w->name, sizeof w->name, "%.*s", (int)(at - line), line);
    for (w->n = 0; *at == ' ' && w->n < MOST;) w->numbers[w->n++] = strtod(at, &at);
}

/* Calls check for every line of this name; returns how many there were. */
static int each(const char *name, void (*check)(const double *x)) {
    static words w;
    ct_blob blob = {0};
    int n = 0;
    if (ct_file_read(CT_SOURCE_DIR "/tests/fixtures/statistics.txt", 1 << 20, &blob) != CT_OK)
        return 0;
    ct_lines lines = ct_blob_lines(&blob);
    for (char *line; (line = ct_lines_next(&lines)) != NULL;) {
        read_words(line, &w);
        if (strcmp(w.name, name) != 0) continue;
        check(w.numbers);
        n++;
    }
    ct_blob_free(&blob);
    return n;
}

static void check_f(const double *x) {
    CHECK_NEAR(ct_f_tail(x[0], x[1], x[2]) / x[3], 1, 1e-9);
}

static void check_range(const double *x) {
    CHECK_NEAR(ct_range_tail(x[0], (int)x[1]), x[2], 1e-11);
}

static void check_q(const double *x) {
    CHECK_NEAR(ct_nemenyi_q((int)x[0]), x[1], 1e-9);
}

static void tails_are_those_of_other_integrals(void) {
    CHECK(each("f", check_f) == 6);
    CHECK(each("range", check_range) == 5);
    CHECK(each("q", check_q) == 11);
}

static void check_ranks(const double *x) {
    int n = (int)x[0];
    double ranks[16];
    ct_ranks(x + 1, n, ranks);
    for (int k = 0; k < n; k++) CHECK_NEAR(ranks[k], x[1 + n + k], 1e-12);
}

static void equal_values_share_a_rank(void) {
    const double values[] = {2, NAN, 5, 2, NAN};
    double ranks[5];
    CHECK(each("ranks", check_ranks) == 3);
    CHECK(ct_ranks(values, 5, ranks) == 12); /* two ties of two */
    CHECK(ranks[0] == 2.5 && ranks[1] == 4.5 && ranks[2] == 1 && ranks[4] == 4.5);
}

static void check_friedman(const double *x) {
    int blocks = (int)x[0], methods = (int)x[1];
    const double *wanted = x + 2 + blocks * methods;
    double ranks[CT_MOST_METHODS];
    ct_friedman test;
    ct_friedman_test(x + 2, blocks, methods, ranks, &test);
    for (int k = 0; k < methods; k++) CHECK_NEAR(ranks[k], wanted[k], 1e-12);
    CHECK_NEAR(test.chi2 / wanted[methods], 1, 1e-10);
    CHECK_NEAR(test.f / wanted[methods + 1], 1, 1e-10);
    CHECK_NEAR(test.p / wanted[methods + 2], 1, 1e-8);
    CHECK_NEAR(test.difference / wanted[methods + 3], 1, 1e-9);
}

static void methods_are_told_apart_as_elsewhere(void) {
    CHECK(each("friedman", check_friedman) == 4);
}

static void methods_that_are_alike_are_not_told_apart(void) {
    const double values[6] = {1, 1, 1, 2, 2, 2};
    double ranks[3];
    ct_friedman test;
    ct_friedman_test(values, 2, 3, ranks, &test);
    CHECK(ranks[0] == 2 && ranks[2] == 2 && test.chi2 == 0 && test.p == 1);
}

/* 10,000 of the n^n means; for so few values the ends are the same, or next to the same. */
static void check_boot(const double *x) {
    int n = (int)x[0];
    double low, high, again, end;
    ct_bootstrap(x + 1, n, 0.95, &low, &high);
    double near = n < 5 ? 1e-12 : 0.06;
    CHECK_NEAR(low, x[1 + n], near);
    CHECK_NEAR(high, x[2 + n], near);
    ct_bootstrap(x + 1, n, 0.95, &again, &end);
    CHECK(again == low && end == high);
}

static void intervals_are_those_of_all_resamples(void) {
    CHECK(each("boot", check_boot) == 5);
}

int main(void) {
    TEST(tails_are_those_of_other_integrals);
    TEST(equal_values_share_a_rank);
    TEST(methods_are_told_apart_as_elsewhere);
    TEST(methods_that_are_alike_are_not_told_apart);
    TEST(intervals_are_those_of_all_resamples);
    return test_report();
}
