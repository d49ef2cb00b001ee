/* Packed rows that need no order among their values: quantize, sign, random-k (compress/<name>.c says
 * what they are). Grid: x over buckets, a warp each (random-k and unpacking: over values), y = row.
 * 12 to 16 bytes a value. */
#include "backend/cuda/pack_bucket.cuh"

#define WARPS   8
#define THREADS (WARPS * LANES)

/* ---- quantize ---- */

static __device__ bucket bucket_at(const ct_compressor &how, size_t k) {
    size_t left = how.n - k * how.bucket;
    return {k * how.bucket, (int)((left < how.bucket ? left : how.bucket) - how.exact),
            (int)(k * (how.bucket - how.exact))};
}

static __device__ size_t n_buckets(const ct_compressor &how) {
    return (how.n + how.bucket - 1) / how.bucket;
}

/* Value i's random part of 1. */
static __device__ float part_of(const ct_compress_key &key, size_t i) {
    uint32_t word = random_word(key, (uint32_t)(i / 2));
    return (float)(i % 2 == 0 ? word & 0xffffu : word >> 16) * 0x1p-16f;
}

static __global__ void pack_quantize(cuda_parcel p) {
    __shared__ uint8_t shared[WARPS][CT_BUCKET];
    const ct_compressor &how = p.how;
    int lane = (int)threadIdx.x % LANES, warp = (int)threadIdx.x / LANES;
    size_t k = (size_t)blockIdx.x * WARPS + (size_t)warp;
    if (k >= n_buckets(how)) return;
    const packed_row r = row_at(p, blockIdx.y);
    const ct_compress_key key = p.keys_dev[blockIdx.y];
    const bucket b = bucket_at(how, k);
    const int top = (1 << (how.bits - 1)) - 1;
    uint32_t *header = r.packed + k * (1 + how.exact),
             *words = r.packed + n_buckets(how) * (1 + how.exact);
    float most = largest(r, how.is_whole, b, lane), scale = most / (float)top;
    float inverse = how.fits      ? inverse_width(r, false, b, how.width, most, scale, lane)
                    : most > TINY ? (float)top / most
                                  : 0;
    for (size_t e = (size_t)lane; e < how.exact; e += LANES) {
        float value = r.x[b.first + (size_t)b.n + e];
        header[1 + e] = __float_as_uint(value);
        add_known(r, how.is_whole, b.first + (size_t)b.n + e, value);
    }
    uint8_t *bytes = (uint8_t *)words + b.code, *codes = how.fits ? shared[warp] : bytes;
    for (int i = lane; i < b.n; i += LANES) {
        size_t at = b.first + (size_t)i;
        float part = how.fits ? 0.5f : part_of(key, at);
        codes[i] = (uint8_t)code_of(difference(r, how.is_whole, at), part, inverse, (float)top);
    }
    __syncwarp();
    if (how.fits) scale = fitted(r, false, b, codes, top, lane);
    if (how.fits)
        put_words(codes, b.n, how.bits, words + (size_t)b.code * (size_t)how.bits / 32, lane);
    for (int i = lane; i < b.n; i += LANES)
        add_known(r, how.is_whole, b.first + (size_t)i, __fmul_rn((float)(codes[i] - top), scale));
    if (lane == 0) header[0] = __float_as_uint(scale);
}

/* Grid: x over values. */
static __global__ void unpack_quantize(cuda_parcel p) {
    const ct_compressor &how = p.how;
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= how.n) return;
    const packed_row r = row_at(p, blockIdx.y);
    const bucket b = bucket_at(how, i / how.bucket);
    const uint32_t *header = r.packed + i / how.bucket * (1 + how.exact);
    int at = (int)(i - b.first), top = (1 << (how.bits - 1)) - 1;
    float value = at >= b.n ? __uint_as_float(header[1 + at - b.n]) : 0;
    if (at < b.n) {
        const uint32_t *words = r.packed + n_buckets(how) * (1 + how.exact);
        size_t bit = ((size_t)b.code + (size_t)at) * (size_t)how.bits;
        uint32_t low = words[bit / 32], high = bit % 32 + how.bits > 32 ? words[bit / 32 + 1] : 0;
        int code = (int)(__funnelshift_r(low, high, bit % 32) & ((1u << how.bits) - 1));
        value = __fmul_rn((float)(code - top), __uint_as_float(header[0]));
    }
    add_known(r, how.is_whole, i, value);
}

/* ---- sign ---- */

static __global__ void pack_sign(cuda_parcel p) {
    int lane = (int)threadIdx.x % LANES, warp = (int)threadIdx.x / LANES;
    size_t k = (size_t)blockIdx.x * WARPS + (size_t)warp, first = k * CT_BUCKET;
    if (first >= p.how.n) return;
    const packed_row r = row_at(p, blockIdx.y);
    size_t left = p.how.n - first, n = left < CT_BUCKET ? left : CT_BUCKET;
    uint32_t *words = r.packed + (p.how.n + CT_BUCKET - 1) / CT_BUCKET + first / 32;
    float sum = 0;
    for (size_t i = 0; i < n; i += LANES) {
        bool is_there = i + (size_t)lane < n;
        float d = is_there ? difference(r, false, first + i + (size_t)lane) : 0;
        uint32_t word = __ballot_sync(0xffffffffu, d < 0);
        if (is_there) sum = __fadd_rn(sum, fabsf(d));
        if (lane == 0) words[i / 32] = word;
    }
    float scale = lanes_sum(sum) / (float)n;
    for (size_t i = (size_t)lane; i < n; i += LANES)
        add_known(r, false, first + i, difference(r, false, first + i) < 0 ? -scale : scale);
    if (lane == 0) r.packed[k] = __float_as_uint(scale);
}

static __global__ void unpack_sign(cuda_parcel p) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= p.how.n) return;
    const packed_row r = row_at(p, blockIdx.y);
    const uint32_t *words = r.packed + (p.how.n + CT_BUCKET - 1) / CT_BUCKET;
    float scale = __uint_as_float(r.packed[i / CT_BUCKET]);
    add_known(r, false, i, words[i / 32] >> i % 32 & 1 ? -scale : scale);
}

/* ---- random-k ---- */

/* Grid: x over the k values that are sent. */
static __global__ void move_random_k(cuda_parcel p) {
    size_t j = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (j >= p.how.k) return;
    const packed_row r = row_at(p, blockIdx.y);
    uint32_t word = random_word(p.keys_dev[blockIdx.y], (uint32_t)j);
    uint64_t begin = (uint64_t)j * p.how.n / p.how.k, end = (uint64_t)(j + 1) * p.how.n / p.how.k;
    size_t i = (size_t)(begin + ((uint64_t)word * (end - begin) >> 32));
    if (p.x_dev != NULL) r.packed[j] = __float_as_uint(difference(r, false, i));
    add_known(r, false, i, __uint_as_float(r.packed[j]));
}

/* ---- steps of their own ---- */

/* Grid: x over values, y = row. 16 bytes a value. */
static __global__ void scale(const float *steps, size_t n, float *v, size_t v_stride, float *r,
                             size_t r_stride) {
    const float gamma = steps[0], beta = steps[1], correction = steps[2], epsilon = steps[3];
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    v += blockIdx.y * v_stride + i;
    r += blockIdx.y * r_stride + i;
    float square = __fmul_rn(*r, *r);
    *v = __fadd_rn(__fmul_rn(beta, *v), __fmul_rn(__fsub_rn(1.0f, beta), square));
    float step = gamma / __fadd_rn(sqrtf(*v / correction), epsilon);
    *r = __fmul_rn(*r, step < 1 ? step : 1.0f);
}

extern "C" ct_status ct_cuda_launch_steps(cudaStream_t stream, const float *steps_dev, size_t n,
                                          int n_rows, float *v_dev, size_t v_stride, float *r_dev,
                                          size_t r_stride) {
    dim3 grid((unsigned)((n + THREADS - 1) / THREADS), (unsigned)n_rows);
    start_kernel(scale, grid, THREADS, 0, stream, steps_dev, n, v_dev, v_stride, r_dev, r_stride);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

/* ---- launches ---- */

static ct_status launch(const cuda_parcel *p, void (*kernel)(cuda_parcel), size_t n, size_t each) {
    dim3 grid((unsigned)((n + each - 1) / each), (unsigned)p->n_rows);
    start_kernel(kernel, grid, THREADS, 0, p->stream, *p);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

extern "C" ct_status ct_cuda_move_quantize(const cuda_parcel *p) {
    size_t n = (p->how.n + p->how.bucket - 1) / p->how.bucket;
    return p->x_dev != NULL ? launch(p, pack_quantize, n, WARPS)
                            : launch(p, unpack_quantize, p->how.n, THREADS);
}

extern "C" ct_status ct_cuda_move_sign(const cuda_parcel *p) {
    return p->x_dev != NULL ? launch(p, pack_sign, p->how.n, WARPS * CT_BUCKET)
                            : launch(p, unpack_sign, p->how.n, THREADS);
}

extern "C" ct_status ct_cuda_move_random_k(const cuda_parcel *p) {
    return launch(p, move_random_k, p->how.k, THREADS);
}
