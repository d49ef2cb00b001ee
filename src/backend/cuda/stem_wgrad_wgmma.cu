/* Weight gradients of a picture's convolution (stem_wgmma.cuh) on Hopper: for each kernel row
 * dw[o][pair of pixels][8] = sum over the positions p of d[p][o] * x[pairs of p][8]: matrix products
 * with rows = output channels, columns = the four pairs of a kernel row, k = positions. Parts of 128
 * positions of a sample come to shared memory, the gradient with zeros between its rows and behind
 * its last one. Three warp groups take turns at them, each with sums of all kernel rows; a warp
 * copies. At the end the groups' sums are added up in order.
 * Grid: x over shares of a job's parts, y = job; a second pass adds up the shares. 128 bytes of d
 * read a position, and 6 times 8 bytes of x a pixel, from L2 mostly; 2 flops a product. */
#include "backend/cuda/stem_wgmma.cuh"

enum { GROUPS = 3, COPIER = GROUPS * GROUP, THREADS = COPIER + GROUP };
enum { DEPTH = 128, GRADIENT_BYTES = DEPTH * LINE, MOST_STAGES = 8, SPARE = 2048 };
enum { SHARES = 33 }; /* of a job: four jobs fill the machine */

typedef struct wgrad_call {
    CUtensorMap d_map;
    positions p; /* of the gradient */
    stem_run run;
    cuda_pairs pairs;
    const cuda_job *jobs;
    int n_max, n_parts; /* of a sample */
    int n_stages, stage_bytes;
    int ci, kernel, pad;
    const char *x;
    float *partial; /* [job][share][channel][tap][ci] */
} wgrad_call;

static __device__ __forceinline__ void copy_parts(const wgrad_call &c, int n_items, char *stages,
                                                  uint64_t *full, uint64_t *empty) {
    turn t = {};
    for (int item = (int)blockIdx.x; item < n_items; item += (int)gridDim.x) {
        int sample = (int)blockIdx.y * c.n_max + item / c.n_parts, at = item % c.n_parts * DEPTH;
        uint32_t to = shared_at(stages + t.at * c.stage_bytes);
        barrier_wait(&empty[t.at], t.phase ^ 1);
        barrier_expect(&full[t.at], GRADIENT_BYTES + (c.run.n[0] + c.run.n[1]) * PAIR);
        copy_run(to, &c.d_map, c.p, 0, sample * c.p.size + at, &full[t.at]);
        copy_pairs(to + GRADIENT_BYTES, c.run, c.x + (size_t)sample * 2 * c.pairs.size * PAIR,
                   c.pairs.size, at, &full[t.at]);
        next_turn(t, c.n_stages);
    }
}

/* A group's parts: every third one of the share. */
template <int ROWS>
static __device__ __forceinline__ void multiply_parts(const wgrad_call &c, int n_items, int group,
                                                      char *stages, uint64_t *full, uint64_t *empty,
                                                      float sums[ROWS][16]) {
    turn t = {};
    for (int k = 0; k < group; k++) next_turn(t, c.n_stages);
#pragma unroll
    for (int e = 0; e < ROWS * 16; e++) sums[e / 16][e % 16] = 0.0f;
    int step = (int)gridDim.x;
    for (int item = (int)blockIdx.x + group * step; item < n_items; item += GROUPS * step) {
        uint32_t stage = shared_at(stages + t.at * c.stage_bytes);
        uint64_t d = matrix_at(stage);
        uint64_t x = plain_matrix_at(stage + GRADIENT_BYTES, 8 * PAIR, PAIR);
        barrier_wait(&full[t.at], t.phase);
        products_begin();
#pragma unroll
        for (int k = 0; k < DEPTH / 16; k++)
#pragma unroll
            for (int u = 0; u < ROWS; u++) /* 16 rows on; addresses count 16 bytes */
                product_32(sums[u], d + k * LINE, x + c.run.row[u] + k * 16);
        products_group();
        products_wait_but<0>();
        if ((threadIdx.x & 31) == 0) barrier_arrive(&empty[t.at]);
        for (int k = 0; k < GROUPS; k++) next_turn(t, c.n_stages);
    }
}

/* The groups' sums one after the other to [channel][tap][ci] in shared memory, then in line to the
 * share's place. */
template <int ROWS>
static __device__ __forceinline__ void write_sums(const wgrad_call &c, int group,
                                                  const float sums[ROWS][16], float *turned) {
    int lane = threadIdx.x & 31, first = (int)threadIdx.x / 32 % 4 * 16 + lane / 4;
    int count = CHUNK * ROWS * ROWS * c.ci;
    for (int g = 0; g < GROUPS; g++) {
        __syncwarp();
        group_sync(1, COPIER); /* nobody multiplies any more; the group before has added */
        if (g != group) continue;
#pragma unroll
        for (int e = 0; e < ROWS * 16; e++) {
            int u = e / 16, pair = e / 4 % 4, o = first + e / 2 % 2 * 8; /* rows 8 apart */
            int k = lane % 4 * 2 + e % 2, i = k % 4, column = column_of(c.pad, pair, k);
            float *to = &turned[((o * ROWS + u) * ROWS + column) * c.ci + i];
            if (i < c.ci && column >= 0 && column < ROWS)
                *to = g == 0 ? sums[u][e % 16] : *to + sums[u][e % 16];
        }
    }
    __syncwarp();
    group_sync(1, COPIER);
    float *to = c.partial + ((size_t)blockIdx.y * gridDim.x + blockIdx.x) * count;
    for (int e = (int)threadIdx.x; e < count; e += COPIER) to[e] = turned[e];
}

template <int ROWS>
static __global__ void __launch_bounds__(THREADS, 1)
    stem_wgrad_kernel(const __grid_constant__ wgrad_call c) {
    extern __shared__ char shared[];
    __shared__ uint64_t full[MOST_STAGES], empty[MOST_STAGES];
    char *stages = shared + (1024 - shared_at(shared) % 1024) % 1024;
    if (threadIdx.x == 0) {
        for (int k = 0; k < c.n_stages; k++) {
            barrier_init(&full[k], 1);
            barrier_init(&empty[k], GROUP / 32);
        }
        barriers_ready();
    }
    __syncthreads();
    int n_items = c.jobs[blockIdx.y].n * c.n_parts, group = (int)threadIdx.x / GROUP;
    if (threadIdx.x >= COPIER) {
        fewer_registers<24>();
        if (threadIdx.x == COPIER) copy_parts(c, n_items, stages, full, empty);
    } else {
        more_registers<160>();
        float sums[ROWS][16];
        multiply_parts<ROWS>(c, n_items, group, stages, full, empty, sums);
        write_sums<ROWS>(c, group, sums, (float *)stages);
    }
}

static int n_parts(const cuda_conv *v) {
    return (stem_positions(v) + DEPTH - 1) / DEPTH;
}

static int stage_bytes(const stem_run *run) {
    return (GRADIENT_BYTES + stem_run_bytes(run) + 1023) / 1024 * 1024;
}

/* The sums of a share, of 4 input channels. */
enum { TURN_BYTES = CHUNK * MOST_ROWS * MOST_ROWS * 4 * 4 };

bool ct_cuda_stem_wgrad_fits(const cuda_conv *v, size_t shared_limit) {
    stem_run run = stem_run_of(v, DEPTH);
    return GROUPS * (size_t)stage_bytes(&run) + SPARE <= shared_limit;
}

/* What other jobs a call has must not change the order of the sums. */
static int shares_of(const cuda_conv *v, int n_most) {
    int n = n_most * n_parts(v);
    return n < SHARES ? n : SHARES;
}

size_t ct_cuda_stem_partial(const cuda_conv *v, int, int n_most) {
    return ct_cuda_split_floats(v, shares_of(v, n_most));
}

/* Zeros behind the last row of a sample, as far as its parts reach. */
static positions gradient_positions(const cuda_conv *v) {
    int pitch = stem_pitch(v), n_rows = (n_parts(v) * DEPTH + pitch - 1) / pitch;
    return positions_of(n_rows > v->ho ? n_rows : v->ho, pitch, 0);
}

ct_status ct_cuda_stem_wgrad(const cuda_run *run, const cuda_conv_call *call) {
    const cuda_conv *v = call->conv;
    wgrad_call c = {};
    c.p = gradient_positions(v), c.run = stem_run_of(v, DEPTH), c.pairs = stem_pairs(v);
    c.jobs = run->jobs_dev, c.n_max = run->n_max, c.n_parts = n_parts(v);
    c.stage_bytes = stage_bytes(&c.run);
    c.n_stages = (int)((run->shared_limit - SPARE) / (size_t)c.stage_bytes);
    if (c.n_stages > MOST_STAGES) c.n_stages = MOST_STAGES;
    c.ci = v->ci, c.kernel = v->kh, c.pad = v->pad;
    c.x = (const char *)call->x, c.partial = run->partial_dev;
    picture d = {call->d, run->n_jobs * run->n_max, v->ho, v->wo, v->co, 1, 0, 0};
    CT_TRY(map_positions(&d, &c.p, DEPTH, &c.d_map));
    int n_shares = shares_of(v, run->n_most), bytes = c.n_stages * c.stage_bytes;
    if (bytes < (int)TURN_BYTES) bytes = TURN_BYTES;
    dim3 grid((unsigned)n_shares, (unsigned)run->n_jobs);
    CT_TRY(launch_kernel(run,
                         v->kh == 3   ? stem_wgrad_kernel<3>
                         : v->kh == 5 ? stem_wgrad_kernel<5>
                                      : stem_wgrad_kernel<7>,
                         grid, THREADS, (size_t)bytes + 1024, c));
    return ct_cuda_sum_wgrad(run, n_shares, v, false, call->weight);
}
