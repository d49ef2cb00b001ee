/* EvoNorm (hard sigmoid) with a sample shared out to several blocks, each with the channels of one
 * or some groups; the equations are those of backend/ref/norm.c.
 * Grid: x = groups of a sample, y = sample, z = job. A thread keeps to its 1, 2 or 4 channels and
 * goes down the pixels; what a block reads stays in shared memory between the sums and their use
 * where it fits. 8 bytes a value forward, 12 backward; without room in shared memory a value is
 * read twice, the second time from L2 if it is still there. Slices of pixels are cut so that lines
 * are shared by blocks that run at the same time. */
#include "backend/cuda/device.cuh"

enum { MAX_THREADS = 512 };

typedef struct group_call {
    const cuda_job *jobs;
    int n_max;
    cuda_norm norm;
    int wide, n_groups; /* channels and groups of a block */
    const float *params;
    size_t stride;
    const float *x, *residual, *dy;
    float *stats, *y; /* y: the output, or dx */
    float *sums;      /* backward: per-sample sums */
} group_call;

/* A thread's place: channels VEC * lane .. of the block's, pixels row, row + n_rows .. */
typedef struct place {
    int n_lanes, n_rows, lane, row, channel;
    size_t sample, from; /* of the sample's values: this thread's first */
} place;

template <int VEC> static __device__ __forceinline__ place place_of(const group_call &c) {
    place p;
    p.n_lanes = c.wide / VEC, p.n_rows = (int)blockDim.x / p.n_lanes;
    p.lane = (int)threadIdx.x % p.n_lanes, p.row = (int)threadIdx.x / p.n_lanes;
    p.channel = (int)blockIdx.x * c.wide + p.lane * VEC;
    p.sample = (size_t)blockIdx.z * c.n_max + blockIdx.y;
    p.from = p.sample * c.norm.channels * c.norm.pixels + p.channel;
    return p;
}

template <int VEC> struct values { float at[VEC]; };

template <int VEC> static __device__ __forceinline__ values<VEC> load(const float *from) {
    values<VEC> v;
    if (VEC == 4)
        *(float4 *)v.at = *(const float4 *)from;
    else if (VEC == 2)
        *(float2 *)v.at = *(const float2 *)from;
    else
        v.at[0] = from[0];
    return v;
}

template <int VEC> static __device__ __forceinline__ void store(float *to, const values<VEC> &v) {
    if (VEC == 4)
        *(float4 *)to = *(const float4 *)v.at;
    else if (VEC == 2)
        *(float2 *)to = *(const float2 *)v.at;
    else
        to[0] = v.at[0];
}

/* Numerator x s(x) and its derivative. */
static __device__ __forceinline__ float gated(float x, float *slope) {
    float u = fmaf(x, 1.0f / 6.0f, 0.5f), s = fminf(fmaxf(u, 0.0f), 1.0f);
    *slope = u > 0.0f && u < 1.0f ? fmaf(x, 1.0f / 6.0f, s) : s;
    return x * s;
}

/* totals[k] = sum over the rows of threads of value k of a row, N * VEC * n_lanes of them, in a
 * fixed order: slices of the rows first. `scratch` has N * VEC floats a thread; all threads call
 * it. */
template <int VEC, int N>
static __device__ void add_rows(const place &p, const float part[N][VEC], float *scratch,
                                float *totals) {
    int wide = p.n_lanes * VEC, width = N * wide, n_slices = (int)blockDim.x / width;
    if (n_slices == 0) n_slices = 1;
    if (p.row < p.n_rows)
#pragma unroll
        for (int e = 0; e < N * VEC; e++)
            scratch[p.row * width + e / VEC * wide + p.lane * VEC + e % VEC] =
                part[e / VEC][e % VEC];
    __syncthreads();
    for (int k = (int)threadIdx.x; k < n_slices * width; k += (int)blockDim.x) {
        int slice = k / width, column = k - slice * width;
        float sum = 0.0f;
        for (int r = slice; r < p.n_rows; r += n_slices) sum += scratch[r * width + column];
        if (slice < p.n_rows) scratch[slice * width + column] = sum; /* nobody else reads it */
    }
    __syncthreads();
    for (int k = (int)threadIdx.x; k < width; k += (int)blockDim.x) {
        float sum = 0.0f;
        for (int r = 0; r < min(n_slices, p.n_rows); r++) sum += scratch[r * width + k];
        totals[k] = sum;
    }
    __syncthreads(); /* before scratch is used again */
}

/* Mean and 1/sigma of the block's groups to stats[group][2], in shared memory. */
template <int VEC, bool KEPT>
static __device__ void measure(const group_call &c, const place &p, float *kept, float *scratch,
                               float *totals, float *stats) {
    int per_group = c.wide / c.n_groups;
    float count = (float)per_group * (float)c.norm.pixels;
    for (int pass = 0; pass < 2; pass++) {
        float part[1][VEC] = {}, mean[VEC];
#pragma unroll
        for (int i = 0; i < VEC; i++)
            mean[i] = pass == 0 ? 0.0f : stats[2 * ((p.lane * VEC + i) / per_group)];
        if (p.row < p.n_rows)
#pragma unroll 4
            for (int k = p.row; k < c.norm.pixels; k += p.n_rows) {
                float *own = kept + k * c.wide + p.lane * VEC;
                values<VEC> x =
                    load<VEC>(KEPT && pass > 0 ? own : c.x + p.from + (size_t)k * c.norm.channels);
                if (KEPT && pass == 0) store<VEC>(own, x);
#pragma unroll
                for (int i = 0; i < VEC; i++) {
                    float d = x.at[i] - mean[i];
                    part[0][i] = pass == 0 ? part[0][i] + d : fmaf(d, d, part[0][i]);
                }
            }
        add_rows<VEC, 1>(p, part, scratch, totals);
        if ((int)threadIdx.x < c.n_groups) {
            float sum = 0.0f;
            for (int k = 0; k < per_group; k++) sum += totals[threadIdx.x * per_group + k];
            stats[2 * threadIdx.x + pass] =
                pass == 0 ? sum / count : 1.0f / sqrtf(sum / count + CUDA_EPSILON);
        }
        __syncthreads();
    }
}

template <int VEC, bool KEPT>
static __global__ void __launch_bounds__(MAX_THREADS, 1) forward_kernel(group_call c) {
    extern __shared__ __align__(16) float shared[]; /* kept, scratch, totals, stats */
    const cuda_job job = c.jobs[blockIdx.z];
    if ((int)blockIdx.y >= job.n) return;
    place p = place_of<VEC>(c);
    float *kept = shared, *scratch = kept + (KEPT ? c.wide * c.norm.pixels : 0);
    float *totals = scratch + VEC * blockDim.x, *stats = totals + c.wide;
    measure<VEC, KEPT>(c, p, kept, scratch, totals, stats);
    int group0 = (int)blockIdx.x * c.n_groups;
    if (c.stats != NULL && (int)threadIdx.x < 2 * c.n_groups)
        c.stats[(p.sample * c.norm.groups + group0) * 2 + threadIdx.x] = stats[threadIdx.x];
    if (p.row >= p.n_rows) return;
    const float *row = c.params + job.model * c.stride;
    float w[VEC], b[VEC], slope;
#pragma unroll
    for (int i = 0; i < VEC; i++) {
        int group = (p.lane * VEC + i) / (c.wide / c.n_groups);
        w[i] = row[c.norm.weight + p.channel + i] * stats[2 * group + 1];
        b[i] = row[c.norm.bias + p.channel + i];
    }
#pragma unroll 2
    for (int k = p.row; k < c.norm.pixels; k += p.n_rows) {
        size_t at = p.from + (size_t)k * c.norm.channels;
        values<VEC> x = load<VEC>(KEPT ? kept + k * c.wide + p.lane * VEC : c.x + at), r = {};
        if (c.residual != NULL) r = load<VEC>(c.residual + at);
#pragma unroll
        for (int i = 0; i < VEC; i++) x.at[i] = fmaf(gated(x.at[i], &slope), w[i], b[i]) + r.at[i];
        store<VEC>(c.y + at, x);
    }
}

/* Per-channel sums over the pixels: dy * numerator to totals[0], dy to totals[1]. KEPT: of x and
 * dy, so many stay in shared memory. */
template <int VEC, int KEPT>
static __device__ void channel_sums(const group_call &c, const place &p, float *kept_x,
                                    float *kept_dy, float *scratch, float *totals) {
    float part[2][VEC] = {}, slope;
    if (p.row < p.n_rows)
#pragma unroll 4
        for (int k = p.row; k < c.norm.pixels; k += p.n_rows) {
            size_t at = p.from + (size_t)k * c.norm.channels;
            values<VEC> x = load<VEC>(c.x + at), dy = load<VEC>(c.dy + at);
            if (KEPT > 0) store<VEC>(kept_x + k * c.wide + p.lane * VEC, x);
            if (KEPT > 1) store<VEC>(kept_dy + k * c.wide + p.lane * VEC, dy);
#pragma unroll
            for (int i = 0; i < VEC; i++) {
                part[0][i] = fmaf(dy.at[i], gated(x.at[i], &slope), part[0][i]);
                part[1][i] += dy.at[i];
            }
        }
    add_rows<VEC, 2>(p, part, scratch, totals);
}

template <int VEC, int KEPT>
static __device__ void write_dx(const group_call &c, const place &p, const float *row,
                                const float *stats, const float *with_x, const float *kept_x,
                                const float *kept_dy) {
    int per_group = c.wide / c.n_groups;
    float mean[VEC], back[VEC], scaled[VEC], slope;
#pragma unroll
    for (int i = 0; i < VEC; i++) {
        int group = (p.lane * VEC + i) / per_group;
        float inv = stats[2 * group + 1];
        mean[i] = stats[2 * group];
        back[i] = inv * inv * inv * with_x[group];
        scaled[i] = row[c.norm.weight + p.channel + i] * inv;
    }
#pragma unroll 4
    for (int k = p.row; k < c.norm.pixels; k += p.n_rows) {
        size_t at = p.from + (size_t)k * c.norm.channels;
        int own = k * c.wide + p.lane * VEC;
        values<VEC> x = load<VEC>(KEPT > 0 ? kept_x + own : c.x + at);
        values<VEC> dy = load<VEC>(KEPT > 1 ? kept_dy + own : c.dy + at);
#pragma unroll
        for (int i = 0; i < VEC; i++) {
            gated(x.at[i], &slope);
            dy.at[i] = dy.at[i] * scaled[i] * slope - back[i] * (x.at[i] - mean[i]);
        }
        store<VEC>(c.y + at, dy);
    }
}

template <int VEC, int KEPT>
static __global__ void __launch_bounds__(MAX_THREADS, 1) backward_kernel(group_call c) {
    extern __shared__ __align__(16) float shared[]; /* kept x, dy; scratch, totals, stats, sums */
    const cuda_job job = c.jobs[blockIdx.z];
    if ((int)blockIdx.y >= job.n) return;
    const cuda_norm &n = c.norm;
    place p = place_of<VEC>(c);
    int group0 = (int)blockIdx.x * c.n_groups, per_group = c.wide / c.n_groups;
    float *scratch = shared + KEPT * c.wide * n.pixels, *kept_dy = shared + c.wide * n.pixels;
    float *totals = scratch + 2 * VEC * blockDim.x;
    float *stats = totals + 2 * c.wide, *with_x = stats + 2 * c.n_groups;
    const float *row = c.params + job.model * c.stride;
    if ((int)threadIdx.x < 2 * c.n_groups)
        stats[threadIdx.x] = c.stats[(p.sample * n.groups + group0) * 2 + threadIdx.x];
    channel_sums<VEC, KEPT>(c, p, shared, kept_dy, scratch, totals);
    if ((int)threadIdx.x < c.n_groups) {
        float sum = 0.0f;
        for (int k = (int)threadIdx.x * per_group; k < ((int)threadIdx.x + 1) * per_group; k++)
            sum = fmaf(row[n.weight + blockIdx.x * c.wide + k], totals[k], sum);
        with_x[threadIdx.x] = sum / ((float)per_group * (float)n.pixels);
    }
    float *out = c.sums + p.sample * 2 * n.channels + blockIdx.x * c.wide;
    for (int k = (int)threadIdx.x; k < c.wide; k += (int)blockDim.x) {
        out[k] = totals[k] * stats[2 * (k / per_group) + 1];
        out[n.channels + k] = totals[c.wide + k];
    }
    __syncthreads();
    if (p.row < p.n_rows) write_dx<VEC, KEPT>(c, p, row, stats, with_x, shared, kept_dy);
}

/* Joins a sample's measures ([segment][2][channel], equal numbers of pixels) to mean and 1/sigma of
 * its groups, and writes what a gate needs. A warp a group; grid: x = sample, y = job. */
static __global__ void join_kernel(group_call c, const float *measures, int n_segments,
                                   float *scale) {
    const cuda_job job = c.jobs[blockIdx.y];
    if ((int)blockIdx.x >= job.n) return;
    const cuda_norm &n = c.norm;
    size_t sample = (size_t)blockIdx.y * c.n_max + blockIdx.x;
    int lane = threadIdx.x & 31, per_group = n.channels / n.groups, count = n_segments * per_group;
    const float *m = measures + sample * n_segments * 2 * n.channels;
    const float *weight = c.params + job.model * c.stride + n.weight;
    for (int g = (int)threadIdx.x / 32; g < n.groups; g += (int)blockDim.x / 32) {
        float mean = 0.0f, square = 0.0f, rows = (float)(n.pixels / n_segments);
        for (int e = lane; e < count; e += 32)
            mean += m[(size_t)(e / per_group) * 2 * n.channels + g * per_group + e % per_group];
        mean = warp_sum(mean) / (float)count;
        for (int e = lane; e < count; e += 32) {
            const float *at = m + (size_t)(e / per_group) * 2 * n.channels + g * per_group;
            float d = at[e % per_group] - mean;
            square += fmaf(d * d, rows, at[n.channels + e % per_group]);
        }
        square = warp_sum(square);
        float inv = 1.0f / sqrtf(square / ((float)count * rows) + CUDA_EPSILON);
        if (lane < 2 && c.stats != NULL)
            c.stats[(sample * n.groups + g) * 2 + lane] = lane == 0 ? mean : inv;
        for (int k = g * per_group + lane; k < (g + 1) * per_group; k += 32)
            scale[sample * n.channels + k] = weight[k] * inv;
    }
}

/* y = gate(x) + residual, four values a thread. Grid: x over quads, y = sample, z = job. */
static __global__ void apply_kernel(group_call c, const float *scale) {
    const cuda_job job = c.jobs[blockIdx.z];
    int size = c.norm.channels * c.norm.pixels;
    int e = (int)(blockIdx.x * blockDim.x + threadIdx.x) * 4, ch = e % c.norm.channels;
    if ((int)blockIdx.y >= job.n || e >= size) return;
    size_t sample = (size_t)blockIdx.z * c.n_max + blockIdx.y, at = sample * size + e;
    const float *bias = c.params + job.model * c.stride + c.norm.bias + ch;
    values<4> x = load<4>(c.x + at), s = load<4>(scale + sample * c.norm.channels + ch), r = {};
    if (c.residual != NULL) r = load<4>(c.residual + at);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float slope;
        x.at[i] = fmaf(gated(x.at[i], &slope), s.at[i], bias[i]) + r.at[i];
    }
    store<4>(c.y + at, x);
}

static group_call call_of(const cuda_run *run, const cuda_norm *norm, const float *x_dev) {
    group_call c = {};
    c.jobs = run->jobs_dev, c.n_max = run->n_max, c.norm = *norm;
    c.params = run->params_dev, c.stride = run->params_stride, c.x = x_dev;
    return c;
}

/* How a launch shares out the work. */
typedef struct shares {
    int vec, n_threads;
    int kept; /* tensors */
    size_t bytes;
} shares;

/* Bytes of shared memory where several groups are taken, and at most; channels of a block. */
enum { ROOM = 48 * 1024, MOST_ROOM = 112 * 1024, MOST_WIDE = 256 };

/* Blocks take one group, or several where these are small; as many tensors are kept as leave room
 * for two blocks. */
static shares share_out(group_call *c, int n_tensors, size_t shared_limit) {
    const cuda_norm *n = &c->norm;
    int per_group = n->channels / n->groups;
    size_t group_bytes = (size_t)per_group * (size_t)n->pixels * sizeof(float);
    c->n_groups = 1;
    while (c->n_groups < n->groups && n->groups % (2 * c->n_groups) == 0 &&
           2 * c->n_groups * per_group <= MOST_WIDE &&
           group_bytes * 2 * (size_t)(c->n_groups * n_tensors) <= ROOM)
        c->n_groups *= 2;
    c->wide = per_group * c->n_groups;
    shares s = {};
    s.vec = c->wide % 4 == 0 ? 4 : c->wide % 2 == 0 ? 2 : 1;
    if (n->channels % s.vec != 0) s.vec = 1;
    int n_values = c->wide / s.vec * n->pixels;
    s.n_threads = n_values >= 2048 ? 512 : 256;
    size_t rest =
        (size_t)(n_tensors * s.vec * s.n_threads + 2 * c->wide + 3 * c->n_groups) * sizeof(float);
    size_t data = group_bytes * (size_t)c->n_groups;
    size_t most = shared_limit < (size_t)MOST_ROOM ? shared_limit : (size_t)MOST_ROOM;
    s.kept = n_tensors;
    while (s.kept > 0 && (size_t)s.kept * data + rest > most) s.kept--;
    s.bytes = rest + (size_t)s.kept * data;
    return s;
}

bool ct_cuda_evonorm_group_fits(const cuda_norm *n) {
    return n->slope == CUDA_NO_PARAM && n->channels % n->groups == 0 &&
           n->channels / n->groups <= MOST_WIDE;
}

typedef void group_kernel(group_call);

static ct_status launch(const cuda_run *run, const group_call *c, const shares *s,
                        group_kernel *kernel) {
    CT_CUDA_TRY(cudaFuncSetAttribute((const void *)kernel,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, (int)s->bytes));
    dim3 grid((unsigned)(c->norm.channels / c->wide), (unsigned)run->n_max, (unsigned)run->n_jobs);
    kernel<<<grid, s->n_threads, s->bytes, run->stream>>>(*c);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

ct_status ct_cuda_evonorm_group_forward(const cuda_run *run, const cuda_norm *norm,
                                        const float *x_dev, const float *residual_dev,
                                        float *stats_dev, float *y_dev) {
    group_call c = call_of(run, norm, x_dev);
    c.residual = residual_dev, c.stats = stats_dev, c.y = y_dev;
    shares s = share_out(&c, 1, run->shared_limit);
    if (s.vec == 4)
        return launch(run, &c, &s, s.kept > 0 ? forward_kernel<4, true> : forward_kernel<4, false>);
    if (s.vec == 2)
        return launch(run, &c, &s, s.kept > 0 ? forward_kernel<2, true> : forward_kernel<2, false>);
    return launch(run, &c, &s, s.kept > 0 ? forward_kernel<1, true> : forward_kernel<1, false>);
}

ct_status ct_cuda_evonorm_group_backward(const cuda_run *run, const cuda_norm *norm,
                                         const float *x_dev, const float *stats_dev,
                                         const float *dy_dev, size_t from, float *dx_dev) {
    group_call c = call_of(run, norm, x_dev);
    c.stats = (float *)stats_dev, c.dy = dy_dev, c.y = dx_dev;
    c.sums = run->sums_dev + from * (size_t)run->n_jobs * (size_t)run->n_max;
    shares s = share_out(&c, 2, run->shared_limit);
    static group_kernel *const kernels[3][3] = {
        {backward_kernel<1, 0>, backward_kernel<1, 1>, backward_kernel<1, 2>},
        {backward_kernel<2, 0>, backward_kernel<2, 1>, backward_kernel<2, 2>},
        {backward_kernel<4, 0>, backward_kernel<4, 1>, backward_kernel<4, 2>}};
    return launch(run, &c, &s, kernels[s.vec / 2][s.kept]);
}

ct_status ct_cuda_evonorm_join(const cuda_run *run, const cuda_norm *norm,
                               const float *measures_dev, int n_segments, float *stats_dev,
                               float *scale_dev) {
    group_call c = call_of(run, norm, NULL);
    c.stats = stats_dev;
    dim3 grid((unsigned)run->n_max, (unsigned)run->n_jobs);
    join_kernel<<<grid, 256, 0, run->stream>>>(c, measures_dev, n_segments, scale_dev);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

ct_status ct_cuda_evonorm_apply(const cuda_run *run, const cuda_norm *norm, const float *x_dev,
                                const float *scale_dev, const float *residual_dev, float *y_dev) {
    group_call c = call_of(run, norm, x_dev);
    c.residual = residual_dev, c.y = y_dev;
    unsigned n_quads = (unsigned)(norm->channels * norm->pixels / 4);
    dim3 grid((n_quads + 255) / 256, (unsigned)run->n_max, (unsigned)run->n_jobs);
    apply_kernel<<<grid, 256, 0, run->stream>>>(c, scale_dev);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}
