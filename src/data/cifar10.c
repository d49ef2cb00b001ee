/* CIFAR-10 (Krizhevsky, 2009), binary version: 50,000 + 10,000 images. */
#include "data/cifar_internal.h"

#include "data/dataset_internal.h"

static const ct_cifar_layout layout = {
    .archive = "cifar-10-binary.tar.gz",
    .subdir = "cifar-10-batches-bin",
    .names = "batches.meta.txt",
    .train = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
              "data_batch_5.bin"},
    .test = "test_batch.bin",
    .n_label_bytes = 1,
    .label_byte = 0,
    .n_classes = 10,
    .mean = {0.4914f, 0.4822f, 0.4465f},
    .std = {0.2023f, 0.1994f, 0.2010f},
};

ct_status ct_dataset_open_cifar10(const ct_dataset_options *options, ct_dataset *out) {
    return ct_cifar_open(&layout, options, out);
}

bool ct_dataset_probe_cifar10(const char *dir) {
    return ct_cifar_probe(&layout, dir);
}
