/* The runs of a folder in one file: every command reads them as it reads their directories, what was
 * kept comes back as it was, and what is no whole bundle is refused with one line. */
#include "reports.h"

#include <zlib.h>

#include "ct_config.h"
#include "record/bundle.h"
#include "record/record.h"
#include "serve/web.h"
#include "sockets.h"
#include "studies.h"

#define BUNDLE "runs/" CT_BUNDLE_NAME
#define HEADER "{\"crosstalk\":\"runs\",\"version\":1,\"n\":%d}\n"

/* Two methods: one of two seeds below a directory with a summary, one that diverged. */
static void put_runs(void) {
    put_run("runs/ccl/seed-1", "algorithm = ccl\nseed = 1\nepochs = 3\n", 3, 0.5);
    put_run("runs/ccl/seed-2", "algorithm = ccl\nseed = 2\nepochs = 3\n", 3, 0.6);
    put_run("runs/ccl-2", "algorithm = dsgd\nseed = 1\nepochs = 3\n", 2, 0.4);
    put_run("runs/wild/seed-7", "algorithm = gt\nseed = 7\nepochs = 3\n", 1, 0.3);
    put("runs/ccl/config.txt", "algorithm = ccl\nseeds = 1,2\nepochs = 3\n");
    put("runs/ccl/summary.json", "{\"epoch\": 3, \"consensus_accuracy\": 0.58}");
    put("runs/ccl/seed-1/summary.json", "{\"epoch\": 3, \"consensus_accuracy\": 0.53}");
    put("runs/wild/config.txt", "algorithm = gt\nseeds = 7,8\n# \"quoted\", \\ back, \t tab, é\n");
    put("runs/wild/diverged.json", "{\"message\": \"so\", \"iteration\": 77, \"agent\": 3}");
}

static void remove_runs(void) {
    static const char *const runs[] = {"runs/ccl", "runs/ccl-2", "runs/wild"};
    for (size_t k = 0; k < sizeof runs / sizeof *runs; k++) remove_tree(runs[k]);
}

/* The runs as a bundle alone. */
static void put_bundle(void) {
    put_runs();
    succeeds("report runs --bundle " BUNDLE);
    CHECK(strcmp(said.out, BUNDLE ": 6 directories of runs\n") == 0);
    remove_runs();
}

/* A plain bundle of these lines behind a header that says how many they are. */
static void put_lines(int n, const char *lines) {
    char text[4096];
    snprintf(text, sizeof text, HEADER "%s", n, lines);
    put("bad.jsonl", text);
}

static ct_status list(const char *file, ct_name_list *out) {
    ct_folder here = CT_NO_FOLDER;
    CT_TRY(ct_folder_open(NULL, ".", &here));
    ct_status status = ct_bundle_list(&here, file, out);
    ct_folder_close(&here);
    return status;
}

static ct_status list_only(const char *file) {
    CT_SCOPED(ct_name_list) names = {0};
    return list(file, &names);
}

/* ---- reading ---- */

static void a_bundle_is_shown_as_the_directories_were(void) {
    char shown[SAID];
    put_runs();
    REQUIRE(make_page("runs"));
    char *before = ct_strdup(page);
    succeeds("show runs/ccl runs/ccl/seed-1 runs/wild");
    memcpy(shown, said.out, sizeof shown);
    CHECK(strstr(shown, "diverged at iteration 77") != NULL);
    put_bundle();
    CHECK(!ct_dir_exists("runs/ccl"));
    REQUIRE(make_page("runs"));
    CHECK(strcmp(page, before) == 0);
    succeeds("show runs/ccl runs/ccl/seed-1 runs/wild");
    CHECK(strcmp(said.out, shown) == 0);
    REQUIRE(make_page("runs/ccl-2 runs/ccl/ runs/wild/seed-7"));
    CHECK(strcmp(page, before) == 0);
    ct_free(before);
    remove_tree("runs");
}

static void a_bundle_may_have_any_name(void) {
    put_bundle();
    REQUIRE(rename(BUNDLE, "kept.gz") == 0);
    REQUIRE(make_page("kept.gz"));
    check_page();
    CHECK(page_has("kept.gz/ccl/seed-2") && strstr(said.out, ": 4 runs in 3 groups") != NULL);
    succeeds("show kept.gz");
    CHECK(strstr(said.out, "kept.gz/ccl ") != NULL);
    CHECK(strstr(said.out, "kept.gz/ccl/seed-1") == NULL); /* one row for all its seeds */
    succeeds("show kept.gz/ccl/seed-1");
    CHECK(strstr(said.out, "kept.gz/ccl/seed-1") != NULL);
    REFUSES(1, "show kept.gz/nobody", "kept.gz/nobody/summary.json: No such file");
    REFUSES(1, "report kept.gz/nobody --out page.html", "kept.gz/nobody: Not a directory");
    REFUSES(1, "report runs/nobody --out page.html", "runs/nobody: No such file");
    remove("kept.gz");
    remove_tree("runs");
}

static void a_seed_in_a_bundle_diverged_when_its_run_did(void) {
    ct_record run = {0};
    put_bundle();
    CHECK_OK(ct_record_load("runs/wild/seed-7", CT_READ_ALL, &run));
    CHECK(run.end.state == CT_RECORD_DIVERGED && run.end.iteration == 77 && run.n_epochs == 1);
    ct_record_unload(&run);
    remove_tree("runs");
}

static void a_directory_counts_more_than_its_line(void) {
    ct_name_list found = {0};
    put_bundle();
    put_run("runs/ccl-2", "algorithm = mine\nseed = 1\nepochs = 3\n", 3, 0.1);
    REQUIRE_OK(ct_record_find("runs", &found));
    CHECK(found.n == 4);
    ct_name_list_free(&found);
    REQUIRE(make_page("runs"));
    CHECK(page_has("mine") && !page_has("dsgd"));
    succeeds("report runs --bundle " BUNDLE " --force"); /* both together */
    remove_runs();
    REQUIRE(make_page("runs"));
    CHECK(page_has("mine") && !page_has("dsgd") && strstr(said.out, ": 4 runs in") != NULL);
    remove_tree("runs");
}

static void the_server_shows_the_runs_of_a_bundle(void) {
    static char answer[1 << 16];
    static const char request[] =
        "GET /list HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    ct_web *site = NULL;
    if (!CT_WITH_MICROHTTPD) SKIP("built without libmicrohttpd");
    put_bundle();
    REQUIRE_OK(ct_web_open("runs", "127.0.0.1", 0, &site));
    int fd = send_to(ct_web_port(site), request);
    drain(&fd, answer, sizeof answer);
    CHECK(strstr(answer, "diverged at iteration 77") != NULL && strstr(answer, "ccl") != NULL);
    ct_web_close(&site);
    remove_tree("runs");
}

static double accuracy_of(const char *run) {
    CT_SCOPED_HANDLE(ct_json) summary = NULL;
    CHECK_OK(ct_summary_read(run, &summary));
    return summary != NULL ? ct_json_number(summary, "consensus_accuracy") : -1;
}

/* Unpacked once for all its runs, and again when it is another file. */
static void a_bundle_in_memory_is_read_again_once_it_changes(void) {
    ct_bundle_memory memory;
    put_bundle();
    ct_bundle_memory_open(&memory);
    CHECK(accuracy_of("runs/ccl") == 0.58 && accuracy_of("runs/ccl/seed-1") == 0.53);
    CHECK(memory.n == 6);
    put_runs();
    put("runs/ccl/summary.json", "{\"epoch\": 3, \"consensus_accuracy\": 0.59}");
    succeeds("report runs --bundle " BUNDLE " --force");
    remove_runs();
    CHECK(accuracy_of("runs/ccl") == 0.59 && accuracy_of("runs/ccl/seed-1") == 0.53);
    ct_bundle_memory_close(&memory);
    CHECK(accuracy_of("runs/ccl") == 0.59);
    remove_tree("runs");
}

static void a_study_reads_its_bundle(void) {
    static const char conf[] = "title = Toy\nshow = consensus, late\ncurves = ce\nfigure = dots\n"
                               "[options]\ndataset = idx\ndata-dir = fixtures/data\nmodel = mlp:8\n"
                               "agents = 5\nbatch-size = 8\npartition = iid\nepochs = 2\n"
                               "seeds = 1,2\n[row a]\nalgorithm = dsgd\n[row b]\nalgorithm = ccl\n";
    static const char *const files[] = {"table.md", "table.csv", "curves.csv", "report.html"};
    put("toy.conf", conf);
    succeeds("reproduce toy.conf --quiet --threads 1 --out runs");
    succeeds("report runs --bundle " BUNDLE);
    CHECK(rename("runs", "before") == 0);
    make_dir("runs");
    CHECK(rename("before/" CT_BUNDLE_NAME, BUNDLE) == 0);
    succeeds("reproduce toy.conf --out runs --table-only");
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        ct_blob x = {0}, y = {0};
        CHECK_OK(ct_file_read(ct_path_in("before", files[k]).text, PAGE, &x));
        CHECK_OK(ct_file_read(ct_path_in("runs", files[k]).text, PAGE, &y));
        CHECK(x.n == y.n && x.n > 0 && memcmp(x.bytes, y.bytes, x.n) == 0);
        ct_blob_free(&x);
        ct_blob_free(&y);
    }
    succeeds("reproduce toy.conf --quiet --out runs"); /* nothing is missing */
    CHECK(!ct_dir_exists("runs/a") && !ct_dir_exists("runs/b"));
    succeeds("reproduce toy.conf --quiet --out more/second --reuse --table-only");
    CHECK(!ct_dir_exists("more/second/a"));
    CHECK(rename("runs", "more/runs") == 0);
    succeeds("reproduce toy.conf --quiet --out more/second --reuse --table-only");
    CHECK(of_summary("more/second/b/seed-2", "ce") == of_summary("before/b/seed-2", "ce"));
    CHECK(ct_dir_exists("more/second/b/seed-2"));
    remove_tree("more");
    remove_tree("before");
    remove("toy.conf");
}

/* results/ has every study of ours as a bundle. */
static void every_study_that_comes_along_can_be_read(void) {
    CT_SCOPED(ct_name_list) studies = {0};
    DIR *d = opendir(CT_SOURCE_DIR "/results");
    REQUIRE(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (ct_dir_has(ct_path_in(CT_SOURCE_DIR "/results", e->d_name).text, CT_BUNDLE_NAME))
            CHECK_OK(ct_name_list_add(&studies, e->d_name));
    closedir(d);
    CHECK(studies.n >= 34);
    for (int k = 0; k < studies.n; k++) {
        ct_report report = {0};
        CHECK_OK(load(ct_path_in(CT_SOURCE_DIR "/results", studies.name[k]).text, &report));
        CHECK(report.n_runs > 0);
        ct_report_free(&report);
    }
}

/* ---- writing ---- */

static bool is_same_file(const char *a, const char *b) {
    ct_blob x = {0}, y = {0};
    bool are_read = ct_file_read(a, PAGE, &x) == CT_OK && ct_file_read(b, PAGE, &y) == CT_OK;
    bool is_same = are_read && x.n == y.n && memcmp(x.bytes, y.bytes, x.n) == 0;
    ct_blob_free(&x);
    ct_blob_free(&y);
    return is_same;
}

static void what_was_kept_comes_back_as_it_was(void) {
    put_runs();
    put("runs/wild/ledger.csv", "not,kept\n");
    succeeds("report runs --bundle " BUNDLE);
    CHECK(rename("runs/wild", "wild") == 0 && rename("runs/ccl", "ccl") == 0);
    REQUIRE_OK(ct_bundle_unpack("runs/wild", "out/wild"));
    REQUIRE_OK(ct_bundle_unpack("runs/ccl", "out/ccl"));
    CHECK(is_same_file("out/wild/config.txt", "wild/config.txt"));
    CHECK(is_same_file("out/wild/diverged.json", "wild/diverged.json"));
    CHECK(is_same_file("out/wild/seed-7/metrics.jsonl", "wild/seed-7/metrics.jsonl"));
    CHECK(is_same_file("out/ccl/seed-1/summary.json", "ccl/seed-1/summary.json"));
    CHECK(is_same_file("out/ccl/seed-2/config.txt", "ccl/seed-2/config.txt"));
    CHECK(!ct_file_exists("out/wild/ledger.csv") && !ct_dir_exists("out/ccl-2"));
    CHECK_FAILS(ct_bundle_unpack("runs/nobody", "out/x"), CT_IO,
                "runs/nobody: there is no such run");
    remove_tree("out");
    remove_tree("wild");
    remove_tree("ccl");
    remove_tree("runs");
}

static void the_same_runs_give_the_same_bundle(void) {
    put_bundle();
    succeeds("report runs --bundle again.gz"); /* from the bundle itself */
    CHECK(is_same_file(BUNDLE, "again.gz"));
    REFUSES(1, "report runs --bundle again.gz", "again.gz is there already", "--force");
    REFUSES(2, "report runs runs --bundle x.gz", "--bundle is of one folder");
    REFUSES(1, "report fixtures --bundle x.gz", "fixtures: no run here");
    CHECK(!ct_file_exists("x.gz"));
    put_run("runs/one", "algorithm = one\nseed = 1\n", 1, 0.5);
    succeeds("report runs/one --bundle one.gz"); /* a run alone has its directory's name */
    REQUIRE(make_page("one.gz"));
    CHECK(page_has("one.gz/one"));
    remove("again.gz");
    remove("one.gz");
    remove_tree("runs");
}

static void what_is_not_text_is_not_kept(void) {
    put_run("runs/a", "algorithm = a\n", 1, 0.5);
    put("runs/a/summary.json", "{\"note\": \"\xff\"}");
    REFUSES(1, "report runs --bundle " BUNDLE, "runs/a/summary.json: this is not text");
    CHECK(!ct_file_exists(BUNDLE));
    remove_tree("runs");
}

/* ---- what is no whole bundle ---- */

static void a_bundle_that_was_cut_is_refused(void) {
    ct_blob packed = {0}, plain = {0};
    struct stat what;
    put_bundle();
    REQUIRE_OK(ct_file_read(BUNDLE, PAGE, &plain));
    REQUIRE(stat(BUNDLE, &what) == 0);
    REQUIRE_OK(ct_make(&packed.bytes, (size_t)what.st_size, "a file"));
    packed.n = ct_file_head(BUNDLE, packed.bytes, (size_t)what.st_size);
    for (size_t n = 0; n < packed.n; n++) {
        CHECK_OK(ct_file_replace("cut", packed.bytes, n));
        CHECK(list_only("cut") == CT_IO);
    }
    for (size_t n = 0; n < plain.n; n++) {
        CHECK_OK(ct_file_replace("cut", plain.bytes, n));
        CHECK(list_only("cut") == CT_IO);
    }
    CHECK_OK(ct_file_replace(BUNDLE, plain.bytes, plain.n - 200)); /* and nobody reads the rest */
    REFUSES(1, "show runs/ccl", BUNDLE);
    REFUSES(1, "report runs --out page.html", BUNDLE);
    ct_blob_free(&packed);
    ct_blob_free(&plain);
    remove("cut");
    remove_tree("runs");
}

static void what_is_foreign_in_a_bundle_is_refused(void) {
    static const struct {
        int n;
        const char *lines, *words;
    } bad[] = {
        {2, "{\"run\":\"a\"}\n", "1 of its 2 runs are missing"},
        {1, "{\"run\":\"a\"}\n{\"run\":\"b\"}\n", "bad.jsonl:3: more than the 1 runs"},
        {1, "{\"run\":\"a\"\n", "bad.jsonl:2"},
        {1, "[1]\n", "bad.jsonl:2: a run's name should come first"},
        {1, "{}\n", "bad.jsonl:2: a run's name should come first"},
        {1, "{\"config.txt\":\"\",\"run\":\"a\"}\n", "a run's name should come first"},
        {1, "{\"run\":7}\n", "a run's name should come first"},
        {1, "{\"run\": \"a\"}\n", "this line should begin with {\"run\":\"a\""},
        {1, "{\"run\":\"a\",\"config.txt\":1}\n", "'config.txt' is no text of a run"},
        {1, "{\"run\":\"a\",\"x.safetensors\":\"\"}\n", "'x.safetensors' is no text of a run"},
        {1, "{\"run\":\"a\",\"../config.txt\":\"\"}\n", "is no text of a run"},
        {2, "{\"run\":\"b\"}\n{\"run\":\"a\"}\n", "bad.jsonl:3: 'a' comes after 'b'"},
        {2, "{\"run\":\"a\"}\n{\"run\":\"a\"}\n", "bad.jsonl:3: 'a' comes after 'a'"},
        {-1, "", "-1 runs, where 0 to 65536"},
        {65537, "", "65537 runs, where 0 to 65536"},
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        put_lines(bad[k].n, bad[k].lines);
        CHECK_FAILS(list_only("bad.jsonl"), CT_IO, bad[k].words);
    }
    put("bad.jsonl", "{\"crosstalk\":\"runs\",\"version\":2,\"n\":0}\n");
    REFUSES(1, "report bad.jsonl --out page.html", "a bundle of version 2; this program reads");
    put("bad.jsonl", "{\"crosstalk\":\"data\",\"version\":1,\"n\":0}\n");
    REFUSES(1, "show bad.jsonl", "bad.jsonl: this is no bundle of runs");
    remove("bad.jsonl");
}

static void names_that_lead_elsewhere_are_refused(void) {
    static const char *const names[] = {"",       ".",    "..", "../a", "/a",     "a/..",
                                        "a/../b", "a//b", "a/", ".a",   "a/b/c/d"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char line[128];
        snprintf(line, sizeof line, "{\"run\":\"%s\",\"config.txt\":\"\"}\n", names[k]);
        put_lines(1, line);
        CHECK_FAILS(list_only("bad.jsonl"), CT_IO, "cannot be a run's name");
    }
    put_lines(1, "{\"run\":\"a/b/c\",\"config.txt\":\"\"}\n");
    CHECK_OK(list_only("bad.jsonl"));
    remove("bad.jsonl");
}

static void a_kept_file_that_cannot_be_read_is_named(void) {
    put_lines(1, "{\"run\":\"a\",\"metrics.jsonl\":\"{}\\n{}\\n\"}\n");
    REFUSES(1, "report bad.jsonl --out page.html", "bad.jsonl/a/metrics.jsonl:1: no epoch");
    remove("bad.jsonl");
}

static void a_bundle_costs_no_more_than_its_size(void) {
    gzFile f = gzopen("bomb.gz", "wb9");
    REQUIRE(f != NULL);
    gzprintf(f, HEADER, 1);
    for (int k = 0; k < 1 << 16; k++) CHECK(gzputs(f, "                                ") > 0);
    for (int k = 0; k < 1 << 18; k++) CHECK(gzputs(f, "                                ") > 0);
    gzclose(f);
    CHECK_FAILS(list_only("bomb.gz"), CT_IO, "100 times");
    remove("bomb.gz");
}

/* Many equal runs shrink more than is believed of a file: it stays plain, and can be read. */
static void what_shrinks_too_far_is_written_as_it_is(void) {
    static char text[(5 << 20) + 1];
    ct_blob blob = {0};
    memset(text, 'a', sizeof text);
    CHECK_OK(ct_file_write_packed("much", text, sizeof text));
    CHECK_OK(ct_file_read("much", sizeof text, &blob));
    CHECK(blob.n == sizeof text && memcmp(blob.bytes, text, sizeof text) == 0);
    ct_blob_free(&blob);
    remove("much");
}

static void all_tests(void) {
    TEST(a_bundle_is_shown_as_the_directories_were);
    TEST(a_bundle_may_have_any_name);
    TEST(a_seed_in_a_bundle_diverged_when_its_run_did);
    TEST(a_directory_counts_more_than_its_line);
    TEST(the_server_shows_the_runs_of_a_bundle);
    TEST(a_bundle_in_memory_is_read_again_once_it_changes);
    TEST(a_study_reads_its_bundle);
    TEST(every_study_that_comes_along_can_be_read);
    TEST(what_was_kept_comes_back_as_it_was);
    TEST(the_same_runs_give_the_same_bundle);
    TEST(what_is_not_text_is_not_kept);
    TEST(a_bundle_that_was_cut_is_refused);
    TEST(what_is_foreign_in_a_bundle_is_refused);
    TEST(names_that_lead_elsewhere_are_refused);
    TEST(a_kept_file_that_cannot_be_read_is_named);
    TEST(a_bundle_costs_no_more_than_its_size);
    TEST(what_shrinks_too_far_is_written_as_it_is);
}

int main(void) {
    return run_in_folder(all_tests);
}
