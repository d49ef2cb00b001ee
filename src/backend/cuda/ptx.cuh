/* What only nvcc understands: launches, and instructions that C++ has no words for. The tests'
 * emulated GPU has a header of the same name in the place of this one (tests/emulator). */
#ifndef CT_BACKEND_CUDA_PTX_CUH
#define CT_BACKEND_CUDA_PTX_CUH

#include <stdint.h>

template <typename... PARAMS, typename... ARGS>
static void start_kernel(void (*kernel)(PARAMS...), dim3 grid, dim3 threads, size_t bytes,
                         cudaStream_t stream, const ARGS &...args) {
    kernel<<<grid, threads, bytes, stream>>>(args...);
}

/* An address in shared memory, as the instructions below take it. */
static __device__ __forceinline__ uint32_t shared_at(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* ---- numbers ---- */

/* fp32 rounded to the nearest tf32, as the tensor cores want it. */
static __device__ __forceinline__ float to_tf32(float x) {
    uint32_t r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
    return __uint_as_float(r);
}

/* Two bf16 as they lie in memory, the first one below. */
static __device__ __forceinline__ uint32_t pack_bf16(float first, float second) {
    uint32_t r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(second), "f"(first));
    return r;
}

/* ---- products on the tensor cores ---- */

/* c += a b: a 16x8 by rows, b 8x8 by columns, tf32 factors, fp32 sums. */
static __device__ __forceinline__ void mma_tf32(float c[4], const uint32_t a[4], uint32_t b0,
                                                uint32_t b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* c += a b: a 16x16 by rows, b 16x8 by columns, fp32 sums. Lane 4 g + t has in a rows g, g + 8 and
 * columns 2 t, 2 t + 1 (+ 8): {g, g + 8, g and 8 columns on, g + 8 and those}; in b column g, rows
 * 2 t, 2 t + 1, and 8 rows on. */
static __device__ __forceinline__ void mma_bf16(float c[4], const uint32_t a[4],
                                                const uint32_t b[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* The same with k of 8: a 16 x 8, b 8 x 8. */
static __device__ __forceinline__ void mma_short(float c[4], const uint32_t a[2], uint32_t b) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b));
}

/* ---- fragments ---- */

/* Four 8x8 matrices of bf16 from shared memory; lane l gives the address of row l % 8 of matrix
 * l / 8. With rows 0-15 of 8 channels, then of the next 8: the fragment a of mma_bf16. */
static __device__ __forceinline__ void load_matrices(uint32_t r[4], uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

/* The same, each matrix transposed. */
static __device__ __forceinline__ void load_transposed(uint32_t r[4], uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

/* Two matrices; the upper lanes' addresses are not read. */
static __device__ __forceinline__ void load_two_matrices(uint32_t r[2], uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(address));
}

/* An 8 x 8 matrix of bf16 in the registers of a warp, transposed. */
static __device__ __forceinline__ uint32_t turn_matrix(uint32_t v) {
    uint32_t r;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(v));
    return r;
}

/* ---- copies to shared memory in the background ---- */

/* SIZE bytes, 4, 8 or 16; 16 go around the first cache. */
template <int SIZE>
static __device__ __forceinline__ void copy_async(uint32_t to, const void *from) {
    if (SIZE == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(SIZE));
}

/* The same, or zeros if there is nothing to copy. */
template <int SIZE>
static __device__ __forceinline__ void copy_async(uint32_t to, const void *from, bool is_there) {
    int n = is_there ? SIZE : 0;
    if (SIZE == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(n));
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(from), "r"(n),
                     "n"(SIZE));
}

/* Waits for this thread's copies; a barrier makes everyone's visible. */
static __device__ __forceinline__ void copies_wait(void) {
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* The copies since the last call are a group; waits for all but the last N groups. */
static __device__ __forceinline__ void copies_group(void) {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int N> static __device__ __forceinline__ void copies_wait_but(void) {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

#endif
