/* What the program tells about itself: every page is whole, fits 80 columns, and is the one of
 * docs/reference. */
#include "program.h"

#include "schema/schema.h"
#include "util/text.h"

static const char *const pages[] = {
#define COMMAND(id, name, group, text) name,
#define PART(command, part, text)      #command " " #part,
#include "cli/command_list.h"
#undef COMMAND
};
enum { N_PAGES = sizeof pages / sizeof *pages };

static void print_page(const char *name) {
    char words[64];
    snprintf(words, sizeof words, "help %s", name);
    succeeds(words);
}

static int count(const char *text, const char *what) {
    int n = 0;
    for (; (text = strstr(text, what)) != NULL; text++) n++;
    return n;
}

static void every_page_has_usage_and_two_examples(void) {
    for (int k = 0; k < N_PAGES; k++) {
        char usage[96];
        print_page(pages[k]);
        snprintf(usage, sizeof usage, "usage: crosstalk %s", pages[k]);
        const char *examples = strstr(said.out, "\nExamples\n");
        CHECK(strstr(said.out, usage) != NULL && examples != NULL);
        if (examples == NULL || count(examples, "crosstalk ") < 2) blame("has too few examples");
        CHECK(said.err[0] == '\0' && strchr(said.out, '@') == strstr(said.out, "@100"));
    }
}

static int columns_of(const char *line, size_t n) {
    int columns = 0;
    for (size_t k = 0; k < n; k++) columns += ((unsigned char)line[k] & 0xC0) != 0x80;
    return columns;
}

static void no_line_is_wider_than_80_columns(void) {
    for (int k = -1; k < N_PAGES; k++) {
        print_page(k < 0 ? "" : pages[k]);
        for (const char *line = said.out; *line != '\0'; line += strcspn(line, "\n") + 1)
            if (columns_of(line, strcspn(line, "\n")) > 80) {
                printf("    %.*s\n", (int)strcspn(line, "\n"), line);
                blame("is too wide");
            }
    }
}

static void a_part_has_its_own_page_by_help_and_by_option(void) {
    char by_help[SAID];
    succeeds("help site keygen");
    memcpy(by_help, said.out, sizeof by_help);
    CHECK(strncmp(by_help, "crosstalk site keygen - ", 24) == 0);
    CHECK(strstr(by_help, "--key ") != NULL && strstr(by_help, "--patience") == NULL);
    succeeds("site keygen --help");
    CHECK(strcmp(by_help, said.out) == 0);
    REFUSES(2, "help site keygn", "site keygn", "did you mean keygen?");
    REFUSES(2, "help show it", "show", "'it'");
}

static void every_option_of_a_command_with_parts_is_on_a_part_page(void) {
    static const char *const commands[] = {"site", "data"};
    const ct_option *o;
    for (int c = 0; c < 2; c++)
        for (int i = 0; (o = ct_own_option(commands[c], i)) != NULL; i++) {
            char name[64];
            int n = 0;
            snprintf(name, sizeof name, "\n  --%s ", o->name);
            for (int k = 0; k < N_PAGES; k++) {
                if (strchr(pages[k], ' ') == NULL || strncmp(pages[k], commands[c], 4) != 0)
                    continue;
                print_page(pages[k]);
                n += strstr(said.out, name) != NULL;
            }
            if (n == 0) printf("    --%s of %s is on no page\n", o->name, commands[c]);
            CHECK(n > 0);
        }
}

typedef struct named {
    const ct_option *option;
    int n_missing;
} named;

static ct_status look_for(void *context, const char *choice) {
    named *n = context;
    bool is_there = strstr(n->option->help, choice) != NULL;
    if (!is_there) printf("    --%s does not tell of %s\n", n->option->name, choice);
    n->n_missing += !is_there;
    return CT_OK;
}

static void the_help_of_an_option_names_all_its_choices(void) {
    const ct_option *o;
    named n = {.n_missing = 0};
    for (int k = 0; (o = ct_set_option("run", k)) != NULL; k++) {
        n.option = o;
        CHECK_OK(ct_split(o->choices, look_for, &n));
    }
    for (int p = 0; p < N_PAGES; p++)
        for (int k = 0; (o = ct_own_option(pages[p], k)) != NULL; k++) {
            n.option = o;
            CHECK_OK(ct_split(o->choices, look_for, &n));
        }
    CHECK(n.n_missing == 0);
}

static void the_reference_is_up_to_date(void) {
    static const char reference[] = CT_SOURCE_DIR "/docs/reference";
    int n = 0;
    succeeds("help --markdown now");
    DIR *d = opendir("now");
    REQUIRE(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char ours[512], theirs[512];
        if (e->d_name[0] == '.') continue;
        snprintf(ours, sizeof ours, "now/%.200s", e->d_name);
        snprintf(theirs, sizeof theirs, "%s/%.200s", reference, e->d_name);
        bool is_same = same_files(ours, theirs);
        if (!is_same)
            printf("    docs/reference/%s: crosstalk help --markdown docs/reference\n", e->d_name);
        CHECK(is_same);
        n++;
    }
    closedir(d);
    CHECK(n == N_PAGES + 1 && n_files(reference) == n);
    remove_tree("now");
}

int main(void) {
    if (CT_PROGRAM[0] == '\0' || !enter_folder()) return 1;
    TEST(every_page_has_usage_and_two_examples);
    TEST(no_line_is_wider_than_80_columns);
    TEST(a_part_has_its_own_page_by_help_and_by_option);
    TEST(every_option_of_a_command_with_parts_is_on_a_part_page);
    TEST(the_help_of_an_option_names_all_its_choices);
    TEST(the_reference_is_up_to_date);
    leave_folder();
    return test_report();
}
