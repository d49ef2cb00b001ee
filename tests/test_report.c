/* Reports: what is read, what is drawn, and that the page holds. */
#include "reports.h"

#include "ct_config.h"

/* The numbers of an attribute, as they stand in the page, are those of a column of the metrics. */
static int same_numbers(const char *attribute, const char *metrics, const char *key) {
    int n = 0;
    const char *at = attribute;
    for (int line = 0;; line++) {
        ct_json *json = read_json(metrics, line);
        if (json == NULL) break;
        double wanted = number_of(json, key);
        ct_json_free(&json);
        if (isnan(wanted)) continue;
        char *end;
        if (strtod(at, &end) != wanted || end == at) return -1;
        at = end + (*end == ' ');
        n++;
    }
    return *at == '"' ? n : -1;
}

static const char *attribute_after(const char *at, const char *name) {
    const char *found = at != NULL ? strstr(at, name) : NULL;
    return found != NULL ? found + strlen(name) : NULL;
}

static void every_point_of_a_curve_is_that_of_the_metrics(void) {
    static const char *const figures[][3] = {
        {"id=\"fig-accuracy\"", "epoch", "consensus_accuracy"},
        {"id=\"fig-local\"", "epoch", "local_accuracy_mean"},
        {"id=\"fig-worst\"", "epoch", "local_accuracy_min"},
        {"id=\"fig-ce\"", "epoch", "ce"},
        {"id=\"fig-mv\"", "epoch", "mv"},
        {"id=\"fig-dv\"", "epoch", "dv"},
        {"id=\"fig-distance\"", "epoch", "consensus_distance"},
        {"id=\"fig-bytes\"", "bytes_sent_per_agent", "consensus_accuracy"},
        {"id=\"fig-time\"", "seconds", "consensus_accuracy"}};
    succeeds(TINY "--algorithm ccl --epochs 5 --eval-agents 1");
    REQUIRE(make_page("run"));
    check_page();
    for (size_t k = 0; k < sizeof figures / sizeof *figures; k++) {
        const char *svg = strstr(page, figures[k][0]);
        const char *curve = svg != NULL ? strstr(svg, "class=\"curve\"") : NULL;
        const char *seed = curve != NULL ? strstr(curve, "class=\"seed\"") : NULL;
        REQUIRE(seed != NULL);
        CHECK(same_numbers(attribute_after(curve, "data-x=\""), "run/metrics.jsonl",
                           figures[k][1]) == 5);
        CHECK(same_numbers(attribute_after(curve, "data-y=\""), "run/metrics.jsonl",
                           figures[k][2]) == 5);
        CHECK(same_numbers(attribute_after(seed, "data-y=\""), "run/metrics.jsonl",
                           figures[k][2]) == 5);
    }
    CHECK(page_has("crosstalk train") && page_has("--loss ccl") && page_has("--seed 1"));
    remove_run("run");
}

/* What stands under "How to repeat this", as one line. */
static void copy_command(char *out, size_t size) {
    const char *at = strstr(page, "<pre>crosstalk ");
    size_t n = 0;
    if (at == NULL) return;
    for (at += 15; *at != '<' && n + 1 < size; at++) out[n++] = strchr("\\\n", *at) ? ' ' : *at;
    out[n] = '\0';
}

/* A lambda of 0 is not the default, which is the paper's. */
static void the_command_in_the_page_repeats_the_run(void) {
    static const char *const options[] = {"--algorithm ccl --nesterov off --seed 3",
                                          "--algorithm ccl --lambda-m 0.5 --lambda-d 0",
                                          "--algorithm ccl --lambda-m 0 --lambda-d 0",
                                          "--algorithm ccl --ccl-adaptive 0.1",
                                          "--algorithm gt",
                                          "--algorithm gut --variant neurips23"};
    static char command[2048];
    for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
        snprintf(command, sizeof command, TINY "%s", options[k]);
        succeeds(command);
        REQUIRE(make_page("run"));
        copy_command(command, sizeof command - 32);
        CHECK((strstr(command, "--lambda-d 0 ") != NULL) == (k == 1 || k == 2));
        snprintf(command + strlen(command), 32, " --quiet --out again");
        succeeds(command);
        CHECK(same_files("run/consensus.safetensors", "again/consensus.safetensors"));
        CHECK(same_files("run/evaluation.json", "again/evaluation.json"));
        remove_run("run");
        remove_run("again");
    }
}

static double sum_of(const ct_json *array) {
    double sum = 0;
    for (const ct_json *c = array != NULL ? array->child : NULL; c != NULL; c = c->next)
        sum += c->kind == CT_JSON_ARRAY ? sum_of(c) : c->number;
    return sum;
}

/* What the figures of agents and classes are made of agrees with the rest of the run. */
static void details_agree_with_the_summary(void) {
    static const char *const devices[] = {"cpu", "ref"};
    for (int d = 0; d < 2; d++) {
        char words[512];
        snprintf(words, sizeof words, TINY "--device %s --seeds 3,4", devices[d]);
        succeeds(words);
        ct_json *e = read_json("run/seed-4/evaluation.json", -1);
        ct_json *s = read_json("run/seed-4/summary.json", -1);
        ct_json *g = read_json("run/seed-4/setting.json", -1);
        REQUIRE(e != NULL && s != NULL && g != NULL);
        double n_test = number_of(e, "test_samples"), right = 0;
        const ct_json *table = ct_json_get(e, "confusion");
        REQUIRE(table != NULL && table->kind == CT_JSON_ARRAY);
        CHECK(sum_of(table) == n_test);
        int row = 0;
        for (const ct_json *r = table->child; r != NULL; r = r->next, row++) {
            const ct_json *cell = r->child;
            for (int k = 0; k < row; k++) cell = cell->next;
            right += cell->number;
        }
        CHECK(right / n_test == number_of(s, "consensus_accuracy"));
        CHECK_NEAR(sum_of(ct_json_get(e, "local_accuracy")) / 5,
                   number_of(s, "local_accuracy_mean"), 1e-12);
        CHECK(ct_json_get(g, "edges")->n_children == 5 && number_of(g, "agents") == 5);
        CHECK(sum_of(ct_json_get(g, "class_counts")) > 0);
        ct_json_free(&e);
        ct_json_free(&s);
        ct_json_free(&g);
        remove_dir("run/seed-3");
        remove_dir("run/seed-4");
        remove_dir("run");
    }
}

static void details_do_not_depend_on_threads(void) {
    succeeds(TINY "--epochs 4 --out one");
    succeeds(TINY "--epochs 4 --threads 3 --out other");
    CHECK(same_files("one/evaluation.json", "other/evaluation.json"));
    CHECK(same_files("one/setting.json", "other/setting.json"));
    remove_dir("other");
    remove_dir("one");
}

static void a_group_of_seeds_has_a_band(void) {
    succeeds(TINY "--seeds 1,2,3 --algorithm ccl");
    REQUIRE(make_page("run"));
    check_page();
    CHECK(page_has("class=\"band ") && page_has("data-low=\"") && page_has("--seeds 1,2,3"));
    CHECK(page_has("data-seed=\"3\"") && page_has("3 seeds together"));
    CHECK(strstr(said.out, "3 runs in 1 group,") != NULL);
    for (const char *k = "123"; *k != '\0'; k++) {
        char dir[16];
        snprintf(dir, sizeof dir, "run/seed-%c", *k);
        remove_dir(dir);
    }
    remove_dir("run");
}

static void a_line_that_is_being_written_is_left_out(void) {
    put_run("run", "algorithm = dsgd\nseed = 1\nepochs = 9\n", 2, 0.5);
    add_text("run/metrics.jsonl", "{\"epoch\": 3, \"iterat");
    REQUIRE(make_page("run"));
    check_page();
    CHECK(page_has("2 of 9") && page_has("not finished"));
    add_text("run/metrics.jsonl", "\n");
    REFUSES(1, "report run --out page.html", "run/metrics.jsonl:3");
    CHECK(!ct_file_exists("page.html"));
    remove_run("run");
}

static void broken_files_are_refused_with_their_name(void) {
    static const char *const files[][3] = {
        {"metrics.jsonl", "{\"epoch\": 1}\nnonsense\n{\"epoch\": 2}\n", "metrics.jsonl:2"},
        {"metrics.jsonl", "{\"epochs\": 1}\n", "no epoch"},
        {"metrics.jsonl", "{\"epoch\": 2}\n{\"epoch\": 1}\n", "comes after"},
        {"summary.json", "{\"epoch\": ", "summary.json"},
        {"setting.json", "{\"agents\": 0, \"classes\": 2}", "agents"},
        {"setting.json", "{\"agents\": 2, \"classes\": 2, \"edges\": [[0, 2]]}", "edges"},
        {"setting.json", "{\"agents\": 2, \"classes\": 2, \"class_counts\": [[1, 2], [3]]}",
         "class_counts"},
        {"setting.json", "{\"agents\": 2, \"classes\": 2, \"class_counts\": [[1, 2], [3, -1]]}",
         "class_counts"},
        {"config.txt", "lr\n", "name = value"}};
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        char path[64];
        put_run("run", "algorithm = dsgd\nseed = 1\n", 2, 0.5);
        snprintf(path, sizeof path, "run/%s", files[k][0]);
        put(path, files[k][1]);
        REFUSES(1, "report run --out page.html", files[k][2]);
        remove_run("run");
    }
    put_run("run", "algorithm = dsgd\nseed = 1\n", 2, 0.5);
    put("run/setting.json", "{\"agents\": 2, \"classes\": 1}");
    put("run/evaluation.json", "{\"epoch\": 1, \"local_accuracy\": [0.5]}");
    REFUSES(1, "report run --out page.html", "evaluation.json", "local_accuracy");
    remove_run("run");
}

static void words_are_checked(void) {
    REFUSES(2, "report", "run directory");
    REFUSES(1, "report nowhere", "nowhere");
    make_dir("empty");
    REFUSES(1, "report empty", "no run here");
    rmdir("empty");
    put_run("run", "algorithm = dsgd\nseed = 1\n", 2, 0.5);
    REFUSES(2, "report run --colour red", "--colour");
    REFUSES(2, "report run --figures figs --format gif", "gif");
    REFUSES(2, "report run --format svg", "--figures");
    succeeds("report run --out page.html");
    succeeds("report run --out page.html --title again"); /* its own page */
    slurp("page.html", said.out);
    CHECK(strstr(said.out, "again") != NULL);
    put("page.html", "<p>mine</p>\n");
    REFUSES(1, "report run --out page.html", "page.html", "--force");
    REFUSES(1, "report nowhere --out page.html", "nowhere"); /* what is read comes first */
    unlink("page.html");
    remove_run("run");
}

static void odd_runs_still_make_a_page(void) {
    /* one epoch; none; nothing that is finite; no options */
    put_run("runs/one", "algorithm = a\nseed = 1\nepochs = 1\n", 1, 0.5);
    put_run("runs/none", "algorithm = b\nseed = 1\nepochs = 5\n", 0, 0.5);
    put_run("runs/nan", "algorithm = c\nseed = 1\nepochs = 5\n", 0, 0.5);
    put("runs/nan/metrics.jsonl", "{\"epoch\": 1, \"ce\": null, \"seconds\": 1}\n"
                                  "{\"epoch\": 2, \"ce\": 1e308, \"consensus_accuracy\": 0}\n"
                                  "{\"epoch\": 3, \"ce\": null}\n");
    put_run("runs/bare", "", 4, 0.1);
    unlink("runs/bare/config.txt");
    REQUIRE(make_page("runs"));
    check_page();
    CHECK(page_has("diverged") && page_has("0 of 5"));
    REQUIRE(make_page("runs/none"));
    check_page();
    CHECK(page_has("No epoch is finished yet"));
    remove_run("runs/one");
    remove_run("runs/none");
    remove_run("runs/nan");
    remove_run("runs/bare");
    rmdir("runs");
}

static void words_of_users_are_escaped_everywhere(void) {
    put_run("run<b>&", "algorithm = <script>alert(1)</script>\nseed = 1\nmodel = a&b\"c'd\n", 2,
            0.5);
    put("run<b>&/setting.json",
        "{\"agents\": 2, \"classes\": 2, \"class_names\": [\"<i>\", \"&\"], "
        "\"edges\": [[0, 1]], \"class_counts\": [[1, 2], [3, 4]]}");
    put("run<b>&/evaluation.json", "{\"epoch\": 2, \"local_accuracy\": [0.5, null], "
                                   "\"confusion\": [[3, 1], [2, 4]]}");
    REQUIRE(make_page("run<b>& --title <u>t</u>"));
    check_page();
    CHECK(!page_has("<script>alert") && !page_has("<b>") && !page_has("<i>") && !page_has("<u>"));
    CHECK(page_has("&lt;script&gt;alert(1)&lt;/script&gt;") && page_has("&lt;u&gt;t&lt;/u&gt;"));
    remove_run("run<b>&");
}

/* A setting of a ring of n agents and c classes, and an evaluation that fits. */
static void put_details(const char *dir, int n, int c) {
    char path[128];
    ct_text s = {0}, e = {0};
    ct_text_add(&s, "{\"agents\": %d, \"classes\": %d, \"edges\": [", n, c);
    for (int i = 0; i < n; i++) ct_text_add(&s, "%s[%d,%d]", i > 0 ? "," : "", i, (i + 1) % n);
    ct_text_add(&s, "], \"class_counts\": [");
    ct_text_add(&e, "{\"epoch\": 2, \"local_accuracy\": [");
    for (int i = 0; i < n; i++) {
        ct_text_add(&e, "%s%g", i > 0 ? "," : "", 0.3 + 0.5 * i / n);
        for (int k = 0; k < c; k++)
            ct_text_add(&s, "%s%d", k > 0 ? "," : i > 0 ? "],[" : "[", (i * k) % 7);
    }
    ct_text_add(&s, "]]}");
    ct_text_add(&e, "], \"confusion\": [");
    for (int i = 0; i < c; i++)
        for (int k = 0; k < c; k++)
            ct_text_add(&e, "%s%d", k > 0 ? "," : i > 0 ? "],[" : "[", i == k ? 50 : (i + k) % 3);
    ct_text_add(&e, "]]}");
    snprintf(path, sizeof path, "%s/setting.json", dir);
    put(path, s.chars);
    snprintf(path, sizeof path, "%s/evaluation.json", dir);
    put(path, e.chars);
    ct_text_free(&s);
    ct_text_free(&e);
}

static int count(const char *text, const char *word) {
    int n = 0;
    for (; (text = strstr(text, word)) != NULL; text++) n++;
    return n;
}

static void many_agents_and_classes_are_all_drawn(void) {
    put_run("run", "algorithm = dsgd\nseed = 1\n", 2, 0.5);
    put_details("run", 256, 100);
    REQUIRE(make_page("run"));
    check_page();
    CHECK(count(page, "class=\"agent\"") == 256 && page_has("data-edges=\"256\""));
    CHECK(count(page, "data-true=\"99\"") > 60 && page_has("data-taken=\"99\""));
    int n_bubbles = 0;
    for (int i = 0; i < 256; i++)
        for (int k = 0; k < 100; k++) n_bubbles += i * k % 7 != 0;
    CHECK(count(page, "data-class=\"") == n_bubbles);
    remove_run("run");
}

static void figures_are_written_as_files(void) {
    put_run("run", "algorithm = dsgd\nseed = 1\n", 3, 0.5);
    put_details("run", 6, 4);
    succeeds("report run --figures figs --format svg");
    CHECK(!ct_file_exists("report.html")); /* figures alone were asked for */
    int n = n_files("figs");
    CHECK(n == 12);
    ct_blob svg = {0};
    REQUIRE_OK(ct_file_read("figs/fig-accuracy.svg", PAGE, &svg));
    CHECK(strncmp((char *)svg.bytes, "<svg xmlns=", 11) == 0 &&
          find_flaw((char *)svg.bytes) == NULL);
    ct_blob_free(&svg);
    REFUSES(1, "report run --figures figs --format svg", "figs/fig-accuracy.svg", "--force");
    if (CT_WITH_RSVG) {
        succeeds("report run --figures figs --force");
        CHECK(n_files("figs") == 3 * n);
        REQUIRE_OK(ct_file_read("figs/fig-graph-1.png", PAGE, &svg));
        CHECK(svg.n > 5000 && memcmp(svg.bytes, "\x89PNG", 4) == 0);
        ct_blob_free(&svg);
        ct_blob again = {0};
        REQUIRE_OK(ct_file_read("figs/fig-graph-1.pdf", PAGE, &svg));
        CHECK(svg.n > 1000 && memcmp(svg.bytes, "%PDF-1.", 7) == 0);
        bool has_date = false; /* no clock: it would tell one writing from the next */
        for (size_t k = 0; k + 16 < svg.n && !has_date; k++)
            has_date = memcmp(svg.bytes + k, "20000101000000", 14) == 0;
        CHECK(has_date);
        succeeds("report run --figures figs --format pdf --force");
        REQUIRE_OK(ct_file_read("figs/fig-graph-1.pdf", PAGE, &again));
        CHECK(again.n == svg.n && memcmp(again.bytes, svg.bytes, svg.n) == 0);
        ct_blob_free(&again);
        ct_blob_free(&svg);
    } else {
        REFUSES(2, "report run --figures figs --format png --force", "librsvg2-dev");
        REFUSES(2, "report run --figures figs --format pdf --force", "librsvg2-dev");
    }
    remove_dir("figs");
    remove_run("run");
}

/* There is room for the first, not for larger ones. */
static void figures_without_room_leave_none(void) {
    struct stat first;
    put_run("run", "algorithm = dsgd\nseed = 1\n", 3, 0.5);
    put_details("run", 6, 4);
    succeeds("report run --figures figs --format svg");
    REQUIRE(stat("figs/fig-accuracy.svg", &first) == 0);
    remove_dir("figs");
    file_limit = (size_t)first.st_size;
    REFUSES(1, "report run --figures figs --format svg", "figs/fig-");
    file_limit = 0;
    CHECK(n_files("figs") == 0);
    succeeds("report run --figures figs --format svg");
    remove_dir("figs");
    remove_run("run");
}

static void all(void) {
    TEST(every_point_of_a_curve_is_that_of_the_metrics);
    TEST(the_command_in_the_page_repeats_the_run);
    TEST(details_agree_with_the_summary);
    TEST(details_do_not_depend_on_threads);
    TEST(a_group_of_seeds_has_a_band);
    TEST(a_line_that_is_being_written_is_left_out);
    TEST(broken_files_are_refused_with_their_name);
    TEST(words_are_checked);
    TEST(odd_runs_still_make_a_page);
    TEST(words_of_users_are_escaped_everywhere);
    TEST(many_agents_and_classes_are_all_drawn);
    TEST(figures_are_written_as_files);
    TEST(figures_without_room_leave_none);
}

int main(void) {
    return run_in_folder(all);
}
