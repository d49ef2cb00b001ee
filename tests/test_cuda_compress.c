/* Packed rows on the cuda backend: the bits of ref, and training with them. Skipped where no GPU
 * works. */
#include "gpu.h"
#include "oracle.h"
#include "packed.h"

#include <stdlib.h>
#include <unistd.h>

static void payloads_and_copies_have_the_bits_of_ref(void) {
    NEED_GPU();
    packed_compare_all("cuda");
}

static void factors_and_copies_have_the_bits_of_ref(void) {
    NEED_GPU();
    packed_compare_models("cuda");
}

static void rows_have_the_same_bits_in_any_company(void) {
    NEED_GPU();
    ct_graph graph = {0};
    ct_compressor how;
    packed_open_model("lenet5", &graph);
    for (int n_at_once = 1; n_at_once < PACKED_ROWS; n_at_once++) {
        for (int k = 0; k < N_PACKED_KINDS; k++) {
            REQUIRE_OK(ct_compressor_parse(packed_kinds[k], 4097, &how));
            packed_compare_groups("cuda", n_at_once, &how, packed_kinds[k]);
        }
        REQUIRE_OK(ct_compressor_parse_model("low-rank:3", &graph, &how));
        packed_compare_groups("cuda", n_at_once, &how, "low-rank:3");
    }
    ct_graph_free(&graph);
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

static void mixing_keeps_the_average_and_agents_meet(void) {
    NEED_GPU();
    packed_check_meetings("cuda");
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
    for (long k = 0; k < FIRST_OF(4, 12); k++) CHECK_OK(ct_run_iterate(&run, k));
    size_t width = run.agents.x.n;
    *n = width * (size_t)run.agents.n;
    x = ct_new(float, *n);
    for (int i = 0; i < run.agents.n; i++)
        CHECK_OK(ct_bank_read(&run.agents.x, i, 0, width, x + (size_t)i * width));
    ct_run_clear(&run);
    return x;
}

/* Recorded graphs are replayed with new keys. */
static void check_repeat(const char *kind, const char *algorithm) {
    size_t n = 0, m = 0;
    setenv("CROSSTALK_CUDA_GRAPHS", "on", 1);
    float *one = train(kind, algorithm, &n);
    setenv("CROSSTALK_CUDA_GRAPHS", "off", 1);
    float *other = train(kind, algorithm, &m);
    unsetenv("CROSSTALK_CUDA_GRAPHS");
    bool is_same = one != NULL && other != NULL && n == m && n > 0;
    is_same = is_same && memcmp(one, other, n * sizeof *one) == 0;
    for (size_t i = 0; is_same && i < n; i++) is_same = isfinite(one[i]);
    if (!is_same) printf("    with %s and %s\n", kind, algorithm);
    CHECK(is_same);
    ct_free(one);
    ct_free(other);
}

static void training_repeats_to_the_bit_with_and_without_graphs(void) {
    NEED_GPU();
    static const char *const algorithms[] = {"dsgd", "dsgdm", "qg-dsgdm"};
    for (int k = 0; k < N_PACKED_KINDS; k += STEP_OF(6))
        check_repeat(packed_kinds[k], algorithms[k % 3]);
    for (int k = 0; k < N_MATRIX_KINDS; k++) check_repeat(matrix_kinds[k], algorithms[k % 3]);
}

int main(void) {
    if (chdir(CT_SOURCE_DIR "/tests/fixtures") != 0) return 1;
    TEST(payloads_and_copies_have_the_bits_of_ref);
    TEST(factors_and_copies_have_the_bits_of_ref);
    TEST(rows_have_the_same_bits_in_any_company);
    TEST(rates_of_their_own_have_the_bits_of_ref);
    TEST(five_steps_of_every_case_agree_with_the_oracle);
    TEST(mixing_keeps_the_average_and_agents_meet);
    TEST(training_repeats_to_the_bit_with_and_without_graphs);
    return test_report();
}
