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

#include <cuda.h>

#include "backend/cuda/device.cuh"
#include "backend/cuda/element.cuh"

enum { CHUNK = 64, LINE = 128 };                  /* channels at a time, and their bytes */
enum { BLOCK_BYTES = CHUNK * LINE, GROUP = 128 }; /* 64 x 64 weights; threads of a warp group */

/* ---- barriers ---- */

static __device__ __forceinline__ uint32_t shared_at(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

static __device__ __forceinline__ void barrier_init(uint64_t *barrier, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_at(barrier)), "r"(count));
}

static __device__ __forceinline__ void barrier_arrive(uint64_t *barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_at(barrier)) : "memory");
}

/* Arrives, and makes the phase wait for so many copied bytes. */
static __device__ __forceinline__ void barrier_expect(uint64_t *barrier, uint32_t n_bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_at(barrier)),
                 "r"(n_bytes)
                 : "memory");
}

static __device__ __forceinline__ void barrier_wait(uint64_t *barrier, uint32_t phase) {
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(shared_at(barrier)),
                 "r"(phase)
                 : "memory");
}

/* A ring's stage and the parity of its barriers' phase. */
typedef struct turn {
    int at;
    uint32_t phase;
} turn;

static __device__ __forceinline__ void next_turn(turn &t, int n) {
    if (++t.at < n) return;
    t.at = 0, t.phase ^= 1;
}

/* ---- copies ---- */

/* n bytes, a multiple of 16, in line. */
static __device__ __forceinline__ void copy_bulk(uint32_t to, const void *from, uint32_t n,
                                                 uint64_t *barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(n), "r"(shared_at(barrier))
                 : "memory");
}

/* A run of positions, channels `channel` .. + 63, from pixel (y, x) of a sample on: as many as the
 * map says. */
static __device__ __forceinline__ void copy_positions(uint32_t to, const CUtensorMap *map,
                                                      int channel, int x, int y, int sample,
                                                      uint64_t *barrier) {
    uint16_t none = 0;
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %7};" ::"r"(to),
        "l"(map), "r"(channel), "r"(x), "r"(y), "r"(sample), "r"(shared_at(barrier)), "h"(none)
        : "memory");
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

static __device__ __forceinline__ void products_begin(void) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void products_group(void) {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int N> static __device__ __forceinline__ void products_wait_but(void) {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

/* Registers of a warp group's threads, from here on: of those that copy, and of the others. */
template <int N> static __device__ __forceinline__ void fewer_registers(void) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

template <int N> static __device__ __forceinline__ void more_registers(void) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

/* Shared memory written by threads is read by the accelerator or by products next. */
static __device__ __forceinline__ void writes_to_products(void) {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* A warp group meets. */
static __device__ __forceinline__ void group_sync(int which, int n_threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(which), "r"(n_threads) : "memory");
}

/* Says that it will not wait for the others that meet there. */
static __device__ __forceinline__ void group_arrive(int which, int n_threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(which), "r"(n_threads) : "memory");
}

/* Barriers are there for the accelerator too. */
static __device__ __forceinline__ void barriers_ready(void) {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    writes_to_products();
}

#define SUMS_8(s, i)                                                                               \
    "+f"(s[i]), "+f"(s[i + 1]), "+f"(s[i + 2]), "+f"(s[i + 3]), "+f"(s[i + 4]), "+f"(s[i + 5]),    \
        "+f"(s[i + 6]), "+f"(s[i + 7])
#define SUMS_32(s, i) SUMS_8(s, i), SUMS_8(s, i + 8), SUMS_8(s, i + 16), SUMS_8(s, i + 24)

/* sums += a b: 64 x 256 of k = 16, both with channels as k. Lane 4 g + t of warp w has of rows
 * 16 w + g (sums[4 j], [4 j + 1]) and 16 w + g + 8 (the next two) columns 8 j + 2 t and the next. */
static __device__ __forceinline__ void product_256(float sums[128], uint64_t a, uint64_t b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
        "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
        "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
        "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
        "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,"
        "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,"
        "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,"
        "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,"
        "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127}, "
        "%128, %129, 1, 1, 1, 0, 0;"
        : SUMS_32(sums, 0), SUMS_32(sums, 32), SUMS_32(sums, 64), SUMS_32(sums, 96)
        : "l"(a), "l"(b));
}

/* The same of 64 x 64 with k along the rows of both. */
static __device__ __forceinline__ void product_64(float sums[32], uint64_t a, uint64_t b,
                                                  int adds) {
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
                 "%32, %33, p, 1, 1, 1, 1;\n"
                 "}"
                 : SUMS_32(sums, 0)
                 : "l"(a), "l"(b), "r"(adds));
}

/* The same of 64 x 32, added. */
static __device__ __forceinline__ void product_32(float sums[16], uint64_t a, uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, "
                 "%16, %17, 1, 1, 1, 1, 1;"
                 : SUMS_8(sums, 0), SUMS_8(sums, 8)
                 : "l"(a), "l"(b));
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
        asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(
                         to + j * 16 * 32),
                     "r"(pack_bf16(s[0], s[1])), "r"(pack_bf16(s[2], s[3])),
                     "r"(pack_bf16(s[4], s[5])), "r"(pack_bf16(s[6], s[7]))
                     : "memory");
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
