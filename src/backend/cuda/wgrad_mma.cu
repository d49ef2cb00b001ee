/* Weight gradients (groups = 1) of convolutions of any extent on the tensor cores: for each tap
 * dw[o][i] = sum over the output pixels p of a job of d[p][o] * x[p under the tap][i]. A matrix
 * product with rows = output channels, columns = input channels, k = pixels. x may be EvoNorm's
 * input: the norm is then applied on the way into shared memory (cuda_gate).
 * A block computes 32, 64 or 128 output x 64 or 128 input channels of one tap over its part of the
 * pixels, 32 (tf32) or 64 (bf16) at a time, the next ones on their way while these are multiplied;
 * a warp 32 or 64 x 32 channels, and where these are fewer than the warps, warps share the pixels.
 * Grid: x = (part of the pixels, tap and input channels, output channels), the latter first; y =
 * job. The parts are added up by sums.cu in a fixed order. Reads a value of x and d for each block
 * of the other side's channels, from L2 but for the first. Limits: tf32 with channels on both sides
 * multiples of 4, bf16 of 8. */
#include "backend/cuda/mma.cuh"

enum { THREADS = 256, WARPS = THREADS / 32, STAGES = 3, STEPS = 4, ROUND = 64 /* pixels */ };

typedef struct wgrad_call {
    cuda_conv v;
    const cuda_job *jobs;
    int n_max, n_splits, per; /* pixels of a part */
    bool is_point;            /* 1x1, stride 1: input pixels are output pixels */
    const void *x, *d;
    const float *scale, *params;
    size_t params_stride, gate_bias;
    float *partial;
} wgrad_call;

/* What a block computes. */
typedef struct part {
    int o0, i0, u, q;
    int first, last; /* pixels */
} part;

/* A block's side of n channels in shared memory, [pixel][n channels and some], and its copying:
 * thread t has unit t % UNITS of pixels t / UNITS + k * EVERY. fp32 is read in quads of channels by
 * lanes that differ in pixels, bf16 as matrices: either way without conflicts. */
template <class T, int N> struct side {
    enum { PIXELS = STEPS * unit<T>::STEP, PITCH = N * sizeof(T) + (sizeof(T) == 4 ? 32 : 16) };
    enum { BYTES = PIXELS * PITCH, UNITS = N / unit<T>::SIZE };
    enum { EVERY = THREADS / UNITS, OWN = PIXELS / EVERY };
};

template <class T, int TALL, int WIDE, bool GATED> struct blocks {
    enum { ROWS = TALL == 128 && WIDE == 128 ? 64 : 32, TILES = ROWS / 16 }; /* of a warp */
    enum { COLS = WIDE / 32, TOGETHER = TALL / ROWS * COLS, SHARES = WARPS / TOGETHER };
    enum { PICTURE = STAGES * side<T, TALL>::BYTES };
    enum { END = PICTURE + (GATED ? 2 : STAGES) * side<T, WIDE>::BYTES };
};

/* The input pixel of the job under the tap, or -1. */
static __device__ __forceinline__ int input_pixel(const wgrad_call &c, const part &b, int pixel) {
    const cuda_conv &v = c.v;
    if (pixel >= b.last) return -1;
    if (c.is_point) return pixel;
    int n_pixels = v.ho * v.wo, s = pixel / n_pixels, p = pixel - s * n_pixels, oy = p / v.wo;
    int y = oy * v.stride + b.u - v.pad, x = (p - oy * v.wo) * v.stride + b.q - v.pad;
    if ((unsigned)y >= (unsigned)v.hi || (unsigned)x >= (unsigned)v.wi) return -1;
    return (s * v.hi + y) * v.wi + x;
}

/* Pixels of d straight to shared memory. */
template <class T, int TALL>
static __device__ __forceinline__ void copy_gradient(const wgrad_call &c, const T *d, const part &b,
                                                     int pixel, char *tile) {
    typedef side<T, TALL> s;
    int at = (int)threadIdx.x % s::UNITS, o = b.o0 + at * unit<T>::SIZE;
#pragma unroll
    for (int e = 0; e < s::OWN; e++) {
        int p = (int)threadIdx.x / s::UNITS + e * s::EVERY;
        bool is_there = pixel + p < b.last && o < c.v.co;
        copy_quad(tile + p * s::PITCH + at * 16,
                  is_there ? d + (size_t)(pixel + p) * c.v.co + o : d, is_there);
    }
}

template <class T, int WIDE>
static __device__ __forceinline__ void copy_picture(const wgrad_call &c, const T *x, const part &b,
                                                    int pixel, char *tile) {
    typedef side<T, WIDE> s;
    int at = (int)threadIdx.x % s::UNITS, i = b.i0 + at * unit<T>::SIZE;
#pragma unroll
    for (int e = 0; e < s::OWN; e++) {
        int p = (int)threadIdx.x / s::UNITS + e * s::EVERY, from = input_pixel(c, b, pixel + p);
        bool is_there = from >= 0 && i < c.v.ci;
        copy_quad(tile + p * s::PITCH + at * 16, is_there ? x + (size_t)from * c.v.ci + i : x,
                  is_there);
    }
}

/* Pixels of x to registers, on their way through a norm. */
template <class T, int WIDE>
static __device__ __forceinline__ void load_picture(const wgrad_call &c, const T *x, const part &b,
                                                    int pixel, uint4 raw[side<T, WIDE>::OWN]) {
    typedef side<T, WIDE> s;
    int i = b.i0 + (int)threadIdx.x % s::UNITS * unit<T>::SIZE;
#pragma unroll
    for (int e = 0; e < s::OWN; e++) {
        int p = pixel + (int)threadIdx.x / s::UNITS + e * s::EVERY;
        raw[e] = make_uint4(0, 0, 0, 0);
        if (p < b.last && i < c.v.ci) raw[e] = __ldg((const uint4 *)(x + (size_t)p * c.v.ci + i));
    }
}

/* EvoNorm of the thread's channels, for the sample that it was applied to last. */
template <class T> struct unit_gate {
    float scale[unit<T>::SIZE], bias[unit<T>::SIZE];
    int sample;
};

template <int SIZE>
static __device__ __forceinline__ void load_gate(const float *from, bool is_there, float to[SIZE]) {
#pragma unroll
    for (int e = 0; e < SIZE; e += 4)
        *(float4 *)(to + e) =
            is_there ? __ldg((const float4 *)(from + e)) : make_float4(0, 0, 0, 0);
}

template <class T, int WIDE>
static __device__ __forceinline__ void gate_picture(const wgrad_call &c, const part &b, int pixel,
                                                    const float *scale, const uint4 *raw,
                                                    unit_gate<T> &g, char *tile) {
    typedef side<T, WIDE> s;
    constexpr int SIZE = unit<T>::SIZE;
    int at = (int)threadIdx.x % s::UNITS, i = b.i0 + at * SIZE, n_pixels = c.v.ho * c.v.wo;
#pragma unroll
    for (int e = 0; e < s::OWN; e++) {
        int p = (int)threadIdx.x / s::UNITS + e * s::EVERY;
        int sample = min(pixel + p, b.last - 1) / n_pixels;
        if (sample != g.sample)
            load_gate<SIZE>(scale + (size_t)sample * c.v.ci + i, i < c.v.ci, g.scale);
        g.sample = sample;
        float v[SIZE];
        open_unit(T(), raw[e], v);
#pragma unroll
        for (int k = 0; k < SIZE; k++) v[k] = gate_one(v[k], g.scale[k], g.bias[k]);
        *(uint4 *)(tile + p * s::PITCH + at * 16) = factors_unit(T(), v);
    }
}

/* Fragments of one step of k. fp32: a lane's quad of neighbouring channels is one of each of four
 * halves of row tiles, or of four column tiles; bf16: matrices, transposed. `at` is the warp's
 * first channel in the step's first pixel. */
template <int TILES, int PITCH>
static __device__ __forceinline__ void rows_of(float, const char *at, uint32_t a[TILES][4]) {
    int lane = threadIdx.x & 31;
    at += (lane & 3) * PITCH + (lane >> 2) * 16;
#pragma unroll
    for (int i = 0; i < TILES; i += 2)
#pragma unroll
        for (int half = 0; half < 2; half++) { /* of k */
            uint4 v = *(const uint4 *)(at + i * 64 + 4 * half * PITCH);
            a[i][2 * half] = factor_of(0.0f, v.x), a[i][2 * half + 1] = factor_of(0.0f, v.y);
            a[i + 1][2 * half] = factor_of(0.0f, v.z),
                         a[i + 1][2 * half + 1] = factor_of(0.0f, v.w);
        }
}

template <int TILES, int PITCH>
static __device__ __forceinline__ void rows_of(bf16, const char *at, uint32_t a[TILES][4]) {
    int lane = threadIdx.x & 31;
    at += ((lane >> 4) * 8 + (lane & 7)) * PITCH + (lane >> 3 & 1) * 16;
#pragma unroll
    for (int i = 0; i < TILES; i++) load_transposed(a[i], shared_at(at + i * 32));
}

template <int PITCH, bool IS_FACTOR>
static __device__ __forceinline__ void columns_of(float, const char *at, uint32_t b[4][2]) {
    int lane = threadIdx.x & 31;
    at += (lane & 3) * PITCH + (lane >> 2) * 16;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        uint4 v = *(const uint4 *)(at + 4 * half * PITCH);
        b[0][half] = v.x, b[1][half] = v.y, b[2][half] = v.z, b[3][half] = v.w;
#pragma unroll
        for (int j = 0; j < 4 && !IS_FACTOR; j++) b[j][half] = factor_of(0.0f, b[j][half]);
    }
}

template <int PITCH, bool IS_FACTOR>
static __device__ __forceinline__ void columns_of(bf16, const char *at, uint32_t b[4][2]) {
    int lane = threadIdx.x & 31;
    at += ((lane >> 3 & 1) * 8 + (lane & 7)) * PITCH + (lane >> 4) * 16;
#pragma unroll
    for (int j = 0; j < 4; j += 2) {
        uint32_t r[4];
        load_transposed(r, shared_at(at + j * 16));
        b[j][0] = r[0], b[j][1] = r[1], b[j + 1][0] = r[2], b[j + 1][1] = r[3];
    }
}

/* Row of half `half` of row tile i, and the first of two neighbouring columns (bf16) or of a quad
 * whose members are the column tiles (fp32), among the warp's. */
static __device__ __forceinline__ int row_at(float, int i, int half) {
    return i / 2 * 32 + (int)(threadIdx.x & 31) / 4 * 4 + i % 2 * 2 + half;
}

static __device__ __forceinline__ int row_at(bf16, int i, int half) {
    return i * 16 + (int)(threadIdx.x & 31) / 4 + half * 8;
}

/* One row of a tile of sums to memory; n: channels from the warp's first on. */
static __device__ __forceinline__ void write_row(float, const float sums[4][4], int half, int n,
                                                 float *to) {
    int t = threadIdx.x & 3;
#pragma unroll
    for (int e = 0; e < 2; e++) {
        int k = 2 * half + e;
        if (8 * t + 4 * e < n)
            *(float4 *)(to + 8 * t + 4 * e) =
                make_float4(sums[0][k], sums[1][k], sums[2][k], sums[3][k]);
    }
}

static __device__ __forceinline__ void write_row(bf16, const float sums[4][4], int half, int n,
                                                 float *to) {
    int t = threadIdx.x & 3;
#pragma unroll
    for (int j = 0; j < 4; j++)
        if (8 * j + 2 * t < n)
            *(float2 *)(to + 8 * j + 2 * t) = make_float2(sums[j][2 * half], sums[j][2 * half + 1]);
}

/* Adds what warps with the same channels have of their pixels to the first one's, in order. */
template <int TILES, int TOGETHER, int SHARES>
static __device__ __forceinline__ void add_shares(float *all, float sums[TILES][4][4]) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, share = warp / TOGETHER;
    constexpr int SIZE = TILES * 16 * 32;
    copies_wait_but<0>();
    __syncthreads(); /* the ring is used again */
    float *own = all + (warp - TOGETHER) * SIZE + lane;
    for (int e = 0; share > 0 && e < TILES * 16; e++) own[e * 32] = sums[e / 16][e / 4 % 4][e % 4];
    __syncthreads();
    for (int k = 1; share == 0 && k < SHARES; k++)
#pragma unroll
        for (int e = 0; e < TILES * 16; e++)
            sums[e / 16][e / 4 % 4][e % 4] += own[k * TOGETHER * SIZE + e * 32];
}

/* The sums to partial[job][split][o][tap][i]. */
template <class T, int TILES>
static __device__ __forceinline__ void write_sums(const wgrad_call &c, const part &b, int split,
                                                  int row0, int col0,
                                                  const float sums[TILES][4][4]) {
    const cuda_conv &v = c.v;
    int taps = v.kh * v.kw;
    size_t first = ((size_t)blockIdx.y * c.n_splits + split) * v.co;
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int o = b.o0 + row0 + row_at(T(), i, half), in = b.i0 + col0;
            if (o >= v.co) continue;
            float *to = c.partial + ((first + o) * taps + b.u * v.kw + b.q) * v.ci + in;
            write_row(T(), sums[i], half, v.ci - in, to);
        }
}

static __device__ __forceinline__ int n_tiles(int n, int tile) {
    return (n + tile - 1) / tile;
}

/* The block's place among (split, tap, input channels, output channels). */
template <int TALL, int WIDE>
static __device__ __forceinline__ part part_of(const wgrad_call &c, int n_samples, int *split) {
    int n_o = n_tiles(c.v.co, TALL), n_i = n_tiles(c.v.ci, WIDE), taps = c.v.kh * c.v.kw;
    int at = (int)blockIdx.x, tap = at / n_o / n_i % taps;
    *split = at / n_o / n_i / taps;
    part b = {};
    b.o0 = at % n_o * TALL, b.i0 = at / n_o % n_i * WIDE, b.u = tap / c.v.kw, b.q = tap % c.v.kw;
    int n_pixels = n_samples * c.v.ho * c.v.wo;
    b.first = *split * c.per, b.last = min(n_pixels, b.first + c.per);
    return b;
}

/* check: long because both sides' pixels are one pipeline */
template <class T, int TALL, int WIDE, bool GATED>
static __global__ void __launch_bounds__(THREADS, 2) wgrad_kernel(wgrad_call c) {
    extern __shared__ __align__(16) char shared[]; /* rings of gradients and pictures */
    typedef blocks<T, TALL, WIDE, GATED> shape;
    typedef side<T, TALL> tall;
    typedef side<T, WIDE> wide;
    constexpr int TILES = shape::TILES, PIXELS = tall::PIXELS;
    const cuda_job job = c.jobs[blockIdx.y];
    int split;
    part b = part_of<TALL, WIDE>(c, job.n, &split);
    const T *d = (const T *)c.d + (size_t)blockIdx.y * c.n_max * (c.v.ho * c.v.wo) * c.v.co;
    const T *x = (const T *)c.x + (size_t)blockIdx.y * c.n_max * (c.v.hi * c.v.wi) * c.v.ci;
    const float *scale = c.scale + (size_t)blockIdx.y * c.n_max * c.v.ci;
    float sums[TILES][4][4] = {};
    uint4 raw[wide::OWN];
    unit_gate<T> gate;
    gate.sample = -1;
    if (GATED) {
        int i = b.i0 + (int)threadIdx.x % wide::UNITS * unit<T>::SIZE;
        load_gate<unit<T>::SIZE>(c.params + job.model * c.params_stride + c.gate_bias + i,
                                 i < c.v.ci, gate.bias);
        load_picture<T, WIDE>(c, x, b, b.first, raw);
    }
    /* chunk i of the part's pixels, if there is one; always a group */
    auto copy_chunk = [&](int i) {
        int pixel = b.first + i * PIXELS;
        if (pixel < b.last) {
            copy_gradient<T, TALL>(c, d, b, pixel, shared + i % STAGES * tall::BYTES);
            if (!GATED)
                copy_picture<T, WIDE>(c, x, b, pixel,
                                      shared + shape::PICTURE + i % STAGES * wide::BYTES);
        }
        copies_group();
    };
    int warp = (int)threadIdx.x / 32, share = warp / shape::TOGETHER, own = warp % shape::TOGETHER;
    int row0 = own / shape::COLS * shape::ROWS, col0 = own % shape::COLS * 32;
    for (int i = 0; i < STAGES - 1; i++) copy_chunk(i);
    for (int p = b.first, i = 0; p < b.last; p += PIXELS, i++) {
        char *picture = shared + shape::PICTURE + (GATED ? i % 2 : i % STAGES) * wide::BYTES;
        if (GATED) {
            gate_picture<T, WIDE>(c, b, p, scale, raw, gate, picture);
            load_picture<T, WIDE>(c, x, b, p + PIXELS, raw);
        }
        copies_wait_but<STAGES - 2>();
        __syncthreads(); /* these are there, and nobody reads the ones before any more */
        copy_chunk(i + STAGES - 1);
        const char *gradient = shared + i % STAGES * tall::BYTES + row0 * sizeof(T);
#pragma unroll
        for (int k = 0; k < STEPS / shape::SHARES; k++) {
            int at = (k * shape::SHARES + share) * unit<T>::STEP;
            uint32_t rows[TILES][4], cols[4][2];
            rows_of<TILES, tall::PITCH>(T(), gradient + at * tall::PITCH, rows);
            columns_of<wide::PITCH, GATED>(T(), picture + at * wide::PITCH + col0 * sizeof(T),
                                           cols);
#pragma unroll
            for (int t = 0; t < TILES; t++)
#pragma unroll
                for (int j = 0; j < 4; j++) mma(T(), sums[t][j], rows[t], cols[j][0], cols[j][1]);
        }
    }
    if (shape::SHARES > 1) add_shares<TILES, shape::TOGETHER, shape::SHARES>((float *)shared, sums);
    if (share == 0) write_sums<T, TILES>(c, b, split, row0, col0, sums);
}

static bool has_wgrad(const cuda_conv *v) {
    return v->groups == 1 && v->ci % 4 == 0 && v->co % 4 == 0 && v->ci >= 8;
}

/* Channels of a block on a side with n: what costs least, if handling the other side's pixels costs
 * as much as 32 channels. */
static int tile_of(int n, int smallest) {
    int best = smallest;
    long least = 0;
    for (int tile = smallest; tile <= 128; tile *= 2) {
        long cost = (long)((n + tile - 1) / tile) * (tile + 32);
        if (tile > smallest && cost > least) continue;
        best = tile, least = cost;
    }
    return best;
}

static int n_blocks(const cuda_conv *v) {
    int tall = tile_of(v->co, 32), wide = tile_of(v->ci, 64);
    return (v->co + tall - 1) / tall * ((v->ci + wide - 1) / wide) * v->kh * v->kw;
}

/* Pixels of a part: 16 jobs of 32 samples fill the machine about twice, 256 at least. What other
 * jobs a call has must not change the order of the sums. */
static int part_pixels(const cuda_conv *v) {
    long n = (long)v->ho * v->wo * 32 * 16 * n_blocks(v) / 528;
    return n < 256 ? 256 : (int)((n + ROUND - 1) / ROUND * ROUND);
}

static int splits_of(const cuda_conv *v, int n_max) {
    long n_pixels = (long)n_max * v->ho * v->wo;
    return (int)((n_pixels + part_pixels(v) - 1) / part_pixels(v));
}

static size_t partial(const cuda_conv *v, int n_max, int) {
    return ct_cuda_split_floats(v, splits_of(v, n_max));
}

template <class T, int TALL, int WIDE, bool GATED>
static ct_status launch(const cuda_run *run, const wgrad_call *c) {
    dim3 grid((unsigned)(n_blocks(&c->v) * c->n_splits), (unsigned)run->n_jobs);
    return launch_kernel(run, wgrad_kernel<T, TALL, WIDE, GATED>, grid, THREADS,
                         blocks<T, TALL, WIDE, GATED>::END, *c);
}

template <class T, int TALL, int WIDE>
static ct_status launch_gated(const cuda_run *run, const wgrad_call *c) {
    return c->scale != NULL ? launch<T, TALL, WIDE, true>(run, c)
                            : launch<T, TALL, WIDE, false>(run, c);
}

template <class T, int TALL>
static ct_status launch_wide(const cuda_run *run, const wgrad_call *c) {
    return tile_of(c->v.ci, 64) == 64 ? launch_gated<T, TALL, 64>(run, c)
                                      : launch_gated<T, TALL, 128>(run, c);
}

template <class T> static ct_status launch_tall(const cuda_run *run, const wgrad_call *c) {
    switch (tile_of(c->v.co, 32)) {
    case 32: return launch_wide<T, 32>(run, c);
    case 64: return launch_wide<T, 64>(run, c);
    default: return launch_wide<T, 128>(run, c);
    }
}

static ct_status wgrad(const cuda_run *run, const cuda_conv_call *call) {
    const cuda_conv *v = call->conv;
    wgrad_call c = {};
    c.v = *v, c.jobs = run->jobs_dev, c.n_max = run->n_max, c.x = call->x, c.d = call->d;
    c.n_splits = splits_of(v, run->n_max), c.per = part_pixels(v);
    c.is_point = ct_cuda_is_pointwise(v);
    c.params = run->params_dev, c.params_stride = run->params_stride;
    c.scale = call->gate.scale_dev, c.gate_bias = call->gate.bias, c.partial = run->partial_dev;
    CT_TRY(call->element == CUDA_BF16 ? launch_tall<bf16>(run, &c) : launch_tall<float>(run, &c));
    return ct_cuda_sum_wgrad(run, c.n_splits, v, false, call->weight);
}

/* ---- the families, with conv_mma.cu ---- */

static bool fits(const cuda_problem *p, cuda_direction direction) {
    const cuda_conv *v = &p->conv;
    if (!p->rounds || v->kh != v->kw) return false;
    if (direction == CUDA_WGRAD) return has_wgrad(v);
    int step = ct_cuda_tile_of(v, direction).step;
    return v->ci % 8 == 0 && v->co % 8 == 0 && (step == 1 || step == 2);
}

static bool fits_point(const cuda_problem *p, cuda_direction direction) {
    return ct_cuda_is_pointwise(&p->conv) && fits(p, CUDA_FORWARD) && fits(p, direction);
}

static int segments_of(const cuda_conv *v, cuda_direction direction) {
    cuda_tile_conv tile = ct_cuda_tile_of(v, direction);
    int segment = ct_cuda_mma_segment(&tile);
    return segment > 0 ? tile.ho * tile.wo / segment : 0;
}

static cuda_segments segments(const cuda_conv *v) {
    return {segments_of(v, CUDA_FORWARD)};
}

static int parts(const cuda_conv *v, bool, bool) {
    return segments_of(v, CUDA_DGRAD);
}

/* A norm is not applied where there are several taps, since that would be done for each of them,
 * nor where 16 rows of pixels are not of one sample. */
static bool applies_gates(const cuda_conv *v) {
    return v->ho * v->wo % 16 == 0;
}

const cuda_family ct_cuda_point = {.name = "point",
                                   .fits = fits_point,
                                   .packing = {CUDA_PACK_FRAGMENTS, CUDA_PACK_FRAGMENTS},
                                   .launch = {ct_cuda_mma_forward, ct_cuda_mma_dgrad, wgrad},
                                   .partial = partial,
                                   .has_bf16 = true,
                                   .gates = applies_gates,
                                   .segments = segments,
                                   .parts = parts};

const cuda_family ct_cuda_mma = {.name = "mma",
                                 .fits = fits,
                                 .packing = {CUDA_PACK_FRAGMENTS, CUDA_PACK_FRAGMENTS},
                                 .launch = {ct_cuda_mma_forward, ct_cuda_mma_dgrad, wgrad},
                                 .partial = partial,
                                 .has_bf16 = true,
                                 .segments = segments,
                                 .parts = parts};
