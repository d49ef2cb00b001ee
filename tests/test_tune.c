/* Options chosen by successive halving on held-out samples, inside a study. */
#include "studies.h"

#include "study/tune.h"

static const char mini[] = "title = Mini\n"
                           "rows = method\n"
                           "show = consensus, worst, mib\n"
                           "[tune]\n"
                           "rungs = 0.25, 0.5, 1\n"
                           "seeds = 1,2\n"
                           "validation-fraction = 0.2\n"
                           "[options]\n"
                           "dataset = idx\n"
                           "model = mlp:4\n"
                           "batch-size = 8\n"
                           "partition = iid\n"
                           "agents = 4\n"
                           "epochs = 4\n"
                           "seeds = 1,2\n"
                           "threads = 1\n"
                           "tune = lr=0.5,0.1,0.02,0.004,0.0008\n"
                           "[row DSGD]\n"
                           "algorithm = dsgd\n"
                           "[row CCL]\n"
                           "algorithm = ccl\n"
                           "tune = lr=0.3,0.03,0.01,0.003,0.001\n";
#define MINI "reproduce mini.conf --data-dir fixtures/data --out "

/* By hand: 7 candidates, two of which are alike, one that diverged. */
static void the_better_half_goes_on(void) {
    const double scores[] = {0.1, 0.7, NAN, 0.7, 0.9, 0.3, 0.2};
    static const int wanted[] = {4, 1, 3, 5, 6, 0, 2};
    int trials[] = {0, 1, 2, 3, 4, 5, 6}, some[] = {2, 5, 0};
    ct_halving_rank(scores, trials, 7);
    CHECK(ct_halving_size(7) == 4 && ct_halving_size(3) == 2 && ct_halving_size(1) == 1);
    for (int k = 0; k < 7; k++) CHECK(trials[k] == wanted[k]);
    ct_halving_rank(scores, some, 3);
    CHECK(some[0] == 5 && some[1] == 0 && some[2] == 2);
}

static void rungs_that_do_not_rise_are_refused(void) {
    ct_tune_rule rule = {.n_rungs = 0};
    CHECK_OK(ct_rungs_parse("0.25,0.5,1", &rule));
    CHECK(rule.n_rungs == 3 && rule.parts[2] == 1 && rule.fraction == 0.1);
    CHECK_FAILS(ct_rungs_parse("0.5,0.5", &rule), CT_INVAL, "'0.5' is no part");
    CHECK_FAILS(ct_rungs_parse("0.5,2", &rule), CT_INVAL, "'2' is no part");
    CHECK_FAILS(ct_rungs_parse("0", &rule), CT_INVAL, "'0' is no part");
}

static const char *const rates[] = {"0.5", "0.1", "0.02", "0.004", "0.0008"}; /* of DSGD */

/* The scores of a rung's runs, as they lie there: -1 where there is no run. */
static void read_scores(const char *dir, double *scores) {
    for (int k = 0; k < 5; k++) {
        char run_dir[256];
        snprintf(run_dir, sizeof run_dir, "%s/lr_%s", dir, rates[k]);
        scores[k] = ct_dir_exists(run_dir) ? of_summary(run_dir, "validation_accuracy") : -1;
    }
}

static int best_of(const double *scores) {
    int best = 0;
    for (int k = 1; k < 5; k++)
        if (scores[k] > scores[best]) best = k;
    return best;
}

static int n_run(const double *scores) {
    int n = 0;
    for (int k = 0; k < 5; k++) n += scores[k] >= 0;
    return n;
}

/* Whoever was tried in the second rung was ahead of whoever was not. */
static bool is_better_half(const double *before, const double *after) {
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < 5; b++)
            if (before[a] >= 0 && before[b] >= 0 && after[a] >= 0 && after[b] < 0 &&
                before[a] < before[b])
                return false;
    return true;
}

static void a_study_tunes_and_trains_with_the_choice(void) {
    double first[5], second[5], third[5];
    char words[64];
    ct_json *summary = NULL;
    put("mini.conf", mini);
    CHECK(run(MINI "m --dry-run") == 0 && strstr(said.out, "to tune   dsgd\n") != NULL);
    succeeds(MINI "m");
    CHECK(strstr(said.err, "  validation ") != NULL);
    read_scores("m/tune/dsgd/epochs-1", first);
    read_scores("m/tune/dsgd/epochs-2", second);
    read_scores("m/tune/dsgd/epochs-4", third);
    CHECK(n_run(first) == 5 && n_run(second) == 3 && n_run(third) == 2);
    CHECK(is_better_half(first, second) && is_better_half(second, third));
    const char *chosen = rates[best_of(third)];
    REQUIRE_OK(ct_summary_read("m/dsgd", &summary));
    CHECK(ct_json_number(ct_json_get(summary, "options"), "lr") == strtod(chosen, NULL));
    CHECK(ct_json_number(ct_json_get(summary, "options"), "validation-fraction") == 0);
    ct_json_free(&summary);
    snprintf(words, sizeof words, "\"chosen\": %d}", best_of(third) + 1);
    CHECK(contains("m/dsgd/tuned.json", words));
    CHECK(contains("m/tuned.csv", "dsgd,") && contains("m/tuned.md", chosen));
    succeeds(MINI "m --dry-run");
    CHECK(strstr(said.out, "0 of 2 runs to do") != NULL);
}

/* While options are being chosen, no line tells of the test set. */
static void lines_of_tuning_do_not_tell_test_accuracies(void) {
    char *at = strstr(said.err, "");
    succeeds(MINI "quiet --only ccl");
    for (at = said.err; at != NULL && *at != '\0'; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, "note: 1 to do: ccl\n", 19) == 0) break; /* chosen: now it is trained */
        size_t n = strcspn(at, "\n");
        const char *tells = strstr(at, "consensus ");
        CHECK(tells == NULL || tells >= at + n);
    }
    CHECK(at != NULL && *at != '\0');
}

/* The same data, and a test set whose labels are others. */
static void what_is_chosen_does_not_depend_on_the_test_set(void) {
    ct_blob labels = {0};
    CHECK(system("cp -rL fixtures/data flipped && chmod -R u+w flipped") == 0);
    CHECK_OK(ct_file_read("flipped/t10k-labels-idx1-ubyte", 1 << 20, &labels));
    for (size_t k = 8; k < labels.n; k++) labels.bytes[k] = (uint8_t)(3 - labels.bytes[k]);
    CHECK_OK(ct_file_write("flipped/t10k-labels-idx1-ubyte", labels.bytes, labels.n));
    ct_blob_free(&labels);
    succeeds("reproduce mini.conf --data-dir flipped --out f");
    CHECK(same_files("m/dsgd/tuned.json", "f/dsgd/tuned.json"));
    CHECK(same_files("m/ccl/tuned.json", "f/ccl/tuned.json"));
    CHECK(of_summary("m/dsgd", "consensus_loss") != of_summary("f/dsgd", "consensus_loss"));
}

/* A machine each; what one has made is copied to the other. */
static void runs_of_several_machines_are_one_table(void) {
    succeeds(MINI "one --only dsgd --quiet");
    CHECK(contains("one/table.md", "1 of 2 runs are not there yet"));
    succeeds(MINI "two --only ccl --quiet");
    CHECK(system("cp -r two/ccl one/ccl") == 0);
    succeeds(MINI "one --table-only --quiet");
    CHECK(same_files("one/table.csv", "m/table.csv") && same_files("one/tuned.csv", "m/tuned.csv"));
    CHECK(system("rm one/ccl/tuned.json") == 0);
    REFUSES(2, MINI "one --table-only", "one/ccl has a run and no tuned.json");
}

/* Stopped at any time, tuning goes on where it was. */
static void tuning_that_was_interrupted_goes_on(void) {
    CHECK(system("mkdir -p cut && cp -r m/tune cut/tune && rm cut/tune/*/tuned.json && "
                 "rm -r cut/tune/ccl cut/tune/dsgd/epochs-4") == 0);
    succeeds(MINI "cut --quiet");
    CHECK(same_files("cut/dsgd/tuned.json", "m/dsgd/tuned.json"));
    CHECK(same_files("cut/ccl/tuned.json", "m/ccl/tuned.json"));
}

/* A fresh machine every three seconds: all that travels is the bundle. */
static void a_bundle_carries_tuning_from_machine_to_machine(void) {
    int n_machines = 0, status = 1;
    CHECK(system("mkdir -p carried") == 0);
    for (; status != 0 && n_machines < 60; n_machines++) {
        CHECK(system("rm -rf machine && cp -r carried machine") == 0);
        status = run(MINI "machine --quiet --time-limit 3s");
        CHECK(status == 0 || status == 143);
        succeeds("report machine --bundle machine/runs.jsonl.gz --force");
        CHECK(system("cp machine/runs.jsonl.gz carried/") == 0);
    }
    CHECK(status == 0);
    CHECK(system("rm -rf machine/tune machine/dsgd machine/ccl") == 0);
    succeeds(MINI "machine --table-only --quiet");
    CHECK(same_files("machine/tuned.csv", "m/tuned.csv"));
    CHECK(same_files("machine/table.csv", "m/table.csv"));
}

/* What is known of the first rung, and no run of it: on the next machine only the others are
 * trained, and the choice is the same. Pages do not take it for a run. */
static void trials_that_are_in_a_bundle_are_not_trained_again(void) {
    CHECK(system("mkdir -p half/tune/dsgd && cp -r m/ccl half/ && "
                 "sed '/\"epochs\": 2,/,$d' m/tune/dsgd/tuned.json >half/tune/dsgd/tuned.json && "
                 "printf '    {\"epochs\": 2, \"trials\": [\\n]},\\n"
                 "    {\"epochs\": 4, \"trials\": [\\n]}\\n ],\\n \"chosen\": null}\\n' "
                 ">>half/tune/dsgd/tuned.json") == 0);
    succeeds("report half --bundle half/runs.jsonl.gz");
    CHECK(strstr(said.out, ": 4 directories of runs") != NULL); /* ccl, its seeds, and the trials */
    CHECK(system("rm -r half/tune half/ccl") == 0);
    succeeds(MINI "half --dry-run");
    CHECK(strstr(said.out, "to tune   dsgd\n") != NULL && strstr(said.out, "1 of 2 runs to do"));
    succeeds("report half --out half.html");
    CHECK(strstr(said.out, "half.html: 2 runs in 1 group") != NULL);
    CHECK(system("mkdir half/tune") == 0); /* another run was tuned since */
    succeeds(MINI "half --quiet");
    CHECK(!ct_dir_exists("half/tune/dsgd/epochs-1") && ct_dir_exists("half/tune/dsgd/epochs-2"));
    CHECK(same_files("half/dsgd/tuned.json", "m/dsgd/tuned.json"));
    CHECK(same_files("half/tuned.csv", "m/tuned.csv"));
}

/* A study as that of `from`, in which all combinations of DSGD's last rung diverged. */
static void begin_unlucky(const char *from, const char *to) {
    char command[512];
    snprintf(command, sizeof command,
             "mkdir -p %s/tune/dsgd && cp -r m/ccl %s/ && "
             "sed '/\"epochs\": 4/,$s/\"validation_accuracy\": [^}]*/"
             "\"validation_accuracy\": null/; s/\"chosen\": ./\"chosen\": null/' "
             "%s/dsgd/tuned.json >%s/tune/dsgd/tuned.json",
             to, to, from, to);
    CHECK(system(command) == 0);
}

/* The one of five that was trained last has been chosen. */
static int check_chosen(const char *dir, const char *of) {
    double scores[5];
    char last[64], chosen[32];
    snprintf(last, sizeof last, "%s/tune/dsgd/epochs-4", of);
    read_scores(last, scores);
    CHECK(n_run(scores) == 1);
    snprintf(chosen, sizeof chosen, "\"chosen\": %d}", best_of(scores) + 1);
    CHECK(contains(dir, chosen));
    return best_of(scores);
}

static void where_a_rung_diverges_the_next_best_is_tried(void) {
    double second[5], last[5];
    read_scores("m/tune/dsgd/epochs-2", second);
    read_scores("m/tune/dsgd/epochs-4", last);
    begin_unlucky("m", "wild");
    succeeds(MINI "wild --quiet");
    int third = check_chosen("wild/dsgd/tuned.json", "wild");
    CHECK(second[third] >= 0 && last[third] < 0 && !ct_dir_exists("wild/tune/dsgd/epochs-2"));
    begin_unlucky("wild",
                  "wilder"); /* all three: one of the first rung has to come through the second */
    succeeds(MINI "wilder --quiet");
    int fourth = check_chosen("wilder/dsgd/tuned.json", "wilder");
    CHECK(second[fourth] < 0);
    read_scores("wilder/tune/dsgd/epochs-2", second);
    CHECK(n_run(second) == 1 && second[fourth] >= 0);
    succeeds(MINI "wilder --table-only --quiet");
    CHECK(system("cp -r wild forged-wild && "
                 "sed -i 's/null/0.001/' forged-wild/dsgd/tuned.json") == 0);
    REFUSES(2, MINI "forged-wild --table-only", "rung 3 has 3 combinations, not 2");
}

static void a_choice_of_something_else_is_refused(void) {
    char other[sizeof mini + 64];
    snprintf(other, sizeof other, "%s", mini);
    memcpy(strstr(other, "0.0008"), "0.0009", 6);
    put("other.conf", other);
    REFUSES(2, "reproduce other.conf --data-dir fixtures/data --out m --only dsgd",
            "dsgd was tuned in another way");
    CHECK(system("cp -r m forged && sed -i 's/\"chosen\": ./\"chosen\": 5/' "
                 "forged/dsgd/tuned.json") == 0);
    REFUSES(2, MINI "forged --table-only", "the best of the last rung");
}

/* The same on the command line: each method's own choice, and nothing is trained with it. */
static void a_sweep_picks_by_halving(void) {
#define HALVING                                                                                    \
    "sweep --quiet --pick --halving=0.25,0.5,1 --dataset idx --data-dir fixtures/data --model "    \
    "mlp:4 --agents 4 --partition iid --batch-size 8 --epochs 4 --seeds 1,2 --threads 1 "          \
    "--validation-fraction 0.2 "
    char words[256];
    succeeds(HALVING "--algorithm dsgd,dsgdm --lr 0.5,0.1,0.02,0.004,0.0008 --out s");
    CHECK(same_files("s/tune/dsgd/tuned.json",
                     "m/tune/dsgd/tuned.json")); /* a study's, to the last digit */
    CHECK(!ct_dir_exists("s/dsgd") && ct_dir_exists("s/tune/dsgdm/epochs-4"));
    CHECK(strstr(said.out, "picked: --algorithm dsgd --lr ") != NULL);
    CHECK(strstr(said.out, "picked: --algorithm dsgdm --lr ") != NULL);
    CHECK(strstr(said.out, "crosstalk compare --algorithms dsgd:lr=") != NULL);
    CHECK(strstr(said.out, "consensus") == NULL);
    succeeds(HALVING "--lr 0.5,0.1 --out s1");
    CHECK(strstr(said.out, "with all training samples: crosstalk train ") != NULL);
    REFUSES(2, "sweep --halving --lr 1,2", "--halving goes with --pick");
    REFUSES(2, "sweep --pick --halving=1,0.5 --lr 1,2", "'0.5' is no part of the epochs");
    snprintf(words, sizeof words, "sweep --pick --halving --grid lr-milestones=0.5,0.7|none");
    REFUSES(2, words, "takes no values with commas");
}

static void comparisons_that_are_not_fair_are_refused(void) {
    char other[sizeof mini + 64];
    snprintf(other, sizeof other, "%s", mini);
    *strstr(other, ",0.001\n") = '#';
    put("unfair.conf", other);
    REFUSES(1, "reproduce unfair.conf --out never", "all get the same number");
    snprintf(other, sizeof other, "%slr = 0.1\n", mini);
    put("both.conf", other);
    REFUSES(1, "reproduce both.conf --out never", "--lr is tuned");
    put("rule.conf", "[tune]\nepochs = 3\n[row a]\n");
    REFUSES(1, "reproduce rule.conf --out never",
            "crosstalk: rule.conf:2: 'epochs' is none of rungs");
}

int main(void) {
    if (!enter_folder()) return 1;
    TEST(the_better_half_goes_on);
    TEST(rungs_that_do_not_rise_are_refused);
    TEST(a_study_tunes_and_trains_with_the_choice);
    TEST(lines_of_tuning_do_not_tell_test_accuracies);
    TEST(what_is_chosen_does_not_depend_on_the_test_set);
    TEST(runs_of_several_machines_are_one_table);
    TEST(tuning_that_was_interrupted_goes_on);
    TEST(a_bundle_carries_tuning_from_machine_to_machine);
    TEST(trials_that_are_in_a_bundle_are_not_trained_again);
    TEST(where_a_rung_diverges_the_next_best_is_tried);
    TEST(a_choice_of_something_else_is_refused);
    TEST(a_sweep_picks_by_halving);
    TEST(comparisons_that_are_not_fair_are_refused);
    leave_folder();
    remove_tree(folder);
    return test_report();
}
