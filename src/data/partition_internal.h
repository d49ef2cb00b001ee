/* What the partitions share. */
#ifndef CT_DATA_PARTITION_INTERNAL_H
#define CT_DATA_PARTITION_INTERNAL_H

#include "data/partition.h"
#include "util/rng.h"

/* The samples to be split. Checked: 1 <= n_agents <= n <= UINT32_MAX, labels in 0 .. n_classes-1.
 */
typedef struct ct_labelled {
    const int32_t *labels; /* [n] */
    size_t n;
    int n_classes;
} ct_labelled;

/* One maker for each line of partition_list.h. `out` has room for every sample; the maker fills
 * index and begin. */
#define PARTITION(id, name, text)                                                                  \
    ct_status ct_partition_make_##id(const ct_partition_spec *spec, const ct_labelled *samples,    \
                                     ct_partition *out);
#include "data/partition_list.h"
#undef PARTITION

/* The streams of CT_RNG_PARTITION: (agent = group, epoch = attempt, index = one of these). */
enum { CT_PARTITION_DRAWS, CT_PARTITION_ORDER, CT_PARTITION_DEAL };

/* Room for n_agents lists of together n_samples. */
ct_status ct_partition_alloc(int n_agents, size_t n_samples, ct_partition *out);

/* order[0 .. n-1] = all samples, shuffled by the seed. */
void ct_partition_shuffle(uint64_t seed, uint32_t *order, size_t n);

/* Cuts index[] into n_agents lists of n_each. */
void ct_partition_cut(size_t n_each, ct_partition *out);

/* The n samples of a list, each held by agent[sample], by agent and in the order of the list. An
 * agent without any is refused with this status and the name of what was read. */
ct_status ct_partition_collect(ct_status refused, const char *what, const int32_t *agent,
                               size_t n_samples, const uint32_t *list, size_t n, int n_agents,
                               ct_partition *out);
/* out = items sorted by class, otherwise in the order they came; class c is
 * out[class_begin[c]] .. out[class_begin[c+1]-1]. class_begin: [n_classes + 1]. */
void ct_partition_sort(const ct_labelled *samples, const uint32_t *items, size_t n_items,
                       size_t *class_begin, uint32_t *out);

#endif
