/* --fault drop=P,straggle=P:MS[:LIMIT],kill=AGENT@FROM[-BACK],...: see algo/faults.h. */
#ifndef CT_RUN_FAULT_H
#define CT_RUN_FAULT_H

#include "algo/faults.h"
#include "schema/config.h"

/* seeds: of the run, kept alive by the caller. CT_INVAL for words that say nothing, and for
 * algorithms that cannot live with what they say. */
ct_status ct_fault_parse(const ct_config *config, const uint64_t *seeds, ct_faults *out);

#endif
