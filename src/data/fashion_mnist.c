/* Fashion-MNIST (Xiao et al., arXiv:1708.07747): 60,000 + 10,000 grey images of clothing. */
#include "data/dataset_internal.h"

#include "data/idx_internal.h"
#include "util/memory.h"

ct_status ct_dataset_open_fashion_mnist(const ct_dataset_options *options, ct_dataset *out) {
    static const ct_idx_facts facts = {.hint = "apt install dataset-fashion-mnist or @data-dir DIR",
                                       .n_classes = 10,
                                       .mean = 0.5f,
                                       .std = 0.5f};
    static const char names[] = "t-shirt\0trouser\0pullover\0dress\0coat\0sandal\0shirt\0sneaker\0"
                                "bag\0ankle boot";
    CT_TRY(ct_idx_open(options, &facts, out));
    return ct_make_copy(&out->class_names, names, sizeof names, "the names of classes");
}

/* Its files are named like MNIST's: only the folder's name tells. */
bool ct_dataset_probe_fashion_mnist(const char *dir) {
    return ct_dataset_probe_idx(dir) && ct_path_suggests(dir, "fashion");
}
