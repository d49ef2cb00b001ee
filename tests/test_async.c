/* Agents that wait for nobody, against an independent computation event by event
 * (tests/oracle/asynchronous.py), and the simulated clock of agents with speeds of their own. */
#include "oracle.h"

#include <unistd.h>

#include "algo/async.h"
#include "util/log.h"
#include "util/memory.h"

static const char *const methods[] = {"adpsgd", "swift"};
enum { N_METHODS = sizeof methods / sizeof *methods };

static void five_steps_of_every_case_agree_with_the_oracle(void) {
    static const char *const wanted[] = {"--algorithm adpsgd", "--algorithm swift",
                                         "--loss ccl",         "--loss ce",
                                         "--speed file:",      "--topology star"};
    read_fixtures("async");
    REQUIRE(n_fixtures > 0);
    check_cover(wanted, sizeof wanted / sizeof *wanted);
    for (int i = 0; i < n_fixtures; i++) {
        check_case("ref", &fixtures[i], 2e-5);
        check_case("cpu", &fixtures[i], 2e-4);
    }
}

#define APART "--init init-agents.safetensors --weight-decay 0 --batch-size 9 --loss ce"

/* Averages of pairs move nothing: gradients alone move the mean. */
static void pairs_keep_the_average(void) {
    static ct_run run;
    static double mean[RUN_MAX_COLUMNS];
    REQUIRE_OK(run_create("ref", RUN_ORACLE " " APART,
                          "--algorithm adpsgd --lr 1e-12 --speed lognormal:1,jitter:0.5", &run));
    size_t n = run.graph.n_weights;
    for (size_t k = 0; k < n; k += 13) mean[k] = column_mean(&run.agents.x, k);
    run_steps(&run, 0, 100);
    for (size_t k = 0; k < n; k += 13) CHECK_NEAR(column_mean(&run.agents.x, k), mean[k], 1e-5);
    for (int i = 0; i < 5; i++) { /* and all meet there */
        float value = 0;
        CHECK_OK(ct_bank_read(&run.agents.x, i, 0, 1, &value));
        CHECK_NEAR(value, mean[0], 1e-3);
    }
    ct_run_clear(&run);
}

static double steps_of(const ct_run *run, int row) {
    return ((const ct_async *)run->agents.state)->clock[run->agents.n_rows + row];
}

static double clock_of(const ct_run *run, int world) {
    return ct_ledger_link_seconds(run->transport)[world];
}

static void a_slow_agent_has_fewer_steps_and_holds_nobody_up(void) {
    static ct_run run;
    for (int k = 0; k < N_METHODS; k++) {
        char options[128];
        snprintf(options, sizeof options, "--algorithm %s --agents 6 --speed one:0.1", methods[k]);
        REQUIRE_OK(run_create("cpu", RUN_PLAIN, options, &run));
        run_steps(&run, 0, 40);
        CHECK_NEAR(steps_of(&run, 0), 4, 0);
        for (int i = 1; i < 6; i++) CHECK_NEAR(steps_of(&run, i), 40, 0);
        CHECK_NEAR(clock_of(&run, 0), 40, 1e-9);
        ct_run_clear(&run);
    }
    REQUIRE_OK(run_create("cpu", RUN_PLAIN, "--algorithm dsgdm --agents 6 --speed one:0.1", &run));
    run_steps(&run, 0, 40);
    CHECK_NEAR(clock_of(&run, 0), 400, 1e-9); /* who waits for the slowest */
    ct_run_clear(&run);
}

/* Without speeds every agent has its event in every iteration, in the order of the agents. */
static void equal_agents_take_turns(void) {
    static ct_run run;
    REQUIRE_OK(run_create("cpu", RUN_PLAIN, "--algorithm swift --agents 6 --seeds 1,2", &run));
    run_steps(&run, 0, 7);
    for (int row = 0; row < 12; row++) CHECK_NEAR(steps_of(&run, row), 7, 0);
    ct_run_clear(&run);
}

/* An average is a row each way; a model goes to all neighbours. */
static void what_is_sent_is_in_the_ledger(void) {
    static ct_run run;
    for (int k = 0; k < N_METHODS; k++) {
        char options[128];
        snprintf(options, sizeof options, "--algorithm %s --agents 6 --link-latency 250",
                 methods[k]);
        REQUIRE_OK(run_create("cpu", RUN_PLAIN, options, &run));
        run_steps(&run, 0, 5);
        double row = 4.0 * (double)run.graph.n_weights;
        CHECK_NEAR(ct_run_mean_sent(&run, 0, CT_TRAFFIC_PARAMETERS), 5 * 2 * row, 0);
        /* a second of computing each, and a message of a quarter before the next; swift has two */
        CHECK_NEAR(clock_of(&run, 0), k == 0 ? 5 + 4 * 0.25 : 5 + 4 * 0.5, 1e-9);
        ct_run_clear(&run);
    }
}

/* Two seeds side by side are as each alone. */
static void seeds_side_by_side_train_as_they_would_alone(void) {
    static ct_run both, one;
    static float a[RUN_MAX_COLUMNS], b[RUN_MAX_COLUMNS];
    for (int k = 0; k < N_METHODS; k++) {
        char options[160], alone[192];
        snprintf(options, sizeof options,
                 "--algorithm %s --agents 6 --speed lognormal:0.7,jitter:0.3", methods[k]);
        snprintf(alone, sizeof alone, "%s --seed 2", options);
        REQUIRE_OK(run_create("cpu", RUN_PLAIN " --seeds 1,2", options, &both));
        REQUIRE_OK(run_create("cpu", RUN_PLAIN, alone, &one));
        run_steps(&both, 0, 9);
        run_steps(&one, 0, 9);
        CHECK_NEAR(clock_of(&both, 1), clock_of(&one, 0), 0);
        for (int i = 0; i < 6; i++) {
            size_t n = one.graph.n_weights;
            CHECK_OK(ct_bank_read(&both.agents.x, 6 + i, 0, n, a));
            CHECK_OK(ct_bank_read(&one.agents.x, i, 0, n, b));
            CHECK(memcmp(a, b, n * sizeof *a) == 0);
        }
        ct_run_clear(&both);
        ct_run_clear(&one);
    }
}

static void a_wrong_speed_is_refused(void) {
    static const char *const wrong[] = {"fast",        "one:0",     "one:-1",      "one:1:2",
                                        "uniform:2:1", "uniform:1", "lognormal:9", "jitter:x",
                                        "one:1e9",     "one:nan"};
    static ct_run run;
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        char options[128];
        snprintf(options, sizeof options, "--agents 6 --speed %s", wrong[k]);
        CHECK_FAILS(run_create("cpu", RUN_PLAIN, options, &run), CT_INVAL, wrong[k]);
    }
    CHECK_FAILS(run_create("cpu", RUN_PLAIN, "--agents 6 --speed file:async/speeds.txt", &run),
                CT_INVAL, "5 speeds for 6 agents");
    CHECK_FAILS(run_create("cpu", RUN_PLAIN, "--agents 6 --speed file:nowhere", &run), CT_IO,
                "nowhere");
}

static void what_cannot_be_combined_is_refused(void) {
    static const char *const others[] = {"--fault drop=0.1", "--local-steps 2", "--compress sign",
                                         "--topology matchings"};
    static ct_run run;
    for (int k = 0; k < N_METHODS; k++)
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            char options[128];
            snprintf(options, sizeof options, "--agents 6 --algorithm %s %s", methods[k],
                     others[i]);
            CHECK_FAILS(run_create("cpu", RUN_PLAIN, options, &run), CT_INVAL, methods[k]);
        }
}

int main(void) {
    if (chdir(CT_SOURCE_DIR "/tests/fixtures") != 0) return 1;
    TEST(five_steps_of_every_case_agree_with_the_oracle);
    TEST(pairs_keep_the_average);
    TEST(a_slow_agent_has_fewer_steps_and_holds_nobody_up);
    TEST(equal_agents_take_turns);
    TEST(what_is_sent_is_in_the_ledger);
    TEST(seeds_side_by_side_train_as_they_would_alone);
    TEST(a_wrong_speed_is_refused);
    TEST(what_cannot_be_combined_is_refused);
    return test_report();
}
