/* Killed again and again, also while a checkpoint is being written: nothing is lost. */
#include "deadly.h"

#include "util/rng.h"

#define N_KILLS    50
#define MAX_ROUNDS 1000

/* A checkpoint after every epoch of 7 iterations: much of the time one is being written. */
#define WORDS                                                                                      \
    SMALL "algorithm=relaysgd loss=ccl epochs=40 eval-every=40 checkpoint-every=1 out=run "

/* Trains in another process, by the same words whatever is there. */
static pid_t start(void) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid != 0) return pid;
    _exit((int)train(WORDS "resume=auto"));
}

static bool can_resume(void) {
    ct_checkpoint *newest = NULL;
    bool can = ct_checkpoint_open("run", &newest) == CT_OK;
    ct_checkpoint_free(&newest);
    ct_clear_message();
    return can;
}

/* Kills the process after a while; true if it was still at work. */
static bool kill_after(pid_t pid, double ms) {
    int status = 0;
    sleep_ms(ms);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status);
}

static int run_to_the_end(void) {
    int status = 0;
    waitpid(start(), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* How long a training takes here that nobody kills. */
static double undisturbed_ms(void) {
    struct timespec from, to;
    remove_tree("run");
    clock_gettime(CLOCK_MONOTONIC, &from);
    CHECK(run_to_the_end() == 0);
    clock_gettime(CLOCK_MONOTONIC, &to);
    return 1e3 * (double)(to.tv_sec - from.tv_sec) + 1e-6 * (double)(to.tv_nsec - from.tv_nsec);
}

/* Moments within what a training takes, so that kills meet all of it; one that ended before its
 * kill does not count. */
static void fifty_kills_lose_nothing(void) {
    ct_rng rng;
    ct_rng_init(&rng, 1, CT_RNG_TEST, 0, 0, 0);
    int n_kills = 0, n_rounds = 0, n_lost = 0, n_partial = 0;
    double most_ms = undisturbed_ms();
    while (n_kills < N_KILLS && n_rounds < MAX_ROUNDS) {
        n_rounds++;
        remove_tree("run");
        for (bool at_work = true; at_work && n_kills < N_KILLS;) {
            bool had = can_resume();
            at_work = kill_after(start(), most_ms * ct_rng_uniform(&rng));
            n_kills += at_work;
            n_lost += had && !can_resume();
            n_partial += can_resume();
        }
        CHECK(run_to_the_end() == 0);
        CHECK(same_results("whole", "run"));
    }
    printf("    %d kills in %d runs, %d times something to resume, %d lost\n", n_kills, n_rounds,
           n_partial, n_lost);
    CHECK(n_kills == N_KILLS && n_lost == 0 && n_partial > N_KILLS / 4);
}

/* Dies at the nth file operation of a training that writes checkpoints, then goes on. False: it had
 * fewer. */
static bool survives_call(int n, bool *was_torn) {
    remove_tree("run");
    if (!dies_at(n, SMALL "checkpoint-every=1 out=run")) return false;
    char torn[64];
    *was_torn = false;
    for (int k = 7; k <= 21; k += 7) { /* begun, but without the manifest that comes last */
        snprintf(torn, sizeof torn, "run/checkpoint/%d", k);
        bool begun = ct_dir_exists(torn);
        snprintf(torn, sizeof torn, "run/checkpoint/%d/manifest.json", k);
        *was_torn = *was_torn || (begun && !ct_file_exists(torn));
    }
    CHECK_OK(train(SMALL "checkpoint-every=1 out=run resume=auto"));
    CHECK(same_results("short", "run"));
    return true;
}

static void a_kill_at_every_step_of_writing_loses_nothing(void) {
    int n_calls = 0, n_torn = 0;
    bool was_torn = false;
    CHECK_OK(train(SMALL "out=short"));
    while (survives_call(n_calls + 1, &was_torn)) {
        n_calls++;
        n_torn += was_torn;
    }
    printf("    %d file operations, %d of them within a checkpoint\n", n_calls, n_torn);
    CHECK(n_calls > 40 && n_torn > 20);
    remove_tree("short");
}

int main(void) {
    if (!enter_folder()) return 1;
    if (train(SMALL "algorithm=relaysgd loss=ccl epochs=40 eval-every=40 out=whole") != CT_OK) {
        printf("FAIL %s\n", ct_message());
        return 1;
    }
    TEST(fifty_kills_lose_nothing);
    TEST(a_kill_at_every_step_of_writing_loses_nothing);
    remove_tree(folder);
    return test_report();
}
