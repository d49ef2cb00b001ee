#include <stdio.h>

#include "cli/cli.h"
#include "record/file.h"
#include "run/run.h"
#include "util/memory.h"

void ct_cli_eval_help(FILE *out) {
    fputs("usage: crosstalk eval RUN [--option value ...]\n"
          "       crosstalk eval --init FILE.safetensors --dataset NAME --model NAME ...\n\n"
          "Tests a run's consensus model (RUN is its directory), or any model file, on the test\n"
          "part of the data set. Options are those of crosstalk train.\n",
          out);
}

/* Options of the run in `dir` where the command line has none, and its consensus model likewise. */
static ct_status read_run(ct_config *config, const char *dir) {
    bool has_model = config->given[CT_OPT_init];
    CT_TRY(ct_config_load(config, ct_record_path(dir, CT_FILE_CONFIG).text));
    if (has_model) return CT_OK;
    return ct_config_put(config, "init", ct_record_path(dir, CT_FILE_CONSENSUS).text);
}

ct_status ct_cli_eval(int n_args, char **args) {
    ct_config config;
    CT_SCOPED_BY(ct_run_clear, ct_run) run = {0};
    const char *dir = NULL;
    double accuracy, loss;
    ct_config_init(&config);
    CT_TRY(ct_cli_options(n_args, args, &config, &dir, 1));
    ct_cli_quiet(config.quiet);
    if (dir != NULL) CT_TRY(read_run(&config, dir));
    if (config.init[0] == '\0')
        return ct_fail(CT_INVAL, "name a run directory, or a model with --init FILE.safetensors");
    ct_config_only_test(&config);
    CT_TRY(ct_run_build(&config, &run));
    CT_TRY(ct_run_score(&run, &run.agents.x, &run.agents.running, 0, &accuracy, &loss));
    ct_show(stdout, "%s: accuracy %.4f, loss %.6f, %zu test samples of %s\n", config.init, accuracy,
            loss, run.dataset.test.n, config.dataset);
    return CT_OK;
}
