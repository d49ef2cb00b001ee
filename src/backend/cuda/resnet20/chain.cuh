/* What chain.cu and chain_back.cu share: convolutions 3x3 of C channels to C, one after the other,
 * on samples that stay in shared memory, as floats for products in tf32 or as bf16.
 * A block has 16 Ki values: 1 sample of 16 x 32 x 32, 2 of 32 x 16 x 16 or 4 of
 * 64 x 8 x 8. The product has rows = pixels, columns = output channels, k = (tap, input channel).
 * A tile of it is 16 pixels of one picture row (half a row, a row, or the same row of two samples)
 * and 16 channels; a warp has TILES tiles below each other, so that a fragment of an input row
 * serves the three output rows around it. The sums stay in registers: thread (g = lane / 4, t =
 * lane % 4) has pixels g and g + 8 of every tile, and channels 4 t .. 4 t + 3 of the warp's 16. */
#ifndef CT_BACKEND_CUDA_RESNET20_CHAIN_CUH
#define CT_BACKEND_CUDA_RESNET20_CHAIN_CUH

#include "backend/cuda/resnet20/planes.cuh"
#include "backend/cuda/resnet20/resnet20.h"

enum { GROUPS = 8, BLOCK_VALUES = 16384 };

/* Weights come in chunks: all of a layer's, or those of one column of taps, or of half of its input
 * channels; one is in use while the next is on its way. */
template <typename ELEMENT, int CHANNELS, int N_TILES, int CHUNKS> struct chain_shape {
    typedef ELEMENT E;
    typedef planes<E, CHANNELS> P;
    static constexpr int C = CHANNELS, TILES = N_TILES, N_CHUNKS = CHUNKS;
    static constexpr int WARPS = 64 / TILES, THREADS = 32 * WARPS;
    static constexpr int W = 512 / C, COLS = C / 16, SAMPLES = C / 16, ROW_WARPS = W / TILES;
    static constexpr int SHARED = C == 16 ? WARPS : ROW_WARPS; /* warps of one sample and column */
    static constexpr int PARTS = C == 32 ? 1 : 2; /* what a thread sums apart: see part_of */
    static constexpr int SAMPLE_BYTES = W * P::PITCH;
    static constexpr int TILE_BYTES = (SAMPLES * SAMPLE_BYTES + P::END + 255) / 256 * 256;
    static constexpr int TAP_COLS = CHUNKS == 1 ? 3 : 1, K_PARTS = CHUNKS == 6 ? 2 : 1;
    static constexpr int STEP = 32 / sizeof(E); /* channels of one product */
    static constexpr int CHUNK_BYTES = TAP_COLS * 3 * (C / STEP / K_PARTS) * COLS * 32 * 16;
};

/* Groups of EvoNorm are 2, 4 or 8 channels wide: two in a thread's quad, one, or half of one; with
 * 64 channels the halves of a tile are different samples. */
template <int C> static __device__ __forceinline__ constexpr int part_of(int column, int half) {
    return C == 16 ? column : C == 64 ? half : 0;
}

/* Where a thread works. */
typedef struct spot {
    int column;       /* the warp's first channel, divided by 16 */
    int row;          /* first picture row of its tiles */
    int warp;         /* among those of the same column: neighbours share a sample */
    int sample;       /* of the first half's sums, in the block */
    int from;         /* of its first quad from the block's first value */
    uint32_t own;     /* byte of that quad in a tile */
    uint32_t read[3]; /* bytes of the row of a fragment it loads, for each column of taps */
} spot;

/* From a thread's quad to that of the second half; those of the next tile are W C further. */
template <typename S> static __device__ __forceinline__ constexpr int half_values(void) {
    return S::C == 64 ? S::W * S::W * S::C : 8 * S::C;
}

template <typename S> static __device__ __forceinline__ constexpr uint32_t half_bytes(void) {
    return S::C == 64 ? S::SAMPLE_BYTES : 8 * S::P::PIXEL;
}

template <typename S> static __device__ __forceinline__ spot spot_of(void) {
    constexpr int C = S::C, W = S::W;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, read = lane & 15;
    int strip = warp / S::COLS / S::ROW_WARPS; /* half of the picture, sample, or pair of samples */
    spot s;
    s.column = warp % S::COLS;
    s.warp = warp / S::COLS;
    s.row = s.warp % S::ROW_WARPS * S::TILES;
    s.sample = C == 16 ? 0 : C == 32 ? strip : 2 * strip;
    int x = C == 16 ? 16 * strip : 0, quad = s.column * 4 + (lane & 3);
    uint32_t row = (uint32_t)(s.sample * S::SAMPLE_BYTES + s.row * S::P::PITCH);
    s.own = row + S::P::quad_at(x + g + 1, quad);
    if (C == 64) row += (uint32_t)(read >> 3) * S::SAMPLE_BYTES;
    for (int q = 0; q < 3; q++)
        s.read[q] = row + S::P::unit_at(x + (C == 64 ? read & 7 : read) + q, lane >> 4);
    s.from = ((s.sample * W + s.row) * W + x + g) * C + quad * 4;
    return s;
}

/* Whether the sample of this thread's half is there. */
template <typename S>
static __device__ __forceinline__ bool is_there(const spot &s, int half, int n_there) {
    return s.sample + (S::C == 64 ? half : 0) < n_there;
}

/* Starts the copy of chunk `part` of a layer's packed weights: a whole layer as it is, or the three
 * taps of a column. Data gradients (FLIP) meet the taps in the opposite order. */
template <typename S, int DEPTH, bool FLIP>
static __device__ __forceinline__ void fetch_chunk(const float *packed, int part, char *to) {
    constexpr int STEPS = DEPTH / S::STEP, K_STEPS = STEPS / S::K_PARTS;
    constexpr int RUN = K_STEPS * S::COLS * 32; /* quads of a tap */
    constexpr int N = S::TAP_COLS * 3 * RUN;
    int q = part / S::K_PARTS, skipped = part % S::K_PARTS * K_STEPS;
#pragma unroll
    for (int k = 0; k < (N + S::THREADS - 1) / S::THREADS; k++) {
        int i = (int)threadIdx.x + k * S::THREADS, from = i;
        if (S::N_CHUNKS > 1) {
            int tap = i / RUN * 3 + q;
            from = ((FLIP ? 8 - tap : tap) * STEPS + skipped) * S::COLS * 32 + i % RUN;
        }
        if (N % S::THREADS == 0 || i < N) copy_quad(to + 16 * i, packed + 4 * from, true);
    }
}

/* Where in a chunk the quads of tap row u, column qq and step k begin. */
template <typename S, int K_STEPS, bool FLIP>
static __device__ __forceinline__ constexpr int quads_at(int u, int qq, int k) {
    int tap = S::N_CHUNKS > 1 ? u : FLIP ? 8 - (u * 3 + qq) : u * 3 + qq;
    return (tap * K_STEPS + k) * S::COLS * 32;
}

/* Adds the products of one chunk of weights to this warp's sums[tile][column half]. Rows above and
 * below the picture are read where a border of zeros is. */
template <typename S, int DEPTH, bool FLIP>
static __device__ __forceinline__ void multiply_chunk(const spot &s, uint32_t tile, int part,
                                                      const uint4 *weights,
                                                      float sums[S::TILES][2][4]) {
    constexpr int TILES = S::TILES, K_STEPS = DEPTH / S::STEP / S::K_PARTS;
    constexpr bool IS_WHOLE = S::ROW_WARPS == 1; /* a warp has all rows */
    bool is_top = s.row == 0, is_bottom = s.row + TILES == S::W;
    constexpr int COLS_AT_ONCE = sizeof(typename S::E) == 2 ? 3 : 1; /* floats need the registers */
    const uint4 *w = weights + s.column * 32 + (threadIdx.x & 31);
#pragma unroll COLS_AT_ONCE
    for (int qq = 0; qq < S::TAP_COLS; qq++) {
        int q = part / S::K_PARTS * S::TAP_COLS + qq;
        uint32_t from = tile + (q == 0 ? s.read[0] : q == 1 ? s.read[1] : s.read[2]);
#pragma unroll
        for (int k = 0; k < K_STEPS; k++) {
            uint32_t turn = (uint32_t)((part % S::K_PARTS * K_STEPS + k) << 5), at = from ^ turn;
            uint4 b[3];
#pragma unroll
            for (int u = 0; u < 3; u++) b[u] = w[quads_at<S, K_STEPS, FLIP>(u, qq, k)];
#pragma unroll
            for (int r = 0; r < TILES + 2; r++) {
                if (IS_WHOLE && (r == 0 || r == TILES + 1)) continue;
                bool is_outside = (r == 0 && is_top) || (r == TILES + 1 && is_bottom);
                uint32_t a[4];
                load_matrices(a, is_outside ? tile : at + (r - 1) * S::P::PITCH);
#pragma unroll
                for (int u = 0; u < 3; u++) {
                    int i = r - u; /* input row = output row + u - 1 */
                    if (i < 0 || i >= TILES) continue;
                    mma(typename S::E(), sums[i][0], a, b[u].x, b[u].y);
                    mma(typename S::E(), sums[i][1], a, b[u].z, b[u].w);
                }
            }
        }
    }
}

/* A channel's sums of the warps that share a sample, in order. */
template <typename S> static __device__ __forceinline__ float add_warps(const float *warps) {
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < S::SHARED; k++) sum += warps[k];
    return sum;
}

/* EvoNorm backward. */
static __device__ __forceinline__ float one_gradient(float x, float g, float scale, float back,
                                                     float shift) {
    return fmaf(g * scale, gate_slope(x), fmaf(-back, x, shift));
}

static __device__ __forceinline__ float4 add_quads(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/* Writes a quad to a tile as the products want it. */
static __device__ __forceinline__ void put_quad(float *to, float4 v) {
    *(float4 *)to = make_float4(near_tf32(v.x), near_tf32(v.y), near_tf32(v.z), near_tf32(v.w));
}

static __device__ __forceinline__ void put_quad(bf16 *to, float4 v) {
    store_four(to, v);
}

/* The pixels of zeros beside the rows. */
template <typename S> static __device__ __forceinline__ void clear_border(char *tile) {
    constexpr int UNITS = S::P::PIXEL / 16, ROWS = S::SAMPLES * S::W + (S::P::END > 0 ? 1 : 0);
    for (int i = (int)threadIdx.x; i < ROWS * UNITS; i += S::THREADS) {
        char *row = tile + i / UNITS * S::P::PITCH;
        *(uint4 *)(row + S::P::unit_at(0, i % UNITS)) = make_uint4(0, 0, 0, 0);
        if (S::P::END == 0)
            *(uint4 *)(row + S::P::unit_at(S::W + 1, i % UNITS)) = make_uint4(0, 0, 0, 0);
    }
}

#endif
