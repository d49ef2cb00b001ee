/* What the kernels on the tensor cores share: elements of tensors (fp32, whose products are tf32's,
 * or bf16), copies to shared memory in the background, fragments, and EvoNorm applied to values on
 * their way in. A unit is 16 bytes: 4 or 8 channels. */
#ifndef CT_BACKEND_CUDA_MMA_CUH
#define CT_BACKEND_CUDA_MMA_CUH

#include "backend/cuda/device.cuh"
#include "backend/cuda/element.cuh"

/* Channels of a unit, and k of one product on the tensor cores: 32 bytes either way. */
template <class T> struct unit {
    enum { SIZE = 16 / sizeof(T), STEP = 32 / sizeof(T) };
};

/* 16 bytes to shared memory in the background, or zeros if there is nothing to copy. */
static __device__ __forceinline__ void copy_quad(void *to, const void *from, bool is_there) {
    copy_async<16>(shared_at(to), from, is_there);
}

/* c += a b on the tensor cores: a 16 rows of 32 bytes, b 8 columns of 32 bytes, fp32 sums. The
 * fragment a is what load_matrices gives, with either element. */
static __device__ __forceinline__ void mma(float, float c[4], const uint32_t a[4], uint32_t b0,
                                           uint32_t b1) {
    mma_tf32(c, a, b0, b1);
}

static __device__ __forceinline__ void mma(bf16, float c[4], const uint32_t a[4], uint32_t b0,
                                           uint32_t b1) {
    uint32_t b[2] = {b0, b1};
    mma_bf16(c, a, b);
}

/* Four neighbouring channels of sums of two column tiles, upper or lower half of 16 rows: weights
 * are packed so. */
static __device__ __forceinline__ float4 quad_of(const float pair[2][4], int half) {
    return make_float4(pair[0][2 * half], pair[0][2 * half + 1], pair[1][2 * half],
                       pair[1][2 * half + 1]);
}

/* Two sums of four channels over the eight lanes that hold the same ones. Lanes give their bits 4
 * (which sum) and 3, 2 (channel) to what they get: 7 shuffles instead of 24. */
static __device__ __forceinline__ float rows_sum(const float first[4], const float second[4]) {
    int lane = threadIdx.x & 31;
    bool upper = lane & 16, high = lane & 8, odd = lane & 4;
    float kept[4];
#pragma unroll
    for (int e = 0; e < 4; e++)
        kept[e] = (upper ? second[e] : first[e]) +
                  __shfl_xor_sync(0xffffffffu, upper ? first[e] : second[e], 16);
#pragma unroll
    for (int e = 0; e < 2; e++)
        kept[e] = (high ? kept[e + 2] : kept[e]) +
                  __shfl_xor_sync(0xffffffffu, high ? kept[e] : kept[e + 2], 8);
    return (odd ? kept[1] : kept[0]) + __shfl_xor_sync(0xffffffffu, odd ? kept[0] : kept[1], 4);
}

/* ---- a unit ---- */

static __device__ __forceinline__ void open_unit(float, uint4 u, float v[4]) {
    v[0] = __uint_as_float(u.x), v[1] = __uint_as_float(u.y);
    v[2] = __uint_as_float(u.z), v[3] = __uint_as_float(u.w);
}

static __device__ __forceinline__ void open_unit(bf16, uint4 u, float v[8]) {
    *(float4 *)v = unpack_four(make_uint2(u.x, u.y));
    *(float4 *)(v + 4) = unpack_four(make_uint2(u.z, u.w));
}

/* For the tensor cores alone: fp32 as near_tf32. */
static __device__ __forceinline__ uint4 factors_unit(float, const float v[4]) {
    return make_uint4(__float_as_uint(near_tf32(v[0])), __float_as_uint(near_tf32(v[1])),
                      __float_as_uint(near_tf32(v[2])), __float_as_uint(near_tf32(v[3])));
}

static __device__ __forceinline__ uint4 factors_unit(bf16, const float v[8]) {
    return make_uint4(pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3]), pack_bf16(v[4], v[5]),
                      pack_bf16(v[6], v[7]));
}

/* A fragment's values as factors: fp32 is rounded, bf16 is what it is. */
static __device__ __forceinline__ uint32_t factor_of(float, uint32_t bits) {
    return bits + 0x1000u; /* near_tf32 */
}

static __device__ __forceinline__ uint32_t factor_of(bf16, uint32_t bits) {
    return bits;
}

/* ---- EvoNorm ---- */

/* Its numerator x s(x). */
static __device__ __forceinline__ float gate_numerator(float x) {
    return x * __saturatef(fmaf(x, 1.0f / 6.0f, 0.5f));
}

/* That one's derivative. */
static __device__ __forceinline__ float gate_slope(float x) {
    float s = __saturatef(fmaf(x, 1.0f / 6.0f, 0.5f));
    return fabsf(x) < 3.0f ? fmaf(x, 1.0f / 3.0f, 0.5f) : s;
}

static __device__ __forceinline__ float gate_one(float x, float scale, float bias) {
    return fmaf(gate_numerator(x), scale, bias);
}

/* EvoNorm of four channels. */
static __device__ __forceinline__ float4 gate_quad(float4 x, float4 scale, float4 bias) {
    return make_float4(gate_one(x.x, scale.x, bias.x), gate_one(x.y, scale.y, bias.y),
                       gate_one(x.z, scale.z, bias.z), gate_one(x.w, scale.w, bias.w));
}

#endif
