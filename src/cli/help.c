#include <string.h>

#include "cli/cli.h"
#include "util/text.h"

const ct_command ct_commands[] = {
#define COMMAND(id, name, text) {name, text, ct_cli_##id##_help},
#include "cli/command_list.h"
#undef COMMAND
    {NULL, NULL, NULL}};

void ct_cli_help_help(FILE *out) {
    fputs("crosstalk: decentralized deep learning on heterogeneous data\n\n"
          "usage: crosstalk COMMAND [--option value ...]\n\n",
          out);
    for (const ct_command *c = ct_commands; c->name != NULL; c++)
        ct_show(out, "  %-10s %s\n", c->name, c->text);
    fputs(
        "\ncrosstalk help COMMAND tells more. For a start:\n"
        "  crosstalk train --dataset shapes --epochs 3\n"
        "\nExit codes:\n"
        "  0         done; of a training: it is finished\n"
        "  1         a file, the disk, the memory, another process, a run that diverged; one line\n"
        "            says which\n"
        "  2         wrong options, or a saved run has other ones\n"
        "  128 + n   stopped by signal n, the state is saved: 130 Ctrl-C, 138 SIGUSR1, 143 "
        "SIGTERM\n"
        "            or a time limit\n",
        out);
}

ct_status ct_cli_no_command(const char *name) {
    ct_guess guess = {.word = name};
    for (const ct_command *c = ct_commands; c->name != NULL; c++) ct_guess_try(&guess, c->name);
    if (guess.nearest[0] != '\0')
        return ct_fail(CT_INVAL, "no command '%s'; did you mean %s? (crosstalk help lists them)",
                       name, guess.nearest);
    return ct_fail(CT_INVAL, "no command '%s'; crosstalk help lists them", name);
}

static ct_status write_files(const ct_own *own) {
    const char *man = ct_own_text(own, "man"), *completions = ct_own_text(own, "completions");
    if (man != NULL) CT_TRY(ct_cli_write_manual(man));
    return completions != NULL ? ct_cli_write_completions(completions) : CT_OK;
}

ct_status ct_cli_help(int n_args, char **args) {
    ct_own own;
    CT_TRY(ct_own_take("help", &n_args, args, &own));
    CT_TRY(ct_own_check_words(&own, n_args, args));
    if (ct_own_is_given(&own, "man") || ct_own_is_given(&own, "completions"))
        return write_files(&own);
    if (n_args == 0) {
        ct_cli_help_help(stdout);
        return CT_OK;
    }
    for (const ct_command *c = ct_commands; c->name != NULL; c++) {
        if (strcmp(args[0], c->name) != 0) continue;
        c->help(stdout);
        return CT_OK;
    }
    return ct_cli_no_command(args[0]);
}
