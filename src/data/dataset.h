/* Labelled images in memory, as stored (uint8), with what it takes to turn them into tensors.
 * A data set is one file and one line in dataset_list.h. */
#ifndef CT_DATA_DATASET_H
#define CT_DATA_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/status.h"

#define CT_MAX_CHANNELS 16
#define CT_MAX_CLASSES  65536

/* One part (train or test) of a data set. */
typedef struct ct_images {
    size_t n;
    int channels, height, width;
    uint8_t *pixels; /* [n][channels][height][width] */
    int32_t *labels; /* [n] 0 .. n_classes-1 */
} ct_images;

typedef struct ct_dataset {
    char name[64];
    int n_classes;
    ct_images train, test;
    /* a tensor's value is (pixel / 255 - mean) / std per channel */
    float mean[CT_MAX_CHANNELS], std[CT_MAX_CHANNELS];
    /* training-time augmentation of this set; 0 = none */
    int crop_padding; /* black border before a random crop back to height x width */
    bool flip;        /* random horizontal flip */
    char source[512]; /* where it came from, for the log: a directory or "built in" */
} ct_dataset;

typedef struct ct_dataset_options {
    const char *dir; /* NULL: where the system keeps this set, if it does */
    uint64_t seed;   /* for made-up sets */
    size_t n_train;  /* for made-up sets; 0 = their own default */
    size_t n_test;
} ct_dataset_options;

/* Unknown name: CT_INVAL with the known ones. Missing, truncated, empty or corrupt files, labels
 * out of range: CT_IO naming the file and what is wrong. */
ct_status ct_dataset_open(const char *name, const ct_dataset_options *options, ct_dataset *out);
void ct_dataset_free(ct_dataset *dataset);

void ct_dataset_each(void (*each)(void *context, const char *name, const char *text),
                     void *context);

#endif
