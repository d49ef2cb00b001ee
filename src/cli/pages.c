#include "cli/pages.h"

#include <ctype.h>
#include <string.h>

#include "record/file.h"

/* ---- options ---- */

static void ignore(void *context, const char *name, const char *text) {
    (void)name;
    (void)text;
    *(bool *)context = true;
}

static const char *word_of(const ct_option *o) {
    static const char *const words[] = {"VALUE", "N", "X", "on|off", ""};
    bool is_registered = false;
    ct_cli_list_values(o->name, ignore, &is_registered);
    if ((o->roles & CT_ROLE_PATH) != 0) return "PATH";
    if ((o->roles & (CT_ROLE_LIST | CT_ROLE_WORLDS)) != 0) return "LIST";
    if (is_registered || o->choices[0] != '\0') return "NAME";
    return words[o->kind];
}

void ct_page_value(const ct_option *o, char *out, size_t size) {
    const char *word = word_of(o);
    bool is_bare = (o->roles & CT_ROLE_BARE) != 0, is_run = strcmp(o->command, "run") == 0;
    if (word[0] == '\0')
        out[0] = '\0';
    else if (is_bare)
        snprintf(out, size, is_run ? " [%s]" : "[=%s]", word);
    else
        snprintf(out, size, " %s", word);
}

void ct_page_option_help(const ct_option *o, char *out, size_t size) {
    ct_spell(o->help, "--", out, size);
}

void ct_page_range(const ct_option *o, char *out, size_t size) {
    bool is_number = o->kind == CT_KIND_WHOLE || o->kind == CT_KIND_REAL;
    out[0] = '\0';
    if (is_number) snprintf(out, size, "%.9g to %.9g", o->lowest, o->highest);
}

bool ct_page_has_default(const ct_option *o) {
    return o->value != NULL && o->value[0] != '\0' && o->kind != CT_KIND_SWITCH;
}

/* A name is one of a list with commas. */
static bool is_in(const char *list, const char *name) {
    size_t n = strlen(name);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += strspn(at, ", ");
        if (strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == '\0')) return true;
    }
    return false;
}

/* A heading of the schema: "agents" as "Agent options", "" as "Options". */
static void begin_group(ct_page *page, const ct_page_style *s, const char *group) {
    char text[64];
    int n = (int)strlen(group);
    if (n > 0 && group[n - 1] == 's') n--;
    snprintf(text, sizeof text, "%.*s options", n, group);
    if (n > 0) text[0] = (char)toupper((unsigned char)text[0]);
    s->group(page, n > 0 ? text : "Options");
}

/* Those of a set, with a heading for each of its groups, or one for all. `only`: a list of names, or
 * NULL. */
static void write_set(ct_page *page, const ct_page_style *s, const char *set, const char *heading,
                      const char *only) {
    const ct_option *o;
    const char *before = NULL;
    for (int k = 0; (o = ct_set_option(set, k)) != NULL; k++) {
        if (only != NULL && !is_in(only, o->name)) continue;
        if (before == NULL && heading != NULL) s->group(page, heading);
        if ((before == NULL || strcmp(before, o->group) != 0) && heading == NULL)
            begin_group(page, s, o->group);
        before = o->group;
        s->option(page, o);
    }
}

/* All options of a run stand on the page of train; other pages have those that matter there. */
static void write_options(ct_page *page, const ct_page_style *s, const ct_command *c,
                          const char *command) {
    static const char others[] = "crosstalk help train lists all options of a run.";
    const char *set;
    for (int k = 0; (set = ct_command_set(command, k)) != NULL; k++) {
        bool is_run = strcmp(set, "run") == 0, is_train = strcmp(command, "train") == 0;
        bool is_shared = k > 0 && !is_run;
        const char *heading = !is_shared                  ? NULL
                              : strcmp(set, "study") == 0 ? "Options of the table"
                                                          : "Options of the model";
        if (!is_run || is_train) write_set(page, s, set, heading, k == 0 ? c->help->own : NULL);
        if (!is_run || is_train || c->help->takes == NULL) continue;
        write_set(page, s, set, "Options of a run that matter here", c->help->takes);
        s->paragraph(page, others, strlen(others));
    }
}

/* ---- pages ---- */

static void write_text(ct_page *page, const ct_page_style *s, const char *text) {
    while (*text != '\0') {
        const char *end = strstr(text, "\n\n");
        size_t n = end != NULL ? (size_t)(end - text) : strlen(text);
        (*text == ' ' ? s->verbatim : s->paragraph)(page, text, n);
        text += n;
        text += strspn(text, "\n");
    }
}

static void write_pairs(ct_page *page, const ct_page_style *s, const char *heading,
                        const ct_help_pair *pairs) {
    if (pairs == NULL) return;
    s->heading(page, heading);
    for (; pairs->name != NULL; pairs++) s->item(page, pairs->name, pairs->text);
}

/* The files of a run directory, as the list of them has it. */
static void write_files(ct_page *page, const ct_page_style *s, const ct_help *help) {
    if (help->writes_run || help->files != NULL) s->heading(page, "Files");
    for (int f = 0; f < CT_N_FILES && help->writes_run; f++) {
        char text[256];
        ct_spell(ct_record_text((ct_record_file)f), "--", text, sizeof text);
        s->item(page, ct_record_name((ct_record_file)f), text);
    }
    for (const ct_help_pair *p = help->files; p != NULL && p->name != NULL; p++)
        s->item(page, p->name, p->text);
}

static void write_examples(ct_page *page, const ct_page_style *s, const ct_help_pair *examples) {
    if (examples == NULL) return;
    s->heading(page, "Examples");
    for (; examples->name != NULL; examples++) s->example(page, examples->name, examples->text);
}

static void write_parts(ct_page *page, const ct_page_style *s, const ct_command *command) {
    bool is_first = true;
    for (const ct_command *c = ct_parts; c->name != NULL; c++) {
        char name[64];
        if (strcmp(c->group, command->name) != 0) continue;
        if (is_first) s->heading(page, "Commands");
        is_first = false;
        snprintf(name, sizeof name, "%s %s", c->group, c->name);
        s->command(page, name, c->text);
    }
}

static bool is_part(const ct_command *command) {
    return command->run == NULL;
}

void ct_page_name(const ct_command *command, char *out, size_t size) {
    if (is_part(command))
        snprintf(out, size, "%s-%s", command->group, command->name);
    else
        snprintf(out, size, "%s", command->name);
}

void ct_page_write(ct_page *page, const ct_page_style *s, const ct_command *c) {
    char name[64];
    ct_page_name(c, name, sizeof name);
    for (char *dash = strchr(name, '-'); dash != NULL; dash = NULL) *dash = ' ';
    s->title(page, name, c->text);
    s->usage(page, c->help->usage);
    write_text(page, s, c->help->text);
    if (!is_part(c)) write_parts(page, s, c);
    write_options(page, s, c, is_part(c) ? c->group : c->name);
    write_files(page, s, c->help);
    write_pairs(page, s, "Exit codes", c->help->exits);
    write_examples(page, s, c->help->examples);
    if (c->help->also != NULL) s->also(page, c->help->also);
}

static const ct_help_pair exit_codes[] = {
    {"0", "done; of a training: it is finished"},
    {"1", "a file, the disk, memory or another process failed, or the training diverged; one "
          "line says which"},
    {"2", "the command line is wrong, or a saved run has other options"},
    {"128+N", "stopped by signal N with the state saved: 130 is Ctrl-C, 143 SIGTERM or a time "
              "limit, 138 SIGUSR1; --resume goes on from there"},
    {NULL, NULL}};

static const ct_help_pair starts[] = {
    {"Four agents on a ring, drawn shapes: about 95 % after a few seconds.", CT_HELP_START},
    {"The same with three seeds, then a page about both.",
     CT_HELP_START " --seeds 1,2,3\ncrosstalk report runs"},
    {"Two methods in one table.",
     "crosstalk compare --algorithms dsgdm,ccl --dataset shapes --agents 4 --epochs 10"},
    {NULL, NULL}};

void ct_page_write_overview(ct_page *page, const ct_page_style *s) {
    static const char about[] =
        "Agents on a graph each keep their own data and their own copy of a model. They talk to "
        "their neighbours alone, and all end with one good model: no server, no shared data.";
    const char *group = NULL;
    s->title(page, "", "decentralized deep learning on heterogeneous data");
    s->usage(page, "COMMAND [--option value ...]\nhelp COMMAND\n--version");
    s->paragraph(page, about, strlen(about));
    for (const ct_command *c = ct_commands; c->name != NULL; c++) {
        if (group == NULL || strcmp(group, c->group) != 0) s->heading(page, c->group);
        group = c->group;
        s->command(page, c->name, c->text);
    }
    write_examples(page, s, starts);
    write_pairs(page, s, "Exit codes", exit_codes);
}
