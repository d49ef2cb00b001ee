/* Checkpoints: what is resumed ends as if nothing had happened, and what is damaged is refused. */
#include "resume.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "schema/interval.h"
#include "util/json.h"

/* Waits for the disk: this one stands before the C library's. */
static int n_waits;

int fsync(int fd) {
    n_waits++;
    return (int)syscall(SYS_fsync, fd);
}

/* ---- resuming ---- */

static const char *const methods[] = {
    "algorithm=dsgd",
    "algorithm=dsgdm loss=ccl",
    "algorithm=dsgdm variant=cta compress=quantize:3",
    "algorithm=ccl",
    "algorithm=ccl variant=atc",
    "algorithm=ccl variant=wacv24 lr-schedule=cosine",
    "algorithm=relaysgd loss=ccl",
    "algorithm=relaysgd relay-fill=self topology=torus:2x3",
    "algorithm=gt",
    "algorithm=gt variant=atc",
    "algorithm=mt loss=ccl",
    "algorithm=mt variant=tmlr23",
    "algorithm=sgp variant=icml19 topology=one-peer-exponential",
    "algorithm=cga variant=icml21 cga-margin=0.5 topology=star",
    "algorithm=d2",
    "algorithm=gut",
    "algorithm=gut variant=neurips23 gut-mu=0.08 loss=ccl",
    "algorithm=ngc variant=weighted topology=chain",
    "algorithm=allreduce",
    "algorithm=local",
    "algorithm=adpsgd speed=lognormal:0.7,jitter:0.3 link-latency=100",
    "algorithm=swift loss=ccl speed=one:0.3",
    "algorithm=dfedavgm local-steps=4 sam=0.05",
    "algorithm=edm loss=ccl",
    "algorithm=motef loss=ccl compress=top-k:0.1",
    "algorithm=def-kt variant=own local-steps=3 loss=ccl",
    "algorithm=ccl compress=top-k8:0.1 sam=0.05 local-steps=1:4",
    "algorithm=ccl variant=wacv24 compress=sign consensus=adagossip",
    "algorithm=dsgd variant=cta compress=low-rank:2",
    "algorithm=dsgdm topology=epidemic-local:2 local-steps=2 final-merge=on",
};

/* Stopped within an epoch, and at the end of one. */
static void a_resumed_run_ends_with_the_same_bits(void) {
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        const char *words = with(SMALL, methods[m]);
        CHECK_OK(train(with(words, "out=whole")));
        CHECK_OK(train(with(words, "out=parts iterations=10 checkpoint-every=end")));
        CHECK_OK(train("resume=parts quiet=on iterations=14"));
        CHECK_OK(train("resume=on out=parts quiet=on iterations=0"));
        if (!same_results("whole", "parts")) {
            printf("    with %s\n", methods[m]);
            CHECK(false);
        }
        remove_tree("whole");
        remove_tree("parts");
    }
}

/* Few agents' files are waited for one by one, many at once. */
static void a_checkpoint_of_many_agents_waits_for_the_disk_once(void) {
    static const char *const many = SMALL "agents=100 batch-size=4 partition=iid ";
    n_waits = 0;
    CHECK_OK(train(with(many, "out=none checkpoint-every=0")));
    int n_others = n_waits;
    CHECK_OK(train(with(many, "out=whole checkpoint-every=end")));
    CHECK(n_waits - 2 * n_others < 20 && n_waits > 2 * n_others);
    CHECK_OK(train(with(many, "out=parts iterations=2 checkpoint-every=end")));
    CHECK_OK(train("resume=parts quiet=on iterations=0"));
    CHECK(same_results("whole", "parts"));
    remove_tree("none");
    remove_tree("whole");
    remove_tree("parts");
}

/* Costs so far are part of the state: the summary tells those of the whole run. */
static void the_summary_is_that_of_the_whole_run(void) {
    static const char *const words = SMALL "algorithm=ccl partition=dirichlet link-latency=2 "
                                           "link-bandwidth=100 out=run ";
    static const char *const keys[] = {"compute_overhead",
                                       "bytes_sent_per_agent",
                                       "class_sum_bytes_per_agent_per_iteration",
                                       "link_seconds",
                                       "gmacs_per_agent_per_iteration",
                                       "consensus_accuracy"};
    double expected[6] = {0};
    for (int part = 0; part < 2; part++) {
        CHECK_OK(train(with(words, part == 0 ? "" : "iterations=10 checkpoint-every=end")));
        if (part == 1) CHECK_OK(train("resume=run quiet=on iterations=0"));
        ct_blob blob = content("run", "summary.json");
        ct_json *json = NULL;
        CHECK_OK(ct_json_parse((const char *)blob.bytes, strlen((const char *)blob.bytes),
                               "summary", &json));
        for (int k = 0; k < 6 && json != NULL; k++) {
            const ct_json *member = ct_json_get(json, keys[k]);
            CHECK(member != NULL && member->number > 0);
            if (part == 0 && member != NULL) expected[k] = member->number;
            CHECK(member != NULL && member->number == expected[k]);
        }
        ct_json_free(&json);
        ct_blob_free(&blob);
        remove_tree("run");
    }
}

static void several_seeds_resume_together(void) {
    CHECK_OK(train(SMALL "algorithm=relaysgd seeds=3,4 out=whole"));
    CHECK_OK(train(SMALL "algorithm=relaysgd seeds=3,4 out=parts iterations=9 "
                         "checkpoint-every=1"));
    CHECK_OK(train("resume=parts quiet=on iterations=0"));
    CHECK(same_results("whole/seed-3", "parts/seed-3"));
    CHECK(same_results("whole/seed-4", "parts/seed-4"));
    remove_tree("whole");
    remove_tree("parts");
}

static void running_statistics_are_part_of_it(void) {
    static const char words[] = "dataset=noise model=vgg11 norm=batchnorm agents=2 batch-size=8 "
                                "topology=chain train-samples=48 test-samples=8 epochs=2 lr=0.01 "
                                "partition=iid threads=1 save-agents=on quiet=on ";
    CHECK_OK(train(with(words, "out=whole")));
    CHECK_OK(train(with(words, "out=parts iterations=2 checkpoint-every=end")));
    CHECK_OK(train("resume=parts quiet=on iterations=0"));
    CHECK(same_results("whole", "parts"));
    remove_tree("whole");
    remove_tree("parts");
}

static void a_finished_run_may_be_finished_again(void) {
    CHECK_OK(train(SMALL "out=whole checkpoint-every=2"));
    ct_blob before = content("whole", "metrics.jsonl");
    CHECK(remove("whole/consensus.safetensors") == 0);
    CHECK_OK(train("resume=whole quiet=on"));
    ct_blob after = content("whole", "metrics.jsonl");
    CHECK(before.n == after.n && memcmp(before.bytes, after.bytes, after.n) == 0);
    CHECK(ct_file_exists("whole/consensus.safetensors"));
    ct_blob_free(&before);
    ct_blob_free(&after);
    remove_tree("whole");
}

static void a_run_may_go_on_in_another_directory(void) {
    CHECK_OK(train(SMALL "out=whole"));
    CHECK_OK(train(SMALL "out=parts iterations=9 checkpoint-every=1"));
    CHECK_OK(train("resume=parts out=moved quiet=on iterations=0 threads=2"));
    CHECK(same_results("whole", "moved"));
    CHECK_FAILS(train("resume=parts out=moved quiet=on iterations=0"), CT_IO, "moved");
    remove_tree("whole");
    remove_tree("parts");
    remove_tree("moved");
}

static void another_backend_takes_over(void) {
    CHECK_OK(train(SMALL "out=parts iterations=9 checkpoint-every=end"));
    CHECK_OK(train("resume=parts device=ref quiet=on iterations=0"));
    CHECK(ct_file_exists("parts/summary.json"));
    remove_tree("parts");
}

static int n_entries(const char *path) {
    int n = 0;
    DIR *d = opendir(path);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
    if (d != NULL) closedir(d);
    return n;
}

static void the_last_two_are_kept(void) {
    CHECK_OK(train(SMALL "out=run checkpoint-every=1 epochs=5"));
    CHECK(n_entries("run/checkpoint") == 2);
    CHECK(ct_dir_exists("run/checkpoint/28") && ct_dir_exists("run/checkpoint/35"));
    CHECK(n_entries("run/checkpoint/35") == 7); /* six agents and the manifest */
    remove_tree("run");
}

static void a_new_run_does_not_mix_with_old_checkpoints(void) {
    CHECK_OK(train(SMALL "out=run checkpoint-every=1"));
    CHECK(remove("run/config.txt") == 0);
    CHECK_FAILS(train(SMALL "out=run"), CT_IO, "run");
    CHECK_OK(train(SMALL "out=run force=on iterations=2 checkpoint-every=0"));
    CHECK(!ct_dir_exists("run/checkpoint"));
    remove_tree("run");
}

/* ---- refusing ---- */

static void options_that_contradict_are_refused_by_name(void) {
    static const struct {
        const char *words, *named;
    } cases[] = {{"lr=0.5", "--lr 0.5"},           {"seed=2", "--seed 2"},
                 {"agents=7", "--agents 7"},       {"model=mlp:5", "--model"},
                 {"momentum=0", "--momentum"},     {"topology=full", "--topology"},
                 {"algorithm=gt", "--algorithm"},  {"alpha=1", "--alpha"},
                 {"epochs=4", "--epochs 4"},       {"exact-conv=on", "--exact-conv"},
                 {"batch-size=8", "--batch-size"}, {"train-samples=500", "--train-samples"}};
    CHECK_OK(train(SMALL "algorithm=qg-dsgdm out=run iterations=9 checkpoint-every=end"));
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        CHECK_FAILS(train(with("resume=run quiet=on iterations=0", cases[k].words)), CT_DIFFERS,
                    cases[k].named);
    CHECK_FAILS(train("resume=run quiet=on iterations=8"), CT_INVAL, "iteration 9");
    CHECK_OK(train("resume=run quiet=on iterations=0 lr=0.02 eval-every=3 threads=2"));
    remove_tree("run");
}

static void there_must_be_something_to_resume(void) {
    CHECK_FAILS(train(SMALL "resume=nowhere"), CT_IO, "nowhere: no such directory");
    CHECK_OK(ct_dir_create("bare"));
    CHECK_FAILS(train(SMALL "resume=bare"), CT_IO, "bare: no checkpoint to resume from");
    CHECK_OK(train(SMALL "out=done quiet=on iterations=3 checkpoint-every=0"));
    CHECK_FAILS(train(SMALL "resume=done"), CT_IO, "done: this run is finished and kept no");
    CHECK_FAILS(train(SMALL "resume=on"), CT_INVAL, "--out");
}

static ct_status opens(const char *dir) {
    ct_checkpoint *checkpoint = NULL;
    ct_status status = ct_checkpoint_open(dir, &checkpoint);
    ct_checkpoint_free(&checkpoint);
    return status;
}

/* Writes a file as it is, without care. */
static void overwrite(const char *path, const void *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    CHECK(f != NULL && fwrite(bytes, 1, n, f) == n);
    if (f != NULL) fclose(f);
}

static const char *const tiny_files[] = {"tiny/checkpoint/3/agent-0.ckpt",
                                         "tiny/checkpoint/3/agent-1.ckpt",
                                         "tiny/checkpoint/3/manifest.json"};

static void train_tiny(const char *words) {
    CHECK_OK(train(with("dataset=shapes model=mlp:1 agents=2 topology=chain batch-size=4 "
                        "partition=iid train-samples=40 test-samples=4 epochs=2 iterations=3 "
                        "checkpoint-every=end threads=1 quiet=on",
                        words)));
}

static void a_flipped_bit_is_found_at_every_byte(void) {
    train_tiny("out=tiny");
    CHECK_OK(opens("tiny"));
    for (int f = 0; f < 3; f++) {
        ct_blob blob = {0};
        int n_missed = 0;
        REQUIRE_OK(ct_file_read(tiny_files[f], 1 << 20, &blob));
        for (size_t at = 0; at < blob.n; at++) {
            blob.bytes[at] ^= (uint8_t)(1u << at % 8);
            overwrite(tiny_files[f], blob.bytes, blob.n);
            n_missed += opens("tiny") != CT_IO;
            blob.bytes[at] ^= (uint8_t)(1u << at % 8);
            ct_clear_message();
        }
        CHECK(blob.n > 1000);
        CHECK(n_missed == 0);
        overwrite(tiny_files[f], blob.bytes, blob.n);
        ct_blob_free(&blob);
    }
    CHECK_OK(opens("tiny"));
}

static void a_cut_file_is_found_at_every_length(void) {
    for (int f = 0; f < 3; f++) {
        ct_blob blob = {0};
        int n_missed = 0;
        REQUIRE_OK(ct_file_read(tiny_files[f], 1 << 20, &blob));
        for (size_t n = 0; n < blob.n; n++) {
            CHECK(truncate(tiny_files[f], (off_t)(blob.n - 1 - n)) == 0);
            n_missed += opens("tiny") != CT_IO;
            ct_clear_message();
        }
        CHECK(n_missed == 0);
        overwrite(tiny_files[f], blob.bytes, blob.n);
        ct_blob_free(&blob);
    }
    CHECK_OK(opens("tiny"));
}

/* Files that are whole, but not the right ones. */
static void foreign_files_are_refused(void) {
    train_tiny("out=twin seed=2");
    CHECK(rename("tiny/checkpoint/3/agent-0.ckpt", "kept") == 0);
    CHECK(rename("twin/checkpoint/3/agent-0.ckpt", "tiny/checkpoint/3/agent-0.ckpt") == 0);
    CHECK_FAILS(opens("tiny"), CT_IO, "manifest");
    CHECK(rename("tiny/checkpoint/3/agent-1.ckpt", "tiny/checkpoint/3/agent-0.ckpt") == 0);
    CHECK_FAILS(opens("tiny"), CT_IO, "agent-0.ckpt");
    CHECK(remove("tiny/checkpoint/3/agent-0.ckpt") == 0);
    CHECK_FAILS(opens("tiny"), CT_IO, "agent-0.ckpt");
    CHECK(rename("tiny/checkpoint/3", "tiny/checkpoint/4") == 0);
    CHECK_FAILS(opens("tiny"), CT_IO, "in the folder of 4");
    overwrite("tiny/checkpoint/4/manifest.json", "{\"iteration\": 4}\n", 17);
    CHECK_FAILS(opens("tiny"), CT_IO, "not the manifest");
    remove("kept");
    remove_tree("tiny");
    remove_tree("twin");
}

static void a_damaged_one_gives_way_to_the_one_before(void) {
    CHECK_OK(train(SMALL "out=whole"));
    CHECK_OK(train(SMALL "out=run iterations=16 checkpoint-every=1"));
    CHECK(ct_dir_exists("run/checkpoint/14") && ct_dir_exists("run/checkpoint/16"));
    CHECK(truncate("run/checkpoint/16/agent-3.ckpt", 100) == 0);
    CHECK_OK(train("resume=run quiet=on iterations=0"));
    CHECK(same_results("whole", "run"));
    remove_tree("whole");
    remove_tree("run");
}

/* ---- when it cannot be written ---- */

/* Trains six steps, writes a checkpoint, trains on and finds the disk full. */
static void a_full_disk_leaves_the_one_before(void) {
    static ct_config config;
    ct_run run;
    ct_tally tally = {.samples = 1};
    ct_position at = {.iteration = 1, .tallies = &tally};
    REQUIRE_OK(configure(SMALL "out=run", &config));
    REQUIRE_OK(ct_run_build(&config, &run));
    signal(SIGXFSZ, SIG_IGN);
    CHECK_OK(ct_run_iterate(&run, 0));
    CHECK_OK(ct_checkpoint_write(&run, &at));
    CHECK_OK(ct_run_iterate(&run, 1));
    at.iteration = 2;
    for (rlim_t n = 0; n < 26000; n += 3200) {
        limit_file_size(n);
        ct_clear_message();
        CHECK(ct_checkpoint_write(&run, &at) == CT_IO);
        limit_file_size(RLIM_INFINITY);
        CHECK(!ct_dir_exists("run/checkpoint/2")); /* it does not take the room of the next one */
        ct_checkpoint *newest = NULL;
        CHECK_OK(ct_checkpoint_open("run", &newest));
        CHECK(newest != NULL && ct_checkpoint_iteration(newest) == 1);
        ct_checkpoint_free(&newest);
    }
    CHECK_OK(ct_checkpoint_write(&run, &at));
    ct_run_clear(&run);
    remove_tree("run");
}

static void training_goes_on_without_or_stops_if_asked(void) {
    CHECK_OK(train(SMALL "out=whole"));
    CHECK(mkdir("run", 0777) == 0);
    overwrite("run/checkpoint", "in the way", 10);
    CHECK_OK(train(SMALL "out=run checkpoint-every=1"));
    CHECK(same_results("whole", "run"));
    CHECK_FAILS(train(SMALL "out=run checkpoint-every=1 checkpoint-strict=on force=on"), CT_IO,
                "checkpoint");
    remove_tree("whole");
    remove_tree("run");
}

/* ---- signals ---- */

/* Trains in another process, sends it a signal on its way, and gives the status it ended with. */
static int stop_with(int number) {
    pid_t pid = fork();
    if (pid == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL) _exit(99);
        _exit((int)train(SMALL "epochs=30000 eval-every=30000 out=run"));
    }
    int status = 0;
    while (!ct_file_exists("run/metrics.jsonl")) sleep_ms(5);
    sleep_ms(50);
    kill(pid, number);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void a_signal_ends_the_run_with_a_checkpoint(void) {
    static const int numbers[] = {SIGTERM, SIGINT};
    for (int k = 0; k < 2; k++) {
        CHECK(stop_with(numbers[k]) == CT_STOPPED);
        ct_checkpoint *newest = NULL;
        CHECK_OK(ct_checkpoint_open("run", &newest));
        CHECK(newest != NULL && ct_checkpoint_iteration(newest) > 0);
        ct_checkpoint_free(&newest);
        CHECK(!ct_file_exists("run/summary.json"));
        remove_tree("run");
    }
    CHECK(ct_exit_code(CT_STOPPED, SIGINT) == 130 && ct_exit_code(CT_STOPPED, 0) == 143);
}

static void intervals_are_epochs_or_time(void) {
    ct_interval i;
    CHECK_OK(ct_interval_parse("5", &i));
    CHECK(i.epochs == 5 && i.every_s == 0 && !i.is_off);
    CHECK_OK(ct_interval_parse("90s", &i));
    CHECK(i.epochs == 0 && i.every_s == 90);
    CHECK_OK(ct_interval_parse("10m", &i));
    CHECK(i.every_s == 600);
    CHECK_OK(ct_interval_parse("0.5h", &i));
    CHECK(i.every_s == 1800);
    CHECK_OK(ct_interval_parse("end", &i));
    CHECK(i.every_s == 0 && i.epochs == 0 && !i.is_off);
    CHECK_OK(ct_interval_parse("0", &i));
    CHECK(i.is_off);
    static const char *const bad[] = {"", "s", "-3", "5x", "10 minutes", "-1s", "0s", "m10"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        CHECK_FAILS(ct_interval_parse(bad[k], &i), CT_INVAL, "--checkpoint-every");
}

int main(void) {
    if (!enter_folder()) return 1;
    TEST(a_resumed_run_ends_with_the_same_bits);
    TEST(a_checkpoint_of_many_agents_waits_for_the_disk_once);
    TEST(the_summary_is_that_of_the_whole_run);
    TEST(several_seeds_resume_together);
    TEST(running_statistics_are_part_of_it);
    TEST(a_finished_run_may_be_finished_again);
    TEST(a_run_may_go_on_in_another_directory);
    TEST(another_backend_takes_over);
    TEST(the_last_two_are_kept);
    TEST(a_new_run_does_not_mix_with_old_checkpoints);
    TEST(options_that_contradict_are_refused_by_name);
    TEST(there_must_be_something_to_resume);
    TEST(a_flipped_bit_is_found_at_every_byte);
    TEST(a_cut_file_is_found_at_every_length);
    TEST(foreign_files_are_refused);
    TEST(a_damaged_one_gives_way_to_the_one_before);
    TEST(a_full_disk_leaves_the_one_before);
    TEST(training_goes_on_without_or_stops_if_asked);
    TEST(a_signal_ends_the_run_with_a_checkpoint);
    TEST(intervals_are_epochs_or_time);
    remove_tree(folder);
    return test_report();
}
