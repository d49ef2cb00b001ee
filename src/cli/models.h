/* What commands that use a trained model share. */
#ifndef CT_CLI_MODELS_H
#define CT_CLI_MODELS_H

#include "cli/cli.h"
#include "data/dataset.h"
#include "model/model.h"
#include "util/file.h"

/* Opens a model with the options that describe it and say where it computes (the schema's "model"
 * ones). One in a run directory that does not describe itself is completed by the run's data. */
ct_status ct_cli_open_model(const char *path, const ct_own *own, ct_model **out);

/* The directory of a run that `path` is, or lies in; NULL: none. */
const char *ct_cli_run_of(const char *path, ct_path *room);

/* What a data set says about the models trained on it; points into it. names: [n_classes], NULL for
 * a set without names. */
ct_model_facts ct_cli_facts_of(const ct_dataset *data, const char **names);

#endif
