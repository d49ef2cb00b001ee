/* CIFAR-100 (Krizhevsky, 2009), binary version: 50,000 + 10,000 images with a coarse and a fine
 * label each, of which the fine one counts unless asked otherwise. */
#include "data/cifar_internal.h"

#include "data/dataset_internal.h"

static const ct_cifar_layout layout = {
    .archive = "cifar-100-binary.tar.gz",
    .subdir = "cifar-100-binary",
    .names = "fine_label_names.txt",
    .train = {"train.bin"},
    .test = "test.bin",
    .n_label_bytes = 2,
    .label_byte = 1,
    .n_classes = 100,
    .mean = {0.5071f, 0.4867f, 0.4408f},
    .std = {0.2675f, 0.2565f, 0.2761f},
};

ct_status ct_dataset_open_cifar100(const ct_dataset_options *options, ct_dataset *out) {
    ct_cifar_layout coarse = layout;
    coarse.names = "coarse_label_names.txt";
    coarse.label_byte = 0;
    coarse.n_classes = 20;
    return ct_cifar_open(options->coarse_labels ? &coarse : &layout, options, out);
}

bool ct_dataset_probe_cifar100(const char *dir) {
    return ct_cifar_probe(&layout, dir);
}
