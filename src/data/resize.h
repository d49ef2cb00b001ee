/* Antialiased bilinear resizing of 8-bit pictures, fed row by row, so that the memory needed is
 * that of the result and of a narrow middle picture, however wide the input is. Bit for bit what
 * Pillow's Image.resize(..., BILINEAR) gives, which is what torchvision uses. */
#ifndef CT_DATA_RESIZE_H
#define CT_DATA_RESIZE_H

#include "util/status.h"

/* A pixel is 4 bytes: R, G, B and one that means nothing. */
#define CT_PIXEL 4

/* How one output coordinate is made of input coordinates. */
typedef struct ct_axis {
    int n_in, n_out;
    int n_taps;        /* room for weights of one output; even */
    int *first, *n;    /* [n_out] inputs first .. first+n-1; one block */
    int32_t *weight;   /* [n_out][n_taps][CT_PIXEL] fixed point, 22 bits behind the point; once for
                          every byte of a pixel, and zero behind the last */
    size_t capacity_n; /* room in the arrays */
    size_t capacity_weight;
} ct_axis;

typedef struct ct_resizer {
    ct_axis x, y;
    uint8_t *middle; /* [in_height][out_width] pixels */
    int32_t *wide;   /* a row of the input, then one of the output, with a pixel to spare each */
    size_t capacity, capacity_wide;
} ct_resizer;

/* The input is in_width x in_height pixels, of which the first span_x x span_y (they may end within
 * a pixel) become out_width x out_height. */
ct_status ct_resizer_begin(ct_resizer *r, int in_width, int in_height, double span_x, double span_y,
                           int out_width, int out_height);
/* Row y of the input, in_width pixels. Every row must be given, in any order. */
void ct_resizer_row(ct_resizer *r, int y, const uint8_t *row);
/* out: [out_height][out_width] pixels. */
void ct_resizer_end(const ct_resizer *r, uint8_t *out);
void ct_resizer_free(ct_resizer *r);

#endif
