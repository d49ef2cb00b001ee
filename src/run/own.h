/* Agents with data sets of their own (--partition own). A process opens those of its own agents alone;
 * what all must have alike is agreed upon (data/profile.h), and only counts and checksums travel. */
#ifndef CT_RUN_OWN_H
#define CT_RUN_OWN_H

#include "data/profile.h"
#include "run/run.h"

/* --partition own on files. Data that a program lends has its split beside it, and is no such case. */
bool ct_config_is_own(const ct_config *config);
/* The name of an agent: of --agent-names, or its number. */
ct_voice ct_config_agent(const ct_config *config, int agent);
/* What the options say about own data, against each other. */
ct_status ct_own_check(const ct_config *config);
/* The first agent of this process, as far as its launcher says. */
int ct_own_first_agent(const ct_config *config);

/* run->dataset: the parts of this process's agents, one after the other, with the classes and the
 * scale of all; run->parts, most_samples, n_tested; data and test of run->identity. */
ct_status ct_own_open(ct_run *run);
/* The agents' lists: every sample of their own, by its number there. */
ct_status ct_own_split(const ct_run *run, ct_partition *out);
/* Own rows' lists in run->partition become places in run->dataset.train. */
void ct_own_place(ct_run *run);

#endif
