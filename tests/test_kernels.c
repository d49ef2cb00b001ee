/* The kernels of every instruction set of this machine against the portable ones (test_cpu holds those
 * against ref), on small odd shapes: short enough for an emulated processor (tests/test_arm.sh). */
#include "winograd.h"

/* Norm of the difference over norm of the result: sums of the same terms in another order and with
 * products fused into them. Winograd's methods multiply such roundings: by tiles of 8x8 both sides
 * are off by up to 2e-5. */
#define TOLERANCE          1e-6
#define WINOGRAD_TOLERANCE 4e-5
enum { L = CT_LANES, MOST = 1 << 17 };

static float *memory[8]; /* of random floats */
static float *scratch;

/* Makes n floats with the kernels of `kernels`. */
typedef void compute(float *out);

static void agrees(compute *f, size_t n, double tolerance, const char *what) {
    const ct_kernels *set = kernels;
    if (set == NULL) SKIP("not on this machine");
    float *got = random_floats(n, 9), *plain = random_floats(n, 9);
    double *expected = ct_new(double, n);
    f(got);
    kernels = &ct_kernels_portable;
    f(plain);
    kernels = set;
    for (size_t k = 0; k < n; k++) expected[k] = (double)plain[k];
    const double error = error_of(got, expected, n);
    if (!(error <= tolerance)) printf("    %s\n", what);
    CHECK_NEAR(error, 0, tolerance);
    release(plain, n);
    release(got, n);
    ct_free(expected);
}

/* ---- direct convolutions ---- */

static ct_conv_geometry geometry;

static ct_conv_geometry conv_geometry(int c_in, int c_out, int k, int stride) {
    const int w = 9, out = (w - 1) / stride + 1; /* a border of k / 2, written into the input */
    const size_t row = (size_t)(w + k - 1) * L, y_row = (size_t)out * L;
    return (ct_conv_geometry){c_in,  c_out, k,   k,   stride,  k / 2, k / 2,
                              w,     w,     out, out, 9 * row, row,   (size_t)out * y_row,
                              y_row, L};
}

/* memory[5] becomes memory[0] with zeros left and right of the picture. */
static void clear_borders(void) {
    const int w = (int)(geometry.x_row / L), pad = geometry.pad_x;
    for (int k = 0; k < MOST; k++) {
        const int column = k / L % w;
        const bool inside = column >= pad && column < pad + geometry.w_in;
        memory[5][k] = inside ? memory[0][k] : 0;
    }
}

static void convolve(float *y) {
    const ptrdiff_t k = geometry.kh, step[4] = {geometry.c_in * k * k, k * k, k, 1};
    kernels->conv_pack(&geometry, memory[1] + 1, step, scratch);
    kernels->conv(&geometry, memory[5], scratch, memory[2] + 1, CT_RELU | CT_ACCUMULATE, y);
}
static void conv_gradient(float *dw) {
    const size_t x_block = (size_t)geometry.c_in * geometry.x_channel;
    kernels->conv_wgrad(&geometry, memory[5], x_block, memory[3],
                        (size_t)geometry.c_out * geometry.y_channel, 2, dw);
}

static void direct_convolutions_agree(void) {
    static const int shapes[][4] = {{3, 6, 5, 1},  {2, 16, 5, 1}, {3, 5, 3, 2},
                                    {4, 13, 3, 1}, {2, 9, 7, 2},  {5, 11, 1, 2}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int c_in = shapes[i][0], c_out = shapes[i][1], k = shapes[i][2];
        geometry = conv_geometry(c_in, c_out, k, shapes[i][3]);
        clear_borders();
        agrees(convolve, (size_t)c_out * geometry.y_channel, TOLERANCE, "convolution");
        agrees(conv_gradient, (size_t)(c_out * c_in * k * k), TOLERANCE, "gradient of weights");
    }
}

/* ---- products of matrices ---- */

static int n_out, n_in, n_columns;
static bool turned;

static void linear(float *y) {
    const ct_linear_geometry g = {.n_out = n_out,
                                  .n_in = n_in,
                                  .out_step = turned ? 1 : (size_t)n_in,
                                  .in_step = turned ? (size_t)n_out : 1,
                                  .n_columns = n_columns,
                                  .x_row = L,
                                  .x_column = (size_t)n_in * L,
                                  .y_row = L,
                                  .y_column = (size_t)n_out * L};
    kernels->linear(&g, memory[1] + 1, memory[0], memory[2] + 1, 0, y);
}
static void outer(float *c) {
    const size_t row = (size_t)(n_out + L - 1) / L * L;
    kernels->outer(n_in, n_out, 2, n_columns, memory[0] + 1, 64, 32, memory[1], row, true, c,
                   (size_t)n_out);
}
static void lanes_outer(float *c) {
    kernels->lanes_outer(n_in, n_out, n_columns, memory[0], memory[1], 20 * L, true, c,
                         (size_t)n_out, 1);
}

static void products_of_matrices_agree(void) {
    static const int shapes[][3] = {{10, 84, 2}, {21, 13, 3}, {8, 16, 1}, {1, 7, 2}, {35, 5, 18}};
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++) {
        n_out = shapes[i / 2][0], n_in = shapes[i / 2][1], n_columns = shapes[i / 2][2];
        turned = i % 2 == 1;
        agrees(linear, (size_t)(n_out * n_columns * L), TOLERANCE, "linear");
        agrees(outer, (size_t)(n_in * n_out), TOLERANCE, "outer");
        agrees(lanes_outer, (size_t)(n_in * n_out), TOLERANCE, "lanes_outer");
    }
}

static void transposes_agree(float *out) {
    kernels->transpose(memory[0], 3 * L, 21, 3, out, 32);
}
static void transposing_gives_the_same_bits(void) {
    agrees(transposes_agree, 3 * L * 32, 0, "transpose");
}

/* ---- depthwise ---- */

static ct_depthwise_geometry depth;

static void depthwise(float *y) {
    kernels->depthwise(&depth, memory[0], NULL, NULL, memory[1] + 1, memory[2], 0, y, scratch);
}
static void depthwise_gradients(float *out) { /* of weights, and of the input behind them */
    kernels->depthwise_backward(&depth, memory[0], NULL, NULL, memory[3], memory[1] + 1, 0, false,
                                out + 2 * L, out, scratch);
}

static void depthwise_convolutions_agree(void) {
    for (int stride = 1; stride <= 2; stride++)
        for (int w = 7; w <= 13; w += 3) {
            const int h_out = (5 - 1) / stride + 1, w_out = (w - 1) / stride + 1;
            depth = (ct_depthwise_geometry){3, 5, w, h_out, w_out, stride, 0};
            agrees(depthwise, (size_t)(3 * h_out * w_out * L), TOLERANCE, "depthwise");
            agrees(depthwise_gradients, (size_t)(3 * 5 * w + 2) * L, TOLERANCE, "its gradients");
        }
}

/* ---- Winograd ---- */

static ct_conv5_geometry five;
static bool by_rows;
static uint8_t *winners;

static size_t pooled_floats(void) {
    const int border = 2 * five.pad - 4;
    return (size_t)(five.c_out * ((five.h + border) / 2) * ((five.w + border) / 2)) * L;
}
static void pooled_5x5(float *y) {
    if (by_rows)
        kernels->rows5_pool(&five, memory[0], memory[1], memory[2], 1, y, winners, scratch);
    else
        kernels->winograd5_pool(&five, memory[0], memory[1], memory[2], 1, y, winners, scratch);
    for (size_t k = 0; k < pooled_floats(); k++) y[pooled_floats() + k] = (float)winners[k];
}
static void gradient_5x5(float *out) {
    const size_t n_w = (size_t)(five.c_out * five.c_in * 25);
    float *dx = out + (n_w + L - 1) / L * L;
    if (by_rows)
        kernels->rows5_backward(&five, memory[0], memory[3], winners, 1, out, NULL, scratch);
    else
        kernels->winograd5_backward(&five, memory[0], memory[1], memory[3], 1, true, dx, out,
                                    scratch);
}

static void convolutions_of_5x5_agree(void) {
    static const ct_conv5_geometry shapes[] = {{1, 6, 12, 12, 2},
                                               {3, 5, 10, 12, 0},
                                               {2, 4, 8, 10, 2},
                                               {6, 16, 14, 14, 0},
                                               {5, 7, 10, 8, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        five = shapes[i];
        by_rows = i < 3;
        const size_t n_x = (size_t)(five.c_in * five.h * five.w) * L;
        const size_t n_w = ((size_t)(five.c_out * five.c_in * 25) + L - 1) / L * L;
        agrees(pooled_5x5, 2 * pooled_floats(), WINOGRAD_TOLERANCE, "5x5 with pooling");
        agrees(gradient_5x5, n_w + n_x, WINOGRAD_TOLERANCE, "its gradients");
    }
}

static ct_winograd_geometry three;
static const int (*method)[2]; /* stride and tile */

static void winograd_3x3(float *out) {
    const ct_winograd *w = kernels->winograd((*method)[0], (*method)[1]);
    float *u = scratch + MOST;
    w->weights(&three, memory[1] + 1, false, u);
    w->conv(&three, memory[0], u, out, scratch);
}
static void winograd_gradients(float *out) {
    const ct_winograd *w = kernels->winograd((*method)[0], (*method)[1]);
    const ct_winograd_geometry back = {three.c_out, three.c_in, three.h, three.w, 1};
    float *u = scratch + MOST;
    w->weights((*method)[0] == 1 ? &back : &three, memory[1] + 1, true, u);
    w->backward(&three, memory[0], memory[3], u, out + 9 * 3 * L, false, out, scratch);
}

static void convolutions_of_3x3_agree(void) {
    static const int methods[][2] = {{1, 4}, {1, 8}, {2, 4}};
    for (size_t i = 0; i < 3; i++) {
        method = &methods[i];
        three = (ct_winograd_geometry){8, 4, 9, 11, 1};
        const size_t n_y = i < 2 ? 4 * 9 * 11 * L : 4 * 5 * 6 * L;
        agrees(winograd_3x3, n_y, WINOGRAD_TOLERANCE, "3x3");
        agrees(winograd_gradients, 9 * 3 * L + 8 * 9 * 11 * L, WINOGRAD_TOLERANCE, "its gradients");
    }
}

/* ---- norms and planes ---- */

static ct_norm_kind kind;
static ct_norm_args norm_args(float *gradients) {
    return (ct_norm_args){kind,
                          21,
                          6,
                          2,
                          35,
                          1e-5f,
                          memory[1],
                          memory[2],
                          memory[4],
                          gradients,
                          gradients + L,
                          gradients + 2 * L};
}
static void norm(float *out) {
    const ct_norm_args a = norm_args(out);
    kernels->norm(&a, memory[0], memory[3], false, scratch, out + 3 * L);
    kernels->norm_backward(&a, memory[0], memory[3], scratch, out + 3 * L + 2 * 6 * 35 * L);
}
static void norms_agree(void) {
    for (kind = CT_EVONORM_HARD; kind <= CT_GROUPNORM; kind++)
        agrees(norm, 3 * L + 4 * 6 * 35 * L, 4 * TOLERANCE, "norm");
}

static void planes(float *out) {
    const ct_pool_geometry pool = {2, 7, 9, 4, 5, 3, 2, 1};
    const float coef[] = {0.5f, -2, 3};
    const float *const x[] = {memory[0], memory[3], memory[4]};
    kernels->channel_sums(memory[0], 8 * 5 * L, 2, 8, 5, out);
    kernels->maxpool(memory[0], &pool, out + L);
    float *at = out + L + 2 * 4 * 5 * L;
    kernels->maxpool_backward(memory[0], out + L, memory[3], &pool, at);
    at += 2 * 7 * 9 * L;
    kernels->relu_backward(memory[0], memory[3], 5 * L, at);
    kernels->lincomb(5 * L, 3, coef, x, at + 5 * L);
    kernels->avgpool(memory[0], 2, 21, at + 10 * L);
}
static void planes_agree(void) {
    agrees(planes, L + (2 * 4 * 5 + 2 * 7 * 9 + 12) * L, TOLERANCE, "pooling, sums, combinations");
}

static void tests(void) {
    TEST(direct_convolutions_agree);
    TEST(products_of_matrices_agree);
    TEST(transposing_gives_the_same_bits);
    TEST(depthwise_convolutions_agree);
    TEST(convolutions_of_5x5_agree);
    TEST(convolutions_of_3x3_agree);
    TEST(norms_agree);
    TEST(planes_agree);
}

int main(void) {
    for (uint32_t k = 0; k < 8; k++) memory[k] = random_floats(MOST, k);
    scratch = ct_new(float, 8 * MOST);
    winners = ct_new(uint8_t, MOST);
    test_every_set(tests);
    for (int k = 0; k < 8; k++) release(memory[k], MOST);
    ct_free(scratch);
    ct_free(winners);
    return test_report();
}
