/* How uneven a partition is. With p_a(c) = share of class c among agent a's samples and p(c) its
 * share among all samples handed out, total variation = mean_a 1/2 sum_c |p_a(c) - p(c)|. */
#include "data/partition.h"

#include "util/memory.h"

#include <math.h>
#include <string.h>

#define FNV_START 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

/* FNV-1a over the eight bytes of a number, lowest first. */
static uint64_t hash_add(uint64_t hash, uint64_t number) {
    for (int k = 0; k < 8; k++) hash = (hash ^ (number >> 8 * k & 255u)) * FNV_PRIME;
    return hash;
}

/* Number of agents, then each list: its length and its samples. */
static uint64_t hash_of(const ct_partition *p) {
    uint64_t hash = hash_add(FNV_START, (uint64_t)p->n_agents);
    for (int a = 0; a < p->n_agents; a++) {
        hash = hash_add(hash, ct_partition_size(p, a));
        for (size_t i = p->begin[a]; i < p->begin[a + 1]; i++) hash = hash_add(hash, p->index[i]);
    }
    return hash;
}

static void count_classes(const ct_partition *p, int agent, const int32_t *labels, int n_classes,
                          uint32_t *count) {
    memset(count, 0, (size_t)n_classes * sizeof *count);
    for (size_t i = p->begin[agent]; i < p->begin[agent + 1]; i++) count[labels[p->index[i]]]++;
}

/* Adds one agent's figures; `mix` is the global share of each class. */
static void add_agent(const uint32_t *count, size_t size, const double *mix, int n_classes,
                      ct_partition_facts *sum) {
    uint32_t top = 0;
    double distance = 0;
    for (int c = 0; c < n_classes; c++) {
        double share = size > 0 ? (double)count[c] / (double)size : 0;
        sum->classes_per_agent += count[c] > 0;
        if (count[c] > top) top = count[c];
        distance += fabs(share - mix[c]);
    }
    if (size > 0) sum->top_share += (double)top / (double)size;
    sum->total_variation += distance / 2;
}

static void measure_classes(const ct_partition *p, const int32_t *labels, int n_classes,
                            uint32_t *count, double *mix, ct_partition_facts *out) {
    size_t n = p->begin[p->n_agents];
    for (size_t i = 0; i < n; i++) mix[labels[p->index[i]]] += 1;
    for (int c = 0; c < n_classes && n > 0; c++) mix[c] /= (double)n;
    for (int a = 0; a < p->n_agents; a++) {
        count_classes(p, a, labels, n_classes, count);
        add_agent(count, ct_partition_size(p, a), mix, n_classes, out);
    }
    out->classes_per_agent /= p->n_agents;
    out->top_share /= p->n_agents;
    out->total_variation /= p->n_agents;
}

void ct_partition_measure(const ct_partition *partition, const int32_t *labels, int n_classes,
                          uint32_t *table, ct_partition_facts *out) {
    ct_partition_facts facts = {.min_size = SIZE_MAX, .hash = hash_of(partition)};
    for (int a = 0; a < partition->n_agents; a++) {
        size_t size = ct_partition_size(partition, a);
        if (size < facts.min_size) facts.min_size = size;
        if (size > facts.max_size) facts.max_size = size;
        if (table != NULL)
            count_classes(partition, a, labels, n_classes, table + (size_t)a * (size_t)n_classes);
    }
    uint32_t *count = ct_new(uint32_t, (size_t)n_classes);
    double *mix = ct_new(double, (size_t)n_classes);
    if (count != NULL && mix != NULL)
        measure_classes(partition, labels, n_classes, count, mix, &facts);
    else /* no memory: better no figure than a wrong one */
        facts.classes_per_agent = facts.top_share = facts.total_variation = NAN;
    ct_free(mix);
    ct_free(count);
    *out = facts;
}
