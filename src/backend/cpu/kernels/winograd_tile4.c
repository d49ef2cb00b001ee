/* Winograd F(4x4, 3x3): 36 products for the 144 of sixteen output pixels, any picture. */
#define TILE 4
#include "backend/cpu/kernels/winograd_backward.h"

const ct_winograd KERNEL(winograd_tile4) = WINOGRAD_FORM;
