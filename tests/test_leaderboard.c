/* A leaderboard from end to end on built-in data, and rows that are sent in for it. */
#include "studies.h"

static const char board[] = "title = Small board\n"
                            "rows = method\n"
                            "show = consensus, averaged, worst, mib\n"
                            "baseline = DSGDm-N\n"
                            "free = algorithm, loss, lr, lambda-m, lambda-d\n"
                            "[tune]\n"
                            "rungs = 0.5, 1\n"
                            "seeds = 1\n"
                            "[options]\n"
                            "dataset = shapes\n"
                            "model = mlp:4\n"
                            "train-samples = 400\n"
                            "test-samples = 100\n"
                            "batch-size = 8\n"
                            "agents = 4\n"
                            "epochs = 4\n"
                            "seeds = 1,2,3\n"
                            "average = tail:0.5\n"
                            "threads = 1\n"
                            "tune = lr=0.1,0.02\n"
                            "[column alpha = 1]\n"
                            "alpha = 1\n"
                            "splits = %s\n"
                            "[column alpha = 0.1]\n"
                            "alpha = 0.1\n"
                            "[row DSGDm-N]\n"
                            "algorithm = dsgdm\n"
                            "[row QG-DSGDm-N]\n"
                            "algorithm = qg-dsgdm\n"
                            "[row DSGDm-N + CCL]\n"
                            "algorithm = dsgdm\n"
                            "loss = ccl\n"
                            "tune = lr=0.02; lambda-m+lambda-d=0.1,0.01\n";
#define BOARD  "reproduce board.conf --quiet --out b "
#define VERIFY "leaderboard verify --study board.conf "

/* A string member of a run's summary, in a member that is an object. */
static void text_of(const char *dir, const char *object, const char *key, char *out, size_t size) {
    ct_json *summary = NULL;
    snprintf(out, size, "?");
    if (ct_summary_read(dir, &summary) == CT_OK) {
        const ct_json *inside = ct_json_get(summary, object);
        const ct_json *text = inside != NULL ? ct_json_get(inside, key) : NULL;
        if (text != NULL && text->kind == CT_JSON_STRING) snprintf(out, size, "%s", text->string);
    }
    ct_json_free(&summary);
}

static void put_board(const char *splits) {
    char text[4096];
    snprintf(text, sizeof text, board, splits);
    put("board.conf", text);
}

/* One method first, then the others: what is missing is named. */
static void a_board_is_made_piece_by_piece(void) {
    put_board("-,-,-");
    succeeds(BOARD "--only dsgdm-n-alpha,qg");
    CHECK(contains("b/table.md", "2 of 6 runs are not there yet"));
    CHECK(contains("b/table.md", "missing: dsgdm-n-+-ccl-alpha-1, dsgdm-n-+-ccl-alpha-0.1"));
    CHECK(contains("b/ranks.md", "not ranked, because runs are missing: DSGDm-N + CCL"));
    CHECK(contains("b/ranks.csv", "QG-DSGDm-N,"));
    succeeds(BOARD);
    CHECK(!strstr(said.out, "missing"));
    CHECK(contains("b/ranks.csv", "DSGDm-N + CCL,") && ct_file_exists("b/figure-ranks.svg"));
    CHECK(ct_file_exists("b/pareto-mib-1.svg") && ct_file_exists("b/pareto-compute-2.svg"));
    CHECK(contains("b/figure-ranks.svg", "class=\"rank\""));
    CHECK(contains("b/report.html", "against the baseline"));
    CHECK(contains("b/report.html", "What was tuned"));
}

/* The mean of the differences is the difference of the means, where all seeds are there. */
static void differences_are_paired_by_seed(void) {
    char line[256], hash[32];
    double base[3], ours[3], sum = 0;
    int n_ahead = 0;
    for (int s = 0; s < 3; s++) {
        char a[64], b[64];
        snprintf(a, sizeof a, "b/dsgdm-n-alpha-1/seed-%d", s + 1);
        snprintf(b, sizeof b, "b/qg-dsgdm-n-alpha-1/seed-%d", s + 1);
        base[s] = 100 * of_summary(a, "consensus_accuracy");
        ours[s] = 100 * of_summary(b, "consensus_accuracy");
        sum += ours[s] - base[s];
        n_ahead += ours[s] > base[s];
    }
    snprintf(line, sizeof line, "QG-DSGDm-N,alpha = 1,consensus,3,%.9g,", sum / 3);
    if (fabs(sum) > 1e-9) CHECK(contains("b/versus.csv", line));
    snprintf(line, sizeof line, "| %d of 3 |", n_ahead);
    CHECK(contains("b/versus.md", line));
    text_of("b/dsgdm-n-alpha-1/seed-2", "partition", "hash", hash, sizeof hash);
    snprintf(line, sizeof line, "seed 2 %s", hash);
    CHECK(contains("b/table.md", line));
}

/* A column may take another's choices: nothing is tried for it, and its runs are verified as all. */
static void a_column_takes_what_another_one_chose(void) {
    char text[4096];
    snprintf(text, sizeof text, board, "-,-,-");
    static const char taken[] = "tuned-in = alpha = 1\n";
    char *at = strstr(text, "[row DSGDm-N]");
    memmove(at + sizeof taken - 1, at, strlen(at) + 1);
    memcpy(at, taken, sizeof taken - 1);
    put("taken.conf", text);
    succeeds("reproduce taken.conf --quiet --out taken --only qg-dsgdm-n-alpha-0.1");
    CHECK(ct_dir_exists("taken/tune/qg-dsgdm-n-alpha-1") &&
          !ct_dir_exists("taken/tune/qg-dsgdm-n-alpha-0.1"));
    CHECK(same_files("taken/tune/qg-dsgdm-n-alpha-1/tuned.json",
                     "taken/qg-dsgdm-n-alpha-0.1/tuned.json"));
    CHECK(!ct_dir_exists("taken/qg-dsgdm-n-alpha-1"));
    CHECK(contains("taken/tuned.md", "alpha = 0.1: the choices of alpha = 1"));
    CHECK(contains("taken/tuned.csv", "QG-DSGDm-N,alpha = 1,"));
    CHECK(!ct_dir_exists("taken/tune/dsgdm-n-alpha-1"));
    succeeds("leaderboard verify --study taken.conf taken/qg-dsgdm-n-alpha-0.1");
    at = strstr(text, "tuned-in = alpha = 1");
    at[19] = '2';
    put("taken.conf", text);
    REFUSES(1, "reproduce taken.conf --out never", "'alpha = 2' is no other column");
}

/* Ten for the best five: rows trained with further seeds elsewhere, with the same choice. */
static void a_row_may_have_further_seeds(void) {
    CHECK(system("cp -r b more && mkdir else && cp -r b/tune else/tune") == 0);
    succeeds("reproduce board.conf --quiet --out else --only qg-dsgdm-n-alpha-1 --seeds 1,2,3,4");
    CHECK(system("rm -r more/qg-dsgdm-n-alpha-1 && cp -r else/qg-dsgdm-n-alpha-1 more") == 0);
    succeeds("reproduce board.conf --quiet --out more --table-only");
    CHECK(contains("more/table.md", "more seeds: qg-dsgdm-n-alpha-1 4"));
    CHECK(same_files("more/versus.csv", "b/versus.csv")); /* of the seeds that both have */
    CHECK(same_files("more/ranks.csv", "b/ranks.csv"));
    CHECK(same_files("more/tuned.csv", "b/tuned.csv"));
    succeeds(VERIFY "more/qg-dsgdm-n-alpha-1");
}

static void rows_that_keep_the_rules_are_accepted(void) {
    char hashes[3][32], splits[128];
    for (int s = 0; s < 3; s++) {
        char dir[64];
        snprintf(dir, sizeof dir, "b/dsgdm-n-alpha-1/seed-%d", s + 1);
        text_of(dir, "partition", "hash", hashes[s], sizeof hashes[s]);
    }
    snprintf(splits, sizeof splits, "%s, %s,%s", hashes[0], hashes[1], hashes[2]);
    put_board(splits);
    succeeds(VERIFY "b");
    CHECK(strstr(said.out, "6 runs: nothing is wrong\n") != NULL);
    CHECK(strstr(said.out, "ok     qg-dsgdm-n-alpha-1: split of seed 3: ") != NULL);
    CHECK(strstr(said.out, "note   qg-dsgdm-n-alpha-0.1: split of seed 3: ") != NULL);
    CHECK(strstr(said.out, "WRONG") == NULL);
    succeeds(VERIFY "b/qg-dsgdm-n-alpha-1 --retrain");
    CHECK(strstr(said.out, "numbers of all epochs trained again are the same") != NULL);
    succeeds("report b --bundle sent.jsonl.gz --quiet");
    succeeds(VERIFY "sent.jsonl.gz --retrain=2");
    CHECK(strstr(said.out, "numbers of the first epochs trained again are the same") != NULL);
    CHECK(strstr(said.out, "6 runs: nothing is wrong\n") != NULL);
    succeeds(VERIFY "sent.jsonl.gz/dsgdm-n-alpha-1");
    CHECK(strstr(said.out, "1 run: nothing is wrong\n") != NULL);
}

/* Exit code 1, and this finding among those on stdout. */
static void is_wrong(const char *words, const char *finding) {
    run(words);
    if (said.code != 1 || strstr(said.out, finding) == NULL) blame("should be wrong");
}

#define RUN                                                                                        \
    "train --quiet --dataset shapes --model mlp:4 --train-samples 400 --test-samples 100 "         \
    "--agents 4 --epochs 4 --average tail:0.5 --threads 1 --algorithm dsgd --lr 0.02 "

static void a_changed_option_is_refused(void) {
    succeeds(RUN "--alpha 1 --seeds 1,2,3 --batch-size 16 --out sent/batch");
    is_wrong(VERIFY "sent/batch", "WRONG  batch: options: --batch-size is 16, and the leaderboard "
                                  "has 8\n");
    CHECK(strstr(said.out, "WRONG  batch: tuning: no tuned.json says what was tried\n") != NULL);
    succeeds(RUN "--alpha 1 --seeds 1,2 --batch-size 8 --out sent/few");
    is_wrong(VERIFY "sent/few", "seeds: 1,2, and the leaderboard has 1,2,3\n");
    succeeds(RUN "--alpha 0.5 --seeds 1,2,3 --batch-size 8 --out sent/alpha");
    is_wrong(VERIFY "sent/alpha", "options: no column has its dataset, agents, topology and alpha");
}

static void another_split_is_refused(void) {
    static const char part[] = "partition --quiet --dataset shapes --train-samples 400 --agents 4 "
                               "--alpha 1 --seed 9 --out split.csv";
    succeeds(part);
    succeeds(RUN
             "--alpha 1 --seeds 1,2,3 --batch-size 8 --partition-file split.csv --out sent/split");
    is_wrong(VERIFY "sent/split", "and that of the leaderboard is ");
}

/* The number behind a key, everywhere in a file. */
static void forge(const char *path, const char *key, const char *number) {
    char text[SAID], out[SAID + 64];
    slurp(path, text);
    char *at = strstr(text, key), *last = NULL;
    for (; at != NULL; at = strstr(at + 1, key)) last = at;
    REQUIRE(last != NULL);
    last += strlen(key);
    size_t n = strcspn(last, ",}");
    snprintf(out, sizeof out, "%.*s%s%s", (int)(last - text), text, number, last + n);
    put(path, out);
}

static void forged_numbers_are_found(void) {
#define FORGED "forged/qg-dsgdm-n-alpha-1"
    CHECK(system("cp -r b forged") == 0);
    forge(FORGED "/summary.json", "\"consensus_accuracy\": ", "0.99");
    is_wrong(VERIFY FORGED, "means: consensus_accuracy is 0.99 +- ");
    forge(FORGED "/seed-1/summary.json", "\"consensus_accuracy\": ", "0.99");
    is_wrong(VERIFY FORGED, "consensus_accuracy is 0.99 in the summary, and ");
    forge(FORGED "/seed-1/metrics.jsonl", "\"consensus_accuracy\":", "0.99");
    is_wrong(VERIFY FORGED, "in the confusion matrix\n");
    forge(FORGED "/seed-2/summary.json", "\"local_accuracy_min\": ", "0.9");
    is_wrong(VERIFY FORGED, "in the agents' accuracies\n");
    forge(FORGED "/tuned.json", "\"chosen\": ", "1");
    forge(FORGED "/tuned.json",
          "\"trial\": 2, \"options\": \"--lr 0.02\", \"validation_accuracy\": ", "0.999");
    is_wrong(VERIFY FORGED, "tuning: the best of the last rung is combination 2, and 1 was chosen");
}

/* A run of one seed, so that no mean gives it away. */
static void forged_files_that_agree_are_found_by_training(void) {
    static char text[4096];
    snprintf(text, sizeof text, board, "-");
    char *seeds = strstr(text, "seeds = 1,2,3");
    memcpy(seeds, "seeds = 1    ", 13);
    put("board1.conf", text);
    succeeds("reproduce board1.conf --quiet --out b1 --only qg-dsgdm-n-alpha-1");
    succeeds("leaderboard verify b1 --study board1.conf --retrain");
    forge("b1/qg-dsgdm-n-alpha-1/summary.json", "\"consensus_loss\": ", "0.25");
    forge("b1/qg-dsgdm-n-alpha-1/metrics.jsonl", "\"consensus_loss\":", "0.25");
    succeeds("leaderboard verify b1 --study board1.conf");
    is_wrong("leaderboard verify b1 --study board1.conf --retrain",
             "consensus_loss of epoch 4 was 0.25 and is ");
    CHECK(
        system("sed -i 's/\"ce\":[0-9.]*/\"ce\":9/' b1/qg-dsgdm-n-alpha-1/metrics.jsonl && sed -i "
               "'s/\"commit\": \"/&another/; s/\"ce\": [0-9.]*/\"ce\": 9/' "
               "b1/qg-dsgdm-n-alpha-1/summary.json") == 0);
    is_wrong("leaderboard verify b1 --study board1.conf --retrain", "ce of epoch 1 was 9 and is ");
}

/* There is nothing to forge, and it is told. */
static void a_run_that_diverged_is_a_row_as_well(void) {
    static char text[4096];
    snprintf(text, sizeof text, board, "-,-,-");
    memcpy(strstr(text, "tune = lr=0.1,0.02\n"), "tune = lr=9e5,1e6\n ", 19);
    memcpy(strstr(text, "rungs = 0.5, 1"), "rungs = 0.1   ", 14);
    memcpy(strstr(text, "train-samples = 400"), "train-samples = 40 ", 19);
    put("steep.conf", text);
    run("reproduce steep.conf --quiet --out steep --only qg-dsgdm-n-alpha-1");
    CHECK(contains("steep/table.csv", ",diverged,qg-dsgdm-n-alpha-1\n"));
    CHECK(contains("steep/tuned.csv", "QG-DSGDm-N,alpha = 1,"));
}

static void words_that_verify_nothing_are_refused(void) {
    REFUSES(2, "leaderboard", "say what: verify");
    REFUSES(2, "leaderboard verify", "needs a run directory");
    REFUSES(1, VERIFY "nowhere", "nowhere");
    REFUSES(2, "leaderboard verify b --study nosuch", "no experiment 'nosuch'");
}

int main(void) {
    if (!enter_folder()) return 1;
    TEST(a_board_is_made_piece_by_piece);
    TEST(differences_are_paired_by_seed);
    TEST(a_column_takes_what_another_one_chose);
    TEST(a_row_may_have_further_seeds);
    TEST(rows_that_keep_the_rules_are_accepted);
    TEST(a_changed_option_is_refused);
    TEST(another_split_is_refused);
    TEST(forged_numbers_are_found);
    TEST(forged_files_that_agree_are_found_by_training);
    TEST(a_run_that_diverged_is_a_row_as_well);
    TEST(words_that_verify_nothing_are_refused);
    leave_folder();
    remove_tree(folder);
    return test_report();
}
