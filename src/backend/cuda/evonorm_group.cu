/* EvoNorm (hard sigmoid) with a sample shared out to several blocks, each with the channels of one
 * or some groups; the equations are those of backend/ref/norm.c.
 * Grid: x = groups of a sample, y = sample, z = job. A thread keeps to its 1, 2 or 4 channels and
 * goes down the pixels; what a block reads stays in shared memory between the sums and their use
 * where it fits. 8 bytes a value forward, 12 backward (half of that in bf16); without room in
 * shared memory a value is read twice, the second time from L2 if it is still there. Slices of
 * pixels are cut so that lines are shared by blocks that run at the same time. */
#include "backend/cuda/evonorm.cuh"

enum { MAX_THREADS = 512 };

/* A thread's place: channels VEC * lane .. of the block's, pixels row, row + n_rows .. */
typedef struct place {
    int n_lanes, n_rows, lane, row, channel;
    size_t sample, from; /* of the sample's values: this thread's first */
} place;

template <int VEC> static __device__ __forceinline__ place place_of(const norm_call &c) {
    place p;
    p.n_lanes = c.wide / VEC, p.n_rows = (int)blockDim.x / p.n_lanes;
    p.lane = (int)threadIdx.x % p.n_lanes, p.row = (int)threadIdx.x / p.n_lanes;
    p.channel = (int)blockIdx.x * c.wide + p.lane * VEC;
    p.sample = (size_t)blockIdx.z * c.n_max + blockIdx.y;
    p.from = p.sample * c.norm.channels * c.norm.pixels + p.channel;
    return p;
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
template <class TX, int VEC, bool KEPT>
static __device__ void measure(const norm_call &c, const place &p, float *kept, float *scratch,
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
                values<VEC> x;
                if (KEPT && pass > 0)
                    load(own, x);
                else
                    load((const TX *)c.x + p.from + (size_t)k * c.norm.channels, x);
                if (KEPT && pass == 0) store(own, x);
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

template <class TX, class TY, int VEC, bool KEPT>
static __global__ void __launch_bounds__(MAX_THREADS, 1) forward_kernel(norm_call c) {
    extern __shared__ __align__(16) float shared[]; /* kept, scratch, totals, stats */
    const cuda_job job = c.jobs[blockIdx.z];
    if ((int)blockIdx.y >= job.n) return;
    place p = place_of<VEC>(c);
    float *kept = shared, *scratch = kept + (KEPT ? c.wide * c.norm.pixels : 0);
    float *totals = scratch + VEC * blockDim.x, *stats = totals + c.wide;
    measure<TX, VEC, KEPT>(c, p, kept, scratch, totals, stats);
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
        values<VEC> x, r = {};
        if (KEPT)
            load(kept + k * c.wide + p.lane * VEC, x);
        else
            load((const TX *)c.x + at, x);
        if (c.residual != NULL) load((const TY *)c.residual + at, r);
#pragma unroll
        for (int i = 0; i < VEC; i++) x.at[i] = fmaf(gated(x.at[i], &slope), w[i], b[i]) + r.at[i];
        store((TY *)c.y + at, x);
    }
}

/* Per-channel sums over the pixels: dy * numerator to totals[0], dy to totals[1]. KEPT: of x and
 * dy, so many stay in shared memory. */
template <class TX, class TY, int VEC, int KEPT>
static __device__ void channel_sums(const norm_call &c, const place &p, float *kept_x,
                                    float *kept_dy, float *scratch, float *totals) {
    float part[2][VEC] = {}, slope;
    if (p.row < p.n_rows)
#pragma unroll 4
        for (int k = p.row; k < c.norm.pixels; k += p.n_rows) {
            size_t at = p.from + (size_t)k * c.norm.channels;
            values<VEC> x, dy;
            load((const TX *)c.x + at, x);
            load((const TY *)c.dy + at, dy);
            if (KEPT > 0) store(kept_x + k * c.wide + p.lane * VEC, x);
            if (KEPT > 1) store(kept_dy + k * c.wide + p.lane * VEC, dy);
#pragma unroll
            for (int i = 0; i < VEC; i++) {
                part[0][i] = fmaf(dy.at[i], gated(x.at[i], &slope), part[0][i]);
                part[1][i] += dy.at[i];
            }
        }
    add_rows<VEC, 2>(p, part, scratch, totals);
}

template <class TX, class TY, int VEC, int KEPT>
static __device__ void write_dx(const norm_call &c, const place &p, const float *row,
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
        values<VEC> x, dy;
        if (KEPT > 0)
            load(kept_x + own, x);
        else
            load((const TX *)c.x + at, x);
        if (KEPT > 1)
            load(kept_dy + own, dy);
        else
            load((const TY *)c.dy + at, dy);
#pragma unroll
        for (int i = 0; i < VEC; i++) {
            gated(x.at[i], &slope);
            dy.at[i] = dy.at[i] * scaled[i] * slope - back[i] * (x.at[i] - mean[i]);
        }
        store((TX *)c.y + at, dy);
    }
}

template <class TX, class TY, int VEC, int KEPT>
static __global__ void __launch_bounds__(MAX_THREADS, 1) backward_kernel(norm_call c) {
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
    channel_sums<TX, TY, VEC, KEPT>(c, p, shared, kept_dy, scratch, totals);
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
    if (p.row < p.n_rows) write_dx<TX, TY, VEC, KEPT>(c, p, row, stats, with_x, shared, kept_dy);
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
static shares share_out(norm_call *c, int n_tensors, size_t shared_limit) {
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

typedef void group_kernel(norm_call);

static ct_status launch(const cuda_run *run, const norm_call *c, const shares *s,
                        group_kernel *kernel) {
    dim3 grid((unsigned)(c->norm.channels / c->wide), (unsigned)run->n_max, (unsigned)run->n_jobs);
    return launch_kernel(run, kernel, grid, s->n_threads, s->bytes, *c);
}

template <class TX, class TY>
static ct_status launch_forward(const cuda_run *run, const cuda_norm_call *call) {
    static group_kernel *const kernels[3][2] = {
        {forward_kernel<TX, TY, 1, false>, forward_kernel<TX, TY, 1, true>},
        {forward_kernel<TX, TY, 2, false>, forward_kernel<TX, TY, 2, true>},
        {forward_kernel<TX, TY, 4, false>, forward_kernel<TX, TY, 4, true>}};
    norm_call c = forward_call(run, call);
    shares s = share_out(&c, 1, run->shared_limit);
    return launch(run, &c, &s, kernels[s.vec / 2][s.kept]);
}

template <class TX, class TY>
static ct_status launch_backward(const cuda_run *run, const cuda_norm_call *call) {
    static group_kernel *const kernels[3][3] = {
        {backward_kernel<TX, TY, 1, 0>, backward_kernel<TX, TY, 1, 1>,
         backward_kernel<TX, TY, 1, 2>},
        {backward_kernel<TX, TY, 2, 0>, backward_kernel<TX, TY, 2, 1>,
         backward_kernel<TX, TY, 2, 2>},
        {backward_kernel<TX, TY, 4, 0>, backward_kernel<TX, TY, 4, 1>,
         backward_kernel<TX, TY, 4, 2>}};
    norm_call c = back_call(run, call);
    shares s = share_out(&c, 2, run->shared_limit);
    return launch(run, &c, &s, kernels[s.vec / 2][s.kept]);
}

static ct_status forward(const cuda_run *run, const cuda_norm_call *call) {
    return BY_ELEMENTS(call->elements, launch_forward, run, call);
}

static ct_status backward(const cuda_run *run, const cuda_norm_call *call) {
    return BY_ELEMENTS(call->elements, launch_backward, run, call);
}

/* Norms fused behind a convolution are small: norm.cu has them. */
static bool fits(const cuda_norm_call *call, bool) {
    return call->kind == CUDA_EVONORM && !call->is_inner && ct_cuda_evonorm_group_fits(&call->norm);
}

const cuda_norm_kernels ct_cuda_norm_shared = {fits, forward, backward};
