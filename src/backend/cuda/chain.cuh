/* What chain.cu and chain_back.cu share: convolutions 3x3 of C channels to C, one after the other,
 * on samples that stay in shared memory.
 * A block has 16 Ki values: 1 sample of 16 x 32 x 32, 2 of 32 x 16 x 16 or 4 of
 * 64 x 8 x 8. The product has rows = pixels, columns = output channels, k = (tap, input channel).
 * A tile of it is 16 pixels of one picture row (half a row, a row, or the same row of two samples)
 * and 16 channels; a warp has TILES tiles below each other, so that a fragment of an input row
 * serves the three output rows around it. The sums stay in registers: thread (g = lane / 4, t =
 * lane % 4) has pixels g and g + 8 of every tile, and channels 4 t .. 4 t + 3 of the warp's 16. */
#ifndef CT_BACKEND_CUDA_CHAIN_CUH
#define CT_BACKEND_CUDA_CHAIN_CUH

#include "backend/cuda/device.cuh"

/* CHAIN_TILES is said by who includes this. */
enum { GROUPS = 8, TILES = CHAIN_TILES, WARPS = 64 / TILES, THREADS = 32 * WARPS };
enum { BLOCK_FLOATS = 16384 };

/* Samples lie in shared memory as rows of W pixels with one of zeros before each (which also ends
 * the row above), and one at the end. Weights come in chunks: all of a layer's, or those of one
 * column of taps, or of half of its input channels; one is in use while the next is on its
 * way. */
#define CHAIN_SHAPE(C)                                                                             \
    constexpr int W = 512 / (C), COLS = (C) / 16, SAMPLES = (C) / 16, SPAN = W * (W + 1);          \
    constexpr int ROW_WARPS = W / TILES, TAP_COLS = (C) == 16 ? 3 : 1, PARTS = (C) == 32 ? 1 : 2;  \
    constexpr int K_PARTS = (C) == 64 ? 2 : 1, N_CHUNKS = 3 / TAP_COLS * K_PARTS;                  \
    constexpr int CHUNK_QUADS = TAP_COLS * 3 * ((C) / 8 / K_PARTS) * COLS * 32;                    \
    constexpr int TILE_BYTES = (SAMPLES * SPAN + 2) * (C)*4 / 256 * 256 + 256;                     \
    (void)W, (void)COLS, (void)SAMPLES, (void)SPAN, (void)ROW_WARPS, (void)TAP_COLS, (void)PARTS;  \
    (void)K_PARTS, (void)N_CHUNKS, (void)CHUNK_QUADS, (void)TILE_BYTES
/* Of a layer of DEPTH input channels: steps of 8 of them, of a tap and in a chunk; quads of a tap.
 */
#define DEPTH_SHAPE(DEPTH)                                                                         \
    constexpr int STEPS = (DEPTH) / 8, K_STEPS = STEPS / K_PARTS, RUN = K_STEPS * COLS * 32;       \
    (void)STEPS, (void)K_STEPS, (void)RUN

/* Where a thread works. */
typedef struct spot {
    int column;      /* the warp's first channel, divided by 16 */
    int row;         /* first picture row of its tiles */
    int warp;        /* among those of the same column: neighbours share a sample */
    int read_pixel;  /* whose row of a fragment it loads, of the first tile, in shared memory */
    int pixel;       /* of its own sums, first tile, first half */
    int half_pixels; /* from there to the second half */
    int sample;      /* of the first half's sums, in the block */
    int from;        /* of its first quad from the block's first value */
    int half_floats; /* to the second half's quad; those of the next tile are W C further */
} spot;

template <int C> static __device__ __forceinline__ spot spot_of(void) {
    CHAIN_SHAPE(C);
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, read = lane & 15;
    int strip = warp / COLS / ROW_WARPS; /* half of the picture, sample, or pair of samples */
    spot s;
    s.column = warp % COLS;
    s.warp = warp / COLS;
    s.row = s.warp % ROW_WARPS * TILES;
    int x = C == 16 ? 16 * strip : 0, first = s.row * (W + 1) + 1 + x;
    s.sample = C == 16 ? 0 : C == 32 ? strip : 2 * strip;
    s.read_pixel =
        first + (C == 64 ? (s.sample + (read >> 3)) * SPAN + (read & 7) : s.sample * SPAN + read);
    s.pixel = first + s.sample * SPAN + g;
    s.half_pixels = C == 64 ? SPAN : 8;
    s.from = ((s.sample * W + s.row) * W + x + g) * C + s.column * 16 + (lane & 3) * 4;
    s.half_floats = C == 64 ? W * W * C : 8 * C;
    return s;
}

/* Whether the sample of this thread's half is there. */
template <int C>
static __device__ __forceinline__ bool is_there(const spot &s, int half, int n_there) {
    return s.sample + (C == 64 ? half : 0) < n_there;
}

/* Byte of a quad of channels of a pixel. Quads change places so that 8 neighbouring pixels' quads,
 * and the quads of two neighbouring pixels, lie in different banks. */
template <int C> static __device__ __forceinline__ uint32_t byte_of(int pixel, int quad) {
    int turn = (pixel & 1) << 2 | (pixel >> 1 & 3);
    int line = C == 16 ? (pixel >> 1) * 128 : pixel * (C * 4);
    return (uint32_t)(line + ((quad ^ turn) << 4));
}

static __device__ __forceinline__ void copy_async(float *to, const float *from) {
    uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from));
}

/* Starts the copy of chunk `part` of a layer's packed weights. Data gradients (FLIP) meet the taps
 * in the opposite order. */
template <int C, int DEPTH, bool FLIP>
static __device__ __forceinline__ void fetch_chunk(const float *packed, int part, float *to) {
    CHAIN_SHAPE(C);
    DEPTH_SHAPE(DEPTH);
#pragma unroll
    for (int i = (int)threadIdx.x; i < TAP_COLS * 3 * RUN; i += THREADS) {
        int run = i / RUN, q = part / K_PARTS * TAP_COLS + run / 3, tap = run % 3 * 3 + q;
        if (FLIP) tap = 8 - tap;
        int first = (tap * STEPS + part % K_PARTS * K_STEPS) * COLS * 32;
        copy_async(to + 4 * i, packed + 4 * (first + i % RUN));
    }
}

/* Adds the products of one chunk of weights to this warp's sums[tile][column half]. */
template <int C, int DEPTH>
static __device__ __forceinline__ void multiply_chunk(const spot &s, uint32_t tile, int part,
                                                      const float4 *weights,
                                                      float sums[TILES][2][4]) {
    CHAIN_SHAPE(C);
    DEPTH_SHAPE(DEPTH);
    int lane = threadIdx.x & 31;
    bool is_top = s.row == 0, is_bottom = s.row + TILES == W;
#pragma unroll 1
    for (int qq = 0; qq < TAP_COLS; qq++) {
        int q = part / K_PARTS * TAP_COLS + qq;
        uint32_t rows[TILES + 2];
#pragma unroll
        for (int r = 0; r < TILES + 2; r++)
            rows[r] = tile + byte_of<C>(s.read_pixel + (r - 1) * (W + 1) + q - 1, lane >> 4);
        const float4 *w = weights + qq * 3 * RUN + s.column * 32 + lane;
#pragma unroll
        for (int k = 0; k < K_STEPS; k++) {
            float4 b[3];
#pragma unroll
            for (int u = 0; u < 3; u++) b[u] = w[(u * K_STEPS + k) * COLS * 32];
#pragma unroll
            for (int r = 0; r < TILES + 2; r++) {
                if ((r == 0 && is_top) || (r == TILES + 1 && is_bottom)) continue;
                float a[4];
                load_fragment(a, rows[r] ^ (uint32_t)((part % K_PARTS * K_STEPS + k) << 5));
#pragma unroll
                for (int u = 0; u < 3; u++) {
                    int i = r - u; /* input row = output row + u - 1 */
                    if (i < 0 || i >= TILES) continue;
                    float left[2] = {b[u].x, b[u].y}, right[2] = {b[u].z, b[u].w};
                    mma_tf32(sums[i][0], a, left);
                    mma_tf32(sums[i][1], a, right);
                }
            }
        }
    }
}

/* The quad of channels of tile i, upper or lower half. */
static __device__ __forceinline__ float4 quad_of(const float sums[2][4], int half) {
    return make_float4(sums[0][2 * half], sums[0][2 * half + 1], sums[1][2 * half],
                       sums[1][2 * half + 1]);
}

static __device__ __forceinline__ float4 near_quad(float4 v) {
    return make_float4(near_tf32(v.x), near_tf32(v.y), near_tf32(v.z), near_tf32(v.w));
}

static __device__ __forceinline__ float4 add_quads(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/* The pixels of zeros beside the rows. */
template <int C> static __device__ __forceinline__ void clear_border(char *tile) {
    CHAIN_SHAPE(C);
    for (int i = (int)threadIdx.x; i < (SAMPLES * W + 1) * (C / 4); i += THREADS)
        *(float4 *)(tile + byte_of<C>(i / (C / 4) * (W + 1), i % (C / 4))) =
            make_float4(0, 0, 0, 0);
}

#endif
