/* An update program by its script, rounds of orders (update.h): a thread has two or four quads of a
 * row, carries out all orders of a round on them, and goes to its next row. Grid: x over groups of
 * columns, which blocks take in turn. Bytes: each bank that is read before it is assigned to is read
 * once, each target is written once; flops: 2 a value and term. Orders say where in shared memory a
 * value lies, and the next one is read while one is carried out. They are data, so that a recorded
 * graph runs with new coefficients. The 24 orders of QG-DSGDm-N are about 280 instructions a thread and
 * quad (PTX); moving its 96 bytes takes the time of 750 (H200). */
#include "backend/cuda/update.cuh"

enum { THREADS = 256, ROWS = 16 }; /* of them side by side, if shared memory has room */
/* Quads of a thread: many, if there is room for them; and blocks of a multiprocessor. */
enum { FEW = 2, MANY = 4, FEW_BLOCKS = 4, MANY_BLOCKS = 3 };
enum { RESERVED = 1024 }; /* bytes of shared memory that a block takes besides its own */

/* A group of columns, as a thread sees it. */
template <int EACH> struct group {
    const cuda_program *p, *far;
    float4 *rows;   /* its first quad of shared row 0 */
    float4 *places; /* shared row 0, so many quads on as it has threads before it */
    int quads;      /* of a row */
    int step[EACH]; /* from its first quad to each; some lie before it */
    size_t quad;    /* column of its first quad */
    bool is_there[EACH];
};

template <int EACH>
static __device__ __forceinline__ void add_values(float4 sum[EACH], float c,
                                                  const float4 values[EACH]) {
#pragma unroll
    for (int e = 0; e < EACH; e++) add_scaled(&sum[e], c, values[e]);
}

/* Of a place. */
template <int EACH>
static __device__ __forceinline__ void add_own(const group<EACH> &g, float4 sum[EACH], float c,
                                               int at) {
    float4 values[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) values[e] = g.places[at + e * THREADS];
    add_values<EACH>(sum, c, values);
}

/* Of a shared row. */
template <int EACH>
static __device__ __forceinline__ void add_shared(const group<EACH> &g, float4 sum[EACH], float c,
                                                  int at) {
    float4 values[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) values[e] = g.rows[at + g.step[e]];
    add_values<EACH>(sum, c, values);
}

template <int EACH>
static __device__ __forceinline__ void add_mixed(const group<EACH> &g, float4 sum[EACH],
                                                 const cuda_order &order, int row) {
    matrix m = matrix_at(g.p, g.far, order.matrix);
    float4 mixed[EACH] = {};
    const int first = m.begin[row];
    const int *column = m.column + first, *end = m.column + m.begin[row + 1];
    const float *value = m.value + first;
#pragma unroll 1
    for (; column < end; column++, value++)
        add_shared(g, mixed, *value, order.at + *column * g.quads);
    add_values<EACH>(sum, order.coef, mixed);
}

template <int EACH>
static __device__ __forceinline__ void set_target(const group<EACH> &g, const cuda_order &order,
                                                  int row, float4 sum[EACH]) {
    if (order.at >= 0)
#pragma unroll
        for (int e = 0; e < EACH; e++) g.places[order.at + e * THREADS] = sum[e];
    if (order.shared >= 0)
#pragma unroll
        for (int e = 0; e < EACH; e++) g.rows[order.shared + row * g.quads + g.step[e]] = sum[e];
    if (order.slot >= 0) {
        float4 *to = global_quad(g.p->slots[order.slot], row, g.quad);
#pragma unroll
        for (int e = 0; e < EACH; e++)
            if (g.is_there[e]) to[g.step[e]] = sum[e];
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) sum[e] = make_float4(0, 0, 0, 0);
}

/* In one access. */
static __device__ __forceinline__ cuda_order order_at(const cuda_order *orders) {
    uint4 bits = *(const uint4 *)orders;
    return {(int)bits.x, (int)bits.y, {(int)bits.z}, {__uint_as_float(bits.w)}};
}

/* Orders up to `end` on one row. Behind the last one there is room to read. */
template <int EACH>
static __device__ __forceinline__ void run_row(const group<EACH> &g, const cuda_order *orders,
                                               const cuda_order *end, int row) {
    float4 sum[EACH] = {};
    cuda_order order = order_at(orders);
#pragma unroll 1
    while (orders < end) {
        cuda_order next = order_at(++orders);
        if (order.kind == CUDA_ADD)
            add_own(g, sum, order.coef, order.at);
        else if (order.kind == CUDA_ADD_SHARED)
            add_shared(g, sum, order.coef, order.at + row * g.quads);
        else if (order.kind == CUDA_SET)
            set_target(g, order, row, sum);
        else
            add_mixed(g, sum, order, row);
        order = next;
    }
}

/* Starts the copy of a row: its quads go to `to`, those of a place THREADS apart, others as they lie. */
template <int EACH>
static __device__ __forceinline__ void load_row(const group<EACH> &g, const cuda_slot &slot,
                                                int row, bool is_place, float4 *to) {
    const float4 *from = global_quad(slot, row, g.quad);
#pragma unroll
    for (int e = 0; e < EACH; e++)
        if (g.is_there[e])
            copy_quad(to + (is_place ? e * THREADS : g.step[e]), from + g.step[e], true);
}

/* Starts the copies that a round begins with. */
template <int EACH>
static __device__ __forceinline__ void load_places(const group<EACH> &g, int round, int row) {
    const cuda_script &script = g.p->script;
    for (int k = round > 0 ? script.end[round - 1] : 0; k < script.loaded[round]; k++) {
        const cuda_order &order = script.orders[k];
        load_row(g, g.p->slots[order.slot], row, true, g.places + order.at);
    }
}

/* Starts the copies of banks with rows in shared memory. */
template <int EACH> static __device__ __forceinline__ void load_rows(const group<EACH> &g) {
    const cuda_program *p = g.p;
    for (int k = 0; k < p->n_slots; k++) {
        int first = p->script.shared[k];
        if (first < 0) continue;
        for (int row = (int)threadIdx.y; row < p->slots[k].n_load; row += (int)blockDim.y)
            load_row(g, p->slots[k], row, false, g.rows + (first + row) * g.quads);
    }
}

/* The first row's copies of the first round are under way. */
template <int EACH> static __device__ __forceinline__ void run_rounds(const group<EACH> &g) {
    const cuda_script &script = g.p->script;
    for (int k = 0; k < script.n; k++) {
        if (k > 0) __syncthreads(); /* everyone's rows of the round before are there */
        for (int row = (int)threadIdx.y; row < g.p->n_rows; row += (int)blockDim.y) {
            if (k > 0 || row >= (int)blockDim.y) load_places(g, k, row);
            copies_wait();
            run_row(g, script.orders + script.loaded[k], script.orders + script.end[k], row);
        }
    }
}

/* Where the first thread's first quad of a place lies, or of a shared row. */
template <int EACH>
static __device__ __forceinline__ int place_at(const cuda_script &script, int place, int quads) {
    return place >= 0 ? script.n_shared * quads + place * EACH * THREADS : -1;
}

static __device__ __forceinline__ int row_at(int row, int quads) {
    return row >= 0 ? row * quads : -1;
}

/* The program in shared memory; its orders have numbers of quads there for those of places and rows. */
template <int EACH>
static __device__ const cuda_program *take_program(const cuda_program *far, int quads, uint4 *own) {
    copy_program(far, (int)sizeof(cuda_program), own);
    cuda_script &script = ((cuda_program *)own)->script;
    for (int k = (int)(threadIdx.y * blockDim.x + threadIdx.x); k < script.end[script.n - 1];
         k += THREADS) {
        cuda_order &order = script.orders[k];
        bool is_row = order.kind == CUDA_ADD_SHARED || order.kind == CUDA_MIX;
        order.at = is_row ? row_at(order.at, quads) : place_at<EACH>(script, order.at, quads);
        if (order.kind == CUDA_SET) order.shared = row_at(order.shared, quads);
    }
    __syncthreads();
    return (const cuda_program *)own;
}

template <int EACH, int BLOCKS>
static __global__ void __launch_bounds__(THREADS, BLOCKS)
    rounds_kernel(const cuda_program *far, size_t n_groups) {
    extern __shared__ float4 rows[]; /* those of slots, then places */
    __shared__ uint4 own[sizeof(cuda_program) / sizeof(uint4)];
    int width = (int)blockDim.x;
    const cuda_program *p = take_program<EACH>(far, width * EACH, own);
    /* rows of a warp that would meet in the same banks take their quads two by two in opposite order */
    int turned = (int)(threadIdx.y * width / 4 % 2);
    int first = (int)threadIdx.x + turned * width;
    group<EACH> g = {p, far, rows + first, rows + threadIdx.y * blockDim.x + threadIdx.x,
                     width * EACH};
#pragma unroll
    for (int e = 0; e < EACH; e++) g.step[e] = ((e ^ turned) - turned) * width;
    for (size_t k = blockIdx.x; k < n_groups; k += gridDim.x) {
        g.quad = k * g.quads + first;
#pragma unroll
        for (int e = 0; e < EACH; e++) g.is_there[e] = g.quad + g.step[e] < p->n_quads;
        if (k != blockIdx.x) __syncthreads(); /* nobody is in the group before */
        load_rows(g);
        if ((int)threadIdx.y < p->n_rows) load_places(g, 0, (int)threadIdx.y);
        copies_wait();
        __syncthreads(); /* everyone's copies are there */
        run_rounds(g);
    }
}

/* ---- sizes ---- */

/* Bytes of a block whose threads have so many quads, x of them side by side. */
static size_t bytes_of(int n_shared, int n_places, unsigned each, unsigned x) {
    return ((size_t)n_shared * x + (size_t)n_places * THREADS) * each * sizeof(float4);
}

bool ct_cuda_rounds_fit(const cuda_script *script, size_t shared_limit) {
    return bytes_of(script->n_shared, script->n_places, FEW, 1) + sizeof(cuda_program) <=
           shared_limit;
}

/* Threads side by side for columns and for rows, so that n blocks fit into a multiprocessor; false:
 * they do not. None is without a row unless a block has a multiprocessor to itself. */
static bool find_threads(const cuda_update *u, unsigned each, unsigned n, dim3 *out) {
    size_t most = u->shared_limit / n - sizeof(cuda_program) - (n > 1 ? RESERVED : 0);
    unsigned y = 1;
    while (y < ROWS && y < (unsigned)u->n_rows) y *= 2;
    while (y < THREADS && (n == 1 || y < (unsigned)u->n_rows) &&
           bytes_of(u->n_shared, u->n_places, each, THREADS / y) > most)
        y *= 2;
    *out = dim3(THREADS / y, y);
    return bytes_of(u->n_shared, u->n_places, each, out->x) <= most;
}

template <int EACH, int BLOCKS> static ct_status launch(const cuda_update *u, dim3 threads) {
    size_t quads = threads.x * EACH, n_groups = (u->n_quads + quads - 1) / quads;
    size_t bytes = bytes_of(u->n_shared, u->n_places, EACH, threads.x);
    unsigned n_blocks = 0;
    auto kernel = rounds_kernel<EACH, BLOCKS>;
    CT_TRY(blocks_of(kernel, threads, bytes, n_groups, &n_blocks));
    start_kernel(kernel, n_blocks, threads, bytes, u->stream, u->program_dev, n_groups);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

ct_status ct_cuda_launch_rounds(const cuda_update *u) {
    dim3 threads;
    for (unsigned n = MANY_BLOCKS; n > 1; n--)
        if (find_threads(u, MANY, n, &threads) && threads.x >= 4)
            return launch<MANY, MANY_BLOCKS>(u, threads);
    for (unsigned n = FEW_BLOCKS; n > 1; n--)
        if (find_threads(u, FEW, n, &threads) && threads.x >= 2)
            return launch<FEW, FEW_BLOCKS>(u, threads);
    find_threads(u, FEW, 1, &threads);
    return launch<FEW, FEW_BLOCKS>(u, threads);
}
