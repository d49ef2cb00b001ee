/* The Winograd kernels of every instruction set against direct convolution in double precision. */
#include "winograd.h"

/* Norm of the error over norm of the result. float32 Winograd F(4x4,3x3) with these points loses
 * about one digit against direct sums: at most 3e-6 on random data in the shapes below. */
#define TOLERANCE 5e-6

typedef struct shape {
    int c_in, c_out, h, w;
} shape;

static const shape shapes[] = {
    {16, 16, 32, 32}, {32, 32, 16, 16}, {64, 64, 8, 8}, {3, 16, 32, 32}, {1, 6, 28, 28},
    {16, 16, 28, 28}, {32, 32, 14, 14}, {64, 64, 7, 7}, {128, 64, 4, 4}, {64, 256, 2, 2},
    {130, 20, 3, 5},  {7, 5, 1, 1},     {5, 9, 13, 6},  {2, 3, 4, 9},    {17, 33, 11, 20},
    {1, 1, 5, 5},     {4, 10, 6, 33},
};
#define N_SHAPES (sizeof shapes / sizeof *shapes)

static size_t pixels(int c, shape s) {
    return (size_t)c * s.h * s.w * CT_LANES;
}

/* The image of channel c shifted so that output pixel (i, j) reads tap (r, s); NULL outside. */
static const float *tap(const float *x, shape s, int c, int i, int j, int k) {
    int row = i + k / 3 - 1, column = j + k % 3 - 1;
    if (row < 0 || row >= s.h || column < 0 || column >= s.w) return NULL;
    return x + (((size_t)c * s.h + row) * s.w + column) * CT_LANES;
}

/* y += the convolution, weight of (o, i, tap k) at w[o * o_step + i * i_step + (flip ? 8 - k : k)].
 */
static void direct_conv(const float *x, const float *w, shape s, bool flip, double *y) {
    const size_t o_step = flip ? 9 : 9 * (size_t)s.c_in, i_step = flip ? 9 * (size_t)s.c_out : 9;
    for (int o = 0; o < s.c_out; o++) {
        for (int at = 0; at < s.h * s.w; at++) {
            double *pixel = y + ((size_t)o * s.h * s.w + at) * CT_LANES;
            for (int ik = 0; ik < 9 * s.c_in; ik++) {
                int i = ik / 9, k = ik % 9;
                const float *from = tap(x, s, i, at / s.w, at % s.w, k);
                double weight = w[o * o_step + i * i_step + (size_t)(flip ? 8 - k : k)];
                for (int l = 0; from != NULL && l < CT_LANES; l++) pixel[l] += weight * from[l];
            }
        }
    }
}

static void direct_wgrad(const float *x, const float *dy, shape s, double *dw) {
    for (int o = 0; o < s.c_out; o++) {
        for (int ik = 0; ik < 9 * s.c_in; ik++) {
            double sum = 0;
            for (int at = 0; at < s.h * s.w; at++) {
                const float *from = tap(x, s, ik / 9, at / s.w, at % s.w, ik % 9);
                const float *g = dy + ((size_t)o * s.h * s.w + at) * CT_LANES;
                for (int l = 0; from != NULL && l < CT_LANES; l++) sum += (double)g[l] * from[l];
            }
            dw[(size_t)o * 9 * s.c_in + ik] += sum;
        }
    }
}

/* The kernel's y for these data. */
static void conv(const float *x, const float *w, shape s, bool flip, float *y) {
    float *u = poisoned(kernels->winograd_weights_size(s.c_in, s.c_out));
    float *scratch = poisoned(kernels->winograd_scratch(s.c_in, s.c_out, s.h, s.w));
    kernels->winograd_weights(w, s.c_in, s.c_out, flip, u);
    kernels->winograd_conv(x, u, s.c_in, s.c_out, s.h, s.w, y, scratch);
    release(scratch, kernels->winograd_scratch(s.c_in, s.c_out, s.h, s.w));
    release(u, kernels->winograd_weights_size(s.c_in, s.c_out));
}

/* The error of one convolution against the direct one; NAN if it wrote past the end of y. */
static double conv_error(shape s, bool flip) {
    const size_t n = pixels(s.c_out, s), n_w = 9 * (size_t)s.c_in * s.c_out;
    float *x = random_floats(pixels(s.c_in, s), 1), *w = random_floats(n_w + 1, 2);
    float *y = poisoned(n + CT_LANES);
    double *expected = ct_new(double, n);
    for (size_t k = n; k < n + CT_LANES; k++) y[k] = 7.0f;
    direct_conv(x, w + 1, s, flip, expected); /* + 1: parameters lie at any address */
    conv(x, w + 1, s, flip, y);
    double error = error_of(y, expected, n);
    for (size_t k = n; k < n + CT_LANES; k++)
        if (y[k] != 7.0f) error = NAN;
    ct_free(expected);
    ct_free(y);
    ct_free(w);
    ct_free(x);
    return error;
}

static void check_conv(bool flip) {
    if (kernels == NULL) SKIP("this machine lacks the instruction set");
    for (size_t k = 0; k < N_SHAPES; k++) {
        double error = conv_error(shapes[k], flip);
        if (!(error <= TOLERANCE))
            printf("    %d -> %d channels, %d x %d\n", shapes[k].c_in, shapes[k].c_out, shapes[k].h,
                   shapes[k].w);
        CHECK_NEAR(error, 0, TOLERANCE);
    }
}

static void the_convolution_is_the_direct_one(void) {
    check_conv(false);
}
static void the_convolution_with_turned_weights_is_the_direct_one(void) {
    check_conv(true);
}

/* dw [c_out][c_in][9] of two blocks; dx of each, the second one's added to what is there, unless
 * dx[0] is NULL. */
static void backward(float *const x[2], float *const dy[2], const float *w, shape s,
                     float *const dx[2], float *dw) {
    float *acc = poisoned(kernels->winograd_backward_size(s.c_in, s.c_out));
    float *u = poisoned(kernels->winograd_weights_size(s.c_out, s.c_in));
    float *scratch = poisoned(kernels->winograd_scratch(s.c_out, s.c_in, s.h, s.w));
    if (dx[0] != NULL) kernels->winograd_weights(w, s.c_out, s.c_in, true, u);
    kernels->winograd_backward_begin(s.c_in, s.c_out, acc);
    for (int b = 0; b < 2; b++)
        kernels->winograd_backward_add(x[b], dy[b], u, s.c_in, s.c_out, s.h, s.w, dx[b], b == 1,
                                       acc, scratch);
    kernels->winograd_backward_end(acc, s.c_in, s.c_out, dw);
    release(scratch, kernels->winograd_scratch(s.c_out, s.c_in, s.h, s.w));
    release(u, kernels->winograd_weights_size(s.c_out, s.c_in));
    release(acc, kernels->winograd_backward_size(s.c_in, s.c_out));
}

/* The error of the weight gradient and, if it is wanted too, the larger one of the data's. */
static double backward_error(shape s, bool wants_data) {
    const size_t n = 9 * (size_t)s.c_in * s.c_out, n_x = pixels(s.c_in, s);
    float *x[2], *dy[2], *dx[2] = {NULL, NULL}, *dw = poisoned(n + 2), *w = random_floats(n, 30);
    double *expected = ct_new(double, n), *expected_dx[2];
    for (uint32_t b = 0; b < 2; b++) {
        x[b] = random_floats(n_x, 10 + b);
        dy[b] = random_floats(pixels(s.c_out, s), 20 + b);
        direct_wgrad(x[b], dy[b], s, expected);
        expected_dx[b] = ct_new(double, n_x);
        if (!wants_data) continue;
        dx[b] = random_floats(n_x, 40 + b);
        for (size_t k = 0; b == 1 && k < n_x; k++) expected_dx[b][k] = dx[b][k];
        direct_conv(dy[b], w, (shape){s.c_out, s.c_in, s.h, s.w}, true, expected_dx[b]);
    }
    dw[n + 1] = GUARD;
    backward(x, dy, w, s, dx, dw + 1);
    double error = error_of(dw + 1, expected, n);
    for (int b = 0; b < 2; b++) {
        if (wants_data) {
            const double of_data = error_of(dx[b], expected_dx[b], n_x);
            if (!(of_data <= error)) error = of_data;
        }
        ct_free(x[b]);
        ct_free(dy[b]);
        ct_free(dx[b]);
        ct_free(expected_dx[b]);
    }
    ct_free(expected);
    ct_free(dw);
    ct_free(w);
    return error;
}

static void check_backward(bool wants_data) {
    if (kernels == NULL) SKIP("this machine lacks the instruction set");
    for (size_t k = 0; k < N_SHAPES; k++) {
        double error = backward_error(shapes[k], wants_data);
        if (!(error <= TOLERANCE))
            printf("    %d -> %d channels, %d x %d\n", shapes[k].c_in, shapes[k].c_out, shapes[k].h,
                   shapes[k].w);
        CHECK_NEAR(error, 0, TOLERANCE);
    }
}

static void the_weight_gradient_is_the_direct_one(void) {
    check_backward(false);
}
static void both_gradients_together_are_the_direct_ones(void) {
    check_backward(true);
}

static void two_calls_give_the_same_bits(void) {
    if (kernels == NULL) SKIP("this machine lacks the instruction set");
    const shape s = {17, 33, 11, 20};
    const size_t n = pixels(s.c_out, s), n_w = 9 * (size_t)s.c_in * s.c_out;
    float *x = random_floats(pixels(s.c_in, s), 1), *w = random_floats(n_w, 2);
    float *y = poisoned(n), *again = poisoned(n);
    conv(x, w, s, false, y);
    conv(x, w, s, false, again);
    CHECK(memcmp(y, again, n * sizeof *y) == 0);
    float *dw = poisoned(n_w), *dw_again = poisoned(n_w);
    backward((float *[2]){x, x}, (float *[2]){y, y}, NULL, s, (float *[2]){NULL, NULL}, dw);
    backward((float *[2]){x, x}, (float *[2]){y, y}, NULL, s, (float *[2]){NULL, NULL}, dw_again);
    CHECK(memcmp(dw, dw_again, n_w * sizeof *dw) == 0);
    float *blocks[] = {x, w, y, again, dw, dw_again};
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) ct_free(blocks[k]);
}

static void tests(void) {
    TEST(the_convolution_is_the_direct_one);
    TEST(the_convolution_with_turned_weights_is_the_direct_one);
    TEST(the_weight_gradient_is_the_direct_one);
    TEST(both_gradients_together_are_the_direct_ones);
    TEST(two_calls_give_the_same_bits);
}

int main(void) {
    test_every_set(tests);
    return test_report();
}
