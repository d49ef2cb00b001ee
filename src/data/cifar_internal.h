/* Data sets in CIFAR's binary layout: records of label byte(s), then 32x32 R, G and B planes. */
#ifndef CT_DATA_CIFAR_INTERNAL_H
#define CT_DATA_CIFAR_INTERNAL_H

#include "data/dataset.h"

#define CT_CIFAR_MAX_FILES 5

typedef struct ct_cifar_layout {
    const char *archive; /* the official .tar.gz: DIR with it, or its path itself, works too */
    const char *subdir;  /* where the archive unpacks to: DIR/subdir works as DIR */
    const char *names;   /* text file of class names beside the data; NULL: none */
    const char *train[CT_CIFAR_MAX_FILES]; /* file names; NULL after the last */
    const char *test;
    int n_label_bytes; /* 1, or 2: coarse then fine */
    int label_byte;    /* which of them is the label */
    int n_classes;
    float mean[3], std[3];
} ct_cifar_layout;

/* The layout's files lie in `dir`, or its archive, or dir is the archive. */
bool ct_cifar_probe(const ct_cifar_layout *layout, const char *dir);

/* Everything but the name. Augmentation: crops after a border of 4 pixels, and flips. */
ct_status ct_cifar_open(const ct_cifar_layout *layout, const ct_dataset_options *options,
                        ct_dataset *out);

#endif
