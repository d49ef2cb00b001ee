/* VGG-11's levels in one launch: convolution 3x3 + bias + EvoNorm (+ maxima of 2 x 2 pixels), eight
 * times, with the samples in shared memory (stack.cuh says how). What a level computes is rounded
 * to bf16 before the norm, as training keeps it.
 * Grid: x over groups of 4 samples, y = job; two blocks on a multiprocessor. From memory: 12 bytes
 * a pixel of the picture; weights once a block, 1.15 MB from L2; 512 bytes of features a sample;
 * training also writes 2 bytes a value before each norm and 2 a value that the next level reads.
 * 2 flops a product, 20.7 MFLOP a sample with those of the picture's missing colours. */
enum { WARPS = 8 };
#include "backend/cuda/vgg11/stack.cuh"

/* The picture's product has k = (row of taps, 4 pixels, 4 colours): the last of each are zero. */
struct picture_product {
    typedef plane<32, 4> IN;
    static constexpr int W = 32, TM = 8, TP = 1, COLS = 1, DOWN = WARPS, ROUNDS = SAMPLES;
};

template <typename PRODUCT, int CHANNELS, bool IS_POOLED> struct level_shape {
    typedef PRODUCT S;
    static constexpr int W = S::W, C = CHANNELS, WO = IS_POOLED ? W / 2 : W;
    static constexpr bool POOLS = IS_POOLED;
    typedef plane<WO, C> OUT;
    /* what a thread sums apart: halves of its quad, pairs of columns, or tiles */
    static constexpr int SETS = C == 16 ? 2 : W >= 8 ? S::TP : W == 4 ? S::TM : 1;
    static constexpr int LANES = (W == 2 ? 4 : 28) | group_lanes<C>::MASK; /* of one group */
    static constexpr int SHARED = W >= 8 ? W * W / 16 / S::TM : 1;         /* warps of a sample */
    static constexpr int COUNT = W * W * C / GROUPS;

    static __device__ __forceinline__ constexpr int set_of(int i, int p, int e) {
        return C == 16 ? e / 2 : W >= 8 ? p : W == 4 ? i : 0;
    }
};

typedef level_shape<picture_product, 16, true> level_1;
typedef level_shape<product<plane<16, 16>, 32, 4, 2, 1>, 32, true> level_2;
typedef level_shape<product<plane<8, 32>, 64, 4, 2, 2>, 64, false> level_3;
typedef level_shape<product<plane<8, 64>, 64, 4, 2, 2>, 64, true> level_4;
typedef level_shape<product<plane<4, 64>, 128, 4, 1, 4>, 128, false> level_5;
typedef level_shape<product<plane<4, 128>, 128, 4, 1, 4>, 128, true> level_6;
typedef level_shape<product<plane<2, 128>, 128, 1, 1, 8>, 128, false> level_7;
typedef level_shape<product<plane<2, 128>, 128, 1, 1, 8>, 128, true> level_8;

/* Levels read one place and write the other. */
enum { FIRST = plane<32, 4>::BYTES, SECOND = plane<8, 64>::BYTES, BYTES = FIRST + SECOND };
static_assert(plane<8, 32>::BYTES <= FIRST && plane<4, 64>::BYTES <= FIRST &&
                  plane<2, 128>::BYTES <= FIRST && plane<16, 16>::BYTES <= SECOND &&
                  plane<4, 128>::BYTES <= SECOND,
              "places of the levels' samples");
static_assert(BYTES + 1024 <= CUDA_STACK_BYTES, "a block's shared memory");

typedef float2 sums_of_warps[WARPS][GROUPS];

/* The channel of a thread's quad of pair p. */
template <typename S> static __device__ __forceinline__ int channel_of(const spot &s, int p) {
    return (s.warp % S::COLS * S::TP + p) * 16 + (s.lane & 3) * 4;
}

/* Adds the bias and rounds; training writes it to memory. */
template <typename L, bool TRAIN>
static __device__ __forceinline__ void round_values(const spot &s, const cuda_level &level,
                                                    int first,
                                                    float sums[L::S::TM][2 * L::S::TP][4]) {
#pragma unroll
    for (int p = 0; p < L::S::TP; p++) {
        int channel = channel_of<typename L::S>(s, p);
        float4 b = load_params(s.params + level.bias + channel);
#pragma unroll
        for (int e = 0; e < 2 * L::S::TM; e++) {
            int i = e / 2, h = e % 2;
            float *left = &sums[i][2 * p][2 * h], *right = &sums[i][2 * p + 1][2 * h];
            uint2 raw = pack_four(
                make_float4(left[0] + b.x, left[1] + b.y, right[0] + b.z, right[1] + b.w));
            float4 x = unpack_four(raw);
            left[0] = x.x, left[1] = x.y, right[0] = x.z, right[1] = x.w;
            if (!TRAIN) continue;
            pixel q = pixel_of<L::W>(first + i, s.lane >> 2, h);
            size_t at = ((s.sample + q.sample) * L::W + q.y) * L::W + q.x;
            if (q.sample < s.n_there) *(uint2 *)((bf16 *)level.pre + at * L::C + channel) = raw;
        }
    }
}

/* Mean and 1/sigma of this thread's groups: over its own values, over the lanes, then over the
 * warps that share the sample, in order. Behind it the level's output may be written. */
template <typename L>
static __device__ __forceinline__ void
measure(const spot &s, const float sums[L::S::TM][2 * L::S::TP][4], sums_of_warps scratch,
        float mean[L::SETS], float inv[L::SETS]) {
    float sum[L::SETS] = {}, squares[L::SETS] = {};
#pragma unroll
    for (int i = 0; i < L::S::TM; i++)
#pragma unroll
        for (int k = 0; k < 8 * L::S::TP; k++) {
            int e = k / 4 % 2 * 2 + k % 2, set = L::set_of(i, k / 8, e);
            float x = sums[i][k / 4][k % 4];
            sum[set] += x;
            squares[set] = fmaf(x, x, squares[set]);
        }
#pragma unroll
    for (int e = 0; e < L::SETS; e++) {
        sum[e] = lanes_sum<L::LANES>(sum[e]), squares[e] = lanes_sum<L::LANES>(squares[e]);
        if (L::SHARED > 1 && s.lane < 4)
            scratch[s.warp][e * 4 + s.lane] = make_float2(sum[e], squares[e]);
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < L::SETS; e++) {
        if (L::SHARED > 1) {
            sum[e] = squares[e] = 0.0f;
#pragma unroll
            for (int k = 0; k < L::SHARED; k++) {
                float2 part = scratch[s.warp / L::SHARED * L::SHARED + k][e * 4 + (s.lane & 3)];
                sum[e] += part.x, squares[e] += part.y;
            }
        }
        mean[e] = sum[e] * (1.0f / L::COUNT);
        float about = fmaxf(fmaf(-sum[e], mean[e], squares[e]), 0.0f);
        inv[e] = rsqrtf(fmaf(about, 1.0f / L::COUNT, CUDA_EPSILON));
    }
}

/* Mean and 1/sigma to memory, by the first of those that have them. */
template <typename L>
static __device__ __forceinline__ void write_stats(const spot &s, int first, float *stats,
                                                   const float mean[L::SETS],
                                                   const float inv[L::SETS]) {
    if ((s.lane & L::LANES) != 0 || s.warp / L::S::COLS % L::SHARED != 0) return;
#pragma unroll
    for (int e = 0; e < L::SETS; e++) {
        int pair = s.warp % L::S::COLS * L::S::TP + (L::W >= 8 && L::C > 16 ? e : 0);
        int t = s.lane & 3,
            sample = pixel_of<L::W>(first + (L::W == 4 ? e : 0), s.lane >> 2, 0).sample;
        int group = L::C == 16   ? 2 * t + e
                    : L::C == 32 ? 4 * pair + t
                    : L::C == 64 ? 2 * pair + t / 2
                                 : pair;
        if (sample < s.n_there)
            ((float2 *)stats)[(s.sample + sample) * GROUPS + group] = make_float2(mean[e], inv[e]);
    }
}

/* A quad of the norm's output to the next level's place, and to memory. */
template <typename L, bool TRAIN>
static __device__ __forceinline__ void put_quad(const spot &s, const pixel &q, int channel,
                                                float4 v, char *out, void *y) {
    uint2 raw = pack_four(v);
    int at = L::OUT::position(q.sample, q.y, q.x);
    *(uint2 *)(out + L::OUT::quad_at(at, channel / 4)) = raw;
    size_t to = ((s.sample + q.sample) * L::WO + q.y) * L::WO + q.x;
    if (TRAIN && q.sample < s.n_there) *(uint2 *)((bf16 *)y + to * L::C + channel) = raw;
}

/* The maxima of a window: v has those of the thread's pixel and the one below it; the neighbour in
 * the row has the others. Each takes two of the four channels. The last ones are the features. */
template <typename L, bool TRAIN>
static __device__ __forceinline__ void put_largest(const spot &s, const pixel &q, int channel,
                                                   float4 v, char *out, void *y) {
    bool is_right = s.lane & 4;
    float2 own = is_right ? make_float2(v.z, v.w) : make_float2(v.x, v.y);
    float2 given = is_right ? make_float2(v.x, v.y) : make_float2(v.z, v.w);
    own.x = fmaxf(own.x, __shfl_xor_sync(0xffffffffu, given.x, 4));
    own.y = fmaxf(own.y, __shfl_xor_sync(0xffffffffu, given.y, 4));
    size_t to = ((s.sample + q.sample) * L::WO + q.y / 2) * L::WO + q.x / 2;
    int half = is_right ? 2 : 0;
    bool is_there = q.sample < s.n_there;
    if (L::WO == 1) {
        if (is_there) store_two((float *)y + to * L::C + channel + half, own);
        return;
    }
    int at = L::OUT::position(q.sample, q.y / 2, q.x / 2);
    store_two((bf16 *)(out + L::OUT::quad_at(at, channel / 4)) + half, own);
    if (TRAIN && is_there) store_two((bf16 *)y + to * L::C + channel + half, own);
}

static __device__ __forceinline__ float4 largest(float4 a, float4 b) {
    return make_float4(fmaxf(a.x, b.x), fmaxf(a.y, b.y), fmaxf(a.z, b.z), fmaxf(a.w, b.w));
}

/* EvoNorm of a warp's sums, and what follows it. */
template <typename L, bool TRAIN>
static __device__ __forceinline__ void finish(const spot &s, const cuda_level &level, int first,
                                              sums_of_warps scratch,
                                              float sums[L::S::TM][2 * L::S::TP][4], char *out) {
    float mean[L::SETS], inv[L::SETS];
    round_values<L, TRAIN>(s, level, first, sums);
    measure<L>(s, sums, scratch, mean, inv);
    if (TRAIN) write_stats<L>(s, first, level.stats, mean, inv);
#pragma unroll
    for (int p = 0; p < L::S::TP; p++) {
        int channel = channel_of<typename L::S>(s, p);
        float4 w = load_params(s.params + level.norm_weight + channel);
        float4 b = load_params(s.params + level.norm_bias + channel);
#pragma unroll
        for (int i = 0; i < L::S::TM; i++) {
            float left = inv[L::set_of(i, p, 0)], right = inv[L::set_of(i, p, 2)];
            float4 scale = make_float4(w.x * left, w.y * left, w.z * right, w.w * right);
            pixel q = pixel_of<L::W>(first + i, s.lane >> 2, 0);
            float4 upper = gate_quad(quad_of(&sums[i][2 * p], 0), scale, b);
            float4 lower = gate_quad(quad_of(&sums[i][2 * p], 1), scale, b);
            if (L::POOLS) {
                put_largest<L, TRAIN>(s, q, channel, largest(upper, lower), out, level.y);
                continue;
            }
            put_quad<L, TRAIN>(s, q, channel, upper, out, level.y);
            q = pixel_of<L::W>(first + i, s.lane >> 2, 1);
            put_quad<L, TRAIN>(s, q, channel, lower, out, level.y);
        }
    }
}

template <typename L, bool TRAIN>
static __device__ __forceinline__ void run_level(const spot &s, const cuda_level &level,
                                                 const char *in, sums_of_warps scratch[2],
                                                 char *out) {
    typedef typename L::S S;
    uint32_t tile = shared_at(in);
    if (L::WO > 1) clear(out, L::OUT::BYTES);
#pragma unroll 1
    for (int round = 0; round < S::ROUNDS; round++) {
        int first = (round * S::DOWN + s.warp / S::COLS) * S::TM;
        float sums[S::TM][2 * S::TP][4] = {};
        multiply<S, false>(s, tile, s.packed + level.packed, first, sums);
        finish<L, TRAIN>(s, level, first, scratch[round & 1], sums, out);
    }
    __syncthreads();
}

/* ---- the picture ---- */

static __device__ __forceinline__ void load_pictures(const spot &s, const float *x, int n_colours,
                                                     char *tile) {
    typedef level_1::S::IN P;
    clear(tile, P::BYTES);
    __syncthreads();
#pragma unroll 4
    for (int p = (int)threadIdx.x; p < s.n_there * P::W * P::W; p += THREADS) {
        const float *from = x + (s.sample * P::W * P::W + p) * n_colours;
        float v[4];
#pragma unroll
        for (int k = 0; k < 4; k++) v[k] = k < n_colours ? __ldg(from + k) : 0.0f;
        int at = P::position(p / (P::W * P::W), p / P::W % P::W, p % P::W);
        *(uint2 *)(tile + at * P::PIXEL) = pack_four(make_float4(v[0], v[1], v[2], v[3]));
    }
}

/* This lane's weights b[row of taps][column tile][half of k]. */
static __device__ __forceinline__ void load_first_weights(const spot &s, const float *weights,
                                                          int n_colours, uint32_t b[3][2][2]) {
    int g = s.lane >> 2, t = s.lane & 3;
#pragma unroll
    for (int e = 0; e < 12; e++) {
        int u = e / 4, j = e / 2 % 2, x = t / 2 + e % 2 * 2, colour = t % 2 * 2;
        int o = 4 * (g / 2) + 2 * j + g % 2;
        float v[2];
#pragma unroll
        for (int k = 0; k < 2; k++)
            v[k] = x < 3 && colour + k < n_colours
                       ? __ldg(weights + (o * n_colours + colour + k) * 9 + u * 3 + x)
                       : 0.0f;
        b[u][j][e % 2] = pack_bf16(v[0], v[1]);
    }
}

static __device__ __forceinline__ void multiply_picture(const spot &s, const char *tile, int first,
                                                        const uint32_t b[3][2][2],
                                                        float sums[8][2][4]) {
    typedef level_1::S::IN P;
    int t = s.lane & 3;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        pixel q = pixel_of<P::W>(first + i, s.lane >> 2, 0);
        int at = P::position(q.sample, q.y - 1, q.x - 1) + t / 2;
        const char *from = tile + at * P::PIXEL + t % 2 * 4;
        uint32_t near[4], far[4]; /* rows; the first and the next two pixels */
#pragma unroll
        for (int r = 0; r < 4; r++) {
            near[r] = *(const uint32_t *)(from + r * P::PITCH * P::PIXEL);
            far[r] = *(const uint32_t *)(from + (r * P::PITCH + 2) * P::PIXEL);
        }
#pragma unroll
        for (int u = 0; u < 3; u++) {
            uint32_t a[4] = {near[u], near[u + 1], far[u], far[u + 1]};
            mma_bf16(sums[i][0], a, b[u][0]);
            mma_bf16(sums[i][1], a, b[u][1]);
        }
    }
}

template <bool TRAIN>
static __device__ __forceinline__ void run_first(const spot &s, const cuda_stack &v, char *in,
                                                 sums_of_warps scratch[2], char *out) {
    typedef level_1 L;
    uint32_t b[3][2][2];
    load_first_weights(s, s.params + v.levels[0].weight, v.n_colours, b);
    load_pictures(s, v.x, v.n_colours, in);
    clear(out, L::OUT::BYTES);
    __syncthreads();
#pragma unroll 1
    for (int round = 0; round < L::S::ROUNDS; round++) {
        int first = (round * L::S::DOWN + s.warp) * L::S::TM;
        float sums[L::S::TM][2][4] = {};
        multiply_picture(s, in, first, b, sums);
        finish<L, TRAIN>(s, v.levels[0], first, scratch[round & 1], sums, out);
    }
    __syncthreads();
}

template <bool TRAIN>
static __global__ void __launch_bounds__(THREADS, 2)
    forward_kernel(const __grid_constant__ stack_call c) {
    extern __shared__ __align__(256) char first[]; /* and the second place */
    __shared__ sums_of_warps scratch[2];
    spot s = spot_of(c);
    if (s.n_there <= 0) return;
    const cuda_level *levels = c.v.levels;
    char *second = first + FIRST;
    run_first<TRAIN>(s, c.v, first, scratch, second);
    run_level<level_2, TRAIN>(s, levels[1], second, scratch, first);
    run_level<level_3, TRAIN>(s, levels[2], first, scratch, second);
    run_level<level_4, TRAIN>(s, levels[3], second, scratch, first);
    run_level<level_5, TRAIN>(s, levels[4], first, scratch, second);
    run_level<level_6, TRAIN>(s, levels[5], second, scratch, first);
    run_level<level_7, TRAIN>(s, levels[6], first, scratch, second);
    run_level<level_8, TRAIN>(s, levels[7], second, scratch, first);
}

ct_status ct_cuda_stack_forward(const cuda_run *run, const cuda_stack *stack, bool train) {
    stack_call c = call_of(run, stack);
    dim3 grid((unsigned)(run->n_max + SAMPLES - 1) / SAMPLES, (unsigned)run->n_jobs);
    return launch_kernel(run, train ? forward_kernel<true> : forward_kernel<false>, grid, THREADS,
                         BYTES, c);
}
