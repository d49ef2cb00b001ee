/* A run directory belongs to one training at a time, and holds what belongs to that run alone:
 * nothing that was refused, nothing of an earlier or a later one. */
#include "program.h"

#include <time.h>

/* 4 iterations an epoch. */
#define LONG TRAIN DATA "--lr 0.05 --out run --epochs 100000 --eval-every 100000 "

static void sleep_ms(long ms) {
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* Starts the program as a shell does: a file beyond the limit (0: none) ends it. */
static pid_t launch(const char *words, rlim_t limit) {
    char **args = split_words(words);
    pid_t pid = fork();
    if (pid != 0) return pid;
    int err = open(".err", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    struct rlimit most = {.rlim_cur = limit, .rlim_max = limit};
    signal(SIGXFSZ, SIG_DFL);
    if (err < 0 || dup2(err, 2) < 0 || (limit > 0 && setrlimit(RLIMIT_FSIZE, &most) != 0))
        _exit(97);
    execv(CT_PROGRAM, args);
    _exit(98);
}

/* Waits up to ten seconds. */
static bool comes(bool (*has_come)(void)) {
    for (int k = 0; k < 2000 && !has_come(); k++) sleep_ms(5);
    return has_come();
}

static int end_of(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- what a refusal leaves ---- */

static const char *const files[] = {"config.txt",   "partition.csv",         "setting.json",
                                    "summary.json", "consensus.safetensors", "metrics.jsonl"};
enum { N_FILES = sizeof files / sizeof *files };

static void keep_files(void) {
    CHECK_OK(ct_dir_create("kept"));
    for (int k = 0; k < N_FILES; k++) {
        char from[64], to[64];
        ct_blob blob = {0};
        snprintf(from, sizeof from, "run/%s", files[k]);
        snprintf(to, sizeof to, "kept/%s", files[k]);
        if (!ct_file_exists(from)) continue;
        CHECK_OK(ct_file_read(from, 1 << 24, &blob));
        CHECK_OK(ct_file_write(to, blob.bytes, blob.n));
        ct_blob_free(&blob);
    }
}

static void check_files(void) {
    for (int k = 0; k < N_FILES; k++) {
        char now[64], then[64];
        snprintf(now, sizeof now, "run/%s", files[k]);
        snprintf(then, sizeof then, "kept/%s", files[k]);
        if (!ct_file_exists(now) && !ct_file_exists(then)) continue;
        if (!same_files(now, then)) printf("    %s is another one now\n", files[k]);
        CHECK(same_files(now, then));
    }
}

static void a_refused_resume_changes_nothing(void) {
    succeeds(TINY "--epochs 4 --iterations 6 --checkpoint-every end");
    keep_files();
    REFUSES(2, "train --quiet --resume run --seed 2 --lr 0.5 --iterations 8", "contradicts");
    REFUSES(2, "train --quiet --resume run --iterations 5 --eval-every 2", "iteration 6");
    check_files();
    REFUSES(2, "train --quiet --resume run --lr 0.5 --iterations 8 --out moved", "contradicts");
    CHECK(!ct_dir_exists("moved"));
    CHECK(truncate("run/metrics.jsonl", 10) == 0);
    REFUSES(1, "train --quiet --resume run --iterations 8 --out moved", "metrics.jsonl", "10");
    CHECK(!ct_dir_exists("moved"));
    remove_tree("run");
    remove_tree("kept");
}

static void an_empty_name_to_resume_is_refused(void) {
    REFUSES(2, TINY "--resume=", "--resume is empty");
    REFUSES(2, TINY "--resume {}", "--resume is empty");
    CHECK(!ct_dir_exists("run"));
}

static void a_limit_on_files_is_like_a_full_disk(void) {
    CHECK(end_of(launch(TINY, 300)) == 1); /* bytes: config.txt has more */
    slurp(".err", said.err);
    CHECK(n_lines(said.err) == 1 && strstr(said.err, "config.txt") != NULL);
    CHECK(n_files("run") == 0);
    remove_tree("run");
}

/* ---- one at a time ---- */

static bool has_checkpoint(void) {
    bool has = false;
    DIR *d = opendir("run/checkpoint");
    for (struct dirent *e = NULL; d != NULL && (e = readdir(d)) != NULL;) {
        char path[320];
        snprintf(path, sizeof path, "run/checkpoint/%s/manifest.json", e->d_name);
        has = has || ct_file_exists(path);
    }
    if (d != NULL) closedir(d);
    return has;
}

static void a_folder_belongs_to_one_training_at_a_time(void) {
    pid_t pid = launch(LONG "--checkpoint-every 0.2s", 0);
    CHECK(comes(has_checkpoint));
    kill(pid, SIGSTOP); /* so that its files stay as they are */
    sleep_ms(50);
    keep_files();
    REFUSES(1, "train --quiet --resume run --seed 1", "run is being trained by another");
    REFUSES(1, LONG "--seed 2 --force --iterations 4", "run is being trained by another process");
    check_files();
    kill(pid, SIGKILL);
    CHECK(end_of(pid) == 128 + SIGKILL);
    REFUSES(2, "train --quiet --resume run --iterations 1", "already"); /* it is free again */
    succeeds(LONG "--force --iterations 4");
    CHECK(n_files("run") == 8); /* and nothing of the lock is left */
    remove_tree("run");
    remove_tree("kept");
}

/* ---- going on ---- */

/* Of a run of one seed, or of the second of several. */
static bool has_no_results(void) {
    static const char *const results[] = {"summary.json", "consensus.safetensors",
                                          "agents.safetensors", "ledger.csv", "evaluation.json"};
    const char *dir = ct_dir_exists("run/seed-2") ? "run/seed-2" : "run";
    for (int k = 0; k < 5; k++)
        if (ct_dir_has(dir, results[k])) return false;
    return !ct_file_exists("run/summary.json");
}

static void a_run_that_goes_on_is_not_finished(void) {
    static const char *const seeds[] = {"", "--seeds 1,2"};
    for (int several = 0; several < 2; several++) {
        char words[1024];
        snprintf(words, sizeof words,
                 LONG "--iterations 6 --checkpoint-every end --save-agents --ledger %s",
                 seeds[several]);
        succeeds(words);
        pid_t pid = launch("train --quiet --resume run --iterations 0", 0);
        CHECK(comes(has_no_results));
        kill(pid, SIGKILL);
        CHECK(end_of(pid) == 128 + SIGKILL && has_no_results());
        succeeds("train --quiet --resume run --iterations 7");
        CHECK(ct_file_exists("run/summary.json"));
        remove_tree("run");
    }
}

static void a_damaged_checkpoint_does_not_take_the_place_of_a_good_one(void) {
    succeeds(TINY "--epochs 9 --iterations 10 --checkpoint-every 1");
    CHECK(ct_dir_exists("run/checkpoint/8") && ct_dir_exists("run/checkpoint/10"));
    CHECK(truncate("run/checkpoint/10/agent-3.ckpt", 100) == 0);
    succeeds("train --quiet --resume run --iterations 15 --checkpoint-every end");
    CHECK(ct_dir_exists("run/checkpoint/8") && ct_dir_exists("run/checkpoint/15"));
    CHECK(!ct_dir_exists("run/checkpoint/10"));
    succeeds("train --quiet --resume run --iterations 22 --checkpoint-every 1");
    CHECK(ct_dir_exists("run/checkpoint/20") && ct_dir_exists("run/checkpoint/22"));
    CHECK(n_files("run/checkpoint") == 2);
    remove_tree("run");
}

static void a_finished_run_takes_its_checkpoint_to_another_folder(void) {
    succeeds(TINY "--checkpoint-every end");
    succeeds("train --quiet --resume run --out moved --checkpoint-every end");
    CHECK(same_files("run/consensus.safetensors", "moved/consensus.safetensors"));
    CHECK(ct_file_exists("moved/checkpoint/8/manifest.json"));
    succeeds("train --quiet --resume moved");
    remove_tree("run");
    remove_tree("moved");
}

/* ---- beginning anew ---- */

static void force_leaves_no_seeds_of_the_run_before(void) {
    succeeds(TINY "--seeds 1,2,3");
    CHECK_OK(ct_dir_create("run/seed-9"));
    put("run/seed-9/notes.txt", "no run");
    CHECK_OK(ct_dir_create("run/seed-more"));
    put("run/seed-more/config.txt", "not of the run");
    succeeds(TINY "--seeds 1,2 --force");
    CHECK(ct_file_exists("run/seed-2/summary.json") && !ct_dir_exists("run/seed-3"));
    CHECK(ct_file_exists("run/seed-9/notes.txt") && ct_file_exists("run/seed-more/config.txt"));
    remove_tree("run");
    succeeds(TINY "--algorithm ccl --lambdas 0.1:0.01,1e-5:0 --seeds 1,2");
    CHECK(ct_dir_exists("run/m0.1-d0.01/seed-1") && ct_dir_exists("run/m1e-05-d0/seed-2"));
    succeeds(TINY "--force");
    CHECK(n_files("run") == 8);
    remove_tree("run");
}

static void force_leaves_other_runs_below_it_alone(void) {
    succeeds(TINY "--out run/seed-1");
    succeeds(TINY "--seed 2 --force"); /* in run itself, twice */
    succeeds(TINY "--seed 3 --force");
    CHECK(ct_file_exists("run/seed-1/summary.json"));
    remove_tree("run");
    /* beside the seeds of one: only what that one names goes, and not what someone trains */
    int lock = -1;
    succeeds(TINY "--seeds 1,2,3");
    succeeds(TINY "--seed 7 --iterations 5 --checkpoint-every end --out run/seed-7");
    REQUIRE(ct_dir_lock("run/seed-3", &lock));
    succeeds(TINY "--seeds 1,4 --force");
    CHECK(ct_file_exists("run/seed-7/summary.json") && ct_dir_exists("run/seed-7/checkpoint"));
    CHECK(!ct_dir_exists("run/seed-2") && ct_file_exists("run/seed-3/summary.json"));
    ct_dir_unlock(&lock);
    /* what the new run goes on from stays as well */
    succeeds("train --quiet --resume run/seed-7 --iterations 0 --out run --force");
    CHECK(ct_file_exists("run/seed-7/summary.json") && !ct_dir_exists("run/seed-4"));
    remove_tree("run");
}

static void without_out_several_seeds_are_named_after_their_number(void) {
    succeeds(TRAIN DATA "--epochs 1 --seeds 7");
    succeeds(TRAIN DATA "--epochs 1 --seed 1");
    succeeds(TRAIN DATA "--epochs 1 --seeds 12,3");
    int n_named = 0;
    DIR *runs = opendir("runs");
    for (struct dirent *e = NULL; runs != NULL && (e = readdir(runs)) != NULL;) {
        const char *end = strrchr(e->d_name, '-');
        n_named += end != NULL && (strcmp(end, "-s7") == 0 || strcmp(end, "-s1") == 0 ||
                                   strcmp(end, "-2seeds") == 0);
    }
    if (runs != NULL) closedir(runs);
    CHECK(n_named == 3);
    remove_tree("runs");
}

#define NAMED "runs/idx-mlp_8-qg-dsgdm-ring5-iid-s1"

static void without_out_no_run_is_in_the_way_of_another(void) {
    succeeds(TRAIN DATA "--epochs 1");
    succeeds(TRAIN DATA "--epochs 1");
    succeeds(TRAIN DATA "--epochs 1 --lr 0.01");
    CHECK(ct_file_exists(NAMED "/summary.json") && ct_file_exists(NAMED "-2/summary.json"));
    CHECK(ct_file_exists(NAMED "-3/summary.json") && !ct_dir_exists(NAMED "-4"));
    CHECK(same_files(NAMED "/consensus.safetensors", NAMED "-2/consensus.safetensors"));
    succeeds(TRAIN DATA "--epochs 1 --lr 0.01 --force"); /* asks for the name itself */
    CHECK(same_files(NAMED "/consensus.safetensors", NAMED "-3/consensus.safetensors"));
    remove_tree("runs");
}

static void without_out_an_unfinished_run_is_offered(void) {
    succeeds(TRAIN DATA "--epochs 1");
    succeeds(TRAIN DATA "--epochs 2 --iterations 1 --checkpoint-every end");
    unlink(NAMED "-2/summary.json");
    REFUSES(1, TRAIN DATA "--epochs 2", "unfinished run with these options",
            "--resume " NAMED "-2");
    succeeds(TRAIN DATA "--epochs 1"); /* has others: -2 is not in its way */
    CHECK(ct_file_exists(NAMED "-3/summary.json"));
    succeeds("train --quiet --resume " NAMED "-2 --iterations 0");
    CHECK(ct_file_exists(NAMED "-2/summary.json") && !ct_dir_exists(NAMED "-4"));
    remove_tree("runs");
}

static void a_config_file_does_not_bring_its_directory_along(void) {
    succeeds(TINY);
    succeeds("train --quiet --threads 1 --config run/config.txt");
    CHECK(ct_file_exists(NAMED "/summary.json"));
    CHECK(same_files("run/consensus.safetensors", NAMED "/consensus.safetensors"));
    remove_tree("runs");
    remove_tree("run");
}

int main(void) {
    if (CT_PROGRAM[0] == '\0' || !enter_folder()) return 1;
    TEST(a_refused_resume_changes_nothing);
    TEST(an_empty_name_to_resume_is_refused);
    TEST(a_limit_on_files_is_like_a_full_disk);
    TEST(a_folder_belongs_to_one_training_at_a_time);
    TEST(a_run_that_goes_on_is_not_finished);
    TEST(a_damaged_checkpoint_does_not_take_the_place_of_a_good_one);
    TEST(a_finished_run_takes_its_checkpoint_to_another_folder);
    TEST(force_leaves_no_seeds_of_the_run_before);
    TEST(force_leaves_other_runs_below_it_alone);
    TEST(without_out_several_seeds_are_named_after_their_number);
    TEST(without_out_no_run_is_in_the_way_of_another);
    TEST(without_out_an_unfinished_run_is_offered);
    TEST(a_config_file_does_not_bring_its_directory_along);
    leave_folder();
    return test_report();
}
