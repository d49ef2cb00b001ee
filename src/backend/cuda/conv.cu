/* Convolutions of any shape (groups = 1) as implicit matrix products c[M x N] = a[M x K] b[K x N]:
 *   forward   M = (sample, y, x) of the output, N = co, K = (tap, ci), a = pictures, b = weights
 *   dgrad     M = (sample, y, x) of the input,  N = ci, K = (tap, co), a = gradients, b = weights
 *   wgrad     M = co, N = (tap, ci), K = (sample, y, x) of the output, a = gradients, b = pictures
 * A block computes a 64 x 64 tile, 16 of K at a time. Grid: x over M, y over N, z = job (wgrad: job
 * and part of K, whose sums are added up by sums.cu). 2 flops for each of the M N K products; reads
 * M K + K N values for every 64 columns and rows. fp32 runs on the FMA units, tf32 on the tensor
 * cores with operands rounded to nearest. */
#include "backend/cuda/device.cuh"

enum { TILE = 64, DEPTH = 16, PITCH = TILE + 8, THREADS = 256 };
enum { FORWARD, DGRAD, WGRAD };

typedef struct shape {
    cuda_conv conv;
    int n_max;
    int n_splits, per; /* wgrad: parts of K, and its pixels each */
    const cuda_job *jobs;
} shape;

/* Where row m (or column k of wgrad) of the pixels begins: sample, and top left of its window. */
typedef struct pixel {
    const float *base;
    int y, x;
} pixel;

static __device__ __forceinline__ pixel pixel_of(const float *data, int index, int h, int w,
                                                 size_t sample_size, int scale, int shift) {
    int b = index / (h * w), p = index - b * h * w, y = p / w;
    return {data + (size_t)b * sample_size, y * scale + shift, (p - y * w) * scale + shift};
}

/* x[y + u][x + v][c], zero outside. */
static __device__ __forceinline__ float forward_value(const cuda_conv &v, pixel p, int tap, int c) {
    int u = tap / v.kw, y = p.y + u, x = p.x + tap - u * v.kw;
    bool inside = y >= 0 && y < v.hi && x >= 0 && x < v.wi;
    return inside ? p.base[((size_t)y * v.wi + x) * v.ci + c] : 0.0f;
}

/* d at the output pixel that input pixel (y, x) feeds through the tap, if there is one. */
static __device__ __forceinline__ float dgrad_value(const cuda_conv &v, pixel p, int tap, int c) {
    int u = tap / v.kw, y = p.y - u, x = p.x - (tap - u * v.kw);
    if (y < 0 || x < 0 || y % v.stride != 0 || x % v.stride != 0) return 0.0f;
    y /= v.stride, x /= v.stride;
    return y < v.ho && x < v.wo ? p.base[((size_t)y * v.wo + x) * v.co + c] : 0.0f;
}

/* One DEPTH of the product, from shared tiles a[k][m], b[k][n], to this thread's sums. */
template <bool TF32>
static __device__ __forceinline__ void multiply(const float (*a)[PITCH], const float (*b)[PITCH],
                                                float sums[4][4]) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (TF32) {
        int g = lane >> 2, t = lane & 3, m = (warp & 3) * 16, n = (warp >> 2) * 32;
#pragma unroll
        for (int k = 0; k < DEPTH; k += 8) {
            float fa[4] = {a[k + t][m + g], a[k + t][m + g + 8], a[k + t + 4][m + g],
                           a[k + t + 4][m + g + 8]};
#pragma unroll
            for (int j = 0; j < 4; j++) {
                float fb[2] = {b[k + t][n + j * 8 + g], b[k + t + 4][n + j * 8 + g]};
                mma_tf32(sums[j], fa, fb);
            }
        }
    } else {
        int n = (threadIdx.x & 15) * 4, m = (threadIdx.x >> 4) * 4;
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            float4 va = *(const float4 *)&a[k][m], vb = *(const float4 *)&b[k][n];
            float ra[4] = {va.x, va.y, va.z, va.w}, rb[4] = {vb.x, vb.y, vb.z, vb.w};
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) sums[i][j] = fmaf(ra[i], rb[j], sums[i][j]);
        }
    }
}

/* Row and column, inside the tile, of this thread's sums[i][j]. */
template <bool TF32> static __device__ __forceinline__ int2 place(int i, int j) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (TF32)
        return make_int2((warp & 3) * 16 + (lane >> 2) + (j >> 1) * 8,
                         (warp >> 2) * 32 + i * 8 + (lane & 3) * 2 + (j & 1));
    return make_int2((int)(threadIdx.x >> 4) * 4 + i, (int)(threadIdx.x & 15) * 4 + j);
}

/* What a block multiplies: operands, limits, and this thread's rows of the pixels. */
typedef struct operands {
    const float *a, *b;
    int n_m, n_n, n_k; /* limits */
    pixel rows[4];     /* forward, dgrad: this thread's rows */
    int m0, n0;
} operands;

/* Value k of this thread's row i of the pixels. */
template <int MODE>
static __device__ __forceinline__ float row_value(const cuda_conv &v, const operands &l, int i,
                                                  int k) {
    if (k >= l.n_k || l.m0 + (int)(threadIdx.x >> 4) + 16 * i >= l.n_m) return 0.0f;
    int depth = MODE == FORWARD ? v.ci : v.co, tap = k / depth;
    return MODE == FORWARD ? forward_value(v, l.rows[i], tap, k - tap * depth)
                           : dgrad_value(v, l.rows[i], tap, k - tap * depth);
}

static __device__ __forceinline__ float column_value(const operands &l, const float *data, int k,
                                                     int n, int limit) {
    return k < l.n_k && n < limit ? data[(size_t)k * limit + n] : 0.0f;
}

/* Picture value of output pixel k under (tap, channel) n. */
static __device__ __forceinline__ float picture_value(const cuda_conv &v, const operands &l, int k,
                                                      int n) {
    if (k >= l.n_k || n >= l.n_n) return 0.0f;
    int tap = n / v.ci;
    pixel p = pixel_of(l.b, k, v.ho, v.wo, (size_t)v.hi * v.wi * v.ci, v.stride, -v.pad);
    return forward_value(v, p, tap, n - tap * v.ci);
}

/* The next DEPTH of both operands, four values each a thread. Pixels are read depth by depth,
 * weights column by column; wgrad reads both column by column. */
template <int MODE>
static __device__ __forceinline__ void load(const cuda_conv &v, const operands &l, int k0,
                                            float ra[4], float rb[4]) {
    int narrow = threadIdx.x & 15, wide = threadIdx.x & 63;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int k = k0 + (int)(threadIdx.x >> 6) + 4 * i;
        ra[i] = MODE == WGRAD ? column_value(l, l.a, k, l.m0 + wide, l.n_m)
                              : row_value<MODE>(v, l, i, k0 + narrow);
        rb[i] = MODE == WGRAD ? picture_value(v, l, k, l.n0 + wide)
                              : column_value(l, l.b, k, l.n0 + wide, l.n_n);
    }
}

template <int MODE, bool TF32>
static __device__ __forceinline__ void store(const float ra[4], const float rb[4],
                                             float (*sa)[PITCH], float (*sb)[PITCH]) {
    int narrow = threadIdx.x & 15, wide = threadIdx.x & 63;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int k = (int)(threadIdx.x >> 6) + 4 * i;
        float va = TF32 ? to_tf32(ra[i]) : ra[i], vb = TF32 ? to_tf32(rb[i]) : rb[i];
        if (MODE == WGRAD)
            sa[k][wide] = va;
        else
            sa[narrow][(threadIdx.x >> 4) + 16 * i] = va;
        sb[k][wide] = vb;
    }
}

/* What becomes of the sums. */
typedef struct result {
    float *data;
    const float *bias; /* parameter bank at the bias, or NULL */
    size_t bias_stride;
    bool relu, accumulate;
} result;

template <int MODE>
static __device__ __forceinline__ operands operands_of(const shape &s, const cuda_job &job, int j,
                                                       const float *a, const float *b,
                                                       size_t b_stride) {
    const cuda_conv &v = s.conv;
    size_t in_size = (size_t)v.hi * v.wi * v.ci, out_size = (size_t)v.ho * v.wo * v.co;
    int taps = v.kh * v.kw;
    operands l;
    l.m0 = (int)blockIdx.x * TILE;
    l.n0 = (int)blockIdx.y * TILE;
    if (MODE == WGRAD) {
        l.a = a + (size_t)j * s.n_max * out_size;
        l.b = b + (size_t)j * s.n_max * in_size;
        l.n_m = v.co, l.n_n = taps * v.ci, l.n_k = job.n * v.ho * v.wo;
        return l;
    }
    bool is_forward = MODE == FORWARD;
    l.a = a + (size_t)j * s.n_max * (is_forward ? in_size : out_size);
    l.b = b + (size_t)job.model * b_stride;
    l.n_m = job.n * (is_forward ? v.ho * v.wo : v.hi * v.wi);
    l.n_n = is_forward ? v.co : v.ci;
    l.n_k = taps * (is_forward ? v.ci : v.co);
    for (int i = 0; i < 4; i++) {
        int m = l.m0 + (int)(threadIdx.x >> 4) + 16 * i;
        l.rows[i] = is_forward ? pixel_of(l.a, m, v.ho, v.wo, in_size, v.stride, -v.pad)
                               : pixel_of(l.a, m, v.hi, v.wi, out_size, 1, v.pad);
    }
    return l;
}

template <bool TF32>
static __device__ void finish(const operands &l, const result &r, const cuda_job &job, size_t row0,
                              const float sums[4][4]) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            int2 at = place<TF32>(i, j);
            int m = l.m0 + at.x, n = l.n0 + at.y;
            if (m >= l.n_m || n >= l.n_n) continue;
            float value = sums[i][j];
            if (r.bias != NULL) value += r.bias[job.model * r.bias_stride + n];
            if (r.relu) value = fmaxf(value, 0.0f);
            float *to = r.data + (row0 + m) * l.n_n + n;
            *to = r.accumulate ? *to + value : value;
        }
    }
}

template <int MODE, bool TF32>
static __global__ void __launch_bounds__(THREADS)
    product_kernel(shape s, const float *a, const float *b, size_t b_stride, result r) {
    __shared__ __align__(16) float sa[DEPTH][PITCH], sb[DEPTH][PITCH];
    int j = (int)blockIdx.z / s.n_splits, split = (int)blockIdx.z % s.n_splits;
    const cuda_job job = s.jobs[j];
    operands l = operands_of<MODE>(s, job, j, a, b, b_stride);
    if (l.m0 >= l.n_m) return;
    /* wgrad: this block's part of K, whole DEPTHs */
    int from = MODE == WGRAD ? split * s.per : 0;
    int to = MODE == WGRAD ? min(l.n_k, from + s.per) : l.n_k;
    float sums[4][4] = {}, ra[4], rb[4];
    if (from < to) load<MODE>(s.conv, l, from, ra, rb);
    for (int k = from; k < to; k += DEPTH) {
        store<MODE, TF32>(ra, rb, sa, sb);
        __syncthreads();
        if (k + DEPTH < to) load<MODE>(s.conv, l, k + DEPTH, ra, rb);
        multiply<TF32>(sa, sb, sums);
        __syncthreads(); /* the next store overwrites what slower warps still read */
    }
    size_t row0;
    if (MODE == WGRAD)
        row0 = (size_t)blockIdx.z * l.n_m;
    else
        row0 =
            (size_t)j * s.n_max * (MODE == FORWARD ? s.conv.ho * s.conv.wo : s.conv.hi * s.conv.wi);
    finish<TF32>(l, r, job, row0, sums);
}

static unsigned n_tiles(int n) {
    return (unsigned)((n + TILE - 1) / TILE);
}

template <int MODE>
static ct_status launch(const cuda_run *run, dim3 grid, const shape &s, const void *a,
                        const float *b, size_t b_stride, const result &r) {
    return launch_kernel(run,
                         run->rounds ? product_kernel<MODE, true> : product_kernel<MODE, false>,
                         grid, THREADS, 0, s, (const float *)a, b, b_stride, r);
}

static ct_status forward(const cuda_run *run, const cuda_conv_call *call) {
    const cuda_conv *v = call->conv;
    shape s = {*v, run->n_max, 1, 0, run->jobs_dev};
    result r = {(float *)call->y, params_at(run, call->bias), run->params_stride, call->relu,
                false};
    dim3 grid(n_tiles(run->n_max * v->ho * v->wo), n_tiles(v->co), (unsigned)run->n_jobs);
    return launch<FORWARD>(run, grid, s, call->x, run->packed_dev + call->packed,
                           run->packed_stride, r);
}

static ct_status dgrad(const cuda_run *run, const cuda_conv_call *call) {
    const cuda_conv *v = call->conv;
    shape s = {*v, run->n_max, 1, 0, run->jobs_dev};
    result r = {(float *)call->dx, NULL, 0, false, call->accumulate};
    dim3 grid(n_tiles(run->n_max * v->hi * v->wi), n_tiles(v->ci), (unsigned)run->n_jobs);
    return launch<DGRAD>(run, grid, s, call->d, run->packed_dev + call->packed, run->packed_stride,
                         r);
}

/* Pixels of a part of K: 16 jobs of 32 samples fill the machine about twice, 256 at least. What
 * other jobs a call has must not change the order of the sums. */
static int part_pixels(const cuda_conv *v) {
    long n_blocks = (long)n_tiles(v->co) * n_tiles(v->kh * v->kw * v->ci);
    long n = (long)v->ho * v->wo * 32 * 16 * n_blocks / 512;
    return n < 256 ? 256 : (int)((n + DEPTH - 1) / DEPTH * DEPTH);
}

static int splits_of(const cuda_conv *v, int n_max) {
    long n_pixels = (long)n_max * v->ho * v->wo;
    return (int)((n_pixels + part_pixels(v) - 1) / part_pixels(v));
}

static ct_status wgrad(const cuda_run *run, const cuda_conv_call *call) {
    const cuda_conv *v = call->conv;
    int n_splits = splits_of(v, run->n_max);
    shape s = {*v, run->n_max, n_splits, part_pixels(v), run->jobs_dev};
    result r = {run->partial_dev, NULL, 0, false, false};
    dim3 grid(n_tiles(v->co), n_tiles(v->kh * v->kw * v->ci), (unsigned)(run->n_jobs * n_splits));
    CT_TRY(launch<WGRAD>(run, grid, s, call->d, (const float *)call->x, 0, r));
    return ct_cuda_sum_wgrad(run, n_splits, v, false, call->weight);
}

static bool fits(const cuda_problem *, cuda_direction) {
    return true;
}

static size_t partial(const cuda_conv *v, int n_max, int) {
    return ct_cuda_split_floats(v, splits_of(v, n_max));
}

const cuda_family ct_cuda_general = {.name = "general",
                                     .fits = fits,
                                     .packing = {CUDA_PACK_FORWARD, CUDA_PACK_BACKWARD},
                                     .launch = {forward, dgrad, wgrad},
                                     .partial = partial};
