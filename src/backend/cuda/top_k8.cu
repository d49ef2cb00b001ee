/* Top-k8 rows (compress/top_k.c): top_k.cu has found the values and put their places; here the values
 * are rounded as a row of quantize:8, and what is sent of them is added to the public copy.
 * Grid: x over buckets of values that are sent, a warp each, y = row. 29 bytes a value that is sent. */
#include "backend/cuda/pack_bucket.cuh"
#include "backend/cuda/pack_sent.cuh"

#define WARPS   8
#define THREADS (WARPS * LANES)

static __global__ void round_sent(cuda_parcel p) {
    __shared__ uint8_t shared[WARPS][CT_BUCKET];
    const int lane = (int)threadIdx.x % LANES, warp = (int)threadIdx.x / LANES;
    const size_t k = (size_t)blockIdx.x * WARPS + (size_t)warp, first = k * CT_BUCKET;
    if (first >= p.how.k) return;
    const size_t left = p.how.k - first;
    const packed_row own = row_at(p, blockIdx.y);
    const packed_row sent = {sent_values(p), NULL, NULL};
    const bucket b = {first, (int)(left < CT_BUCKET ? left : CT_BUCKET), (int)first};
    const uint32_t *places = sent_places(p) + first;
    uint8_t *codes = shared[warp];
    float most = largest(sent, true, b, lane), widest = __fdiv_rn(most, (float)CODE_TOP);
    float inverse = inverse_width(sent, true, b, p.how.width, most, widest, lane);
    for (int i = lane; i < b.n; i += LANES)
        codes[i] = (uint8_t)code_of(sent.x[first + (size_t)i], 0.5f, inverse, (float)CODE_TOP);
    __syncwarp();
    float scale = fitted(sent, true, b, codes, CODE_TOP, lane);
    put_words(codes, b.n, 8, own.packed + n_sent_buckets(p.how) + first / 4, lane);
    for (int i = lane; i < b.n; i += LANES)
        add_known(own, false, places[i], __fmul_rn((float)((int)codes[i] - CODE_TOP), scale));
    if (lane == 0) own.packed[k] = __float_as_uint(scale);
}

extern "C" ct_status ct_cuda_move_top_k8(const cuda_parcel *p) {
    CT_TRY(ct_cuda_move_top_k(p));
    if (p->x_dev == NULL) return CT_OK;
    size_t n = (n_sent_buckets(p->how) + WARPS - 1) / WARPS;
    start_kernel(round_sent, dim3((unsigned)n, (unsigned)p->n_rows), THREADS, 0, p->stream, *p);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}
