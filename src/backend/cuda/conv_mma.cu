/* Convolutions (groups = 1) of any extent on the tensor cores, as matrix products with rows =
 * output pixels of a job, columns = output channels, k = (tap, input channel); data gradients are
 * the same with the roles of the sides exchanged. Input pixels may be EvoNorm's input: the norm is
 * then applied on the way into shared memory, so that its output need not exist (kernels.h,
 * cuda_gate). Behind the product, where the sums are in registers, means and squared deviations of
 * the output are taken for the EvoNorm that follows.
 * A block computes 128 pixels x 32, 64 or 128 channels, 32 of k at a time, the next ones on their
 * way while these are multiplied. Grid: x = (pixels, channels), channels first, so that neighbours
 * read the same pixels; y = job. Reads 4 bytes an input value for each block of channels (from L2
 * but for the first) and tap, writes 4 an output value; 2 flops a product.
 * Limits: tf32, channels on both sides multiples of 8, strides 1 and 2. */
#include "backend/cuda/mma.cuh"

enum { ROWS = 128, DEPTH = 32, PITCH = DEPTH + 4, THREADS = 256, PART = THREADS / 8 };
enum { STAGES = 3, ENOUGH_BLOCKS = 800, MOST_TILES = 8 };

typedef struct mma_call {
    cuda_tile_conv v;
    const cuda_job *jobs;
    int n_max, n_pairs; /* pairs of column tiles: channels / 16, rounded up */
    int n_tiles;        /* of rows, one after the other, that a block computes */
    const float *x, *packed;
    size_t packed_stride;
    const float *scale; /* of the gate, or NULL */
    const float *params;
    size_t params_stride, gate_bias, bias;
    bool relu, accumulate;
    int segment; /* rows whose measures are taken together */
    float *measures;
    float *y;
} mma_call;

/* This thread's part of a chunk of the pixels: rows threadIdx.x / 8 + 32 i, channels 4 (threadIdx.x
 * % 8) .. of the chunk. */
typedef struct pixel_rows {
    int sample[4], y[4], x[4]; /* output pixel times scale, plus shift; sample -1: none */
    int at[4];                 /* input pixel of the job under the present tap, or -1 */
} pixel_rows;

/* A chunk of the block's work: 32 of k of one of its row tiles. */
typedef struct chunk {
    int row0;        /* of the tile */
    int u, q, first; /* tap, channel */
} chunk;

static __device__ __forceinline__ void find_rows(const mma_call &c, int n_rows, int row0,
                                                 pixel_rows &r) {
    int n_pixels = c.v.ho * c.v.wo;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int m = row0 + (int)threadIdx.x / 8 + PART * i, b = m / n_pixels, p = m - b * n_pixels;
        int y = p / c.v.wo;
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

static __device__ __forceinline__ void next_chunk(const mma_call &c, int n_rows, chunk &k,
                                                  pixel_rows &r) {
    k.first += DEPTH;
    if (k.first < c.v.ci) return;
    k.first = 0;
    if (++k.q == c.v.kernel) k.q = 0, k.u++;
    if (k.u == c.v.kernel) {
        k.u = 0, k.row0 += ROWS;
        find_rows(c, n_rows, k.row0, r);
    }
    find_pixels(c, k, r);
}

/* Pixels straight to shared memory. */
static __device__ __forceinline__ void
copy_pixels(const mma_call &c, const float *x, const chunk &k, const pixel_rows &r, float *tile) {
    int ch = k.first + (int)threadIdx.x % 8 * 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        bool is_there = r.at[i] >= 0 && ch < c.v.ci;
        copy_quad(&tile[((int)threadIdx.x / 8 + PART * i) * PITCH + (int)threadIdx.x % 8 * 4],
                  is_there ? x + (size_t)r.at[i] * c.v.ci + ch : x, is_there);
    }
}

/* The chunk's weights, in the order of the fragments: [k / 8][pair][lane][4]. */
template <int WIDE>
static __device__ __forceinline__ void copy_weights(const mma_call &c, const float *packed,
                                                    const chunk &k, int pair0, float *tile) {
    constexpr int PAIRS = WIDE / 16;
    int step0 = ((k.u * c.v.kernel + k.q) * c.v.ci + k.first) / 8, n_steps = (c.v.ci - k.first) / 8;
#pragma unroll
    for (int e = 0; e < PAIRS / 2; e++) {
        int quad = (int)threadIdx.x + e * THREADS, pair = quad / 32 % PAIRS;
        int step = quad / 32 / PAIRS;
        bool is_there = pair0 + pair < c.n_pairs && step < n_steps;
        size_t from = ((size_t)(step0 + step) * c.n_pairs + pair0 + pair) * 32 + quad % 32;
        copy_quad(&tile[4 * quad], is_there ? packed + 4 * from : packed, is_there);
    }
}

/* EvoNorm of what this thread reads of a chunk: channels t and t + 4 of every 8, rows by tile. */
template <int TILES> struct row_gates { float scale[TILES][DEPTH / 8][2], bias[DEPTH / 8][2]; };

/* `scale` and `bias` begin at the job's first sample. */
template <int TILES>
static __device__ __forceinline__ void load_gates(const mma_call &c, const float *scale,
                                                  const float *bias, int last_sample, int row,
                                                  int first, row_gates<TILES> &g) {
    int n_pixels = c.v.ho * c.v.wo, t = threadIdx.x & 3;
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        int sample = min((row + 16 * i) / n_pixels, last_sample);
        const float *own = scale + (size_t)sample * c.v.ci;
#pragma unroll
        for (int e = 0; e < DEPTH / 4; e++) {
            int ch = min(first + 4 * e + t, c.v.ci - 1); /* beyond: read by nobody */
            g.scale[i][e / 2][e % 2] = __ldg(own + ch);
            if (i == 0) g.bias[e / 2][e % 2] = __ldg(bias + ch);
        }
    }
}

/* One chunk of the product: sums[i][j] of row tile i (16 pixels), column tile j (8 channels). */
template <int WIDE, bool GATED>
static __device__ __forceinline__ void multiply(const float *pixels, const float4 *weights,
                                                int n_steps, const row_gates<WIDE / 32> &gates,
                                                float sums[WIDE / 32][4][4]) {
    constexpr int TILES = WIDE / 32, COLS = WIDE / 32, PAIRS = WIDE / 16;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const float *rows = pixels + (warp / COLS * TILES * 16 + (lane & 15)) * PITCH + (lane >> 4) * 4;
    weights += warp % COLS * 2 * 32 + lane;
#pragma unroll
    for (int k = 0; k < DEPTH / 8; k++) {
        if (k >= n_steps) break;
        float4 b[2] = {weights[k * PAIRS * 32], weights[k * PAIRS * 32 + 32]};
#pragma unroll
        for (int i = 0; i < TILES; i++) {
            float a[4];
            load_fragment(a, (uint32_t)__cvta_generic_to_shared(rows + i * 16 * PITCH + k * 8));
#pragma unroll
            for (int e = 0; e < 4; e++) {
                if (GATED) a[e] = gate_one(a[e], gates.scale[i][k][e / 2], gates.bias[k][e / 2]);
                a[e] = near_tf32(a[e]);
            }
#pragma unroll
            for (int j = 0; j < 2; j++) {
                float left[2] = {b[j].x, b[j].y}, right[2] = {b[j].z, b[j].w};
                mma_tf32(sums[i][2 * j], a, left);
                mma_tf32(sums[i][2 * j + 1], a, right);
            }
        }
    }
}

static __device__ __forceinline__ float4 quad_of(const float left[4], const float right[4],
                                                 int half) {
    return make_float4(left[2 * half], left[2 * half + 1], right[2 * half], right[2 * half + 1]);
}

/* Bias, ReLU, what is there already; rows of pixels, a quad of channels a thread. */
template <int TILES>
static __device__ __forceinline__ void write_rows(const mma_call &c, const float *params,
                                                  int n_there, int channel, float *y,
                                                  const float sums[TILES][4][4], int j) {
    int lane = threadIdx.x & 31;
    float4 add = make_float4(0, 0, 0, 0);
    if (c.bias != CUDA_NO_PARAM) {
        const float *b = params + c.bias + channel;
        add = make_float4(b[0], b[1], b[2], b[3]);
    }
#pragma unroll
    for (int i = 0; i < TILES; i++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = i * 16 + (lane >> 2) + half * 8;
            if (row >= n_there) continue;
            float4 *to = (float4 *)(y + (size_t)row * c.v.co + channel);
            float4 value = quad_of(sums[i][2 * j], sums[i][2 * j + 1], half);
            value.x += add.x, value.y += add.y, value.z += add.z, value.w += add.w;
            if (c.relu)
                value = make_float4(fmaxf(value.x, 0.0f), fmaxf(value.y, 0.0f),
                                    fmaxf(value.z, 0.0f), fmaxf(value.w, 0.0f));
            if (c.accumulate) {
                float4 before = *to;
                value.x += before.x, value.y += before.y;
                value.z += before.z, value.w += before.w;
            }
            *to = value;
        }
    }
}

/* Sum over the eight lanes that hold the same channels. */
static __device__ __forceinline__ float rows_sum(float x) {
#pragma unroll
    for (int k = 16; k >= 4; k >>= 1) x += __shfl_xor_sync(0xffffffffu, x, k);
    return x;
}

/* Mean and squared deviations of row tiles first .. first + N - 1, per channel of quad j; they go
 * to [2][co] of the tiles' segment. All lanes call it. */
template <int TILES, int N>
static __device__ __forceinline__ void measure_rows(const float sums[TILES][4][4], int first, int j,
                                                    bool is_there, float *to, int co) {
    float mean[4] = {}, square[4] = {};
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int e = 0; e < 8; e++)
            mean[e / 4 * 2 + e % 2] += sums[first + i][2 * j + e / 4][e % 4];
#pragma unroll
    for (int e = 0; e < 4; e++) mean[e] = rows_sum(mean[e]) / (float)(16 * N);
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int e = 0; e < 8; e++) {
            float d = sums[first + i][2 * j + e / 4][e % 4] - mean[e / 4 * 2 + e % 2];
            square[e / 4 * 2 + e % 2] = fmaf(d, d, square[e / 4 * 2 + e % 2]);
        }
#pragma unroll
    for (int e = 0; e < 4; e++) square[e] = rows_sum(square[e]);
    int g = (int)(threadIdx.x & 31) >> 2;
    if (!is_there || g > 1) return;
    float4 value = g == 0 ? make_float4(mean[0], mean[1], mean[2], mean[3])
                          : make_float4(square[0], square[1], square[2], square[3]);
    *(float4 *)(to + g * co) = value;
}

/* What a warp does with its sums. */
template <int WIDE>
static __device__ __forceinline__ void finish(const mma_call &c, const cuda_job &job, int n_rows,
                                              int row0, int pair0,
                                              const float sums[WIDE / 32][4][4]) {
    constexpr int TILES = WIDE / 32, COLS = WIDE / 32;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, m = row0 + warp / COLS * TILES * 16;
    size_t row = (size_t)blockIdx.y * c.n_max * (c.v.ho * c.v.wo) + m;
    const float *params = c.params + job.model * c.params_stride;
#pragma unroll
    for (int j = 0; j < 2; j++) {
        int channel = (pair0 + warp % COLS * 2 + j) * 16 + (lane & 3) * 4;
        bool is_there = channel < c.v.co;
        if (is_there)
            write_rows<TILES>(c, params, n_rows - m, channel, c.y + row * c.v.co, sums, j);
        if (c.measures == NULL) continue;
        if (c.segment == 16 * TILES) {
            float *to = c.measures + row / (16 * TILES) * 2 * c.v.co + channel;
            measure_rows<TILES, TILES>(sums, 0, j, is_there && m < n_rows, to, c.v.co);
            continue;
        }
#pragma unroll
        for (int i = 0; i < TILES; i++) {
            float *to = c.measures + (row / 16 + i) * 2 * c.v.co + channel;
            measure_rows<TILES, 1>(sums, i, j, is_there && m + 16 * i < n_rows, to, c.v.co);
        }
    }
}

/* Starts the copies of a chunk and moves on to the next; always a group. */
template <int WIDE>
static __device__ __forceinline__ void
copy_chunk(const mma_call &c, const float *x, const float *packed, int n_rows, int pair0,
           bool is_there, bool has_weights, chunk &k, pixel_rows &rows, float *stage) {
    if (is_there) {
        copy_pixels(c, x, k, rows, stage);
        if (!has_weights) copy_weights<WIDE>(c, packed, k, pair0, stage + ROWS * PITCH);
        next_chunk(c, n_rows, k, rows);
    }
    copies_group();
}

/* check: long because chunks of all its tiles are one pipeline */
template <int WIDE, bool GATED>
static __global__ void __launch_bounds__(THREADS, WIDE == 128  ? 1
                                                  : WIDE == 64 ? 2
                                                               : 3) conv_kernel(mma_call c) {
    extern __shared__ __align__(16) float shared[]; /* a ring of (pixels, weights) */
    constexpr int STAGE = ROWS * PITCH + DEPTH * WIDE, TILES = WIDE / 32;
    const cuda_job job = c.jobs[blockIdx.y];
    int n_cols = (c.n_pairs + WIDE / 16 - 1) / (WIDE / 16), n_rows = job.n * c.v.ho * c.v.wo;
    int pair0 = (int)(blockIdx.x % n_cols) * (WIDE / 16);
    int row0 = (int)(blockIdx.x / n_cols) * c.n_tiles * ROWS, first = 0; /* of the chunk in hand */
    if (row0 >= n_rows) return;
    const float *x = c.x + (size_t)blockIdx.y * c.n_max * (c.v.hi * c.v.wi) * c.v.ci;
    const float *scale = c.scale + (size_t)blockIdx.y * c.n_max * c.v.ci;
    const float *bias = c.params + job.model * c.params_stride + c.gate_bias;
    const float *packed = c.packed + job.model * c.packed_stride;
    float sums[TILES][4][4] = {};
    int n_chunks = c.v.kernel * c.v.kernel * ((c.v.ci + DEPTH - 1) / DEPTH), left = n_chunks;
    int n_all = n_chunks * min(c.n_tiles, (n_rows - row0 + ROWS - 1) / ROWS);
    bool stays = STAGES % n_chunks == 0; /* a stage's weights, from tile to tile */
    chunk k = {row0, 0, 0, 0};           /* to be copied next */
    pixel_rows rows;
    row_gates<TILES> gates;
    find_rows(c, n_rows, row0, rows);
    find_pixels(c, k, rows);
    for (int i = 0; i < STAGES - 1; i++)
        copy_chunk<WIDE>(c, x, packed, n_rows, pair0, i < n_all, false, k, rows,
                         shared + i * STAGE);
    for (int i = 0; i < n_all; i++) {
        int ahead = i + STAGES - 1, row = row0 + (int)threadIdx.x / 32 / TILES * TILES * 16;
        copies_wait_but<STAGES - 2>();
        __syncthreads(); /* this chunk is there, and nobody reads the one before any more */
        if (GATED) load_gates<TILES>(c, scale, bias, job.n - 1, row, first, gates);
        copy_chunk<WIDE>(c, x, packed, n_rows, pair0, ahead < n_all, stays && i > 0, k, rows,
                         shared + ahead % STAGES * STAGE);
        const float *stage = shared + i % STAGES * STAGE;
        multiply<WIDE, GATED>(stage, (const float4 *)(stage + ROWS * PITCH),
                              min((int)DEPTH, c.v.ci - first) / 8, gates, sums);
        first = first + DEPTH < c.v.ci ? first + DEPTH : 0;
        if (--left > 0) continue;
        finish<WIDE>(c, job, n_rows, row0, pair0, sums);
        left = n_chunks, row0 += ROWS;
#pragma unroll
        for (int e = 0; e < TILES * 16; e++) sums[e / 16][e / 4 % 4][e % 4] = 0.0f;
    }
}

bool ct_cuda_mma_fits(const cuda_tile_conv *v) {
    return v->ci % 8 == 0 && v->co % 8 == 0 && (v->step == 1 || v->step == 2);
}

/* Channels of a block. */
static int wide_of(const cuda_tile_conv *v) {
    if (v->co <= 32) return 32;
    /* the wide one reads fewer fragments for a product, but only one block fits: for long k */
    return v->co >= 128 && v->kernel > 1 && v->kernel * v->kernel * v->ci >= 512 ? 128 : 64;
}

int ct_cuda_mma_segment(const cuda_tile_conv *v) {
    int n_pixels = v->ho * v->wo, rows = wide_of(v) / 2;
    if (n_pixels % rows == 0) return rows;
    return n_pixels % 16 == 0 ? 16 : 0;
}

/* Row tiles of a block: several where there are enough blocks, so that one's results are written
 * while the next one's pixels are on their way. */
static int tiles_of(int n_row_tiles, int n_cols, int n_jobs) {
    long n = (long)n_row_tiles * n_cols * n_jobs / ENOUGH_BLOCKS;
    return n < 1 ? 1 : n > MOST_TILES ? (int)MOST_TILES : (int)n;
}

template <int WIDE, bool GATED> static ct_status launch(const cuda_run *run, mma_call *c) {
    size_t bytes = STAGES * (size_t)(ROWS * PITCH + DEPTH * WIDE) * sizeof(float);
    CT_CUDA_TRY(cudaFuncSetAttribute(conv_kernel<WIDE, GATED>,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    int n_cols = (c->n_pairs + WIDE / 16 - 1) / (WIDE / 16);
    int n_row_tiles = (c->n_max * c->v.ho * c->v.wo + ROWS - 1) / ROWS;
    c->n_tiles = tiles_of(n_row_tiles, n_cols, run->n_jobs);
    dim3 grid((unsigned)((n_row_tiles + c->n_tiles - 1) / c->n_tiles * n_cols),
              (unsigned)run->n_jobs);
    conv_kernel<WIDE, GATED><<<grid, THREADS, bytes, run->stream>>>(*c);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

ct_status ct_cuda_mma_conv(const cuda_run *run, const cuda_tile_conv *conv, const cuda_gate *gate,
                           const float *x_dev, size_t packed, const cuda_finish *finish,
                           float *y_dev) {
    mma_call c = {};
    c.v = *conv, c.jobs = run->jobs_dev, c.n_max = run->n_max, c.n_pairs = (conv->co + 15) / 16;
    c.x = x_dev, c.packed = run->packed_dev + packed, c.packed_stride = run->packed_stride;
    c.params = run->params_dev, c.params_stride = run->params_stride;
    c.scale = gate->scale_dev, c.gate_bias = gate->bias;
    c.bias = finish->bias, c.relu = finish->relu, c.accumulate = finish->accumulate;
    c.measures = finish->measures_dev, c.segment = ct_cuda_mma_segment(conv), c.y = y_dev;
    bool gated = gate->scale_dev != NULL;
    switch (wide_of(conv)) {
    case 32: return gated ? launch<32, true>(run, &c) : launch<32, false>(run, &c);
    case 64: return gated ? launch<64, true>(run, &c) : launch<64, false>(run, &c);
    default: return launch<128, false>(run, &c); /* several taps: no gate */
    }
}
