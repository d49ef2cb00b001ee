/* Trains LeNet-5 with CCL on drawn shapes, which need no download: four agents on a ring, whose
 * classes differ. What it leaves in DIRECTORY is a run like those of `crosstalk train`.
 *
 *     ./train DIRECTORY */
#include <crosstalk/crosstalk.h>

#include <stdio.h>

static const char *const options[][2] = {{"dataset", "shapes"},   {"train-samples", "2000"},
                                         {"test-samples", "500"}, {"model", "lenet5"},
                                         {"agents", "4"},         {"topology", "ring"},
                                         {"algorithm", "ccl"},    {"alpha", "1"},
                                         {"batch-size", "8"},     {"lr", "0.02"},
                                         {"epochs", "5"}};

static int complain(const ct_error *error) {
    char text[1200];
    ct_error_text(error, "", text, sizeof text);
    fprintf(stderr, "train: %s\n", text);
    return 1;
}

static ct_status configure(const char *directory, ct_config **out, ct_error *error) {
    ct_status status = ct_config_create(out, error);
    for (size_t k = 0; k < sizeof options / sizeof *options && status == CT_OK; k++)
        status = ct_config_set(*out, options[k][0], options[k][1], error);
    return status == CT_OK ? ct_config_set(*out, "out", directory, error) : status;
}

/* Epoch by epoch, to look at it in between. */
static ct_status train(ct_run *run, ct_error *error) {
    ct_status status = CT_OK;
    while (status == CT_OK && !ct_run_is_done(run)) {
        status = ct_run_step(run, ct_run_epoch_length(run), error);
        if (status != CT_OK) break;
        printf("epoch %.0f: loss %.4f, consensus model %.1f %%, worst agent %.1f %%\n",
               ct_run_metric(run, 0, "epoch"), ct_run_metric(run, 0, "ce"),
               100 * ct_run_metric(run, 0, "consensus_accuracy"),
               100 * ct_run_metric(run, 0, "local_accuracy_min"));
    }
    return status;
}

int main(int n_args, char **args) {
    ct_error error;
    ct_config *config = NULL;
    ct_run *run = NULL;
    if (n_args != 2) {
        fprintf(stderr, "usage: train DIRECTORY\n");
        return 2;
    }
    ct_status status = configure(args[1], &config, &error);
    if (status == CT_OK) status = ct_run_create(config, NULL, &run, &error);
    if (status == CT_OK) status = train(run, &error);
    ct_run_free(&run);
    ct_config_free(&config);
    return status == CT_OK ? 0 : complain(&error);
}
