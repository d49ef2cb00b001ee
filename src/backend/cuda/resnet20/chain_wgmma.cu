/* A chain of residual blocks forward on Hopper, in bf16, in one launch: convolution 3x3 + EvoNorm
 * (+ addition), again and again, with the samples in shared memory (chain_wgmma.cuh says how). A
 * residual block's input stays in the first of two places; its second convolution reads the second
 * and adds to the first.
 * Grid: x over groups of samples (16 Ki values a block), y = job; two blocks on a multiprocessor,
 * or one of 64 channels in training. From memory: as chain.cu in bf16. Weights (18 C C bytes a
 * layer) come from the caches once a block. 2 flops a product. Limits: those of chain.cu. */
#include "backend/cuda/resnet20/chain_wgmma.cuh"

typedef unit_call<cuda_chain> forward_call;

template <int C, bool TRAIN> struct forward_groups;
template <bool TRAIN> struct forward_groups<16, TRAIN> {
    typedef group_shape<16, 2, 2, 1, 2> S;
    static constexpr int BLOCKS = 2;
};
template <bool TRAIN> struct forward_groups<32, TRAIN> {
    typedef group_shape<32, 2, 1, 1, 2> S;
    static constexpr int BLOCKS = 2;
};
template <> struct forward_groups<64, false> {
    typedef group_shape<64, 2, 1, 6, 2> S;
    static constexpr int BLOCKS = 2;
};
template <> struct forward_groups<64, true> { /* 16 agents have 128 blocks: one a multiprocessor */
    typedef group_shape<64, 4, 1, 3, 3> S;
    static constexpr int BLOCKS = 1;
};

/* ---- pictures ---- */

/* The group's part of a picture of a few colours, as the first of 16 channels. */
template <typename S>
static __device__ __forceinline__ void load_image(const group_spot &s, const float *x,
                                                  int n_colours, char *place) {
    constexpr int PIXELS = S::W * S::W / S::N_GROUPS;
#pragma unroll
    for (int k = 0; k < PIXELS / GROUP; k++) {
        int pixel = s.group * PIXELS + k * GROUP + (int)threadIdx.x % GROUP;
        float v[8];
#pragma unroll
        for (int e = 0; e < 8; e++) v[e] = e < n_colours ? x[pixel * n_colours + e] : 0.0f;
        float4 quads[2] = {make_float4(v[0], v[1], v[2], v[3]),
                           make_float4(v[4], v[5], v[6], v[7])};
        char *to = place + (pixel / S::W + 1) * S::PITCH + (pixel % S::W + 1) * PIXEL;
        store_eight((bf16 *)to, quads);
        *(uint4 *)(to + S::PLANE) = make_uint4(0, 0, 0, 0);
    }
}

/* The first layer's input, and what its addition adds. */
template <typename S>
static __device__ __forceinline__ void load_first(const group_spot &s, const cuda_chain &chain,
                                                  size_t sample, int n_there, char *shared) {
    size_t first = sample * S::W * S::W * S::C;
    clear_zeros<S>(shared, 2);
    if (S::C == 16 && chain.n_colours > 0) {
        load_image<S>(s, (const float *)chain.x + sample * S::W * S::W * chain.n_colours,
                      chain.n_colours, shared + S::PLACE);
        return;
    }
    bool adds = chain.links[0].add;
    load_samples<S>(s, (const bf16 *)chain.x + first, n_there, shared + (adds ? S::PLACE : 0));
    if (adds) load_samples<S>(s, (const bf16 *)chain.residual + first, n_there, shared);
}

/* The group's last output, from the first place to memory. */
template <typename S>
static __device__ __forceinline__ void store_last(const group_spot &s, const cuda_chain &chain,
                                                  size_t first, int n_there, const char *place) {
    void *y = chain.links[chain.n_links - 1].y;
#pragma unroll 4
    for (int k = 0; k < group_unit<S>::EACH; k++) {
        group_unit<S> unit(s, k);
        if (unit.value >= n_there * S::W * S::W * S::C) continue;
        float4 v[2];
        load_eight((const bf16 *)(place + unit.at), v);
        if (chain.y_element == CUDA_FP32)
            store_eight((float *)y + first + unit.value, v);
        else
            store_eight((bf16 *)y + first + unit.value, v);
    }
}

/* ---- EvoNorm ---- */

/* Sums and sums of squares of the samples' groups, by warp. */
template <typename S> struct norm_sums {
    float2 at[S::C == 16 ? 1 : S::SAMPLES][GROUPS][S::SHARED];
};

/* Mean and 1/sigma of one of the group's norm groups, each lane's its own: over a thread's values,
 * over the lanes, then over the warps that share the sample, in order. */
template <typename S>
static __device__ __forceinline__ float2 measure(const group_spot &s,
                                                 const float sums[S::TILES][S::PAIRS][2][4],
                                                 norm_sums<S> &scratch) {
    typedef norm_parts<S> P;
    constexpr int N = 2 * P::N, EACH = S::TILES / S::SETS, COUNT = S::W * S::W * S::C / GROUPS;
    int set = S::C == 16 ? 0 : s.sample, warp = S::SHARED > 4 ? (int)threadIdx.x / 32 : s.warp;
#pragma unroll
    for (int k = 0; k < S::SETS; k++) {
        float v[N] = {};
#pragma unroll
        for (int e = 0; e < EACH * S::PAIRS * 8; e++) {
            int pair = e / 8 % S::PAIRS, j = e / 2 % 2, part = P::of(pair, j);
            float x = sums[k * EACH + e / 8 / S::PAIRS][pair][j][e % 2 + e / 4 % 2 * 2];
            v[part] += x;
            v[P::N + part] = fmaf(x, x, v[P::N + part]);
        }
        float total = add_lanes < N, 16, S::C == 64 ? 1 : 4 > (v);
        int which = N == 4 ? s.lane >> 3 : s.lane >> 2;
        if ((s.lane & (N == 4 ? 4 : 1)) == 0) /* two lanes have it */
            (&scratch.at[set + k][P::group(which % P::N, s.t)][warp].x)[which / P::N] = total;
    }
    copies_wait_but<0>(); /* the norm's parameters */
    meet<S>(s);
    int own = s.lane % (GROUPS * S::SETS);
    const float2 *from = scratch.at[set + own / GROUPS][own % GROUPS];
    float sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int k = 0; k < S::SHARED; k++) sum += from[k].x, squares += from[k].y;
    float mean = sum * (1.0f / COUNT);
    squares = fmaxf(fmaf(-sum, mean, squares), 0.0f);
    return make_float2(mean, rsqrtf(fmaf(squares, 1.0f / COUNT, CUDA_EPSILON)));
}

/* Mean and 1/sigma to memory, from the block's first sample on, by the first warp that has the
 * sample. */
template <typename S>
static __device__ __forceinline__ void write_stats(const group_spot &s, float2 own, int n_there,
                                                   float *stats) {
    bool is_first = s.warp == 0 && (S::SHARED == 4 || s.group == 0);
    if (!is_first || s.lane >= GROUPS * S::SETS) return;
    int sample = s.sample + s.lane / GROUPS;
    if (sample < n_there) ((float2 *)stats)[s.sample * GROUPS + s.lane] = own;
}

/* Starts the copy of a norm's weights and biases, for the group. */
template <typename S>
static __device__ __forceinline__ void fetch_params(const cuda_link &link, const float *params,
                                                    float *to) {
    int i = (int)threadIdx.x % GROUP;
    if (i >= 2 * S::C) return;
    copy_async<4>(shared_at(to + i), params + (i < S::C ? link.weight + i : link.bias + i - S::C));
}

/* Where a layer's values go. */
typedef struct layer_out {
    char *to; /* the place that the next layer reads; what is there is added first */
    bool adds;
    bf16 *pre, *y; /* memory, from the thread's first quad on; y may be NULL */
} layer_out;

/* EvoNorm and what follows it: the values before and after to memory, and after also to the place,
 * for the next layer. norm: the weights, then the biases. */
template <typename S, bool TRAIN>
static __device__ __forceinline__ void
finish(const group_spot &s, const layer_out &out, int n_there,
       const float sums[S::TILES][S::PAIRS][2][4], float2 stats, const float *norm) {
    typedef norm_parts<S> P;
    constexpr int ALL = 2 * S::TILES, AHEAD = ALL < 4 ? ALL : 4; /* quads at a time */
    float inv[S::SETS][P::N];
#pragma unroll
    for (int k = 0; k < S::SETS * P::N; k++)
        inv[k / P::N][k % P::N] =
            __shfl_sync(0xffffffffu, stats.y, k / P::N * GROUPS + P::group(k % P::N, s.t));
#pragma unroll
    for (int e = 0; e < S::PAIRS * ALL; e += AHEAD) {
        int p = e / ALL, first = e % ALL;
        const float *quad = norm + p * 16 + s.t * 4;
        float4 w = load_four(quad), b = load_four(quad + S::C), y[AHEAD], kept[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            int m = (first + k) / 2, h = (first + k) % 2;
            const float *of = inv[S::SETS > 1 ? m : 0];
            float left = of[P::of(p, 0)], right = of[P::of(p, 1)];
            float4 x = quad_of(sums[m][p], h);
            y[k].x = fmaf(gate_numerator(x.x), w.x * left, b.x);
            y[k].y = fmaf(gate_numerator(x.y), w.y * left, b.y);
            y[k].z = fmaf(gate_numerator(x.z), w.z * right, b.z);
            y[k].w = fmaf(gate_numerator(x.w), w.w * right, b.w);
            if (TRAIN && is_there<S>(s, m, n_there))
                store_four(out.pre + quad_values<S>(m, h, p), x);
        }
        if (out.adds) {
#pragma unroll
            for (int k = 0; k < AHEAD; k++)
                kept[k] = load_four(
                    (const bf16 *)(out.to + quad_bytes<S>((first + k) / 2, (first + k) % 2, p)));
#pragma unroll
            for (int k = 0; k < AHEAD; k++) y[k] = add_quads(y[k], kept[k]);
        }
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            int m = (first + k) / 2, h = (first + k) % 2;
            if (TRAIN && out.y != NULL && is_there<S>(s, m, n_there))
                store_four(out.y + quad_values<S>(m, h, p), y[k]);
            store_four((bf16 *)(out.to + quad_bytes<S>(m, h, p)), y[k]);
        }
    }
}

/* Whether layer k writes the first place: a residual block's input or output. It reads the other.
 */
static __device__ __forceinline__ bool writes_first(const cuda_chain &chain, int k) {
    return chain.links[k].add || (k == 0 && chain.n_colours > 0);
}

template <typename F, bool TRAIN>
static __global__ void __launch_bounds__(F::S::THREADS + 32, F::BLOCKS)
    forward_kernel(const __grid_constant__ forward_call c) {
    typedef typename F::S S;
    constexpr int C = S::C;
    extern __shared__ __align__(256) char shared[]; /* two places, stages of weights */
    __shared__ __align__(16) norm_sums<S> scratch;
    __shared__ __align__(16) float norms[S::N_GROUPS][2 * C];
    __shared__ uint64_t full[S::STAGES], empty[S::STAGES];
    const cuda_job job = c.jobs[blockIdx.y];
    int n_there = min(S::SAMPLES, job.n - (int)blockIdx.x * S::SAMPLES), n_layers = c.v.n_links;
    if (n_there <= 0) return;
    size_t sample = (size_t)blockIdx.y * c.n_max + blockIdx.x * S::SAMPLES;
    size_t first = sample * S::W * S::W * C;
    group_ring ring = {shared + 2 * S::PLACE, full, empty};
    begin_ring<S>(ring);
    writes_to_products();
    __syncthreads();
    turn stage = {};
    if (threadIdx.x >= S::THREADS) {
        const float *packed = c.packed + job.model * c.packed_stride;
        for (int k = 0; k < n_layers && threadIdx.x == S::THREADS; k++)
            copy_layer<S>(ring, (const char *)(packed + c.v.links[k].packed), stage);
        return;
    }
    group_spot s = group_spot_of<S>();
    load_first<S>(s, c.v, sample, n_there, shared);
    copies_wait();
    writes_to_products();
    meet_all<S>();
    float sums[S::TILES][S::PAIRS][2][4] = {};
    for (int k = 0; k < n_layers; k++) {
        const cuda_link &link = c.v.links[k];
        bool to_first = writes_first(c.v, k);
        fetch_params<S>(link, c.params + job.model * c.params_stride, norms[s.group]);
        copies_group();
        multiply_layer<S>(s, ring, shared_at(shared) + (to_first ? S::PLACE : 0), stage, sums);
        float2 stats = measure<S>(s, sums, scratch);
        if (TRAIN) write_stats<S>(s, stats, n_there, link.stats + sample * 2 * GROUPS);
        layer_out out = {};
        out.to = shared + (to_first ? 0 : S::PLACE) + s.own;
        out.adds = link.add;
        if (TRAIN) out.pre = (bf16 *)link.pre + first + s.from;
        if (TRAIN && k + 1 < n_layers) out.y = (bf16 *)link.y + first + s.from;
        finish<S, TRAIN>(s, out, n_there, sums, stats, norms[s.group]);
        writes_to_products();
        meet<S>(s);
    }
    store_last<S>(s, c.v, first, n_there, shared);
}

template <int C, bool TRAIN> static ct_status launch(const cuda_run *run, const forward_call *c) {
    typedef forward_groups<C, TRAIN> F;
    typedef typename F::S S;
    constexpr int BYTES = 2 * S::PLACE + S::STAGES * S::STAGE;
    static_assert(BYTES + 4096 <= CUDA_CHAIN_BYTES, "a block's shared memory");
    dim3 grid((unsigned)((run->n_max + S::SAMPLES - 1) / S::SAMPLES), (unsigned)run->n_jobs);
    return launch_kernel(run, forward_kernel<F, TRAIN>, grid, S::THREADS + 32, BYTES, *c);
}

ct_status ct_cuda_chain_forward_groups(const cuda_run *run, int channels, const cuda_chain *chain,
                                       bool train) {
    forward_call c = call_of(run, chain);
    if (channels == 16) return train ? launch<16, true>(run, &c) : launch<16, false>(run, &c);
    if (channels == 32) return train ? launch<32, true>(run, &c) : launch<32, false>(run, &c);
    return train ? launch<64, true>(run, &c) : launch<64, false>(run, &c);
}
