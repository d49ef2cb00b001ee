/* crosstalk/config.h */
#include "schema/config.h"

#include "api/api_internal.h"
#include "util/file.h"
#include "util/memory.h"

static ct_status create(ct_config **out) {
    CT_NEED(out);
    CT_TRY(ct_make(out, 1, "the options"));
    ct_config_init(*out);
    return CT_OK;
}

ct_status ct_config_create(ct_config **out, ct_error *error) {
    return CT_CATCH(error, create(out));
}

void ct_config_free(ct_config **config) {
    if (config == NULL) return;
    ct_free(*config);
    *config = NULL;
}

static ct_status copy(const ct_config *config, ct_config **out) {
    CT_NEED(config);
    CT_NEED(out);
    return ct_make_copy(out, config, 1, "the options");
}

ct_status ct_config_copy(const ct_config *config, ct_config **out, ct_error *error) {
    return CT_CATCH(error, copy(config, out));
}

/* As on the command line of this very run: an option that would do nothing is refused. */
static ct_status set(ct_config *config, const char *name, const char *value) {
    const ct_option *option;
    CT_NEED(config);
    CT_NEED(name);
    CT_NEED(value);
    CT_TRY(ct_schema_look_up(name, &option));
    CT_TRY(ct_config_put(config, name, value));
    config->named[option - ct_run_options] = true;
    return CT_OK;
}

ct_status ct_config_set(ct_config *config, const char *name, const char *value, ct_error *error) {
    return CT_CATCH(error, set(config, name, value));
}

static ct_status get(const ct_config *config, const char *name, char *out, size_t size) {
    const ct_option *option;
    CT_SCOPED(ct_text) text = {0};
    CT_NEED(config);
    CT_NEED(name);
    CT_TRY(ct_schema_look_up(name, &option));
    ct_config_print_value(config, (ct_option_id)(option - ct_run_options), &text);
    CT_TRY(ct_text_status(&text));
    return ct_copy_out(text.n > 0 ? text.chars : "", out, size);
}

ct_status ct_config_get(const ct_config *config, const char *name, char *out, size_t size,
                        ct_error *error) {
    return CT_CATCH(error, get(config, name, out, size));
}

static ct_status read_options(ct_config *config, const char *path) {
    CT_NEED(config);
    CT_NEED(path);
    return ct_config_load(config, path);
}

ct_status ct_config_read(ct_config *config, const char *path, ct_error *error) {
    return CT_CATCH(error, read_options(config, path));
}

static ct_status write_options(const ct_config *config, const char *path) {
    CT_SCOPED(ct_text) text = {0};
    CT_NEED(config);
    CT_NEED(path);
    ct_config_print(config, &text);
    CT_TRY(ct_text_status(&text));
    return ct_file_write(path, text.chars, text.n);
}

ct_status ct_config_write(const ct_config *config, const char *path, ct_error *error) {
    return CT_CATCH(error, write_options(config, path));
}

int ct_schema_n_options(void) {
    return CT_N_OPTIONS;
}

bool ct_schema_option(int k, ct_option_info *out) {
    if (k < 0 || k >= CT_N_OPTIONS || out == NULL) return false;
    const ct_option *o = &ct_run_options[k];
    size_t size = out->size < sizeof *out ? out->size : sizeof *out;
    ct_option_info info = {.size = out->size,
                           .name = o->name,
                           .group = o->group,
                           .default_value = o->value,
                           .choices = o->choices,
                           .help = o->help,
                           .kind = o->kind,
                           .lowest = o->lowest,
                           .highest = o->highest,
                           .is_local = ct_config_is_local(o->name)};
    memcpy(out, &info, size);
    return true;
}
