/* Networks and agents that fail: seeded, the same however the run is run, and survivable. */
#include "ranks.h"

#include "run/fault.h"

static const uint64_t seeds[] = {7};

static ct_status parse(const char *text, ct_faults *out) {
    static ct_config config;
    ct_config_init(&config);
    CT_TRY(ct_config_put(&config, "algorithm", "dsgdm"));
    CT_TRY(ct_config_put(&config, "agents", "6"));
    CT_TRY(ct_config_put(&config, "fault", text));
    return ct_fault_parse(&config, seeds, out);
}

static void words_say_what_fails(void) {
    ct_faults f;
    CHECK_OK(parse("drop=0.1, straggle=0.2:30:20, kill=3@10-20, kill=1@5", &f));
    CHECK(f.drop == 0.1 && f.straggle == 0.2 && f.n_kills == 2);
    CHECK_NEAR(f.straggle_s, 0.03, 1e-12);
    CHECK_NEAR(f.limit_s, 0.02, 1e-12);
    CHECK(ct_faults_alive(&f, 3, 8) && !ct_faults_alive(&f, 3, 9) && !ct_faults_alive(&f, 3, 18));
    CHECK(ct_faults_alive(&f, 3, 19) && !ct_faults_alive(&f, 1, 1000000));
    static const char *const bad[] = {"drop",       "drop=1",    "drop=-1",   "drop=x",
                                      "straggle=1", "kill=6@5",  "kill=1@1",  "kill=1",
                                      "kill=1@9-9", "explode=1", "kill=-1@5", "straggle=0.1:-3"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        CHECK_FAILS(parse(bad[k], &f), CT_INVAL, "--fault");
}

static void messages_are_lost_as_often_as_asked(void) {
    ct_faults f;
    int n_lost = 0, n_same = 0;
    REQUIRE_OK(parse("drop=0.1", &f));
    for (long k = 1; k <= 10000; k++) {
        bool lost = !ct_faults_delivers(&f, k, 1, 2, 0);
        n_lost += lost;
        n_same += lost == !ct_faults_delivers(&f, k, 2, 1, 0);
    }
    CHECK(n_lost > 900 && n_lost < 1100);  /* 3 deviations of 30 */
    CHECK(n_same > 7900 && n_same < 8500); /* the way back has its own fate: 0.82 */
    CHECK(ct_faults_delivers(&f, 0, 1, 2, 0));
}

static void late_beyond_the_limit_is_lost(void) {
    ct_faults waits, does_not;
    int n_lost = 0;
    REQUIRE_OK(parse("straggle=0.5:100", &waits));
    REQUIRE_OK(parse("straggle=0.5:100:50", &does_not));
    for (long k = 1; k <= 1000; k++) {
        CHECK(ct_faults_delivers(&waits, k, 1, 2, 0));
        n_lost += !ct_faults_delivers(&does_not, k, 1, 2, 0);
        CHECK(ct_faults_delivers(&does_not, k, 1, 2, 0) ==
              ct_faults_delivers(&does_not, k, 1, 0, 3)); /* who is late, is late for all */
    }
    CHECK(n_lost > 430 && n_lost < 570);
}

/* ---- what W becomes ---- */

static void the_living_keep_a_doubly_stochastic_mixing(void) {
    static ct_config config;
    ct_run run;
    REQUIRE_OK(
        configure(SMALL "algorithm=dsgd topology=full fault=kill=2@2,kill=4@3-4 out=run", &config));
    REQUIRE_OK(ct_run_build(&config, &run));
    for (long k = 0; k < 4; k++) {
        CHECK_OK(ct_run_iterate(&run, k));
        const ct_agents *a = &run.agents;
        double columns[6] = {0};
        for (int i = 0; i < 6; i++) {
            double sum = 0;
            for (int e = a->w->begin[i]; e < a->w->begin[i + 1]; e++) {
                int j = e - a->w->begin[i]; /* full: row i has every agent in order */
                bool dead = !ct_faults_alive(a->faults, i, k) || !ct_faults_alive(a->faults, j, k);
                if (dead && i != j) CHECK(a->w->value[e] == 0);
                sum += a->w->value[e];
                columns[j] += a->w->value[e];
            }
            CHECK_NEAR(sum, 1, 1e-12); /* rounding of six terms */
        }
        for (int j = 0; j < 6; j++) CHECK_NEAR(columns[j], 1, 1e-12);
    }
    ct_run_clear(&run);
}

static void the_dead_stay_as_they_were(void) {
    static ct_config config;
    ct_run run;
    float before[8], after[8], alive[8];
    REQUIRE_OK(configure(SMALL "algorithm=ccl fault=kill=2@3-5 out=run", &config));
    REQUIRE_OK(ct_run_build(&config, &run));
    for (long k = 0; k < 5; k++) {
        CHECK_OK(ct_run_iterate(&run, k));
        CHECK_OK(ct_bank_read(&run.agents.x, 2, 0, 8, k == 1 ? before : k < 4 ? after : alive));
        if (k == 3) CHECK(memcmp(before, after, sizeof after) == 0);
    }
    CHECK(memcmp(before, alive, sizeof alive) != 0);
    ct_run_clear(&run);
}

/* (1/n) sum |x_i - mean|^2 of a world without agent `dead`, added up one after the other. */
static double distance_of(const ct_run *run, int world, int dead) {
    size_t n = run->graph.n_weights;
    float *mean = malloc(n * sizeof *mean), *row = malloc(n * sizeof *row);
    double sum = 0;
    CHECK_OK(ct_bank_read(&run->consensus, world, 0, n, mean));
    for (int i = 0; i < 6; i++) {
        if (i == dead) continue;
        CHECK_OK(ct_bank_read(&run->agents.x, 6 * world + i, 0, n, row));
        for (size_t k = 0; k < n; k++) {
            double d = (double)row[k] - (double)mean[k];
            sum += d * d;
        }
    }
    free(mean);
    free(row);
    return sum / (dead < 0 ? 6 : 5);
}

/* Worlds are read some at a time. */
static void distances_are_those_of_the_living_in_every_world(void) {
    static ct_config config;
    ct_run run;
    ct_evaluation e[5];
    REQUIRE_OK(configure(SMALL "algorithm=dsgd fault=kill=2@3 seeds=1,2,3,4,5 out=run", &config));
    REQUIRE_OK(ct_run_build(&config, &run));
    for (long k = 0; k < 3; k++) {
        CHECK_OK(ct_run_iterate(&run, k));
        CHECK_OK(ct_run_score_all(&run, false, e));
        for (int world = 0; world < 5; world++)
            CHECK(e[world].consensus_distance == distance_of(&run, world, k == 2 ? 2 : -1));
    }
    ct_run_clear(&run);
}

/* ---- whole runs ---- */

static void a_network_that_loses_nothing_is_the_plain_one(void) {
    CHECK_OK(train(SMALL "algorithm=ccl out=plain"));
    CHECK_OK(train(SMALL "algorithm=ccl fault=drop=0 out=faulty"));
    CHECK(same_results("plain", "faulty"));
    CHECK_OK(train(SMALL "algorithm=ccl fault=drop=0.3 out=lossy"));
    CHECK(!same_file("plain", "lossy", "consensus.safetensors"));
    remove_tree("plain");
    remove_tree("faulty");
    remove_tree("lossy");
}

static const char *const cases[] = {
    "algorithm=ccl fault=drop=0.2,kill=2@4-9,kill=5@6",
    "algorithm=relaysgd loss=ccl fault=drop=0.2", "algorithm=gt fault=drop=0.1,straggle=0.2:10:5",
    "algorithm=ccl variant=wacv24 fault=straggle=0.3:10:5,kill=0@8"};

static void failures_survive_a_stop(void) {
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const char *words = with(SMALL, cases[k]);
        CHECK_OK(train(with(words, "out=whole")));
        CHECK_OK(train(with(words, "out=parts iterations=7 checkpoint-every=end")));
        CHECK_OK(train("resume=parts quiet=on iterations=0"));
        if (!same_results("whole", "parts")) {
            printf("    with %s\n", cases[k]);
            CHECK(false);
        }
        remove_tree("whole");
        remove_tree("parts");
    }
}

static void failures_are_the_same_on_every_rank(void) {
    NEEDS_MPI();
    static const char *const words[] = {"--algorithm ccl --fault drop=0.2,kill=2@4-9,kill=5@6",
                                        "--algorithm relaysgd --loss ccl --fault drop=0.2",
                                        "--algorithm mt --fault drop=0.1,straggle=0.2:10:5"};
    for (int k = 0; k < 3; k++) {
        for (int n = 1; n <= 4; n += 3) {
            char command[1024];
            snprintf(command, sizeof command,
                     "mpirun -n %d %s train --quiet --dataset shapes --model mlp:4 --agents 6 "
                     "--batch-size 16 --train-samples 600 --test-samples 50 --epochs 2 --lr 0.02 "
                     "--threads 1 --save-agents --out ranks-%d %s 2>/dev/null",
                     n, CT_PROGRAM, n, words[k]);
            CHECK(system(command) == 0);
        }
        CHECK(same_results("ranks-1", "ranks-4"));
        remove_tree("ranks-1");
        remove_tree("ranks-4");
    }
}

static void what_cannot_fail_says_so(void) {
    CHECK_FAILS(train(SMALL "algorithm=allreduce fault=drop=0.1"), CT_INVAL, "allreduce");
    CHECK_FAILS(train(SMALL "algorithm=relaysgd fault=kill=1@5"), CT_INVAL, "relaysgd");
    CHECK_FAILS(train(SMALL "algorithm=dsgd topology=one-peer-exponential agents=8 fault=drop=0.1"),
                CT_INVAL, "graph");
}

int main(void) {
    prepare_ranks();
    if (!enter_folder()) return 1;
    TEST(words_say_what_fails);
    TEST(messages_are_lost_as_often_as_asked);
    TEST(late_beyond_the_limit_is_lost);
    TEST(the_living_keep_a_doubly_stochastic_mixing);
    TEST(the_dead_stay_as_they_were);
    TEST(distances_are_those_of_the_living_in_every_world);
    TEST(a_network_that_loses_nothing_is_the_plain_one);
    TEST(failures_survive_a_stop);
    TEST(failures_are_the_same_on_every_rank);
    TEST(what_cannot_fail_says_so);
    remove_tree(folder);
    return test_report();
}
