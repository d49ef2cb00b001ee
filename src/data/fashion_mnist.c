/* Fashion-MNIST (Xiao et al., arXiv:1708.07747): 60,000 + 10,000 grey images of clothing. */
#include "data/dataset_internal.h"

#include "data/idx_internal.h"

ct_status ct_dataset_open_fashion_mnist(const ct_dataset_options *options, ct_dataset *out) {
    static const char hint[] = "apt install dataset-fashion-mnist or --data-dir DIR";
    const char *dir;
    CT_TRY(ct_data_dir(out, options, "/usr/share/datasets/fashion-mnist", hint, &dir));
    CT_TRY(ct_idx_open(dir, hint, 10, out));
    out->mean[0] = 0.5f;
    out->std[0] = 0.5f;
    return CT_OK;
}

/* Its files are named like MNIST's: only the folder's name tells. */
bool ct_dataset_probe_fashion_mnist(const char *dir) {
    return ct_dataset_probe_idx(dir) && ct_path_suggests(dir, "fashion");
}
