/* Low-rank rows (compress/low_rank.c): of every matrix D = x - known [a x b] of a model
 *   P = D V [a x r], its columns made orthonormal,  Q = D^T P [b x r],  known += P Q^T
 * in the order of the host's sums: V is drawn; a warp makes a row of P, another one all columns
 * orthonormal; a thread makes one column's part of Q. Matrices of rank 0 are sent as they are.
 * Grid: x over tiles of matrices (cuda_matrix.tiles), or over matrices, y = row.
 * 16 bytes a value for every RANKS columns of P and Q, and 8 bytes; 6 r flops a value.
 * Limits: a matrix has less than 2^32 values. */
#include "backend/cuda/pack_rows.cuh"

#define WARPS   4
#define THREADS (WARPS * LANES)
#define RANKS   8             /* columns of P or Q that a warp or a thread sums up at once */
#define AHEAD   8             /* values of D that it asks for before it needs them */
#define VALUES  (4 * THREADS) /* of a block: known */
#define LOST    1e-5          /* as in compress/low_rank.c */

/* A block's part of a matrix. */
typedef struct tile {
    cuda_matrix m;
    unsigned number;
} tile;

/* The matrix is the last one with no more blocks before it than before this one. */
static __device__ __forceinline__ tile tile_at(const cuda_parcel &p, cuda_tiling tiling) {
    unsigned low = 0, high = p.n_matrices;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (p.matrices_dev[middle].tiles[tiling] <= blockIdx.x)
            low = middle;
        else
            high = middle;
    }
    return {p.matrices_dev[low], blockIdx.x - p.matrices_dev[low].tiles[tiling]};
}

/* The columns of P and Q that a tile has a part in. */
typedef struct ranks {
    unsigned first;
    int n;
} ranks;

static __device__ __forceinline__ ranks ranks_of(const cuda_matrix &m, unsigned group) {
    unsigned first = group * RANKS, left = m.rank - first;
    return {first, (int)(left < RANKS ? left : RANKS)};
}

static __device__ __forceinline__ float *p_of(const packed_row &r, const cuda_matrix &m,
                                              unsigned column) {
    return (float *)r.packed + m.packed + (size_t)column * m.a;
}

static __device__ __forceinline__ float *q_of(const packed_row &r, const cuda_matrix &m,
                                              unsigned column) {
    return p_of(r, m, m.rank) + (size_t)column * m.b;
}

/* ---- V ---- */

/* Every step is exact. */
static __global__ void draw(cuda_parcel p) {
    const tile t = tile_at(p, CUDA_TILES_OF_DRAWS);
    size_t i = (size_t)t.number * THREADS + threadIdx.x;
    if (i >= (size_t)t.m.rank * t.m.b) return;
    size_t at = p.how.k * t.m.first + i;
    uint32_t word = random_word_of(p.keys_dev[blockIdx.y], (uint32_t)(at / 8), at % 8 / 2);
    float bits = (float)(int)(word >> 16 * (at % 2) & 0xffffu);
    p.scratch_dev[blockIdx.y * p.scratch_stride + t.m.drawn + i] =
        __float_as_uint((bits + 0.5f) * 0x1p-15f - 1);
}

/* sums[c] += d y[c]: of the n columns; others repeat the first, so that nothing branches. */
static __device__ __forceinline__ void add_products(float d, const float *y, size_t stride, int n,
                                                    float sums[RANKS]) {
#pragma unroll
    for (int c = 0; c < RANKS; c++)
        sums[c] = __fadd_rn(sums[c], __fmul_rn(d, y[(c < n ? c : 0) * stride]));
}

/* ---- P ---- */

static __global__ void times(cuda_parcel p) {
    const tile t = tile_at(p, CUDA_TILES_OF_ROWS);
    const cuda_matrix &m = t.m;
    const unsigned n_tiles = (m.a + WARPS - 1) / WARPS, lane = threadIdx.x % LANES;
    const unsigned i = t.number % n_tiles * WARPS + threadIdx.x / LANES;
    if (i >= m.a) return;
    const ranks k = ranks_of(m, t.number / n_tiles);
    const packed_row r = row_at(p, blockIdx.y);
    const float *v = (const float *)p.scratch_dev + blockIdx.y * p.scratch_stride + m.drawn +
                     (size_t)k.first * m.b;
    const size_t first = m.first + (size_t)i * m.b;
    float sums[RANKS] = {0};
    for (unsigned begin = lane; begin < m.b; begin += AHEAD * LANES) {
        float d[AHEAD];
#pragma unroll
        for (unsigned e = 0; e < AHEAD; e++)
            d[e] = begin + e * LANES < m.b ? difference(r, false, first + begin + e * LANES) : 0;
#pragma unroll
        for (unsigned e = 0; e < AHEAD; e++)
            if (begin + e * LANES < m.b) add_products(d[e], v + begin + e * LANES, m.b, k.n, sums);
    }
#pragma unroll
    for (int c = 0; c < RANKS; c++) {
        if (c >= k.n) continue; /* for the whole warp */
        float sum = lanes_sum(sums[c]);
        if (lane == 0) p_of(r, m, k.first + (unsigned)c)[i] = sum;
    }
}

/* The host's product(). */
static __device__ double product(const float *x, const float *y, unsigned n) {
    double sum = 0;
    for (unsigned i = threadIdx.x; i < n; i += LANES)
        sum = __dadd_rn(sum, __dmul_rn((double)x[i], (double)y[i]));
#pragma unroll
    for (int width = LANES / 2; width > 0; width /= 2)
        sum = __dadd_rn(sum, __shfl_down_sync(0xffffffffu, sum, width));
    return __shfl_sync(0xffffffffu, sum, 0);
}

/* A lane reads and writes every 32nd value of all columns alone. */
static __device__ void copy_columns(const float *from, float *to, const cuda_matrix &m) {
    for (unsigned k = 0; k < m.rank; k++)
        for (unsigned i = threadIdx.x; i < m.a; i += LANES) to[k * m.a + i] = from[k * m.a + i];
}

/* Grid: x over matrices, one warp. Columns are in shared memory where it has `room` for them. */
static __global__ void orthonormalize(cuda_parcel p, size_t room) {
    extern __shared__ float shared[];
    const cuda_matrix m = p.matrices_dev[blockIdx.x];
    const packed_row r = row_at(p, blockIdx.y);
    if (m.rank == 0) return;
    const bool fits = (size_t)m.rank * m.a <= room;
    float *own = p_of(r, m, 0), *columns = fits ? shared : own;
    if (fits) copy_columns(own, shared, m);
    for (unsigned k = 0; k < m.rank; k++) {
        float *column = columns + (size_t)k * m.a;
        const double before = __dsqrt_rn(product(column, column, m.a));
        for (unsigned s = 0; s < 2 * k; s++) {
            const float *other = columns + (size_t)(s % k) * m.a;
            const double part = product(column, other, m.a);
            for (unsigned i = threadIdx.x; i < m.a; i += LANES)
                column[i] = __fsub_rn(column[i], (float)__dmul_rn(part, (double)other[i]));
        }
        const double left = __dsqrt_rn(product(column, column, m.a));
        const double scale = left > __dmul_rn(LOST, before) ? __ddiv_rn(1.0, left) : 0;
        for (unsigned i = threadIdx.x; i < m.a; i += LANES)
            column[i] = (float)__dmul_rn(scale, (double)column[i]);
    }
    if (fits) copy_columns(shared, own, m);
}

/* ---- Q ---- */

static __global__ void times_back(cuda_parcel p) {
    const tile t = tile_at(p, CUDA_TILES_OF_COLUMNS);
    const cuda_matrix &m = t.m;
    const unsigned n_tiles = (m.b + THREADS - 1) / THREADS;
    const unsigned j = t.number % n_tiles * THREADS + threadIdx.x;
    if (j >= m.b) return;
    const ranks k = ranks_of(m, t.number / n_tiles);
    const packed_row r = row_at(p, blockIdx.y);
    const float *factors = p_of(r, m, k.first);
    float sums[RANKS] = {0};
    for (unsigned begin = 0; begin < m.a; begin += AHEAD) {
        float d[AHEAD];
#pragma unroll
        for (unsigned e = 0; e < AHEAD; e++)
            d[e] =
                begin + e < m.a ? difference(r, false, m.first + (size_t)(begin + e) * m.b + j) : 0;
#pragma unroll
        for (unsigned e = 0; e < AHEAD; e++)
            if (begin + e < m.a) add_products(d[e], factors + begin + e, m.a, k.n, sums);
    }
#pragma unroll
    for (int c = 0; c < RANKS; c++)
        if (c < k.n) q_of(r, m, k.first + (unsigned)c)[j] = sums[c];
}

/* ---- known ---- */

static __device__ void add_product(const packed_row &r, const cuda_matrix &m, unsigned at) {
    const unsigned i = at / m.b, j = at - i * m.b;
    float sum = r.known[m.first + at];
    for (unsigned k = 0; k < m.rank; k++)
        sum = __fadd_rn(sum, __fmul_rn(p_of(r, m, k)[i], q_of(r, m, k)[j]));
    r.known[m.first + at] = sum;
}

static __global__ void add(cuda_parcel p) {
    const tile t = tile_at(p, CUDA_TILES_OF_VALUES);
    const packed_row r = row_at(p, blockIdx.y);
    const size_t n = (size_t)t.m.a * t.m.b;
    for (unsigned k = threadIdx.x; k < VALUES; k += THREADS) {
        size_t at = (size_t)t.number * VALUES + k;
        if (at >= n) return;
        if (t.m.rank > 0) {
            add_product(r, t.m, (unsigned)at);
            continue;
        }
        uint32_t *word = r.packed + t.m.packed + at;
        if (p.x_dev != NULL) *word = __float_as_uint(difference(r, false, t.m.first + at));
        add_known(r, false, t.m.first + at, __uint_as_float(*word));
    }
}

/* ---- launches ---- */

extern "C" size_t ct_cuda_low_rank_words(const ct_compressor *how) {
    size_t n = 0;
    for (int t = 0; t < ct_low_rank_count(how); t++) {
        ct_matrix m = ct_low_rank_matrix(how, t);
        n += m.is_whole ? 0 : how->k * m.b;
    }
    return n;
}

static unsigned tiles(size_t n, size_t each) {
    return (unsigned)((n + each - 1) / each);
}

extern "C" void ct_cuda_list_matrices(const ct_compressor *how, cuda_matrix *matrices) {
    cuda_matrix sum = {0};
    int n = ct_low_rank_count(how);
    for (int t = 0; t < n; t++) {
        ct_matrix m = ct_low_rank_matrix(how, t);
        size_t rank = m.is_whole ? 0 : how->k;
        sum.first = m.first;
        sum.a = (unsigned)m.a;
        sum.b = (unsigned)m.b;
        sum.rank = (unsigned)rank;
        matrices[t] = sum;
        sum.packed += ct_low_rank_floats(how, &m);
        sum.drawn += rank * m.b;
        sum.tiles[CUDA_TILES_OF_DRAWS] += tiles(rank * m.b, THREADS);
        sum.tiles[CUDA_TILES_OF_ROWS] += tiles(rank, RANKS) * tiles(m.a, WARPS);
        sum.tiles[CUDA_TILES_OF_COLUMNS] += tiles(rank, RANKS) * tiles(m.b, THREADS);
        sum.tiles[CUDA_TILES_OF_VALUES] += tiles(m.a * m.b, VALUES);
    }
    matrices[n] = sum;
}

/* Of the columns of P of any matrix, as far as every GPU's blocks have room for them. */
static size_t shared_floats(const ct_compressor *how) {
    const size_t most = 48 * 1024 / sizeof(float);
    size_t n = 0;
    for (int t = 0; t < ct_low_rank_count(how); t++) {
        ct_matrix m = ct_low_rank_matrix(how, t);
        if (!m.is_whole && how->k * m.a <= most && how->k * m.a > n) n = how->k * m.a;
    }
    return n;
}

static ct_status launch_orthonormalize(const cuda_parcel *p) {
    const size_t room = shared_floats(&p->how);
    start_kernel(orthonormalize, dim3(p->n_matrices, (unsigned)p->n_rows), LANES,
                 room * sizeof(float), p->stream, *p, room);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

static ct_status launch(const cuda_parcel *p, void (*kernel)(cuda_parcel), unsigned n,
                        unsigned n_threads) {
    if (n == 0) return CT_OK;
    start_kernel(kernel, dim3(n, (unsigned)p->n_rows), n_threads, 0, p->stream, *p);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

extern "C" ct_status ct_cuda_move_low_rank(const cuda_parcel *p) {
    bool has_factors = p->x_dev != NULL && p->tiles[CUDA_TILES_OF_DRAWS] > 0;
    if (has_factors) {
        CT_TRY(launch(p, draw, p->tiles[CUDA_TILES_OF_DRAWS], THREADS));
        CT_TRY(launch(p, times, p->tiles[CUDA_TILES_OF_ROWS], THREADS));
        CT_TRY(launch_orthonormalize(p));
        CT_TRY(launch(p, times_back, p->tiles[CUDA_TILES_OF_COLUMNS], THREADS));
    }
    return launch(p, add, p->tiles[CUDA_TILES_OF_VALUES], THREADS);
}
