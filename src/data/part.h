/* Parts of data sets: the training samples of some agents, with the numbers they have in the whole
 * set (which partition files and random draws go by), and the whole test part. A process of a
 * spread run holds its own agents' part and may read it from a file that has nothing else. */
#ifndef CT_DATA_PART_H
#define CT_DATA_PART_H

#include "data/dataset.h"

/* Training samples of the whole set, and the number that sample i has among them. */
static inline size_t ct_dataset_n_whole(const ct_dataset *d) {
    return d->train_numbers != NULL ? d->n_whole : d->train.n;
}
static inline uint32_t ct_dataset_number(const ct_dataset *d, size_t i) {
    return d->train_numbers != NULL ? d->train_numbers[i] : (uint32_t)i;
}

/* Leaves only the training samples with keep[i], in order; the memory of the others is given back.
 */
ct_status ct_dataset_keep(ct_dataset *dataset, const bool *keep);

/* CT_INVAL: a part already, or a folder of pictures, which must be imported first. */
ct_status ct_part_check(const ct_dataset *dataset);
/* Writes the training samples with keep[i] and the test part, whole or not at all: of a set in
 * memory a .ctpart file, of packed pictures (opened to be streamed, so that none is left out)
 * another such pack. `options` are those that it was opened with. */
ct_status ct_part_write(const ct_dataset *dataset, const ct_dataset_options *options,
                        const bool *keep, const char *path);

/* Begins with the magic of a .ctpart file. */
bool ct_part_looks_right(const char *path);
/* The name of the set it is a part of: room for 64 characters. CT_IO: damaged. */
ct_status ct_part_name(const char *path, char *name);
/* Opened in place of the set: `name` must be that set's. */
ct_status ct_part_open(const char *path, const char *name, const ct_dataset_options *options,
                       ct_dataset *out);

#endif
