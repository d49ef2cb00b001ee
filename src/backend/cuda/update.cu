/* An update program in one pass: a block takes a block of columns of all rows through every
 * assignment; temporaries live in shared memory. Grid: x over columns. Bytes: each bank read and
 * written once from memory (rows under a matrix come from the caches the second time). The program
 * is data, so that a recorded graph runs with new coefficients. */
#include "backend/cuda/device.cuh"

enum { MAX_QUADS = 16, ROWS = 16 }; /* 256 bytes of a row are read together */
enum { MANY = 4 }; /* quads of a thread where there are enough: the program is read once for them */

static __device__ __forceinline__ void add_scaled(float4 *sum, float c, float4 v) {
    sum->x = fmaf(c, v.x, sum->x);
    sum->y = fmaf(c, v.y, sum->y);
    sum->z = fmaf(c, v.z, sum->z);
    sum->w = fmaf(c, v.w, sum->w);
}

/* Adds c times this thread's EACH quads of a bank's row, or of a temporary's. */
template <int EACH>
static __device__ __forceinline__ void add_row(float4 sums[EACH], float c, const cuda_program *p,
                                               const cuda_term *t, const float4 *temps, int row,
                                               size_t quad) {
    const float4 *from =
        t->data != NULL
            ? (const float4 *)(t->data + row * t->stride) + quad
            : temps + (size_t)(t->temp * p->n_temp_rows + row) * EACH * blockDim.x + threadIdx.x;
    float4 v[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++)
        v[e] = t->data == NULL || quad + e * blockDim.x < p->n_quads ? from[e * blockDim.x]
                                                                     : make_float4(0, 0, 0, 0);
#pragma unroll
    for (int e = 0; e < EACH; e++) add_scaled(&sums[e], c, v[e]);
}

/* Adds a term; under a matrix, its rows are added up first. */
template <int EACH>
static __device__ __forceinline__ void add_term(float4 sums[EACH], const cuda_program *p,
                                                const cuda_term *t, const float4 *temps, int row,
                                                size_t quad) {
    if (t->matrix < 0) {
        add_row<EACH>(sums, t->coef, p, t, temps, row, quad);
        return;
    }
    const cuda_sparse *m = (const cuda_sparse *)((const char *)p + t->matrix);
    const int *begin = (const int *)(m + 1), *column = begin + m->n_rows + 1;
    const float *value = (const float *)(column + m->n_entries);
    float4 mixed[EACH] = {};
    for (int e = begin[row]; e < begin[row + 1]; e++)
        add_row<EACH>(mixed, value[e], p, t, temps, column[e], quad);
#pragma unroll
    for (int e = 0; e < EACH; e++) add_scaled(&sums[e], t->coef, mixed[e]);
}

static __device__ bool has_matrix(const cuda_assign *a) {
    bool found = false;
    for (int t = 0; t < a->n_terms; t++) found |= a->terms[t].matrix >= 0;
    return found;
}

template <int EACH>
static __global__ void __launch_bounds__(MAX_QUADS *ROWS, EACH == 1 ? 4 : 2)
    update_kernel(const cuda_program *p) {
    extern __shared__ float4 temps[]; /* [temp][row][quads of the block] */
    size_t quad = (size_t)blockIdx.x * blockDim.x * EACH + threadIdx.x;
    bool had_matrix = false;
    for (int k = 0; k < p->n_assigns; k++) {
        const cuda_assign *a = &p->assigns[k];
        /* Without a matrix a thread reads only what it has written itself. */
        bool matrix = has_matrix(a);
        if (matrix || had_matrix) __syncthreads();
        had_matrix = matrix;
        for (int row = (int)threadIdx.y; row < a->n_rows; row += ROWS) {
            float4 sums[EACH] = {};
            for (int t = 0; t < a->n_terms; t++)
                add_term<EACH>(sums, p, &a->terms[t], temps, row, quad);
            float4 *own =
                temps + (size_t)(a->temp * p->n_temp_rows + row) * EACH * blockDim.x + threadIdx.x;
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                size_t at = quad + e * blockDim.x;
                if (a->data == NULL)
                    own[e * blockDim.x] = sums[e];
                else if (at < p->n_quads)
                    ((float4 *)(a->data + row * a->stride))[at] = sums[e];
            }
        }
    }
}

template <int EACH>
static ct_status launch(cudaStream_t stream, const cuda_program *program_dev, size_t n_quads,
                        unsigned quads, size_t bytes) {
    if (bytes > 48 * 1024)
        CT_CUDA_TRY(cudaFuncSetAttribute(update_kernel<EACH>,
                                         cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    unsigned n_blocks = (unsigned)((n_quads + quads * EACH - 1) / (quads * EACH));
    update_kernel<EACH><<<n_blocks, dim3(quads, ROWS), bytes, stream>>>(program_dev);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

ct_status ct_cuda_update(cudaStream_t stream, const cuda_program *program_dev, size_t n_quads,
                         int n_rows, int n_temps, int n_temp_rows, size_t shared_limit) {
    (void)n_rows;
    unsigned quads = MAX_QUADS;
    size_t column = (size_t)n_temps * (size_t)n_temp_rows * sizeof(float4);
    if (column * quads * MANY <= shared_limit / 2 - 2048 && n_quads >= 128 * MAX_QUADS * MANY)
        return launch<MANY>(stream, program_dev, n_quads, quads, column * quads * MANY);
    while (quads > 1 && column * quads > shared_limit) quads /= 2;
    if (column * quads > shared_limit)
        return ct_fail(CT_INVAL, "an update with %d temporaries of %d rows does not fit this GPU",
                       n_temps, n_temp_rows);
    return launch<1>(stream, program_dev, n_quads, quads, column * quads);
}
