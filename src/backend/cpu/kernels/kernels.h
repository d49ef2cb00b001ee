/* The kernels of the cpu backend. The files of this folder are compiled once per instruction set,
 * with CT_ISA naming it (avx512, avx2, neon, portable); KERNEL(name) is the name of a function in the set
 * being compiled. The rest of the backend calls kernels through a ct_kernels table. */
#ifndef CT_BACKEND_CPU_KERNELS_KERNELS_H
#define CT_BACKEND_CPU_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CT_LANES 16 /* samples of a block: the innermost axis of every activation */

/* One group of a convolution. Output (i, j) reads rows i * stride - pad_y + u and columns
 * j * stride - pad_x + v of the input; rows outside it are skipped, columns outside it must be
 * there as zeros: x points at column -pad_x of row 0. */
typedef struct ct_conv_geometry {
    int c_in, c_out;         /* channels of the group */
    int kh, kw;              /* taps */
    int stride;              /* input pixels from output to output */
    int pad_y, pad_x;        /* zeros above and to the left */
    int h_in, w_in;          /* input pixels, without zeros */
    int h_out, w_out;        /* output pixels */
    size_t x_channel, x_row; /* floats from plane to plane and from row to row of the input */
    size_t y_channel, y_row, y_pixel; /* and of the output */
} ct_conv_geometry;

/* Output channels of a tile of packed weights: what divides c_out, else `most`, which fits the
 * registers. */
static inline int ct_conv_tile(int c_out, int most) {
    return c_out % most == 0 || c_out % 4 != 0 ? most : 4;
}

enum { CT_RELU = 1, CT_ACCUMULATE = 2 };

/* A 3x3 convolution, border 1, of pictures of h x w pixels; stride 2: c_in and c_out multiples of
 * 4. */
typedef struct ct_winograd_geometry {
    int c_in, c_out, h, w, n_blocks;
} ct_winograd_geometry;

/* Winograd's method for such convolutions with one stride and size of tiles: blocks of
 * x [c_in][h][w][16] -> y [c_out][h][w][16], stride 2: y [c_out][(h+1)/2][(w+1)/2][16]. */
typedef struct ct_winograd {
    size_t (*scratch)(const ct_winograd_geometry *g);      /* floats */
    size_t (*weights_size)(const ct_winograd_geometry *g); /* floats */
    /* u of w [c_out][c_in][3][3]; flip: of the data gradient's convolution, where w is
     * [c_in][c_out][3][3] (c_in, c_out: those of the resulting convolution) */
    void (*weights)(const ct_winograd_geometry *g, const float *w, bool flip, float *u);
    void (*conv)(const ct_winograd_geometry *g, const float *x, const float *u, float *y,
                 float *scratch);
    /* dw [c_out][c_in][3][3], and dx [c_in][h][w][16] unless it is NULL (accumulate: added to it);
     * u is flipped, of c_out channels to c_in. */
    void (*backward)(const ct_winograd_geometry *g, const float *x, const float *dy, const float *u,
                     float *dx, bool accumulate, float *dw, float *scratch);
} ct_winograd;

/* A 5x5 convolution, stride 1; h + 2 pad and w + 2 pad even. */
typedef struct ct_conv5_geometry {
    int c_in, c_out, h, w, pad;
} ct_conv5_geometry;

/* Depthwise 3x3, pad 1, stride 1 or 2. */
typedef struct ct_depthwise_geometry {
    int c, h, w, h_out, w_out, stride;
    int first; /* the first channel's number in the norm that is applied to the input */
} ct_depthwise_geometry;

/* A product of weights w(o, i) = w[o * out_step + i * in_step] with columns of vectors; one of the
 * steps is 1. A linear layer's columns are blocks, a 1x1 convolution's are pixels. */
typedef struct ct_linear_geometry {
    int n_out, n_in;
    size_t out_step, in_step;
    int n_columns;
    size_t x_row, x_column; /* floats from input to input and from column to column */
    size_t y_row, y_column;
    /* What is read after the product and may be far away: a pixel of ahead_pixels in each of
     * ahead_rows rows, `ahead_row` floats apart, is a cache line. NULL: nothing. */
    const float *ahead;
    size_t ahead_row;
    int ahead_rows, ahead_pixels;
} ct_linear_geometry;

typedef struct ct_padding {
    int before_x, after_x;
} ct_padding;

typedef struct ct_pool_geometry {
    int c, h, w, h_out, w_out, kernel, stride, pad;
} ct_pool_geometry;

typedef enum ct_norm_kind {
    CT_EVONORM_HARD,
    CT_EVONORM_S0,
    CT_GROUPNORM,
    CT_BATCHNORM
} ct_norm_kind;

/* A norm of n samples: blocks of [c][n_pixels][16]. */
typedef struct ct_norm_args {
    ct_norm_kind kind;
    int n, c, groups;
    size_t n_pixels;
    float epsilon;
    const float *w, *b, *v; /* [c]; v: of CT_EVONORM_S0 */
    float *dw, *db, *dv;    /* gradients, which are added to */
} ct_norm_args;

typedef struct ct_kernels {
    const char *isa;
#define KERNEL_FN(result, name, arguments) result(*name) arguments;
#include "backend/cpu/kernels/kernel_list.h"
#undef KERNEL_FN
} ct_kernels;

extern const ct_kernels ct_kernels_avx512, ct_kernels_avx2, ct_kernels_neon, ct_kernels_portable;

#ifdef CT_ISA
#define CT_KERNEL_NAME_(name, isa) ct_##name##_##isa
#define CT_KERNEL_NAME(name, isa)  CT_KERNEL_NAME_(name, isa)
#define KERNEL(name)               CT_KERNEL_NAME(name, CT_ISA)

#define KERNEL_FN(result, name, arguments) result KERNEL(name) arguments;
#include "backend/cpu/kernels/kernel_list.h"
#undef KERNEL_FN
#endif

#endif
