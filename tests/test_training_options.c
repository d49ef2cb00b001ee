/* Options that any algorithm takes: learning-rate schedules, clipping, label smoothing, what CCL
 * may leave out, and the ways to count accuracy. */
#include "runs.h"

#include <unistd.h>

#include "loss/loss.h"
#include "util/log.h"

/* ---- learning rates ---- */

static ct_lr_schedule schedule(const char *options) {
    ct_config config;
    ct_lr_schedule s = {0};
    ct_config_init(&config);
    CHECK_OK(run_options(&config, "--lr 0.4 --epochs 10"));
    CHECK_OK(run_options(&config, options));
    CHECK_OK(ct_lr_schedule_create(&config, &s));
    return s;
}

static void steps_decay_in_the_first_epoch_past_a_milestone(void) {
    ct_lr_schedule s = schedule("--lr-milestones 0.5,0.75 --lr-decay 0.1");
    CHECK_NEAR(ct_lr_at(&s, 0, 7), 0.4, 0);
    CHECK_NEAR(ct_lr_at(&s, 5 * 7 - 1, 7), 0.4, 0);
    CHECK_NEAR(ct_lr_at(&s, 5 * 7, 7), 0.04, 1e-15);
    CHECK_NEAR(ct_lr_at(&s, 8 * 7 - 1, 7), 0.04, 1e-15); /* epoch 7 is not past 7.5 */
    CHECK_NEAR(ct_lr_at(&s, 8 * 7, 7), 0.004, 1e-15);
    s = schedule("--lr-milestones none");
    CHECK_NEAR(ct_lr_at(&s, 69, 7), 0.4, 0);
    s = schedule("--lr-schedule constant");
    CHECK_NEAR(ct_lr_at(&s, 69, 7), 0.4, 0);
}

static void cosine_and_poly_fall_to_their_end(void) {
    ct_lr_schedule s = schedule("--lr-schedule cosine --lr-end 0.1");
    CHECK_NEAR(ct_lr_at(&s, 0, 7), 0.4, 1e-15);
    CHECK_NEAR(ct_lr_at(&s, 35, 7), 0.25, 1e-12);
    CHECK_NEAR(ct_lr_at(&s, 70, 7), 0.1, 1e-12);
    s = schedule("--lr-schedule poly --lr-power 2");
    CHECK_NEAR(ct_lr_at(&s, 35, 7), 0.1, 1e-12);
    CHECK(ct_lr_at(&s, 69, 7) > 0); /* updates divide by the rate */
    for (long k = 1; k < 70; k++) CHECK(ct_lr_at(&s, k, 7) < ct_lr_at(&s, k - 1, 7));
}

static void a_warm_up_grows_to_the_rate_that_follows(void) {
    ct_lr_schedule s = schedule("--warmup-epochs 2 --lr-schedule cosine");
    CHECK_NEAR(ct_lr_at(&s, 0, 7), 0.4 / 14, 1e-15);
    CHECK_NEAR(ct_lr_at(&s, 6, 7), 0.2, 1e-15);
    CHECK_NEAR(ct_lr_at(&s, 13, 7), 0.4, 1e-15);
    CHECK_NEAR(ct_lr_at(&s, 14, 7), 0.4, 1e-15);
    CHECK_NEAR(ct_lr_at(&s, 14 + 28, 7), 0.2, 1e-12); /* half of what is left */
}

static void schedules_that_make_no_sense_are_refused(void) {
    static const char *const bad[][2] = {{"--lr-schedule zigzag", "zigzag"},
                                         {"--warmup-epochs 11", "warmup"},
                                         {"--lr-end 1", "lr-end"},
                                         {"--lr-milestones 0.5,2", "lr-milestones"}};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        ct_config config;
        ct_lr_schedule s;
        ct_config_init(&config);
        CHECK_OK(run_options(&config, "--lr 0.4 --epochs 10"));
        ct_clear_message();
        ct_status status = run_options(&config, bad[k][0]);
        if (status == CT_OK) status = ct_lr_schedule_create(&config, &s);
        CHECK(status == CT_INVAL && strstr(ct_message(), bad[k][1]) != NULL);
    }
}

/* ---- clipping and smoothing ---- */

#define BASE RUN_ORACLE " --init init-agents.safetensors --batch-size 9 --algorithm dsgd"

static double norm_of(const float *row, size_t n) {
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += (double)row[k] * (double)row[k];
    return sqrt(sum);
}

static void long_gradients_are_clipped_and_short_ones_left_alone(void) {
    static ct_run run;
    static float plain[5][RUN_MAX_COLUMNS], clipped[RUN_MAX_COLUMNS];
    double norms[5], shortest = INFINITY, longest = 0;
    char options[64];
    REQUIRE_OK(run_create("cpu", BASE, "--loss ce", &run));
    size_t n = run.graph.n_weights;
    run_steps(&run, 0, 1);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(ct_bank_read(&run.agents.g, i, 0, n, plain[i]));
        norms[i] = norm_of(plain[i], n);
        shortest = fmin(shortest, norms[i]);
        longest = fmax(longest, norms[i]);
    }
    ct_run_clear(&run);
    double limit = (shortest + longest) / 2;
    CHECK(longest > 1.05 * shortest);
    snprintf(options, sizeof options, "--loss ce --clip-norm %.9g", limit);
    REQUIRE_OK(run_create("cpu", BASE, options, &run));
    run_steps(&run, 0, 1);
    for (int i = 0; i < 5; i++) {
        double factor = norms[i] > limit ? limit / norms[i] : 1;
        CHECK_OK(ct_bank_read(&run.agents.g, i, 0, n, clipped));
        CHECK_NEAR(norm_of(clipped, n), factor * norms[i], 1e-6);
        for (size_t k = 0; k < n; k++) CHECK_NEAR(clipped[k], factor * (double)plain[i][k], 1e-6);
    }
    ct_run_clear(&run);
}

/* Where all agents start with the same model and each is everyone's neighbour, cross-gradients are
 * the others' gradients, so that the first step of NGC is that of the mean gradient. */
static void cross_gradients_are_smoothed_as_well(void) {
#define FULL RUN_PLAIN " --agents 3 --topology full --lr 0.5 --label-smoothing 0.4 --algorithm "
    static ct_run ngc, mean;
    REQUIRE_OK(run_create("cpu", FULL "ngc", "--seed 3", &ngc));
    REQUIRE_OK(run_create("cpu", FULL "allreduce", "--seed 3", &mean));
    run_steps(&ngc, 0, 1);
    run_steps(&mean, 0, 1);
    for (size_t k = 0; k < ngc.graph.n_weights; k++)
        CHECK_NEAR(column_mean(&ngc.agents.x, k), column_mean(&mean.agents.x, k), 1e-6);
    ct_run_clear(&ngc);
    ct_run_clear(&mean);
}

/* (1 - s) CE(label) + s mean over the classes of CE(class) */
static void smoothed_labels_mix_the_losses_of_all_classes(void) {
    enum { N = 3, C = 4 };
    const float logits[N * C] = {1, -2, 0.5f, 3, 0, 0, 0, 1, -1, 4, 2, 2};
    const int32_t labels[N] = {3, 1, 0};
    float plain[N * C], smooth[N * C];
    int n_correct = -1;
    double s = 0.3,
           expected = (1 - s) * ct_cross_entropy(logits, labels, N, C, plain, &n_correct, NULL);
    for (int32_t c = 0; c < C; c++) {
        const int32_t all[N] = {c, c, c};
        expected += s / C * ct_cross_entropy(logits, all, N, C, NULL, &n_correct, NULL);
    }
    double got = ct_smooth_cross_entropy(s, logits, labels, N, C, smooth, &n_correct);
    CHECK_NEAR(got, expected, 1e-12);
    CHECK(n_correct == 1);
    for (int k = 0; k < N * C; k++) { /* central differences */
        float moved[N * C];
        memcpy(moved, logits, sizeof moved);
        moved[k] = logits[k] + 1e-2f;
        double up = ct_smooth_cross_entropy(s, moved, labels, N, C, NULL, &n_correct);
        moved[k] = logits[k] - 1e-2f;
        double down = ct_smooth_cross_entropy(s, moved, labels, N, C, NULL, &n_correct);
        CHECK_NEAR(smooth[k], (up - down) / 2e-2, 1e-5);
    }
    ct_smooth_cross_entropy(0, logits, labels, N, C, smooth, &n_correct);
    CHECK(memcmp(smooth, plain, sizeof plain) == 0);
}

/* ---- what CCL may leave out ---- */

#define CCL_BASE BASE " --loss ccl --lambda-m 2 --lambda-d 1"

static double sums_sent(const ct_run *run) {
    double sum = 0;
    for (int i = 0; i < run->agents.n; i++)
        sum += (double)ct_transport_sent(run->transport, i, CT_TRAFFIC_CLASS_SUMS);
    return sum / (4.0 * run->graph.n_classes * (double)(ct_graph_n_features(&run->graph) + 1));
}

static float mv_of(const ct_run *run, int i) {
    float value = NAN;
    CHECK_OK(ct_bank_read(&run->losses, i, run->agents.loss_column + CT_LOSS_MV, 1, &value));
    return value;
}

static void every_second_iteration_contrasts_and_the_others_send_nothing(void) {
    static ct_run run;
    REQUIRE_OK(run_create("cpu", CCL_BASE, "--ccl-every 2", &run));
    for (long t = 0; t < 4; t++) {
        double before = sums_sent(&run), features = run.agents.samples.features;
        uint64_t models = ct_transport_sent(run.transport, 0, CT_TRAFFIC_PARAMETERS);
        run_steps(&run, t, 1);
        models = ct_transport_sent(run.transport, 0, CT_TRAFFIC_PARAMETERS) - models;
        CHECK_NEAR(sums_sent(&run) - before, t % 2 == 0 ? 10 : 0, 0); /* a ring of 5 */
        CHECK_NEAR(run.agents.samples.features - features, t % 2 == 0 ? 90 : 0, 0);
        CHECK(models == 4 * run.graph.n_weights * (t % 2 == 0 ? 4 : 2));
        for (int i = 0; i < 5; i++) CHECK((mv_of(&run, i) > 0) == (t % 2 == 0));
    }
    ct_run_clear(&run);
}

static void neighbours_take_turns(void) {
    static ct_run run;
    bool seen[5][5] = {{false}};
    REQUIRE_OK(run_create("cpu", CCL_BASE, "--ccl-neighbours 1 --topology full", &run));
    for (long t = 0; t < 4; t++) {
        double before = sums_sent(&run);
        run_steps(&run, t, 1);
        const ct_topology *links = &run.agents.ccl.contrast;
        CHECK_NEAR(sums_sent(&run) - before, 5, 0);
        for (int i = 0; i < 5; i++) {
            REQUIRE(ct_topology_degree(links, i) == 1);
            CHECK(!seen[i][links->neighbour[i]]);
            seen[i][links->neighbour[i]] = true;
        }
    }
    ct_run_clear(&run);
}

/* Bits of agent 0 after three steps. */
static void take_row(const char *options, float *row) {
    static ct_run run;
    REQUIRE_OK(run_create("cpu", CCL_BASE, options, &run));
    run_steps(&run, 0, 3);
    CHECK_OK(ct_bank_read(&run.agents.x, 0, 0, run.graph.n_weights, row));
    ct_run_clear(&run);
}

static void leaving_nothing_out_changes_no_bit(void) {
    static float all[RUN_MAX_COLUMNS], other[RUN_MAX_COLUMNS];
    take_row("--seed 1", all);
    take_row("--ccl-every 1 --ccl-neighbours 2 --ccl-batch-fraction 1", other);
    CHECK(memcmp(all, other, sizeof all) == 0);
    take_row("--ccl-neighbours 1", other);
    CHECK(memcmp(all, other, sizeof all) != 0);
    take_row("--ccl-batch-fraction 0.5", other);
    CHECK(memcmp(all, other, sizeof all) != 0);
}

static void cross_features_of_half_a_batch_cost_half(void) {
    static ct_run run;
    REQUIRE_OK(run_create("cpu", CCL_BASE, "--ccl-batch-fraction 0.5 --batch-size 8", &run));
    run_steps(&run, 0, 1);
    CHECK_NEAR(run.agents.samples.own, 40, 0);
    CHECK_NEAR(run.agents.samples.features, 10 * 4, 0);
    ct_cost cost = ct_run_cost(&run);
    double whole = ct_graph_macs(&run.graph, run.graph.logits);
    double part = ct_graph_macs(&run.graph, run.graph.features);
    CHECK_NEAR(cost.own_macs, 8 * 3 * whole, 1e-6 * whole);
    CHECK_NEAR(cost.cross_macs, 2 * 4 * part, 1e-6 * whole);
    ct_run_clear(&run);
}

/* lambda_m L_mv is the asked part of L_ce, by the running means; never above 1. */
static void adaptive_lambdas_keep_the_terms_in_proportion(void) {
    static ct_run run;
    float lambdas[2];
    REQUIRE_OK(run_create("cpu", BASE, "--ccl-adaptive 0.01", &run));
    CHECK(run.agents.loss.ccl);
    float mean[5][3];
    run_steps(&run, 0, 5);
    for (int i = 0; i < 5; i++) CHECK_OK(ct_bank_read(run.agents.ccl.means, i, 0, 3, mean[i]));
    run_steps(&run, 5, 1); /* with the lambdas of the means so far */
    for (int i = 0; i < 5; i++) {
        CHECK(mean[i][0] > 0 && mean[i][1] > 0 && mean[i][2] > 0);
        CHECK_OK(ct_bank_read(&run.agents.ccl.lambdas, i, 0, 2, lambdas));
        for (int k = 0; k < 2; k++) {
            CHECK(lambdas[k] > 0 && lambdas[k] <= 1);
            if (lambdas[k] < 1) CHECK_NEAR(lambdas[k] * mean[i][1 + k], 0.01f * mean[i][0], 1e-6);
        }
    }
    ct_config again = run.config; /* as a saved config.txt has it, everything named */
    ct_run_clear(&run);
    for (int id = 0; id < CT_N_OPTIONS; id++) again.given[id] = true;
    CHECK_OK(ct_config_choose(&again));
    CHECK_FAILS(run_create("cpu", BASE, "--ccl-adaptive 0.01 --lambda-m 0.1", &run), CT_INVAL,
                "chooses the lambdas");
    CHECK_FAILS(run_create("cpu", BASE, "--ccl-adaptive 0.01 --loss ce", &run), CT_INVAL,
                "--loss ccl");
}

/* ---- after training ---- */

static double distance_of(ct_run *run) {
    ct_evaluation e;
    CHECK_OK(ct_run_score_all(run, true, &e));
    return e.consensus_distance;
}

static void gossip_rounds_shrink_the_distance_and_keep_the_mean(void) {
    static ct_run run;
    ct_finish finish;
    REQUIRE_OK(run_create("cpu", BASE, "--gossip-rounds 3", &run));
    double before = distance_of(&run), mean = column_mean(&run.agents.x, 7);
    CHECK_OK(ct_run_finish(&run, 0, &finish));
    double after = distance_of(&run);
    CHECK(after > 0 && after < 0.2 * before);
    CHECK_NEAR(column_mean(&run.agents.x, 7), mean, 1e-6);
    CHECK(finish.gossip_accuracy_min <= finish.gossip_accuracy_mean &&
          finish.gossip_accuracy_mean <= finish.gossip_accuracy_max);
    CHECK(ct_transport_sent(run.transport, 0, CT_TRAFFIC_PARAMETERS) ==
          3 * 2 * 4 * run.graph.n_weights);
    ct_run_clear(&run);
}

static void a_final_merge_leaves_one_model(void) {
    static ct_run run;
    ct_finish finish;
    ct_config config;
    ct_config_init(&config);
    CHECK_OK(run_options(&config, "--dataset idx --data-dir data --augment off " BASE));
    CHECK_OK(ct_config_put(&config, "final-merge", "on"));
    REQUIRE_OK(ct_run_build(&config, &run));
    double mean = column_mean(&run.agents.x, 7);
    CHECK_OK(ct_run_finish(&run, 0, &finish));
    CHECK(isnan(finish.gossip_accuracy_mean));
    CHECK_NEAR(distance_of(&run), 0, 1e-12);
    CHECK_NEAR(column_mean(&run.agents.x, 7), mean, 1e-6);
    ct_run_clear(&run);
}

/* One peer in every fourth iteration, and everyone's mean at the end. */
static void sparse_gossip_may_end_with_a_full_merge(void) {
    enum { N = 6 };
    static ct_run run;
    ct_finish finish;
    REQUIRE_OK(run_create("cpu", RUN_PLAIN " --agents 6 --epochs 1 --topology epidemic:1",
                          "--algorithm qg-dsgdm --local-steps 4 --final-merge on", &run));
    run_steps(&run, 0, 12);
    uint64_t row = 4 * run.graph.n_weights;
    CHECK(distance_of(&run) > 1e-9);
    double mean = column_mean(&run.agents.x, 7);
    for (int i = 0; i < N; i++)
        CHECK(ct_transport_sent(run.transport, i, CT_TRAFFIC_PARAMETERS) == 3 * row);
    CHECK_OK(ct_run_finish(&run, 12, &finish));
    CHECK_NEAR(distance_of(&run), 0, 1e-12);
    CHECK_NEAR(column_mean(&run.agents.x, 7), mean, 1e-6);
    for (int i = 0; i < N; i++) /* an all-reduce on top */
        CHECK(ct_transport_sent(run.transport, i, CT_TRAFFIC_PARAMETERS) ==
              3 * row + 2 * (N - 1) * row / N);
    ct_run_clear(&run);
}

/* ---- gossip less often ---- */

#define SMALL RUN_ORACLE " --batch-size 8"

static void only_rounds_send_and_contrast(void) {
    static ct_run run;
    REQUIRE_OK(run_create("cpu", SMALL " --topology ring --loss ccl --lambda-m 1 --lambda-d 1",
                          "--algorithm dsgdm --local-steps 3", &run));
    uint64_t row = 4 * run.graph.n_weights;
    for (long t = 0; t < 6; t++) {
        double features = run.agents.samples.features;
        run_steps(&run, t, 1);
        CHECK((run.agents.samples.features > features) == (t % 3 == 2));
        /* adapt then combine: with CCL a round sends models twice */
        CHECK(ct_transport_sent(run.transport, 0, CT_TRAFFIC_PARAMETERS) ==
              (uint64_t)(t + 1) / 3 * 2 * 2 * row);
    }
    ct_run_clear(&run);
}

static void methods_that_need_every_round_refuse_local_steps(void) {
    static const char *const bad[] = {"--algorithm d2",       "--algorithm gut",
                                      "--algorithm relaysgd", "--algorithm allreduce",
                                      "--algorithm local",    "--algorithm dsgd --fault drop=0.1"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        static ct_run run;
        char options[128];
        ct_error error;
        snprintf(options, sizeof options, "--local-steps 2 %s", bad[k]);
        CHECK(CT_CATCH(&error, run_create("cpu", SMALL, options, &run)) == CT_INVAL);
        CHECK(strcmp(error.about, "local-steps") == 0);
        CHECK_OK(run_create("cpu", SMALL, bad[k], &run));
        ct_run_clear(&run);
    }
}

static void gossip_rounds_after_local_steps_gossip_every_time(void) {
    static ct_run run;
    ct_finish finish;
    REQUIRE_OK(run_create("cpu", BASE, "--gossip-rounds 3 --local-steps 4", &run));
    double before = distance_of(&run);
    CHECK_OK(ct_run_finish(&run, 1, &finish));
    CHECK(distance_of(&run) < 0.2 * before);
    ct_run_clear(&run);
}

/* ---- averages over time ---- */

#define N_AVERAGED 10

/* Against the definition, from all models: weights[k] of the one after iteration k. */
static void check_average(const char *device, const char *option, const double *weights) {
    static ct_run run;
    static double sums[5][RUN_MAX_COLUMNS];
    static float row[RUN_MAX_COLUMNS];
    memset(sums, 0, sizeof sums);
    REQUIRE_OK(run_create(device,
                          RUN_ORACLE " --loss ce --batch-size 14 --lr 0.2 --epochs 5 "
                                     "--init init-agents.safetensors",
                          option, &run));
    size_t n = run.graph.n_weights;
    for (long t = 0; t < N_AVERAGED; t++) {
        run_steps(&run, t, 1);
        for (int i = 0; i < 5; i++) {
            CHECK_OK(ct_bank_read(&run.agents.x, i, 0, n, row));
            for (size_t k = 0; k < n; k++) sums[i][k] += weights[t] * (double)row[k];
        }
    }
    ct_evaluation e;
    CHECK_OK(ct_run_score_all(&run, true, &e));
    CHECK(e.is_averaged && e.averaged_accuracy >= 0 && e.averaged_loss > 0);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(ct_bank_read(&run.average.x, i, 0, n, row));
        for (size_t k = 0; k < n; k++) CHECK_NEAR((double)row[k], sums[i][k], 2e-6);
    }
    CHECK_OK(ct_bank_read(&run.average.consensus, 0, 0, n, row));
    for (size_t k = 0; k < n; k += 7)
        CHECK_NEAR((double)row[k], column_mean(&run.average.x, k), 1e-6);
    ct_run_clear(&run);
}

static void averages_are_those_of_all_models_so_far(void) {
    double ema[N_AVERAGED], tail[N_AVERAGED], sum = 0;
    for (int t = 0; t < N_AVERAGED; t++) sum += ema[t] = pow(0.7, N_AVERAGED - 1 - t);
    for (int t = 0; t < N_AVERAGED; t++) ema[t] /= sum;
    for (int t = 0; t < N_AVERAGED; t++) tail[t] = t >= 6 ? 0.25 : 0; /* 0.35 of 10, rounded up */
    check_average("ref", "--average ema:0.7", ema);
    check_average("cpu", "--average ema:0.7 --algorithm qg-dsgdm", ema);
    check_average("cpu", "--average tail:0.35", tail);
}

static void averages_change_no_bit_of_the_training(void) {
    static ct_run plain, averaged;
    static float a[RUN_MAX_COLUMNS], b[RUN_MAX_COLUMNS];
    REQUIRE_OK(run_create("cpu", BASE, "", &plain));
    REQUIRE_OK(run_create("cpu", BASE, "--average ema:0.9", &averaged));
    run_steps(&plain, 0, 4);
    run_steps(&averaged, 0, 4);
    CHECK_OK(ct_bank_read(&plain.agents.x, 2, 0, plain.graph.n_weights, a));
    CHECK_OK(ct_bank_read(&averaged.agents.x, 2, 0, plain.graph.n_weights, b));
    CHECK(memcmp(a, b, plain.graph.n_weights * sizeof *a) == 0);
    CHECK(ct_transport_sent(plain.transport, 0, CT_TRAFFIC_PARAMETERS) ==
          ct_transport_sent(averaged.transport, 0, CT_TRAFFIC_PARAMETERS));
    ct_run_clear(&plain);
    ct_run_clear(&averaged);
}

static void averages_that_make_no_sense_are_refused(void) {
    static const char *const bad[] = {"ema",      "ema:1",  "ema:0", "tail:0",
                                      "tail:1.1", "tail:x", "0.9"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        ct_average a;
        CHECK(ct_average_parse(bad[k], &a) == CT_INVAL);
    }
}

/* The paper's data sets have its values; pictures of one's own have some that train. */
static void data_sets_bring_their_defaults(void) {
    static const struct {
        const char *dataset, *image_size, *model;
        int epochs;
        double lr, lambda_m;
    } expected[] = {{"cifar10", "0", "resnet20", 200, 0.1, 0.01},
                    {"imagenette", "0", "mobilenetv2", 100, 0.01, 0.001},
                    {"imagenet", "0", "resnet18", 90, 0.1, 0.1},
                    {"folder", "0", "resnet20", 100, 0.1, 0.1},
                    {"folder", "224", "resnet18", 100, 0.1, 0.1},
                    {"pack", "0", "resnet20", 100, 0.1, 0.1}};
    for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) {
        ct_config c;
        ct_config_init(&c);
        CHECK_OK(ct_config_put(&c, "dataset", expected[k].dataset));
        CHECK_OK(ct_config_put(&c, "image-size", expected[k].image_size));
        CHECK_OK(ct_config_put(&c, "algorithm", "ccl"));
        CHECK_OK(ct_config_choose(&c));
        CHECK(strcmp(c.model, expected[k].model) == 0 && c.epochs == expected[k].epochs);
        CHECK(c.lr == expected[k].lr && c.lambda_m == expected[k].lambda_m);
    }
}

int main(void) {
    if (chdir(CT_SOURCE_DIR "/tests/fixtures") != 0) return 1;
    TEST(data_sets_bring_their_defaults);
    TEST(steps_decay_in_the_first_epoch_past_a_milestone);
    TEST(cosine_and_poly_fall_to_their_end);
    TEST(a_warm_up_grows_to_the_rate_that_follows);
    TEST(schedules_that_make_no_sense_are_refused);
    TEST(long_gradients_are_clipped_and_short_ones_left_alone);
    TEST(smoothed_labels_mix_the_losses_of_all_classes);
    TEST(cross_gradients_are_smoothed_as_well);
    TEST(every_second_iteration_contrasts_and_the_others_send_nothing);
    TEST(neighbours_take_turns);
    TEST(leaving_nothing_out_changes_no_bit);
    TEST(cross_features_of_half_a_batch_cost_half);
    TEST(adaptive_lambdas_keep_the_terms_in_proportion);
    TEST(gossip_rounds_shrink_the_distance_and_keep_the_mean);
    TEST(a_final_merge_leaves_one_model);
    TEST(sparse_gossip_may_end_with_a_full_merge);
    TEST(only_rounds_send_and_contrast);
    TEST(methods_that_need_every_round_refuse_local_steps);
    TEST(gossip_rounds_after_local_steps_gossip_every_time);
    TEST(averages_are_those_of_all_models_so_far);
    TEST(averages_change_no_bit_of_the_training);
    TEST(averages_that_make_no_sense_are_refused);
    return test_report();
}
