#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "run/run.h"
#include "util/file.h"
#include "util/log.h"
#include "util/memory.h"

void ct_cli_eval_help(FILE *out) {
    fputs("usage: crosstalk eval RUN [--option value ...]\n"
          "       crosstalk eval --init FILE.safetensors --dataset NAME --model NAME ...\n\n"
          "Tests a run's consensus model (RUN is its directory), or any model file, on the test\n"
          "part of the data set. Options are those of crosstalk train.\n",
          out);
}

/* The model under test is the only agent; how data was split does not matter here. */
static ct_status prepare(ct_config *config, const char *run_dir) {
    if (run_dir != NULL) {
        char *path = ct_path_join(run_dir, "config.txt");
        if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a path");
        ct_status status = ct_config_read(config, path);
        ct_free(path);
        if (status != CT_OK) return status;
        if (!config->given[CT_OPT_init] || strstr(config->init, "consensus") == NULL)
            snprintf(config->init, sizeof config->init, "%s/consensus.safetensors", run_dir);
    }
    if (config->init[0] == '\0')
        return ct_fail(CT_INVAL, "name a run directory, or a model with --init FILE.safetensors");
    config->agents = 1;
    config->batch_size = 1;
    snprintf(config->topology, sizeof config->topology, "chain");
    snprintf(config->partition, sizeof config->partition, "iid");
    snprintf(config->weights, sizeof config->weights, "auto");
    snprintf(config->algorithm, sizeof config->algorithm, "dsgd");
    snprintf(config->loss, sizeof config->loss, "ce");
    config->lambda_m = config->lambda_d = 0;
    config->partition_file[0] = '\0';
    return CT_OK;
}

ct_status ct_cli_eval(int n_args, char **args) {
    ct_config config;
    ct_run run;
    const char *dir = NULL;
    double accuracy, loss;
    int n_words;
    ct_config_init(&config);
    CT_TRY(ct_cli_options(n_args, args, &config, &dir, 1, &n_words));
    ct_log_quiet(config.quiet);
    bool has_model = config.given[CT_OPT_init];
    char model[CT_CONFIG_TEXT];
    memcpy(model, config.init, sizeof model);
    CT_TRY(prepare(&config, dir));
    if (has_model) memcpy(config.init, model, sizeof model);
    CT_TRY(ct_run_create(&config, &run));
    ct_status status = ct_run_score(&run, &run.agents.x, &run.agents.running, 0, &accuracy, &loss);
    if (status == CT_OK)
        printf("%s: accuracy %.4f, loss %.6f, %zu test samples of %s\n", config.init, accuracy,
               loss, run.dataset.test.n, config.dataset);
    ct_run_free(&run);
    return status;
}
