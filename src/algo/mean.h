/* The mean of a bank over all agents of a seed, for methods that need it: gossip does not. */
#ifndef CT_ALGO_MEAN_H
#define CT_ALGO_MEAN_H

#include "algo/agents.h"

typedef struct ct_mean {
    ct_bank mean;     /* [seeds] of each seed's agents */
    ct_bank everyone; /* [rows] all processes' rows; no memory in one process */
    ct_sparse gather; /* [seeds x rows] 1/n where a row belongs to the seed */
    ct_sparse spread; /* [n x seeds] 1 at a row's seed */
} ct_mean;

ct_status ct_mean_create(const ct_agents *a, ct_mean *out);
void ct_mean_free(ct_mean *mean);

/* Appends mean->mean = that of a bank as wide as x, whose rows it brings here at once;
 * {1, &mean->mean, &mean->spread} is then a term for every agent. */
ct_status ct_mean_take(ct_mean *mean, ct_agents *a, const ct_bank *bank, ct_update *u);
/* Counts what a ring all-reduce of one row sends: 2 (n - 1) / n rows an agent. */
void ct_mean_count(const ct_agents *a);

#endif
