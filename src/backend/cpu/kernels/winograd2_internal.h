/* Winograd's method for 3x3 convolutions of stride 2 with a border of 1, the parts its files share.
 * Every other pixel is a picture of its own: output j reads taps 0 and 2 of the odd pixels 2j-1 and
 * 2j+1 and tap 1 of the even pixel 2j, and so on both axes. That is a convolution of stride 1 with
 * 2x2 taps over four pictures ("phases"), done by F(4x4,2x2): interpolation points 0, 1, -1, 2,
 * infinity, 25 frequencies xi = 5 * row + column.
 *
 *   B^T = 2 -1 -2  1  0    G = 1/2    0      A^T = 1  1  1  1  0
 *         0 -2 -1  1  0       -1/2  -1/2           0  1 -1  2  0
 *         0  2 -3  1  0       -1/6   1/6           0  1  1  4  0
 *         0 -1  0  1  0        1/6   1/3           0  1 -1  8  1
 *         0  2 -1 -2  1         0     1
 *
 * An even axis has one tap, its second one is 0: nothing is there at infinity, and four pixels
 * suffice. 25 + 2 * 20 + 16 = 81 products replace 144. The phases' order makes those that a
 * frequency needs neighbours. Data of one block of 16 samples: v [tiles/4][4 phases][c][25][4][16].
 */
#ifndef CT_BACKEND_CPU_KERNELS_WINOGRAD2_INTERNAL_H
#define CT_BACKEND_CPU_KERNELS_WINOGRAD2_INTERNAL_H

#include "backend/cpu/kernels/winograd_internal.h"

enum {
    N_XI2 = 25,
    N_POINTS = 5,
    INFINITE = 4,            /* the last point */
    STEP2 = N_XI2 * XI_STEP, /* floats from channel to channel */
    SPAN = 2 * TILE + 1,     /* pixels of x that a tile reads, in one direction */
};

/* Rows and columns, of one kind each. */
enum { ODD_EVEN, ODD_ODD, EVEN_ODD, EVEN_EVEN, N_PHASES };

INLINE bool has_odd_rows(int phase) {
    return phase <= ODD_ODD;
}
INLINE bool has_odd_columns(int phase) {
    return phase == ODD_ODD || phase == EVEN_ODD;
}
/* The first phase that has frequency xi, and how many have. */
INLINE int first_phase(int xi) {
    return xi % N_POINTS == INFINITE ? ODD_ODD : ODD_EVEN;
}
INLINE int n_phases(int xi) {
    const bool tall = xi / N_POINTS == INFINITE, wide = xi % N_POINTS == INFINITE;
    return tall && wide ? 1 : tall || wide ? 2 : N_PHASES;
}

/* A picture of h x w pixels and one of h_out x w_out, cut into tiles of 4x4 pixels of the latter.
 */
typedef struct ct_winograd2_plan {
    int c_in, c_out, h, w, h_out, w_out;
    int n_across, n_tiles, n_chunk;
    size_t v_group, m_group; /* floats from group to group: input side, output side */
} ct_winograd2_plan;

#endif
