/* Convolutions with few output channels (LeNet-5's, and the data gradients of such layers), on the
 * FMA units in fp32: a thread computes all channels of one output pixel, with the weights in shared
 * memory. Grid: x over the pixels of all samples, y = job. 2 flops a product; 4 bytes a value read
 * for every tap, from the caches. The weight gradient has a thread for each (tap, input channel)
 * that runs over the pixels of whole samples in shared memory. Grid: x = split of the samples, y =
 * job. Limits: 16 output channels, 48 KB of weights or of one sample. */
#include "backend/cuda/device.cuh"

enum { THREADS = 256, MAX_WIDE = 16, SHARED_FLOATS = 12 * 1024 };

typedef struct narrow_call {
    cuda_tile_conv v;
    const cuda_job *jobs;
    int n_max, kh, kw;
    const float *x, *packed; /* [tap][ci][co] by model */
    size_t packed_stride;
    const float *bias; /* parameter rows from the bias on, or NULL */
    size_t bias_stride;
    bool relu, accumulate;
    float *y;
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

bool ct_cuda_narrow_fits(const cuda_tile_conv *v, int taps) {
    return v->co <= MAX_WIDE && taps > 1 && v->step <= 2 &&
           taps * v->ci * MAX_WIDE <= SHARED_FLOATS;
}

ct_status ct_cuda_narrow_conv(const cuda_run *run, const cuda_tile_conv *conv, int kh, int kw,
                              const float *x_dev, size_t packed, size_t bias, bool relu,
                              bool accumulate, float *y_dev) {
    narrow_call c = {};
    c.v = *conv, c.jobs = run->jobs_dev, c.n_max = run->n_max, c.kh = kh, c.kw = kw;
    c.x = x_dev, c.packed = run->packed_dev + packed, c.packed_stride = run->packed_stride;
    c.bias = bias == CUDA_NO_PARAM ? NULL : run->params_dev + bias;
    c.bias_stride = run->params_stride, c.relu = relu, c.accumulate = accumulate, c.y = y_dev;
    int n = run->n_max * conv->ho * conv->wo;
    dim3 grid((unsigned)(n + THREADS - 1) / THREADS, (unsigned)run->n_jobs);
    size_t bytes = (size_t)(kh * kw * conv->ci * (conv->co <= 8 ? 8 : 16)) * sizeof(float);
    if (conv->co <= 8)
        conv_kernel<8><<<grid, THREADS, bytes, run->stream>>>(c);
    else
        conv_kernel<16><<<grid, THREADS, bytes, run->stream>>>(c);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

typedef struct wgrad_call {
    cuda_conv v;
    const cuda_job *jobs;
    int n_max, n_splits;
    const float *x, *d;
    float *partial;
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

template <int WIDE> static __global__ void __launch_bounds__(THREADS) wgrad_kernel(wgrad_call c) {
    extern __shared__ __align__(16) float shared[]; /* d [pixel][WIDE], then x */
    const cuda_conv &v = c.v;
    const cuda_job job = c.jobs[blockIdx.y];
    int n_out = v.ho * v.wo, n_in = v.hi * v.wi * v.ci, n_kk = v.kh * v.kw * v.ci;
    int n_slices = THREADS / n_kk, kk = (int)threadIdx.x % n_kk, slice = (int)threadIdx.x / n_kk;
    float *x = shared + n_out * WIDE, sums[WIDE] = {};
    for (int b = (int)blockIdx.x; b < job.n; b += c.n_splits) {
        size_t sample = (size_t)blockIdx.y * c.n_max + b;
        for (int k = (int)threadIdx.x; k < n_in; k += THREADS) x[k] = c.x[sample * n_in + k];
        for (int k = (int)threadIdx.x; k < n_out * WIDE; k += THREADS)
            shared[k] = k % WIDE < v.co ? c.d[(sample * n_out + k / WIDE) * v.co + k % WIDE] : 0.0f;
        __syncthreads();
        if (slice < n_slices) add_sample<WIDE>(v, x, shared, kk, slice, n_slices, sums);
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

static size_t wgrad_floats(const cuda_conv *v) {
    size_t wide = v->co <= 8 ? 8 : 16;
    size_t tiles = (size_t)(v->ho * v->wo) * wide + (size_t)(v->hi * v->wi * v->ci);
    size_t sums = (size_t)(v->kh * v->kw * v->ci) * wide;
    return tiles > sums ? tiles : sums;
}

bool ct_cuda_narrow_wgrad_fits(const cuda_conv *v) {
    return v->groups == 1 && v->co <= MAX_WIDE && v->kh * v->kw > 1 &&
           v->kh * v->kw * v->ci <= THREADS && wgrad_floats(v) <= SHARED_FLOATS + SHARED_FLOATS / 2;
}

/* The same for any number of jobs, so that a job's sums do not depend on its company. */
int ct_cuda_narrow_wgrad_splits(int n_max) {
    return n_max < 32 ? n_max : 32;
}

template <int WIDE>
static ct_status launch_wgrad(const cuda_run *run, const wgrad_call *c, size_t bytes) {
    CT_CUDA_TRY(cudaFuncSetAttribute(wgrad_kernel<WIDE>,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    dim3 grid((unsigned)c->n_splits, (unsigned)run->n_jobs);
    wgrad_kernel<WIDE><<<grid, THREADS, bytes, run->stream>>>(*c);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

ct_status ct_cuda_narrow_wgrad(const cuda_run *run, const cuda_conv *conv, const float *x_dev,
                               const float *d_dev, size_t weight) {
    wgrad_call c = {*conv, run->jobs_dev, run->n_max, 0, x_dev, d_dev, run->partial_dev};
    c.n_splits = ct_cuda_narrow_wgrad_splits(run->n_max);
    size_t bytes = wgrad_floats(conv) * sizeof(float);
    CT_TRY(conv->co <= 8 ? launch_wgrad<8>(run, &c, bytes) : launch_wgrad<16>(run, &c, bytes));
    return ct_cuda_sum_wgrad(run, c.n_splits, conv->co, conv->ci, conv->kh * conv->kw, false,
                             weight);
}
