/* mini-ImageNet (Vinyals et al., 2016) shrunk to 32 pixels and kept in the layout of CIFAR-100, for
 * which it stands in: same mean and deviation, so that the same runs apply. */
#include "data/cifar_internal.h"

#include "data/dataset_internal.h"

static const ct_cifar_layout layout = {
    .subdir = "miniimagenet-32",
    .train = {"train.bin"},
    .test = "test.bin",
    .n_label_bytes = 2,
    .label_byte = 1,
    .n_classes = 100,
    .mean = {0.5071f, 0.4867f, 0.4408f},
    .std = {0.2675f, 0.2565f, 0.2761f},
};

ct_status ct_dataset_open_miniimagenet(const ct_dataset_options *options, ct_dataset *out) {
    return ct_cifar_open(&layout, options, out);
}

/* Named like CIFAR-100's: the folder's name or its list of labels tells. */
bool ct_dataset_probe_miniimagenet(const char *dir) {
    return ct_cifar_probe(&layout, dir) &&
           (ct_path_suggests(dir, "miniimagenet") || ct_data_has(dir, "miniimagenet-32"));
}
