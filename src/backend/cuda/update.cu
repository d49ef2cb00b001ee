/* An update program in one pass over the columns. A block takes a group of columns of all rows of
 * every bank into shared memory, everything it will read at once and the next group's while it
 * computes this one's, runs all assignments there, and stores what they assign to banks. Grid: x
 * over groups of columns. Bytes: each bank read and written once, whatever the matrices are. The
 * program is data, so that a recorded graph runs with new coefficients. Where the rows are too many
 * for shared memory, only temporaries lie there. */
#include "backend/cuda/mma.cuh"

enum { THREADS = 256, MIN_QUADS = 4, MAX_QUADS = 16 }; /* 64 to 256 bytes of a row together */

/* Rows in shared memory, [row][quads of the group]. */
typedef struct rows_at {
    float4 *temps, *banks; /* banks NULL: they are read where they lie */
    size_t quad;           /* this thread's column */
    bool is_there;
} rows_at;

static __device__ __forceinline__ void add_scaled(float4 *sum, float c, float4 v) {
    sum->x = fmaf(c, v.x, sum->x);
    sum->y = fmaf(c, v.y, sum->y);
    sum->z = fmaf(c, v.z, sum->z);
    sum->w = fmaf(c, v.w, sum->w);
}

static __device__ __forceinline__ float4 *global_quad(const cuda_slot &s, int row, size_t quad) {
    return (float4 *)(s.data + row * s.stride) + quad;
}

static __device__ __forceinline__ float4 value_of(const cuda_slot &s, const rows_at &at, int row) {
    int own = (s.first + row) * (int)blockDim.x + (int)threadIdx.x;
    if (s.data == NULL) return at.temps[own];
    if (at.banks != NULL) return at.banks[own];
    return at.is_there ? *global_quad(s, row, at.quad) : make_float4(0, 0, 0, 0);
}

static __device__ __forceinline__ void set_value(const cuda_slot &s, const rows_at &at, int row,
                                                 float4 value) {
    int own = (s.first + row) * (int)blockDim.x + (int)threadIdx.x;
    if (s.data == NULL)
        at.temps[own] = value;
    else if (at.banks != NULL)
        at.banks[own] = value;
    if (s.data != NULL && at.is_there) *global_quad(s, row, at.quad) = value;
}

/* Adds a term; under a matrix, its rows are added up first. `far`: the program in global memory,
 * with the matrices that did not fit into its copy. */
static __device__ __forceinline__ void add_term(const cuda_program *p, const cuda_program *far,
                                                const cuda_term &t, const rows_at &at, int row,
                                                float4 *sum) {
    const cuda_slot &s = p->slots[t.slot];
    if (t.matrix < 0) {
        add_scaled(sum, t.coef, value_of(s, at, row));
        return;
    }
    const char *from = t.matrix < CUDA_PROGRAM_BYTES ? (const char *)p : (const char *)far;
    const cuda_sparse *m = (const cuda_sparse *)(from + t.matrix);
    const int *begin = (const int *)(m + 1), *column = begin + m->n_rows + 1;
    const float *value = (const float *)(column + m->n_entries);
    float4 mixed = make_float4(0, 0, 0, 0);
    for (int e = begin[row]; e < begin[row + 1]; e++)
        add_scaled(&mixed, value[e], value_of(s, at, column[e]));
    add_scaled(sum, t.coef, mixed);
}

static __device__ bool has_matrix(const cuda_assign &a) {
    bool found = false;
    for (int t = 0; t < a.n_terms; t++) found |= a.terms[t].matrix >= 0;
    return found;
}

static __device__ void run_program(const cuda_program *p, const cuda_program *far,
                                   const rows_at &at) {
    bool had_matrix = false;
    for (int k = 0; k < p->n_assigns; k++) {
        const cuda_assign &a = p->assigns[k];
        /* Without a matrix a thread reads only what it has written itself. */
        bool matrix = has_matrix(a);
        if (matrix || had_matrix) __syncthreads();
        had_matrix = matrix;
        for (int row = (int)threadIdx.y; row < a.n_rows; row += (int)blockDim.y) {
            float4 sum = make_float4(0, 0, 0, 0);
            for (int t = 0; t < a.n_terms; t++) add_term(p, far, a.terms[t], at, row, &sum);
            set_value(p->slots[a.slot], at, row, sum);
        }
    }
}

/* Starts the copies of everything that a group of columns reads before it is written. */
static __device__ void load_group(const cuda_program *p, size_t group, float4 *banks) {
    size_t quad = group * blockDim.x + threadIdx.x;
    for (int k = 0; k < p->n_slots && quad < p->n_quads; k++) {
        const cuda_slot &s = p->slots[k];
        for (int row = (int)threadIdx.y; row < s.n_load; row += (int)blockDim.y)
            copy_quad((float *)&banks[(s.first + row) * (int)blockDim.x + (int)threadIdx.x],
                      (const float *)global_quad(s, row, quad), true);
    }
}

static __device__ const cuda_program *copy_program(const cuda_program *far, uint4 *own) {
    int thread = (int)(threadIdx.y * blockDim.x + threadIdx.x);
    own[thread] = ((const uint4 *)far)[thread];
    __syncthreads();
    return (const cuda_program *)own;
}

static __global__ void __launch_bounds__(THREADS)
    update_kernel(const cuda_program *far, size_t n_groups) {
    extern __shared__ float4 rows[]; /* temporaries, then banks twice */
    __shared__ uint4 own[CUDA_PROGRAM_BYTES / sizeof(uint4)];
    const cuda_program *p = copy_program(far, own);
    float4 *banks[2] = {rows + p->n_temp_rows * (int)blockDim.x, NULL};
    banks[1] = banks[0] + p->n_bank_rows * (int)blockDim.x;
    int now = 0;
    load_group(p, blockIdx.x, banks[0]);
    for (size_t group = blockIdx.x; group < n_groups; group += gridDim.x, now ^= 1) {
        copies_wait();
        __syncthreads(); /* everyone's copies are there, and nobody is in the group before */
        if (group + gridDim.x < n_groups) load_group(p, group + gridDim.x, banks[now ^ 1]);
        size_t quad = group * blockDim.x + threadIdx.x;
        rows_at at = {rows, banks[now], quad, quad < p->n_quads};
        run_program(p, far, at);
    }
}

static __global__ void __launch_bounds__(THREADS) far_kernel(const cuda_program *far) {
    extern __shared__ float4 rows[]; /* temporaries */
    __shared__ uint4 own[CUDA_PROGRAM_BYTES / sizeof(uint4)];
    const cuda_program *p = copy_program(far, own);
    size_t quad = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    rows_at at = {rows, NULL, quad, quad < p->n_quads};
    run_program(p, far, at);
}

template <typename T> static ct_status allow_shared(T *kernel, size_t bytes) {
    CT_CUDA_TRY(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    return CT_OK;
}

static ct_status run_far(cudaStream_t stream, const cuda_program *program_dev, size_t n_quads,
                         int n_temp_rows, size_t shared_limit) {
    unsigned quads = MAX_QUADS;
    size_t column = (size_t)n_temp_rows * sizeof(float4);
    while (quads > 1 && column * quads > shared_limit) quads /= 2;
    if (column * quads > shared_limit)
        return ct_fail(CT_INVAL, "an update with %d rows of temporaries does not fit this GPU",
                       n_temp_rows);
    CT_TRY(allow_shared(far_kernel, column * quads));
    far_kernel<<<(unsigned)((n_quads + quads - 1) / quads), dim3(quads, THREADS / quads),
                 column * quads, stream>>>(program_dev);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

ct_status ct_cuda_update(cudaStream_t stream, const cuda_program *program_dev, size_t n_quads,
                         int n_temp_rows, int n_bank_rows, size_t shared_limit) {
    size_t limit = shared_limit - CUDA_PROGRAM_BYTES;
    size_t column = (size_t)(n_temp_rows + 2 * n_bank_rows) * sizeof(float4);
    unsigned quads = MAX_QUADS;
    while (quads > MIN_QUADS && column * quads > limit / 3) quads /= 2;
    if (column * quads > limit) return run_far(stream, program_dev, n_quads, n_temp_rows, limit);
    int device = 0, n_processors = 0, n_blocks = 0;
    dim3 threads(quads, THREADS / quads);
    CT_TRY(allow_shared(update_kernel, column * quads));
    CT_CUDA_TRY(cudaGetDevice(&device));
    CT_CUDA_TRY(cudaDeviceGetAttribute(&n_processors, cudaDevAttrMultiProcessorCount, device));
    CT_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n_blocks, update_kernel, THREADS,
                                                              column * quads));
    size_t n_groups = (n_quads + quads - 1) / quads, at_once = (size_t)n_processors * n_blocks;
    update_kernel<<<(unsigned)(n_groups < at_once ? n_groups : at_once), threads, column * quads,
                    stream>>>(program_dev, n_groups);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}
