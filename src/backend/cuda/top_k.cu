/* Top-k rows, and the places of top-k8 rows (compress/top_k.c). The k-th largest magnitude is found by
 * three histograms of parts of its bits, most significant first, the second and the third of those
 * keys alone that share its first part; then pieces of a row know how many values they send, and
 * every value its place. What a kernel has counted, every block of the next one looks through by
 * itself. Integers alone are added by atomics: the order does not matter.
 * Grid: x over pieces of a row, y = row. 24 bytes a value. */
#include "backend/cuda/pack_sent.cuh"

#define THREADS 256
#define PIECE   4096 /* values of a block */
#define RADIX   2048
#define PASSES  3

/* Of a piece's keys. */
typedef struct piece {
    uint32_t larger, equal; /* than the k-th largest, and to it */
    uint32_t n_near;        /* with its first part */
} piece;

/* The scratch of a row; its pieces [n_pieces] and their near keys [n_pieces][PIECE] follow. */
typedef struct selection {
    uint32_t counts[PASSES][RADIX];
    uint32_t key[PASSES];  /* bits of the k-th largest, down to those of this pass */
    uint32_t left[PASSES]; /* its number among the keys with these bits */
} selection;

static __host__ __device__ size_t n_pieces(const ct_compressor &how) {
    return (how.n + PIECE - 1) / PIECE;
}

static __device__ __forceinline__ selection *selection_of(const cuda_parcel &p) {
    return (selection *)(p.scratch_dev + blockIdx.y * p.scratch_stride);
}

static __device__ __forceinline__ piece *pieces_of(const cuda_parcel &p) {
    return (piece *)(selection_of(p) + 1);
}

static __device__ __forceinline__ uint32_t *near_keys(const cuda_parcel &p) {
    return (uint32_t *)(pieces_of(p) + n_pieces(p.how)) + (size_t)blockIdx.x * PIECE;
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

static __device__ __forceinline__ void clear(uint32_t counts[RADIX]) {
    for (int b = (int)threadIdx.x; b < RADIX; b += THREADS) counts[b] = 0;
    __syncthreads();
}

static __device__ __forceinline__ void count(uint32_t counts[RADIX], uint32_t key, int pass) {
    atomicAdd(&counts[key >> shift_of(pass) & mask_of(pass)], 1u);
}

static __device__ __forceinline__ void add_counts(const uint32_t counts[RADIX], uint32_t *sums) {
    __syncthreads();
    for (int b = (int)threadIdx.x; b < RADIX; b += THREADS)
        if (counts[b] > 0) atomicAdd(&sums[b], counts[b]);
}

/* The k-th largest key's bits down to those of a pass that has been counted; the first block writes
 * them down. */
static __device__ uint32_t choose(selection *s, const ct_compressor &how, int pass) {
    __shared__ uint32_t key, left;
    const int each = RADIX / THREADS;
    const uint32_t upper = pass > 0 ? s->key[pass - 1] : 0;
    const uint32_t wanted = pass > 0 ? s->left[pass - 1] : (uint32_t)how.k;
    uint32_t sum = 0, total;
    int last = RADIX - 1 - (int)threadIdx.x * each; /* from the largest part down */
    for (int b = 0; b < each; b++) sum += s->counts[pass][last - b];
    uint32_t before = sum_before(sum, &total);
    if (before < wanted && before + sum >= wanted) {
        while (before + s->counts[pass][last] < wanted) before += s->counts[pass][last--];
        key = upper << (pass < 2 ? 11 : 10) | (uint32_t)last;
        left = wanted - before;
    }
    __syncthreads();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        s->key[pass] = key;
        s->left[pass] = left;
    }
    return key;
}

static __global__ void count_all(cuda_parcel p) {
    __shared__ uint32_t counts[RADIX];
    const packed_row r = row_at(p, blockIdx.y);
    clear(counts);
    for (size_t j = threadIdx.x; j < PIECE; j += THREADS) {
        size_t i = (size_t)blockIdx.x * PIECE + j;
        if (i < p.how.n) count(counts, key_of(difference(r, false, i)), 0);
    }
    add_counts(counts, selection_of(p)->counts[0]);
}

/* Keys with the first part of the k-th largest, in any order. */
static __global__ void find_near(cuda_parcel p) {
    __shared__ uint32_t n_near;
    const packed_row r = row_at(p, blockIdx.y);
    uint32_t *keys = near_keys(p), larger = 0, total;
    if (threadIdx.x == 0) n_near = 0;
    const uint32_t part = choose(selection_of(p), p.how, 0); /* which waits for everyone */
    for (size_t j = threadIdx.x; j < PIECE; j += THREADS) {
        size_t i = (size_t)blockIdx.x * PIECE + j;
        if (i >= p.how.n) break;
        uint32_t key = key_of(difference(r, false, i));
        larger += key >> shift_of(0) > part;
        if (key >> shift_of(0) == part) keys[atomicAdd(&n_near, 1u)] = key;
    }
    (void)sum_before(larger, &total);
    if (threadIdx.x == 0) pieces_of(p)[blockIdx.x] = {total, 0, n_near};
}

/* Their second parts, then the third ones of those that share the second. */
static __global__ void count_near(cuda_parcel p, int pass) {
    __shared__ uint32_t counts[RADIX];
    selection *s = selection_of(p);
    const uint32_t *keys = near_keys(p), n_near = pieces_of(p)[blockIdx.x].n_near;
    const uint32_t upper = pass > 1 ? choose(s, p.how, pass - 1) : s->key[0];
    clear(counts);
    for (uint32_t j = threadIdx.x; j < n_near; j += THREADS)
        if (keys[j] >> shift_of(pass - 1) == upper) count(counts, keys[j], pass);
    add_counts(counts, s->counts[pass]);
}

/* ---- places ---- */

static __global__ void count_sent(cuda_parcel p) {
    piece *own = &pieces_of(p)[blockIdx.x];
    const uint32_t *keys = near_keys(p), n_near = own->n_near;
    const uint32_t least = choose(selection_of(p), p.how, PASSES - 1);
    uint32_t mine = 0, total; /* equal keys in the upper half: 2^12 at most */
    for (uint32_t j = threadIdx.x; j < n_near; j += THREADS)
        mine += (uint32_t)(keys[j] > least) | (uint32_t)(keys[j] == least) << 16;
    (void)sum_before(mine, &total);
    if (threadIdx.x > 0) return;
    own->larger += total & 0xffffu;
    own->equal = total >> 16;
}

/* Larger and equal keys of the pieces before. */
static __device__ void sum_pieces(const piece *pieces, uint32_t *larger, uint32_t *equal) {
    uint32_t mine[2] = {0, 0};
    for (unsigned k = threadIdx.x; k < blockIdx.x; k += THREADS) {
        mine[0] += pieces[k].larger;
        mine[1] += pieces[k].equal;
    }
    (void)sum_before(mine[0], larger);
    (void)sum_before(mine[1], equal);
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
    uint32_t least = s->key[PASSES - 1], n_wanted = s->left[PASSES - 1], larger, equal;
    sum_pieces(pieces_of(p), &larger, &equal);
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
    dim3 pieces((unsigned)n_pieces(p->how), (unsigned)p->n_rows);
    size_t n_places = p->how.n_bytes - n_value_words(p->how) * sizeof(uint32_t);
    CT_CUDA_TRY(cudaMemset2DAsync(p->scratch_dev, p->scratch_stride * sizeof(uint32_t), 0,
                                  PASSES * RADIX * sizeof(uint32_t), (size_t)p->n_rows, p->stream));
    CT_CUDA_TRY(cudaMemset2DAsync(p->packed_dev + n_value_words(p->how),
                                  p->packed_stride * sizeof(float), 0, n_places, (size_t)p->n_rows,
                                  p->stream));
    start_kernel(count_all, pieces, THREADS, 0, p->stream, *p);
    CT_CUDA_LAUNCHED();
    start_kernel(find_near, pieces, THREADS, 0, p->stream, *p);
    CT_CUDA_LAUNCHED();
    for (int pass = 1; pass < PASSES; pass++) {
        start_kernel(count_near, pieces, THREADS, 0, p->stream, *p, pass);
        CT_CUDA_LAUNCHED();
    }
    start_kernel(count_sent, pieces, THREADS, 0, p->stream, *p);
    CT_CUDA_LAUNCHED();
    start_kernel(send, pieces, THREADS, 0, p->stream, *p);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

extern "C" size_t ct_cuda_top_k_words(const ct_compressor *how) {
    size_t n_bytes =
        sizeof(selection) + n_pieces(*how) * (sizeof(piece) + PIECE * sizeof(uint32_t));
    return n_bytes / sizeof(uint32_t) + (is_rounded(*how) ? 2 * how->k : 0);
}

extern "C" ct_status ct_cuda_move_top_k(const cuda_parcel *p) {
    if (p->x_dev != NULL) return pack(p);
    start_kernel(unpack_top_k, dim3(1, (unsigned)p->n_rows), THREADS, 0, p->stream, *p);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}
