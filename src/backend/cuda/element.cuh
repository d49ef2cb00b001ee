/* Tensors of either element, fp32 or bf16, read and written in one way: 2, 4 or 8 neighbours at a
 * time, computed with in fp32. Addresses are multiples of what one access takes (of 32 bytes, for
 * which 16 will do, for 8 floats). bf16 is rounded to nearest, ties to even. */
#ifndef CT_BACKEND_CUDA_ELEMENT_CUH
#define CT_BACKEND_CUDA_ELEMENT_CUH

#include <cuda_bf16.h>

#include "backend/cuda/kernels.h"
#include "backend/cuda/ptx.cuh"

typedef __nv_bfloat16 bf16;

static __device__ __forceinline__ float2 unpack_bf16(uint32_t pair) {
    return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
}

static __device__ __forceinline__ float2 load_two(const float *from) {
    return *(const float2 *)from;
}

static __device__ __forceinline__ float2 load_two(const bf16 *from) {
    return unpack_bf16(*(const uint32_t *)from);
}

static __device__ __forceinline__ float4 load_four(const float *from) {
    return *(const float4 *)from;
}

static __device__ __forceinline__ float4 unpack_four(uint2 pairs) {
    float2 a = unpack_bf16(pairs.x), b = unpack_bf16(pairs.y);
    return make_float4(a.x, a.y, b.x, b.y);
}

static __device__ __forceinline__ float4 load_four(const bf16 *from) {
    return unpack_four(*(const uint2 *)from);
}

static __device__ __forceinline__ void load_eight(const float *from, float4 v[2]) {
    v[0] = ((const float4 *)from)[0];
    v[1] = ((const float4 *)from)[1];
}

static __device__ __forceinline__ void load_eight(const bf16 *from, float4 v[2]) {
    uint4 all = *(const uint4 *)from;
    v[0] = unpack_four(make_uint2(all.x, all.y));
    v[1] = unpack_four(make_uint2(all.z, all.w));
}

static __device__ __forceinline__ uint2 pack_four(float4 v) {
    return make_uint2(pack_bf16(v.x, v.y), pack_bf16(v.z, v.w));
}

static __device__ __forceinline__ void store_two(float *to, float2 v) {
    *(float2 *)to = v;
}

static __device__ __forceinline__ void store_two(bf16 *to, float2 v) {
    *(uint32_t *)to = pack_bf16(v.x, v.y);
}

static __device__ __forceinline__ void store_four(float *to, float4 v) {
    *(float4 *)to = v;
}

static __device__ __forceinline__ void store_four(bf16 *to, float4 v) {
    *(uint2 *)to = pack_four(v);
}

static __device__ __forceinline__ void store_eight(float *to, const float4 v[2]) {
    ((float4 *)to)[0] = v[0];
    ((float4 *)to)[1] = v[1];
}

static __device__ __forceinline__ void store_eight(bf16 *to, const float4 v[2]) {
    uint2 a = pack_four(v[0]), b = pack_four(v[1]);
    *(uint4 *)to = make_uint4(a.x, a.y, b.x, b.y);
}

#endif
