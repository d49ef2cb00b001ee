/* A random split into equal parts of floor(N / n); the rest is left out. */
#include "data/partition_internal.h"

ct_status ct_partition_make_iid(const ct_partition_spec *spec, const ct_labelled *samples,
                                ct_partition *out) {
    ct_partition_shuffle(spec->seed, out->index, samples->n);
    ct_partition_cut(samples->n / (size_t)spec->n_agents, out);
    return CT_OK;
}
