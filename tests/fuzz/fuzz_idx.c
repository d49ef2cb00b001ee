/* IDX files: the bytes are the training images, or the labels if they say so; the rest of the set
 * is fine. */
#include "data/dataset.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 0, 1};
    static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 5, 6};
    ct_dataset d = {0};
    bool are_labels = n > 3 && data[3] == 1;
    fuzz_file("train-labels-idx1-ubyte", are_labels ? data : labels,
              are_labels ? n : sizeof labels);
    fuzz_file("t10k-labels-idx1-ubyte", labels, sizeof labels);
    fuzz_file("t10k-images-idx3-ubyte", images, sizeof images);
    fuzz_file("train-images-idx3-ubyte", are_labels ? images : data,
              are_labels ? sizeof images : n);
    ct_dataset_options options = {.dir = fuzz_dir()};
    fuzz_n_accepted += ct_dataset_open("idx", &options, &d) == CT_OK;
    ct_dataset_free(&d);
    return 0;
}
