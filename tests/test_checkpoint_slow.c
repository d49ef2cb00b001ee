/* Killed again and again, also while a checkpoint is being written: nothing is lost. */
#include "resume.h"

#include "util/rng.h"

#define N_KILLS 50

/* A checkpoint after every epoch of 7 iterations: much of the time one is being written. */
#define WORDS                                                                                      \
    SMALL "algorithm=relaysgd loss=ccl epochs=40 eval-every=40 checkpoint-every=1 out=run "

/* Trains in another process, from the newest checkpoint if there is one. */
static pid_t start(bool resumes) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid != 0) return pid;
    _exit((int)train(resumes ? WORDS "resume=on" : WORDS "force=on"));
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
    waitpid(start(can_resume()), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Moments within what the part that is left takes, so that kills meet all of it. */
static void fifty_kills_lose_nothing(void) {
    ct_rng rng;
    ct_rng_init(&rng, 1, CT_RNG_TEST, 0, 0, 0);
    int n_kills = 0, n_rounds = 0, n_lost = 0, n_partial = 0;
    while (n_kills < N_KILLS && n_rounds < 50) {
        n_rounds++;
        remove_tree("run");
        for (bool at_work = true; at_work && n_kills < N_KILLS;) {
            bool had = can_resume();
            at_work = kill_after(start(had), 10 + 120 * ct_rng_uniform(&rng));
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

int main(void) {
    if (!enter_folder()) return 1;
    if (train(SMALL "algorithm=relaysgd loss=ccl epochs=40 eval-every=40 out=whole") != CT_OK) {
        printf("FAIL %s\n", ct_message());
        return 1;
    }
    TEST(fifty_kills_lose_nothing);
    remove_tree(folder);
    return test_report();
}
