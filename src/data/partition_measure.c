/* How uneven a partition is. With p_a(c) = share of class c among agent a's samples and p(c) its
 * share among all samples handed out, total variation = mean_a 1/2 sum_c |p_a(c) - p(c)|. */
#include "data/partition.h"

#include "util/hash.h"
#include "util/memory.h"

#include <math.h>
#include <string.h>

/* Number of agents, then each list: its length and its samples. */
uint64_t ct_partition_hash(const ct_partition *p) {
    uint64_t hash = ct_hash_number(CT_HASH_START, (uint64_t)p->n_agents);
    for (int a = 0; a < p->n_agents; a++) {
        hash = ct_hash_number(hash, ct_partition_size(p, a));
        for (size_t i = p->begin[a]; i < p->begin[a + 1]; i++)
            hash = ct_hash_number(hash, p->index[i]);
    }
    return hash;
}

void ct_partition_count(const ct_partition *p, int agent, const int32_t *labels, int n_classes,
                        uint32_t *counts) {
    memset(counts, 0, (size_t)n_classes * sizeof *counts);
    for (size_t i = p->begin[agent]; i < p->begin[agent + 1]; i++) counts[labels[p->index[i]]]++;
}

/* Adds one agent's figures; `mix` is the global share of each class. */
static void add_agent(const uint32_t *count, size_t size, const double *mix, int n_classes,
                      ct_partition_facts *sum) {
    uint32_t top = 0;
    double distance = 0;
    for (int c = 0; c < n_classes; c++) {
        double share = (double)count[c] / (double)size;
        sum->classes_per_agent += count[c] > 0;
        if (count[c] > top) top = count[c];
        distance += fabs(share - mix[c]);
    }
    sum->top_share += (double)top / (double)size;
    sum->total_variation += distance / 2;
}

static void measure_classes(const ct_partition *p, const uint32_t *table, int n_classes,
                            double *mix, ct_partition_facts *out) {
    size_t n = p->begin[p->n_agents], width = (size_t)n_classes;
    for (int a = 0; a < p->n_agents; a++)
        for (size_t c = 0; c < width; c++) mix[c] += table[(size_t)a * width + c];
    for (int c = 0; c < n_classes && n > 0; c++) mix[c] /= (double)n;
    int n_known = 0; /* a site knows its own samples alone */
    for (int a = 0; a < p->n_agents; a++) {
        size_t size = ct_partition_size(p, a);
        if (size > 0) add_agent(table + (size_t)a * width, size, mix, n_classes, out);
        n_known += size > 0;
    }
    out->classes_per_agent /= n_known;
    out->top_share /= n_known;
    out->total_variation /= n_known;
}

ct_status ct_partition_describe(const ct_partition *p, const uint32_t *table, int n_classes,
                                ct_partition_facts *out) {
    CT_SCOPED_BLOCK(double) mix = NULL;
    CT_TRY(ct_make(&mix, (size_t)n_classes, "the mix of classes"));
    *out = (ct_partition_facts){.min_size = SIZE_MAX, .hash = ct_partition_hash(p)};
    for (int a = 0; a < p->n_agents; a++) {
        size_t size = ct_partition_size(p, a);
        if (size < out->min_size) out->min_size = size;
        if (size > out->max_size) out->max_size = size;
    }
    measure_classes(p, table, n_classes, mix, out);
    return CT_OK;
}

ct_status ct_partition_measure(const ct_partition *p, const int32_t *labels, int n_classes,
                               uint32_t *table, ct_partition_facts *out) {
    size_t width = (size_t)n_classes;
    CT_SCOPED_BLOCK(uint32_t) own = NULL;
    if (table == NULL) CT_TRY(ct_make(&own, (size_t)p->n_agents * width, "the mix of classes"));
    if (table == NULL) table = own;
    for (int a = 0; a < p->n_agents; a++)
        ct_partition_count(p, a, labels, n_classes, table + (size_t)a * width);
    return ct_partition_describe(p, table, n_classes, out);
}
