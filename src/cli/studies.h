/* What reproduce, sweep and compare share. */
#ifndef CT_CLI_STUDIES_H
#define CT_CLI_STUDIES_H

#include "study/study.h"

/* Takes the options of studies out of the arguments. */
ct_status ct_cli_study_options(int *n_args, char **args, ct_study_request *request);

/* Whether the study may lie in a folder, beside what its runs say. */
typedef ct_status (*ct_study_check)(const ct_study *study, const char *out);

/* Runs what is missing and prints the table; study->out is the default of --out. Where that is
 * another study's, and there is a check, -2, -3, ... is added to it. */
ct_status ct_cli_study(ct_study *study, const ct_config *given, const ct_study_request *request,
                       ct_study_check check);

#endif
