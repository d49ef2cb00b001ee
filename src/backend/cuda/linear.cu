/* Linear layers, forward and to the input: c[M x N] = a[M x K] b[K x N] with M = samples of a job,
 * in fp32. M and N are small, so the warps of a block share out K and their sums are added up in
 * order. Grid: x over tiles of 32 samples, y over tiles of 32 columns, z = job. 2 flops a product;
 * b (the weights, 4 K N bytes) is what is read from memory.
 * The weight gradient sums over the samples, in their order. */
#include "backend/cuda/device.cuh"

enum { TILE = 32, WARPS = 8, THREADS = 32 * WARPS };

typedef struct linear_call {
    const cuda_job *jobs;
    int n_max, n_k, n_n;
    const float *a, *b;
    size_t b_stride;
    const float *bias;
    size_t bias_stride;
    bool relu, accumulate;
    const float *mask; /* results are zero where this is not above zero; NULL: none */
    float *c;
} linear_call;

/* This warp's part of K, DEEP at a time: sums[i][j] of row y + 4 i and column x + 8 j of the tile.
 */
template <int DEEP>
static __device__ void multiply(const linear_call &c, const cuda_job &job, int from, int to,
                                float sums[8][4]) {
    int lane = threadIdx.x & 31, x = (int)blockIdx.y * TILE + (lane & 7), y = lane >> 3;
    const float *a = c.a + (size_t)blockIdx.z * c.n_max * c.n_k;
    const float *b = c.b + job.model * c.b_stride;
#pragma unroll 2
    for (int k = from; k < to; k += DEEP) {
        float va[8][DEEP], vb[DEEP][4];
#pragma unroll
        for (int i = 0; i < 8; i++) {
            int row = min((int)blockIdx.x * TILE + y + 4 * i, job.n - 1);
            load_values<DEEP>(a + (size_t)row * c.n_k + k, va[i]);
        }
#pragma unroll
        for (int s = 0; s < DEEP; s++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                vb[s][j] = x + 8 * j < c.n_n ? b[(size_t)(k + s) * c.n_n + x + 8 * j] : 0.0f;
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int s = 0; s < DEEP; s++) sums[i][j] = fmaf(va[i][s], vb[s][j], sums[i][j]);
    }
}

template <int DEEP> static __global__ void __launch_bounds__(THREADS) linear_kernel(linear_call c) {
    __shared__ float parts[WARPS][TILE][TILE];
    const cuda_job job = c.jobs[blockIdx.z];
    if ((int)blockIdx.x * TILE >= job.n) return;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int per = (c.n_k / DEEP + WARPS - 1) / WARPS * DEEP;
    float sums[8][4] = {};
    multiply<DEEP>(c, job, warp * per, min(c.n_k, (warp + 1) * per), sums);
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            parts[warp][(lane >> 3) + 4 * i][(lane & 7) + 8 * j] = sums[i][j];
    __syncthreads();
    for (int e = (int)threadIdx.x; e < TILE * TILE; e += THREADS) {
        int row = (int)blockIdx.x * TILE + e / TILE, n = (int)blockIdx.y * TILE + e % TILE;
        if (row >= job.n || n >= c.n_n) continue;
        float value = c.bias != NULL ? c.bias[job.model * c.bias_stride + n] : 0.0f;
        for (int w = 0; w < WARPS; w++) value += parts[w][e / TILE][e % TILE];
        if (c.relu) value = fmaxf(value, 0.0f);
        size_t at = ((size_t)blockIdx.z * c.n_max + row) * c.n_n + n;
        if (c.accumulate) value += c.c[at];
        c.c[at] = c.mask == NULL || c.mask[at] > 0.0f ? value : 0.0f;
    }
}

/* a [samples][n_k] times the packed weights. */
static ct_status multiply_packed(const cuda_run *run, const cuda_conv_call *call, const void *a,
                                 int n_k, int n_n, linear_call c) {
    c.jobs = run->jobs_dev, c.n_max = run->n_max, c.n_k = n_k, c.n_n = n_n, c.a = (const float *)a;
    c.b = run->packed_dev + call->packed, c.b_stride = run->packed_stride;
    dim3 grid((unsigned)(run->n_max + TILE - 1) / TILE, (unsigned)(n_n + TILE - 1) / TILE,
              (unsigned)run->n_jobs);
    return launch_kernel(run, n_k % 4 == 0 ? linear_kernel<4> : linear_kernel<1>, grid, THREADS, 0,
                         c);
}

static ct_status forward(const cuda_run *run, const cuda_conv_call *call) {
    linear_call c = {};
    c.bias = params_at(run, call->bias), c.bias_stride = run->params_stride;
    c.relu = call->relu, c.c = (float *)call->y;
    return multiply_packed(run, call, call->x, call->conv->ci, call->conv->co, c);
}

static ct_status dgrad(const cuda_run *run, const cuda_conv_call *call) {
    linear_call c = {};
    c.accumulate = call->accumulate, c.mask = call->mask, c.c = (float *)call->dx;
    return multiply_packed(run, call, call->d, call->conv->co, call->conv->ci, c);
}

/* dw[o][i][t] = sum over samples of d[o] x[t][i], db[o] = sum of d[o]. A block has WIDE places of a
 * weight row of ROWS outputs, a thread 2 x 4 of them, with DEEP samples at a time in shared memory.
 * Grid: x over places, y over outputs, z = job. 4 bytes a weight written; samples come from the
 * caches. */
enum { WIDE = 64, ROWS = 32, DEEP_SAMPLES = 32 };

typedef struct wgrad_call {
    const cuda_job *jobs;
    int n_max, n_out, ci, taps;
    const float *x, *d;
    float *grads, *bias; /* gradient rows from the weight and from the bias on; bias may be NULL */
    size_t stride;
} wgrad_call;

static __device__ void load_samples(const wgrad_call &c, size_t sample, int n_there,
                                    float x[DEEP_SAMPLES][WIDE], float d[DEEP_SAMPLES][ROWS]) {
    int n_in = c.ci * c.taps, place = (int)blockIdx.x * WIDE + (int)threadIdx.x % WIDE;
    int from = place % c.taps * c.ci + place / c.taps;
    for (int b = (int)threadIdx.x / WIDE; b < DEEP_SAMPLES; b += THREADS / WIDE)
        x[b][threadIdx.x % WIDE] =
            b < n_there && place < n_in ? c.x[(sample + b) * n_in + from] : 0.0f;
    int o = (int)blockIdx.y * ROWS + (int)threadIdx.x % ROWS;
    for (int b = (int)threadIdx.x / ROWS; b < DEEP_SAMPLES; b += THREADS / ROWS)
        d[b][threadIdx.x % ROWS] =
            b < n_there && o < c.n_out ? c.d[(sample + b) * c.n_out + o] : 0.0f;
}

static __global__ void __launch_bounds__(THREADS) linear_wgrad_kernel(wgrad_call c) {
    __shared__ __align__(16) float x[DEEP_SAMPLES][WIDE], d[DEEP_SAMPLES][ROWS];
    const cuda_job job = c.jobs[blockIdx.z];
    int column = (int)threadIdx.x % (WIDE / 4) * 4, row = (int)threadIdx.x / (WIDE / 4) * 2;
    float sums[2][4] = {};
    double bias = 0.0;
    for (int first = 0; first < job.n; first += DEEP_SAMPLES) {
        int n_there = min((int)DEEP_SAMPLES, job.n - first);
        load_samples(c, (size_t)blockIdx.z * c.n_max + first, n_there, x, d);
        __syncthreads();
#pragma unroll 8
        for (int b = 0; b < DEEP_SAMPLES; b++) {
            float4 v = *(const float4 *)&x[b][column];
            float2 w = *(const float2 *)&d[b][row];
            float vs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int k = 0; k < 4; k++) {
                sums[0][k] = fmaf(w.x, vs[k], sums[0][k]);
                sums[1][k] = fmaf(w.y, vs[k], sums[1][k]);
            }
        }
        for (int b = 0; b < n_there && threadIdx.x < ROWS; b++) bias += (double)d[b][threadIdx.x];
        __syncthreads(); /* the next samples overwrite these */
    }
    int n_in = c.ci * c.taps, o0 = (int)blockIdx.y * ROWS;
    float *to = c.grads + job.out * c.stride;
    for (int e = 0; e < 8; e++) {
        int o = o0 + row + e / 4, place = (int)blockIdx.x * WIDE + column + e % 4;
        if (o < c.n_out && place < n_in) to[(size_t)o * n_in + place] = sums[e / 4][e % 4];
    }
    int o = o0 + (int)threadIdx.x;
    if (c.bias != NULL && blockIdx.x == 0 && threadIdx.x < ROWS && o < c.n_out)
        c.bias[job.out * c.stride + o] = (float)bias;
}

static ct_status wgrad(const cuda_run *run, const cuda_conv_call *call) {
    const cuda_conv *v = call->conv;
    wgrad_call c = {};
    c.jobs = run->jobs_dev, c.n_max = run->n_max, c.n_out = v->co;
    c.ci = v->weight_ci, c.taps = v->weight_taps;
    c.x = (const float *)call->x, c.d = (const float *)call->d;
    c.grads = run->grads_dev + call->weight, c.stride = run->grads_stride;
    c.bias = call->bias == CUDA_NO_PARAM ? NULL : run->grads_dev + call->bias;
    dim3 grid((unsigned)(v->ci + WIDE - 1) / WIDE, (unsigned)(v->co + ROWS - 1) / ROWS,
              (unsigned)run->n_jobs);
    return launch_kernel(run, linear_wgrad_kernel, grid, THREADS, 0, c);
}

static bool fits(const cuda_problem *p, cuda_direction) {
    return p->is_linear;
}

const cuda_family ct_cuda_linear = {.name = "linear",
                                    .fits = fits,
                                    .packing = {CUDA_PACK_FORWARD, CUDA_PACK_LINEAR},
                                    .launch = {forward, dgrad, wgrad},
                                    .sums_bias = true,
                                    .masks = true};
