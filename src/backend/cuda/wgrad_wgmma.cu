/* Weight gradients (groups = 1) of 3x3 convolutions of multiples of 64 channels in bf16 on Hopper:
 * for each tap dw[o][i] = sum over the positions p (wgmma.cuh) of a job of d[p][o] * x[p under the
 * tap][i]: a matrix product with rows = output channels, columns = input channels, k = positions.
 * A block computes 64 x 64 channels of all nine taps over its part of the positions, 128 at a time:
 * they come to shared memory once for all taps, x as four pictures of every second pixel where the
 * stride is 2. Three warp groups take a row of taps each, a warp copies.
 * The sums are turned round in shared memory, so that weights are written in line. Grid: x = (part
 * of the positions, input channels, output channels), the latter first; y = job. Where there are
 * several parts a second pass adds them up in a fixed order. */
#include "backend/cuda/wgmma.cuh"

enum { ROWS = 3, TAPS = 9, COPIER = ROWS * GROUP, THREADS = COPIER + 32 };
enum { DEPTH = 128, GRADIENT_BYTES = DEPTH * LINE, MOST_STAGES = 4, MOST_MAPS = 4 };
enum { ENOUGH_BLOCKS = 33 };    /* of a job: four jobs fill the machine */
enum { LEAST_POSITIONS = 512 }; /* of a part, which has sums of all weights to write */
/* floats of a block's output channel, and from one to the next in shared memory */
enum { RUN = CHUNK * TAPS, PITCH = RUN + 4, TURN_BYTES = CHUNK * PITCH * 4 };

typedef struct wgrad_call {
    CUtensorMap d_map, x_maps[MOST_MAPS];
    positions p;
    const cuda_job *jobs;
    int n_max, n_maps;
    int n_o, n_i, n_splits, per;              /* blocks of channels; parts, and their positions */
    int n_rows, run_bytes, n_stages, n_bytes; /* of a run of x; of a stage */
    struct {
        int map, shift;
    } taps[TAPS];
    float *partial; /* of several parts, or NULL */
    float *grads;
    size_t grads_stride;
} wgrad_call;

/* Positions of the job that the block has. */
typedef struct part {
    int o, i, split;
    int first, last;
} part;

static __device__ __forceinline__ part part_of(const wgrad_call &c, int n_samples) {
    int at = (int)blockIdx.x;
    part b = {at % c.n_o, at / c.n_o % c.n_i, at / c.n_o / c.n_i, 0, 0};
    b.first = b.split * c.per;
    b.last = min(b.first + c.per, n_samples * c.p.size - c.p.lead);
    return b;
}

static __device__ __forceinline__ void copy_part(const wgrad_call &c, const part &b, char *stages,
                                                 uint64_t *full, uint64_t *empty) {
    int base = (int)blockIdx.y * c.n_max * c.p.size;
    turn t = {};
    for (int at = b.first; at < b.last; at += DEPTH) {
        uint32_t to = shared_at(stages + t.at * c.n_bytes);
        barrier_wait(&empty[t.at], t.phase ^ 1);
        barrier_expect(&full[t.at], GRADIENT_BYTES + c.n_maps * c.n_rows * LINE);
        copy_run(to, &c.d_map, c.p, b.o * CHUNK, base + c.p.lead + at, &full[t.at]);
        for (int k = 0; k < c.n_maps; k++)
            copy_run(to + GRADIENT_BYTES + k * c.run_bytes, &c.x_maps[k], c.p, b.i * CHUNK,
                     base + at, &full[t.at]);
        next_turn(t, c.n_stages);
    }
}

/* Zeros where a run of n rows has left the job's samples, from row `first` on. */
static __device__ __forceinline__ void clear_rows(char *run, int first, int n) {
    for (int e = first * LINE / 16 + (int)threadIdx.x; e < n * LINE / 16; e += COPIER)
        ((uint4 *)run)[e] = make_uint4(0, 0, 0, 0);
}

/* What lies behind the last sample may be anything, and zero times anything is not zero. */
static __device__ __forceinline__ void clear_end(const wgrad_call &c, int n_there, char *stage) {
    clear_rows(stage, n_there, DEPTH);
    for (int k = 0; k < c.n_maps; k++)
        clear_rows(stage + GRADIENT_BYTES + k * c.run_bytes, n_there + c.p.lead, c.n_rows);
    writes_to_products();
    group_sync(1, COPIER);
}

static __device__ __forceinline__ void multiply_part(const wgrad_call &c, const part &b, int row,
                                                     char *stages, uint64_t *full, uint64_t *empty,
                                                     float sums[ROWS][32]) {
    turn t = {};
    int last = -1, adds = 0; /* stage to be given back */
    for (int at = b.first; at < b.last; at += DEPTH) {
        char *stage = stages + t.at * c.n_bytes;
        uint64_t d = matrix_at(shared_at(stage)), x[ROWS];
        barrier_wait(&full[t.at], t.phase);
        if (b.last - at < DEPTH) clear_end(c, b.last - at, stage);
#pragma unroll
        for (int v = 0; v < ROWS; v++)
            x[v] = matrix_at(shared_at(stage) + GRADIENT_BYTES +
                             c.taps[row * ROWS + v].map * c.run_bytes +
                             c.taps[row * ROWS + v].shift * LINE);
        products_begin();
#pragma unroll
        for (int k = 0; k < DEPTH / 16; k++)
#pragma unroll
            for (int v = 0; v < ROWS; v++)
                product_64(sums[v], d + k * LINE, x[v] + k * LINE, k > 0 || adds); /* 16 rows on */
        adds = 1;
        products_group();
        products_wait_but<1>();
        if ((threadIdx.x & 31) == 0 && last >= 0) barrier_arrive(&empty[last]);
        last = t.at;
        next_turn(t, c.n_stages);
    }
    products_wait_but<0>();
    if (adds) return;
#pragma unroll
    for (int e = 0; e < ROWS * 32; e++) sums[e / 32][e % 32] = 0.0f;
}

/* The sums to [o][i][tap] of the job's gradient, or of its part. */
static __device__ __forceinline__ void write_sums(const wgrad_call &c, const part &b, int row,
                                                  int out, const float sums[ROWS][32],
                                                  float *turned) {
    int lane = threadIdx.x & 31, warp = (int)threadIdx.x / 32, ci = c.n_i * CHUNK;
    group_sync(1, COPIER); /* nobody multiplies any more */
    float *own = turned + (warp % 4 * 16 + lane / 4) * PITCH + lane % 4 * 2 * TAPS + row * ROWS;
#pragma unroll
    for (int e = 0; e < ROWS * 32; e++) {
        int v = e / 32, j = e / 4 % 8, half = e / 2 % 2; /* columns, rows 8 apart */
        own[half * 8 * PITCH + (8 * j + e % 2) * TAPS + v] = sums[v][e % 32];
    }
    group_sync(1, COPIER);
    float *to = c.n_splits > 1 ? c.partial + (size_t)((int)blockIdx.y * c.n_splits + b.split) *
                                                 c.n_o * CHUNK * ci * TAPS
                               : c.grads + out * c.grads_stride;
    for (int o = warp; o < CHUNK; o += COPIER / 32)
#pragma unroll 6
        for (int k = lane; k < RUN; k += 32)
            to[((size_t)(b.o * CHUNK + o) * ci + b.i * CHUNK) * TAPS + k] = turned[o * PITCH + k];
}

static __global__ void __launch_bounds__(THREADS, 1)
    wgrad_kernel(const __grid_constant__ wgrad_call c) {
    extern __shared__ char shared[];
    __shared__ uint64_t full[MOST_STAGES], empty[MOST_STAGES];
    char *stages = shared + (1024 - shared_at(shared) % 1024) % 1024;
    if (threadIdx.x == 0) {
        for (int k = 0; k < c.n_stages; k++) {
            barrier_init(&full[k], 1);
            barrier_init(&empty[k], ROWS * 4);
        }
        barriers_ready();
    }
    __syncthreads();
    const cuda_job job = c.jobs[blockIdx.y];
    part b = part_of(c, job.n);
    if (threadIdx.x >= COPIER) {
        if (threadIdx.x == COPIER) copy_part(c, b, stages, full, empty);
        return;
    }
    int row = (int)threadIdx.x / GROUP;
    float sums[ROWS][32];
    multiply_part(c, b, row, stages, full, empty, sums);
    write_sums(c, b, row, job.out, sums, (float *)stages);
}

/* Adds up a job's parts. Grid: x over weights, y = job. 4 bytes a partial sum read. */
static __global__ void parts_kernel(const cuda_job *jobs, const float *partial, int n_splits,
                                    int count, float *grads, size_t stride) {
    int e = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (e >= count) return;
    const float *p = partial + (size_t)blockIdx.y * n_splits * count + e;
    float sum = 0.0f;
#pragma unroll 16
    for (int s = 0; s < n_splits; s++) sum += p[(size_t)s * count];
    grads[jobs[blockIdx.y].out * stride + e] = sum;
}

static positions positions_for(const cuda_conv *v) {
    return positions_of(v->ho, v->wo, 1);
}

static int run_rows(const cuda_conv *v) {
    return DEPTH + (v->stride == 1 ? 2 : 1) * positions_for(v).lead;
}

static int run_bytes(const cuda_conv *v) {
    return (run_rows(v) * LINE + 1023) / 1024 * 1024;
}

static int stage_bytes(const cuda_conv *v) {
    return GRADIENT_BYTES + v->stride * v->stride * run_bytes(v);
}

bool ct_cuda_wgmma_wgrad_fits(const cuda_conv *v, size_t shared_limit) {
    return v->kh == 3 && run_rows(v) <= 1024 && 2 * (size_t)stage_bytes(v) + 2048 <= shared_limit;
}

static int splits_of(const cuda_conv *v, int n_most) {
    int n = ENOUGH_BLOCKS / (v->co / CHUNK * (v->ci / CHUNK));
    int most = n_most * positions_for(v).size / LEAST_POSITIONS;
    if (n > most) n = most;
    return n < 1 ? 1 : n;
}

/* Positions of a part. What other jobs a call has must not change the order of the sums. */
static int part_positions(const cuda_conv *v, int n_most) {
    int n = n_most * positions_for(v).size, n_splits = splits_of(v, n_most);
    return ((n + n_splits - 1) / n_splits + DEPTH - 1) / DEPTH * DEPTH;
}

size_t ct_cuda_wgmma_partial(const cuda_conv *v, int, int n_most) {
    int n = splits_of(v, n_most);
    return n > 1 ? ct_cuda_split_floats(v, n) : 0;
}

/* Tap u reads rows u - 1 on of the picture, or every second one from (u + 1) % 2 on. */
static void plan_taps(const cuda_conv *v, wgrad_call *c) {
    for (int k = 0; k < TAPS; k++) {
        int y = k / 3 - 1, x = k % 3 - 1, a = y & 1, b = x & 1;
        bool is_strided = v->stride == 2;
        c->taps[k].map = is_strided ? 2 * a + b : 0;
        if (is_strided) y = (y - a) / 2, x = (x - b) / 2;
        c->taps[k].shift = c->p.lead + y * c->p.pitch + x;
    }
}

ct_status ct_cuda_wgmma_wgrad(const cuda_run *run, const cuda_conv_call *call) {
    const cuda_conv *v = call->conv;
    wgrad_call c = {};
    c.p = positions_for(v), c.jobs = run->jobs_dev, c.n_max = run->n_max;
    c.n_maps = v->stride * v->stride, c.n_o = v->co / CHUNK, c.n_i = v->ci / CHUNK;
    c.n_splits = splits_of(v, run->n_most), c.per = part_positions(v, run->n_most);
    c.n_rows = run_rows(v), c.run_bytes = run_bytes(v), c.n_bytes = stage_bytes(v);
    c.n_stages = (int)((run->shared_limit - 2048) / (size_t)c.n_bytes);
    if (c.n_stages > MOST_STAGES) c.n_stages = MOST_STAGES;
    c.partial = run->partial_dev, c.grads = run->grads_dev + call->weight;
    c.grads_stride = run->grads_stride;
    plan_taps(v, &c);
    int n = run->n_jobs * run->n_max;
    picture d = {call->d, n, v->ho, v->wo, v->co, 1, 0, 0};
    CT_TRY(map_positions(&d, &c.p, DEPTH, &c.d_map));
    for (int k = 0; k < c.n_maps; k++) {
        picture x = {call->x, n, v->hi, v->wi, v->ci, v->stride, k / 2, k % 2};
        CT_TRY(map_positions(&x, &c.p, c.n_rows, &c.x_maps[k]));
    }
    dim3 grid((unsigned)(c.n_o * c.n_i * c.n_splits), (unsigned)run->n_jobs);
    int bytes = c.n_stages * c.n_bytes;
    if (bytes < (int)TURN_BYTES) bytes = TURN_BYTES;
    CT_TRY(launch_kernel(run, wgrad_kernel, grid, THREADS, (size_t)bytes + 1024, c));
    if (c.n_splits == 1) return CT_OK;
    int count = v->co * v->ci * TAPS;
    return launch_kernel(run, parts_kernel, dim3((unsigned)count / 256, (unsigned)run->n_jobs), 256,
                         0, run->jobs_dev, c.partial, c.n_splits, count, c.grads, c.grads_stride);
}
