/* Runs that are written by hand, and the pages that reports make of runs. */
#ifndef CT_TEST_REPORTS_H
#define CT_TEST_REPORTS_H

#include "markup.h"
#include "program.h"
#include "report/report.h"

#define PAGE (1 << 22)

/* ---- looking at pages ---- */

static char *page; /* of the last report */

/* Runs the report and keeps its page. */
static inline bool make_page(const char *words) {
    char command[1024];
    ct_blob blob = {0};
    snprintf(command, sizeof command, "report %s --out page.html --force", words);
    succeeds(command);
    if (said.code != 0 || ct_file_read("page.html", PAGE, &blob) != CT_OK) return false;
    ct_free(page);
    page = ct_strdup((char *)blob.bytes);
    ct_blob_free(&blob);
    unlink("page.html");
    return page != NULL;
}

static inline bool page_has(const char *words) {
    return page != NULL && strstr(page, words) != NULL;
}

static inline void check_page(void) {
    REQUIRE(page != NULL);
    const char *flaw = find_flaw(page);
    CHECK(flaw == NULL);
    if (flaw != NULL) printf("    not well-formed: %.120s\n", flaw);
    CHECK(has_unique_ids(page));
    CHECK(strstr(page, "nan\"/>") == NULL && !page_has("=\"nan,") && !page_has("inf,"));
    /* It stands alone: nothing is fetched from anywhere. */
    CHECK(!page_has(" src=") && !page_has("<link") && !page_has("@import") &&
          !page_has("url(http"));
}

/* ---- files of runs ---- */

static inline void make_dir(const char *path) {
    CHECK_OK(ct_dir_create(path));
}

static inline void put_line(FILE *f, int epoch, double accuracy) {
    fprintf(
        f,
        "{\"epoch\": %d, \"iteration\": %d, \"lr\": 0.1, \"ce\": %.17g, \"mv\": 0.25, \"dv\": "
        "0.125, \"train_accuracy\": 0.5, \"consensus_accuracy\": %.17g, \"consensus_loss\": 1, "
        "\"local_accuracy_mean\": 0.4, \"local_accuracy_min\": 0.2, \"local_accuracy_max\": 0.6, "
        "\"consensus_distance\": 0.01, \"bytes_sent_per_agent\": %d, \"seconds\": %g}\n",
        epoch, 10 * epoch, 2.0 / epoch, accuracy, 1000 * epoch, 0.5 * epoch);
}

/* A run directory of so many epochs, whose accuracy in epoch e is base + e/100. */
static inline void put_run(const char *dir, const char *options, int n_epochs, double base) {
    char path[256];
    make_dir(dir);
    snprintf(path, sizeof path, "%s/config.txt", dir);
    put(path, options);
    snprintf(path, sizeof path, "%s/metrics.jsonl", dir);
    FILE *f = fopen(path, "w");
    REQUIRE(f != NULL);
    for (int e = 1; e <= n_epochs; e++) put_line(f, e, base + 0.01 * e);
    fclose(f);
}

static inline void add_text(const char *path, const char *text) {
    FILE *f = fopen(path, "a");
    REQUIRE(f != NULL);
    fputs(text, f);
    fclose(f);
}

static inline void remove_run(const char *dir) {
    remove_dir(dir);
}

static inline ct_status load(const char *name, ct_report *out) {
    return ct_report_load(&name, 1, out);
}

static inline int count_between(const char *from, const char *end, const char *words) {
    int n = 0;
    for (const char *at = from; (at = strstr(at, words)) != NULL && at < end; at++) n++;
    return n;
}

static inline int count_of(const char *words) {
    return count_between(page, page + strlen(page), words);
}

/* A test program's main: the tests in a folder of their own. */
static inline int run_in_folder(void (*tests)(void)) {
    if (!enter_folder() || CT_PROGRAM[0] == '\0') {
        printf("skip no program or no folder\n");
        test_n_skipped++;
        return test_report();
    }
    tests();
    ct_free(page);
    leave_folder();
    return test_report();
}

#endif
