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
#pragma unroll 8
    for (int s = 0; s < n_splits; s++) sum += p[(size_t)s * count];
    grads[jobs[blockIdx.y].out * stride + (size_t)(o * ci + i) * taps + t] = sum;
}

enum { TILE_TAPS = 9 };

/* The same for [tap][i][o] with up to 9 taps: a block has n_o outputs of n_i inputs, and turns them
 * round in shared memory so that writes are in line too. Grid: x over inputs, y over outputs, z =
 * job. */
static __global__ void by_tap_kernel(const cuda_job *jobs, const float *partial, int n_splits,
                                     int co, int ci, int taps, int n_o, float *grads,
                                     size_t stride) {
    __shared__ float tile[THREADS * TILE_TAPS + THREADS];
    int n_i = THREADS / n_o, o = (int)threadIdx.x % n_o, i = (int)threadIdx.x / n_o;
    int o0 = (int)blockIdx.y * n_o, i0 = (int)blockIdx.x * n_i, count = co * ci * taps;
    int row = n_i * taps + 1; /* floats of an output: odd, so that the banks take turns */
    const float *p = partial + (size_t)blockIdx.z * n_splits * count;
    float sums[TILE_TAPS] = {};
    if (o0 + o < co && i0 + i < ci)
        for (int s = 0; s < n_splits; s++)
#pragma unroll
            for (int t = 0; t < TILE_TAPS; t++)
                if (t < taps) sums[t] += p[(size_t)s * count + (t * ci + i0 + i) * co + o0 + o];
#pragma unroll
    for (int t = 0; t < TILE_TAPS; t++)
        if (t < taps) tile[o * row + i * taps + t] = sums[t];
    __syncthreads();
    float *to = grads + jobs[blockIdx.z].out * stride;
    for (int e = (int)threadIdx.x; e < n_o * n_i * taps; e += THREADS) {
        int eo = e / (n_i * taps), k = e % (n_i * taps);
        if (o0 + eo < co && i0 * taps + k < ci * taps)
            to[(size_t)(o0 + eo) * ci * taps + i0 * taps + k] = tile[eo * row + k];
    }
}

ct_status ct_cuda_sum_wgrad(const cuda_run *run, int n_splits, int co, int ci, int taps,
                            bool by_tap, size_t weight) {
    /* 64 x 64 channels, 16 jobs on an H200: 12 us this way, 15 the other; with fewer channels there
     * are too few blocks (16 x 16: 18 us against 4.5). */
    if (by_tap && taps <= TILE_TAPS && co >= 64 && ci >= 64) {
        int n_o = 64, n_i = THREADS / n_o;
        dim3 tiles((unsigned)(ci + n_i - 1) / n_i, (unsigned)(co + n_o - 1) / n_o,
                   (unsigned)run->n_jobs);
        by_tap_kernel<<<tiles, THREADS, 0, run->stream>>>(
            run->jobs_dev, run->partial_dev, n_splits, co, ci, taps, n_o, run->grads_dev + weight,
            run->grads_stride);
        CT_CUDA_LAUNCHED();
        return CT_OK;
    }
    size_t count = (size_t)co * ci * taps;
    dim3 grid((unsigned)((count + THREADS - 1) / THREADS), (unsigned)run->n_jobs);
    wgrad_kernel<<<grid, THREADS, 0, run->stream>>>(run->jobs_dev, run->partial_dev, n_splits, co,
                                                    ci, taps, by_tap, run->grads_dev + weight,
                                                    run->grads_stride);
    CT_CUDA_LAUNCHED();
    return CT_OK;
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
    for (int b = 0; b < job.n; b++) sum += (double)p[(size_t)b * s.width + s.first + e];
    grads[job.out * stride + s.to + e] = (float)sum;
}

ct_status ct_cuda_sum_samples(const cuda_run *run, const cuda_sum *sums_dev, int n_sums,
                              int n_blocks) {
    if (n_blocks == 0) return CT_OK;
    dim3 grid((unsigned)n_blocks, (unsigned)run->n_jobs);
    samples_kernel<<<grid, CUDA_SUM_BLOCK, 0, run->stream>>>(run->jobs_dev, run->n_max, sums_dev,
                                                             n_sums, run->sums_dev, run->grads_dev,
                                                             run->grads_stride);
    CT_CUDA_LAUNCHED();
    return CT_OK;
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
    float *out = run->sums_dev + from * (size_t)run->n_jobs * (size_t)run->n_max;
    dim3 grid((unsigned)run->n_max, (unsigned)run->n_jobs);
    bias_kernel<<<grid, THREADS, 0, run->stream>>>(run->jobs_dev, run->n_max, channels, pixels,
                                                   d_dev, out);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}
