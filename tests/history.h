/* Random histories of a run: kills, freezes, stops and full disks at random moments, over one
 * process or some ranks, each followed by the same command line on another number of ranks and
 * threads. Whatever has happened, the run ends with the bits of one that nobody disturbed, nothing
 * half-written is left, and no attempt that left it unfinished ended with 0. Moments are random,
 * the verdict does not depend on them. CT_HISTORY_SEED=N lives through one history again. */
#ifndef CT_TESTS_HISTORY_H
#define CT_TESTS_HISTORY_H

#include "ranks.h"

#include <fcntl.h>
#include <sys/prctl.h>

#include "util/rng.h"

#define HISTORY                                                                                    \
    "train --quiet --device cpu --dataset shapes --model mlp:4 --agents 6 --batch-size 16 "        \
    "--train-samples 600 --test-samples 50 --epochs 12 --lr 0.02 --save-agents "

/* Checkpoints often, now and then, and never; one world and several. */
static const char *const kinds[] = {
    "--checkpoint-every 1",
    "--checkpoint-every 0.01s --algorithm relaysgd --loss ccl --tensorboard",
    "--checkpoint-every 4 --algorithm gt --seeds 3,4",
    "--checkpoint-every 0 --ledger",
    "--checkpoint-every 2 --loss ccl --lambdas 0.1:0.1,0:0.1",
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static double undisturbed_ms[N_KINDS];
static int n_attempts, n_cut_short; /* of all histories */

static inline double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* ---- processes ---- */

/* The nth child of a process; 0: it has fewer. */
static inline pid_t child_of(pid_t pid, int n) {
    char path[64];
    int child = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = fopen(path, "r");
    for (int k = 0; f != NULL && k <= n; k++)
        if (fscanf(f, "%d", &child) != 1) child = 0;
    if (f != NULL) fclose(f);
    return (pid_t)child;
}

/* Ends all processes below this one: who loses its parent becomes our child. */
static inline void end_all(void) {
    for (pid_t pid; (pid = child_of(getpid(), 0)) > 0; waitpid(pid, NULL, 0)) kill(pid, SIGKILL);
}

/* One attempt: the words in a shell, under mpirun if there are several ranks. */
static inline pid_t launch(const char *words, int n_ranks, int n_threads, int file_blocks) {
    char limit[40] = "", job[64] = "", command[1024];
    if (file_blocks > 0) snprintf(limit, sizeof limit, "ulimit -f %d; ", file_blocks);
    /* without shared memory: that would be files as well */
    if (n_ranks > 1) snprintf(job, sizeof job, "mpirun --mca btl self,tcp -n %d ", n_ranks);
    snprintf(command, sizeof command, "exec %ssh -c '%sexec " CT_PROGRAM " %s --threads %d'", job,
             limit, words, n_threads);
    fflush(stdout);
    pid_t pid = fork();
    if (pid != 0) return pid;
    int out = open("said", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (out < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0) _exit(99);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(98);
}

static inline int wait_for(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    end_all();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- what happens ---- */

typedef enum event { KILL, KILL_EARLY, FREEZE, STOP, FULL_DISK, N_EVENTS } event;

/* Does it to the process, to one of its ranks, or to what started them. */
static inline void disturb(ct_rng *rng, event what, pid_t pid, int n_ranks, double span_ms) {
    static const int stops[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGXCPU};
    int number = what == STOP ? stops[ct_rng_below(rng, 5)] : SIGKILL;
    int which = (int)ct_rng_below(rng, (uint32_t)n_ranks + 1);
    sleep_ms((what == KILL_EARLY ? 50 : span_ms) * ct_rng_uniform(rng));
    pid_t target = n_ranks > 1 && which < n_ranks ? child_of(pid, which) : pid;
    if (target == 0) target = pid;
    if (what == FREEZE) {
        kill(target, SIGSTOP);
        sleep_ms(100 * ct_rng_uniform(rng));
        kill(target, SIGCONT);
        sleep_ms(span_ms * ct_rng_uniform(rng));
    }
    kill(target, number);
}

/* The exit code of an attempt of the command line `words` in which something happens. */
static inline int attempt(ct_rng *rng, const char *words, bool with_ranks, double span_ms) {
    event what = (event)ct_rng_below(rng, N_EVENTS);
    int n_ranks = with_ranks ? 1 + (int)ct_rng_below(rng, 3) : 1;
    int n_threads = 1 + (int)ct_rng_below(rng, 2);
    int blocks = what == FULL_DISK ? 1 + (int)ct_rng_below(rng, 60) : 0;
    pid_t pid = launch(words, n_ranks, n_threads, blocks);
    if (what != FULL_DISK) disturb(rng, what, pid, n_ranks, span_ms * (n_ranks > 1 ? 4 : 1));
    return wait_for(pid);
}

/* ---- what is left ---- */

/* Names below a directory, checkpoints aside; each must be below the other one, too, and nothing
 * may be half-written. */
static inline bool has_names_of(const char *a, const char *b) {
    bool ok = true;
    DIR *d = opendir(a);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char in_a[600], in_b[600];
        if (e->d_name[0] == '.' || strcmp(e->d_name, "checkpoint") == 0) continue;
        snprintf(in_a, sizeof in_a, "%.300s/%.255s", a, e->d_name);
        snprintf(in_b, sizeof in_b, "%.300s/%.255s", b, e->d_name);
        bool is_there = access(in_b, F_OK) == 0;
        if (!is_there) printf("    %s has no %s\n", b, e->d_name);
        ok = ok && is_there && (!ct_dir_exists(in_a) || has_names_of(in_a, in_b));
    }
    if (d != NULL) closedir(d);
    return ok;
}

static inline bool has_whole_checkpoints(const char *dir) {
    bool ok = true;
    DIR *d = opendir(ct_path_in(dir, "checkpoint").text);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        ct_path folder_of = ct_path_in(ct_path_in(dir, "checkpoint").text, e->d_name);
        ok = ok && ct_dir_has(folder_of.text, "manifest.json");
        DIR *inside = opendir(folder_of.text);
        for (struct dirent *f; inside != NULL && (f = readdir(inside)) != NULL;)
            ok = ok && strstr(f->d_name, ".part-") == NULL;
        if (inside != NULL) closedir(inside);
    }
    if (d != NULL) closedir(d);
    return ok;
}

static inline ct_status compare_world(void *whole, const char *dir) {
    ct_path other = ct_path_in(whole, dir + strlen("run"));
    bool can_be_shown = shell("%s show %s 2>&1", CT_PROGRAM, dir) == 0;
    return can_be_shown && same_results(other.text, dir) ? CT_OK : CT_DIFFERS;
}

/* ---- a history ---- */

static inline bool prepare_kind(int kind, char whole[16]) {
    char words[512];
    snprintf(whole, 16, "whole-%d", kind);
    if (undisturbed_ms[kind] > 0) return true;
    snprintf(words, sizeof words, HISTORY "%s --out %s", kinds[kind], whole);
    undisturbed_ms[kind] = -now_ms();
    int code = wait_for(launch(words, 1, 1, 0));
    undisturbed_ms[kind] += now_ms();
    return code == 0;
}

static inline bool live_through(uint64_t seed, bool with_ranks, int most_attempts) {
    char whole[16], words[512];
    ct_rng rng;
    ct_rng_init(&rng, seed, CT_RNG_TEST, 0, 0, 0);
    int kind = (int)ct_rng_below(&rng, N_KINDS), n = 1 + (int)ct_rng_below(&rng, most_attempts);
    bool ok = prepare_kind(kind, whole), was_silent = false;
    snprintf(words, sizeof words, HISTORY "%s --out run --resume auto", kinds[kind]);
    for (int k = 0; k < n && ok; k++) {
        int code = attempt(&rng, words, with_ranks, undisturbed_ms[kind]);
        n_attempts++;
        n_cut_short += code != 0;
        was_silent = was_silent || (code == 0 && !is_finished("run"));
    }
    int n_ranks = with_ranks ? 1 + (int)ct_rng_below(&rng, 3) : 1;
    bool has_ended = ok && wait_for(launch(words, n_ranks, 1, 0)) == 0 && is_finished("run");
    bool is_same =
        has_ended && CT_CATCH(NULL, ct_record_each_world("run", compare_world, whole)) == CT_OK;
    bool is_clean = has_ended && has_names_of(whole, "run") && has_names_of("run", whole) &&
                    has_whole_checkpoints("run");
    ok = is_same && is_clean && !was_silent;
    if (!ok) {
        printf("    CT_HISTORY_SEED=%llu (%s%s): %d attempts;%s%s%s%s\n", (unsigned long long)seed,
               kinds[kind], with_ranks ? ", over ranks" : "", n,
               has_ended ? "" : " it does not end", is_same ? "" : " other bits",
               is_clean ? "" : " something is missing or left",
               was_silent ? " exit 0 without an end" : "");
        if (!has_ended) (void)!system("cat said; ls -R run");
    }
    remove_tree("run");
    return ok;
}

/* How many histories, from which seed on, with at most how many attempts. */
typedef struct many {
    int n;
    uint64_t first;
    int most_attempts;
} many;
static many alone, over_ranks;

static inline void live_through_all(const many *m, bool with_ranks) {
    const char *one = getenv("CT_HISTORY_SEED");
    uint64_t first = one != NULL ? strtoull(one, NULL, 10) : m->first;
    for (int k = 0; k < (one != NULL ? 1 : m->n); k++)
        CHECK(live_through(first + (uint64_t)k, with_ranks, m->most_attempts));
}

static inline void one_process_loses_nothing(void) {
    live_through_all(&alone, false);
}

static inline void ranks_lose_nothing(void) {
    NEEDS_MPI();
    live_through_all(&over_ranks, true);
}

static inline int test_histories(many in_one_process, many in_ranks) {
    alone = in_one_process;
    over_ranks = in_ranks;
    prepare_ranks();
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || !enter_folder()) return 1;
    TEST(one_process_loses_nothing);
    TEST(ranks_lose_nothing);
    printf("%d attempts, %d of them cut short\n", n_attempts, n_cut_short);
    remove_tree(folder);
    return test_report();
}

#endif
