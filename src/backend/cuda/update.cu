/* An update program in one pass over the columns. A block takes a group of columns of all rows of
 * every bank into shared memory, everything it will read at once and the next group's while it
 * computes this one's, runs all assignments there, and stores what they assign to banks. Grid: x
 * over groups of columns. Bytes: each bank read and written once, whatever the matrices are. The
 * program is data, so that a recorded graph runs with new coefficients; a block reads it once and
 * notes where each term lies, for with 12 bytes of a value to move there is no time to look it up.
 * Where the rows are too many for shared memory, only temporaries lie there; where even those are
 * too many, they lie in scratch memory of the device, a piece for each block. */
#include "backend/cuda/update.h"

#include "backend/cuda/update.cuh"

enum { THREADS = 256, MIN_QUADS = 4, MAX_QUADS = 16 }; /* 64 to 256 bytes of a row together */
enum { EACH = 2 };                                     /* quads of a thread, half a row apart */
enum { FAR_THREADS = 1024, FAR_QUADS = 4 };            /* with temporaries in the scratch */

static __device__ bool has_matrix(const cuda_assign &a) {
    bool found = false;
    for (int t = 0; t < a.n_terms; t++) found |= a.terms[t].matrix >= 0;
    return found;
}

/* ---- everything in shared memory ---- */

/* A term or a target as the inner loops read it: its first row in shared memory. A bank's rows are
 * there twice, `shift` rows apart. */
typedef struct __align__(16) place {
    int first;
    int is_bank;
    int matrix; /* of a term; a target: whether the assignment has one */
    float coef;
}
place;

typedef struct places {
    place terms[CUDA_MAX_ASSIGNS][CUDA_MAX_TERMS], targets[CUDA_MAX_ASSIGNS];
} places;

static __device__ place place_of(const cuda_program *p, int slot, int matrix, float coef) {
    const cuda_slot &s = p->slots[slot];
    bool is_bank = s.data != NULL;
    return {(is_bank ? p->n_temp_rows : 0) + s.first, is_bank, matrix, coef};
}

static __device__ void find_places(const cuda_program *p, places *out) {
    int thread = (int)(threadIdx.y * blockDim.x + threadIdx.x);
    if (thread < p->n_assigns) {
        const cuda_assign &a = p->assigns[thread];
        out->targets[thread] = place_of(p, a.slot, has_matrix(a), 0.0f);
        for (int t = 0; t < a.n_terms; t++)
            out->terms[thread][t] =
                place_of(p, a.terms[t].slot, a.terms[t].matrix, a.terms[t].coef);
    }
    __syncthreads();
}

/* A group of columns, as a thread sees it. */
typedef struct group {
    const cuda_program *p, *far;
    float4 *rows; /* this thread's first quad of row 0 */
    int quads;    /* of a row */
    int step;     /* from its first quad to its second, which may lie before it */
    int shift;    /* rows from the banks' first place to where they are now */
    size_t quad;  /* column of this thread's first quad */
} group;

static __device__ __forceinline__ void add_row(const group &g, int row, float c,
                                               float4 sums[EACH]) {
    const float4 *from = g.rows + row * g.quads;
#pragma unroll
    for (int e = 0; e < EACH; e++) add_scaled(&sums[e], c, from[e * g.step]);
}

/* Adds a term; under a matrix, its rows are added up first. */
static __device__ __forceinline__ void add_term(const group &g, const place &t, int row,
                                                float4 sums[EACH]) {
    int first = t.first + t.is_bank * g.shift;
    if (t.matrix < 0) {
        add_row(g, first + row, t.coef, sums);
        return;
    }
    matrix m = matrix_at(g.p, g.far, t.matrix);
    float4 mixed[EACH] = {};
    for (int e = m.begin[row]; e < m.begin[row + 1]; e++)
        add_row(g, first + m.column[e], m.value[e], mixed);
#pragma unroll
    for (int e = 0; e < EACH; e++) add_scaled(&sums[e], t.coef, mixed[e]);
}

static __device__ __forceinline__ void set_row(const group &g, const place &t, int slot, int row,
                                               const float4 sums[EACH]) {
    float4 *to = g.rows + (t.first + t.is_bank * g.shift + row) * g.quads;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        size_t quad = g.quad + e * g.step;
        to[e * g.step] = sums[e];
        if (t.is_bank && quad < g.p->n_quads) *global_quad(g.p->slots[slot], row, quad) = sums[e];
    }
}

static __device__ void run_group(const group &g, const places *places) {
    bool had_matrix = false;
    for (int k = 0; k < g.p->n_assigns; k++) {
        const place target = places->targets[k];
        const cuda_assign &a = g.p->assigns[k];
        int n_rows = a.n_rows, n_terms = a.n_terms;
        /* Without a matrix a thread reads only what it has written itself. */
        if (target.matrix || had_matrix) __syncthreads();
        had_matrix = target.matrix;
        for (int row = (int)threadIdx.y; row < n_rows; row += (int)blockDim.y) {
            float4 sums[EACH] = {};
            for (int t = 0; t < n_terms; t++) add_term(g, places->terms[k][t], row, sums);
            set_row(g, target, a.slot, row, sums);
        }
    }
}

/* Starts the copies of everything that a group of columns reads before it is written. */
static __device__ void load_group(const group &g) {
    const cuda_program *p = g.p;
    for (int k = 0; k < p->n_slots; k++) {
        const cuda_slot &s = p->slots[k];
        for (int row = (int)threadIdx.y; row < s.n_load; row += (int)blockDim.y)
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                size_t quad = g.quad + e * g.step;
                float4 *to = g.rows + (p->n_temp_rows + s.first + g.shift + row) * g.quads;
                if (quad < p->n_quads)
                    copy_quad((float *)&to[e * g.step], (const float *)global_quad(s, row, quad),
                              true);
            }
    }
}

static __global__ void __launch_bounds__(THREADS, 4)
    update_kernel(const cuda_program *far, size_t n_groups) {
    extern __shared__ float4 rows[]; /* temporaries, then banks twice */
    __shared__ uint4 own[CUDA_PROGRAM_BYTES / sizeof(uint4)];
    __shared__ places all;
    const cuda_program *p = copy_program(far, CUDA_PROGRAM_BYTES, own);
    find_places(p, &all);
    int quads = (int)blockDim.x * EACH, half = (int)blockDim.x;
    /* rows of a warp that would meet in the same banks take their two quads in opposite order */
    bool is_turned = threadIdx.y * quads / 8 % 2 > 0;
    int first = (int)threadIdx.x + (is_turned ? half : 0);
    group now = {p,
                 far,
                 rows + first,
                 quads,
                 is_turned ? -half : half,
                 0,
                 (size_t)blockIdx.x * quads + first};
    load_group(now);
    for (size_t k = blockIdx.x; k < n_groups; k += gridDim.x) {
        group next = now;
        next.shift = p->n_bank_rows - now.shift;
        next.quad += (size_t)gridDim.x * quads;
        copies_wait();
        __syncthreads(); /* everyone's copies are there, and nobody is in the group before */
        if (k + gridDim.x < n_groups) load_group(next);
        run_group(now, &all);
        now = next;
    }
}

/* ---- banks where they lie ---- */

static __device__ __forceinline__ float4 value_of(const cuda_slot &s, const float4 *temps, int row,
                                                  size_t quad, bool is_there) {
    if (s.data == NULL) return temps[(s.first + row) * (int)blockDim.x + (int)threadIdx.x];
    return is_there ? *global_quad(s, row, quad) : make_float4(0, 0, 0, 0);
}

static __device__ void add_far_term(const cuda_program *p, const cuda_program *far,
                                    const cuda_term &t, const float4 *temps, int row, size_t quad,
                                    float4 *sum) {
    const cuda_slot &s = p->slots[t.slot];
    bool is_there = quad < p->n_quads;
    if (t.matrix < 0) {
        add_scaled(sum, t.coef, value_of(s, temps, row, quad, is_there));
        return;
    }
    matrix m = matrix_at(p, far, t.matrix);
    float4 mixed = make_float4(0, 0, 0, 0);
    for (int e = m.begin[row]; e < m.begin[row + 1]; e++)
        add_scaled(&mixed, m.value[e], value_of(s, temps, m.column[e], quad, is_there));
    add_scaled(sum, t.coef, mixed);
}

/* Everything on one column group; whether the last assignment had a matrix. */
static __device__ bool run_far_group(const cuda_program *p, const cuda_program *far, float4 *temps,
                                     size_t quad, bool had_matrix) {
    for (int k = 0; k < p->n_assigns; k++) {
        const cuda_assign &a = p->assigns[k];
        const cuda_slot &s = p->slots[a.slot];
        bool matrix = has_matrix(a);
        if (matrix || had_matrix) __syncthreads();
        had_matrix = matrix;
        for (int row = (int)threadIdx.y; row < a.n_rows; row += (int)blockDim.y) {
            float4 sum = make_float4(0, 0, 0, 0);
            for (int t = 0; t < a.n_terms; t++)
                add_far_term(p, far, a.terms[t], temps, row, quad, &sum);
            if (s.data == NULL)
                temps[(s.first + row) * (int)blockDim.x + (int)threadIdx.x] = sum;
            else if (quad < p->n_quads)
                *global_quad(s, row, quad) = sum;
        }
    }
    return had_matrix;
}

/* A block takes one group: its temporaries are in shared memory. */
static __global__ void __launch_bounds__(THREADS) far_kernel(const cuda_program *far) {
    extern __shared__ float4 rows[]; /* temporaries */
    __shared__ uint4 own[CUDA_PROGRAM_BYTES / sizeof(uint4)];
    const cuda_program *p = copy_program(far, CUDA_PROGRAM_BYTES, own);
    run_far_group(p, far, rows, (size_t)blockIdx.x * blockDim.x + threadIdx.x, false);
}

/* A block takes one group after the other, its temporaries in its piece of the scratch. */
static __global__ void __launch_bounds__(FAR_THREADS)
    farthest_kernel(const cuda_program *far, float4 *scratch) {
    __shared__ uint4 own[CUDA_PROGRAM_BYTES / sizeof(uint4)];
    const cuda_program *p = copy_program(far, CUDA_PROGRAM_BYTES, own);
    float4 *temps = scratch + (size_t)blockIdx.x * p->n_temp_rows * blockDim.x;
    bool had_matrix = false;
    for (size_t first = (size_t)blockIdx.x * blockDim.x; first < p->n_quads;
         first += (size_t)gridDim.x * blockDim.x)
        had_matrix = run_far_group(p, far, temps, first + threadIdx.x, had_matrix);
}

/* Shared memory for the rows of a block. */
static size_t limit_of(size_t shared_limit) {
    return shared_limit - CUDA_PROGRAM_BYTES - sizeof(places);
}

extern "C" size_t ct_cuda_update_words(int n_temp_rows, size_t shared_limit) {
    const size_t most = (size_t)128 << 20; /* of all blocks: more than an L2 cache has */
    size_t column = (size_t)n_temp_rows * sizeof(float4), block = column * FAR_QUADS;
    if (column <= limit_of(shared_limit)) return 0;
    return (block > most ? block : most / block * block) / sizeof(uint32_t);
}

static ct_status run_farthest(const cuda_update *u, size_t n_groups) {
    size_t block = (size_t)u->n_temp_rows * FAR_QUADS * sizeof(float4);
    size_t n_blocks = u->n_scratch * sizeof(uint32_t) / block;
    start_kernel(farthest_kernel, (unsigned)(n_groups < n_blocks ? n_groups : n_blocks),
                 dim3(FAR_QUADS, FAR_THREADS / FAR_QUADS), 0, u->stream, u->program_dev,
                 (float4 *)u->scratch_dev);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

static ct_status run_far(const cuda_update *u, size_t limit) {
    unsigned quads = MAX_QUADS;
    size_t column = (size_t)u->n_temp_rows * sizeof(float4);
    if (column > limit) return run_farthest(u, (u->n_quads + FAR_QUADS - 1) / FAR_QUADS);
    while (quads > 1 && column * quads > limit) quads /= 2;
    CT_TRY(allow_shared(far_kernel, column * quads));
    start_kernel(far_kernel, (unsigned)((u->n_quads + quads - 1) / quads),
                 dim3(quads, THREADS / quads), column * quads, u->stream, u->program_dev);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

/* Threads for the rows of a group: not many more than there are rows. */
static dim3 threads_of(unsigned quads, int n_rows) {
    unsigned x = quads / EACH, y = 32 / x;
    while (y < (unsigned)n_rows && 2 * y * x <= THREADS) y *= 2;
    return dim3(x, y);
}

ct_status ct_cuda_launch_update(const cuda_update *u) {
    if (u->n_rounds > 0) return ct_cuda_launch_rounds(u);
    size_t limit = limit_of(u->shared_limit);
    size_t column = (size_t)(u->n_temp_rows + 2 * u->n_bank_rows) * sizeof(float4);
    unsigned quads = MAX_QUADS;
    while (quads > MIN_QUADS && column * quads > limit / 3) quads /= 2;
    if (column * quads > limit) return run_far(u, limit);
    dim3 threads = threads_of(quads, u->n_rows);
    size_t n_groups = (u->n_quads + quads - 1) / quads;
    unsigned n_blocks = 0;
    CT_TRY(blocks_of(update_kernel, threads, column * quads, n_groups, &n_blocks));
    start_kernel(update_kernel, n_blocks, threads, column * quads, u->stream, u->program_dev,
                 n_groups);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}
