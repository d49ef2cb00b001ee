/* LeNet-5 up to its features in one launch: convolution 5x5 + ReLU + maxima of 2 x 2 pixels, twice,
 * then two linear layers with ReLU, with the samples in shared memory.
 * The convolutions are matrix products in tf32 with rows = pixels, 16 of four windows (so that a
 * window's pixels are in two rows of neighbouring threads), columns = 8 maps, k = 8 taps of the
 * picture, or 8 maps (two of them zero) of a tap. Factors are sums of two tf32 numbers, of whose
 * four products three are computed: with one alone, other pixels of a window would be the largest
 * now and then, and gradients be off by 3 %. Linear layers are computed in fp32 (lenet.cuh).
 * Grid: x over groups of 4 samples, y = job. From memory: 3.1 KB of a picture and 336 bytes of
 * features a sample; weights, 245 KB a block, from L2; training also writes maxima, their places
 * and the hidden values, 8.5 KB a sample. 2 flops a product, 3.1 MFLOP a sample with the zeros. */
enum { WARPS = 8, PITCH = 32 };
#include "backend/cuda/lenet5/lenet.cuh"

enum { PLANE = WINDOWS_1 * 8, ROW = 24 /* floats: weights of an input map and tap */ };

/* Shared memory, in floats; pictures and planes are there twice, the second time with what tf32
 * leaves of them. */
enum {
    AT_PLANES = 2 * SAMPLES * PICTURE,
    AT_WEIGHTS = AT_PLANES + 2 * SAMPLES * PLANE,
    AT_FLAT = AT_WEIGHTS + TAPS * 8 * ROW,
    AT_HIDDEN = AT_FLAT + VALUES_2 * 4,
    FLOATS = AT_HIDDEN + HIDDEN * 4
};
static_assert(WARPS * HIDDEN * 4 <= AT_WEIGHTS, "the linear layers' parts lie where pictures were");
static_assert(FLOATS * 4 <= CUDA_LENET_BYTES, "a block's shared memory");

/* The second convolution's weights as [tap][map][ROW]. */
static __device__ __forceinline__ void load_weights(const float *weights, float *to) {
#pragma unroll 4
    for (int e = (int)threadIdx.x; e < TAPS * 8 * MAPS_2; e += THREADS) {
        int o = e % MAPS_2, i = e / MAPS_2 % 8, tap = e / MAPS_2 / 8;
        float v = i < MAPS_1 ? __ldg(weights + (o * MAPS_1 + i) * TAPS + tap) : 0.0f;
        to[(tap * 8 + i) * ROW + o] = v;
    }
}

static __device__ __forceinline__ void load_pictures(const spot &s, const float *x, float *to) {
#pragma unroll 4
    for (int e = (int)threadIdx.x; e < SAMPLES * PICTURE; e += THREADS) {
        float v = picture_value(s, x, e), high = to_tf32(v);
        to[e] = high, to[SAMPLES * PICTURE + e] = to_tf32(v - high);
    }
}

/* A fragment's factors in two parts. */
static __device__ __forceinline__ void split(const float v[2], float high[2], float low[2]) {
#pragma unroll
    for (int k = 0; k < 2; k++) {
        float x = v[k]; /* which may be where the high part goes */
        high[k] = to_tf32(x), low[k] = to_tf32(x - high[k]);
    }
}

/* sums += a b; the small products have sums of their own, so that fewer wait for each other. */
static __device__ __forceinline__ void multiply(float sums[2][4], const float a[4],
                                                const float a_low[4], const float b[2],
                                                const float b_low[2]) {
    mma_tf32(sums[1], a_low, b);
    mma_tf32(sums[0], a, b);
    mma_tf32(sums[1], a, b_low);
}

static __device__ __forceinline__ void join(float sums[2][4]) {
#pragma unroll
    for (int k = 0; k < 4; k++) sums[0][k] += sums[1][k];
}

/* A window's maximum of this thread's map, and its pixel: v has the sums of two maps at the thread's
 * pixel (0, 1) and the one below it (2, 3); the neighbour in the row has the others. Each takes one
 * of the maps. */
static __device__ __forceinline__ float largest(const spot &s, const float v[4], int *place) {
    bool is_right = s.lane & 4;
    float own = is_right ? fmaxf(v[1], v[3]) : fmaxf(v[0], v[2]);
    float given = is_right ? fmaxf(v[0], v[2]) : fmaxf(v[1], v[3]);
    int below = is_right ? v[3] > v[1] : v[2] > v[0];
    int given_below = is_right ? v[2] > v[0] : v[3] > v[1];
    float other = __shfl_xor_sync(0xffffffffu, given, 4);
    int own_place = 2 * below + is_right;
    int other_place = 2 * __shfl_xor_sync(0xffffffffu, given_below, 4) + !is_right;
    bool takes = other > own || (other == own && other_place < own_place);
    *place = takes ? other_place : own_place;
    return fmaxf(own, other);
}

/* Where map `map` of pixel p lies in a plane of 8: quads are swapped so that eight neighbouring
 * pixels' lie in different banks. */
static __device__ __forceinline__ int plane_at(int p, int map) {
    return p * 8 + ((map >> 2 ^ (p >> 2 & 1)) << 2) + (map & 3);
}

/* What becomes of a maximum: bias, ReLU; training keeps it. Returns the value. */
template <bool TRAIN>
static __device__ __forceinline__ float finish(const cuda_lenet &v, int layer, size_t at,
                                               bool is_there, float sum, float bias, int place) {
    float value = fmaxf(sum + bias, 0.0f);
    if (TRAIN && is_there) {
        v.maxima[layer][at] = value;
        v.places[layer][at] = (uint8_t)(value > 0.0f ? place : NOWHERE);
    }
    return value;
}

/* The first convolution of the warp's half of a sample's windows. */
template <bool TRAIN>
static __device__ __forceinline__ void first_layer(const spot &s, const cuda_lenet &v,
                                                   const float *pictures, float *planes) {
    int g = s.lane >> 2, t = s.lane & 3, b = s.warp / 2, map = 2 * t + (g & 1);
    const float *w = s.params + v.weight[CUDA_LENET_CONV_1], *picture = pictures + b * PICTURE;
    float weights[4][2], low[4][2], bias = 0.0f;
    int taps[4][2]; /* where they are, from a pixel on */
#pragma unroll
    for (int e = 0; e < 8; e++) {
        int tap = e / 2 * 8 + e % 2 * 4 + t;
        bool is_there = tap < TAPS && g < MAPS_1;
        weights[e / 2][e % 2] = is_there ? __ldg(w + g * TAPS + tap) : 0.0f;
        taps[e / 2][e % 2] = tap < TAPS ? tap / K * PITCH + tap % K : 0;
    }
#pragma unroll
    for (int k = 0; k < 4; k++) split(weights[k], weights[k], low[k]);
    if (map < MAPS_1) bias = __ldg(s.params + v.bias[CUDA_LENET_CONV_1] + map);
#pragma unroll 4
    for (int tile = s.warp % 2; tile < WINDOWS_1 / 4; tile += 2) {
        int window = tile * 4 + g / 2;
        int y = window / SIDE_1 * 2, x = window % SIDE_1 * 2 + (g & 1), place;
        const float *from = picture + y * PITCH + x;
        float sums[2][4] = {};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            float a[2][4];
#pragma unroll
            for (int e = 0; e < 8; e++)
                a[e / 4][e % 4] =
                    from[e / 4 * SAMPLES * PICTURE + taps[k][e % 4 / 2] + e % 2 * PITCH];
            multiply(sums, a[0], a[1], weights[k], low[k]);
        }
        join(sums);
        float most = largest(s, sums[0], &place);
        bool is_there = b < s.n_there && map < MAPS_1;
        size_t at = ((s.sample + b) * WINDOWS_1 + window) * MAPS_1 + map;
        float value = finish<TRAIN>(v, 0, at, is_there, most, bias, place);
        float *to = planes + b * PLANE + plane_at(window, map), high = to_tf32(value);
        to[0] = high, to[SAMPLES * PLANE] = to_tf32(value - high);
    }
}

/* The second convolution of a sample, 8 maps a warp. flat: [input][sample]. */
template <bool TRAIN>
static __device__ __forceinline__ void second_layer(const spot &s, const cuda_lenet &v,
                                                    const float *planes, const float *weights,
                                                    float *flat) {
    constexpr int TILES = (WINDOWS_2 + 3) / 4;
    int g = s.lane >> 2, t = s.lane & 3, b = s.warp / 2, maps = s.warp % 2 * 8;
    uint32_t plane = shared_at(planes + b * PLANE);
    int pixels[TILES];
    float sums[TILES][2][4] = {};
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        int window = min(i * 4 + (s.lane & 7) / 2, WINDOWS_2 - 1);
        int y = window / SIDE_2 * 2 + (s.lane >> 3 & 1), x = window % SIDE_2 * 2 + (s.lane & 1);
        pixels[i] = y * SIDE_1 + x;
    }
#pragma unroll 1
    for (int u = 0; u < K; u++)
#pragma unroll
        for (int q = 0; q < K; q++) {
            const float *w = weights + (u * K + q) * 8 * ROW + t * ROW + maps + g;
            float column[2] = {w[0], w[4 * ROW]}, low[2];
            split(column, column, low);
#pragma unroll
            for (int i = 0; i < TILES; i++) {
                float a[4], a_low[4];
                uint32_t at = plane + 4 * plane_at(pixels[i] + u * SIDE_1 + q, s.lane >> 4 << 2);
                load_fragment(a, at);
                load_fragment(a_low, at + 4 * SAMPLES * PLANE);
                multiply(sums[i], a, a_low, column, low);
            }
        }
    int map = maps + 2 * t + (g & 1);
    float bias = __ldg(s.params + v.bias[CUDA_LENET_CONV_2] + map);
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        int window = i * 4 + g / 2, place;
        join(sums[i]);
        float most = largest(s, sums[i][0], &place);
        if (window >= WINDOWS_2) continue;
        size_t at = (s.sample + b) * VALUES_2 + window * MAPS_2 + map;
        flat[(window * MAPS_2 + map) * 4 + b] =
            finish<TRAIN>(v, 1, at, b < s.n_there, most, bias, place);
    }
}

/* A linear layer's outputs, ReLU behind them, to memory (unless to is NULL) and to `kept`. */
template <int OUTPUTS>
static __device__ __forceinline__ void finish_linear(const spot &s, const float4 *parts,
                                                     const float *bias, float *to, float4 *kept) {
    int o = (int)threadIdx.x;
    if (o >= OUTPUTS) return;
    float sum[4], add = __ldg(bias + o);
    add_parts<OUTPUTS>(parts, o, sum);
#pragma unroll
    for (int b = 0; b < SAMPLES; b++) {
        sum[b] = fmaxf(sum[b] + add, 0.0f);
        if (to != NULL && b < s.n_there) to[(s.sample + b) * OUTPUTS + o] = sum[b];
    }
    if (kept != NULL) kept[o] = make_float4(sum[0], sum[1], sum[2], sum[3]);
}

template <bool TRAIN>
static __global__ void __launch_bounds__(THREADS, 2)
    forward_kernel(const __grid_constant__ lenet_call c) {
    extern __shared__ __align__(256) float shared[];
    spot s = spot_of(c);
    if (s.n_there <= 0) return;
    float *planes = shared + AT_PLANES, *weights = shared + AT_WEIGHTS, *flat = shared + AT_FLAT;
    float4 *parts = (float4 *)shared, *hidden = (float4 *)(shared + AT_HIDDEN);
    const float *const biases = s.params;
    load_pictures(s, c.v.x, shared);
    load_weights(s.params + c.v.weight[CUDA_LENET_CONV_2], weights);
    __syncthreads();
    first_layer<TRAIN>(s, c.v, shared, planes);
    __syncthreads();
    second_layer<TRAIN>(s, c.v, planes, weights, flat);
    __syncthreads();
    multiply_linear<VALUES_2, HIDDEN>(s, s.packed + c.v.packed[CUDA_LENET_FC_1],
                                      (const float4 *)flat, parts);
    __syncthreads();
    finish_linear<HIDDEN>(s, parts, biases + c.v.bias[CUDA_LENET_FC_1], TRAIN ? c.v.hidden : NULL,
                          hidden);
    __syncthreads();
    multiply_linear<HIDDEN, FEATURES>(s, s.packed + c.v.packed[CUDA_LENET_FC_2], hidden, parts);
    __syncthreads();
    finish_linear<FEATURES>(s, parts, biases + c.v.bias[CUDA_LENET_FC_2], c.v.features, NULL);
}

ct_status ct_cuda_lenet_forward(const cuda_run *run, const cuda_lenet *lenet, bool train) {
    lenet_call c = call_of(run, lenet);
    dim3 grid((unsigned)(run->n_max + SAMPLES - 1) / SAMPLES, (unsigned)run->n_jobs);
    return launch_kernel(run, train ? forward_kernel<true> : forward_kernel<false>, grid, THREADS,
                         FLOATS * sizeof(float), c);
}
