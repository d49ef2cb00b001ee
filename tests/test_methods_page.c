/* docs/ALGORITHMS.md: its table says of every algorithm what the program knows, and its text names
 * every form, every compressor, and where a method leaves its paper. */
#include "test.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "algo/algo.h"
#include "compress/compress.h"
#include "util/file.h"

enum { BUFFERS = 5, GRAPH = 8, LOSSES = 9, LOCAL_STEPS = 10, COMPRESS = 11, UPDATE, N_CELLS };

static ct_blob page;

/* Cell `number` (from 1 on) of a row of the table: up to `room` characters of it. */
static void read_cell(const char *line, int number, char *out, size_t room) {
    for (int k = 0; k < number && line != NULL; k++) line = strchr(line + (k > 0), '|');
    size_t n = line == NULL ? 0 : strcspn(line + 1, "|\n");
    while (n > 0 && line[1] == ' ') line++, n--;
    while (n > 0 && line[n] == ' ') n--;
    snprintf(out, room, "%.*s", (int)n, n > 0 ? line + 1 : "");
}

static void check_cell(const char *line, const char *name, int number, const char *wanted) {
    char cell[64];
    read_cell(line, number, cell, sizeof cell);
    bool is_so = strncmp(cell, wanted, strlen(wanted)) == 0;
    if (!is_so) printf("    %s: column %d says '%s', not '%s'\n", name, number, cell, wanted);
    CHECK(is_so);
}

static const char *yes_or_no(ct_status status) {
    ct_clear_message();
    return status == CT_OK ? "yes" : "no";
}

static void check_row(void *context, const char *name, const char *text) {
    static const char *const graphs[] = {"balanced", "fixed", "directed", "unused", "averaged"};
    static const char *const losses[] = {"agents", "messages", "nothing"};
    const ct_algo *algo;
    char start[64], n_buffers[16];
    int n = 0;
    (void)context, (void)text;
    REQUIRE_OK(ct_algo_find(name, &algo));
    snprintf(start, sizeof start, "\n| `%s` |", name);
    const char *line = strstr((const char *)page.bytes, start);
    if (line == NULL) printf("    no row of the table begins with `%s`\n", name);
    REQUIRE(line != NULL);
    while (n < CT_MAX_BUFFERS && algo->buffers[n] != NULL) n++;
    snprintf(n_buffers, sizeof n_buffers, "%d", n);
    check_cell(line + 1, name, BUFFERS, n_buffers);
    check_cell(line + 1, name, GRAPH, graphs[algo->graphs]);
    check_cell(line + 1, name, LOSSES, losses[algo->may_lose]);
    check_cell(line + 1, name, LOCAL_STEPS, yes_or_no(ct_algo_check_local_steps(algo)));
    check_cell(line + 1, name, COMPRESS, yes_or_no(ct_algo_check_compress(algo)));
    char cell[64];
    read_cell(line + 1, UPDATE, cell, sizeof cell);
    CHECK(cell[0] != '\0');
    read_cell(line + 1, N_CELLS, cell, sizeof cell);
    CHECK(cell[0] != '\0');
}

static void the_table_says_what_the_program_knows(void) {
    ct_algo_each_name(check_row, NULL);
}

/* From "**name**" to the next one or the next heading; false: there is none. */
static bool has_in_paragraph(const char *name, const char *words) {
    char start[64];
    snprintf(start, sizeof start, "\n**%s**", name);
    const char *at = strstr((const char *)page.bytes, start);
    const char *found = at == NULL ? NULL : strstr(at, words);
    if (found == NULL) return false;
    const char *next = strstr(at + 1, "\n**"), *heading = strstr(at + 1, "\n## ");
    return (next == NULL || found < next) && (heading == NULL || found < heading);
}

static void check_forms(void *context, const char *name, const char *text) {
    const ct_algo *algo;
    (void)context, (void)text;
    REQUIRE_OK(ct_algo_find(name, &algo));
    for (int k = 0; k < CT_MAX_VARIANTS && algo->variants[k] != NULL; k++) {
        bool is_there = has_in_paragraph(name, algo->variants[k]);
        if (!is_there) printf("    %s of %s is not mentioned\n", algo->variants[k], name);
        CHECK(is_there);
    }
}

/* The name of the algorithm that a file is, or "". */
static void read_name(const char *text, char *name, size_t room) {
    const char *at = strstr(text, "\n    .name = \"");
    const char *begin = at == NULL ? "" : strchr(at, '"') + 1;
    snprintf(name, room, "%.*s", (int)strcspn(begin, "\""), begin);
}

static void check_file(const char *path, int *n) {
    ct_blob file = {0};
    char name[32];
    REQUIRE_OK(ct_file_read(path, 1 << 20, &file));
    read_name((const char *)file.bytes, name, sizeof name);
    if (name[0] != '\0' && strstr((const char *)file.bytes, "* Deviation: ") != NULL) {
        bool is_there = has_in_paragraph(name, "Deviation: ");
        if (!is_there) printf("    %s: not in its paragraph\n", path);
        CHECK(is_there);
        ++*n;
    }
    ct_blob_free(&file);
}

static void what_leaves_a_paper_is_said_on_the_page_too(void) {
    int n = 0;
    DIR *d = opendir(CT_SOURCE_DIR "/src/algo");
    REQUIRE(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[512];
        snprintf(path, sizeof path, CT_SOURCE_DIR "/src/algo/%s", e->d_name);
        if (strlen(e->d_name) > 2 && strcmp(strrchr(path, '.'), ".c") == 0) check_file(path, &n);
    }
    closedir(d);
    CHECK(n > 8);
    CHECK(has_in_paragraph("Epidemic learning", "Deviation: "));
}

static void check_compressor(void *context, const char *name, const char *text) {
    char start[64];
    (void)context, (void)text;
    snprintf(start, sizeof start, "\n| `%s", name);
    if (strstr((const char *)page.bytes, start) == NULL) printf("    no row has %s\n", name);
    CHECK(strstr((const char *)page.bytes, start) != NULL);
}

static void every_form_and_compressor_is_mentioned(void) {
    ct_algo_each(check_forms, NULL);
    ct_compressor_each(check_compressor, NULL);
}

int main(void) {
    if (ct_file_read(CT_SOURCE_DIR "/docs/ALGORITHMS.md", 1 << 20, &page) != CT_OK) return 1;
    TEST(the_table_says_what_the_program_knows);
    TEST(every_form_and_compressor_is_mentioned);
    TEST(what_leaves_a_paper_is_said_on_the_page_too);
    ct_blob_free(&page);
    return test_report();
}
