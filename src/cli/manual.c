/* Manual pages: crosstalk.1, and one per command and part, in roff. */
#include <ctype.h>
#include <string.h>

#include "cli/pages.h"
#include "util/file.h"
#include "util/memory.h"
#include "util/version.h"

/* Text as roff wants it: dashes that can be copied, no backslash of ours, and no line that looks
 * like a request. */
static void add_roff(ct_page *page, const char *text, size_t n) {
    bool is_first = true;
    for (size_t k = 0; k < n; k++) {
        char c = text[k];
        if (is_first && (c == '.' || c == '\'')) ct_text_add(&page->text, "\\&");
        if (c == '\\')
            ct_text_add(&page->text, "\\e");
        else
            ct_text_add(&page->text, c == '-' ? "\\-" : "%c", c);
        is_first = c == '\n';
    }
}

static void add_line(ct_page *page, const char *before, const char *text, const char *after) {
    ct_text_add(&page->text, "%s", before);
    add_roff(page, text, strlen(text));
    ct_text_add(&page->text, "%s\n", after);
}

/* "site keygen" as "-site-keygen" */
static void add_dashed(ct_page *page, const char *name, const char *dash) {
    if (name[0] != '\0') ct_text_add(&page->text, "%s", dash);
    for (; *name != '\0'; name++) {
        if (*name == ' ')
            ct_text_add(&page->text, "%s", dash);
        else
            ct_text_add(&page->text, "%c", *name);
    }
}

static void man_title(ct_page *page, const char *name, const char *text) {
    ct_text_add(&page->text, ".\\\" Written by crosstalk help --man.\n.TH crosstalk");
    add_dashed(page, name, "-");
    ct_text_add(&page->text, " 1 \"\" \"crosstalk %s\" \"User Commands\"\n.SH NAME\ncrosstalk",
                CT_VERSION);
    add_dashed(page, name, "\\-");
    add_line(page, " \\- ", text, "");
}

static void man_usage(ct_page *page, const char *lines) {
    ct_text_add(&page->text, ".SH SYNOPSIS\n");
    while (*lines != '\0') {
        size_t n = strcspn(lines, "\n");
        ct_text_add(&page->text, ".B crosstalk\n");
        add_roff(page, lines, n);
        ct_text_add(&page->text, "\n.br\n");
        lines += n + (lines[n] != '\0');
    }
    ct_text_add(&page->text, ".SH DESCRIPTION\n");
}

static void man_heading(ct_page *page, const char *text) {
    ct_text_add(&page->text, ".SH ");
    for (; *text != '\0'; text++) ct_text_add(&page->text, "%c", toupper((unsigned char)*text));
    ct_text_add(&page->text, "\n");
}

static void man_option(ct_page *page, const ct_option *o) {
    char help[512], value[32], range[64];
    ct_page_option_help(o, help, sizeof help);
    ct_page_value(o, value, sizeof value);
    ct_page_range(o, range, sizeof range);
    add_line(page, ".TP\n\\fB\\-\\-", o->name, "\\fR\\c");
    add_line(page, "\\fI", value, "\\fR");
    add_line(page, "", help, ".");
    if (range[0] != '\0') add_line(page, "From ", range, ".");
    if (o->aliases[0] != '\0') add_line(page, "Also known as: ", o->aliases, ".");
    if (ct_page_has_default(o)) add_line(page, "Default: ", o->value, ".");
}

static void man_paragraph(ct_page *page, const char *text, size_t n) {
    ct_text_add(&page->text, ".PP\n");
    add_roff(page, text, n);
    ct_text_add(&page->text, "\n");
}

static void man_verbatim(ct_page *page, const char *text, size_t n) {
    ct_text_add(&page->text, ".PP\n.nf\n");
    add_roff(page, text, n);
    ct_text_add(&page->text, "\n.fi\n");
}

static void man_item(ct_page *page, const char *name, const char *text) {
    add_line(page, ".TP\n", name, "");
    add_line(page, "", text, "");
}

static void man_command(ct_page *page, const char *name, const char *text) {
    ct_text_add(&page->text, ".TP\n.BR crosstalk");
    add_dashed(page, name, "\\-");
    add_line(page, " (1)\n", text, "");
}

static void man_example(ct_page *page, const char *text, const char *command) {
    add_line(page, ".PP\n", text, "");
    ct_text_add(&page->text, ".PP\n.RS\n.nf\n");
    add_roff(page, command, strlen(command));
    ct_text_add(&page->text, "\n.fi\n.RE\n");
}

static void man_also(ct_page *page, const char *list) {
    add_line(page, ".SH SEE ALSO\n.BR crosstalk (1),\n", list, "");
}

static const ct_page_style roff = {.title = man_title,
                                   .usage = man_usage,
                                   .heading = man_heading,
                                   .group = man_heading,
                                   .option = man_option,
                                   .paragraph = man_paragraph,
                                   .verbatim = man_verbatim,
                                   .item = man_item,
                                   .command = man_command,
                                   .example = man_example,
                                   .also = man_also};

/* ---- files ---- */

/* NULL: the page about all. */
static ct_status write_page(const char *dir, const ct_command *command) {
    char name[64] = "", file[96];
    CT_SCOPED(ct_text) text = {0};
    ct_page page = {.text = text};
    if (command != NULL)
        ct_page_write(&page, &roff, command);
    else
        ct_page_write_overview(&page, &roff);
    text = page.text;
    CT_TRY(ct_text_status(&text));
    if (command != NULL) ct_page_name(command, name, sizeof name);
    snprintf(file, sizeof file, "crosstalk%s%s.1", command != NULL ? "-" : "", name);
    return ct_file_write(ct_path_in(dir, file).text, text.chars, text.n);
}

ct_status ct_cli_write_manual(const char *dir) {
    CT_TRY(ct_dir_create(dir));
    CT_TRY(write_page(dir, NULL));
    for (const ct_command *c = ct_commands; c->name != NULL; c++) CT_TRY(write_page(dir, c));
    for (const ct_command *c = ct_parts; c->name != NULL; c++) CT_TRY(write_page(dir, c));
    return CT_OK;
}
