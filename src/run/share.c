/* What a rank keeps of the training data: its own agents' samples and no others, whether it has
 * read them from the whole set or from a part that holds nothing else. Samples keep their numbers
 * in the whole set, by which everything about them is drawn, so that a run has the same bits
 * wherever they lie. Samples in a program's own memory stay there, all of them. */
#include <string.h>

#include "data/part.h"
#include "run/run.h"
#include "util/memory.h"

#define ELSEWHERE UINT32_MAX

/* place[number] = where the sample lies in run->dataset.train, or ELSEWHERE. */
static void find_places(const ct_dataset *d, uint32_t *place) {
    size_t n = ct_dataset_n_whole(d);
    for (size_t k = 0; k < n; k++) place[k] = ELSEWHERE;
    for (size_t i = 0; i < d->train.n; i++) place[ct_dataset_number(d, i)] = (uint32_t)i;
}

/* The list of a row: its world's, of the agent that it is. */
static const uint32_t *samples_of(const ct_run *run, int row, size_t *n) {
    int n_agents = (int)run->config.agents, agent = row % n_agents;
    const ct_partition *p = &run->worlds[row / n_agents].partition;
    *n = ct_partition_size(p, agent);
    return p->index + p->begin[agent];
}

/* Everything that the row needs is there. */
static ct_status check_row(const ct_run *run, int row, const uint32_t *place) {
    size_t n, n_missing = 0, first = 0;
    const uint32_t *samples = samples_of(run, row, &n);
    for (size_t k = 0; k < n; k++) {
        if (place[samples[k]] != ELSEWHERE) continue;
        if (n_missing++ == 0) first = samples[k];
    }
    if (n_missing == 0) return CT_OK;
    return ct_fail(CT_IO,
                   "%s has not all samples of agent %d: %zu of %zu are missing, sample %zu first; "
                   "split the data for these agents and ranks (crosstalk help data)",
                   run->dataset.source, row % (int)run->config.agents, n_missing, n, first);
}

/* Drops what other ranks' agents train on. */
static ct_status keep_own(ct_run *run, const uint32_t *place) {
    ct_span own = ct_transport_own(run->transport);
    bool *keep = ct_new(bool, run->dataset.train.n);
    if (keep == NULL) return ct_fail(CT_NOMEM, "no memory for a list of samples");
    for (int row = own.first; row < own.first + own.n; row++) {
        size_t n;
        const uint32_t *samples = samples_of(run, row, &n);
        for (size_t k = 0; k < n; k++) keep[place[samples[k]]] = true;
    }
    ct_status status = ct_dataset_keep(&run->dataset, keep);
    ct_free(keep);
    return status;
}

/* Own rows' lists in run->partition become places; nobody asks for the others'. */
static void localise(ct_run *run, const uint32_t *place) {
    ct_span own = ct_transport_own(run->transport);
    ct_partition *all = &run->partition;
    for (int row = 0; row < all->n_agents; row++) {
        bool is_own = row >= own.first && row < own.first + own.n;
        for (size_t k = all->begin[row]; k < all->begin[row + 1]; k++)
            all->index[k] = is_own ? place[all->index[k]] : ELSEWHERE;
    }
}

ct_status ct_run_share_data(ct_run *run) {
    ct_span own = ct_transport_own(run->transport);
    uint32_t *place = ct_new(uint32_t, ct_dataset_n_whole(&run->dataset));
    if (place == NULL) return ct_fail(CT_NOMEM, "no memory for a list of samples");
    find_places(&run->dataset, place);
    ct_status status = CT_OK;
    for (int row = own.first; row < own.first + own.n && status == CT_OK; row++)
        status = check_row(run, row, place);
    bool is_alone = ct_transport_n_ranks(run->transport) == 1;
    bool is_all_own = is_alone && run->dataset.train_numbers == NULL;
    if (status == CT_OK && !is_all_own && !run->dataset.train.is_lent) {
        status = keep_own(run, place);
        if (status == CT_OK) find_places(&run->dataset, place);
        if (status == CT_OK) localise(run, place);
    }
    ct_free(place);
    return status;
}

static void count_row(const ct_run *run, int row, uint32_t *counts) {
    const ct_partition *p = &run->partition;
    for (size_t k = p->begin[row]; k < p->begin[row + 1]; k++)
        counts[run->dataset.train.labels[p->index[k]]]++;
}

ct_status ct_run_measure_split(ct_run *run) {
    ct_span own = ct_transport_own(run->transport);
    size_t width = (size_t)run->dataset.n_classes, n_agents = (size_t)run->config.agents;
    CT_SCOPED_BLOCK(uint32_t) mine = NULL;
    CT_SCOPED_BLOCK(uint32_t) all = NULL;
    CT_TRY(ct_make(&mine, (size_t)own.n * width, "the agents' classes"));
    CT_TRY(ct_make(&all, n_agents * (size_t)run->n_worlds * width, "the agents' classes"));
    for (int i = 0; i < own.n; i++) count_row(run, own.first + i, mine + (size_t)i * width);
    CT_TRY(ct_transport_gather(run->transport, mine, width * sizeof *mine, all));
    for (int k = 0; k < run->n_worlds; k++)
        CT_TRY(ct_partition_describe(&run->worlds[k].partition, all + (size_t)k * n_agents * width,
                                     (int)width, &run->worlds[k].partition_facts));
    if (ct_run_leads(run)) run->class_counts = ct_take(&all);
    return CT_OK;
}
