/* Sub-commands: one file each, one line in command_list.h. */
#ifndef CT_CLI_CLI_H
#define CT_CLI_CLI_H

#include <stdio.h>

#include "schema/config.h"
#include "util/status.h"

#define COMMAND(id, name, text)                                                                    \
    ct_status ct_cli_##id(int n_args, char **args);                                                \
    void ct_cli_##id##_help(FILE *out);
#include "cli/command_list.h"
#undef COMMAND

/* Options of an argument list into a config: --name value, --name=value, switches, aliases and
 * --config FILE. Arguments that are no options go to `words` (at most max_words), or are refused.
 */
ct_status ct_cli_options(int n_args, char **args, ct_config *config, const char **words,
                         int max_words, int *n_words);

/* For commands with a few options of their own: if args[*at] is `--name value` or `--name=value`,
 * *value is set and *at moved to the last argument used. */
ct_status ct_cli_own_option(int n_args, char **args, int *at, const char *name, const char **value);

/* The hooks of the command line: notes and progress on stderr, or nothing with --quiet. */
void ct_cli_quiet(bool quiet);

/* Refuses a file that is there already, without --force. NULL and "" name none. */
ct_status ct_cli_may_write(const char *path, bool force);

/* For commands that show what one seed gives: --seeds is refused. */
ct_status ct_cli_one_seed(const ct_config *config);

#endif
