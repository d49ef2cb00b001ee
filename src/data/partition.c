#include "data/partition.h"

#include "data/partition_internal.h"
#include "util/memory.h"
#include "util/registry.h"

#include <string.h>

typedef struct kind {
    const char *name, *text;
    ct_status (*make)(const ct_partition_spec *spec, const ct_labelled *samples, ct_partition *out);
} kind;

static const kind kinds[] = {
#define PARTITION(id, name, text) {name, text, ct_partition_make_##id},
#include "data/partition_list.h"
#undef PARTITION
    {CT_PARTITION_OWN, "no split at all: every agent has a data set of its own", NULL},
};
static const size_t n_kinds = sizeof kinds / sizeof kinds[0];

void ct_partition_each(ct_name_visit each, void *context) {
    for (size_t k = 0; k < n_kinds; k++) each(context, kinds[k].name, kinds[k].text);
}

static ct_status check(const ct_partition_spec *spec, const ct_labelled *samples) {
    if (spec->n_agents < 1)
        return ct_fail(CT_INVAL, "%d agents; there must be at least one", spec->n_agents);
    if ((size_t)spec->n_agents > samples->n)
        return ct_fail(CT_INVAL, "%d agents cannot share %zu samples; use fewer agents",
                       spec->n_agents, samples->n);
    if (samples->n > UINT32_MAX)
        return ct_fail(CT_INVAL, "%zu samples are too many; at most %u", samples->n, UINT32_MAX);
    for (size_t i = 0; i < samples->n; i++)
        if (samples->labels[i] < 0 || samples->labels[i] >= samples->n_classes)
            return ct_fail(CT_INVAL, "label %d of sample %zu is not one of 0..%d",
                           (int)samples->labels[i], i, samples->n_classes - 1);
    return CT_OK;
}

ct_status ct_partition_create(const ct_partition_spec *spec, const int32_t *labels, size_t n,
                              int n_classes, ct_partition *out) {
    const kind *found = NULL;
    for (size_t k = 0; k < n_kinds; k++)
        if (strcmp(kinds[k].name, spec->kind) == 0) found = &kinds[k];
    if (found == NULL) return ct_unknown_name("partition", spec->kind, NULL, ct_partition_each);

    if (found->make == NULL)
        return ct_refuse("partition", "@partition %s splits nothing: every agent has its own data",
                         spec->kind);

    ct_labelled samples = {labels, n, n_classes};
    CT_SCOPED(ct_partition) partition = {0};
    CT_TRY(check(spec, &samples));
    CT_TRY(ct_partition_alloc(spec->n_agents, n, &partition));
    CT_TRY(found->make(spec, &samples, &partition));
    ct_move(out, &partition);
    return CT_OK;
}

ct_status ct_partition_alloc(int n_agents, size_t n_samples, ct_partition *out) {
    CT_SCOPED(ct_partition) partition = {.n_agents = n_agents};
    CT_TRY(ct_make(&partition.begin, (size_t)n_agents + 1, "a partition"));
    CT_TRY(ct_make(&partition.index, n_samples, "a partition"));
    ct_move(out, &partition);
    return CT_OK;
}

void ct_partition_free(ct_partition *partition) {
    ct_free(partition->index);
    ct_free(partition->begin);
    *partition = (ct_partition){0};
}

void ct_partition_shuffle(uint64_t seed, uint32_t *order, size_t n) {
    ct_rng rng;
    ct_rng_init(&rng, seed, CT_RNG_PARTITION, 0, 0, CT_PARTITION_ORDER);
    for (size_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    ct_rng_shuffle(&rng, order, n);
}

void ct_partition_cut(size_t n_each, ct_partition *out) {
    for (int a = 0; a <= out->n_agents; a++) out->begin[a] = (size_t)a * n_each;
}

void ct_partition_sort(const ct_labelled *samples, const uint32_t *items, size_t n_items,
                       size_t *class_begin, uint32_t *out) {
    size_t n_classes = (size_t)samples->n_classes;
    for (size_t c = 0; c <= n_classes; c++) class_begin[c] = 0;
    /* Counted one place up, the sums are where each class begins; placing the items moves these to
     * where the next class begins, so they are moved back at the end. */
    for (size_t i = 0; i < n_items; i++) class_begin[samples->labels[items[i]] + 1]++;
    for (size_t c = 0; c < n_classes; c++) class_begin[c + 1] += class_begin[c];
    for (size_t i = 0; i < n_items; i++) out[class_begin[samples->labels[items[i]]]++] = items[i];
    for (size_t c = n_classes; c > 0; c--) class_begin[c] = class_begin[c - 1];
    class_begin[0] = 0;
}

ct_status ct_partition_collect(ct_status refused, const char *what, const int32_t *agent,
                               size_t n_samples, const uint32_t *list, size_t n, int n_agents,
                               ct_partition *out) {
    ct_labelled samples = {agent, n_samples, n_agents};
    CT_SCOPED(ct_partition) sorted = {0};
    CT_TRY(ct_partition_alloc(n_agents, n, &sorted));
    ct_partition_sort(&samples, list, n, sorted.begin, sorted.index);
    for (int a = 0; a < n_agents; a++)
        if (ct_partition_size(&sorted, a) == 0)
            return ct_fail(refused, "%s: agent %d of 0..%d has no samples", what, a, n_agents - 1);
    ct_move(out, &sorted);
    return CT_OK;
}

ct_status ct_partition_by_agent(const int32_t *agent_of, size_t n_samples, int n_agents,
                                ct_partition *out) {
    CT_SCOPED_BLOCK(uint32_t) held = NULL;
    size_t n = 0;
    CT_TRY(ct_make(&held, n_samples, "a partition"));
    for (size_t i = 0; i < n_samples; i++) {
        if (agent_of[i] < -1 || agent_of[i] >= n_agents)
            return ct_fail(CT_INVAL, "agent %d of sample %zu is not one of 0..%d, or -1",
                           (int)agent_of[i], i, n_agents - 1);
        if (agent_of[i] >= 0) held[n++] = (uint32_t)i;
    }
    return ct_partition_collect(CT_INVAL, "agent_of", agent_of, n_samples, held, n, n_agents, out);
}
