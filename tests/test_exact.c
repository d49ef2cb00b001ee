/* Exact sums: every order and grouping gives the same bits, which are those of rational numbers
 * (tests/oracle/tables.py). */
#include "test.h"

#include <stdlib.h>

#include "util/exact.h"
#include "util/file.h"
#include "util/memory.h"
#include "util/rng.h"

enum { MAX_NUMBERS = 64 };

typedef struct sums {
    ct_exact sum, squares;
} sums;

static void add(sums *s, double x) {
    ct_exact_add(&s->sum, x);
    ct_exact_add_square(&s->squares, x);
}

static void merge(sums *a, const sums *b) {
    ct_exact_merge(&a->sum, &b->sum);
    ct_exact_merge(&a->squares, &b->squares);
}

static bool same_bits(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

/* What is printed is all there is. */
static bool same_sums(const sums *a, const sums *b) {
    CT_SCOPED(ct_text) x = {0};
    CT_SCOPED(ct_text) y = {0};
    ct_exact_print(&a->sum, &x);
    ct_exact_print(&a->squares, &x);
    ct_exact_print(&b->sum, &y);
    ct_exact_print(&b->squares, &y);
    return strcmp(x.chars, y.chars) == 0;
}

static void sums_and_deviations_are_those_of_rational_numbers(void) {
    CT_SCOPED(ct_blob) file = {0};
    REQUIRE_OK(ct_file_read(CT_SOURCE_DIR "/tests/fixtures/tables/exact.txt", 1 << 20, &file));
    int n_cases = 0;
    ct_lines lines = ct_blob_lines(&file);
    for (char *at = ct_lines_next(&lines); at != NULL; at = ct_lines_next(&lines), n_cases++) {
        sums s = {.sum = {{0}}};
        long n = strtol(at, &at, 10);
        for (long k = 0; k < n; k++) add(&s, strtod(at, &at));
        double sum = strtod(at, &at), deviation = strtod(at, &at);
        CHECK(same_bits(ct_exact_value(&s.sum), sum));
        /* a root, a quotient, and what they are taken of: three roundings */
        CHECK_NEAR(ct_exact_deviation(&s.sum, &s.squares, (uint64_t)n), deviation,
                   4e-16 * deviation);
        CHECK(ct_exact_is_possible(&s.sum, &s.squares, (uint64_t)n));
    }
    CHECK(n_cases > 40);
}

/* Any doubles: the bits are drawn. */
static double draw(ct_rng *rng) {
    for (;;) {
        double x;
        uint64_t bits = (uint64_t)ct_rng_below(rng, 1u << 31) << 33 |
                        (uint64_t)ct_rng_below(rng, 1u << 31) << 2 | ct_rng_below(rng, 4);
        memcpy(&x, &bits, sizeof x);
        if (isfinite(x)) return x;
    }
}

static void any_order_and_any_tree_give_the_same_bits(void) {
    ct_rng rng;
    ct_rng_init(&rng, 5, CT_RNG_SYNTHETIC, 0, 0, 0);
    double numbers[MAX_NUMBERS];
    sums in_order = {.sum = {{0}}};
    for (int k = 0; k < MAX_NUMBERS; k++) add(&in_order, numbers[k] = draw(&rng));
    for (int trial = 0; trial < 200; trial++) {
        uint32_t order[MAX_NUMBERS];
        sums leaf[MAX_NUMBERS] = {{.sum = {{0}}}};
        int n_leaves = 1 + (int)ct_rng_below(&rng, MAX_NUMBERS);
        for (uint32_t k = 0; k < MAX_NUMBERS; k++) order[k] = k;
        ct_rng_shuffle(&rng, order, MAX_NUMBERS);
        for (int k = 0; k < MAX_NUMBERS; k++)
            add(&leaf[ct_rng_below(&rng, (uint32_t)n_leaves)], numbers[order[k]]);
        for (; n_leaves > 1; n_leaves--) { /* any one into any other */
            uint32_t from = ct_rng_below(&rng, (uint32_t)n_leaves);
            sums taken = leaf[from];
            leaf[from] = leaf[n_leaves - 1];
            merge(&leaf[ct_rng_below(&rng, (uint32_t)(n_leaves - 1))], &taken);
        }
        CHECK(same_sums(&leaf[0], &in_order));
    }
}

static void what_was_added_can_be_taken_away(void) {
    ct_rng rng;
    ct_rng_init(&rng, 6, CT_RNG_SYNTHETIC, 0, 0, 0);
    ct_exact sum = {{0}};
    double numbers[MAX_NUMBERS];
    for (int k = 0; k < MAX_NUMBERS; k++) ct_exact_add(&sum, numbers[k] = draw(&rng));
    for (int k = 0; k < MAX_NUMBERS; k++) ct_exact_add(&sum, -numbers[k]);
    CHECK(ct_exact_value(&sum) == 0);
    ct_exact_add(&sum, -0x1p-1074);
    CHECK(ct_exact_value(&sum) == -0x1p-1074);
}

static void texts_are_read_back_and_wrong_ones_refused(void) {
    static const char *const wrong[] = {"",     "@0",   "0",     "x@0",  "1@137", "1@-1", "1@",
                                        "1@0x", "+1@0", "--1@0", "1 @0", "1@1e3", "A@0",  "1@136"};
    sums s = {.sum = {{0}}};
    for (int k = -5; k < 40; k++) {
        CT_SCOPED(ct_text) text = {0};
        CT_SCOPED(ct_text) again = {0};
        ct_exact back;
        ct_exact_add(&s.sum, ldexp(-1.5 - k, 40 * k % 900));
        ct_exact_print(&s.sum, &text);
        REQUIRE(ct_exact_parse(text.chars, &back));
        ct_exact_print(&back, &again);
        CHECK(strcmp(text.chars, again.chars) == 0);
        CHECK(same_bits(ct_exact_value(&back), ct_exact_value(&s.sum)));
    }
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        ct_exact out = {{77}};
        CHECK(!ct_exact_parse(wrong[k], &out));
        CHECK(out.limb[0] == 77);
    }
}

static void sums_that_no_numbers_have_are_impossible(void) {
    sums s = {.sum = {{0}}};
    add(&s, 3);
    add(&s, -5);
    CHECK(ct_exact_is_possible(&s.sum, &s.squares, 2));
    CHECK(!ct_exact_is_possible(&s.sum, &s.squares, 0));
    CHECK(!ct_exact_is_possible(&s.sum, &s.squares, CT_EXACT_COUNT + 1));
    ct_exact none = {{0}}, negative = {{0}}, tiny = {{0}}, huge = {{0}};
    CHECK(!ct_exact_is_possible(&s.sum, &none, 2)); /* a sum without squares */
    ct_exact_add(&negative, -1);
    CHECK(!ct_exact_is_possible(&none, &negative, 2));
    REQUIRE(ct_exact_parse("1@0", &tiny) && ct_exact_parse("1@135", &huge));
    CHECK(!ct_exact_is_possible(&tiny, &s.squares, 2)); /* smaller than any double */
    CHECK(!ct_exact_is_possible(&huge, &huge, 2));
}

int main(void) {
    TEST(sums_and_deviations_are_those_of_rational_numbers);
    TEST(any_order_and_any_tree_give_the_same_bits);
    TEST(what_was_added_can_be_taken_away);
    TEST(texts_are_read_back_and_wrong_ones_refused);
    TEST(sums_that_no_numbers_have_are_impossible);
    return test_report();
}
