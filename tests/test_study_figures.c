/* What a study draws, and what it leaves of its runs: figures with the table's numbers, metrics
 * thinned, no path of this machine. */
#include "program.h"

#include <math.h>

#include "ct_config.h"
#include "markup.h"

/* Milliseconds a run. */
#define OPTIONS                                                                                    \
    "[options]\ndataset = shapes\nmodel = mlp:4\ntrain-samples = 400\ntest-samples = 100\n"        \
    "batch-size = 8\nagents = 4\nepochs = 2\nlr = 0.02\nseeds = 1,2\nthreads = 1\n"
#define TOY                                                                                        \
    "title = A & <toy>\nrows = kind | method\n" OPTIONS                                            \
    "[column alpha = 0.1]\nalpha = 0.1\n[column alpha = 1]\nalpha = 1\n"                           \
    "[row 4 | IID]\nalgorithm = dsgdm\npartition = iid\ncells = + | <\npaper = 50.00 +- 1\n"       \
    "[row 4 | CCL]\nalgorithm = ccl\nlambda-d = 0 | 0.01\npaper = - | 10.5 +- 99\n"                \
    "[row 5 | wild]\nlr = 1e6\ncells = - | +\n"

static char *read_text(const char *path) {
    ct_blob blob = {0};
    if (ct_file_read(path, 1 << 24, &blob) == CT_OK) return (char *)blob.bytes;
    printf("    %s\n", ct_message());
    test_failed = true;
    return ct_strdup("");
}

/* The number in quotes behind the last of the words, each sought behind the one before. */
static double value_behind(const char *text, const char *const *words) {
    for (; *words != NULL && text != NULL; words++) {
        text = strstr(text, *words);
        if (text != NULL) text += strlen(*words);
    }
    return text != NULL ? strtod(text, NULL) : NAN;
}
#define BEHIND(text, ...) value_behind(text, (const char *const[]){__VA_ARGS__, NULL})

static bool near(double a, double b) {
    return fabs(a - b) <= 1e-8 * fabs(b); /* CSV has nine digits */
}

static int count(const char *text, const char *words) {
    int n = 0;
    for (; (text = strstr(text, words)) != NULL; text += strlen(words)) n++;
    return n;
}

static bool is_well_formed(const char *svg) {
    const char *flaw = find_flaw(svg);
    if (flaw != NULL) printf("    not well-formed: %.80s\n", flaw);
    return flaw == NULL;
}

/* ---- figures ---- */

static void what_is_wrong_with_a_figure_is_named_with_its_line(void) {
    static const char *const cases[][2] = {
        {"figure = bars\n[row a]\n", "my.conf:1: figure: 'bars' is none of dots"},
        {"figure = dots of ours\n[row a]\n", "my.conf:1: figure = dots takes no 'of ours'"},
        {"title = x\nfigure = lines\n[row a]\n", "my.conf:2: figure = lines needs an option"},
        {"figure = lines x=agent\n[row a]\n", "my.conf:1: figure: unknown option 'agent'"},
        {"figure = lines x=lr y=2\n[row a]\n", "my.conf:1: figure: 'y=2' is not label=WORDS"},
        {"figure = curves\n[row a]\n", "my.conf:1: figure = curves draws what a line"},
        {"figure = lines x=topology\n[row a]\n", "my.conf:1: figure: a has no number as its --top"},
        {"figure = lines x=lr\n[column a]\n[column b]\n[row c]\n",
         "my.conf:1: figure: two runs of row 'c' have --lr 0.01"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        put("my.conf", cases[k][0]);
        REFUSES(1, "reproduce my.conf --dry-run", cases[k][1]);
    }
}

static void dots_are_the_numbers_of_the_table(void) {
    put("toy.conf", TOY);
    succeeds("reproduce toy.conf --quiet --out toy");
    char *svg = read_text("toy/figure.svg"), *csv = read_text("toy/table.csv");
    CHECK(is_well_formed(svg) && strstr(svg, "<title>A &amp; &lt;toy&gt;</title>") != NULL);
    double iid = BEHIND(csv, "4 | IID,alpha = 0.1,consensus,");
    double ccl = BEHIND(csv, "4 | CCL,alpha = 1,consensus,");
    CHECK(iid > 0 && ccl > 0);
#define OURS(row, panel)                                                                           \
    "data-row=\"" row "\" data-panel=\"" panel "\" data-kind=\"ours\"", "data-value=\""
    CHECK(near(BEHIND(svg, OURS("0", "0")), iid));
    CHECK(near(BEHIND(svg, OURS("0", "1")), iid)); /* < is the run of the cell before */
    CHECK(near(BEHIND(svg, OURS("1", "1")), ccl));
    char deviation[64];
    double spread = BEHIND(svg, OURS("1", "1"), "data-deviation=\"");
    snprintf(deviation, sizeof deviation, ",%.9g,10.5,99,", spread);
    CHECK(strstr(csv, deviation) != NULL);
    CHECK(BEHIND(svg, "data-row=\"1\" data-panel=\"1\" data-kind=\"theirs\" data-value=\"") ==
          10.5);
    CHECK(BEHIND(svg, "data-kind=\"theirs\" data-value=\"10.5\" data-deviation=\"") == 99);
    CHECK(count(svg, "data-kind=\"ours\"") == 4 && count(svg, "data-kind=\"theirs\"") == 3);
    CHECK(count(svg, ">diverged<") == 1 && strstr(svg, ">kind 4<") != NULL);
    CHECK(ct_file_exists("toy/figure.png") == CT_WITH_RSVG);
    ct_free(svg);
    ct_free(csv);
}

/* A panel or a line of the paper's numbers alone would be beside the point, but for a study that
 * has not begun. */
static void dots_of_a_part_show_that_part(void) {
    put("part.conf", TOY);
    succeeds("reproduce part.conf --quiet --out part --table-only");
    char *svg = read_text("part/figure.svg");
    CHECK(count(svg, "data-kind=\"theirs\"") == 3 && count(svg, "data-kind=\"ours\"") == 0);
    CHECK(strstr(svg, ">wild<") != NULL && strstr(svg, ">alpha = 1<") != NULL);
    ct_free(svg);
    succeeds("reproduce part.conf --quiet --out part --only 4-iid");
    svg = read_text("part/figure.svg");
    CHECK(is_well_formed(svg) && strstr(svg, ">IID<") != NULL && strstr(svg, ">CCL<") == NULL);
    CHECK(strstr(svg, ">alpha = 0.1<") != NULL && strstr(svg, ">alpha = 1<") == NULL);
    CHECK(count(svg, "data-kind=\"theirs\"") == 1 && count(svg, "data-kind=\"ours\"") == 1);
    ct_free(svg);
    succeeds("reproduce part.conf --quiet --out part --only wild");
    svg = read_text("part/figure.svg"); /* IID in both panels, and in one what diverged */
    CHECK(is_well_formed(svg) && strstr(svg, ">CCL<") == NULL && count(svg, ">diverged<") == 1);
    CHECK(strstr(svg, "data-row=\"0\" data-panel=\"1\" data-kind=\"ours\"") != NULL);
    CHECK(count(svg, "data-kind=\"ours\"") == 2 && strstr(svg, ">alpha = 1<") != NULL);
    ct_free(svg);
}

/* A figure each, and factors on the axis where the values are that far apart. */
static void lines_of_every_metric_shown_are_drawn(void) {
    put("wide.conf", "figure = lines x=lr\nshow = consensus, distance\n" OPTIONS
                     "[column low]\nlr = 0.001\n[column high]\nlr = 0.05\n"
                     "[row QG]\nalgorithm = qg-dsgdm\n");
    succeeds("reproduce wide.conf --quiet --out wide");
    char *first = read_text("wide/figure.svg"), *other = read_text("wide/figure-distance.svg");
    char *csv = read_text("wide/table.csv"), *at = strstr(other, "data-y=\"");
    CHECK(strstr(first, "data-x-log=\"1\"") != NULL && is_well_formed(other));
    CHECK(count(other, "data-label=\"QG\"") == 1);
    REQUIRE(at != NULL);
    CHECK(fabs(strtod(at + 8, NULL) / BEHIND(csv, "QG,low,distance,") - 1) < 1e-4);
    ct_free(first);
    ct_free(other);
    ct_free(csv);
}

/* Columns may come in any order. */
static void lines_go_through_the_table_s_numbers(void) {
    put("sizes.conf", "figure = lines x=agents label=how many & where\n" OPTIONS
                      "[column six]\nagents = 6\n[column four]\nagents = 4\n"
                      "[column eight]\nagents = 8\n"
                      "[row QG]\nalgorithm = qg-dsgdm\n[row CCL]\nalgorithm = ccl\n");
    succeeds("reproduce sizes.conf --quiet --out sizes");
    char *svg = read_text("sizes/figure.svg"), *csv = read_text("sizes/table.csv"), *at = NULL;
    CHECK(is_well_formed(svg) && count(svg, "data-x=\"4 6 8\"") == 2);
    CHECK(strstr(svg, ">how many &amp; where</text>") != NULL);
    const char *curve = strstr(svg, "data-label=\"CCL\"");
    REQUIRE(curve != NULL);
    double four = BEHIND(csv, "CCL,four,consensus,"), six = BEHIND(csv, "CCL,six,consensus,");
    double spread = BEHIND(csv, "CCL,four,consensus,", ",");
    curve = strstr(curve, "data-y=\"") + 8;
    CHECK(near(strtod(curve, &at), four) && near(strtod(at, NULL), six));
    CHECK(fabs(BEHIND(curve, "data-low=\"") - (four - spread)) < 1e-6);
    for (int k = 4; k <= 8; k += 2) { /* a tick at each */
        char tick[16];
        snprintf(tick, sizeof tick, ">%d</text>", k);
        CHECK(strstr(svg, tick) != NULL);
    }
    ct_free(svg);
    ct_free(csv);
    put("models.conf", "figure = lines x=model\n" OPTIONS "[column a]\nmodel = mlp:8\n"
                       "[column b]\nmodel = mlp:4\n[row QG]\nalgorithm = qg-dsgdm\n");
    succeeds("reproduce models.conf --quiet --out models");
    svg = read_text("models/figure.svg");
    CHECK(strstr(svg, "data-x=\"4 8\"") != NULL); /* the number at the end of the name */
    ct_free(svg);
}

static void curves_have_a_file_each(void) {
    put("curves.conf", "figure = curves\ncurves = ce, consensus\n" OPTIONS "eval-every = 2\n"
                       "[column a]\nalpha = 0.1\n[column b]\nalpha = 10\n[row CCL]\n"
                       "algorithm = ccl\n");
    succeeds("reproduce curves.conf --quiet --out curves --epochs 4");
    char *ce = read_text("curves/figure-ce.svg"), *csv = read_text("curves/curves.csv");
    char *consensus = read_text("curves/figure-consensus.svg");
    CHECK(is_well_formed(ce) && is_well_formed(consensus));
    CHECK(count(ce, "data-x=\"1 2 3 4\"") == 2 && count(consensus, "data-x=\"2 4\"") == 2);
    CHECK(near(BEHIND(ce, "data-label=\"CCL, b\"", "data-y=\""), BEHIND(csv, "CCL,b,1,")));
    CHECK(near(BEHIND(consensus, "data-label=\"CCL, a\"", "data-y=\""),
               BEHIND(csv, "CCL,a,2,", ",", ",")));
    CHECK(!ct_file_exists("curves/figure.svg"));
    ct_free(ce);
    ct_free(consensus);
    ct_free(csv);
}

#define SWEEP                                                                                      \
    "sweep --quiet --dataset shapes --model mlp:4 --train-samples 400 --test-samples 100 "         \
    "--batch-size 8 --agents 4 --epochs 1 --threads 1 --algorithm ccl "

/* One option: a line over its values, which rise. Two: a cell for each pair. */
static void a_sweep_is_a_line_or_a_heat_map(void) {
    succeeds(SWEEP "--lr 0.1,0.001,0.01 --out one");
    char *svg = read_text("one/figure.svg"), *csv = read_text("one/table.csv");
    CHECK(is_well_formed(svg) && count(svg, "class=\"curve\"") == 1);
    CHECK(strstr(svg, "data-x=\"0.001 0.01 0.1\"") != NULL &&
          strstr(svg, "data-x-log=\"1\"") != NULL);
    CHECK(near(BEHIND(svg, "data-y=\""), BEHIND(csv, "\n0.001,consensus %,consensus,")));
    CHECK(ct_file_exists("one/figure.pdf") == CT_WITH_RSVG);
    ct_free(svg);
    ct_free(csv);
    succeeds(SWEEP "--lambda-m 1,.1 --lambda-d 10,.1,1 --out two");
    svg = read_text("two/figure.svg"), csv = read_text("two/table.csv");
    CHECK(is_well_formed(svg) && count(svg, "class=\"cell\"") == 6);
    CHECK(near(BEHIND(svg, "data-row=\".1\" data-column=\"10\" data-value=\""),
               BEHIND(csv, ".1 | 10,consensus %,consensus,")));
    const char *low = strstr(svg, "data-column=\".1\""), *high = strstr(svg, "data-column=\"10\"");
    CHECK(low != NULL && low < high && count(svg, "data-best") >= 1);
    ct_free(svg);
    ct_free(csv);
    char *page = read_text("two/report.html");
    CHECK(is_well_formed(page) && strstr(page, "<figure id=\"figure-box\">") != NULL);
    ct_free(page);
}

/* The best first, one colour per method, and names as on all other pages. */
static void a_comparison_is_ranked(void) {
    succeeds(
        "compare --quiet --dataset shapes --model mlp:4 --train-samples 400 --test-samples 100 "
        "--batch-size 8 --agents 4 --epochs 2 --threads 1 --out compared "
        "--algorithms local,dsgdm,gt+ccl,ccl:lr=0.05,dsgdm:lr=1e6");
    char *svg = read_text("compared/figure.svg"), *page = read_text("compared/report.html");
    CHECK(is_well_formed(svg) && is_well_formed(page) && count(svg, "class=\"dot\"") == 4);
    double last = INFINITY;
    for (const char *at = svg; (at = strstr(at, "data-value=\"")) != NULL; at++) {
        double value = strtod(at + strlen("data-value=\""), NULL);
        CHECK(value <= last);
        last = value;
    }
    CHECK(strstr(svg, ">Gradient tracking + CCL<") != NULL &&
          strstr(svg, ">CCL, lr 0.05<") != NULL);
    CHECK(strstr(page, "<th class=\"word\">CCL, lr 0.05</th>") != NULL);
    /* why it ended is on the page */
    CHECK(strstr(page, "<p class=\"alarm\">") != NULL && strstr(page, "lower --lr") != NULL);
    ct_free(svg);
    ct_free(page);
}

static void nothing_is_drawn_of_nothing(void) {
    put("none.conf", "figure = none\n" OPTIONS "[row a]\n");
    succeeds("reproduce none.conf --quiet --out none");
    CHECK(ct_file_exists("none/table.md") && !ct_file_exists("none/figure.svg"));
    put("empty.conf", OPTIONS "[row a]\n");
    succeeds("reproduce empty.conf --quiet --out empty --table-only");
    CHECK(ct_file_exists("empty/table.md") && !ct_file_exists("empty/figure.svg"));
}

/* ---- light results ---- */

/* A number of a line of a metrics file, counted from 0. */
static double of_line(const char *path, int n, const char *key) {
    ct_json *json = read_json(path, n);
    double value = number_of(json, key);
    ct_json_free(&json);
    return value;
}

static int n_lines_of(const char *path) {
    char *text = read_text(path);
    int n = n_lines(text);
    ct_free(text);
    return n;
}

#define LONG  "reproduce long.conf --quiet --epochs 173 "
#define FULL  "full/a/seed-2/metrics.jsonl"
#define LIGHT "light/a/seed-2/metrics.jsonl"

/* Every line of the light file is one of the full file, rounded; what was evaluated is all there.
 */
static void thinned_metrics_keep_evaluations_and_both_ends(void) {
    put("long.conf", "curves = ce\n[options]\ndataset = shapes\nmodel = mlp:4\ntrain-samples = 64\n"
                     "test-samples = 20\nbatch-size = 8\nagents = 4\nlr = 0.02\nseeds = 1,2\n"
                     "threads = 1\neval-every = 31\n[row a]\nalgorithm = ccl\n");
    succeeds(LONG "--out full --keep");
    succeeds(LONG "--out light");
    int n_full = n_lines_of(FULL), n = n_lines_of(LIGHT), at = 0, n_evaluated = 0;
    CHECK(n_full == 173 && n >= 30 && n <= 48);
    for (int k = 0; k < n; k++) {
        double epoch = of_line(LIGHT, k, "epoch");
        while (at < n_full && of_line(FULL, at, "epoch") < epoch) at++;
        CHECK_NEAR(of_line(LIGHT, k, "ce"), of_line(FULL, at, "ce"), 1e-5);
        double accuracy = of_line(LIGHT, k, "consensus_accuracy");
        CHECK(isnan(accuracy) == isnan(of_line(FULL, at, "consensus_accuracy")));
        n_evaluated += !isnan(accuracy);
    }
    CHECK(n_evaluated == 173 / 31 + 1);
    CHECK(of_line(LIGHT, 0, "epoch") == 1 && of_line(LIGHT, n - 1, "epoch") == 173);
    struct stat facts;
    CHECK(stat(LIGHT, &facts) == 0 && facts.st_size < 10 * 1024);
    CHECK(n_lines_of("light/curves.csv") == 1 + n && n_lines_of("full/curves.csv") == 1 + 173);
}

/* What was made light stays as it is, what --keep left stays whole, and both count as done. */
static void a_second_time_changes_nothing(void) {
    char *before = read_text(LIGHT);
    succeeds(LONG "--out light --dry-run");
    CHECK(strstr(said.out, "0 of 1 runs to do") != NULL);
    succeeds(LONG "--out light");
    succeeds(LONG "--out full");
    char *after = read_text(LIGHT);
    CHECK(strcmp(before, after) == 0);
    CHECK(n_lines_of(FULL) == 173 && ct_file_exists("full/a/seed-2/consensus.safetensors"));
    ct_free(before);
    ct_free(after);
}

/* Runs of versions that kept every line, and files that are too large to be kept. */
static void older_results_become_light(void) {
    char *full = read_text(FULL), *large = ct_alloc(30001, 1), *light = read_text(LIGHT);
    memset(large, ' ', 30000);
    put(LIGHT, full);
    put("light/a/seed-2/evaluation.json", large);
    CHECK(ct_file_exists("light/a/seed-2/setting.json"));
    succeeds(LONG "--out light");
    char *again = read_text(LIGHT);
    CHECK(n_lines(again) == n_lines(light) && strlen(again) < strlen(full));
    CHECK(!ct_file_exists("light/a/seed-2/evaluation.json"));
    CHECK(ct_file_exists("light/a/seed-2/setting.json"));
    CHECK(ct_file_exists("light/a/seed-1/evaluation.json"));
    ct_free(full);
    ct_free(large);
    ct_free(light);
    ct_free(again);
}

/* A run that was cut short ends with a line that is neither evaluated nor due. */
static void the_last_line_stays_whatever_it_is(void) {
    char *whole = read_text(LIGHT), *full = read_text(FULL), *end = full;
    for (int k = 0; k < 100; k++) end = strchr(end, '\n') + 1;
    *end = '\0';
    put(LIGHT, full);
    succeeds(LONG "--out light");
    int n = n_lines_of(LIGHT);
    CHECK(n > 30 && n < 48 && of_line(LIGHT, n - 1, "epoch") == 100);
    CHECK(of_line(LIGHT, n - 2, "epoch") == 99 && of_line(LIGHT, 0, "epoch") == 1);
    put(LIGHT, whole);
    ct_free(whole);
    ct_free(full);
}

static void a_report_of_light_runs_has_all_its_figures(void) {
    succeeds("report light --out light.html");
    char *page = read_text("light.html");
    CHECK(is_well_formed(page));
    static const char *const ids[] = {"fig-accuracy", "fig-ce", "fig-mv", "fig-graph-1"};
    for (size_t k = 0; k < sizeof ids / sizeof *ids; k++) {
        char id[64];
        snprintf(id, sizeof id, "id=\"%s\"", ids[k]);
        CHECK(strstr(page, id) != NULL);
    }
    CHECK(count(page, ">finished<") == 2);
    ct_free(page);
}

/* How many text files below `dir` have the words; what has them is named. */
static int find_words(const char *dir, const char *words) {
    DIR *d = opendir(dir);
    int n = 0;
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char path[1024];
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%.600s/%.255s", dir, e->d_name);
        if (ct_dir_exists(path)) {
            n += find_words(path, words);
            continue;
        }
        char *text = read_text(path);
        if (strstr(text, words) != NULL && ++n > 0) printf("    %s has '%s'\n", path, words);
        ct_free(text);
    }
    if (d != NULL) closedir(d);
    return n;
}

static void no_path_of_the_machine_is_left(void) {
    char words[1024];
    put("data.conf", "[options]\nmodel = mlp:8\nagents = 5\nbatch-size = 8\npartition = iid\n"
                     "threads = 1\nepochs = 2\nlr = 0.05\n[row two]\nseeds = 1,2\n"
                     "[row one]\nseeds = 3\n[row wild]\nlr = 1e6\n");
#define DATASET                                                                                    \
    "reproduce data.conf --quiet --dataset idx --out %s/absolute --data-dir %s/fixtures/data"
    snprintf(words, sizeof words, DATASET, folder, folder);
    succeeds(words);
    CHECK(ct_file_exists("absolute/wild/diverged.json"));
    CHECK(find_words("absolute", folder) == 0 && find_words("absolute", "/tests/fixtures") == 0);
    char *config = read_text("absolute/two/seed-1/config.txt");
    CHECK(strstr(config, "\nout = two/seed-1\n") != NULL && strstr(config, "data-dir") == NULL);
    ct_free(config);
    ct_json *summary = read_json("absolute/two/summary.json", -1);
    const ct_json *out = ct_json_get(ct_json_get(summary, "options"), "out");
    CHECK(out != NULL && strcmp(out->string, "two") == 0);
    ct_json_free(&summary);
    snprintf(words, sizeof words, DATASET " --dry-run", folder, folder);
    succeeds(words);
    CHECK(strstr(said.out, "0 of 3 runs to do") != NULL);
    succeeds("reproduce data.conf --quiet --dataset idx --out relative --data-dir fixtures/data");
    config = read_text("relative/one/config.txt");
    CHECK(strstr(config, "\ndata-dir = fixtures/data\n") != NULL);
    ct_free(config);
}

int main(void) {
    if (!enter_folder()) return 1;
    TEST(what_is_wrong_with_a_figure_is_named_with_its_line);
    TEST(dots_are_the_numbers_of_the_table);
    TEST(dots_of_a_part_show_that_part);
    TEST(lines_of_every_metric_shown_are_drawn);
    TEST(lines_go_through_the_table_s_numbers);
    TEST(curves_have_a_file_each);
    TEST(a_sweep_is_a_line_or_a_heat_map);
    TEST(a_comparison_is_ranked);
    TEST(nothing_is_drawn_of_nothing);
    TEST(thinned_metrics_keep_evaluations_and_both_ends);
    TEST(a_second_time_changes_nothing);
    TEST(older_results_become_light);
    TEST(the_last_line_stays_whatever_it_is);
    TEST(a_report_of_light_runs_has_all_its_figures);
    TEST(no_path_of_the_machine_is_left);
    leave_folder();
    remove_tree(folder);
    return test_report();
}
