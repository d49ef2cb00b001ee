/* Packed rows: the same bits on ref and cpu, contractions, sizes, payloads from elsewhere, and what
 * runs with --compress promise. */
#include "oracle.h"
#include "packed.h"

#include <stdlib.h>
#include <unistd.h>

static void payloads_and_copies_have_the_bits_of_ref(void) {
    packed_compare_all("cpu");
}

static void factors_and_copies_have_the_bits_of_ref(void) {
    packed_compare_models("cpu");
}

static void rates_of_their_own_have_the_bits_of_ref(void) {
    packed_compare_steps("cpu");
}

static void the_fixtures_cover_every_compressor_and_form(void) {
    static const char *const wanted[] = {"quantize:8",
                                         "quantize:4",
                                         "quantize:3",
                                         "quantize:2",
                                         "sign",
                                         "top-k",
                                         "random-k",
                                         "top-k:1",
                                         "top-k8",
                                         "--algorithm dsgd ",
                                         "dsgdm",
                                         "dfedavgm",
                                         "qg-dsgdm",
                                         "--variant atc",
                                         "--variant cta",
                                         "--variant wacv24",
                                         "--loss ccl",
                                         "--local-steps 2",
                                         "consensus adagossip",
                                         "low-rank"};
    read_fixtures("compress");
    check_cover(wanted, sizeof wanted / sizeof *wanted);
}

static void five_steps_of_every_case_agree_with_the_oracle(void) {
    REQUIRE(n_fixtures > 0);
    for (int i = 0; i < n_fixtures; i++) check_case("ref", &fixtures[i], 5e-5);
    for (int i = 0; i < n_fixtures; i++) check_case("cpu", &fixtures[i], 2e-4);
}

/* Bytes of a row of 1000 values: 4 buckets; of 100 places 3 low bits each, and 100 + 125 + 1 bits. */
static void a_packed_row_has_the_size_it_says(void) {
    static const struct {
        const char *text;
        size_t n_bytes;
    } known[] = {{"quantize:8", 16 + 1000},
                 {"quantize:4", 16 + 500},
                 {"quantize:3", 16 + 376},
                 {"quantize:2", 16 + 252},
                 {"sign", 16 + 128},
                 {"random-k:0.1", 400},
                 {"top-k:0.1", 400 + 40 + 32},
                 {"top-k:1", 4000 + 252},
                 {"random-k:0.0001", 4},
                 {"top-k8:0.1", 104 + 40 + 32},
                 {"top-k8:0.5", 8 + 500 + 64 + 128}};
    ct_compressor how;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        REQUIRE_OK(ct_compressor_parse(known[k].text, 1000, &how));
        if (how.n_bytes != known[k].n_bytes) printf("    %s: %zu\n", known[k].text, how.n_bytes);
        CHECK(how.n_bytes == known[k].n_bytes);
    }
    ct_compressor_sums(10, 85, &how);
    CHECK(how.n_bytes == 10 * (4 + 4 + 84));
}

/* LeNet-5: conv1 [6 x 25] and conv2 [16 x 150], fc1 [120 x 400], fc2 [84 x 120], fc3 [10 x 84], and
 * 6 + 16 + 120 + 84 + 10 biases. conv1 of rank 5 would be 155 floats, more than it has. */
static void factors_have_the_size_of_their_tensors(void) {
    ct_graph graph = {0};
    ct_compressor how;
    packed_open_model("lenet5", &graph);
    REQUIRE_OK(ct_compressor_parse_model("low-rank:1", &graph, &how));
    CHECK(how.n_bytes == 4 * (31 + 166 + 520 + 204 + 94 + 236));
    REQUIRE_OK(ct_compressor_parse_model("low-rank:5", &graph, &how));
    CHECK(how.n_bytes == 4 * (150 + 5 * (166 + 520 + 204 + 94) + 236));
    REQUIRE_OK(ct_compressor_parse_model("low-rank:256", &graph, &how));
    CHECK(how.n_bytes == 4 * graph.n_weights);
    REQUIRE_OK(ct_compressor_parse("low-rank:4", 1000, &how));
    CHECK(how.n_bytes == 4000); /* values without a shape */
    ct_graph_free(&graph);
}

/* |d - Q(d)|^2 / |d|^2, the largest of all rows. */
static double left_over(const ct_compressor *how, int step) {
    packed_banks b;
    float *x = ct_new(float, how->n), *q = ct_new(float, how->n);
    double most = 0;
    packed_create("ref", how, &b);
    packed_round(how, step, &b);
    for (int row = 0; row < PACKED_ROWS; row++) {
        double left = 0, all = 0;
        CHECK_OK(ct_bank_read(&b.x, row, 0, how->n, x));
        CHECK_OK(ct_bank_read(&b.known, row, 0, how->n, q));
        for (size_t i = 0; i < how->n; i++) {
            left += pow((double)x[i] - (double)q[i], 2);
            all += pow((double)x[i], 2);
        }
        most = fmax(most, left / all);
    }
    ct_free(x);
    ct_free(q);
    packed_free(&b);
    return most;
}

static void what_is_left_out_is_smaller_than_what_there_was(void) {
    for (int k = 0; k < N_PACKED_KINDS; k++) {
        ct_compressor how;
        REQUIRE_OK(ct_compressor_parse(packed_kinds[k], 5000, &how));
        double left = left_over(&how, 3);
        CHECK(left < 1);
        if (strcmp(packed_kinds[k], "quantize:8") == 0) CHECK(left < 2e-3);
        if (strcmp(packed_kinds[k], "quantize:4") == 0) CHECK(left < 0.1);
        if (strcmp(packed_kinds[k], "quantize:3") == 0) CHECK(left < 0.4);
        if (strcmp(packed_kinds[k], "quantize:2") == 0) CHECK(left < 0.65);
        if (strstr(packed_kinds[k], ":1") != NULL) CHECK(left == 0);
        if (strcmp(packed_kinds[k], "top-k:0.1") == 0) CHECK(left < 0.7);
        if (strcmp(packed_kinds[k], "top-k8:0.1") == 0) CHECK(left < 0.7);
    }
}

/* The more of a matrix, the less is left; a matrix of that rank is sent to the last bits. */
static void a_higher_rank_leaves_less(void) {
    ct_graph graph = {0};
    double before = 1;
    packed_open_model("lenet5", &graph);
    for (int k = 0; k < N_MATRIX_KINDS; k++) {
        ct_compressor how;
        REQUIRE_OK(ct_compressor_parse_model(matrix_kinds[k], &graph, &how));
        double left = left_over(&how, 3);
        CHECK(left < before || (left == 0 && before == 0));
        before = left;
    }
    CHECK(before == 0);
    ct_graph_free(&graph);
}

/* u v^T + 2 v' u'^T, with a rank to spare: what the third column finds is noise, and left out. */
static void a_matrix_of_low_rank_arrives_whole(void) {
    ct_graph graph = {0};
    ct_compressor how;
    packed_open_model("mlp:20", &graph);
    REQUIRE_OK(ct_compressor_parse_model("low-rank:3", &graph, &how));
    size_t n = graph.n_weights, b = graph.params[0].count / 20;
    float *x = ct_new(float, n), *got = ct_new(float, n);
    uint32_t *scratch = ct_new(uint32_t, how.n_scratch);
    uint8_t *packed = ct_new(uint8_t, how.n_bytes);
    for (size_t i = 0; i < graph.params[0].count; i++)
        x[i] = (float)(sin(i / b) * cos(i % b) + 2 * cos(3 * (i / b)) * sin(i % b * 0.1));
    ct_compress_key key = {{1, 2}, 0, 3, 4};
    how.kind->encode(&how, &key, x, NULL, scratch, packed);
    CHECK(how.kind->decode(&how, &key, packed, got));
    for (size_t i = 0; i < n; i++) CHECK_NEAR(got[i], x[i], 1e-5);
    ct_free(x);
    ct_free(got);
    ct_free(scratch);
    ct_free(packed);
    ct_graph_free(&graph);
}

/* E Q(s) = s, and counts as they are. */
static void class_sums_are_rounded_without_bias(void) {
    enum { WIDTH = 9, N = 3 * WIDTH, N_DRAWS = 4000 };
    ct_compressor how;
    float sums[N], got[N];
    double means[N] = {0};
    uint8_t packed[256];
    ct_compressor_sums(3, WIDTH, &how);
    REQUIRE(how.n_bytes <= sizeof packed);
    for (int i = 0; i < N; i++) sums[i] = i % WIDTH == WIDTH - 1 ? (float)(3 + i) : (float)sin(i);
    for (int draw = 0; draw < N_DRAWS; draw++) {
        ct_compress_key key = {{1, 2}, 0, (uint32_t)draw, 4};
        memset(got, 0, sizeof got);
        how.kind->encode(&how, &key, sums, NULL, NULL, packed);
        CHECK(how.kind->decode(&how, &key, packed, got));
        for (int i = 0; i < N; i++) means[i] += (double)got[i] / N_DRAWS;
    }
    /* a draw is off by less than a 127th: its mean by 1 / 254 / sqrt(N_DRAWS) or so */
    for (int i = 0; i < N; i++) CHECK_NEAR(means[i], sums[i], i % WIDTH == WIDTH - 1 ? 1e-9 : 4e-4);
}

/* Whatever bytes come: no crash, nothing outside the row, and nothing that is not finite. */
static void send_nonsense(const ct_compressor *how, uint32_t kind) {
    float *known = ct_new(float, how->n + 2);
    uint8_t *packed = ct_new(uint8_t, how->n_bytes);
    int n_refused = 0;
    for (uint32_t draw = 0; draw < 2000; draw++) {
        memset(known, 0, (how->n + 2) * sizeof *known);
        ct_compress_key key = {{1, 2}, 0, draw, 4};
        ct_rng rng;
        ct_rng_init(&rng, 5, CT_RNG_TEST, kind, draw, 0);
        for (size_t i = 0; i < how->n_bytes; i++)
            packed[i] = draw % 2 == 0 ? (uint8_t)ct_rng_u32(&rng) : draw % 4 == 1 ? 0xff : 0;
        n_refused += !how->kind->decode(how, &key, packed, known + 1);
        bool is_fine = known[0] == 0 && known[how->n + 1] == 0;
        for (size_t i = 1; i <= how->n; i++) is_fine = is_fine && isfinite(known[i]);
        CHECK(is_fine);
    }
    CHECK(n_refused >= 500); /* all ones are no numbers */
    ct_free(packed);
    ct_free(known);
}

static void a_hostile_payload_does_no_harm(void) {
    ct_graph graph = {0};
    ct_compressor how;
    for (int k = 0; k < N_PACKED_KINDS; k++) {
        REQUIRE_OK(ct_compressor_parse(packed_kinds[k], 300, &how));
        send_nonsense(&how, (uint32_t)k);
    }
    packed_open_model("mlp:2", &graph);
    for (int k = 0; k < N_MATRIX_KINDS; k++) {
        REQUIRE_OK(ct_compressor_parse_model(matrix_kinds[k], &graph, &how));
        send_nonsense(&how, (uint32_t)k);
    }
    ct_graph_free(&graph);
}

static void a_wrong_name_or_number_is_refused(void) {
    ct_compressor how;
    CHECK_FAILS(ct_compressor_parse("top", 9, &how), CT_INVAL, "known: none, top-k");
    CHECK_FAILS(ct_compressor_parse("top-k", 9, &how), CT_INVAL, "top-k:0.1");
    CHECK_FAILS(ct_compressor_parse("top-k:1.5", 9, &how), CT_INVAL, "up to 1");
    CHECK_FAILS(ct_compressor_parse("random-k:0", 9, &how), CT_INVAL, "above 0");
    CHECK_FAILS(ct_compressor_parse("quantize:5", 9, &how), CT_INVAL, "8, 4, 3 or 2");
    CHECK_FAILS(ct_compressor_parse("quantize:x", 9, &how), CT_INVAL, "'x' is no number");
    CHECK_FAILS(ct_compressor_parse("sign:2", 9, &how), CT_INVAL, "no number");
    CHECK_FAILS(ct_compressor_parse("low-rank", 9, &how), CT_INVAL, "low-rank:4");
    CHECK_FAILS(ct_compressor_parse("low-rank:0", 9, &how), CT_INVAL, "from 1 to 256");
    CHECK_FAILS(ct_compressor_parse("low-rank:1.5", 9, &how), CT_INVAL, "a whole number");
}

static void the_averaging_rate_follows_bits_momentum_and_rounds(void) {
    static const struct {
        const char *options;
        double gamma;
    } known[] = {{"--algorithm qg-dsgdm --compress quantize:3 --local-steps 8", 1},
                 {"--algorithm qg-dsgdm --compress quantize:2", 0.9},
                 {"--algorithm qg-dsgdm --compress quantize:2 --local-steps 4", 0.5},
                 {"--algorithm dsgdm --compress quantize:2 --local-steps 4", 0.9},
                 {"--algorithm qg-dsgdm --compress sign", 0.05},
                 {"--algorithm dsgdm --compress sign", 0.4},
                 {"--algorithm qg-dsgdm --compress sign --gamma 0.3", 0.3},
                 {"--algorithm qg-dsgdm --variant wacv24 --compress quantize:2", 0.09},
                 {"--algorithm qg-dsgdm --variant wacv24 --compress sign --momentum 0.6", 0.02},
                 {"--algorithm qg-dsgdm --variant wacv24 --compress quantize:3", 0.1},
                 {"--algorithm qg-dsgdm --variant wacv24 --compress quantize:4", 1},
                 {"--algorithm qg-dsgdm --variant wacv24", 1}};
    static ct_run run;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        REQUIRE_OK(run_create("cpu", RUN_PLAIN, known[k].options, &run));
        CHECK_NEAR(run.config.gamma, known[k].gamma, 1e-12);
        ct_run_clear(&run);
    }
}

static void what_cannot_be_combined_is_refused(void) {
    static const char *const cases[][2] = {
        {"--algorithm gt", "gt cannot train with --compress"},
        {"--topology matchings", "a graph that stays"},
        {"--fault drop=0.1", "--fault"},
        {"--gossip-rounds 2", "--gossip-rounds"},
    };
    static ct_run run;
    char options[256];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        snprintf(options, sizeof options, "--compress sign %s", cases[k][0]);
        CHECK_FAILS(run_create("cpu", RUN_PLAIN, options, &run), CT_INVAL, cases[k][1]);
    }
}

static void mixing_keeps_the_average_and_agents_meet(void) {
    packed_check_meetings("cpu");
}

/* In whatever order they adapt and combine, and with gossip in the momentum. */
static void every_form_keeps_the_average(void) {
    static const char *const ways[] = {"--algorithm dsgd --variant cta",
                                       "--algorithm dsgdm --variant cta",
                                       "--algorithm dsgdm --local-steps 3",
                                       "--algorithm dfedavgm --local-steps 2",
                                       "--algorithm qg-dsgdm",
                                       "--algorithm qg-dsgdm --variant atc",
                                       "--algorithm qg-dsgdm --variant wacv24"};
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) { /* momentum is rounded as well */
        packed_check_meeting("cpu", ways[k], "quantize:3", 0.2, 3e-5);
        packed_check_meeting("cpu", ways[k], "quantize:2", 0.2, 3e-5);
        packed_check_meeting("cpu", ways[k], "top-k:0.1", 0.2, 3e-5);
    }
}

/* Seed 5's agents beside those of seed 3 train as they would alone: also where rounding, places and
 * directions are drawn, of models and of class sums. */
static void seeds_side_by_side_train_as_they_would_alone(void) {
    static const char *const cases[] = {
        "--algorithm dsgd --variant cta --compress random-k:0.2",
        "--algorithm dsgd --loss ccl --compress quantize:2",
        "--algorithm dsgdm --compress low-rank:2",
        "--algorithm dfedavgm --compress sign --local-steps 2",
        "--algorithm qg-dsgdm --loss ccl --compress quantize:3",
        "--algorithm qg-dsgdm --loss ccl --compress top-k8:0.1",
        "--algorithm dsgdm --compress top-k:0.1 --consensus adagossip",
        "--algorithm qg-dsgdm --variant wacv24 --consensus adagossip"};
    static ct_run both, one;
    static float a[RUN_MAX_COLUMNS], b[RUN_MAX_COLUMNS];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        bool is_same = true;
        REQUIRE_OK(run_create("cpu", RUN_PLAIN " --agents 4 --seeds 3,5", cases[k], &both));
        REQUIRE_OK(run_create("cpu", RUN_PLAIN " --agents 4 --seed 5", cases[k], &one));
        size_t n = one.graph.n_weights;
        run_steps(&both, 0, 4);
        run_steps(&one, 0, 4);
        for (int i = 0; i < 4; i++) {
            CHECK_OK(ct_bank_read(&both.agents.x, 4 + i, 0, n, a));
            CHECK_OK(ct_bank_read(&one.agents.x, i, 0, n, b));
            is_same = is_same && memcmp(a, b, n * sizeof *a) == 0;
        }
        if (!is_same) printf("    with %s\n", cases[k]);
        CHECK(is_same);
        ct_run_clear(&both);
        ct_run_clear(&one);
    }
}

/* 332 parameters, 2 neighbours, class sums of 4 classes and 8 features; gossip in 3 of 6. */
static void every_byte_that_travels_is_counted(void) {
    static ct_run run;
    REQUIRE_OK(
        run_create("cpu", RUN_ORACLE,
                   "--batch-size 8 --algorithm qg-dsgdm --loss ccl --lambda-m 0.1 --lambda-d 0.1 "
                   "--compress quantize:4 --local-steps 2",
                   &run));
    size_t n = run.graph.n_weights;
    REQUIRE(n == 332);
    run_steps(&run, 0, 6);
    CHECK(ct_transport_sent(run.transport, 2, CT_TRAFFIC_PARAMETERS) ==
          3 * 2 * (2 * 4 + 332 / 2 + 2));
    CHECK(ct_transport_sent(run.transport, 2, CT_TRAFFIC_CLASS_SUMS) == 3 * 2 * 4 * (4 + 4 + 8));
    ct_run_clear(&run);
    /* fc1 [8 x 36], fc2 [4 x 8] and 12 biases, to two neighbours in each of three iterations */
    REQUIRE_OK(run_create("cpu", RUN_ORACLE,
                          "--batch-size 8 --algorithm dsgdm --compress low-rank:2", &run));
    run_steps(&run, 0, 3);
    CHECK(ct_transport_sent(run.transport, 2, CT_TRAFFIC_PARAMETERS) ==
          3 * 2 * 4 * (2 * (8 + 36) + 2 * (4 + 8) + 12));
    ct_run_clear(&run);
}

/* dsgd with CCL shares twice in an iteration; models from a file are sent whole at first. */
static void what_is_shared_twice_or_first_is_counted_too(void) {
    static ct_run run;
    REQUIRE_OK(run_create(
        "cpu", RUN_ORACLE,
        "--batch-size 8 --algorithm dsgd --loss ccl --lambda-m 0.1 --lambda-d 0.1 --compress "
        "random-k:0.5 --init init-agents.safetensors",
        &run));
    run_steps(&run, 0, 3);
    CHECK(ct_transport_sent(run.transport, 1, CT_TRAFFIC_PARAMETERS) ==
          2 * 4 * (332 + 3 * 2 * 166));
    ct_run_clear(&run);
}

static void check_memory(const char *kind) {
    static ct_run run;
    char options[256];
    snprintf(options, sizeof options, "--algorithm ccl --loss ccl --compress %s", kind);
    REQUIRE_OK(run_create("cpu", RUN_PLAIN " --agents 6", options, &run));
    run_steps(&run, 0, 2);
    size_t before = ct_alloc_count();
    run_steps(&run, 2, 3);
    CHECK(ct_alloc_count() == before);
    ct_run_clear(&run);
}

static void a_step_takes_no_memory(void) {
    for (int k = 0; k < N_PACKED_KINDS; k++) check_memory(packed_kinds[k]);
    for (int k = 0; k < N_MATRIX_KINDS; k++) check_memory(matrix_kinds[k]);
}

int main(void) {
    if (chdir(CT_SOURCE_DIR "/tests/fixtures") != 0) return 1;
    TEST(payloads_and_copies_have_the_bits_of_ref);
    TEST(factors_and_copies_have_the_bits_of_ref);
    TEST(rates_of_their_own_have_the_bits_of_ref);
    TEST(the_fixtures_cover_every_compressor_and_form);
    TEST(five_steps_of_every_case_agree_with_the_oracle);
    TEST(a_packed_row_has_the_size_it_says);
    TEST(factors_have_the_size_of_their_tensors);
    TEST(what_is_left_out_is_smaller_than_what_there_was);
    TEST(a_higher_rank_leaves_less);
    TEST(a_matrix_of_low_rank_arrives_whole);
    TEST(class_sums_are_rounded_without_bias);
    TEST(a_hostile_payload_does_no_harm);
    TEST(a_wrong_name_or_number_is_refused);
    TEST(the_averaging_rate_follows_bits_momentum_and_rounds);
    TEST(what_cannot_be_combined_is_refused);
    TEST(mixing_keeps_the_average_and_agents_meet);
    TEST(every_form_keeps_the_average);
    TEST(seeds_side_by_side_train_as_they_would_alone);
    TEST(every_byte_that_travels_is_counted);
    TEST(what_is_shared_twice_or_first_is_counted_too);
    TEST(a_step_takes_no_memory);
    return test_report();
}
