/* Packed rows, as a neighbour may send them: a byte says of which compressor, the others are the row, cut
 * or filled up with zeros to its size. What is taken for one has finite numbers. */
#include "compress/compress.h"
#include "util/memory.h"

#include "fuzz.h"

enum { N_VALUES = 40, N_CLASSES = 4 };

static const char *const hows[] = {"top-k:0.1",  "random-k:0.1", "quantize:8",
                                   "quantize:4", "quantize:2",   "sign",
                                   "low-rank:2", "quantize:3",   "top-k8:0.1"};
enum { N_HOWS = sizeof hows / sizeof *hows };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    const ct_compress_key key = {{1, 2}, 3, 4, 5};
    ct_compressor how;
    if (n < 1) return 0;
    if (data[0] % (N_HOWS + 1) == N_HOWS)
        ct_compressor_sums(N_CLASSES, N_VALUES / N_CLASSES, &how);
    else if (ct_compressor_parse(hows[data[0] % (N_HOWS + 1)], N_VALUES, &how) != CT_OK)
        abort();
    /* alone in their blocks, so that a sanitizer sees every byte beside them */
    uint8_t *packed = calloc(how.n_bytes, 1);
    float *values = calloc(N_VALUES, sizeof *values);
    if (packed == NULL || values == NULL) abort();
    memcpy(packed, data + 1, n - 1 < how.n_bytes ? n - 1 : how.n_bytes);
    bool is_row = how.kind->decode(&how, &key, packed, values);
    for (int k = 0; k < N_VALUES && is_row; k++)
        if (!(values[k] - values[k] == 0)) abort(); /* not finite */
    fuzz_n_accepted += is_row;
    free(packed);
    free(values);
    return 0;
}
