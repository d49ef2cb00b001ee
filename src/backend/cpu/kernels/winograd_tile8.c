/* Winograd F(8x8, 3x3): 100 products for the 576 of 64 output pixels, 31 % fewer than 4x4 tiles
 * need. */
#define TILE 8
#include "backend/cpu/kernels/winograd_backward.h"

const ct_winograd KERNEL(winograd_tile8) = WINOGRAD_FORM;
