/* What is run: the options of `crosstalk train`, from the command line or a file of
 * `name = value` lines, with defaults filled in. The list of options is options_list.h. */
#ifndef CT_SCHEMA_CONFIG_H
#define CT_SCHEMA_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "util/json.h"
#include "util/status.h"
#include "util/text.h"

#define CT_CONFIG_TEXT 512

typedef enum ct_option_id {
#define GROUP(name)
#define OPTION(kind, field, name, aliases, value, lowest, highest, help) CT_OPT_##field,
#include "schema/options_list.h"
#undef OPTION
#undef GROUP
    CT_N_OPTIONS,
} ct_option_id;

#define CT_FIELD_TEXT(field)   char field[CT_CONFIG_TEXT];
#define CT_FIELD_WHOLE(field)  int64_t field;
#define CT_FIELD_REAL(field)   double field;
#define CT_FIELD_FLAG(field)   bool field;
#define CT_FIELD_SWITCH(field) bool field;

typedef struct ct_config {
#define GROUP(name)
#define OPTION(kind, field, name, aliases, value, lowest, highest, help) CT_FIELD_##kind(field)
#include "schema/options_list.h"
#undef OPTION
#undef GROUP
    bool given[CT_N_OPTIONS];   /* named on the command line or in the config file */
    bool is_auto[CT_N_OPTIONS]; /* still to be chosen by ct_config_resolve */
} ct_config;

/* Defaults. */
void ct_config_init(ct_config *config);

/* One option by name (without dashes) or alias. CT_INVAL: an unknown name (with the nearest known
 * one), or a value that does not fit. */
ct_status ct_config_set(ct_config *config, const char *name, const char *value);
/* It was named on the command line or in the config file. */
bool ct_config_is_given(const ct_config *config, const char *name);
/* The option takes no value on the command line (SWITCH). Unknown names: false. */
bool ct_config_is_switch(const char *name);
/* Options of one training alone (out, resume, force, quiet): whoever makes several sets them. */
bool ct_config_is_single(const char *name);

/* Every option that is given in `with` becomes what it is there. */
void ct_config_override(ct_config *config, const ct_config *with);
/* From here on every option counts as given: nothing else may fill it in. --checkpoint-every stays,
 * because naming it asks for a last checkpoint. */
void ct_config_fix(ct_config *config);
/* Several values of the option may stand in a list with commas: its own value never has one. */
bool ct_config_may_be_listed(const char *name);
/* The option's name, if that is an alias; NULL: unknown. */
const char *ct_config_name(const char *name);

/* Reads `name = value` lines; # begins a comment. Options already given are left alone. */
ct_status ct_config_read(ct_config *config, const char *path);

/* Fills in what is "auto" and checks that everything fits together. */
ct_status ct_config_resolve(ct_config *config);

/* `name = value` lines of every option (auto: still to be chosen); --force, --quiet and --resume
 * are left out. */
void ct_config_print(const ct_config *config, ct_text *out);
/* The same as JSON members, without braces. */
void ct_config_print_json(const ct_config *config, ct_text *out);
ct_status ct_config_to_json(const ct_config *config, ct_json **out); /* free it */

/* What was given, as on a command line: " --name value ...". */
void ct_config_print_command(const ct_config *config, ct_text *out);
/* Options that do not change the numbers count as not given. */
void ct_config_forget_local(ct_config *config);

/* Does not change the numbers: where data and results lie, the machine, what is written. */
bool ct_config_is_local(const char *name);
/* A saved option's value as it is written on a command line. */
void ct_option_text(const ct_json *value, ct_text *out);
/* Whether a difference of an option of ours (key and value) from a saved one (NULL: there is none)
 * does not matter. */
typedef bool ct_difference_skip(const ct_json *ours, const ct_json *theirs);
/* The first option that differs from what a run has saved (an object as ct_config_print_json writes
 * it): its name ("" if there is none) and both values. Without `skip`, local ones do not matter. */
ct_status ct_config_find_difference(const ct_config *config, const ct_json *saved,
                                    ct_difference_skip *skip, char *name, size_t size,
                                    ct_text *ours, ct_text *theirs);

/* The help text: groups, names, defaults. */
void ct_config_help(FILE *out);

#endif
