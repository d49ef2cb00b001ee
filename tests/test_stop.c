/* Signals to commands of many runs: the run in progress is saved or ends, no other begins, and the
 * same command goes on. */
#include "program.h"

#include <time.h>

/* An evaluation takes some tenths of a second, an epoch much less. */
#define SLOW_TEST                                                                                  \
    "--quiet --dataset noise --model lenet5 --train-samples 64 --test-samples 4000 --batch-size "  \
    "8 --agents 4 --partition iid --epochs 1 --eval-every 9 --threads 1 --checkpoint-every end "
#define SLOW_TRAINING                                                                              \
    "--quiet --dataset shapes --model mlp:4 --train-samples 400 --test-samples 100 --batch-size "  \
    "8 --agents 4 --seeds 1,2 --epochs 500 --eval-every 500 --threads 1 "

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
    CHECK(said.code == 0 &&
          strstr(said.err, "crosstalk: 1 run is left: the same command resumes") != NULL);
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
    CHECK(said.code == 0 && strstr(said.err, "2 runs are left: the same command resumes") != NULL);
    CHECK(ct_dir_exists("cut/dsgdm/checkpoint") && !ct_dir_exists("cut/gt"));
    run_until(COMPARE "cut", "cut/gt/seed-2/setting.json", SIGINT);
    CHECK(said.code == 130 && strstr(said.err, "1 run is left: the same command resumes") != NULL);
    REQUIRE(stat("cut/dsgdm/summary.json", &before) == 0);
    succeeds(COMPARE "cut");
    REQUIRE(stat("cut/dsgdm/summary.json", &after) == 0);
    CHECK(before.st_ino == after.st_ino);
    CHECK(loss_of("cut/dsgdm/summary.json") == loss_of("whole/dsgdm/summary.json"));
    CHECK(loss_of("cut/gt/summary.json") == loss_of("whole/gt/summary.json"));
    CHECK(loss_of("cut/gt/summary.json") > 0);
}

int main(void) {
    if (!enter_folder()) return 1;
    TEST(a_signal_in_an_evaluation_keeps_the_next_run_from_beginning);
    TEST(a_comparison_resumes_after_a_signal);
    leave_folder();
    remove_tree(folder);
    return test_report();
}
