/* Top-k rows, and the places of top-k8 rows (compress/top_k.c). The k-th largest magnitude is found by
 * three histograms of parts of its bits, most significant first; then pieces of a row count what they
 * send, the counts are summed up, and every value knows its place. Integers alone are added by atomics:
 * the order does not matter.
 * Grid: x over pieces of a row (sums of a row: one block), y = row. 8 bytes a value and pass. */
#include "backend/cuda/pack_sent.cuh"

#define THREADS 256
#define PIECE   4096 /* values of a block */
#define RADIX   2048
#define PASSES  3

/* The scratch of a row. */
typedef struct selection {
    uint32_t counts[PASSES][RADIX];
    uint32_t key;       /* upper bits of the k-th largest so far */
    uint32_t left;      /* its number among the keys with these bits; at last: equal ones to send */
    uint32_t pieces[1]; /* [2 n_pieces] larger and equal keys before every piece */
} selection;

static __host__ __device__ size_t n_pieces(const ct_compressor &how) {
    return (how.n + PIECE - 1) / PIECE;
}

static __device__ __forceinline__ selection *selection_of(const cuda_parcel &p) {
    return (selection *)(p.scratch_dev + blockIdx.y * p.scratch_stride);
}

static __device__ __forceinline__ int shift_of(int pass) {
    return pass == 0 ? 21 : pass == 1 ? 10 : 0;
}

static __device__ __forceinline__ uint32_t mask_of(int pass) {
    return pass < 2 ? 2047u : 1023u;
}

static __device__ __forceinline__ uint32_t key_of(float d) {
    return __float_as_uint(d) & 0x7fffffffu;
}

/* ---- the k-th largest ---- */

static __global__ void count_parts(cuda_parcel p, int pass) {
    __shared__ uint32_t counts[RADIX];
    const packed_row r = row_at(p, blockIdx.y);
    selection *s = selection_of(p);
    uint32_t prefix = pass > 0 ? s->key : 0, mask = mask_of(pass);
    int shift = shift_of(pass);
    for (int b = (int)threadIdx.x; b < RADIX; b += THREADS) counts[b] = 0;
    __syncthreads();
    for (size_t j = threadIdx.x; j < PIECE; j += THREADS) {
        size_t i = (size_t)blockIdx.x * PIECE + j;
        if (i >= p.how.n) break;
        uint32_t key = key_of(difference(r, false, i));
        uint32_t upper = pass == 0 ? 0 : key >> shift_of(pass - 1);
        if (upper == prefix) atomicAdd(&counts[key >> shift & mask], 1u);
    }
    __syncthreads();
    for (int b = (int)threadIdx.x; b < RADIX; b += THREADS)
        if (counts[b] > 0) atomicAdd(&s->counts[pass][b], counts[b]);
}

/* Sum of the threads before, and of all in *total. */
static __device__ uint32_t sum_before(uint32_t mine, uint32_t *total) {
    __shared__ uint32_t warps[THREADS / LANES];
    int lane = (int)threadIdx.x % LANES, warp = (int)threadIdx.x / LANES;
    uint32_t sum = mine, before = 0, all = 0;
#pragma unroll
    for (int k = 1; k < LANES; k *= 2) {
        uint32_t other = __shfl_up_sync(0xffffffffu, sum, k);
        if (lane >= k) sum += other;
    }
    __syncthreads(); /* the sums before may still be read */
    if (lane == LANES - 1) warps[warp] = sum;
    __syncthreads();
    for (int w = 0; w < THREADS / LANES; w++) {
        if (w < warp) before += warps[w];
        all += warps[w];
    }
    *total = all;
    return before + sum - mine;
}

/* Grid: x = 1. */
static __global__ void choose_part(cuda_parcel p, int pass) {
    const int each = RADIX / THREADS;
    selection *s = selection_of(p);
    uint32_t left = pass > 0 ? s->left : (uint32_t)p.how.k, key = pass > 0 ? s->key : 0;
    uint32_t sum = 0, total;
    int last = RADIX - 1 - (int)threadIdx.x * each; /* from the largest part down */
    for (int b = 0; b < each; b++) sum += s->counts[pass][last - b];
    uint32_t before = sum_before(sum, &total);
    if (before >= left || before + sum < left) return;
    while (before + s->counts[pass][last] < left) before += s->counts[pass][last--];
    s->key = key << (pass < 2 ? 11 : 10) | (uint32_t)last;
    s->left = left - before;
}

/* ---- places ---- */

static __global__ void count_sent(cuda_parcel p) {
    const packed_row r = row_at(p, blockIdx.y);
    selection *s = selection_of(p);
    uint32_t least = s->key, mine = 0, total; /* equal keys in the upper half: 2^12 at most */
    for (size_t j = threadIdx.x; j < PIECE; j += THREADS) {
        size_t i = (size_t)blockIdx.x * PIECE + j;
        if (i >= p.how.n) break;
        uint32_t key = key_of(difference(r, false, i));
        mine += (uint32_t)(key > least) | (uint32_t)(key == least) << 16;
    }
    (void)sum_before(mine, &total);
    if (threadIdx.x > 0) return;
    s->pieces[2 * blockIdx.x] = total & 0xffffu;
    s->pieces[2 * blockIdx.x + 1] = total >> 16;
}

/* Counts become sums of the pieces before. Grid: x = 1. */
static __global__ void sum_pieces(cuda_parcel p) {
    selection *s = selection_of(p);
    uint32_t n_larger = 0, n_equal = 0;
    for (size_t first = 0; first < n_pieces(p.how); first += THREADS) {
        size_t k = first + threadIdx.x;
        bool is_there = k < n_pieces(p.how);
        uint32_t totals[2];
        uint32_t larger = sum_before(is_there ? s->pieces[2 * k] : 0, &totals[0]);
        uint32_t equal = sum_before(is_there ? s->pieces[2 * k + 1] : 0, &totals[1]);
        if (is_there) s->pieces[2 * k] = n_larger + larger;
        if (is_there) s->pieces[2 * k + 1] = n_equal + equal;
        n_larger += totals[0];
        n_equal += totals[1];
    }
}

static __device__ __forceinline__ size_t n_low_words(const ct_compressor &how) {
    return (how.k * (size_t)how.low_bits + 31) / 32;
}

/* Value j of those sent is that of place i. */
static __device__ void put(const cuda_parcel &p, const packed_row &r, size_t j, size_t i, float d) {
    uint32_t *low = r.packed + n_value_words(p.how), *high = low + n_low_words(p.how);
    size_t bit = j * (size_t)p.how.low_bits, top = (i >> p.how.low_bits) + j;
    uint64_t bits = (uint64_t)(i & (((size_t)1 << p.how.low_bits) - 1)) << bit % 32;
    if ((uint32_t)bits != 0) atomicOr(&low[bit / 32], (uint32_t)bits);
    if (bits >> 32 != 0) atomicOr(&low[bit / 32 + 1], (uint32_t)(bits >> 32));
    atomicOr(&high[top / 32], 1u << top % 32);
    if (is_rounded(p.how)) {
        sent_values(p)[j] = d;
        sent_places(p)[j] = (uint32_t)i;
        return;
    }
    r.packed[j] = __float_as_uint(d);
    add_known(r, false, i, d);
}

static __global__ void send(cuda_parcel p) {
    const packed_row r = row_at(p, blockIdx.y);
    const selection *s = selection_of(p);
    uint32_t least = s->key, n_wanted = s->left;
    uint32_t larger = s->pieces[2 * blockIdx.x], equal = s->pieces[2 * blockIdx.x + 1];
    for (size_t first = 0; first < PIECE; first += THREADS) {
        size_t i = (size_t)blockIdx.x * PIECE + first + threadIdx.x;
        float d = i < p.how.n ? difference(r, false, i) : 0;
        uint32_t key = key_of(d), total;
        bool is_larger = i < p.how.n && key > least, is_equal = i < p.how.n && key == least;
        uint32_t before = sum_before((uint32_t)is_larger | (uint32_t)is_equal << 16, &total);
        uint32_t my_larger = larger + (before & 0xffffu), my_equal = equal + (before >> 16);
        if (is_larger || (is_equal && my_equal < n_wanted))
            put(p, r, my_larger + (my_equal < n_wanted ? my_equal : n_wanted), i, d);
        larger += total & 0xffffu;
        equal += total >> 16;
    }
}

/* ---- unpacking ---- */

static __device__ size_t low_bits_of(const uint32_t *low, size_t j, int n_bits) {
    size_t bit = j * (size_t)n_bits;
    if (n_bits == 0) return 0;
    uint64_t bits = low[bit / 32];
    if (bit % 32 + (size_t)n_bits > 32) bits |= (uint64_t)low[bit / 32 + 1] << 32;
    return (size_t)(bits >> bit % 32 & (((uint64_t)1 << n_bits) - 1));
}

static __device__ float value_at(const ct_compressor &how, const packed_row &r, size_t j) {
    if (!is_rounded(how)) return __uint_as_float(r.packed[j]);
    const uint8_t *codes = (const uint8_t *)(r.packed + n_sent_buckets(how));
    return __fmul_rn((float)((int)codes[j] - CODE_TOP), __uint_as_float(r.packed[j / CT_BUCKET]));
}

/* Grid: x = 1. */
static __global__ void unpack_top_k(cuda_parcel p) {
    const ct_compressor &how = p.how;
    const packed_row r = row_at(p, blockIdx.y);
    const uint32_t *low = r.packed + n_value_words(how), *high = low + n_low_words(how);
    size_t n_words = (how.k + (how.n >> how.low_bits) + 1 + 31) / 32;
    uint32_t n_before = 0, total;
    for (size_t first = 0; first < n_words; first += THREADS) {
        size_t w = first + threadIdx.x;
        uint32_t word = w < n_words ? high[w] : 0;
        size_t j = n_before + sum_before((uint32_t)__popc(word), &total);
        for (; word != 0; word &= word - 1, j++) {
            size_t bit = 32 * w + (size_t)__ffs((int)word) - 1;
            size_t i = (bit - j) << how.low_bits | low_bits_of(low, j, how.low_bits);
            if (j < how.k && i < how.n) add_known(r, false, i, value_at(how, r, j));
        }
        n_before += total;
    }
}

/* ---- launches ---- */

static ct_status pack(const cuda_parcel *p) {
    dim3 pieces((unsigned)n_pieces(p->how), (unsigned)p->n_rows), rows(1, (unsigned)p->n_rows);
    size_t n_places = p->how.n_bytes - n_value_words(p->how) * sizeof(uint32_t);
    CT_CUDA_TRY(cudaMemset2DAsync(p->scratch_dev, p->scratch_stride * sizeof(uint32_t), 0,
                                  PASSES * RADIX * sizeof(uint32_t), (size_t)p->n_rows, p->stream));
    CT_CUDA_TRY(cudaMemset2DAsync(p->packed_dev + n_value_words(p->how),
                                  p->packed_stride * sizeof(float), 0, n_places, (size_t)p->n_rows,
                                  p->stream));
    for (int pass = 0; pass < PASSES; pass++) {
        count_parts<<<pieces, THREADS, 0, p->stream>>>(*p, pass);
        CT_CUDA_LAUNCHED();
        choose_part<<<rows, THREADS, 0, p->stream>>>(*p, pass);
        CT_CUDA_LAUNCHED();
    }
    count_sent<<<pieces, THREADS, 0, p->stream>>>(*p);
    CT_CUDA_LAUNCHED();
    sum_pieces<<<rows, THREADS, 0, p->stream>>>(*p);
    CT_CUDA_LAUNCHED();
    send<<<pieces, THREADS, 0, p->stream>>>(*p);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

extern "C" size_t ct_cuda_top_k_words(const ct_compressor *how) {
    size_t n_selection = sizeof(selection) / sizeof(uint32_t) + 2 * n_pieces(*how);
    return n_selection + (is_rounded(*how) ? 2 * how->k : 0);
}

extern "C" ct_status ct_cuda_move_top_k(const cuda_parcel *p) {
    if (p->x_dev != NULL) return pack(p);
    unpack_top_k<<<dim3(1, (unsigned)p->n_rows), THREADS, 0, p->stream>>>(*p);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}
