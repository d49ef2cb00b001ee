/* What strided.cu, strided_back.cu and strided_wgrad.cu share: a residual block's first convolution
 * (3x3, two pixels apart) and its shortcut (1x1, the same), from C to 2 C channels, in bf16.
 * A block has 1 sample of 16 x 32 x 32 or 2 of 32 x 16 x 16. A tile of a product is 16 pixels of
 * one row of the smaller picture (a row, or the same row of two samples) and 16 channels. */
#ifndef CT_BACKEND_CUDA_RESNET20_STRIDED_CUH
#define CT_BACKEND_CUDA_RESNET20_STRIDED_CUH

#include "backend/cuda/resnet20/planes.cuh"
#include "backend/cuda/resnet20/resnet20.h"

enum { GROUPS = 8, THREADS = 256, WARPS = THREADS / 32 };

/* The larger picture lies in shared memory with its odd columns apart from its even ones, so that
 * what neighbouring outputs read are neighbours. Odd column 2 x + 1 is the plane's column x + 1,
 * for column 0 is the border of zeros. */
template <int CHANNELS> struct strided_shape {
    static constexpr int CI = CHANNELS, CO = 2 * CI, WI = 512 / CI, WO = WI / 2;
    static constexpr int SAMPLES = CI / 16, COLS = CO / 16;
    typedef planes<bf16, CI> X;
    typedef planes<bf16, CO> Y; /* of the smaller picture: its border and rows */
    static constexpr int EVEN = ((WO + 1) * X::PIXEL + 127) / 128 * 128;
    static constexpr int PITCH = EVEN + WO * X::PIXEL; /* a row */
    static constexpr int LINE = WI * X::UNITS;         /* units of a row */

    /* Bytes from the row's beginning of what output column x reads in column q of the taps. */
    static __device__ __forceinline__ uint32_t read_at(int x, int q, int unit) {
        return q == 1 ? EVEN + X::unit_at(x, unit) : X::unit_at(q == 0 ? x : x + 1, unit);
    }

    /* Of a column of the picture. */
    static __device__ __forceinline__ uint32_t column_at(int column, int unit) {
        return column % 2 == 0 ? EVEN + X::unit_at(column / 2, unit)
                               : X::unit_at(column / 2 + 1, unit);
    }
};

#endif
