/* crosstalk sweep: combinations of values, and runs that share a launch. */
#include "studies.h"

#include "ct_config.h"

#define SHAPES                                                                                     \
    "--quiet --dataset shapes --model mlp:4 --train-samples 400 --test-samples 100 --batch-size "  \
    "8 "                                                                                           \
    "--agents 4 --epochs 4 --lr 0.02 --threads 1 "
#define LAMBDAS "--algorithm ccl --seeds 1,2 --lambda-m 1,.1,0.03 --lambda-d .1,0 "

static bool same_run(const char *a, const char *b) {
    static const char *const keys[] = {"ce",
                                       "mv",
                                       "dv",
                                       "consensus_loss",
                                       "consensus_distance",
                                       "consensus_loss_std",
                                       "bytes_sent_per_agent",
                                       "iteration"};
    char x[512], y[512];
    bool same = true;
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        same = same && of_summary(a, keys[k]) == of_summary(b, keys[k]);
    for (int seed = 1; seed <= 2; seed++) {
        snprintf(x, sizeof x, "%s/seed-%d/consensus.safetensors", a, seed);
        snprintf(y, sizeof y, "%s/seed-%d/consensus.safetensors", b, seed);
        same = same && same_files(x, y);
    }
    if (!same) printf("    %s and %s differ\n", a, b);
    return same;
}

/* Six pairs of lambdas in launches of two and three, in one, and each alone: the same bits. */
static void lambdas_that_share_a_launch_give_the_same_bits(void) {
    static const char *const pairs[] = {"1", "1", ".1", ".1", "0.03", "0.03"};
    succeeds("sweep " SHAPES LAMBDAS "--keep --out alone --at-once 1");
    succeeds("sweep " SHAPES LAMBDAS "--keep --out shared");
    succeeds("sweep " SHAPES LAMBDAS "--keep --out some --at-once 6");
    for (int k = 0; k < 6; k++) {
        char dir[3][256];
        static const char *const roots[] = {"alone", "shared", "some"};
        for (int r = 0; r < 3; r++)
            snprintf(dir[r], sizeof dir[r], "%s/lambda-m_%s-lambda-d_%s", roots[r], pairs[k],
                     k % 2 == 0 ? ".1" : "0");
        CHECK(same_run(dir[0], dir[1]) && same_run(dir[0], dir[2]));
    }
    /* the runs, three tables, a figure (its forms) and a page: nothing else is left */
    CHECK(n_files("shared") == 6 + 3 + (CT_WITH_RSVG ? 3 : 1) + 1);
    succeeds("sweep " SHAPES LAMBDAS "--out shared --dry-run");
    CHECK(strstr(said.out, "0 of 6 runs to do") != NULL);
}

/* Stopped before its end, a shared launch goes on; one that was only not yet put away is taken. */
static void a_shared_launch_goes_on_after_an_interruption(void) {
#define SHARED "cut2/shared-lambda-d_.1"
#define TWO    "sweep " SHAPES "--algorithm ccl --seeds 1,2 --lambda-m 1 --lambda-d .1,0 --keep --out "
    succeeds(TWO "whole2");
    succeeds("train " SHAPES "--algorithm ccl --seeds 1,2 --lambdas 1:0.1,1:0 --iterations 20 "
             "--checkpoint-every end --out " SHARED);
    CHECK(unlink(SHARED "/m1-d0.1/summary.json") == 0 && unlink(SHARED "/m1-d0/summary.json") == 0);
    ct_json *first = read_json(SHARED "/m1-d0/seed-1/metrics.jsonl", 0);
    double seconds = number_of(first, "seconds"); /* as the clock has it once only */
    ct_json_free(&first);
    succeeds(TWO "cut2");
    first = read_json("cut2/lambda-d_0/seed-1/metrics.jsonl", 0);
    CHECK(number_of(first, "seconds") == seconds);
    ct_json_free(&first);
    CHECK(same_run("cut2/lambda-d_.1", "whole2/lambda-d_.1"));
    CHECK(same_run("cut2/lambda-d_0", "whole2/lambda-d_0"));
    CHECK(!ct_dir_exists(SHARED));
}

/* A launch of two cells that was interrupted after 20 iterations. */
static void leave_a_shared_launch(const char *dir) {
    char words[1024], path[512];
    static const char *const pairs[] = {"m1-d0.1", "m1-d0"};
    snprintf(words, sizeof words,
             "train " SHAPES "--algorithm ccl --seeds 1,2 --lambdas 1:0.1,1:0 --iterations 20 "
             "--checkpoint-every end --out %s",
             dir);
    succeeds(words);
    for (int k = 0; k < 2; k++) {
        snprintf(path, sizeof path, "%s/%s/summary.json", dir, pairs[k]);
        CHECK(unlink(path) == 0);
    }
}

/* An option that cannot be is no reason to throw away what was trained. */
static void a_restart_that_fails_leaves_a_shared_launch_as_it_is(void) {
    leave_a_shared_launch("cut3/shared-lambda-d_.1");
    REFUSES(2, TWO "cut3 --checkpoint-every 10x", "'10x'");
    CHECK(ct_dir_exists("cut3/shared-lambda-d_.1/checkpoint/20"));
    succeeds(TWO "cut3");
    CHECK(same_run("cut3/lambda-d_.1", "whole2/lambda-d_.1"));
}

/* The same sweep, begun twice. */
static void a_shared_launch_that_is_in_work_is_not_touched(void) {
    int lock = -1;
    leave_a_shared_launch("twice/shared-lambda-d_.1");
    REQUIRE(ct_dir_lock("twice/shared-lambda-d_.1", &lock));
    REFUSES(1, TWO "twice", "shared-lambda-d_.1 is being trained by another process");
    CHECK(ct_dir_exists("twice/shared-lambda-d_.1/checkpoint/20"));
    succeeds("sweep " SHAPES "--algorithm ccl --lambda-m 0.5,0.25 --out twice"); /* other cells */
    CHECK(ct_dir_exists("twice/shared-lambda-d_.1/checkpoint/20"));
    ct_dir_unlock(&lock);
    succeeds(TWO "twice");
    CHECK(same_run("twice/lambda-d_.1", "whole2/lambda-d_.1"));
}

/* What is not asked for, or finished, need not be possible here. */
static void only_what_is_to_be_run_is_checked(void) {
    REFUSES(2, "sweep " SHAPES "--algorithm dsgdm --topology ring,dyck --out some", "dyck");
    succeeds("sweep " SHAPES "--algorithm dsgdm --topology ring,dyck --out some --only ring");
    CHECK(ct_file_exists("some/topology_ring/summary.json"));
    put("edges.txt", "0 1\n1 2\n2 3\n");
    succeeds("sweep " SHAPES "--algorithm dsgdm --topology file:edges.txt,ring --out some2");
    CHECK(unlink("edges.txt") == 0);
    succeeds("sweep " SHAPES "--algorithm dsgdm --topology file:edges.txt,ring --out some2");
}

/* Whatever the cells are asked for in, the launch that has them goes on. */
static void a_shared_launch_goes_on_for_one_of_its_cells(void) {
    leave_a_shared_launch("cut4/shared-lambda-d_.1");
    CHECK(run(TWO "cut4 --only lambda-d_0") == 0);
    CHECK(same_run("cut4/lambda-d_.1", "whole2/lambda-d_.1"));
    CHECK(same_run("cut4/lambda-d_0", "whole2/lambda-d_0"));
    CHECK(!ct_dir_exists("cut4/shared-lambda-d_.1"));
    leave_a_shared_launch("cut5/shared-lambda-d_.1");
    succeeds(TWO "cut5 --at-once 1");
    CHECK(same_run("cut5/lambda-d_0", "whole2/lambda-d_0"));
    CHECK(!ct_dir_exists("cut5/shared-lambda-d_.1"));
}

/* Killed between two of the runs that it put away: the others are taken, not trained again. */
static void finished_runs_of_a_shared_launch_are_put_away(void) {
    struct stat before, after;
    succeeds("train " SHAPES "--algorithm ccl --seeds 1,2 --lambdas 1:0.1,1:0 --out "
             "cut6/shared-lambda-d_.1");
    CHECK(rename("cut6/shared-lambda-d_.1/m1-d0.1", "cut6/lambda-d_.1") == 0);
    REQUIRE(stat("cut6/shared-lambda-d_.1/m1-d0/summary.json", &before) == 0);
    succeeds(TWO "cut6 --at-once 1");
    REQUIRE(stat("cut6/lambda-d_0/summary.json", &after) == 0);
    CHECK(before.st_ino == after.st_ino && !ct_dir_exists("cut6/shared-lambda-d_.1"));
    CHECK(same_run("cut6/lambda-d_0", "whole2/lambda-d_0"));
}

static void a_shared_launch_with_other_options_is_left_alone(void) {
    leave_a_shared_launch("cut7/shared-lambda-d_.1");
    CHECK_OK(ct_dir_create("cut7/shared-thoughts"));
    put("cut7/shared-thoughts/mine.txt", "somebody's");
    CHECK(run("sweep --dataset shapes --model mlp:4 --train-samples 400 --test-samples 100 "
              "--batch-size 8 --agents 4 --epochs 1 --lr 0.03 --threads 1 --algorithm ccl "
              "--lambda-d .1,0 --out cut7") == 0);
    CHECK(strstr(said.err, "cut7/shared-lambda-d_.1 was begun with other options") != NULL);
    CHECK(ct_dir_exists("cut7/shared-lambda-d_.1/checkpoint/20"));
    CHECK(ct_file_exists("cut7/shared-thoughts/mine.txt"));
    CHECK(ct_dir_exists("cut7/lambda-d_0") && !ct_dir_exists("cut7/shared-lambda-d_.1-2"));
}

/* The same table, whether its runs have just been made or were there. */
static void a_shared_launch_knows_the_end_of_its_runs(void) {
    succeeds("sweep " SHAPES "--algorithm ccl --lambda-m 1,.1 --show late,consensus --out ends");
    static char first[SAID];
    snprintf(first, sizeof first, "%s", said.out);
    succeeds("sweep " SHAPES "--algorithm ccl --lambda-m 1,.1 --show late,consensus --out ends");
    CHECK(strcmp(first, said.out) == 0);
}

static void a_sweep_lists_the_best_first(void) {
    ct_blob csv = {0};
    double before = INFINITY;
    int n = 0;
    succeeds("sweep " SHAPES "--algorithm dsgdm,qg-dsgdm --momentum=0,0.9 --show loss,consensus "
             "--sort-by consensus --out grid");
    REQUIRE_OK(ct_file_read("grid/table.csv", 1 << 20, &csv));
    for (char *line = (char *)csv.bytes; (line = strstr(line, ",consensus,")) != NULL; n++) {
        line += strlen(",consensus,");
        double value = strtod(line, NULL);
        CHECK(value > 0 && value <= before);
        before = value;
    }
    CHECK(n == 4);
    ct_blob_free(&csv);
    CHECK(strstr(said.out, "algorithm  momentum  test loss  consensus %") != NULL);
    CHECK(ct_file_exists("grid/algorithm_qg-dsgdm-momentum_0.9/summary.json"));
}

static void another_sweep_without_a_name_gets_a_folder_of_its_own(void) {
    remove_tree("runs");
    succeeds("sweep " SHAPES "--weight-decay 0,0.1");
    succeeds("sweep " SHAPES "--weight-decay 0,0.1");
    CHECK(n_files("runs") == 1 && ct_file_exists("runs/sweep-shapes-weight-decay/table.csv"));
    succeeds("sweep " SHAPES "--weight-decay 0,0.1 --momentum 0.5");
    CHECK(n_files("runs") == 2 && ct_file_exists("runs/sweep-shapes-weight-decay-2/table.csv"));
    remove_tree("runs");
}

static void a_grid_may_have_values_with_commas(void) {
    succeeds("sweep " SHAPES "--seeds 1,2 --grid lr-milestones=0.5,0.75|none;nesterov=on,off "
             "--out milestones --dry-run");
    CHECK(strstr(said.out, "4 of 4 runs to do") != NULL);
    CHECK(strstr(said.out, "--lr-milestones 0.5,0.75 ") != NULL);
    CHECK(strstr(said.out, "--seeds 1,2 ") != NULL);
}

/* One that diverges takes no other with it. */
static void a_pair_that_diverges_is_alone_in_that(void) {
    succeeds("sweep " SHAPES "--algorithm ccl --lambda-m 1e6,0.1 --lambda-d 0 "
             "--ccl-reduction sum --out split");
    bool one = contains("split/table.csv", ",diverged,lambda-m_1e6\n");
    CHECK(one && ct_file_exists("split/lambda-m_1e6/diverged.json"));
    CHECK(contains("split/table.csv", ",done,lambda-m_0.1\n"));
    CHECK(!ct_dir_exists("split/shared-lambda-m_1e6"));
}

static void put_idx(const char *dir, const char *name, int n, bool has_pixels, int shift) {
    char path[256];
    uint8_t bytes[16 + 64 * 16] = {0, 0, 8, has_pixels ? 3 : 1, 0, 0, 0, (uint8_t)n};
    size_t head = has_pixels ? 16 : 8;
    if (has_pixels) bytes[11] = bytes[15] = 4;
    for (int i = 0; i < n * (has_pixels ? 16 : 1); i++)
        bytes[head + (size_t)i] = (uint8_t)(has_pixels ? 7 * i + shift : i / 3 % 2 ^ (i < shift));
    CHECK_OK(ct_dir_create(dir));
    snprintf(path, sizeof path, "%s/%s", dir, name);
    CHECK_OK(ct_file_write(path, bytes, head + (size_t)n * (has_pixels ? 16 : 1)));
}

/* 64 pictures of 4x4 pixels in two classes. */
static void put_data(const char *dir, int shift) {
    put_idx(dir, "train-images-idx3-ubyte", 64, true, shift);
    put_idx(dir, "train-labels-idx1-ubyte", 64, false, shift);
    put_idx(dir, "t10k-images-idx3-ubyte", 16, true, shift);
    put_idx(dir, "t10k-labels-idx1-ubyte", 16, false, shift);
}

/* Where data lie does not matter; which they are does, whatever their folder is called. */
static void results_of_other_data_are_not_taken(void) {
#define PETS                                                                                       \
    "sweep --quiet --dataset idx --model mlp:4 --agents 2 --batch-size 4 --epochs 1 --threads 1 "  \
    "--lr 0.02,0.01 "
    char words[1024];
    put_data("pets/cats", 0);
    put_data("pets/dogs", 3);
    put_data("pets/same", 0);
    put_data("moved/cats", 0);
    put_data("moved/cats-32", 0);
    put_data("other/cats", 5);
    succeeds(PETS "--data-dir pets/cats --out all/pets");
    succeeds(PETS "--data-dir pets/cats/ --out all/pets");
    succeeds(PETS "--data-dir moved/cats --out all/pets");
    succeeds(PETS "--data-dir moved/cats-32 --out all/pets");
    succeeds(PETS "--data-dir pets/same --out all/pets");
    succeeds(PETS "--table-only --out all/pets");
    CHECK(symlink("pets/cats", "link") == 0);
    succeeds(PETS "--data-dir link --out all/pets");
    REFUSES(2, PETS "--data-dir pets/dogs --out all/pets",
            "was run with --data-dir pets/cats, and here it is pets/dogs", "--force");
    REFUSES(2, PETS "--data-dir other/cats --out all/pets", "which may be other data");
    REFUSES(2, PETS "--data-dir other/cats --out all/pets --table-only", "which may be other data");
    succeeds(PETS "--data-dir other/cats --out all/more --reuse --dry-run");
    CHECK(strstr(said.out, "2 of 2 runs to do") != NULL);
    succeeds(PETS "--data-dir moved/cats --out all/more --reuse --dry-run");
    CHECK(strstr(said.out, "0 of 2 runs to do") != NULL);
    /* an absolute path leaves its last part in light results */
    snprintf(words, sizeof words, PETS "--data-dir %s/pets/cats --out absolute", folder);
    succeeds(words);
    succeeds(PETS "--data-dir moved/cats --out absolute");
    REFUSES(2, PETS "--data-dir pets/dogs --out absolute", "--data-dir cats");
    /* files that were replaced since */
    put_data("pets/cats", 5);
    REFUSES(2, PETS "--data-dir pets/cats --out all/pets", "which may be other data");
}

static void lists_that_make_no_sweep_are_refused(void) {
    REFUSES(2, "sweep --lr 0.1", "give an option several values");
    REFUSES(2, "sweep --lr 0.1,0.1", "--lr: 0.1 is there twice");
    REFUSES(2, "sweep --lr 0.1,fast", "--lr: 'fast' is not a number");
    REFUSES(2, "sweep --lr 0.1,0.2 --lr 0.3", "--lr has both a list and a single value");
    REFUSES(2, "sweep --grid lr", "--grid: 'lr' is not of the form");
    REFUSES(2, "sweep --grid rate=1,2", "unknown option --rate");
    REFUSES(2, "sweep --grid out=x,y", "'out' cannot be swept over");
    REFUSES(2, "sweep --grid resume=x", "'resume' cannot be swept over");
    REFUSES(2, "sweep --lambda-m 0.1,.1", "--lambda-m: .1 is there twice");
    REFUSES(2, "sweep --lr 1,2 --show speed", "no metric 'speed'");
    REFUSES(2, "sweep --lr 1,2 --at-once 0", "--at-once");
    REFUSES(2, "train --dataset shapes --loss ccl --lambdas 0.1", "'0.1' is no pair");
    REFUSES(2, "train --dataset shapes --lambdas 1:1,1:1", "1:1 is there twice");
    REFUSES(2, "train --dataset shapes --lambdas 1:1 --lambda-m 1", "--lambdas names them all");
    REFUSES(2, "train --dataset shapes --lambdas 1:1 --loss ce", "need --loss ccl");
}

/* Options by their names, and what the clock has left. */
static void scripts_read_options_and_states(void) {
    ct_json *json = NULL;
    succeeds("sweep " SHAPES "--algorithm dsgd,dsgdm --momentum 0.5,0.9 --json --out scripted");
    CHECK_OK(ct_json_parse(said.out, strlen(said.out), "sweep", &json));
    REQUIRE(json != NULL && json->n_children == 4);
    for (const ct_json *row = json->child; row != NULL; row = row->next) {
        const ct_json *options = ct_json_get(row, "options");
        REQUIRE(options != NULL && options->n_children == 2);
        const char *momentum = ct_json_get(options, "momentum")->string;
        char dir[128];
        snprintf(dir, sizeof dir, "scripted/algorithm_%s-momentum_%s",
                 ct_json_get(options, "algorithm")->string, momentum);
        CHECK(strcmp(ct_json_get(row, "run")->string, dir) == 0);
        CHECK(strcmp(ct_json_get(row, "state")->string, "done") == 0);
    }
    ct_json_free(&json);
}

/* The same data with another test set: everything else is the same, and so is what is picked. */
static void what_is_picked_does_not_depend_on_the_test_set(void) {
#define PICK                                                                                       \
    "sweep --quiet --pick --dataset idx --model mlp:4 --agents 4 --partition iid --batch-size 8 "  \
    "--epochs 3 --lr 0.5,0.05,0.0005 --threads 1 "
    static char first[SAID];
    ct_blob labels = {0};
    CHECK(system("cp -rL fixtures/data flipped && chmod -R u+w flipped") == 0);
    CHECK_OK(ct_file_read("flipped/t10k-labels-idx1-ubyte", 1 << 20, &labels));
    for (size_t k = 8; k < labels.n; k++) labels.bytes[k] = (uint8_t)(3 - labels.bytes[k]);
    CHECK_OK(ct_file_write("flipped/t10k-labels-idx1-ubyte", labels.bytes, labels.n));
    ct_blob_free(&labels);
    succeeds(PICK "--data-dir fixtures/data --out picked");
    snprintf(first, sizeof first, "%s", said.out);
    succeeds(PICK "--data-dir flipped --out picked2");
    CHECK(of_summary("picked/lr_0.05", "consensus_loss") !=
          of_summary("picked2/lr_0.05", "consensus_loss"));
    const char *a = strstr(first, "picked: "), *b = strstr(said.out, "picked: ");
    REQUIRE(a != NULL && b != NULL);
    CHECK(strcspn(a, "\n") == strcspn(b, "\n") && strncmp(a, b, strcspn(a, "\n")) == 0);
    CHECK(strstr(a, "\nwith all training samples: crosstalk train ") != NULL);
    CHECK(strstr(first, "consensus") == NULL); /* not even shown */
    REFUSES(2, PICK "--data-dir flipped --out picked3 --sort-by consensus", "--sort-by");
    succeeds(PICK "--data-dir fixtures/data --algorithm dsgd,dsgdm --out methods");
    const char *line = strstr(said.out, "picked: --lr ");
    REQUIRE(line != NULL && strstr(line + 1, "picked: --lr ") != NULL); /* one of each */
    CHECK(strstr(said.out, "crosstalk compare --algorithms dsgd:lr=") != NULL);
    CHECK(strstr(said.out, ",dsgdm:lr=") != NULL && strstr(said.out, "--quiet") == NULL);
}

int main(void) {
    if (!enter_folder()) return 1;
    TEST(lambdas_that_share_a_launch_give_the_same_bits);
    TEST(a_shared_launch_goes_on_after_an_interruption);
    TEST(a_restart_that_fails_leaves_a_shared_launch_as_it_is);
    TEST(a_shared_launch_that_is_in_work_is_not_touched);
    TEST(only_what_is_to_be_run_is_checked);
    TEST(a_shared_launch_goes_on_for_one_of_its_cells);
    TEST(finished_runs_of_a_shared_launch_are_put_away);
    TEST(a_shared_launch_with_other_options_is_left_alone);
    TEST(a_shared_launch_knows_the_end_of_its_runs);
    TEST(a_sweep_lists_the_best_first);
    TEST(another_sweep_without_a_name_gets_a_folder_of_its_own);
    TEST(a_grid_may_have_values_with_commas);
    TEST(a_pair_that_diverges_is_alone_in_that);
    TEST(results_of_other_data_are_not_taken);
    TEST(lists_that_make_no_sweep_are_refused);
    TEST(what_is_picked_does_not_depend_on_the_test_set);
    TEST(scripts_read_options_and_states);
    leave_folder();
    remove_tree(folder);
    return test_report();
}
