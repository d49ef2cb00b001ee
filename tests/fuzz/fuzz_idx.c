/* IDX files: the bytes are the training images, the rest of the set is fine. */
#include "data/dataset.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 0, 1};
    static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 5, 6};
    ct_dataset d = {0};
    fuzz_file("train-labels-idx1-ubyte", n % 3 == 0 ? data : labels,
              n % 3 == 0 ? n : sizeof labels);
    fuzz_file("t10k-labels-idx1-ubyte", labels, sizeof labels);
    fuzz_file("t10k-images-idx3-ubyte", images, sizeof images);
    fuzz_file("train-images-idx3-ubyte", n % 3 == 0 ? images : data,
              n % 3 == 0 ? sizeof images : n);
    ct_dataset_options options = {.dir = fuzz_dir()};
    if (ct_dataset_open("idx", &options, &d) == CT_OK) ct_dataset_free(&d);
    return 0;
}
