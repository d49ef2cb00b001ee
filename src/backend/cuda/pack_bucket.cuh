/* One bucket of values in few bits, by a warp: the arithmetic of compress/quantize.c. */
#ifndef CT_BACKEND_CUDA_PACK_BUCKET_CUH
#define CT_BACKEND_CUDA_PACK_BUCKET_CUH

#include "backend/cuda/pack_rows.cuh"

#define TINY 1e-30f

typedef struct bucket {
    size_t first; /* value */
    int n;        /* coded values */
    int code;     /* the first one's place among all codes */
} bucket;

/* q + L of one value. */
static __device__ __forceinline__ int code_of(float d, float part, float inverse, float top) {
    float v = __fadd_rn(__fadd_rn(__fmul_rn(d, inverse), top), part);
    return v > 0 ? v < 2 * top + 0.5f ? (int)v : (int)(2 * top) : 0;
}

/* The codes of one bucket of models, which begins with a word. */
static __device__ __forceinline__ void put_words(const uint8_t *codes, int n, int bits,
                                                 uint32_t *words, int lane) {
    for (int w = lane; w * 32 < n * bits; w += LANES) {
        uint32_t word = 0;
        for (int c = w * 32 / bits; c < n && c * bits < (w + 1) * 32; c++) {
            int at = c * bits - w * 32; /* < 0: it began in the word before */
            word |= at < 0 ? (uint32_t)codes[c] >> -at : (uint32_t)codes[c] << at;
        }
        words[w] = word;
    }
}

/* 1/t of a bucket of models. */
static __device__ __forceinline__ float inverse_width(const packed_row &r, bool is_whole,
                                                      const bucket &b, float part, float most,
                                                      float widest, int lane) {
    float squares = 0;
    for (int i = lane; i < b.n; i += LANES) {
        float d = difference(r, is_whole, b.first + (size_t)i);
        squares = __fadd_rn(squares, __fmul_rn(d, d));
    }
    float width = __fmul_rn(part, sqrtf(__fdiv_rn(lanes_sum(squares), (float)b.n)));
    if (!(width < widest)) width = widest;
    return most > TINY && width > TINY ? __fdiv_rn(1.0f, width) : 0;
}

static __device__ __forceinline__ float largest(const packed_row &r, bool is_whole, const bucket &b,
                                                int lane) {
    float most = 0;
    for (int i = lane; i < b.n; i += LANES)
        most = fmaxf(most, fabsf(difference(r, is_whole, b.first + (size_t)i)));
#pragma unroll
    for (int k = LANES / 2; k > 0; k /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, k));
    return most;
}

/* <d, q> / <q, q> of a bucket of CT_BUCKET values at most. */
static __device__ __forceinline__ float fitted(const packed_row &r, bool is_whole, const bucket &b,
                                               const uint8_t *codes, int top, int lane) {
    float dot = 0;
    int squares = 0;
    for (int i = lane; i < b.n; i += LANES) {
        int q = codes[i] - top;
        dot = __fadd_rn(dot, __fmul_rn(difference(r, is_whole, b.first + (size_t)i), (float)q));
        squares += q * q;
    }
    for (int k = LANES / 2; k > 0; k /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, k);
    dot = lanes_sum(dot);
    return squares > 0 ? dot / (float)squares : 0;
}

#endif
