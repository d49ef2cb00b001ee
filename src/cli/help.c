#include <string.h>

#include "cli/cli.h"

void ct_cli_help_help(FILE *out) {
    fputs("crosstalk: decentralized deep learning on heterogeneous data\n\n"
          "usage: crosstalk COMMAND [--option value ...]\n\n",
          out);
#define COMMAND(id, name, text) ct_show(out, "  %-10s %s\n", name, text);
#include "cli/command_list.h"
#undef COMMAND
    fputs("\ncrosstalk help COMMAND tells more. For a start:\n"
          "  crosstalk train --dataset shapes --epochs 3\n",
          out);
}

ct_status ct_cli_help(int n_args, char **args) {
    if (n_args == 0) {
        ct_cli_help_help(stdout);
        return CT_OK;
    }
#define COMMAND(id, name, text)                                                                    \
    if (strcmp(args[0], name) == 0) {                                                              \
        ct_cli_##id##_help(stdout);                                                                \
        return CT_OK;                                                                              \
    }
#include "cli/command_list.h"
#undef COMMAND
    return ct_fail(CT_INVAL, "no command '%s'; crosstalk help lists them", args[0]);
}
