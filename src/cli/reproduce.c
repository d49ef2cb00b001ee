/* The paper's tables and figures, or anyone's own, from a small text file. */
#include <string.h>

#include "cli/cli.h"
#include "cli/studies.h"
#include "util/memory.h"

const ct_help ct_cli_reproduce_help = {
    .usage = "reproduce NAME|FILE.conf [--option value ...]\n"
             "reproduce list",
    .text = "Runs what is missing of a table or figure (experiments/NAME.conf), the seeds of a "
            "cell at once, and prints our mean ± deviation beside the paper's. Finished runs "
            "are kept, interrupted ones resumed, and runs with other options refused. "
            "--data-dir may be the folder that holds all data sets. Runs in one process (no "
            "mpirun).",
    .takes = "data-dir, epochs, seeds, device, out, force, quiet",
    .files = CT_HELP_PAIRS({"results/NAME/table.md, .csv, .tex", "the table"},
                           {"results/NAME/report.html", "table, figure and every run's curves"},
                           {"results/NAME/CELL/", "a run directory for every cell"}),
    .examples = CT_HELP_PAIRS(
        {"What there is.", "crosstalk reproduce list"},
        {"Which runs Table 1 has, and which are done.", "crosstalk reproduce table1 --dry-run"},
        {"Table 1 of the paper. Needs CIFAR-10 and a GPU.",
         "crosstalk reproduce table1 --data-dir data"}),
    .also = "compare, sweep, docs/REPRODUCE.md"};

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
    return ct_cli_study(&study, &given, &request, NULL);
}
