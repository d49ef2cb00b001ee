/* Argument vectors against the schema. */
#include "cli/cli.h"

#include <assert.h>
#include <string.h>

#include "util/file.h"

/* ---- one option ---- */

/* args[*at] is `--name` or `--name=value` of this option; *value is its value, "on" for a switch,
 * NULL where it may stand without one and does. *at moves to the last argument used. A value that
 * looks like an option is more likely a forgotten one (`--out --force`); --name=value takes
 * anything. */
static ct_status take_value(const ct_option *o, int n_args, char **args, int *at,
                            const char **value) {
    const char *equals = strchr(args[*at], '=');
    bool has_next = *at + 1 < n_args, is_next = has_next && strncmp(args[*at + 1], "--", 2) == 0;
    if (equals != NULL) {
        *value = equals + 1;
        return CT_OK;
    }
    if (o->kind == CT_KIND_SWITCH) {
        *value = "on";
        return CT_OK;
    }
    /* of a command's own, what stands behind may be a word: --quick=3 */
    bool is_own = strcmp(o->command, "run") != 0;
    if ((o->roles & CT_ROLE_BARE) != 0 && (is_own || !has_next || is_next)) {
        *value = NULL;
        return CT_OK;
    }
    if (!has_next) return ct_fail(CT_INVAL, "@%s needs a value", o->name);
    if (is_next)
        return ct_fail(CT_INVAL, "@%s needs a value, and %s is an option", o->name, args[*at + 1]);
    *value = args[++*at];
    return CT_OK;
}

/* The argument is `--name` or `--name=...`. */
static bool is_named(const char *arg, const char *name) {
    size_t n = strlen(name);
    return strncmp(arg, "--", 2) == 0 && strncmp(arg + 2, name, n) == 0 &&
           (arg[2 + n] == '\0' || arg[2 + n] == '=');
}

/* ---- a command's own ---- */

static int place_of(const char *command, const char *name) {
    const ct_option *o;
    for (int k = 0; (o = ct_own_option(command, k)) != NULL; k++)
        if (strcmp(o->name, name) == 0) return k;
    assert(!"an option that the schema does not have");
    return 0;
}

/* A value is checked now; whoever asks for it later reads the text again. */
static ct_status take_own(const ct_option *o, int n_args, char **args, int *at,
                          const char **value) {
    char field[CT_CONFIG_TEXT];
    /* of two config files it is not clear what is wanted; of other options the last one counts */
    if (*value != NULL && strcmp(o->command, "run") == 0)
        return ct_fail(CT_INVAL, "@%s is there twice", o->name);
    CT_TRY(take_value(o, n_args, args, at, value));
    if (*value != NULL) return ct_option_parse(o, *value, field);
    *value = "";
    return CT_OK;
}

ct_status ct_own_take(const char *command, int *n_args, char **args, ct_own *own) {
    int n_left = 0;
    *own = (ct_own){.command = command};
    for (int at = 0; at < *n_args; at++) {
        const ct_option *o = NULL;
        int k = 0;
        while ((o = ct_own_option(command, k)) != NULL && !is_named(args[at], o->name)) k++;
        if (o == NULL) {
            args[n_left++] = args[at];
            continue;
        }
        assert(k < CT_MAX_OWN);
        CT_TRY(take_own(o, *n_args, args, &at, &own->values[k]));
    }
    *n_args = n_left;
    return CT_OK;
}

/* Of a command that has no options but its own, and perhaps those of one more set. */
static ct_status refuse_option(const char *command, const char *arg) {
    char name[64];
    const char *set;
    const ct_option *o;
    ct_guess guess = {.word = name};
    snprintf(name, sizeof name, "%.*s", (int)strcspn(arg, "="), arg + strspn(arg, "-"));
    for (int s = 0; (set = ct_command_set(command, s)) != NULL; s++)
        for (int k = 0; (o = ct_set_option(set, k)) != NULL; k++) ct_guess_try(&guess, o->name);
    if (guess.nearest[0] != '\0')
        return ct_fail(CT_INVAL, "unknown option %s; did you mean @%s? (crosstalk help %s)", arg,
                       guess.nearest, command);
    return ct_fail(CT_INVAL, "unknown option %s; crosstalk help %s lists the known ones", arg,
                   command);
}

ct_status ct_own_check_words(const ct_own *own, int n_args, char **args) {
    for (int at = 0; at < n_args; at++)
        if (args[at][0] == '-' && args[at][1] != '\0') return refuse_option(own->command, args[at]);
    return CT_OK;
}

bool ct_own_is_given(const ct_own *own, const char *name) {
    return own->values[place_of(own->command, name)] != NULL;
}

const char *ct_own_text(const ct_own *own, const char *name) {
    int k = place_of(own->command, name);
    return own->values[k] != NULL ? own->values[k] : ct_own_option(own->command, k)->value;
}

int64_t ct_own_whole(const ct_own *own, const char *name) {
    int64_t value = 0;
    const char *text = ct_own_text(own, name);
    if (text != NULL) ct_parse_i64(text, &value);
    return value;
}

/* ---- a run's ---- */

/* --qgm 1 is how the CCL authors' code asks for quasi-global momentum. */
static ct_status set_qgm(ct_config *config, const char *value) {
    bool is_wanted = true;
    if (value[0] != '\0') ct_parse_bool(value, &is_wanted);
    return ct_config_put_id(config, CT_OPT_algorithm, is_wanted ? "qg-dsgdm" : "dsgdm");
}

static ct_status set_option(ct_config *config, int n_args, char **args, int *at) {
    char name[64];
    const ct_option *o;
    const char *value = NULL;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(args[*at] + 2, "="), args[*at] + 2);
    CT_TRY(ct_schema_look_up(name, &o));
    CT_TRY(take_value(o, n_args, args, at, &value));
    /* as a variable that is not set gives it; to begin anew is not what was asked for */
    if ((o->roles & CT_ROLE_BARE) != 0 && value != NULL && value[0] == '\0')
        return ct_fail(CT_INVAL, "@%s is empty; it takes a run directory: @%s DIR", name, name);
    ct_option_id id = (ct_option_id)(o - ct_run_options);
    config->named[id] = true;
    return ct_config_put_id(config, id, value != NULL ? value : "on");
}

/* Neither an option nor a word that is wanted; -epochs was perhaps meant to be one. */
static ct_status refuse_word(const char *arg) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(arg, "="), arg + strspn(arg, "-"));
    if (arg[0] == '-' && ct_schema_find(name) != NULL)
        return ct_fail(CT_INVAL, "'%s' is no option; did you mean @%s?", arg, name);
    return ct_fail(CT_INVAL, "'%s' is no option; options begin with --", arg);
}

ct_status ct_cli_options(int n_args, char **args, ct_config *config, const char **words,
                         int max_words) {
    ct_own own;
    int n_words = 0;
    CT_TRY(ct_own_take("run", &n_args, args, &own));
    if (ct_own_is_given(&own, "qgm")) CT_TRY(set_qgm(config, ct_own_text(&own, "qgm")));
    for (int at = 0; at < n_args; at++) {
        if (strncmp(args[at], "--", 2) == 0 && args[at][2] != '\0') {
            CT_TRY(set_option(config, n_args, args, &at));
            continue;
        }
        bool has_dash = args[at][0] == '-' && args[at][1] != '\0';
        if (has_dash || n_words == max_words) return refuse_word(args[at]);
        words[n_words++] = args[at];
    }
    const char *file = ct_own_text(&own, "config");
    bool has_out = config->given[CT_OPT_out];
    if (file == NULL) return CT_OK;
    CT_TRY(ct_config_load(config, file));
    if (!has_out) ct_config_unset(config, CT_OPT_out); /* that directory is the earlier run's */
    return CT_OK;
}

/* ---- files ---- */

ct_status ct_cli_may_write(const char *path, bool force) {
    if (path == NULL || path[0] == '\0' || force || !ct_file_exists(path)) return CT_OK;
    return ct_fail(CT_IO, "%s is there already; replace it with --force", path);
}

ct_status ct_cli_default_runs(int *n_args, char ***args) {
    static char runs[] = "runs", *words[] = {runs, NULL};
    if (*n_args > 0) return CT_OK;
    if (!ct_dir_exists(runs))
        return ct_fail(CT_INVAL, "name a run directory or a folder of runs; there is no folder "
                                 "runs here (crosstalk train writes one)");
    *n_args = 1;
    *args = words;
    return CT_OK;
}

ct_status ct_cli_one_seed(const ct_config *config) {
    if (config->seeds[0] == '\0') return CT_OK;
    return ct_fail(CT_INVAL, "--seeds: this shows one of them; name it with --seed");
}
