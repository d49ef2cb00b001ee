/* NumPy arrays: the same bytes as images and as labels. */
#include "data/dataset_internal.h"

#include <string.h>

#include "data/dataset_internal.h"
#include "fuzz.h"
#include "util/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    ct_images images = {0};
    ct_blob blob = {.bytes = ct_alloc(n + 1, 1), .n = n};
    if (blob.bytes == NULL) return 0;
    if (n > 0) memcpy(blob.bytes, data, n);
    fuzz_n_accepted += ct_npy_images("fuzz", &blob, &images) == CT_OK;
    ct_images_free(&images);
    if (n > 0) memcpy(blob.bytes, data, n);
    images = (ct_images){.n = n % 8, .labels = ct_new(int32_t, 8)};
    if (images.labels != NULL) ct_npy_labels("fuzz", &blob, &images);
    ct_images_free(&images);
    ct_blob_free(&blob);
    return 0;
}
