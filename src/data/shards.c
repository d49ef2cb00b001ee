/* Shards (McMahan et al., arXiv:1602.05629): the samples sorted by class are cut into n*k equal
 * shards, and each agent is dealt k of them at random. An agent sees about k classes: fewer if two
 * of its shards are of one class, more if a shard lies across the border of two. Each agent holds
 * k * floor(N / (n*k)) samples; the rest is left out. */
#include "data/partition_internal.h"

#include "util/memory.h"

#include <string.h>

/* Shards in the order in which they are dealt; agent a gets deal[a*k] .. deal[a*k + k-1]. */
static void deal_shards(uint64_t seed, uint32_t *deal, size_t n_shards) {
    ct_rng rng;
    ct_rng_init(&rng, seed, CT_RNG_PARTITION, 0, 0, CT_PARTITION_DEAL);
    for (size_t s = 0; s < n_shards; s++) deal[s] = (uint32_t)s;
    ct_rng_shuffle(&rng, deal, n_shards);
}

static ct_status check(const ct_partition_spec *spec, const ct_labelled *samples) {
    int k = spec->classes_per_agent;
    if (k < 1 || k > samples->n_classes)
        return ct_fail(CT_INVAL, "shards: %d classes per agent; must be 1..%d", k,
                       samples->n_classes);
    if ((size_t)k > samples->n / (size_t)spec->n_agents)
        return ct_fail(CT_INVAL, "shards: %zu samples do not make %d shards for each of %d agents",
                       samples->n, k, spec->n_agents);
    return CT_OK;
}

ct_status ct_partition_make_shards(const ct_partition_spec *spec, const ct_labelled *samples,
                                   ct_partition *out) {
    CT_TRY(check(spec, samples));
    size_t k = (size_t)spec->classes_per_agent;
    size_t n_shards = (size_t)spec->n_agents * k, size = samples->n / n_shards;
    CT_SCOPED_BLOCK(uint32_t) sorted = NULL;
    CT_SCOPED_BLOCK(uint32_t) deal = NULL;
    CT_SCOPED_BLOCK(size_t) class_begin = NULL;
    CT_TRY(ct_make(&sorted, samples->n, "the shards"));
    CT_TRY(ct_make(&deal, n_shards, "the shards"));
    CT_TRY(ct_make(&class_begin, (size_t)samples->n_classes + 1, "the shards"));
    ct_partition_shuffle(spec->seed, out->index, samples->n);
    ct_partition_sort(samples, out->index, samples->n, class_begin, sorted);
    deal_shards(spec->seed, deal, n_shards);
    for (size_t s = 0; s < n_shards; s++)
        memcpy(out->index + s * size, sorted + deal[s] * size, size * sizeof *sorted);
    ct_partition_cut(k * size, out);
    return CT_OK;
}
