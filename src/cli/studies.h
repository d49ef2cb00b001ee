/* What reproduce, sweep and compare share. */
#ifndef CT_CLI_STUDIES_H
#define CT_CLI_STUDIES_H

#include "study/study.h"

/* Takes the options of studies out of the arguments. */
ct_status ct_cli_study_options(int *n_args, char **args, ct_study_request *request);

/* Runs what is missing and prints the table; study->out is the default of --out. */
ct_status ct_cli_study(ct_study *study, const ct_config *given, const ct_study_request *request);

#endif
