/* Manual pages: crosstalk.1, and one per command of its help and its options in the schema. */
#include <string.h>

#include "cli/cli.h"
#include "util/file.h"
#include "util/memory.h"
#include "util/text.h"
#include "util/version.h"

#define MAX_HELP 65536 /* bytes of a command's help */
#define USAGE    "usage: "
enum { N_USAGE = sizeof USAGE - 1 };

/* Text as roff wants it: dashes that can be copied, no backslash of ours, and no line that looks
 * like a request. */
static void add_roff(ct_text *out, const char *text, size_t n) {
    bool is_first = true;
    for (size_t k = 0; k < n; k++) {
        char c = text[k];
        if (is_first && (c == '.' || c == '\'')) ct_text_add(out, "\\&");
        if (c == '\\')
            ct_text_add(out, "\\e");
        else
            ct_text_add(out, c == '-' ? "\\-" : "%c", c);
        is_first = c == '\n';
    }
}

static void add_line(ct_text *out, const char *before, const char *text, const char *after) {
    ct_text_add(out, "%s", before);
    add_roff(out, text, strlen(text));
    ct_text_add(out, "%s\n", after);
}

/* ---- options ---- */

static void add_range(ct_text *out, const ct_option *o) {
    bool is_number = o->kind == CT_KIND_WHOLE || o->kind == CT_KIND_REAL;
    if (is_number) ct_text_add(out, "From %.9g to %.9g.\n", o->lowest, o->highest);
    if (o->choices[0] != '\0') add_line(out, "One of: ", o->choices, ".");
    if (o->kind == CT_KIND_FLAG) ct_text_add(out, "On or off.\n");
    if (o->aliases[0] != '\0') add_line(out, "Also known as: ", o->aliases, ".");
    bool has_value = o->value != NULL && o->value[0] != '\0' && o->kind != CT_KIND_SWITCH;
    if (has_value) add_line(out, "Default: ", o->value, ".");
}

static void add_option(ct_text *out, const ct_option *o) {
    static const char *const values[] = {"\\fR \\fItext\\fR", "\\fR \\fIinteger\\fR",
                                         "\\fR \\fInumber\\fR", "\\fR \\fIon\\fR|\\fIoff\\fR",
                                         "\\fR"};
    char help[512];
    bool is_path = (o->roles & CT_ROLE_PATH) != 0;
    ct_spell(o->help, "--", help, sizeof help);
    add_line(out, ".TP\n\\fB\\-\\-", o->name, is_path ? "\\fR \\fIpath\\fR" : values[o->kind]);
    add_line(out, "", help, ".");
    add_range(out, o);
}

/* The options of a run are on the page of train; other pages name it. */
static void add_set(ct_text *out, const char *command, const char *set) {
    const char *group = "";
    if (strcmp(set, "run") == 0 && strcmp(command, "train") != 0) {
        ct_text_add(out, ".PP\nAll options of a run, which\n.BR crosstalk\\-train (1)\nlists.\n");
        return;
    }
    const ct_option *o;
    for (int k = 0; (o = ct_set_option(set, k)) != NULL; k++) {
        if (strcmp(group, o->group) != 0) add_line(out, ".SS ", o->group, "");
        group = o->group;
        add_option(out, o);
    }
}

static void add_options(ct_text *out, const char *command) {
    const char *set;
    bool has_any = ct_command_set(command, 1) != NULL || ct_set_option(command, 0) != NULL;
    if (has_any) ct_text_add(out, ".SH OPTIONS\n");
    for (int k = 0; (set = ct_command_set(command, k)) != NULL; k++) add_set(out, command, set);
}

/* ---- pages ---- */

static ct_status read_help(const ct_command *command, char *help) {
    FILE *out = fmemopen(help, MAX_HELP, "w");
    if (out == NULL) return ct_no_memory("a command's help");
    command->help(out);
    bool fits = fflush(out) == 0 && ferror(out) == 0;
    fclose(out);
    return fits ? CT_OK : ct_fail(CT_IO, "the help of %s is too long", command->name);
}

/* Lines of usage, which all begin as far to the right as the first does behind its word. */
static void add_usage(ct_text *out, const char *usage, size_t n) {
    for (const char *at = usage; at < usage + n;) {
        const char *end = memchr(at, '\n', (size_t)(usage + n - at));
        if (end == NULL) end = usage + n;
        if (at != usage) ct_text_add(out, "\n");
        for (int k = 0; at != usage && k < N_USAGE && *at == ' '; k++) at++;
        add_roff(out, at, (size_t)(end - at));
        at = end + 1;
    }
}

/* A help text is usage, an empty line, and then what the command does, up to its options. */
static void add_help(ct_text *out, const char *help) {
    if (strncmp(help, USAGE, N_USAGE) == 0) help += N_USAGE;
    const char *end = strstr(help, "\n\n");
    size_t n_usage = end != NULL ? (size_t)(end - help) : strlen(help);
    ct_text_add(out, ".SH SYNOPSIS\n.nf\n");
    add_usage(out, help, n_usage);
    help += n_usage;
    help += strspn(help, "\n");
    end = strncmp(help, "  --", 4) == 0 ? help : strstr(help, "\n  --");
    size_t n_prose = end != NULL ? (size_t)(end - help) : strlen(help);
    ct_text_add(out, "\n.fi\n");
    if (n_prose == 0) return;
    ct_text_add(out, ".SH DESCRIPTION\n.nf\n");
    add_roff(out, help, n_prose);
    ct_text_add(out, "\n.fi\n");
}

static void add_title(ct_text *out, const char *command, const char *text) {
    const char *dash = command[0] != '\0' ? "-" : "";
    ct_text_add(out, ".\\\" Written by crosstalk help --man.\n.TH crosstalk%s%s 1 \"\" ", dash,
                command);
    ct_text_add(out, "\"crosstalk %s\" \"User Commands\"\n.SH NAME\ncrosstalk%s%s \\- ", CT_VERSION,
                dash[0] != '\0' ? "\\-" : "", command);
    add_line(out, "", text, "");
}

static ct_status write_page(const char *dir, const char *command, const ct_text *page) {
    char name[64];
    snprintf(name, sizeof name, "crosstalk%s%s.1", command[0] != '\0' ? "-" : "", command);
    CT_TRY(ct_text_status(page));
    return ct_file_write(ct_path_in(dir, name).text, page->chars, page->n);
}

static ct_status write_command(const char *dir, const ct_command *command, char *help) {
    CT_SCOPED(ct_text) page = {0};
    CT_TRY(read_help(command, help));
    add_title(&page, command->name, command->text);
    add_help(&page, help);
    add_options(&page, command->name);
    ct_text_add(&page, ".SH SEE ALSO\n.BR crosstalk (1)\n");
    return write_page(dir, command->name, &page);
}

static ct_status write_overview(const char *dir) {
    CT_SCOPED(ct_text) page = {0};
    add_title(&page, "", "decentralized deep learning on heterogeneous data");
    ct_text_add(&page, ".SH SYNOPSIS\n.B crosstalk\n.I COMMAND\n[\\fB\\-\\-option\\fR \\fIvalue\\fR"
                       " ...]\n.br\n.B crosstalk \\-\\-version\n.SH DESCRIPTION\n"
                       "Agents on a graph, each with private data and its own copy of a model, "
                       "talk to their neighbours alone and end with one good model.\n"
                       ".SH COMMANDS\n");
    for (const ct_command *c = ct_commands; c->name != NULL; c++) {
        ct_text_add(&page, ".TP\n.BR crosstalk\\-%s (1)\n", c->name);
        add_line(&page, "", c->text, "");
    }
    ct_text_add(&page, ".SH EXIT STATUS\n0: done. 1: a file, the memory or the training failed. "
                       "2: the command line is wrong. 128 and more: stopped by a signal.\n"
                       ".SH EXAMPLES\n.nf\ncrosstalk train \\-\\-dataset shapes \\-\\-epochs 3\n"
                       ".fi\n");
    return write_page(dir, "", &page);
}

ct_status ct_cli_write_manual(const char *dir) {
    CT_SCOPED_BLOCK(char) help = NULL;
    CT_TRY(ct_make(&help, MAX_HELP, "a command's help"));
    CT_TRY(ct_dir_create(dir));
    CT_TRY(write_overview(dir));
    for (const ct_command *c = ct_commands; c->name != NULL; c++)
        CT_TRY(write_command(dir, c, help));
    return CT_OK;
}
