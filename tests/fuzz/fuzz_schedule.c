/* Schedules: every step of one that is made is sound. */
#include "topology/schedule.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const uint64_t seed = 1;
    char spec[200];
    ct_schedule schedule = {0};
    ct_topology graph = {0};
    ct_sparse w = {0};
    snprintf(spec, sizeof spec, "schedule:%s", fuzz_file("steps.txt", data, n));
    if (ct_schedule_create(spec, 5, &seed, 1, &schedule) != CT_OK) return 0;
    for (int k = 0; k < schedule.period; k++) {
        bool is_balanced;
        if (ct_phase_check(ct_schedule_at(&schedule, k), &is_balanced) != CT_OK) abort();
    }
    if (ct_schedule_union(&schedule, 0, &graph, &w) != CT_OK) abort();
    ct_topology_free(&graph);
    ct_sparse_free(&w);
    ct_schedule_free(&schedule);
    fuzz_n_accepted++;
    return 0;
}
