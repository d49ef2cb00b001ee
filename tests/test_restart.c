/* One command line begins a run, goes on with it, and leaves it alone once it is finished. */
#include "deadly.h"

#include "record/record.h"
#include "run/output.h"

/* 5 iterations an epoch; a few milliseconds. */
#define TINY                                                                                       \
    "dataset=shapes model=mlp:1 agents=2 topology=chain batch-size=4 partition=iid "               \
    "train-samples=40 test-samples=4 epochs=2 threads=1 save-agents=on quiet=on "
#define RUN TINY "checkpoint-every=1 out=run "

/* Files that were to be renamed, below a directory. */
static int n_parts(const char *dir) {
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        ct_path path = ct_path_in(dir, e->d_name);
        n += strstr(e->d_name, ".part-") != NULL;
        n += ct_dir_exists(path.text) ? n_parts(path.text) : 0;
    }
    if (d != NULL) closedir(d);
    return n;
}

static ct_status compare_world(void *unused, const char *dir) {
    (void)unused;
    ct_path whole = ct_path_in("whole", dir + strlen("run"));
    return same_results(whole.text, dir) ? CT_OK : CT_DIFFERS;
}

/* ---- killed at any moment ---- */

typedef struct history {
    const char *before; /* the run that is there; NULL: none */
    const char *begun;  /* what is killed, */
    const char *again;  /* and what is then said until it is done */
} history;

/* Killed at its nth file operation, and then again. False: it had fewer. */
static bool survives(const history *h, int n) {
    remove_tree("run");
    if (h->before != NULL) CHECK_OK(train(with(RUN, h->before)));
    if (!dies_at(n, with(RUN, h->begun))) return false;
    dies_at(n % 17 + 1, with(RUN, h->again));
    bool has_record = ct_file_exists("run/config.txt") && h->before == NULL;
    CHECK_OK(train(has_record && n % 2 == 0 && !is_finished("run") ? "resume=run quiet=on"
                                                                   : with(RUN, h->again)));
    bool ok = is_finished("run") && ct_record_each_world("run", compare_world, NULL) == CT_OK &&
              n_parts("run") == 0;
    if (!ok) printf("    killed at file operation %d of: %s\n", n, h->begun);
    CHECK(ok);
    return true;
}

/* At every operation, or at every third of runs that have many. */
static void live_through(const history *h, int step) {
    int n = 1;
    CHECK_OK(train(with(TINY "checkpoint-every=0 out=whole force=on", h->again)));
    while (survives(h, n) && !test_failed) n += step;
    CHECK(n > 40);
    remove_tree("whole");
    remove_tree("run");
}

static void a_kill_at_any_file_operation_is_made_good_by_the_same_words(void) {
    live_through(&(history){NULL, "resume=auto", "resume=auto"}, 1);
    live_through(&(history){NULL, "resume=auto seeds=1,2", "resume=auto seeds=1,2"}, 3);
#define PAIRS "resume=auto loss=ccl lambdas=0.1:0.1,0:0.1"
    live_through(&(history){NULL, PAIRS, PAIRS}, 3);
}

/* Also while the old run is being removed. */
static void a_kill_of_a_forced_run_is_made_good_as_well(void) {
    live_through(&(history){"lr=0.5 seeds=1,2,3", "force=on resume=auto", "force=on resume=auto"},
                 3);
    live_through(&(history){"lr=0.5", "force=on seeds=1,2", "force=on resume=auto seeds=1,2"}, 3);
    live_through(&(history){"iterations=7", "force=on", "resume=auto"}, 1); /* the same, shorter */
}

/* ---- what --resume does ---- */

static void a_run_without_a_checkpoint_begins_again(void) {
    CHECK_OK(train(TINY "out=whole lr=0.03"));
    CHECK(dies_at(14, TINY "out=run lr=0.03"));
    CHECK(ct_file_exists("run/config.txt") && !is_finished("run"));
    CHECK_FAILS(train(TINY "out=run lr=0.03"), CT_IO,
                "run has an unfinished run with these options; go on with --resume run");
    CHECK_FAILS(train(TINY "out=run lr=0.04"), CT_IO, "run/config.txt is there already");
    CHECK_FAILS(train("resume=run lr=0.04"), CT_DIFFERS,
                "--lr 0.04 contradicts run/config.txt, which has 0.03");
    CHECK(rename("run", "moved") == 0);
    CHECK_OK(train("resume=moved quiet=on"));
    CHECK(same_results("whole", "moved") && !ct_dir_exists("run"));
    CHECK_FAILS(train("resume=moved quiet=on"), CT_IO, "moved: this run is finished and kept no");
    remove_tree("whole");
    remove_tree("moved");
}

/* What counts as a checkpoint has a manifest; what has one and is damaged was work. */
static void a_damaged_checkpoint_is_not_replaced_in_silence(void) {
    CHECK_OK(train(RUN "iterations=6"));
    CHECK(remove("run/checkpoint/5/manifest.json") == 0);
    CHECK(truncate("run/checkpoint/6/agent-1.ckpt", 9) == 0);
    CHECK_FAILS(train(RUN "resume=auto"), CT_IO, "run/checkpoint/");
    CHECK(remove("run/checkpoint/6/manifest.json") == 0);
    CHECK(remove("run/summary.json") == 0);
    CHECK_OK(train(RUN "resume=auto"));
    CHECK_OK(train(TINY "out=whole"));
    CHECK(same_results("whole", "run"));
    remove_tree("whole");
    remove_tree("run");
}

static void auto_begins_goes_on_and_leaves_alone(void) {
    struct stat first, second;
    CHECK_OK(train(RUN "resume=auto iterations=6"));
    CHECK_OK(train(RUN "resume=auto"));
    CHECK_OK(train(TINY "out=whole"));
    CHECK(same_results("whole", "run"));
    REQUIRE(stat("run/summary.json", &first) == 0);
    CHECK_OK(train(RUN "resume=auto"));
    REQUIRE(stat("run/summary.json", &second) == 0);
    CHECK(first.st_ino == second.st_ino && first.st_mtim.tv_nsec == second.st_mtim.tv_nsec);
    CHECK_FAILS(train(RUN "resume=auto lr=0.5"), CT_DIFFERS, "--lr 0.5 contradicts run/config.txt");
    CHECK_OK(train(RUN "resume=auto lr=0.5 force=on"));
    CHECK_FAILS(train(RUN "resume=auto"), CT_DIFFERS, "which has 0.5");
    remove_tree("whole");
    remove_tree("run");
}

static void auto_knows_the_directory_that_has_no_name(void) {
    CHECK_OK(train(TINY "resume=auto"));
    CHECK(is_finished("runs/shapes-mlp_1-qg-dsgdm-chain2-iid-s1"));
    CHECK_OK(train(TINY "resume=auto"));
    CHECK(!ct_dir_exists("runs/shapes-mlp_1-qg-dsgdm-chain2-iid-s1-2"));
    remove_tree("runs");
}

static void auto_looks_for_its_run_among_all_of_a_name(void) {
    CHECK_OK(train(TINY "momentum=0.5"));
    CHECK_OK(train(TINY "resume=auto"));
    CHECK(is_finished("runs/shapes-mlp_1-qg-dsgdm-chain2-iid-s1-2"));
    CHECK_OK(train(TINY "resume=auto"));
    CHECK_OK(train(TINY "momentum=0.5 resume=auto"));
    CHECK(!ct_dir_exists("runs/shapes-mlp_1-qg-dsgdm-chain2-iid-s1-3"));
    remove_tree("runs");
}

/* ---- no room ---- */

static bool ends_with_a_line(const char *path) {
    ct_blob blob = {0};
    bool ok =
        ct_file_read(path, 1 << 20, &blob) == CT_OK && blob.n > 0 && blob.bytes[blob.n - 1] == '\n';
    ct_blob_free(&blob);
    return ok;
}

/* 400 bytes a line; the other files have less than 20000. */
#define LONG TINY "epochs=100 tensorboard=on "

static void lines_without_room_are_written_later_or_by_the_next_attempt(void) {
    ct_run run;
    static ct_config config;
    ct_epoch e = {.lr = 1};
    REQUIRE_OK(configure(LONG "out=run", &config));
    REQUIRE_OK(ct_run_build(&config, &run));
    REQUIRE_OK(ct_output_name(&run));
    REQUIRE_OK(ct_dir_create("run"));
    signal(SIGXFSZ, SIG_IGN);
    for (e.epoch = 1; e.epoch <= 3; e.epoch++) CHECK_OK(ct_output_epoch(&run, 0, &e));
    for (rlim_t room = 1000; room < 1700; room += 97) { /* of either file, at any place */
        limit_file_size(room);
        for (int k = 0; k < 4; k++, e.epoch++) (void)CT_CATCH(NULL, ct_output_epoch(&run, 0, &e));
        CHECK(ends_with_a_line("run/metrics.jsonl") && run.worlds[0].unwritten.n > 0);
    }
    limit_file_size(RLIM_INFINITY);
    CHECK_OK(ct_output_settle(&run));
    ct_record record;
    CHECK_OK(ct_record_load("run", CT_READ_METRICS, &record));
    CHECK(record.n_epochs == e.epoch - 1);
    for (int k = 0; k < record.n_epochs; k++)
        CHECK(record.epochs[k].value[CT_METRIC_EPOCH] == k + 1);
    ct_record_unload(&record);
    ct_run_clear(&run);
    remove_tree("run");
}

static void a_full_disk_ends_a_run_only_at_its_end(void) {
    CHECK_OK(train(LONG "out=whole"));
    signal(SIGXFSZ, SIG_IGN);
    limit_file_size(20000);
    CHECK_FAILS(train(LONG "out=run checkpoint-every=20"), CT_IO, "File too large");
    CHECK(ends_with_a_line("run/metrics.jsonl") && !ct_file_exists("run/summary.json"));
    CHECK(ct_dir_exists("run/checkpoint/200") && !ct_dir_exists("run/checkpoint/300"));
    CHECK_FAILS(train(LONG "out=strict checkpoint-strict=on"), CT_IO, "File too large");
    limit_file_size(RLIM_INFINITY);
    CHECK_OK(train(LONG "out=run checkpoint-every=20 resume=auto"));
    CHECK(same_results("whole", "run") && n_parts("run") == 0);
    CHECK(!ct_file_exists("run/failed.json"));
    remove_tree("whole");
    remove_tree("strict");
    remove_tree("run");
}

int main(void) {
    if (!enter_folder()) return 1;
    TEST(a_kill_at_any_file_operation_is_made_good_by_the_same_words);
    TEST(a_kill_of_a_forced_run_is_made_good_as_well);
    TEST(a_run_without_a_checkpoint_begins_again);
    TEST(a_damaged_checkpoint_is_not_replaced_in_silence);
    TEST(auto_begins_goes_on_and_leaves_alone);
    TEST(auto_knows_the_directory_that_has_no_name);
    TEST(auto_looks_for_its_run_among_all_of_a_name);
    TEST(lines_without_room_are_written_later_or_by_the_next_attempt);
    TEST(a_full_disk_ends_a_run_only_at_its_end);
    remove_tree(folder);
    return test_report();
}
