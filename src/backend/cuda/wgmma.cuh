/* What the kernels for Hopper (compute capability 9.0) share: barriers in shared memory, copies by
 * the tensor memory accelerator, products of a warp group (128 threads), and the pixels of samples
 * as a line of positions.
 *
 * Positions: a sample's pixels row by row, with a row and a column of zeros before them where a
 * kernel of 3x3 reaches over the border. Each row's zero is also the one behind the row before,
 * each sample's row of zeros the one below the sample before; so a tap is the same distance from
 * every pixel, and a run of positions in shared memory serves all taps. The accelerator makes the
 * zeros: a sample is a box that begins one row above and one column left of it. */
#ifndef CT_BACKEND_CUDA_WGMMA_CUH
#define CT_BACKEND_CUDA_WGMMA_CUH

#include "backend/cuda/device.cuh"
#include "backend/cuda/element.cuh"
#include "backend/cuda/ptx_hopper.cuh"

enum { CHUNK = 64, LINE = 128 };                  /* channels at a time, and their bytes */
enum { BLOCK_BYTES = CHUNK * LINE, GROUP = 128 }; /* 64 x 64 weights; threads of a warp group */

/* A ring's stage and the parity of its barriers' phase. */
typedef struct turn {
    int at;
    uint32_t phase;
} turn;

static __device__ __forceinline__ void next_turn(turn &t, int n) {
    if (++t.at < n) return;
    t.at = 0, t.phase ^= 1;
}

/* ---- products ---- */

/* Rows of 128 bytes, swizzled by 128 bytes, from `address` on, in groups of eight. With channels
 * as k the rows are those of the matrix; else the rows are k. The swizzle goes by the address, so
 * that a matrix may begin at any row. */
static __device__ __forceinline__ uint64_t matrix_at(uint32_t address) {
    return (uint64_t)((address & 0x3ffffu) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62;
}

/* The same without swizzle: eights of rows of 16 bytes in line. With channels as k: `leading` bytes
 * from eight channels to the next, `stride` from eight rows of the matrix to the next; else from
 * eight k to the next, and from eight channels to the next. They may overlap. */
static __device__ __forceinline__ uint64_t plain_matrix_at(uint32_t address, int leading,
                                                           int stride) {
    return (uint64_t)((address & 0x3ffffu) >> 4) | (uint64_t)(leading >> 4) << 16 |
           (uint64_t)(stride >> 4) << 32;
}

/* ---- sums of 64 channels of 256 positions, on their way out ---- */

/* Place of 8 channels of a position in a warp's staging, in bytes: without conflicts for matrices
 * and for lines. */
static __device__ __forceinline__ int staged_at(int position, int half) {
    return position * 32 + ((half ^ (position >> 2 & 1)) * 16);
}

/* A warp's sums of product_256 as bf16, [position][channel]. */
static __device__ __forceinline__ void stage_sums(const float sums[128], char *staging) {
    int lane = threadIdx.x & 31;
    uint32_t to = shared_at(staging) + staged_at(lane / 16 * 8 + lane % 8, lane / 8 % 2);
#pragma unroll
    for (int j = 0; j < 16; j++) {
        const float *s = sums + 8 * j;
        store_transposed(to + j * 16 * 32, pack_bf16(s[0], s[1]), pack_bf16(s[2], s[3]),
                         pack_bf16(s[4], s[5]), pack_bf16(s[6], s[7]));
    }
}

/* Two sums of eight channels over the 16 lanes that hold the same ones. Lanes give their bits 4
 * (which sum) and 3, 2, 1 (channel) to what they get. */
static __device__ __forceinline__ float lanes_sum(const float first[8], const float second[8]) {
    int lane = threadIdx.x & 31;
    float kept[8];
#pragma unroll
    for (int e = 0; e < 8; e++)
        kept[e] = (lane & 16 ? second[e] : first[e]) +
                  __shfl_xor_sync(0xffffffffu, lane & 16 ? first[e] : second[e], 16);
#pragma unroll
    for (int n = 4; n > 0; n /= 2)
#pragma unroll
        for (int e = 0; e < n; e++) {
            bool upper = lane & 2 * n;
            kept[e] = (upper ? kept[e + n] : kept[e]) +
                      __shfl_xor_sync(0xffffffffu, upper ? kept[e] : kept[e + n], 2 * n);
        }
    return kept[0];
}

static __device__ __forceinline__ void open_eight(uint4 u, float v[8]) {
    *(float4 *)v = unpack_four(make_uint2(u.x, u.y));
    *(float4 *)(v + 4) = unpack_four(make_uint2(u.z, u.w));
}

/* ---- positions ---- */

typedef struct positions {
    int border;        /* 1: with zeros before rows and samples, 0: without */
    int height, width; /* of the pixels, without zeros */
    int pitch, size;   /* positions of a row, of a sample */
    int lead;          /* of the first pixel */
} positions;

static inline positions positions_of(int height, int width, int border) {
    positions p = {border, height, width, width + border, 0, 0};
    p.size = (height + border) * p.pitch, p.lead = border * (p.pitch + 1);
    return p;
}

/* Begins the copy of a run from position `at` on, counted from the tensor's first. */
static __device__ __forceinline__ void copy_run(uint32_t to, const CUtensorMap *map,
                                                const positions &p, int channel, int at,
                                                uint64_t *barrier) {
    int sample = at / p.size, rest = at - sample * p.size, y = rest / p.pitch;
    copy_positions(to, map, channel, rest - y * p.pitch - p.border, y - p.border, sample, barrier);
}

/* A tensor [n][h][w][c] of bf16, or every second pixel of it from (dy, dx) on, as positions `p`,
 * `n_rows` of which are copied at a time. */
typedef struct picture {
    const void *data;
    int n, h, w, c;
    int step, dy, dx;
} picture;

static inline ct_status map_positions(const picture *x, const positions *p, int n_rows,
                                      CUtensorMap *map) {
    typedef CUresult encode(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                            const cuuint64_t *, const cuuint64_t *, const int *, const int *,
                            cuuint32_t, cuuint32_t, const cuuint32_t *, CUtensorMapInterleave,
                            CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
    void *entry = NULL;
    cudaDriverEntryPointQueryResult found;
    CT_CUDA_TRY(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", &entry, 12000,
                                                 cudaEnableDefault, &found));
    size_t pixel = (size_t)x->c * sizeof(bf16), line = (size_t)x->w * pixel;
    int h = (x->h - x->dy + x->step - 1) / x->step, w = (x->w - x->dx + x->step - 1) / x->step;
    cuuint64_t dims[] = {(cuuint64_t)x->c, (cuuint64_t)w, (cuuint64_t)h, (cuuint64_t)x->n};
    cuuint64_t strides[] = {pixel * x->step, line * x->step, line * x->h};
    int lower[] = {-p->border, -p->border}, upper[] = {p->width - w, p->height - h};
    cuuint32_t by[] = {1, 1, 1, 1};
    char *data = (char *)x->data + line * x->dy + pixel * x->dx;
    if (entry == NULL ||
        ((encode *)entry)(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, data, dims, strides, lower,
                          upper, CHUNK, (cuuint32_t)n_rows, by, CU_TENSOR_MAP_INTERLEAVE_NONE,
                          CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
        return ct_fail(CT_IO, "the GPU's driver refused a tensor map of %d x %d x %d", h, w, x->c);
    return CT_OK;
}

#endif
