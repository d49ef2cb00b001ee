/* A run directory belongs to one training at a time, and holds what belongs to that run alone:
 * nothing that was refused, nothing of an earlier or a later one. */
#include "program.h"

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

int main(void) {
    if (CT_PROGRAM[0] == '\0' || !enter_folder()) return 1;
    TEST(a_refused_resume_changes_nothing);
    leave_folder();
    return test_report();
}
