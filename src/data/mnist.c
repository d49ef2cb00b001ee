/* MNIST (LeCun et al., 1998): 60,000 + 10,000 handwritten digits. The mean and deviation are those
 * of its training pixels, as everyone uses them. */
#include "data/dataset_internal.h"

#include "data/idx_internal.h"

ct_status ct_dataset_open_mnist(const ct_dataset_options *options, ct_dataset *out) {
    static const ct_idx_facts facts = {
        .hint = "give the directory of its four IDX files with @data-dir DIR",
        .n_classes = 10,
        .mean = 0.1307f,
        .std = 0.3081f};
    return ct_idx_open(options, &facts, out);
}
