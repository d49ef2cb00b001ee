#ifndef CT_ALGO_AGENTS_INTERNAL_H
#define CT_ALGO_AGENTS_INTERNAL_H

#include "algo/agents.h"

static inline bool ct_agents_is_alive(const ct_agents *a, int row) {
    return a->faults == NULL || ct_faults_alive(a->faults, row, a->iteration);
}

/* Jobs on this iteration's batches. */
ct_work ct_agents_work(ct_agents *a, const ct_bank *params, const ct_job *jobs, int n_jobs);

/* |row| of a bank as wide as x, by the host. */
ct_status ct_agents_norm(ct_agents *a, const ct_bank *bank, int row, double *out);

#endif
