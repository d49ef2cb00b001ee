/* The help of all commands, and its style on a terminal: wrapped to its width. */
#include <string.h>
#include <unistd.h>

#include "cli/pages.h"
#include "util/memory.h"

const ct_help ct_cli_help_help = {
    .usage = "help [COMMAND [PART]]\n"
             "help --man DIR\n"
             "help --markdown DIR\n"
             "help --completions DIR",
    .text = "Lists all commands, or tells how one of them is used. crosstalk COMMAND --help is the "
            "same. The text is wrapped to the terminal's width.\n\n"
            "The manual pages, the reference in docs/reference and the shells' completions are "
            "written from the same texts.",
    .files = CT_HELP_PAIRS({"--man DIR", "crosstalk.1 and crosstalk-COMMAND.1"},
                           {"--markdown DIR", "README.md and COMMAND.md: docs/reference"},
                           {"--completions DIR", "completions for bash, zsh and fish"}),
    .examples = CT_HELP_PAIRS({"Every option of training.", "crosstalk help train"},
                              {"One part of a command.", "crosstalk help site keygen"},
                              {"Bring the reference up to date after a change.",
                               "crosstalk help --markdown docs/reference"})};

/* ---- which ones ---- */

const ct_command ct_commands[] = {
#define COMMAND(id, name_, group_, text_)                                                          \
    {.name = name_,                                                                                \
     .text = text_,                                                                                \
     .help = &ct_cli_##id##_help,                                                                  \
     .group = group_,                                                                              \
     .run = ct_cli_##id},
#include "cli/command_list.h"
#undef COMMAND
    {.name = NULL}};

const ct_command ct_parts[] = {
#define COMMAND(id, name_, group_, text_)
#define PART(command_, part_, text_)                                                               \
    {.name = #part_,                                                                               \
     .text = text_,                                                                                \
     .help = &ct_cli_##command_##_##part_##_help,                                                  \
     .group = #command_},
#include "cli/command_list.h"
#undef COMMAND
    {.name = NULL}};

const ct_command *ct_cli_find(const char *name, const char *part) {
    for (const ct_command *c = ct_parts; part != NULL && c->name != NULL; c++)
        if (strcmp(c->group, name) == 0 && strcmp(c->name, part) == 0) return c;
    for (const ct_command *c = ct_commands; c->name != NULL; c++)
        if (strcmp(c->name, name) == 0) return c;
    return NULL;
}

ct_status ct_cli_no_command(const char *name) {
    ct_guess guess = {.word = name};
    for (const ct_command *c = ct_commands; c->name != NULL; c++) ct_guess_try(&guess, c->name);
    if (guess.nearest[0] != '\0')
        return ct_fail(CT_INVAL, "no command '%s'; did you mean %s? (crosstalk help lists them)",
                       name, guess.nearest);
    return ct_fail(CT_INVAL, "no command '%s'; crosstalk help lists them", name);
}

ct_status ct_cli_no_part(const char *command, const char *name) {
    CT_SCOPED(ct_text) known = {0};
    ct_guess guess = {.word = name};
    for (const ct_command *c = ct_parts; c->name != NULL; c++) {
        if (strcmp(c->group, command) != 0) continue;
        ct_guess_try(&guess, c->name);
        ct_text_add(&known, "%s%s", known.n > 0 ? ", " : "", c->name);
    }
    CT_TRY(ct_text_status(&known));
    if (known.n == 0) return ct_fail(CT_INVAL, "%s has no parts, so no '%s'", command, name);
    bool is_near = guess.nearest[0] != '\0';
    return ct_fail(CT_INVAL, "no '%s %s'; %s%s%sknown: %s (crosstalk help %s)", command, name,
                   is_near ? "did you mean " : "", guess.nearest, is_near ? "? " : "", known.chars,
                   command);
}

/* ---- on a terminal ---- */

enum {
    INDENT = 2,
    COLUMN = 26 /* where the help of an option begins */,
    SHORT = 21 /* of a command */,
    MAX_WIDTH = 100
};

/* Columns of n bytes of UTF-8. */
static int columns_of(const char *text, size_t n) {
    int columns = 0;
    for (size_t k = 0; k < n; k++) columns += ((unsigned char)text[k] & 0xC0) != 0x80;
    return columns;
}

/* Bytes of what must not be torn apart at `text`: a word, what stands in brackets, "0 = all". */
static size_t word_length(const char *text, const char *end) {
    size_t n = 0;
    bool is_open = false;
    for (; text + n < end && text[n] != '\n'; n++) {
        bool is_glued = n > 0 && text + n + 1 < end && (text[n + 1] == '=' || text[n - 1] == '=');
        if (text[n] == ' ' && !is_open && !is_glued) break;
        is_open = text[n] == '[' || (is_open && text[n] != ']');
    }
    return is_open || n > 40 ? strcspn(text, " \n") : n;
}

/* The same of a command: an option and its value. */
static size_t argument_length(const char *text, const char *end) {
    size_t n = strcspn(text, " \n");
    bool is_option = strncmp(text, "--", 2) == 0 && text + n + 1 < end && text[n] == ' ';
    if (!is_option || text[n + 1] == '-' || text[n + 1] == '|') return n;
    return n + 1 + strcspn(text + n + 1, " \n");
}

/* Adds words, each line but the first from the column `indent` on; the cursor is in column `at`.
 * `more` ends a line that goes on, and stands between arguments alone; "": between any words. */
static void wrap_with(ct_page *page, const char *text, size_t n, int indent, int at,
                      const char *more) {
    const char *end = text + n;
    size_t (*measure)(const char *, const char *) = more[0] != '\0' ? argument_length : word_length;
    for (bool is_first = true; text < end; is_first = false) {
        size_t length = measure(text, end);
        if (length > (size_t)(end - text)) length = (size_t)(end - text);
        int width = columns_of(text, length);
        bool is_full = !is_first && at + 1 + width + (int)strlen(more) > page->width;
        if (is_full) ct_text_add(&page->text, "%s\n%*s", more, indent, "");
        if (is_full) at = indent;
        bool is_apart = !is_first && !is_full;
        ct_text_add(&page->text, "%s%.*s", is_apart ? " " : "", (int)length, text);
        at += width + is_apart;
        text += length;
        while (text < end && (*text == ' ' || *text == '\n')) text++;
    }
    ct_text_add(&page->text, "\n");
}

static void wrap(ct_page *page, const char *text, size_t n, int indent, int at) {
    wrap_with(page, text, n, indent, at, "");
}

static void text_title(ct_page *page, const char *name, const char *text) {
    char title[256];
    snprintf(title, sizeof title, "crosstalk%s%s - %s", name[0] != '\0' ? " " : "", name, text);
    wrap(page, title, strlen(title), 0, 0);
    ct_text_add(&page->text, "\n");
}

static void text_usage(ct_page *page, const char *lines) {
    const char *before = "usage: ";
    while (*lines != '\0') {
        size_t n = strcspn(lines, "\n");
        ct_text_add(&page->text, "%scrosstalk ", before);
        wrap(page, lines, n, 17, 17);
        before = "       ";
        lines += n + (lines[n] != '\0');
    }
}

static void text_heading(ct_page *page, const char *text) {
    ct_text_add(&page->text, "\n%s\n", text);
}

static void text_pair(ct_page *page, const char *name, const char *value, const char *text) {
    int at = INDENT + columns_of(name, strlen(name)) + columns_of(value, strlen(value));
    ct_text_add(&page->text, "%*s%s%s", INDENT, "", name, value);
    if (at + 1 >= COLUMN) {
        ct_text_add(&page->text, "\n");
        at = 0;
    }
    ct_text_add(&page->text, "%*s", COLUMN - at, "");
    wrap(page, text, strlen(text), COLUMN, COLUMN);
}

static void text_option(ct_page *page, const ct_option *o) {
    char help[512], name[64], value[32], all[640];
    ct_page_option_help(o, help, sizeof help);
    ct_page_value(o, value, sizeof value);
    snprintf(name, sizeof name, "--%s", o->name);
    snprintf(all, sizeof all, ct_page_has_default(o) ? "%s [default: %s]" : "%s", help, o->value);
    text_pair(page, name, value, all);
}

static void text_paragraph(ct_page *page, const char *text, size_t n) {
    ct_text_add(&page->text, "\n");
    wrap(page, text, n, 0, 0);
}

static void text_verbatim(ct_page *page, const char *text, size_t n) {
    ct_text_add(&page->text, "\n%.*s\n", (int)n, text);
}

static void text_item(ct_page *page, const char *name, const char *text) {
    text_pair(page, name, "", text);
}

/* Names of commands are short. */
static void text_command(ct_page *page, const char *name, const char *text) {
    ct_text_add(&page->text, "%*s%-*s", INDENT, "", SHORT - INDENT, name);
    wrap(page, text, strlen(text), SHORT, SHORT);
}

static void text_example(ct_page *page, const char *text, const char *command) {
    ct_text_add(&page->text, "  ");
    wrap(page, text, strlen(text), INDENT, INDENT);
    while (*command != '\0') {
        size_t n = strcspn(command, "\n");
        ct_text_add(&page->text, "      ");
        wrap_with(page, command, n, 10, 6, " \\");
        command += n + (command[n] != '\0');
    }
}

static void text_also(ct_page *page, const char *list) {
    ct_text_add(&page->text, "\nSee also: ");
    wrap(page, list, strlen(list), 10, 10);
}

static const ct_page_style text_style = {.title = text_title,
                                         .usage = text_usage,
                                         .heading = text_heading,
                                         .group = text_heading,
                                         .option = text_option,
                                         .paragraph = text_paragraph,
                                         .verbatim = text_verbatim,
                                         .item = text_item,
                                         .command = text_command,
                                         .example = text_example,
                                         .also = text_also};

static void page_free(ct_page *page) {
    ct_text_free(&page->text);
}

ct_status ct_cli_print_help(const ct_command *command, FILE *out) {
    CT_SCOPED_BY(page_free, ct_page) page = {.width = ct_cli_width(fileno(out))};
    if (page.width > MAX_WIDTH) page.width = MAX_WIDTH;
    if (command != NULL)
        ct_page_write(&page, &text_style, command);
    else
        ct_page_write_overview(&page, &text_style);
    CT_TRY(ct_text_status(&page.text));
    ct_show_lines(out, page.text.chars);
    return CT_OK;
}

/* ---- the command ---- */

static ct_status write_files(const ct_own *own) {
    const char *man = ct_own_text(own, "man"), *completions = ct_own_text(own, "completions");
    const char *markdown = ct_own_text(own, "markdown");
    if (man != NULL) CT_TRY(ct_cli_write_manual(man));
    if (markdown != NULL) CT_TRY(ct_cli_write_reference(markdown));
    return completions != NULL ? ct_cli_write_completions(completions) : CT_OK;
}

ct_status ct_cli_help(int n_args, char **args) {
    ct_own own;
    CT_TRY(ct_own_take("help", &n_args, args, &own));
    CT_TRY(ct_own_check_words(&own, n_args, args));
    if (ct_own_is_given(&own, "man") || ct_own_is_given(&own, "completions") ||
        ct_own_is_given(&own, "markdown"))
        return write_files(&own);
    if (n_args == 0) return ct_cli_print_help(NULL, stdout);
    const char *part = n_args > 1 ? args[1] : NULL;
    const ct_command *command = ct_cli_find(args[0], part);
    if (command == NULL) return ct_cli_no_command(args[0]);
    if (part != NULL && command->run != NULL) return ct_cli_no_part(args[0], part);
    return ct_cli_print_help(command, stdout);
}
