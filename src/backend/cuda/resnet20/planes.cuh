/* Pictures of C channels, 512 / C pixels wide, in shared memory, made for ldmatrix. A row begins
 * with a pixel of zeros and ends with one; where a pixel fills lines of 128 bytes the next row's
 * first is that one too, and there is one more at the END. Units of 16 bytes change places within
 * their line, by their column alone, so that 8 neighbouring pixels' units, and what a quarter or
 * half of a warp writes of 2 or 4 neighbouring pixels, lie in different banks, and rows are always
 * PITCH bytes apart. */
#ifndef CT_BACKEND_CUDA_RESNET20_PLANES_CUH
#define CT_BACKEND_CUDA_RESNET20_PLANES_CUH

#include "backend/cuda/mma.cuh"

/* What kernels of chains and pairs are called with: v says which layers. */
template <typename V> struct unit_call {
    const cuda_job *jobs;
    int n_max;
    const float *packed, *params;
    size_t packed_stride, params_stride;
    V v;
};

template <typename V> static unit_call<V> call_of(const cuda_run *run, const V *v) {
    unit_call<V> c = {};
    c.jobs = run->jobs_dev, c.n_max = run->n_max, c.v = *v;
    c.packed = run->packed_dev, c.packed_stride = run->packed_stride;
    c.params = run->params_dev, c.params_stride = run->params_stride;
    return c;
}

template <typename E, int C> struct planes {
    static constexpr int PIXEL = C * (int)sizeof(E), UNITS = PIXEL / 16;
    static constexpr int END = PIXEL < 128 ? 0 : PIXEL;
    static constexpr int PITCH = ((512 / C + (END > 0 ? 1 : 2)) * PIXEL + 127) / 128 * 128;

    /* Bytes from the row's beginning; column 0 is the border. A unit's number may be changed by
     * exclusive or with its byte's bits from the fourth on. */
    static __device__ __forceinline__ uint32_t unit_at(int column, int unit) {
        int turn = (column & 1) << 2 | (column & 2) | (column >> 2 & 1);
        return (uint32_t)((column * PIXEL & ~127) + ((unit ^ turn) << 4));
    }

    static __device__ __forceinline__ uint32_t quad_at(int column, int quad) {
        if (sizeof(E) == 4) return unit_at(column, quad);
        return unit_at(column, quad >> 1) + (uint32_t)(quad & 1) * 8;
    }
};

#endif
