/* Winograd's method for 3x3 convolutions of stride 2, every instruction set, against direct
 * convolution in double precision. */
#include "winograd.h"

/* Norm of the error over norm of the result: at most 2e-6 on random data in the shapes below. */
#define TOLERANCE 4e-6

typedef ct_winograd_geometry shape;

static const shape shapes[] = {{16, 32, 32, 32, 1}, {32, 64, 16, 16, 1}, {64, 128, 8, 8, 1},
                               {4, 4, 4, 4, 1},     {8, 4, 5, 7, 1},     {4, 12, 13, 22, 1},
                               {20, 8, 9, 1, 1},    {12, 68, 28, 28, 1}, {8, 8, 1, 6, 1},
                               {68, 4, 17, 15, 1}};
#define N_SHAPES (sizeof shapes / sizeof *shapes)

static const ct_winograd *by(void) {
    return kernels->winograd(2, 4);
}

static size_t input_floats(shape s) {
    return (size_t)s.c_in * s.h * s.w * CT_LANES;
}
static size_t output_floats(shape s) {
    return (size_t)s.c_out * ((s.h + 1) / 2) * ((s.w + 1) / 2) * CT_LANES;
}

/* The pixel of channel c that tap k of output pixel (i, j) reads, its place in x; -1 outside. */
static ptrdiff_t tap(shape s, int c, int i, int j, int k) {
    const int row = 2 * i + k / 3 - 1, column = 2 * j + k % 3 - 1;
    if (row < 0 || row >= s.h || column < 0 || column >= s.w) return -1;
    return (((ptrdiff_t)c * s.h + row) * s.w + column) * CT_LANES;
}

/* Calls `with` for every product of the convolution: places in x, w and y. */
typedef void (*visitor)(void *context, size_t x, size_t w, size_t y);

static void visit(shape s, visitor with, void *context) {
    const int h = (s.h + 1) / 2, w = (s.w + 1) / 2;
    for (int o = 0; o < s.c_out; o++)
        for (int at = 0; at < h * w; at++)
            for (int ik = 0; ik < 9 * s.c_in; ik++) {
                const ptrdiff_t from = tap(s, ik / 9, at / w, at % w, ik % 9);
                const size_t to = ((size_t)o * h * w + (size_t)at) * CT_LANES;
                if (from >= 0) with(context, (size_t)from, (size_t)(o * 9 * s.c_in + ik), to);
            }
}

typedef struct tensors {
    const float *x, *w;
    double *y;
} tensors;

static void add_output(void *context, size_t x, size_t w, size_t y) {
    const tensors *t = context;
    for (int l = 0; l < CT_LANES; l++) t->y[y + l] += (double)t->w[w] * t->x[x + l];
}

static void conv(const float *x, const float *w, shape s, float *y) {
    float *u = poisoned(by()->weights_size(&s)), *scratch = poisoned(by()->scratch(&s));
    by()->weights(&s, w, false, u);
    by()->conv(&s, x, u, y, scratch);
    release(scratch, by()->scratch(&s));
    release(u, by()->weights_size(&s));
}

static double conv_error(shape s) {
    const size_t n = output_floats(s), n_w = 9 * (size_t)s.c_in * s.c_out;
    float *x = random_floats(input_floats(s), 1), *w = random_floats(n_w + 1, 2);
    float *y = poisoned(n);
    double *expected = ct_new(double, n);
    visit(s, add_output, &(tensors){x, w + 1, expected}); /* + 1: parameters lie at any address */
    conv(x, w + 1, s, y);
    const double error = error_of(y, expected, n);
    ct_free(expected);
    ct_free(y);
    ct_free(w);
    ct_free(x);
    return error;
}

static void check(double (*error_in)(shape)) {
    if (kernels == NULL) SKIP("this machine lacks the instruction set");
    for (size_t k = 0; k < N_SHAPES; k++) {
        const double error = error_in(shapes[k]);
        if (!(error <= TOLERANCE))
            printf("    %d -> %d channels, %d x %d\n", shapes[k].c_in, shapes[k].c_out, shapes[k].h,
                   shapes[k].w);
        CHECK_NEAR(error, 0, TOLERANCE);
    }
}

/* What is expected of both gradients: places are the same, values go the other way. */
typedef struct gradients {
    const float *x, *w, *dy;
    double *dx, *dw;
} gradients;

static void add_gradients(void *context, size_t x, size_t w, size_t y) {
    const gradients *g = context;
    for (int l = 0; l < CT_LANES; l++) {
        g->dx[x + l] += (double)g->w[w] * g->dy[y + l];
        g->dw[w] += (double)g->x[x + l] * g->dy[y + l];
    }
}

/* dw of all blocks; dx, added to what is there, unless it is NULL. */
static void backward(const gradients *g, shape s, float *dx, float *dw) {
    const shape back = {s.c_out, s.c_in, s.h, s.w, s.n_blocks};
    float *u = poisoned(by()->weights_size(&back)), *scratch = poisoned(by()->scratch(&s));
    if (dx != NULL) by()->weights(&back, g->w, true, u);
    by()->backward(&s, g->x, g->dy, u, dx, true, dw, scratch);
    release(scratch, by()->scratch(&s));
    release(u, by()->weights_size(&back));
}

/* Two blocks with the same pictures and gradients: dw is twice that of one, alone as well. */
static double backward_error(shape s) {
    const size_t n = input_floats(s), n_w = 9 * (size_t)s.c_in * s.c_out, n_y = output_floats(s);
    float *x = random_floats(2 * n, 1), *w = random_floats(n_w + 1, 2);
    float *dy = random_floats(2 * n_y, 3), *dx = random_floats(2 * n, 4);
    float *dw = poisoned(n_w + 1), *alone = poisoned(n_w);
    gradients g = {x, w + 1, dy, ct_new(double, 2 * n), ct_new(double, n_w)};
    memcpy(x + n, x, n * sizeof *x);
    memcpy(dy + n_y, dy, n_y * sizeof *dy);
    visit(s, add_gradients, &g);
    memcpy(g.dx + n, g.dx, n * sizeof *g.dx);
    for (size_t k = 0; k < 2 * n; k++) g.dx[k] += dx[k];
    for (size_t k = 0; k < n_w; k++) g.dw[k] *= 2;
    s.n_blocks = 2;
    backward(&g, s, dx, dw + 1);
    backward(&g, s, NULL, alone);
    CHECK(memcmp(dw + 1, alone, n_w * sizeof *alone) == 0);
    const double of_data = error_of(dx, g.dx, 2 * n), of_weights = error_of(dw + 1, g.dw, n_w);
    ct_free(g.dw);
    ct_free(g.dx);
    float *blocks[] = {x, w, dy, dx, dw, alone};
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) ct_free(blocks[k]);
    return of_data >= of_weights || isnan(of_data) ? of_data : of_weights;
}

static void the_convolution_is_the_direct_one(void) {
    check(conv_error);
}

static void both_gradients_are_the_direct_ones(void) {
    check(backward_error);
}

static void tests(void) {
    TEST(the_convolution_is_the_direct_one);
    TEST(both_gradients_are_the_direct_ones);
}

int main(void) {
    test_every_set(tests);
    return test_report();
}
