/* Small device functions that several kernels share. */
#ifndef CT_BACKEND_CUDA_DEVICE_CUH
#define CT_BACKEND_CUDA_DEVICE_CUH

#include "backend/cuda/kernels.h"
#include "backend/cuda/ptx.cuh"

/* Launches a kernel with `bytes` of dynamic shared memory, which it is allowed first. */
template <typename... PARAMS, typename... ARGS>
static ct_status launch_kernel(const cuda_run *run, void (*kernel)(PARAMS...), dim3 grid,
                               dim3 threads, size_t bytes, const ARGS &...args) {
    if (bytes > 0)
        CT_CUDA_TRY(cudaFuncSetAttribute((const void *)kernel,
                                         cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    start_kernel(kernel, grid, threads, bytes, run->stream, args...);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

/* Parameters of all models from `offset` on, or NULL where there is no such parameter. */
static inline const float *params_at(const cuda_run *run, size_t offset) {
    return offset == CUDA_NO_PARAM ? NULL : run->params_dev + offset;
}

/* Per-sample sums of all jobs, `from` floats a sample behind the first. */
static inline float *sums_at(const cuda_run *run, size_t from) {
    return run->sums_dev + from * (size_t)run->n_jobs * (size_t)run->n_max;
}

/* to_tf32 for a value that goes straight into mma_tf32, which reads the upper 19 bits alone: half
 * of the last one of them is added. An integer addition runs at many times the rate of a
 * conversion. Infinities stay; a NaN may be lost, so values that others read are rounded by
 * to_tf32. */
static __device__ __forceinline__ float near_tf32(float x) {
    return __uint_as_float(__float_as_uint(x) + 0x1000u);
}

static __device__ __forceinline__ void mma_tf32(float c[4], const float a[4], const float b[2]) {
    uint32_t factors[4] = {__float_as_uint(a[0]), __float_as_uint(a[1]), __float_as_uint(a[2]),
                           __float_as_uint(a[3])};
    mma_tf32(c, factors, __float_as_uint(b[0]), __float_as_uint(b[1]));
}

/* Four 8x4 matrices of floats from shared memory: the fragment a of mma_tf32 from 16 rows of 8
 * channels. Lane l gives the address of row l % 16, column 4 (l / 16). */
static __device__ __forceinline__ void load_fragment(float a[4], uint32_t address) {
    uint32_t r[4];
    load_matrices(r, address);
#pragma unroll
    for (int k = 0; k < 4; k++) a[k] = __uint_as_float(r[k]);
}

/* Sum over the lanes of a warp, the same bits in every lane. */
template <typename T> static __device__ __forceinline__ T warp_sum(T x) {
#pragma unroll
    for (int k = 16; k > 0; k >>= 1) x += __shfl_xor_sync(0xffffffffu, x, k);
    return x;
}

/* N neighbouring floats, 1, 2 or 4, in one access. */
template <int N> static __device__ __forceinline__ void load_values(const float *from, float x[N]) {
    if (N == 4) {
        float4 v = *(const float4 *)from;
        x[0] = v.x, x[1 % N] = v.y, x[2 % N] = v.z, x[3 % N] = v.w;
    } else if (N == 2) {
        float2 v = *(const float2 *)from;
        x[0] = v.x, x[1 % N] = v.y;
    } else {
        x[0] = *from;
    }
}

/* Pixels among a sample's first `at` positions (cuda_segments). */
static __device__ __forceinline__ int pixels_before(const cuda_segments &s, int at) {
    at = min(max(at, 0), s.positions - s.lead);
    int y = at / s.pitch;
    return y * s.width + min(at - y * s.pitch, s.width);
}

#define CUDA_EPSILON 1e-5f /* CT_NORM_EPSILON */

#endif
