/* What the tests of the Winograd kernels share: blocks of floats with a guard behind them, errors
 * against sums in double precision, and one round for every instruction set of this machine. */
#ifndef CT_TESTS_WINOGRAD_H
#define CT_TESTS_WINOGRAD_H

#include "backend/cpu/kernels/kernels.h"
#include "test.h"
#include "util/memory.h"
#include "util/rng.h"

#define GUARD 7.0f /* must not be written */

static const ct_kernels *kernels; /* the set under test; NULL: not on this machine */

static inline float *guarded(size_t n) {
    float *a = ct_new(float, n + 1);
    if (a != NULL) a[n] = GUARD;
    return a;
}

static inline float *random_floats(size_t n, uint32_t index) {
    ct_rng rng;
    ct_rng_init(&rng, 1, CT_RNG_TEST, 0, 0, index);
    float *a = guarded(n);
    for (size_t k = 0; a != NULL && k < n; k++) a[k] = (float)ct_rng_normal(&rng);
    return a;
}

/* Memory whose content must not matter. */
static inline float *poisoned(size_t n) {
    float *a = guarded(n);
    for (size_t k = 0; a != NULL && k < n; k++) a[k] = NAN;
    return a;
}

/* Of n floats, which must have sufficed. */
static inline void release(float *a, size_t n) {
    CHECK(a[n] == GUARD);
    ct_free(a);
}

/* Norm of the error over norm of the result; NAN if the guard was written. */
static inline double error_of(const float *value, const double *expected, size_t n) {
    double error = 0, norm = 0;
    for (size_t k = 0; k < n; k++) {
        error += (value[k] - expected[k]) * (value[k] - expected[k]);
        norm += expected[k] * expected[k];
    }
    return value[n] == GUARD ? sqrt(error / norm) : (double)NAN;
}

static inline void test_set(const char *isa, const ct_kernels *set, void (*tests)(void)) {
    printf("%s\n", isa);
    kernels = set;
    tests();
}

static inline void test_every_set(void (*tests)(void)) {
    test_set("portable", &ct_kernels_portable, tests);
#if defined(__x86_64__)
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    test_set("avx2", avx2 ? &ct_kernels_avx2 : NULL, tests);
    test_set("avx512", avx512 ? &ct_kernels_avx512 : NULL, tests);
#elif defined(__aarch64__)
    test_set("neon", &ct_kernels_neon, tests);
#endif
}

#endif
