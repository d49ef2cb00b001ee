/* The examples of the help that need no files of the reader's: each ends well, and what it trains is
 * good. They are read from docs/reference, which test_help compares with the program. */
#include "program.h"

#define GOOD 0.8 /* accuracy */

/* Examples of other data, of sites and of other programs are not for a test. */
static bool can_be_run(const char *command) {
    static const char *const kinds[] = {"--dataset shapes", "runs/shapes-", "crosstalk list ",
                                        "topology --topology ring", "topology --topology torus"};
    bool is_known =
        strcmp(command, "crosstalk show") == 0 || strcmp(command, "crosstalk report") == 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        is_known = is_known || strstr(command, kinds[k]) != NULL;
    return is_known && strncmp(command, "crosstalk ", 10) == 0 && strpbrk(command, "|'") == NULL;
}

/* Indented lines of a page. Returns how many were run. */
static int run_examples(const char *page) {
    char path[512], text[SAID], *save = NULL;
    int n = 0;
    snprintf(path, sizeof path, CT_SOURCE_DIR "/docs/reference/%s.md", page);
    slurp(path, text);
    char *at = strstr(text, "\n## Examples\n");
    CHECK(at != NULL);
    for (char *line = at != NULL ? strtok_r(at, "\n", &save) : NULL; line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        if (strncmp(line, "    ", 4) != 0 || !can_be_run(line + 4)) continue;
        succeeds(line + 4 + strlen("crosstalk "));
        n++;
    }
    return n;
}

static void every_example_that_needs_nothing_runs(void) {
    static const char *const pages[] = {"train",  "compare",    "sweep",     "eval",
                                        "export", "data-split", "partition", "topology",
                                        "list",   "bench",      "show",      "report"};
    for (size_t k = 0; k < sizeof pages / sizeof *pages; k++) {
        int n = run_examples(pages[k]);
        if (n == 0) printf("    no example of %s was run\n", pages[k]);
        CHECK(n > 0);
    }
}

/* After the one above. */
static void what_they_train_is_good(void) {
    ct_json *runs = NULL;
    int n = 0;
    succeeds("show runs --json");
    REQUIRE_OK(ct_json_parse(said.out, strlen(said.out), "show", &runs));
    for (const ct_json *run = runs->child; run != NULL; run = run->next, n++) {
        double accuracy = number_of(run, "consensus_accuracy");
        if (!(accuracy >= GOOD))
            printf("    %s: %.4f\n", ct_json_get(run, "run")->string, accuracy);
        CHECK(accuracy >= GOOD);
    }
    CHECK(n >= 8);
    ct_json_free(&runs);
}

int main(void) {
    if (CT_PROGRAM[0] == '\0' || !enter_folder()) return 1;
    TEST(every_example_that_needs_nothing_runs);
    TEST(what_they_train_is_good);
    leave_folder();
    return test_report();
}
