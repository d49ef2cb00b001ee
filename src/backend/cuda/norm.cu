/* EvoNorm-S0 and GroupNorm, one block a sample; the equations are those of backend/ref/norm.c.
 *   EvoNorm   y = x s(x) / sigma w + b,      s = clamp(x/6 + 1/2, 0, 1) or sigmoid(v x)
 *   GroupNorm y = (x - mean) / sigma w + b
 * Grid: x = sample, y = job. Forward reads x three times (twice from the caches) and writes y;
 * backward reads x and dy twice and writes dx: 8 and 12 bytes a value from memory. A thread keeps
 * to one channel, so that sums over pixels need one reduction over the rows of threads. */
#include "backend/cuda/evonorm.cuh"

enum { THREADS = 256 };
enum { EVONORM = CUDA_EVONORM, EVONORM_S0 = CUDA_EVONORM_S0, GROUPNORM = CUDA_GROUPNORM };

/* This thread's place among the channels. */
typedef struct lanes {
    int n, n_rows, lane, row;
} lanes;

static __device__ __forceinline__ lanes lanes_of(int channels) {
    lanes l;
    l.n = min(channels, (int)THREADS);
    l.n_rows = THREADS / l.n;
    l.lane = (int)threadIdx.x % l.n;
    l.row = (int)threadIdx.x / l.n;
    return l;
}

/* Adds up the rows' values into out[lane], lane < n_out; all threads call it. */
static __device__ void add_rows(const lanes &l, float value, float *scratch, int n_out,
                                float *out) {
    scratch[threadIdx.x] = value;
    __syncthreads();
    for (int n = l.n_rows; n > 1;) {
        int half = (n + 1) / 2;
        if (l.row < n - half) scratch[threadIdx.x] += scratch[threadIdx.x + half * l.n];
        __syncthreads();
        n = half;
    }
    if (l.row == 0 && l.lane < n_out) out[l.lane] = scratch[l.lane];
    __syncthreads(); /* before scratch is used again */
}

/* Numerator and its derivative; dv: derivative by the slope. */
template <int KIND>
static __device__ __forceinline__ float gated(float x, float v, float mean, float inv, float *dx,
                                              float *dv) {
    *dv = 0.0f;
    if (KIND == GROUPNORM) {
        *dx = 1.0f;
        return (x - mean) * inv;
    }
    if (KIND == EVONORM) {
        float u = fmaf(x, 1.0f / 6.0f, 0.5f), s = fminf(fmaxf(u, 0.0f), 1.0f);
        *dx = u > 0.0f && u < 1.0f ? fmaf(x, 1.0f / 6.0f, s) : s;
        return x * s;
    }
    float s = 1.0f / (1.0f + expf(-v * x)), ds = s * (1.0f - s);
    *dx = fmaf(x * v, ds, s);
    *dv = x * x * ds;
    return x * s;
}

/* Mean and 1/sigma of every group into stats[group][2] (shared memory). */
static __device__ void measure(const norm_call &c, const float *x, const lanes &l, float *scratch,
                               float *channel, float *stats) {
    const cuda_norm &n = c.norm;
    int per_group = n.channels / n.groups;
    float count = (float)per_group * (float)n.pixels;
    for (int pass = 0; pass < 2; pass++) {
        for (int first = 0; first < n.channels; first += l.n) {
            int ch = first + l.lane;
            float sum = 0.0f;
            if (l.row < l.n_rows && ch < n.channels) {
                float mean = pass == 0 ? 0.0f : stats[2 * (ch / per_group)];
                for (int p = l.row; p < n.pixels; p += l.n_rows) {
                    float value = x[(size_t)p * n.channels + ch] - mean;
                    sum += pass == 0 ? value : value * value;
                }
            }
            add_rows(l, sum, scratch, n.channels - first, channel + first);
        }
        if ((int)threadIdx.x < n.groups) {
            float sum = 0.0f;
            for (int k = 0; k < per_group; k++) sum += channel[threadIdx.x * per_group + k];
            stats[2 * threadIdx.x + pass] =
                pass == 0 ? sum / count : 1.0f / sqrtf(sum / count + CUDA_EPSILON);
        }
        __syncthreads();
    }
}

template <int KIND> static __global__ void __launch_bounds__(THREADS) forward_kernel(norm_call c) {
    extern __shared__ float shared[]; /* scratch [THREADS], stats [groups][2], channel sums */
    const cuda_norm &n = c.norm;
    const cuda_job job = c.jobs[blockIdx.y];
    if ((int)blockIdx.x >= job.n) return;
    size_t sample = (size_t)blockIdx.y * c.n_max + blockIdx.x, size = (size_t)n.channels * n.pixels;
    float *stats = shared + THREADS, *channel = stats + 2 * n.groups;
    const float *x = (const float *)c.x + sample * size, *row = c.params + job.model * c.stride;
    const float *residual = (const float *)c.residual;
    float *y = (float *)c.y + sample * size;
    lanes l = lanes_of(n.channels);
    measure(c, x, l, shared, channel, stats);
    if (c.stats != NULL && (int)threadIdx.x < 2 * n.groups)
        c.stats[sample * 2 * n.groups + threadIdx.x] = stats[threadIdx.x];
    if (l.row >= l.n_rows) return;
    for (int ch = l.lane; ch < n.channels; ch += l.n) {
        int group = ch / (n.channels / n.groups);
        float mean = stats[2 * group], inv = stats[2 * group + 1], dx, dv;
        float v = KIND == EVONORM_S0 ? row[n.slope + ch] : 0.0f;
        float w = row[n.weight + ch] * (KIND == GROUPNORM ? 1.0f : inv), bias = row[n.bias + ch];
        for (int p = l.row; p < n.pixels; p += l.n_rows) {
            size_t at = (size_t)p * n.channels + ch;
            float value = fmaf(gated<KIND>(x[at], v, mean, inv, &dx, &dv), w, bias);
            if (residual != NULL) value += residual[sample * size + at];
            y[at] = value;
        }
    }
}

/* Per-channel sums over the pixels: dy * numerator, dy, and for S0 dy * w * d/dv. */
template <int KIND>
static __device__ void channel_sums(const norm_call &c, const float *x, const float *dy,
                                    const float *row, const float *stats, const lanes &l,
                                    float *scratch, float *sums) {
    const cuda_norm &n = c.norm;
    for (int first = 0; first < n.channels; first += l.n) {
        int ch = first + l.lane;
        float with_x = 0.0f, plain = 0.0f, slope = 0.0f, dx, dv;
        if (l.row < l.n_rows && ch < n.channels) {
            int group = ch / (n.channels / n.groups);
            float mean = stats[2 * group], inv = stats[2 * group + 1];
            float v = KIND == EVONORM_S0 ? row[n.slope + ch] : 0.0f;
            for (int p = l.row; p < n.pixels; p += l.n_rows) {
                size_t at = (size_t)p * n.channels + ch;
                with_x = fmaf(dy[at], gated<KIND>(x[at], v, mean, inv, &dx, &dv), with_x);
                plain += dy[at];
                if (KIND == EVONORM_S0) slope = fmaf(dy[at], dv, slope);
            }
            if (KIND == EVONORM_S0) slope *= row[n.weight + ch] * inv;
        }
        int n_out = n.channels - first;
        add_rows(l, with_x, scratch, n_out, sums + first);
        add_rows(l, plain, scratch, n_out, sums + n.channels + first);
        if (KIND == EVONORM_S0) add_rows(l, slope, scratch, n_out, sums + 2 * n.channels + first);
    }
}

template <int KIND>
static __device__ void write_dx(const norm_call &c, const float *x, const float *dy,
                                const float *row, const float *stats, const float *group_sums,
                                const lanes &l, float *dx) {
    const cuda_norm &n = c.norm;
    int per_group = n.channels / n.groups;
    float count = (float)per_group * (float)n.pixels;
    if (l.row >= l.n_rows) return;
    for (int ch = l.lane; ch < n.channels; ch += l.n) {
        int group = ch / per_group;
        float mean = stats[2 * group], inv = stats[2 * group + 1];
        float with_x = group_sums[2 * group] / count, plain = group_sums[2 * group + 1] / count;
        float v = KIND == EVONORM_S0 ? row[n.slope + ch] : 0.0f, w = row[n.weight + ch];
        float back = inv * inv * inv * with_x; /* - d sigma / (n sigma) */
        for (int p = l.row; p < n.pixels; p += l.n_rows) {
            size_t at = (size_t)p * n.channels + ch;
            float slope, dv, q = dy[at] * w;
            float numerator = gated<KIND>(x[at], v, mean, inv, &slope, &dv);
            dx[at] = KIND == GROUPNORM ? (q - plain - numerator * with_x) * inv
                                       : q * slope * inv - back * (x[at] - mean);
        }
    }
}

template <int KIND> static __global__ void __launch_bounds__(THREADS) backward_kernel(norm_call c) {
    extern __shared__ float shared[]; /* scratch, stats, group sums [groups][2], channel sums */
    const cuda_norm &n = c.norm;
    const cuda_job job = c.jobs[blockIdx.y];
    if ((int)blockIdx.x >= job.n) return;
    size_t sample = (size_t)blockIdx.y * c.n_max + blockIdx.x, size = (size_t)n.channels * n.pixels;
    float *stats = shared + THREADS, *group_sums = stats + 2 * n.groups;
    float *sums = group_sums + 2 * n.groups;
    const float *x = (const float *)c.x + sample * size, *dy = (const float *)c.dy + sample * size;
    const float *row = c.params + job.model * c.stride;
    lanes l = lanes_of(n.channels);
    if ((int)threadIdx.x < 2 * n.groups)
        stats[threadIdx.x] = c.stats[sample * 2 * n.groups + threadIdx.x];
    __syncthreads();
    channel_sums<KIND>(c, x, dy, row, stats, l, shared, sums);
    int per_group = n.channels / n.groups, n_kinds = KIND == EVONORM_S0 ? 3 : 2;
    if ((int)threadIdx.x < 2 * n.groups) {
        int group = (int)threadIdx.x / 2, which = (int)threadIdx.x % 2;
        float sum = 0.0f;
        for (int k = group * per_group; k < (group + 1) * per_group; k++)
            sum = fmaf(row[n.weight + k], sums[which * n.channels + k], sum);
        group_sums[threadIdx.x] = sum;
    }
    float *out = c.sums + sample * n_kinds * n.channels;
    for (int k = (int)threadIdx.x; k < n_kinds * n.channels; k += THREADS) {
        float inv = KIND == GROUPNORM || k >= n.channels ? 1.0f : stats[2 * (k / per_group) + 1];
        out[k] = sums[k] * inv;
    }
    __syncthreads();
    write_dx<KIND>(c, x, dy, row, stats, group_sums, l, (float *)c.y + sample * size);
}

typedef void norm_kernel(norm_call);

/* `floats` of shared memory beside the scratch. */
static ct_status launch(const cuda_run *run, norm_kernel *const kernels[], cuda_norm_kind kind,
                        int floats, const norm_call &c) {
    return launch_kernel(run, kernels[kind], dim3((unsigned)run->n_max, (unsigned)run->n_jobs),
                         THREADS, (size_t)(THREADS + floats) * sizeof(float), c);
}

static ct_status forward(const cuda_run *run, const cuda_norm_call *call) {
    static norm_kernel *const kernels[] = {forward_kernel<EVONORM>, forward_kernel<EVONORM_S0>,
                                           forward_kernel<GROUPNORM>};
    norm_call c = forward_call(run, call);
    return launch(run, kernels, call->kind, 2 * c.norm.groups + c.norm.channels, c);
}

static ct_status backward(const cuda_run *run, const cuda_norm_call *call) {
    static norm_kernel *const kernels[] = {backward_kernel<EVONORM>, backward_kernel<EVONORM_S0>,
                                           backward_kernel<GROUPNORM>};
    norm_call c = back_call(run, call);
    return launch(run, kernels, call->kind, 4 * c.norm.groups + 3 * c.norm.channels, c);
}

static bool fits(const cuda_norm_call *, bool) {
    return true;
}

const cuda_norm_kernels ct_cuda_norm_general = {fits, forward, backward};
