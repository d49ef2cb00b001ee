/* A chain of residual blocks backward, in one launch: EvoNorm's gradient, the convolution's data
 * gradient, again and again from the last layer to the first, with the gradient in registers and,
 * as the product's operand, in shared memory (chain.cuh says how). Weight gradients need each
 * layer's gradient behind the convolution, so that is written; per-sample sums of the norm's own
 * gradients go to sums.cu. The equations are those of backend/ref/norm.c.
 * Grid: x over groups of samples (16 Ki values a block), y = job; one block on a multiprocessor.
 * From memory: 8 bytes a value and layer (the convolution's value read, its gradient written), and
 * 8 a value of the chain. The next layer's values are on their way while this one is multiplied.
 * 2 flops a product. Limits: those of chain.cu. */
/* 16 warps of 4 tiles: 176, 126 and 98 us for 512 samples of 16, 32 and 64 channels on an H200; 8
 * of 8 take 201, 124 and 91. */
#define CHAIN_TILES 4
#include "backend/cuda/chain.cuh"

typedef struct back_call {
    const cuda_job *jobs;
    int n_max;
    const float *packed, *params;
    size_t packed_stride, params_stride;
    cuda_chain chain;
} back_call;

/* What a layer's norm needs, fetched one layer ahead. */
typedef struct norm_values {
    float4 w;                 /* weights of this thread's quad */
    float mean[2], inv[2];    /* of its parts: groups of the quad, or halves */
    float total_w, total_inv; /* of the channel it adds up */
} norm_values;

template <int C> static __device__ __forceinline__ constexpr int part_of(int column, int half) {
    return C == 16 ? column : C == 64 ? half : 0;
}

/* Channel and sample whose sums this thread adds up, if it has any. */
template <int C> static __device__ __forceinline__ bool has_total(int *channel, int *sample) {
    CHAIN_SHAPE(C);
    *channel = (int)threadIdx.x % C;
    *sample = (int)threadIdx.x / C % SAMPLES;
    return (int)threadIdx.x < C * SAMPLES;
}

template <int C>
static __device__ __forceinline__ norm_values fetch_norm(const spot &s, const cuda_link &link,
                                                         const float *params, size_t sample,
                                                         int n_there) {
    CHAIN_SHAPE(C);
    int t = threadIdx.x & 3, channel, other;
    const float *pw = params + link.weight + s.column * 16 + t * 4;
    const float2 *stats = (const float2 *)link.stats + sample * GROUPS;
    norm_values v = {};
    v.w = make_float4(pw[0], pw[1], pw[2], pw[3]);
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
        int own = s.sample + (C == 64 ? p : 0);
        int group = C == 16 ? 2 * t + p : C == 32 ? 4 * s.column + t : 2 * s.column + (t >> 1);
        if (own >= n_there) continue;
        float2 q = stats[own * GROUPS + group];
        v.mean[p] = q.x, v.inv[p] = q.y;
    }
    if (has_total<C>(&channel, &other) && other < n_there) {
        v.total_w = params[link.weight + channel];
        v.total_inv = stats[other * GROUPS + channel / (C / GROUPS)].y;
    }
    return v;
}

/* Starts the copy of one chunk's share of this thread's quads of x to shared memory. */
template <int C>
static __device__ __forceinline__ void fetch_quads(const spot &s, const float *x, int n_there,
                                                   int part, int n_parts, float4 *to) {
    CHAIN_SHAPE(C);
#pragma unroll
    for (int k = 0; k < 2 * TILES; k++) {
        int i = k / 2, h = k % 2;
        if (k * n_parts / (2 * TILES) != part) continue;
        float4 *slot = to + k * THREADS + threadIdx.x;
        if (is_there<C>(s, h, n_there))
            copy_async((float *)slot, x + s.from + i * W * C + h * s.half_floats);
        else
            *slot = make_float4(0, 0, 0, 0);
    }
}

/* This thread's quads of a tensor whose block begins at x; zero where there is no sample. */
template <int C>
static __device__ __forceinline__ void load_quads(const spot &s, const float *x, int n_there,
                                                  float4 out[TILES][2]) {
    CHAIN_SHAPE(C);
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            out[i][h] = is_there<C>(s, h, n_there)
                            ? *(const float4 *)(x + s.from + i * W * C + h * s.half_floats)
                            : make_float4(0, 0, 0, 0);
}

/* Numerator x s(x) and its derivative. */
static __device__ __forceinline__ float gated(float x, float *slope) {
    float u = fmaf(x, 1.0f / 6.0f, 0.5f), s = __saturatef(u);
    *slope = u > 0.0f && u < 1.0f ? fmaf(x, 1.0f / 6.0f, s) : s;
    return x * s;
}

/* Shared memory of the sums: [half][with x, plain][channel][warp], and w times the sums with x. */
template <int C> struct norm_scratch {
    float warps[C == 64 ? 2 : 1][2][C][WARPS / (C / 16)];
    float with_x[C / 16][C];
};

/* This thread's channels' sums over its own pixels, added up over the lanes of the warp. */
template <int C>
static __device__ __forceinline__ void sum_warps(const spot &s, const float4 d[TILES][2],
                                                 const float4 *pre, norm_scratch<C> &scratch) {
    constexpr int HALVES = C == 64 ? 2 : 1;
    float part[HALVES][2][4] = {}, slope;
#pragma unroll
    for (int k = 0; k < 2 * TILES; k++) {
        float4 x = pre[k * THREADS + threadIdx.x], g = d[k / 2][k % 2];
        float *with = part[k % 2 % HALVES][0], *plain = part[k % 2 % HALVES][1];
        with[0] = fmaf(g.x, gated(x.x, &slope), with[0]), plain[0] += g.x;
        with[1] = fmaf(g.y, gated(x.y, &slope), with[1]), plain[1] += g.y;
        with[2] = fmaf(g.z, gated(x.z, &slope), with[2]), plain[2] += g.z;
        with[3] = fmaf(g.w, gated(x.w, &slope), with[3]), plain[3] += g.w;
    }
    int lane = threadIdx.x & 31;
#pragma unroll
    for (int e = 0; e < HALVES * 8; e++) {
        float *sum = &part[e / 8][e / 4 % 2][e % 4];
#pragma unroll
        for (int m = 16; m >= 4; m >>= 1) *sum += __shfl_xor_sync(0xffffffffu, *sum, m);
        if (lane < 4)
            scratch.warps[e / 8][e / 4 % 2][s.column * 16 + lane * 4 + e % 4][s.warp] = *sum;
    }
}

/* Adds up the warps of each sample, in order: the norm's own gradients to `sums`. */
template <int C>
static __device__ __forceinline__ void sum_samples(const norm_values &v, int n_there, float *sums,
                                                   norm_scratch<C> &scratch) {
    CHAIN_SHAPE(C);
    constexpr int SHARED = C == 16 ? WARPS : ROW_WARPS;
    int channel, sample;
    if (!has_total<C>(&channel, &sample)) return;
    int strip = C == 64 ? sample / 2 : sample, half = C == 64 ? sample % 2 : 0;
    const float *with = &scratch.warps[half][0][channel][strip * SHARED];
    const float *plain = &scratch.warps[half][1][channel][strip * SHARED];
    float with_x = 0.0f, sum = 0.0f;
#pragma unroll
    for (int k = 0; k < SHARED; k++) with_x += with[k], sum += plain[k];
    scratch.with_x[sample][channel] = v.total_w * with_x;
    if (sample >= n_there) return;
    sums[sample * 2 * C + channel] = with_x * v.total_inv;
    sums[sample * 2 * C + C + channel] = sum;
}

/* The gradient behind the convolution, to memory and to the tile. */
template <int C>
static __device__ __forceinline__ void
write_gradient(const spot &s, const norm_values &v, const float4 d[TILES][2], const float4 *pre,
               int n_there, const norm_scratch<C> &scratch, float *out, char *tile) {
    CHAIN_SHAPE(C);
    constexpr int WIDE = C / GROUPS;
    int t = threadIdx.x & 3;
    float back[2];
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
        int first = s.column * 16 + (C == 16 ? t * 4 + 2 * p : C == 32 ? t * 4 : t / 2 * 8);
        const float *with_x = &scratch.with_x[s.sample + (C == 64 ? p : 0)][first];
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < WIDE; k++) sum += with_x[k];
        back[p] = v.inv[p] * v.inv[p] * v.inv[p] * sum * (1.0f / (float)(W * W * WIDE));
    }
#pragma unroll
    for (int k = 0; k < 2 * TILES; k++) {
        int i = k / 2, h = k % 2, p0 = part_of<C>(0, h), p1 = part_of<C>(1, h);
        float4 x = pre[k * THREADS + threadIdx.x], g = d[i][h], q;
        float slope;
        gated(x.x, &slope);
        q.x = g.x * (v.w.x * v.inv[p0]) * slope - back[p0] * (x.x - v.mean[p0]);
        gated(x.y, &slope);
        q.y = g.y * (v.w.y * v.inv[p0]) * slope - back[p0] * (x.y - v.mean[p0]);
        gated(x.z, &slope);
        q.z = g.z * (v.w.z * v.inv[p1]) * slope - back[p1] * (x.z - v.mean[p1]);
        gated(x.w, &slope);
        q.w = g.w * (v.w.w * v.inv[p1]) * slope - back[p1] * (x.w - v.mean[p1]);
        if (is_there<C>(s, h, n_there))
            *(float4 *)(out + s.from + i * W * C + h * s.half_floats) = q;
        int pixel = s.pixel + i * (W + 1) + h * s.half_pixels;
        *(float4 *)(tile + byte_of<C>(pixel, s.column * 4 + t)) = near_quad(q);
    }
}

template <int C>
static __device__ __forceinline__ void store_quads(const spot &s, const float4 d[TILES][2],
                                                   int n_there, float *to) {
    CHAIN_SHAPE(C);
#pragma unroll
    for (int k = 0; k < 2 * TILES; k++)
        if (is_there<C>(s, k % 2, n_there))
            *(float4 *)(to + s.from + k / 2 * W * C + k % 2 * s.half_floats) = d[k / 2][k % 2];
}

/* check: long because a chain's state lives in registers from its beginning to its end */
template <int C>
static __global__ void __launch_bounds__(THREADS, 1)
    back_kernel(const __grid_constant__ back_call c) {
    CHAIN_SHAPE(C);
    extern __shared__ __align__(256) char shared[]; /* samples, two chunks, values of a layer */
    __shared__ norm_scratch<C> scratch;
    const cuda_job job = c.jobs[blockIdx.y];
    int n_there = min(SAMPLES, job.n - (int)blockIdx.x * SAMPLES), last = c.chain.n_links - 1;
    if (n_there <= 0) return;
    size_t sample = (size_t)blockIdx.y * c.n_max + blockIdx.x * SAMPLES, first = sample * W * W * C;
    const float *packed = c.packed + job.model * c.packed_stride;
    const float *params = c.params + job.model * c.params_stride;
    float *chunks = (float *)(shared + TILE_BYTES);
    float4 *pre = (float4 *)(chunks + 2 * CHUNK_QUADS * 4);
    uint32_t tile = (uint32_t)__cvta_generic_to_shared(shared);
    spot s = spot_of<C>();
    fetch_quads<C>(s, c.chain.links[last].pre + first, n_there, 0, 1, pre);
    fetch_chunk<C, C, true>(packed + c.chain.links[last].packed, 0, chunks);
    asm volatile("cp.async.commit_group;");
    clear_border<C>(shared);
    norm_values v = fetch_norm<C>(s, c.chain.links[last], params, sample, n_there);
    float4 d[TILES][2], kept[TILES][2] = {};
    load_quads<C>(s, c.chain.d + first, n_there, d);
    int n_done = 0; /* chunks */
    for (int k = last; k >= 0; k--) {
        const cuda_link &link = c.chain.links[k];
        const cuda_link &below = c.chain.links[k > 0 ? k - 1 : 0];
#pragma unroll
        for (int e = 0; e < 2 * TILES; e++)
            if (link.add) kept[e / 2][e % 2] = d[e / 2][e % 2];
        asm volatile("cp.async.wait_group 0;" ::: "memory"); /* this thread's own values */
        sum_warps<C>(s, d, pre, scratch);
        __syncthreads();
        sum_samples<C>(v, n_there, link.sums + sample * 2 * C, scratch);
        __syncthreads();
        write_gradient<C>(s, v, d, pre, n_there, scratch, link.y + first, shared);
        if (k == 0 && c.chain.n_colours > 0) return; /* pictures need no gradient */
        if (k > 0) v = fetch_norm<C>(s, below, params, sample, n_there);
        float sums[TILES][2][4] = {};
        for (int part = 0; part < N_CHUNKS; part++, n_done++) {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
            __syncthreads(); /* chunk and samples are there, the other chunk is not read any more */
            if (part + 1 < N_CHUNKS || k > 0)
                fetch_chunk<C, C, true>(packed + (part + 1 < N_CHUNKS ? link : below).packed,
                                        (part + 1) % N_CHUNKS,
                                        chunks + (n_done + 1) % 2 * CHUNK_QUADS * 4);
            if (k > 0) fetch_quads<C>(s, below.pre + first, n_there, part, N_CHUNKS, pre);
            asm volatile("cp.async.commit_group;");
            multiply_chunk<C, C>(s, tile, part,
                                 (const float4 *)(chunks + n_done % 2 * CHUNK_QUADS * 4), sums);
        }
        bool is_second = k == 1 && c.chain.n_colours > 0;
        bool begins = k > 0 ? below.add || is_second : !link.add; /* a residual block */
#pragma unroll
        for (int e = 0; e < 2 * TILES; e++) {
            d[e / 2][e % 2] = quad_of(sums[e / 2], e % 2);
            if (begins) d[e / 2][e % 2] = add_quads(d[e / 2][e % 2], kept[e / 2][e % 2]);
        }
    }
    store_quads<C>(s, d, n_there, c.chain.dx + first);
    if (c.chain.links[0].add) store_quads<C>(s, kept, n_there, c.chain.dresidual + first);
}

template <int C> static ct_status launch(const cuda_run *run, const back_call *c) {
    CHAIN_SHAPE(C);
    constexpr int BYTES = TILE_BYTES + 2 * 16 * CHUNK_QUADS + BLOCK_FLOATS * 4;
    static_assert(BYTES + sizeof(norm_scratch<C>) <= CUDA_CHAIN_BYTES, "a block's shared memory");
    CT_CUDA_TRY(
        cudaFuncSetAttribute(back_kernel<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES));
    dim3 grid((unsigned)((run->n_max + SAMPLES - 1) / SAMPLES), (unsigned)run->n_jobs);
    back_kernel<C><<<grid, THREADS, BYTES, run->stream>>>(*c);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

ct_status ct_cuda_chain_backward(const cuda_run *run, int channels, const cuda_chain *chain) {
    back_call c = {};
    c.jobs = run->jobs_dev, c.n_max = run->n_max, c.chain = *chain;
    c.packed = run->packed_dev, c.packed_stride = run->packed_stride;
    c.params = run->params_dev, c.params_stride = run->params_stride;
    if (channels == 16) return launch<16>(run, &c);
    if (channels == 32) return launch<32>(run, &c);
    return launch<64>(run, &c);
}
