#include "schema/config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "util/file.h"
#include "util/json.h"
#include "util/memory.h"

typedef enum option_kind { TEXT, WHOLE, REAL, FLAG, SWITCH } option_kind;

typedef struct option {
    option_kind kind;
    const char *name, *aliases, *value, *help, *group;
    size_t offset;
    double lowest, highest;
} option;

static const option options[] = {
#define GROUP(name)
#define OPTION(kind_, field, name_, aliases_, value_, lowest_, highest_, help_)                    \
    {.kind = kind_,                                                                                \
     .name = name_,                                                                                \
     .aliases = aliases_,                                                                          \
     .value = value_,                                                                              \
     .help = help_,                                                                                \
     .offset = offsetof(ct_config, field),                                                         \
     .lowest = lowest_,                                                                            \
     .highest = highest_},
#include "schema/options_list.h"
#undef OPTION
#undef GROUP
};

/* The group headings, each before the option it precedes. */
static const char *group_before(int wanted) {
    int id = 0;
    const char *group = NULL;
#define GROUP(name)                                                      group = id == wanted ? name : group;
#define OPTION(kind, field, name, aliases, value, lowest, highest, help) id++;
#include "schema/options_list.h"
#undef OPTION
#undef GROUP
    return group;
}

static void *field_of(ct_config *config, const option *o) {
    return (char *)config + o->offset;
}
static const void *field_in(const ct_config *config, const option *o) {
    return (const char *)config + o->offset;
}

static bool is_alias(const char *aliases, const char *name) {
    size_t n = strlen(name);
    for (const char *at = aliases; *at != '\0';) {
        size_t length = strcspn(at, ",");
        if (length == n && memcmp(at, name, n) == 0) return true;
        at += length;
        if (*at == ',') at++;
    }
    return false;
}

static int find(const char *name) {
    for (int id = 0; id < CT_N_OPTIONS; id++)
        if (strcmp(options[id].name, name) == 0 || is_alias(options[id].aliases, name)) return id;
    return -1;
}

static ct_status unknown(const char *name) {
    const char *nearest = NULL;
    size_t best = strlen(name) / 3 + 2;
    for (int id = 0; id < CT_N_OPTIONS; id++) {
        size_t distance = ct_edit_distance(name, options[id].name);
        if (distance >= best) continue;
        best = distance;
        nearest = options[id].name;
    }
    if (nearest != NULL)
        return ct_fail(CT_INVAL, "unknown option @%s; did you mean @%s? (crosstalk help train)",
                       name, nearest);
    return ct_fail(CT_INVAL, "unknown option @%s; crosstalk help train lists the known ones", name);
}

static ct_status set_text(const option *o, const char *value, char *field) {
    if (strlen(value) >= CT_CONFIG_TEXT)
        return ct_refuse(o->name, "a value has at most %d characters", CT_CONFIG_TEXT - 1);
    if (strchr(value, '\n') != NULL) return ct_refuse(o->name, "a value is one line");
    snprintf(field, CT_CONFIG_TEXT, "%s", value);
    return CT_OK;
}

static ct_status set_number(const option *o, const char *value, void *field) {
    int64_t whole = 0;
    double real = 0;
    bool is_number = o->kind == WHOLE ? ct_parse_i64(value, &whole) : ct_parse_double(value, &real);
    if (!is_number)
        return ct_refuse(o->name, "'%s' is not a %s", value,
                         o->kind == WHOLE ? "whole number" : "number");
    if (o->kind == WHOLE) real = (double)whole;
    if (!(real >= o->lowest && real <= o->highest))
        return ct_refuse(o->name, "%s is out of range; it goes from %.9g to %.9g", value, o->lowest,
                         o->highest);
    if (o->kind == WHOLE)
        *(int64_t *)field = whole;
    else
        *(double *)field = real;
    return CT_OK;
}

static ct_status set_value(const option *o, const char *value, void *field) {
    switch (o->kind) {
    case TEXT: return set_text(o, value, field);
    case WHOLE:
    case REAL: return set_number(o, value, field);
    default:
        if (ct_parse_bool(value, field)) return CT_OK;
        return ct_refuse(o->name, "'%s' is neither on nor off", value);
    }
}

void ct_config_init(ct_config *config) {
    memset(config, 0, sizeof *config);
    for (int id = 0; id < CT_N_OPTIONS; id++) {
        const option *o = &options[id];
        config->is_auto[id] = strcmp(o->value, "auto") == 0;
        if (!config->is_auto[id] || o->kind == TEXT) set_value(o, o->value, field_of(config, o));
    }
}

ct_status ct_config_set(ct_config *config, const char *name, const char *value) {
    int id = find(name);
    if (id < 0) return unknown(name);
    const option *o = &options[id];
    bool is_auto = strcmp(o->value, "auto") == 0 && strcmp(value, "auto") == 0;
    if (!is_auto || o->kind == TEXT) CT_TRY(set_value(o, value, field_of(config, o)));
    config->is_auto[id] = is_auto;
    config->given[id] = true;
    return CT_OK;
}

bool ct_config_is_given(const ct_config *config, const char *name) {
    int id = find(name);
    return id >= 0 && config->given[id];
}

bool ct_config_is_switch(const char *name) {
    int id = find(name);
    return id >= 0 && options[id].kind == SWITCH;
}

bool ct_config_is_single(const char *name) {
    int id = find(name);
    return id == CT_OPT_out || id == CT_OPT_resume || id == CT_OPT_force || id == CT_OPT_quiet;
}

void ct_config_override(ct_config *config, const ct_config *with) {
    for (int id = 0; id < CT_N_OPTIONS; id++) {
        static const size_t sizes[] = {CT_CONFIG_TEXT, sizeof(int64_t), sizeof(double),
                                       sizeof(bool), sizeof(bool)};
        const option *o = &options[id];
        if (!with->given[id]) continue;
        memcpy(field_of(config, o), field_in(with, o), sizes[o->kind]);
        config->is_auto[id] = with->is_auto[id];
        config->given[id] = true;
    }
}

void ct_config_fix(ct_config *config) {
    for (int id = 0; id < CT_N_OPTIONS; id++)
        if (id != CT_OPT_checkpoint_every) config->given[id] = true;
}

void ct_config_forget_local(ct_config *config) {
    for (int id = 0; id < CT_N_OPTIONS; id++)
        if (ct_config_is_local(options[id].name)) config->given[id] = false;
}

bool ct_config_may_be_listed(const char *name) {
    static const ct_option_id never[] = {CT_OPT_data_dir,      CT_OPT_cache, CT_OPT_partition_file,
                                         CT_OPT_init,          CT_OPT_seeds, CT_OPT_resume,
                                         CT_OPT_lr_milestones, CT_OPT_fault, CT_OPT_out,
                                         CT_OPT_force,         CT_OPT_quiet, CT_OPT_lambdas};
    int id = find(name);
    for (size_t k = 0; k < sizeof never / sizeof *never; k++)
        if ((int)never[k] == id) return false;
    return id >= 0 && options[id].kind != SWITCH;
}

const char *ct_config_name(const char *name) {
    int id = find(name);
    return id >= 0 ? options[id].name : NULL;
}

static char *trimmed(char *text) {
    while (*text == ' ' || *text == '\t') text++;
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r", text[n - 1]) != NULL) text[--n] = '\0';
    return text;
}

/* first_line[option]: the line that has named it; 0: none has. */
static ct_status read_line(ct_config *config, const char *path, int number, char *line,
                           int *first_line) {
    char *text = trimmed(line);
    if (*text == '\0' || *text == '#') return CT_OK;
    char *equals = strchr(text, '=');
    if (equals == NULL)
        return ct_fail(CT_IO, "%s:%d: '%s' is not of the form name = value", path, number, text);
    *equals = '\0';
    char *name = trimmed(text), *value = trimmed(equals + 1);
    int id = find(name);
    if (id >= 0 && first_line[id] > 0)
        return ct_fail(CT_IO, "%s:%d: %s is there twice, first in line %d", path, number, name,
                       first_line[id]);
    if (id >= 0 && config->given[id]) return CT_OK;
    if (id >= 0) first_line[id] = number;
    ct_error error;
    if (CT_CATCH(&error, ct_config_set(config, name, value)) == CT_OK) return CT_OK;
    return ct_fail_in(&error, "%s:%d", path, number);
}

ct_status ct_config_read(ct_config *config, const char *path) {
    ct_blob blob = {0};
    ct_status status = CT_OK;
    CT_TRY(ct_file_read(path, 1 << 20, &blob));
    ct_config from_file = *config; /* all of the file or nothing */
    int first_line[CT_N_OPTIONS] = {0};
    char *line = (char *)blob.bytes;
    if (strlen(line) != blob.n) status = ct_fail(CT_IO, "%s: a zero byte in it; no text", path);
    for (int number = 1; line != NULL && status == CT_OK; number++) {
        char *end = strchr(line, '\n');
        if (end != NULL) *end = '\0';
        status = read_line(&from_file, path, number, line, first_line);
        line = end != NULL ? end + 1 : NULL;
    }
    /* who names one seed does not want those of the file */
    if (config->given[CT_OPT_seed] && !config->given[CT_OPT_seeds]) {
        from_file.seeds[0] = '\0';
        from_file.given[CT_OPT_seeds] = false;
    }
    if (status == CT_OK) *config = from_file;
    ct_blob_free(&blob);
    return status;
}

static void add_real(ct_text *out, double value) {
    if (value == floor(value) && fabs(value) < 1e15)
        ct_text_add(out, "%.0f", value);
    else
        ct_json_add_number(out, value);
}

static bool is_saved(int id) {
    return id != CT_OPT_force && id != CT_OPT_quiet && id != CT_OPT_resume;
}

/* A number that is still to be chosen has no value yet. */
static void add_value(int id, const ct_config *config, ct_text *out) {
    const option *o = &options[id];
    const void *field = field_in(config, o);
    if (config->is_auto[id] && o->kind != TEXT) {
        ct_text_add(out, "auto");
        return;
    }
    switch (o->kind) {
    case TEXT: ct_text_add(out, "%s", (const char *)field); break;
    case WHOLE: ct_text_add(out, "%" PRId64, *(const int64_t *)field); break;
    case REAL: add_real(out, *(const double *)field); break;
    default: ct_text_add(out, "%s", *(const bool *)field ? "on" : "off"); break;
    }
}

void ct_config_print(const ct_config *config, ct_text *out) {
    for (int id = 0; id < CT_N_OPTIONS; id++) {
        if (!is_saved(id)) continue;
        ct_text_add(out, "%s = ", options[id].name);
        add_value(id, config, out);
        ct_text_add(out, "\n");
    }
}

/* A word for the shell, in quotes where it needs them. */
static void add_word(ct_text *out, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=:,./@%";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        ct_text_add(out, "%s", word);
        return;
    }
    ct_text_add(out, "'");
    for (; *word != '\0'; word++) ct_text_add(out, *word == '\'' ? "'\\''" : "%c", *word);
    ct_text_add(out, "'");
}

void ct_config_print_command(const ct_config *config, ct_text *out) {
    for (int id = 0; id < CT_N_OPTIONS; id++) {
        const option *o = &options[id];
        if (!config->given[id] || !is_saved(id)) continue;
        if (o->kind == SWITCH) {
            if (*(const bool *)field_in(config, o)) ct_text_add(out, " --%s", o->name);
            continue;
        }
        ct_text value = {0};
        ct_text_add(&value, "%s", "");
        add_value(id, config, &value);
        ct_text_add(out, " --%s ", o->name);
        if (!value.failed) add_word(out, value.chars);
        ct_text_free(&value);
    }
}

void ct_config_print_json(const ct_config *config, ct_text *out) {
    bool is_first = true;
    for (int id = 0; id < CT_N_OPTIONS; id++) {
        const option *o = &options[id];
        const void *field = field_in(config, o);
        if (!is_saved(id)) continue;
        ct_text_add(out, "%s\n    \"%s\": ", is_first ? "" : ",", o->name);
        is_first = false;
        switch (o->kind) {
        case TEXT: ct_json_add_string(out, field); break;
        case WHOLE: ct_text_add(out, "%" PRId64, *(const int64_t *)field); break;
        case REAL: ct_json_add_number(out, *(const double *)field); break;
        default: ct_text_add(out, "%s", *(const bool *)field ? "true" : "false"); break;
        }
    }
}

void ct_config_help(FILE *out) {
    for (int id = 0; id < CT_N_OPTIONS; id++) {
        const option *o = &options[id];
        const char *group = group_before(id);
        if (group != NULL) fprintf(out, "\n%s\n", group);
        fprintf(out, "  --%-18s %s", o->name, o->help);
        if (o->value[0] != '\0' && o->kind != SWITCH) fprintf(out, " [%s]", o->value);
        fputc('\n', out);
    }
}
