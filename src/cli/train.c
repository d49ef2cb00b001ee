#include <math.h>

#include "cli/cli.h"
#include "cli/pages.h"
#include "record/record.h"
#include "run/run.h"
#include "transport/transport.h"
#include "util/log.h"
#include "util/memory.h"

const ct_help ct_cli_train_help = {
    .usage = "train [--option value ...]",
    .text = "Trains all agents at once and writes a run directory. Every agent starts with the "
            "same model, keeps its own part of the data and exchanges models with its "
            "neighbours in the graph. The result is the consensus model, the mean of all "
            "agents' models.\n\n"
            "The run goes to --out, or to runs/<what is run>; a name that is taken gets -2, "
            "-3, ... With --seeds 1,2,3 several seeds train at once, and the summary has their "
            "mean and standard deviation.\n\n"
            "--resume DIR resumes an interrupted run. With more --epochs than before it "
            "extends a finished one. --resume auto resumes if there is something to resume and "
            "starts otherwise, so one command line does both. Under mpirun or srun the agents "
            "are spread over the ranks; the results are the same to the bit.\n\n"
            "The CCL authors' spellings (--world_size, --graph, --skew, --arch, --lambda_m, "
            "--lambda_d, --weight_decay, --qgm) work too; --batch-size is per agent here.",
    .writes_run = true,
    .files = CT_HELP_PAIRS({"seed-N/", "of several seeds: a directory like this for each"}),
    .exits = CT_HELP_PAIRS(
        {"0", "the training is finished"},
        {"1", "a file, memory or another rank failed, or the training diverged"},
        {"2", "the options are wrong, or differ from those of the run to be resumed"},
        {"130, 138, 143", "stopped by Ctrl-C, SIGUSR1 or SIGTERM; a checkpoint is written first"}),
    .examples = CT_HELP_PAIRS(
        {"Four agents on a ring, drawn shapes: 94.8 % after a few seconds.", CT_HELP_START},
        {"Three seeds at once: 95.0 ± 1.0 %.", CT_HELP_START " --seeds 1,2,3"},
        {"Two epochs more for the first run.",
         "crosstalk train --resume runs/shapes-lenet5-qg-dsgdm-ring4-a0.1-s1 --epochs 10"},
        {"Your own pictures, in folders named after their classes; a fifth is held out for "
         "testing.",
         "crosstalk train --data-dir my-pictures --test-fraction 0.2 --agents 4"},
        {"CCL, the paper's method, on Fashion-MNIST: 16 agents with few classes each.",
         "crosstalk data get fashion-mnist\n"
         "crosstalk train --data-dir data/fashion-mnist --algorithm ccl --alpha 0.01"}),
    .also = "compare, sweep, report, list, docs/ALGORITHMS.md, docs/RANKS.md, docs/FAULTS.md"};

/* ", what 87.31 %", of several seeds ", what 87.31 ± 0.42 %"; nothing where it was not tested. */
static void add_score(ct_text *out, const ct_json *summary, const char *what, const char *key) {
    char name[64];
    double mean = ct_json_number(summary, key);
    snprintf(name, sizeof name, "%s_std", key);
    double deviation = ct_json_number(summary, name);
    if (isnan(mean)) return;
    ct_text_add(out, "%s%s %.2f", out->n > 0 ? ", " : "", what, 100 * mean);
    if (!isnan(deviation)) ct_text_add(out, " ± %.2f", 100 * deviation);
    ct_text_add(out, " %%");
}

static int count(const ct_json *list) {
    int n = 0;
    for (const ct_json *at = list->child; at != NULL; at = at->next) n++;
    return n;
}

/* What came out, where it lies, and what to do with it: on stderr like all that a training says, so
 * that it ends well whether or not anyone reads it. */
ct_status ct_cli_tell_result(const char *dir) {
    CT_SCOPED(ct_text) scores = {0}, place = {0};
    CT_SCOPED_HANDLE(ct_json) summary = NULL;
    ct_shell_add(&place, dir);
    /* pairs of lambdas have a summary each, and the folder of all of them has none */
    if (ct_record_has(dir, CT_FILE_SUMMARY)) CT_TRY(ct_summary_read(dir, &summary));
    if (summary != NULL) {
        const ct_json *seeds = ct_json_get(summary, "seeds");
        add_score(&scores, summary, "consensus model", "consensus_accuracy");
        add_score(&scores, summary, "averaged over time", "averaged_accuracy");
        add_score(&scores, summary, "agents' own models", "local_accuracy_mean");
        if (seeds != NULL && scores.n > 0)
            ct_text_add(&scores, " (mean ± deviation of %d seeds)", count(seeds));
    }
    CT_TRY(ct_text_status(&scores));
    CT_TRY(ct_text_status(&place));
    if (scores.n > 0) ct_log(CT_LOG_LINE, "test accuracy: %s", scores.chars);
    ct_log(CT_LOG_LINE, "run directory: %s", dir);
    ct_cli_next("%s %s", summary != NULL ? "report" : "show", place.chars);
    return CT_OK;
}

ct_status ct_cli_train(int n_args, char **args) {
    ct_config config;
    ct_path dir;
    ct_config_init(&config);
    CT_TRY(ct_cli_options(n_args, args, &config, NULL, 0));
    ct_cli_quiet(config.quiet);
    ct_cli_outlive_readers();
    config.may_grow = true; /* --resume DIR --epochs N */
    CT_TRY(ct_train_in(&config, &dir));
    return config.quiet || ct_transport_launch_rank() > 0 ? CT_OK : ct_cli_tell_result(dir.text);
}
