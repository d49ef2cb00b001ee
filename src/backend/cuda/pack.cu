/* Weights in the order the convolutions read them. What products on the tensor cores read,
 * fragments of them, comes layer by layer: a block takes 16 output of 16 input channels of one
 * layer, of 128 where it is 1x1, into shared memory and writes its fragments for both directions.
 * Grid: x over such tiles, y = parameter row. A weight is read once, 4 bytes, in line, and written twice, 4 or 2 bytes each.
 * The rest comes by a table that is filled once a plan: packed[e] = row[table[e]]. Grid: x over
 * quads of the packed floats, y over groups of 4 parameter rows. 8 bytes an element and 1 of the
 * table; the reads are scattered inside one layer of one row, which the caches hold. */
#include "backend/cuda/device.cuh"
#include "backend/cuda/element.cuh"

enum { THREADS = 256, ROWS = 4, SIDE = 16, MAX_TAPS = 9 };
enum { POINTS = 8 }; /* tiles of input channels of a block, of layers with one tap */

/* Element e of a packed layer comes from weight [o][i][t]. */
static __device__ void origin(const cuda_pack *p, unsigned e, int *o, int *i, int *t) {
    int n_fast = p->kind == CUDA_PACK_FORWARD ? p->co : p->ci, fast = (int)(e % (unsigned)n_fast);
    int rest = (int)(e / (unsigned)n_fast);
    if (p->kind == CUDA_PACK_LINEAR) {
        *o = rest / p->taps, *t = rest % p->taps, *i = fast;
        return;
    }
    int n_slow = p->kind == CUDA_PACK_FORWARD ? p->ci : p->co;
    *t = rest / n_slow;
    *o = p->kind == CUDA_PACK_FORWARD ? fast : rest % n_slow;
    *i = p->kind == CUDA_PACK_FORWARD ? rest % n_slow : fast;
}

/* table[e]: the weight's place in a parameter row; negative for a zero. Grid: x over blocks of a
 * layer's elements, y = layer. */
static __global__ void table_kernel(const cuda_pack *packs, int *table) {
    const cuda_pack *p = &packs[blockIdx.y];
    size_t count = (size_t)p->co * p->ci * p->taps;
    for (size_t e = blockIdx.x * THREADS + threadIdx.x; e < count; e += gridDim.x * THREADS) {
        int o, i, t;
        origin(p, (unsigned)e, &o, &i, &t);
        table[p->to + e] = (int)(p->from + ((size_t)o * p->ci + i) * p->taps + t);
    }
}

static __device__ __forceinline__ float packed_value(const float *row, int at) {
    return at < 0 ? 0.0f : row[at];
}

static __global__ void __launch_bounds__(THREADS)
    pack_kernel(const int4 *table, size_t n_quads, int n_rows, const float *params,
                size_t params_stride, float *packed, size_t packed_stride) {
    size_t quad = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (quad >= n_quads) return;
    int4 at = table[quad];
    int first = (int)blockIdx.y * ROWS;
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        if (first + k >= n_rows) break;
        const float *row = params + (first + k) * params_stride;
        store_four(packed + (first + k) * packed_stride + 4 * quad,
                   make_float4(packed_value(row, at.x), packed_value(row, at.y),
                               packed_value(row, at.z), packed_value(row, at.w)));
    }
}

/* Weights of a block in shared memory: N taps of 16 x 16 channels, or, of one tap, N tiles of input
 * channels. */
template <int N, bool IS_POINT> struct corner {
    enum { PITCH = SIDE * N + 1 };
    float at[SIDE * PITCH];

    /* With k and n of a product, 0 .. 15 each: forward k is the input channel, backward n. */
    __device__ __forceinline__ float get(bool is_backward, int k, int n, int t) const {
        int o = is_backward ? k : n, i = is_backward ? n : k;
        return at[o * PITCH + (IS_POINT ? t * SIDE + i : i * N + t)];
    }
};

/* Taps t0 .. of the block's channels, in line as memory has them; zeros where the layer ends. */
template <int N, bool IS_POINT>
static __device__ __forceinline__ void load_corner(const cuda_fragments &f, const float *weights,
                                                   int o0, int i0, int t0,
                                                   corner<N, IS_POINT> &tile) {
    float v[N];
#pragma unroll
    for (int k = 0; k < N; k++) {
        int e = (int)threadIdx.x + k * THREADS, o = e / (SIDE * N), rest = e % (SIDE * N);
        int i = IS_POINT ? rest : rest / N, t = IS_POINT ? 0 : t0 + rest % N;
        bool is_there = o0 + o < f.co && i0 + i < f.ci && t < f.taps;
        v[k] = is_there ? weights[((size_t)(o0 + o) * f.ci + i0 + i) * f.taps + t] : 0.0f;
    }
#pragma unroll
    for (int k = 0; k < N; k++) {
        int e = (int)threadIdx.x + k * THREADS, o = e / (SIDE * N);
        tile.at[o * corner<N, IS_POINT>::PITCH + e % (SIDE * N)] = v[k];
    }
}

/* A lane's quad of words of the fragments of mma m16n8k16 (bf16), or of the first or second step of
 * m16n8k8 (tf32): of two tiles of columns, the upper and the lower half of k. Column c of tile j of
 * a pair is channel 4 (c / 2) + 2 j + c % 2. */
template <typename C>
static __device__ __forceinline__ uint4 quad_bf16(const C &tile, bool is_backward, int t,
                                                  int lane) {
    uint32_t words[4];
#pragma unroll
    for (int q = 0; q < 4; q++) {
        int k = (lane & 3) * 2 + (q & 1) * 8;
        int n = (lane >> 3) * 4 + (q >> 1) * 2 + (lane >> 2 & 1);
        words[q] = pack_bf16(tile.get(is_backward, k, n, t), tile.get(is_backward, k + 1, n, t));
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

/* Eight neighbours of k in a row of a block. */
template <typename C>
static __device__ __forceinline__ uint4 unit_of(const C &tile, bool is_backward, int t, int k,
                                                int n) {
    uint32_t words[4];
#pragma unroll
    for (int q = 0; q < 4; q++)
        words[q] = pack_bf16(tile.get(is_backward, k + 2 * q, n, t),
                             tile.get(is_backward, k + 2 * q + 1, n, t));
    return make_uint4(words[0], words[1], words[2], words[3]);
}

template <typename C>
static __device__ __forceinline__ uint4 quad_tf32(const C &tile, bool is_backward, int t, int step,
                                                  int lane) {
    uint32_t words[4];
#pragma unroll
    for (int q = 0; q < 4; q++) {
        int k = step * 8 + (lane & 3) + (q & 1) * 4;
        int n = (lane >> 3) * 4 + (q >> 1) * 2 + (lane >> 2 & 1);
        words[q] = __float_as_uint(to_tf32(tile.get(is_backward, k, n, t)));
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

/* Writes one direction's fragments of the weights in shared memory. */
template <int N, bool IS_POINT>
static __device__ __forceinline__ void write_corner(const cuda_fragments &f, bool is_backward,
                                                    int o0, int i0, int t0,
                                                    const corner<N, IS_POINT> &tile, float *to) {
    bool is_bf16 = f.element == CUDA_BF16;
    int n_steps = is_bf16 ? 1 : 2, by = 16 / n_steps; /* of this block's k */
    int deep = is_backward ? f.co : f.ci, wide = is_backward ? f.ci : f.co;
    int all_steps = (deep + by - 1) / by, n_pairs = (wide + 15) / 16;
    for (int e = (int)threadIdx.x; e < N * n_steps * 32; e += THREADS) {
        int lane = e & 31, t = e / 32 / n_steps, step = e / 32 % n_steps;
        int i1 = IS_POINT ? i0 + t * SIDE : i0, tap = IS_POINT ? 0 : t0 + t;
        int first = (is_backward ? o0 : i1) / by, pair = (is_backward ? i1 : o0) / 16;
        if (tap >= f.taps || i1 >= f.ci || first + step >= all_steps) continue;
        uint4 quad = is_bf16 ? quad_bf16(tile, is_backward, t, lane)
                             : quad_tf32(tile, is_backward, t, step, lane);
        size_t at = ((size_t)tap * all_steps + first + step) * n_pairs + pair;
        ((uint4 *)to)[at * 32 + lane] = quad;
    }
}

/* The same as blocks of 64 x 64. */
template <int N, bool IS_POINT>
static __device__ __forceinline__ void write_blocks(const cuda_fragments &f, bool is_backward,
                                                    int o0, int i0, int t0,
                                                    const corner<N, IS_POINT> &tile, float *to) {
    int n_deep = (is_backward ? f.co : f.ci) / 64, n_wide = (is_backward ? f.ci : f.co) / 64;
    for (int e = (int)threadIdx.x; e < N * 32; e += THREADS) {
        int half = e & 1, t = e / 32;
        int i1 = IS_POINT ? i0 + t * SIDE : i0, tap = IS_POINT ? 0 : t0 + t;
        int k0 = is_backward ? o0 : i1, n0 = is_backward ? i1 : o0;
        int row = n0 % 64 + (e >> 1 & 15);
        if (tap >= f.taps || i1 >= f.ci) continue;
        size_t block = ((size_t)tap * n_deep + k0 / 64) * n_wide + n0 / 64;
        int unit = (k0 % 64 / 8 + half) ^ (row & 7);
        ((uint4 *)to)[block * 512 + row * 8 + unit] =
            unit_of(tile, is_backward, t, half * 8, e >> 1 & 15);
    }
}

/* The same as cores, of 3x3 for products of warp groups: [column of taps][k / 8][row of taps, last
 * first][n], each 8 k in line, and n of 16 in the order of fragments. Backward the taps are turned
 * round, so that it is the same product. */
template <int N, bool IS_POINT>
static __device__ __forceinline__ void write_cores(const cuda_fragments &f, bool is_backward,
                                                   int o0, int i0, int t0,
                                                   const corner<N, IS_POINT> &tile, float *to) {
    int deep = is_backward ? f.co : f.ci, wide = is_backward ? f.ci : f.co;
    int n_eights = (deep + 15) / 16 * 2, all_wide = (wide + 15) / 16 * 16;
    for (int e = (int)threadIdx.x; e < N * 32; e += THREADS) {
        int half = e & 1, row = e >> 1 & 15, t = e / 32, tap = is_backward ? 8 - t0 - t : t0 + t;
        int k0 = is_backward ? o0 : i0, n0 = is_backward ? i0 : o0;
        int n = (row >> 1 & 3) * 4 + (row >> 3) * 2 + (row & 1);
        if (tap < 0 || tap >= 9) continue;
        int line = ((tap % 3) * n_eights + k0 / 8 + half) * 3 + 2 - tap / 3;
        ((uint4 *)to)[line * all_wide + n0 + row] = unit_of(tile, is_backward, t, half * 8, n);
    }
}

/* The same as rows: two neighbours a thread, and behind a part's last ones zeros. */
template <int N, bool IS_POINT>
static __device__ __forceinline__ void write_rows(const cuda_fragments &f, int o0, int i0,
                                                  const corner<N, IS_POINT> &tile, float *packed) {
    constexpr int PAIRS = SIDE * N / 2;
    const cuda_weight_rows r = f.rows;
    if (r.part == 0) return;
    for (int e = (int)threadIdx.x; e < SIDE * PAIRS; e += THREADS) {
        int o = e / PAIRS, i = e % PAIRS * 2, at = (i0 + i) % r.part;
        if (o0 + o >= f.co || i0 + i >= f.ci) continue;
        int part = (o0 + o) * (f.ci / r.part) + (i0 + i) / r.part;
        uint32_t *pair = (uint32_t *)(packed + r.at) + (part * r.room + at) / 2;
        *pair = pack_bf16(tile.at[o * tile.PITCH + i], tile.at[o * tile.PITCH + i + 1]);
        for (int k = 2; at + 2 == r.part && at + k < r.room; k += 2) pair[k / 2] = 0;
    }
}

template <int N, bool IS_POINT>
static __device__ __forceinline__ void
write_direction(const cuda_fragments &f, bool is_backward, int o0, int i0, int t0,
                const corner<N, IS_POINT> &tile, float *packed) {
    size_t at = is_backward ? f.backward : f.forward;
    if (at == CUDA_NO_PARAM) return;
    if (f.packing[is_backward] == CUDA_PACK_BLOCKS)
        write_blocks(f, is_backward, o0, i0, t0, tile, packed + at);
    else if (f.packing[is_backward] == CUDA_PACK_CORES)
        write_cores(f, is_backward, o0, i0, t0, tile, packed + at);
    else
        write_corner(f, is_backward, o0, i0, t0, tile, packed + at);
}

/* Input channels of a block. */
static __host__ __device__ __forceinline__ int across(const cuda_fragments &f) {
    return f.taps == 1 ? SIDE * POINTS : SIDE;
}

template <int N, bool IS_POINT>
static __device__ __forceinline__ void pack_corner(const cuda_fragments &f, int at,
                                                   const float *row, float *packed) {
    __shared__ corner<N, IS_POINT> tile;
    int n_across = (f.ci + across(f) - 1) / across(f);
    int o0 = at / n_across * SIDE, i0 = at % n_across * across(f);
    for (int t0 = 0; t0 < f.taps; t0 += N) {
        if (t0 > 0) __syncthreads(); /* the taps before are written */
        load_corner(f, row + f.from, o0, i0, t0, tile);
        __syncthreads();
        write_direction(f, false, o0, i0, t0, tile, packed);
        write_direction(f, true, o0, i0, t0, tile, packed);
        if (IS_POINT) write_rows(f, o0, i0, tile, packed);
    }
}

static __global__ void __launch_bounds__(THREADS, 4)
    fragments_kernel(const cuda_fragments *layers, const cuda_pack_tile *tiles, const float *params,
                     size_t params_stride, float *packed, size_t packed_stride) {
    const cuda_pack_tile tile = tiles[blockIdx.x];
    const cuda_fragments f = layers[tile.layer];
    const float *row = params + blockIdx.y * params_stride;
    float *to = packed + blockIdx.y * packed_stride;
    if (f.taps == 1)
        pack_corner<POINTS, true>(f, tile.at, row, to);
    else
        pack_corner<MAX_TAPS, false>(f, tile.at, row, to);
}

int ct_cuda_pack_tiles(const cuda_fragments *f) {
    return (f->co + SIDE - 1) / SIDE * ((f->ci + across(*f) - 1) / across(*f));
}

ct_status ct_cuda_pack_table(cudaStream_t stream, const cuda_pack *packs_dev, int n_packs,
                             size_t n_floats, int *table_dev) {
    CT_CUDA_TRY(cudaMemsetAsync(table_dev, 0xff, n_floats * sizeof *table_dev, stream));
    if (n_packs == 0) return CT_OK;
    start_kernel(table_kernel, dim3(64, (unsigned)n_packs), THREADS, 0, stream, packs_dev,
                 table_dev);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

ct_status ct_cuda_pack(const cuda_run *run, const cuda_packs *packs, int n_rows,
                       float *packed_dev) {
    size_t n_quads = packs->n_plain / 4;
    if (n_quads > 0) {
        dim3 grid((unsigned)((n_quads + THREADS - 1) / THREADS),
                  (unsigned)(n_rows + ROWS - 1) / ROWS);
        CT_TRY(launch_kernel(run, pack_kernel, grid, THREADS, 0, (const int4 *)packs->table_dev,
                             n_quads, n_rows, run->params_dev, run->params_stride, packed_dev,
                             run->packed_stride));
    }
    if (packs->n_tiles == 0) return CT_OK;
    dim3 grid((unsigned)packs->n_tiles, (unsigned)n_rows);
    return launch_kernel(run, fragments_kernel, grid, THREADS, 0, packs->fragments_dev,
                         packs->tiles_dev, run->params_dev, run->params_stride, packed_dev,
                         run->packed_stride);
}
