/* Training runs on the cuda backend against ref and the exact cpu backend: algorithms, losses, run
 * to run, with and without recorded graphs. Skipped where no GPU works. */
#include "cuda_test.h"

#include "algo/algo.h"
#include "ct_config.h"
#include "run/run.h"

/* ---- training runs ---- */

typedef struct trained {
    float *start, *end; /* [agents][n] */
    size_t n;
} trained;

static void set(ct_config *c, const char *name, const char *value) {
    CHECK_OK(ct_config_put(c, name, value));
}

static void train(const ct_config *config, const char *name, const char *precision, int n_steps,
                  trained *out) {
    ct_run run;
    ct_config c = *config;
    set(&c, "device", name);
    set(&c, "precision", precision);
    memset(out, 0, sizeof *out);
    REQUIRE_OK(ct_run_build(&c, &run));
    out->n = run.agents.x.n * (size_t)run.agents.n;
    out->start = read_bank(&run.agents.x);
    for (long k = 0; k < n_steps; k++) CHECK_OK(ct_run_iterate(&run, k));
    out->end = read_bank(&run.agents.x);
    ct_run_clear(&run);
}

static void free_trained(trained *t) {
    ct_free(t->start);
    ct_free(t->end);
}

/* |a - b| relative to how far b went. */
static double drift(const trained *a, const trained *b) {
    if (a->end == NULL || b->end == NULL || a->n != b->n) return INFINITY;
    double moved = 0;
    for (size_t k = 0; k < b->n; k++) moved += pow((double)b->end[k] - (double)b->start[k], 2);
    double off = 0;
    for (size_t k = 0; k < b->n; k++) off += pow((double)a->end[k] - (double)b->end[k], 2);
    return sqrt(off / moved);
}

static ct_config small_run(const char *model) {
    ct_config c;
    ct_config_init(&c);
    bool has_colours = strcmp(model, "resnet20") == 0 || strcmp(model, "vgg11") == 0;
    set(&c, "dataset", has_colours ? "noise" : "shapes");
    set(&c, "model", model);
    set(&c, "agents", "4");
    set(&c, "batch-size", "8");
    set(&c, "train-samples", "200");
    set(&c, "test-samples", "40");
    set(&c, "alpha", "1");
    set(&c, "lr", "0.05");
    return c;
}

static void compare_runs(const ct_config *c, const char *what, double tolerance) {
    trained ref, got;
    train(c, "ref", "fp32", 5, &ref);
    train(c, "cuda", "fp32", 5, &got);
    double off = drift(&got, &ref);
    if (!(off <= tolerance)) {
        printf("    %s: off by %.3g of the way\n", what, off);
        test_failed = true;
    }
    free_trained(&ref);
    free_trained(&got);
}

static void check_algorithm(void *context, const char *name, const char *text) {
    (void)context, (void)text;
    static const char *const losses[] = {"ce", "ccl"};
    for (int k = 0; k < 2; k++) {
        ct_config c = small_run("mlp:16");
        set(&c, "algorithm", name);
        set(&c, "loss", losses[k]);
        if (k == 1) set(&c, "lambda-m", "0.5"), set(&c, "lambda-d", "0.3");
        compare_runs(&c, name, FP32_ERROR);
    }
}

static void algorithms_stay_with_ref(void) {
    NEED_GPU();
    ct_algo_each(check_algorithm, NULL);
    static const char *const variants[] = {"atc", "wacv24"};
    for (int k = 0; k < 2; k++) {
        ct_config c = small_run("mlp:16");
        set(&c, "variant", variants[k]);
        compare_runs(&c, variants[k], FP32_ERROR);
    }
}

/* So many edges that an update's rows do not fit into shared memory. */
static void a_crowd_stays_with_ref(void) {
    NEED_GPU();
    ct_config c = small_run("mlp:16");
    set(&c, "agents", "48");
    set(&c, "topology", "full");
    set(&c, "batch-size", "2");
    set(&c, "algorithm", "ccl");
    compare_runs(&c, "48 agents, each with each", FP32_ERROR);
}

static void losses_stay_with_ref(void) {
    NEED_GPU();
    static const char *const distances[] = {"mse", "l1", "cosine"}, *const sums[] = {"mean", "sum"};
    for (int k = 0; k < 6; k++) {
        ct_config c = small_run("mlp:16");
        set(&c, "ccl-distance", distances[k % 3]);
        set(&c, "ccl-reduction", sums[k / 3]);
        set(&c, "lambda-m", "0.1");
        set(&c, "lambda-d", "0.1");
        /* the sign of a difference near zero may differ */
        compare_runs(&c, distances[k % 3], k % 3 == 1 ? 1e-2 : FP32_ERROR);
    }
}

static void lenet_and_resnet_stay_with_ref(void) {
    NEED_GPU();
    ct_config c = small_run("lenet5");
    compare_runs(&c, "lenet5", FP32_ERROR);
    c = small_run("resnet20");
    set(&c, "batch-size", "4");
    set(&c, "exact-conv", "on");
    trained cpu, got, near, coarse;
    long n_steps = FIRST_OF(1, 5);
    train(&c, "cpu", "fp32", n_steps, &cpu);
    train(&c, "cuda", "fp32", n_steps, &got);
    train(&c, "cuda", "tf32", n_steps, &near);
    train(&c, "cuda", "bf16", n_steps, &coarse);
    /* EvoNorm's clamps make a chain of 20 layers jumpy */
    CHECK_NEAR(drift(&got, &cpu), 0, 1e-2);
    CHECK_NEAR(drift(&near, &got), 0, 0.1);
    CHECK_NEAR(drift(&coarse, &got), 0, 0.1);
    free_trained(&cpu);
    free_trained(&got);
    free_trained(&near);
    free_trained(&coarse);
}

static bool same_bits(const trained *a, const trained *b) {
    return a->end != NULL && b->end != NULL && a->n == b->n &&
           memcmp(a->end, b->end, a->n * sizeof *a->end) == 0;
}

static void check_lambdas(const char *model, const char *precision) {
    static const char *const m[] = {"0.1", "0.03"}, *const d[] = {"0", "0.7"};
    trained all, one;
    ct_config base = small_run(model), c;
    set(&base, "algorithm", "ccl"), set(&base, "seeds", "1,2"), c = base;
    set(&c, "lambdas", "0.1:0,0.03:0.7");
    train(&c, "cuda", precision, 5, &all);
    for (size_t k = 0; k < 2; k++) {
        c = base;
        set(&c, "lambda-m", m[k]), set(&c, "lambda-d", d[k]);
        train(&c, "cuda", precision, 5, &one);
        bool is_whole = all.end != NULL && one.end != NULL && all.n == 2 * one.n;
        CHECK(is_whole && memcmp(all.end + k * one.n, one.end, one.n * sizeof *one.end) == 0);
        free_trained(&one);
    }
    free_trained(&all);
}

static void worlds_with_lambdas_of_their_own_are_runs_alone_to_the_bit(void) {
    NEED_GPU();
    check_lambdas("mlp:16", "auto");
    if (is_slow_gpu()) return;
    check_lambdas("resnet20", "auto");
    check_lambdas("lenet5", "tf32");
    check_lambdas("vgg11", "bf16");
}

static void runs_repeat_to_the_bit_with_and_without_graphs(void) {
    NEED_GPU();
    static const struct {
        const char *model, *precision;
    } cases[] = {{"lenet5", "tf32"}, {"resnet20", "tf32"}, {"resnet20", "bf16"}, {"vgg11", "bf16"}};
    long n_steps = FIRST_OF(2, 15);
    for (int k = 0; k < 4; k += STEP_OF(2)) {
        ct_config c = small_run(cases[k].model);
        trained a, b, plain;
        if (is_slow_gpu()) set(&c, "batch-size", "3");
        train(&c, "cuda", cases[k].precision, n_steps, &a);
        train(&c, "cuda", cases[k].precision, n_steps, &b);
        setenv("CROSSTALK_CUDA_GRAPHS", "off", 1);
        train(&c, "cuda", cases[k].precision, n_steps, &plain);
        unsetenv("CROSSTALK_CUDA_GRAPHS");
        CHECK(same_bits(&a, &b));
        CHECK(same_bits(&a, &plain));
        free_trained(&a);
        free_trained(&b);
        free_trained(&plain);
    }
}

/* Trains with the kernels of updates that take any program, and with those that take most. */
static void check_updates(const ct_config *c, int n_steps, const char *what) {
    trained plain, fast;
    train(c, "cuda", "fp32", n_steps, &fast);
    setenv("CROSSTALK_CUDA_SCRIPTS", "off", 1);
    train(c, "cuda", "fp32", n_steps, &plain);
    unsetenv("CROSSTALK_CUDA_SCRIPTS");
    if (!same_bits(&plain, &fast)) {
        printf("    %s: the kernels of updates differ\n", what);
        test_failed = true;
    }
    free_trained(&plain);
    free_trained(&fast);
}

static void check_updates_of(void *context, const char *name, const char *text) {
    (void)context, (void)text;
    ct_config c = small_run("logistic");
    set(&c, "algorithm", name);
    set(&c, "agents", "6");
    check_updates(&c, 4, name);
}

static void updates_have_the_same_bits_by_any_kernel(void) {
    NEED_GPU();
    ct_algo_each(check_updates_of, NULL);
    static const struct {
        const char *agents, *topology, *name, *value;
    } cases[] = {{"1", "full", "algorithm", "dsgdm"},
                 {"18", "ring", "local-steps", "2"},
                 {"40", "exponential", "seeds", "1,2"},
                 {"6", "base", "average", "ema:0.9"},
                 {"6", "ring", "fault", "drop=0.3,kill=2@2"},
                 {"6", "one-peer-exponential", "algorithm", "sgp"},
                 {"6", "ring", "compress", "quantize:3"},
                 {"6", "ring", "nesterov", "off"},
                 {"1200", "ring", "algorithm", "qg-dsgdm"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        ct_config c = small_run("logistic");
        bool is_many = strlen(cases[k].agents) > 2;
        set(&c, "train-samples", is_many ? "2400" : "400");
        if (is_many) set(&c, "batch-size", "1"), set(&c, "partition", "iid");
        set(&c, "agents", cases[k].agents);
        set(&c, "topology", cases[k].topology);
        set(&c, cases[k].name, cases[k].value);
        check_updates(&c, is_many ? 2 : 4, cases[k].name);
    }
}

/* So many agents that not even an update's temporaries fit into shared memory, by the kernels that take
 * any program. */
static void thousands_of_agents_stay_with_ref(void) {
    NEED_FAST_GPU();
    ct_config c = small_run("mlp:4");
    set(&c, "agents", "4096");
    set(&c, "partition", "iid");
    set(&c, "train-samples", "8192");
    set(&c, "batch-size", "1");
    set(&c, "algorithm", "qg-dsgdm");
    compare_runs(&c, "4096 agents on a ring", FP32_ERROR);
    check_updates(&c, 2, "4096 agents on a ring");
}

static void what_does_not_fit_is_refused(void) {
    NEED_GPU();
    ct_backend *backend = NULL;
    ct_bank bank = {0};
    ct_backend_options options = {.precision = CT_PRECISION_AUTO};
    REQUIRE_OK(ct_backend_create("cuda", &options, &backend));
    CHECK_FAILS(ct_bank_create(backend, 1 << 20, 0, (size_t)1 << 24, &bank), CT_NOMEM, "are free");
    ct_backend_free(&backend);
}

static void a_missing_gpu_is_told_with_a_way_out(void) {
    if (has_gpu()) SKIP("a GPU works here");
    ct_backend *backend = NULL;
    ct_backend_options options = {.precision = CT_PRECISION_AUTO};
    if (CT_WITH_CUDA)
        CHECK_FAILS(ct_backend_create("cuda", &options, &backend), CT_IO, "--device cpu");
    else
        CHECK_FAILS(ct_backend_create("cuda", &options, &backend), CT_NOTBUILT, "CT_WITH_CUDA");
    CHECK(backend == NULL);
}

static void a_cpu_has_fp32_alone(void) {
    ct_backend *backend = NULL;
    ct_backend_options options = {.precision = CT_PRECISION_TF32};
    CHECK_FAILS(ct_backend_create("cpu", &options, &backend), CT_INVAL, "--device cuda");
    options.precision = CT_PRECISION_BF16;
    CHECK_FAILS(ct_backend_create("ref", &options, &backend), CT_INVAL, "--device cuda");
    ct_precision precision;
    CHECK_FAILS(ct_precision_parse("fp8", &precision), CT_INVAL, "bf16");
}

int main(void) {
    TEST(a_cpu_has_fp32_alone);
    TEST(a_missing_gpu_is_told_with_a_way_out);
    TEST(algorithms_stay_with_ref);
    TEST(a_crowd_stays_with_ref);
    TEST(losses_stay_with_ref);
    TEST(lenet_and_resnet_stay_with_ref);
    TEST(worlds_with_lambdas_of_their_own_are_runs_alone_to_the_bit);
    TEST(runs_repeat_to_the_bit_with_and_without_graphs);
    TEST(updates_have_the_same_bits_by_any_kernel);
    TEST(thousands_of_agents_stay_with_ref);
    TEST(what_does_not_fit_is_refused);
    return test_report();
}
