/* The schema: what every option of every command is (option_list.h), to be looked up and walked. */
#ifndef CT_SCHEMA_SCHEMA_H
#define CT_SCHEMA_SCHEMA_H

#include <crosstalk/config.h> /* ct_option_kind */

#include "util/status.h"

#define CT_CONFIG_TEXT 512 /* room for a TEXT value */

/* Explained in option_list.h. */
enum {
    CT_ROLE_LOCAL = 1,
    CT_ROLE_LENGTH = 2,
    CT_ROLE_CONTENT = 4,
    CT_ROLE_PATH = 8,
    CT_ROLE_LIST = 16,
    CT_ROLE_WORLDS = 32,
    CT_ROLE_SINGLE = 64,
    CT_ROLE_UNSAVED = 128,
    CT_ROLE_BARE = 256,
    CT_ROLE_SETTING = 512,
    CT_ROLE_METHOD = 1024,
    CT_ROLE_SEED = 2048,
    CT_ROLE_RANK = 4096,
};

typedef struct ct_option {
    const char *command; /* "run", or the command whose own it is */
    const char *group;   /* heading in the help of a run */
    const char *name, *aliases;
    const char *value; /* default; NULL: none */
    const char *choices, *needs, *help;
    ct_option_kind kind;
    unsigned roles;
    double lowest, highest;
    size_t offset; /* in ct_config, of a run's options */
} ct_option;

/* Options of a run, in the order of the list; the place of one is its ct_option_id (config.h). */
extern const ct_option ct_run_options[];
/* The k-th option that is a command's own; NULL: it has no more. */
const ct_option *ct_own_option(const char *command, int k);

/* Sets of options that a command takes, its own first: names for ct_set_option. NULL: no more. */
const char *ct_command_set(const char *command, int k);
/* The k-th option of a set; of "run" those of its own and then ct_run_options. NULL: no more. */
const ct_option *ct_set_option(const char *set, int k);

/* An option of a run, by name or alias; NULL: there is none. */
const ct_option *ct_schema_find(const char *name);
/* The same, or CT_INVAL with the nearest known name. */
ct_status ct_schema_look_up(const char *name, const ct_option **out);

/* A value of the option's kind from text into its field (TEXT: char [CT_CONFIG_TEXT], WHOLE: int64_t,
 * REAL: double, FLAG and SWITCH: bool); CT_INVAL where it does not fit. */
ct_status ct_option_parse(const ct_option *option, const char *text, void *field);
/* Bytes of a field. */
size_t ct_option_size(ct_option_kind kind);
/* Its default depends on others: "auto". */
bool ct_option_is_auto(const ct_option *option);

#endif
