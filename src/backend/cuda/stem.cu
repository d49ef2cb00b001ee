/* Convolutions of a picture of few channels (the 7x7 of a large ResNet, the 3x3 of VGG-11 and
 * MobileNet-V2) on the tensor cores. A kernel row of an output pixel is one run of kw * ci values
 * of an input row, so that k = (kernel row, run rounded up to 8) has little padding. forward  rows
 * = output pixels along x, columns = output channels wgrad    rows = output channels, columns = the
 * run of one kernel row, k = output pixels; a warp has a kernel row and a slice of the pixels A
 * block takes strips of output rows, one after the other, through shared memory: the input rows
 * under it with their border, rounded to tf32, and the weights (forward) or the gradient (wgrad).
 * Grid: x over shares of a job's strips, y = job. 4 bytes a value of x read, 4 or 2 of y written (of
 * d read); 2 flops a product. Forward, means and squared deviations of a strip are taken for the
 * EvoNorm behind it; wgrad's shares are added up by sums.cu. Products are tf32's; those of a forward
 * pass to bf16 are bf16's where pixels are an even number of values apart. Limits: up to 4 input
 * channels, 24 values of a run, 8 kernel rows, 32 or 64 output channels. */
#include "backend/cuda/mma.cuh"

enum { WARPS = 8, THREADS = 32 * WARPS, MAX_RUN = 24, SPLITS = 64 };
enum { AHEAD = 8 }; /* values on their way at a time */

typedef struct stem_call {
    cuda_conv v;
    const cuda_job *jobs;
    int n_max;
    int rows;     /* output rows of a strip */
    int n_across; /* tiles of 16 pixels of a row */
    int pitch;    /* floats of an input row */
    const float *x;
    const void *d;
    const float *weights, *bias; /* parameter rows from there on; bias may be NULL */
    size_t stride;
    bool relu;
    void *y;
    float *measures; /* [sample][strip][2][co], or NULL */
    float *partial;
} stem_call;

static __device__ __forceinline__ int n_strips(const stem_call &c) {
    return (c.v.ho + c.rows - 1) / c.rows;
}

static __device__ __forceinline__ void put_factor(float *to, float x) {
    *to = to_tf32(x);
}

static __device__ __forceinline__ void put_factor(bf16 *to, float x) {
    *to = __float2bfloat16_rn(x);
}

/* The input rows under a strip, zero where there is no picture. */
template <class F>
static __device__ void load_input(const stem_call &c, const float *x, int first_row, F *tile) {
    const cuda_conv &v = c.v;
    int n_rows = (c.rows - 1) * v.stride + v.kh, border = v.pad * v.ci, wide = v.wi * v.ci;
    for (int k0 = (int)threadIdx.x; k0 < n_rows * c.pitch; k0 += AHEAD * THREADS) {
        float value[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            int k = k0 + i * THREADS, r = k / c.pitch, at = k - r * c.pitch - border;
            int row = first_row + r;
            bool is_there = r < n_rows && row >= 0 && row < v.hi && at >= 0 && at < wide;
            value[i] = is_there ? x[(size_t)row * wide + at] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (k0 + i * THREADS < n_rows * c.pitch) put_factor(tile + k0 + i * THREADS, value[i]);
    }
}

/* ---- forward ---- */

template <int RUN> static __device__ __forceinline__ int n_steps(const cuda_conv &v) {
    return (v.kh * (RUN / 8) + 1) / 2;
}

/* Weights as fragments: [kernel row][RUN / 8][pair of 8 channels][lane][4]; a thread's columns of
 * two tiles are four neighbouring channels, as in pack.cu. */
template <int CO, int RUN>
static __device__ void load_weights(const stem_call &c, const float *weights, float *out) {
    const cuda_conv &v = c.v;
    for (int e = (int)threadIdx.x; e < v.kh * RUN * CO; e += THREADS) {
        int q = e & 3, lane = e >> 2 & 31, pair = (e >> 7) % (CO / 16), step = (e >> 7) / (CO / 16);
        int k = step * 8 + (lane & 3) + (q & 1) * 4, u = k / RUN, r = k % RUN;
        int o = pair * 16 + (lane >> 3) * 4 + (q >> 1) * 2 + (lane >> 2 & 1);
        bool is_there = r < v.kw * v.ci;
        int from = (o * v.ci + r % v.ci) * v.kh * v.kw + u * v.kw + r / v.ci;
        out[e] = is_there ? to_tf32(weights[from]) : 0.0f;
    }
}

/* The same for products of bf16: [step][pair][lane][4 words]. A step is two halves of k, each 8
 * values of a run; behind the last one there may be a half of zeros. */
template <int CO, int RUN>
static __device__ void load_weights(const stem_call &c, const float *weights, uint32_t *out) {
    const cuda_conv &v = c.v;
    for (int e = (int)threadIdx.x; e < n_steps<RUN>(v) * CO * 8; e += THREADS) {
        int q = e & 3, lane = e >> 2 & 31, pair = (e >> 7) % (CO / 16), step = (e >> 7) / (CO / 16);
        int half = 2 * step + (q & 1), u = half / (RUN / 8);
        int o = pair * 16 + (lane >> 3) * 4 + (q >> 1) * 2 + (lane >> 2 & 1);
        float k[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int r = half % (RUN / 8) * 8 + (lane & 3) * 2 + i;
            int from = (o * v.ci + r % v.ci) * v.kh * v.kw + u * v.kw + r / v.ci;
            k[i] = u < v.kh && r < v.kw * v.ci ? weights[from] : 0.0f;
        }
        out[e] = pack_bf16(k[0], k[1]);
    }
}

/* 16 pixels of one output row, from `from` (its kernel row 0) on. */
template <int CO, int RUN>
static __device__ __forceinline__ void multiply(const stem_call &c, const bf16 *from,
                                                const uint4 *weights, float sums[CO / 8][4]) {
    constexpr int HALVES = RUN / 8; /* of a run */
    int lane = threadIdx.x & 31, next = c.v.stride * c.v.ci;
    from += (lane >> 2) * next + (lane & 3) * 2;
    weights += lane;
    for (int u = 0; u < c.v.kh; u += 2, from += 2 * c.pitch) {
        int below = u + 1 < c.v.kh ? c.pitch : 0; /* or the same again, times zeros */
#pragma unroll
        for (int k = 0; k < HALVES; k++, weights += CO / 16 * 32) {
            if (2 * k >= HALVES && below == 0) break;
            const bf16 *first = from + 2 * k % HALVES * 8 + 2 * k / HALVES * below;
            const bf16 *second = from + (2 * k + 1) % HALVES * 8 + (2 * k + 1) / HALVES * below;
            uint32_t a[4] = {*(const uint32_t *)first, *(const uint32_t *)(first + 8 * next),
                             *(const uint32_t *)second, *(const uint32_t *)(second + 8 * next)};
#pragma unroll
            for (int j = 0; j < CO / 16; j++) {
                uint4 b = weights[j * 32];
                mma(bf16(), sums[2 * j], a, b.x, b.y);
                mma(bf16(), sums[2 * j + 1], a, b.z, b.w);
            }
        }
    }
}

template <int CO, int RUN>
static __device__ __forceinline__ void multiply(const stem_call &c, const float *from,
                                                const float4 *weights, float sums[CO / 8][4]) {
    int lane = threadIdx.x & 31, next = c.v.stride * c.v.ci;
    from += (lane >> 2) * next + (lane & 3);
    weights += lane;
    for (int u = 0; u < c.v.kh; u++, from += c.pitch) {
#pragma unroll
        for (int k = 0; k < RUN / 8; k++, weights += CO / 16 * 32) {
            const float *at = from + k * 8;
            float a[4] = {at[0], at[8 * next], at[4], at[8 * next + 4]};
#pragma unroll
            for (int j = 0; j < CO / 16; j++) {
                float4 b = weights[j * 32];
                float left[2] = {b.x, b.y}, right[2] = {b.z, b.w};
                mma_tf32(sums[2 * j], a, left);
                mma_tf32(sums[2 * j + 1], a, right);
            }
        }
    }
}

/* What a thread has of its channels in a strip: sums, and sums of squares. */
template <int CO> struct strip_sums { float plain[CO / 16][4], square[CO / 16][4]; };

template <class T, int CO, bool MEASURES>
static __device__ __forceinline__ void write_pixels(const stem_call &c, const cuda_job &job, T *row,
                                                    int x0, const float sums[CO / 8][4],
                                                    strip_sums<CO> &all) {
    int lane = threadIdx.x & 31;
#pragma unroll
    for (int j = 0; j < CO / 16; j++) {
        int o = j * 16 + (lane & 3) * 4;
        float b[4] = {};
        if (c.bias != NULL)
#pragma unroll
            for (int k = 0; k < 4; k++) b[k] = c.bias[job.model * c.stride + o + k];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int x = x0 + (lane >> 2) + half * 8;
            float4 y =
                make_float4(sums[2 * j][2 * half] + b[0], sums[2 * j][2 * half + 1] + b[1],
                            sums[2 * j + 1][2 * half] + b[2], sums[2 * j + 1][2 * half + 1] + b[3]);
            if (c.relu) y = make_float4(fmaxf(y.x, 0), fmaxf(y.y, 0), fmaxf(y.z, 0), fmaxf(y.w, 0));
            if (x >= c.v.wo) continue;
            store_four(row + (size_t)x * CO + o, y);
            if (!MEASURES) continue;
            float *plain = all.plain[j], *square = all.square[j];
            plain[0] += y.x, plain[1] += y.y, plain[2] += y.z, plain[3] += y.w;
            square[0] = fmaf(y.x, y.x, square[0]), square[1] = fmaf(y.y, y.y, square[1]);
            square[2] = fmaf(y.z, y.z, square[2]), square[3] = fmaf(y.w, y.w, square[3]);
        }
    }
}

/* Weights as the tensor cores want them. */
template <class F> struct fragment {
    typedef float word;
    typedef float4 quad;
};
template <> struct fragment<bf16> {
    typedef uint32_t word;
    typedef uint4 quad;
};

/* A strip's mean and squared deviations. All threads call it; `parts` is [warp][2][CO]. */
template <int CO>
static __device__ __forceinline__ void measure_strip(const stem_call &c, size_t strip,
                                                     const strip_sums<CO> &all, float *parts) {
    int lane = threadIdx.x & 31, k = (int)threadIdx.x;
    float *own = parts + k / 32 * 2 * CO + (lane >> 4) * CO + (lane & 3) * 4 + (lane >> 2 & 3);
#pragma unroll
    for (int j = 0; j < CO / 16; j++) own[j * 16] = rows_sum(all.plain[j], all.square[j]);
    __syncthreads();
    if (k >= CO) return;
    float sum = 0.0f, square = 0.0f, n = (float)(c.rows * c.v.wo);
    for (int w = 0; w < WARPS; w++)
        sum += parts[w * 2 * CO + k], square += parts[(2 * w + 1) * CO + k];
    float *to = c.measures + strip * 2 * CO + k, mean = sum / n;
    to[0] = mean, to[CO] = fmaxf(fmaf(-mean, sum, square), 0.0f);
}

template <class T, class F, int CO, int RUN, bool MEASURES>
static __global__ void __launch_bounds__(THREADS, MEASURES ? 2 : 3)
    stem_kernel(const __grid_constant__ stem_call c) {
    extern __shared__ __align__(16) float shared[]; /* weights, input rows */
    typedef typename fragment<F>::word word;
    __shared__ float parts[MEASURES ? WARPS * 2 * CO : 1];
    const cuda_conv &v = c.v;
    const cuda_job job = c.jobs[blockIdx.y];
    F *tile = (F *)(shared + v.kh * RUN * CO);
    int strips = n_strips(c), n_items = job.n * strips, n_tiles = c.rows * c.n_across;
    if ((int)blockIdx.x >= n_items) return;
    load_weights<CO, RUN>(c, c.weights + job.model * c.stride, (word *)shared);
    for (int item = (int)blockIdx.x; item < n_items; item += (int)gridDim.x) {
        size_t sample = (size_t)blockIdx.y * c.n_max + item / strips;
        int row0 = item % strips * c.rows;
        load_input(c, c.x + sample * v.hi * v.wi * v.ci, row0 * v.stride - v.pad, tile);
        strip_sums<CO> all = {};
        __syncthreads(); /* the strip is there, and before the first one the weights */
        for (int k = (int)threadIdx.x / 32; k < n_tiles; k += WARPS) {
            int r = k / c.n_across, x0 = (k - r * c.n_across) * 16;
            float sums[CO / 8][4] = {};
            multiply<CO, RUN>(c, tile + r * v.stride * c.pitch + x0 * v.stride * v.ci,
                              (const typename fragment<F>::quad *)shared, sums);
            T *row = (T *)c.y + (sample * v.ho + row0 + r) * v.wo * CO;
            if (row0 + r < v.ho) write_pixels<T, CO, MEASURES>(c, job, row, x0, sums, all);
        }
        if (MEASURES) measure_strip<CO>(c, sample * strips + item % strips, all, parts);
        __syncthreads(); /* the next strip overwrites this one */
    }
}

/* ---- weight gradient ---- */

/* The gradient of a strip, [row][pixel, rounded up to 16][CO + 8], zero where there is none. */
template <class T, int CO>
static __device__ void load_gradient(const stem_call &c, const T *d, int first_row, float *tile) {
    int across = c.n_across * 16, n = c.rows * across * (CO / 4);
    for (int e0 = (int)threadIdx.x; e0 < n; e0 += AHEAD * THREADS) {
        float4 value[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            int e = e0 + i * THREADS, p = e / (CO / 4), r = p / across, x = p - r * across;
            bool is_there = e < n && first_row + r < c.v.ho && x < c.v.wo;
            value[i] = make_float4(0, 0, 0, 0);
            if (is_there)
                value[i] =
                    load_four(d + ((size_t)(first_row + r) * c.v.wo + x) * CO + e % (CO / 4) * 4);
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            int e = e0 + i * THREADS;
            float4 t = make_float4(to_tf32(value[i].x), to_tf32(value[i].y), to_tf32(value[i].z),
                                   to_tf32(value[i].w));
            if (e < n) *(float4 *)&tile[e / (CO / 4) * (CO + 8) + e % (CO / 4) * 4] = t;
        }
    }
}

/* Adds a strip's pixels, 8 at a time, of this warp's slice and kernel row. */
template <int CO, int RUN>
static __device__ __forceinline__ void add_strip(const stem_call &c, const float *x, const float *d,
                                                 int slice, int n_slices,
                                                 float sums[CO / 16][RUN / 8][4]) {
    int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, next = c.v.stride * c.v.ci;
    int blocks = c.n_across * 2; /* of 8 pixels, of a row */
    for (int k = slice; k < c.rows * blocks; k += n_slices) {
        int r = k / blocks, x0 = (k - r * blocks) * 8;
        const float *dp = d + (r * blocks * 8 + x0 + t) * (CO + 8) + g;
        const float *xp = x + r * c.v.stride * c.pitch + (x0 + t) * next + g;
        float b[RUN / 8][2];
#pragma unroll
        for (int n = 0; n < RUN / 8; n++) b[n][0] = xp[n * 8], b[n][1] = xp[n * 8 + 4 * next];
#pragma unroll
        for (int m = 0; m < CO / 16; m++) {
            const float *at = dp + m * 16;
            float a[4] = {at[0], at[8], at[4 * (CO + 8)], at[4 * (CO + 8) + 8]};
#pragma unroll
            for (int n = 0; n < RUN / 8; n++) mma_tf32(sums[m][n], a, b[n]);
        }
    }
}

/* Adds up the slices, in order, in shared memory: [o][tap][i], as they are written. */
template <int CO, int RUN>
static __device__ void write_sums(const stem_call &c, const float sums[CO / 16][RUN / 8][4], int u,
                                  int slice, int n_slices, float *shared, float *out) {
    const cuda_conv &v = c.v;
    int lane = threadIdx.x & 31, taps = v.kh * v.kw, count = CO * taps * v.ci;
    for (int s = 0; s < n_slices; s++) {
        if (slice == s)
#pragma unroll
            for (int e = 0; e < CO * RUN / 32; e++) {
                int m = e / (RUN / 2), n = e / 4 % (RUN / 8), k = e % 4;
                int o = m * 16 + (lane >> 2) + k / 2 * 8, r = n * 8 + (lane & 3) * 2 + k % 2;
                float *to = &shared[(o * taps + u * v.kw) * v.ci + r];
                if (r < v.kw * v.ci) *to = s == 0 ? sums[m][n][k] : *to + sums[m][n][k];
            }
        __syncthreads();
    }
    for (int e = (int)threadIdx.x; e < count; e += THREADS) out[e] = shared[e];
}

template <class T, int CO, int RUN>
static __global__ void __launch_bounds__(THREADS, 2)
    stem_wgrad_kernel(const __grid_constant__ stem_call c) {
    extern __shared__ __align__(16) float shared[]; /* gradient, input rows; at the end sums */
    const cuda_conv &v = c.v;
    const cuda_job job = c.jobs[blockIdx.y];
    int warp = (int)threadIdx.x / 32, n_slices = WARPS / v.kh, u = warp % v.kh, slice = warp / v.kh;
    int strips = n_strips(c), n_items = job.n * strips;
    float *tile = shared + c.rows * c.n_across * 16 * (CO + 8), sums[CO / 16][RUN / 8][4] = {};
    for (int item = (int)blockIdx.x; item < n_items; item += (int)gridDim.x) {
        size_t sample = (size_t)blockIdx.y * c.n_max + item / strips;
        int row0 = item % strips * c.rows;
        load_input(c, c.x + sample * v.hi * v.wi * v.ci, row0 * v.stride - v.pad, tile);
        load_gradient<T, CO>(c, (const T *)c.d + sample * v.ho * v.wo * CO, row0, shared);
        __syncthreads();
        if (slice < n_slices)
            add_strip<CO, RUN>(c, tile + u * c.pitch, shared, slice, n_slices, sums);
        __syncthreads(); /* the next strip, or the sums, overwrite this one */
    }
    size_t count = (size_t)CO * v.kh * v.kw * v.ci;
    write_sums<CO, RUN>(c, sums, u, slice, n_slices, shared,
                        c.partial + ((size_t)blockIdx.y * gridDim.x + blockIdx.x) * count);
}

/* ---- launches ---- */

static int run_of(const cuda_conv *v) {
    return (v->kw * v->ci + 7) / 8 * 8;
}

static stem_call call_of(const cuda_run *run, const cuda_conv *v, const void *x_dev) {
    stem_call c = {};
    c.v = *v, c.x = (const float *)x_dev, c.n_across = (v->wo + 15) / 16;
    c.rows = c.n_across < 16 ? 16 / c.n_across : 1; /* two tiles a warp */
    if (c.rows > v->ho) c.rows = v->ho;
    /* whatever a tile of pixels reads, and the border */
    int reach = (c.n_across * 16 - 1) * v->stride * v->ci + run_of(v);
    int wide = (v->wi + 2 * v->pad) * v->ci;
    c.pitch = ((reach > wide ? reach : wide) + 1) / 2 * 2;
    if (run != NULL) c.jobs = run->jobs_dev, c.n_max = run->n_max, c.stride = run->params_stride;
    return c;
}

static size_t input_floats(const stem_call *c) {
    return (size_t)(((c->rows - 1) * c->v.stride + c->v.kh) * c->pitch);
}

static size_t forward_bytes(const stem_call *c) {
    return ((size_t)(c->v.kh * run_of(&c->v) * c->v.co) + input_floats(c)) * sizeof(float);
}

static size_t wgrad_bytes(const stem_call *c) {
    size_t tiles = (size_t)(c->rows * c->n_across * 16 * (c->v.co + 8)) + input_floats(c);
    size_t sums = (size_t)(c->v.co * c->v.kh * c->v.kw * c->v.ci);
    return (tiles > sums ? tiles : sums) * sizeof(float);
}

static bool fits(const cuda_problem *p, cuda_direction direction) {
    const cuda_conv *v = &p->conv;
    stem_call c = call_of(NULL, v, NULL);
    return direction != CUDA_DGRAD && p->rounds && v->groups == 1 && v->ci <= 4 && v->kh <= WARPS &&
           v->kw > 1 && v->kw * v->ci <= MAX_RUN && (v->co == 32 || v->co == 64) &&
           forward_bytes(&c) <= p->shared_limit && wgrad_bytes(&c) <= p->shared_limit;
}

/* Shares of a job's samples: the same for any number of jobs and whatever their batches, so that
 * its sums do not depend on its company. */
static int splits_of(int n_most) {
    return 2 * n_most < SPLITS ? 2 * n_most : SPLITS;
}

typedef void stem_kernel_type(stem_call);

template <class T, class F, int CO, bool MEASURES> static stem_kernel_type *forward_kernel(int n) {
    return n == 8    ? stem_kernel<T, F, CO, 8, MEASURES>
           : n == 16 ? stem_kernel<T, F, CO, 16, MEASURES>
                     : stem_kernel<T, F, CO, 24, MEASURES>;
}

template <class T, class F> static stem_kernel_type *forward_of(const cuda_conv *v, bool measures) {
    int n = run_of(v);
    if (v->co == 32)
        return measures ? forward_kernel<T, F, 32, true>(n) : forward_kernel<T, F, 32, false>(n);
    return measures ? forward_kernel<T, F, 64, true>(n) : forward_kernel<T, F, 64, false>(n);
}

template <class T, int CO> static stem_kernel_type *wgrad_kernel(int n) {
    return n == 8    ? stem_wgrad_kernel<T, CO, 8>
           : n == 16 ? stem_wgrad_kernel<T, CO, 16>
                     : stem_wgrad_kernel<T, CO, 24>;
}

template <class T> static stem_kernel_type *wgrad_of(const cuda_conv *v) {
    return v->co == 32 ? wgrad_kernel<T, 32>(run_of(v)) : wgrad_kernel<T, 64>(run_of(v));
}

static ct_status forward(const cuda_run *run, const cuda_conv_call *call) {
    const cuda_conv *v = call->conv;
    stem_call c = call_of(run, v, call->x);
    c.weights = run->params_dev + call->weight, c.bias = params_at(run, call->bias);
    c.relu = call->relu, c.y = call->y, c.measures = call->measures;
    int items = run->n_max * ((v->ho + c.rows - 1) / c.rows);
    int share = (4 * 132 + run->n_jobs - 1) / run->n_jobs; /* an H200 about once, and less a tail */
    dim3 grid((unsigned)(items < share ? items : share), (unsigned)run->n_jobs);
    bool measures = c.measures != NULL, is_even = v->stride * v->ci % 2 == 0;
    stem_kernel_type *kernel = call->element != CUDA_BF16 ? forward_of<float, float>(v, measures)
                               : is_even                  ? forward_of<bf16, bf16>(v, measures)
                                                          : forward_of<bf16, float>(v, measures);
    return launch_kernel(run, kernel, grid, THREADS, forward_bytes(&c), c);
}

static ct_status wgrad(const cuda_run *run, const cuda_conv_call *call) {
    const cuda_conv *v = call->conv;
    stem_call c = call_of(run, v, call->x);
    c.d = call->d, c.partial = run->partial_dev;
    int n_splits = splits_of(run->n_most);
    CT_TRY(launch_kernel(run, call->element == CUDA_BF16 ? wgrad_of<bf16>(v) : wgrad_of<float>(v),
                         dim3((unsigned)n_splits, (unsigned)run->n_jobs), THREADS, wgrad_bytes(&c),
                         c));
    return ct_cuda_sum_wgrad(run, n_splits, v, false, call->weight);
}

static size_t partial(const cuda_conv *v, int, int n_most) {
    return ct_cuda_split_floats(v, splits_of(n_most));
}

/* Strips, where a picture is whole ones. */
static cuda_segments segments(const cuda_conv *v) {
    stem_call c = call_of(NULL, v, NULL);
    return {v->ho % c.rows == 0 ? v->ho / c.rows : 0};
}

const cuda_family ct_cuda_stem = {.name = "stem",
                                  .fits = fits,
                                  .launch = {forward, NULL, wgrad},
                                  .partial = partial,
                                  .ends_bf16 = true,
                                  .segments = segments};
