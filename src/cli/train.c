#include "cli/cli.h"
#include "run/run.h"
#include "util/log.h"

void ct_cli_train_help(FILE *out) {
    fputs(
        "usage: crosstalk train [--option value ...]\n\n"
        "Trains all agents and writes a run directory: config.txt, partition.csv, setting.json,\n"
        "metrics.jsonl, evaluation.json, summary.json, consensus.safetensors, and checkpoints to\n"
        "resume from. With --resume auto the same command line resumes it after any interruption.\n"
        "Under mpirun or srun the agents are spread over the ranks; results are the same.\n\n",
        out);
    ct_own_help("run", out);
    ct_cli_options_help(out);
    fputs("\nThe CCL authors' spellings (--world_size --graph --skew --arch --lambda_m --lambda_d\n"
          "--weight_decay --qgm) work too; --batch-size is per agent here.\n",
          out);
}

ct_status ct_cli_train(int n_args, char **args) {
    ct_config config;
    ct_config_init(&config);
    CT_TRY(ct_cli_options(n_args, args, &config, NULL, 0));
    ct_cli_quiet(config.quiet);
    ct_cli_outlive_readers();
    return ct_train(&config);
}
