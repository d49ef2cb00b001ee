#include "schema/schema.h"

#include <stdio.h>
#include <string.h>

#include "schema/config.h"
#include "util/text.h"

enum {
    TEXT = CT_KIND_TEXT,
    WHOLE = CT_KIND_WHOLE,
    REAL = CT_KIND_REAL,
    FLAG = CT_KIND_FLAG,
    SWITCH = CT_KIND_SWITCH,
    LOCAL = CT_ROLE_LOCAL,
    LENGTH = CT_ROLE_LENGTH,
    CONTENT = CT_ROLE_CONTENT,
    PATH = CT_ROLE_PATH,
    LIST = CT_ROLE_LIST,
    WORLDS = CT_ROLE_WORLDS,
    SINGLE = CT_ROLE_SINGLE,
    UNSAVED = CT_ROLE_UNSAVED,
    BARE = CT_ROLE_BARE,
    SETTING = CT_ROLE_SETTING,
    METHOD = CT_ROLE_METHOD,
    SEED = CT_ROLE_SEED,
    RANK = CT_ROLE_RANK,
};

const ct_option ct_run_options[] = {
#define OPTION(group_, kind_, field_, name_, aliases_, value_, lowest_, highest_, choices_,        \
               roles_, needs_, help_)                                                              \
    {.command = "run",                                                                             \
     .group = group_,                                                                              \
     .name = name_,                                                                                \
     .aliases = aliases_,                                                                          \
     .value = value_,                                                                              \
     .choices = choices_,                                                                          \
     .needs = needs_,                                                                              \
     .help = help_,                                                                                \
     .kind = (ct_option_kind)kind_,                                                                \
     .roles = roles_,                                                                              \
     .lowest = lowest_,                                                                            \
     .highest = highest_,                                                                          \
     .offset = offsetof(ct_config, field_)},
#define OWN(...)
#include "schema/option_list.h"
#undef OPTION
#undef OWN
};

static const ct_option own_options[] = {
#define OPTION(...)
#define OWN(command_, kind_, name_, value_, lowest_, highest_, choices_, roles_, help_)            \
    {.command = command_,                                                                          \
     .group = "",                                                                                  \
     .name = name_,                                                                                \
     .aliases = "",                                                                                \
     .value = value_,                                                                              \
     .choices = choices_,                                                                          \
     .needs = "",                                                                                  \
     .help = help_,                                                                                \
     .kind = (ct_option_kind)kind_,                                                                \
     .roles = roles_,                                                                              \
     .lowest = lowest_,                                                                            \
     .highest = highest_},
#include "schema/option_list.h"
#undef OPTION
#undef OWN
};

const ct_option *ct_own_option(const char *command, int k) {
    for (size_t i = 0; i < sizeof own_options / sizeof *own_options; i++)
        if (strcmp(own_options[i].command, command) == 0 && k-- == 0) return &own_options[i];
    return NULL;
}

const char *ct_command_set(const char *command, int k) {
    static const char *const takes[][2] = {
#define TAKES(command_, set_) {command_, set_},
#include "schema/take_list.h"
#undef TAKES
    };
    if (k == 0) return command;
    for (size_t i = 0; i < sizeof takes / sizeof *takes; i++)
        if (strcmp(takes[i][0], command) == 0 && --k == 0) return takes[i][1];
    return NULL;
}

const ct_option *ct_set_option(const char *set, int k) {
    int n = 0;
    while (ct_own_option(set, n) != NULL) n++;
    if (k < n) return ct_own_option(set, k);
    bool is_run = strcmp(set, "run") == 0;
    return is_run && k - n < CT_N_OPTIONS ? &ct_run_options[k - n] : NULL;
}

/* A word is one of a list with commas. */
static bool is_listed(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *at = list; *at != '\0';) {
        size_t length = strcspn(at, ",");
        if (length == n && memcmp(at, word, n) == 0) return true;
        at += length;
        at += strspn(at, ", ");
    }
    return false;
}

const ct_option *ct_schema_find(const char *name) {
    for (int id = 0; id < CT_N_OPTIONS; id++) {
        const ct_option *o = &ct_run_options[id];
        if (strcmp(o->name, name) == 0 || is_listed(o->aliases, name)) return o;
    }
    return NULL;
}

ct_status ct_schema_look_up(const char *name, const ct_option **out) {
    *out = ct_schema_find(name);
    if (*out != NULL) return CT_OK;
    ct_guess guess = {.word = name};
    for (int id = 0; id < CT_N_OPTIONS; id++) ct_guess_try(&guess, ct_run_options[id].name);
    if (guess.nearest[0] != '\0')
        return ct_fail(CT_INVAL, "unknown option @%s; did you mean @%s? (crosstalk help train)",
                       name, guess.nearest);
    return ct_fail(CT_INVAL, "unknown option @%s; crosstalk help train lists the known ones", name);
}

/* ---- values ---- */

size_t ct_option_size(ct_option_kind kind) {
    static const size_t sizes[] = {CT_CONFIG_TEXT, sizeof(int64_t), sizeof(double), sizeof(bool),
                                   sizeof(bool)};
    return sizes[kind];
}

bool ct_option_is_auto(const ct_option *o) {
    return o->value != NULL && strcmp(o->value, "auto") == 0;
}

static ct_status try_choice(void *context, const char *choice) {
    ct_guess_try(context, choice);
    return CT_OK;
}

static ct_status refuse_choice(const ct_option *o, const char *text) {
    ct_guess guess = {.word = text};
    CT_TRY(ct_split(o->choices, try_choice, &guess));
    if (guess.nearest[0] != '\0')
        return ct_refuse(o->name, "no '%s'; did you mean %s? known: %s", text, guess.nearest,
                         o->choices);
    return ct_refuse(o->name, "no '%s'; known: %s", text, o->choices);
}

static ct_status parse_text(const ct_option *o, const char *text, char *field) {
    if (strlen(text) >= CT_CONFIG_TEXT)
        return ct_refuse(o->name, "a value has at most %d characters", CT_CONFIG_TEXT - 1);
    if (strchr(text, '\n') != NULL) return ct_refuse(o->name, "a value is one line");
    if (o->choices[0] != '\0' && !is_listed(o->choices, text)) return refuse_choice(o, text);
    snprintf(field, CT_CONFIG_TEXT, "%s", text);
    return CT_OK;
}

static ct_status parse_number(const ct_option *o, const char *text, void *field) {
    int64_t whole = 0;
    double real = 0;
    bool is_whole = o->kind == CT_KIND_WHOLE;
    if (!(is_whole ? ct_parse_i64(text, &whole) : ct_parse_double(text, &real)))
        return ct_refuse(o->name, "'%s' is not a %s", text, is_whole ? "whole number" : "number");
    if (is_whole) real = (double)whole;
    if (!(real >= o->lowest && real <= o->highest))
        return ct_refuse(o->name, "%s is out of range; it goes from %.9g to %.9g", text, o->lowest,
                         o->highest);
    if (is_whole)
        *(int64_t *)field = whole;
    else
        *(double *)field = real;
    return CT_OK;
}

ct_status ct_option_parse(const ct_option *o, const char *text, void *field) {
    switch (o->kind) {
    case CT_KIND_TEXT: return parse_text(o, text, field);
    case CT_KIND_WHOLE:
    case CT_KIND_REAL: return parse_number(o, text, field);
    default:
        if (ct_parse_bool(text, field)) return CT_OK;
        return ct_refuse(o->name, "'%s' is neither on nor off", text);
    }
}
