/* Convolutions with few output channels (LeNet-5's, and the data gradients of such layers), on the
 * FMA units in fp32: a thread computes all channels of one output pixel, with the weights in shared
 * memory. Grid: x over the pixels of all samples, y = job. 2 flops a product; 4 bytes a value read
 * for every tap, from the caches. The weight gradient has a thread for each (tap, input channel)
 * that runs over the pixels of whole samples in shared memory, and one for the bias. Grid: x =
 * split of the samples, y = job. Limits: 16 output channels, 48 KB of weights or of one sample. */
#include "backend/cuda/device.cuh"

enum { THREADS = 256, MAX_WIDE = 16, SHARED_FLOATS = 12 * 1024 };

typedef struct narrow_call {
    cuda_tile_conv v;
    const cuda_job *jobs;
    int n_max, kh, kw;
    const float *x, *values;
    const float *packed; /* [tap][ci][co] by model */
    size_t packed_stride;
    const float *bias; /* parameter rows from the bias on, or NULL */
    size_t bias_stride;
    bool relu, accumulate;
    float *y, *pooled;
} narrow_call;

template <int WIDE>
static __device__ __forceinline__ void add_products(float sums[WIDE], float x, const float *w) {
#pragma unroll
    for (int o = 0; o < WIDE; o += 4) {
        float4 q = *(const float4 *)(w + o);
        sums[o] = fmaf(x, q.x, sums[o]);
        sums[o + 1] = fmaf(x, q.y, sums[o + 1]);
        sums[o + 2] = fmaf(x, q.z, sums[o + 2]);
        sums[o + 3] = fmaf(x, q.w, sums[o + 3]);
    }
}

/* Gradients of samples' values from those of their maxima over 2 x 2 pixels, into [pixel][pitch]:
 * the first largest one has it, if it is above zero. Channels from n_channels on are zero. */
static __device__ void load_unpooled(const float *values, const float *d, int n_samples, int h,
                                     int w, int n_channels, int wide, int pitch, float *to) {
    int n_windows = h / 2 * (w / 2), below = w * n_channels;
    for (int e = (int)threadIdx.x; e < n_samples * n_windows * wide; e += (int)blockDim.x) {
        int p = e / wide, c = e - p * wide, b = p / n_windows, r = p - b * n_windows;
        int pixel = b * h * w + r / (w / 2) * 2 * w + r % (w / 2) * 2, best = 0;
        float dp = 0.0f;
        if (c < n_channels) {
            const float *from = values + (size_t)pixel * n_channels + c;
            float v[4] = {from[0], from[n_channels], from[below], from[below + n_channels]};
            float largest = v[0];
#pragma unroll
            for (int k = 1; k < 4; k++)
                if (v[k] > largest) largest = v[k], best = k;
            if (largest > 0.0f) dp = d[(size_t)p * n_channels + c];
        }
#pragma unroll
        for (int k = 0; k < 4; k++)
            to[(pixel + k / 2 * w + k % 2) * pitch + c] = k == best ? dp : 0.0f;
    }
}

template <int WIDE> static __global__ void __launch_bounds__(THREADS) conv_kernel(narrow_call c) {
    extern __shared__ __align__(16) float weights[]; /* [tap][ci][WIDE] */
    const cuda_tile_conv &v = c.v;
    const cuda_job job = c.jobs[blockIdx.y];
    int n_pixels = v.ho * v.wo, m = (int)(blockIdx.x * THREADS + threadIdx.x);
    const float *packed = c.packed + job.model * c.packed_stride;
    for (int k = (int)threadIdx.x; k < c.kh * c.kw * v.ci * WIDE; k += THREADS)
        weights[k] = k % WIDE < v.co ? packed[k / WIDE * v.co + k % WIDE] : 0.0f;
    __syncthreads();
    if (m >= job.n * n_pixels) return;
    int b = m / n_pixels, p = m - b * n_pixels, oy = p / v.wo, ox = p - oy * v.wo;
    size_t sample = (size_t)blockIdx.y * c.n_max + b;
    const float *xs = c.x + sample * v.hi * v.wi * v.ci, *w = weights;
    float sums[WIDE] = {};
    for (int u = 0; u < c.kh; u++) {
        int y = oy * v.scale + v.sign * u + v.shift;
        for (int q = 0; q < c.kw; q++, w += v.ci * WIDE) {
            int x = ox * v.scale + v.sign * q + v.shift;
            int odd = v.step - 1, iy = y >> odd, ix = x >> odd;
            if (((y | x) & odd) != 0 || (unsigned)iy >= (unsigned)v.hi) continue;
            if ((unsigned)ix >= (unsigned)v.wi) continue;
            const float *at = xs + (iy * v.wi + ix) * v.ci;
            for (int k = 0; k < v.ci; k++) add_products<WIDE>(sums, at[k], w + k * WIDE);
        }
    }
    float *to = c.y + (sample * n_pixels + p) * v.co;
#pragma unroll
    for (int o = 0; o < WIDE; o++) {
        if (o >= v.co) break;
        float value = sums[o];
        if (c.bias != NULL) value += c.bias[job.model * c.bias_stride + o];
        if (c.relu) value = fmaxf(value, 0.0f);
        to[o] = c.accumulate ? to[o] + value : value;
    }
}

static bool has_conv(const cuda_tile_conv *v, int taps) {
    return v->co <= MAX_WIDE && taps > 1 && v->step <= 2 &&
           taps * v->ci * MAX_WIDE <= SHARED_FLOATS;
}

/* The same for stride 1 and even extents, 3x3 or 5x5: a thread has a window of 2 x 2 output pixels,
 * whose inputs and weights it shares, and their maximum if a pooling follows. A block has whole
 * samples, as many as give it 128 windows, or one; their inputs are in shared memory. Grid: x over
 * groups of samples, y = job, z over groups of WIDE channels. Gradients meet the taps in the
 * opposite order. */
enum { WINDOWS = 128, MAX_WINDOWS = 256 };

/* Weights [1 + K + 1][K][ci][WIDE], with rows of zeros above and below. */
template <int WIDE, int K>
static __device__ void load_weights(const narrow_call &c, const float *packed, float *weights) {
    int row = K * c.v.ci * WIDE, n = (K + 2) * row, o0 = (int)blockIdx.z * WIDE;
    for (int k = (int)threadIdx.x; k < n; k += (int)blockDim.x) {
        int o = o0 + k % WIDE, e = k / WIDE - K * c.v.ci, tap = e / c.v.ci, i = e % c.v.ci;
        bool is_there = k >= row && k < n - row && o < c.v.co;
        if (c.v.sign < 0) tap = K * K - 1 - tap;
        weights[k] = is_there ? packed[(tap * c.v.ci + i) * c.v.co + o] : 0.0f;
    }
}

/* Floats from pixel to pixel in shared memory: neighbours begin in different banks. */
static __host__ __device__ __forceinline__ int pitch_of(int ci) {
    return ci % 8 == 0 ? ci + 4 : ci;
}

/* n values of the samples' inputs, VEC at a time, several on their way. */
template <int VEC>
static __device__ void load_samples(const narrow_call &c, const float *x, int n, float *inputs) {
    constexpr int AHEAD = 8;
    int ci = c.v.ci, pitch = pitch_of(ci), stride = (int)blockDim.x * VEC;
    for (int first = (int)threadIdx.x * VEC; first < n; first += AHEAD * stride) {
        float v[AHEAD][VEC];
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (first + i * stride < n) load_values<VEC>(x + first + i * stride, v[i]);
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            int k = first + i * stride, at = pitch == ci ? k : k / ci * pitch + k % ci;
#pragma unroll
            for (int e = 0; e < VEC; e++)
                if (k < n) inputs[at + e] = v[i][e];
        }
    }
}

/* One input row of a window: row r of it is above output row 0 by tap row r, and above output row 1
 * by tap row r - 1; w points to tap row r, w1 to r - 1. */
template <int WIDE, int K, int VEC>
static __device__ __forceinline__ void add_row(const narrow_call &c, const float *row, int x0,
                                               const float *w, const float *w1,
                                               float sums[4][WIDE]) {
    int ci = c.v.ci, pitch = pitch_of(ci);
    for (int k = 0; k < ci; k += VEC) {
#pragma unroll
        for (int s = 0; s <= K; s++) {
            if ((unsigned)(x0 + s) >= (unsigned)c.v.wi) continue;
            float x[VEC];
            load_values<VEC>(row + (x0 + s) * pitch + k, x);
#pragma unroll
            for (int e = 0; e < VEC; e++) {
                int at = (s * ci + k + e) * WIDE, before = at - ci * WIDE;
                if (s < K) add_products<WIDE>(sums[0], x[e], w + at);
                if (s > 0) add_products<WIDE>(sums[1], x[e], w + before);
                if (s < K) add_products<WIDE>(sums[2], x[e], w1 + at);
                if (s > 0) add_products<WIDE>(sums[3], x[e], w1 + before);
            }
        }
    }
}

/* n values to memory, in pairs where they are even. */
template <int WIDE>
static __device__ __forceinline__ void store(float *to, const float values[WIDE], int n,
                                             bool accumulate) {
    bool in_pairs = n % 2 == 0 && ((size_t)to & 7) == 0 && !accumulate;
#pragma unroll
    for (int o = 0; o < WIDE; o += 2) {
        if (in_pairs && o < n) *(float2 *)(to + o) = make_float2(values[o], values[o + 1]);
        if (in_pairs) continue;
        if (o < n) to[o] = accumulate ? to[o] + values[o] : values[o];
        if (o + 1 < n) to[o + 1] = accumulate ? to[o + 1] + values[o + 1] : values[o + 1];
    }
}

/* The window's four pixels, and their maximum. */
template <int WIDE>
static __device__ __forceinline__ void write_window(const narrow_call &c, const cuda_job &job,
                                                    size_t sample, int wy, int wx,
                                                    float sums[4][WIDE]) {
    const cuda_tile_conv &v = c.v;
    int o0 = (int)blockIdx.z * WIDE, n = min(WIDE, v.co - o0);
    float *pooled = c.pooled + ((sample * (v.ho / 2) + wy) * (v.wo / 2) + wx) * v.co + o0;
    float *y = c.y + ((sample * v.ho + 2 * wy) * v.wo + 2 * wx) * v.co + o0;
    float bias[WIDE] = {};
    if (c.bias != NULL)
#pragma unroll
        for (int o = 0; o < WIDE; o++)
            if (o < n) bias[o] = c.bias[job.model * c.bias_stride + o0 + o];
#pragma unroll
    for (int e = 0; e < 4; e++) {
#pragma unroll
        for (int o = 0; o < WIDE; o++) {
            sums[e][o] += bias[o];
            if (c.relu) sums[e][o] = fmaxf(sums[e][o], 0.0f);
        }
        if (c.y != NULL) store<WIDE>(y + (e / 2 * v.wo + e % 2) * v.co, sums[e], n, c.accumulate);
    }
    if (c.pooled == NULL) return;
#pragma unroll
    for (int o = 0; o < WIDE; o++)
        sums[0][o] = fmaxf(fmaxf(sums[0][o], sums[1][o]), fmaxf(sums[2][o], sums[3][o]));
    store<WIDE>(pooled, sums[0], n, false);
}

template <int WIDE, int K, int VEC>
static __global__ void __launch_bounds__(MAX_WINDOWS) window_kernel(narrow_call c, int n_samples) {
    extern __shared__ __align__(16) float weights[]; /* and the samples' inputs */
    const cuda_tile_conv &v = c.v;
    const cuda_job job = c.jobs[blockIdx.y];
    int wide = v.wo / 2, n_windows = v.ho / 2 * wide, n_in = v.hi * v.wi, pitch = pitch_of(v.ci);
    int first = (int)blockIdx.x * n_samples, n_there = min(n_samples, job.n - first);
    if (n_there <= 0) return;
    size_t sample = (size_t)blockIdx.y * c.n_max + first;
    float *inputs = weights + (K + 2) * K * v.ci * WIDE;
    load_weights<WIDE, K>(c, c.packed + job.model * c.packed_stride, weights);
    if (c.values != NULL)
        load_unpooled(c.values + sample * n_in * v.ci, c.x + sample * (n_in / 4) * v.ci, n_there,
                      v.hi, v.wi, v.ci, v.ci, pitch, inputs);
    else
        load_samples<VEC>(c, c.x + sample * n_in * v.ci, n_there * n_in * v.ci, inputs);
    __syncthreads();
    int b = (int)threadIdx.x / n_windows, p = (int)threadIdx.x - b * n_windows;
    if (b >= n_there) return;
    int wy = p / wide, wx = p - wy * wide, step = K * v.ci * WIDE;
    int base = v.sign > 0 ? v.shift : v.shift - (K - 1);
    float sums[4][WIDE] = {};
    for (int r = 0; r <= K; r++) {
        int y = 2 * wy + base + r;
        if ((unsigned)y >= (unsigned)v.hi) continue;
        const float *w = weights + (r + 1) * step;
        add_row<WIDE, K, VEC>(c, inputs + (b * n_in + y * v.wi) * pitch, 2 * wx + base, w, w - step,
                              sums);
    }
    write_window<WIDE>(c, job, sample + b, wy, wx, sums);
}

static int block_samples(const cuda_tile_conv *v) {
    int n = WINDOWS / (v->ho / 2 * (v->wo / 2));
    return n > 0 ? n : 1;
}

static size_t window_floats(const cuda_tile_conv *v, int k, int wide) {
    return (size_t)((k + 2) * k * v->ci * wide) +
           (size_t)(block_samples(v) * v->hi * v->wi) * (size_t)pitch_of(v->ci);
}

static bool has_windows(const cuda_tile_conv *v, int kh, int kw) {
    return kh == kw && (kh == 3 || kh == 5) && v->scale == 1 && v->step == 1 && v->ho % 2 == 0 &&
           v->wo % 2 == 0 && v->ho / 2 * (v->wo / 2) <= MAX_WINDOWS &&
           window_floats(v, kh, 8) <= SHARED_FLOATS;
}

typedef void window_kernel_type(narrow_call, int);

template <int WIDE, int K> static window_kernel_type *window_of(int ci) {
    if (ci % 4 == 0) return window_kernel<WIDE, K, 4>;
    return ci % 2 == 0 ? window_kernel<WIDE, K, 2> : window_kernel<WIDE, K, 1>;
}

static ct_status launch_windows(const cuda_run *run, const narrow_call *c) {
    const cuda_tile_conv *v = &c->v;
    /* few windows: fewer channels of each a thread, so that there are threads enough */
    bool few = run->n_jobs * run->n_max * (v->ho / 2) * (v->wo / 2) < 64 * 1024;
    int n = block_samples(v), wide = few ? 4 : 8;
    window_kernel_type *kernel = c->kh == 3
                                     ? (few ? window_of<4, 3>(v->ci) : window_of<8, 3>(v->ci))
                                     : (few ? window_of<4, 5>(v->ci) : window_of<8, 5>(v->ci));
    dim3 grid((unsigned)((run->n_max + n - 1) / n), (unsigned)run->n_jobs,
              (unsigned)((v->co + wide - 1) / wide));
    unsigned threads = (unsigned)(n * (v->ho / 2) * (v->wo / 2) + 31) / 32 * 32;
    return launch_kernel(run, kernel, grid, threads, window_floats(v, c->kh, wide) * sizeof(float),
                         *c, n);
}

/* What both directions share: `direction` reads x and writes y. */
static ct_status convolve(const cuda_run *run, const cuda_conv_call *call, cuda_direction direction,
                          const void *x_dev, void *y_dev, narrow_call c) {
    c.v = ct_cuda_tile_of(call->conv, direction), c.kh = call->conv->kh, c.kw = call->conv->kw;
    c.jobs = run->jobs_dev, c.n_max = run->n_max;
    c.x = (const float *)x_dev, c.y = (float *)y_dev, c.bias_stride = run->params_stride;
    c.packed = run->packed_dev + call->packed, c.packed_stride = run->packed_stride;
    if (has_windows(&c.v, c.kh, c.kw)) return launch_windows(run, &c);
    int n = run->n_max * c.v.ho * c.v.wo;
    dim3 grid((unsigned)(n + THREADS - 1) / THREADS, (unsigned)run->n_jobs);
    size_t bytes = (size_t)(c.kh * c.kw * c.v.ci * (c.v.co <= 8 ? 8 : 16)) * sizeof(float);
    return launch_kernel(run, c.v.co <= 8 ? conv_kernel<8> : conv_kernel<16>, grid, THREADS, bytes,
                         c);
}

static ct_status forward(const cuda_run *run, const cuda_conv_call *call) {
    narrow_call c = {};
    c.bias = params_at(run, call->bias), c.relu = call->relu, c.pooled = call->pooled;
    return convolve(run, call, CUDA_FORWARD, call->x, call->y, c);
}

static ct_status dgrad(const cuda_run *run, const cuda_conv_call *call) {
    narrow_call c = {};
    c.values = call->unpooled, c.accumulate = call->accumulate;
    return convolve(run, call, CUDA_DGRAD, call->d, call->dx, c);
}

typedef struct wgrad_call {
    cuda_conv v;
    const cuda_job *jobs;
    int n_max, n_splits;
    const float *x, *d, *values;
    float *partial;        /* [job][split][co][tap, ci, and the bias] */
    float *weights, *bias; /* gradient rows from there on; bias may be NULL */
    size_t stride;
} wgrad_call;

/* One sample's products of (tap, channel) kk: sums[o] += x d[o] over rows slice, slice + n .. */
template <int WIDE>
static __device__ void add_sample(const cuda_conv &v, const float *x, const float *d, int kk,
                                  int slice, int n_slices, float sums[WIDE]) {
    int tap = kk / v.ci, u = tap / v.kw, q = tap - u * v.kw;
    x += kk - tap * v.ci;
    for (int oy = slice; oy < v.ho; oy += n_slices) {
        int y = oy * v.stride + u - v.pad;
        if (y < 0 || y >= v.hi) continue;
        for (int ox = 0; ox < v.wo; ox++) {
            int at = ox * v.stride + q - v.pad;
            if (at < 0 || at >= v.wi) continue;
            add_products<WIDE>(sums, x[(y * v.wi + at) * v.ci], d + (oy * v.wo + ox) * WIDE);
        }
    }
}

/* The same for the bias. */
template <int WIDE>
static __device__ void add_gradients(const cuda_conv &v, const float *d, int slice, int n_slices,
                                     float sums[WIDE]) {
    for (int oy = slice; oy < v.ho; oy += n_slices)
        for (int ox = 0; ox < v.wo; ox++)
            add_products<WIDE>(sums, 1.0f, d + (oy * v.wo + ox) * WIDE);
}

template <int WIDE> static __global__ void __launch_bounds__(THREADS) wgrad_kernel(wgrad_call c) {
    extern __shared__ __align__(16) float shared[]; /* d [pixel][WIDE], then x */
    const cuda_conv &v = c.v;
    const cuda_job job = c.jobs[blockIdx.y];
    int n_out = v.ho * v.wo, n_in = v.hi * v.wi * v.ci, n_kk = v.kh * v.kw * v.ci + 1;
    int n_slices = THREADS / n_kk, kk = (int)threadIdx.x % n_kk, slice = (int)threadIdx.x / n_kk;
    float *x = shared + n_out * WIDE, sums[WIDE] = {};
    for (int b = (int)blockIdx.x; b < job.n; b += c.n_splits) {
        size_t sample = (size_t)blockIdx.y * c.n_max + b;
        for (int k = (int)threadIdx.x; k < n_in; k += THREADS) x[k] = c.x[sample * n_in + k];
        if (c.values != NULL)
            load_unpooled(c.values + sample * n_out * v.co, c.d + sample * (n_out / 4) * v.co, 1,
                          v.ho, v.wo, v.co, WIDE, WIDE, shared);
        for (int k = (int)threadIdx.x; k < n_out * WIDE && c.values == NULL; k += THREADS)
            shared[k] = k % WIDE < v.co ? c.d[(sample * n_out + k / WIDE) * v.co + k % WIDE] : 0.0f;
        __syncthreads();
        if (slice < n_slices && kk < n_kk - 1)
            add_sample<WIDE>(v, x, shared, kk, slice, n_slices, sums);
        else if (slice < n_slices)
            add_gradients<WIDE>(v, shared, slice, n_slices, sums);
        __syncthreads(); /* the next sample overwrites this one */
    }
    /* the slices' sums, added up in order */
    for (int s = 0; s < n_slices; s++) {
        if (slice == s)
#pragma unroll
            for (int o = 0; o < WIDE; o++)
                shared[o * n_kk + kk] = s == 0 ? sums[o] : shared[o * n_kk + kk] + sums[o];
        __syncthreads();
    }
    float *out = c.partial + ((size_t)blockIdx.y * c.n_splits + blockIdx.x) * v.co * n_kk;
    for (int k = (int)threadIdx.x; k < v.co * n_kk; k += THREADS) out[k] = shared[k];
}

/* Adds up the splits. Grid: x over (output channel, tap and channel or bias), y = job. */
static __global__ void __launch_bounds__(THREADS) join_kernel(wgrad_call c) {
    int n_kk = c.v.kh * c.v.kw * c.v.ci + 1, count = c.v.co * n_kk, taps = c.v.kh * c.v.kw;
    int e = (int)(blockIdx.x * THREADS + threadIdx.x), o = e / n_kk, kk = e - o * n_kk;
    if (e >= count) return;
    const float *p = c.partial + (size_t)blockIdx.y * c.n_splits * count + e;
    float sum = 0.0f;
#pragma unroll 16
    for (int s = 0; s < c.n_splits; s++) sum += p[(size_t)s * count];
    size_t row = c.jobs[blockIdx.y].out * c.stride;
    if (kk < n_kk - 1)
        c.weights[row + (size_t)(o * c.v.ci + kk % c.v.ci) * taps + kk / c.v.ci] = sum;
    else if (c.bias != NULL)
        c.bias[row + o] = sum;
}

static size_t wgrad_floats(const cuda_conv *v) {
    size_t wide = v->co <= 8 ? 8 : 16;
    size_t tiles = (size_t)(v->ho * v->wo) * wide + (size_t)(v->hi * v->wi * v->ci);
    size_t sums = (size_t)(v->kh * v->kw * v->ci + 1) * wide;
    return tiles > sums ? tiles : sums;
}

static bool has_wgrad(const cuda_conv *v) {
    return v->groups == 1 && v->co <= MAX_WIDE && v->kh * v->kw > 1 &&
           v->kh * v->kw * v->ci < THREADS && wgrad_floats(v) <= SHARED_FLOATS + SHARED_FLOATS / 2;
}

/* The same for any number of jobs, so that a job's sums do not depend on its company. */
static int n_splits(int n_max) {
    return n_max < 32 ? n_max : 32;
}

static size_t partial(const cuda_conv *v, int n_max, int) {
    return (size_t)n_splits(n_max) * (size_t)(v->co * (v->kh * v->kw * v->ci + 1));
}

static ct_status wgrad(const cuda_run *run, const cuda_conv_call *call) {
    const cuda_conv *v = call->conv;
    wgrad_call c = {};
    c.v = *v, c.jobs = run->jobs_dev, c.n_max = run->n_max, c.n_splits = n_splits(run->n_max);
    c.x = (const float *)call->x, c.d = (const float *)call->d, c.values = call->unpooled;
    c.partial = run->partial_dev, c.stride = run->grads_stride;
    c.weights = run->grads_dev + call->weight;
    c.bias = call->bias == CUDA_NO_PARAM ? NULL : run->grads_dev + call->bias;
    CT_TRY(launch_kernel(run, v->co <= 8 ? wgrad_kernel<8> : wgrad_kernel<16>,
                         dim3((unsigned)c.n_splits, (unsigned)run->n_jobs), THREADS,
                         wgrad_floats(v) * sizeof(float), c));
    int count = v->co * (v->kh * v->kw * v->ci + 1);
    dim3 grid((unsigned)(count + THREADS - 1) / THREADS, (unsigned)run->n_jobs);
    return launch_kernel(run, join_kernel, grid, THREADS, 0, c);
}

static bool has_direction(const cuda_conv *v, cuda_direction direction) {
    if (direction == CUDA_WGRAD) return has_wgrad(v);
    cuda_tile_conv tile = ct_cuda_tile_of(v, direction);
    return has_conv(&tile, v->kh * v->kw);
}

static bool fits(const cuda_problem *p, cuda_direction direction) {
    return has_direction(&p->conv, direction);
}

static bool pools(const cuda_conv *v, cuda_direction direction) {
    cuda_tile_conv tile = ct_cuda_tile_of(v, direction);
    return has_direction(v, direction) &&
           (direction == CUDA_WGRAD || has_windows(&tile, v->kh, v->kw));
}

const cuda_family ct_cuda_narrow = {.name = "narrow",
                                    .fits = fits,
                                    .packing = {CUDA_PACK_FORWARD, CUDA_PACK_BACKWARD},
                                    .launch = {forward, dgrad, wgrad},
                                    .partial = partial,
                                    .sums_bias = true,
                                    .pools = pools};
