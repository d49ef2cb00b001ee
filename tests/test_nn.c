/* Models: their sizes, names, start values, what they refuse. Losses: their values and gradients
 * against plain double arithmetic and its central differences. */
#include "test.h"

#include "loss/loss.h"
#include "nn/graph.h"
#include "util/memory.h"
#include "util/rng.h"

/* ---- models ---- */

static ct_status create(const char *model, ct_shape input, int n_classes, const char *norm,
                        ct_graph *out) {
    ct_model_spec spec = {.name = model, .input = input, .n_classes = n_classes, .norm = norm};
    return ct_graph_create(&spec, out);
}

static void every_model_has_exactly_its_parameters(void) {
    static const struct {
        const char *model;
        ct_shape input;
        int n_classes;
        const char *norm;
        size_t n_weights, n_features;
    } models[] = {
        {"lenet5", {1, 28, 28}, 10, NULL, 61706, 84},
        {"lenet5", {1, 32, 32}, 10, NULL, 61706, 84},
        {"mlp", {1, 28, 28}, 10, NULL, 64 * 784 + 64 + 650, 64},
        {"mlp:8", {1, 6, 6}, 4, NULL, 8 * 36 + 8 + 36, 8},
        {"logistic", {1, 28, 28}, 10, NULL, 7850, 784},
        {"resnet20", {3, 32, 32}, 10, NULL, 272474, 64},
        {"resnet20", {3, 32, 32}, 100, NULL, 278324, 64},
        {"resnet20", {1, 28, 28}, 10, "evonorm", 272186, 64},
        {"resnet20", {3, 32, 32}, 10, "evonorm-s0", 273258, 64},
        {"resnet20", {3, 32, 32}, 10, "batchnorm", 272474, 64},
        {"resnet20", {3, 32, 32}, 10, "groupnorm", 272474, 64},
        {"resnet20", {3, 32, 32}, 10, "none", 270906, 64},
        {"resnet32", {3, 32, 32}, 10, NULL, 466906, 64},
        {"resnet44", {3, 32, 32}, 10, NULL, 661338, 64},
        {"resnet56", {3, 32, 32}, 10, NULL, 855770, 64},
        {"resnet110", {3, 32, 32}, 10, NULL, 1730714, 64},
        {"resnet18", {3, 224, 224}, 10, NULL, 11181642, 512},
        {"resnet18", {3, 64, 64}, 1000, NULL, 11689512, 512},
        {"resnet34", {3, 224, 224}, 1000, NULL, 21797672, 512},
        {"mobilenetv2", {3, 32, 32}, 10, NULL, 2296922, 1280},
        {"vgg11", {3, 32, 32}, 10, NULL, 579786, 128},
    };
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        ct_graph g = {0};
        CHECK_OK(create(models[k].model, models[k].input, models[k].n_classes, models[k].norm, &g));
        if (g.nodes == NULL) continue;
        if (g.n_weights != models[k].n_weights)
            printf("    %s has %zu parameters\n", models[k].model, g.n_weights);
        CHECK(g.n_weights == models[k].n_weights);
        CHECK(ct_graph_n_features(&g) == models[k].n_features);
        CHECK(g.nodes[g.logits].shape.c == models[k].n_classes);
        ct_graph_free(&g);
    }
}

/* The paper's table of bytes per agent and iteration on a ring, without and with CCL, in MiB. */
static void model_sizes_give_the_papers_communication(void) {
    static const struct {
        const char *model;
        ct_shape input;
        int n_classes;
        const char *plain, *ccl;
        int digits;
    } rows[] = {
        {"lenet5", {1, 28, 28}, 10, "0.471", "0.477", 3},
        {"resnet20", {3, 32, 32}, 10, "2.079", "2.084", 3},
        {"resnet20", {3, 32, 32}, 100, "2.123", "2.173", 3},
        {"mobilenetv2", {3, 32, 32}, 10, "17.52", "17.62", 2},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        ct_graph g = {0};
        char text[32];
        REQUIRE_OK(create(rows[k].model, rows[k].input, rows[k].n_classes, NULL, &g));
        double plain = 2 * 4.0 * (double)g.n_weights;
        double sums = 2 * 4.0 * rows[k].n_classes * (double)(ct_graph_n_features(&g) + 1);
        snprintf(text, sizeof text, "%.*f", rows[k].digits, plain / (1 << 20));
        CHECK(strcmp(text, rows[k].plain) == 0);
        snprintf(text, sizeof text, "%.*f", rows[k].digits, (plain + sums) / (1 << 20));
        CHECK(strcmp(text, rows[k].ccl) == 0);
        ct_graph_free(&g);
    }
}

static const ct_param *find(const ct_graph *g, const char *name) {
    for (int p = 0; p < g->n_params; p++)
        if (strcmp(g->params[p].name, name) == 0) return &g->params[p];
    return NULL;
}

static void check_has(const ct_graph *g, const char *const *names, size_t n) {
    for (size_t k = 0; k < n; k++) {
        if (find(g, names[k]) == NULL) printf("    %s has no %s\n", g->model, names[k]);
        CHECK(find(g, names[k]) != NULL);
    }
}
#define CHECK_HAS(graph, ...)                                                                      \
    check_has(graph, (const char *const[]){__VA_ARGS__},                                           \
              sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static void parameters_have_pytorchs_names_and_shapes(void) {
    static const struct {
        const char *name;
        int n_dims;
        size_t dims[4];
    } lenet5[] = {{"conv1.weight", 4, {6, 1, 5, 5}},  {"conv1.bias", 1, {6}},
                  {"conv2.weight", 4, {16, 6, 5, 5}}, {"conv2.bias", 1, {16}},
                  {"fc1.weight", 2, {120, 400}},      {"fc1.bias", 1, {120}},
                  {"fc2.weight", 2, {84, 120}},       {"fc2.bias", 1, {84}},
                  {"fc3.weight", 2, {10, 84}},        {"fc3.bias", 1, {10}}};
    ct_graph g = {0};
    REQUIRE_OK(create("lenet5", (ct_shape){1, 28, 28}, 10, NULL, &g));
    REQUIRE(g.n_params == 10);
    size_t offset = 0;
    for (int p = 0; p < 10; p++) {
        CHECK(strcmp(g.params[p].name, lenet5[p].name) == 0);
        CHECK(g.params[p].n_dims == lenet5[p].n_dims && g.params[p].offset == offset);
        for (int d = 0; d < lenet5[p].n_dims; d++) CHECK(g.params[p].dims[d] == lenet5[p].dims[d]);
        offset += g.params[p].count;
    }
    ct_graph_free(&g);
    REQUIRE_OK(create("resnet20", (ct_shape){3, 32, 32}, 10, "batchnorm", &g));
    CHECK_HAS(&g, "conv1.weight", "bn1.weight", "bn1.bias", "layer1.0.conv1.weight",
              "layer1.0.bn1.weight", "layer1.2.conv2.weight", "layer2.0.downsample.0.weight",
              "layer2.0.downsample.1.weight", "layer3.0.downsample.1.bias", "layer3.2.bn2.bias",
              "fc.weight", "fc.bias");
    CHECK(find(&g, "layer1.0.downsample.0.weight") == NULL && find(&g, "conv1.bias") == NULL);
    CHECK(g.n_buffers == 2 * 21 && strcmp(g.buffers[0].name, "bn1.running_mean") == 0);
    CHECK(strcmp(g.buffers[1].name, "bn1.running_var") == 0);
    ct_graph_free(&g);
    REQUIRE_OK(create("resnet20", (ct_shape){3, 32, 32}, 10, "evonorm-s0", &g));
    CHECK_HAS(&g, "bn1.weight", "bn1.bias", "bn1.v");
    CHECK(find(&g, "bn1.weight")->n_dims == 1 && find(&g, "bn1.weight")->dims[0] == 16);
    ct_graph_free(&g);
    REQUIRE_OK(create("mobilenetv2", (ct_shape){3, 32, 32}, 10, NULL, &g));
    CHECK_HAS(&g, "conv1.weight", "bn1.weight", "layers.0.conv1.weight", "layers.0.bn3.bias",
              "layers.16.conv2.weight", "layers.0.shortcut.0.weight", "layers.0.shortcut.1.weight",
              "conv2.weight", "bn2.bias", "linear.weight", "linear.bias");
    ct_graph_free(&g);
}

static void what_a_model_cannot_be_is_refused(void) {
    ct_graph g = {0};
    ct_shape mnist = {1, 28, 28}, cifar = {3, 32, 32};
    CHECK_FAILS(create("lenet6", mnist, 10, NULL, &g), CT_INVAL, "lenet6");
    CHECK_FAILS(create("lenet6", mnist, 10, NULL, &g), CT_INVAL, "lenet5, mlp");
    CHECK_FAILS(create("", mnist, 10, NULL, &g), CT_INVAL, "known:");
    CHECK_FAILS(create("resnet20", cifar, 10, "layernorm", &g), CT_INVAL, "layernorm");
    CHECK_FAILS(create("resnet20", cifar, 10, "layernorm", &g), CT_INVAL, "groupnorm");
    CHECK_FAILS(create("lenet5", (ct_shape){1, 8, 8}, 10, NULL, &g), CT_INVAL, "does not fit");
    CHECK_FAILS(create("lenet5", (ct_shape){1, 28, 3}, 10, NULL, &g), CT_INVAL, "does not fit");
    CHECK_FAILS(create("vgg11", (ct_shape){3, 16, 16}, 10, NULL, &g), CT_INVAL, "does not fit");
    CHECK_FAILS(create("mlp:0", mnist, 10, NULL, &g), CT_INVAL, "mlp:0");
    CHECK_FAILS(create("mlp:8x", mnist, 10, NULL, &g), CT_INVAL, "8x");
    CHECK_FAILS(create("mlp:-3", mnist, 10, NULL, &g), CT_INVAL, "-3");
    CHECK_FAILS(create("mlp:1e99", mnist, 10, NULL, &g), CT_INVAL, "1e99");
    CHECK_FAILS(create("mlp:", mnist, 10, NULL, &g), CT_INVAL, "mlp:");
    CHECK_FAILS(create("logistic:7", mnist, 10, NULL, &g), CT_INVAL, "takes no argument");
    CHECK(g.nodes == NULL && g.n_params == 0);
}

/* An odd number of channels cannot be split in groups: the builder says so, and stays quiet. */
static void a_norm_that_does_not_divide_the_channels_is_refused(void) {
    ct_graph g = {0};
    int x = ct_conv(&g, ct_input(&g, (ct_shape){1, 5, 5}), "c", 12, 3, 1, 1, 1, false);
    x = ct_norm(&g, x, CT_OP_EVONORM, "n");
    ct_linear(&g, ct_relu(&g, x), "l", 3);
    CHECK(g.status == CT_INVAL && strstr(ct_message(), "12 channels") != NULL);
    ct_clear_message();
    ct_graph_free(&g);
}

static void multiply_adds_are_counted(void) {
    ct_graph g = {0};
    REQUIRE_OK(create("lenet5", (ct_shape){1, 28, 28}, 10, NULL, &g));
    double conv = 6.0 * 25 * 28 * 28 + 16.0 * 6 * 25 * 10 * 10;
    CHECK_NEAR(ct_graph_macs(&g, g.features), conv + 400 * 120 + 120 * 84, 0);
    CHECK_NEAR(ct_graph_macs(&g, g.logits), conv + 400 * 120 + 120 * 84 + 840, 0);
    ct_graph_free(&g);
}

/* ---- start values ---- */

static void moments(const ct_param *p, const float *row, double *mean, double *deviation,
                    double *largest) {
    double sum = 0, squares = 0;
    *largest = 0;
    for (size_t k = p->offset; k < p->offset + p->count; k++) {
        sum += (double)row[k];
        squares += (double)row[k] * (double)row[k];
        *largest = fmax(*largest, fabs((double)row[k]));
    }
    *mean = sum / (double)p->count;
    *deviation = sqrt(squares / (double)p->count - *mean * *mean);
}

/* How far the moments of n draws may be off: five deviations of their estimates. */
static double slack(const ct_param *p) {
    return 5 / sqrt((double)p->count);
}

static void check_start(const ct_graph *g, const char *name, double bound, double deviation,
                        const float *row) {
    const ct_param *p = find(g, name);
    double mean, got, largest;
    REQUIRE(p != NULL);
    moments(p, row, &mean, &got, &largest);
    CHECK_NEAR(mean, 0, slack(p) * deviation);
    CHECK_NEAR(got, deviation, slack(p) * deviation);
    if (bound > 0) CHECK(largest <= bound * (1 + 1e-6) && largest > bound * (1 - slack(p)));
    if (bound == 0) CHECK(largest > 2 * deviation); /* not uniform */
}

static void start_values_have_the_spread_they_should(void) {
    ct_graph g = {0};
    REQUIRE_OK(create("resnet20", (ct_shape){3, 32, 32}, 10, "evonorm-s0", &g));
    float *row = ct_new(float, g.n_weights);
    ct_init_params(&g, 1, row);
    check_start(&g, "conv1.weight", 0, sqrt(2.0 / (9 * 16)), row);
    check_start(&g, "layer2.0.conv1.weight", 0, sqrt(2.0 / (9 * 32)), row);
    check_start(&g, "layer3.1.conv1.weight", 0, sqrt(2.0 / (9 * 64)), row);
    check_start(&g, "layer3.0.downsample.0.weight", 0, sqrt(2.0 / 64), row);
    check_start(&g, "fc.weight", 1.0 / 8, 1.0 / 8 / sqrt(3), row);
    for (size_t k = 0; k < 16; k++) {
        CHECK(row[find(&g, "bn1.weight")->offset + k] == 1);
        CHECK(row[find(&g, "bn1.bias")->offset + k] == 0);
        CHECK(row[find(&g, "bn1.v")->offset + k] == 1);
    }
    ct_free(row);
    ct_graph_free(&g);
    REQUIRE_OK(create("lenet5", (ct_shape){1, 28, 28}, 10, NULL, &g));
    row = ct_new(float, g.n_weights);
    ct_init_params(&g, 1, row);
    check_start(&g, "conv2.weight", 0, sqrt(2.0 / (25 * 16)), row);
    check_start(&g, "fc1.weight", 1.0 / 20, 1.0 / 20 / sqrt(3), row);
    check_start(&g, "fc2.bias", 1 / sqrt(120), 1 / sqrt(360), row);
    ct_free(row);
    ct_graph_free(&g);
    REQUIRE_OK(create("mobilenetv2", (ct_shape){3, 32, 32}, 10, NULL, &g));
    row = ct_new(float, g.n_weights);
    ct_init_params(&g, 1, row);
    check_start(&g, "layers.1.conv1.weight", 1 / sqrt(16), 1 / sqrt(48), row);
    check_start(&g, "layers.1.conv2.weight", 1.0 / 3, 1 / sqrt(27), row); /* depthwise */
    check_start(&g, "conv2.weight", 1 / sqrt(320), 1 / sqrt(960), row);
    ct_free(row);
    ct_graph_free(&g);
}

static void start_values_follow_the_seed_and_nothing_else(void) {
    ct_graph g = {0};
    REQUIRE_OK(create("lenet5", (ct_shape){1, 28, 28}, 10, NULL, &g));
    float *a = ct_new(float, g.n_weights), *b = ct_new(float, g.n_weights);
    ct_init_params(&g, 1, a);
    ct_init_params(&g, 1, b);
    CHECK(memcmp(a, b, g.n_weights * sizeof *a) == 0);
    ct_init_params(&g, 2, b);
    size_t n_same = 0;
    for (size_t k = 0; k < g.n_weights; k++) n_same += a[k] == b[k];
    CHECK(n_same < 20);
    ct_free(a);
    ct_free(b);
    ct_graph_free(&g);
}

/* ---- losses ---- */

enum { N = 5, R = 7, CLASSES = 4, N_CROSS = 2 };
static const int32_t labels[N] = {2, 0, 2, 1, 0}; /* nobody here has class 3 */

static void draw(uint32_t index, size_t n, float *values) {
    ct_rng rng;
    ct_rng_init(&rng, 11, CT_RNG_TEST, 0, 0, index);
    for (size_t k = 0; k < n; k++) values[k] = (float)(0.3 + ct_rng_normal(&rng));
}

static double plain_cross_entropy(const double *logits) {
    double loss = 0;
    for (int b = 0; b < N; b++) {
        double sum = 0;
        for (int c = 0; c < CLASSES; c++) sum += exp(logits[b * CLASSES + c]);
        loss += log(sum) - logits[b * CLASSES + labels[b]];
    }
    return loss / N;
}

/* (f(x + h) - f(x - h)) / 2h in x[k] */
#define DIFFERENCE(out, call, x, k)                                                                \
    do {                                                                                           \
        const double h_ = 1e-5, x_ = (x)[k];                                                       \
        (x)[k] = x_ + h_;                                                                          \
        double above_ = (call);                                                                    \
        (x)[k] = x_ - h_;                                                                          \
        (out) = (above_ - (call)) / (2 * h_);                                                      \
        (x)[k] = x_;                                                                               \
    } while (0)

static void cross_entropy_and_its_gradient_are_right(void) {
    float logits[N * CLASSES], dlogits[N * CLASSES];
    double x[N * CLASSES], slope;
    int n_correct = -1, predictions[N], expected_correct = 0;
    draw(1, N * CLASSES, logits);
    for (int k = 0; k < N * CLASSES; k++) x[k] = (double)logits[k];
    double loss = ct_cross_entropy(logits, labels, N, CLASSES, dlogits, &n_correct, predictions);
    CHECK_NEAR(loss, plain_cross_entropy(x), 1e-12);
    for (int k = 0; k < N * CLASSES; k++) {
        DIFFERENCE(slope, plain_cross_entropy(x), x, k);
        CHECK_NEAR(dlogits[k], slope, 1e-7);
    }
    for (int b = 0; b < N; b++) {
        int best = 0;
        for (int c = 1; c < CLASSES; c++)
            if (logits[b * CLASSES + c] > logits[b * CLASSES + best]) best = c;
        CHECK(predictions[b] == best);
        expected_correct += best == labels[b];
    }
    CHECK(n_correct == expected_correct);
    CHECK(ct_cross_entropy(logits, labels, N, CLASSES, NULL, &n_correct, NULL) == loss);
}

static void cross_entropy_survives_large_logits_and_shows_nan(void) {
    float logits[2 * CLASSES] = {1e30f, 0, 0, 0, 0, 1000, 0, 0};
    float dlogits[2 * CLASSES];
    const int32_t of[2] = {0, 2};
    int n_correct;
    CHECK_NEAR(ct_cross_entropy(logits, of, 2, CLASSES, dlogits, &n_correct, NULL), 500, 1e-9);
    CHECK(n_correct == 1 && dlogits[5] == 0.5f && dlogits[6] == -0.5f && dlogits[0] == 0);
    logits[5] = NAN;
    CHECK(isnan(ct_cross_entropy(logits, of, 2, CLASSES, NULL, &n_correct, NULL)));
}

/* D(z, t) in double, one target row per sample. */
static double plain_distance(const ct_loss_spec *spec, const double *z, const double *t) {
    double total = 0;
    for (int b = 0; b < N; b++) {
        double squares = 0, absolute = 0, zz = 0, tt = 0, zt = 0;
        for (int k = b * R; k < (b + 1) * R; k++) {
            squares += (z[k] - t[k]) * (z[k] - t[k]);
            absolute += fabs(z[k] - t[k]);
            zz += z[k] * z[k];
            tt += t[k] * t[k];
            zt += z[k] * t[k];
        }
        double width = spec->reduction == CT_REDUCE_MEAN ? R : 1;
        if (spec->distance == CT_MSE) total += squares / width;
        if (spec->distance == CT_L1) total += absolute / width;
        if (spec->distance == CT_COSINE) total += 1 - zt / sqrt(zz * tt);
    }
    return total / N;
}

/* A batch of one agent with two neighbours; `target` holds what zbar(y) must be. */
typedef struct contrast {
    float z[N * R], cross[N_CROSS * (N * R + 3)], received[CLASSES * (R + 1)];
    double target[N * R];
    double z2[N * R], cross2[N_CROSS][N * R];
} contrast;

static void draw_contrast(contrast *c) {
    double sums[CLASSES][R + 1] = {{0}};
    draw(2, N * R, c->z);
    draw(3, N_CROSS * (N * R + 3), c->cross);
    draw(4, CLASSES * (R + 1), c->received);
    for (int y = 0; y < CLASSES; y++) {
        c->received[y * (R + 1) + R] = (float)(2 * y); /* nobody else has class 0 */
        for (int k = 0; y == 0 && k < R; k++) c->received[k] = 0;
        for (int k = 0; k <= R; k++) sums[y][k] = (double)c->received[y * (R + 1) + k];
    }
    for (int b = 0; b < N; b++) {
        for (int k = 0; k < R; k++) sums[labels[b]][k] += (double)c->z[b * R + k];
        sums[labels[b]][R] += 1;
    }
    for (int k = 0; k < N * R; k++) {
        const double *sum = sums[labels[k / R]];
        c->target[k] = sum[k % R] / sum[R];
        c->z2[k] = (double)c->z[k];
        for (int j = 0; j < N_CROSS; j++) c->cross2[j][k] = (double)c->cross[j * (N * R + 3) + k];
    }
}

static double plain_mv(const ct_loss_spec *spec, const contrast *c) {
    double sum = 0;
    for (int j = 0; j < N_CROSS; j++) sum += plain_distance(spec, c->z2, c->cross2[j]);
    return sum;
}

static double plain_ccl(const ct_loss_spec *spec, const contrast *c) {
    return spec->lambda_m * plain_mv(spec, c) +
           spec->lambda_d * plain_distance(spec, c->z2, c->target);
}

static void check_contrast(const ct_loss_spec *spec, contrast *c) {
    float scratch[CLASSES * (2 * R + 1)], dz[N * R];
    double terms[CT_N_TERMS], slope;
    ct_ccl_batch batch = {.z = c->z,
                          .labels = labels,
                          .n = N,
                          .r = R,
                          .n_classes = CLASSES,
                          .cross = c->cross,
                          .cross_stride = N * R + 3,
                          .n_cross = N_CROSS,
                          .received = c->received};
    CHECK(ct_ccl_scratch(R, CLASSES) == sizeof scratch / sizeof *scratch);
    ct_ccl(spec, &batch, scratch, dz, terms);
    double mv = terms[CT_LOSS_MV], dv = terms[CT_LOSS_DV];
    CHECK_NEAR(mv, plain_mv(spec, c), 1e-6 * mv);
    CHECK_NEAR(dv, plain_distance(spec, c->z2, c->target), 1e-6 * dv);
    for (int k = 0; k < N * R; k++) {
        DIFFERENCE(slope, plain_ccl(spec, c), c->z2, k);
        CHECK_NEAR(dz[k], slope, 1e-6);
    }
}

static void every_distance_and_reduction_has_its_value_and_gradient(void) {
    static contrast c;
    draw_contrast(&c);
    for (int distance = CT_MSE; distance <= CT_COSINE; distance++) {
        for (int reduction = CT_REDUCE_MEAN; reduction <= CT_REDUCE_SUM; reduction++) {
            ct_loss_spec spec = {.ccl = true,
                                 .lambda_m = 0.7,
                                 .lambda_d = 1.3,
                                 .distance = (ct_distance)distance,
                                 .reduction = (ct_reduction)reduction};
            check_contrast(&spec, &c);
            spec.lambda_m = 0;
            check_contrast(&spec, &c);
            spec.lambda_m = 2;
            spec.lambda_d = 0;
            check_contrast(&spec, &c);
        }
    }
}

static void class_sums_add_up_and_count(void) {
    float z[N * R], sums[CLASSES * (R + 1)];
    draw(5, N * R, z);
    memset(sums, 0x7f, sizeof sums);
    ct_class_sums(z, labels, N, R, CLASSES, sums);
    for (int k = 0; k < R; k++) {
        CHECK_NEAR(sums[2 * (R + 1) + k], z[k] + z[2 * R + k], 1e-6);
        CHECK_NEAR(sums[1 * (R + 1) + k], z[3 * R + k], 0);
        CHECK(sums[3 * (R + 1) + k] == 0);
    }
    CHECK(sums[R] == 2 && sums[2 * R + 1] == 1 && sums[3 * R + 2] == 2 && sums[4 * R + 3] == 0);
}

static void equal_features_are_at_distance_zero_and_a_zero_vector_has_no_direction(void) {
    float z[R], dz[R], zero[R] = {0};
    draw(6, R, z);
    for (int distance = CT_MSE; distance <= CT_COSINE; distance++) {
        ct_loss_spec spec = {.ccl = true, .distance = (ct_distance)distance};
        memset(dz, 0, sizeof dz);
        CHECK_NEAR(ct_distance_to(&spec, z, z, NULL, 1, R, 1, dz), 0, 1e-12);
        for (int k = 0; k < R; k++) CHECK_NEAR(dz[k], 0, 1e-7);
    }
    ct_loss_spec cosine = {.ccl = true, .distance = CT_COSINE};
    CHECK(ct_distance_to(&cosine, zero, z, NULL, 1, R, 1, dz) == 1);
    CHECK(ct_distance_to(&cosine, z, zero, NULL, 1, R, 1, dz) == 1);
    for (int k = 0; k < R; k++) CHECK_NEAR(dz[k], 0, 1e-7);
}

int main(void) {
    TEST(every_model_has_exactly_its_parameters);
    TEST(model_sizes_give_the_papers_communication);
    TEST(parameters_have_pytorchs_names_and_shapes);
    TEST(what_a_model_cannot_be_is_refused);
    TEST(a_norm_that_does_not_divide_the_channels_is_refused);
    TEST(multiply_adds_are_counted);
    TEST(start_values_have_the_spread_they_should);
    TEST(start_values_follow_the_seed_and_nothing_else);
    TEST(cross_entropy_and_its_gradient_are_right);
    TEST(cross_entropy_survives_large_logits_and_shows_nan);
    TEST(class_sums_add_up_and_count);
    TEST(every_distance_and_reduction_has_its_value_and_gradient);
    TEST(equal_features_are_at_distance_zero_and_a_zero_vector_has_no_direction);
    return test_report();
}
