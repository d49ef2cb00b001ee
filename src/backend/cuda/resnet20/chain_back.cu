/* A chain of residual blocks backward, in one launch: EvoNorm's gradient, the convolution's data
 * gradient, again and again from the last layer to the first, with the gradient in registers and,
 * as the product's operand, in shared memory (chain.cuh says how). Weight gradients need each
 * layer's gradient behind the convolution, so that is written; per-sample sums of the norm's own
 * gradients go to sums.cu. The equations are those of backend/ref/norm.c.
 * Grid: x over groups of samples (16 Ki values a block), y = job. From memory: two elements of 4
 * bytes, or in bf16 of 2, a value and layer (the convolution's value read, its gradient written),
 * and one more, 4 bytes or 2, a value of each of the chain's ends. The next layer's values are on
 * their way while this one is multiplied. A residual block's gradient is kept for its beginning, in
 * registers or, as bf16, in shared memory. 2 flops a product. Limits: those of chain.cu. */
#include "backend/cuda/resnet20/chain.cuh"

typedef unit_call<cuda_chain> back_call;

/* Floats, 16 warps of 4 tiles: 172, 118 and 98 us for 512 samples of 16, 32 and 64 channels on an
 * H200. bf16, two blocks of 8 warps where there are enough blocks: 125, 77 and 63; one of 16 takes
 * 192 and 87 with 16 and 32 channels. */
template <typename ELEMENT, int C> struct back_shape {
    typedef chain_shape<float, C, 4, C == 16 ? 1 : C == 32 ? 3 : 6> S;
    static constexpr int BLOCKS = 1;
};
template <int C> struct back_shape<bf16, C> {
    typedef chain_shape<bf16, C, C == 64 ? 4 : 8, C == 16 ? 1 : C == 32 ? 6 : 3> S;
    static constexpr int BLOCKS = C == 64 ? 1 : 2;
};

/* What a layer's norm needs, fetched one layer ahead. */
typedef struct norm_values {
    float4 w;                 /* weights of this thread's quad */
    float mean[2], inv[2];    /* of its parts: groups of the quad, or halves */
    float total_w, total_inv; /* of the channel it adds up */
} norm_values;

/* Channel and sample whose sums this thread adds up, if it has any. */
template <typename S> static __device__ __forceinline__ bool has_total(int *channel, int *sample) {
    *channel = (int)threadIdx.x % S::C;
    *sample = (int)threadIdx.x / S::C % S::SAMPLES;
    return (int)threadIdx.x < S::C * S::SAMPLES;
}

template <typename S>
static __device__ __forceinline__ norm_values fetch_norm(const spot &s, const cuda_link &link,
                                                         const float *params, size_t sample,
                                                         int n_there) {
    constexpr int C = S::C;
    int t = threadIdx.x & 3, channel, other;
    const float *pw = params + link.weight + s.column * 16 + t * 4;
    const float2 *stats = (const float2 *)link.stats + sample * GROUPS;
    norm_values v = {};
    v.w = make_float4(pw[0], pw[1], pw[2], pw[3]);
#pragma unroll
    for (int p = 0; p < S::PARTS; p++) {
        int own = s.sample + (C == 64 ? p : 0);
        int group = C == 16 ? 2 * t + p : C == 32 ? 4 * s.column + t : 2 * s.column + (t >> 1);
        if (own >= n_there) continue;
        float2 q = stats[own * GROUPS + group];
        v.mean[p] = q.x, v.inv[p] = q.y;
    }
    if (has_total<S>(&channel, &other) && other < n_there) {
        v.total_w = params[link.weight + channel];
        v.total_inv = stats[other * GROUPS + channel / (C / GROUPS)].y;
    }
    return v;
}

/* A thread's own quads in shared memory: the k-th. */
template <typename S> static __device__ __forceinline__ typename S::E *slot_of(char *slots, int k) {
    return (typename S::E *)slots + 4 * (k * S::THREADS + (int)threadIdx.x);
}

static __device__ __forceinline__ void copy_four(float *to, const float *from) {
    copy_quad(to, from, true);
}

static __device__ __forceinline__ void copy_four(bf16 *to, const bf16 *from) {
    copy_async<8>(shared_at(to), from);
}

/* Starts the copy of one chunk's share of this thread's quads of x to shared memory. */
template <typename S>
static __device__ __forceinline__ void fetch_quads(const spot &s, const typename S::E *x,
                                                   int n_there, int part, int n_parts, char *to) {
#pragma unroll
    for (int k = 0; k < 2 * S::TILES; k++) {
        int i = k / 2, h = k % 2;
        if (k * n_parts / (2 * S::TILES) != part) continue;
        if (is_there<S>(s, h, n_there))
            copy_four(slot_of<S>(to, k), x + s.from + i * S::W * S::C + h * half_values<S>());
        else
            store_four(slot_of<S>(to, k), make_float4(0, 0, 0, 0));
    }
}

/* The chain's ends may be bf16 where it is. */
template <typename E> static __device__ __forceinline__ bool is_half(cuda_element element) {
    return sizeof(E) == 2 && element == CUDA_BF16;
}

/* This thread's quads of a tensor whose block begins at `first`; zero where there is no sample. All
 * are on their way before one is looked at. */
template <typename S>
static __device__ __forceinline__ void load_quads(const spot &s, const void *x, size_t first,
                                                  bool is_bf16, int n_there,
                                                  float4 out[S::TILES][2]) {
#pragma unroll
    for (int k = 0; k < 2 * S::TILES; k++) {
        size_t at = first + s.from + k / 2 * S::W * S::C + k % 2 * half_values<S>();
        float4 v = make_float4(0, 0, 0, 0);
        bool there = is_there<S>(s, k % 2, n_there);
        if (there && is_bf16) {
            float2 raw = *(const float2 *)((const bf16 *)x + at);
            v.x = raw.x, v.y = raw.y;
        } else if (there) {
            v = load_four((const float *)x + at);
        }
        out[k / 2][k % 2] = v;
    }
    if (!is_bf16) return;
#pragma unroll
    for (int k = 0; k < 2 * S::TILES; k++) {
        float4 raw = out[k / 2][k % 2];
        out[k / 2][k % 2] = unpack_four(make_uint2(__float_as_uint(raw.x), __float_as_uint(raw.y)));
    }
}

/* The gradient of a residual block's output, until its beginning: in registers, or in `slots`. */
template <typename S> struct kept_quads {
    static constexpr bool IS_SHARED = sizeof(typename S::E) == 2;
    static constexpr int BYTES = IS_SHARED ? BLOCK_VALUES * 2 : 0;
    float4 quads[IS_SHARED ? 1 : 2 * S::TILES];
    char *slots;

    __device__ __forceinline__ void put(int k, float4 v) {
        if (IS_SHARED)
            store_four(slot_of<S>(slots, k), v);
        else
            quads[k] = v;
    }
    __device__ __forceinline__ float4 get(int k) const {
        return IS_SHARED ? load_four(slot_of<S>(slots, k)) : quads[k];
    }
};

/* Shared memory of the sums: [half][with x, plain][channel][warp], and w times the sums with x. */
template <typename S> struct norm_scratch {
    float warps[S::C == 64 ? 2 : 1][2][S::C][S::WARPS / S::COLS];
    float with_x[S::SAMPLES][S::C];
};

/* This thread's channels' sums over its own pixels, added up over the lanes of the warp. */
template <typename S>
static __device__ __forceinline__ void sum_warps(const spot &s, const float4 d[S::TILES][2],
                                                 char *pre, norm_scratch<S> &scratch) {
    constexpr int HALVES = S::C == 64 ? 2 : 1;
    float part[HALVES][2][4] = {};
#pragma unroll
    for (int k = 0; k < 2 * S::TILES; k++) {
        float4 x = load_four(slot_of<S>(pre, k)), g = d[k / 2][k % 2];
        float *with = part[k % 2 % HALVES][0], *plain = part[k % 2 % HALVES][1];
        with[0] = fmaf(g.x, gate_numerator(x.x), with[0]), plain[0] += g.x;
        with[1] = fmaf(g.y, gate_numerator(x.y), with[1]), plain[1] += g.y;
        with[2] = fmaf(g.z, gate_numerator(x.z), with[2]), plain[2] += g.z;
        with[3] = fmaf(g.w, gate_numerator(x.w), with[3]), plain[3] += g.w;
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

/* The norm's own gradients of each sample, to `sums`. */
template <typename S>
static __device__ __forceinline__ void write_totals(const norm_values &v, int n_there, float *sums,
                                                    norm_scratch<S> &scratch) {
    constexpr int C = S::C;
    int channel, sample;
    if (!has_total<S>(&channel, &sample)) return;
    int first = (C == 64 ? sample / 2 : sample) * S::SHARED, half = C == 64 ? sample % 2 : 0;
    float with_x = add_warps<S>(&scratch.warps[half][0][channel][first]);
    scratch.with_x[sample][channel] = v.total_w * with_x;
    if (sample >= n_there) return;
    sums[sample * 2 * C + channel] = with_x * v.total_inv;
    sums[sample * 2 * C + C + channel] = add_warps<S>(&scratch.warps[half][1][channel][first]);
}

/* For each of this thread's parts, what the norm's statistics give back: a factor of x - mean. */
template <typename S>
static __device__ __forceinline__ void find_back(const spot &s, const norm_values &v,
                                                 const norm_scratch<S> &scratch, float back[2]) {
    constexpr int C = S::C, WIDE = C / GROUPS;
    int t = threadIdx.x & 3;
#pragma unroll
    for (int p = 0; p < S::PARTS; p++) {
        int first = s.column * 16 + (C == 16 ? t * 4 + 2 * p : C == 32 ? t * 4 : t / 2 * 8);
        const float *with_x = &scratch.with_x[s.sample + (C == 64 ? p : 0)][first];
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < WIDE; k++) sum += with_x[k];
        back[p] = v.inv[p] * v.inv[p] * v.inv[p] * sum * (1.0f / (float)(S::W * S::W * WIDE));
    }
}

/* The gradient behind the convolution, to memory and to the tile. */
template <typename S>
static __device__ __forceinline__ void
write_gradient(const spot &s, const norm_values &v, const float4 d[S::TILES][2], char *pre,
               int n_there, const float back[2], typename S::E *out, char *tile) {
#pragma unroll
    for (int k = 0; k < 2 * S::TILES; k++) {
        int i = k / 2, h = k % 2, p0 = part_of<S::C>(0, h), p1 = part_of<S::C>(1, h);
        float shift0 = back[p0] * v.mean[p0], shift1 = back[p1] * v.mean[p1];
        float4 x = load_four(slot_of<S>(pre, k)), g = d[i][h], q;
        q.x = one_gradient(x.x, g.x, v.w.x * v.inv[p0], back[p0], shift0);
        q.y = one_gradient(x.y, g.y, v.w.y * v.inv[p0], back[p0], shift0);
        q.z = one_gradient(x.z, g.z, v.w.z * v.inv[p1], back[p1], shift1);
        q.w = one_gradient(x.w, g.w, v.w.w * v.inv[p1], back[p1], shift1);
        if (is_there<S>(s, h, n_there))
            store_four(out + s.from + i * S::W * S::C + h * half_values<S>(), q);
        put_quad((typename S::E *)(tile + s.own + i * S::P::PITCH + h * half_bytes<S>()), q);
    }
}

template <typename S, typename T>
static __device__ __forceinline__ void store_quad(const spot &s, int k, float4 v, int n_there,
                                                  T *to) {
    if (is_there<S>(s, k % 2, n_there))
        store_four(to + s.from + k / 2 * S::W * S::C + k % 2 * half_values<S>(), v);
}

/* The input's gradient, and that of the first residual, which was kept. */
template <typename S>
static __device__ __forceinline__ void
store_ends(const spot &s, const cuda_chain &chain, const float4 d[S::TILES][2],
           const kept_quads<S> &kept, size_t first, int n_there) {
#pragma unroll
    for (int e = 0; e < 2 * S::TILES; e++) {
        if (is_half<typename S::E>(chain.dx_element))
            store_quad<S>(s, e, d[e / 2][e % 2], n_there, (bf16 *)chain.dx + first);
        else
            store_quad<S>(s, e, d[e / 2][e % 2], n_there, (float *)chain.dx + first);
    }
    if (!chain.links[0].add) return;
#pragma unroll
    for (int e = 0; e < 2 * S::TILES; e++) {
        if (is_half<typename S::E>(chain.dresidual_element))
            store_quad<S>(s, e, kept.get(e), n_there, (bf16 *)chain.dresidual + first);
        else
            store_quad<S>(s, e, kept.get(e), n_there, (float *)chain.dresidual + first);
    }
}

/* check: long because a chain's state lives in registers from its beginning to its end */
template <typename B>
static __global__ void __launch_bounds__(B::S::THREADS, B::BLOCKS)
    back_kernel(const __grid_constant__ back_call c) {
    typedef typename B::S S;
    typedef typename S::E E;
    constexpr int C = S::C, TILES = S::TILES;
    /* samples, two chunks, values of a layer, what is kept */
    extern __shared__ __align__(256) char shared[];
    __shared__ norm_scratch<S> scratch;
    const cuda_job job = c.jobs[blockIdx.y];
    int n_there = min(S::SAMPLES, job.n - (int)blockIdx.x * S::SAMPLES), last = c.v.n_links - 1;
    if (n_there <= 0) return;
    size_t sample = (size_t)blockIdx.y * c.n_max + blockIdx.x * S::SAMPLES;
    size_t first = sample * S::W * S::W * C;
    const float *packed = c.packed + job.model * c.packed_stride;
    const float *params = c.params + job.model * c.params_stride;
    char *chunks = shared + S::TILE_BYTES, *pre = chunks + 2 * S::CHUNK_BYTES;
    uint32_t tile = shared_at(shared);
    spot s = spot_of<S>();
    fetch_quads<S>(s, (const E *)c.v.links[last].pre + first, n_there, 0, 1, pre);
    fetch_chunk<S, C, true>(packed + c.v.links[last].packed, 0, chunks);
    copies_group();
    clear_border<S>(shared);
    norm_values v = fetch_norm<S>(s, c.v.links[last], params, sample, n_there);
    float4 d[TILES][2];
    kept_quads<S> kept = {};
    kept.slots = pre + BLOCK_VALUES * sizeof(E);
    load_quads<S>(s, c.v.d, first, is_half<E>(c.v.d_element), n_there, d);
    int n_done = 0; /* chunks */
    for (int k = last; k >= 0; k--) {
        const cuda_link &link = c.v.links[k];
        const cuda_link &below = c.v.links[k > 0 ? k - 1 : 0];
        float back[2];
#pragma unroll
        for (int e = 0; e < 2 * TILES; e++)
            if (link.add) kept.put(e, d[e / 2][e % 2]);
        copies_wait_but<0>(); /* this thread's own values */
        sum_warps<S>(s, d, pre, scratch);
        __syncthreads(); /* and nobody reads the tile any more */
        write_totals<S>(v, n_there, link.sums + sample * 2 * C, scratch);
        __syncthreads();
        find_back<S>(s, v, scratch, back);
        write_gradient<S>(s, v, d, pre, n_there, back, (E *)link.y + first, shared);
        if (k == 0 && c.v.n_colours > 0) return; /* pictures need no gradient */
        if (k > 0) v = fetch_norm<S>(s, below, params, sample, n_there);
        float sums[TILES][2][4] = {};
        for (int part = 0; part < S::N_CHUNKS; part++, n_done++) {
            copies_wait_but<0>();
            __syncthreads(); /* chunk and samples are there, the other chunk is not read any more */
            if (part + 1 < S::N_CHUNKS || k > 0)
                fetch_chunk<S, C, true>(packed + (part + 1 < S::N_CHUNKS ? link : below).packed,
                                        (part + 1) % S::N_CHUNKS,
                                        chunks + (n_done + 1) % 2 * S::CHUNK_BYTES);
            if (k > 0)
                fetch_quads<S>(s, (const E *)below.pre + first, n_there, part, S::N_CHUNKS, pre);
            copies_group();
            multiply_chunk<S, C, true>(s, tile, part,
                                       (const uint4 *)(chunks + n_done % 2 * S::CHUNK_BYTES), sums);
        }
        bool is_second = k == 1 && c.v.n_colours > 0;
        bool begins = k > 0 ? below.add || is_second : !link.add; /* a residual block */
#pragma unroll
        for (int e = 0; e < 2 * TILES; e++) {
            d[e / 2][e % 2] = quad_of(sums[e / 2], e % 2);
            if (begins) d[e / 2][e % 2] = add_quads(d[e / 2][e % 2], kept.get(e));
        }
    }
    store_ends<S>(s, c.v, d, kept, first, n_there);
}

template <typename E, int C> static ct_status launch(const cuda_run *run, const back_call *c) {
    typedef back_shape<E, C> B;
    typedef typename B::S S;
    constexpr int BYTES =
        S::TILE_BYTES + 2 * S::CHUNK_BYTES + BLOCK_VALUES * (int)sizeof(E) + kept_quads<S>::BYTES;
    static_assert(BYTES + sizeof(norm_scratch<S>) <= CUDA_CHAIN_BYTES, "a block's shared memory");
    dim3 grid((unsigned)((run->n_max + S::SAMPLES - 1) / S::SAMPLES), (unsigned)run->n_jobs);
    return launch_kernel(run, back_kernel<B>, grid, S::THREADS, BYTES, *c);
}

template <typename E>
static ct_status launch_known(const cuda_run *run, int channels, const back_call *c) {
    if (channels == 16) return launch<E, 16>(run, c);
    if (channels == 32) return launch<E, 32>(run, c);
    return launch<E, 64>(run, c);
}

ct_status ct_cuda_chain_backward(const cuda_run *run, int channels, const cuda_chain *chain) {
    back_call c = call_of(run, chain);
    return chain->element == CUDA_BF16 ? launch_known<bf16>(run, channels, &c)
                                       : launch_known<float>(run, channels, &c);
}
