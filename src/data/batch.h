/* A mini-batch by reference: which samples of a source, and how each is cut out. Pixels are read,
 * shifted, flipped and normalised by the backend, where the source lives. */
#ifndef CT_DATA_BATCH_H
#define CT_DATA_BATCH_H

#include <stdint.h>

/* The tensor's pixel (y, x) is the stored pixel (y + dy, x + dx), or black (0 before normalisation)
 * outside the picture; with flip, x runs from the right. */
typedef struct ct_crop {
    int8_t dy, dx;
    uint8_t flip;
    uint8_t reserved;
} ct_crop;

typedef struct ct_batch {
    int n;                 /* samples */
    const uint32_t *index; /* [n] */
    const ct_crop *crop;   /* [n], or NULL: as stored */
} ct_batch;

#endif
