/* Effective GFLOP/s of the Winograd kernels, one core: the operations of the direct convolution,
 * 2 * 9 * c_in * c_out * h * w per sample, over the best time of many. Beside it the measured
 * multiply-add peak of the set; 4 times that is the limit of F(4x4,3x3), 5.76 times
 * that of F(8x8,3x3).
 *   bench_winograd [seconds per number, default 0.3] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "backend/cpu/kernels/kernels.h"
#include "util/memory.h"
#include "util/rng.h"

typedef struct shape {
    int tile;
    ct_winograd_geometry g;
} shape;

static const shape shapes[] = {
    {8, {16, 16, 32, 32, 2}}, {4, {16, 16, 32, 32, 2}}, {8, {32, 32, 16, 16, 2}},
    {4, {32, 32, 16, 16, 2}}, {8, {64, 64, 8, 8, 2}},   {4, {64, 64, 8, 8, 2}},
    {4, {3, 16, 32, 32, 2}},  {8, {3, 16, 32, 32, 2}},  {4, {16, 16, 28, 28, 2}},
    {4, {32, 32, 14, 14, 2}}, {4, {64, 64, 7, 7, 2}},   {4, {128, 128, 8, 8, 2}},
    {8, {64, 64, 56, 56, 2}}, {4, {64, 64, 56, 56, 2}}, {4, {256, 256, 4, 4, 2}},
    {4, {512, 512, 4, 4, 2}},
};

/* Everything one shape needs. */
typedef struct work {
    const ct_winograd *by;
    ct_winograd_geometry s;
    float *x, *y, *w, *u, *scratch;
} work;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run_conv(work *k) {
    k->by->conv(&k->s, k->x, k->u, k->y, k->scratch);
}
static void run_wgrad(work *k) {
    k->by->backward(&k->s, k->x, k->y, NULL, NULL, false, k->w, k->scratch);
}
static void run_weights(work *k) {
    k->by->weights(&k->s, k->w, false, k->u);
}
/* Best time of one call within `seconds`. */
static double best_s(void (*call)(work *), work *k, double seconds) {
    double best = INFINITY, end = now_s() + seconds;
    do {
        double start = now_s();
        call(k);
        double taken = now_s() - start;
        if (taken < best) best = taken;
    } while (now_s() < end);
    return best;
}

static float *noise(size_t n) {
    ct_rng rng;
    ct_rng_init(&rng, 1, CT_RNG_TEST, 0, 0, 0);
    float *a = ct_new(float, n);
    for (size_t k = 0; a != NULL && k < n; k++) a[k] = (float)ct_rng_uniform(&rng) - 0.5f;
    return a;
}

static void bench_shape(const ct_kernels *set, const shape *of, double seconds) {
    const ct_winograd_geometry s = of->g;
    const ct_winograd *by = set->winograd(1, of->tile);
    work k = {.by = by, .s = s};
    const size_t area = (size_t)(s.n_blocks * s.h * s.w) * CT_LANES;
    k.x = noise(area * (size_t)s.c_in);
    k.y = noise(area * (size_t)s.c_out);
    k.w = noise(9 * (size_t)s.c_in * s.c_out);
    k.u = noise(by->weights_size(&s));
    k.scratch = noise(by->scratch(&s));
    double wgrad = best_s(run_wgrad, &k, seconds);
    double weights = best_s(run_weights, &k, seconds / 8), conv = best_s(run_conv, &k, seconds);
    double gflop = 2e-9 * 9 * s.c_in * s.c_out * (double)area;
    printf("%-8s %4d %3d -> %3d  %2d x %2d  %9.1f %9.1f %11.1f\n", set->isa, of->tile, s.c_in,
           s.c_out, s.h, s.w, gflop / conv, gflop / wgrad, 1e6 * weights);
    float *blocks[] = {k.x, k.y, k.w, k.u, k.scratch};
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) ct_free(blocks[b]);
}

#define PEAK_STEPS 200000

/* 12 independent chains of multiply-adds in registers, GFLOP/s. */
#define PEAK(name, attribute, lanes)                                                               \
    __attribute__((attribute, optimize("O3", "fp-contract=fast"))) static double name(void) {      \
        typedef float v __attribute__((vector_size(4 * (lanes))));                                 \
        volatile float seed = 0.5f;                                                                \
        v a[12], b = seed - (v){0}, c = seed - (v){0};                                             \
        for (int i = 0; i < 12; i++) a[i] = b * (float)i;                                          \
        double start = now_s();                                                                    \
        for (int k = 0; k < PEAK_STEPS; k++)                                                       \
            for (int i = 0; i < 12; i++) a[i] = a[i] * b + c;                                      \
        double taken = now_s() - start;                                                            \
        for (int i = 0; i < 12; i++) seed += a[i][0];                                              \
        return 2e-9 * 12 * (lanes)*PEAK_STEPS / taken;                                             \
    }
#if defined(__x86_64__)
PEAK(peak_avx512, target("avx512f,fma"), 16)
PEAK(peak_avx2, target("avx2,fma"), 8)
#endif
PEAK(peak_portable, noinline, 4)

static void bench_set(const ct_kernels *set, double (*peak)(void), double seconds) {
    double gflops = 0;
    for (int k = 0; k < 100; k++) gflops = fmax(gflops, peak());
    printf("%s: multiply-add peak %.1f GFLOP/s\n", set->isa, gflops);
    printf("%-8s %4s %10s  %7s  %9s %9s %11s\n", "set", "tile", "channels", "pixels", "conv",
           "wgrad", "weights us");
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        bench_shape(set, &shapes[k], seconds);
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.3;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        bench_set(&ct_kernels_avx512, peak_avx512, seconds);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        bench_set(&ct_kernels_avx2, peak_avx2, seconds);
#elif defined(__aarch64__)
    bench_set(&ct_kernels_neon, peak_portable, seconds);
#endif
    bench_set(&ct_kernels_portable, peak_portable, seconds);
    return 0;
}
