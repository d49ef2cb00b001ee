/* CIFAR's binary files, as CIFAR-100's: the bytes are both parts. */
#include "data/dataset.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    ct_dataset d = {0};
    fuzz_file("train.bin", data, n);
    fuzz_file("test.bin", data, n);
    fuzz_file("fine_label_names.txt", data, n < 2000 ? n : 2000);
    ct_dataset_options options = {.dir = fuzz_dir()};
    if (ct_dataset_open("cifar100", &options, &d) == CT_OK) {
        for (size_t i = 0; i < d.train.n; i++)
            if (d.train.labels[i] < 0 || d.train.labels[i] >= d.n_classes) abort();
        fuzz_n_accepted++;
        ct_dataset_free(&d);
    }
    return 0;
}
