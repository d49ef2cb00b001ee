/* VGG-11's levels backward, in one launch: from the features' gradient, for each level from the last
 * to the first, through the maxima and EvoNorm (the equations are those of backend/ref/norm.c) and
 * the convolution's data gradient, with the gradient in registers and, as the product's operand, in
 * shared memory (stack.cuh says how). Weight gradients need each level's gradient behind the
 * convolution, so that is written; per-sample sums of the other parameters' gradients go to sums.cu.
 * Grid: x over groups of 4 samples, y = job; one block on a multiprocessor. From memory: 2 bytes a
 * value behind each convolution read twice, the second time from the caches, and 2 written; weights
 * once a block. A maximum's pixel is found again, from the values that its forward pass compared.
 * 2 flops a product, 18.8 MFLOP a sample. */
enum { WARPS = 16 };
#include "backend/cuda/vgg11/stack.cuh"

/* The features' gradient, as a product of pictures of one pixel would have left it. */
struct features_product {
    static constexpr int W = 1, TM = 1, TP = 1, COLS = 8, BUSY = 8;
};

/* What follows a product: the norm of WIDTH squared pixels and C channels, whose output, or its
 * maxima, the product has the gradient of. */
template <typename PRODUCT, int WIDTH, int CHANNELS> struct back_shape {
    typedef PRODUCT S;
    static constexpr int W = WIDTH, C = CHANNELS, WO = S::W, WINDOW = W / WO * (W / WO);
    typedef plane<W, C> OUT;
    static constexpr int SETS = WO == 4 ? S::TM : 1, TILES = S::TM / SETS; /* of samples */
    static constexpr int HALVES = WO == 1 ? 1 : 2;
    static constexpr int LANES = WO >= 4 ? 28 : WO == 2 ? 4 : 0;      /* of a sample */
    static constexpr int SHARED = WO >= 8 ? WO * WO / 16 / S::TM : 1; /* warps of a sample */
    static constexpr int COUNT = W * W * C / GROUPS;
};

typedef product<plane<2, 128>, 128, 1, 1, 8> product_8, product_7;
typedef product<plane<4, 128>, 128, 2, 1, 4> product_6;
typedef product<plane<4, 128>, 64, 1, 1, 8> product_5;
typedef product<plane<8, 64>, 64, 4, 1, 4> product_4;
typedef product<plane<8, 64>, 32, 2, 1, 4> product_3;
typedef product<plane<16, 32>, 16, 4, 1, 2> product_2;

typedef back_shape<features_product, 2, 128> back_8;
typedef back_shape<product_8, 2, 128> back_7;
typedef back_shape<product_7, 4, 128> back_6;
typedef back_shape<product_6, 4, 128> back_5;
typedef back_shape<product_5, 8, 64> back_4;
typedef back_shape<product_4, 8, 64> back_3;
typedef back_shape<product_3, 16, 32> back_2;
typedef back_shape<product_2, 32, 16> back_1;

/* Levels read one place and write the other. */
enum { FIRST = plane<16, 32>::BYTES, SECOND = plane<8, 64>::BYTES, BYTES = FIRST + SECOND };
static_assert(plane<2, 128>::BYTES <= SECOND && plane<4, 128>::BYTES <= SECOND &&
                  plane<8, 64>::BYTES <= FIRST && plane<4, 128>::BYTES <= FIRST,
              "places of the levels' gradients");
static_assert(BYTES + (int)sizeof(float) * WARPS * 64 <= CUDA_STACK_BYTES,
              "a block's shared memory");

/* What is summed over a sample's pixels, by channel of a quad: gradient times numerator, gradient,
 * gradient times the numerator's derivative, and the norm's input. */
enum { WITH_X, PLAIN, SLOPE, INPUT, N_TOTALS };
typedef float totals_of_warps[WARPS][N_TOTALS * 4][4];

/* A thread's quad of channels of one sample, and the norm there. */
typedef struct norm_quad {
    int channel, sample;
    bool is_there;
    float w[4], mean[4], inv[4], scale[4];
} norm_quad;

template <typename B>
static __device__ __forceinline__ norm_quad quad_for(const spot &s, const cuda_level &level,
                                                     int first, int p, int set) {
    norm_quad n;
    n.channel = (s.warp % B::S::COLS * B::S::TP + p) * 16 + (s.lane & 3) * 4;
    n.sample = pixel_of<B::WO>(first + set, s.lane >> 2, 0).sample;
    n.is_there = n.sample < s.n_there;
    float4 w = load_params(s.params + level.norm_weight + n.channel);
    n.w[0] = w.x, n.w[1] = w.y, n.w[2] = w.z, n.w[3] = w.w;
    const float2 *stats = (const float2 *)level.stats + (s.sample + n.sample) * GROUPS;
    float2 left = make_float2(0, 0), right;
    if (n.is_there) left = stats[n.channel / (B::C / GROUPS)];
    right = left;
    if (B::C == 16 && n.is_there) right = stats[n.channel / (B::C / GROUPS) + 1];
#pragma unroll
    for (int e = 0; e < 4; e++) {
        n.mean[e] = e < 2 ? left.x : right.x, n.inv[e] = e < 2 ? left.y : right.y;
        n.scale[e] = n.w[e] * n.inv[e];
    }
    return n;
}

/* The place of pixel k of a window in a tensor of W squared pixels. */
template <typename B> static __device__ __forceinline__ pixel window_pixel(const pixel &q, int k) {
    constexpr int N = B::W / B::WO;
    return {q.sample, q.y * N + k / N, q.x * N + k % N};
}

template <typename B>
static __device__ __forceinline__ size_t value_at(const spot &s, const pixel &q, int channel) {
    return (((s.sample + q.sample) * B::W + q.y) * B::W + q.x) * B::C + channel;
}

/* The norm's input under a pixel of the output. */
template <typename B>
static __device__ __forceinline__ void load_window(const spot &s, const cuda_level &level,
                                                   const norm_quad &n, const pixel &q,
                                                   float x[B::WINDOW][4]) {
#pragma unroll
    for (int k = 0; k < B::WINDOW; k++) {
        uint2 raw = make_uint2(0, 0);
        if (n.is_there)
            raw = __ldg((const uint2 *)((const bf16 *)level.pre +
                                        value_at<B>(s, window_pixel<B>(q, k), n.channel)));
        *(float4 *)x[k] = unpack_four(raw);
    }
}

/* Which pixel of a window has the gradient: the first largest one, 2 bits a channel. */
template <typename B>
static __device__ __forceinline__ uint32_t places_of(const norm_quad &n,
                                                     const float x[B::WINDOW][4]) {
    uint32_t places = 0;
#pragma unroll
    for (int e = 0; e < 4 && B::WINDOW > 1; e++) {
        uint32_t place = 0;
        float most = gate_numerator(x[0][e]) * n.scale[e];
#pragma unroll
        for (int k = 1; k < B::WINDOW; k++) {
            float y = gate_numerator(x[k][e]) * n.scale[e];
            if (y > most) place = (uint32_t)k << 2 * e;
            most = fmaxf(most, y);
        }
        places |= place;
    }
    return places;
}

/* The norm's input at that pixel. */
template <typename B>
static __device__ __forceinline__ float value_of(const float x[B::WINDOW][4], uint32_t places,
                                                 int e) {
    float at = x[0][e];
#pragma unroll
    for (int k = 1; k < B::WINDOW; k++)
        if ((places >> 2 * e & 3) == (uint32_t)k) at = x[k][e];
    return at;
}

/* Adds a pixel of the output to the totals. */
template <typename B>
static __device__ __forceinline__ void add_window(const float x[B::WINDOW][4], uint32_t places,
                                                  float4 d, float totals[N_TOTALS][4]) {
    float g[4] = {d.x, d.y, d.z, d.w};
#pragma unroll
    for (int e = 0; e < 4; e++) {
        float at = value_of<B>(x, places, e), sum = x[0][e];
#pragma unroll
        for (int k = 1; k < B::WINDOW; k++) sum += x[k][e];
        totals[WITH_X][e] = fmaf(g[e], gate_numerator(at), totals[WITH_X][e]);
        totals[PLAIN][e] += g[e];
        totals[SLOPE][e] = fmaf(g[e], gate_slope(at), totals[SLOPE][e]);
        totals[INPUT][e] += sum;
    }
}

/* Totals over the lanes and warps that share the sample, in order. */
template <typename B>
static __device__ __forceinline__ void join_totals(const spot &s, totals_of_warps scratch,
                                                   float totals[N_TOTALS][4]) {
#pragma unroll
    for (int k = 0; k < N_TOTALS * 4; k++) {
        totals[k / 4][k % 4] = lanes_sum<B::LANES>(totals[k / 4][k % 4]);
        if (B::SHARED > 1 && s.lane < 4) scratch[s.warp][k][s.lane] = totals[k / 4][k % 4];
    }
    if (B::SHARED == 1) return;
    __syncthreads();
    int row = s.warp / B::S::COLS / B::SHARED * B::SHARED;
#pragma unroll
    for (int k = 0; k < N_TOTALS * 4; k++) {
        float sum = 0.0f;
#pragma unroll
        for (int e = 0; e < B::SHARED; e++)
            sum += scratch[(row + e) * B::S::COLS + s.warp % B::S::COLS][k][s.lane & 3];
        totals[k / 4][k % 4] = sum;
    }
}

/* What the norm's statistics give back: a factor of x - mean for each channel. */
template <typename B>
static __device__ __forceinline__ void find_back(const norm_quad &n, const float with_x[4],
                                                 float back[4]) {
    float left = n.w[0] * with_x[0] + n.w[1] * with_x[1];
    float right = n.w[2] * with_x[2] + n.w[3] * with_x[3];
    if (B::C > 16) left = right = lanes_sum<group_lanes<B::C>::MASK>(left + right);
#pragma unroll
    for (int e = 0; e < 4; e++)
        back[e] = n.inv[e] * n.inv[e] * n.inv[e] * (e < 2 ? left : right) * (1.0f / B::COUNT);
}

/* A sample's gradients of the norm's parameters and of the convolution's bias. */
template <typename B>
static __device__ __forceinline__ void
write_totals(const spot &s, const cuda_level &level, const norm_quad &n,
             const float totals[N_TOTALS][4], const float back[4]) {
    bool is_first = (s.lane & B::LANES) == 0 && s.warp / B::S::COLS % B::SHARED == 0;
    if (!is_first || !n.is_there) return;
    float *norm = level.norm_sums + (s.sample + n.sample) * 2 * B::C + n.channel;
    float *bias = level.bias_sums + (s.sample + n.sample) * B::C + n.channel;
#pragma unroll
    for (int e = 0; e < 4; e++) {
        float about = totals[INPUT][e] - (float)(B::W * B::W) * n.mean[e];
        norm[e] = totals[WITH_X][e] * n.inv[e];
        norm[B::C + e] = totals[PLAIN][e];
        bias[e] = n.scale[e] * totals[SLOPE][e] - back[e] * about;
    }
}

/* The gradients of a window's pixels behind the convolution, to memory and to the place that the
 * product reads; the first level has none. */
template <typename B>
static __device__ __forceinline__ void write_window(const spot &s, const cuda_level &level,
                                                    const norm_quad &n, const pixel &q,
                                                    const float x[B::WINDOW][4], uint32_t places,
                                                    float4 d, const float back[4], char *out) {
    float g[4] = {d.x, d.y, d.z, d.w};
    __align__(16) float dx[B::WINDOW][4];
#pragma unroll
    for (int e = 0; e < 4; e++) {
        float own = g[e] * n.scale[e] * gate_slope(value_of<B>(x, places, e));
#pragma unroll
        for (int k = 0; k < B::WINDOW; k++)
            dx[k][e] = fmaf(back[e], n.mean[e] - x[k][e],
                            (places >> 2 * e & 3) == (uint32_t)k ? own : 0.0f);
    }
#pragma unroll
    for (int k = 0; k < B::WINDOW; k++) {
        pixel to = window_pixel<B>(q, k);
        uint2 raw = pack_four(*(const float4 *)dx[k]);
        if (n.is_there) *(uint2 *)((bf16 *)level.d + value_at<B>(s, to, n.channel)) = raw;
        if (B::W == 32 || n.sample >= SAMPLES) continue;
        int at = B::OUT::position(to.sample, to.y, to.x);
        *(uint2 *)(out + B::OUT::quad_at(at, n.channel / 4)) = raw;
    }
}

/* From a product's sums, the gradient of a level's output, to that behind its convolution. */
template <typename B>
static __device__ __forceinline__ void norm_back(const spot &s, const cuda_level &level,
                                                 const float d[B::S::TM][2 * B::S::TP][4],
                                                 totals_of_warps scratch, char *out) {
    int first = s.warp / B::S::COLS * B::S::TM, g = s.lane >> 2;
#pragma unroll
    for (int k = 0; k < B::S::TP * B::SETS; k++) {
        int p = k / B::SETS, set = k % B::SETS;
        norm_quad n = quad_for<B>(s, level, first, p, set);
        float totals[N_TOTALS][4] = {}, back[4];
        uint32_t places[B::TILES * B::HALVES];
#pragma unroll
        for (int e = 0; e < B::TILES * B::HALVES; e++) {
            int i = set + e / B::HALVES, h = e % B::HALVES;
            __align__(16) float x[B::WINDOW][4];
            load_window<B>(s, level, n, pixel_of<B::WO>(first + i, g, h), x);
            places[e] = places_of<B>(n, x);
            add_window<B>(x, places[e], quad_of(&d[i][2 * p], h), totals);
        }
        join_totals<B>(s, scratch, totals);
        find_back<B>(n, totals[WITH_X], back);
        write_totals<B>(s, level, n, totals, back);
#pragma unroll
        for (int e = 0; e < B::TILES * B::HALVES; e++) {
            int i = set + e / B::HALVES, h = e % B::HALVES;
            pixel q = pixel_of<B::WO>(first + i, g, h);
            __align__(16) float x[B::WINDOW][4];
            load_window<B>(s, level, n, q, x);
            write_window<B>(s, level, n, q, x, places[e], quad_of(&d[i][2 * p], h), back, out);
        }
    }
}

/* A level's data gradient, and the norm of the level below it. */
template <typename B>
static __device__ __forceinline__ void run_back(const spot &s, const cuda_level &level,
                                                const cuda_level &below, const char *in,
                                                totals_of_warps scratch, char *out) {
    typedef typename B::S S;
    float d[S::TM][2 * S::TP][4] = {};
    if (B::W < 32) clear(out, B::OUT::BYTES);
    bool is_busy = s.warp < S::BUSY;
    if (is_busy)
        multiply<S, true>(s, shared_at(in), s.packed + level.packed, s.warp / S::COLS * S::TM, d);
    __syncthreads(); /* the place is empty */
    if (is_busy) norm_back<B>(s, below, d, scratch, out);
    __syncthreads();
}

/* The last level's norm, from the features' gradient. */
static __device__ __forceinline__ void run_last(const spot &s, const cuda_stack &v,
                                                totals_of_warps scratch, char *out) {
    float d[1][2][4] = {};
    int sample = s.lane >> 2;
    clear(out, back_8::OUT::BYTES);
    if (sample < s.n_there && s.warp < back_8::S::BUSY) {
        const float *from = v.dfeatures + (s.sample + sample) * back_8::C;
        float4 q = load_four(from + s.warp * 16 + (s.lane & 3) * 4);
        d[0][0][0] = q.x, d[0][0][1] = q.y, d[0][1][0] = q.z, d[0][1][1] = q.w;
    }
    __syncthreads();
    if (s.warp < back_8::S::BUSY) norm_back<back_8>(s, v.levels[7], d, scratch, out);
    __syncthreads();
}

static __global__ void __launch_bounds__(THREADS, 1)
    back_kernel(const __grid_constant__ stack_call c) {
    extern __shared__ __align__(256) char first[]; /* and the second place */
    __shared__ totals_of_warps scratch;
    spot s = spot_of(c);
    if (s.n_there <= 0) return;
    const cuda_level *levels = c.v.levels;
    char *second = first + FIRST;
    run_last(s, c.v, scratch, first);
    run_back<back_7>(s, levels[7], levels[6], first, scratch, second);
    run_back<back_6>(s, levels[6], levels[5], second, scratch, first);
    run_back<back_5>(s, levels[5], levels[4], first, scratch, second);
    run_back<back_4>(s, levels[4], levels[3], second, scratch, first);
    run_back<back_3>(s, levels[3], levels[2], first, scratch, second);
    run_back<back_2>(s, levels[2], levels[1], second, scratch, first);
    run_back<back_1>(s, levels[1], levels[0], first, scratch, second);
}

ct_status ct_cuda_stack_backward(const cuda_run *run, const cuda_stack *stack) {
    stack_call c = call_of(run, stack);
    dim3 grid((unsigned)(run->n_max + SAMPLES - 1) / SAMPLES, (unsigned)run->n_jobs);
    return launch_kernel(run, back_kernel, grid, THREADS, BYTES, c);
}
