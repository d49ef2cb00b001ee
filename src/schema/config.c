#include "schema/config.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "util/file.h"
#include "util/memory.h"

static void *field_of(ct_config *config, int id) {
    return (char *)config + ct_run_options[id].offset;
}
static const void *field_in(const ct_config *config, int id) {
    return (const char *)config + ct_run_options[id].offset;
}

static int find(const char *name) {
    const ct_option *o = ct_schema_find(name);
    return o != NULL ? (int)(o - ct_run_options) : -1;
}

/* ---- values ---- */

void ct_config_unset(ct_config *config, ct_option_id id) {
    const ct_option *o = &ct_run_options[id];
    config->given[id] = config->named[id] = config->is_resolved = false;
    config->is_auto[id] = ct_option_is_auto(o);
    memset(field_of(config, id), 0, ct_option_size(o->kind));
    if (!config->is_auto[id] || o->kind == CT_KIND_TEXT)
        (void)CT_CATCH(NULL, ct_option_parse(o, o->value, field_of(config, id)));
}

void ct_config_init(ct_config *config) {
    memset(config, 0, sizeof *config);
    for (int id = 0; id < CT_N_OPTIONS; id++) ct_config_unset(config, (ct_option_id)id);
}

ct_status ct_config_put_id(ct_config *config, ct_option_id id, const char *value) {
    const ct_option *o = &ct_run_options[id];
    bool is_auto = ct_option_is_auto(o) && strcmp(value, "auto") == 0;
    if (!is_auto || o->kind == CT_KIND_TEXT)
        CT_TRY(ct_option_parse(o, value, field_of(config, id)));
    config->is_auto[id] = is_auto;
    config->given[id] = true;
    config->is_resolved = false;
    return CT_OK;
}

ct_status ct_config_put(ct_config *config, const char *name, const char *value) {
    const ct_option *o;
    CT_TRY(ct_schema_look_up(name, &o));
    return ct_config_put_id(config, (ct_option_id)(o - ct_run_options), value);
}

bool ct_config_is_given(const ct_config *config, const char *name) {
    int id = find(name);
    return id >= 0 && config->given[id];
}

void ct_config_override(ct_config *config, const ct_config *with) {
    for (int id = 0; id < CT_N_OPTIONS; id++) {
        if (!with->given[id]) continue;
        memcpy(field_of(config, id), field_in(with, id), ct_option_size(ct_run_options[id].kind));
        config->is_auto[id] = with->is_auto[id];
        config->given[id] = true;
        config->is_resolved = false;
    }
}

void ct_config_fix(ct_config *config) {
    for (int id = 0; id < CT_N_OPTIONS; id++)
        if (id != CT_OPT_checkpoint_every) config->given[id] = true;
}

void ct_config_forget_local(ct_config *config) {
    for (int id = 0; id < CT_N_OPTIONS; id++)
        if (ct_config_is_local(ct_run_options[id].name)) config->given[id] = false;
}

/* ---- roles ---- */

static bool has_role(const char *name, unsigned roles) {
    const ct_option *o = ct_schema_find(name);
    return o != NULL && (o->roles & roles) != 0;
}

bool ct_config_is_switch(const char *name) {
    const ct_option *o = ct_schema_find(name);
    return o != NULL && o->kind == CT_KIND_SWITCH;
}

bool ct_config_is_single(const char *name) {
    return has_role(name, CT_ROLE_SINGLE);
}

bool ct_config_is_local(const char *name) {
    return has_role(name, CT_ROLE_LOCAL | CT_ROLE_LENGTH);
}

bool ct_config_may_be_listed(const char *name) {
    const ct_option *o = ct_schema_find(name);
    const unsigned never = CT_ROLE_PATH | CT_ROLE_LIST | CT_ROLE_WORLDS | CT_ROLE_SINGLE;
    return o != NULL && o->kind != CT_KIND_SWITCH && (o->roles & never) == 0;
}

const char *ct_config_name(const char *name) {
    const ct_option *o = ct_schema_find(name);
    return o != NULL ? o->name : NULL;
}

double ct_config_number(const ct_config *config, const char *name) {
    int id = find(name);
    const void *field = field_in(config, id);
    bool is_real = ct_run_options[id].kind == CT_KIND_REAL;
    assert(is_real || ct_run_options[id].kind == CT_KIND_WHOLE);
    return is_real ? *(const double *)field : (double)*(const int64_t *)field;
}

const char *ct_config_word(const ct_config *config, const char *name) {
    int id = find(name);
    assert(ct_run_options[id].kind == CT_KIND_TEXT);
    return field_in(config, id);
}

/* ---- files ---- */

/* first_line[option]: the line that has named it; 0: none has. */
static ct_status read_line(ct_config *config, const char *path, int number, char *line,
                           int *first_line) {
    char *text = ct_trim(line);
    if (*text == '\0' || *text == '#') return CT_OK;
    char *equals = strchr(text, '=');
    if (equals == NULL)
        return ct_fail(CT_IO, "%s:%d: '%s' is not of the form name = value", path, number, text);
    *equals = '\0';
    char *name = ct_trim(text), *value = ct_trim(equals + 1);
    int id = find(name);
    if (id >= 0 && first_line[id] > 0)
        return ct_fail(CT_IO, "%s:%d: %s is there twice, first in line %d", path, number, name,
                       first_line[id]);
    if (id >= 0 && config->given[id]) return CT_OK;
    if (id >= 0) first_line[id] = number;
    ct_error error;
    if (CT_CATCH(&error, ct_config_put(config, name, value)) == CT_OK) return CT_OK;
    return ct_fail_in(&error, "%s:%d", path, number);
}

ct_status ct_config_load(ct_config *config, const char *path) {
    ct_blob blob = {0};
    ct_status status = CT_OK;
    CT_TRY(ct_file_read(path, CT_MAX_TEXT_BYTES, &blob));
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
    if (config->given[CT_OPT_seed] && !config->given[CT_OPT_seeds])
        ct_config_unset(&from_file, CT_OPT_seeds);
    if (status == CT_OK) *config = from_file;
    ct_blob_free(&blob);
    return status;
}

/* ---- as text ---- */

static void add_real(ct_text *out, double value) {
    if (value == floor(value) && fabs(value) < 1e15)
        ct_text_add(out, "%.0f", value);
    else
        ct_json_add_number(out, value);
}

static bool is_saved(int id) {
    return (ct_run_options[id].roles & CT_ROLE_UNSAVED) == 0;
}

/* A number that is still to be chosen has no value yet. */
void ct_config_print_value(const ct_config *config, ct_option_id id, ct_text *out) {
    const ct_option *o = &ct_run_options[id];
    const void *field = field_in(config, id);
    if (config->is_auto[id] && o->kind != CT_KIND_TEXT) {
        ct_text_add(out, "auto");
        return;
    }
    switch (o->kind) {
    case CT_KIND_TEXT: ct_text_add(out, "%s", (const char *)field); break;
    case CT_KIND_WHOLE: ct_text_add(out, "%" PRId64, *(const int64_t *)field); break;
    case CT_KIND_REAL: add_real(out, *(const double *)field); break;
    default: ct_text_add(out, "%s", *(const bool *)field ? "on" : "off"); break;
    }
}

void ct_config_print(const ct_config *config, ct_text *out) {
    for (int id = 0; id < CT_N_OPTIONS; id++) {
        if (!is_saved(id)) continue;
        ct_text_add(out, "%s = ", ct_run_options[id].name);
        ct_config_print_value(config, (ct_option_id)id, out);
        ct_text_add(out, "\n");
    }
}

void ct_config_print_shared(const ct_config *config, ct_text *out) {
    const char *before = "";
    for (int id = 0; id < CT_N_OPTIONS; id++) {
        CT_SCOPED(ct_text) value = {0};
        if ((ct_run_options[id].roles & (CT_ROLE_RANK | CT_ROLE_CONTENT)) != 0) continue;
        ct_config_print_value(config, (ct_option_id)id, &value);
        ct_text_add(out, "%s\"@%s\": ", before, ct_run_options[id].name);
        ct_json_add_string(out, value.n > 0 ? value.chars : "");
        out->failed = out->failed || value.failed;
        before = ", ";
    }
}

void ct_shell_add(ct_text *out, const char *word) {
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
        const ct_option *o = &ct_run_options[id];
        if (!config->given[id] || !is_saved(id)) continue;
        if (o->kind == CT_KIND_SWITCH) {
            if (*(const bool *)field_in(config, id)) ct_text_add(out, " --%s", o->name);
            continue;
        }
        ct_text value = {0};
        ct_text_add(&value, "%s", "");
        ct_config_print_value(config, (ct_option_id)id, &value);
        ct_text_add(out, " --%s ", o->name);
        if (value.failed)
            out->failed = true;
        else
            ct_shell_add(out, value.chars);
        ct_text_free(&value);
    }
}

void ct_config_print_json(const ct_config *config, ct_text *out) {
    bool is_first = true;
    for (int id = 0; id < CT_N_OPTIONS; id++) {
        const void *field = field_in(config, id);
        if (!is_saved(id)) continue;
        ct_text_add(out, "%s\n    \"%s\": ", is_first ? "" : ",", ct_run_options[id].name);
        is_first = false;
        switch (ct_run_options[id].kind) {
        case CT_KIND_TEXT: ct_json_add_string(out, field); break;
        case CT_KIND_WHOLE: ct_text_add(out, "%" PRId64, *(const int64_t *)field); break;
        case CT_KIND_REAL: ct_json_add_number(out, *(const double *)field); break;
        default: ct_text_add(out, "%s", *(const bool *)field ? "true" : "false"); break;
        }
    }
}
