/* MNIST (LeCun et al., 1998): 60,000 + 10,000 handwritten digits. The mean and deviation are those
 * of its training pixels, as everyone uses them. */
#include "data/dataset_internal.h"

#include "data/idx_internal.h"

ct_status ct_dataset_open_mnist(const ct_dataset_options *options, ct_dataset *out) {
    static const char hint[] = "give the directory of its four IDX files with @data-dir DIR";
    const char *dir;
    CT_TRY(ct_data_dir(out, options, NULL, hint, &dir));
    CT_TRY(ct_idx_open(dir, hint, 10, out));
    out->mean[0] = 0.1307f;
    out->std[0] = 0.3081f;
    return CT_OK;
}
