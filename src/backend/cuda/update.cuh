/* What the kernels of updates share: quads, matrices, the program in shared memory. */
#ifndef CT_BACKEND_CUDA_UPDATE_CUH
#define CT_BACKEND_CUDA_UPDATE_CUH

#include "backend/cuda/mma.cuh"
#include "backend/cuda/update.h"

static __device__ __forceinline__ void add_scaled(float4 *sum, float c, float4 v) {
    sum->x = fmaf(c, v.x, sum->x);
    sum->y = fmaf(c, v.y, sum->y);
    sum->z = fmaf(c, v.z, sum->z);
    sum->w = fmaf(c, v.w, sum->w);
}

static __device__ __forceinline__ float4 *global_quad(const cuda_slot &s, int row, size_t quad) {
    return (float4 *)(s.data + row * s.stride) + quad;
}

/* A matrix of a program; `far` is the one in global memory, with what did not fit into the copy. */
typedef struct matrix {
    const int *begin, *column;
    const float *value;
} matrix;

static __device__ __forceinline__ matrix matrix_at(const cuda_program *p, const cuda_program *far,
                                                   int offset) {
    const char *from = offset < CUDA_PROGRAM_BYTES ? (const char *)p : (const char *)far;
    const cuda_sparse *m = (const cuda_sparse *)(from + offset);
    const int *begin = (const int *)(m + 1), *column = begin + m->n_rows + 1;
    return {begin, column, (const float *)(column + m->n_entries)};
}

/* Its first bytes into shared memory. */
static __device__ const cuda_program *copy_program(const cuda_program *far, int n_bytes,
                                                   uint4 *own) {
    for (int k = (int)(threadIdx.y * blockDim.x + threadIdx.x); k < n_bytes / (int)sizeof(uint4);
         k += (int)(blockDim.x * blockDim.y))
        own[k] = ((const uint4 *)far)[k];
    __syncthreads();
    return (const cuda_program *)own;
}

template <typename T> static ct_status allow_shared(T *kernel, size_t bytes) {
    CT_CUDA_TRY(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    return CT_OK;
}

/* So many blocks as take turns at n groups, all of them at work at once and about as often. */
template <typename T>
static ct_status blocks_of(T *kernel, dim3 threads, size_t bytes, size_t n_groups, unsigned *out) {
    int device = 0, n_processors = 0, n_blocks = 0;
    CT_TRY(allow_shared(kernel, bytes));
    CT_CUDA_TRY(cudaGetDevice(&device));
    CT_CUDA_TRY(cudaDeviceGetAttribute(&n_processors, cudaDevAttrMultiProcessorCount, device));
    CT_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n_blocks, kernel,
                                                              (int)(threads.x * threads.y), bytes));
    size_t at_once = (size_t)n_processors * (size_t)n_blocks;
    size_t n_turns = (n_groups + at_once - 1) / at_once;
    *out = (unsigned)((n_groups + n_turns - 1) / n_turns);
    return CT_OK;
}

#endif
