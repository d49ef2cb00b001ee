/* Model files. */
#include "util/safetensors.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    ct_tensors tensors = {0};
    double sum = 0;
    if (ct_tensors_read(fuzz_file("x.safetensors", data, n), &tensors) != CT_OK) return 0;
    for (size_t i = 0; i < tensors.n; i++) {
        if (ct_tensors_find(&tensors, tensors.items[i].name) != &tensors.items[i]) abort();
        for (size_t k = 0; k < tensors.items[i].count; k++)
            sum += (double)tensors.items[i].values[k];
    }
    fuzz_n_accepted += sum == sum || sum != sum;
    ct_tensors_free(&tensors);
    return 0;
}

/* The header's length, where half of the inputs still have a header. */
void fuzz_repair(uint8_t *data, size_t n) {
    size_t end = n < 4096 ? n : 4096;
    if (n < 16 || data[n - 1] % 2 == 0) return;
    while (end > 8 && !(data[end - 1] == '}' && data[end - 2] == '}')) end--;
    if (end > 8) memcpy(data, &(uint64_t){end - 8}, 8);
}
