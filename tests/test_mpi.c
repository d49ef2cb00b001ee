/* The same run over ranks, threads and stops: the same bits. Needs mpirun; without it, or in a
 * build without MPI, everything here is skipped. */
#include "ranks.h"

/* Bits are compared in all builds; sanitizers, which take many times as long, see every algorithm on
 * three ranks. */
#if CT_SANITIZED
enum { FEWEST = 3, MOST = 3 };
#define RANKS  "3"
#define MANY   "8"
#define EPOCHS "60"
#else
enum { FEWEST = 2, MOST = 4 };
#define RANKS  "2,3,4"
#define MANY   "32"
#define EPOCHS "400"
#endif

#define RUN                                                                                        \
    " train --quiet --dataset shapes --model mlp:8 --agents 6 --batch-size 16 "                    \
    "--train-samples 600 --test-samples 50 --epochs 2 --lr 0.02 --threads 1 --save-agents "

static void ranks_threads_and_resuming_change_nothing(void) {
    NEEDS_MPI();
    int code = shell("%s verify --ranks " RANKS " --try-threads 1 --algorithms "
                     "qg-dsgdm:ccl,relaysgd:ccl,gt,sgp,cga:ccl,allreduce 2>&1%s",
                     CT_PROGRAM, "");
    if (code != 0 || strstr(said, " 0 different") == NULL) printf("%s\n", said);
    CHECK(code == 0 && strstr(said, " 0 different") != NULL);
}

static void several_seeds_are_spread_as_well(void) {
    NEEDS_MPI();
    CHECK(shell("%s" RUN "--algorithm ccl --seeds 3,4 --out one 2>&1%s", CT_PROGRAM, "") == 0);
    CHECK(shell("mpirun -n 5 %s" RUN "--algorithm ccl --seeds 3,4 --out five 2>&1%s", CT_PROGRAM,
                "") == 0);
    CHECK(same_results("one/seed-3", "five/seed-3") && same_results("one/seed-4", "five/seed-4"));
    remove_tree("one");
    remove_tree("five");
    CHECK(shell("mpirun -n 5 %s" RUN "--algorithm def-kt --seeds 3,4 --out five 2>&1%s", CT_PROGRAM,
                "") == 0);
    CHECK(shell("%s" RUN "--algorithm def-kt --seed 4 --out one 2>&1%s", CT_PROGRAM, "") == 0);
    CHECK(same_results("one", "five/seed-4"));
    remove_tree("one");
    remove_tree("five");
    const char *pairs = "--algorithm adpsgd --speed lognormal:1";
    CHECK(shell("mpirun -n 5 %s" RUN "%s --seeds 3,4 --out five 2>&1", CT_PROGRAM, pairs) == 0);
    CHECK(shell("%s" RUN "%s --seed 4 --out one 2>&1", CT_PROGRAM, pairs) == 0);
    CHECK(same_results("one", "five/seed-4"));
    remove_tree("one");
    remove_tree("five");
}

/* Two steps: the first joins the agents of the first half with each other, and has more messages
 * than the second, which joins those of the other half. So a rank of the second half has most to
 * receive in the step that is the smaller one. */
static void write_lopsided_steps(void) {
    ct_text text = {0};
    ct_text_add(&text, "step\n");
    for (int a = 0; a < 10; a++)
        for (int b = a + 1; b < 10; b++) ct_text_add(&text, "%d %d\n", a, b);
    ct_text_add(&text, "step\n0 10\n");
    for (int a = 10; a < 20; a++)
        for (int b = a + 1; b < 20; b++)
            if (a != 10 || b < 18) ct_text_add(&text, "%d %d\n", a, b);
    CHECK_OK(ct_file_write("lopsided.txt", text.chars, text.n));
    ct_text_free(&text);
}

/* Directed steps, steps that are drawn, and steps with several neighbours; with answers (class
 * sums, gradients) and without. */
static void graphs_that_change_are_spread(void) {
    NEEDS_MPI();
    write_lopsided_steps();
    static const char *const words[] = {"one-peer-exponential --algorithm dsgdm",
                                        "one-peer-exponential --algorithm sgp --loss ccl",
                                        "matchings --algorithm ccl",
                                        "matchings --algorithm gt --gossip-rounds 2",
                                        "base:3 --algorithm ngc",
                                        "schedule:lopsided.txt --algorithm sgp",
                                        "base:3 --algorithm cga --loss ccl",
                                        "ring --algorithm ccl --ccl-neighbours 1"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        CHECK(shell("%s" RUN "--agents 20 --topology %s --out one 2>&1", CT_PROGRAM, words[k]) ==
              0);
        CHECK(shell("mpirun -n 3 %s" RUN "--agents 20 --topology %s --out three 2>&1", CT_PROGRAM,
                    words[k]) == 0);
        if (!same_results("one", "three")) {
            printf("    with %s: %s\n", words[k], said);
            CHECK(false);
        }
        remove_tree("one");
        remove_tree("three");
    }
}

static bool is_same_file(const char *a, const char *b) {
    return shell("cmp %s %s 2>&1", a, b) == 0;
}

/* Stopped in the middle of a round, on other ranks than it goes on with. */
static void spread_and_resume(const char *words) {
    CHECK(shell("%s" RUN "--average ema:0.9 --topology %s --out one 2>&1", CT_PROGRAM, words) == 0);
    for (int n = FEWEST; n <= MOST; n++) {
        char start[512], go_on[512];
        snprintf(start, sizeof start, "mpirun -n %d %s", n, CT_PROGRAM);
        snprintf(go_on, sizeof go_on, "mpirun -n %d %s", n == 4 ? 1 : n + 1, CT_PROGRAM);
        CHECK(shell("%s" RUN
                    "--iterations 7 --checkpoint-every end --average ema:0.9 --topology %s "
                    "--out more 2>&1",
                    start, words) == 0);
        int code = shell("%s train --quiet --resume more --iterations 0 2>&1%s", go_on, "");
        if (code != 0) printf("    %s: %d, %s\n", words, code, said);
        CHECK(code == 0);
        CHECK(same_results("one", "more"));
        CHECK(is_same_file("one/averaged.safetensors", "more/averaged.safetensors"));
        if (!same_results("one", "more")) printf("    with %s, %d ranks: %s\n", words, n, said);
        remove_tree("more");
    }
    remove_tree("one");
}

static void local_steps_and_averages_are_spread_and_resumed(void) {
    NEEDS_MPI();
    spread_and_resume("ring --algorithm dfedavgm --local-steps 4");
    spread_and_resume("epidemic:2 --algorithm ccl --local-steps 2 --average tail:0.5 "
                      "--norm batchnorm");
    spread_and_resume("epidemic-local:2 --algorithm dsgdm --loss ccl --local-steps 1:4");
    spread_and_resume("one-peer-exponential --algorithm gt --local-steps 3 --average tail:0.3");
}

static void packed_models_are_spread_and_resumed(void) {
    NEEDS_MPI();
    spread_and_resume("ring --algorithm ccl --compress quantize:4 --ccl-neighbours 1");
    spread_and_resume("chain --algorithm dsgd --loss ccl --compress top-k:0.1 --local-steps 2");
    spread_and_resume("ring --algorithm dsgdm --compress sign --consensus adagossip");
    spread_and_resume("star --algorithm ccl --variant wacv24 --compress random-k:0.3 "
                      "--gamma 0.1 --consensus adagossip --local-steps 1:4");
    spread_and_resume("ring --algorithm ccl --compress low-rank:2 --local-steps 2");
}

static void other_forms_of_methods_are_spread_and_resumed(void) {
    NEEDS_MPI();
    write_lopsided_steps();
    spread_and_resume("chain --algorithm mt --variant tmlr23 --local-steps 2");
    spread_and_resume("star --algorithm cga --variant icml21 --cga-margin 0.5");
    spread_and_resume("schedule:lopsided.txt --agents 20 --algorithm sgp --variant icml19");
    spread_and_resume("ring --algorithm gt --loss ccl --variant atc");
    spread_and_resume("ring --algorithm gut --loss ccl --variant neurips23 --gut-mu 0.08");
    spread_and_resume("chain --algorithm ngc --loss ccl --variant weighted");
    spread_and_resume("star --algorithm dsgdm --loss ccl --variant cta --compress quantize:3");
    spread_and_resume("ring --algorithm ccl --variant atc --compress top-k8:0.1");
}

static void simulated_methods_are_spread_and_resumed(void) {
    NEEDS_MPI();
    spread_and_resume(
        "ring --algorithm adpsgd --speed lognormal:0.7,jitter:0.3 --link-latency 100");
    spread_and_resume("star --algorithm adpsgd --nesterov off --loss ccl --speed one:0.3");
    spread_and_resume("chain --algorithm swift --loss ccl --speed uniform:0.2:3");
    spread_and_resume("ring --algorithm swift --momentum 0 --gamma 0.7 --speed jitter:1");
}

static void recent_methods_are_spread_and_resumed(void) {
    NEEDS_MPI();
    spread_and_resume("ring --algorithm edm --loss ccl");
    spread_and_resume("ring --algorithm ccl --sam 0.05 --clip-norm 1");
    spread_and_resume("star --algorithm ngc --sam 0.05");
    spread_and_resume("ring --algorithm dfedavgm --momentum 0 --sam 0.05 --local-steps 3");
    spread_and_resume("one-peer-exponential --algorithm motef --loss ccl");
    spread_and_resume("ring --algorithm motef --loss ccl --compress quantize:4");
    spread_and_resume("chain --algorithm motef --compress top-k:0.1 --local-steps 2 --sam 0.05");
}

static void methods_that_distil_are_spread_and_resumed(void) {
    NEEDS_MPI();
    spread_and_resume("full --algorithm def-kt --local-steps 3");
    spread_and_resume("ring --algorithm def-kt --variant own --loss ccl --local-steps 2");
    spread_and_resume("matchings --algorithm def-kt --local-steps 4 --sam 0.05 --kt-temperature 2");
}

static void a_failure_of_one_rank_ends_all_with_its_words(void) {
    NEEDS_MPI();
    CHECK(shell("mpirun -n 3 %s" RUN "--agents 2 --out x 2>&1%s", CT_PROGRAM, "") == 2);
    CHECK(strstr(said, "crosstalk: rank 0: 3 ranks for 2 agents") != NULL);
    /* something in the way of rank 0 alone */
    CHECK(mkdir("taken", 0777) == 0 && ct_file_write("taken/config.txt", "", 0) == CT_OK);
    CHECK(shell("mpirun -n 3 %s" RUN "--out taken 2>&1%s", CT_PROGRAM, "") == 1);
    CHECK(strstr(said, "config.txt is there already") != NULL);
    remove_tree("taken");
}

/* Sends a signal to the process whose number a file will hold, a while after it is there. */
static pid_t send_later(const char *path, int number, double ms) {
    fflush(stdout);
    pid_t helper = fork();
    if (helper != 0) return helper;
    int pid = 0;
    for (int k = 0; k < 400 && pid == 0; k++) {
        FILE *f = fopen(path, "r");
        if (f != NULL && fscanf(f, "%d", &pid) != 1) pid = 0;
        if (f != NULL) fclose(f);
        sleep_ms(50);
    }
    sleep_ms(ms);
    if (pid > 0) kill((pid_t)pid, number);
    for (int k = 0; k < 160 && pid > 0 && kill((pid_t)pid, 0) == 0; k++) sleep_ms(50);
    if (pid > 0) kill((pid_t)pid, SIGKILL);
    _exit(0);
}

/* A rank that is stopped is waited for no longer than --timeout, and named. */
static void a_rank_that_hangs_is_named(void) {
    NEEDS_MPI();
    pid_t helper = send_later("pid", SIGSTOP, 1500);
    int code =
        shell("timeout 60 mpirun -n 2 sh -c '[ $OMPI_COMM_WORLD_RANK = 0 ] || echo $$ >pid; "
              "exec %s" RUN "--epochs 100000 --eval-every 100000 --timeout 2 --out hangs' 2>&1%s",
              CT_PROGRAM, "");
    CHECK(code != 0 && strstr(said, "waited 2 s for rank 1") != NULL);
    if (strstr(said, "waited 2 s for rank 1") == NULL) printf("%s\n", said);
    waitpid(helper, NULL, 0);
    remove("pid");
    remove_tree("hangs");
}

/* The job ends, and goes on in one process where the last checkpoint was, if there was one. */
static void a_rank_that_dies_takes_nothing_along(void) {
    NEEDS_MPI();
    CHECK(shell("%s" RUN "--epochs " EPOCHS " --eval-every 400 --out whole 2>&1%s", CT_PROGRAM,
                "") == 0);
    pid_t helper = send_later("pid", SIGKILL, 700);
#define DIES                                                                                       \
    RUN "--epochs " EPOCHS " --eval-every 400 --checkpoint-every 1 --out dies --resume auto"
    shell("timeout 60 mpirun -n 3 sh -c '[ $OMPI_COMM_WORLD_RANK != 1 ] || echo $$ >pid; "
          "exec %s" DIES "' 2>&1%s",
          CT_PROGRAM, "");
    waitpid(helper, NULL, 0);
    remove("pid");
    CHECK(shell("%s" DIES " 2>&1%s", CT_PROGRAM, "") == 0);
    CHECK(same_results("whole", "dies"));
    remove_tree("whole");
    remove_tree("dies");
}

/* SIGUSR1 is what a batch system may send some minutes before the end. */
static void a_signal_stops_all_ranks_with_a_checkpoint(void) {
    NEEDS_MPI();
    int code = shell("mpirun -n 3 %s" RUN "--epochs 100000 --eval-every 100000 --out stops 2>&1 & "
                     "while [ ! -s stops/metrics.jsonl ]; do sleep 0.1; done; "
                     "kill -USR1 $!; wait $!%s",
                     CT_PROGRAM, "");
    CHECK(code == 128 + SIGUSR1 && strstr(said, "crosstalk: stopped after iteration") != NULL);
    CHECK(ct_checkpoint_exists("stops"));
    remove_tree("stops");
}

static void more_ranks_than_cores_work(void) {
    NEEDS_MPI();
    CHECK(shell("%s" RUN "--agents 32 --batch-size 8 --iterations 3 --out one 2>&1%s", CT_PROGRAM,
                "") == 0);
    CHECK(shell("timeout 120 mpirun -n " MANY " %s" RUN
                "--agents 32 --batch-size 8 --iterations 3 --out many 2>&1%s",
                CT_PROGRAM, "") == 0);
    CHECK(same_results("one", "many"));
    remove_tree("one");
    remove_tree("many");
}

static void two_hundred_agents_live_in_one_process(void) {
    CHECK(shell("%s" RUN "--agents 200 --train-samples 2000 --batch-size 4 --partition iid "
                "--algorithm ccl --iterations 3 --out many 2>&1%s",
                CT_PROGRAM, "") == 0);
    CHECK(ct_file_exists("many/summary.json"));
    remove_tree("many");
}

int main(void) {
    prepare_ranks();
    if (!enter_folder()) return 1;
    TEST(ranks_threads_and_resuming_change_nothing);
    TEST(several_seeds_are_spread_as_well);
    TEST(graphs_that_change_are_spread);
    TEST(local_steps_and_averages_are_spread_and_resumed);
    TEST(packed_models_are_spread_and_resumed);
    TEST(other_forms_of_methods_are_spread_and_resumed);
    TEST(simulated_methods_are_spread_and_resumed);
    TEST(recent_methods_are_spread_and_resumed);
    TEST(methods_that_distil_are_spread_and_resumed);
    TEST(a_failure_of_one_rank_ends_all_with_its_words);
    TEST(a_rank_that_hangs_is_named);
    TEST(a_rank_that_dies_takes_nothing_along);
    TEST(a_signal_stops_all_ranks_with_a_checkpoint);
    TEST(more_ranks_than_cores_work);
    TEST(two_hundred_agents_live_in_one_process);
    remove_tree(folder);
    return test_report();
}
