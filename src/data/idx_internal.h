/* Data sets kept as four IDX files: {train,t10k}-images-idx3-ubyte and
 * {train,t10k}-labels-idx1-ubyte, each plain or with .gz. */
#ifndef CT_DATA_IDX_INTERNAL_H
#define CT_DATA_IDX_INTERNAL_H

#include "data/dataset.h"

/* Fills train, test, n_classes and source. n_classes 0: the largest label + 1, at least 2. */
ct_status ct_idx_open(const char *dir, const char *hint, int n_classes, ct_dataset *out);

#endif
