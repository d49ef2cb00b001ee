/* Label skew by Dirichlet draws, as the authors of quasi-global momentum split their data (Lin et
 * al., arXiv:2102.04761), which the paper follows:
 *   1. shuffle the samples; agents form groups of at most 10, which get slices of the data in
 *      proportion to their agents;
 *   2. in a group of m agents and S samples, for each class in turn: p ~ Dir(alpha * 1_m),
 *      p_a = 0 for agents that hold S/m samples or more, p <- p / sum p, and agent a gets the
 *      class's samples from floor(P_{a-1} * count) to floor(P_a * count), P_a = p_1 + ... + p_a;
 *   3. redraw the group until every agent holds at least floor(0.5 * S/m);
 *   4. concatenate all agents' lists and cut them again, into equal slices of floor(N/n).
 * p is computed as exp(log g_a - max log g) from Gamma(alpha) draws g: at alpha = 0.01 most of
 * these draws are too small for a double. Where the biggest share falls to an agent that is full,
 * the others' shares are then still exact instead of 0/0. */
#include "data/partition_internal.h"

#include "util/memory.h"

#include <math.h>
#include <string.h>

#define GROUP_AGENTS 10
#define MAX_ATTEMPTS 10000
/* Beyond these the gamma draws lose their meaning in a double. */
#define MIN_ALPHA 1e-6
#define MAX_ALPHA 1e9

typedef struct group {
    int number, n_agents;
    size_t n;            /* samples */
    uint32_t *by_class;  /* [n] sorted by class */
    size_t *class_begin; /* [n_classes + 1] into by_class */
    size_t *share;       /* [n_classes][GROUP_AGENTS] samples of class c for agent a */
} group;

/* Shares of `count` samples of one class; `held` is what the agents hold before and after. */
static void draw_class(ct_rng *rng, double alpha, const group *g, size_t count, size_t *held,
                       size_t *share) {
    double weight[GROUP_AGENTS], largest = -INFINITY, sum = 0, part = 0;
    for (int a = 0; a < g->n_agents; a++) {
        weight[a] = ct_rng_log_gamma(rng, alpha);
        if (held[a] * (size_t)g->n_agents >= g->n) weight[a] = -INFINITY;
        if (weight[a] > largest) largest = weight[a];
    }
    for (int a = 0; a < g->n_agents; a++) {
        weight[a] = exp(weight[a] - largest);
        sum += weight[a];
    }
    size_t from = 0;
    for (int a = 0; a < g->n_agents; a++) {
        part += weight[a]; /* the same sum as above: the last one is exactly 1, and none is lost */
        size_t to = (size_t)(part / sum * (double)count);
        share[a] = to - from;
        held[a] += to - from;
        from = to;
    }
}

/* One attempt; true if every agent got enough. */
static bool draw_group(uint64_t seed, int attempt, double alpha, int n_classes, const group *g) {
    size_t held[GROUP_AGENTS] = {0};
    ct_rng rng;
    ct_rng_init(&rng, seed, CT_RNG_PARTITION, (uint32_t)g->number, (uint32_t)attempt,
                CT_PARTITION_DRAWS);
    memset(g->share, 0, (size_t)n_classes * GROUP_AGENTS * sizeof *g->share);
    for (int c = 0; c < n_classes; c++) {
        size_t count = g->class_begin[c + 1] - g->class_begin[c];
        /* All agents are full only once nothing is left, so a class with samples has a taker. */
        if (count > 0) draw_class(&rng, alpha, g, count, held, g->share + c * GROUP_AGENTS);
    }
    for (int a = 0; a < g->n_agents; a++)
        if (held[a] < g->n / 2 / (size_t)g->n_agents) return false;
    return true;
}

/* Writes the agents' lists one after the other. */
static void write_group(const group *g, int n_classes, uint32_t *out) {
    for (int a = 0; a < g->n_agents; a++)
        for (int c = 0; c < n_classes; c++) {
            const size_t *share = g->share + c * GROUP_AGENTS;
            size_t from = g->class_begin[c];
            for (int b = 0; b < a; b++) from += share[b];
            memcpy(out, g->by_class + from, share[a] * sizeof *out);
            out += share[a];
        }
}

/* Rearranges the group's slice of the samples into its agents' lists. */
static ct_status split_group(const ct_partition_spec *spec, const ct_labelled *samples, group *g,
                             uint32_t *slice) {
    ct_partition_sort(samples, slice, g->n, g->class_begin, g->by_class);
    int attempt = 0;
    while (!draw_group(spec->seed, attempt, spec->alpha, samples->n_classes, g))
        if (++attempt == MAX_ATTEMPTS)
            return ct_fail(CT_INVAL,
                           "@alpha %g leaves some of %d agents with next to no samples (none of %d "
                           "splits gave each of them half the average); use fewer agents or less "
                           "skew, as in @agents 4 @alpha 1",
                           spec->alpha, spec->n_agents, MAX_ATTEMPTS);
    write_group(g, samples->n_classes, slice);
    return CT_OK;
}

static ct_status split_groups(const ct_partition_spec *spec, const ct_labelled *samples, group *g,
                              uint32_t *order) {
    size_t n_agents = (size_t)spec->n_agents;
    for (size_t first = 0; first < n_agents; first += GROUP_AGENTS) {
        size_t next = first + GROUP_AGENTS < n_agents ? first + GROUP_AGENTS : n_agents;
        uint64_t from = (uint64_t)samples->n * first / n_agents;
        uint64_t to = (uint64_t)samples->n * next / n_agents;
        g->number = (int)(first / GROUP_AGENTS);
        g->n_agents = (int)(next - first);
        g->n = (size_t)(to - from);
        CT_TRY(split_group(spec, samples, g, order + from));
    }
    return CT_OK;
}

static void group_free(group *g) {
    ct_free(g->share);
    ct_free(g->class_begin);
    ct_free(g->by_class);
}

ct_status ct_partition_make_dirichlet(const ct_partition_spec *spec, const ct_labelled *samples,
                                      ct_partition *out) {
    if (!(spec->alpha >= MIN_ALPHA && spec->alpha <= MAX_ALPHA))
        return ct_fail(CT_INVAL, "dirichlet: alpha %g must be between %g and %g", spec->alpha,
                       MIN_ALPHA, MAX_ALPHA);
    size_t n_classes = (size_t)samples->n_classes;
    CT_SCOPED(group) g = {0};
    CT_TRY(ct_make(&g.by_class, samples->n, "a split of the samples"));
    CT_TRY(ct_make(&g.class_begin, n_classes + 1, "a split of the samples"));
    CT_TRY(ct_make(&g.share, GROUP_AGENTS * n_classes, "a split of the samples"));
    ct_partition_shuffle(spec->seed, out->index, samples->n);
    CT_TRY(split_groups(spec, samples, &g, out->index));
    ct_partition_cut(samples->n / (size_t)spec->n_agents, out);
    return CT_OK;
}
