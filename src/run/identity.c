/* Who computes, and on what: filled in as it becomes known, and compared by the ranks before they
 * train together. Two that disagree would train on silently, hang, or write past each other's rows. */
#include <string.h>

#include "data/part.h"
#include "run/run.h"
#include "util/file.h"
#include "util/hash.h"
#include "util/memory.h"
#include "util/version.h"

static uint64_t add_matrix(uint64_t sum, const ct_sparse *w) {
    size_t n = (size_t)w->begin[w->n_rows];
    sum = ct_checksum(sum, w->begin, ((size_t)w->n_rows + 1) * sizeof *w->begin);
    sum = ct_checksum(sum, w->column, n * sizeof *w->column);
    return ct_checksum(sum, w->value, n * sizeof *w->value);
}

/* Links and weights; of a graph that changes, those of every step. */
static uint64_t graph_sum(const ct_run *run) {
    const ct_topology *t = &run->topology;
    uint64_t sum = ct_checksum(CT_HASH_START, t->begin, ((size_t)t->n + 1) * sizeof *t->begin);
    sum = ct_checksum(sum, t->neighbour, (size_t)t->begin[t->n] * sizeof *t->neighbour);
    for (int k = 0; k < run->schedule.period; k++)
        sum = add_matrix(sum, &run->schedule.phases[k].w);
    return add_matrix(sum, &run->w);
}

static uint64_t split_sum(const ct_run *run) {
    uint64_t sum = CT_HASH_START;
    for (int k = 0; k < run->n_worlds; k++)
        sum = ct_hash_number(sum, ct_partition_hash(&run->worlds[k].partition));
    return sum;
}

static ct_status init_sum(const char *path, uint64_t *out) {
    CT_SCOPED(ct_blob) file = {0};
    *out = 0;
    if (path[0] == '\0') return CT_OK;
    CT_TRY(ct_file_read(path, SIZE_MAX / 4, &file));
    *out = ct_checksum_wide(CT_HASH_START, file.bytes, file.n);
    return CT_OK;
}

ct_status ct_run_meet(ct_run *run, ct_text *out) {
    uint64_t init = 0;
    ct_identity *id = &run->identity;
    CT_TRY(init_sum(run->config.init, &init));
    ct_identity_set(id, CT_ID_version, CT_VERSION);
    ct_identity_set(id, CT_ID_commit, ct_commit);
    /* the first difference is the one that is told: another program may have other options, and
     * another option makes another graph */
    ct_identity_print(id, out);
    ct_text_add(out, ", ");
    ct_config_print_shared(&run->config, out);
    ct_identity files = {0};
    ct_identity_set_sum(&files, CT_ID_graph, graph_sum(run));
    ct_identity_set_sum(&files, CT_ID_init, init);
    ct_text_add(out, ", ");
    ct_identity_print(&files, out);
    memcpy(id->value[CT_ID_graph], files.value[CT_ID_graph], sizeof files.value[CT_ID_graph]);
    memcpy(id->value[CT_ID_init], files.value[CT_ID_init], sizeof files.value[CT_ID_init]);
    return ct_text_status(out);
}

ct_status ct_run_agree_data(ct_run *run) {
    CT_SCOPED(ct_text) text = {0};
    ct_identity mine = {0}, *id = &run->identity;
    ct_error error;
    if (run->dataset.train_numbers == NULL)
        ct_identity_set_sum(&mine, CT_ID_data, ct_dataset_fingerprint(&run->dataset));
    ct_identity_set_sum(&mine, CT_ID_test, ct_dataset_test_sum(&run->dataset));
    memcpy(id->value[CT_ID_data], mine.value[CT_ID_data], sizeof mine.value[CT_ID_data]);
    memcpy(id->value[CT_ID_test], mine.value[CT_ID_test], sizeof mine.value[CT_ID_test]);
    ct_identity_print(&mine, &text);
    CT_TRY(ct_text_status(&text));
    ct_status status = CT_CATCH(&error, ct_transport_agree(run->transport, &text));
    if (status != CT_INVAL) return status == CT_OK ? CT_OK : ct_fail_again(&error);
    return ct_fail(CT_INVAL, "%s; if every agent has a data set of its own, take @partition own",
                   error.text);
}

ct_status ct_run_agree(ct_run *run) {
    CT_SCOPED(ct_text) text = {0};
    ct_identity *id = &run->identity;
    ct_identity_set(id, CT_ID_device, run->backend->ops->name);
    ct_identity_set(id, CT_ID_instructions, run->backend->instructions);
    ct_identity_set(id, CT_ID_precision, ct_precision_name(run->backend->precision));
    ct_identity_set_sum(id, CT_ID_split, split_sum(run));
    ct_identity_print(id, &text);
    CT_TRY(ct_text_status(&text));
    return ct_transport_agree(run->transport, &text);
}

/* Numbers, labels and pixels of an agent's samples in the order of its list: the same on any number
 * of ranks, whether they have all of the data or parts. Pictures that are decoded from files have
 * no pixels to count on; their files are in the data's fingerprint, and an agent's own data has one. */
static uint64_t agent_sum(const ct_run *run, int row) {
    const ct_partition *p = &run->partition;
    const ct_images *train = &run->dataset.train;
    bool has_pixels = ct_image_at(train, 0) != NULL && run->dataset.content == 0;
    uint64_t sum = CT_HASH_START;
    if (run->is_own) sum = ct_hash_number(sum, run->parts[ct_run_part_of(run, row)].sum);
    for (size_t k = p->begin[row]; k < p->begin[row + 1]; k++) {
        size_t place = p->index[k];
        sum = ct_hash_step(sum, ct_dataset_number(&run->dataset, place));
        sum = ct_hash_step(sum, (uint64_t)train->labels[place]);
        if (has_pixels)
            sum = ct_checksum_wide(sum, ct_image_at(train, place), ct_image_bytes(train));
    }
    return sum;
}

ct_status ct_run_sum_agents(ct_run *run) {
    ct_span own = ct_transport_own(run->transport);
    CT_TRY(ct_make(&run->agent_sums, (size_t)own.n, "checksums of the agents' samples"));
    for (int i = 0; i < own.n; i++) run->agent_sums[i] = agent_sum(run, own.first + i);
    return CT_OK;
}
