/* The record of a run: what is read, what is told of one that ended before its time, and the same
 * words about it wherever runs are shown. */
#include "reports.h"

#include <math.h>
#include <sys/resource.h>

#include "ct_config.h"
#include "record/folder.h"
#include "record/write.h"
#include "serve/web.h"
#include "sockets.h"

#define WILD TRAIN DATA "--epochs 40 --lr 1e6 --out run "

/* ---- how a run ended ---- */

static ct_record_end end_of(const char *dir) {
    ct_record run = {0};
    CHECK_OK(ct_record_load(dir, CT_READ_END, &run));
    ct_record_end end = run.end;
    ct_record_unload(&run);
    return end;
}

static bool is_diverged(const char *dir, long iteration) {
    ct_record_end end = end_of(dir);
    return end.state == CT_RECORD_DIVERGED && end.iteration == iteration;
}

static void a_run_that_diverges_keeps_its_reason(void) {
    char words[64];
    ct_json *saved = NULL;
    REFUSES(1, WILD "--eval-every 40", "agent 0 diverged", "iteration 5");
    ct_record_end end = end_of("run");
    CHECK(end.state == CT_RECORD_DIVERGED && end.iteration == 5 && end.agent == 0);
    CHECK(strstr(end.reason, "agent 0 diverged at iteration 5") != NULL);
    CHECK(strstr(end.reason, "@lr") != NULL); /* whoever shows it spells options */
    ct_record_print_end(&end, words, sizeof words);
    CHECK(strcmp(words, "diverged at iteration 5") == 0);
    CHECK_OK(ct_record_read_file("run", CT_FILE_DIVERGED, &saved));
    CHECK(ct_json_number(ct_json_get(saved, "options"), "lr") == 1e6);
    ct_json_free(&saved);
    REFUSES(1, WILD, "--force");
    succeeds(TINY "--force");
    CHECK(!ct_file_exists("run/diverged.json") && end_of("run").state == CT_RECORD_DONE);
    remove_tree("run");
}

static void everything_says_when_a_run_diverged(void) {
    REFUSES(1, WILD "--eval-every 40", "diverged");
    succeeds("show run");
    CHECK(strstr(said.out, "diverged at iteration 5") != NULL && n_lines(said.err) == 1);
    REQUIRE(make_page("run"));
    check_page();
    CHECK(count_of("<small>diverged at iteration 5</small>") == 1); /* the card */
    CHECK(count_of("<td class=\"word\" data-th=\"state\">diverged at iteration 5</td>") ==
          1); /* the table */
    succeeds(TINY "--out other");
    REQUIRE(make_page("run other"));
    CHECK(count_of("<small>diverged at iteration 5</small>") == 1);
    CHECK(count_of("<td class=\"word\" data-th=\"state\">diverged at iteration 5</td>") == 1);
    CHECK(count_of("<td class=\"word\" data-th=\"state\">finished</td>") == 1);
    remove_tree("run");
    remove_tree("other");
}

/* What the server has at /list. */
static const char *list_of_site(const ct_web *site) {
    static char answer[1 << 16];
    static const char request[] =
        "GET /list HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    int fd = send_to(ct_web_port(site), request);
    drain(&fd, answer, sizeof answer);
    return answer;
}

static void the_server_says_when_a_run_diverged(void) {
    ct_web *site = NULL;
    if (!CT_WITH_MICROHTTPD) SKIP("built without libmicrohttpd");
    put_run("runs/a", "algorithm = a\nseed = 1\nepochs = 5\n", 2, 0.5);
    put_run("runs/b", "algorithm = b\nseed = 1\nepochs = 5\n", 2, 0.5);
    put("runs/b/diverged.json", "{\"message\": \"so\", \"iteration\": 77, \"agent\": 3}");
    REQUIRE_OK(ct_web_open("runs", "127.0.0.1", 0, &site));
    const char *list = list_of_site(site);
    CHECK(strstr(list, ">diverged at iteration 77</b>") != NULL);
    CHECK(strstr(list, ">not finished</td>") != NULL);
    ct_web_close(&site);
    remove_tree("runs");
}

static void every_seed_of_a_run_that_diverged_says_so(void) {
    REFUSES(1, WILD "--seeds 1,2 --eval-every 40", "of seed 1 diverged", "iteration");
    ct_record_end end = end_of("run");
    CHECK(end.state == CT_RECORD_DIVERGED && end.iteration > 0);
    CHECK(is_diverged("run/seed-1", end.iteration) && is_diverged("run/seed-2", end.iteration));
    succeeds(TINY "--force --seeds 1,2");
    CHECK(end_of("run").state == CT_RECORD_DONE && !ct_file_exists("run/seed-2/diverged.json"));
    remove_tree("run");
}

static void a_resumed_run_forgets_how_it_ended(void) {
    succeeds(TINY "--iterations 5 --checkpoint-every end");
    put("run/diverged.json", "{\"message\": \"agent 1 diverged at iteration 9 (...)\"}");
    put("run/failed.json", "{\"message\": \"the disk is full\", \"iteration\": 7}");
    succeeds("train --quiet --resume run --iterations 0");
    CHECK(!ct_file_exists("run/diverged.json") && !ct_file_exists("run/failed.json"));
    remove_tree("run");
}

/* A file may have so many bytes: options and metrics fit, the model does not. */
static int run_limited(const char *words, rlim_t bytes) {
    char **args = split_words(words);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit most = {.rlim_cur = bytes, .rlim_max = bytes};
        int err = open(".err", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (err < 0 || dup2(err, 2) < 0 || setrlimit(RLIMIT_FSIZE, &most) != 0) _exit(97);
        execv(CT_PROGRAM, args);
        _exit(98);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void a_run_that_fails_keeps_its_reason(void) {
    CHECK(run_limited(TINY "--model mlp:64", 6000) == 1);
    ct_record_end end = end_of("run");
    CHECK(end.state == CT_RECORD_FAILED && end.iteration == 8 && end.agent == -1);
    CHECK(strstr(end.reason, "consensus.safetensors") != NULL);
    succeeds("show run");
    CHECK(strstr(said.out, "failed at iteration 8") != NULL);
    succeeds(TINY "--force");
    CHECK(!ct_file_exists("run/failed.json"));
    remove_tree("run");
    REFUSES(2, TINY "--algorithm nothing", "nothing"); /* it never began */
    CHECK(!ct_dir_exists("run"));
}

static void runs_of_older_versions_say_it_too(void) {
    put_run("run/seed-1", "algorithm = a\nseed = 1\nepochs = 5\n", 2, 0.5);
    CHECK(end_of("run/seed-1").state == CT_RECORD_BEGUN);
    put("run/diverged.json", "{\"message\": \"agent 3 diverged at iteration 41 (ce nan)\"}");
    CHECK(is_diverged("run", 41) && is_diverged("run/seed-1", 41));
    unlink("run/diverged.json");
    add_text("run/seed-1/metrics.jsonl", "{\"epoch\": 3, \"iteration\": 30, \"ce\": null}\n");
    CHECK(is_diverged("run/seed-1", 30));
    put("run/seed-1/summary.json", "{}");
    CHECK(end_of("run/seed-1").state == CT_RECORD_DONE);
    CHECK(end_of("nowhere").state == CT_RECORD_NONE);
    put("run/seed-1/diverged.json", "{\"mess");
    unlink("run/seed-1/summary.json");
    ct_record run;
    CHECK_FAILS(ct_record_load("run/seed-1", CT_READ_END, &run), CT_IO, "diverged.json");
    remove_tree("run");
}

/* ---- reading ---- */

static void a_record_reads_what_it_is_asked_for(void) {
    ct_record run;
    put_run("run", "# words\nalgorithm = a\nseed = 7\nnew-option = x y\n", 3, 0.5);
    CHECK_OK(ct_record_load("run", CT_READ_OPTIONS, &run));
    CHECK(run.n_options == 3 && run.seed == 7 && run.epochs == NULL && run.n_epochs == 0);
    CHECK(strcmp(ct_record_option_of(&run, "new-option"), "x y") == 0);
    CHECK(ct_record_option_of(&run, "old-option") == NULL);
    ct_record_unload(&run);
    add_text("run/metrics.jsonl", "{\"epoch\": 4, \"ce\"");
    CHECK_OK(ct_record_load("run", CT_READ_METRICS, &run));
    CHECK(run.n_options == 0 && run.n_epochs == 3);
    CHECK(fabs(ct_record_last(&run, CT_METRIC_CONSENSUS_ACCURACY) - 0.53) < 1e-12);
    ct_record_unload(&run);
    add_text("run/metrics.jsonl", "\n");
    CHECK_FAILS(ct_record_load("run", CT_READ_METRICS, &run), CT_IO, "run/metrics.jsonl:4");
    CHECK_OK(ct_record_load("run", CT_READ_OPTIONS | CT_READ_SUMMARY, &run));
    CHECK(run.summary == NULL);
    ct_record_unload(&run);
    remove_tree("run");
}

static ct_status list_name(void *context, const char *dir) {
    ct_text_add(context, "%s ", dir);
    return CT_OK;
}

static bool has_worlds(const char *options, const char *expected) {
    ct_text names = {0};
    put_run("run", options, 1, 0.5);
    CHECK_OK(ct_record_each_world("run", list_name, &names));
    bool ok = strcmp(names.chars, expected) == 0;
    if (!ok) printf("    %s\n", names.chars);
    ct_text_free(&names);
    remove_tree("run");
    return ok;
}

static void a_run_is_walked_as_its_options_say(void) {
    CHECK(has_worlds("seed = 4\nseeds =\n", "run "));
    CHECK(has_worlds("seeds = 4\n", "run "));
    CHECK(has_worlds("seeds = 10, 2\n", "run/seed-10 run/seed-2 "));
    CHECK(has_worlds("lambdas = 0.1:0.01,1e-5:0\n", "run/m0.1-d0.01 run/m1e-05-d0 "));
    CHECK(has_worlds("lambdas = 1:0\nseeds = 1,2\n", "run/m1-d0/seed-1 run/m1-d0/seed-2 "));
}

/* ---- writing ---- */

static void a_summary_has_an_identity_of_what_is_known(void) {
    static ct_config config;
    ct_config_init(&config);
    snprintf(config.out, sizeof config.out, "run");
    ct_epoch last = {.epoch = 1, .iteration = 4};
    ct_topology_facts topology = {0};
    ct_partition_facts partition = {.hash = 0xabc};
    ct_summary s = {.config = &config,
                    .last = &last,
                    .n_seeds = 1,
                    .topology = &topology,
                    .partition = &partition,
                    .data_source = "here"};
    make_dir("run");
    for (int known = 0; known <= 1; known++) {
        ct_json *json = NULL;
        ct_identity identity = {.value[CT_ID_precision] = "fp32"};
        ct_identity_set_sum(&identity, CT_ID_data, known ? 0x00ff00ff12345678 : 0);
        s.identity = &identity;
        CHECK_OK(ct_record_write_summary(&s));
        CHECK_OK(ct_summary_read("run", &json));
        const ct_json *data = ct_json_get(ct_json_get(json, "identity"), "data");
        const ct_json *split = ct_json_get(ct_json_get(json, "partition"), "hash");
        CHECK((data != NULL) == known && strcmp(split->string, "0000000000000abc") == 0);
        if (data != NULL) CHECK(strcmp(data->string, "00ff00ff12345678") == 0);
        ct_json_free(&json);
    }
    remove_tree("run");
}

static void metrics_are_one_list(void) {
    for (int a = 0; a < CT_N_METRICS; a++)
        for (int b = 0; b < a; b++) {
            CHECK(strcmp(ct_metrics[a].key, ct_metrics[b].key) != 0);
            if (ct_metrics[a].name != NULL && ct_metrics[b].name != NULL)
                CHECK(strcmp(ct_metrics[a].name, ct_metrics[b].name) != 0);
        }
    const ct_metric *metric = NULL;
    CHECK_OK(ct_metric_find("worst", &metric));
    CHECK(metric == &ct_metrics[CT_METRIC_LOCAL_MIN] && ct_metric_rises(metric));
    CHECK(strcmp(metric->deviation, "local_accuracy_min_std") == 0);
    CHECK_FAILS(ct_metric_find("epoch", &metric), CT_INVAL, "no metric 'epoch'");
}

static void all_tests(void) {
    TEST(a_run_that_diverges_keeps_its_reason);
    TEST(everything_says_when_a_run_diverged);
    TEST(the_server_says_when_a_run_diverged);
    TEST(every_seed_of_a_run_that_diverged_says_so);
    TEST(a_resumed_run_forgets_how_it_ended);
    TEST(a_run_that_fails_keeps_its_reason);
    TEST(runs_of_older_versions_say_it_too);
    TEST(a_record_reads_what_it_is_asked_for);
    TEST(a_run_is_walked_as_its_options_say);
    TEST(a_summary_has_an_identity_of_what_is_known);
    TEST(metrics_are_one_list);
}

int main(void) {
    return run_in_folder(all_tests);
}
