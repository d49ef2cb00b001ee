/* Linear layers, forward and to the input: c[M x N] = a[M x K] b[K x N] with M = samples of a job,
 * in fp32. M and N are small, so the warps of a block share out K and their sums are added up in
 * order. Grid: x over tiles of 32 samples, y over tiles of 32 columns, z = job. 2 flops a product;
 * b (the weights, 4 K N bytes) is what is read from memory. K must be a multiple of 4. */
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
    float *c;
} linear_call;

/* This warp's part of K: sums[i][j] of row y + 4 i and column x + 8 j of the tile. */
static __device__ void multiply(const linear_call &c, const cuda_job &job, int from, int to,
                                float sums[8][4]) {
    int lane = threadIdx.x & 31, x = (int)blockIdx.y * TILE + (lane & 7), y = lane >> 3;
    const float *a = c.a + (size_t)blockIdx.z * c.n_max * c.n_k;
    const float *b = c.b + job.model * c.b_stride;
#pragma unroll 2
    for (int k = from; k < to; k += 4) {
        float4 va[8];
        float vb[4][4];
#pragma unroll
        for (int i = 0; i < 8; i++) {
            int row = min((int)blockIdx.x * TILE + y + 4 * i, job.n - 1);
            va[i] = *(const float4 *)(a + (size_t)row * c.n_k + k);
        }
#pragma unroll
        for (int s = 0; s < 4; s++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                vb[s][j] = x + 8 * j < c.n_n ? b[(size_t)(k + s) * c.n_n + x + 8 * j] : 0.0f;
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                sums[i][j] = fmaf(va[i].x, vb[0][j], sums[i][j]);
                sums[i][j] = fmaf(va[i].y, vb[1][j], sums[i][j]);
                sums[i][j] = fmaf(va[i].z, vb[2][j], sums[i][j]);
                sums[i][j] = fmaf(va[i].w, vb[3][j], sums[i][j]);
            }
    }
}

static __global__ void __launch_bounds__(THREADS) linear_kernel(linear_call c) {
    __shared__ float parts[WARPS][TILE][TILE];
    const cuda_job job = c.jobs[blockIdx.z];
    if ((int)blockIdx.x * TILE >= job.n) return;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int per = (c.n_k / 4 + WARPS - 1) / WARPS * 4;
    float sums[8][4] = {};
    multiply(c, job, warp * per, min(c.n_k, (warp + 1) * per), sums);
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
        float *to = c.c + ((size_t)blockIdx.z * c.n_max + row) * c.n_n + n;
        *to = c.accumulate ? *to + value : value;
    }
}

static ct_status launch(const cuda_run *run, const linear_call *c) {
    dim3 grid((unsigned)(run->n_max + TILE - 1) / TILE, (unsigned)(c->n_n + TILE - 1) / TILE,
              (unsigned)run->n_jobs);
    linear_kernel<<<grid, THREADS, 0, run->stream>>>(*c);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

ct_status ct_cuda_linear_forward(const cuda_run *run, int n_in, int n_out, const float *x_dev,
                                 size_t packed, size_t bias, bool relu, float *y_dev) {
    linear_call c = {};
    c.jobs = run->jobs_dev, c.n_max = run->n_max, c.n_k = n_in, c.n_n = n_out;
    c.a = x_dev, c.b = run->packed_dev + packed, c.b_stride = run->packed_stride;
    c.bias = bias == CUDA_NO_PARAM ? NULL : run->params_dev + bias;
    c.bias_stride = run->params_stride, c.relu = relu, c.c = y_dev;
    return launch(run, &c);
}

ct_status ct_cuda_linear_dgrad(const cuda_run *run, int n_in, int n_out, const float *d_dev,
                               size_t packed, bool accumulate, float *dx_dev) {
    linear_call c = {};
    c.jobs = run->jobs_dev, c.n_max = run->n_max, c.n_k = n_out, c.n_n = n_in;
    c.a = d_dev, c.b = run->packed_dev + packed, c.b_stride = run->packed_stride;
    c.accumulate = accumulate, c.c = dx_dev;
    return launch(run, &c);
}
