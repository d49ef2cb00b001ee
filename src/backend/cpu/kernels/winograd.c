/* Winograd's convolutions of 3x3: those of a stride and a size of tiles. */
#include "backend/cpu/kernels/winograd_internal.h"

const ct_winograd *KERNEL(winograd)(int stride, int tile) {
    if (stride == 2) return &KERNEL(winograd_stride2);
    return tile == 8 ? &KERNEL(winograd_tile8) : &KERNEL(winograd_tile4);
}
