/* Every node of the ref backend against central differences, in double: with L = sum(q * y) for
 * fixed random q, dL/dx and dL/dw by the node's backward function must be the differences
 * (L(x + h) - L(x - h)) / 2h of its forward function. */
#include "test.h"

#include "backend/ref/ref_internal.h"
#include "nn/graph.h"
#include "util/memory.h"
#include "util/rng.h"

#define STEP      1e-5 /* differences are good to about STEP^2 and 1e-16 / STEP */
#define TOLERANCE 1e-6
#define BATCH     3
#define OFFSET    0.25 /* what stands in a gradient before a node adds to it */

typedef struct node_spec {
    const char *what;
    ct_op op;
    ct_shape in;
    int channels, kernel, stride, pad, groups;
    bool bias;
} node_spec;

static const node_spec specs[] = {
    {"3x3", CT_OP_CONV, {3, 5, 7}, 4, 3, 1, 1, 1, false},
    {"3x3 with bias, stride 2", CT_OP_CONV, {2, 7, 6}, 3, 3, 2, 1, 1, true},
    {"3x3 without padding, stride 2", CT_OP_CONV, {3, 7, 8}, 2, 3, 2, 0, 1, false},
    {"1x1", CT_OP_CONV, {5, 3, 4}, 3, 1, 1, 0, 1, true},
    {"1x1, stride 2", CT_OP_CONV, {3, 5, 6}, 4, 1, 2, 0, 1, false},
    {"5x5, padding 2", CT_OP_CONV, {1, 7, 9}, 2, 5, 1, 2, 1, true},
    {"7x7, stride 2, padding 3", CT_OP_CONV, {3, 9, 8}, 2, 7, 2, 3, 1, false},
    {"two groups", CT_OP_CONV, {4, 5, 6}, 6, 3, 1, 1, 2, true},
    {"depthwise", CT_OP_CONV, {5, 6, 5}, 5, 3, 1, 1, 5, false},
    {"depthwise, stride 2, two outputs a channel", CT_OP_CONV, {3, 7, 7}, 6, 3, 2, 1, 3, true},
    {"of a vector", CT_OP_LINEAR, {7, 1, 1}, 3, 0, 0, 0, 0, true},
    {"of a picture", CT_OP_LINEAR, {3, 2, 4}, 5, 0, 0, 0, 0, true},
    {"relu", CT_OP_RELU, {3, 3, 5}, 0, 0, 0, 0, 0, false},
    {"2x2", CT_OP_MAXPOOL, {2, 6, 5}, 0, 2, 2, 0, 0, false},
    {"3x3, stride 2, padding 1", CT_OP_MAXPOOL, {3, 7, 6}, 0, 3, 2, 1, 0, false},
    {"average", CT_OP_AVGPOOL, {3, 3, 5}, 0, 0, 0, 0, 0, false},
    {"add", CT_OP_ADD, {2, 3, 5}, 0, 0, 0, 0, 0, false},
    {"one channel a group", CT_OP_EVONORM, {8, 3, 5}, 0, 0, 0, 0, 0, false},
    {"two channels a group", CT_OP_EVONORM, {16, 2, 3}, 0, 0, 0, 0, 0, false},
    {"one channel a group", CT_OP_EVONORM_S0, {8, 3, 5}, 0, 0, 0, 0, 0, false},
    {"two channels a group", CT_OP_EVONORM_S0, {16, 2, 3}, 0, 0, 0, 0, 0, false},
    {"three channels a group", CT_OP_GROUPNORM, {6, 3, 5}, 0, 0, 0, 0, 0, false},
    {"of one picture's size", CT_OP_BATCHNORM, {3, 4, 5}, 0, 0, 0, 0, 0, false},
    {"of vectors", CT_OP_BATCHNORM, {5, 1, 1}, 0, 0, 0, 0, 0, false},
};
enum { N_SPECS = sizeof specs / sizeof *specs };

/* One node with everything its call needs; `q` weighs its outputs in L. */
typedef struct harness {
    ct_graph graph;
    ref_call call;
    size_t n_in, n_out, n_params;
    double *in[2], *din[2], *params, *dparams, *out, *q;
    float *buffers;
} harness;

static int add_node(ct_graph *g, const node_spec *s) {
    int x = ct_input(g, s->in);
    switch (s->op) {
    case CT_OP_CONV:
        return ct_conv(g, x, "c", s->channels, s->kernel, s->stride, s->pad, s->groups, s->bias);
    case CT_OP_LINEAR: return ct_linear(g, x, "l", s->channels);
    case CT_OP_RELU: return ct_relu(g, x);
    case CT_OP_MAXPOOL: return ct_maxpool(g, x, s->kernel, s->stride, s->pad);
    case CT_OP_AVGPOOL: return ct_avgpool(g, x);
    case CT_OP_ADD: return ct_add(g, x, ct_relu(g, x));
    default: return ct_norm(g, x, s->op, "n");
    }
}

/* Off the kinks of relu (0) and of the hard sigmoid (-3, 3), where differences mean nothing. */
static double off_kinks(double x) {
    double distance = fmin(fabs(x), fabs(fabs(x) - 3));
    return distance < 100 * STEP ? x + 300 * STEP : x;
}

static double *random_values(size_t n, uint32_t index, double mean, double scale) {
    ct_rng rng;
    double *values = ct_new(double, n);
    ct_rng_init(&rng, 3, CT_RNG_TEST, 0, 0, index);
    for (size_t k = 0; values != NULL && k < n; k++)
        values[k] = off_kinks(mean + scale * ct_rng_normal(&rng));
    return values;
}

static void fill(double *values, size_t n, double value) {
    for (size_t k = 0; k < n; k++) values[k] = value;
}

static bool harness_create(const node_spec *s, harness *h) {
    memset(h, 0, sizeof *h);
    int node = add_node(&h->graph, s);
    if (h->graph.status != CT_OK) return false;
    const ct_node *n = &h->graph.nodes[node];
    h->n_in = BATCH * ct_shape_size(s->in);
    h->n_out = BATCH * ct_shape_size(n->shape);
    h->n_params = h->graph.n_weights;
    h->call =
        (ref_call){.graph = &h->graph, .node = n, .n = BATCH, .mode = REF_FEATURES, .shape = s->in};
    int n_inputs = s->op == CT_OP_ADD ? 2 : 1;
    for (int k = 0; k < n_inputs; k++) {
        /* deviation 2 reaches both ends of the hard sigmoid */
        h->call.in[k] = h->in[k] = random_values(h->n_in, (uint32_t)k, 0.3, 2);
        h->call.din[k] = h->din[k] = ct_new(double, h->n_in);
        fill(h->din[k], h->n_in, OFFSET);
    }
    h->call.params = h->params = random_values(h->n_params, 2, 0.5, 0.6);
    h->call.dparams = h->dparams = ct_new(double, h->n_params);
    fill(h->dparams, h->n_params, OFFSET);
    h->call.out = h->out = ct_new(double, h->n_out);
    h->call.dout = h->q = random_values(h->n_out, 3, 0, 1);
    h->call.buffers = h->buffers = ct_new(float, h->graph.n_buffer_values);
    ct_init_buffers(&h->graph, h->buffers);
    return true;
}

static void harness_free(harness *h) {
    for (int k = 0; k < 2; k++) {
        ct_free(h->in[k]);
        ct_free(h->din[k]);
    }
    ct_free(h->params);
    ct_free(h->dparams);
    ct_free(h->out);
    ct_free(h->q);
    ct_free(h->buffers);
    ct_graph_free(&h->graph);
}

static double loss(const harness *h) {
    double sum = 0;
    fill(h->out, h->n_out, NAN); /* a value that is not written shows */
    ct_ref_kernel(h->call.node->op)->forward(&h->call);
    for (size_t k = 0; k < h->n_out; k++) sum += h->q[k] * h->out[k];
    return sum;
}

/* |by backward - by differences| / |by differences| over n values the loss depends on. */
static double gradient_error(const harness *h, double *values, const double *gradient, size_t n) {
    double error = 0, norm = 0;
    for (size_t k = 0; k < n; k++) {
        double value = values[k];
        values[k] = value + STEP;
        double above = loss(h);
        values[k] = value - STEP;
        double difference = (above - loss(h)) / (2 * STEP);
        values[k] = value;
        double e = gradient[k] - OFFSET - difference;
        error += e * e;
        norm += difference * difference;
    }
    return norm > 0 ? sqrt(error / norm) : NAN;
}

static void check_node(const node_spec *s) {
    harness h;
    bool failed_before = test_failed;
    test_failed = false;
    REQUIRE(harness_create(s, &h));
    ct_ref_kernel(s->op)->backward(&h.call);
    for (int k = 0; k < 2 && h.in[k] != NULL; k++)
        CHECK_NEAR(gradient_error(&h, h.in[k], h.din[k], h.n_in), 0, TOLERANCE);
    for (int p = 0; p < h.graph.n_params; p++) {
        const ct_param *t = &h.graph.params[p];
        CHECK_NEAR(gradient_error(&h, h.params + t->offset, h.dparams + t->offset, t->count), 0,
                   TOLERANCE);
    }
    harness_free(&h);
    if (test_failed) printf("    in node type %d: %s\n", (int)s->op, s->what);
    test_failed = test_failed || failed_before;
}

static void the_gradients_of_every_node_are_those_of_central_differences(void) {
    for (int i = 0; i < N_SPECS; i++) check_node(&specs[i]);
}

static void every_node_type_is_tested(void) {
    for (int op = CT_OP_INPUT + 1; op < CT_N_OPS; op++) {
        bool found = false;
        for (int i = 0; i < N_SPECS; i++) found = found || specs[i].op == (ct_op)op;
        if (!found) printf("    node type %d has no test\n", op);
        CHECK(found);
        CHECK(ct_ref_kernel((ct_op)op) != NULL);
    }
}

/* Mean and biased variance of channel ch of a batch [BATCH][c][plane]. */
static void channel_moments(const double *x, int n_channels, size_t plane, int ch, double *mean,
                            double *var) {
    double sum = 0, squares = 0, n = (double)(BATCH * plane);
    for (size_t b = 0; b < BATCH; b++) {
        for (size_t k = 0; k < plane; k++) {
            double v = x[(b * (size_t)n_channels + (size_t)ch) * plane + k];
            sum += v;
            squares += v * v;
        }
    }
    *mean = sum / n;
    *var = squares / n - *mean * *mean;
}

static void batchnorm_remembers_what_it_saw_in_training_and_uses_it_in_evaluation(void) {
    static const node_spec spec = {.op = CT_OP_BATCHNORM, .in = {3, 4, 5}};
    harness h;
    REQUIRE(harness_create(&spec, &h));
    ct_ref_kernel(CT_OP_BATCHNORM)->forward(&h.call);
    for (int c = 0; c < 3; c++) CHECK(h.buffers[c] == 0 && h.buffers[3 + c] == 1);
    h.call.mode = REF_TRAIN;
    ct_ref_kernel(CT_OP_BATCHNORM)->forward(&h.call);
    for (int c = 0; c < 3; c++) {
        double mean, var;
        channel_moments(h.in[0], 3, 20, c, &mean, &var);
        CHECK_NEAR(h.buffers[c], 0.1 * mean, 1e-6);
        CHECK_NEAR(h.buffers[3 + c], 0.9 + 0.1 * var * 60 / 59, 1e-6);
    }
    h.call.mode = REF_EVALUATE;
    ct_ref_kernel(CT_OP_BATCHNORM)->forward(&h.call);
    for (size_t k = 0; k < h.n_out; k++) {
        size_t c = k / 20 % 3;
        double expected = (h.in[0][k] - (double)h.buffers[c]) /
                              sqrt((double)h.buffers[3 + c] + CT_NORM_EPSILON) * h.params[c] +
                          h.params[3 + c];
        CHECK_NEAR(h.out[k], expected, 1e-12);
    }
    harness_free(&h);
}

static void norms_give_each_group_mean_0_and_variance_1(void) {
    static const node_spec group = {.op = CT_OP_GROUPNORM, .in = {6, 3, 5}};
    harness h;
    REQUIRE(harness_create(&group, &h));
    fill(h.params, 6, 1);
    fill(h.params + 6, 6, 0);
    ct_ref_kernel(CT_OP_GROUPNORM)->forward(&h.call);
    for (size_t g = 0; g < BATCH * 2; g++) { /* 2 groups of 3 channels a sample */
        double sum = 0, squares = 0;
        for (size_t k = 0; k < 45; k++) {
            sum += h.out[g * 45 + k] / 45;
            squares += h.out[g * 45 + k] * h.out[g * 45 + k] / 45;
        }
        CHECK_NEAR(sum, 0, 1e-12);
        CHECK_NEAR(squares, 1, 1e-4); /* epsilon */
    }
    harness_free(&h);
}

int main(void) {
    TEST(every_node_type_is_tested);
    TEST(the_gradients_of_every_node_are_those_of_central_differences);
    TEST(batchnorm_remembers_what_it_saw_in_training_and_uses_it_in_evaluation);
    TEST(norms_give_each_group_mean_0_and_variance_1);
    return test_report();
}
