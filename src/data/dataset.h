/* Labelled images as stored (uint8), with what it takes to turn them into tensors. Small sets lie
 * in memory; pictures that are too many, or are cut out anew at every visit, are served by a
 * loader. A data set is one file and one line in dataset_list.h. */
#ifndef CT_DATA_DATASET_H
#define CT_DATA_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/status.h"

#define CT_MAX_CHANNELS 16
#define CT_MAX_CLASSES  65536

typedef struct ct_pictures ct_pictures; /* data/pictures.h */

/* One part (train or test) of a data set. */
typedef struct ct_images {
    size_t n;
    int channels, height, width;
    uint8_t *pixels; /* [n][channels][height][width]; NULL: a loader makes them (loader.h) */
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
    /* what a loader makes the pixels of a part from; NULL: they are in memory already */
    ct_pictures *train_pictures, *test_pictures;
    size_t n_left_out; /* pictures that could not be read */
    char *class_names; /* n_classes strings one after the other, each with its 0; NULL: unknown */
    /* of a part (part.h): the numbers of its training samples among the n_whole of the whole set,
     * ascending; NULL: this is all of it */
    uint32_t *train_numbers;
    size_t n_whole;
} ct_dataset;

typedef struct ct_dataset_options {
    const char *dir; /* NULL: where the system keeps this set, if it does */
    uint64_t seed;   /* for made-up sets */
    size_t n_train;  /* of made-up sets and folders of pictures; 0 = all there are */
    size_t n_test;
    bool coarse_labels;   /* cifar100: the 20 coarse classes */
    double test_fraction; /* of sets without a test part: this share of every class is held out */
    int image_size;       /* pixels a side of pictures; 0 = the set's own */
    bool augment;         /* pictures are cut out at random in training */
    bool strict;          /* a picture that cannot be read is an error, not left out */
    bool list_all;        /* name every picture that cannot be read, not only the first ones */
    int n_workers;        /* threads that decode; 0 = one per processor */
    size_t memory_bytes;  /* pictures that need more are streamed; 0 = 1 GiB */
    const char *cache;    /* directory for decoded pictures; NULL: none */
} ct_dataset_options;

/* Lying in `options->dir`, as far as names and the first bytes tell; CT_IO if nothing known does.
 */
ct_status ct_dataset_recognise(const ct_dataset_options *options, const char **name);

/* "auto": what ct_dataset_recognise says. Unknown name: CT_INVAL with the known ones. Missing,
 * truncated, empty or corrupt files, labels out of range: CT_IO naming the file and what is wrong.
 */
ct_status ct_dataset_open(const char *name, const ct_dataset_options *options, ct_dataset *out);
void ct_dataset_free(ct_dataset *dataset);

/* Name of a class, or "" if it has none. */
const char *ct_dataset_class_name(const ct_dataset *dataset, int label);

void ct_dataset_each(void (*each)(void *context, const char *name, const char *text),
                     void *context);

#endif
