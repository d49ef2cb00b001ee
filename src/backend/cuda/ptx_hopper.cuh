/* Instructions of Hopper alone (compute capability 9.0): barriers in shared memory, copies by the
 * tensor memory accelerator, products of a warp group (128 threads). As ptx.cuh, the tests' emulated
 * GPU has a header of the same name. */
#ifndef CT_BACKEND_CUDA_PTX_HOPPER_CUH
#define CT_BACKEND_CUDA_PTX_HOPPER_CUH

#include <cuda.h>

#include "backend/cuda/ptx.cuh"

/* ---- barriers ---- */

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

/* ---- products of a warp group; matrices are descriptors (wgmma.cuh) ---- */

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

/* The same of 64 x 64, with k along the rows of both or channels as k. */
template <bool K_ROWS = true>
static __device__ __forceinline__ void product_64(float sums[32], uint64_t a, uint64_t b,
                                                  int adds) {
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
                 "%32, %33, p, 1, 1, %35, %35;\n"
                 "}"
                 : SUMS_32(sums, 0)
                 : "l"(a), "l"(b), "r"(adds), "n"(K_ROWS ? 1 : 0));
}

/* The same of 64 x 32. */
template <bool K_ROWS = true>
static __device__ __forceinline__ void product_32(float sums[16], uint64_t a, uint64_t b,
                                                  int adds = 1) {
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %18, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, "
                 "%16, %17, p, 1, 1, %19, %19;\n"
                 "}"
                 : SUMS_8(sums, 0), SUMS_8(sums, 8)
                 : "l"(a), "l"(b), "r"(adds), "n"(K_ROWS ? 1 : 0));
}

/* ---- fragments ---- */

/* Four 8x8 matrices of bf16 to shared memory, each transposed; addresses as of load_matrices. */
static __device__ __forceinline__ void store_transposed(uint32_t to, uint32_t r0, uint32_t r1,
                                                        uint32_t r2, uint32_t r3) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(to),
                 "r"(r0), "r"(r1), "r"(r2), "r"(r3)
                 : "memory");
}

#endif
