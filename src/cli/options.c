#include "cli/cli.h"

#include <string.h>

#include "util/file.h"

/* --qgm 1 is how the CCL authors' code asks for quasi-global momentum. */
static ct_status set_qgm(ct_config *config, const char *value) {
    bool wanted = true;
    if (value != NULL && !ct_parse_bool(value, &wanted))
        return ct_fail(CT_INVAL, "--qgm: '%s' is neither 1 nor 0", value);
    return ct_config_set(config, "algorithm", wanted ? "qg-dsgdm" : "dsgdm");
}

/* The next argument as an option's value. One that looks like an option is more likely a forgotten
 * value (`--out --force`); --name=value takes anything. */
static ct_status next_value(int n_args, char **args, int *at, const char *name,
                            const char **value) {
    if (*at + 1 >= n_args) return ct_fail(CT_INVAL, "--%s needs a value", name);
    if (strncmp(args[*at + 1], "--", 2) == 0)
        return ct_fail(CT_INVAL, "--%s needs a value, and %s is an option", name, args[*at + 1]);
    *value = args[++*at];
    return CT_OK;
}

/* The option's value: behind an equals sign, or the next argument. NULL for a switch without one.
 */
static ct_status take_value(int n_args, char **args, int *at, char *name, const char **value) {
    char *equals = strchr(name, '=');
    *value = NULL;
    if (equals != NULL) {
        *equals = '\0';
        *value = equals + 1;
        return CT_OK;
    }
    bool has_next = *at + 1 < n_args && strncmp(args[*at + 1], "--", 2) != 0;
    if (ct_config_is_switch(name)) return CT_OK;
    bool may_stand_alone = strcmp(name, "qgm") == 0 || strcmp(name, "resume") == 0;
    if (may_stand_alone && !has_next) return CT_OK;
    return next_value(n_args, args, at, name, value);
}

static ct_status set_option(ct_config *config, const char *name, const char *value,
                            const char **config_file) {
    if (strcmp(name, "config") == 0) {
        if (*config_file != NULL) return ct_fail(CT_INVAL, "--config is there twice");
        *config_file = value;
        return CT_OK;
    }
    if (strcmp(name, "qgm") == 0) return set_qgm(config, value);
    /* as a variable that is not set gives it; to begin anew is not what was asked for */
    if (strcmp(name, "resume") == 0 && value != NULL && value[0] == '\0')
        return ct_fail(CT_INVAL, "--resume is empty; it takes a run directory: --resume DIR");
    return ct_config_set(config, name, value != NULL ? value : "on");
}

ct_status ct_cli_options(int n_args, char **args, ct_config *config, const char **words,
                         int max_words, int *n_words) {
    const char *config_file = NULL, *value = NULL;
    *n_words = 0;
    for (int at = 0; at < n_args; at++) {
        if (strncmp(args[at], "--", 2) == 0 && args[at][2] != '\0') {
            char *name = args[at] + 2;
            CT_TRY(take_value(n_args, args, &at, name, &value));
            CT_TRY(set_option(config, name, value, &config_file));
            continue;
        }
        if (*n_words == max_words)
            return ct_fail(CT_INVAL, "'%s' is no option; options begin with --", args[at]);
        words[(*n_words)++] = args[at];
    }
    return config_file != NULL ? ct_config_read(config, config_file) : CT_OK;
}

ct_status ct_cli_own_option(int n_args, char **args, int *at, const char *name,
                            const char **value) {
    size_t n = strlen(name);
    const char *arg = args[*at];
    *value = NULL;
    if (strncmp(arg, "--", 2) != 0 || strncmp(arg + 2, name, n) != 0) return CT_OK;
    if (arg[2 + n] == '=') {
        *value = arg + 3 + n;
        return CT_OK;
    }
    if (arg[2 + n] != '\0') return CT_OK;
    return next_value(n_args, args, at, name, value);
}

ct_status ct_cli_may_write(const char *path, bool force) {
    if (path == NULL || path[0] == '\0' || force || !ct_file_exists(path)) return CT_OK;
    return ct_fail(CT_IO, "%s is there already; replace it with --force", path);
}

ct_status ct_cli_one_seed(const ct_config *config) {
    if (config->seeds[0] == '\0') return CT_OK;
    return ct_fail(CT_INVAL, "--seeds: this shows one of them; name it with --seed");
}
