/* What each kernel reaches on the layers of LeNet-5, ResNet-20 and MobileNet-V2, one core: GFLOP/s
 * beside the measured multiply-add peak, GB/s for kernels that only move memory (bytes read and
 * written once). Best of many calls on one block of 16 samples.
 *   bench_kernels [seconds per number, default 0.1] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "backend/cpu/kernels/kernels.h"
#include "util/memory.h"
#include "util/rng.h"

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct layer {
    const char *name;
    int c_in, c_out, h, w, kernel, stride, pad;
} layer;

static const layer layers[] = {
    {"lenet conv1", 1, 6, 28, 28, 5, 1, 2},       {"lenet conv2", 6, 16, 14, 14, 5, 1, 0},
    {"resnet stem", 3, 16, 32, 32, 3, 1, 1},      {"resnet 16", 16, 16, 32, 32, 3, 1, 1},
    {"resnet 16-32/2", 16, 32, 32, 32, 3, 2, 1},  {"resnet 32", 32, 32, 16, 16, 3, 1, 1},
    {"resnet 32-64/2", 32, 64, 16, 16, 3, 2, 1},  {"resnet 64", 64, 64, 8, 8, 3, 1, 1},
    {"mobile 24-144", 24, 144, 32, 32, 1, 1, 0},  {"mobile 144-24", 144, 24, 32, 32, 1, 1, 0},
    {"mobile 32-192", 32, 192, 16, 16, 1, 1, 0},  {"mobile 384-64", 384, 64, 8, 8, 1, 1, 0},
    {"mobile 96-576", 96, 576, 8, 8, 1, 1, 0},    {"mobile 960-160", 960, 160, 4, 4, 1, 1, 0},
    {"mobile 320-1280", 320, 1280, 4, 4, 1, 1, 0}};

static const int fcs[][2] = {{400, 120}, {120, 84}, {84, 10}, {64, 10}, {1280, 10}};

enum { MAX_FLOATS = 4 << 20 };

/* Everything a call needs. */
typedef struct work {
    const ct_kernels *k;
    layer l;
    int h_out, w_out;
    ct_conv_geometry g;
    ct_norm_args norm;
    float *x, *y, *w, *packed, *dw, *stats;
} work;

static void run_conv(work *b) {
    b->k->conv(&b->g, b->x, b->packed, b->w, CT_RELU, b->y);
}
static void run_wgrad(work *b) {
    b->k->conv_wgrad(&b->g, b->x, 0, b->y, 0, 1, b->dw);
}
static void run_pack(work *b) {
    ptrdiff_t taps = b->g.kh * b->g.kw, step[4] = {b->g.c_in * taps, taps, b->g.kw, 1};
    b->k->conv_pack(&b->g, b->w, step, b->packed);
}
static void run_outer(work *b) {
    const size_t row = (size_t)(b->l.c_in + 15) / 16 * 16, plane = b->g.y_channel;
    for (int p = 0; p < b->h_out * b->w_out; p += 16) {
        b->k->transpose(b->x + p * CT_LANES, b->g.x_channel, b->l.c_in, 16, b->stats, row);
        b->k->outer(b->l.c_out, b->l.c_in, 1, 16 * CT_LANES, b->y + p * CT_LANES, plane, 0,
                    b->stats, row, true, b->dw, (size_t)b->l.c_in);
    }
}
/* A linear layer on two blocks, or a 1x1 convolution; back: its data gradient. */
static ct_linear_geometry product(const work *b, bool back) {
    size_t n = (size_t)b->l.c_in, m = (size_t)b->l.c_out;
    ct_linear_geometry g = {.n_out = b->l.c_out, .n_in = b->l.c_in, .out_step = n, .in_step = 1};
    g.n_columns = 2;
    g.x_row = g.y_row = CT_LANES;
    g.x_column = n * CT_LANES;
    g.y_column = m * CT_LANES;
    if (!back) return g;
    return (ct_linear_geometry){b->l.c_in, b->l.c_out,   1,        n,           2,
                                CT_LANES,  m * CT_LANES, CT_LANES, n * CT_LANES};
}
static void run_linear(work *b) {
    ct_linear_geometry g = product(b, false);
    b->k->linear(&g, b->w, b->x, b->packed, CT_RELU, b->y);
}
static void run_linear_data(work *b) {
    ct_linear_geometry g = product(b, true);
    b->k->linear(&g, b->w, b->y, NULL, 0, b->x);
}
static void run_pointwise(work *b) {
    const int n_pixels = b->h_out * b->w_out;
    ct_linear_geometry g = product(b, false);
    g.n_columns = n_pixels;
    g.x_row = b->g.x_channel;
    g.y_row = b->g.y_channel;
    g.x_column = g.y_column = CT_LANES;
    b->k->linear(&g, b->w, b->x, b->packed, CT_RELU, b->y);
}
static void run_linear_weights(work *b) {
    size_t n = (size_t)b->l.c_in, row = (n + 15) / 16 * 16;
    for (size_t i = 0; i < 2; i++)
        b->k->transpose(b->x + i * n * CT_LANES, CT_LANES, b->l.c_in, 1,
                        b->packed + i * CT_LANES * row, row);
    b->k->outer(b->l.c_out, b->l.c_in, 2, CT_LANES, b->y, CT_LANES, (size_t)b->l.c_out * CT_LANES,
                b->packed, row, false, b->dw, n);
}
static void run_evonorm(work *b) {
    b->k->norm(&b->norm, b->x, NULL, false, b->stats, b->y);
}
static void run_evonorm_back(work *b) {
    b->k->norm_backward(&b->norm, b->x, b->y, b->stats, b->packed);
}

/* Best time of one call within `seconds`. */
static double best_s(void (*call)(work *), work *b, double seconds) {
    double best = INFINITY, end = now_s() + seconds;
    do {
        double start = now_s();
        call(b);
        double taken = now_s() - start;
        if (taken < best) best = taken;
    } while (now_s() < end);
    return best;
}

static void bench_layer(work *b, double seconds) {
    const layer *l = &b->l;
    const int hp = l->h + 2 * l->pad, wp = l->w + 2 * l->pad;
    b->h_out = (hp - l->kernel) / l->stride + 1;
    b->w_out = (wp - l->kernel) / l->stride + 1;
    b->g = (ct_conv_geometry){.c_in = l->c_in,
                              .c_out = l->c_out,
                              .kh = l->kernel,
                              .kw = l->kernel,
                              .stride = l->stride,
                              .pad_y = l->pad,
                              .pad_x = l->pad,
                              .h_in = l->h,
                              .w_in = l->w,
                              .h_out = b->h_out,
                              .w_out = b->w_out,
                              .x_channel = (size_t)(hp * wp) * CT_LANES,
                              .x_row = (size_t)wp * CT_LANES,
                              .y_channel = (size_t)(b->h_out * b->w_out) * CT_LANES,
                              .y_row = (size_t)b->w_out * CT_LANES,
                              .y_pixel = CT_LANES};
    double flops =
        2.0 * l->kernel * l->kernel * l->c_in * l->c_out * b->h_out * b->w_out * CT_LANES;
    double weights = (double)l->kernel * l->kernel * l->c_in * l->c_out;
    double pack = best_s(run_pack, b, seconds),
           conv = best_s(l->kernel == 1 ? run_pointwise : run_conv, b, seconds);
    double back = best_s(l->kernel == 1 ? run_outer : run_wgrad, b, seconds);
    printf("%-16s %8.1f GFLOP/s forward %8.1f weight gradient   packing %.2f ns a weight\n",
           l->name, 1e-9 * flops / conv, 1e-9 * flops / back, 1e9 * pack / weights);
}

static void bench_linear(work *b, double seconds) {
    double flops = 4.0 * b->l.c_in * b->l.c_out * CT_LANES;
    double forward = best_s(run_linear, b, seconds), data = best_s(run_linear_data, b, seconds);
    double weights = best_s(run_linear_weights, b, seconds);
    printf("fc %4d -> %-5d %8.1f GFLOP/s forward %8.1f weight gradient %8.1f data gradient\n",
           b->l.c_in, b->l.c_out, 1e-9 * flops / forward, 1e-9 * flops / weights,
           1e-9 * flops / data);
}

static void bench_norm(work *b, int c, int hw, double seconds) {
    b->norm = (ct_norm_args){.kind = CT_EVONORM_HARD,
                             .n = CT_LANES,
                             .c = c,
                             .groups = 8,
                             .n_pixels = (size_t)hw,
                             .epsilon = 1e-5f,
                             .w = b->w,
                             .b = b->w,
                             .dw = b->dw,
                             .db = b->dw};
    double bytes = 4.0 * c * hw * CT_LANES;
    double forward = best_s(run_evonorm, b, seconds), back = best_s(run_evonorm_back, b, seconds);
    printf("evonorm %3d x %-4d %6.1f GB/s forward (2 tensors) %6.1f backward (3 tensors)\n", c, hw,
           2e-9 * bytes / forward, 3e-9 * bytes / back);
}

static void bench_set(const ct_kernels *k, float *memory, double seconds) {
    work b = {.k = k};
    float *at[6];
    for (int i = 0; i < 6; i++) at[i] = memory + (size_t)i * (MAX_FLOATS + 336);
    b.x = at[0], b.y = at[1], b.w = at[2], b.packed = at[3], b.dw = at[4], b.stats = at[5];
    float out;
    double best = INFINITY, flops = k->multiply_adds(1, &out) * 100000;
    for (int i = 0; i < 50; i++) {
        double start = now_s();
        k->multiply_adds(100000, &out);
        double taken = now_s() - start;
        if (taken < best) best = taken;
    }
    printf("%s: peak %.1f GFLOP/s\n", k->isa, 1e-9 * flops / best);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        b.l = layers[i];
        bench_layer(&b, seconds);
    }
    for (size_t i = 0; i < sizeof fcs / sizeof *fcs; i++) {
        b.l = (layer){.c_in = fcs[i][0], .c_out = fcs[i][1]};
        bench_linear(&b, seconds);
    }
    bench_norm(&b, 16, 1024, seconds);
    bench_norm(&b, 32, 256, seconds);
    bench_norm(&b, 64, 64, seconds);
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.1;
    float *memory = ct_new(float, 6 * (MAX_FLOATS + 336));
    if (memory == NULL) return 1;
    ct_rng rng;
    ct_rng_init(&rng, 1, CT_RNG_TEST, 0, 0, 0);
    for (size_t k = 0; k < 6 * (MAX_FLOATS + 336); k++)
        memory[k] = (float)ct_rng_uniform(&rng) - 0.5f;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) bench_set(&ct_kernels_avx512, memory, seconds);
    if (__builtin_cpu_supports("avx2")) bench_set(&ct_kernels_avx2, memory, seconds);
#elif defined(__aarch64__)
    bench_set(&ct_kernels_neon, memory, seconds);
#endif
    bench_set(&ct_kernels_portable, memory, seconds);
    ct_free(memory);
    return 0;
}
