/* The cuda backend where pictures are streamed from folders and where memory is short: training and
 * scores against the cpu backend, the same bits whatever the decoders do, and what is said when the
 * device is too small. Skipped where no GPU works. */
#include "cuda_test.h"

#include "ct_config.h"
#include "data_files.h"
#include "run/run.h"
#include "util/file.h"

enum { N_EACH = 60, N_TEST = 20 };

#define NEED_GPU_AND_PICTURES()                                                                    \
    if (!CT_WITH_JPEG || !CT_WITH_PNG) SKIP("built without libjpeg or libpng");                    \
    NEED_GPU()

/* Two classes; pictures of several formats and sizes, cut anew in every iteration. */
static void make_set(void) {
    static const char *const names[] = {"rgb.png", "small.png", "tall.jpg", "palette.png"};
    for (int k = 0; k < 2 * (N_EACH + N_TEST); k++) {
        char name[64];
        snprintf(name, sizeof name, "%s/%s/%03d.png", k < 2 * N_EACH ? "train" : "val",
                 k % 2 ? "up" : "down", k);
        put_picture(names[k % 4], name, SIZE_MAX);
    }
}

static ct_config folder_run(const char *where, const char *precision, const char *workers) {
    ct_config c;
    ct_config_init(&c);
    const char *const pairs[][2] = {
        {"dataset", "folder"},    {"data-dir", scratch},   {"image-size", "32"},
        {"model", "mobilenetv2"}, {"agents", "2"},         {"topology", "chain"},
        {"batch-size", "4"},      {"partition", "iid"},    {"algorithm", "ccl"},
        {"lr", "0.02"},           {"memory", "1"},         {"workers", workers},
        {"device", where},        {"precision", precision}};
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
        CHECK_OK(ct_config_put(&c, pairs[k][0], pairs[k][1]));
    return c;
}

typedef struct outcome {
    float *row; /* agent 0's parameters */
    size_t n;
    ct_evaluation scores;
} outcome;

/* A few iterations, more than the loader's ring holds, and an evaluation. */
static void train(const ct_config *c, long n_steps, outcome *out) {
    static ct_run run;
    memset(out, 0, sizeof *out);
    REQUIRE_OK(ct_run_build(c, &run));
    CHECK(run.train_loader != NULL);
    for (long k = 0; k < n_steps; k++) CHECK_OK(ct_run_iterate(&run, k));
    CHECK_OK(ct_run_score_all(&run, true, &out->scores));
    out->n = run.agents.x.n;
    out->row = ct_new(float, out->n);
    CHECK_OK(ct_bank_read(&run.agents.x, 0, 0, out->n, out->row));
    ct_run_clear(&run);
}

static double distance(const outcome *a, const outcome *b) {
    double off = 0, size = 0;
    for (size_t k = 0; k < a->n; k++) {
        off += pow((double)a->row[k] - (double)b->row[k], 2);
        size += pow((double)b->row[k], 2);
    }
    return sqrt(off / size);
}

static void a_streamed_folder_trains_as_on_the_cpu(void) {
    NEED_GPU_AND_PICTURES();
    outcome cpu, got;
    scratch_open();
    make_set();
    ct_config c = folder_run("cpu", "fp32", "2"), d = folder_run("cuda", "fp32", "2");
    train(&c, FIRST_OF(1, 3), &cpu);
    train(&d, FIRST_OF(1, 3), &got);
    if (cpu.row != NULL && got.row != NULL) {
        /* of the parameters' own size; 53 convolutions between EvoNorms are jumpy */
        CHECK_NEAR(distance(&got, &cpu), 0, 1e-4);
        CHECK_NEAR(got.scores.consensus_loss, cpu.scores.consensus_loss,
                   1e-2 * cpu.scores.consensus_loss);
    }
    ct_free(cpu.row);
    ct_free(got.row);
    scratch_close();
}

/* Batches go round the ring several times; decoders finish in any order. */
static void streamed_runs_repeat_to_the_bit(void) {
    NEED_GPU_AND_PICTURES();
    NEED_FAST_GPU();
    outcome one, many;
    scratch_open();
    make_set();
    ct_config c = folder_run("cuda", "tf32", "1"), d = folder_run("cuda", "tf32", "3");
    train(&c, 40, &one);
    train(&d, 40, &many);
    CHECK(one.row != NULL && many.row != NULL &&
          memcmp(one.row, many.row, one.n * sizeof *one.row) == 0);
    CHECK(one.scores.consensus_loss == many.scores.consensus_loss);
    ct_free(one.row);
    ct_free(many.row);
    scratch_close();
}

static ct_config noise_run(const char *batch_size) {
    ct_config c;
    ct_config_init(&c);
    const char *const pairs[][2] = {
        {"dataset", "noise"},       {"model", "resnet20"},      {"agents", "4"},
        {"batch-size", batch_size}, {"train-samples", "16384"}, {"test-samples", "100"},
        {"device", "cuda"},         {"algorithm", "ccl"},       {"alpha", "1"}};
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
        CHECK_OK(ct_config_put(&c, pairs[k][0], pairs[k][1]));
    return c;
}

/* An agent with 2,048 samples needs some 3 GiB. */
static void a_small_device_is_told_what_would_fit(void) {
    NEED_FAST_GPU();
    static ct_run run;
    ct_config c = noise_run("2048");
    setenv("CROSSTALK_CUDA_MEMORY", "1800", 1);
    REQUIRE_OK(ct_run_build(&c, &run));
    CHECK_FAILS(ct_run_iterate(&run, 0), CT_NOMEM, "a batch size of");
    ct_run_clear(&run);
    setenv("CROSSTALK_CUDA_MEMORY", "lots", 1);
    CHECK_FAILS(ct_run_build(&c, &run), CT_INVAL, "number of MiB");
    unsetenv("CROSSTALK_CUDA_MEMORY");
}

/* Two iterations; *bytes: the workspace they took. */
static void train_noise(const char *memory, size_t *bytes, outcome *out) {
    static ct_run run;
    ct_config c = noise_run("512");
    memset(out, 0, sizeof *out);
    if (memory != NULL) setenv("CROSSTALK_CUDA_MEMORY", memory, 1);
    REQUIRE_OK(ct_run_build(&c, &run));
    for (long k = 0; k < 2; k++) CHECK_OK(ct_run_iterate(&run, k));
    *bytes = run.plan->workspace_bytes;
    out->n = 4 * run.agents.x.n;
    out->row = ct_new(float, out->n);
    for (int a = 0; a < 4; a++)
        CHECK_OK(ct_bank_read(&run.agents.x, a, 0, run.agents.x.n,
                              out->row + (size_t)a * run.agents.x.n));
    ct_run_clear(&run);
    unsetenv("CROSSTALK_CUDA_MEMORY");
}

/* 4 agents with 512 samples each need some 3 GiB at once. */
static void a_small_device_takes_some_agents_after_the_others(void) {
    NEED_FAST_GPU();
    outcome all, some;
    size_t bytes_of_all, bytes_of_some;
    train_noise(NULL, &bytes_of_all, &all);
    train_noise("1800", &bytes_of_some, &some);
    CHECK(bytes_of_some < bytes_of_all);
    CHECK(all.row != NULL && some.row != NULL &&
          memcmp(all.row, some.row, all.n * sizeof *all.row) == 0);
    ct_free(all.row);
    ct_free(some.row);
}

int main(void) {
    TEST(a_streamed_folder_trains_as_on_the_cpu);
    TEST(streamed_runs_repeat_to_the_bit);
    TEST(a_small_device_is_told_what_would_fit);
    TEST(a_small_device_takes_some_agents_after_the_others);
    return test_report();
}
