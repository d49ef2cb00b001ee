/* Pages of sites' runs: neighbours, what left, and curves of what a site knows. */
#include "reports.h"

#include "ct_config.h"
#include "serve/web.h"
#include "sockets.h"

#define OPTIONS                                                                                    \
    "dataset = folder\ndata-dir = pictures\npartition = own\nalgorithm = qg-dsgdm\nloss = ccl\n"   \
    "agents = 3\nepochs = 9\nseed = 1\n"

/* A line of the metrics; the consensus model is known at the end alone. */
static void put_site_line(FILE *f, int epoch, double accuracy, bool is_last) {
    char consensus[64] = "null";
    if (is_last) snprintf(consensus, sizeof consensus, "%.17g", accuracy + 0.001);
    fprintf(f,
            "{\"epoch\": %d, \"iteration\": %d, \"ce\": 1, \"mv\": 0.5, \"dv\": 0.5, "
            "\"consensus_accuracy\": %s, \"consensus_loss\": null, \"local_accuracy_mean\": %.17g, "
            "\"local_accuracy_min\": %.17g, \"local_accuracy_max\": %.17g, "
            "\"consensus_distance\": null, \"bytes_sent_per_agent\": %d, \"seconds\": %d}\n",
            epoch, 10 * epoch, consensus, accuracy, accuracy, accuracy, 1000 * epoch, epoch);
}

static void put_site_json(const char *dir, const char *name, long iteration, const char *note) {
    char path[256], text[1024];
    snprintf(path, sizeof path, "%s/site.json", dir);
    snprintf(text, sizeof text,
             "{\"federation\": \"lungs\", \"site\": \"%s\", \"phase\": \"training\", "
             "\"iteration\": %ld, \"n_iterations\": 90, \"time\": 1794983027, \"heartbeat_s\": 2, "
             "\"refused_strangers\": 3, \"neighbours\": [\n"
             "{\"name\": \"<b>&\", \"is_connected\": false, \"phase\": \"gone\", \"iteration\": 4, "
             "\"for_s\": 27.0, \"losses\": 5, \"bytes_sent\": 2097152, \"bytes_received\": 1024, "
             "\"rtt_ms\": 0.000, \"note\": \"%s\"}]}\n",
             name, iteration, note);
    put(path, text);
}

static void put_site(const char *dir, const char *name, bool is_over) {
    char path[256];
    put_run(dir, OPTIONS, 0, 0);
    snprintf(path, sizeof path, "%s/metrics.jsonl", dir);
    FILE *f = fopen(path, "w");
    REQUIRE(f != NULL);
    for (int e = 1; e <= 4; e++) put_site_line(f, e, 0.5 + 0.1 * e, is_over && e == 4);
    fclose(f);
    put_site_json(dir, name, 40, "lost <i>");
    snprintf(path, sizeof path, "%s/sent.jsonl", dir);
    put(path, "{\"to\": \"east\", \"kind\": \"parameters\", \"letters\": 1, \"bytes\": 1048576}\n"
              "{\"to\": \"<b>&\", \"kind\": \"parameters\", \"letters\": 1, \"bytes\": 3145728}\n"
              "{\"to\": \"east\", \"kind\": \"class <u>\", \"letters\": 1, \"bytes\": 2048}\n"
              "{\"to\": \"east\", \"kind\": \"parameters\", \"letters\": 1, \"bytes\": 1048576}\n"
              "{\"to\": \"east\", \"kind\": \"parame");
}

static void a_site_that_trains_has_a_page_without_gaps(void) {
    put_site("run", "north", false);
    REQUIRE(make_page("run"));
    check_page();
    CHECK(!page_has(">nan") && !page_has("nan %"));
    CHECK(page_has("<h1>north of lungs: CCL on folder</h1>"));
    CHECK(page_has("Accuracy of the site's own model") || page_has("the site&#39;s own model"));
    CHECK(page_has("id=\"fig-local\"") && page_has("id=\"fig-bytes\"") &&
          page_has("id=\"fig-time\""));
    CHECK(!page_has("id=\"fig-accuracy\"") && !page_has("id=\"fig-worst\"") &&
          !page_has("id=\"fig-distance\""));
    CHECK(page_has("data-x=\"1000 2000 3000 4000\""));
    CHECK(page_has(">own model<") && !page_has(">worst agent<"));
    CHECK(page_has("crosstalk site run") && !page_has("<pre>crosstalk train"));
    remove_run("run");
}

static void neighbours_are_told_with_what_they_sent(void) {
    put_site("run", "north", true);
    REQUIRE(make_page("run"));
    check_page();
    CHECK(page_has("training, iteration 40 of 90, as of 2026-11-18 06:23:47 UTC"));
    CHECK(page_has("data-told=\"1794983027\"") && page_has("data-late=\"20\""));
    CHECK(page_has("2026-11-18 06:23:20") && page_has("2.00 MiB") && page_has("1.00 KiB"));
    CHECK(page_has("Strangers were refused: 3 times."));
    /* names of files are text */
    CHECK(page_has("<th>&lt;b&gt;&amp;</th><td class=\"word\" data-th=\"state\">gone</td>"));
    CHECK(page_has("lost &lt;i&gt;") && page_has("<th>class &lt;u&gt;</th>"));
    /* sums: 2 MiB and 2 KiB to east, 3 MiB to the other, all of it */
    CHECK(page_has("<tr><th>east</th><td data-th=\"parameters\">2.00 MiB</td><td data-th=\"class "
                   "&lt;u&gt;\">2.00 KiB</td><td data-th=\"all\">2.00 MiB</td></tr>"));
    CHECK(page_has("<tr><th>all</th><td data-th=\"parameters\">5.00 MiB</td><td data-th=\"class "
                   "&lt;u&gt;\">2.00 KiB</td><td data-th=\"all\">5.00 MiB</td></tr>"));
    remove_run("run");
}

static void sites_of_one_federation_are_told_apart_by_their_names(void) {
    make_dir("runs");
    put_site("runs/a", "north", true);
    put_site("runs/b", "south", true);
    REQUIRE(make_page("runs"));
    check_page();
    CHECK(page_has("CCL (north)") && page_has("CCL (south)"));
    CHECK(page_has("north of lungs: training") && page_has("south of lungs: training"));
    CHECK(count_of("<section id=\"neighbours\">") == 1);
    put("runs/a/summary.json", "{\"epoch\": 4, \"consensus_accuracy\": 0.9, "
                               "\"local_accuracy_mean\": null, \"consensus_distance\": null}");
    succeeds("show runs/a");
    CHECK(strstr(said.out, "90.00") != NULL && strstr(said.out, "nan") == NULL);
    /* beside a run of another kind, curves are everyone's */
    put_run("runs/c", "algorithm = dsgd\nseed = 1\n", 3, 0.5);
    REQUIRE(make_page("runs"));
    check_page();
    CHECK(page_has("id=\"fig-accuracy\"") && page_has(">worst agent<"));
    CHECK(count_of("<table class=\"neighbours rows\">") == 2);
    remove_run("runs");
}

static void files_that_no_site_writes_are_named(void) {
    static const char *const wrong[][3] = {
        {"site.json", "{}", "neighbours"},
        {"site.json", "[1]", "neighbours"},
        {"site.json", "{\"neighbours\": [{\"name\": 1}]}", "name"},
        {"site.json", "{\"neighbours\": []}", "federation"},
        {"sent.jsonl", "{\"to\": 1}\n\n", "sent.jsonl:1: \"to\""},
        {"sent.jsonl", "{\"to\": \"a\", \"kind\": \"b\"}\n\n", "letters"},
        {"sent.jsonl", "{\"to\": \"a\", \"kind\": \"b\", \"letters\": 1, \"bytes\": -1}\n\n",
         "bytes"}};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        char path[64];
        put_site("run", "north", false);
        snprintf(path, sizeof path, "run/%s", wrong[k][0]);
        put(path, wrong[k][1]);
        ct_report report;
        ct_error error;
        const char *name = "run";
        CHECK(CT_CATCH(&error, ct_report_load(&name, 1, &report)) == CT_IO);
        CHECK(strstr(error.text, wrong[k][0]) != NULL && strstr(error.text, wrong[k][2]) != NULL);
        remove_run("run");
    }
}

static char answer[1 << 21];

static bool asks(const ct_web *web, const char *path) {
    char request[512];
    snprintf(request, sizeof request,
             "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    int fd = send_to(ct_web_port(web), request);
    drain(&fd, answer, sizeof answer);
    return strncmp(answer, "HTTP/1.1 200 ", 13) == 0;
}

/* The page of a server is that of the files as they are now. */
static void a_server_follows_what_a_site_tells(void) {
    ct_web *web = NULL;
    if (!CT_WITH_MICROHTTPD) SKIP("libmicrohttpd is not there");
    make_dir("runs");
    put_site("runs/a", "north", false);
    REQUIRE_OK(ct_web_open("runs", "127.0.0.1", 0, &web));
    CHECK(asks(web, "/body?run=a") && strstr(answer, "iteration 40 of 90") != NULL);
    put_site_json("runs/a", "north", 41, "silent for 6 s");
    CHECK(asks(web, "/body?run=a") && strstr(answer, "iteration 41 of 90") != NULL);
    CHECK(strstr(answer, "silent for 6 s") != NULL);
    add_text("runs/a/sent.jsonl", "ters\", \"letters\": 1, \"bytes\": 1048576}\n");
    CHECK(asks(web, "/body?run=a") && strstr(answer, ">6.00 MiB</td>") != NULL);
    ct_web_close(&web);
    remove_run("runs");
}

static void run_tests(void) {
    TEST(a_site_that_trains_has_a_page_without_gaps);
    TEST(neighbours_are_told_with_what_they_sent);
    TEST(sites_of_one_federation_are_told_apart_by_their_names);
    TEST(files_that_no_site_writes_are_named);
    TEST(a_server_follows_what_a_site_tells);
}

int main(void) {
    return run_in_folder(run_tests);
}
