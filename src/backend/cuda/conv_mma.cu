/* Convolutions (groups = 1) of any extent on the tensor cores, as matrix products with rows =
 * output pixels of a job, columns = output channels, k = (tap, input channel); data gradients are
 * the same with the roles of the sides exchanged. Input pixels may be EvoNorm's input: the norm is
 * then applied on the way into shared memory, so that its output need not exist (kernels.h,
 * cuda_gate). Behind the product, where the sums are in registers, means and squared deviations of
 * the output are taken for the EvoNorm that follows, or, of a gradient, the sums that EvoNorm's
 * backward pass begins with.
 * A block computes 128 pixels x 32, 64, 96 or 128 channels, 128 bytes of k at a time: 8 warps of 32
 * pixels x half of the channels. Pixels that are read as they are come through a ring in shared
 * memory; those that a norm is applied to are in registers until the chunk before is multiplied.
 * Grid: x = (pixels, channels), channels first, so that neighbours read the same pixels; y = job.
 * Reads an input value for each block of channels (from L2 but for the first) and tap, writes an
 * output value; 2 flops a product. Limits: tf32 or bf16, channels on both sides multiples of 8,
 * strides 1 and 2; with a norm, samples of a multiple of 16 pixels. */
#include "backend/cuda/mma.cuh"

enum { ROWS = 128, UNITS = 8, PITCH = UNITS * 16 + 16, THREADS = 256, PART = THREADS / UNITS };
enum { STAGES = 3, STEPS = 4, TILES = 2 }; /* STEPS of a chunk, TILES of 16 rows of a warp */
enum { PIXELS = ROWS * PITCH, PAIR = STEPS * 32 * 16 }; /* bytes: pixels; weights of 16 channels */
enum { SAMPLES = ROWS / 16 };                           /* of a block's rows where a norm is */
enum { TAPS, POINT, GATED }; /* kinds: any; 1x1, stride 1; and with a norm applied to the input */
enum { ENOUGH_BLOCKS = 800, MOST_TILES = 8, SLOTS = 264 /* blocks at a time */ };

/* Channels of a chunk, and bytes of its norms: SAMPLES scales and a bias of each. */
template <class T> struct depth {
    enum { SIZE = UNITS * unit<T>::SIZE };
};
template <class T> struct gates {
    enum { BYTES = (SAMPLES + 1) * depth<T>::SIZE * 4 };
};

typedef struct mma_call {
    cuda_tile_conv v;
    const cuda_job *jobs;
    int n_max, n_pairs; /* pairs of column tiles: channels / 16, rounded up */
    int n_tiles;        /* of rows that a block computes, one after the other */
    int stride;         /* rows from one of them to the next: those of other blocks lie between */
    const void *x;
    const float *packed;
    size_t packed_stride;
    const float *scale; /* of the gate, or NULL */
    const float *params;
    size_t params_stride, gate_bias, bias;
    bool relu, accumulate;
    int segment; /* rows whose measures are taken together */
    float *measures;
    const void *norm_in; /* measures are those of a gradient: what the norm read */
    cuda_element norm_element;
    void *y;
} mma_call;

/* A chunk of the block's work: some of k of one of its row tiles. */
typedef struct chunk {
    int row0;        /* of the tile */
    int u, q, first; /* tap, channel */
} chunk;

/* Moves to the next chunk: 0 of the same tap, 1 of the next one, 2 of the next tile. */
static __device__ __forceinline__ int next_chunk(const mma_call &c, int size, chunk &k) {
    k.first += size;
    if (k.first < c.v.ci) return 0;
    k.first = 0;
    if (++k.q == c.v.kernel) k.q = 0, k.u++;
    if (k.u < c.v.kernel) return 1;
    k.u = 0, k.row0 += c.stride;
    return 2;
}

/* This thread's part of a chunk of the pixels: rows threadIdx.x / 8 + 32 i, unit threadIdx.x % 8 of
 * the chunk's channels. */
typedef struct pixel_rows {
    int sample[4], y[4], x[4]; /* output pixel times scale, plus shift; sample -1: none */
    int at[4];                 /* input pixel of the job under the present tap, or -1 */
} pixel_rows;

static __device__ __forceinline__ int row_of(int i) {
    return (int)threadIdx.x / UNITS + PART * i;
}

static __device__ __forceinline__ void find_rows(const mma_call &c, int n_rows, int row0,
                                                 pixel_rows &r) {
    int n_pixels = c.v.ho * c.v.wo;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int m = row0 + row_of(i), b = m / n_pixels, p = m - b * n_pixels, y = p / c.v.wo;
        r.sample[i] = m < n_rows ? b : -1;
        r.y[i] = y * c.v.scale + c.v.shift;
        r.x[i] = (p - y * c.v.wo) * c.v.scale + c.v.shift;
    }
}

static __device__ __forceinline__ void find_pixels(const mma_call &c, const chunk &k,
                                                   pixel_rows &r) {
    int odd = c.v.step - 1;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int y = r.y[i] + c.v.sign * k.u, x = r.x[i] + c.v.sign * k.q;
        bool inside = r.sample[i] >= 0 && ((y | x) & odd) == 0;
        y >>= odd, x >>= odd;
        inside = inside && (unsigned)y < (unsigned)c.v.hi && (unsigned)x < (unsigned)c.v.wi;
        r.at[i] = inside ? (r.sample[i] * c.v.hi + y) * c.v.wi + x : -1;
    }
}

/* The input pixel of row i: of a 1x1 convolution the row itself. */
template <int KIND>
static __device__ __forceinline__ int pixel_of(const chunk &k, int n_rows, const pixel_rows &r,
                                               int i) {
    if (KIND == TAPS) return r.at[i];
    int m = k.row0 + row_of(i);
    return m < n_rows ? m : -1;
}

/* Pixels straight to shared memory. */
template <class T, int KIND>
static __device__ __forceinline__ void copy_pixels(const mma_call &c, const T *x, const chunk &k,
                                                   int n_rows, const pixel_rows &r, char *tile) {
    int ch = k.first + (int)threadIdx.x % UNITS * unit<T>::SIZE;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int at = pixel_of<KIND>(k, n_rows, r, i);
        bool is_there = at >= 0 && ch < c.v.ci;
        copy_quad(tile + row_of(i) * PITCH + (int)threadIdx.x % UNITS * 16,
                  is_there ? x + (size_t)at * c.v.ci + ch : x, is_there);
    }
}

/* Pixels to registers, on their way through a norm. */
template <class T>
static __device__ __forceinline__ void load_pixels(const mma_call &c, const T *x, const chunk &k,
                                                   int n_rows, uint4 raw[4]) {
    int ch = k.first + (int)threadIdx.x % UNITS * unit<T>::SIZE;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int m = k.row0 + row_of(i);
        raw[i] = make_uint4(0, 0, 0, 0);
        if (m < n_rows && ch < c.v.ci) raw[i] = __ldg((const uint4 *)(x + (size_t)m * c.v.ci + ch));
    }
}

/* The samples that the thread's rows are of, counted from the tile's first: 8 bits each. */
static __device__ __forceinline__ uint32_t samples_of(const mma_call &c, int row0) {
    int n_pixels = c.v.ho * c.v.wo, sample0 = row0 / n_pixels;
    uint32_t all = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) all |= (uint32_t)((row0 + row_of(i)) / n_pixels - sample0) << 8 * i;
    return all;
}

/* Applies the norm; `norms` has the scales of the tile's samples and the bias, zeros beyond the
 * channels there are. */
template <class T>
static __device__ __forceinline__ void gate_pixels(const uint4 raw[4], uint32_t samples,
                                                   const float *norms, char *tile) {
    constexpr int SIZE = unit<T>::SIZE, DEPTH = depth<T>::SIZE;
    int ch = (int)threadIdx.x % UNITS * SIZE;
    float bias[SIZE], scale[SIZE], v[SIZE];
#pragma unroll
    for (int e = 0; e < SIZE; e += 4)
        *(float4 *)(bias + e) = *(const float4 *)(norms + SAMPLES * DEPTH + ch + e);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int sample = samples >> 8 * i & 0xff;
#pragma unroll
        for (int e = 0; e < SIZE; e += 4)
            *(float4 *)(scale + e) = *(const float4 *)(norms + sample * DEPTH + ch + e);
        open_unit(T(), raw[i], v);
#pragma unroll
        for (int e = 0; e < SIZE; e++) v[e] = gate_one(v[e], scale[e], bias[e]);
        *(uint4 *)(tile + row_of(i) * PITCH + ch * (int)sizeof(T)) = factors_unit(T(), v);
    }
}

/* The norms of a chunk: scales of the samples its rows are of, and the bias. `scale` and `bias`
 * begin at the job's first sample. */
template <class T>
static __device__ __forceinline__ void copy_norms(const mma_call &c, const float *scale,
                                                  const float *bias, int n_samples, const chunk &k,
                                                  float *norms) {
    constexpr int QUADS = depth<T>::SIZE / 4;
    int s = (int)threadIdx.x / QUADS, ch = k.first + (int)threadIdx.x % QUADS * 4;
    if (s > SAMPLES) return;
    int sample = k.row0 / (c.v.ho * c.v.wo) + s;
    bool is_there = ch < c.v.ci && (s == SAMPLES || sample < n_samples);
    const float *from = s == SAMPLES ? bias + ch : scale + (size_t)sample * c.v.ci + ch;
    copy_quad(norms + 4 * (int)threadIdx.x, is_there ? from : scale, is_there);
}

/* The chunk's weights, in the order of the fragments: [step][pair][lane][16 bytes]. */
template <class T, int NP>
static __device__ __forceinline__ void copy_weights(const mma_call &c, const float *packed,
                                                    const chunk &k, int pair0, char *tile) {
    constexpr int PAIRS = 2 * NP, STEP = unit<T>::STEP;
    int of_tap = (c.v.ci + STEP - 1) / STEP;
    int step0 = (k.u * c.v.kernel + k.q) * of_tap + k.first / STEP;
    int n_steps = of_tap - k.first / STEP;
#pragma unroll
    for (int e = 0; e < NP; e++) {
        int quad = (int)threadIdx.x + e * THREADS, pair = quad / 32 % PAIRS;
        int step = quad / 32 / PAIRS;
        bool is_there = pair0 + pair < c.n_pairs && step < n_steps;
        size_t from = ((size_t)(step0 + step) * c.n_pairs + pair0 + pair) * 32 + quad % 32;
        copy_quad(tile + 16 * quad, is_there ? packed + 4 * from : packed, is_there);
    }
}

/* One chunk of the product: sums[i][2 j + h] of row tile i (16 pixels), column tile h (8 channels)
 * of pair j. */
template <class T, int NP, bool IS_FACTOR>
static __device__ __forceinline__ void multiply(const char *pixels, const char *weights,
                                                int n_steps, float sums[TILES][2 * NP][4]) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    uint32_t rows =
        shared_at(pixels + (warp / 2 * 16 * TILES + (lane & 15)) * PITCH + (lane >> 4) * 16);
    const uint4 *own = (const uint4 *)weights + warp % 2 * NP * 32 + lane;
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        if (k >= n_steps) break;
        uint32_t a[TILES][4];
#pragma unroll
        for (int i = 0; i < TILES; i++) {
            load_matrices(a[i], rows + i * 16 * PITCH + k * 32);
#pragma unroll
            for (int e = 0; e < 4 && !IS_FACTOR; e++) a[i][e] = factor_of(T(), a[i][e]);
        }
#pragma unroll
        for (int j = 0; j < NP; j++) {
            uint4 b = own[(k * 2 * NP + j) * 32];
#pragma unroll
            for (int i = 0; i < TILES; i++) {
                mma(T(), sums[i][2 * j], a[i], b.x, b.y);
                mma(T(), sums[i][2 * j + 1], a[i], b.z, b.w);
            }
        }
    }
}

/* Adds what is there already to the sums; y is the thread's first quad. */
template <class T, int NP>
static __device__ __forceinline__ void add_rows(const mma_call &c, int n_there, const T *y,
                                                float sums[TILES][2 * NP][4], int j) {
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        float4 before[2];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            before[half] = make_float4(0, 0, 0, 0);
            if (16 * i + 8 * half < n_there)
                before[half] = load_four(y + (16 * i + 8 * half) * c.v.co);
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float *left = &sums[i][2 * j][2 * half], *right = &sums[i][2 * j + 1][2 * half];
            left[0] += before[half].x, left[1] += before[half].y;
            right[0] += before[half].z, right[1] += before[half].w;
        }
    }
}

/* Bias and ReLU of a pair's quad. */
template <int NP>
static __device__ __forceinline__ void add_bias(const mma_call &c, const float *params, int channel,
                                                float sums[TILES][2 * NP][4], int j) {
#pragma unroll
    for (int e = 0; e < 4; e++) {
        float add = c.bias == CUDA_NO_PARAM ? 0.0f : params[c.bias + channel + e];
#pragma unroll
        for (int i = 0; i < 2 * TILES; i++) {
            float *at = &sums[i / 2][2 * j + e / 2][i % 2 * 2 + e % 2];
            *at = c.relu ? fmaxf(*at + add, 0.0f) : *at + add;
        }
    }
}

/* Rows of pixels, a quad of channels a thread. */
template <class T, int NP>
static __device__ __forceinline__ void write_rows(const mma_call &c, int n_there, T *y,
                                                  const float sums[TILES][2 * NP][4], int j) {
#pragma unroll
    for (int e = 0; e < 2 * TILES; e++)
        if (8 * e < n_there) store_four(y + 8 * e * c.v.co, quad_of(&sums[e / 2][2 * j], e % 2));
}

/* Mean and squared deviations of N row tiles, per channel of a pair's quad: lanes < 16 have the
 * former, the others the latter. */
template <int NP, int N>
static __device__ __forceinline__ float measure_rows(const float sums[TILES][2 * NP][4], int first,
                                                     int j) {
    float sum[4] = {}, square[4] = {};
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int e = 0; e < 8; e++) {
            int at = e / 4 * 2 + e % 2;
            float y = sums[first + i][2 * j + e / 4][e % 4];
            sum[at] += y;
            square[at] = fmaf(y, y, square[at]);
        }
    float total = rows_sum(sum, square), other = __shfl_xor_sync(0xffffffffu, total, 16);
    constexpr float PORTION = 1.0f / (16 * N);
    if ((threadIdx.x & 16) == 0) return total * PORTION;
    return fmaxf(fmaf(-other * PORTION, other, total), 0.0f);
}

/* Of a gradient: sums of gradient times EvoNorm's numerator (lanes < 16) and of the gradient; x is
 * the norm's input at the thread's first quad, rows beyond n_there do not exist. */
template <class X, int NP, int N>
static __device__ __forceinline__ float measure_gradient(const mma_call &c, const X *x, int n_there,
                                                         const float sums[TILES][2 * NP][4],
                                                         int first, int j) {
    float with_x[4] = {}, plain[4] = {};
#pragma unroll
    for (int i = 0; i < N; i++) {
        float4 in[2];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = 16 * (first + i) + 8 * half;
            in[half] = make_float4(0, 0, 0, 0);
            if (row < n_there) in[half] = load_four(x + row * c.v.co);
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float4 d = quad_of(&sums[first + i][2 * j], half);
            with_x[0] = fmaf(d.x, gate_numerator(in[half].x), with_x[0]), plain[0] += d.x;
            with_x[1] = fmaf(d.y, gate_numerator(in[half].y), with_x[1]), plain[1] += d.y;
            with_x[2] = fmaf(d.z, gate_numerator(in[half].z), with_x[2]), plain[2] += d.z;
            with_x[3] = fmaf(d.w, gate_numerator(in[half].w), with_x[3]), plain[3] += d.w;
        }
    }
    return rows_sum(with_x, plain);
}

/* Measures of N row tiles from `first` on, of a pair's channels; `to` is the lane's place for the
 * first segment and channel. All lanes call it. */
template <int NP, int N, int KIND>
static __device__ __forceinline__ void measure(const mma_call &c, size_t row, int n_there,
                                               int pair_channel, const float sums[TILES][2 * NP][4],
                                               int first, int j, float *to) {
    int lane = threadIdx.x & 31, quad = pair_channel + (lane & 3) * 4;
    float value;
    if (KIND == GATED || c.norm_in == NULL) {
        value = measure_rows<NP, N>(sums, first, j);
    } else {
        size_t at = (row + (lane >> 2)) * c.v.co + quad;
        int n_own = quad < c.v.co ? n_there - (lane >> 2) : 0;
        value = c.norm_element == CUDA_FP32
                    ? measure_gradient<float, NP, N>(c, (const float *)c.norm_in + at, n_own, sums,
                                                     first, j)
                    : measure_gradient<bf16, NP, N>(c, (const bf16 *)c.norm_in + at, n_own, sums,
                                                    first, j);
    }
    if (quad < c.v.co && 16 * first < n_there) to[first * 2 * c.v.co + pair_channel] = value;
}

/* What a warp does with its sums. */
template <class T, int NP, int KIND>
static __device__ __forceinline__ void finish(const mma_call &c, const cuda_job &job, int n_rows,
                                              int row0, int pair0, float sums[TILES][2 * NP][4]) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, m = row0 + warp / 2 * 16 * TILES;
    int n_there = n_rows - m, n_own = n_there - (lane >> 2);
    int first = (pair0 + warp % 2 * NP) * 16;
    size_t row = (size_t)blockIdx.y * c.n_max * (c.v.ho * c.v.wo) + m;
    const float *params = c.params + job.model * c.params_stride;
    bool is_more = c.bias != CUDA_NO_PARAM || c.relu, by_tile = c.segment == 16;
    T *y = (T *)c.y + (row + (lane >> 2)) * c.v.co + (lane & 3) * 4;
    /* lanes 0-15 have the first measure, the others the second */
    float *to = c.measures + (row / 16 >> (by_tile ? 0 : 1)) * 2 * c.v.co + (lane >> 4) * c.v.co +
                (lane & 3) * 4 + (lane >> 2 & 3);
#pragma unroll
    for (int j = 0; j < NP; j++) {
        int pair_channel = first + j * 16, channel = pair_channel + (lane & 3) * 4;
        if (pair_channel >= c.v.co) return;
        if (channel < c.v.co) {
            if (KIND != GATED && c.accumulate) add_rows<T, NP>(c, n_own, y + pair_channel, sums, j);
            if (is_more) add_bias<NP>(c, params, channel, sums, j);
            write_rows<T, NP>(c, n_own, y + pair_channel, sums, j);
        }
        if (c.measures == NULL) continue;
        if (!by_tile) measure<NP, TILES, KIND>(c, row, n_there, pair_channel, sums, 0, j, to);
#pragma unroll
        for (int i = 0; i < TILES; i++)
            if (by_tile) measure<NP, 1, KIND>(c, row, n_there, pair_channel, sums, i, j, to);
    }
}

/* Where things lie in shared memory, in bytes. */
template <class T, int NP, int KIND> struct places {
    enum { WEIGHTS = (KIND == GATED ? 2 : STAGES) * PIXELS };
    enum { NORMS = WEIGHTS + STAGES * 2 * NP * PAIR };
    enum { END = NORMS + (KIND == GATED ? STAGES * gates<T>::BYTES : 0) };
};

/* check: long because chunks of all its tiles are one pipeline */
template <class T, int NP, int KIND>
static __global__ void __launch_bounds__(THREADS, NP == 1 ? 3 : 2) conv_kernel(mma_call c) {
    extern __shared__ __align__(16) char shared[]; /* rings of pixels, weights, norms */
    typedef places<T, NP, KIND> at;
    constexpr int DEPTH = depth<T>::SIZE, STEP = unit<T>::STEP, WEIGHTS = 2 * NP * PAIR;
    const cuda_job job = c.jobs[blockIdx.y];
    int n_cols = (c.n_pairs + 2 * NP - 1) / (2 * NP), n_rows = job.n * c.v.ho * c.v.wo;
    int pair0 = (int)(blockIdx.x % n_cols) * 2 * NP;
    int row0 = (int)(blockIdx.x / n_cols) * ROWS, first = 0; /* of the chunk in hand */
    if (row0 >= n_rows) return;
    const T *x = (const T *)c.x + (size_t)blockIdx.y * c.n_max * (c.v.hi * c.v.wi) * c.v.ci;
    const float *scale = c.scale + (size_t)blockIdx.y * c.n_max * c.v.ci;
    const float *bias = c.params + job.model * c.params_stride + c.gate_bias;
    const float *packed = c.packed + job.model * c.packed_stride;
    bool idle = pair0 + (int)threadIdx.x / 32 % 2 * NP >= c.n_pairs; /* no channels for the warp */
    float sums[TILES][2 * NP][4] = {};
    int n_chunks = c.v.kernel * c.v.kernel * ((c.v.ci + DEPTH - 1) / DEPTH), left = n_chunks;
    int n_all = n_chunks * min(c.n_tiles, (n_rows - row0 + c.stride - 1) / c.stride);
    bool stays = STAGES % n_chunks == 0;                 /* a stage's weights, from tile to tile */
    chunk k = {row0, 0, 0, 0}, behind = {row0, 0, 0, 0}; /* to be copied next; pixels of a norm */
    pixel_rows rows;
    uint4 raw[4];
    if (KIND == TAPS) {
        find_rows(c, n_rows, row0, rows);
        find_pixels(c, k, rows);
    }
    /* chunk i of pixels (unless a norm is applied to them), weights, norms; always a group */
    auto copy_chunk = [&](int i) {
        if (i < n_all) {
            char *stage = shared + at::WEIGHTS + i % STAGES * WEIGHTS;
            if (!stays || i < STAGES) copy_weights<T, NP>(c, packed, k, pair0, stage);
            if (KIND == GATED)
                copy_norms<T>(c, scale, bias, job.n, k,
                              (float *)(shared + at::NORMS + i % STAGES * gates<T>::BYTES));
            else
                copy_pixels<T, KIND>(c, x, k, n_rows, rows, shared + i % STAGES * PIXELS);
            int moved = next_chunk(c, DEPTH, k);
            if (KIND == TAPS && moved == 2) find_rows(c, n_rows, k.row0, rows);
            if (KIND == TAPS && moved > 0) find_pixels(c, k, rows);
        }
        copies_group();
    };
    for (int i = 0; i < STAGES - 1; i++) copy_chunk(i);
    if (KIND == GATED) {
        load_pixels<T>(c, x, behind, n_rows, raw);
        copies_wait_but<0>();
        __syncthreads(); /* the first norms are there */
    }
    uint32_t samples = KIND == GATED ? samples_of(c, row0) : 0;
    for (int i = 0; i < n_all; i++) {
        char *pixels = shared + (KIND == GATED ? i % 2 : i % STAGES) * PIXELS;
        if (KIND == GATED) {
            const char *norms = shared + at::NORMS + i % STAGES * gates<T>::BYTES;
            gate_pixels<T>(raw, samples, (const float *)norms, pixels);
            if (i + 1 < n_all) {
                if (next_chunk(c, DEPTH, behind) == 2) samples = samples_of(c, behind.row0);
                load_pixels<T>(c, x, behind, n_rows, raw);
            }
        }
        copies_wait_but<KIND == GATED ? 0 : STAGES - 2>();
        __syncthreads(); /* this chunk is there, and nobody reads the one before any more */
        copy_chunk(i + STAGES - 1);
        if (!idle)
            multiply<T, NP, KIND == GATED>(pixels, shared + at::WEIGHTS + i % STAGES * WEIGHTS,
                                           (min((int)DEPTH, c.v.ci - first) + STEP - 1) / STEP,
                                           sums);
        first = first + DEPTH < c.v.ci ? first + DEPTH : 0;
        if (--left > 0) continue;
        finish<T, NP, KIND>(c, job, n_rows, row0, pair0, sums);
        left = n_chunks, row0 += c.stride;
#pragma unroll
        for (int e = 0; e < TILES * 8 * NP; e++) sums[e / 8 / NP][e / 4 % (2 * NP)][e % 4] = 0.0f;
    }
}

int ct_cuda_mma_segment(const cuda_tile_conv *v) {
    int n_pixels = v->ho * v->wo;
    return n_pixels % (16 * TILES) == 0 ? 16 * TILES : n_pixels % 16 == 0 ? 16 : 0;
}

static int n_row_tiles(const mma_call *c) {
    return (c->n_max * c->v.ho * c->v.wo + ROWS - 1) / ROWS;
}

/* Row tiles of a block: several where there are enough blocks, so that one's results are written
 * while the next one's pixels are on their way. */
static int tiles_of(const mma_call *c, int n_cols, int n_jobs) {
    long n = (long)n_row_tiles(c) * n_cols * n_jobs / ENOUGH_BLOCKS;
    return n < 1 ? 1 : n > MOST_TILES ? (int)MOST_TILES : (int)n;
}

/* Pairs of channels of a warp: a block takes as long as its channels and the handling of its
 * pixels, which is that of 32. What is computed does not depend on it. */
static int pairs_of(const mma_call *c, int n_jobs, int most) {
    int best = 1;
    long least = 0;
    for (int np = 1; np <= most; np++) {
        long n_blocks = (long)n_row_tiles(c) * ((c->n_pairs + 2 * np - 1) / (2 * np)) * n_jobs;
        long cost = (n_blocks + SLOTS - 1) / SLOTS * (np + 1);
        if (np > 1 && cost > least) continue;
        best = np, least = cost;
    }
    return best;
}

template <class T, int NP, int KIND> static ct_status launch(const cuda_run *run, mma_call *c) {
    int n_cols = (c->n_pairs + 2 * NP - 1) / (2 * NP);
    c->n_tiles = tiles_of(c, n_cols, run->n_jobs);
    int n_blocks = (n_row_tiles(c) + c->n_tiles - 1) / c->n_tiles;
    c->stride = n_blocks * ROWS;
    dim3 grid((unsigned)(n_blocks * n_cols), (unsigned)run->n_jobs);
    return launch_kernel(run, conv_kernel<T, NP, KIND>, grid, THREADS, places<T, NP, KIND>::END,
                         *c);
}

template <class T, int KIND> static ct_status launch_wide(const cuda_run *run, mma_call *c) {
    /* many outputs of few inputs are best written by many blocks: 69 us against 102 with 4 pairs,
       64 to 384 channels of 64 Ki pixels on an H200 */
    constexpr int MOST = KIND == GATED ? 3 : KIND == POINT ? 2 : 4, THREE = MOST < 3 ? 2 : 3;
    switch (pairs_of(c, run->n_jobs, MOST)) {
    case 1: return launch<T, 1, KIND>(run, c);
    case 2: return launch<T, 2, KIND>(run, c);
    case 3: return launch<T, THREE, KIND>(run, c);
    default: return launch<T, MOST, KIND>(run, c);
    }
}

template <class T> static ct_status launch_kind(const cuda_run *run, mma_call *c) {
    bool is_point = c->v.kernel == 1 && c->v.scale == 1 && c->v.shift == 0 && c->v.step == 1;
    if (c->scale != NULL) return launch_wide<T, GATED>(run, c);
    return is_point ? launch_wide<T, POINT>(run, c) : launch_wide<T, TAPS>(run, c);
}

/* What both directions share: `direction` reads x and writes y. */
static ct_status convolve(const cuda_run *run, const cuda_conv_call *call, cuda_direction direction,
                          const void *x_dev, void *y_dev, mma_call c) {
    c.v = ct_cuda_tile_of(call->conv, direction), c.n_pairs = (c.v.co + 15) / 16;
    c.jobs = run->jobs_dev, c.n_max = run->n_max, c.x = x_dev, c.y = y_dev;
    c.packed = run->packed_dev + call->packed, c.packed_stride = run->packed_stride;
    c.params = run->params_dev, c.params_stride = run->params_stride;
    c.measures = call->measures, c.segment = ct_cuda_mma_segment(&c.v);
    return call->element == CUDA_BF16 ? launch_kind<bf16>(run, &c) : launch_kind<float>(run, &c);
}

ct_status ct_cuda_mma_forward(const cuda_run *run, const cuda_conv_call *call) {
    mma_call c = {};
    c.scale = call->gate.scale_dev, c.gate_bias = call->gate.bias;
    c.bias = call->bias, c.relu = call->relu;
    return convolve(run, call, CUDA_FORWARD, call->x, call->y, c);
}

ct_status ct_cuda_mma_dgrad(const cuda_run *run, const cuda_conv_call *call) {
    mma_call c = {};
    c.bias = CUDA_NO_PARAM, c.accumulate = call->accumulate;
    c.norm_in = call->norm_in, c.norm_element = call->norm_element;
    return convolve(run, call, CUDA_DGRAD, call->d, call->dx, c);
}
