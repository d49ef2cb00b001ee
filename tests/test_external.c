/* Models that the caller computes. The caller here is a network of one hidden layer in plain
 * doubles; crosstalk's own `mlp` is the same network, so that runs with the one and with the other
 * must end with the same models, whatever lies between gradients. */
#include <crosstalk/crosstalk.h>

#include "algo/algo.h"
#include "program.h"
#include "test.h"

enum {
    N_IN = 16,
    N_HIDDEN = 6,
    N_CLASSES = 3,
    N_TRAIN = 96,
    N_TEST = 30,
    N_AGENTS = 4,
    MAX_N = 32,
    W1 = 0,
    B1 = W1 + N_HIDDEN * N_IN,
    W2 = B1 + N_HIDDEN,
    B2 = W2 + N_CLASSES * N_HIDDEN,
    N_PARAMS = B2 + N_CLASSES,
};

static uint8_t pixels[N_TRAIN + N_TEST][N_IN];
static int32_t labels[N_TRAIN + N_TEST];
static const float mean[] = {0.4f}, deviation[] = {0.3f};

static void make_samples(void) {
    uint32_t state = 7;
    for (int s = 0; s < N_TRAIN + N_TEST; s++) {
        labels[s] = s % N_CLASSES;
        for (int k = 0; k < N_IN; k++) {
            state = state * 1664525u + 1013904223u;
            pixels[s][k] = (uint8_t)((state >> 24) / 2 + (k % N_CLASSES == labels[s] ? 100 : 0));
        }
    }
}

/* ---- the caller's network ---- */

typedef struct network {
    int n_gradients, n_features, fails_at; /* fails_at: the gradient that fails; 0: none */
    bool forgets_contrast;
} network;

static double input(uint32_t sample, int k) {
    return (double)(float)((pixels[sample][k] / 255.0 - (double)mean[0]) / (double)deviation[0]);
}

static void hidden_of(const float *x, uint32_t sample, double *h) {
    for (int j = 0; j < N_HIDDEN; j++) {
        double sum = (double)x[B1 + j];
        for (int k = 0; k < N_IN; k++) sum += (double)x[W1 + j * N_IN + k] * input(sample, k);
        h[j] = sum > 0 ? sum : 0;
    }
}

/* Probabilities; returns the cross-entropy. */
static double classes_of(const float *x, const double *h, int label, double *p, int *best) {
    double total = 0;
    *best = 0;
    for (int c = 0; c < N_CLASSES; c++) {
        p[c] = (double)x[B2 + c];
        for (int j = 0; j < N_HIDDEN; j++) p[c] += (double)x[W2 + c * N_HIDDEN + j] * h[j];
        if (p[c] > p[*best]) *best = c;
    }
    for (int c = 0; c < N_CLASSES; c++) total += p[c] = exp(p[c]);
    for (int c = 0; c < N_CLASSES; c++) p[c] /= total;
    return -log(p[label]);
}

static int features(void *context, ct_external_job *job) {
    double h[N_HIDDEN];
    ((network *)context)->n_features++;
    for (int b = 0; b < job->n; b++) {
        hidden_of(job->x, job->index[b], h);
        for (int j = 0; j < N_HIDDEN; j++) job->z[b * N_HIDDEN + j] = (float)h[j];
    }
    return 0;
}

static void add_sample(const float *x, uint32_t sample, const double *h, const double *dlogits,
                       const float *dz, double *g) {
    for (int j = 0; j < N_HIDDEN; j++) {
        double dh = dz != NULL ? (double)dz[j] : 0;
        for (int c = 0; c < N_CLASSES; c++) {
            g[W2 + c * N_HIDDEN + j] += dlogits[c] * h[j];
            dh += dlogits[c] * (double)x[W2 + c * N_HIDDEN + j];
        }
        if (h[j] <= 0) continue;
        g[B1 + j] += dh;
        for (int k = 0; k < N_IN; k++) g[W1 + j * N_IN + k] += dh * input(sample, k);
    }
    for (int c = 0; c < N_CLASSES; c++) g[B2 + c] += dlogits[c];
}

static int gradient(void *context, ct_external_job *job) {
    network *net = context;
    double h[N_HIDDEN], p[N_CLASSES], g[N_PARAMS] = {0};
    int best;
    if (++net->n_gradients == net->fails_at) return 42;
    job->loss = job->n_correct = 0;
    if (job->z != NULL) features(net, job), net->n_features--;
    if (!net->forgets_contrast) ct_job_contrast(job);
    for (int b = 0; b < job->n; b++) {
        hidden_of(job->x, job->index[b], h);
        job->loss += classes_of(job->x, h, job->labels[b], p, &best) / job->n;
        job->n_correct += best == job->labels[b];
        p[job->labels[b]] -= 1;
        for (int c = 0; c < N_CLASSES; c++) p[c] /= job->n;
        add_sample(job->x, job->index[b], h, p, job->dz != NULL ? job->dz + b * N_HIDDEN : NULL, g);
    }
    for (int k = 0; k < N_PARAMS; k++) job->g[k] = (float)g[k];
    return 0;
}

static int evaluate(void *context, ct_external_job *job) {
    double h[N_HIDDEN], p[N_CLASSES];
    (void)context;
    job->loss = 0;
    for (int b = 0; b < job->n; b++) {
        int best;
        uint32_t sample = N_TRAIN + job->index[b];
        hidden_of(job->x, sample, h);
        job->loss += classes_of(job->x, h, labels[sample], p, &best) / job->n;
        job->predictions[b] = best;
    }
    return 0;
}

static const ct_parameter parameters[] = {{"fc1.weight", 2, {N_HIDDEN, N_IN}},
                                          {"fc1.bias", 1, {N_HIDDEN}},
                                          {"fc2.weight", 2, {N_CLASSES, N_HIDDEN}},
                                          {"fc2.bias", 1, {N_CLASSES}}};

static ct_external describe(network *net, const float *start) {
    ct_external e = CT_EXTERNAL_INIT;
    e.context = net;
    e.parameters = parameters;
    e.n_parameters = 4;
    e.start = start;
    e.n_features = N_HIDDEN;
    e.gradient = gradient;
    e.features = features;
    e.evaluate = evaluate;
    return e;
}

/* ---- runs ---- */

static ct_data samples(bool with_values) {
    ct_data d = CT_DATA_INIT;
    d.height = d.width = 4;
    d.n_classes = N_CLASSES;
    d.train = (ct_samples){N_TRAIN, with_values ? pixels[0] : NULL, labels};
    d.test = (ct_samples){N_TEST, with_values ? pixels[N_TRAIN] : NULL, labels + N_TRAIN};
    d.mean = mean;
    d.std = deviation;
    return d;
}

/* `options`: "name value name value ...". */
static ct_status begin(const char *options, const ct_external *external, bool writes_nothing,
                       ct_run **out) {
    ct_error error;
    ct_config *config = NULL;
    ct_data data = samples(external == NULL);
    ct_inputs inputs = CT_INPUTS_INIT;
    char text[1024];
    snprintf(text, sizeof text,
             "device ref agents %d batch-size 8 epochs 3 alpha 0.5 eval-every 100 lr 0.1 %s %s",
             N_AGENTS, external == NULL ? "model mlp:6" : "", options);
    ct_status status = ct_config_create(&config, &error);
    char *rest = text, *name;
    while (status == CT_OK && (name = strtok_r(rest, " ", &rest)) != NULL)
        status = ct_config_set(config, name, strtok_r(rest, " ", &rest), &error);
    inputs.data = &data;
    inputs.external = external;
    inputs.writes_nothing = writes_nothing;
    if (status == CT_OK) status = ct_run_create(config, &inputs, out, &error);
    ct_config_free(&config);
    if (status != CT_OK) return ct_fail_again(&error);
    return CT_OK;
}

static ct_status advance(ct_run *run, long n) {
    ct_error error;
    ct_status status = ct_run_step(run, n, &error);
    return status != CT_OK ? ct_fail_again(&error) : CT_OK;
}

/* The largest difference between two models, and how far the first has moved from `start`. */
static void compare(const float *a, const float *b, const float *start, double *worst,
                    double *moved) {
    for (int k = 0; k < N_PARAMS; k++) {
        *worst = fmax(*worst, fabs((double)a[k] - (double)b[k]));
        *moved = fmax(*moved, fabs((double)a[k] - (double)start[k]));
    }
}

/* Both kinds of run over 5 iterations: as near as float banks are to doubles. */
static void check_same(const char *options) {
    ct_run *own = NULL, *theirs = NULL;
    network net = {0};
    float start[N_PARAMS], a[N_PARAMS], b[N_PARAMS];
    double worst = 0, moved = 0;
    REQUIRE_OK(begin(options, NULL, true, &own));
    CHECK(ct_run_n_parameters(own) == N_PARAMS);
    CHECK_OK(ct_run_read(own, 0, 0, start, NULL));
    ct_external external = describe(&net, start);
    CHECK_OK(begin(options, &external, true, &theirs));
    if (theirs != NULL) {
        CHECK_OK(advance(own, 5));
        CHECK_OK(advance(theirs, 5));
        for (int i = 0; i < N_AGENTS; i++) {
            CHECK_OK(ct_run_read(own, 0, i, a, NULL));
            CHECK_OK(ct_run_read(theirs, 0, i, b, NULL));
            compare(a, b, start, &worst, &moved);
        }
        CHECK(moved > 1e-3);
        if (worst > 2e-6 * moved)
            printf("    %s: differs by %g of the way moved\n", options, worst / moved);
        CHECK(worst <= 2e-6 * moved);
        CHECK(net.n_gradients >= 5 * N_AGENTS);
    }
    ct_run_free(&theirs);
    ct_run_free(&own);
}

/* Distillation needs predictions, which an external model does not give. */
static bool distils(const char *name) {
    return strcmp(name, "def-kt") == 0;
}

static void check_refused(const char *options) {
    ct_run *run = NULL;
    network net = {0};
    float start[N_PARAMS] = {0};
    ct_external external = describe(&net, start);
    CHECK_FAILS(begin(options, &external, true, &run), CT_INVAL, "a model of the caller's own");
    CHECK(run == NULL);
}

static void check_algorithm(void *context, const char *name, const char *text) {
    char options[128];
    (void)text;
    snprintf(options, sizeof options, "algorithm %s loss %s", name, (const char *)context);
    if (distils(name))
        check_refused(options);
    else
        check_same(options);
}

static void every_algorithm_trains_a_model_of_the_callers(void) {
    char loss[] = "ce";
    ct_algo_each(check_algorithm, loss);
}

static void every_algorithm_trains_it_with_the_contrastive_loss(void) {
    char loss[] = "ccl";
    ct_algo_each(check_algorithm, loss);
}

static void graphs_faults_and_economies_work_as_with_our_models(void) {
    check_same("algorithm ccl topology one-peer-exponential");
    check_same("algorithm ccl ccl-distance l1 ccl-batch-fraction 0.5");
    check_same("algorithm ccl ccl-adaptive 0.1");
    check_same("algorithm qg-dsgdm fault drop=0.2");
    check_same("algorithm qg-dsgdm weight-decay 0.01 clip-norm 0.5");
    check_same("algorithm qg-dsgdm weight-decay 0.01 sam 0.1");
    check_same("algorithm dsgdm seeds 1,2");
}

static void the_cpu_backend_gives_the_bits_of_ref(void) {
    network net = {0};
    float start[N_PARAMS] = {0}, a[N_PARAMS], b[N_PARAMS];
    ct_run *run = NULL;
    for (int k = 0; k < N_PARAMS; k++) start[k] = (float)sin(k) / 4;
    ct_external external = describe(&net, start);
    REQUIRE_OK(begin("algorithm ccl threads 2 device cpu", &external, true, &run));
    CHECK_OK(advance(run, 5));
    CHECK_OK(ct_run_read(run, 0, 2, a, NULL));
    ct_run_free(&run);
    REQUIRE_OK(begin("algorithm ccl threads 1 device cpu", &external, true, &run));
    CHECK_OK(advance(run, 5));
    CHECK_OK(ct_run_read(run, 0, 2, b, NULL));
    CHECK(memcmp(a, b, sizeof a) == 0);
    ct_run_free(&run);
}

static void it_is_evaluated_and_recorded(void) {
    network net = {0};
    float start[N_PARAMS] = {0};
    ct_run *run = NULL;
    ct_external external = describe(&net, start);
    for (int k = 0; k < N_PARAMS; k++) start[k] = (float)sin(k) / 4;
    REQUIRE_OK(begin("algorithm ccl alpha 100 epochs 20", &external, true, &run));
    CHECK_OK(advance(run, 0));
    CHECK(ct_run_is_done(run));
    CHECK(ct_run_metric(run, 0, "consensus_accuracy") > 0.8);
    CHECK(net.n_features > 0);
    ct_run_free(&run);
}

static void a_stopped_run_resumes_to_the_same_bits(void) {
    network net = {0};
    float start[N_PARAMS], whole[N_PARAMS], resumed[N_PARAMS];
    ct_run *run = NULL;
    for (int k = 0; k < N_PARAMS; k++) start[k] = (float)sin(k) / 4;
    ct_external external = describe(&net, start);
    REQUIRE_OK(begin("algorithm ccl", &external, true, &run));
    CHECK_OK(advance(run, 7));
    CHECK_OK(ct_run_read(run, 0, 1, whole, NULL));
    ct_run_free(&run);
    REQUIRE_OK(begin("algorithm ccl out run", &external, false, &run));
    CHECK_OK(advance(run, 4));
    CHECK_OK(ct_run_checkpoint(run, NULL));
    ct_run_free(&run);
    REQUIRE_OK(begin("algorithm ccl resume run", &external, false, &run));
    CHECK(ct_run_iteration(run) == 4);
    CHECK_OK(advance(run, 3));
    CHECK_OK(ct_run_read(run, 0, 1, resumed, NULL));
    CHECK(memcmp(whole, resumed, sizeof whole) == 0);
    ct_run_free(&run);
}

static void a_gradient_that_fails_ends_the_run_with_its_number(void) {
    network net = {.fails_at = 6};
    float start[N_PARAMS] = {0};
    ct_run *run = NULL;
    ct_external external = describe(&net, start);
    REQUIRE_OK(begin("algorithm dsgdm", &external, true, &run));
    CHECK_FAILS(advance(run, 5), CT_INVAL,
                "the caller's gradient failed with 42 for agent 1 in iteration 1");
    CHECK_FAILS(advance(run, 5), CT_INVAL, "");
    ct_run_free(&run);
}

static void what_does_not_fit_is_refused(void) {
    network net = {.forgets_contrast = true};
    float start[N_PARAMS] = {0};
    ct_run *run = NULL;
    ct_external external = describe(&net, start);
    REQUIRE_OK(begin("algorithm ccl", &external, true, &run));
    CHECK_FAILS(advance(run, 1), CT_INVAL, "did not call ct_job_contrast");
    ct_run_free(&run);
    external.features = NULL;
    CHECK_FAILS(begin("algorithm ccl", &external, true, &run), CT_INVAL, "features");
    external = describe(&net, start);
    external.gradient = NULL;
    CHECK_FAILS(begin("algorithm dsgdm", &external, true, &run), CT_INVAL, "a gradient function");
    external = describe(&net, start);
    external.on_device = true;
    CHECK_FAILS(begin("algorithm dsgdm", &external, true, &run), CT_INVAL, "device memory");
    external = describe(&net, start);
    CHECK_FAILS(begin("label-smoothing 0.1", &external, true, &run), CT_INVAL, "--label-smoothing");
    CHECK(run == NULL);
}

int main(void) {
    if (!enter_folder()) return 1;
    make_samples();
    TEST(every_algorithm_trains_a_model_of_the_callers);
    TEST(every_algorithm_trains_it_with_the_contrastive_loss);
    TEST(graphs_faults_and_economies_work_as_with_our_models);
    TEST(the_cpu_backend_gives_the_bits_of_ref);
    TEST(it_is_evaluated_and_recorded);
    TEST(a_stopped_run_resumes_to_the_same_bits);
    TEST(a_gradient_that_fails_ends_the_run_with_its_number);
    TEST(what_does_not_fit_is_refused);
    leave_folder();
    return test_report();
}
