/* A GPU of plain C++, for machines that have none: the kernels of src/backend/cuda are compiled by the
 * host's compiler with this header in front, and run thread by thread. It shows whether what they
 * compute is right, not how fast they are.
 *
 * A block's threads are fibers of one thread of the host; blocks run one after the other. A fiber
 * runs until it has to wait for others: at a barrier, in an instruction that a warp executes
 * together, for copies. If nobody can continue, the program ends and says where they wait. What a
 * real GPU may do early or late (copies in the background, products of warp groups, streams beside
 * the first one) is done as late as possible in some launches and at once in others, or as
 * CT_EMULATED_ORDER=early|late says. Fresh memory is full of NaN. */
#ifndef CT_TESTS_EMULATOR_H
#define CT_TESTS_EMULATOR_H

#include <cuda_runtime_api.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <vector_functions.h>

#include <functional>

/* One block runs at a time on a thread of the host: its variables are the thread's. */
#undef __shared__
#define __shared__ thread_local
#undef __forceinline__
#define __forceinline__ inline
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __grid_constant__
#define __grid_constant__

extern thread_local uint3 threadIdx, blockIdx;
extern thread_local dim3 blockDim, gridDim;

/* Dynamic shared memory, 1,024 bytes aligned; the names of kernels' arrays are its other names. */
#define EMULATED_SHARED ((size_t)228 * 1024)

/* ---- what threads wait for ---- */

/* Runs other threads until `is_done`; `what` tells where, if that never happens. */
void emulated_wait(const char *what, const std::function<bool()> &is_done);
/* Barrier 0 to 15 of a block, for n_threads of them; 0 is everyone who has not ended. */
void emulated_barrier(int which, int n_threads);
void emulated_arrive(int which, int n_threads);
/* The threads of a warp in `mask` meet, each with its words; what every lane brought, which stays
 * until the next but one meeting. */
struct emulated_words {
    uint32_t lane[32][16];
};
const emulated_words &emulated_meet(uint32_t mask, const void *words, size_t n_bytes);
/* Whether what may be done late is done at once, in this kernel or graph. */
bool emulated_early(void);
/* Ends the program; what is wrong is said with the kernel, block and thread. */
[[noreturn]] void emulated_fail(const char *what);
/* Runs a kernel, or records it; `kernel` is what cudaFuncSetAttribute knows it by. */
void emulated_launch(const void *kernel, dim3 grid, dim3 threads, size_t bytes, cudaStream_t stream,
                     const char *name, std::function<void()> body);

template <class T>
static inline cudaError_t cudaFuncSetAttribute(T *kernel, cudaFuncAttribute what, int value) {
    return cudaFuncSetAttribute((const void *)kernel, what, value);
}

template <class T>
static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, T *kernel) {
    return cudaFuncGetAttributes(out, (const void *)kernel);
}

template <class T>
static inline cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, T *kernel, int n_threads, size_t bytes) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(n, (const void *)kernel, n_threads, bytes);
}

static inline void __syncthreads(void) {
    emulated_barrier(0, 0);
}

static inline void __syncwarp(uint32_t mask = 0xffffffffu) {
    emulated_meet(mask, "", 0);
}

/* ---- instructions of a warp ---- */

template <class T> static inline T emulated_from(uint32_t mask, T v, int lane) {
    static_assert(sizeof(T) % 4 == 0 && sizeof(T) <= 64, "whole words");
    const emulated_words &all = emulated_meet(mask, &v, sizeof v);
    if (lane >= 0 && lane < 32) memcpy((void *)&v, all.lane[lane], sizeof v);
    return v;
}

static inline int emulated_lane(void) {
    return (int)(((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) % 32);
}

template <class T> static inline T __shfl_sync(uint32_t mask, T v, int lane) {
    return emulated_from(mask, v, lane & 31);
}

template <class T> static inline T __shfl_xor_sync(uint32_t mask, T v, int with) {
    return emulated_from(mask, v, emulated_lane() ^ with);
}

template <class T> static inline T __shfl_down_sync(uint32_t mask, T v, int by) {
    return emulated_from(mask, v, emulated_lane() + by);
}

template <class T> static inline T __shfl_up_sync(uint32_t mask, T v, int by) {
    return emulated_from(mask, v, emulated_lane() - by);
}

static inline uint32_t __ballot_sync(uint32_t mask, int is) {
    const emulated_words &all = emulated_meet(mask, &is, sizeof is);
    uint32_t bits = 0;
    for (int l = 0; l < 32; l++)
        if (mask >> l & 1 && all.lane[l][0] != 0) bits |= 1u << l;
    return bits;
}

/* ---- plain instructions ---- */

#define EMULATED_LIMITS(type)                                                                      \
    static inline type min(type a, type b) {                                                       \
        return b < a ? b : a;                                                                      \
    }                                                                                              \
    static inline type max(type a, type b) {                                                       \
        return a < b ? b : a;                                                                      \
    }
EMULATED_LIMITS(int)
EMULATED_LIMITS(unsigned)
EMULATED_LIMITS(size_t)
EMULATED_LIMITS(float)
#undef EMULATED_LIMITS

template <class T> static inline T __ldg(const T *p) {
    return *p;
}

static inline uint32_t atomicAdd(uint32_t *to, uint32_t v) {
    return __atomic_fetch_add(to, v, __ATOMIC_RELAXED);
}

static inline uint32_t atomicOr(uint32_t *to, uint32_t v) {
    return __atomic_fetch_or(to, v, __ATOMIC_RELAXED);
}

static inline uint32_t __float_as_uint(float x) {
    uint32_t r;
    memcpy(&r, &x, sizeof r);
    return r;
}

static inline float __uint_as_float(uint32_t x) {
    float r;
    memcpy(&r, &x, sizeof r);
    return r;
}

static inline int __popc(uint32_t x) {
    return __builtin_popcount(x);
}

static inline int __clz(int x) {
    return x == 0 ? 32 : __builtin_clz((unsigned)x);
}

static inline int __ffs(int x) {
    return __builtin_ffs(x);
}

static inline uint32_t __umulhi(uint32_t a, uint32_t b) {
    return (uint32_t)((uint64_t)a * b >> 32);
}

static inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t by) {
    return (uint32_t)(((uint64_t)high << 32 | low) >> (by & 31));
}

static inline float __saturatef(float x) {
    return x > 0 ? x < 1 ? x : 1.0f : 0.0f;
}

static inline float rsqrtf(float x) {
    return 1 / sqrtf(x);
}

/* Never fused with what comes before or after: the files are compiled without contraction. */
#define EMULATED_OP(name, type, op)                                                                \
    static inline type name(type a, type b) {                                                      \
        return a op b;                                                                             \
    }
EMULATED_OP(__fadd_rn, float, +)
EMULATED_OP(__fsub_rn, float, -)
EMULATED_OP(__fmul_rn, float, *)
EMULATED_OP(__fdiv_rn, float, /)
EMULATED_OP(__dadd_rn, double, +)
EMULATED_OP(__dmul_rn, double, *)
EMULATED_OP(__ddiv_rn, double, /)
#undef EMULATED_OP

static inline double __dsqrt_rn(double x) {
    return sqrt(x);
}

#endif
