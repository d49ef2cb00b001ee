/* What a block's kernel is made of: extents, which are constants, products on the tensor cores, and
 * the order of pixels. */
#ifndef CT_BACKEND_CUDA_MOBILENETV2_BLOCK_CUH
#define CT_BACKEND_CUDA_MOBILENETV2_BLOCK_CUH

#include "backend/cuda/mma.cuh"
#include "backend/cuda/mobilenetv2/mobilenetv2.h"

enum { GROUPS = 8, TAPS = 9 };
enum { KERNEL_ROW = 48 }; /* bytes of a channel's 3x3 weights in shared memory (put_kernel) */

/* Bytes from one row of n channels to the next: an odd number of units, so that the eight rows of a
 * matrix lie in different banks. */
static __host__ __device__ constexpr int pitch_of(int n) {
    return n / 8 % 2 == 1 ? 2 * n : 2 * n + 16;
}

/* Channels that may be left of a sector of 16 behind a part of `real`. */
static __host__ __device__ constexpr int most_left(int real) {
    int most = 0;
    for (int part = 1; part <= 8; part++) most = part * real % 16 > most ? part * real % 16 : most;
    return most;
}

/* Work of the warps on n rows of 16 pixels: so many rows each, one below the other, or one row and
 * a share of the channels. */
template <int WARPS, int N> struct shares {
    enum { TILES = N > WARPS ? N / WARPS : 1, COLUMNS = N > WARPS ? 1 : WARPS / N };
};

/* PARTS: groups of a part, 0: as many as the forward pass takes. */
template <int SIZE_, int STRIDE_, int CI_, int WIDE_, int CO_, int PARTS = 0> struct extents {
    enum { SIZE = SIZE_, STRIDE = STRIDE_, CI = CI_, WIDE = WIDE_, CO = CO_, OUT = SIZE / STRIDE };
    enum { SAMPLES = SIZE >= 16 ? 1 : SIZE == 8 ? 2 : 4 }; /* of a block of threads */
    enum { WARPS = SIZE == 32 || SIZE == 4 ? 16 : 8, THREADS = 32 * WARPS };
    enum { BLOCKS = WARPS == 16 ? 1 : 2 }; /* at a time */
    /* a part: channels of some whole groups, in whole tiles of 8 columns */
    enum { GROUP = WIDE / GROUPS, FORWARD = GROUP < 8 ? 4 : GROUP < 16 || SIZE == 16 ? 2 : 1 };
    enum { PART_GROUPS = PARTS > 0 ? PARTS : (int)FORWARD };
    enum { REAL = GROUP * PART_GROUPS, PART = (REAL + 7) / 8 * 8, N_PARTS = WIDE / REAL };
    enum { NT = PART / 8, ROWS = SAMPLES * SIZE * SIZE, OUT_ROWS = SAMPLES * OUT * OUT };
    typedef shares<WARPS, ROWS / 16> in;
    typedef shares<WARPS, OUT_ROWS / 16> out;
    enum { IN_NT = (NT + in::COLUMNS - 1) / in::COLUMNS };
    enum { MID_NT = (NT + out::COLUMNS - 1) / out::COLUMNS, OUT_NT = CO / 8 / out::COLUMNS };
    enum { WITH_MARGIN = SIZE + 2, OF_SAMPLE = WARPS / SAMPLES /* warps */ };
    /* shared memory, in bytes: the input; the wide pictures with their margin, behind their norm;
       what the 3x3 convolution makes of them, likewise; weights; tables of floats, sums */
    enum { X_PITCH = pitch_of(CI), PITCH = pitch_of(PART), X = 0, WIDE_AT = ROWS * X_PITCH };
    enum { MID = WIDE_AT + SAMPLES * WITH_MARGIN * WITH_MARGIN * PITCH };
    /* a warp that has all channels of its rows keeps them in registers */
    enum { KEEPS_MID = out::COLUMNS == 1, EXPAND_ROWS = in::COLUMNS * IN_NT * 8 };
    enum { EXPAND = MID + (KEEPS_MID ? 0 : OUT_ROWS * PITCH) };
    enum { PROJECT = EXPAND + EXPAND_ROWS * X_PITCH, TABLE = PROJECT + CO * PITCH };
    enum {
        TABLE_PART =
            out::COLUMNS * MID_NT * 8 > EXPAND_ROWS ? out::COLUMNS *MID_NT * 8 : (int)EXPAND_ROWS
    };
    enum {
        KERNELS_AT = TABLE + 4 * TABLE_PART * 4,
        RAW = KERNELS_AT + (TABLE_PART + 1) * KERNEL_ROW, /* tables as they come from memory */
        SUMS = RAW + (4 + TAPS) * REAL * 4
    };
    enum { BYTES = SUMS + 2 * WARPS * PART_GROUPS * 8 };
    /* training writes parts to memory, in sectors of 32 bytes. Where a part ends within one, and L2
       will not hold that until the next part, its values wait in shared memory: words of some tiles,
       [tile][row][thread] for wide and for mid */
    enum { KEEPS = REAL % 16 != 0 && SIZE > 8, LEFT = KEEPS ? most_left(REAL) : 0 };
    enum { KEPT_FROM = (REAL - LEFT) / 8, KEPT = KEEPS ? NT - KEPT_FROM : 0 };
    enum {
        WIDE_KEPT = (BYTES + 15) / 16 * 16,
        MID_KEPT = WIDE_KEPT + KEPT * 2 * in::TILES * THREADS * 4
    };
    /* on the way to memory a tile of 16 rows, two sectors each, is in a warp's place there */
    enum { STAGE_PITCH = 80, STAGE = MID_KEPT + KEPT * 2 * out::TILES * THREADS * 4 };
    enum { TRAIN_BYTES = STAGE + (KEEPS ? WARPS * 16 * STAGE_PITCH : 0) };
    /* the last norms' sums lie where the wide pictures were, and so do a shortcut's weights, or else
       where the others' were */
    enum { LAST_SUMS = WIDE_AT, LAST_STATS = LAST_SUMS + WARPS / out::COLUMNS * CO * 8 };
    enum { HAS_SHORTCUT = STRIDE == 1 && CI != CO, SHORTCUT_BYTES = CO * X_PITCH };
    enum {
        LAST_END = LAST_STATS + SAMPLES * GROUPS * 8,
        IS_EARLY = LAST_END + SHORTCUT_BYTES <= MID
    };
    enum { SHORTCUT = IS_EARLY ? (int)LAST_END : (int)EXPAND };
    static_assert(!HAS_SHORTCUT || SHORTCUT + SHORTCUT_BYTES <= SUMS, "room for a shortcut");
    static_assert(LAST_END <= MID, "room for the last norm's sums");
    static_assert(CO / 8 % out::COLUMNS == 0 && REAL % 2 == 0 && GROUP % 2 == 0, "columns");
};

/* A thread's place in fragments: lane = 4 g + t has rows g and g + 8, columns 2 t and 2 t + 1. */
typedef struct spot {
    int warp, lane, g, t;
} spot;

static __device__ __forceinline__ spot find_spot(void) {
    int lane = threadIdx.x & 31;
    return {(int)threadIdx.x >> 5, lane, lane >> 2, lane & 3};
}

/* The first row of tile `tile` among the samples' pixels; its others follow. Tiles of pictures 32
 * wide go down four rows of one half, so that a warp's are below each other. */
template <int W> static __device__ __forceinline__ int first_row(int tile) {
    return W == 32 ? (tile / 8 * 4 + tile % 4) * 32 + tile / 4 % 2 * 16 : tile * 16;
}

/* Where a pixel of the 3x3 convolution's window begins, in the pictures with a margin: row `m` of
 * pixels W across that are STEP apart. */
template <int W, int STEP, int WITH_MARGIN> static __device__ __forceinline__ int window_at(int m) {
    int sample = m / (W * W), y = m / W % W, x = m % W;
    return (sample * WITH_MARGIN + y * STEP) * WITH_MARGIN + x * STEP;
}

/* 16 columns from 8 rows' 16 values of k each, and the next 8 rows' where there are two tiles. */
static __device__ __forceinline__ void multiply_columns(int n_tiles, float (*c)[4],
                                                        const uint32_t a[4], const uint32_t b[4]) {
    mma_bf16(c[0], a, b);
    if (n_tiles == 2) mma_bf16(c[1], a, b + 2);
}

/* Where a lane's rows of b lie: N columns of K values, PITCH bytes apart. */
template <int PITCH>
static __device__ __forceinline__ uint32_t columns_at(const spot &s, const char *columns) {
    return shared_at(columns) + ((s.lane & 7) + (s.lane >> 4) * 8) * PITCH + (s.lane >> 3 & 1) * 16;
}

/* sums[i][j] += a[i], rows of 16 values, times columns j. */
template <int PITCH, int TILES, int N>
static __device__ __forceinline__ void add_products(const uint32_t a[TILES][4], uint32_t b_at,
                                                    float sums[TILES][N][4]) {
#pragma unroll
    for (int j = 0; j < N; j += 2) {
        uint32_t b[4];
        if (j + 1 < N)
            load_matrices(b, b_at + j * 8 * PITCH);
        else
            load_two_matrices(b, b_at + j * 8 * PITCH);
#pragma unroll
        for (int i = 0; i < TILES; i++) multiply_columns(j + 1 < N ? 2 : 1, &sums[i][j], a[i], b);
    }
}

/* The same of rows of 8 values; matrices of b are those of neighbouring columns. */
template <int PITCH, int TILES, int N>
static __device__ __forceinline__ void add_short(const spot &s, const uint32_t a[TILES][2],
                                                 const char *columns, float sums[TILES][N][4]) {
    uint32_t b_at = shared_at(columns) + (s.lane & 15) * PITCH;
#pragma unroll
    for (int j = 0; j < N; j += 2) {
        uint32_t b[2];
        load_two_matrices(b, b_at + j * 8 * PITCH - (j + 1 < N ? 0 : (s.lane & 8) * PITCH));
#pragma unroll
        for (int i = 0; i < TILES; i++) {
            mma_short(sums[i][j], a[i], b[0]);
            if (j + 1 < N) mma_short(sums[i][j + 1], a[i], b[1]);
        }
    }
}

/* 16 rows of each tile, 16 values from a place in the lane's row on; tiles STEP rows of PITCH bytes
 * apart. */
template <int PITCH, int TILES, int STEP>
static __device__ __forceinline__ void load_rows(const spot &s, uint32_t at, uint32_t a[TILES][4]) {
#pragma unroll
    for (int i = 0; i < TILES; i++) load_matrices(a[i], at + (s.lane >> 4) * 16 + i * STEP * PITCH);
}

/* sums[i][j] += rows of tile i (row0 + i * STEP ...) times columns j: K values of both in shared
 * memory, rows PA bytes apart, columns PB. */
template <int K, int PA, int PB, int TILES, int STEP, int N>
static __device__ __forceinline__ void multiply(const spot &s, const char *rows,
                                                const char *columns, float sums[TILES][N][4]) {
    uint32_t a_at = shared_at(rows) + (s.lane & 15) * PA, b_at = columns_at<PB>(s, columns);
#pragma unroll
    for (int k = 0; k + 16 <= K; k += 16) {
        uint32_t a[TILES][4];
        load_rows<PA, TILES, STEP>(s, a_at + k * 2, a);
        add_products<PB, TILES, N>(a, b_at + k * 2, sums);
    }
    if constexpr (K % 16 != 0) {
        uint32_t a[TILES][2];
#pragma unroll
        for (int i = 0; i < TILES; i++) load_two_matrices(a[i], a_at + i * STEP * PA + K / 16 * 32);
        add_short<PB, TILES, N>(s, a, columns + K / 16 * 32, sums);
    }
}

/* The same with rows in registers: own[i][half][t] has two of the 8 values of tile t. */
template <int K, int PB, int TILES, int N>
static __device__ __forceinline__ void multiply_own(const spot &s,
                                                    const uint32_t own[TILES][2][K / 8],
                                                    const char *columns, float sums[TILES][N][4]) {
    uint32_t b_at = columns_at<PB>(s, columns);
#pragma unroll
    for (int t = 0; t + 2 <= K / 8; t += 2) {
        uint32_t a[TILES][4];
#pragma unroll
        for (int i = 0; i < TILES; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) a[i][e] = own[i][e % 2][t + e / 2];
        add_products<PB, TILES, N>(a, b_at + t * 16, sums);
    }
    if constexpr (K % 16 != 0) {
        uint32_t a[TILES][2];
#pragma unroll
        for (int i = 0; i < TILES; i++)
            a[i][0] = own[i][0][K / 8 - 1], a[i][1] = own[i][1][K / 8 - 1];
        add_short<PB, TILES, N>(s, a, columns + K / 16 * 32, sums);
    }
}

/* A channel's 3x3 weights as a row of a table in shared memory: each a word that has its bf16 where
 * the fragment of the diagonal matrix does. The row behind the last channel is zeros. */
static __device__ __forceinline__ void put_kernel(char *kernels, int channel,
                                                  const float weights[TAPS]) {
    uint32_t half = channel % 2 == 0 ? 0x0000ffffu : 0xffff0000u, w[TAPS];
#pragma unroll
    for (int t = 0; t < TAPS; t++) w[t] = pack_bf16(weights[t], weights[t]) & half;
    char *row = kernels + channel * KERNEL_ROW;
    *(uint4 *)row = make_uint4(w[0], w[1], w[2], w[3]);
    *(uint4 *)(row + 16) = make_uint4(w[4], w[5], w[6], w[7]);
    *(uint32_t *)(row + 32) = w[8];
}

/* The diagonals of the taps' matrices for the 8 channels of a tile, as fragments. Lanes that have
 * none of a diagonal read the row of zeros behind the table's N. */
template <int N>
static __device__ __forceinline__ void load_diagonals(const spot &s, const char *kernels, int tile,
                                                      uint32_t w[TAPS]) {
    const char *row = kernels + (s.g / 2 == s.t ? tile * 8 + s.g : N) * KERNEL_ROW;
    uint4 a = *(const uint4 *)row, b = *(const uint4 *)(row + 16);
    w[0] = a.x, w[1] = a.y, w[2] = a.z, w[3] = a.w;
    w[4] = b.x, w[5] = b.y, w[6] = b.z, w[7] = b.w;
    w[8] = *(const uint32_t *)(row + 32);
}

/* ROWS rows of UNITS times BYTES to shared memory in the background, zeros instead of rows from
 * n_there on where CHECKS; from_step and STEP bytes lie between rows. */
template <int THREADS, int ROWS, int UNITS, int STEP, int BYTES = 16, bool CHECKS = false>
static __device__ __forceinline__ void copy_matrix(const void *from, int from_step, char *to,
                                                   int n_there = ROWS) {
    constexpr int AT_ONCE = THREADS / UNITS < ROWS ? THREADS / UNITS : ROWS;
    int row = (int)threadIdx.x / UNITS, unit = (int)threadIdx.x % UNITS * BYTES;
    const char *source = (const char *)from + (size_t)(row * from_step) + unit;
    uint32_t at = shared_at(to) + row * STEP + unit;
    if (AT_ONCE * UNITS < THREADS && row >= AT_ONCE) return;
#pragma unroll
    for (int first = 0; first < ROWS; first += AT_ONCE) {
        if (first + AT_ONCE > ROWS && first + row >= ROWS) break;
        bool is_there = !CHECKS || first + row < n_there;
        if (CHECKS)
            copy_async<BYTES>(at + first * STEP, is_there ? source + first * from_step : from,
                              is_there);
        else
            copy_async<BYTES>(at + first * STEP, source + first * from_step);
    }
}

/* Two sums over a warp's rows, of two channels. Lanes give their bits 4 (channel) and 3 (sum) to what
 * they get. */
static __device__ __forceinline__ void sum_rows(const spot &s, const float first[2],
                                                const float second[2], float2 *to) {
    bool upper = s.lane & 16, high = s.lane & 8;
    float a = (upper ? first[1] : first[0]) +
              __shfl_xor_sync(0xffffffffu, upper ? first[0] : first[1], 16);
    float b = (upper ? second[1] : second[0]) +
              __shfl_xor_sync(0xffffffffu, upper ? second[0] : second[1], 16);
    float all = (high ? b : a) + __shfl_xor_sync(0xffffffffu, high ? a : b, 8);
    all += __shfl_xor_sync(0xffffffffu, all, 4);
    if ((s.lane & 4) == 0) ((float *)to)[2 * upper + high] = all;
}

/* Zeros for bytes [FROM, END), multiples of 16. */
template <int THREADS, int FROM, int END>
static __device__ __forceinline__ void clear(char *shared) {
    constexpr int N = (END - FROM) / 16;
    uint4 *to = (uint4 *)(shared + FROM) + threadIdx.x;
#pragma unroll
    for (int e = 0; e < N; e += THREADS)
        if (e + THREADS <= N || e + (int)threadIdx.x < N) to[e] = make_uint4(0, 0, 0, 0);
}

/* The 3x3 convolution of one tile of channels; `at` is where the window of the lane's pixel begins,
 * LINE and PITCH bytes lie between lines and pixels. A line of the input serves the three outputs
 * around it where a warp has them below each other (IS_SHARED), else it is loaded for one tile. */
template <int TILES, int LINE, int PITCH, bool IS_SHARED>
static __device__ __forceinline__ void convolve(uint32_t at, const uint32_t w[TAPS],
                                                float sums[TILES][4]) {
    constexpr int N_LINES = IS_SHARED ? TILES + 2 : 3;
    static_assert(IS_SHARED || TILES == 1, "one tile at a time");
    uint32_t upper = at + ((threadIdx.x & 16) != 0 ? PITCH : 0);
#pragma unroll
    for (int line = 0; line < N_LINES; line++) {
        uint32_t a[4], last[2];
        load_matrices(a, upper + line * LINE);
        load_two_matrices(last, at + line * LINE + 2 * PITCH);
#pragma unroll
        for (int u = 0; u < 3; u++) {
            int i = IS_SHARED ? line - u : 0;
            if (i < 0 || i >= TILES || (!IS_SHARED && u != line)) continue;
            mma_bf16(sums[i], a, w + 3 * u);
            mma_short(sums[i], last, w[3 * u + 2]);
        }
    }
}

#endif
