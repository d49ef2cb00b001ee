/* Sub-commands: one file each, one line in command_list.h. */
#ifndef CT_CLI_CLI_H
#define CT_CLI_CLI_H

#include <stdio.h>

#include "record/metric.h"
#include "schema/config.h"
#include "util/show.h"
#include "util/status.h"

#define COMMAND(id, name, text)                                                                    \
    ct_status ct_cli_##id(int n_args, char **args);                                                \
    void ct_cli_##id##_help(FILE *out);
#include "cli/command_list.h"
#undef COMMAND

/* Options of an argument list into a config: --name value, --name=value, switches, aliases and
 * --config FILE. Arguments that are no options go to `words` (at most max_words; the others stay
 * as they were), or are refused. */
ct_status ct_cli_options(int n_args, char **args, ct_config *config, const char **words,
                         int max_words);

/* Every option of a run, for help texts. */
void ct_cli_options_help(FILE *out);

/* A command's own options, as the schema has them. */
#define CT_MAX_OWN 16
typedef struct ct_own {
    const char *command;
    const char *values[CT_MAX_OWN]; /* as given, checked; NULL: not given */
} ct_own;

/* Takes them out of the arguments. */
ct_status ct_own_take(const char *command, int *n_args, char **args, ct_own *own);
/* Refuses options among what is left, where a command has no others. */
ct_status ct_own_check_words(const ct_own *own, int n_args, char **args);
bool ct_own_is_given(const ct_own *own, const char *name);
/* The value, or the default; NULL (0 for numbers) where there is neither. "": named without one. */
const char *ct_own_text(const ct_own *own, const char *name);
int64_t ct_own_whole(const ct_own *own, const char *name);
void ct_own_help(const char *command, FILE *out);

/* What crosstalk list lists: the k-th kind; NULL: no more. And the names among them that an option
 * takes. */
const char *ct_cli_list_kind(int k);
void ct_cli_list_values(const char *option,
                        void (*each)(void *context, const char *name, const char *text),
                        void *context);

/* Every command, for those who write about all of them; the last has no name. */
typedef struct ct_command {
    const char *name, *text;
    void (*help)(FILE *out);
} ct_command;
extern const ct_command ct_commands[];
/* CT_INVAL: there is none of this name; perhaps with the nearest. */
ct_status ct_cli_no_command(const char *name);
/* Files about all commands, from their help and the schema: crosstalk.1 and one page per command;
 * completions for bash (crosstalk), zsh (_crosstalk) and fish (crosstalk.fish). */
ct_status ct_cli_write_manual(const char *dir);
ct_status ct_cli_write_completions(const char *dir);

/* The hooks of the command line: notes and progress on stderr, or nothing with --quiet. */
void ct_cli_hear(void);
void ct_cli_quiet(bool quiet);
/* Takes the passing line off the terminal, if one stands there. */
void ct_cli_clear_line(void);
/* For commands that train: who closes the other end of our output does not end us. */
void ct_cli_outlive_readers(void);

/* Refuses a file that is there already, without --force. NULL and "" name none. */
ct_status ct_cli_may_write(const char *path, bool force);

/* Adds `, "key": value` of a metric, and of its deviation if it has one, as the summary has them. */
void ct_cli_add_metric(ct_text *out, const ct_metric *metric, const ct_json *summary);

/* For commands that show what one seed gives: --seeds is refused. */
ct_status ct_cli_one_seed(const ct_config *config);

#endif
