/* What the kernels of packed rows (compress/) share. Floats are added and multiplied one by one, never
 * fused: payloads have the bits of the host's. */
#ifndef CT_BACKEND_CUDA_PACK_ROWS_CUH
#define CT_BACKEND_CUDA_PACK_ROWS_CUH

#include "backend/cuda/kernels.h"
#include "backend/cuda/ptx.cuh"

#define LANES 32 /* of a warp: CT_COMPRESS_LANES */

/* The rows of one agent. */
typedef struct packed_row {
    const float *x;
    float *known;
    uint32_t *packed;
} packed_row;

static __device__ __forceinline__ packed_row row_at(const cuda_parcel &p, unsigned row) {
    return {p.x_dev + row * p.x_stride, p.known_dev + row * p.known_stride,
            (uint32_t *)(p.packed_dev + row * p.packed_stride)};
}

static __device__ __forceinline__ float difference(const packed_row &r, bool is_whole, size_t i) {
    return is_whole ? r.x[i] : __fsub_rn(r.x[i], r.known[i]);
}

static __device__ __forceinline__ void add_known(const packed_row &r, bool is_whole, size_t i,
                                                 float value) {
    r.known[i] = __fadd_rn(is_whole ? 0.0f : r.known[i], value);
}

/* Random word 4 block + w of a row. */
static __device__ __forceinline__ uint32_t random_word_of(const ct_compress_key &key,
                                                          uint32_t block, uint32_t w) {
    uint32_t x[4] = {block, key.index, key.iteration, key.agent}, k[2] = {key.key[0], key.key[1]};
#pragma unroll
    for (int round = 0; round < 10; round++) {
        uint32_t y0 = __umulhi(0xCD9E8D57u, x[2]) ^ x[1] ^ k[0], y1 = 0xCD9E8D57u * x[2];
        uint32_t y2 = __umulhi(0xD2511F53u, x[0]) ^ x[3] ^ k[1], y3 = 0xD2511F53u * x[0];
        x[0] = y0, x[1] = y1, x[2] = y2, x[3] = y3;
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    return w == 0 ? x[0] : w == 1 ? x[1] : w == 2 ? x[2] : x[3];
}

/* Random word w of a row. */
static __device__ __forceinline__ uint32_t random_word(const ct_compress_key &key, uint32_t w) {
    return random_word_of(key, w / 4, w % 4);
}

/* Sum over a warp in the order of ct_lanes_sum; lane 0's is the result, given to all. */
static __device__ __forceinline__ float lanes_sum(float x) {
#pragma unroll
    for (int width = LANES / 2; width > 0; width /= 2)
        x = __fadd_rn(x, __shfl_down_sync(0xffffffffu, x, width));
    return __shfl_sync(0xffffffffu, x, 0);
}

#endif
