/* Second passes of sums that blocks began: always in the same order, so that a run repeats to the
 * bit. Grid: x over values, y = job. 4 bytes a partial sum read. */
#include "backend/cuda/device.cuh"

enum { THREADS = 256 };

/* Threads follow the partial sums, so that the many reads are in line and the one write is not. */
static __global__ void wgrad_kernel(const cuda_job *jobs, const float *partial, int n_splits,
                                    int co, int ci, int taps, bool by_tap, float *grads,
                                    size_t stride) {
    int e = (int)(blockIdx.x * THREADS + threadIdx.x), count = co * ci * taps;
    if (e >= count) return;
    int o = by_tap ? e % co : e / ci / taps, i = by_tap ? e / co % ci : e % ci;
    int t = by_tap ? e / co / ci : e / ci % taps;
    const float *p = partial + (size_t)blockIdx.y * n_splits * count + e;
    float sum = 0.0f;
#pragma unroll 16
    for (int s = 0; s < n_splits; s++) sum += p[(size_t)s * count];
    grads[jobs[blockIdx.y].out * stride + (size_t)(o * ci + i) * taps + t] = sum;
}

/* The same where both are in one order: four values a thread. */
static __global__ void rows_kernel(const cuda_job *jobs, const float4 *partial, int n_splits,
                                   int n_quads, float *grads, size_t stride) {
    int e = (int)(blockIdx.x * THREADS + threadIdx.x);
    if (e >= n_quads) return;
    const float4 *p = partial + (size_t)blockIdx.y * n_splits * n_quads + e;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (int s = 0; s < n_splits; s++, p += n_quads)
        sum.x += p->x, sum.y += p->y, sum.z += p->z, sum.w += p->w;
    ((float4 *)(grads + jobs[blockIdx.y].out * stride))[e] = sum;
}

ct_status ct_cuda_sum_wgrad(const cuda_run *run, int n_splits, const cuda_conv *conv, bool by_tap,
                            size_t weight) {
    int co = conv->co, ci = conv->weight_ci, taps = conv->weight_taps;
    size_t count = (size_t)co * ci * taps;
    if (!by_tap && taps == 1 && (count | weight | run->grads_stride) % 4 == 0) {
        int n_quads = (int)(count / 4);
        dim3 quads((unsigned)((n_quads + THREADS - 1) / THREADS), (unsigned)run->n_jobs);
        return launch_kernel(run, rows_kernel, quads, THREADS, 0, run->jobs_dev,
                             (const float4 *)run->partial_dev, n_splits, n_quads,
                             run->grads_dev + weight, run->grads_stride);
    }
    dim3 grid((unsigned)((count + THREADS - 1) / THREADS), (unsigned)run->n_jobs);
    return launch_kernel(run, wgrad_kernel, grid, THREADS, 0, run->jobs_dev, run->partial_dev,
                         n_splits, co, ci, taps, by_tap, run->grads_dev + weight,
                         run->grads_stride);
}

enum { SIDE = 16, MAX_TAPS = 9, FEW_TILES = 5 };

typedef struct layers_call {
    const cuda_job *jobs;
    const float *partial;
    int n_splits, co, ci, taps;
    float *grads;
    size_t stride, weights[CUDA_MAX_LAYERS];
} layers_call;

/* A block has 16 outputs of 16 inputs and turns them round in shared memory, so that reads and
 * writes are in line. Grid: x over such tiles, y = job, z = layer. */
static __global__ void __launch_bounds__(THREADS)
    layers_kernel(const __grid_constant__ layers_call c) {
    __shared__ float tile[SIDE][SIDE * MAX_TAPS + 1];
    int o = (int)threadIdx.x % SIDE, i = (int)threadIdx.x / SIDE, n_columns = c.co / SIDE;
    int o0 = (int)blockIdx.x % n_columns * SIDE, i0 = (int)blockIdx.x / n_columns * SIDE;
    size_t count = (size_t)c.co * c.ci * c.taps;
    const float *p = c.partial + ((size_t)blockIdx.z * gridDim.y + blockIdx.y) * c.n_splits * count;
    p += (i0 + i) * c.co + o0 + o;
    float sums[MAX_TAPS] = {};
    if (i0 + i < c.ci)
#pragma unroll 4
        for (int s = 0; s < c.n_splits; s++, p += count)
#pragma unroll
            for (int t = 0; t < MAX_TAPS; t++)
                if (t < c.taps) sums[t] += p[(size_t)t * c.ci * c.co];
#pragma unroll
    for (int t = 0; t < MAX_TAPS; t++)
        if (t < c.taps) tile[o][i * c.taps + t] = sums[t];
    __syncthreads();
    float *to = c.grads + c.jobs[blockIdx.y].out * c.stride + c.weights[blockIdx.z];
    int n = min(SIDE, c.ci - i0) * c.taps; /* in line, of one output */
    for (int row = (int)threadIdx.x / 32; row < SIDE; row += THREADS / 32)
        for (int k = (int)threadIdx.x % 32; k < n; k += 32)
            to[((size_t)(o0 + row) * c.ci + i0) * c.taps + k] = tile[row][k];
}

ct_status ct_cuda_sum_layers(const cuda_run *run, int n_splits, const cuda_conv *conv,
                             const cuda_wgrad *layers, int n_layers) {
    /* a small layer has too few tiles: 7 us against 18 with 16 x 16 channels, 16 jobs on an H200 */
    int n_tiles = conv->co / SIDE * ((conv->ci + SIDE - 1) / SIDE);
    if (n_layers == 1 && n_tiles < FEW_TILES)
        return ct_cuda_sum_wgrad(run, n_splits, conv, true, layers[0].weight);
    layers_call c = {};
    c.jobs = run->jobs_dev, c.partial = run->partial_dev, c.n_splits = n_splits;
    c.co = conv->co, c.ci = conv->ci, c.taps = conv->kh * conv->kw;
    c.grads = run->grads_dev, c.stride = run->grads_stride;
    for (int k = 0; k < n_layers; k++) c.weights[k] = layers[k].weight;
    dim3 grid((unsigned)n_tiles, (unsigned)run->n_jobs, (unsigned)n_layers);
    return launch_kernel(run, layers_kernel, grid, THREADS, 0, c);
}

static __global__ void samples_kernel(const cuda_job *jobs, int n_max, const cuda_sum *sums,
                                      int n_sums, const float *partial, float *grads,
                                      size_t stride) {
    int low = 0, high = n_sums - 1;
    while (low < high) { /* the last sum that begins at or before this block */
        int middle = (low + high + 1) / 2;
        if (sums[middle].first_block <= (int)blockIdx.x)
            low = middle;
        else
            high = middle - 1;
    }
    const cuda_sum s = sums[low];
    const cuda_job job = jobs[blockIdx.y];
    int e = ((int)blockIdx.x - s.first_block) * CUDA_SUM_BLOCK + (int)threadIdx.x;
    if (e >= s.count) return;
    const float *p = partial + (s.from * gridDim.y + (size_t)blockIdx.y * s.width) * n_max;
    double sum = 0.0;
#pragma unroll 16
    for (int b = 0; b < job.n; b++) sum += (double)p[(size_t)b * s.width + s.first + e];
    grads[job.out * stride + s.to + e] = (float)sum;
}

ct_status ct_cuda_sum_samples(const cuda_run *run, const cuda_sum *sums_dev, int n_sums,
                              int n_blocks) {
    if (n_blocks == 0) return CT_OK;
    dim3 grid((unsigned)n_blocks, (unsigned)run->n_jobs);
    return launch_kernel(run, samples_kernel, grid, CUDA_SUM_BLOCK, 0, run->jobs_dev, run->n_max,
                         sums_dev, n_sums, run->sums_dev, run->grads_dev, run->grads_stride);
}

/* Sums over the pixels of one sample. Grid: x = sample, y = job. */
static __global__ void bias_kernel(const cuda_job *jobs, int n_max, int channels, int pixels,
                                   const float *d, float *out) {
    __shared__ float rows[THREADS];
    if ((int)blockIdx.x >= jobs[blockIdx.y].n) return;
    size_t sample = (size_t)blockIdx.y * n_max + blockIdx.x;
    const float *ds = d + sample * channels * pixels;
    int n_lanes = min(channels, THREADS), n_rows = THREADS / n_lanes;
    int lane = (int)threadIdx.x % n_lanes, row = (int)threadIdx.x / n_lanes;
    for (int first = 0; first < channels; first += n_lanes) {
        int c = first + lane;
        float sum = 0.0f;
        if (row < n_rows && c < channels)
            for (int p = row; p < pixels; p += n_rows) sum += ds[(size_t)p * channels + c];
        rows[threadIdx.x] = sum;
        __syncthreads();
        if (row == 0 && c < channels) {
            for (int r = 1; r < n_rows; r++) sum += rows[r * n_lanes + lane];
            out[sample * channels + c] = sum;
        }
        __syncthreads(); /* the next channels overwrite the rows */
    }
}

ct_status ct_cuda_bias_sums(const cuda_run *run, int channels, int pixels, const float *d_dev,
                            size_t from) {
    dim3 grid((unsigned)run->n_max, (unsigned)run->n_jobs);
    return launch_kernel(run, bias_kernel, grid, THREADS, 0, run->jobs_dev, run->n_max, channels,
                         pixels, d_dev, sums_at(run, from));
}
