/* A chain of residual blocks in one launch: convolution 3x3 + EvoNorm (+ addition), again and
 * again, with the samples in shared memory and what is added in registers (chain.cuh says how).
 * Grid: x over groups of samples (16 Ki values a block), y = job; two blocks on a multiprocessor,
 * so that one multiplies while the other is at its norm. From memory: 4 bytes a value of the first
 * input and 4 of the last output; training also writes 8 bytes a value and layer (before and after
 * the norm). What is added is read from there, or from the last output's place, out of the caches.
 * Weights (4 C C 9 bytes a layer) come from the caches once a block. 2 flops a product. Limits:
 * tf32, C = 16, 32 or 64 channels of 32, 16 or 8 squared pixels, CUDA_MAX_CHAIN layers. */
/* 8 warps of 8 tiles: 234, 166 and 140 us for 1024 samples of 16, 32 and 64 channels on an H200; 16
 * of 4, one block at a time, take 310, 178 and 158. 64 channels want registers more than company.
 */
#define CHAIN_TILES  8
#define BLOCKS_OF(C) ((C) == 64 ? 1 : 2)
#include "backend/cuda/chain.cuh"

enum { IMAGE_DEPTH = 8 };
enum { AHEAD = 4 }; /* quads on their way at a time */

typedef struct forward_call {
    const cuda_job *jobs;
    int n_max;
    const float *packed, *params;
    size_t packed_stride, params_stride;
    cuda_chain chain;
} forward_call;

/* The block's pictures, rounded to tf32. */
template <int C>
static __device__ __forceinline__ void load_tile(const float *x, int n_there, char *tile) {
    CHAIN_SHAPE(C);
    constexpr int QUADS = C / 4, EACH = BLOCK_FLOATS / 4 / THREADS;
    float4 v[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        int i = (int)threadIdx.x + k * THREADS;
        bool there = i / (QUADS * W * W) < n_there;
        v[k] = there ? ((const float4 *)x)[i] : make_float4(0, 0, 0, 0);
    }
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        int i = (int)threadIdx.x + k * THREADS, p = i / QUADS;
        int pixel = p / W * (W + 1) + p % W + 1; /* samples follow each other without a gap */
        *(float4 *)(tile + byte_of<C>(pixel, i % QUADS)) = near_quad(v[k]);
    }
}

/* The block's picture of a few colours, as the first 8 of 16 channels. */
static __device__ __forceinline__ void load_image(const float *x, int n_colours, char *tile) {
    CHAIN_SHAPE(16);
    for (int p = (int)threadIdx.x; p < W * W; p += THREADS) {
        float v[IMAGE_DEPTH];
#pragma unroll
        for (int k = 0; k < IMAGE_DEPTH; k++)
            v[k] = k < n_colours ? near_tf32(x[p * n_colours + k]) : 0.0f;
        int pixel = p / W * (W + 1) + p % W + 1;
        *(float4 *)(tile + byte_of<16>(pixel, 0)) = make_float4(v[0], v[1], v[2], v[3]);
        *(float4 *)(tile + byte_of<16>(pixel, 1)) = make_float4(v[4], v[5], v[6], v[7]);
    }
}

/* Groups of EvoNorm are 2, 4 or 8 channels wide: two in a thread's quad, one, or half of one; with
 * 64 channels the halves of a tile are different samples. A thread's parts are summed apart. */
template <int C> static __device__ __forceinline__ constexpr int part_of(int column, int half) {
    return C == 16 ? column : C == 64 ? half : 0;
}

/* Adds up parts over the lanes, then over the warps that share the sample, in order. */
template <int C>
static __device__ __forceinline__ void sum_parts(const spot &s, float part[2],
                                                 float scratch[8][WARPS]) {
    CHAIN_SHAPE(C);
    constexpr int SHARED = C == 16 ? WARPS : ROW_WARPS;
    int lane = threadIdx.x & 31;
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
        for (int k = 16; k >= 4; k >>= 1) part[p] += __shfl_xor_sync(0xffffffffu, part[p], k);
        if (C == 64) part[p] += __shfl_xor_sync(0xffffffffu, part[p], 1);
        if (lane < 4) scratch[p * 4 + lane][s.column * (WARPS / COLS) + s.warp] = part[p];
    }
    __syncthreads();
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
        const float *from =
            scratch[p * 4 + (lane & 3)] + s.column * (WARPS / COLS) + s.warp / SHARED * SHARED;
        part[p] = 0.0f;
#pragma unroll
        for (int k = 0; k < SHARED; k++) part[p] += from[k];
    }
}

/* Mean and 1/sigma of this thread's groups. */
template <int C>
static __device__ __forceinline__ void measure(const spot &s, const float sums[TILES][2][4],
                                               float scratch[2][8][WARPS], float mean[2],
                                               float inv[2]) {
    CHAIN_SHAPE(C);
    constexpr float count = (float)(W * W * (C / GROUPS));
    mean[0] = mean[1] = inv[0] = inv[1] = 0.0f;
#pragma unroll
    for (int e = 0; e < TILES * 8; e++)
        mean[part_of<C>(e / 4 % 2, e % 4 / 2)] += sums[e / 8][e / 4 % 2][e % 4];
    sum_parts<C>(s, mean, scratch[0]);
#pragma unroll
    for (int p = 0; p < PARTS; p++) mean[p] *= 1.0f / count;
#pragma unroll
    for (int e = 0; e < TILES * 8; e++) {
        int p = part_of<C>(e / 4 % 2, e % 4 / 2);
        float d = sums[e / 8][e / 4 % 2][e % 4] - mean[p];
        inv[p] = fmaf(d, d, inv[p]);
    }
    sum_parts<C>(s, inv, scratch[1]);
#pragma unroll
    for (int p = 0; p < PARTS; p++) inv[p] = 1.0f / sqrtf(inv[p] / count + CUDA_EPSILON);
}

static __device__ __forceinline__ float gate(float x) {
    return x * __saturatef(fmaf(x, 1.0f / 6.0f, 0.5f));
}

/* Mean and 1/sigma to memory, by the first lanes of the first warp that has the sample. */
template <int C>
static __device__ __forceinline__ void write_stats(const spot &s, const float mean[2],
                                                   const float inv[2], int n_there, float *stats) {
    CHAIN_SHAPE(C);
    int lane = threadIdx.x & 31, t = lane & 3;
    bool is_first = C == 16 ? s.warp == 0 : s.row == 0;
    if (!is_first || lane >= 4) return;
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
        int sample = s.sample + (C == 64 ? p : 0);
        int group = C == 16 ? 2 * t + p : C == 32 ? 4 * s.column + t : 2 * s.column + (t >> 1);
        if (sample < n_there)
            ((float2 *)stats)[sample * GROUPS + group] = make_float2(mean[p], inv[p]);
    }
}

/* EvoNorm and what follows it: the values before and after to memory, and after also to the tile,
 * for the next layer. What is added (this thread's own quads of `kept`) comes from memory, where
 * the thread itself has put it. */
template <int C, bool TRAIN>
static __device__ __forceinline__ void finish(const spot &s, const cuda_link &link, size_t first,
                                              int n_there, const float sums[TILES][2][4],
                                              const float inv[2], const float *params,
                                              const float *kept, char *tile) {
    CHAIN_SHAPE(C);
    int quad = s.column * 4 + (int)(threadIdx.x & 3);
    const float *pw = params + link.weight + quad * 4, *pb = params + link.bias + quad * 4;
    float w[4] = {pw[0], pw[1], pw[2], pw[3]}, b[4] = {pb[0], pb[1], pb[2], pb[3]};
#pragma unroll
    for (int k = 0; k < 2 * TILES; k += AHEAD) {
        int h = k / TILES, i0 = k % TILES;
        float left = inv[part_of<C>(0, h)], right = inv[part_of<C>(1, h)];
        bool there = is_there<C>(s, h, n_there);
        size_t at = first + (size_t)(s.from + h * s.half_floats + i0 * W * C);
        float4 r[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            r[i] = link.add && there ? *(const float4 *)(kept + at + i * W * C)
                                     : make_float4(0, 0, 0, 0);
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            float4 x = quad_of(sums[i0 + i], h), y;
            y.x = fmaf(gate(x.x), w[0] * left, b[0]) + r[i].x;
            y.y = fmaf(gate(x.y), w[1] * left, b[1]) + r[i].y;
            y.z = fmaf(gate(x.z), w[2] * right, b[2]) + r[i].z;
            y.w = fmaf(gate(x.w), w[3] * right, b[3]) + r[i].w;
            if (TRAIN && there) *(float4 *)(link.pre + at + i * W * C) = x;
            if (there && link.y != NULL) *(float4 *)(link.y + at + i * W * C) = y;
            int pixel = s.pixel + (i0 + i) * (W + 1) + h * s.half_pixels;
            *(float4 *)(tile + byte_of<C>(pixel, quad)) = near_quad(y);
        }
    }
}

template <int C, bool TRAIN>
static __global__ void __launch_bounds__(THREADS, BLOCKS_OF(C))
    forward_kernel(const __grid_constant__ forward_call c) {
    CHAIN_SHAPE(C);
    extern __shared__ __align__(256) char shared[]; /* samples, two chunks of weights */
    __shared__ float scratch[2][8][WARPS];
    const cuda_job job = c.jobs[blockIdx.y];
    int n_there = min(SAMPLES, job.n - (int)blockIdx.x * SAMPLES), n_layers = c.chain.n_links;
    if (n_there <= 0) return;
    size_t sample = (size_t)blockIdx.y * c.n_max + blockIdx.x * SAMPLES, first = sample * W * W * C;
    const float *packed = c.packed + job.model * c.packed_stride;
    const float *params = c.params + job.model * c.params_stride;
    float *chunks = (float *)(shared + TILE_BYTES);
    uint32_t tile = (uint32_t)__cvta_generic_to_shared(shared);
    bool is_image = C == 16 && c.chain.n_colours > 0;
    if (is_image)
        fetch_chunk<16, IMAGE_DEPTH, false>(packed + c.chain.links[0].packed, 0, chunks);
    else
        fetch_chunk<C, C, false>(packed + c.chain.links[0].packed, 0, chunks);
    asm volatile("cp.async.commit_group;");
    spot s = spot_of<C>();
    clear_border<C>(shared);
    if (is_image)
        load_image(c.chain.x + sample * W * W * c.chain.n_colours, c.chain.n_colours, shared);
    else
        load_tile<C>(c.chain.x + first, n_there, shared);
    const float *kept = c.chain.residual;
    int n_done = 0; /* chunks */
    for (int k = 0; k < n_layers; k++) {
        const cuda_link &link = c.chain.links[k];
        float sums[TILES][2][4] = {}, mean[2], inv[2];
        for (int part = 0; part < N_CHUNKS; part++, n_done++) {
            asm volatile("cp.async.wait_group 0;");
            __syncthreads(); /* chunk and samples are there, the other chunk is not read any more */
            int next = part + 1 < N_CHUNKS ? k : k + 1;
            if (next < n_layers)
                fetch_chunk<C, C, false>(packed + c.chain.links[next].packed, (part + 1) % N_CHUNKS,
                                         chunks + (n_done + 1) % 2 * CHUNK_QUADS * 4);
            asm volatile("cp.async.commit_group;");
            const float4 *weights = (const float4 *)(chunks + n_done % 2 * CHUNK_QUADS * 4);
            if (is_image && k == 0)
                multiply_chunk<16, IMAGE_DEPTH>(s, tile, part, weights, sums);
            else
                multiply_chunk<C, C>(s, tile, part, weights, sums);
        }
        measure<C>(s, sums, scratch, mean, inv);
        if (TRAIN) write_stats<C>(s, mean, inv, n_there, link.stats + sample * 2 * GROUPS);
        finish<C, TRAIN>(s, link, first, n_there, sums, inv, params, kept, shared);
        if (link.add || (is_image && k == 0)) kept = link.y;
    }
}

bool ct_cuda_chain_fits(const cuda_conv *v, size_t shared_limit) {
    bool is_known = v->co == 16 || v->co == 32 || v->co == 64;
    return is_known && v->groups == 1 && v->ci == v->co && v->kh == 3 && v->kw == 3 &&
           v->stride == 1 && v->pad == 1 && v->hi == 512 / v->co && v->wi == v->hi &&
           shared_limit >= CUDA_CHAIN_BYTES;
}

bool ct_cuda_chain_begins(const cuda_conv *v, size_t shared_limit) {
    cuda_conv same = *v;
    same.ci = v->co;
    return v->co == 16 && v->ci <= IMAGE_DEPTH && ct_cuda_chain_fits(&same, shared_limit);
}

template <int C, bool TRAIN> static ct_status launch(const cuda_run *run, const forward_call *c) {
    CHAIN_SHAPE(C);
    constexpr int BYTES = TILE_BYTES + 2 * 16 * CHUNK_QUADS;
    static_assert(BYTES + 2048 <= CUDA_CHAIN_BYTES, "a block's shared memory");
    CT_CUDA_TRY(cudaFuncSetAttribute(forward_kernel<C, TRAIN>,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES));
    dim3 grid((unsigned)((run->n_max + SAMPLES - 1) / SAMPLES), (unsigned)run->n_jobs);
    forward_kernel<C, TRAIN><<<grid, THREADS, BYTES, run->stream>>>(*c);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

ct_status ct_cuda_chain_forward(const cuda_run *run, int channels, const cuda_chain *chain,
                                bool train) {
    forward_call c = {};
    c.jobs = run->jobs_dev, c.n_max = run->n_max, c.chain = *chain;
    c.packed = run->packed_dev, c.packed_stride = run->packed_stride;
    c.params = run->params_dev, c.params_stride = run->params_stride;
    if (channels == 16) return train ? launch<16, true>(run, &c) : launch<16, false>(run, &c);
    if (channels == 32) return train ? launch<32, true>(run, &c) : launch<32, false>(run, &c);
    return train ? launch<64, true>(run, &c) : launch<64, false>(run, &c);
}
