/* EvoNorm (hard sigmoid) where the kernel before has taken sums on its way: forward of its output
 * (join, then apply, unless the reader of the norm applies it: cuda_gate), backward of the gradient
 * it has written (finish). What is left is a pass over the values: 8 bytes a value forward (12 with
 * an addition), 12 backward, half of that in bf16. The equations are those of backend/ref/norm.c.
 */
#include "backend/cuda/evonorm.cuh"

enum { MAX_THREADS = 512 };

/* Pixels of a sample's segment k, as a share of the most one has. */
static __device__ __forceinline__ float share_of(const cuda_segments &s, int sample, int k) {
    if (s.size == 0) return 1.0f;
    int start = sample * s.positions, from = (start / s.size + k) * s.size - start;
    return (float)(pixels_before(s, from + s.size) - pixels_before(s, from)) / (float)s.size;
}

/* Joins a sample's measures ([segment][2][channel]) to mean and 1/sigma of its groups, and writes
 * what a gate needs: first segments, a thread a channel, then channels, a warp a group. Grid: x =
 * sample, y = job. */
static __global__ void join_kernel(norm_call c, const float *measures, cuda_segments segments,
                                   float *scale) {
    extern __shared__ __align__(
        16) float shared[]; /* [2][channel]: mean, squared deviations; shares */
    const cuda_job job = c.jobs[blockIdx.y];
    if ((int)blockIdx.x >= job.n) return;
    const cuda_norm &n = c.norm;
    size_t sample = (size_t)blockIdx.y * c.n_max + blockIdx.x;
    float *means = shared, *squares = shared + n.channels, *shares = squares + n.channels;
    float pixels = (float)n.pixels;
    for (int s = (int)threadIdx.x; s < segments.n; s += (int)blockDim.x)
        shares[s] = share_of(segments, (int)blockIdx.x, s);
    __syncthreads();
    float size = segments.size > 0 ? (float)segments.size : pixels / (float)segments.n;
    measures += sample * segments.n * 2 * n.channels;
    for (int k = (int)threadIdx.x; k < n.channels; k += (int)blockDim.x) {
        float pivot = measures[k], sum = 0.0f, between = 0.0f, within = 0.0f;
#pragma unroll 8
        for (int s = 0; s < segments.n; s++) {
            const float *at = measures + (size_t)s * 2 * n.channels + k;
            float d = at[0] - pivot, part = d * shares[s];
            sum += part, between = fmaf(part, d, between), within += at[n.channels];
        }
        float mean = sum / (pixels / size);
        means[k] = pivot + mean;
        squares[k] = within + fmaxf(between - sum * mean, 0.0f) * size;
    }
    __syncthreads();
    const float *weight = c.params + job.model * c.stride + n.weight;
    int lane = threadIdx.x & 31, per_group = n.channels / n.groups;
    for (int g = (int)threadIdx.x / 32; g < n.groups; g += (int)blockDim.x / 32) {
        int first = g * per_group, last = first + per_group;
        float mean = 0.0f, square = 0.0f, count = (float)per_group;
        for (int k = first + lane; k < last; k += 32) mean += means[k];
        mean = warp_sum(mean) / count;
        for (int k = first + lane; k < last; k += 32) {
            float d = means[k] - mean;
            square += fmaf(d * d, pixels, squares[k]);
        }
        float inv = 1.0f / sqrtf(warp_sum(square) / (count * pixels) + CUDA_EPSILON);
        if (lane < 2 && c.stats != NULL)
            c.stats[(sample * n.groups + g) * 2 + lane] = lane == 0 ? mean : inv;
        for (int k = first + lane; k < last; k += 32)
            scale[sample * n.channels + k] = weight[k] * inv;
    }
}

/* y = gate(x) + residual, VEC values a thread. Grid: x over these, y = sample, z = job. */
template <class TX, class TY, int VEC>
static __global__ void apply_kernel(norm_call c, const float *scale) {
    const cuda_job job = c.jobs[blockIdx.z];
    int size = c.norm.channels * c.norm.pixels;
    int e = (int)(blockIdx.x * blockDim.x + threadIdx.x) * VEC, ch = e % c.norm.channels;
    if ((int)blockIdx.y >= job.n || e >= size) return;
    size_t sample = (size_t)blockIdx.z * c.n_max + blockIdx.y, at = sample * size + e;
    const float *bias = c.params + job.model * c.stride + c.norm.bias + ch;
    values<VEC> x, s, r = {};
    load((const TX *)c.x + at, x);
    load(scale + sample * c.norm.channels + ch, s);
    if (c.residual != NULL) load((const TY *)c.residual + at, r);
#pragma unroll
    for (int i = 0; i < VEC; i++) x.at[i] = gate_one(x.at[i], s.at[i], bias[i]) + r.at[i];
    store((TY *)c.y + at, x);
}

/* Sums of a sample's gradient from the parts [segment][2][channel] of the kernel that wrote it, in
 * shared memory: totals [2][channel], and group by group the coefficient of x - mean. Block 0 of
 * the sample also writes what the norm's parameters get of it. */
static __device__ __forceinline__ void join_sums(const norm_call &c, const float *row,
                                                 size_t sample, const float *parts, int n_segments,
                                                 float *totals, float *stats, float *back) {
    const cuda_norm &n = c.norm;
    int per_group = n.channels / n.groups, lane = threadIdx.x & 31;
    parts += sample * n_segments * 2 * n.channels;
    for (int k = (int)threadIdx.x; k < 2 * n.channels; k += (int)blockDim.x) {
        float sum = 0.0f;
#pragma unroll 8
        for (int s = 0; s < n_segments; s++) sum += parts[(size_t)s * 2 * n.channels + k];
        totals[k] = sum;
    }
    for (int k = (int)threadIdx.x; k < 2 * n.groups; k += (int)blockDim.x)
        stats[k] = c.stats[sample * 2 * n.groups + k];
    __syncthreads();
    for (int g = (int)threadIdx.x / 32; g < n.groups; g += (int)blockDim.x / 32) {
        float sum = 0.0f, inv = stats[2 * g + 1];
        for (int k = g * per_group + lane; k < (g + 1) * per_group; k += 32)
            sum = fmaf(row[n.weight + k], totals[k], sum);
        sum = warp_sum(sum) / ((float)per_group * (float)n.pixels);
        if (lane == 0) back[g] = inv * inv * inv * sum;
    }
    if (blockIdx.x == 0)
        for (int k = (int)threadIdx.x; k < n.channels; k += (int)blockDim.x) {
            float *out = c.sums + sample * 2 * n.channels + k;
            out[0] = totals[k] * stats[2 * (k / per_group) + 1];
            out[n.channels] = totals[n.channels + k];
        }
    __syncthreads();
}

/* dx from x and dy, whose sums are there. Grid: x = parts of a sample's pixels, y = sample, z =
 * job. A thread keeps to its VEC channels. */
template <class TX, class TY, int VEC>
static __global__ void __launch_bounds__(MAX_THREADS, 2)
    apply_back_kernel(norm_call c, const float *parts, int n_segments, int n_pixels) {
    extern __shared__ __align__(16) float shared[]; /* totals, stats, back */
    const cuda_job job = c.jobs[blockIdx.z];
    if ((int)blockIdx.y >= job.n) return;
    const cuda_norm &n = c.norm;
    size_t sample = (size_t)blockIdx.z * c.n_max + blockIdx.y;
    const float *row = c.params + job.model * c.stride;
    float *stats = shared + 2 * n.channels, *back = stats + 2 * n.groups;
    join_sums(c, row, sample, parts, n_segments, shared, stats, back);
    int n_lanes = n.channels / VEC, n_rows = (int)blockDim.x / n_lanes;
    int channel = (int)threadIdx.x % n_lanes * VEC, p = (int)threadIdx.x / n_lanes;
    if (p >= n_rows) return;
    float scaled[VEC], less[VEC], plus[VEC]; /* dx = dy scaled slope(x) - less x + plus */
#pragma unroll
    for (int i = 0; i < VEC; i++) {
        int group = (channel + i) / (n.channels / n.groups);
        scaled[i] = row[n.weight + channel + i] * stats[2 * group + 1];
        less[i] = back[group], plus[i] = back[group] * stats[2 * group];
    }
    int first = (int)blockIdx.x * n_pixels, last = min(n.pixels, first + n_pixels);
    size_t from = sample * n.channels * n.pixels + channel;
#pragma unroll 4
    for (int k = first + p; k < last; k += n_rows) {
        size_t at = from + (size_t)k * n.channels;
        values<VEC> x, dy;
        load((const TX *)c.x + at, x);
        load((const TY *)c.dy + at, dy);
#pragma unroll
        for (int i = 0; i < VEC; i++) {
            float slope;
            gated(x.at[i], &slope);
            dy.at[i] = dy.at[i] * scaled[i] * slope + fmaf(-less[i], x.at[i], plus[i]);
        }
        store((TX *)c.y + at, dy);
    }
}

static ct_status join(const cuda_run *run, const cuda_norm_call *call) {
    int channels = call->norm.channels;
    norm_call c = call_of(run, call);
    c.x = NULL;
    dim3 grid((unsigned)run->n_max, (unsigned)run->n_jobs);
    unsigned n_threads = channels <= 128 ? 128 : channels <= 256 ? 256 : 512;
    /* shares are read some at a time, whether they are there or not */
    size_t n_floats = 2 * (size_t)channels + (size_t)(call->segments.n + 7) / 8 * 8;
    return launch_kernel(run, join_kernel, grid, n_threads, n_floats * sizeof(float), c,
                         call->measures, call->segments, call->scale);
}

/* Values of a thread: 16 bytes of the smaller element. */
template <class TX, class TY> struct own_values {
    enum { VEC = sizeof(TX) + sizeof(TY) == 8 ? 4 : 8 };
};

template <class TX, class TY>
static ct_status launch_apply(const cuda_run *run, const cuda_norm_call *call) {
    constexpr int VEC = own_values<TX, TY>::VEC;
    norm_call c = forward_call(run, call);
    c.stats = NULL;
    unsigned n = (unsigned)(c.norm.channels * c.norm.pixels / VEC);
    dim3 grid((n + 255) / 256, (unsigned)run->n_max, (unsigned)run->n_jobs);
    return launch_kernel(run, apply_kernel<TX, TY, VEC>, grid, 256, 0, c, call->scale);
}

/* From a convolution's measures to statistics and a gate's scale, and what is left of the norm. */
static ct_status forward(const cuda_run *run, const cuda_norm_call *call) {
    CT_TRY(join(run, call));
    if (call->y == NULL) return CT_OK;
    return BY_ELEMENTS(call->elements, launch_apply, run, call);
}

bool ct_cuda_evonorm_finish_fits(const cuda_norm *n) {
    return n->slope == CUDA_NO_PARAM && n->channels % 8 == 0 && n->channels / 4 <= MAX_THREADS;
}

/* Values that a block has at least, and the most blocks of a sample. */
enum { BLOCK_VALUES = 32 * 1024, MOST_BLOCKS = 8 };

template <class TX, class TY>
static ct_status launch_finish(const cuda_run *run, const cuda_norm_call *call) {
    constexpr int VEC = own_values<TX, TY>::VEC;
    const cuda_norm *n = &call->norm;
    int n_blocks = n->channels * n->pixels / BLOCK_VALUES;
    n_blocks = n_blocks < 1 ? 1 : n_blocks > MOST_BLOCKS ? (int)MOST_BLOCKS : n_blocks;
    int n_pixels = (n->pixels + n_blocks - 1) / n_blocks;
    unsigned n_threads = n->channels / VEC > 256 ? 512 : 256;
    size_t bytes = (size_t)(2 * n->channels + 3 * n->groups) * sizeof(float);
    dim3 grid((unsigned)n_blocks, (unsigned)run->n_max, (unsigned)run->n_jobs);
    return launch_kernel(run, apply_back_kernel<TX, TY, VEC>, grid, n_threads, bytes,
                         back_call(run, call), call->measures, call->n_segments, n_pixels);
}

static ct_status backward(const cuda_run *run, const cuda_norm_call *call) {
    return BY_ELEMENTS(call->elements, launch_finish, run, call);
}

static bool fits(const cuda_norm_call *call, bool) {
    return call->n_segments > 0;
}

const cuda_norm_kernels ct_cuda_norm_measured = {fits, forward, backward};
