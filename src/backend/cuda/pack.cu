/* Weights in the order the convolutions read them. Grid: x over blocks of CUDA_PACK_BLOCK packed
 * floats of all layers, y = parameter row. 8 bytes an element; the reads are scattered inside one
 * layer of one row, which the caches hold. */
#include "backend/cuda/device.cuh"

/* Element e of a packed layer comes from weight [o][i][t]; false: it is padding. */
static __device__ bool origin(const cuda_pack *p, unsigned e, int *o, int *i, int *t) {
    bool is_backward = p->kind == CUDA_PACK_BACKWARD || p->kind == CUDA_PACK_TILE_BACKWARD;
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
        int n_pairs = (n_wide + 15) / 16;
        int q = (int)(e & 3), lane = (int)(e >> 2 & 31), pair = (int)(e >> 7) % n_pairs;
        int step = (int)(e >> 7) / n_pairs;
        k = step * 8 + (lane & 3) + (q & 1) * 4;
        /* column c of tile j of a pair is channel 4 (c / 2) + 2 j + c % 2 */
        n = pair * 16 + (lane >> 3) * 4 + (q >> 1) * 2 + (lane >> 2 & 1);
    }
    *t = k / p->depth;
    *o = is_backward ? k % p->depth : n;
    *i = is_backward ? n : k % p->depth;
    return *o < p->co && *i < p->ci;
}

static __global__ void pack_kernel(const cuda_pack *packs, int n_packs, const float *params,
                                   size_t params_stride, float *packed, size_t packed_stride) {
    int low = 0, high = n_packs - 1;
    while (low < high) { /* the last layer that begins at or before this block */
        int middle = (low + high + 1) / 2;
        if (packs[middle].first_block <= (int)blockIdx.x)
            low = middle;
        else
            high = middle - 1;
    }
    const cuda_pack *p = &packs[low];
    const float *w = params + blockIdx.y * params_stride + p->from;
    float *to = packed + blockIdx.y * packed_stride + p->to;
    size_t first = (size_t)((int)blockIdx.x - p->first_block) * CUDA_PACK_BLOCK;
    for (size_t e = first + threadIdx.x; e < first + CUDA_PACK_BLOCK && e < p->count;
         e += blockDim.x) {
        int o, i, t;
        float value =
            origin(p, (unsigned)e, &o, &i, &t) ? w[((size_t)o * p->ci + i) * p->taps + t] : 0.0f;
        to[e] = p->kind >= CUDA_PACK_TILE_FORWARD ? to_tf32(value) : value;
    }
}

ct_status ct_cuda_pack(const cuda_run *run, const cuda_pack *packs_dev, int n_packs, int n_blocks,
                       int n_rows, float *packed_dev) {
    if (n_blocks == 0) return CT_OK;
    dim3 grid((unsigned)n_blocks, (unsigned)n_rows);
    pack_kernel<<<grid, 256, 0, run->stream>>>(packs_dev, n_packs, run->params_dev,
                                               run->params_stride, packed_dev, run->packed_stride);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}
