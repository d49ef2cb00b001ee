/* Options of a run: names and values as on the command line of `crosstalk train`, without dashes.
 * The schema that they are checked against can be walked, so that bindings and forms can be
 * generated from it. */
#ifndef CROSSTALK_CONFIG_H
#define CROSSTALK_CONFIG_H

#include <crosstalk/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ct_config ct_config;

/* All defaults. */
CT_API ct_status ct_config_create(ct_config **out, ct_error *error);
CT_API void ct_config_free(ct_config **config);
/* A copy of its own. */
CT_API ct_status ct_config_copy(const ct_config *config, ct_config **out, ct_error *error);

/* Sets an option by name. CT_INVAL: an unknown name (the nearest known one is named), or a value
 * that does not fit. */
CT_API ct_status ct_config_set(ct_config *config, const char *name, const char *value,
                               ct_error *error);
/* Its value as text into out[size], "auto" where it is still to be chosen. CT_INVAL: an unknown
 * name, or too little room (512 bytes are enough). */
CT_API ct_status ct_config_get(const ct_config *config, const char *name, char *out, size_t size,
                               ct_error *error);

/* Reads `name = value` lines, as in config.txt of a run directory; options already set stay. */
CT_API ct_status ct_config_read(ct_config *config, const char *path, ct_error *error);
/* Writes every option, as config.txt; a file that is there is replaced as a whole. */
CT_API ct_status ct_config_write(const ct_config *config, const char *path, ct_error *error);

/* ---- the schema ---- */

typedef enum ct_option_kind {
    CT_KIND_TEXT,
    CT_KIND_WHOLE,
    CT_KIND_REAL,
    CT_KIND_FLAG,   /* on, off */
    CT_KIND_SWITCH, /* on, off; on when it stands alone on a command line */
} ct_option_kind;

/* What an option is; the strings live as long as the library. */
typedef struct ct_option_info {
    size_t size;
    const char *name;
    const char *group;         /* heading in the help: data, model, agents, ... */
    const char *default_value; /* "auto": chosen from the data set, model and algorithm */
    const char *choices;       /* "a, b, c"; "": any */
    const char *help;          /* one line; other options are named @name */
    ct_option_kind kind;
    double lowest, highest; /* of numbers */
    bool is_local;          /* does not change the numbers that are computed */
} ct_option_info;
#define CT_OPTION_INFO_INIT                                                                        \
    { sizeof(ct_option_info), 0, 0, 0, 0, 0, CT_KIND_TEXT, 0, 0, false }

CT_API int ct_schema_n_options(void);
/* Option k, 0 .. n-1, in the order of the help. False: there is no such option. */
CT_API bool ct_schema_option(int k, ct_option_info *out);

#ifdef __cplusplus
}
#endif

#endif
