/* What is run: the options of a run with their values, from the command line or a file of
 * `name = value` lines. What options there are is in the schema. */
#ifndef CT_SCHEMA_CONFIG_H
#define CT_SCHEMA_CONFIG_H

#include "schema/schema.h"
#include "util/json.h"
#include "util/status.h"
#include "util/text.h"

typedef enum ct_option_id {
#define OPTION(group, kind, field, ...) CT_OPT_##field,
#define OWN(...)
#include "schema/option_list.h"
#undef OPTION
#undef OWN
    CT_N_OPTIONS,
} ct_option_id;

#define CT_FIELD_TEXT(field)   char field[CT_CONFIG_TEXT];
#define CT_FIELD_WHOLE(field)  int64_t field;
#define CT_FIELD_REAL(field)   double field;
#define CT_FIELD_FLAG(field)   bool field;
#define CT_FIELD_SWITCH(field) bool field;

typedef struct ct_config {
#define OPTION(group, kind, field, ...) CT_FIELD_##kind(field)
#define OWN(...)
#include "schema/option_list.h"
#undef OPTION
#undef OWN
    bool given[CT_N_OPTIONS];   /* on the command line, in a config file or a study */
    bool named[CT_N_OPTIONS];   /* on the command line of this very run */
    bool is_auto[CT_N_OPTIONS]; /* still to be chosen by ct_config_resolve (run/resolve.h) */
    bool is_resolved;           /* nothing is: the options are final */
    char instructions[16]; /* that a run to be resumed was computed with; "": the best there are */
    const struct ct_inputs *inputs; /* what a program gave beside options (run.h); NULL: nothing */
    struct ct_site
        *site; /* this is a site, and its agent one of the run's (site.h); NULL: it is not */
    bool
        hides_test; /* options are being chosen: lines tell of held-out samples, not of the test set */
    bool may_grow;         /* its last checkpoint stays, and it may be resumed for more epochs */
    char device_note[512]; /* why a device was chosen, to be told when the run begins, or "" */
} ct_config;

/* Defaults. */
void ct_config_init(ct_config *config);

/* One option by name (without dashes) or alias. CT_INVAL: an unknown name (with the nearest known
 * one), or a value that does not fit. */
ct_status ct_config_put(ct_config *config, const char *name, const char *value);
/* The same by its place. */
ct_status ct_config_put_id(ct_config *config, ct_option_id id, const char *value);
/* It is as if it had never been named. */
void ct_config_unset(ct_config *config, ct_option_id id);
/* It was named on the command line or in the config file. */
bool ct_config_is_given(const ct_config *config, const char *name);

/* Every option that is given in `with` becomes what it is there. */
void ct_config_override(ct_config *config, const ct_config *with);
/* From here on every option counts as given: nothing else may fill it in. checkpoint-every stays,
 * because naming it asks for a last checkpoint. */
void ct_config_fix(ct_config *config);
/* Options that do not change the numbers count as not given. */
void ct_config_forget_local(ct_config *config);

/* ---- roles, by name; unknown names have none ---- */
bool ct_config_is_switch(const char *name);
/* Of one training alone: whoever makes several sets it. */
bool ct_config_is_single(const char *name);
/* Several values of it may stand in a list with commas: its own value never has one. */
bool ct_config_may_be_listed(const char *name);
/* Does not change the numbers of the iterations that are run: where data and results lie, the
 * machine, what is written, how far it goes. */
bool ct_config_is_local(const char *name);
/* The value of an option by name: a number's; a text's. */
double ct_config_number(const ct_config *config, const char *name);
const char *ct_config_word(const ct_config *config, const char *name);
/* The option's name, if that is an alias; NULL: unknown. */
const char *ct_config_name(const char *name);

/* Reads `name = value` lines; # begins a comment. Options already given are left alone. */
ct_status ct_config_load(ct_config *config, const char *path);

/* ---- as text ---- */
/* One option's value as it is written in a file ("auto": still to be chosen). */
void ct_config_print_value(const ct_config *config, ct_option_id id, ct_text *out);
/* `name = value` lines of every option that is saved (auto: still to be chosen). */
void ct_config_print(const ct_config *config, ct_text *out);
/* The same as JSON members, without braces. */
void ct_config_print_json(const ct_config *config, ct_text *out);
ct_status ct_config_to_json(const ct_config *config, ct_json **out); /* free it */
/* What all processes of a job must have alike, as JSON members "@name": "value". */
void ct_config_print_shared(const ct_config *config, ct_text *out);
/* What was given, as on a command line: " --name value ...". */
void ct_config_print_command(const ct_config *config, ct_text *out);
/* A word for the shell, in quotes where it needs them. */
void ct_shell_add(ct_text *out, const char *word);
/* A saved option's value as it is written on a command line. */
void ct_option_text(const ct_json *value, ct_text *out);

/* ---- against a saved run (differences.c) ---- */
/* Whether a difference of an option of ours (key and value) from a saved one (NULL: there is none)
 * does not matter. */
typedef bool ct_difference_skip(const ct_json *ours, const ct_json *theirs);
/* The first option that differs from what a run has saved (an object as ct_config_print_json writes
 * it): its name ("" if there is none) and both values. Without `skip`, local ones do not matter. */
ct_status ct_config_find_difference(const ct_config *config, const ct_json *saved,
                                    ct_difference_skip *skip, char *name, size_t size,
                                    ct_text *ours, ct_text *theirs);
/* For resuming: what may differ does not matter, nor does what an earlier version did not know and has
 * its default. */
ct_difference_skip ct_difference_may_resume;

#endif
