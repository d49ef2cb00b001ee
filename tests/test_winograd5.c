/* The Winograd kernels for 5x5 of every instruction set against direct sums in double precision. */
#include "winograd.h"

/* Norm of the error over norm of the result: F(2x2,5x5) has the points of F(4x4,3x3) and stays at
 * most at 3e-6 on random data in the shapes below, F(4x4,5x5) at 2e-6. */
#define TOLERANCE 5e-6
enum { N_BLOCKS = 2, TAPS = 25 };

typedef ct_conv5_geometry shape; /* the picture has no border: h - 4 by w - 4 outputs */

static const shape shapes[] = {{6, 16, 14, 14, 0},  {4, 8, 6, 6, 0},  {16, 6, 8, 18, 0},
                               {5, 9, 10, 6, 0},    {1, 1, 6, 8, 0},  {12, 20, 8, 10, 0},
                               {33, 64, 12, 40, 0}, {3, 7, 24, 10, 0}};
#define N_SHAPES (sizeof shapes / sizeof *shapes)

static void check_error(double error, const shape *s, const char *what) {
    if (!(error <= TOLERANCE))
        printf("    %s, %d -> %d channels, %d x %d\n", what, s->c_in, s->c_out, s->h, s->w);
    CHECK_NEAR(error, 0, TOLERANCE);
}

static size_t input_floats(const shape *s) {
    return (size_t)(s->c_in * s->h * s->w) * CT_LANES;
}
static size_t output_floats(const shape *s) {
    return (size_t)(s->c_out * (s->h - 4) * (s->w - 4)) * CT_LANES;
}

typedef struct data {
    const shape *s;
    float *x, *w, *bias, *dy; /* N_BLOCKS blocks; w at an odd address as parameters may */
    double *y, *dx, *dw;      /* what the direct sums give: y without pooling */
} data;

/* Every product of the convolution once: block b, output o at (i, j), input c, tap k. */
static void direct_sums(const data *d, size_t b, int o, int i, int j, int c, int k) {
    const shape *s = d->s;
    const int h = s->h - 4, w = s->w - 4;
    size_t in =
        b * input_floats(s) + (size_t)((c * s->h + i + k / 5) * s->w + j + k % 5) * CT_LANES;
    size_t out = b * output_floats(s) + (size_t)((o * h + i) * w + j) * CT_LANES;
    size_t at = (size_t)((o * s->c_in + c) * TAPS + k);
    for (size_t l = 0; l < CT_LANES; l++) {
        d->y[out + l] += (double)d->w[at] * d->x[in + l];
        d->dx[in + l] += (double)d->w[at] * d->dy[out + l];
        d->dw[at] += (double)d->dy[out + l] * d->x[in + l];
    }
}

static data make_data(const shape *s) {
    const size_t n_w = (size_t)(s->c_in * s->c_out * TAPS), n_out = N_BLOCKS * output_floats(s);
    data d = {.s = s,
              .x = random_floats(N_BLOCKS * input_floats(s), 1),
              .w = random_floats(n_w + 1, 2) + 1,
              .bias = random_floats((size_t)s->c_out, 3),
              .dy = random_floats(n_out, 4),
              .y = ct_new(double, n_out),
              .dx = ct_new(double, N_BLOCKS *input_floats(s)),
              .dw = ct_new(double, n_w)};
    const int h = s->h - 4, w = s->w - 4;
    for (size_t b = 0; b < N_BLOCKS; b++)
        for (int at = 0; at < s->c_out * h * w; at++)
            for (int ck = 0; ck < s->c_in * TAPS; ck++)
                direct_sums(&d, b, at / (h * w), at / w % h, at % w, ck / TAPS, ck % TAPS);
    return d;
}

/* Direct sums take long; every instruction set and test has the same. */
static data made[N_SHAPES];

static const data *data_of(size_t k) {
    if (made[k].s == NULL) made[k] = make_data(&shapes[k]);
    return &made[k];
}

static void free_data(data *d) {
    if (d->s == NULL) return;
    ct_free(d->x);
    ct_free(d->w - 1);
    ct_free(d->bias);
    ct_free(d->dy);
    ct_free(d->y);
    ct_free(d->dx);
    ct_free(d->dw);
}

/* The four pixels of a window, given where its result lies. */
static void window(const data *d, size_t at, double value[4]) {
    const size_t w = (size_t)(d->s->w - 4), lane = at % CT_LANES, pixel = at / CT_LANES;
    const size_t row = pixel / (w / 2), column = pixel % (w / 2);
    const int o = (int)(pixel / (w / 2 * (size_t)(d->s->h - 4) / 2)) % d->s->c_out;
    for (size_t q = 0; q < 4; q++)
        value[q] =
            d->bias[o] + d->y[((2 * row + q / 2) * w + 2 * column + q % 2) * CT_LANES + lane];
}

static void check_pool(const data *d) {
    const size_t n = N_BLOCKS * output_floats(d->s) / 4;
    float *y = poisoned(n), *scratch = poisoned(kernels->winograd5_pool_scratch(d->s));
    uint8_t *index = ct_new(uint8_t, n);
    double *expected = ct_new(double, n), largest = 0;
    kernels->winograd5_pool(d->s, d->x, d->w, d->bias, N_BLOCKS, y, index, scratch);
    for (size_t k = 0; k < n; k++) {
        double value[4];
        window(d, k, value);
        for (int q = 0; q < 4; q++) expected[k] = fmax(expected[k], value[q]);
        double gap = expected[k] - (index[k] < 4 ? value[index[k]] : 0); /* of a near tie at most */
        if (gap > largest) largest = gap;
    }
    check_error(error_of(y, expected, n), d->s, "pooled output");
    CHECK_NEAR(largest, 0, 1e-3);
    kernels->winograd5_pool(d->s, d->x, d->w, d->bias, N_BLOCKS, y, NULL, scratch);
    check_error(error_of(y, expected, n), d->s, "pooled output without winners");
    CHECK(scratch[kernels->winograd5_pool_scratch(d->s)] == GUARD);
    ct_free(expected);
    ct_free(index);
    ct_free(scratch);
    ct_free(y);
}

static void the_pooled_convolution_is_the_direct_one(void) {
    if (kernels == NULL) SKIP("this machine lacks the instruction set");
    for (size_t k = 0; k < N_SHAPES; k++) {
        check_pool(data_of(k));
    }
}

static void check_gradients(const data *d, bool accumulate) {
    const size_t n = N_BLOCKS * input_floats(d->s), n_w = (size_t)(d->s->c_in * d->s->c_out * TAPS);
    const size_t n_scratch = kernels->winograd5_backward_scratch(d->s);
    float *dx = poisoned(n), *dw = poisoned(n_w), *scratch = poisoned(n_scratch);
    double *expected = ct_new(double, n);
    for (size_t k = 0; k < n; k++) {
        expected[k] = d->dx[k] + (accumulate ? (double)(k % 13) : 0);
        if (accumulate) dx[k] = (float)(k % 13);
    }
    kernels->winograd5_backward(d->s, d->x, d->w, d->dy, N_BLOCKS, accumulate, dx, dw, scratch);
    check_error(error_of(dx, expected, n), d->s, "data gradient");
    check_error(error_of(dw, d->dw, n_w), d->s, "weight gradient");
    for (size_t k = 0; k < n_w; k++) dw[k] = NAN;
    kernels->winograd5_backward(d->s, d->x, d->w, d->dy, N_BLOCKS, false, NULL, dw, scratch);
    check_error(error_of(dw, d->dw, n_w), d->s, "weight gradient alone");
    CHECK(scratch[n_scratch] == GUARD);
    ct_free(expected);
    ct_free(scratch);
    ct_free(dw);
    ct_free(dx);
}

static void the_gradients_are_the_direct_ones(void) {
    if (kernels == NULL) SKIP("this machine lacks the instruction set");
    for (size_t k = 0; k < N_SHAPES; k++) {
        check_gradients(data_of(k), false);
        check_gradients(data_of(k), true);
    }
}

/* ---- along rows only ---- */

static void check_rows_pool(const data *d) {
    const size_t n = N_BLOCKS * output_floats(d->s) / 4;
    float *y = poisoned(n), *scratch = poisoned(kernels->rows5_scratch(d->s));
    uint8_t *index = ct_new(uint8_t, n);
    double *expected = ct_new(double, n);
    kernels->rows5_pool(d->s, d->x, d->w, d->bias, N_BLOCKS, y, index, scratch);
    for (size_t k = 0; k < n; k++) {
        double value[4];
        window(d, k, value);
        for (int q = 0; q < 4; q++) expected[k] = fmax(expected[k], value[q]);
        CHECK_NEAR(expected[k] - (index[k] < 4 ? value[index[k]] : 0), 0, 1e-3);
    }
    check_error(error_of(y, expected, n), d->s, "along rows: pooled output");
    CHECK(scratch[kernels->rows5_scratch(d->s)] == GUARD);
    ct_free(expected);
    ct_free(index);
    ct_free(scratch);
    ct_free(y);
}

/* The gradient of the window at `at` goes to the pixel that index names; 4: to none. */
static void direct_share(const data *d, size_t at, int winner, float dy, double *dw, double *db) {
    const shape *s = d->s;
    const size_t h = (size_t)(s->h - 4) / 2, w = (size_t)(s->w - 4) / 2;
    const size_t lane = at % CT_LANES, pixel = at / CT_LANES,
                 o = pixel / (w * h) % (size_t)s->c_out;
    const size_t i = 2 * (pixel / w % h) + (size_t)winner / 2, j = 2 * (pixel % w) + winner % 2;
    const float *x = d->x + pixel / (w * h * (size_t)s->c_out) * input_floats(s) + lane;
    if (winner == 4) return;
    db[o] += dy;
    for (size_t c = 0; c < (size_t)s->c_in; c++)
        for (size_t k = 0; k < TAPS; k++) {
            const size_t row = c * (size_t)s->h + i + k / 5;
            dw[(o * (size_t)s->c_in + c) * TAPS + k] +=
                (double)dy * x[(row * (size_t)s->w + j + k % 5) * CT_LANES];
        }
}

static void check_rows_gradient(const data *d) {
    const size_t n = N_BLOCKS * output_floats(d->s) / 4, c_out = (size_t)d->s->c_out;
    const size_t n_w = c_out * (size_t)d->s->c_in * TAPS;
    float *scratch = poisoned(kernels->rows5_scratch(d->s)), *dw = poisoned(n_w);
    float *db = poisoned(c_out);
    uint8_t *index = ct_new(uint8_t, n);
    double *expected = ct_new(double, n_w), *sums = ct_new(double, c_out);
    for (size_t k = 0; k < n; k++) {
        index[k] = (uint8_t)(k * 7 / 3 % 5);
        direct_share(d, k, index[k], d->dy[k], expected, sums);
    }
    kernels->rows5_backward(d->s, d->x, d->dy, index, N_BLOCKS, dw, db, scratch);
    check_error(error_of(dw, expected, n_w), d->s, "along rows: weight gradient");
    check_error(error_of(db, sums, c_out), d->s, "along rows: bias gradient");
    CHECK(scratch[kernels->rows5_scratch(d->s)] == GUARD);
    ct_free(sums);
    ct_free(expected);
    ct_free(index);
    ct_free(db);
    ct_free(dw);
    ct_free(scratch);
}

static void along_rows_it_is_the_direct_one(void) {
    if (kernels == NULL) SKIP("this machine lacks the instruction set");
    for (size_t k = 0; k < N_SHAPES; k++) {
        check_rows_pool(data_of(k));
        check_rows_gradient(data_of(k));
    }
}

/* Pooled output and gradient of one block, with a border or with zeros that are really there. */
static void run_rows(const ct_conv5_geometry *g, const float *x, const float *dy, float *y,
                     float *dw) {
    const int n = g->c_out * (g->h + 2 * g->pad - 4) * (g->w + 2 * g->pad - 4) / 4 * CT_LANES;
    const int n_w = g->c_out * g->c_in * TAPS;
    float *w = random_floats((size_t)n_w, 7), *scratch = poisoned(kernels->rows5_scratch(g));
    uint8_t *index = ct_new(uint8_t, (size_t)n);
    kernels->rows5_pool(g, x, w, NULL, 1, y, index, scratch);
    kernels->rows5_backward(g, x, dy, index, 1, dw, NULL, scratch);
    ct_free(index);
    ct_free(scratch);
    ct_free(w);
}

static double distance(const float *a, const float *b, size_t n) {
    double *expected = ct_new(double, n);
    for (size_t k = 0; k < n; k++) expected[k] = b[k];
    const double error = error_of(a, expected, n);
    ct_free(expected);
    return error;
}

static void a_border_is_a_border_of_zeros(void) {
    enum { C = 2, H = 8, W = 10, O = 3, N_W = O * C * TAPS };
    if (kernels == NULL) SKIP("this machine lacks the instruction set");
    for (int pad = 1; pad <= 3; pad++) {
        const ct_conv5_geometry g = {C, O, H, W, pad};
        const ct_conv5_geometry all = {C, O, H + 2 * pad, W + 2 * pad, 0};
        const size_t n = (size_t)(O * (all.h - 4) * (all.w - 4) / 4) * CT_LANES;
        float *x = random_floats((size_t)(C * g.h * g.w) * CT_LANES, 1), *dy = random_floats(n, 2);
        float *padded = ct_new(float, (size_t)(C * all.h * all.w) * CT_LANES);
        for (int row = 0; row < C * g.h; row++)
            memcpy(padded +
                       (size_t)((row / g.h * all.h + row % g.h + pad) * all.w + pad) * CT_LANES,
                   x + (size_t)(row * g.w) * CT_LANES, (size_t)g.w * CT_LANES * sizeof *x);
        float *y[2] = {poisoned(n), poisoned(n)}, *dw[2] = {poisoned(N_W), poisoned(N_W)};
        run_rows(&g, x, dy, y[0], dw[0]);
        run_rows(&all, padded, dy, y[1], dw[1]);
        CHECK_NEAR(distance(y[0], y[1], n), 0, TOLERANCE);
        CHECK_NEAR(distance(dw[0], dw[1], N_W), 0, TOLERANCE);
        for (int k = 0; k < 2; k++) {
            ct_free(y[k]);
            ct_free(dw[k]);
        }
        ct_free(padded);
        ct_free(dy);
        ct_free(x);
    }
}

static void tests(void) {
    TEST(the_pooled_convolution_is_the_direct_one);
    TEST(the_gradients_are_the_direct_ones);
    TEST(along_rows_it_is_the_direct_one);
    TEST(a_border_is_a_border_of_zeros);
}

int main(void) {
    test_every_set(tests);
    for (size_t k = 0; k < N_SHAPES; k++) free_data(&made[k]);
    return test_report();
}
