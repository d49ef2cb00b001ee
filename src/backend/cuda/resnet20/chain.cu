/* A chain of residual blocks in one launch: convolution 3x3 + EvoNorm (+ addition), again and
 * again, with the samples in shared memory (chain.cuh says how).
 * Grid: x over groups of samples (16 Ki values a block), y = job; mostly two blocks on a
 * multiprocessor. From memory, in elements
 * of 4 bytes or, in bf16, of 2: one a value of the first input (and of the first residual);
 * training also writes two a value and layer (before and after the norm); 4 or 2 bytes a value of
 * the last output. In bf16 a block has two places for its samples: a residual block's input stays
 * in the first, its second convolution reads the second and adds to the first. Floats have one
 * place; what is added is read from memory, where the thread itself has put it. Weights (C C 9
 * elements a layer) come from the caches once a block. 2 flops a product. Limits: C = 16, 32 or 64
 * channels of 32, 16 or 8 squared pixels, CUDA_MAX_LAYERS layers. */
#include "backend/cuda/resnet20/chain.cuh"

enum { AHEAD = 4 }; /* quads on their way at a time */

typedef unit_call<cuda_chain> forward_call;

/* Floats, 8 warps of 8 tiles: 226, 147 and 134 us for 1024 samples of 16, 32 and 64 channels on an
 * H200; 16 of 4, one block at a time, took a quarter longer. 64 channels want registers more than
 * company. */
template <typename ELEMENT, int C, bool TRAIN> struct forward_shape {
    typedef chain_shape<float, C, 8, C == 16 ? 1 : C == 32 ? 3 : 6> S;
    static constexpr int BLOCKS = C == 64 ? 1 : 2, PLACES = 1;
    static constexpr int FIRST_DEPTH = C == 16 ? 8 : C; /* channels that pictures are taken for */
};
template <int C, bool TRAIN> struct forward_shape<bf16, C, TRAIN> {
    /* 141, 81 and 72 us for 1024 samples; training, 93, 58 and 57 for 512. 16 agents have 128
     * blocks of 64 channels in training: one a multiprocessor, which 16 warps fill better (8: 60
     * us). */
    static constexpr bool IS_ALONE = C == 64 && TRAIN;
    static constexpr int N_CHUNKS = C < 64 ? 1 : IS_ALONE ? 3 : 6;
    typedef chain_shape<bf16, C, IS_ALONE ? 4 : 8, N_CHUNKS> S;
    static constexpr int BLOCKS = IS_ALONE ? 1 : 2, PLACES = 2, FIRST_DEPTH = C;
};

/* The block's samples, rounded to tf32. */
template <typename S>
static __device__ __forceinline__ void load_tile(const float *x, int n_there, char *tile) {
    constexpr int QUADS = S::C / 4, EACH = BLOCK_VALUES / 4 / S::THREADS, W = S::W;
    float4 v[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        int i = (int)threadIdx.x + k * S::THREADS;
        bool there = i / (QUADS * W * W) < n_there;
        v[k] = there ? ((const float4 *)x)[i] : make_float4(0, 0, 0, 0);
    }
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        int i = (int)threadIdx.x + k * S::THREADS, p = i / QUADS; /* samples lie row after row */
        put_quad((float *)(tile + p / W * S::P::PITCH + S::P::quad_at(p % W + 1, i % QUADS)), v[k]);
    }
}

/* Starts the copy of the block's samples. */
template <typename S>
static __device__ __forceinline__ void load_tile(const bf16 *x, int n_there, char *tile) {
    constexpr int UNITS = S::P::UNITS, W = S::W;
#pragma unroll
    for (int k = 0; k < BLOCK_VALUES / 8 / S::THREADS; k++) {
        int i = (int)threadIdx.x + k * S::THREADS, p = i / UNITS;
        bool there = p / (W * W) < n_there;
        copy_quad(tile + p / W * S::P::PITCH + S::P::unit_at(p % W + 1, i % UNITS),
                  x + (there ? 8 * i : 0), there);
    }
}

/* The block's picture of a few colours, as the first DEPTH of 16 channels. */
template <typename S, int DEPTH>
static __device__ __forceinline__ void load_image(const float *x, int n_colours, char *tile) {
    constexpr int W = S::W;
    for (int p = (int)threadIdx.x; p < W * W; p += S::THREADS) {
        float v[8];
#pragma unroll
        for (int k = 0; k < 8; k++) v[k] = k < n_colours ? x[p * n_colours + k] : 0.0f;
        char *row = tile + p / W * S::P::PITCH;
#pragma unroll
        for (int q = 0; q < DEPTH / 4; q++) {
            float4 quad = make_float4(0, 0, 0, 0);
            if (q < 2) quad = make_float4(v[4 * q], v[4 * q + 1], v[4 * q + 2], v[4 * q + 3]);
            put_quad((typename S::E *)(row + S::P::quad_at(p % W + 1, q)), quad);
        }
    }
}

/* Mean and summed squares about it of two sets of n, joined. */
static __device__ __forceinline__ void join_lanes(float *mean, float *squares, float n, int mask) {
    float other = __shfl_xor_sync(0xffffffffu, *mean, mask), d = other - *mean;
    float more = __shfl_xor_sync(0xffffffffu, *squares, mask);
    *squares = fmaf(d * d, 0.5f * n, *squares + more);
    *mean = 0.5f * (*mean + other);
}

/* Of this thread's own values of a part. */
template <typename S>
static __device__ __forceinline__ void measure_own(const float sums[S::TILES][2][4], float mean[2],
                                                   float squares[2]) {
    constexpr int OWN = S::TILES * 8 / S::PARTS;
    float half[2][2] = {};
#pragma unroll
    for (int e = 0; e < S::TILES * 8; e++)
        half[part_of<S::C>(e / 4 % 2, e % 4 / 2)][e & 1] += sums[e / 8][e / 4 % 2][e % 4];
#pragma unroll
    for (int p = 0; p < S::PARTS; p++) mean[p] = (half[p][0] + half[p][1]) * (1.0f / OWN);
#pragma unroll
    for (int e = 0; e < 4; e++) half[e / 2][e % 2] = 0.0f;
#pragma unroll
    for (int e = 0; e < S::TILES * 8; e++) {
        int p = part_of<S::C>(e / 4 % 2, e % 4 / 2);
        float d = sums[e / 8][e / 4 % 2][e % 4] - mean[p];
        half[p][e & 1] = fmaf(d, d, half[p][e & 1]);
    }
#pragma unroll
    for (int p = 0; p < S::PARTS; p++) squares[p] = half[p][0] + half[p][1];
}

/* Sum and sum of squares of this thread's own values of a part. */
template <typename S>
static __device__ __forceinline__ void sum_own(const float sums[S::TILES][2][4], float sum[2],
                                               float squares[2]) {
    sum[0] = sum[1] = squares[0] = squares[1] = 0.0f;
#pragma unroll
    for (int e = 0; e < S::TILES * 8; e++) {
        int p = part_of<S::C>(e / 4 % 2, e % 4 / 2);
        float x = sums[e / 8][e / 4 % 2][e % 4];
        sum[p] += x;
        squares[p] = fmaf(x, x, squares[p]);
    }
}

/* Mean and 1/sigma of this thread's groups: over its own values, over the lanes, then over the
 * warps that share the sample, in order. In bf16 as sums and sums of squares (what cancels there,
 * pictures of 8 bits could not have shown), with floats as means and squares about them. */
template <typename S>
static __device__ __forceinline__ void measure(const spot &s, const float sums[S::TILES][2][4],
                                               float2 scratch[8][S::WARPS], float mean[2],
                                               float inv[2]) {
    constexpr int OWN = S::TILES * 8 / S::PARTS, LANES = S::C == 64 ? 16 : 8;
    constexpr int COLUMN = S::WARPS / S::COLS, COUNT = OWN * LANES * S::SHARED;
    constexpr bool IS_PLAIN = sizeof(typename S::E) == 2;
    int lane = threadIdx.x & 31;
    if (IS_PLAIN)
        sum_own<S>(sums, mean, inv);
    else
        measure_own<S>(sums, mean, inv);
#pragma unroll
    for (int p = 0; p < S::PARTS; p++) {
#pragma unroll
        for (int k = 0; k < (S::C == 64 ? 4 : 3); k++) {
            int mask = k == 3 ? 1 : 16 >> k;
            if (IS_PLAIN) {
                mean[p] += __shfl_xor_sync(0xffffffffu, mean[p], mask);
                inv[p] += __shfl_xor_sync(0xffffffffu, inv[p], mask);
            } else {
                join_lanes(&mean[p], &inv[p], (float)(OWN << k), mask);
            }
        }
        if (lane < 4)
            scratch[p * 4 + lane][s.column * COLUMN + s.warp] = make_float2(mean[p], inv[p]);
    }
    copies_wait_but<0>(); /* the norm's parameters */
    __syncthreads();
#pragma unroll
    for (int p = 0; p < S::PARTS; p++) {
        const float2 *from =
            scratch[p * 4 + (lane & 3)] + s.column * COLUMN + s.warp / S::SHARED * S::SHARED;
        float sum = 0.0f, squares = 0.0f, between = 0.0f;
#pragma unroll
        for (int k = 0; k < S::SHARED; k++) sum += from[k].x, squares += from[k].y;
        mean[p] = sum * (1.0f / (IS_PLAIN ? COUNT : S::SHARED));
        if (IS_PLAIN) {
            squares = fmaxf(fmaf(-sum, mean[p], squares), 0.0f);
        } else {
#pragma unroll
            for (int k = 0; k < S::SHARED; k++) {
                float d = from[k].x - mean[p];
                between = fmaf(d, d, between);
            }
            squares = fmaf(between, (float)(OWN * LANES), squares);
        }
        inv[p] = rsqrtf(fmaf(squares, 1.0f / COUNT, CUDA_EPSILON));
    }
}

/* Mean and 1/sigma to memory, by the first lanes of the first warp that has the sample. */
template <typename S>
static __device__ __forceinline__ void write_stats(const spot &s, const float mean[2],
                                                   const float inv[2], int n_there, float *stats) {
    constexpr int C = S::C;
    int lane = threadIdx.x & 31, t = lane & 3;
    bool is_first = C == 16 ? s.warp == 0 : s.row == 0;
    if (!is_first || lane >= 4) return;
#pragma unroll
    for (int p = 0; p < S::PARTS; p++) {
        int sample = s.sample + (C == 64 ? p : 0);
        int group = C == 16 ? 2 * t + p : C == 32 ? 4 * s.column + t : 2 * s.column + (t >> 1);
        if (sample < n_there)
            ((float2 *)stats)[sample * GROUPS + group] = make_float2(mean[p], inv[p]);
    }
}

/* Where a layer's values go and come from. */
typedef struct layer_io {
    char *to; /* the tile that the next layer reads */
    bool adds;
    const void *add; /* floats: what is added, from the block's first value on; bf16 adds what is at
                        `to` */
    void *pre, *y;   /* memory, from the block's first value on; y may be NULL */
} layer_io;

/* Adds to AHEAD of this thread's quads of one half. */
template <typename S>
static __device__ __forceinline__ void add_kept(const layer_io &io, int at, uint32_t own,
                                                bool there, float4 y[AHEAD]) {
    float4 r[AHEAD];
#pragma unroll
    for (int i = 0; i < AHEAD; i++) {
        if (sizeof(typename S::E) == 2)
            r[i] = load_four((const bf16 *)(io.to + own + i * S::P::PITCH));
        else
            r[i] = there ? load_four((const float *)io.add + at + i * S::W * S::C)
                         : make_float4(0, 0, 0, 0);
    }
#pragma unroll
    for (int i = 0; i < AHEAD; i++) y[i] = add_quads(y[i], r[i]);
}

/* EvoNorm and what follows it: the values before and after to memory, and after also to the tile,
 * for the next layer. norm: the weights, then the biases. */
template <typename S, bool TRAIN>
static __device__ __forceinline__ void finish(const spot &s, const layer_io &io, int n_there,
                                              const float sums[S::TILES][2][4], const float inv[2],
                                              const float *norm) {
    typedef typename S::E E;
    constexpr int TILES = S::TILES, ROW = S::W * S::C;
    int channel = s.column * 16 + (int)(threadIdx.x & 3) * 4;
    float4 w = load_four(norm + channel), b = load_four(norm + S::C + channel);
#pragma unroll
    for (int k = 0; k < 2 * TILES; k += AHEAD) {
        int h = k / TILES, i0 = k % TILES, at = s.from + h * half_values<S>() + i0 * ROW;
        uint32_t own = s.own + h * half_bytes<S>() + i0 * S::P::PITCH;
        float left = inv[part_of<S::C>(0, h)], right = inv[part_of<S::C>(1, h)];
        bool there = is_there<S>(s, h, n_there);
        float4 y[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            float4 x = quad_of(sums[i0 + i], h);
            y[i].x = fmaf(gate_numerator(x.x), w.x * left, b.x);
            y[i].y = fmaf(gate_numerator(x.y), w.y * left, b.y);
            y[i].z = fmaf(gate_numerator(x.z), w.z * right, b.z);
            y[i].w = fmaf(gate_numerator(x.w), w.w * right, b.w);
            if (TRAIN && there) store_four((E *)io.pre + at + i * ROW, x);
        }
        if (io.adds) add_kept<S>(io, at, own, there, y);
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            if (there && io.y != NULL) store_four((E *)io.y + at + i * ROW, y[i]);
            put_quad((E *)(io.to + own + i * S::P::PITCH), y[i]);
        }
    }
}

/* Whether layer k writes the first place: a residual block's input or output. It reads the other.
 */
template <typename F>
static __device__ __forceinline__ bool writes_first(const cuda_chain &chain, int k) {
    return F::PLACES == 1 || chain.links[k].add || (k == 0 && chain.n_colours > 0);
}

template <typename F>
static __device__ __forceinline__ layer_io plan_layer(const cuda_chain &chain, int k, size_t first,
                                                      const void *kept, char *shared) {
    typedef typename F::S::E E;
    const cuda_link &link = chain.links[k];
    layer_io io = {};
    io.to = shared + (writes_first<F>(chain, k) ? 0 : F::S::TILE_BYTES);
    io.adds = link.add;
    io.add = (const E *)kept + first;
    io.pre = (E *)link.pre + first;
    bool is_later = F::PLACES > 1 && k == chain.n_links - 1; /* by store_last */
    if (link.y != NULL && !is_later) io.y = (E *)link.y + first;
    return io;
}

/* The last output, from its tile to memory. */
template <typename S>
static __device__ __forceinline__ void store_last(const cuda_chain &chain, size_t first,
                                                  int n_there, const char *tile) {
    constexpr int UNITS = S::P::UNITS, W = S::W;
    void *y = chain.links[chain.n_links - 1].y;
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < BLOCK_VALUES / 8; i += S::THREADS) {
        int p = i / UNITS;
        if (p / (W * W) >= n_there) return;
        const char *from = tile + p / W * S::P::PITCH + S::P::unit_at(p % W + 1, i % UNITS);
        float4 v[2];
        load_eight((const bf16 *)from, v);
        if (chain.y_element == CUDA_FP32)
            store_eight((float *)y + first + 8 * i, v);
        else
            store_eight((bf16 *)y + first + 8 * i, v);
    }
}

/* Starts the copy of a norm's weights and biases. */
template <typename S>
static __device__ __forceinline__ void fetch_params(const cuda_link &link, const float *params,
                                                    float *to) {
    int i = (int)threadIdx.x;
    if (i >= 2 * S::C) return;
    copy_async<4>(shared_at(to + i), params + (i < S::C ? link.weight + i : link.bias + i - S::C));
}

/* The first layer's input, and what its addition adds. */
template <typename F>
static __device__ __forceinline__ void load_first(const cuda_chain &chain, size_t sample,
                                                  int n_there, char *shared) {
    typedef typename F::S S;
    typedef typename S::E E;
    size_t first = sample * S::W * S::W * S::C;
    clear_border<S>(shared);
    if (F::PLACES == 2) clear_border<S>(shared + S::TILE_BYTES);
    bool to_second = F::PLACES == 2 && (chain.n_colours > 0 || chain.links[0].add);
    char *tile = shared + (to_second ? S::TILE_BYTES : 0);
    if (S::C == 16 && chain.n_colours > 0) {
        const float *x = (const float *)chain.x + sample * S::W * S::W * chain.n_colours;
        load_image<S, F::FIRST_DEPTH>(x, chain.n_colours, tile);
        return;
    }
    load_tile<S>((const E *)chain.x + first, n_there, tile);
    if (to_second) load_tile<S>((const E *)chain.residual + first, n_there, shared);
}

template <typename F, bool TRAIN>
static __global__ void __launch_bounds__(F::S::THREADS, F::BLOCKS)
    forward_kernel(const __grid_constant__ forward_call c) {
    typedef typename F::S S;
    constexpr int C = S::C;
    extern __shared__ __align__(256) char shared[]; /* samples, two chunks of weights */
    __shared__ float2 scratch[8][S::WARPS];
    __shared__ __align__(16) float norm[2 * C];
    const cuda_job job = c.jobs[blockIdx.y];
    int n_there = min(S::SAMPLES, job.n - (int)blockIdx.x * S::SAMPLES), n_layers = c.v.n_links;
    if (n_there <= 0) return;
    size_t sample = (size_t)blockIdx.y * c.n_max + blockIdx.x * S::SAMPLES;
    const float *packed = c.packed + job.model * c.packed_stride;
    const float *params = c.params + job.model * c.params_stride;
    char *chunks = shared + F::PLACES * S::TILE_BYTES;
    uint32_t base = shared_at(shared);
    constexpr bool IS_NARROW = F::FIRST_DEPTH != C;
    bool is_image = IS_NARROW && c.v.n_colours > 0;
    if (is_image)
        fetch_chunk<S, F::FIRST_DEPTH, false>(packed + c.v.links[0].packed, 0, chunks);
    else
        fetch_chunk<S, C, false>(packed + c.v.links[0].packed, 0, chunks);
    load_first<F>(c.v, sample, n_there, shared);
    copies_group();
    spot s = spot_of<S>();
    const void *kept = c.v.residual;
    int n_done = 0; /* chunks */
    for (int k = 0; k < n_layers; k++) {
        const cuda_link &link = c.v.links[k];
        float sums[S::TILES][2][4] = {}, mean[2], inv[2];
        uint32_t tile = base + (F::PLACES > 1 && writes_first<F>(c.v, k) ? S::TILE_BYTES : 0);
        for (int part = 0; part < S::N_CHUNKS; part++, n_done++) {
            copies_wait_but<0>();
            __syncthreads(); /* chunk and samples are there, the other chunk is not read any more */
            int next = part + 1 < S::N_CHUNKS ? k : k + 1;
            if (next < n_layers)
                fetch_chunk<S, C, false>(packed + c.v.links[next].packed, (part + 1) % S::N_CHUNKS,
                                         chunks + (n_done + 1) % 2 * S::CHUNK_BYTES);
            if (part == 0) fetch_params<S>(link, params, norm);
            copies_group();
            const uint4 *weights = (const uint4 *)(chunks + n_done % 2 * S::CHUNK_BYTES);
            if (is_image && k == 0)
                multiply_chunk<S, F::FIRST_DEPTH, false>(s, tile, part, weights, sums);
            else
                multiply_chunk<S, C, false>(s, tile, part, weights, sums);
        }
        measure<S>(s, sums, scratch, mean, inv);
        if (TRAIN) write_stats<S>(s, mean, inv, n_there, link.stats + sample * 2 * GROUPS);
        layer_io io = plan_layer<F>(c.v, k, sample * S::W * S::W * C, kept, shared);
        finish<S, TRAIN>(s, io, n_there, sums, inv, norm);
        if (link.add || (k == 0 && c.v.n_colours > 0)) kept = link.y;
    }
    if (F::PLACES == 1) return;
    __syncthreads();
    store_last<S>(c.v, sample * S::W * S::W * C, n_there, shared);
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
    return v->co == 16 && v->ci <= 8 && ct_cuda_chain_fits(&same, shared_limit);
}

template <typename E, int C, bool TRAIN>
static ct_status launch(const cuda_run *run, const forward_call *c) {
    typedef forward_shape<E, C, TRAIN> F;
    typedef typename F::S S;
    constexpr int BYTES = F::PLACES * S::TILE_BYTES + 2 * S::CHUNK_BYTES;
    static_assert(BYTES + 2048 <= CUDA_CHAIN_BYTES, "a block's shared memory");
    dim3 grid((unsigned)((run->n_max + S::SAMPLES - 1) / S::SAMPLES), (unsigned)run->n_jobs);
    return launch_kernel(run, forward_kernel<F, TRAIN>, grid, S::THREADS, BYTES, *c);
}

template <typename E>
static ct_status launch_known(const cuda_run *run, int channels, bool train,
                              const forward_call *c) {
    if (channels == 16) return train ? launch<E, 16, true>(run, c) : launch<E, 16, false>(run, c);
    if (channels == 32) return train ? launch<E, 32, true>(run, c) : launch<E, 32, false>(run, c);
    return train ? launch<E, 64, true>(run, c) : launch<E, 64, false>(run, c);
}

ct_status ct_cuda_chain_forward(const cuda_run *run, int channels, const cuda_chain *chain,
                                bool train) {
    forward_call c = call_of(run, chain);
    return chain->element == CUDA_BF16 ? launch_known<bf16>(run, channels, train, &c)
                                       : launch_known<float>(run, channels, train, &c);
}
