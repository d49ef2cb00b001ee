/* Partition files. */
#include "data/partition.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    ct_partition p = {0};
    if (ct_partition_read(fuzz_file("x.csv", data, n), 3, 40, &p) == CT_OK) {
        for (size_t i = 0; i < p.begin[3]; i++)
            if (p.index[i] >= 40) abort();
        fuzz_n_accepted++;
        ct_partition_free(&p);
    }
    return 0;
}
