/* Bundles of runs: their list, and every run in them. */
#include "record/bundle.h"
#include "record/record.h"
#include "util/memory.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    CT_SCOPED(ct_name_list) runs = {0};
    const char *path = fuzz_file("bundle", data, n);
    bool is_bundle;
    if (ct_bundle_is(path, &is_bundle) != CT_OK || !is_bundle) return 0;
    if (ct_record_find(path, &runs) != CT_OK) return 0;
    for (int k = 0; k < runs.n; k++) {
        CT_SCOPED_BY(ct_record_unload, ct_record) run = {0};
        (void)ct_record_load(runs.name[k], CT_READ_ALL, &run);
    }
    fuzz_n_accepted++;
    return 0;
}
