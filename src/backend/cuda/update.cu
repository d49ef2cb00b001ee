/* An update program in one pass: a block takes a block of columns of all rows through every
 * assignment; temporaries live in shared memory. Grid: x over columns. Bytes: each bank read and
 * written once from memory (rows under a matrix come from the caches the second time). The program
 * is data, so that a recorded graph runs with new coefficients. */
#include "backend/cuda/device.cuh"

enum { MAX_QUADS = 16, ROWS = 16 }; /* 256 bytes of a row are read together */

static __device__ __forceinline__ void add_scaled(float4 *sum, float c, float4 v) {
    sum->x = fmaf(c, v.x, sum->x);
    sum->y = fmaf(c, v.y, sum->y);
    sum->z = fmaf(c, v.z, sum->z);
    sum->w = fmaf(c, v.w, sum->w);
}

static __device__ __forceinline__ float4 value_of(const float *data, size_t stride,
                                                  const float4 *temps, int temp, int n_rows,
                                                  int row, size_t quad) {
    if (data == NULL) return temps[((size_t)temp * n_rows + row) * blockDim.x + threadIdx.x];
    return ((const float4 *)(data + row * stride))[quad];
}

static __device__ float4 term_value(const cuda_program *p, const cuda_term *t, const float4 *temps,
                                    int row, size_t quad) {
    if (t->matrix < 0)
        return value_of(t->data, t->stride, temps, t->temp, p->n_temp_rows, row, quad);
    const cuda_sparse *m = (const cuda_sparse *)((const char *)p + t->matrix);
    const int *begin = (const int *)(m + 1), *column = begin + m->n_rows + 1;
    const float *value = (const float *)(column + m->n_entries);
    float4 sum = {0, 0, 0, 0};
    for (int e = begin[row]; e < begin[row + 1]; e++)
        add_scaled(&sum, value[e],
                   value_of(t->data, t->stride, temps, t->temp, p->n_temp_rows, column[e], quad));
    return sum;
}

static __device__ bool has_matrix(const cuda_assign *a) {
    bool found = false;
    for (int t = 0; t < a->n_terms; t++) found |= a->terms[t].matrix >= 0;
    return found;
}

static __global__ void __launch_bounds__(MAX_QUADS *ROWS, 4) update_kernel(const cuda_program *p) {
    extern __shared__ float4 temps[]; /* [temp][row][quads of the block] */
    size_t quad = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    bool inside = quad < p->n_quads, had_matrix = false;
    for (int k = 0; k < p->n_assigns; k++) {
        const cuda_assign *a = &p->assigns[k];
        /* Without a matrix a thread reads only what it has written itself. */
        bool matrix = has_matrix(a);
        if (matrix || had_matrix) __syncthreads();
        had_matrix = matrix;
        for (int row = (int)threadIdx.y; row < a->n_rows && inside; row += ROWS) {
            float4 sum = {0, 0, 0, 0};
            for (int t = 0; t < a->n_terms; t++)
                add_scaled(&sum, a->terms[t].coef, term_value(p, &a->terms[t], temps, row, quad));
            if (a->data == NULL)
                temps[((size_t)a->temp * p->n_temp_rows + row) * blockDim.x + threadIdx.x] = sum;
            else
                ((float4 *)(a->data + row * a->stride))[quad] = sum;
        }
    }
}

ct_status ct_cuda_update(cudaStream_t stream, const cuda_program *program_dev, size_t n_quads,
                         int n_rows, int n_temps, int n_temp_rows, size_t shared_limit) {
    (void)n_rows;
    unsigned quads = MAX_QUADS;
    size_t column = (size_t)n_temps * (size_t)n_temp_rows * sizeof(float4);
    while (quads > 1 && column * quads > shared_limit) quads /= 2;
    if (column * quads > shared_limit)
        return ct_fail(CT_INVAL, "an update with %d temporaries of %d rows does not fit this GPU",
                       n_temps, n_temp_rows);
    if (column * quads > 48 * 1024)
        CT_CUDA_TRY(cudaFuncSetAttribute(update_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         (int)(column * quads)));
    unsigned n_blocks = (unsigned)((n_quads + quads - 1) / quads);
    update_kernel<<<n_blocks, dim3(quads, ROWS), column * quads, stream>>>(program_dev);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}
