/* What the kernels on the tensor cores share: copies to shared memory in the background, fragments,
 * and EvoNorm applied to values on their way in. */
#ifndef CT_BACKEND_CUDA_MMA_CUH
#define CT_BACKEND_CUDA_MMA_CUH

#include "backend/cuda/device.cuh"

/* 16 bytes to shared memory in the background, or zeros if there is nothing to copy. */
static __device__ __forceinline__ void copy_quad(float *to, const float *from, bool is_there) {
    uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    int n = is_there ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(n));
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

static __device__ __forceinline__ float gate_one(float x, float scale, float bias) {
    return fmaf(x * fminf(fmaxf(fmaf(x, 1.0f / 6.0f, 0.5f), 0.0f), 1.0f), scale, bias);
}

/* EvoNorm of four channels. */
static __device__ __forceinline__ float4 gate_quad(float4 x, float4 scale, float4 bias) {
    return make_float4(gate_one(x.x, scale.x, bias.x), gate_one(x.y, scale.y, bias.y),
                       gate_one(x.z, scale.z, bias.z), gate_one(x.w, scale.w, bias.w));
}

static __device__ __forceinline__ float4 quad_tf32(float4 x) {
    return make_float4(to_tf32(x.x), to_tf32(x.y), to_tf32(x.z), to_tf32(x.w));
}

static __device__ __forceinline__ float4 load_quad(const float *from) {
    return __ldg((const float4 *)from);
}

#endif
