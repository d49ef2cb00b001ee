/* What the kernels of top-k and top-k8 rows share: where the values that are sent lie. */
#ifndef CT_BACKEND_CUDA_PACK_SENT_CUH
#define CT_BACKEND_CUDA_PACK_SENT_CUH

#include "backend/cuda/pack_rows.cuh"

#define CODE_TOP 127 /* levels on either side of 0 in 8 bits */

/* In 8 bits, not as they are. */
static __host__ __device__ __forceinline__ bool is_rounded(const ct_compressor &how) {
    return how.bits == 8;
}

static __host__ __device__ __forceinline__ size_t n_sent_buckets(const ct_compressor &how) {
    return (how.k + CT_BUCKET - 1) / CT_BUCKET;
}

/* Words of a packed row before its places. */
static __host__ __device__ __forceinline__ size_t n_value_words(const ct_compressor &how) {
    return is_rounded(how) ? n_sent_buckets(how) + (how.k + 3) / 4 : how.k;
}

/* Values that wait to be rounded, [k], and their places, [k]: the end of a row's scratch. */
static __device__ __forceinline__ uint32_t *sent_places(const cuda_parcel &p) {
    return p.scratch_dev + (blockIdx.y + 1) * p.scratch_stride - p.how.k;
}

static __device__ __forceinline__ float *sent_values(const cuda_parcel &p) {
    return (float *)(sent_places(p) - p.how.k);
}

#endif
