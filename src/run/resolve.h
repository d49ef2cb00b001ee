/* From what was asked for to what is run. */
#ifndef CT_RUN_RESOLVE_H
#define CT_RUN_RESOLVE_H

#include "schema/config.h"

/* Every parameter has an averaging rate of its own: @consensus adagossip. */
bool ct_config_has_own_steps(const ct_config *config);

/* Fills in what follows from the options alone (loss, lambdas, model, rates) and checks that they
 * fit together. */
ct_status ct_config_choose(ct_config *config);

/* The same, and what depends on files and on the machine: data set, mixing weights, device, run
 * directory. Called once for a run; then its options are final, and nobody changes them any more.
 * Options that are resolved already are left alone. */
ct_status ct_config_resolve(ct_config *config);

/* For a model that is only tested: it is the one agent's, and how it was trained does not matter.
 */
void ct_config_only_test(ct_config *config);

#endif
