/* Signals, and outputs that nobody reads: the run in progress is saved or ends, of many no other
 * begins, what is unfinished never ends with 0, and the same command goes on. */
#include "program.h"

#include <time.h>

/* Sanitizers take ten times as long for the same. */
#if CT_SANITIZED
#define MANY_SAMPLES "400"
#define MANY_EPOCHS  "30"
#else
#define MANY_SAMPLES "4000"
#define MANY_EPOCHS  "300"
#endif

/* An evaluation takes some tenths of a second, an epoch much less. */
#define SLOW_TEST                                                                                  \
    "--quiet --dataset noise --model lenet5 --train-samples 64 --test-samples " MANY_SAMPLES       \
    " --batch-size 8 --agents 4 --partition iid --epochs 1 --eval-every 9 --threads 1 "            \
    "--checkpoint-every end "
#define SLOW_TRAINING                                                                              \
    "--quiet --dataset shapes --model mlp:4 --train-samples 400 --test-samples 100 --batch-size "  \
    "8 --agents 4 --seeds 1,2 --epochs " MANY_EPOCHS " --eval-every 500 --threads 1 "

/* Starts the program, sends it a signal as soon as the file is there, and waits for its end. */
static void run_until(const char *words, const char *path, int number) {
    char **args = split_words(words);
    struct timespec moment = {0, 1000000};
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) start(args);
    for (int k = 0; k < 60000 && !ct_file_exists(path); k++) nanosleep(&moment, NULL);
    CHECK(ct_file_exists(path));
    kill(pid, number);
    said.code = -1;
    if (waitpid(pid, &status, 0) == pid)
        said.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    slurp(".out", said.out);
    slurp(".err", said.err);
}

/* The last checkpoint of a run is written just before its last evaluation: 2 iterations. */
static void a_signal_in_an_evaluation_keeps_the_next_run_from_beginning(void) {
    run_until("sweep " SLOW_TEST "--keep --lr 0.1,0.01 --out a",
              "a/lr_0.1/checkpoint/2/manifest.json", SIGINT);
    CHECK(said.code == 130 &&
          strstr(said.err, "stopped; 1 run is left: the same command resumes") != NULL);
    CHECK(ct_file_exists("a/lr_0.1/summary.json") && !ct_dir_exists("a/lr_0.01"));
    run_until("sweep " SLOW_TEST "--keep --lr 0.1,0.01 --out b",
              "b/lr_0.1/checkpoint/2/manifest.json", SIGTERM);
    CHECK(said.code == 128 + SIGTERM &&
          strstr(said.err, "stopped; 1 run is left: the same command resumes") != NULL);
    CHECK(ct_file_exists("b/lr_0.1/summary.json") && !ct_dir_exists("b/lr_0.01"));
    run_until("compare " SLOW_TEST "--algorithms dsgdm,gt --out c",
              "c/dsgdm/checkpoint/2/manifest.json", SIGINT);
    CHECK(said.code == 130 && strstr(said.err, "stopped; 1 run is left") != NULL);
    CHECK(strstr(said.out, "\ndsgdm ") != NULL && !ct_dir_exists("c/gt"));
}

static double loss_of(const char *path) {
    ct_json *summary = read_json(path, -1);
    double loss = number_of(summary, "consensus_loss");
    ct_json_free(&summary);
    return loss;
}

/* Twice: in the first method, and with that one finished. */
static void a_comparison_resumes_after_a_signal(void) {
#define COMPARE "compare " SLOW_TRAINING "--algorithms dsgdm,gt --out "
    struct stat before, after;
    succeeds(COMPARE "whole");
    run_until(COMPARE "cut", "cut/dsgdm/seed-2/setting.json", SIGTERM);
    CHECK(said.code == 128 + SIGTERM &&
          strstr(said.err, "2 runs are left: the same command resumes") != NULL);
    CHECK(ct_dir_exists("cut/dsgdm/checkpoint") && !ct_dir_exists("cut/gt"));
    run_until(COMPARE "cut", "cut/gt/seed-2/setting.json", SIGUSR1);
    CHECK(said.code == 128 + SIGUSR1 &&
          strstr(said.err, "1 run is left: the same command resumes") != NULL);
    REQUIRE(stat("cut/dsgdm/summary.json", &before) == 0);
    succeeds(COMPARE "cut");
    REQUIRE(stat("cut/dsgdm/summary.json", &after) == 0);
    CHECK(before.st_ino == after.st_ino);
    CHECK(loss_of("cut/dsgdm/summary.json") == loss_of("whole/dsgdm/summary.json"));
    CHECK(loss_of("cut/gt/summary.json") == loss_of("whole/gt/summary.json"));
    CHECK(loss_of("cut/gt/summary.json") > 0);
}

#define ALONE                                                                                      \
    "train --quiet --dataset shapes --model mlp:4 --train-samples 400 --test-samples 100 "         \
    "--batch-size 8 --agents 4 --seeds 1,2 --eval-every 100000 --threads 1 "

static void every_signal_saves_the_run_and_its_number_is_the_exit_code(void) {
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGXCPU};
    for (int k = 0; k < 5; k++) {
        run_until(ALONE "--epochs 100000 --out alone", "alone/seed-2/setting.json", numbers[k]);
        if (said.code != 128 + numbers[k]) blame("should end with its signal's number");
        CHECK(strstr(said.err, "crosstalk: stopped after iteration ") != NULL);
        CHECK(ct_dir_exists("alone/checkpoint") && !ct_file_exists("alone/summary.json"));
        remove_tree("alone");
    }
}

/* As under nohup: the signal changes nothing whenever it comes. */
static void a_hangup_that_is_ignored_stays_ignored(void) {
    signal(SIGHUP, SIG_IGN);
    run_until(ALONE "--epochs 20 --out nohup", "nohup/seed-2/setting.json", SIGHUP);
    signal(SIGHUP, SIG_DFL);
    CHECK(said.code == 0 && ct_file_exists("nohup/summary.json"));
}

/* Trains with a standard output and error that nobody reads, or that are not there at all. */
static int train_unheard(const char *words, bool is_closed) {
    char **args = split_words(words);
    int ends[2], status = 0;
    if (pipe(ends) != 0) return 97;
    pid_t pid = fork();
    if (pid == 0) {
        if (dup2(ends[1], 1) < 0 || dup2(ends[1], 2) < 0) _exit(99);
        for (int fd = is_closed ? 0 : 3; fd < 16; fd++) close(fd);
        execv(CT_PROGRAM, args);
        _exit(98);
    }
    close(ends[0]);
    close(ends[1]);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void a_run_outlives_the_reader_of_its_output(void) {
#define TALK "train --dataset shapes --model mlp:4 --train-samples 400 --agents 4 --epochs 5 --out "
    succeeds(TALK "heard");
    CHECK(train_unheard(TALK "unheard", false) == 0);
    CHECK(train_unheard(TALK "closed", true) == 0);
    CHECK(same_files("heard/consensus.safetensors", "unheard/consensus.safetensors"));
    CHECK(same_files("heard/consensus.safetensors", "closed/consensus.safetensors"));
    CHECK(same_files("heard/partition.csv", "closed/partition.csv"));
    CHECK(train_unheard("list", false) != 0 && train_unheard("list", true) != 0);
}

int main(void) {
    if (!enter_folder()) return 1;
    signal(SIGHUP, SIG_DFL);
    TEST(a_signal_in_an_evaluation_keeps_the_next_run_from_beginning);
    TEST(a_comparison_resumes_after_a_signal);
    TEST(every_signal_saves_the_run_and_its_number_is_the_exit_code);
    TEST(a_hangup_that_is_ignored_stays_ignored);
    TEST(a_run_outlives_the_reader_of_its_output);
    leave_folder();
    remove_tree(folder);
    return test_report();
}
