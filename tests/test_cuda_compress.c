/* Packed rows on the cuda backend: the bits of ref, and training with them. Skipped where no GPU
 * works. */
#include "oracle.h"
#include "packed.h"

#include <stdlib.h>
#include <unistd.h>

static bool has_gpu(void) {
    ct_backend *backend = NULL;
    ct_backend_options options = {.n_threads = 1};
    ct_clear_message();
    bool is_there = ct_backend_create("cuda", &options, &backend) == CT_OK;
    ct_backend_free(&backend);
    ct_clear_message();
    return is_there;
}

#define NEED_GPU()                                                                                 \
    if (!has_gpu()) SKIP("no GPU works here")

static void payloads_and_copies_have_the_bits_of_ref(void) {
    NEED_GPU();
    packed_compare_all("cuda");
}

static void rates_of_their_own_have_the_bits_of_ref(void) {
    NEED_GPU();
    packed_compare_steps("cuda");
}

static void five_steps_of_every_case_agree_with_the_oracle(void) {
    NEED_GPU();
    read_fixtures("compress");
    REQUIRE(n_fixtures > 0);
    for (int i = 0; i < n_fixtures; i++)
        if (strstr(fixtures[i].options, "low-rank") == NULL) check_case("cuda", &fixtures[i], 2e-4);
}

static void what_only_hosts_pack_is_refused(void) {
    static ct_run run;
    NEED_GPU();
    CHECK_FAILS(run_create("cuda", RUN_PLAIN, "--compress low-rank:2", &run), CT_INVAL,
                "--compress low-rank:2 cannot train on cuda; --device cpu can");
}

static float *train(const char *compress, const char *algorithm, size_t *n) {
    ct_config c;
    static ct_run run;
    static const char *const words[][2] = {
        {"dataset", "shapes"},  {"model", "lenet5"},  {"agents", "4"},
        {"batch-size", "8"},    {"device", "cuda"},   {"train-samples", "200"},
        {"test-samples", "40"}, {"loss", "ccl"},      {"lambda-m", "0.1"},
        {"lambda-d", "0.1"},    {"local-steps", "2"},
    };
    ct_config_init(&c);
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        CHECK_OK(ct_config_put(&c, words[k][0], words[k][1]));
    CHECK_OK(ct_config_put(&c, "compress", compress));
    CHECK_OK(ct_config_put(&c, "algorithm", algorithm));
    float *x = NULL;
    CHECK_OK(ct_run_build(&c, &run));
    if (test_failed) return NULL;
    for (long k = 0; k < 12; k++) CHECK_OK(ct_run_iterate(&run, k));
    size_t width = run.agents.x.n;
    *n = width * (size_t)run.agents.n;
    x = ct_new(float, *n);
    for (int i = 0; i < run.agents.n; i++)
        CHECK_OK(ct_bank_read(&run.agents.x, i, 0, width, x + (size_t)i * width));
    ct_run_clear(&run);
    return x;
}

/* Recorded graphs are replayed with new keys. */
static void training_repeats_to_the_bit_with_and_without_graphs(void) {
    NEED_GPU();
    static const char *const algorithms[] = {"dsgd", "dsgdm", "qg-dsgdm"};
    for (int k = 0; k < N_PACKED_KINDS; k++) {
        size_t n = 0, m = 0;
        setenv("CROSSTALK_CUDA_GRAPHS", "on", 1);
        float *one = train(packed_kinds[k], algorithms[k % 3], &n);
        setenv("CROSSTALK_CUDA_GRAPHS", "off", 1);
        float *other = train(packed_kinds[k], algorithms[k % 3], &m);
        unsetenv("CROSSTALK_CUDA_GRAPHS");
        bool is_same = one != NULL && other != NULL && n == m && n > 0;
        is_same = is_same && memcmp(one, other, n * sizeof *one) == 0;
        for (size_t i = 0; is_same && i < n; i++) is_same = isfinite(one[i]);
        if (!is_same) printf("    with %s and %s\n", packed_kinds[k], algorithms[k % 3]);
        CHECK(is_same);
        ct_free(one);
        ct_free(other);
    }
}

int main(void) {
    if (chdir(CT_SOURCE_DIR "/tests/fixtures") != 0) return 1;
    TEST(payloads_and_copies_have_the_bits_of_ref);
    TEST(rates_of_their_own_have_the_bits_of_ref);
    TEST(five_steps_of_every_case_agree_with_the_oracle);
    TEST(what_only_hosts_pack_is_refused);
    TEST(training_repeats_to_the_bit_with_and_without_graphs);
    return test_report();
}
