/* Weights in the order the convolutions read them: packed[e] = row[table[e]], floats first, then
 * bf16. The table is filled once a plan. Grid: x over quads of the packed floats, y over groups of
 * 4 parameter rows. 8 bytes an element (6 in bf16) and 1 of the table; the reads are scattered
 * inside one layer of one row, which the caches hold. */
#include "backend/cuda/device.cuh"
#include "backend/cuda/element.cuh"

enum { THREADS = 256, ROWS = 4 };

/* Element e of a packed layer comes from weight [o][i][t]; false: it is padding. */
static __device__ bool origin(const cuda_pack *p, unsigned e, int *o, int *i, int *t) {
    bool is_backward = p->kind == CUDA_PACK_BACKWARD || p->kind == CUDA_PACK_TILE_BACKWARD ||
                       p->kind == CUDA_PACK_BF16_BACKWARD;
    if (p->kind == CUDA_PACK_LINEAR) {
        *o = (int)(e / (unsigned)(p->taps * p->ci));
        *t = (int)(e / (unsigned)p->ci) % p->taps;
        *i = (int)(e % (unsigned)p->ci);
        return true;
    }
    int n_wide = is_backward ? p->ci : p->co;
    int k, n;
    if (p->kind == CUDA_PACK_FORWARD || p->kind == CUDA_PACK_BACKWARD) {
        k = (int)(e / (unsigned)n_wide);
        n = (int)(e % (unsigned)n_wide);
    } else {
        /* a lane has a quad of words: of two tiles of columns, the upper and the lower half of k */
        int is_bf16 = p->kind >= CUDA_PACK_BF16_FORWARD, word = (int)(e >> is_bf16);
        int n_pairs = (n_wide + 15) / 16;
        int q = word & 3, lane = word >> 2 & 31, pair = (word >> 7) % n_pairs;
        int step = (word >> 7) / n_pairs;
        k = is_bf16 ? step * 16 + (lane & 3) * 2 + (int)(e & 1) + (q & 1) * 8
                    : step * 8 + (lane & 3) + (q & 1) * 4;
        /* column c of tile j of a pair is channel 4 (c / 2) + 2 j + c % 2 */
        n = pair * 16 + (lane >> 3) * 4 + (q >> 1) * 2 + (lane >> 2 & 1);
    }
    *t = k / p->depth;
    *o = is_backward ? k % p->depth : n;
    *i = is_backward ? n : k % p->depth;
    return *o < p->co && *i < p->ci;
}

/* table[e]: twice the weight's place in a parameter row, one more where it is to be rounded to
 * tf32; negative for a zero. Grid: x over blocks of a layer's elements, y = layer. */
static __global__ void table_kernel(const cuda_pack *packs, size_t n_plain, int *table) {
    const cuda_pack *p = &packs[blockIdx.y];
    bool rounded = p->kind == CUDA_PACK_TILE_FORWARD || p->kind == CUDA_PACK_TILE_BACKWARD;
    size_t to = p->kind >= CUDA_PACK_BF16_FORWARD ? 2 * p->to - n_plain : p->to;
    for (size_t e = blockIdx.x * THREADS + threadIdx.x; e < p->count; e += gridDim.x * THREADS) {
        int o, i, t;
        bool is_there = origin(p, (unsigned)e, &o, &i, &t);
        size_t from = p->from + ((size_t)o * p->ci + i) * p->taps + t;
        table[to + e] = is_there ? (int)(2 * from + rounded) : -1;
    }
}

static __device__ __forceinline__ float packed_value(const float *row, int at) {
    if (at < 0) return 0.0f;
    float value = row[at >> 1];
    return at & 1 ? to_tf32(value) : value;
}

static __device__ __forceinline__ float4 packed_quad(const float *row, int4 at) {
    return make_float4(packed_value(row, at.x), packed_value(row, at.y), packed_value(row, at.z),
                       packed_value(row, at.w));
}

static __global__ void __launch_bounds__(THREADS)
    pack_kernel(const int4 *table, size_t n_plain, size_t n_quads, int n_rows, const float *params,
                size_t params_stride, float *packed, size_t packed_stride) {
    size_t quad = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (quad >= n_quads) return;
    bool is_plain = quad < n_plain;
    int4 at = table[is_plain ? quad : 2 * quad - n_plain], next = at;
    if (!is_plain) next = table[2 * quad - n_plain + 1];
    int first = (int)blockIdx.y * ROWS;
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        if (first + k >= n_rows) break;
        const float *row = params + (first + k) * params_stride;
        float *to = packed + (first + k) * packed_stride + 4 * quad;
        float4 v[2] = {packed_quad(row, at)};
        if (is_plain) {
            store_four(to, v[0]);
        } else {
            v[1] = packed_quad(row, next);
            store_eight((bf16 *)to, v);
        }
    }
}

ct_status ct_cuda_pack_table(cudaStream_t stream, const cuda_pack *packs_dev, int n_packs,
                             size_t n_plain, size_t n_floats, int *table_dev) {
    size_t n = 2 * n_floats - n_plain;
    CT_CUDA_TRY(cudaMemsetAsync(table_dev, 0xff, n * sizeof *table_dev, stream));
    if (n_packs == 0) return CT_OK;
    table_kernel<<<dim3(64, (unsigned)n_packs), THREADS, 0, stream>>>(packs_dev, n_plain,
                                                                      table_dev);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

ct_status ct_cuda_pack(const cuda_run *run, const int *table_dev, size_t n_plain, int n_rows,
                       float *packed_dev) {
    size_t n_quads = run->packed_stride / 4;
    if (n_quads == 0) return CT_OK;
    dim3 grid((unsigned)((n_quads + THREADS - 1) / THREADS), (unsigned)(n_rows + ROWS - 1) / ROWS);
    pack_kernel<<<grid, THREADS, 0, run->stream>>>((const int4 *)table_dev, n_plain / 4, n_quads,
                                                   n_rows, run->params_dev, run->params_stride,
                                                   packed_dev, run->packed_stride);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}
