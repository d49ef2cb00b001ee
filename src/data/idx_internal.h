/* Data sets kept as four IDX files: {train,t10k}-images-idx3-ubyte and
 * {train,t10k}-labels-idx1-ubyte, each plain or with .gz. */
#ifndef CT_DATA_IDX_INTERNAL_H
#define CT_DATA_IDX_INTERNAL_H

#include "data/dataset.h"

typedef struct ct_idx_facts {
    const char *hint; /* how to get it */
    int n_classes;    /* 0: the largest label + 1 */
    float mean, std;
} ct_idx_facts;

ct_status ct_idx_open(const ct_dataset_options *options, const ct_idx_facts *facts,
                      ct_dataset *out);

#endif
