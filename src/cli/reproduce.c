/* The paper's tables and figures, or anyone's own, from a small text file. */
#include <string.h>

#include "cli/cli.h"
#include "cli/studies.h"
#include "util/memory.h"

void ct_cli_reproduce_help(FILE *out) {
    fputs(
        "usage: crosstalk reproduce NAME|FILE.conf [--option value ...]\n"
        "       crosstalk reproduce list\n\n"
        "Runs what is missing of a table or figure (experiments/NAME.conf), the seeds of a cell "
        "at\n"
        "once, and prints our mean +- deviation beside the paper's. --out (results/NAME) gets\n"
        "table.md, table.csv, table.tex, the figure, report.html (all of it as a page, with every\n"
        "run's curves) and a run directory for every cell. Finished runs are kept, interrupted\n"
        "ones resumed, ones with other options refused.\n",
        out);
    ct_own_help("study", out);
    fputs(
        "\nOptions of crosstalk train apply to every run. --data-dir may be the folder that holds\n"
        "all data sets. docs/REPRODUCE.md tells how to write a .conf. For one process.\n",
        out);
}

ct_status ct_cli_reproduce(int n_args, char **args) {
    ct_study_request request = {0};
    ct_config given;
    CT_SCOPED(ct_study) study = {0};
    const char *word = NULL;
    ct_config_init(&given);
    CT_TRY(ct_cli_study_options(&n_args, args, &request));
    CT_TRY(ct_cli_options(n_args, args, &given, &word, 1));
    if (word == NULL)
        return ct_fail(CT_INVAL, "name a table or figure; crosstalk reproduce list names them");
    if (strcmp(word, "list") == 0) return ct_study_list(stdout);
    CT_TRY(ct_study_open(word, &study));
    snprintf(study.out, sizeof study.out, "results/%s%s", study.name,
             request.is_quick ? "-quick" : "");
    return ct_cli_study(&study, &given, &request);
}
