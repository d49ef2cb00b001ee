/* What a block's kernel is made of: extents, which are constants, products on the tensor cores, and
 * the order of pixels. */
#ifndef CT_BACKEND_CUDA_MOBILENETV2_BLOCK_CUH
#define CT_BACKEND_CUDA_MOBILENETV2_BLOCK_CUH

#include "backend/cuda/mma.cuh"
#include "backend/cuda/mobilenetv2/mobilenetv2.h"

enum { GROUPS = 8, TAPS = 9 };

/* Bytes from one row of n channels to the next: an odd number of units, so that the eight rows of a
 * matrix lie in different banks. */
static __host__ __device__ constexpr int pitch_of(int n) {
    return n / 8 % 2 == 1 ? 2 * n : 2 * n + 16;
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
    enum { EXPAND = MID + OUT_ROWS * PITCH, EXPAND_ROWS = in::COLUMNS * IN_NT * 8 };
    enum { PROJECT = EXPAND + EXPAND_ROWS * X_PITCH, TABLE = PROJECT + CO * PITCH };
    enum {
        TABLE_PART =
            out::COLUMNS * MID_NT * 8 > EXPAND_ROWS ? out::COLUMNS *MID_NT * 8 : (int)EXPAND_ROWS
    };
    enum {
        KERNELS_AT = TABLE + 4 * TABLE_PART * 4,
        SUMS = KERNELS_AT + (TAPS + 1) * TABLE_PART * 2
    };
    enum { BYTES = SUMS + 2 * WARPS * PART_GROUPS * 8 };
    /* the last norm's sums lie where the wide pictures were */
    enum { LAST_SUMS = WIDE_AT, LAST_STATS = LAST_SUMS + WARPS / out::COLUMNS * CO * 8 };
    /* training writes parts to memory: whole sectors of 32 bytes, or few enough for L2 to join them */
    enum { TRAINS = REAL % 16 == 0 || SIZE <= 8 };
    static_assert(LAST_STATS + SAMPLES * GROUPS * 8 <= MID, "room for the last norm's sums");
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

/* sums[i][j] += rows of tile i (row0 + i * STEP ...) times columns j: K values of both in shared
 * memory, rows PA bytes apart, columns PB. */
template <int K, int PA, int PB, int TILES, int STEP, int N>
static __device__ __forceinline__ void multiply(const spot &s, const char *rows,
                                                const char *columns, float sums[TILES][N][4]) {
    uint32_t a_at = shared_at(rows) + (s.lane & 15) * PA + (s.lane >> 4) * 16;
    uint32_t b_at =
        shared_at(columns) + ((s.lane & 7) + (s.lane >> 4) * 8) * PB + (s.lane >> 3 & 1) * 16;
#pragma unroll
    for (int k = 0; k + 16 <= K; k += 16) {
        uint32_t a[TILES][4];
#pragma unroll
        for (int i = 0; i < TILES; i++) load_matrices(a[i], a_at + i * STEP * PA + k * 2);
#pragma unroll
        for (int j = 0; j < N; j += 2) {
            uint32_t b[4];
            if (j + 1 < N)
                load_matrices(b, b_at + j * 8 * PB + k * 2);
            else
                load_two_matrices(b, b_at + j * 8 * PB + k * 2);
#pragma unroll
            for (int i = 0; i < TILES; i++)
                multiply_columns(j + 1 < N ? 2 : 1, &sums[i][j], a[i], b);
        }
    }
    if (K % 16 == 0) return;
    /* the last 8: matrices of b are those of neighbouring columns */
    b_at = shared_at(columns) + (s.lane & 15) * PB + K / 16 * 32;
    a_at = shared_at(rows) + (s.lane & 15) * PA + K / 16 * 32;
    uint32_t a[TILES][2];
#pragma unroll
    for (int i = 0; i < TILES; i++) load_two_matrices(a[i], a_at + i * STEP * PA);
#pragma unroll
    for (int j = 0; j < N; j += 2) {
        uint32_t b[2];
        load_two_matrices(b, b_at + j * 8 * PB - (j + 1 < N ? 0 : (s.lane & 8) * PB));
#pragma unroll
        for (int i = 0; i < TILES; i++) {
            mma_short(sums[i][j], a[i], b[0]);
            if (j + 1 < N) mma_short(sums[i][j + 1], a[i], b[1]);
        }
    }
}

/* The diagonals of the taps' matrices for the 8 channels of a tile, as fragments; kernels [tap][PART]
 * in bf16. */
template <int PART>
static __device__ __forceinline__ void load_diagonals(const spot &s, const char *kernels, int tile,
                                                      uint32_t w[TAPS]) {
    uint32_t place = s.g / 2 != s.t ? 0u : s.g % 2 == 0 ? 1u : 1u << 16;
#pragma unroll
    for (int t = 0; t < TAPS; t++)
        w[t] = place * ((const uint16_t *)kernels)[t * PART + tile * 8 + s.g];
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
