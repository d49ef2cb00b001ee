/* Fashion-MNIST (Xiao et al., arXiv:1708.07747): 60,000 + 10,000 grey images of clothing. */
#include "data/dataset_internal.h"

#include <string.h>

#include "data/idx_internal.h"
#include "util/memory.h"

ct_status ct_dataset_open_fashion_mnist(const ct_dataset_options *options, ct_dataset *out) {
    static const char hint[] = "apt install dataset-fashion-mnist or @data-dir DIR";
    static const char names[] = "t-shirt\0trouser\0pullover\0dress\0coat\0sandal\0shirt\0sneaker\0"
                                "bag\0ankle boot";
    const char *dir;
    CT_TRY(ct_data_dir(out, options, "/usr/share/datasets/fashion-mnist", hint, &dir));
    CT_TRY(ct_idx_open(dir, hint, 10, out));
    out->mean[0] = 0.5f;
    out->std[0] = 0.5f;
    out->class_names = ct_new(char, sizeof names);
    if (out->class_names == NULL) return ct_fail(CT_NOMEM, "no memory for the names of classes");
    memcpy(out->class_names, names, sizeof names);
    return CT_OK;
}

/* Its files are named like MNIST's: only the folder's name tells. */
bool ct_dataset_probe_fashion_mnist(const char *dir) {
    return ct_dataset_probe_idx(dir) && ct_path_suggests(dir, "fashion");
}
