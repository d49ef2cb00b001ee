/* What chains on Hopper share: residual blocks of C channels in bf16 as in chain.cuh, with products
 * of warp groups, which run while other warps do something else.
 * A block has 16 Ki values: 1 sample of 16 x 32 x 32, 2 of 32 x 16 x 16 or 4 of 64 x 8 x 8. Samples
 * lie in planes of eight channels: a line of pixels of 16 bytes, with a pixel of zeros before every
 * row and a row of zeros before, between and behind the samples. So a matrix of 64 pixels (8 rows
 * of 8, from shared memory, without swizzle) may begin at any pixel, and a tap is a distance. Rows
 * = pixels, columns = output channels, k = (tap, input channel). A warp group has TILES of such
 * matrices: half a sample of 16 channels, one of 32, or one or two of 64.
 * Where products are few columns wide, reading the pixels bounds them: with 16 channels a tile's
 * rows are two apart, and two tiles that are one row apart share what they read (ROWS = 2), with
 * zeros for the taps that one of them does not have: for a column of taps 4 products of 32 columns
 * instead of 6 of 16, 98 cycles instead of 123 (docs/performance/bf16.md).
 * One more warp copies weights, ahead of the groups, stage by stage. The sums stay in registers:
 * thread (g = lane / 4, t = lane % 4) of warp w has of a tile's rows 2 w and 2 w + 1 the pixel g,
 * and of every 16 channels 4 t .. 4 t + 3. */
#ifndef CT_BACKEND_CUDA_RESNET20_CHAIN_WGMMA_CUH
#define CT_BACKEND_CUDA_RESNET20_CHAIN_WGMMA_CUH

#include "backend/cuda/resnet20/chain.cuh"
#include "backend/cuda/wgmma.cuh"

enum { PIXEL = 16 /* bytes: eight channels */, MOST_STAGES = 3 };

/* Of a layer's weights, a stage has all, or those of a column of taps (PARTS = 3), or of half of
 * its input channels (6). */
template <int CHANNELS, int WARP_GROUPS, int N_ROWS, int N_PARTS, int N_STAGES> struct group_shape {
    static constexpr int C = CHANNELS, N_GROUPS = WARP_GROUPS, ROWS = N_ROWS;
    static constexpr int PARTS = N_PARTS, STAGES = N_STAGES;
    static constexpr int THREADS = N_GROUPS * GROUP; /* without the warp that copies */
    static constexpr int W = 512 / C, PAIRS = C / 16, EIGHTS = C / 8, SAMPLES = C / 16;
    static constexpr int TILES = BLOCK_VALUES / C / 64 / N_GROUPS, ACROSS = W / 8;
    static constexpr int SHARED = C == 16 ? 4 * N_GROUPS : 4; /* warps of one sample */
    static constexpr int SETS = C == 64 ? TILES : 1;          /* samples of a group, at most */
    static constexpr int PITCH = (W + 1) * PIXEL, LINES = SAMPLES * (W + 1) + 1;
    /* threads of half a warp write to two planes: they lie half of the banks apart */
    static constexpr int PLANE = (LINES * PITCH + PIXEL + 63) / 128 * 128 + 64;
    static constexpr int PLACE = EIGHTS * PLANE;
    static constexpr int TAP = C * 16, GAP = (ROWS - 1) * TAP; /* bytes; of eight k */
    static constexpr int COLS = PARTS == 1 ? 3 : 1, HALVES = PARTS == 6 ? 2 : 1;
    static constexpr int STEPS = C / 16 / HALVES; /* k = 16 of a column of taps */
    static constexpr int SECTION = 3 * TAP + GAP, SECTIONS = COLS * STEPS * 2;
    static constexpr int STAGE = SECTIONS * SECTION + GAP;
    static_assert(STAGES <= MOST_STAGES && PLACE % 128 == 0 && STAGE % 128 == 0, "what fits");

    /* Where the group's tile m is, from its first one: bytes of a plane, and values. */
    static __device__ __forceinline__ constexpr int tile_at(int m) {
        if (C == 64) return m * (W + 1) * PITCH;
        return ROWS == 2 ? m % 2 * PITCH + m / 2 * 8 * PIXEL
                         : m / ACROSS * 8 * PITCH + m % ACROSS * 8 * PIXEL;
    }
    static __device__ __forceinline__ constexpr int tile_values(int m) {
        if (C == 64) return m * W * W * C;
        return (ROWS == 2 ? m % 2 * W + m / 2 * 8 : m / ACROSS * 8 * W + m % ACROSS * 8) * C;
    }
};

/* Where a thread works. */
typedef struct group_spot {
    int group, warp, lane, t;
    int sample;   /* the group's first, in the block */
    int line;     /* of its first pixel, in bytes of a plane, with the zeros above and before it */
    uint32_t own; /* byte of its first quad in a place */
    int from;     /* that one, from the block's first value */
} group_spot;

template <typename S> static __device__ __forceinline__ group_spot group_spot_of(void) {
    int thread = (int)threadIdx.x;
    group_spot s;
    s.group = __shfl_sync(0xffffffffu, thread / GROUP, 0); /* addresses of matrices are a warp's */
    s.warp = thread / 32 % 4, s.lane = thread & 31, s.t = thread & 3;
    s.sample = S::C == 16 ? 0 : s.group * (S::SAMPLES / S::N_GROUPS);
    int row = 2 * s.warp * S::ROWS, column = s.lane >> 2;
    s.line = (S::C == 16 ? s.group * (S::W / S::N_GROUPS) : s.sample * (S::W + 1)) * S::PITCH;
    s.own = (uint32_t)(s.line + (row + 1) * S::PITCH + (column + 1) * PIXEL);
    s.own += (uint32_t)((s.t >> 1) * S::PLANE + (s.t & 1) * 8);
    s.from = s.group * (BLOCK_VALUES / S::N_GROUPS) + (row * S::W + column) * S::C + 4 * s.t;
    return s;
}

/* From a thread's first quad to that of tile m, half h, channels 16 p. */
template <typename S>
static __device__ __forceinline__ constexpr int quad_bytes(int m, int h, int p) {
    return S::tile_at(m) + h * S::ROWS * S::PITCH + p * 2 * S::PLANE;
}

template <typename S>
static __device__ __forceinline__ constexpr int quad_values(int m, int h, int p) {
    return S::tile_values(m) + h * S::ROWS * S::W * S::C + p * 16;
}

/* Whether the sample of the group's tile m is there. */
template <typename S>
static __device__ __forceinline__ bool is_there(const group_spot &s, int m, int n_there) {
    return s.sample + (S::C == 64 ? m : 0) < n_there;
}

/* Warps that share samples meet; or all that multiply. */
template <typename S> static __device__ __forceinline__ void meet(const group_spot &s) {
    if (S::SHARED > 4)
        group_sync(1, S::THREADS);
    else
        group_sync(2 + s.group, GROUP);
}

template <typename S> static __device__ __forceinline__ void meet_all(void) {
    group_sync(1, S::THREADS);
}

/* ---- samples ---- */

/* The k-th of a thread's share of a group's units of 16 bytes: eight threads that follow each other
 * have two units of four pixels, and a warp whole lines of memory. */
template <typename S> struct group_unit {
    static constexpr int EACH = BLOCK_VALUES / 8 / S::THREADS;
    int value; /* from the block's first */
    int at;    /* byte in a place */

    __device__ __forceinline__ group_unit(const group_spot &s, int k) {
        constexpr int ACROSS = S::EIGHTS / 2; /* pairs of units of a pixel */
        int first = s.group * (BLOCK_VALUES / 8 / S::N_GROUPS) + (k * 4 + s.warp) * 32;
        int eight = s.lane >> 3;
        int pixel = first / S::EIGHTS + (s.lane & 7) / 2 + eight / ACROSS * 4;
        int unit = eight % ACROSS * 2 + (s.lane & 1);
        int row = pixel / S::W + pixel / (S::W * S::W) + 1; /* a row of zeros before each sample */
        value = pixel * S::C + unit * 8;
        at = unit * S::PLANE + row * S::PITCH + (pixel % S::W + 1) * PIXEL;
    }
};

/* The zeros around the samples of n places. */
template <typename S> static __device__ __forceinline__ void clear_zeros(char *places, int n) {
    for (int e = (int)threadIdx.x; e <= S::LINES * (S::W + 1); e += S::THREADS) {
        if (e % (S::W + 1) != 0 && e / (S::W + 1) % (S::W + 1) != 0) continue;
        for (int k = 0; k < n * S::EIGHTS; k++)
            *(uint4 *)(places + k * S::PLANE + e * PIXEL) = make_uint4(0, 0, 0, 0);
    }
}

/* Starts the copy of the group's samples. */
template <typename S>
static __device__ __forceinline__ void load_samples(const group_spot &s, const bf16 *x, int n_there,
                                                    char *place) {
#pragma unroll
    for (int k = 0; k < group_unit<S>::EACH; k++) {
        group_unit<S> unit(s, k);
        bool there = unit.value < n_there * S::W * S::W * S::C;
        copy_quad(place + unit.at, x + (there ? unit.value : 0), there);
    }
}

/* ---- weights ---- */

typedef struct group_ring {
    char *stages;
    uint64_t *full, *empty;
} group_ring;

/* Barriers and the zeros between sections, by all threads. */
template <typename S> static __device__ __forceinline__ void begin_ring(const group_ring &r) {
    if (threadIdx.x == 0) {
        for (int k = 0; k < S::STAGES; k++) {
            barrier_init(&r.full[k], 1);
            barrier_init(&r.empty[k], 4 * S::N_GROUPS);
        }
        barriers_ready();
    }
    constexpr int UNITS = S::TAP / 16, GAPS = S::SECTIONS + 1, N = S::STAGES * GAPS * UNITS;
#pragma unroll
    for (int k = 0; S::GAP > 0 && k < N; k += S::THREADS + 32) {
        int e = k + (int)threadIdx.x, gap = e / UNITS;
        char *to = r.stages + gap / GAPS * S::STAGE + gap % GAPS * S::SECTION;
        if (e < N) *(uint4 *)(to + e % UNITS * 16) = make_uint4(0, 0, 0, 0);
    }
}

/* Copies a layer's weights, by one thread. */
template <typename S>
static __device__ __forceinline__ void copy_layer(const group_ring &r, const char *packed,
                                                  turn &t) {
    constexpr int BYTES = S::SECTIONS * 3 * S::TAP, N = S::GAP == 0 ? 1 : S::SECTIONS;
    for (int part = 0; part < S::PARTS; part++) {
        barrier_wait(&r.empty[t.at], t.phase ^ 1);
        barrier_expect(&r.full[t.at], BYTES);
        uint32_t to = shared_at(r.stages + t.at * S::STAGE + S::GAP);
        for (int k = 0; k < N; k++)
            copy_bulk(to + k * S::SECTION, packed + part * BYTES + k * (BYTES / N), BYTES / N,
                      &r.full[t.at]);
        next_turn(t, S::STAGES);
    }
}

/* ---- products ---- */

template <int N>
static __device__ __forceinline__ void product_by(float *sums, uint64_t a, uint64_t b, int adds) {
    static_assert(N == 32 || N == 64, "columns");
    if (N == 32)
        product_32<false>(sums, a, b, adds);
    else
        product_64<false>(sums, a, b, adds);
}

/* sums = a layer's products of the group's samples in `place`. */
template <typename S>
static __device__ __forceinline__ void multiply_layer(const group_spot &s, const group_ring &r,
                                                      uint32_t place, turn &t,
                                                      float sums[S::TILES][S::PAIRS][2][4]) {
    int last = -1; /* stage to be given back */
#pragma unroll 1
    for (int part = 0; part < S::PARTS; part++) {
        int column = part / S::HALVES, eight = part % S::HALVES * 2 * S::STEPS;
        uint32_t from = place + (uint32_t)(s.line + column * PIXEL + eight * S::PLANE);
        uint64_t a = plain_matrix_at(from, S::PLANE, S::ROWS * S::PITCH);
        uint64_t b = plain_matrix_at(shared_at(r.stages + t.at * S::STAGE), S::SECTION, 128);
        barrier_wait(&r.full[t.at], t.phase);
        products_begin();
#pragma unroll
        for (int e = 0; e < S::COLS * S::STEPS * (S::ROWS + 2); e++) {
            int d = e % (S::ROWS + 2), k = e / (S::ROWS + 2) % S::STEPS;
            int q = e / (S::ROWS + 2) / S::STEPS; /* input row, k, column of taps */
            int pixels = q * PIXEL + k * 2 * S::PLANE + d * S::PITCH;
            int weights = (q * S::STEPS + k) * 2 * S::SECTION + (S::ROWS + 1 - d) * S::TAP;
#pragma unroll
            for (int m = 0; m < S::TILES; m += S::ROWS)
                product_by<S::ROWS * S::C>(&sums[m][0][0][0], a + (pixels + S::tile_at(m)) / 16,
                                           b + weights / 16, part > 0 || e > 0);
        }
        products_group();
        if (S::PARTS > 1) products_wait_but<1>();
        if (last >= 0 && s.lane == 0) barrier_arrive(&r.empty[last]);
        last = t.at;
        next_turn(t, S::STAGES);
    }
    products_wait_but<0>();
    if (s.lane == 0) barrier_arrive(&r.empty[last]);
}

/* ---- EvoNorm ---- */

/* A thread's values of a sample belong to N of its groups, parts of them: the halves of its quads
 * (16 channels), or those of 16 channels each. */
template <typename S> struct norm_parts {
    static constexpr int N = S::C == 16 ? 2 : S::PAIRS;

    static __device__ __forceinline__ constexpr int of(int pair, int half) {
        return S::C == 16 ? half : pair;
    }
    static __device__ __forceinline__ int group(int part, int t) {
        return S::C == 16 ? 2 * t + part : S::C == 32 ? 4 * part + t : 2 * part + (t >> 1);
    }
};

/* Adds up N values over the lanes whose numbers differ in bits MASK to LAST, without bit 1. A lane
 * gets the one that these bits say, from the upper one on, as many of them as there are values. */
template <int N, int MASK, int LAST>
static __device__ __forceinline__ float add_lanes(const float v[N]) {
    constexpr int LEFT = N > 1 ? N / 2 : 1;
    float kept[LEFT];
    bool upper = threadIdx.x & MASK;
    if (N == 1) kept[0] = v[0] + __shfl_xor_sync(0xffffffffu, v[0], MASK);
#pragma unroll
    for (int e = 0; e < N / 2; e++)
        kept[e] = (upper ? v[e + LEFT] : v[e]) +
                  __shfl_xor_sync(0xffffffffu, upper ? v[e] : v[e + LEFT], MASK);
    if constexpr (MASK == LAST)
        return kept[0];
    else
        return add_lanes < LEFT, MASK == 4 ? 1 : MASK / 2, LAST > (kept);
}

#endif
