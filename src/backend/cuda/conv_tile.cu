/* Convolution on the tensor cores with whole samples in shared memory, and behind it, where the
 * sums are still in registers, EvoNorm and the residual addition.
 * A matrix product with rows = output pixels, columns = output channels, k = (tap, input channel).
 * Grid: x over groups of samples (1024 or 256 output pixels a block), y = job. A block reads its
 * pictures once (4 bytes a value), the weights in the order of the fragments from the caches, and
 * writes 4 (forward only) or 8 bytes an output value; 2 flops a product. Limits: tf32, 1x1 and 3x3
 * kernels, 16, 32 or 64 output channels, extents that are powers of two. */
#include "backend/cuda/device.cuh"

enum { WARPS = 8, THREADS = 32 * WARPS, GROUPS = 8 };

typedef struct tile_call {
    cuda_tile_conv v;
    const cuda_job *jobs;
    int n_max, n_samples; /* samples of a block */
    int log_wo, log_pixels;
    const float *x, *packed;
    size_t packed_stride;
    const float *params;
    size_t params_stride;
    size_t weight, bias;
    const float *residual;
    float *pre, *stats, *y;
    bool accumulate;
} tile_call;

/* Four 8x4 matrices of floats: the fragment a of mma_tf32 from 16 rows of 8 channels. */
static __device__ __forceinline__ void load_fragment(float a[4], uint32_t address) {
    uint32_t r[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
#pragma unroll
    for (int k = 0; k < 4; k++) a[k] = __uint_as_float(r[k]);
}

/* The block's pictures, rounded to tf32, [pixel][depth + 4]; channels and samples that are not
 * there are zero, and so is the pixel behind the last. */
static __device__ void load_pictures(const tile_call &c, const float *x, int n_pixels, int n_there,
                                     float *tile) {
    int pitch = c.v.depth + 4;
    if (c.v.ci % 4 == 0) {
        int log_quads = 31 - __clz(c.v.ci / 4);
        for (int i = (int)threadIdx.x; i < n_pixels << log_quads; i += THREADS) {
            int p = i >> log_quads, q = i & ((1 << log_quads) - 1);
            float4 v = make_float4(0, 0, 0, 0);
            if (p < n_there) v = ((const float4 *)x)[i];
            v.x = to_tf32(v.x), v.y = to_tf32(v.y), v.z = to_tf32(v.z), v.w = to_tf32(v.w);
            *(float4 *)&tile[p * pitch + 4 * q] = v;
        }
    } else {
        for (int i = (int)threadIdx.x; i < n_pixels * c.v.depth; i += THREADS) {
            int p = i / c.v.depth, k = i - p * c.v.depth;
            bool is_there = p < n_there && k < c.v.ci;
            tile[p * pitch + k] = is_there ? to_tf32(x[p * c.v.ci + k]) : 0.0f;
        }
    }
    for (int k = (int)threadIdx.x; k < pitch; k += THREADS) tile[n_pixels * pitch + k] = 0.0f;
}

/* The product: sums[i][j] of row tile i (16 pixels) and column tile j (8 channels). */
template <int CO, int MT>
static __device__ __forceinline__ void multiply(const tile_call &c, const float4 *w, uint32_t tile,
                                                float sums[MT][CO / 8][4]) {
    constexpr int NT = CO / 8;
    const cuda_tile_conv &v = c.v;
    int lane = threadIdx.x & 31, first = (int)(threadIdx.x >> 5) * MT * 16 + (lane & 15);
    int pitch = (v.depth + 4) * 4, n_in = v.hi * v.wi; /* pitch in bytes */
    uint32_t zero = (uint32_t)(c.n_samples * n_in * pitch), odd = (uint32_t)(v.step - 1);
    w += lane;
    for (int u = 0; u < v.kernel; u++) {
        for (int q = 0; q < v.kernel; q++) {
            uint32_t at[MT];
#pragma unroll
            for (int i = 0; i < MT; i++) {
                int p = first + 16 * i, s = p >> c.log_pixels, r = p & ((1 << c.log_pixels) - 1);
                int y = (r >> c.log_wo) * v.scale + v.sign * u + v.shift;
                int x = (r & (v.wo - 1)) * v.scale + v.sign * q + v.shift;
                bool whole = ((uint32_t)(y | x) & odd) == 0;
                y >>= odd, x >>= odd;
                bool inside = whole && (unsigned)y < (unsigned)v.hi && (unsigned)x < (unsigned)v.wi;
                uint32_t from = inside ? (uint32_t)((s * n_in + y * v.wi + x) * pitch) : zero;
                at[i] = tile + from + (uint32_t)(lane >> 4) * 16;
            }
            for (int k = 0; k < v.depth; k += 8) {
                float b[NT][2];
#pragma unroll
                for (int j = 0; j < NT; j += 2) {
                    float4 f = __ldg(w + (j / 2) * 32);
                    b[j][0] = f.x, b[j][1] = f.y, b[j + 1][0] = f.z, b[j + 1][1] = f.w;
                }
                w += NT / 2 * 32;
#pragma unroll
                for (int i = 0; i < MT; i++) {
                    float a[4];
                    load_fragment(a, at[i] + (uint32_t)k * 4);
#pragma unroll
                    for (int j = 0; j < NT; j++) mma_tf32(sums[i][j], a, b[j]);
                }
            }
        }
    }
}

/* Which group of EvoNorm this thread's columns of column tile j are in. */
template <int CO> static __device__ __forceinline__ int group_of(int j) {
    return (j * 8 + (threadIdx.x & 3) * 2) / (CO / GROUPS);
}

/* The group sums of this warp's rows for each column tile, added up over the warps that share the
 * sample; every thread gets its own groups' sums. */
template <int CO>
static __device__ __forceinline__ void sum_groups(float part[CO / 8], int n_warps,
                                                  float scratch[WARPS][GROUPS]) {
    constexpr int NT = CO / 8, WIDE = CO / GROUPS; /* channels of a group */
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, first = warp / n_warps * n_warps;
#pragma unroll
    for (int j = 0; j < NT; j++) {
        for (int k = 16; k >= 4; k >>= 1) part[j] += __shfl_xor_sync(0xffffffffu, part[j], k);
        if (WIDE >= 4) part[j] += __shfl_xor_sync(0xffffffffu, part[j], 1);
        if (WIDE >= 8) part[j] += __shfl_xor_sync(0xffffffffu, part[j], 2);
        if (lane < 4) scratch[warp][group_of<CO>(j)] = part[j];
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < NT; j++) {
        part[j] = 0.0f;
        for (int k = 0; k < n_warps; k++) part[j] += scratch[first + k][group_of<CO>(j)];
    }
}

/* Mean and 1/sigma of this thread's groups. */
template <int CO, int MT>
static __device__ __forceinline__ void measure(const tile_call &c, const float sums[MT][CO / 8][4],
                                               float scratch[2][WARPS][GROUPS], float mean[CO / 8],
                                               float inv[CO / 8]) {
    constexpr int NT = CO / 8;
    int n_pixels = 1 << c.log_pixels, n_warps = n_pixels / (MT * 16);
    float count = (float)(n_pixels * (CO / GROUPS));
#pragma unroll
    for (int j = 0; j < NT; j++) {
        mean[j] = 0.0f;
#pragma unroll
        for (int i = 0; i < MT; i++)
            mean[j] += sums[i][j][0] + sums[i][j][1] + sums[i][j][2] + sums[i][j][3];
    }
    sum_groups<CO>(mean, n_warps, scratch[0]);
#pragma unroll
    for (int j = 0; j < NT; j++) {
        mean[j] /= count;
        inv[j] = 0.0f;
#pragma unroll
        for (int i = 0; i < MT; i++)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                float d = sums[i][j][k] - mean[j];
                inv[j] = fmaf(d, d, inv[j]);
            }
    }
    sum_groups<CO>(inv, n_warps, scratch[1]);
#pragma unroll
    for (int j = 0; j < NT; j++) inv[j] = 1.0f / sqrtf(inv[j] / count + CUDA_EPSILON);
}

static __device__ __forceinline__ float gate(float x) {
    return x * fminf(fmaxf(fmaf(x, 1.0f / 6.0f, 0.5f), 0.0f), 1.0f);
}

/* Where this thread's two columns of (row tile i, upper or lower half, column tile j) go. */
template <int CO, int MT>
static __device__ __forceinline__ size_t place(size_t sample, int log_pixels, int i, int half,
                                               int j) {
    int lane = threadIdx.x & 31;
    size_t p = (threadIdx.x >> 5) * MT * 16 + i * 16 + (lane >> 2) + half * 8;
    return ((sample << log_pixels) + p) * CO + j * 8 + (lane & 3) * 2;
}

template <int CO, int MT>
static __device__ __forceinline__ void
write_norm(const tile_call &c, const cuda_job &job, size_t sample, const float sums[MT][CO / 8][4],
           const float mean[CO / 8], const float inv[CO / 8]) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int own = warp * MT * 16 >> c.log_pixels; /* this warp's sample of the block */
    const float *row = c.params + job.model * c.params_stride;
    bool is_first = (warp * MT * 16 & ((1 << c.log_pixels) - 1)) == 0 && lane < 4;
#pragma unroll
    for (int j = 0; j < CO / 8; j++) {
        int col = j * 8 + (lane & 3) * 2;
        float w0 = row[c.weight + col] * inv[j], w1 = row[c.weight + col + 1] * inv[j];
        float b0 = row[c.bias + col], b1 = row[c.bias + col + 1];
        if (c.stats != NULL && is_first) {
            float *to = c.stats + ((sample + own) * GROUPS + group_of<CO>(j)) * 2;
            to[0] = mean[j], to[1] = inv[j];
        }
#pragma unroll
        for (int i = 0; i < MT; i++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                size_t at = place<CO, MT>(sample, c.log_pixels, i, half, j);
                float2 x = make_float2(sums[i][j][2 * half], sums[i][j][2 * half + 1]);
                float2 y = make_float2(fmaf(gate(x.x), w0, b0), fmaf(gate(x.y), w1, b1));
                if (c.pre != NULL) *(float2 *)(c.pre + at) = x;
                if (c.residual != NULL) {
                    float2 r = *(const float2 *)(c.residual + at);
                    y.x += r.x, y.y += r.y;
                }
                *(float2 *)(c.y + at) = y;
            }
        }
    }
}

template <int CO, int MT>
static __device__ __forceinline__ void write_plain(const tile_call &c, size_t sample,
                                                   const float sums[MT][CO / 8][4]) {
#pragma unroll
    for (int j = 0; j < CO / 8; j++)
#pragma unroll
        for (int i = 0; i < MT; i++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                float2 *to = (float2 *)(c.y + place<CO, MT>(sample, c.log_pixels, i, half, j));
                float2 y = make_float2(sums[i][j][2 * half], sums[i][j][2 * half + 1]);
                if (c.accumulate) {
                    float2 before = *to;
                    y.x += before.x, y.y += before.y;
                }
                *to = y;
            }
}

template <int CO, int MT, bool NORM>
static __global__ void __launch_bounds__(THREADS, 2) tile_kernel(tile_call c) {
    extern __shared__ __align__(16) float tile[];
    __shared__ float scratch[2][WARPS][GROUPS];
    const cuda_job job = c.jobs[blockIdx.y];
    int first = (int)blockIdx.x * c.n_samples, n_in = c.v.hi * c.v.wi;
    if (first >= job.n) return;
    int n_there = min(c.n_samples, job.n - first);
    size_t sample = (size_t)blockIdx.y * c.n_max + first;
    load_pictures(c, c.x + sample * n_in * c.v.ci, c.n_samples * n_in, n_there * n_in, tile);
    __syncthreads();
    float sums[MT][CO / 8][4] = {};
    multiply<CO, MT>(c, (const float4 *)(c.packed + job.model * c.packed_stride),
                     (uint32_t)__cvta_generic_to_shared(tile), sums);
    bool is_there = (int)((threadIdx.x >> 5) * MT * 16) >> c.log_pixels < n_there;
    if (NORM) {
        float mean[CO / 8], inv[CO / 8];
        measure<CO, MT>(c, sums, scratch, mean, inv);
        if (is_there) write_norm<CO, MT>(c, job, sample, sums, mean, inv);
    } else if (is_there) {
        write_plain<CO, MT>(c, sample, sums);
    }
}

static bool is_power(int n) {
    return n > 0 && (n & (n - 1)) == 0;
}

/* Output pixels of a block: 16 row tiles of accumulators a warp in each case. */
static int block_pixels(int co) {
    return co == 16 ? WARPS * 8 * 16 : WARPS * 2 * 16;
}

static size_t shared_bytes(const cuda_tile_conv *v) {
    int n_samples = block_pixels(v->co) / (v->ho * v->wo);
    return (size_t)(n_samples * v->hi * v->wi + 1) * (size_t)(v->depth + 4) * sizeof(float);
}

bool ct_cuda_tile_fits(const cuda_tile_conv *v, size_t shared_limit) {
    int n_pixels = v->ho * v->wo, per_warp = v->co == 16 ? 128 : 32;
    if (v->co != 16 && v->co != 32 && v->co != 64) return false;
    if ((v->kernel != 1 && v->kernel != 3) || (v->step != 1 && v->step != 2)) return false;
    if (!is_power(v->ho) || !is_power(v->wo) || n_pixels % per_warp != 0) return false;
    if (v->ci > 64 || (v->ci % 4 == 0 ? !is_power(v->ci) || v->ci < 8 : v->ci > 8)) return false;
    if (block_pixels(v->co) % n_pixels != 0) return false;
    return shared_bytes(v) + 1024 <= shared_limit;
}

static int log_of(int n) {
    int log = 0;
    while (1 << log < n) log++;
    return log;
}

template <int CO, int MT, bool NORM>
static ct_status launch(const cuda_run *run, const tile_call *c) {
    size_t bytes = shared_bytes(&c->v);
    CT_CUDA_TRY(cudaFuncSetAttribute(tile_kernel<CO, MT, NORM>,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    dim3 grid((unsigned)((run->n_max + c->n_samples - 1) / c->n_samples), (unsigned)run->n_jobs);
    tile_kernel<CO, MT, NORM><<<grid, THREADS, bytes, run->stream>>>(*c);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

static tile_call call_of(const cuda_run *run, const cuda_tile_conv *conv, const float *x_dev,
                         size_t packed, float *y_dev) {
    tile_call c = {};
    c.v = *conv, c.jobs = run->jobs_dev, c.n_max = run->n_max;
    c.n_samples = block_pixels(conv->co) / (conv->ho * conv->wo);
    c.log_wo = log_of(conv->wo), c.log_pixels = log_of(conv->ho * conv->wo);
    c.x = x_dev, c.packed = run->packed_dev + packed, c.packed_stride = run->packed_stride;
    c.params = run->params_dev, c.params_stride = run->params_stride, c.y = y_dev;
    return c;
}

ct_status ct_cuda_tile_evonorm(const cuda_run *run, const cuda_tile_conv *conv, const float *x_dev,
                               size_t packed, const cuda_norm *norm, const float *residual_dev,
                               float *pre_dev, float *stats_dev, float *y_dev) {
    tile_call c = call_of(run, conv, x_dev, packed, y_dev);
    c.weight = norm->weight, c.bias = norm->bias, c.residual = residual_dev;
    c.pre = pre_dev, c.stats = stats_dev;
    if (conv->co == 16) return launch<16, 8, true>(run, &c);
    return conv->co == 32 ? launch<32, 2, true>(run, &c) : launch<64, 2, true>(run, &c);
}

ct_status ct_cuda_tile_conv(const cuda_run *run, const cuda_tile_conv *conv, const float *x_dev,
                            size_t packed, bool accumulate, float *y_dev) {
    tile_call c = call_of(run, conv, x_dev, packed, y_dev);
    c.accumulate = accumulate;
    if (conv->co == 16) return launch<16, 8, false>(run, &c);
    return conv->co == 32 ? launch<32, 2, false>(run, &c) : launch<64, 2, false>(run, &c);
}
