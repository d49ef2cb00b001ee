/* Which agent holds which training samples: disjoint lists, fixed for the run.
 * A partition is one file and one line in partition_list.h. */
#ifndef CT_DATA_PARTITION_H
#define CT_DATA_PARTITION_H

#include "util/registry.h"

typedef struct ct_partition {
    int n_agents;
    size_t *begin;   /* [n_agents + 1] */
    uint32_t *index; /* [begin[n_agents]] agent a holds index[begin[a]] .. in visiting order */
} ct_partition;

/* No split at all: every agent has a data set of its own. Known by name, never computed. */
#define CT_PARTITION_OWN "own"

typedef struct ct_partition_spec {
    const char *kind; /* dirichlet, iid, shards */
    int n_agents;
    double alpha;          /* dirichlet: concentration, > 0 */
    int classes_per_agent; /* shards */
    uint64_t seed;
} ct_partition_spec;

ct_status ct_partition_create(const ct_partition_spec *spec, const int32_t *labels, size_t n,
                              int n_classes, ct_partition *out);
void ct_partition_free(ct_partition *partition);

/* CSV with header `index,agent`, one line a sample; an agent's lines are its visiting order.
 * Samples may be left out; none may appear twice; every index < n_samples; agents 0 .. n_agents-1,
 * none of them empty. Bad content is CT_IO with the line number. */
ct_status ct_partition_read(const char *path, int n_agents, size_t n_samples, ct_partition *out);
/* agent_of[n_samples]: who holds a sample, -1: nobody. An agent visits its samples in order. */
ct_status ct_partition_by_agent(const int32_t *agent_of, size_t n_samples, int n_agents,
                                ct_partition *out);
ct_status ct_partition_write(const ct_partition *partition, const char *path);

static inline size_t ct_partition_size(const ct_partition *p, int agent) {
    return p->begin[agent + 1] - p->begin[agent];
}

typedef struct ct_partition_facts {
    double classes_per_agent; /* mean number of classes an agent holds */
    double top_share;         /* mean share of an agent's largest class */
    double total_variation; /* mean total variation distance of an agent's mix to the global mix */
    size_t min_size, max_size;
    uint64_t hash;
} ct_partition_facts;

/* Of the lists, in order. */
uint64_t ct_partition_hash(const ct_partition *partition);

/* How many samples of each class an agent holds: counts[n_classes]; labels by sample. */
void ct_partition_count(const ct_partition *partition, int agent, const int32_t *labels,
                        int n_classes, uint32_t *counts);
/* table: [n_agents][n_classes] such counts. */
ct_status ct_partition_describe(const ct_partition *partition, const uint32_t *table, int n_classes,
                                ct_partition_facts *out);
/* Both at once; table is filled if not NULL. */
ct_status ct_partition_measure(const ct_partition *partition, const int32_t *labels, int n_classes,
                               uint32_t *table, ct_partition_facts *out);

void ct_partition_each(ct_name_visit each, void *context);

#endif
