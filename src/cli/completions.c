/* Completions for bash, zsh and fish. Options come in sets (schema.h): each shell gets every set once,
 * with the commands that take it. */
#include <string.h>

#include "cli/cli.h"
#include "util/file.h"
#include "util/memory.h"
#include "util/text.h"

/* How a shell is told about one option, and about a set of them. */
typedef struct shell {
    const char *file;
    void (*begin)(ct_text *out);
    void (*set)(ct_text *out, const char *set);
    void (*end)(ct_text *out);
} shell;

/* ---- what there is to say ---- */

static bool takes(const char *command, const char *set) {
    const char *known;
    for (int k = 0; (known = ct_command_set(command, k)) != NULL; k++)
        if (strcmp(known, set) == 0) return true;
    return false;
}

/* The commands that take a set, with `between` between them. */
static void add_takers(ct_text *out, const char *set, const char *between) {
    const char *next = "";
    for (const ct_command *c = ct_commands; c->name != NULL; c++) {
        if (!takes(c->name, set)) continue;
        ct_text_add(out, "%s%s", next, c->name);
        next = between;
    }
}

static bool has_value(const ct_option *o) {
    return o->kind != CT_KIND_SWITCH;
}

static void add_word(void *context, const char *name, const char *text) {
    (void)text;
    ct_text_add(context, " %s", name);
}

static ct_status add_choice(void *context, const char *field) {
    ct_text_add(context, " %s", field);
    return CT_OK;
}

/* The values that an option is known to take, each with a blank before it; nothing where they are
 * numbers, paths or free text. */
static void add_values(ct_text *out, const ct_option *o) {
    if (o->kind == CT_KIND_FLAG) ct_text_add(out, " on off");
    if (o->kind != CT_KIND_TEXT) return;
    (void)CT_CATCH(NULL, ct_split(o->choices, add_choice, out)); /* out keeps that it failed */
    ct_cli_list_values(o->name, add_word, out);
}

/* A text in single quotes; `special` characters get a backslash. */
static void add_quoted(ct_text *out, const char *text, const char *special) {
    char spelled[512];
    ct_spell(text, "--", spelled, sizeof spelled);
    for (const char *c = spelled; *c != '\0'; c++) {
        if (strchr(special, *c) != NULL) ct_text_add(out, "\\");
        ct_text_add(out, *c == '\'' ? "'\\''" : "%c", *c);
    }
}

static bool is_path(const ct_option *o) {
    return (o->roles & CT_ROLE_PATH) != 0;
}

static void add_names(ct_text *out) {
    for (const ct_command *c = ct_commands; c->name != NULL; c++) ct_text_add(out, " %s", c->name);
}

static void add_kinds(ct_text *out) {
    for (int k = 0; ct_cli_list_kind(k) != NULL; k++) ct_text_add(out, " %s", ct_cli_list_kind(k));
}

/* ---- bash: words are collected in $words, those of a value win ---- */

static void begin_bash(ct_text *out) {
    ct_text_add(out,
                "# bash completion for crosstalk, written by crosstalk help --completions\n"
                "_crosstalk() {\n"
                "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
                "    local command=${COMP_WORDS[1]} words='' values='' equals=''\n"
                "    # --name=value comes as three words\n"
                "    if [[ $current == = ]]; then current='' equals=1\n"
                "    elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
                "    [[ -n $equals ]] && before=${COMP_WORDS[COMP_CWORD - 1]}\n"
                "    if ((COMP_CWORD == 1)); then\n"
                "        mapfile -t COMPREPLY < <(compgen -W '--help --version");
    add_names(out);
    ct_text_add(
        out, "' -- \"$current\")\n        return\n    fi\n    case $command in\n    help) words='");
    add_names(out);
    ct_text_add(out, "' ;;\n    list) words='");
    add_kinds(out);
    ct_text_add(out, "' ;;\n    esac\n");
}

static void add_bash_value(ct_text *out, const ct_option *o) {
    if (!has_value(o) || (o->roles & CT_ROLE_BARE) != 0) return;
    ct_text_add(out, "        --%s) values='", o->name);
    add_values(out, o);
    ct_text_add(out, " ' ;;\n"); /* a blank alone: no words of ours, so that files are offered */
}

static void add_bash(ct_text *out, const char *set) {
    const ct_option *o;
    ct_text_add(out, "    case $command in\n    ");
    add_takers(out, set, " | ");
    ct_text_add(out, ")\n        words+='");
    for (int k = 0; (o = ct_set_option(set, k)) != NULL; k++) ct_text_add(out, " --%s", o->name);
    ct_text_add(out, "'\n        case $before in\n");
    for (int k = 0; (o = ct_set_option(set, k)) != NULL; k++) add_bash_value(out, o);
    ct_text_add(out, "        esac\n        ;;\n    esac\n");
}

static void end_bash(ct_text *out) {
    ct_text_add(out,
                "    mapfile -t COMPREPLY < <(compgen -W \"${values:-$words}\" -- \"$current\")\n"
                "}\n"
                "complete -o default -F _crosstalk crosstalk\n");
}

/* ---- zsh: an array of specifications for every set ---- */

static void begin_zsh(ct_text *out) {
    ct_text_add(out, "#compdef crosstalk\n"
                     "# written by crosstalk help --completions\n"
                     "local -a commands specs\n"
                     "commands=(\n");
    for (const ct_command *c = ct_commands; c->name != NULL; c++) {
        ct_text_add(out, "    '%s:", c->name);
        add_quoted(out, c->text, ":\\");
        ct_text_add(out, "'\n");
    }
    ct_text_add(out, ")\n"
                     "if ((CURRENT == 2)); then\n"
                     "    _describe -t commands command commands\n"
                     "    return\n"
                     "fi\n"
                     "local command=$words[2]\n"
                     "specs=('*:file:_files')\n"
                     "case $command in\n"
                     "help) specs=('*:command:(");
    add_names(out);
    ct_text_add(out, ")') ;;\nlist) specs=('*:kind:(");
    add_kinds(out);
    ct_text_add(out, ")') ;;\nesac\n");
}

static void add_zsh_option(ct_text *out, const ct_option *o) {
    bool may_stand = (o->roles & CT_ROLE_BARE) != 0;
    ct_text_add(out, "        '--%s%s[", o->name, has_value(o) ? "=" : "");
    add_quoted(out, o->help, ":[]\\");
    ct_text_add(out, "]");
    if (has_value(o)) ct_text_add(out, "%s%s:", may_stand ? "::" : ":", o->name);
    if (has_value(o) && is_path(o)) {
        ct_text_add(out, "_files");
    } else if (has_value(o)) {
        ct_text_add(out, "(");
        add_values(out, o);
        ct_text_add(out, ")");
    }
    ct_text_add(out, "'\n");
}

static void add_zsh(ct_text *out, const char *set) {
    const ct_option *o;
    ct_text_add(out, "case $command in\n");
    add_takers(out, set, "|");
    ct_text_add(out, ")\n    specs+=(\n");
    for (int k = 0; (o = ct_set_option(set, k)) != NULL; k++) add_zsh_option(out, o);
    ct_text_add(out, "    )\n    ;;\nesac\n");
}

static void end_zsh(ct_text *out) {
    ct_text_add(out, "shift words\n((CURRENT--))\n_arguments \"${specs[@]}\"\n");
}

/* ---- fish: one line per option ---- */

static void begin_fish(ct_text *out) {
    ct_text_add(out, "# fish completion for crosstalk, written by crosstalk help --completions\n"
                     "complete -c crosstalk -n __fish_use_subcommand -l version -f\n");
    for (const ct_command *c = ct_commands; c->name != NULL; c++) {
        ct_text_add(out, "complete -c crosstalk -n __fish_use_subcommand -f -a %s -d '", c->name);
        add_quoted(out, c->text, "\\");
        ct_text_add(out, "'\n");
    }
    ct_text_add(out, "complete -c crosstalk -n '__fish_seen_subcommand_from help' -f -a '");
    add_names(out);
    ct_text_add(out, "'\ncomplete -c crosstalk -n '__fish_seen_subcommand_from list' -f -a '");
    add_kinds(out);
    ct_text_add(out, "'\n");
}

static void add_fish_option(ct_text *out, const char *set, const ct_option *o) {
    ct_text_add(out, "complete -c crosstalk -n '__fish_seen_subcommand_from ");
    add_takers(out, set, " ");
    ct_text_add(out, "' -l %s", o->name);
    if (has_value(o) && is_path(o)) ct_text_add(out, " -r -F");
    if (has_value(o) && !is_path(o)) {
        ct_text_add(out, " -x -a '");
        add_values(out, o);
        ct_text_add(out, "'");
    }
    ct_text_add(out, " -d '");
    add_quoted(out, o->help, "\\");
    ct_text_add(out, "'\n");
}

static void add_fish(ct_text *out, const char *set) {
    const ct_option *o;
    for (int k = 0; (o = ct_set_option(set, k)) != NULL; k++) add_fish_option(out, set, o);
}

static void end_fish(ct_text *out) {
    (void)out;
}

/* ---- files ---- */

/* A set is written when the first command that takes it comes. */
static bool is_new(const ct_command *command, const char *set) {
    for (const ct_command *c = ct_commands; c != command; c++)
        if (takes(c->name, set)) return false;
    return ct_set_option(set, 0) != NULL;
}

static ct_status write_shell(const char *dir, const shell *s) {
    CT_SCOPED(ct_text) out = {0};
    const char *set;
    s->begin(&out);
    for (const ct_command *c = ct_commands; c->name != NULL; c++)
        for (int k = 0; (set = ct_command_set(c->name, k)) != NULL; k++)
            if (is_new(c, set)) s->set(&out, set);
    s->end(&out);
    CT_TRY(ct_text_status(&out));
    return ct_file_write(ct_path_in(dir, s->file).text, out.chars, out.n);
}

ct_status ct_cli_write_completions(const char *dir) {
    static const shell shells[] = {
        {"crosstalk", begin_bash, add_bash, end_bash},
        {"_crosstalk", begin_zsh, add_zsh, end_zsh},
        {"crosstalk.fish", begin_fish, add_fish, end_fish},
    };
    CT_TRY(ct_dir_create(dir));
    for (size_t k = 0; k < sizeof shells / sizeof *shells; k++)
        CT_TRY(write_shell(dir, &shells[k]));
    return CT_OK;
}
