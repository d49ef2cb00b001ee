/* Convolution on the tensor cores with whole samples in shared memory, and behind it, where the
 * sums are still in registers, EvoNorm and the residual addition; for one convolution, or two of
 * the same input (a block's first and its shortcut's).
 * A matrix product with rows = output pixels, columns = output channels, k = (tap, input channel).
 * Grid: x over groups of samples (1024 or 256 output pixels a block), y = job. A block reads its
 * pictures once (4 bytes a value), the weights in the order of the fragments from the caches, and
 * writes 4 (forward only; 2 in bf16) or 8 bytes an output value; 2 flops a product. Weights are
 * packed so that a thread's columns of two column tiles are four neighbouring channels: it reads
 * and writes quads. Limits: tf32, 1x1 and 3x3 kernels, 16, 32 or 64 output channels, extents that
 * are powers of two.
 */
#include "backend/cuda/mma.cuh"

enum { GROUPS = 8, MAX_ROWS = 16 };

/* How a block shares out its output: ROWS warps over the pixels, COLS over the channels, a warp has
 * TILES tiles of 16 pixels; BLOCKS of them run on a multiprocessor at a time. 64 channels have
 * blocks of 128 pixels, or of 256 where a sample has as many. */
template <int CO, int ROWS> struct plan_of;
template <> struct plan_of<16, 16> {
    enum { TILES = 4, COLS = 1, BLOCKS = 2 };
};
template <> struct plan_of<32, 8> {
    enum { TILES = 2, COLS = 1, BLOCKS = 3 };
};
template <> struct plan_of<64, 4> {
    enum { TILES = 2, COLS = 2, BLOCKS = 3 };
};
template <> struct plan_of<64, 8> {
    enum { TILES = 2, COLS = 2, BLOCKS = 1 };
};
#define SHAPE_OF(CO, ROWS)                                                                         \
    constexpr int MT = plan_of<CO, ROWS>::TILES, COLS = plan_of<CO, ROWS>::COLS,                   \
                  NQ = CO / 16 / COLS, THREADS = 32 * ROWS * COLS;                                 \
    (void)MT, (void)COLS, (void)NQ, (void)THREADS
#define SUMS_OF(CO, ROWS)  [plan_of<CO, ROWS>::TILES][CO / 8 / plan_of<CO, ROWS>::COLS][4]
#define PARTS_AT(CO, ROWS) [CO / 16 / plan_of<CO, ROWS>::COLS][PARTS_OF(CO)]
/* Groups of EvoNorm are 2, 4 or 8 channels wide; a thread's quad of channels holds two of them, is
 * one, or half of one. PARTS groups of a quad are summed apart. */
#define PARTS_OF(CO) (CO == 16 ? 2 : 1)

typedef struct tile_call {
    cuda_tile_conv v;
    const cuda_job *jobs;
    int n_max, n_samples; /* samples of a block */
    int log_wo, log_pixels;
    const float *x, *packed;
    size_t packed_stride;
    const float *params;
    size_t params_stride;
    int n_outs;
    cuda_tile_out outs[2];
    float *y; /* without a norm */
    bool accumulate;
} tile_call;

/* Where channel quad q of pixel p lies in shared memory, in floats: the quads of 128 bytes are
 * swapped so that 8 pixels, neighbours or every second one, are in different banks. */
template <int DEPTH> static __device__ __forceinline__ int place_of(int p, int q) {
    int quad = p * (DEPTH / 4) + q;
    return (quad ^ ((DEPTH <= 16 ? quad >> 3 : p ^ p >> 3) & 7)) * 4;
}

/* The block's pictures, rounded to tf32; channels and samples that are not there are zero, and so
 * is the pixel behind the last. */
template <int DEPTH, int THREADS>
static __device__ __forceinline__ void load_pictures(const tile_call &c, const float *x,
                                                     int n_pixels, int n_there, float *tile) {
    constexpr int QUADS = DEPTH / 4, AT_ONCE = THREADS > 256 ? 4 : 8;
    if (c.v.ci == DEPTH) {
        for (int i = (int)threadIdx.x; i < n_pixels * QUADS; i += AT_ONCE * THREADS) {
            float4 v[AT_ONCE];
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) {
                int at = i + k * THREADS;
                v[k] = make_float4(0, 0, 0, 0);
                if (at < n_there * QUADS) v[k] = ((const float4 *)x)[at];
            }
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) {
                int at = i + k * THREADS;
                v[k].x = to_tf32(v[k].x), v[k].y = to_tf32(v[k].y);
                v[k].z = to_tf32(v[k].z), v[k].w = to_tf32(v[k].w);
                if (at < n_pixels * QUADS)
                    *(float4 *)&tile[place_of<DEPTH>(at / QUADS, at % QUADS)] = v[k];
            }
        }
    } else {
        for (int i = (int)threadIdx.x; i < n_pixels * DEPTH; i += THREADS) {
            int p = i / DEPTH, k = i % DEPTH;
            bool is_there = p < n_there && k < c.v.ci;
            tile[place_of<DEPTH>(p, k / 4) + k % 4] = is_there ? to_tf32(x[p * c.v.ci + k]) : 0.0f;
        }
    }
    if (threadIdx.x < QUADS)
        *(float4 *)&tile[place_of<DEPTH>(n_pixels, (int)threadIdx.x)] = make_float4(0, 0, 0, 0);
}

/* Gradients of a stride of two take the output in four classes, even and odd rows and columns, one
 * after the other: a tap reaches one class or none of another. Class of pixel r of a sample. */
static __device__ __forceinline__ int class_of(const tile_call &c, int r) {
    return r >> (c.log_pixels - 2);
}

/* Row and column of pixel r in that order, or simply in theirs. */
template <int STEP> static __device__ __forceinline__ int2 pixel_of(const tile_call &c, int r) {
    if (STEP == 1) return make_int2(r >> c.log_wo, r & ((1 << c.log_wo) - 1));
    int k = r & ((1 << (c.log_pixels - 2)) - 1), half = c.log_wo - 1, cls = class_of(c, r);
    return make_int2((k >> half) * 2 + (cls >> 1), (k & ((1 << half) - 1)) * 2 + (cls & 1));
}

/* Where this lane's pixel p is read under tap (0, 0): row and column in the halves of x, and the
 * sample's first pixel. */
template <int STEP>
static __device__ __forceinline__ int2 origin_of(const tile_call &c, const cuda_tile_conv &v,
                                                 int p) {
    int2 at = pixel_of<STEP>(c, p & ((1 << c.log_pixels) - 1));
    int y = at.x * v.scale + v.shift, x = at.y * v.scale + v.shift;
    return make_int2(y * 65536 + (x & 65535), (p >> c.log_pixels) * v.hi * v.wi);
}

/* The address of quad `high` of what it reads under tap (u, q) (those already have the sign), in
 * bytes; of the pixel of zeros where the picture ends. */
template <int DEPTH, int STEP>
static __device__ __forceinline__ uint32_t row_of(const cuda_tile_conv &v, int2 origin, int u,
                                                  int q, int n_pixels, int high) {
    int y = ((origin.x >> 16) + u) >> (STEP - 1), x = ((int)(short)origin.x + q) >> (STEP - 1);
    bool inside = (unsigned)y < (unsigned)v.hi && (unsigned)x < (unsigned)v.wi;
    return (uint32_t)place_of<DEPTH>(inside ? origin.y + y * v.wi + x : n_pixels, high) * 4;
}

/* The product: sums[i][j] of row tile i (16 pixels) and column tile j (8 channels). */
template <int CO, int ROWS, int DEPTH, int STEP>
static __device__ __forceinline__ void multiply(const tile_call &c, const cuda_tile_conv &v,
                                                const float4 *w, uint32_t tile,
                                                float sums SUMS_OF(CO, ROWS)) {
    SHAPE_OF(CO, ROWS);
    int lane = threadIdx.x & 31, row = (int)(threadIdx.x >> 5) % ROWS;
    int first = row * MT * 16 + (lane & 15), n_pixels = c.n_samples * v.hi * v.wi;
    w += (threadIdx.x >> 5) / ROWS * NQ * 32 + lane;
    int cls = class_of(c, row * MT * 16 & ((1 << c.log_pixels) - 1));
    int2 origin[MT];
#pragma unroll
    for (int i = 0; i < MT; i++) origin[i] = origin_of<STEP>(c, v, first + 16 * i);
    for (int u = 0; u < v.kernel; u++) {
        for (int q = 0; q < v.kernel; q++, w += DEPTH / 8 * (CO / 16) * 32) {
            bool is_off = (((cls >> 1) - u + v.shift) | ((cls & 1) - q + v.shift)) & 1;
            if (STEP == 2 && is_off) continue; /* the whole warp */
            uint32_t at[MT];
#pragma unroll
            for (int i = 0; i < MT; i++)
                at[i] = tile + row_of<DEPTH, STEP>(v, origin[i], v.sign * u, v.sign * q, n_pixels,
                                                   lane >> 4);
#pragma unroll
            for (int k = 0; k < DEPTH / 8; k++) {
                float4 b[NQ];
#pragma unroll
                for (int j = 0; j < NQ; j++) b[j] = __ldg(w + (k * (CO / 16) + j) * 32);
#pragma unroll
                for (int i = 0; i < MT; i++) {
                    float a[4];
                    load_fragment(a, at[i] ^ (uint32_t)k * 32);
#pragma unroll
                    for (int j = 0; j < NQ; j++) {
                        float left[2] = {b[j].x, b[j].y}, right[2] = {b[j].z, b[j].w};
                        mma_tf32(sums[i][2 * j], a, left);
                        mma_tf32(sums[i][2 * j + 1], a, right);
                    }
                }
            }
        }
    }
}

template <int CO, int ROWS> static __device__ __forceinline__ int group_of(int j, int part) {
    SHAPE_OF(CO, ROWS);
    int t = threadIdx.x & 3, quad = (int)(threadIdx.x >> 5) / ROWS * NQ + j;
    return CO == 16 ? 2 * t + part : CO == 32 ? 4 * quad + t : 2 * quad + (t >> 1);
}

/* Adds up a group over the lanes, then over the warps that share the sample, in order. */
template <int CO, int ROWS>
static __device__ __forceinline__ void sum_groups(float part PARTS_AT(CO, ROWS), int n_warps,
                                                  float scratch[MAX_ROWS][GROUPS]) {
    SHAPE_OF(CO, ROWS);
    int lane = threadIdx.x & 31, row = (int)(threadIdx.x >> 5) % ROWS;
    int first = row / n_warps * n_warps;
#pragma unroll
    for (int j = 0; j < NQ; j++)
#pragma unroll
        for (int h = 0; h < PARTS_OF(CO); h++) {
            for (int k = 16; k >= 4; k >>= 1)
                part[j][h] += __shfl_xor_sync(0xffffffffu, part[j][h], k);
            if (CO == 64) part[j][h] += __shfl_xor_sync(0xffffffffu, part[j][h], 1);
            if (lane < 4) scratch[row][group_of<CO, ROWS>(j, h)] = part[j][h];
        }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < NQ; j++)
#pragma unroll
        for (int h = 0; h < PARTS_OF(CO); h++) {
            part[j][h] = 0.0f;
            for (int k = 0; k < n_warps; k++)
                part[j][h] += scratch[first + k][group_of<CO, ROWS>(j, h)];
        }
}

/* Mean and 1/sigma of this thread's groups. */
template <int CO, int ROWS>
static __device__ __forceinline__ void
measure(const tile_call &c, const float sums SUMS_OF(CO, ROWS), float scratch[2][MAX_ROWS][GROUPS],
        float mean PARTS_AT(CO, ROWS), float inv PARTS_AT(CO, ROWS)) {
    SHAPE_OF(CO, ROWS);
    constexpr int PARTS = PARTS_OF(CO);
    int n_pixels = 1 << c.log_pixels, n_warps = n_pixels / (MT * 16);
    float count = (float)(n_pixels * (CO / GROUPS));
#pragma unroll
    for (int j = 0; j < NQ; j++)
#pragma unroll
        for (int h = 0; h < PARTS; h++) mean[j][h] = inv[j][h] = 0.0f;
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < 2 * NQ; j++)
#pragma unroll
            for (int k = 0; k < 4; k++) mean[j / 2][j % 2 % PARTS] += sums[i][j][k];
    sum_groups<CO, ROWS>(mean, n_warps, scratch[0]);
#pragma unroll
    for (int j = 0; j < NQ; j++)
#pragma unroll
        for (int h = 0; h < PARTS; h++) mean[j][h] /= count;
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < 2 * NQ; j++)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                float d = sums[i][j][k] - mean[j / 2][j % 2 % PARTS];
                inv[j / 2][j % 2 % PARTS] = fmaf(d, d, inv[j / 2][j % 2 % PARTS]);
            }
    sum_groups<CO, ROWS>(inv, n_warps, scratch[1]);
#pragma unroll
    for (int j = 0; j < NQ; j++)
#pragma unroll
        for (int h = 0; h < PARTS; h++) inv[j][h] = 1.0f / sqrtf(inv[j][h] / count + CUDA_EPSILON);
}

static __device__ __forceinline__ float gate(float x) {
    return x * fminf(fmaxf(fmaf(x, 1.0f / 6.0f, 0.5f), 0.0f), 1.0f);
}

/* Where this thread's quad j of (row tile i, upper or lower half) goes. */
template <int CO, int ROWS>
static __device__ __forceinline__ size_t place(size_t sample, int log_pixels, int i, int half,
                                               int j) {
    SHAPE_OF(CO, ROWS);
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    size_t p = warp % ROWS * MT * 16 + i * 16 + (lane >> 2) + half * 8;
    return ((sample << log_pixels) + p) * CO + (warp / ROWS * NQ + j) * 16 + (lane & 3) * 4;
}

template <int CO, int ROWS>
static __device__ __forceinline__ void
write_norm(const tile_call &c, const cuda_tile_out &out, const cuda_job &job, size_t sample,
           const float sums SUMS_OF(CO, ROWS), const float mean PARTS_AT(CO, ROWS),
           const float inv PARTS_AT(CO, ROWS)) {
    SHAPE_OF(CO, ROWS);
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, row = warp % ROWS;
    const float *params = c.params + job.model * c.params_stride;
    bool is_first = (row * MT * 16 & ((1 << c.log_pixels) - 1)) == 0 && lane < 4;
#pragma unroll
    for (int j = 0; j < NQ; j++) {
        int channel = (warp / ROWS * NQ + j) * 16 + (lane & 3) * 4;
        const float *pw = params + out.norm.weight + channel,
                    *pb = params + out.norm.bias + channel;
        float i0 = inv[j][0], i1 = inv[j][PARTS_OF(CO) - 1];
        float w[4] = {pw[0] * i0, pw[1] * i0, pw[2] * i1, pw[3] * i1};
        float b[4] = {pb[0], pb[1], pb[2], pb[3]};
#pragma unroll
        for (int h = 0; h < PARTS_OF(CO) && out.stats != NULL; h++) {
            size_t own = sample + (row * MT * 16 >> c.log_pixels);
            float2 *to = (float2 *)out.stats + own * GROUPS + group_of<CO, ROWS>(j, h);
            if (is_first) *to = make_float2(mean[j][h], inv[j][h]);
        }
#pragma unroll
        for (int i = 0; i < MT; i++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                size_t at = place<CO, ROWS>(sample, c.log_pixels, i, half, j);
                float4 x = quad_of(&sums[i][2 * j], half);
                float4 y = make_float4(fmaf(gate(x.x), w[0], b[0]), fmaf(gate(x.y), w[1], b[1]),
                                       fmaf(gate(x.z), w[2], b[2]), fmaf(gate(x.w), w[3], b[3]));
                if (out.pre != NULL) *(float4 *)(out.pre + at) = x;
                if (out.residual != NULL) {
                    float4 r = *(const float4 *)(out.residual + at);
                    y.x += r.x, y.y += r.y, y.z += r.z, y.w += r.w;
                }
                if (out.y_element == CUDA_BF16)
                    store_four((bf16 *)out.y + at, y);
                else
                    store_four(out.y + at, y);
            }
        }
    }
}

/* The same from the block's first value, in the order of pixel_of. */
template <int CO, int ROWS, int STEP>
static __device__ __forceinline__ size_t plain_place(const tile_call &c, int i, int half, int j) {
    size_t at = place<CO, ROWS>(0, 0, i, half, j);
    int p = (int)(at / CO), first = p >> c.log_pixels << c.log_pixels;
    int2 to = pixel_of<STEP>(c, p - first);
    return (size_t)(first + (to.x << c.log_wo) + to.y) * CO + at % CO;
}

template <int CO, int ROWS, int STEP>
static __device__ __forceinline__ void write_plain(const tile_call &c, size_t sample,
                                                   const float sums SUMS_OF(CO, ROWS)) {
    SHAPE_OF(CO, ROWS);
#pragma unroll
    for (int j = 0; j < NQ; j++)
#pragma unroll
        for (int i = 0; i < MT; i++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                float4 *to = (float4 *)(c.y + (sample << c.log_pixels) * CO +
                                        plain_place<CO, ROWS, STEP>(c, i, half, j));
                float4 y = quad_of(&sums[i][2 * j], half);
                if (c.accumulate) {
                    float4 before = *to;
                    y.x += before.x, y.y += before.y, y.z += before.z, y.w += before.w;
                }
                *to = y;
            }
}

template <int CO, int ROWS, int DEPTH, bool NORM, int STEP>
static __global__ void __launch_bounds__(32 * ROWS * plan_of<CO, ROWS>::COLS,
                                         plan_of<CO, ROWS>::BLOCKS)
    tile_kernel(const __grid_constant__ tile_call c) {
    SHAPE_OF(CO, ROWS);
    extern __shared__ __align__(256) float tile[];
    __shared__ float scratch[2][MAX_ROWS][GROUPS];
    const cuda_job job = c.jobs[blockIdx.y];
    int first = (int)blockIdx.x * c.n_samples, n_in = c.v.hi * c.v.wi;
    if (first >= job.n) return;
    int n_there = min(c.n_samples, job.n - first);
    size_t sample = (size_t)blockIdx.y * c.n_max + first;
    load_pictures<DEPTH, THREADS>(c, c.x + sample * n_in * c.v.ci, c.n_samples * n_in,
                                  n_there * n_in, tile);
    __syncthreads();
    const float *packed = c.packed + job.model * c.packed_stride;
    uint32_t from = shared_at(tile);
    int row = (int)(threadIdx.x >> 5) % ROWS;
    bool is_there = row * MT * 16 >> c.log_pixels < n_there;
    for (int k = 0; k < c.n_outs && NORM; k++) {
        const cuda_tile_out &out = c.outs[k];
        float sums SUMS_OF(CO, ROWS) = {};
        float mean PARTS_AT(CO, ROWS), inv PARTS_AT(CO, ROWS);
        multiply<CO, ROWS, DEPTH, STEP>(c, out.v, (const float4 *)(packed + out.packed), from,
                                        sums);
        measure<CO, ROWS>(c, sums, scratch, mean, inv);
        if (is_there) write_norm<CO, ROWS>(c, out, job, sample, sums, mean, inv);
    }
    if (!NORM) {
        float sums SUMS_OF(CO, ROWS) = {};
        multiply<CO, ROWS, DEPTH, STEP>(c, c.v, (const float4 *)packed, from, sums);
        if (is_there) write_plain<CO, ROWS, STEP>(c, sample, sums);
    }
}

static bool is_power(int n) {
    return n > 0 && (n & (n - 1)) == 0;
}

/* Output pixels of a warp and of a block. */
static int warp_pixels(int co) {
    return 16 * (co == 16 ? (int)plan_of<16, 16>::TILES : (int)plan_of<32, 8>::TILES);
}

static int block_pixels(const cuda_tile_conv *v) {
    if (v->co == 64) return v->ho * v->wo > 128 ? 256 : 128;
    return v->co == 32 ? 256 : 1024;
}

static size_t shared_bytes(const cuda_tile_conv *v) {
    int n_samples = block_pixels(v) / (v->ho * v->wo);
    size_t n = (size_t)(n_samples * v->hi * v->wi + 1) * (size_t)v->depth * sizeof(float);
    return (n + 127) / 128 * 128; /* quads are swapped within 128 bytes */
}

/* Those with a kernel; gradients go from wide to narrow, EvoNorm's convolutions the other way. */
static bool is_known(int co, int depth, bool norm) {
    if (norm) return depth == co || depth * 2 == co;
    return depth == co || depth == co * 2;
}

static bool has_kernel(const cuda_tile_conv *v, bool norm, size_t shared_limit) {
    int n_pixels = v->ho * v->wo;
    if (v->co != 16 && v->co != 32 && v->co != 64) return false;
    if (v->depth > 64 || !is_known(v->co, v->depth, norm)) return false;
    if (v->ci != v->depth && v->depth != 8) return false;
    if ((v->kernel != 1 && v->kernel != 3) || (v->step != 1 && v->step != 2)) return false;
    if (!is_power(v->ho) || !is_power(v->wo) || n_pixels % warp_pixels(v->co) != 0) return false;
    if (v->step == 2 && n_pixels / 4 % warp_pixels(v->co) != 0) return false;
    return block_pixels(v) % n_pixels == 0 && shared_bytes(v) + 1024 <= shared_limit;
}

static int log_of(int n) {
    int log = 0;
    while (1 << log < n) log++;
    return log;
}

template <int CO, int ROWS, int DEPTH, bool NORM, int STEP>
static ct_status launch(const cuda_run *run, const tile_call *c) {
    SHAPE_OF(CO, ROWS);
    dim3 grid((unsigned)((run->n_max + c->n_samples - 1) / c->n_samples), (unsigned)run->n_jobs);
    return launch_kernel(run, tile_kernel<CO, ROWS, DEPTH, NORM, STEP>, grid, THREADS,
                         shared_bytes(&c->v), *c);
}

template <int CO, int ROWS, int DEPTH>
static ct_status launch_norm(const cuda_run *run, const tile_call *c) {
    return launch<CO, ROWS, DEPTH, true, 1>(run, c);
}

template <int CO, int ROWS, int DEPTH>
static ct_status launch_plain(const cuda_run *run, const tile_call *c) {
    return c->v.step == 1 ? launch<CO, ROWS, DEPTH, false, 1>(run, c)
                          : launch<CO, ROWS, DEPTH, false, 2>(run, c);
}

static tile_call call_of(const cuda_run *run, const cuda_tile_conv *conv, const void *x_dev,
                         size_t packed) {
    tile_call c = {};
    c.v = *conv, c.jobs = run->jobs_dev, c.n_max = run->n_max;
    c.n_samples = block_pixels(conv) / (conv->ho * conv->wo);
    c.log_wo = log_of(conv->wo), c.log_pixels = log_of(conv->ho * conv->wo);
    c.x = (const float *)x_dev;
    c.packed = run->packed_dev + packed, c.packed_stride = run->packed_stride;
    c.params = run->params_dev, c.params_stride = run->params_stride;
    return c;
}

static ct_status conv_norm(const cuda_run *run, const float *x_dev, const cuda_tile_out *outs,
                           int n_outs) {
    const cuda_tile_conv *conv = &outs[0].v;
    tile_call c = call_of(run, conv, x_dev, 0);
    c.n_outs = n_outs;
    for (int k = 0; k < n_outs; k++) c.outs[k] = outs[k];
    bool same = conv->depth == conv->co;
    if (conv->co == 16)
        return same ? launch_norm<16, 16, 16>(run, &c) : launch_norm<16, 16, 8>(run, &c);
    if (conv->co == 32)
        return same ? launch_norm<32, 8, 32>(run, &c) : launch_norm<32, 8, 16>(run, &c);
    if (block_pixels(conv) == 128)
        return same ? launch_norm<64, 4, 64>(run, &c) : launch_norm<64, 4, 32>(run, &c);
    return same ? launch_norm<64, 8, 64>(run, &c) : launch_norm<64, 8, 32>(run, &c);
}

static ct_status dgrad(const cuda_run *run, const cuda_conv_call *call) {
    cuda_tile_conv conv = ct_cuda_tile_of(call->conv, CUDA_DGRAD);
    tile_call c = call_of(run, &conv, call->d, call->packed);
    c.y = (float *)call->dx, c.accumulate = call->accumulate;
    bool same = conv.depth == conv.co;
    if (conv.co == 16)
        return same ? launch_plain<16, 16, 16>(run, &c) : launch_plain<16, 16, 32>(run, &c);
    if (conv.co == 32)
        return same ? launch_plain<32, 8, 32>(run, &c) : launch_plain<32, 8, 64>(run, &c);
    return block_pixels(&conv) == 128 ? launch_plain<64, 4, 64>(run, &c)
                                      : launch_plain<64, 8, 64>(run, &c);
}

static ct_status wgrad(const cuda_run *run, const cuda_conv_call *call) {
    cuda_wgrad layer = {(const float *)call->x, (const float *)call->d, call->weight};
    return ct_cuda_tile_wgrad(run, call->conv, &layer, 1);
}

static size_t partial(const cuda_conv *v, int, int n_most) {
    return ct_cuda_split_floats(v, ct_cuda_tile_wgrad_splits(v, 1, n_most));
}

static bool has_direction(const cuda_problem *p, cuda_direction direction, bool norm) {
    const cuda_conv *v = &p->conv;
    cuda_tile_conv tile = ct_cuda_tile_of(v, direction);
    return p->rounds && v->groups == 1 && v->kh == v->kw &&
           has_kernel(&tile, norm, p->shared_limit);
}

/* Forward only with a norm behind it. */
static bool fits(const cuda_problem *p, cuda_direction direction) {
    if (direction == CUDA_WGRAD)
        return p->rounds && ct_cuda_tile_wgrad_fits(&p->conv, p->shared_limit);
    return direction == CUDA_DGRAD && has_direction(p, CUDA_DGRAD, false);
}

static bool fuses_norm(const cuda_problem *p) {
    return !p->has_bias && has_direction(p, CUDA_FORWARD, true);
}

const cuda_family ct_cuda_tile = {.name = "tile",
                                  .fits = fits,
                                  .packing = {CUDA_PACK_FRAGMENTS, CUDA_PACK_FRAGMENTS},
                                  .launch = {NULL, dgrad, wgrad},
                                  .partial = partial,
                                  .fuses_norm = fuses_norm,
                                  .launch_norm = conv_norm};
