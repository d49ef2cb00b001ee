/* Sub-commands: one file each, one line in command_list.h. */
#ifndef CT_CLI_CLI_H
#define CT_CLI_CLI_H

#include <stdio.h>

#include "record/metric.h"
#include "schema/config.h"
#include "util/show.h"
#include "util/status.h"

/* Two texts that belong together; a list of them ends with one that has no name. */
typedef struct ct_help_pair {
    const char *name, *text;
} ct_help_pair;

/* What a command tells about itself, for the terminal, the manual and docs/reference alike. Options
 * come from the schema. NULL: there is nothing to tell. */
typedef struct ct_help {
    const char *usage;            /* lines, each without the program's name */
    const char *text;             /* paragraphs; one that begins with a blank stays as it is */
    const char *own;              /* of a part: those of the command's own options that it takes */
    const char *takes;            /* of the options of a run, those that matter here */
    bool writes_run;              /* it writes a run directory */
    const ct_help_pair *files;    /* that it writes beside it */
    const ct_help_pair *exits;    /* where exit codes mean more than they always do */
    const ct_help_pair *examples; /* what it does, and the command */
    const char *also;             /* commands and documents to read next */
} ct_help;
#define CT_HELP_PAIRS(...)                                                                         \
    (const ct_help_pair[]) {                                                                       \
        __VA_ARGS__, {                                                                             \
            NULL, NULL                                                                             \
        }                                                                                          \
    }

#define COMMAND(id, name, group, text)                                                             \
    ct_status ct_cli_##id(int n_args, char **args);                                                \
    extern const ct_help ct_cli_##id##_help;
#define PART(command, part, text) extern const ct_help ct_cli_##command##_##part##_help;
#include "cli/command_list.h"
#undef COMMAND

/* Options of an argument list into a config: --name value, --name=value, switches, aliases and
 * --config FILE. Arguments that are no options go to `words` (at most max_words; the others stay
 * as they were), or are refused. */
ct_status ct_cli_options(int n_args, char **args, ct_config *config, const char **words,
                         int max_words);

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

/* What crosstalk list lists: the k-th kind; NULL: no more. And the names among them that an option
 * takes. */
const char *ct_cli_list_kind(int k);
void ct_cli_list_values(const char *option,
                        void (*each)(void *context, const char *name, const char *text),
                        void *context);

/* Every command, for those who write about all of them; the last has no name. */
typedef struct ct_command {
    const char *name, *text;
    const ct_help *help;
    const char *group; /* heading in the list of all commands; of a part: the command's name */
    ct_status (*run)(int n_args, char **args);
} ct_command;
extern const ct_command ct_commands[];
extern const ct_command ct_parts[];
/* By name; `part` may be NULL, or a word that is none. NULL: there is no such command. */
const ct_command *ct_cli_find(const char *name, const char *part);
/* CT_INVAL: there is none of this name; perhaps with the nearest. */
ct_status ct_cli_no_command(const char *name);
ct_status ct_cli_no_part(const char *command, const char *name);
/* The help of a command or part on standard output; NULL: of all. */
ct_status ct_cli_print_help(const ct_command *command, FILE *out);
/* Files about all commands, from their help and the schema: crosstalk.1 and one page per command;
 * README.md and one page per command; completions for bash (crosstalk), zsh (_crosstalk) and fish
 * (crosstalk.fish). */
ct_status ct_cli_write_manual(const char *dir);
ct_status ct_cli_write_reference(const char *dir);
ct_status ct_cli_write_completions(const char *dir);

/* The hooks of the command line: notes and progress on stderr, or nothing with --quiet. */
void ct_cli_hear(void);
void ct_cli_quiet(bool quiet);
/* Takes the passing line off the terminal, if one stands there. */
void ct_cli_clear_line(void);
/* The columns of the terminal at this stream, 80 where there is none. */
int ct_cli_width(int fd);
/* "next: crosstalk ...", on stderr as a note; nothing with --quiet. */
void ct_cli_next(const char *format, ...) CT_PRINTF(1, 2);
/* Test accuracy, run directory and the next command of a run that is finished. */
ct_status ct_cli_tell_result(const char *dir);
/* For commands that train: who closes the other end of our output does not end us. */
void ct_cli_outlive_readers(void);

/* For commands that look at runs: without words, the folder "runs". */
ct_status ct_cli_default_runs(int *n_args, char ***args);

/* Refuses a file that is there already, without --force. NULL and "" name none. */
ct_status ct_cli_may_write(const char *path, bool force);

/* Adds `, "key": value` of a metric, and of its deviation if it has one, as the summary has them. */
void ct_cli_add_metric(ct_text *out, const ct_metric *metric, const ct_json *summary);

/* For commands that show what one seed gives: --seeds is refused. */
ct_status ct_cli_one_seed(const ct_config *config);

#endif
