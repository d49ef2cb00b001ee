/* Arrays of NumPy from files already in memory (which are changed in parsing). */
#ifndef CT_DATA_NPY_INTERNAL_H
#define CT_DATA_NPY_INTERNAL_H

#include "data/dataset.h"
#include "util/file.h"

ct_status ct_npy_images(const char *path, ct_blob *file, ct_images *out);
/* Labels of images that are there already. */
ct_status ct_npy_labels(const char *path, ct_blob *file, ct_images *images);

#endif
