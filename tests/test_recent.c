/* EDM, sharpness-aware gradients and MoTEF against an independent float64 computation
 * (tests/oracle/recent.py), and what each promises: its invariant, its bytes, where it is refused. */
#include "oracle.h"

#include <unistd.h>

#include "algo/diffusion.h"
#include "util/memory.h"

#define APART "--init init-agents.safetensors --weight-decay 0.01 --lr 0.1 --loss ce --batch-size 9"

static void the_fixtures_cover_every_method_and_form(void) {
    static const char *const wanted[] = {"--algorithm edm ",
                                         "--algorithm motef ",
                                         "--sam",
                                         "qg-dsgdm",
                                         "--variant atc",
                                         "--variant wacv24",
                                         "--algorithm ngc ",
                                         "--variant weighted",
                                         "dfedavgm",
                                         "--loss ccl",
                                         "--local-steps",
                                         "--compress quantize:4",
                                         "--compress sign",
                                         "--compress top-k",
                                         "--compress random-k",
                                         "one-peer-exponential"};
    read_fixtures("recent");
    check_cover(wanted, sizeof wanted / sizeof *wanted);
}

static void five_steps_of_every_case_agree_with_the_oracle(void) {
    REQUIRE(n_fixtures > 0);
    for (int i = 0; i < n_fixtures; i++) check_case("ref", &fixtures[i], 5e-5);
    for (int i = 0; i < n_fixtures; i++) check_case("cpu", &fixtures[i], 2e-4);
}

/* Perturbed models, norms by the host and packed trackers are there too. */
static void five_steps_of_every_case_agree_with_the_oracle_on_cuda(void) {
    ct_backend *backend = NULL;
    ct_backend_options options = {.n_threads = 1};
    if (ct_backend_create("cuda", &options, &backend) != CT_OK) {
        ct_clear_message();
        SKIP("no GPU works here");
    }
    ct_backend_free(&backend);
    for (int i = 0; i < n_fixtures; i++) check_case("cuda", &fixtures[i], 2e-4);
}

/* ---- what several of them share ---- */

/* Own rows of x after four steps, agents from `first` on. */
static void train(const char *base, const char *options, int first,
                  float rows[4][RUN_MAX_COLUMNS]) {
    static ct_run run;
    REQUIRE_OK(run_create("cpu", base, options, &run));
    size_t n = run.graph.n_weights;
    REQUIRE(n <= RUN_MAX_COLUMNS);
    run_steps(&run, 0, 4);
    for (int i = 0; i < 4; i++) CHECK_OK(ct_bank_read(&run.agents.x, first + i, 0, n, rows[i]));
    ct_run_clear(&run);
}

static const char *const forms[] = {"--algorithm edm",
                                    "--algorithm edm --loss ccl",
                                    "--algorithm qg-dsgdm --loss ccl --sam 0.1",
                                    "--algorithm ngc --sam 0.1",
                                    "--algorithm ngc --loss ccl --sam 0.1 --topology matchings",
                                    "--algorithm cga --sam 0.1 --clip-norm 0.5",
                                    "--algorithm dfedavgm --sam 0.1 --local-steps 2",
                                    "--algorithm motef --loss ccl",
                                    "--algorithm motef --compress quantize:4",
                                    "--algorithm motef --compress top-k:0.1 --loss ccl --sam 0.1"};

static void seeds_side_by_side_train_as_they_would_alone(void) {
    static float together[4][RUN_MAX_COLUMNS], alone[4][RUN_MAX_COLUMNS];
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        train(RUN_PLAIN " --agents 4 --seeds 3,5", forms[k], 4, together);
        train(RUN_PLAIN " --agents 4 --seed 5", forms[k], 0, alone);
        bool is_same = memcmp(together, alone, sizeof alone) == 0;
        if (!is_same) printf("    with %s\n", forms[k]);
        CHECK(is_same);
    }
}

static void a_step_takes_no_memory(void) {
    static ct_run run;
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        REQUIRE_OK(run_create("cpu", RUN_PLAIN " --agents 6", forms[k], &run));
        run_steps(&run, 0, 2);
        uint64_t before = ct_alloc_count();
        run_steps(&run, 2, 4);
        if (ct_alloc_count() != before) printf("    with %s\n", forms[k]);
        CHECK(ct_alloc_count() == before);
        ct_run_clear(&run);
    }
}

/* Rows of models and of class sums that agent 1 of a ring of 4 sends in an iteration. */
static void check_bytes(const char *options, double n_models, double n_sums) {
    static ct_run run;
    REQUIRE_OK(run_create("cpu", RUN_PLAIN " --agents 4 --topology ring", options, &run));
    run_steps(&run, 0, 4);
    double row = 4.0 * (double)run.graph.n_weights;
    double sums = 4.0 * run.graph.n_classes * (double)(ct_graph_n_features(&run.graph) + 1);
    double sent = (double)ct_transport_sent(run.transport, 1, CT_TRAFFIC_PARAMETERS) / 4;
    CHECK_NEAR(sent / row, n_models, 0);
    sent = (double)ct_transport_sent(run.transport, 1, CT_TRAFFIC_CLASS_SUMS) / 4;
    CHECK_NEAR(sent / sums, n_sums, 0);
    ct_run_clear(&run);
}

static void the_ledger_shows_what_each_method_sends(void) {
    check_bytes("--algorithm edm", 2, 0);
    check_bytes("--algorithm edm --loss ccl", 4, 2);
    check_bytes("--algorithm qg-dsgdm --sam 0.1", 2, 0);
    check_bytes("--algorithm qg-dsgdm --sam 0.1 --loss ccl", 2, 2);
    check_bytes("--algorithm ngc --sam 0.1", 4, 0);
    check_bytes("--algorithm motef", 4, 0);
    check_bytes("--algorithm motef --loss ccl", 4, 2);
    check_bytes("--algorithm motef --local-steps 2", 2, 0);
    check_bytes("--algorithm motef --compress random-k:0.25", 4 * 0.25, 0);
    check_bytes("--algorithm motef --compress random-k:0.25 --local-steps 2", 2 * 0.25, 0);
}

static void methods_are_refused_where_they_are_wrong(void) {
    static const char *const cases[][2] = {
        {"--algorithm edm --topology matchings", "edm needs a graph that stays"},
        {"--algorithm edm --local-steps 2", "edm cannot train with --local-steps"},
        {"--algorithm edm --fault drop=0.1", "edm cannot lose messages"},
        {"--algorithm edm --compress sign", "edm cannot train with --compress; these can: dsgd, "},
        {"--algorithm motef --fault drop=0.1", "motef cannot lose messages"},
        {"--algorithm motef --consensus adagossip", "motef cannot train with --consensus"},
        {"--algorithm motef --compress sign --topology matchings", "a graph that stays"},
        {"--algorithm dsgdm --sam -1", "sam"},
    };
    static ct_run run;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        CHECK_FAILS(run_create("cpu", RUN_PLAIN, cases[k][0], &run), CT_INVAL, cases[k][1]);
}

/* ---- exact diffusion with momentum ---- */

static void diffusion_without_momentum_is_d2(void) {
    static float edm[4][RUN_MAX_COLUMNS], d2[4][RUN_MAX_COLUMNS];
    train(RUN_ORACLE " " APART, "--algorithm edm --momentum 0", 0, edm);
    train(RUN_ORACLE " " APART, "--algorithm d2", 0, d2);
    CHECK(memcmp(edm, d2, sizeof edm) == 0);
}

/* The mean over the agents moves by -eta times that of a buffer, after every step; the buffer's mean is
 * that of the momentum. */
static void check_mean_moves(const char *options, const char *buffer) {
    static ct_run run;
    static double before[RUN_MAX_COLUMNS];
    REQUIRE_OK(run_create("ref", RUN_ORACLE " " APART, options, &run));
    const ct_bank *moved = run_buffer(&run, buffer), *m = run_buffer(&run, "momentum");
    REQUIRE(moved != NULL && m != NULL);
    for (long t = 0; t < 6; t++) {
        size_t n = run.graph.n_weights;
        for (size_t k = 0; k < n; k += 13) before[k] = column_mean(&run.agents.x, k);
        run_steps(&run, t, 1);
        for (size_t k = 0; k < n; k += 13) {
            CHECK_NEAR(column_mean(moved, k), column_mean(m, k), 1e-6);
            CHECK_NEAR(column_mean(&run.agents.x, k) - before[k], -0.1 * column_mean(m, k), 1e-6);
        }
    }
    if (test_failed) printf("    with %s\n", options);
    ct_run_clear(&run);
}

static void the_mean_model_moves_by_the_mean_momentum(void) {
    check_mean_moves("--algorithm edm --topology ring", "direction");
    check_mean_moves("--algorithm edm --topology star --gamma 0.7", "direction");
    check_mean_moves("--algorithm motef --topology ring", "tracker");
    check_mean_moves("--algorithm motef --topology star --compress quantize:2", "tracker");
    check_mean_moves("--algorithm motef --topology chain --compress top-k:0.05", "tracker");
    check_mean_moves("--algorithm motef --compress random-k:0.1 --local-steps 3", "tracker");
}

static void diffusion_mixes_with_half_of_w_where_the_spectrum_asks_for_it(void) {
    static ct_run run;
    REQUIRE_OK(run_create("ref", RUN_PLAIN " --agents 4 --topology ring", "--algorithm edm", &run));
    CHECK_NEAR(((const ct_diffusion *)run.agents.state)->gamma, 0.5, 0);
    ct_run_clear(&run);
    REQUIRE_OK(run_create("ref", RUN_PLAIN " --agents 5 --topology ring", "--algorithm edm", &run));
    CHECK_NEAR(((const ct_diffusion *)run.agents.state)->gamma, 1, 0);
    ct_run_clear(&run);
}

/* ---- MoTEF ---- */

/* Without gradients agents that start apart meet, and nothing that travels is lost for good. */
static void packed_agents_meet_at_their_average(void) {
    static ct_run run;
    static double before[RUN_MAX_COLUMNS];
    REQUIRE_OK(run_create("cpu", RUN_PLAIN " --agents 5",
                          "--algorithm motef --lr 1e-12 --weight-decay 0 --compress top-k:0.2 "
                          "--init init-agents.safetensors",
                          &run));
    size_t n = run.graph.n_weights;
    for (size_t k = 0; k < n; k++) before[k] = column_mean(&run.agents.x, k);
    run_steps(&run, 0, 200);
    for (int i = 0; i < 5; i++)
        for (size_t k = 0; k < n; k += 7) {
            float value = 0;
            CHECK_OK(ct_bank_read(&run.agents.x, i, k, 1, &value));
            CHECK_NEAR(value, before[k], 1e-3);
        }
    ct_run_clear(&run);
}

/* ---- sharpness-aware gradients ---- */

static void perturbed_models_are_as_far_away_as_asked_for(void) {
    static ct_run run;
    static float at[RUN_MAX_COLUMNS], x[5][RUN_MAX_COLUMNS];
    REQUIRE_OK(run_create("cpu", RUN_ORACLE " " APART, "--algorithm dsgd --sam 0.25", &run));
    size_t n = run.graph.n_weights;
    for (int i = 0; i < 5; i++) CHECK_OK(ct_bank_read(&run.agents.x, i, 0, n, x[i]));
    run_steps(&run, 0, 1);
    for (int i = 0; i < 5; i++) {
        double squares = 0;
        CHECK_OK(ct_bank_read(&run.agents.sam.at, i, 0, n, at));
        for (size_t k = 0; k < n; k++) squares += pow((double)at[k] - (double)x[i][k], 2);
        CHECK_NEAR(sqrt(squares), 0.25, 1e-5);
    }
    ct_run_clear(&run);
}

/* What is logged, and batchnorm's statistics, are those of the model itself. */
static void the_second_pass_leaves_losses_and_statistics_alone(void) {
    enum { N = 64 };
    static ct_run run;
    float losses[2][CT_LOSS_FIELDS], running[2][N], gradient[2][N];
    for (int is_sharp = 0; is_sharp < 2; is_sharp++) {
        REQUIRE_OK(run_create("cpu",
                              "--partition iid --agents 2 --batch-size 8 --model resnet20 "
                              "--norm batchnorm --algorithm qg-dsgdm --loss ccl --lambda-m 0.1",
                              is_sharp ? "--sam 0.5" : "--sam 0", &run));
        REQUIRE(run.agents.running.n >= N);
        run_steps(&run, 0, 1);
        CHECK_OK(
            ct_bank_read(&run.losses, 1, run.agents.loss_column, CT_LOSS_FIELDS, losses[is_sharp]));
        CHECK_OK(ct_bank_read(&run.agents.running, 1, 0, N, running[is_sharp]));
        CHECK_OK(ct_bank_read(&run.agents.g, 1, 0, N, gradient[is_sharp]));
        ct_run_clear(&run);
    }
    CHECK(memcmp(losses[0], losses[1], sizeof losses[0]) == 0);
    CHECK(memcmp(running[0], running[1], sizeof running[0]) == 0);
    CHECK(memcmp(gradient[0], gradient[1], sizeof gradient[0]) != 0);
}

static double macs_of(const char *options) {
    static ct_run run;
    if (run_create("cpu", RUN_PLAIN " --agents 4", options, &run) != CT_OK) return NAN;
    run_steps(&run, 0, 3);
    ct_cost cost = ct_run_cost(&run);
    ct_run_clear(&run);
    return cost.own_macs + cost.cross_macs;
}

static void the_second_pass_is_counted_as_compute(void) {
    CHECK_NEAR(macs_of("--algorithm dsgd --sam 0.1") / macs_of("--algorithm dsgd"), 2, 1e-12);
    CHECK_NEAR(macs_of("--algorithm ngc --sam 0.1") / macs_of("--algorithm ngc"), 2, 1e-12);
}

int main(void) {
    if (chdir(CT_SOURCE_DIR "/tests/fixtures") != 0) return 1;
    TEST(the_fixtures_cover_every_method_and_form);
    TEST(five_steps_of_every_case_agree_with_the_oracle);
    TEST(five_steps_of_every_case_agree_with_the_oracle_on_cuda);
    TEST(seeds_side_by_side_train_as_they_would_alone);
    TEST(a_step_takes_no_memory);
    TEST(the_ledger_shows_what_each_method_sends);
    TEST(methods_are_refused_where_they_are_wrong);
    TEST(diffusion_without_momentum_is_d2);
    TEST(the_mean_model_moves_by_the_mean_momentum);
    TEST(diffusion_mixes_with_half_of_w_where_the_spectrum_asks_for_it);
    TEST(packed_agents_meet_at_their_average);
    TEST(perturbed_models_are_as_far_away_as_asked_for);
    TEST(the_second_pass_leaves_losses_and_statistics_alone);
    TEST(the_second_pass_is_counted_as_compute);
    return test_report();
}
