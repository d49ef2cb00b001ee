/* Ranks without a common file system: each has a folder of its own as its working directory, and the
 * run goes on after anything that may happen to one of them. Needs mpirun; without it, or in a build
 * without MPI, everything here is skipped. */
#include "ranks.h"

/* 7 iterations an epoch, 4 epochs; each of three ranks has two agents. */
#define RUN                                                                                        \
    " train --dataset shapes --model mlp:4 --agents 6 --batch-size 16 --train-samples 600 "        \
    "--test-samples 50 --epochs 4 --lr 0.02 --threads 1 --save-agents --checkpoint-every 1 "
#define AT "disk$OMPI_COMM_WORLD_RANK"

/* `n` ranks, each in a directory of its own, say the same words; `before` is said by each before
 * it becomes the program. */
static int on_disks(int n, const char *before, const char *words) {
    char command[1024];
    snprintf(command, sizeof command,
             "timeout 120 mpirun -n %d sh -c 'mkdir -p " AT " && cd " AT " && %s exec %%s%%s' 2>&1",
             n, before);
    return shell(command, CT_PROGRAM, words);
}

static int on_three(const char *words) {
    return on_disks(3, "", words);
}

static int alone(const char *words) {
    return shell("%s%s 2>&1", CT_PROGRAM, words);
}

static bool has_said(const char *words) {
    bool ok = strstr(said, words) != NULL;
    if (!ok) printf("    '%s' is not in: %s\n", words, said);
    return ok;
}

static void clear_disks(void) {
    remove_tree("disk0");
    remove_tree("disk1");
    remove_tree("disk2");
    remove_tree("whole");
}

/* Nothing that was to be renamed or removed, on any disk. */
static bool is_tidy(void) {
    return shell("find . -name '*.part-*' -o -name '.crosstalk*'%s%s", "", "") == 0 &&
           said[0] == '\0';
}

/* The results are those of one process, and every disk has its part of them. */
static bool all_have_results(void) {
    bool ok = same_results("whole", "disk0/run");
    for (int rank = 1; rank < 3; rank++) {
        char dir[32];
        snprintf(dir, sizeof dir, "disk%d/run", rank);
        ok = ok && is_finished(dir) && same_file("whole", dir, "consensus.safetensors") &&
             ct_file_exists(ct_path_in(dir, "agents.safetensors").text) &&
             !ct_file_exists(ct_path_in(dir, "metrics.jsonl").text);
    }
    return ok && is_tidy();
}

/* As far as two checkpoints, of iterations 7 and 14; `whole` is what it must become. */
static void begin_three(void) {
    CHECK(alone(RUN "--out whole --quiet") == 0);
    CHECK(on_three(RUN "--out run --iterations 14 --quiet") == 0);
    CHECK(shell("rm disk?/run/summary.json%s%s", "", "") == 0); /* as if it had been killed */
}

/* The same words as at the beginning end the run with the bits of one that nobody disturbed. */
static void goes_on_from(int iteration) {
    char words[64];
    snprintf(words, sizeof words, "going on after iteration %d\n", iteration);
    CHECK(on_three(RUN "--out run --resume auto") == 0 && has_said(words));
    CHECK(all_have_results());
}

/* ---- undisturbed ---- */

static void every_rank_keeps_its_own_agents_and_no_others(void) {
    NEEDS_MPI();
    CHECK(alone(RUN "--out whole --quiet") == 0);
    CHECK(on_three(RUN "--out run") == 0);
    CHECK(has_said("2 of 3 ranks do not see the --out of rank 0") && all_have_results());
    for (int row = 0; row < 6; row++)
        for (int disk = 0; disk < 3; disk++) {
            char path[80];
            snprintf(path, sizeof path, "disk%d/run/checkpoint/28/agent-%d.ckpt", disk, row);
            CHECK(ct_file_exists(path) == (row / 2 == disk));
        }
    clear_disks();
}

static void the_name_of_the_folder_may_have_the_ranks_number(void) {
    NEEDS_MPI();
    CHECK(alone(RUN "--out whole --quiet") == 0);
    CHECK(shell("mpirun -n 3 %s" RUN "--out disk%s/run --iterations 10 2>&1", CT_PROGRAM, "%r") ==
          0);
    CHECK(shell("mpirun -n 3 %s train --resume disk%s/run --iterations 0 2>&1", CT_PROGRAM, "%r") ==
          0);
    CHECK(has_said("going on after iteration 10") && all_have_results());
    CHECK(shell("mpirun -n 3 %s" RUN "--out disk%s/run --resume auto 2>&1", CT_PROGRAM, "%r") == 0);
    CHECK(has_said("is finished already") && all_have_results());
    clear_disks();
}

/* Two disks for four ranks: the first rank of each looks after it for the other. */
static void ranks_of_one_machine_share_its_disk(void) {
    NEEDS_MPI();
    CHECK(alone(RUN "--out whole --quiet") == 0);
#define PAIRS                                                                                      \
    "timeout 120 mpirun -n 4 sh -c 'd=disk$((OMPI_COMM_WORLD_RANK / 2)); mkdir -p $d && cd $d && " \
    "exec %s%s' 2>&1"
    CHECK(shell(PAIRS, CT_PROGRAM, RUN "--out run --iterations 10") == 0);
    CHECK(has_said("2 of 4 ranks do not see"));
    CHECK(ct_file_exists("disk1/run/checkpoint/10/agent-3.ckpt") &&
          ct_file_exists("disk1/run/checkpoint/10/agent-5.ckpt") &&
          !ct_file_exists("disk1/run/checkpoint/10/agent-2.ckpt"));
    CHECK(shell(PAIRS, CT_PROGRAM, RUN "--out run --resume auto") == 0);
    CHECK(same_results("whole", "disk0/run") && is_tidy());
    CHECK(same_file("whole", "disk1/run", "consensus.safetensors"));
    CHECK(shell("grep -c agent.3. disk1/run/agents.safetensors && "
                "grep -c agent.5. disk1/run/agents.safetensors%s%s",
                "", "") == 0);
    CHECK(shell("grep agent.2. disk1/run/agents.safetensors%s%s", "", "") == 1);
    clear_disks();
}

static void several_seeds_have_their_folders_on_every_disk(void) {
    NEEDS_MPI();
    CHECK(alone(RUN "--seeds 3,4 --out whole --quiet") == 0);
    CHECK(on_three(RUN "--seeds 3,4 --out run --iterations 10") == 0);
    CHECK(on_three(RUN "--seeds 3,4 --out run --resume auto") == 0);
    CHECK(has_said("going on after iteration 10"));
    CHECK(same_results("whole/seed-3", "disk0/run/seed-3"));
    CHECK(same_results("whole/seed-4", "disk0/run/seed-4"));
    CHECK(same_file("whole/seed-4", "disk2/run/seed-4", "consensus.safetensors"));
    CHECK(is_finished("disk1/run") && is_tidy());
    clear_disks();
}

/* ---- disturbed ---- */

/* Long enough to be killed long before its end. */
#define LONG RUN "--epochs 200 --eval-every 200 --out run --resume auto"

/* Whoever dies, whatever it does when another rank has come so far: the run goes on from there. */
static void a_kill_is_made_good_by_the_same_words(void) {
    NEEDS_MPI();
    CHECK(alone(RUN "--epochs 200 --eval-every 200 --out whole --quiet") == 0);
    for (int k = 0; k < 4; k++) {
        char kill_it[240];
        snprintf(kill_it, sizeof kill_it,
                 "p=$$; has() { for d in ../disk%d/run/checkpoint/*; do [ -f $d/manifest.json ] && "
                 "[ ${d##*/} -ge %d ] && return; done; return 1; }; "
                 "[ $OMPI_COMM_WORLD_RANK != %d ] || (until has; do :; done; kill -9 $p) &",
                 (k + 1) % 3, 70 * (k + 1), k % 3);
        CHECK(on_disks(3, kill_it, LONG) != 0);
        CHECK(!is_finished("disk0/run"));
    }
    CHECK(on_three(LONG) == 0);
    CHECK(has_said("going on after iteration") && all_have_results());
    clear_disks();
}

/* Between two ranks' manifests, or after damage: all take the one before. */
static void a_checkpoint_that_one_rank_lacks_is_nobodys(void) {
    NEEDS_MPI();
    static const char *const ways[] = {
        "rm disk1/run/checkpoint/14/manifest.json",
        "rm disk0/run/checkpoint/14/manifest.json",
        "rm -r disk2/run/checkpoint/14",
        "rm disk1/run/checkpoint/14/agent-3.ckpt",
        "truncate -s 100 disk2/run/checkpoint/14/agent-4.ckpt",
        "printf x | dd of=disk0/run/checkpoint/14/manifest.json bs=1 seek=99 conv=notrunc",
    };
    for (size_t k = 0; k < sizeof ways / sizeof *ways && !test_failed; k++) {
        begin_three();
        CHECK(shell("%s 2>&1%s", ways[k], "") == 0);
        goes_on_from(7);
        if (test_failed) printf("    after %s\n", ways[k]);
        clear_disks();
    }
}

/* Each has lost what the other has. */
static void without_a_checkpoint_in_common_nothing_is_thrown_away(void) {
    NEEDS_MPI();
    begin_three();
    CHECK(shell("rm -r disk0/run/checkpoint/14 disk1/run/checkpoint/7%s%s", "", "") == 0);
    CHECK(on_three(RUN "--out run --resume auto") == 1);
    CHECK(has_said("rank 1: run/checkpoint/7/agent-2.ckpt is not there"));
    CHECK(ct_file_exists("disk1/run/checkpoint/14/manifest.json"));
    clear_disks();
}

static void a_first_checkpoint_that_only_some_have_counts_for_nothing(void) {
    NEEDS_MPI();
    begin_three();
    CHECK(shell("rm -r disk?/run/checkpoint/14 disk1/run/checkpoint%s%s", "", "") == 0);
    CHECK(on_three(RUN "--out run --resume auto") == 0 && has_said("begins again"));
    CHECK(all_have_results());
    clear_disks();
}

static void a_run_that_was_killed_at_its_end_is_ended(void) {
    NEEDS_MPI();
    CHECK(alone(RUN "--out whole --quiet") == 0);
    CHECK(on_three(RUN "--out run") == 0);
    CHECK(remove("disk0/run/summary.json") == 0); /* the last file of all */
    goes_on_from(28);
    clear_disks();
}

/* While results are taken back, nobody may believe that they are still there. */
static void a_finished_run_is_taken_up_by_rank_0_first(void) {
    NEEDS_MPI();
    CHECK(alone(RUN "--out whole --quiet") == 0);
    CHECK(on_three(RUN "--out run --quiet") == 0);
    CHECK(shell("mkdir -p disk0/run/ledger.csv/in-the-way%s%s", "", "") == 0);
    CHECK(on_three(" train --resume run") == 1 && has_said("run/ledger.csv: Directory not empty"));
    CHECK(!is_finished("disk0/run") && is_finished("disk1/run") && is_finished("disk2/run"));
    remove_tree("disk0/run/ledger.csv");
    goes_on_from(28);
    clear_disks();
}

/* ---- what was there before ---- */

static void an_empty_disk_is_told_with_what_it_lacks(void) {
    NEEDS_MPI();
    begin_three();
    remove_tree("disk1/run");
    CHECK(on_three(RUN "--out run --resume auto") == 1);
    CHECK(has_said("rank 1: run/checkpoint/14/agent-2.ckpt is not there, and rank 1 needs it"));
    CHECK(has_said("start the ranks that the run had before, or copy the file"));
    CHECK(on_three(" train --resume run") == 1 && has_said("run/checkpoint/14/agent-2.ckpt"));
    CHECK(!ct_dir_exists("disk1/run") && !is_finished("disk0/run"));
    CHECK(on_three(RUN "--out run --resume auto --force") == 0 && has_said("is replaced"));
    CHECK(all_have_results());
    clear_disks();
}

/* Other ranks need other files; once these have been copied, the run goes on. */
static void another_number_of_ranks_needs_the_files_of_its_agents(void) {
    NEEDS_MPI();
    begin_three();
    CHECK(on_disks(2, "", " train --resume run --iterations 0") == 1);
    CHECK(has_said("run/checkpoint/7/agent-2.ckpt is not there, and rank 0 needs it"));
    CHECK(alone(" train --resume disk0/run --iterations 0") == 1);
    CHECK(has_said("disk0/run/checkpoint/7/agent-2.ckpt is not there"));
    CHECK(shell("cp disk1/run/checkpoint/14/agent-2.ckpt disk0/run/checkpoint/14 && "
                "cp disk2/run/checkpoint/14/agent-*.ckpt disk1/run/checkpoint/14%s%s",
                "", "") == 0);
    CHECK(on_disks(2, "", " train --resume run --iterations 0") == 0);
    CHECK(has_said("going on after iteration 14") && same_results("whole", "disk0/run"));
    CHECK(same_file("whole", "disk1/run", "consensus.safetensors") && is_tidy());
    clear_disks();
}

/* A new disk: the agents' files were kept somewhere, the rest comes from another rank. */
static void a_disk_is_made_anew_from_its_agents_files(void) {
    NEEDS_MPI();
    begin_three();
    CHECK(shell("mv disk1/run old && mkdir -p disk1/run/checkpoint/14 && "
                "cp old/checkpoint/14/agent-*.ckpt disk0/run/checkpoint/14/manifest.json "
                "disk1/run/checkpoint/14%s%s",
                "", "") == 0);
    goes_on_from(14);
    remove_tree("old");
    clear_disks();
}

static void a_finished_run_is_left_alone_by_all(void) {
    NEEDS_MPI();
    struct stat first, second;
    CHECK(alone(RUN "--out whole --quiet") == 0);
    CHECK(on_three(RUN "--out run --resume auto --quiet") == 0 && all_have_results());
    REQUIRE(stat("disk1/run/summary.json", &first) == 0);
    CHECK(on_three(RUN "--out run --resume auto") == 0 && has_said("run is finished already"));
    REQUIRE(stat("disk1/run/summary.json", &second) == 0);
    CHECK(first.st_ino == second.st_ino && first.st_mtim.tv_nsec == second.st_mtim.tv_nsec);
    remove_tree("disk1/run"); /* rank 0 knows */
    CHECK(on_three(RUN "--out run --resume auto") == 0 && has_said("run is finished already"));
    CHECK(!ct_dir_exists("disk1/run"));
    clear_disks();
}

/* A run in the way of one rank is in the way of all, and nobody has written anything yet. */
static void what_is_in_the_way_of_one_rank_is_replaced_only_by_force(void) {
    NEEDS_MPI();
    CHECK(alone(RUN "--out whole --quiet") == 0);
    CHECK(alone(RUN "--out disk2/run --lr 0.5 --quiet") == 0);
    CHECK(on_three(RUN "--out run") == 1 && has_said("rank 2: run/config.txt is there already"));
    CHECK(!ct_file_exists("disk0/run/config.txt") && !ct_file_exists("disk1/run/config.txt"));
    CHECK(on_three(RUN "--out run --resume auto") == 2);
    CHECK(has_said("rank 2: --lr 0.02 contradicts run/config.txt, which has 0.5"));
    CHECK(on_three(RUN "--out run --resume auto --force") == 0);
    CHECK(all_have_results());
    CHECK(on_three(RUN "--out run") == 1 && has_said("is there already"));
    CHECK(on_three(RUN "--out run --force --quiet") == 0 && all_have_results());
    clear_disks();
}

static void a_run_goes_on_in_other_folders(void) {
    NEEDS_MPI();
    begin_three();
    CHECK(on_three(" train --resume run --out moved --iterations 0") == 0);
    CHECK(same_results("whole", "disk0/moved") && is_finished("disk2/moved") && is_tidy());
    CHECK(ct_file_exists("disk1/moved/checkpoint/28/agent-2.ckpt") && !is_finished("disk1/run"));
    clear_disks();
}

/* ---- no room ---- */

/* A file of rank 1 may not be longer than 10 blocks of 512 bytes: an agent's is. */
#define SMALL_DISK "[ $OMPI_COMM_WORLD_RANK != 1 ] || ulimit -f 10;"

static void a_full_disk_of_one_rank_costs_checkpoints_and_nothing_else(void) {
    NEEDS_MPI();
    begin_three();
    on_disks(3, SMALL_DISK, RUN "--out run --resume auto");
    CHECK(has_said("no checkpoint at iteration 21, training goes on: rank 1: run/checkpoint/21/"));
    CHECK(has_said("File too large") && !is_finished("disk0/run") && is_tidy());
    for (int disk = 0; disk < 3; disk++) {
        char path[80];
        snprintf(path, sizeof path, "disk%d/run/checkpoint/21", disk);
        CHECK(!ct_dir_exists(path));
        snprintf(path, sizeof path, "disk%d/run/checkpoint/14/manifest.json", disk);
        CHECK(ct_file_exists(path));
    }
    CHECK(on_disks(3, SMALL_DISK, RUN "--out run --resume auto --checkpoint-strict") == 1);
    CHECK(has_said("rank 1: run/checkpoint/21/"));
    goes_on_from(14);
    clear_disks();
}

int main(void) {
    prepare_ranks();
    if (!enter_folder()) return 1;
    TEST(every_rank_keeps_its_own_agents_and_no_others);
    TEST(the_name_of_the_folder_may_have_the_ranks_number);
    TEST(ranks_of_one_machine_share_its_disk);
    TEST(several_seeds_have_their_folders_on_every_disk);
    TEST(a_kill_is_made_good_by_the_same_words);
    TEST(a_checkpoint_that_one_rank_lacks_is_nobodys);
    TEST(without_a_checkpoint_in_common_nothing_is_thrown_away);
    TEST(a_first_checkpoint_that_only_some_have_counts_for_nothing);
    TEST(a_run_that_was_killed_at_its_end_is_ended);
    TEST(a_finished_run_is_taken_up_by_rank_0_first);
    TEST(an_empty_disk_is_told_with_what_it_lacks);
    TEST(another_number_of_ranks_needs_the_files_of_its_agents);
    TEST(a_disk_is_made_anew_from_its_agents_files);
    TEST(a_finished_run_is_left_alone_by_all);
    TEST(what_is_in_the_way_of_one_rank_is_replaced_only_by_force);
    TEST(a_run_goes_on_in_other_folders);
    TEST(a_full_disk_of_one_rank_costs_checkpoints_and_nothing_else);
    remove_tree(folder);
    return test_report();
}
