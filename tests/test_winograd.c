/* The Winograd kernels of every instruction set against direct convolution in double precision. */
#include "winograd.h"

static int tile; /* of the kernels under test */

static const ct_winograd *by(void) {
    return kernels->winograd(1, tile);
}

/* Norm of the error over norm of the result, on random data in the shapes below. float32 Winograd
 * F(4x4,3x3) loses about one digit against direct sums, at most 3e-6; F(8x8,3x3), whose points
 * cost sixteen times as much, at most 4e-5. */
static double tolerance(void) {
    return tile == 4 ? 5e-6 : 6e-5;
}

/* Whole tiles of either size and not, chunks that are parts of a block and several blocks. */
static const ct_winograd_geometry shapes[] = {
    {16, 16, 32, 32, 2}, {32, 32, 16, 16, 2}, {64, 64, 8, 8, 3},   {3, 16, 32, 32, 1},
    {1, 6, 28, 28, 1},   {16, 16, 28, 28, 1}, {32, 32, 14, 14, 1}, {64, 64, 7, 7, 2},
    {128, 64, 4, 4, 3},  {64, 256, 2, 2, 2},  {130, 20, 3, 5, 2},  {7, 5, 1, 1, 5},
    {5, 9, 13, 6, 4},    {2, 3, 4, 9, 3},     {17, 33, 11, 20, 2}, {1, 1, 5, 5, 2},
    {4, 10, 6, 33, 2},   {70, 12, 16, 24, 1},
};
#define N_SHAPES (sizeof shapes / sizeof *shapes)

static ct_winograd_geometry turned(ct_winograd_geometry g) {
    return (ct_winograd_geometry){g.c_out, g.c_in, g.h, g.w, g.n_blocks};
}

static size_t floats(int c, ct_winograd_geometry g) {
    return (size_t)(g.n_blocks * c * g.h * g.w) * CT_LANES;
}

/* The picture of block b, channel c shifted so that output pixel `at` reads tap k; NULL outside. */
static const float *tap(const float *x, ct_winograd_geometry g, int b, int c, int at, int k) {
    int row = at / g.w + k / 3 - 1, column = at % g.w + k % 3 - 1;
    if (row < 0 || row >= g.h || column < 0 || column >= g.w) return NULL;
    return x + (((size_t)(b * g.c_in + c) * g.h + row) * g.w + column) * CT_LANES;
}

/* y = the convolution, weight of (o, i, tap k) at w[o * o_step + i * i_step + (flip ? 8 - k : k)].
 */
static void direct_conv(const float *x, const float *w, ct_winograd_geometry g, bool flip,
                        double *y) {
    const size_t o_step = flip ? 9 : 9 * (size_t)g.c_in, i_step = flip ? 9 * (size_t)g.c_out : 9;
    const int area = g.h * g.w;
    for (int bo = 0; bo < g.n_blocks * g.c_out; bo++) {
        for (int at = 0; at < area; at++) {
            double *pixel = y + ((size_t)bo * area + at) * CT_LANES;
            for (int ik = 0; ik < 9 * g.c_in; ik++) {
                int i = ik / 9, k = ik % 9, o = bo % g.c_out;
                const float *from = tap(x, g, bo / g.c_out, i, at, k);
                double weight = w[o * o_step + i * i_step + (size_t)(flip ? 8 - k : k)];
                for (int l = 0; from != NULL && l < CT_LANES; l++) pixel[l] += weight * from[l];
            }
        }
    }
}

static void direct_wgrad(const float *x, const float *dy, ct_winograd_geometry g, double *dw) {
    const int area = g.h * g.w;
    for (int o = 0; o < g.c_out; o++) {
        for (int ik = 0; ik < 9 * g.c_in; ik++) {
            double sum = 0;
            for (int at = 0; at < g.n_blocks * area; at++) {
                const int b = at / area;
                const float *from = tap(x, g, b, ik / 9, at % area, ik % 9);
                const float *d = dy + ((size_t)(b * g.c_out + o) * area + at % area) * CT_LANES;
                for (int l = 0; from != NULL && l < CT_LANES; l++) sum += (double)d[l] * from[l];
            }
            dw[(size_t)o * 9 * g.c_in + ik] = sum;
        }
    }
}

enum { Y, Y_TURNED, DX, DW, N_KINDS };

/* The data of every shape, and the direct sums, made once for all kernels. */
static size_t n_weights(size_t shape) {
    return 9 * (size_t)(shapes[shape].c_in * shapes[shape].c_out);
}
static const float *made_once(float **at, size_t n, uint32_t index) {
    if (*at == NULL) *at = random_floats(n, index);
    return *at;
}
static const float *input_of(size_t shape) {
    static float *made[N_SHAPES];
    return made_once(&made[shape], floats(shapes[shape].c_in, shapes[shape]), 1);
}
static const float *gradient_of(size_t shape) {
    static float *made[N_SHAPES];
    return made_once(&made[shape], floats(shapes[shape].c_out, shapes[shape]), 20);
}
/* Behind one more: parameters lie at any address. */
static const float *weights_of(size_t shape) {
    static float *made[N_SHAPES];
    return made_once(&made[shape], n_weights(shape) + 1, 2) + 1;
}

static const double *direct(size_t shape, int kind) {
    static double *sums[N_SHAPES][N_KINDS];
    const ct_winograd_geometry g = shapes[shape];
    double **at = &sums[shape][kind];
    if (*at != NULL) return *at;
    const float *x = input_of(shape), *dy = gradient_of(shape), *w = weights_of(shape);
    *at = ct_new(double, kind == DW ? n_weights(shape) : floats(kind == DX ? g.c_in : g.c_out, g));
    if (kind == DW)
        direct_wgrad(x, dy, g, *at);
    else if (kind == DX)
        direct_conv(dy, w, turned(g), true, *at);
    else
        direct_conv(x, w, g, kind == Y_TURNED, *at);
    return *at;
}

/* The kernel's y for these data. */
static void conv(const float *x, const float *w, ct_winograd_geometry g, bool flip, float *y) {
    float *u = poisoned(by()->weights_size(&g));
    float *scratch = poisoned(by()->scratch(&g));
    by()->weights(&g, w, flip, u);
    by()->conv(&g, x, u, y, scratch);
    release(scratch, by()->scratch(&g));
    release(u, by()->weights_size(&g));
}

/* The error of one convolution against the direct one; NAN if it wrote past the end of y. */
static double conv_error(size_t shape, ct_winograd_geometry g, bool flip) {
    const size_t n = floats(g.c_out, g);
    float *y = poisoned(n);
    conv(input_of(shape), weights_of(shape), g, flip, y);
    double error = error_of(y, direct(shape, flip ? Y_TURNED : Y), n);
    ct_free(y);
    return error;
}

static void check_shapes(double (*error_of_shape)(size_t, ct_winograd_geometry, bool), bool flag) {
    if (kernels == NULL) SKIP("this machine lacks the instruction set");
    for (size_t k = 0; k < N_SHAPES; k++) {
        const ct_winograd_geometry g = shapes[k];
        double error = error_of_shape(k, g, flag);
        if (!(error <= tolerance()))
            printf("    %d -> %d channels, %d x %d, %d blocks\n", g.c_in, g.c_out, g.h, g.w,
                   g.n_blocks);
        CHECK_NEAR(error, 0, tolerance());
    }
}

static void the_convolution_is_the_direct_one(void) {
    check_shapes(conv_error, false);
}
static void the_convolution_with_turned_weights_is_the_direct_one(void) {
    check_shapes(conv_error, true);
}

/* dw [c_out][c_in][9], and dx unless it is NULL. */
static void backward(const float *x, const float *dy, const float *w, ct_winograd_geometry g,
                     float *dx, bool accumulate, float *dw) {
    const ct_winograd_geometry back = turned(g);
    float *u = poisoned(by()->weights_size(&back));
    float *scratch = poisoned(by()->scratch(&g));
    if (dx != NULL) by()->weights(&back, w, true, u);
    by()->backward(&g, x, dy, u, dx, accumulate, dw, scratch);
    release(scratch, by()->scratch(&g));
    release(u, by()->weights_size(&back));
}

/* The larger error of the data gradient, written and added to what is there. */
static double data_error(size_t shape, ct_winograd_geometry g, const float *x, const float *dy,
                         const float *w, float *dw) {
    const size_t n = floats(g.c_in, g);
    const double *expected = direct(shape, DX);
    float *dx = poisoned(n), *before = random_floats(n, 40), *sum = guarded(n);
    memcpy(sum, before, n * sizeof *sum);
    backward(x, dy, w, g, dx, false, dw);
    backward(x, dy, w, g, sum, true, dw);
    const double error = error_of(dx, expected, n);
    double *both = ct_new(double, n);
    for (size_t k = 0; k < n; k++) both[k] = expected[k] + (double)before[k];
    const double of_sum = error_of(sum, both, n);
    ct_free(both);
    ct_free(sum);
    ct_free(before);
    ct_free(dx);
    return of_sum <= error ? error : of_sum;
}

/* The error of the weight gradient and, if it is wanted too, that of the data's if it is larger. */
static double backward_error(size_t shape, ct_winograd_geometry g, bool wants_data) {
    const size_t n = n_weights(shape);
    const float *x = input_of(shape), *dy = gradient_of(shape);
    float *dw = poisoned(n + 1);
    double of_data = 0;
    if (wants_data)
        of_data = data_error(shape, g, x, dy, weights_of(shape), dw + 1);
    else
        backward(x, dy, NULL, g, NULL, false, dw + 1);
    double error = error_of(dw + 1, direct(shape, DW), n);
    ct_free(dw);
    return of_data <= error ? error : of_data;
}

static void the_weight_gradient_is_the_direct_one(void) {
    check_shapes(backward_error, false);
}
static void both_gradients_together_are_the_direct_ones(void) {
    check_shapes(backward_error, true);
}

static void two_calls_give_the_same_bits(void) {
    if (kernels == NULL) SKIP("this machine lacks the instruction set");
    const ct_winograd_geometry g = {17, 33, 11, 20, 2};
    const size_t n = floats(g.c_out, g), n_w = 9 * (size_t)g.c_in * g.c_out;
    float *x = random_floats(floats(g.c_in, g), 1), *w = random_floats(n_w, 2);
    float *y = poisoned(n), *again = poisoned(n);
    conv(x, w, g, false, y);
    conv(x, w, g, false, again);
    CHECK(memcmp(y, again, n * sizeof *y) == 0);
    float *dw = poisoned(n_w), *dw_again = poisoned(n_w);
    backward(x, y, NULL, g, NULL, false, dw);
    backward(x, y, NULL, g, NULL, false, dw_again);
    CHECK(memcmp(dw, dw_again, n_w * sizeof *dw) == 0);
    float *blocks[] = {x, w, y, again, dw, dw_again};
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) ct_free(blocks[k]);
}

/* A sample's output does not depend on which others there are. */
static void every_block_alone_gives_the_same_bits(void) {
    if (kernels == NULL) SKIP("this machine lacks the instruction set");
    const ct_winograd_geometry all = {12, 20, 8, 8, 5}, one = {12, 20, 8, 8, 1};
    const size_t n_x = floats(all.c_in, one), n_y = floats(all.c_out, one);
    float *x = random_floats(5 * n_x, 1), *w = random_floats(9 * 12 * 20, 2);
    float *y = poisoned(5 * n_y), *alone = poisoned(n_y);
    conv(x, w, all, false, y);
    for (size_t b = 0; b < 5; b++) {
        conv(x + b * n_x, w, one, false, alone);
        CHECK(memcmp(y + b * n_y, alone, n_y * sizeof *y) == 0);
    }
    ct_free(alone);
    ct_free(y);
    ct_free(w);
    ct_free(x);
}

static void tests(void) {
    for (tile = 4; tile <= 8; tile += 4) {
        printf("tiles of %d x %d\n", tile, tile);
        TEST(the_convolution_is_the_direct_one);
        TEST(the_convolution_with_turned_weights_is_the_direct_one);
        TEST(the_weight_gradient_is_the_direct_one);
        TEST(both_gradients_together_are_the_direct_ones);
        TEST(two_calls_give_the_same_bits);
        TEST(every_block_alone_gives_the_same_bits);
    }
}

int main(void) {
    test_every_set(tests);
    return test_report();
}
