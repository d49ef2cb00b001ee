/* Square cuts of pictures: torchvision's CenterCrop and RandomResizedCrop with
 * RandomHorizontalFlip, to planar 8-bit images. */
#ifndef CT_DATA_CUT_H
#define CT_DATA_CUT_H

#include "data/decode.h"
#include "data/resize.h"
#include "util/rng.h"
#include "util/status.h"

/* The rectangle at (x, y), made size x size pixels and then mirrored if flip. It may reach beyond
 * the picture, where it is black. */
typedef struct ct_cut {
    int x, y, width, height;
    bool flip;
} ct_cut;

/* The middle size x size pixels. */
ct_cut ct_cut_center(int width, int height, int size);

/* A rectangle of 8 to 100 % of the area and an aspect ratio of 3/4 to 4/3 (uniform in its
 * logarithm), tried ten times, else the largest in the middle; mirrored every other time. */
ct_cut ct_cut_random(ct_rng *rng, int width, int height);

/* The workspace of one thread; zeroed to begin with. */
typedef struct ct_cutter {
    ct_resizer resizer;
    uint8_t *square, *row;
    size_t capacity, capacity_row;
} ct_cutter;

/* out: [3][size][size] */
ct_status ct_cut_out(ct_cutter *cutter, const ct_picture *picture, const ct_cut *cut, int size,
                     uint8_t *out);
void ct_cutter_free(ct_cutter *cutter);

#endif
