/* What stack.cu and stack_back.cu share: convolutions 3x3 of samples that stay in shared memory in
 * bf16, level after level, each of another shape.
 * A block has 4 samples. The product of a level has rows = pixels, columns = output channels, k =
 * (tap, input channel). A tile of rows is 8 neighbouring pixels and the 8 below them (two times 4
 * of one sample, or 2 of each sample, where the picture is narrower), so that the pixels of a
 * pooling window are in two neighbouring rows of threads. Thread (g = lane / 4, t = lane % 4) has
 * pixels g and g + 8 of every tile of its warp and channels 4 t .. 4 t + 3 of 16. Weights come from
 * the caches in the order of the fragments, some products ahead. */
#ifndef CT_BACKEND_CUDA_VGG11_STACK_CUH
#define CT_BACKEND_CUDA_VGG11_STACK_CUH

#include "backend/cuda/mma.cuh"
#include "backend/cuda/vgg11/vgg11.h"

enum { SAMPLES = 4, THREADS = 32 * WARPS, GROUPS = 8 }; /* WARPS: of who includes this */

typedef struct stack_call {
    const cuda_job *jobs;
    int n_max;
    const float *packed, *params;
    size_t packed_stride, params_stride;
    cuda_stack v;
} stack_call;

/* What a block works on. */
typedef struct spot {
    const float *packed, *params; /* of its model */
    size_t sample;                /* its first one */
    int n_there;
    int lane, warp;
} spot;

static inline stack_call call_of(const cuda_run *run, const cuda_stack *v) {
    stack_call c = {};
    c.jobs = run->jobs_dev, c.n_max = run->n_max, c.v = *v;
    c.packed = run->packed_dev, c.packed_stride = run->packed_stride;
    c.params = run->params_dev, c.params_stride = run->params_stride;
    return c;
}

static __device__ __forceinline__ spot spot_of(const stack_call &c) {
    const cuda_job job = c.jobs[blockIdx.y];
    int first = (int)blockIdx.x * SAMPLES;
    return {c.packed + job.model * c.packed_stride,
            c.params + job.model * c.params_stride,
            (size_t)blockIdx.y * c.n_max + first,
            min((int)SAMPLES, job.n - first),
            (int)threadIdx.x & 31,
            (int)threadIdx.x >> 5};
}

/* The block's samples of WIDTH squared pixels in shared memory, with a row and a column of zeros
 * before each sample's; a row's zero is also the one behind the row before. Units of 16 bytes are
 * swapped so that 8 pixels of a tile lie in different banks; for that rows of 4 pixels and samples
 * of 2 x 2 have one more position. */
template <int WIDTH, int CHANNELS> struct plane {
    static constexpr int W = WIDTH, C = CHANNELS, PIXEL = 2 * C;
    static constexpr int PITCH = W == 4 ? 6 : W + 1, SIZE = W == 2 ? 10 : (W + 1) * PITCH;
    static constexpr int BYTES = ((SAMPLES * SIZE + PITCH + 1) * PIXEL + 255) / 256 * 256;
    static constexpr int TURN = C == 16 ? 1 : C == 32 ? 3 : 7, EVERY = C == 16 ? 2 : C == 32;

    static __device__ __forceinline__ int position(int sample, int y, int x) {
        return sample * SIZE + (y + 1) * PITCH + x + 1;
    }
    /* A unit's number may be changed by exclusive or with its byte's bits from the fourth on. */
    static __device__ __forceinline__ uint32_t unit_at(int position, int unit) {
        return (uint32_t)(position * PIXEL + ((unit ^ (position >> EVERY & TURN)) << 4));
    }
    static __device__ __forceinline__ uint32_t quad_at(int position, int quad) {
        return unit_at(position, quad >> 1) + (uint32_t)(quad & 1) * 8;
    }
};

typedef struct pixel {
    int sample, y, x;
} pixel;

/* Pixel `row` (0 .. 7) of the upper (0) or lower (1) half of a tile; pictures of one pixel have one
 * half, of four rows. */
template <int W> static __device__ __forceinline__ pixel pixel_of(int tile, int row, int half) {
    constexpr int ACROSS = W >= 8 ? W / 8 : 1, EACH = W >= 8 ? W * W / 16 : 1;
    if (W == 1) return {row, 0, 0};
    if (W == 2) return {row >> 1, half, row & 1};
    if (W == 4) return {tile, 2 * (row >> 2) + half, row & 3};
    int k = tile % EACH;
    return {tile / EACH, 2 * (k / ACROSS) + half, k % ACROSS * 8 + row};
}

/* A product from a plane to N channels: a warp has ROWS tiles of rows and PAIRS times 16 channels,
 * and AHEAD fragments of weights of each on their way. */
template <typename PLANE, int N, int ROWS, int PAIRS, int AHEAD_> struct product {
    typedef PLANE IN;
    static constexpr int W = IN::W, TM = ROWS, TP = PAIRS, AHEAD = AHEAD_, ALL_PAIRS = N / 16;
    static constexpr int TILES = SAMPLES * W * W / 16, COLS = ALL_PAIRS / TP; /* warps */
    static constexpr int DOWN = TILES / TM < WARPS / COLS ? TILES / TM : WARPS / COLS;
    static constexpr int ROUNDS = TILES / (DOWN * TM), BUSY = COLS * DOWN;
    static_assert(ROUNDS * DOWN * TM == TILES && BUSY <= WARPS, "warps share it evenly");
};

template <typename S>
static __device__ __forceinline__ void load_weights(const uint4 *from, uint4 to[S::AHEAD][S::TP]) {
#pragma unroll
    for (int k = 0; k < S::AHEAD; k++)
#pragma unroll
        for (int p = 0; p < S::TP; p++) to[k][p] = __ldg(from + (k * S::ALL_PAIRS + p) * 32);
}

/* Adds the products of the warp's tiles from `first` on; tile: the plane in shared memory. A data
 * gradient reads the pixels on the other side. */
template <typename S, bool IS_BACK>
static __device__ __forceinline__ void multiply(const spot &s, uint32_t tile, const float *packed,
                                                int first, float sums[S::TM][2 * S::TP][4]) {
    typedef typename S::IN P;
    constexpr int STEPS = P::C / 16, N = 9 * STEPS / S::AHEAD;
    const uint4 *w = (const uint4 *)packed + s.warp % S::COLS * S::TP * 32 + s.lane;
    int at[S::TM];
    uint4 next[S::AHEAD][S::TP];
#pragma unroll
    for (int i = 0; i < S::TM; i++) {
        pixel p = pixel_of<S::W>(first + i, s.lane & 7, s.lane >> 3 & 1);
        at[i] = P::position(p.sample, p.y, p.x);
    }
    load_weights<S>(w, next);
#pragma unroll 1
    for (int n = 0; n < N; n++) {
        uint4 b[S::AHEAD][S::TP];
        uint32_t rows[S::TM];
        int tap = n * S::AHEAD / STEPS, step = n * S::AHEAD % STEPS;
        int shift = (tap / 3 - 1) * P::PITCH + tap % 3 - 1;
#pragma unroll
        for (int k = 0; k < S::AHEAD * S::TP; k++)
            b[k / S::TP][k % S::TP] = next[k / S::TP][k % S::TP];
        w += S::AHEAD * S::ALL_PAIRS * 32;
        if (n + 1 < N) load_weights<S>(w, next);
#pragma unroll
        for (int i = 0; i < S::TM; i++)
            rows[i] = tile + P::unit_at(at[i] + (IS_BACK ? -shift : shift), s.lane >> 4);
#pragma unroll
        for (int k = 0; k < S::AHEAD; k++)
#pragma unroll
            for (int i = 0; i < S::TM; i++) {
                uint32_t a[4];
                load_matrices(a, rows[i] ^ (uint32_t)(step + k) << 5);
#pragma unroll
                for (int p = 0; p < S::TP; p++) {
                    mma(bf16(), sums[i][2 * p], a, b[k][p].x, b[k][p].y);
                    mma(bf16(), sums[i][2 * p + 1], a, b[k][p].z, b[k][p].w);
                }
            }
    }
}

static __device__ __forceinline__ void clear(char *at, int n_bytes) {
    for (int k = (int)threadIdx.x * 16; k < n_bytes; k += THREADS * 16)
        *(uint4 *)(at + k) = make_uint4(0, 0, 0, 0);
}

/* Four neighbouring parameters, which may begin anywhere. */
static __device__ __forceinline__ float4 load_params(const float *from) {
    return make_float4(__ldg(from), __ldg(from + 1), __ldg(from + 2), __ldg(from + 3));
}

/* Sums over lanes whose numbers differ in the bits of MASK, the same bits in all of them. */
template <int MASK> static __device__ __forceinline__ float lanes_sum(float x) {
#pragma unroll
    for (int m = 16; m > 0; m >>= 1)
        if (MASK & m) x += __shfl_xor_sync(0xffffffffu, x, m);
    return x;
}

/* Lanes of one group of a pixel's C channels that have other channels. */
template <int C> struct group_lanes { static constexpr int MASK = C == 64 ? 1 : C == 128 ? 3 : 0; };

#endif
