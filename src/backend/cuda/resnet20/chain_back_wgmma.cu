/* A chain of residual blocks backward on Hopper, in bf16, in one launch: as chain_back.cu, with the
 * products of warp groups (chain_wgmma.cuh). A group's own values of a layer come to shared memory
 * while the layer behind it is multiplied, those of a residual block's gradient wait there.
 * Grid: x over groups of samples (16 Ki values a block), y = job; two blocks on a multiprocessor,
 * or one of 64 channels. From memory: as chain_back.cu in bf16. 2 flops a product. Limits: those of
 * chain.cu. */
#include "backend/cuda/resnet20/chain_wgmma.cuh"

typedef unit_call<cuda_chain> back_call;

template <int C> struct back_groups {
    typedef group_shape<C, 2, C == 16 ? 2 : 1, C == 16 ? 3 : 6, 3> S;
    static constexpr int BLOCKS = 2;
};
template <> struct back_groups<64> {
    typedef group_shape<64, 4, 1, 3, 3> S;
    static constexpr int BLOCKS = 1;
};

/* What a layer's norm needs: its weights, and mean and 1/sigma of the groups of a sample. */
template <typename S> struct back_norm {
    float w[S::C];
    float2 stats[GROUPS];
};

/* Starts its copy, for the group; zeros where there is no sample. */
template <typename S>
static __device__ __forceinline__ void fetch_norm(const group_spot &s, const cuda_link &link,
                                                  const float *params, size_t sample, int n_there,
                                                  back_norm<S> &to) {
    int i = (int)threadIdx.x % GROUP, k = i - S::C;
    bool there = s.sample < n_there;
    const float *stats = link.stats + (sample + (there ? s.sample : 0)) * 2 * GROUPS;
    if (i < S::C)
        copy_async<4>(shared_at(to.w + i), params + link.weight + i);
    else if (k < 2 * GROUPS)
        copy_async<4>(shared_at(&to.stats[0].x + k), stats + k, there);
}

/* A thread's own quads in shared memory: the k-th. */
template <typename S> static __device__ __forceinline__ bf16 *slot_of(char *slots, int k) {
    return (bf16 *)slots + 4 * (k * S::THREADS + (int)threadIdx.x);
}

/* All of a thread's quads: of tile m, half h and channels 16 p. */
template <typename S> struct all_quads {
    static constexpr int N = S::TILES * S::PAIRS * 2;

    static __device__ __forceinline__ constexpr int index(int m, int h, int p) {
        return (m * S::PAIRS + p) * 2 + h;
    }
    static __device__ __forceinline__ constexpr int m(int k) { return k / 2 / S::PAIRS; }
    static __device__ __forceinline__ constexpr int p(int k) { return k / 2 % S::PAIRS; }
    static __device__ __forceinline__ constexpr int values(int k) {
        return quad_values<S>(m(k), k % 2, p(k));
    }
    static __device__ __forceinline__ float4 get(const float sums[S::TILES][S::PAIRS][2][4],
                                                 int k) {
        return quad_of(sums[m(k)][p(k)], k % 2);
    }
    static __device__ __forceinline__ void put(float sums[S::TILES][S::PAIRS][2][4], int k,
                                               float4 v) {
        float(*pair)[4] = sums[m(k)][p(k)];
        int h = k % 2 * 2;
        pair[0][h] = v.x, pair[0][h + 1] = v.y, pair[1][h] = v.z, pair[1][h + 1] = v.w;
    }
};

/* Starts the copy of this thread's quads of x, or puts zeros; x is an address either way. */
template <typename S>
static __device__ __forceinline__ void fetch_quads(const bf16 *x, bool there, char *to) {
    typedef all_quads<S> Q;
#pragma unroll
    for (int k = 0; k < Q::N; k++)
        copy_async<8>(shared_at(slot_of<S>(to, k)), x + Q::values(k), there);
}

/* This thread's quads of a tensor, zero where there is no sample. */
template <typename S, typename T>
static __device__ __forceinline__ void load_quads(const T *x, bool there,
                                                  float sums[S::TILES][S::PAIRS][2][4]) {
    typedef all_quads<S> Q;
#pragma unroll
    for (int k = 0; k < Q::N; k++)
        Q::put(sums, k, there ? load_four(x + Q::values(k)) : make_float4(0, 0, 0, 0));
}

/* And to one: from the sums, or from `slots`. */
template <typename S, typename T>
static __device__ __forceinline__ void store_quads(const float sums[S::TILES][S::PAIRS][2][4],
                                                   char *slots, T *to) {
    typedef all_quads<S> Q;
#pragma unroll
    for (int k = 0; k < Q::N; k++)
        store_four(to + Q::values(k),
                   slots != NULL ? load_four(slot_of<S>(slots, k)) : Q::get(sums, k));
}

/* Sums of a sample's channels over a warp's pixels: with x, plain. */
template <typename S> struct back_scratch {
    float at[S::C == 16 ? 1 : S::SAMPLES][2][S::C][S::SHARED];
};

/* A thread's own, added up over the lanes of the warp. */
template <typename S>
static __device__ __forceinline__ void sum_warps(const group_spot &s,
                                                 const float d[S::TILES][S::PAIRS][2][4], char *pre,
                                                 back_scratch<S> &scratch) {
    typedef all_quads<S> Q;
    int warp = S::SHARED > 4 ? (int)threadIdx.x / 32 : s.warp, set = S::C == 16 ? 0 : s.sample;
#pragma unroll
    for (int p = 0; p < S::PAIRS; p++) {
        float v[8] = {}; /* four channels with x, plain */
#pragma unroll
        for (int e = 0; e < 2 * S::TILES; e++) {
            int k = Q::index(e / 2, e % 2, p);
            float4 x = load_four(slot_of<S>(pre, k)), g = Q::get(d, k);
            v[0] = fmaf(g.x, gate_numerator(x.x), v[0]), v[4] += g.x;
            v[1] = fmaf(g.y, gate_numerator(x.y), v[1]), v[5] += g.y;
            v[2] = fmaf(g.z, gate_numerator(x.z), v[2]), v[6] += g.z;
            v[3] = fmaf(g.w, gate_numerator(x.w), v[3]), v[7] += g.w;
        }
        int channel = 16 * p + 4 * s.t + (s.lane >> 2 & 3);
        scratch.at[set][s.lane >> 4][channel][warp] = add_lanes<8, 16, 4>(v);
    }
}

/* For each of a thread's parts, what the norm's statistics give back: a factor of x - mean. Each
 * warp adds up the channels, a lane its own, and two of them write the norm's own gradients of the
 * sample to `to`. */
template <typename S>
static __device__ __forceinline__ void find_back(const group_spot &s, const back_norm<S> &norm,
                                                 const back_scratch<S> &scratch, bool there,
                                                 float *to, float back[norm_parts<S>::N]) {
    typedef norm_parts<S> P;
    constexpr int C = S::C, WIDE = C / GROUPS, ACROSS = C < 32 ? C : 32, COUNT = S::W * S::W * WIDE;
    bool writes = there && (S::SHARED == 4 || s.group == 0) && s.lane < ACROSS;
    int set = C == 16 ? 0 : s.sample;
    float own[C / ACROSS];
#pragma unroll
    for (int k = 0; k < C / ACROSS; k++) {
        int channel = k * ACROSS + s.lane % ACROSS;
        float inv = norm.stats[channel / WIDE].y, with = add_warps<S>(scratch.at[set][0][channel]);
        if (writes && s.warp == 0) to[channel] = with * inv;
        if (writes && s.warp == 1) to[C + channel] = add_warps<S>(scratch.at[set][1][channel]);
        own[k] = norm.w[channel] * with;
#pragma unroll
        for (int m = 1; m < WIDE; m *= 2) own[k] += __shfl_xor_sync(0xffffffffu, own[k], m);
        own[k] *= inv * inv * inv * (1.0f / COUNT);
    }
#pragma unroll
    for (int k = 0; k < P::N; k++)
        back[k] = __shfl_sync(0xffffffffu, own[C == 64 ? k / 2 : 0], P::group(k, s.t) * WIDE % 32);
}

/* The gradient behind the convolution, to memory and to the place. */
template <typename S>
static __device__ __forceinline__ void
write_gradient(const group_spot &s, const back_norm<S> &norm, const float back[norm_parts<S>::N],
               const float d[S::TILES][S::PAIRS][2][4], char *pre, bool there, bf16 *out,
               char *place) {
    typedef all_quads<S> Q;
    typedef norm_parts<S> P;
#pragma unroll
    for (int p = 0; p < S::PAIRS; p++) {
        constexpr int HALVES = S::C == 16 ? 2 : 1; /* of a quad, which differ */
        float4 w = load_four(norm.w + 16 * p + 4 * s.t);
        float b[2], shift[2], inv[2];
#pragma unroll
        for (int h = 0; h < HALVES; h++) {
            int part = P::of(p, h);
            float2 stats = norm.stats[P::group(part, s.t)];
            b[h] = back[part], shift[h] = b[h] * stats.x, inv[h] = stats.y;
        }
        constexpr int L = HALVES - 1;
        w = make_float4(w.x * inv[0], w.y * inv[0], w.z * inv[L], w.w * inv[L]);
#pragma unroll
        for (int m = 0; m < S::TILES; m++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                int k = Q::index(m, h, p);
                float4 x = load_four(slot_of<S>(pre, k)), g = Q::get(d, k), q;
                q.x = one_gradient(x.x, g.x, w.x, b[0], shift[0]);
                q.y = one_gradient(x.y, g.y, w.y, b[0], shift[0]);
                q.z = one_gradient(x.z, g.z, w.z, b[L], shift[L]);
                q.w = one_gradient(x.w, g.w, w.w, b[L], shift[L]);
                if (there) store_four(out + Q::values(k), q);
                store_four((bf16 *)(place + quad_bytes<S>(m, h, p)), q);
            }
    }
}

/* The input's gradient, and that of the first residual, which was kept. */
template <typename S>
static __device__ __forceinline__ void store_ends(const cuda_chain &chain, size_t from,
                                                  const float d[S::TILES][S::PAIRS][2][4],
                                                  char *kept) {
    if (chain.dx_element == CUDA_BF16)
        store_quads<S>(d, NULL, (bf16 *)chain.dx + from);
    else
        store_quads<S>(d, NULL, (float *)chain.dx + from);
    if (!chain.links[0].add) return;
    if (chain.dresidual_element == CUDA_BF16)
        store_quads<S>(d, kept, (bf16 *)chain.dresidual + from);
    else
        store_quads<S>(d, kept, (float *)chain.dresidual + from);
}

/* check: long because a chain's state lives in registers from its beginning to its end */
template <typename B>
static __global__ void __launch_bounds__(B::S::THREADS + 32, B::BLOCKS)
    back_kernel(const __grid_constant__ back_call c) {
    typedef typename B::S S;
    typedef all_quads<S> Q;
    constexpr int C = S::C;
    /* the place, stages of weights, values of a layer, what is kept */
    extern __shared__ __align__(256) char shared[];
    __shared__ __align__(16) back_scratch<S> scratch;
    __shared__ __align__(16) back_norm<S> norms[S::N_GROUPS];
    __shared__ uint64_t full[S::STAGES], empty[S::STAGES];
    const cuda_job job = c.jobs[blockIdx.y];
    int n_there = min(S::SAMPLES, job.n - (int)blockIdx.x * S::SAMPLES), last = c.v.n_links - 1;
    if (n_there <= 0) return;
    size_t sample = (size_t)blockIdx.y * c.n_max + blockIdx.x * S::SAMPLES;
    group_ring ring = {shared + S::PLACE, full, empty};
    begin_ring<S>(ring);
    writes_to_products();
    __syncthreads();
    turn stage = {};
    int first = c.v.n_colours > 0 ? 1 : 0; /* pictures need no gradient */
    if (threadIdx.x >= S::THREADS) {
        const float *packed = c.packed + job.model * c.packed_stride;
        for (int k = last; k >= first && threadIdx.x == S::THREADS; k--)
            copy_layer<S>(ring, (const char *)(packed + c.v.links[k].packed), stage);
        return;
    }
    group_spot s = group_spot_of<S>();
    bool there = s.sample < n_there;
    size_t from = sample * S::W * S::W * C + s.from; /* of what is not there, the first sample */
    if (!there) from -= s.sample * S::W * S::W * C;
    const float *params = c.params + job.model * c.params_stride;
    char *pre = shared + S::PLACE + S::STAGES * S::STAGE, *kept = pre + BLOCK_VALUES * 2;
    fetch_quads<S>((const bf16 *)c.v.links[last].pre + from, there, pre);
    fetch_norm<S>(s, c.v.links[last], params, sample, n_there, norms[s.group]);
    clear_zeros<S>(shared, 1);
    float d[S::TILES][S::PAIRS][2][4];
    if (c.v.d_element == CUDA_BF16)
        load_quads<S>((const bf16 *)c.v.d + from, there, d);
    else
        load_quads<S>((const float *)c.v.d + from, there, d);
    copies_wait();
    meet_all<S>(); /* zeros and norms are there */
    for (int k = last; k >= 0; k--) {
        const cuda_link &link = c.v.links[k];
        const cuda_link &below = c.v.links[k > 0 ? k - 1 : 0];
        float back[norm_parts<S>::N];
#pragma unroll
        for (int e = 0; e < Q::N; e++)
            if (link.add) store_four(slot_of<S>(kept, e), Q::get(d, e));
        sum_warps<S>(s, d, pre, scratch);
        meet<S>(s); /* and nobody reads the place any more */
        find_back<S>(s, norms[s.group], scratch, there, link.sums + (sample + s.sample) * 2 * C,
                     back);
        write_gradient<S>(s, norms[s.group], back, d, pre, there, (bf16 *)link.y + from,
                          shared + s.own);
        if (k < first) return;
        writes_to_products();
        meet<S>(s); /* the place is written, norms are read */
        if (k > 0) {
            fetch_quads<S>((const bf16 *)below.pre + from, there, pre);
            fetch_norm<S>(s, below, params, sample, n_there, norms[s.group]);
        }
        multiply_layer<S>(s, ring, shared_at(shared), stage, d);
        bool is_second = k == 1 && c.v.n_colours > 0;
        bool begins = k > 0 ? below.add || is_second : !link.add; /* a residual block */
#pragma unroll
        for (int e = 0; e < Q::N; e++)
            if (begins) Q::put(d, e, add_quads(Q::get(d, e), load_four(slot_of<S>(kept, e))));
        copies_wait();
    }
    if (there) store_ends<S>(c.v, from, d, kept);
}

template <int C> static ct_status launch(const cuda_run *run, const back_call *c) {
    typedef back_groups<C> B;
    typedef typename B::S S;
    constexpr int BYTES = S::PLACE + S::STAGES * S::STAGE + 2 * BLOCK_VALUES * 2;
    static_assert(BYTES + 4096 <= CUDA_CHAIN_BYTES, "a block's shared memory");
    dim3 grid((unsigned)((run->n_max + S::SAMPLES - 1) / S::SAMPLES), (unsigned)run->n_jobs);
    return launch_kernel(run, back_kernel<B>, grid, S::THREADS + 32, BYTES, *c);
}

ct_status ct_cuda_chain_backward_groups(const cuda_run *run, int channels,
                                        const cuda_chain *chain) {
    back_call c = call_of(run, chain);
    if (channels == 16) return launch<16>(run, &c);
    if (channels == 32) return launch<32>(run, &c);
    return launch<64>(run, &c);
}
