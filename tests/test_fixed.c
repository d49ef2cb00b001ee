/* Sums in fixed point: the same bits in any order, and means that are rounded once. */
#include "test.h"

#include <float.h>
#include <stdlib.h>

#include "util/fixed.h"
#include "util/rng.h"

enum { N = 300, N_TERMS = 37 };

static float terms[N_TERMS][N];

/* Every magnitude that a model has, and more; both signs. */
static void draw_terms(uint64_t seed) {
    ct_rng rng;
    ct_rng_init(&rng, seed, CT_RNG_SHUFFLE, 0, 0, 0);
    for (int i = 0; i < N_TERMS; i++)
        for (int k = 0; k < N; k++)
            terms[i][k] =
                (float)ldexp(2 * ct_rng_uniform(&rng) - 1, (int)ct_rng_below(&rng, 90) - 60);
}

static void sums_do_not_depend_on_the_order(void) {
    static ct_fixed sums[N], other[N], left[N], right[N];
    uint32_t order[N_TERMS];
    draw_terms(1);
    for (int i = 0; i < N_TERMS; i++) CHECK_OK(ct_fixed_add(terms[i], N, sums));
    for (uint64_t seed = 1; seed <= 20; seed++) {
        ct_rng rng;
        ct_rng_init(&rng, seed, CT_RNG_SHUFFLE, 0, 0, 0);
        for (uint32_t i = 0; i < N_TERMS; i++) order[i] = i;
        ct_rng_shuffle(&rng, order, N_TERMS);
        memset(left, 0, sizeof left);
        memset(right, 0, sizeof right);
        size_t cut = ct_rng_below(&rng, N_TERMS);
        for (size_t i = 0; i < N_TERMS; i++)
            CHECK_OK(ct_fixed_add(terms[order[i]], N, i < cut ? left : right));
        for (int k = 0; k < N; k++) other[k] = left[k] + right[k]; /* as along a tree */
        CHECK(memcmp(other, sums, sizeof sums) == 0);
    }
    /* which floats would not do */
    double forwards = 0, backwards = 0;
    for (int i = 0; i < N_TERMS; i++) forwards += (double)terms[i][7];
    for (int i = N_TERMS; i-- > 0;) backwards += (double)terms[i][7];
    CHECK_NEAR(forwards, backwards, 1e-6);
}

/* The exact quotient lies at most half a unit in the last place away; long double has 64 digits, and
 * of these sums all. */
static void means_are_rounded_to_the_nearest_float(void) {
    static ct_fixed sums[N];
    static float mean[N];
    memset(sums, 0, sizeof sums);
    draw_terms(2);
    for (int i = 0; i < N_TERMS; i++) CHECK_OK(ct_fixed_add(terms[i], N, sums));
    for (int count = 1; count <= N_TERMS; count += 4) {
        ct_fixed_mean(sums, N, count, mean);
        int n_wrong = 0;
        for (int k = 0; k < N; k++) {
            long double exact = (long double)sums[k] / (long double)count * 0x1p-80L;
            long double off = fabsl(exact - (long double)mean[k]);
            float next = nextafterf(mean[k], INFINITY), before = nextafterf(mean[k], -INFINITY);
            n_wrong += off > fabsl(exact - (long double)next) * (1 + 1e-12L) ||
                       off > fabsl(exact - (long double)before) * (1 + 1e-12L);
        }
        CHECK(n_wrong == 0);
    }
}

static float mean_of_two(float a, float b) {
    ct_fixed sum = 0;
    float mean;
    CHECK_OK(ct_fixed_add(&a, 1, &sum));
    CHECK_OK(ct_fixed_add(&b, 1, &sum));
    ct_fixed_mean(&sum, 1, 2, &mean);
    return mean;
}

static void ties_go_to_the_even_digit(void) {
    const float one = 1, next = 1 + FLT_EPSILON, after = 1 + 2 * FLT_EPSILON;
    CHECK(mean_of_two(one, next) == one);
    CHECK(mean_of_two(next, after) == after);
    CHECK(mean_of_two(-one, -next) == -one);
    CHECK(mean_of_two(one, -one) == 0);
    CHECK(mean_of_two(0x1p30f, 0x1p-60f) == 0x1p29f);
}

static void a_model_stays_what_it_is_as_the_mean_of_itself(void) {
    static ct_fixed sums[N];
    static float mean[N];
    draw_terms(3);
    for (int k = 0; k < N; k++) /* those that keep all their digits */
        if (fabsf(terms[0][k]) < 0x1p-56f) terms[0][k] = 0;
    memset(sums, 0, sizeof sums);
    for (int i = 0; i < 11; i++) CHECK_OK(ct_fixed_add(terms[0], N, sums));
    ct_fixed_mean(sums, N, 11, mean);
    CHECK(memcmp(mean, terms[0], sizeof mean) == 0);
}

static void as_many_as_there_may_be_do_not_overflow(void) {
    const float largest = nextafterf((float)CT_FIXED_LIMIT, 0);
    ct_fixed sum = 0;
    float mean;
    for (int i = 0; i < CT_FIXED_MAX_TERMS; i++) CHECK_OK(ct_fixed_add(&largest, 1, &sum));
    ct_fixed_mean(&sum, 1, CT_FIXED_MAX_TERMS, &mean);
    CHECK(mean == largest);
}

static void what_has_no_mean_is_refused(void) {
    const float bad[] = {NAN, INFINITY, -INFINITY, (float)CT_FIXED_LIMIT, -(float)CT_FIXED_LIMIT};
    ct_fixed sums[2] = {0};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        float x[] = {1, bad[k]};
        CHECK_FAILS(ct_fixed_add(x, 2, sums), CT_DIVERGED, "value 1 of a model is ");
    }
}

int main(void) {
    TEST(sums_do_not_depend_on_the_order);
    TEST(means_are_rounded_to_the_nearest_float);
    TEST(ties_go_to_the_even_digit);
    TEST(a_model_stays_what_it_is_as_the_mean_of_itself);
    TEST(as_many_as_there_may_be_do_not_overflow);
    TEST(what_has_no_mean_is_refused);
    return test_report();
}
