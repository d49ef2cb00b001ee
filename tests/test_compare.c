/* crosstalk compare: rows of the same runs, a table in three forms. */
#include "program.h"

#define COMPARE                                                                                    \
    "compare --quiet --model mlp:8 --agents 5 --batch-size 8 --partition iid --threads 1 " DATA    \
    "--epochs 2 --lr 0.05 --out table "

static void a_comparison_gives_a_row_and_a_run_for_every_method(void) {
    CHECK(run(COMPARE "--algorithms dsgdm,gt:lr=0.02:momentum=0,ccl,local") == 0);
    CHECK(strstr(said.out, "consensus %") != NULL && strstr(said.out, "overhead") != NULL);
    CHECK(strstr(said.out, "\ndsgdm ") != NULL && strstr(said.out, "\nccl ") != NULL);
    CHECK(strstr(said.out, "\ngt:lr=0.02:momentum=0 ") != NULL);
    CHECK(ct_file_exists("table/compare.md") && ct_file_exists("table/compare.csv"));
    CHECK(ct_file_exists("table/dsgdm/summary.json") && ct_file_exists("table/ccl/summary.json"));
    CHECK(ct_file_exists("table/gt_lr_0.02_momentum_0/config.txt"));
}

/* The same as every study's: nothing is run, a part is run, and a method wins over the command
 * line. */
static void a_comparison_is_planned_and_run_in_parts_like_a_study(void) {
    succeeds(COMPARE "--algorithms dsgdm,gt:lr=0.02 --out plan --dry-run");
    CHECK(strstr(said.out, "2 of 2 runs to do") != NULL && !ct_dir_exists("plan"));
    CHECK(strstr(said.out, "--lr 0.05") != NULL && strstr(said.out, "--lr 0.02") != NULL);
    succeeds(COMPARE "--algorithms dsgdm,gt:lr=0.02 --out plan --only gt");
    CHECK(strstr(said.out, "1 of 2 runs are not there yet") != NULL);
    CHECK(ct_file_exists("plan/gt_lr_0.02/consensus.safetensors") && !ct_dir_exists("plan/dsgdm"));
    static char csv[SAID];
    slurp("plan/compare.csv", csv); /* what has ended, and no more */
    CHECK(strstr(csv, "\ngt:lr=0.02,0.") != NULL && strstr(csv, "\ndsgdm") == NULL);
    CHECK(strncmp(csv, "method,consensus_accuracy,consensus_accuracy_std,local_acc", 58) == 0);
    succeeds(COMPARE "--algorithms dsgdm,gt:lr=0.02 --out plan");
    CHECK(ct_file_exists("plan/report.html") && ct_file_exists("plan/dsgdm/summary.json"));
    REFUSES(2, COMPARE "--algorithms dsgdm --out more --reuse", "--reuse copies what tables need");
}

/* A row of the table is what train alone gives. */
static void a_row_is_the_run_that_train_gives(void) {
    ct_blob csv = {0};
    char consensus[32];
    CHECK(run(TINY "--algorithm dsgdm --loss ce --force") == 0);
    ct_blob blob = {0};
    ct_json *summary = NULL;
    REQUIRE_OK(ct_file_read("run/summary.json", 1 << 20, &blob));
    REQUIRE_OK(ct_json_parse((const char *)blob.bytes, blob.n, "summary", &summary));
    snprintf(consensus, sizeof consensus, "dsgdm,%.9g,",
             ct_json_get(summary, "consensus_accuracy")->number);
    REQUIRE_OK(ct_file_read("table/compare.csv", 1 << 20, &csv));
    CHECK(strstr((const char *)csv.bytes, consensus) != NULL);
    ct_blob_free(&blob);
    ct_blob_free(&csv);
    ct_json_free(&summary);
}

static void several_seeds_give_deviations(void) {
    CHECK(run(COMPARE "--algorithms dsgd,d2+ccl --seeds 1,2 --force") == 0);
    CHECK(strstr(said.out, "\xC2\xB1") != NULL);
    CHECK(ct_file_exists("table/d2+ccl/seed-2/summary.json"));
}

#define LOUD                                                                                       \
    "compare --model mlp:8 --agents 5 --batch-size 8 --partition iid --threads 1 " DATA            \
    "--epochs 2 --lr 0.05 --out loud --algorithms dsgd,dsgdm "

static void a_table_ends_with_its_folder_or_is_json(void) {
    succeeds(LOUD);
    CHECK(strstr(said.out, "\nfolder: loud (") != NULL);
    CHECK(strstr(said.out, "\nnext: crosstalk serve loud\n") != NULL);
    succeeds(LOUD "--table-only --json");
    ct_json *json = NULL, *summary = read_json("loud/dsgdm/summary.json", -1);
    CHECK_OK(ct_json_parse(said.out, strlen(said.out), "compare", &json));
    REQUIRE(json != NULL && json->n_children == 2);
    const ct_json *second = json->child->next;
    CHECK(strcmp(ct_json_get(second, "row")->string, "dsgdm") == 0);
    CHECK(strcmp(ct_json_get(second, "state")->string, "done") == 0);
    CHECK(number_of(second, "consensus_accuracy") == number_of(summary, "consensus_accuracy"));
    ct_json_free(&json);
    ct_json_free(&summary);
    remove_tree("loud");
}

static void a_method_that_diverges_gets_a_row_that_says_so(void) {
    CHECK(run(COMPARE "--algorithms dsgd:lr=1e6,dsgdm --force") == 0);
    CHECK(strstr(said.out, "diverged") != NULL && strstr(said.out, "\ndsgdm ") != NULL);
}

static void unknown_methods_are_refused_before_anything_is_trained(void) {
    CHECK(run("compare --quiet " DATA "--agents 5 --out nothing --algorithms dsgdm,sgdd") == 2);
    CHECK(strstr(said.err, "sgdd") != NULL);
    CHECK(run("compare --quiet " DATA "--out nothing --algorithms dsgdm,gt:lr") == 2);
    CHECK(run("compare --quiet " DATA "--out nothing --algorithms dsgdm,dsgdm") == 2);
    CHECK(strstr(said.err, "twice") != NULL);
    CHECK(run("compare --quiet " DATA "--out nothing --algorithms dsgdm+dqn") == 2);
    CHECK(run("compare --quiet " DATA "--out nothing") == 2);
    CHECK(strstr(said.err, "--algorithms") != NULL);
    CHECK(!ct_dir_exists("nothing"));
}

static void what_makes_no_comparison_is_refused_before_anything_is_trained(void) {
#define NOTHING "compare --quiet " DATA "--agents 5 --batch-size 8 --out nothing "
    REFUSES(2, NOTHING "--algorithms {}", "--algorithms names no method");
    REFUSES(2, NOTHING "--algorithms dsgdm,ccl --lambdas 1:1,1:0", "--lambdas makes several runs");
    REFUSES(2, NOTHING "--algorithms dsgdm:out=foo", "'out' has no place in a method");
    REFUSES(2, NOTHING "--algorithms dsgdm:seeds=1", "'seeds' has no place in a method");
    REFUSES(2, NOTHING "--algorithms dsgdm:force=on", "'force' has no place in a method");
    REFUSES(2, NOTHING "--algorithms ccl:lambdas=1", "'lambdas' has no place in a method");
    REFUSES(2, NOTHING "--algorithms dsgdm:resume=x", "'resume' has no place in a method");
    REFUSES(2, NOTHING "--algorithms dsgdm --resume x", "are resumed by the same command");
    REFUSES(2, NOTHING "--algorithms dsgdm,gt:topology=rign", "no --topology 'rign'");
    CHECK(!ct_dir_exists("nothing") && !ct_dir_exists("foo"));
}

static void a_comparison_without_a_name_has_a_flat_one(void) {
    put("edges.txt", "0 1\n1 2\n2 3\n3 4\n4 0\n");
    succeeds("compare --quiet --model mlp:8 --agents 5 --batch-size 8 --partition iid --threads 1 "
             "--epochs 1 --topology file:./edges.txt --algorithms dsgd" DATA);
    CHECK(ct_file_exists("runs/compare-idx-file_._edges.txt5/compare.md"));
}

/* The table only grows; with other options, or without one of its methods, it is another one. */
static void an_earlier_comparison_is_not_replaced_without_force(void) {
    char before[SAID];
    CHECK(run(COMPARE "--algorithms dsgdm") == 1);
    CHECK(strstr(said.err, "table/compare.csv has dsgd:lr=1e6") != NULL);
    CHECK(strstr(said.err, "--force") != NULL);
    succeeds(COMPARE "--algorithms dsgd:lr=1e6,dsgdm");
    snprintf(before, sizeof before, "%s", said.out);
    CHECK(strstr(before, "diverged") != NULL);
    succeeds(COMPARE "--algorithms gt,dsgd:lr=1e6,dsgdm");
    const char *old = strstr(before, "\ndsgd:lr=1e6 ");
    CHECK(strstr(said.out, "\ngt ") != NULL && old != NULL && strstr(said.out, old) != NULL);
    REFUSES(2, COMPARE "--algorithms gt,dsgd:lr=1e6,dsgdm --momentum 0.5",
            "was run with --momentum 0.9", "--force");
    /* nor is a run that has begun with other options, and has no checkpoint */
    succeeds(COMPARE "--algorithms gt --out begun");
    CHECK(unlink("begun/gt/summary.json") == 0);
    REFUSES(2, COMPARE "--algorithms gt --out begun --weight-decay 0.5", "--weight-decay");
    CHECK(ct_file_exists("begun/gt/metrics.jsonl"));
    succeeds(COMPARE "--algorithms gt --out begun");
}

/* Only who names a folder must clear it. */
static void another_comparison_without_a_name_gets_a_folder_of_its_own(void) {
#define UNNAMED                                                                                    \
    "compare --quiet --model mlp:8 --agents 5 --batch-size 8 --partition iid --threads 1 " DATA
    remove_tree("runs");
    succeeds(UNNAMED "--epochs 1 --algorithms dsgd,gt");
    CHECK(n_files("runs") == 1 && ct_file_exists("runs/compare-idx-ring5/compare.csv"));
    succeeds(UNNAMED "--epochs 2 --algorithms dsgd,gt");
    CHECK(n_files("runs") == 2 && ct_file_exists("runs/compare-idx-ring5-2/gt/summary.json"));
    succeeds(UNNAMED "--epochs 1 --algorithms dsgd");
    CHECK(n_files("runs") == 3 && ct_file_exists("runs/compare-idx-ring5-3/compare.csv"));
    /* the same again is there already, and so is what was begun */
    CHECK(unlink("runs/compare-idx-ring5-2/gt/summary.json") == 0);
    succeeds(UNNAMED "--epochs 2 --algorithms dsgd,gt");
    CHECK(ct_file_exists("runs/compare-idx-ring5-2/gt/summary.json"));
    succeeds(UNNAMED "--epochs 1 --algorithms dsgd,gt,d2");
    CHECK(n_files("runs") == 3 && ct_file_exists("runs/compare-idx-ring5/d2/summary.json"));
    remove_tree("runs");
}

/* ---- graphs that change, as the program shows them ---- */

static void a_graph_that_changes_is_shown_step_by_step(void) {
    CHECK(run("topology --topology base --agents 6") == 0);
    CHECK(strstr(said.out, "step 4: 6 messages") != NULL);
    CHECK(strstr(said.out, "4 steps that repeat") != NULL);
    CHECK(run("topology --topology matchings --agents 6") == 0);
    CHECK(strstr(said.out, "drawn anew") != NULL);
    CHECK(run("topology --topology schedule:fixtures/related/directed.txt --agents 5") == 0);
    CHECK(strstr(said.out, "for sgp") != NULL);
    CHECK(run("list topologies") == 0);
    CHECK(strstr(said.out, "one-peer-exponential") != NULL && strstr(said.out, "ring") != NULL);
}

static void a_run_on_a_graph_that_changes_writes_its_files(void) {
    CHECK(run(TINY "--algorithm sgp --topology schedule:fixtures/related/directed.txt "
                   "--gossip-rounds 2 --force") == 0);
    ct_json *summary = read_json("run/summary.json", -1);
    REQUIRE(summary != NULL);
    const ct_json *accuracy = ct_json_get(summary, "accuracy");
    REQUIRE(accuracy != NULL);
    CHECK(number_of(accuracy, "gossip_rounds") == 2);
    CHECK(number_of(accuracy, "after_gossip_mean") >= 0);
    CHECK(number_of(accuracy, "consensus") == number_of(summary, "consensus_accuracy"));
    ct_json_free(&summary);
}

int main(void) {
    if (!enter_folder()) return 1;
    TEST(a_comparison_gives_a_row_and_a_run_for_every_method);
    TEST(a_comparison_is_planned_and_run_in_parts_like_a_study);
    TEST(a_row_is_the_run_that_train_gives);
    TEST(several_seeds_give_deviations);
    TEST(a_table_ends_with_its_folder_or_is_json);
    TEST(a_method_that_diverges_gets_a_row_that_says_so);
    TEST(unknown_methods_are_refused_before_anything_is_trained);
    TEST(what_makes_no_comparison_is_refused_before_anything_is_trained);
    TEST(a_comparison_without_a_name_has_a_flat_one);
    TEST(an_earlier_comparison_is_not_replaced_without_force);
    TEST(another_comparison_without_a_name_gets_a_folder_of_its_own);
    TEST(a_graph_that_changes_is_shown_step_by_step);
    TEST(a_run_on_a_graph_that_changes_writes_its_files);
    leave_folder();
    return test_report();
}
