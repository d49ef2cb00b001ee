/* The reference: README.md and one page per command and part, in Markdown. */
#include <ctype.h>
#include <string.h>

#include "cli/pages.h"
#include "util/file.h"
#include "util/memory.h"

/* Text with what Markdown would take for markup spelled out; a table has | between its cells. */
static void add_marked(ct_page *page, const char *text, size_t n) {
    for (size_t k = 0; k < n; k++)
        ct_text_add(&page->text, strchr("|<*_", text[k]) != NULL ? "\\%c" : "%c", text[k]);
}

static void add_all(ct_page *page, const char *text) {
    add_marked(page, text, strlen(text));
}

/* In a cell, code needs its | spelled out as well. */
static void add_code(ct_page *page, const char *text) {
    for (; *text != '\0'; text++) ct_text_add(&page->text, *text == '|' ? "\\|" : "%c", *text);
}

static void md_title(ct_page *page, const char *name, const char *text) {
    ct_text_add(&page->text, "<!-- Written by crosstalk help --markdown. -->\n# crosstalk%s%s\n\n",
                name[0] != '\0' ? " " : "", name);
    ct_text_add(&page->text, "%c", toupper((unsigned char)text[0]));
    add_all(page, text + 1);
    ct_text_add(&page->text, ".\n");
}

static void md_usage(ct_page *page, const char *lines) {
    ct_text_add(&page->text, "\n");
    while (*lines != '\0') {
        size_t n = strcspn(lines, "\n");
        ct_text_add(&page->text, "    crosstalk %.*s\n", (int)n, lines);
        lines += n + (lines[n] != '\0');
    }
}

static void md_heading(ct_page *page, const char *text) {
    ct_text_add(&page->text, "\n## %s\n\n", text);
}

static void md_group(ct_page *page, const char *text) {
    md_heading(page, text);
    ct_text_add(&page->text, "| option | default | what it does |\n|---|---|---|\n");
}

static void md_option(ct_page *page, const ct_option *o) {
    char help[512], value[32], range[64];
    ct_page_option_help(o, help, sizeof help);
    ct_page_value(o, value, sizeof value);
    ct_page_range(o, range, sizeof range);
    ct_text_add(&page->text, "| `--%s", o->name);
    add_code(page, value);
    ct_text_add(&page->text, "` | ");
    if (ct_page_has_default(o)) ct_text_add(&page->text, "`%s`", o->value);
    ct_text_add(&page->text, " | ");
    add_all(page, help);
    if (range[0] != '\0') ct_text_add(&page->text, " (%s)", range);
    if (o->aliases[0] != '\0') {
        ct_text_add(&page->text, "; also known as ");
        add_all(page, o->aliases);
    }
    ct_text_add(&page->text, " |\n");
}

static void md_paragraph(ct_page *page, const char *text, size_t n) {
    ct_text_add(&page->text, "\n");
    add_marked(page, text, n);
    ct_text_add(&page->text, "\n");
}

static void md_verbatim(ct_page *page, const char *text, size_t n) {
    ct_text_add(&page->text, "\n```\n%.*s\n```\n", (int)n, text);
}

static void md_item(ct_page *page, const char *name, const char *text) {
    ct_text_add(&page->text, "- `%s`: ", name);
    add_all(page, text);
    ct_text_add(&page->text, "\n");
}

static void md_command(ct_page *page, const char *name, const char *text) {
    ct_text_add(&page->text, "- [%s](", name);
    for (const char *c = name; *c != '\0'; c++)
        ct_text_add(&page->text, "%c", *c == ' ' ? '-' : *c);
    ct_text_add(&page->text, ".md): ");
    add_all(page, text);
    ct_text_add(&page->text, "\n");
}

static void md_example(ct_page *page, const char *text, const char *command) {
    const char *end = page->text.chars; /* a heading has left an empty line already */
    bool is_apart = end != NULL && strcmp(end + page->text.n - 2, "\n\n") == 0;
    ct_text_add(&page->text, "%s", is_apart ? "" : "\n");
    add_all(page, text);
    ct_text_add(&page->text, "\n\n");
    while (*command != '\0') {
        size_t n = strcspn(command, "\n");
        ct_text_add(&page->text, "    %.*s\n", (int)n, command);
        command += n + (command[n] != '\0');
    }
}

static ct_status add_link(void *context, const char *field) {
    ct_page *page = context;
    bool is_first = page->text.chars[page->text.n - 1] != ')';
    const char *slash = strncmp(field, "docs/", 5) == 0 ? field + 5 : NULL;
    ct_text_add(&page->text, "%s[%s](", is_first ? "" : ", ", field);
    if (slash != NULL) {
        ct_text_add(&page->text, "../%s)", slash);
        return CT_OK;
    }
    for (const char *c = field; *c != '\0'; c++)
        ct_text_add(&page->text, "%c", *c == ' ' ? '-' : *c);
    ct_text_add(&page->text, ".md)");
    return CT_OK;
}

static void md_also(ct_page *page, const char *list) {
    ct_text_add(&page->text, "\nSee also: ");
    if (page->text.chars == NULL) return; /* no memory: the page is not written */
    if (CT_CATCH(NULL, ct_split(list, add_link, page)) != CT_OK) page->text.failed = true;
    ct_text_add(&page->text, ".\n");
}

static const ct_page_style markdown = {.title = md_title,
                                       .usage = md_usage,
                                       .heading = md_heading,
                                       .group = md_group,
                                       .option = md_option,
                                       .paragraph = md_paragraph,
                                       .verbatim = md_verbatim,
                                       .item = md_item,
                                       .command = md_command,
                                       .example = md_example,
                                       .also = md_also};

/* ---- files ---- */

/* NULL: the page about all. */
static ct_status write_page(const char *dir, const ct_command *command) {
    char name[64] = "README", file[96];
    CT_SCOPED(ct_text) text = {0};
    ct_page page = {.text = text};
    if (command != NULL)
        ct_page_write(&page, &markdown, command);
    else
        ct_page_write_overview(&page, &markdown);
    text = page.text;
    CT_TRY(ct_text_status(&text));
    if (command != NULL) ct_page_name(command, name, sizeof name);
    snprintf(file, sizeof file, "%s.md", name);
    return ct_file_write(ct_path_in(dir, file).text, text.chars, text.n);
}

ct_status ct_cli_write_reference(const char *dir) {
    CT_TRY(ct_dir_create(dir));
    CT_TRY(write_page(dir, NULL));
    for (const ct_command *c = ct_commands; c->name != NULL; c++) CT_TRY(write_page(dir, c));
    for (const ct_command *c = ct_parts; c->name != NULL; c++) CT_TRY(write_page(dir, c));
    return CT_OK;
}
