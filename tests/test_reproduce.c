/* crosstalk reproduce: studies read from text, run, interrupted, reused and printed. */
#include "markup.h"
#include "studies.h"

/* Milliseconds a run. */
#define OPTIONS                                                                                    \
    "[options]\ndataset = shapes\nmodel = mlp:4\ntrain-samples = 400\ntest-samples = 100\n"        \
    "batch-size = 8\nagents = 4\nepochs = 2\nlr = 0.02\nseeds = 1,2\nthreads = 1\n"
#define TOY                                                                                        \
    "title = A & toy\nrows = kind | method\ncurves = ce, mv\n" OPTIONS                             \
    "[column alpha = 0.1]\nalpha = 0.1\n[column alpha = 1]\nalpha = 1\n"                           \
    "[row plain | IID]\nalgorithm = dsgdm\npartition = iid\ncells = + | <\npaper = 50.00 +- 1\n"   \
    "[row plain | CCL]\nalgorithm = ccl\nlambda-d = 0 | 0.01\npaper = - | 10.5 +- 99\n"

/* ---- the file ---- */

static void check_refused(const char *text, const char *words) {
    ct_study study;
    ct_config given;
    ct_study_request request = {0};
    ct_config_init(&given);
    ct_clear_message();
    ct_status status = ct_study_parse("my.conf", text, &study);
    if (status == CT_OK) {
        snprintf(study.out, sizeof study.out, "out");
        status = ct_study_build(&study, &given, &request);
        ct_study_free(&study);
    }
    if (status == CT_OK || strstr(ct_message(), words) == NULL) {
        printf("    not refused with '%s' (status %d: %s):\n%s\n", words, (int)status, ct_message(),
               text);
        test_failed = true;
    }
    ct_clear_message();
}

static void a_note_that_has_no_room_is_refused(void) {
    char text[1000];
    int n = snprintf(text, sizeof text, "note = %0300d\nnote = %0300d\n[row a]\n", 1, 2);
    REQUIRE(n > 600 && n < (int)sizeof text);
    check_refused(text, "my.conf:2: notes have at most");
}

static void a_study_larger_than_any_is_refused(void) {
    CT_SCOPED(ct_text) text = {0};
    ct_text_add(&text, "[row a]\n");
    for (int k = 0; k < 8193; k++) ct_text_add(&text, "x%d = 1\n", k);
    check_refused(text.chars, "my.conf:8194: a study sets at most 8192 options");
    ct_text_free(&text);
    for (int k = 0; k < 4097; k++) ct_text_add(&text, "[row %d]\n", k);
    check_refused(text.chars, "my.conf:4097: a study has at most 4096 rows");
}

static void what_is_wrong_in_a_file_is_named_with_its_line(void) {
    check_refused("title = x\n", "my.conf:2: the study has no [row]");
    check_refused("title = x\nagents = 4\n[row a]\n", "my.conf:2: 'agents' is none of title");
    check_refused("show = consensus, speed\n[row a]\n", "my.conf:1: no metric 'speed'; known: con");
    check_refused("[row a]\nbogus\n", "my.conf:2: 'bogus' is not of the form name = value");
    check_refused("[row a]\n[row a]\n", "my.conf:2: 'a' is there twice; the first is in line 1");
    check_refused("[row]\n", "my.conf:1: a row or column needs a label");
    check_refused("[row a\n", "my.conf:1: '[row a' has no ]");
    check_refused("[cell a]\n", "my.conf:1: '[cell]' is none of [tune], [options]");
    check_refused("[row a]\nlr = 1\nlr = 2\n", "my.conf:3: 'lr' is set twice; first in line 2");
    check_refused("[row a]\nout = x\n", "my.conf:2: 'out' has no place here");
    check_refused("[row a]\nagent = 4\n", "my.conf:2: unknown option --agent; did you mean");
    check_refused("[row a]\nlr = fast\n", "my.conf:2: --lr: 'fast' is not a number");
    check_refused("[row a]\npaper = good\n", "my.conf:2: paper: 'good' is neither");
    check_refused("[row a]\npaper = 1\npaper = 2\n", "my.conf:3: 'paper' is set twice; first in");
    check_refused("[column x]\n[row a]\nlr = 1 | 2\n", "my.conf:3: 2 entries for 1 column");
    check_refused("[column x]\n[row a]\ncells = <\n", "my.conf:3: cells: '<' is none of +");
    check_refused("[row a]\nloss = ce\nlambda-m = 1\n", "my.conf:3: --lambda-m, --lambda-d");
    check_refused("[row a b]\n[row a-B]\n", "my.conf:2: the runs of two rows would both be called");
    check_refused("[row a]\n[row ..]\n", "my.conf:2: a run cannot lie in '..'");
    check_refused("[row ***]\n", "my.conf:1: a run cannot lie in ''");
    check_refused("[row Shared: x]\n", "my.conf:1: a run cannot lie in 'shared-x'");
    check_refused("[row reused part]\n", "my.conf:1: a run cannot lie in 'reused-part'");
}

/* They are a run's to refuse, but it may be the last of many. */
static void words_that_no_run_takes_are_named_with_their_line(void) {
    check_refused("[row a]\n[row b]\nseed = 2\nalgorithm = dsgmd\n",
                  "my.conf:4: no --algorithm 'ds");
    check_refused("[options]\ntopology = rign\n[row a]\n", "my.conf:2: no --topology 'rign'");
    check_refused("[options]\ngraph = torus:3x3\nagents = 8\n[row a]\n", "my.conf:2: ");
    check_refused("[row a]\nmodel = lenet6:2\n", "my.conf:2: no --model 'lenet6");
    check_refused("[row a]\ndataset = cifar\n", "my.conf:2: no --dataset 'cifar'");
    check_refused("[row a]\nagents = 4\npartition = idd\n", "my.conf:3: no --partition 'idd'");
    check_refused("[column x]\nlr-milestones = 2\n[row a]\n", "my.conf:2: --lr-milestones: '2'");
    check_refused("[row a]\nfault = rain=1\n", "my.conf:2: --fault");
    check_refused("[row a]\ncheckpoint-every = 10x\n", "my.conf:2: --checkpoint-every: '10x'");
    check_refused("[row a]\nprecision = fp64\n", "my.conf:2: --precision: no 'fp64'");
    REFUSES(2, "sweep --dataset shapes --algorithm dsgdm,nosuch --out never",
            "no --algorithm 'nosu");
    CHECK(!ct_dir_exists("never"));
}

/* As docs/REPRODUCE.md shows it, with its comments. */
static void the_study_in_the_manual_can_be_run(void) {
    ct_blob manual = {0};
    ct_text conf = {0};
    REQUIRE_OK(ct_file_read(CT_SOURCE_DIR "/docs/REPRODUCE.md", 1 << 20, &manual));
    const char *at = strstr((const char *)manual.bytes, "    # my.conf:");
    REQUIRE(at != NULL);
    for (; *at == ' ' || *at == '\n'; at += strcspn(at, "\n") + 1)
        ct_text_add(&conf, "%.*s\n", (int)strcspn(at, "\n"), at);
    put("manual.conf", conf.chars);
    succeeds("reproduce manual.conf --dry-run");
    CHECK(strstr(said.out, "5 of 5 runs to do") != NULL);
    CHECK(strstr(said.out, "--lr 0.05") != NULL && strstr(said.out, "ring-iid") != NULL);
    ct_text_free(&conf);
    ct_blob_free(&manual);
}

static void every_experiment_that_comes_along_can_be_planned(void) {
    DIR *d = opendir(CT_SOURCE_DIR "/experiments");
    int n = 0;
    REQUIRE(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char words[1024];
        if (strstr(e->d_name, ".conf") == NULL) continue;
        snprintf(words, sizeof words, "reproduce %s/%s --dry-run --data-dir .",
                 CT_SOURCE_DIR "/experiments", e->d_name);
        succeeds(words);
        CHECK(strstr(said.out, "crosstalk train --dataset ") != NULL);
        n++;
    }
    closedir(d);
    CHECK(n >= 16);
    succeeds("reproduce list");
    CHECK(n_lines(said.out) == n && strstr(said.out, "table1  ") != NULL);
    succeeds("reproduce table3_wacv24 --dry-run --data-dir ."); /* names had underscores once */
    CHECK(strstr(said.out, "--out results/table3-wacv24/") != NULL);
    REFUSES(2, "reproduce table3_wacv25 --dry-run", "no experiment 'table3_wacv25'");
}

/* ---- running ---- */

static void a_study_gives_its_tables_and_light_runs(void) {
    put("toy.conf", TOY);
    succeeds("reproduce toy.conf --quiet --out toy");
    CHECK(strstr(said.out, "A & toy\n") == said.out);
    CHECK(strstr(said.out, "sample deviation (n - 1)") != NULL);
    CHECK(ct_file_exists("toy/plain-iid/summary.json"));
    CHECK(ct_file_exists("toy/plain-ccl-alpha-0.1/seed-1/metrics.jsonl"));
    CHECK(ct_file_exists("toy/plain-ccl-alpha-1/seed-2/config.txt"));
    CHECK(!ct_file_exists("toy/plain-ccl-alpha-1/seed-2/partition.csv"));
    CHECK(!ct_file_exists("toy/plain-ccl-alpha-1/seed-2/consensus.safetensors"));
    CHECK(!ct_dir_exists("toy/plain-iid/checkpoint"));
    CHECK(of_summary("toy/plain-ccl-alpha-1", "iteration") == 26);
}

/* The numbers of the table are the runs' own, and the deviation that of two seeds. */
static void a_table_shows_mean_deviation_and_difference(void) {
    char line[256];
    double a = 100 * of_summary("toy/plain-iid/seed-1", "consensus_accuracy");
    double b = 100 * of_summary("toy/plain-iid/seed-2", "consensus_accuracy");
    double mean = (a + b) / 2, deviation = fabs(a - b) / sqrt(2);
    snprintf(line, sizeof line, "| plain | IID | %.2f \xc2\xb1 %.2f | 50.00 \xc2\xb1 1.00 | %+.2f",
             mean, deviation, mean - 50);
    CHECK(contains("toy/table.md", line));
    snprintf(line, sizeof line,
             "plain & IID & $%.2f \\pm %.2f$ & $50.00 \\pm 1.00$ & $%+.2f^{*}$ &", mean, deviation,
             mean - 50);
    CHECK(contains("toy/table.tex", line));
    CHECK(contains("toy/table.tex", "\\caption{A \\& toy}"));
    snprintf(line, sizeof line, "plain | IID,alpha = 0.1,consensus,%.9g,%.9g,50,1,%.9g,yes,2,done,",
             mean, deviation, mean - 50);
    CHECK(contains("toy/table.csv", line));
    CHECK(contains("toy/table.csv", ",10.5,99,"));
    CHECK(contains("toy/table.csv", ",no,2,done,plain-ccl-alpha-1\n"));
    CHECK(contains("toy/curves.csv", "row,column,epoch,ce,ce_std,mv,mv_std\n"));
    CHECK(contains("toy/curves.csv", "plain | CCL,alpha = 1,2,"));
}

/* Mean of the accuracies that a seed's metrics have at epochs `from` to `to`. */
static double mean_accuracy(const char *dir, int from, int to) {
    char path[256], text[SAID];
    double sum = 0;
    int n = 0;
    snprintf(path, sizeof path, "%s/metrics.jsonl", dir);
    slurp(path, text);
    for (char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        ct_json *json = NULL;
        CHECK_OK(ct_json_parse(line, strcspn(line, "\n"), path, &json));
        int epoch = (int)ct_json_number(json, "epoch");
        double accuracy = ct_json_number(json, "consensus_accuracy");
        ct_json_free(&json);
        if (epoch < from || epoch > to || isnan(accuracy)) continue;
        sum += accuracy;
        n++;
    }
    CHECK(n == 3); /* of every second epoch, and the last */
    return sum / n;
}

static void the_end_of_a_run_can_be_shown_instead_of_its_last_epoch(void) {
    char line[256];
    put("end.conf", "show = consensus, late\n" OPTIONS "[row a]\nepochs = 11\neval-every = 2\n");
    succeeds("reproduce end.conf --quiet --out end");
    double a = 100 * mean_accuracy("end/a/seed-1", 7, 11);
    double b = 100 * mean_accuracy("end/a/seed-2", 7, 11);
    snprintf(line, sizeof line, ",late,%.9g,%.9g,", (a + b) / 2, fabs(a - b) / sqrt(2));
    CHECK(contains("end/table.csv", line));
    succeeds("reproduce end.conf --quiet --out end --table-only");
    CHECK(contains("end/table.csv", line));
    /* without a seed's epochs it is the others' */
    CHECK(unlink("end/a/seed-2/metrics.jsonl") == 0);
    succeeds("reproduce end.conf --quiet --out end --table-only");
    snprintf(line, sizeof line, ",late,%.9g,,", a);
    CHECK(contains("end/table.csv", line));
}

/* Where a line for every row is too wide, there is one for every run. */
static void a_wide_table_becomes_a_long_one(void) {
    put("wide.conf", "rows = method\nshow = consensus, mean, worst, mib\n" OPTIONS
                     "[column alpha = 0.1]\nalpha = 0.1\n[column alpha = 1]\nalpha = 1\n"
                     "[row QG]\nalgorithm = qg-dsgdm\npaper = - | 5\n[row IID]\ncells = - | +\n");
    succeeds("reproduce wide.conf --out wide --table-only");
    CHECK(strstr(said.out,
                 "method  run          consensus %  paper  difference  mean %  worst %") != NULL);
    CHECK(contains("wide/table.md", "| QG | alpha = 1 | - | 5 |  | - | - | - |\n"));
    CHECK(contains("wide/table.md", "| IID | alpha = 1 | - |  |  | - | - | - |\n"));
    CHECK(contains("wide/table.tex", "QG & alpha = 0.1 & - &  &  & - & - & - \\\\\n"));
}

static void two_deviations_of_the_paper_are_the_limit(void) {
    ct_estimate wide = {80, 1.5, 2}, exact = {0.471, NAN, 3};
    CHECK(ct_estimate_holds(&wide, 83) && ct_estimate_holds(&wide, 77));
    CHECK(!ct_estimate_holds(&wide, 83.01) && !ct_estimate_holds(&wide, 76.99));
    CHECK(ct_estimate_holds(&exact, 0.47149) && !ct_estimate_holds(&exact, 0.4717));
}

/* A cell is what train gives with the command that --dry-run shows. */
static void a_cell_is_the_run_of_its_command(void) {
    succeeds("reproduce toy.conf --quiet --out other --dry-run --only ccl-alpha-1");
    char *command = strstr(said.out, "crosstalk train ");
    REQUIRE(command != NULL);
    char words[2048];
    snprintf(words, sizeof words, "%.*s --quiet", (int)strcspn(command, "\n") - 10, command + 10);
    succeeds(words);
    CHECK(of_summary("other/plain-ccl-alpha-1", "consensus_loss") ==
          of_summary("toy/plain-ccl-alpha-1", "consensus_loss"));
    CHECK(of_summary("other/plain-ccl-alpha-1", "consensus_loss") > 0);
}

static void finished_runs_are_kept_and_others_refused(void) {
    struct stat before, after;
    REQUIRE(stat("toy/plain-iid/summary.json", &before) == 0);
    succeeds("reproduce toy.conf --quiet --out toy");
    REQUIRE(stat("toy/plain-iid/summary.json", &after) == 0);
    CHECK(before.st_ino == after.st_ino);
    succeeds("reproduce toy.conf --out toy --dry-run");
    CHECK(strstr(said.out, "0 of 3 runs to do") != NULL);
    REFUSES(2, "reproduce toy.conf --quiet --out toy --lr 0.01",
            "toy/plain-iid was run with --lr 0.02", "here it is 0.01", "--force");
    REFUSES(2, "reproduce toy.conf --quiet --out toy --table-only --seeds 1,2,3", "--seeds 1,2");
    REFUSES(2, "reproduce toy.conf --quiet --out toy --lr 0.01 --force --only iid",
            "toy/plain-ccl-alpha-0.1 was run with --lr 0.02"); /* a table of both would be mixed */
    succeeds("reproduce toy.conf --quiet --out toy --force --lr 0.01");
    REFUSES(2, "reproduce toy.conf --quiet --out toy", "--lr 0.01");
}

/* One command's page: the paper's numbers beside ours, the figure, and the runs by the study's
 * names. */
static void a_study_leaves_a_page(void) {
    ct_blob blob = {0};
    put("toy.conf", TOY);
    succeeds("reproduce toy.conf --quiet --out page/none --table-only");
    CHECK(!ct_file_exists("page/none/report.html")); /* no run, no page */
    succeeds("reproduce toy.conf --quiet --out page/toy/");
    REQUIRE_OK(ct_file_read("page/toy/report.html", 1 << 22, &blob));
    const char *page = (const char *)blob.bytes;
    CHECK(find_flaw(page) == NULL && has_unique_ids(page));
    char ours[64];
    snprintf(ours, sizeof ours, "\">%.2f \xC2\xB1 ",
             100 * of_summary("page/toy/plain-iid", "consensus_accuracy"));
    CHECK(strstr(page, "<table id=\"study-table\" class=\"rows\">") != NULL &&
          strstr(page, ours) != NULL);
    CHECK(strstr(page, "<h1>A &amp; toy</h1>") != NULL);
    CHECK(strstr(page, "<td data-th=\"paper\">50.00 \xC2\xB1 1.00</td>") != NULL);
    CHECK(strstr(page, "<figure id=\"figure-1-box\">") != NULL);
    CHECK(strstr(page, "<code>plain-iid/seed-2</code>") != NULL);
    CHECK(strstr(page, "id=\"fig-accuracy\"") != NULL && strstr(page, "id=\"fig-final\"") == NULL);
    CHECK(strstr(page, "id=\"fig-confusion-1\"") != NULL);
    ct_blob_free(&blob);
    /* many runs: their curves, and no more */
    succeeds("sweep --quiet --dataset shapes --model mlp:4 --train-samples 400 --test-samples 100 "
             "--batch-size 8 --agents 4 --epochs 1 --threads 1 --algorithm dsgd "
             "--lr .01,.02,.03,.04,.05,.06,.07 --out page/large");
    REQUIRE_OK(ct_file_read("page/large/report.html", 1 << 22, &blob));
    page = (const char *)blob.bytes;
    CHECK(find_flaw(page) == NULL && strstr(page, "id=\"fig-accuracy\"") != NULL);
    CHECK(strstr(page, "fig-confusion") == NULL && strstr(page, "fig-graph") == NULL);
    CHECK(strstr(page, "<code>crosstalk report</code>") != NULL);
    ct_blob_free(&blob);
}

static void what_is_missing_is_a_dash_in_the_table(void) {
    put("toy.conf", TOY);
    succeeds("reproduce toy.conf --quiet --out part --only *alpha-1");
    CHECK(strstr(said.out, "2 of 3 runs are not there yet") != NULL);
    succeeds("reproduce toy.conf --table-only --out part");
    CHECK(contains("part/table.md", "| plain | IID | - | 50.00"));
    CHECK(contains("part/table.csv",
                   "plain | IID,alpha = 0.1,consensus,,,50,1,,,2,missing,plain-iid"));
    CHECK(!ct_dir_exists("part/plain-iid"));
    REFUSES(2, "reproduce toy.conf --out part --only nothing", "--only 'nothing' fits none");
}

/* Two tables with a run in common: the second takes it from the first, whatever it is called
 * there. */
static void a_run_of_another_table_is_copied_if_asked_for(void) {
    put("first.conf", OPTIONS "[row a]\nalgorithm = ccl\n[row b]\nalgorithm = dsgdm\n");
    put("second.conf", OPTIONS "[row c]\nalgorithm = dsgdm\n[row d]\nalgorithm = dsgd\n");
    succeeds("reproduce first.conf --quiet --out reuse/first");
    succeeds("reproduce second.conf --out reuse/second --dry-run");
    CHECK(strstr(said.out, "2 of 2 runs to do") != NULL);
    succeeds("reproduce second.conf --out reuse/second/ --dry-run --reuse");
    CHECK(strstr(said.out, "1 of 2 runs to do") != NULL);
    CHECK(strncmp(said.out, "reused    c\n", 12) == 0 && !ct_dir_exists("reuse/second"));
    CHECK(strstr(said.out, "          is reuse/first/b\n") != NULL);
    succeeds("reproduce second.conf --out reuse/second --reuse --table-only");
    CHECK(strstr(said.out, "1 of 2 runs are not there yet") != NULL);
    CHECK(of_summary("reuse/second/c/seed-2", "ce") == of_summary("reuse/first/b/seed-2", "ce"));
    CHECK(contains("reuse/second/c/config.txt", "out = c\n"));
    CHECK(contains("reuse/second/c/seed-1/config.txt", "out = c/seed-1\n"));
    CHECK(!ct_dir_exists("reuse/second/d") && !ct_dir_exists("reuse/second/reused-part"));
    succeeds("reproduce second.conf --quiet --out reuse/third --reuse --lr 0.03");
    CHECK(of_summary("reuse/third/c", "ce") != of_summary("reuse/first/b", "ce"));
    REFUSES(2, "reproduce second.conf --out reuse/fourth --reuse --keep", "--reuse copies");
}

/* Numbers in bf16 are others: a run in it serves a table that asks for it, and no other. */
static void a_run_in_another_precision_is_not_reused(void) {
    static char summary[SAID];
    put("first.conf", OPTIONS "[row b]\nalgorithm = dsgdm\n");
    put("second.conf", OPTIONS "[row c]\nalgorithm = dsgdm\n");
    succeeds("reproduce first.conf --quiet --out precise/first");
    slurp("precise/first/b/summary.json", summary);
    char *at = strstr(summary, "\"precision\": \"auto\"");
    REQUIRE(at != NULL);
    memcpy(at, "\"precision\": \"bf16\"", strlen("\"precision\": \"bf16\"")); /* as a GPU's */
    put("precise/first/b/summary.json", summary);
    succeeds("reproduce second.conf --out precise/second --dry-run --reuse");
    CHECK(strstr(said.out, "1 of 1 runs to do") != NULL);
    succeeds("reproduce second.conf --out precise/second --dry-run --reuse --precision bf16");
    CHECK(strstr(said.out, "0 of 1 runs to do") != NULL);
}

/* Stopped in the middle, as after SIGTERM: what then goes on ends with the same bits. */
static void an_interrupted_study_goes_on_to_the_same_numbers(void) {
    static const char *const keys[] = {"consensus_loss", "consensus_loss_std", "ce", "iteration"};
    put("long.conf", "show = consensus, loss\n" OPTIONS "[row a]\nalgorithm = ccl\n");
    succeeds("reproduce long.conf --quiet --out whole --epochs 8");
    succeeds("train --config whole/a/config.txt --out cut/a --iterations 50 --quiet "
             "--checkpoint-every 2");
    CHECK(unlink("cut/a/summary.json") == 0 && ct_dir_exists("cut/a/checkpoint"));
    succeeds("reproduce long.conf --out cut --epochs 8 --dry-run");
    CHECK(strncmp(said.out, "begun", 5) == 0);
    REFUSES(2, "reproduce long.conf --quiet --out cut --epochs 9", "a: --epochs 9 contradicts",
            "--force");
    CHECK(run("reproduce long.conf --out cut --epochs 8") == 0);
    CHECK(strstr(said.err, "(interrupted before)") != NULL);
    CHECK(strstr(said.err, "going on after iteration 50") != NULL);
    CHECK(!ct_dir_exists("cut/a/checkpoint"));
    for (int k = 0; k < 4; k++)
        CHECK(of_summary("whole/a", keys[k]) == of_summary("cut/a", keys[k]));
}

/* The run in progress is saved, the others are left; a table of what is there is printed. */
static void a_study_that_is_out_of_time_ends_in_order(void) {
    put("long.conf", OPTIONS "[row a]\n[row b]\n");
    CHECK(run("reproduce long.conf --quiet --out late --epochs 100000 --time-limit 0.3s") ==
          128 + SIGTERM);
    CHECK(strstr(said.err, "2 runs are left: the same command resumes") != NULL);
    CHECK(strstr(said.out, "2 of 2 runs are not there yet") != NULL);
    CHECK(!ct_file_exists("late/a/summary.json") && !ct_dir_exists("late/b"));
    CHECK(!ct_dir_exists("late/a") || ct_dir_exists("late/a/checkpoint"));
}

/* Killed before there was a checkpoint: files without a summary are in the way of nobody. */
static void a_run_that_left_no_checkpoint_begins_again(void) {
    put("one.conf", OPTIONS "[row a]\nseeds = 3\n");
    succeeds("reproduce one.conf --quiet --out again --keep");
    CHECK(ct_file_exists("again/a/consensus.safetensors") &&
          ct_file_exists("again/a/partition.csv"));
    CHECK(unlink("again/a/summary.json") == 0);
    succeeds("reproduce one.conf --out again --quiet");
    CHECK(of_summary("again/a", "iteration") == 26);
    succeeds("reproduce one.conf --out again --dry-run");
    CHECK(strstr(said.out, "0 of 1 runs to do") != NULL);
}

static void a_run_that_diverges_is_a_word_in_the_table(void) {
    put("wild.conf", OPTIONS "[row wild]\nlr = 1e6\n[row tame]\n");
    succeeds("reproduce wild.conf --quiet --out wild");
    CHECK(contains("wild/table.md", "| wild | diverged |"));
    CHECK(contains("wild/table.csv", ",diverged,wild\n"));
    succeeds("reproduce wild.conf --out wild --dry-run");
    CHECK(strstr(said.out, "diverged  wild") != NULL && strstr(said.out, "0 of 2") != NULL);
}

/* Column by column: learnt, hardly trained, diverged; what was not run is counted below. */
static void a_table_may_begin_with_the_best(void) {
    put("best.conf", "order = best\nrows = method\n" OPTIONS
                     "[column IID]\npartition = iid\n[column alpha = 1]\nalpha = 1\n"
                     "[row hardly]\nlr = 1e-9\n[row wild]\nlr = 1e6\n[row learnt]\nepochs = 8\n");
    succeeds("reproduce best.conf --quiet --out best --only *iid,learnt*");
    CHECK(strstr(said.out, "2 of 6 runs are not there yet") != NULL);
    CT_SCOPED(ct_blob) file = {0};
    REQUIRE_OK(ct_file_read("best/table.md", 1 << 16, &file));
    const char *text = (const char *)file.bytes;
    const char *first = strstr(text, "| learnt | IID |"),
               *second = strstr(text, "| hardly | IID |"),
               *third = strstr(text, "| wild | IID | diverged |"),
               *last = strstr(text, "| learnt | alpha = 1 |");
    CHECK(first != NULL && first < second && second < third && third < last);
    CHECK(strstr(text, "| hardly | alpha = 1 |") == NULL);
    put("worst.conf", "order = worst\n" OPTIONS "[row a]\n");
    REFUSES(1, "reproduce worst.conf", "worst.conf:1: order: only 'best' is known");
}

static void quick_runs_are_short_and_say_so(void) {
    succeeds("reproduce toy.conf --quiet --epochs 40 --quick");
    CHECK(strstr(said.out, "quick: 2 epochs only, not what the paper ran") != NULL);
    CHECK(contains("results/toy-quick/table.md", "quick: 2 epochs only"));
    CHECK(contains("results/toy-quick/table.md", "- with --epochs 40\n"));
    CHECK(contains("results/toy-quick/table.tex", "quick: 2 epochs only"));
    CHECK(of_summary("results/toy-quick/plain-iid", "epoch") == 2);
    REFUSES(2, "reproduce toy.conf --quick=none", "--quick: 'none' is not a whole number");
}

static void words_that_make_no_study_are_refused(void) {
    REFUSES(2, "reproduce", "name a table or figure");
    REFUSES(2, "reproduce table99", "no experiment 'table99'", "reproduce list");
    REFUSES(1, "reproduce no/such.conf", "no/such.conf");
    REFUSES(2, "reproduce toy.conf --time-limit soon", "'soon' is no time");
    REFUSES(2, "reproduce toy.conf --resume x", "are resumed by the same command");
    CHECK(setenv("OMPI_COMM_WORLD_SIZE", "2", 1) == 0);
    REFUSES(2, "reproduce toy.conf", "for one process");
    CHECK(unsetenv("OMPI_COMM_WORLD_SIZE") == 0);
    REFUSES(2, "reproduce toy.conf --bogus 1", "unknown option --bogus");
}

int main(void) {
    if (!enter_folder()) return 1;
    TEST(a_study_larger_than_any_is_refused);
    TEST(what_is_wrong_in_a_file_is_named_with_its_line);
    TEST(a_note_that_has_no_room_is_refused);
    TEST(words_that_no_run_takes_are_named_with_their_line);
    TEST(the_study_in_the_manual_can_be_run);
    TEST(every_experiment_that_comes_along_can_be_planned);
    TEST(a_study_gives_its_tables_and_light_runs);
    TEST(a_table_shows_mean_deviation_and_difference);
    TEST(the_end_of_a_run_can_be_shown_instead_of_its_last_epoch);
    TEST(a_wide_table_becomes_a_long_one);
    TEST(two_deviations_of_the_paper_are_the_limit);
    TEST(a_cell_is_the_run_of_its_command);
    TEST(finished_runs_are_kept_and_others_refused);
    TEST(a_study_leaves_a_page);
    TEST(what_is_missing_is_a_dash_in_the_table);
    TEST(a_run_of_another_table_is_copied_if_asked_for);
    TEST(a_run_in_another_precision_is_not_reused);
    TEST(an_interrupted_study_goes_on_to_the_same_numbers);
    TEST(a_study_that_is_out_of_time_ends_in_order);
    TEST(a_run_that_left_no_checkpoint_begins_again);
    TEST(a_run_that_diverges_is_a_word_in_the_table);
    TEST(a_table_may_begin_with_the_best);
    TEST(quick_runs_are_short_and_say_so);
    TEST(words_that_make_no_study_are_refused);
    leave_folder();
    remove_tree(folder);
    return test_report();
}
