/* BatchNorm: y = (x - mean) / sigma w + b with statistics of a channel over the batch; running
 * statistics (the variance of the unbiased kind) for evaluation, as backend/ref/norm.c has it.
 * Grid: x over blocks of 32 channels, y = job. A warp reads 32 channels of a pixel; the 32 rows of
 * a block share the pixels of all samples. Reads x three times and writes y: 16 bytes a value. */
#include "backend/cuda/device.cuh"

enum { LANES = 32, ROWS = 32 };

typedef struct batch_call {
    const cuda_job *jobs;
    int n_max;
    cuda_norm norm;
    cuda_mode mode;
    size_t buffer;
    const float *params;
    size_t stride;
    float *buffers;
    size_t buffers_stride;
    const float *x, *residual, *dy;
    float *stats, *y; /* y: the output, or dx */
    float *grads;
    size_t grads_stride;
} batch_call;

/* The sum over a block's rows, the same bits for every row; all threads call it. */
static __device__ double sum_rows(double value, double (*scratch)[LANES]) {
    scratch[threadIdx.y][threadIdx.x] = value;
    __syncthreads();
    double sum = 0.0;
    for (int r = 0; r < ROWS; r++) sum += scratch[r][threadIdx.x];
    __syncthreads();
    return sum;
}

static __device__ void move_running(const batch_call &c, const cuda_job &job, int ch, double mean,
                                    double var, double n) {
    float *running = c.buffers + job.model * c.buffers_stride + c.buffer + ch;
    double unbiased = n > 1 ? var * n / (n - 1) : var;
    running[0] = (float)(running[0] + 0.1 * (mean - running[0]));
    running += c.norm.channels;
    running[0] = (float)(running[0] + 0.1 * (unbiased - running[0]));
}

static __global__ void forward_kernel(batch_call c) {
    __shared__ double scratch[ROWS][LANES];
    const cuda_job job = c.jobs[blockIdx.y];
    int channels = c.norm.channels, n = job.n * c.norm.pixels;
    int ch = (int)(blockIdx.x * LANES + threadIdx.x);
    bool inside = ch < channels;
    size_t from = (size_t)blockIdx.y * c.n_max * c.norm.pixels * channels + ch;
    double mean = 0.0, var = 0.0;
    if (c.mode == CUDA_EVALUATE) {
        const float *running = c.buffers + job.model * c.buffers_stride + c.buffer;
        if (inside) mean = running[ch], var = running[channels + ch];
    } else {
        for (int p = (int)threadIdx.y; p < n && inside; p += ROWS)
            mean += c.x[from + (size_t)p * channels];
        mean = sum_rows(mean, scratch) / n;
        for (int p = (int)threadIdx.y; p < n && inside; p += ROWS) {
            double d = c.x[from + (size_t)p * channels] - mean;
            var += d * d;
        }
        var = sum_rows(var, scratch) / n;
    }
    if (!inside) return;
    float inv = (float)(1.0 / sqrt(var + (double)CUDA_EPSILON)), center = (float)mean;
    const float *row = c.params + job.model * c.stride;
    float w = row[c.norm.weight + ch], bias = row[c.norm.bias + ch];
    for (int p = (int)threadIdx.y; p < n; p += ROWS) {
        size_t at = from + (size_t)p * channels;
        float value = (c.x[at] - center) * inv * w + bias;
        c.y[at] = c.residual != NULL ? value + c.residual[at] : value;
    }
    if (threadIdx.y != 0) return;
    if (c.stats != NULL) {
        c.stats[(size_t)blockIdx.y * 2 * channels + ch] = center;
        c.stats[((size_t)blockIdx.y * 2 + 1) * channels + ch] = inv;
    }
    if (c.mode == CUDA_TRAIN) move_running(c, job, ch, mean, var, n);
}

static __global__ void backward_kernel(batch_call c) {
    __shared__ double scratch[ROWS][LANES];
    const cuda_job job = c.jobs[blockIdx.y];
    int channels = c.norm.channels, n = job.n * c.norm.pixels;
    int ch = (int)(blockIdx.x * LANES + threadIdx.x);
    bool inside = ch < channels;
    size_t from = (size_t)blockIdx.y * c.n_max * c.norm.pixels * channels + ch;
    const float *stats = c.stats + (size_t)blockIdx.y * 2 * channels;
    float mean = inside ? stats[ch] : 0.0f, inv = inside ? stats[channels + ch] : 0.0f;
    double plain = 0.0, with_x = 0.0;
    for (int p = (int)threadIdx.y; p < n && inside; p += ROWS) {
        size_t at = from + (size_t)p * channels;
        plain += c.dy[at];
        with_x += c.dy[at] * (c.x[at] - mean) * inv;
    }
    plain = sum_rows(plain, scratch);
    with_x = sum_rows(with_x, scratch);
    if (!inside) return;
    const float w = c.params[job.model * c.stride + c.norm.weight + ch];
    float mean_dy = (float)(plain / n), mean_dyx = (float)(with_x / n);
    for (int p = (int)threadIdx.y; p < n; p += ROWS) {
        size_t at = from + (size_t)p * channels;
        c.y[at] = w * inv * (c.dy[at] - mean_dy - (c.x[at] - mean) * inv * mean_dyx);
    }
    if (threadIdx.y != 0) return;
    float *grads = c.grads + job.out * c.grads_stride;
    grads[c.norm.weight + ch] = (float)with_x;
    grads[c.norm.bias + ch] = (float)plain;
}

static batch_call call_of(const cuda_run *run, const cuda_norm_call *call) {
    batch_call c = {};
    c.jobs = run->jobs_dev, c.n_max = run->n_max, c.norm = call->norm;
    c.x = (const float *)call->x, c.stats = call->stats;
    c.params = run->params_dev, c.stride = run->params_stride;
    c.buffers = run->buffers_dev, c.buffers_stride = run->buffers_stride;
    c.grads = run->grads_dev, c.grads_stride = run->grads_stride;
    return c;
}

static dim3 grid_of(const cuda_run *run, const cuda_norm *norm) {
    return dim3((unsigned)(norm->channels + LANES - 1) / LANES, (unsigned)run->n_jobs);
}

static ct_status forward(const cuda_run *run, const cuda_norm_call *call) {
    batch_call c = call_of(run, call);
    c.mode = call->mode, c.buffer = call->buffer;
    c.residual = (const float *)call->added, c.y = (float *)call->y;
    return launch_kernel(run, forward_kernel, grid_of(run, &call->norm), dim3(LANES, ROWS), 0, c);
}

static ct_status backward(const cuda_run *run, const cuda_norm_call *call) {
    batch_call c = call_of(run, call);
    c.dy = (const float *)call->dy, c.y = (float *)call->dx;
    return launch_kernel(run, backward_kernel, grid_of(run, &call->norm), dim3(LANES, ROWS), 0, c);
}

static bool fits(const cuda_norm_call *call, bool) {
    return call->kind == CUDA_BATCHNORM;
}

const cuda_norm_kernels ct_cuda_norm_batch = {fits, forward, backward};
