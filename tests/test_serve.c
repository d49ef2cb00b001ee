/* The pages of a directory of runs: nothing outside of it is shown, nothing that is wrong hides what
 * is right, and what is kept is what the files say. */
#include "reports.h"

#include "ct_config.h"
#include "serve/shelf.h"
#include "serve/web.h"
#include "sockets.h"
#include "util/folder.h"
#include "util/sha256.h"

#define SECRET "secret-algorithm"

static ct_web *site;
static char answer[1 << 21];

/* What the server says to that. */
static bool asks(const char *path) {
    char request[512];
    snprintf(request, sizeof request,
             "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    int fd = send_to(ct_web_port(site), request);
    drain(&fd, answer, sizeof answer);
    return strncmp(answer, "HTTP/1.1 200 ", 13) == 0;
}

static bool has(const char *words) {
    return strstr(answer, words) != NULL;
}

static void put_good(const char *dir, const char *algorithm, double accuracy) {
    char options[128];
    snprintf(options, sizeof options, "algorithm = %s\nseed = 1\nepochs = 5\n", algorithm);
    put_run(dir, options, 2, accuracy);
}

static void link_to(const char *target, const char *path) {
    unlink(path);
    CHECK(symlink(target, path) == 0);
}

/* ---- outside ---- */

static void nothing_behind_a_link_is_shown(void) {
    static const char *const names[] = {"config.txt",   "metrics.jsonl", "summary.json",
                                        "setting.json", "diverged.json", "site.json"};
    put_good("outside", SECRET, 0.123);
    put("outside/summary.json", "{\"message\": \"" SECRET "\"}");
    put("outside/setting.json",
        "{\"agents\": 1, \"classes\": 1, \"class_names\": [\"" SECRET "\"]}");
    put("outside/site.json", "{\"federation\": \"f\", \"site\": \"" SECRET
                             "\", \"phase\": \"training\", \"neighbours\": []}");
    put("outside/diverged.json", "{\"message\": \"" SECRET "\", \"iteration\": 4711}");
    put_good("runs/good", "good", 0.5);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char dir[64], path[128], target[128], words[256];
        snprintf(dir, sizeof dir, "runs/link-%zu", k);
        snprintf(path, sizeof path, "%s/%s", dir, names[k]);
        snprintf(target, sizeof target, "../../outside/%s", names[k]);
        put_good(dir, "other", 0.5);
        link_to(target, path);
        REQUIRE_OK(ct_web_open("runs", "127.0.0.1", 0, &site));
        snprintf(words, sizeof words, "%s: a symbolic link, which is not followed", path);
        CHECK(asks("/list") && has(words) && has(">good</td>"));
        CHECK(!has(SECRET) && !has("4711") && !has("13.3"));
        CHECK(asks("/report") && !has(SECRET) && !has("4711"));
        ct_web_close(&site);
        remove_tree(dir);
    }
    remove_tree("runs");
    remove_tree("outside");
}

static void folders_behind_links_are_told_and_not_followed(void) {
    put_good("outside/run", SECRET, 0.123);
    put_good("runs/good", "good", 0.5);
    put_good("runs/more/good", "good2", 0.5);
    link_to("../outside", "runs/away");
    link_to("../../outside/run", "runs/more/away");
    link_to("good", "runs/again");
    REQUIRE_OK(ct_web_open("runs", "127.0.0.1", 0, &site));
    CHECK(asks("/list") && has(">good</td>") && has(">more/good</td>") && !has(SECRET));
    CHECK(has("runs/away: a symbolic link") && has("runs/more/away: a symbolic link") &&
          has("runs/again: a symbolic link"));
    CHECK(!asks("/report?run=away/run") && !asks("/report?run=more/away") &&
          !asks("/report?run=../outside/run") && !asks("/report?run=again"));
    CHECK(asks("/report?run=good"));
    ct_web_close(&site);
    remove_tree("runs");
    remove_tree("outside");
}

static void the_served_directory_may_be_a_link(void) {
    put_good("elsewhere/good", "good", 0.5);
    link_to("elsewhere", "runs");
    REQUIRE_OK(ct_web_open("runs", "127.0.0.1", 0, &site));
    CHECK(asks("/list") && has(">good</td>") && !has("symbolic"));
    ct_web_close(&site);
    unlink("runs");
    remove_tree("elsewhere");
}

static void no_path_leads_out_of_a_sealed_folder(void) {
    ct_folder root = CT_NO_FOLDER, inside = CT_NO_FOLDER;
    ct_blob blob = {0};
    put_good("runs/a", "good", 0.5);
    put("runs/note", "here");
    put("outside", "there");
    link_to("../outside", "runs/link");
    REQUIRE_OK(ct_folder_open(NULL, "runs", &root));
    root.is_sealed = true;
    static const char *const absent[] = {"runs/..",   "runs/a/../..", "outside", "runs/link",
                                         "runs/note", "runsx",        "run",     "/runs"};
    for (size_t k = 0; k < sizeof absent / sizeof *absent; k++) {
        CHECK_OK(ct_folder_open(&root, absent[k], &inside));
        CHECK(inside.fd < 0);
        ct_folder_close(&inside);
    }
    CHECK_FAILS(ct_folder_read(&root, "link", 100, &blob), CT_IO, "runs/link: a symbolic link");
    CHECK_FAILS(ct_folder_read(&inside, "config.txt", 100, &blob), CT_IO, "No such file");
    CHECK_OK(ct_folder_open(&root, "runs//a/", &inside));
    CHECK(inside.fd >= 0 && inside.is_sealed);
    ct_folder_close(&inside);
    CHECK_OK(ct_folder_read(&root, "note", 100, &blob));
    CHECK(blob.n == 4);
    ct_blob_free(&blob);
    ct_folder_close(&root);
    unlink("outside");
    remove_tree("runs");
}

/* ---- what is wrong ---- */

/* In a process of its own that is not root, who may read everything. */
static void look_at_closed_folders(void) {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(2);
    REQUIRE_OK(ct_web_open("runs", "127.0.0.1", 0, &site));
    CHECK(asks("/list") && has(">good</td>") && has(">more/good</td>"));
    CHECK(has("runs/closed: Permission denied") && has("runs/more/closed: Permission denied"));
    CHECK(has("runs/listed: Permission denied"));
    CHECK(has("runs/file/metrics.jsonl: Permission denied"));
    CHECK(asks("/report") && has("runs/closed: Permission denied"));
    ct_web_close(&site);
}

static void an_unreadable_folder_hides_nothing_else(void) {
    put_good("runs/closed", "a", 0.5);
    put_good("runs/listed", "a", 0.5);
    put_good("runs/file", "a", 0.5);
    put_good("runs/good", "good", 0.5);
    put_good("runs/more/closed", "a", 0.5);
    put_good("runs/more/good", "good2", 0.5);
    CHECK(chmod(folder, 0755) == 0 && chmod("runs/closed", 0) == 0 &&
          chmod("runs/listed", 0444) == 0 && chmod("runs/more/closed", 0) == 0 &&
          chmod("runs/file/metrics.jsonl", 0) == 0);
    fflush(stdout);
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        test_failed = false;
        look_at_closed_folders();
        fflush(stdout);
        _exit(test_failed ? 1 : 0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    CHECK(chmod("runs/closed", 0755) == 0 && chmod("runs/listed", 0755) == 0 &&
          chmod("runs/more/closed", 0755) == 0);
    remove_tree("runs");
}

static void a_damaged_run_hides_no_other_from_a_report(void) {
    put_good("runs/bad", "bad", 0.5);
    put_good("runs/good", "good", 0.5);
    put("runs/bad/metrics.jsonl", "{\"epoch\": 1}\n{\"no\n{\"epoch\": 2}\n");
    REQUIRE_OK(ct_web_open("runs", "127.0.0.1", 0, &site));
    CHECK(asks("/report") && has("runs/bad/metrics.jsonl:2") && has("fig-accuracy"));
    CHECK(!asks("/report?run=bad") && !asks("/report?run=none") && !asks("/report?run="));
    CHECK(asks("/report?run=good") && !has("runs/bad"));
    CHECK(asks("/report?run=none%0Agood&run=bad") && has("runs/bad/metrics.jsonl:2"));
    ct_web_close(&site);
    remove_tree("runs");
}

/* ---- what is kept ---- */

static void a_page_shows_what_the_files_say_now(void) {
    put_good("runs/a", "a", 0.5);
    REQUIRE_OK(ct_web_open("runs", "127.0.0.1", 0, &site));
    CHECK(asks("/list") && has(">52.00</td>"));
    CHECK(asks("/list") && has(">52.00</td>"));
    put_good("runs/a", "a", 0.6); /* as long as it was */
    CHECK(asks("/list") && has(">62.00</td>"));
    put("runs/a/diverged.json", "{\"message\": \"so\", \"iteration\": 77}");
    CHECK(asks("/list") && has("diverged at iteration 77") && has(">so</small>"));
    CHECK(asks("/report") &&
          has("<p class=\"alarm\"><b>This run diverged at iteration 77.</b> so</p>"));
    unlink("runs/a/diverged.json");
    put_good("runs/b", "b", 0.7);
    CHECK(asks("/list") && has(">72.00</td>") && !has("diverged"));
    CHECK(asks("/report") && has(">2 groups of runs<"));
    remove_tree("runs/b");
    CHECK(asks("/list") && !has(">72.00</td>") && has(">62.00</td>"));
    put("runs/diverged.json", "{\"message\": \"so\", \"iteration\": 78}");
    CHECK(asks("/list") && has("diverged at iteration 78")); /* the folder above says so */
    remove_tree("runs");
    CHECK(asks("/list") && has("No runs yet") && has("--out runs/first"));
    put_good("runs/c", "c", 0.8);
    CHECK(asks("/list") && has(">82.00</td>"));
    ct_web_close(&site);
    remove_tree("runs");
}

static void a_run_is_read_again_when_its_files_change_and_only_then(void) {
    ct_shelf shelf = {0};
    put_good("runs/a", "a", 0.5);
    put_good("runs/b", "b", 0.5);
    put_good("runs/d", "d", 0.5);
    REQUIRE_OK(ct_shelf_open("runs", &shelf));
    REQUIRE(shelf.n == 3);
    const ct_record_row *a = shelf.runs[0].record.epochs, *d = shelf.runs[2].record.epochs;
    size_t n_bytes = shelf.n_bytes;
    REQUIRE_OK(ct_shelf_refresh(&shelf));
    CHECK(shelf.n == 3 && shelf.runs[0].record.epochs == a && shelf.runs[2].record.epochs == d);
    CHECK(n_bytes > 0 && shelf.n_bytes == n_bytes);
    put_good("runs/c", "c", 0.7);
    put_good("runs/a", "a", 0.6);
    remove_tree("runs/b");
    REQUIRE_OK(ct_shelf_refresh(&shelf));
    REQUIRE(shelf.n == 3);
    CHECK_NEAR(ct_record_last(&shelf.runs[0].record, CT_METRIC_CONSENSUS_ACCURACY), 0.62, 1e-12);
    CHECK_NEAR(ct_record_last(&shelf.runs[1].record, CT_METRIC_CONSENSUS_ACCURACY), 0.72, 1e-12);
    CHECK(shelf.runs[2].record.epochs == d);
    remove_tree("runs/c");
    remove_tree("runs/d");
    remove_tree("runs/a");
    REQUIRE_OK(ct_shelf_refresh(&shelf));
    CHECK(shelf.n == 0 && shelf.n_bytes == 0);
    ct_shelf_free(&shelf);
    remove_tree("runs");
}

/* The one that changed last comes first, with its accuracy and state before everything else. */
static void the_newest_run_is_listed_first(void) {
    put_good("runs/z", "z", 0.5);
    put_good("runs/b", "b", 0.5);
    put_good("runs/a", "a", 0.5);
    REQUIRE_OK(ct_web_open("runs", "127.0.0.1", 0, &site));
    sleep(1); /* times are compared in seconds */
    put_good("runs/b", "b", 0.7);
    CHECK(asks("/list"));
    const char *b = strstr(answer, ">runs/b<") != NULL ? NULL : strstr(answer, ">b</td>");
    const char *a = strstr(answer, ">a</td>"), *z = strstr(answer, ">z</td>");
    REQUIRE(a != NULL && b != NULL && z != NULL);
    CHECK(b < a && a < z);
    const char *accuracy = strstr(answer, ">72.00</td>"),
               *state = strstr(answer, "state\" data-th");
    const char *link = strstr(answer, "<a href=\"/report");
    CHECK(accuracy != NULL && state != NULL && accuracy < state && state < link && link < b);
    ct_web_close(&site);
    remove_tree("runs");
}

static void hundreds_of_groups_are_listed(void) {
    for (int k = 0; k < 600; k++) {
        char dir[64], name[32];
        snprintf(dir, sizeof dir, "runs/%d", k);
        snprintf(name, sizeof name, "method%d", k);
        put_good(dir, name, 0.001 * k);
    }
    REQUIRE_OK(ct_web_open("runs", "127.0.0.1", 0, &site));
    for (int again = 0; again < 2; again++) {
        int n = 0;
        CHECK(asks("/list") && has(">method0<") && has(">method599<"));
        for (const char *at = answer; (at = strstr(at, "<tr><td class=\"tick\"><input")) != NULL;
             at++)
            n++;
        CHECK(n == 600);
    }
    ct_web_close(&site);
    remove_tree("runs");
}

/* ---- what pages may do ---- */

/* Six bits a letter, as everyone writes it; only for what has 32 bytes. */
static void spell_hash(const char *text, size_t n, char out[64]) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    ct_digest digest;
    char digits[CT_DIGEST_TEXT + 2];
    ct_digest_init(&digest);
    ct_digest_add(&digest, text, n);
    ct_digest_text(&digest, digits);
    memcpy(digits + 64, "00",
           3); /* 33 bytes are 44 letters, of which the last is no more than zeros */
    for (int k = 0; k < 44; k++) {
        unsigned three = 0;
        sscanf((char[4]){digits[k / 2 * 3], digits[k / 2 * 3 + 1], digits[k / 2 * 3 + 2]}, "%x",
               &three);
        out[k] = letters[k % 2 == 0 ? three >> 6 : three & 63];
    }
    memcpy(out + 43, "=", 2);
}

/* Every element of this kind in the page is in the policy by its hash. */
static int count_allowed(const char *html, const char *policy, const char *element) {
    char begin[16], end[16], hash[64];
    int n = 0;
    snprintf(begin, sizeof begin, "<%s", element);
    snprintf(end, sizeof end, "</%s>", element);
    for (const char *at = html; (at = strstr(at, begin)) != NULL; n++) {
        at = strchr(at, '>') + 1;
        spell_hash(at, (size_t)(strstr(at, end) - at), hash);
        CHECK(strstr(policy, hash) != NULL);
    }
    return n;
}

static void pages_run_nothing_but_what_is_ours(void) {
    put_good("runs/a", "a", 0.5);
    REQUIRE_OK(ct_web_open("runs", "127.0.0.1", 0, &site));
    for (int k = 0; k < 2; k++) {
        char policy[1024] = "";
        CHECK(asks(k == 0 ? "/" : "/report"));
        const char *found = strstr(answer, "Content-Security-Policy: ");
        REQUIRE(found != NULL && sscanf(found, "%1023[^\r]", policy) == 1);
        CHECK(strstr(policy, "default-src 'none'") != NULL && strstr(policy, "unsafe") == NULL);
        CHECK(count_allowed(answer, policy, "style") == 1);
        CHECK(count_allowed(answer, policy, "script") == 1 + k);
        CHECK(!has(" style=") && !has(" onclick=") && !has("http-equiv"));
    }
    ct_web_close(&site);
    REQUIRE(make_page("runs"));
    char *policy = strstr(page, "http-equiv=\"Content-Security-Policy\"");
    REQUIRE(policy != NULL && !page_has("unsafe-inline") && !page_has(" style="));
    CHECK(count_allowed(page, policy, "style") == 1 && count_allowed(page, policy, "script") == 1);
    remove_tree("runs");
}

static void what_is_no_directory_is_refused(void) {
    put("note", "text");
    CHECK_FAILS(ct_web_open("note", "127.0.0.1", 0, &site), CT_IO, "note: there is no such dir");
    CHECK_FAILS(ct_web_open("none", "127.0.0.1", 0, &site), CT_IO, "none: there is no such dir");
    CHECK(site == NULL);
    unlink("note");
}

static void run_tests(void) {
    TEST(nothing_behind_a_link_is_shown);
    TEST(folders_behind_links_are_told_and_not_followed);
    TEST(the_served_directory_may_be_a_link);
    TEST(no_path_leads_out_of_a_sealed_folder);
    TEST(an_unreadable_folder_hides_nothing_else);
    TEST(a_damaged_run_hides_no_other_from_a_report);
    TEST(a_page_shows_what_the_files_say_now);
    TEST(a_run_is_read_again_when_its_files_change_and_only_then);
    TEST(the_newest_run_is_listed_first);
    TEST(hundreds_of_groups_are_listed);
    TEST(pages_run_nothing_but_what_is_ours);
    TEST(what_is_no_directory_is_refused);
}

int main(void) {
    if (CT_WITH_MICROHTTPD) return run_in_folder(run_tests);
    printf("skip built without libmicrohttpd\n");
    test_n_skipped++;
    return test_report();
}
