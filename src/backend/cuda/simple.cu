/* ReLU, addition and pooling, one thread a value. Grid: x over a sample's values, y = sample, z =
 * job. 8 to 12 bytes a value. */
#include "backend/cuda/device.cuh"
#include "backend/cuda/element.cuh"

enum { THREADS = 256 };

static dim3 grid_of(const cuda_run *run, size_t n) {
    return dim3((unsigned)((n + THREADS - 1) / THREADS), (unsigned)run->n_max,
                (unsigned)run->n_jobs);
}

/* This thread's value of the sample, or `size` if there is none. */
static __device__ __forceinline__ unsigned value_of(const cuda_job *jobs, unsigned size) {
    unsigned e = blockIdx.x * THREADS + threadIdx.x;
    return (int)blockIdx.y < jobs[blockIdx.z].n && e < size ? e : size;
}

static __device__ __forceinline__ size_t sample_of(int n_max) {
    return (size_t)blockIdx.z * n_max + blockIdx.y;
}

static __global__ void relu_kernel(const cuda_job *jobs, int n_max, size_t size, const float *x,
                                   float *y) {
    unsigned e = value_of(jobs, (unsigned)size);
    size_t at = sample_of(n_max) * size + e;
    if (e < size) y[at] = fmaxf(x[at], 0.0f);
}

static __global__ void relu_backward_kernel(const cuda_job *jobs, int n_max, size_t size,
                                            const float *y, const float *dy, bool accumulate,
                                            float *dx) {
    unsigned e = value_of(jobs, (unsigned)size);
    size_t at = sample_of(n_max) * size + e;
    if (e >= size) return;
    float d = y[at] > 0.0f ? dy[at] : 0.0f;
    dx[at] = accumulate ? dx[at] + d : d;
}

static __global__ void add_kernel(const cuda_job *jobs, int n_max, size_t size, const float *a,
                                  const float *b, float *y) {
    unsigned e = value_of(jobs, (unsigned)size);
    size_t at = sample_of(n_max) * size + e;
    if (e < size) y[at] = a != NULL ? a[at] + b[at] : b[at];
}

/* The first largest pixel of window (oy, ox) of channel c; padding never wins. */
static __device__ int largest(const cuda_window &w, const float *x, int oy, int ox, int c) {
    int best = 0;
    float value = -INFINITY;
    for (int u = 0; u < w.kernel; u++) {
        for (int v = 0; v < w.kernel; v++) {
            int y = oy * w.stride + u - w.pad, q = ox * w.stride + v - w.pad;
            if (y < 0 || y >= w.hi || q < 0 || q >= w.wi) continue;
            float found = x[((size_t)y * w.wi + q) * w.c + c];
            if (found > value) value = found, best = y * w.wi + q;
        }
    }
    return best;
}

static __global__ void maxpool_kernel(const cuda_job *jobs, int n_max, cuda_window w,
                                      const float *x, float *y) {
    unsigned size = (unsigned)(w.ho * w.wo * w.c), e = value_of(jobs, size);
    if (e >= size) return;
    const float *xs = x + sample_of(n_max) * w.hi * w.wi * w.c;
    int c = (int)(e % (unsigned)w.c), p = (int)(e / (unsigned)w.c);
    y[sample_of(n_max) * size + e] = xs[(size_t)largest(w, xs, p / w.wo, p % w.wo, c) * w.c + c];
}

/* Input pixel by input pixel: the gradients of the windows it is the largest of. */
static __global__ void maxpool_backward_kernel(const cuda_job *jobs, int n_max, cuda_window w,
                                               const float *x, const float *dy, bool accumulate,
                                               bool masked, float *dx) {
    unsigned size = (unsigned)(w.hi * w.wi * w.c), e = value_of(jobs, size);
    if (e >= size) return;
    const float *xs = x + sample_of(n_max) * size;
    const float *ds = dy + sample_of(n_max) * w.ho * w.wo * w.c;
    int c = (int)(e % (unsigned)w.c), p = (int)(e / (unsigned)w.c), y = p / w.wi, q = p % w.wi;
    int y0 = max(0, (y + w.pad - w.kernel + w.stride) / w.stride);
    int x0 = max(0, (q + w.pad - w.kernel + w.stride) / w.stride);
    float sum = 0.0f;
    bool is_dead = masked && !(xs[e] > 0.0f);
    for (int oy = y0; !is_dead && oy < w.ho && oy * w.stride - w.pad <= y; oy++)
        for (int ox = x0; ox < w.wo && ox * w.stride - w.pad <= q; ox++)
            if (largest(w, xs, oy, ox, c) == p) sum += ds[((size_t)oy * w.wo + ox) * w.c + c];
    float *to = dx + sample_of(n_max) * size + e;
    *to = accumulate ? *to + sum : sum;
}

/* Windows of 2 x 2 that share nothing: one thread a window. */
static __global__ void halves_backward_kernel(const cuda_job *jobs, int n_max, cuda_window w,
                                              const float *x, const float *dy, bool masked,
                                              float *dx) {
    unsigned size = (unsigned)(w.ho * w.wo * w.c), e = value_of(jobs, size);
    if (e >= size) return;
    unsigned c = e % (unsigned)w.c, p = e / (unsigned)w.c, oy = p / (unsigned)w.wo;
    unsigned ox = p - oy * (unsigned)w.wo, below = (unsigned)(w.wi * w.c);
    size_t at = sample_of(n_max) * w.hi * w.wi * w.c + (2 * oy * w.wi + 2 * ox) * w.c + c;
    float v[4] = {x[at], x[at + w.c], x[at + below], x[at + below + w.c]};
    float d = dy[sample_of(n_max) * size + e];
    int best = 0;
#pragma unroll
    for (int k = 1; k < 4; k++)
        if (v[k] > v[best]) best = k;
    if (masked && !(v[best] > 0.0f)) d = 0.0f;
    dx[at] = best == 0 ? d : 0.0f;
    dx[at + w.c] = best == 1 ? d : 0.0f;
    dx[at + below] = best == 2 ? d : 0.0f;
    dx[at + below + w.c] = best == 3 ? d : 0.0f;
}

/* The larger one of each channel; the first where they are equal. `at` follows. */
static __device__ __forceinline__ void take_larger(float4 v, int place, float4 *value, int4 *at) {
    if (v.x > value->x) value->x = v.x, at->x = place;
    if (v.y > value->y) value->y = v.y, at->y = place;
    if (v.z > value->z) value->z = v.z, at->z = place;
    if (v.w > value->w) value->w = v.w, at->w = place;
}

static __device__ __forceinline__ float4 lowest(void) {
    return make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
}

/* Four channels a thread. */
template <class T>
static __global__ void maxpool_quads_kernel(const cuda_job *jobs, int n_max, cuda_window w,
                                            const T *x, T *y) {
    unsigned quads = (unsigned)w.c / 4, size = (unsigned)(w.ho * w.wo) * quads;
    unsigned e = value_of(jobs, size);
    if (e >= size) return;
    int p = (int)(e / quads), y0 = p / w.wo * w.stride - w.pad, x0 = p % w.wo * w.stride - w.pad;
    const T *xs = x + (sample_of(n_max) * w.hi * w.wi * quads + e % quads) * 4;
    float4 value = lowest();
    int4 at;
    for (int u = max(0, -y0); u < w.kernel && y0 + u < w.hi; u++)
        for (int v = max(0, -x0); v < w.kernel && x0 + v < w.wi; v++)
            take_larger(load_four(xs + (size_t)((y0 + u) * w.wi + x0 + v) * w.c), 0, &value, &at);
    store_four(y + (sample_of(n_max) * size + e) * 4, value);
}

static __device__ __forceinline__ float if_at(int at, int place, float d) {
    return at == place ? d : 0.0f;
}

/* Windows of 3 x 3, two apart, with a border of one: a thread has 2 x 2 pixels of four channels,
 * and finds the largest values of the four windows they lie in from 5 x 5 pixels, once each. */
enum { SPAN = 5 };

template <class T>
static __global__ void __launch_bounds__(THREADS)
    thirds_backward_kernel(const cuda_job *jobs, int n_max, cuda_window w, const T *x, const T *dy,
                           bool accumulate, bool masked, T *dx) {
    unsigned quads = (unsigned)w.c / 4, wide = (unsigned)(w.wi + 1) / 2;
    unsigned size = (unsigned)(w.hi + 1) / 2 * wide * quads, e = value_of(jobs, size);
    if (e >= size) return;
    unsigned q = e % quads, p = e / quads;
    int oy = (int)(p / wide), ox = (int)(p % wide);
    const T *xs = x + (sample_of(n_max) * w.hi * w.wi * quads + q) * 4;
    const T *ds = dy + (sample_of(n_max) * w.ho * w.wo * quads + q) * 4;
    T *to = dx + (sample_of(n_max) * w.hi * w.wi * quads + q) * 4;
    float4 sums[4] = {}, own[4] = {};
    float4 value[4] = {lowest(), lowest(), lowest(), lowest()};
    int4 at[4] = {};
#pragma unroll
    for (int k = 0; k < SPAN * SPAN; k++) {
        int r = k / SPAN, s = k % SPAN, iy = 2 * oy - 1 + r, ix = 2 * ox - 1 + s;
        if (iy < 0 || iy >= w.hi || ix < 0 || ix >= w.wi) continue;
        float4 v = load_four(xs + (size_t)(iy * w.wi + ix) * w.c);
        if ((r == 1 || r == 2) && (s == 1 || s == 2)) own[(r - 1) * 2 + s - 1] = v;
#pragma unroll
        for (int window = 0; window < 4; window++) {
            int u = r - window / 2 * 2, t = s - window % 2 * 2;
            if (u >= 0 && u < 3 && t >= 0 && t < 3) take_larger(v, k, &value[window], &at[window]);
        }
    }
#pragma unroll
    for (int window = 0; window < 4; window++) {
        int wy = oy + window / 2, wx = ox + window % 2;
        if (wy >= w.ho || wx >= w.wo) continue;
        float4 d = load_four(ds + (size_t)(wy * w.wo + wx) * w.c);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            int place = (k / 2 + 1) * SPAN + k % 2 + 1;
            sums[k].x += if_at(at[window].x, place, d.x);
            sums[k].y += if_at(at[window].y, place, d.y);
            sums[k].z += if_at(at[window].z, place, d.z);
            sums[k].w += if_at(at[window].w, place, d.w);
        }
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
        int iy = 2 * oy + k / 2, ix = 2 * ox + k % 2;
        if (iy >= w.hi || ix >= w.wi) continue;
        float4 d = sums[k];
        T *out = to + (size_t)(iy * w.wi + ix) * w.c;
        if (masked)
            d = make_float4(own[k].x > 0 ? d.x : 0, own[k].y > 0 ? d.y : 0, own[k].z > 0 ? d.z : 0,
                            own[k].w > 0 ? d.w : 0);
        if (accumulate) {
            float4 there = load_four(out);
            d.x += there.x, d.y += there.y, d.z += there.z, d.w += there.w;
        }
        store_four(out, d);
    }
}

/* A block has 64 channels of a sample; SLICES threads share out a channel's pixels and are added up
 * in order. */
enum { SLICES = THREADS / 64 };

template <class T>
static __global__ void __launch_bounds__(THREADS)
    avgpool_kernel(const cuda_job *jobs, int n_max, int channels, int pixels, const T *x,
                   float *y) {
    __shared__ float parts[SLICES][64];
    if ((int)blockIdx.y >= jobs[blockIdx.z].n) return;
    int lane = (int)threadIdx.x % 64, slice = (int)threadIdx.x / 64;
    int c = (int)blockIdx.x * 64 + lane;
    const T *xs = x + sample_of(n_max) * channels * pixels + c;
    float sum = 0.0f;
    if (c < channels)
#pragma unroll 8
        for (int p = slice; p < pixels; p += SLICES) sum += (float)xs[(size_t)p * channels];
    parts[slice][lane] = sum;
    __syncthreads();
    if (slice > 0 || c >= channels) return;
    for (int k = 1; k < SLICES; k++) sum += parts[k][lane];
    y[sample_of(n_max) * channels + c] = sum / (float)pixels;
}

template <class T>
static __global__ void avgpool_backward_kernel(const cuda_job *jobs, int n_max, int channels,
                                               int pixels, const float *dy, bool accumulate,
                                               T *dx) {
    unsigned size = (unsigned)(channels * pixels), e = value_of(jobs, size);
    if (e >= size) return;
    float d = dy[sample_of(n_max) * channels + e % (unsigned)channels] / (float)pixels;
    T *to = dx + sample_of(n_max) * size + e;
    *to = (T)(accumulate ? (float)*to + d : d);
}

/* The same for 8 neighbouring channels a thread. Grid: x over such units of a sample. */
template <class T>
static __global__ void __launch_bounds__(THREADS)
    avgpool_spread_kernel(const cuda_job *jobs, int n_max, int channels, int pixels,
                          const float *dy, bool accumulate, T *dx) {
    unsigned size = (unsigned)(channels * pixels), e = 8 * (blockIdx.x * THREADS + threadIdx.x);
    if (e >= size || (int)blockIdx.y >= jobs[blockIdx.z].n) return;
    float4 d[2], before[2] = {};
    load_eight(dy + sample_of(n_max) * channels + e % (unsigned)channels, d);
    T *to = dx + sample_of(n_max) * size + e;
    if (accumulate) load_eight(to, before);
#pragma unroll
    for (int k = 0; k < 2; k++) {
        d[k].x /= (float)pixels, d[k].y /= (float)pixels;
        d[k].z /= (float)pixels, d[k].w /= (float)pixels;
        if (accumulate)
            d[k] = make_float4(before[k].x + d[k].x, before[k].y + d[k].y, before[k].z + d[k].z,
                               before[k].w + d[k].w);
    }
    store_eight(to, d);
}

template <class T>
static ct_status spread(const cuda_run *run, int channels, int pixels, const float *dy_dev,
                        bool accumulate, void *dx_dev) {
    size_t size = (size_t)channels * pixels;
    bool in_units = channels % 8 == 0;
    return launch_kernel(run, in_units ? avgpool_spread_kernel<T> : avgpool_backward_kernel<T>,
                         grid_of(run, in_units ? size / 8 : size), THREADS, 0, run->jobs_dev,
                         run->n_max, channels, pixels, dy_dev, accumulate, (T *)dx_dev);
}

bool ct_cuda_has_kernels(void) {
    cudaFuncAttributes attributes;
    bool found = cudaFuncGetAttributes(&attributes, relu_kernel) == cudaSuccess;
    cudaGetLastError(); /* the answer is enough */
    return found;
}

ct_status ct_cuda_relu(const cuda_run *run, size_t size, const float *x_dev, float *y_dev) {
    return launch_kernel(run, relu_kernel, grid_of(run, size), THREADS, 0, run->jobs_dev,
                         run->n_max, size, x_dev, y_dev);
}

ct_status ct_cuda_relu_backward(const cuda_run *run, size_t size, const float *y_dev,
                                const float *dy_dev, bool accumulate, float *dx_dev) {
    return launch_kernel(run, relu_backward_kernel, grid_of(run, size), THREADS, 0, run->jobs_dev,
                         run->n_max, size, y_dev, dy_dev, accumulate, dx_dev);
}

ct_status ct_cuda_add(const cuda_run *run, size_t size, const float *a_dev, const float *b_dev,
                      float *y_dev) {
    return launch_kernel(run, add_kernel, grid_of(run, size), THREADS, 0, run->jobs_dev, run->n_max,
                         size, a_dev, b_dev, y_dev);
}

template <class T>
static ct_status pool_quads(const cuda_run *run, const cuda_window *w, const void *x, void *y) {
    return launch_kernel(run, maxpool_quads_kernel<T>,
                         grid_of(run, (size_t)w->ho * w->wo * w->c / 4), THREADS, 0, run->jobs_dev,
                         run->n_max, *w, (const T *)x, (T *)y);
}

ct_status ct_cuda_maxpool(const cuda_run *run, cuda_element element, const cuda_window *w,
                          const void *x_dev, void *y_dev) {
    if (element == CUDA_BF16) return pool_quads<bf16>(run, w, x_dev, y_dev);
    if (w->c % 4 == 0) return pool_quads<float>(run, w, x_dev, y_dev);
    return launch_kernel(run, maxpool_kernel, grid_of(run, (size_t)w->ho * w->wo * w->c), THREADS,
                         0, run->jobs_dev, run->n_max, *w, (const float *)x_dev, (float *)y_dev);
}

static bool are_thirds(const cuda_window *w) {
    return w->kernel == 3 && w->stride == 2 && w->pad == 1 && w->c % 4 == 0;
}

template <class T>
static ct_status thirds_backward(const cuda_run *run, const cuda_window *w, const void *x,
                                 const void *dy, bool accumulate, bool masked, void *dx) {
    size_t n = (size_t)((w->hi + 1) / 2) * (size_t)((w->wi + 1) / 2) * (size_t)(w->c / 4);
    return launch_kernel(run, thirds_backward_kernel<T>, grid_of(run, n), THREADS, 0, run->jobs_dev,
                         run->n_max, *w, (const T *)x, (const T *)dy, accumulate, masked, (T *)dx);
}

ct_status ct_cuda_maxpool_backward(const cuda_run *run, cuda_element element, const cuda_window *w,
                                   const void *x_dev, const void *dy_dev, bool accumulate,
                                   bool masked, void *dx_dev) {
    if (element == CUDA_BF16)
        return thirds_backward<bf16>(run, w, x_dev, dy_dev, accumulate, masked, dx_dev);
    if (are_thirds(w))
        return thirds_backward<float>(run, w, x_dev, dy_dev, accumulate, masked, dx_dev);
    const float *x = (const float *)x_dev, *dy = (const float *)dy_dev;
    float *dx = (float *)dx_dev;
    bool are_halves =
        w->kernel == 2 && w->stride == 2 && w->pad == 0 && w->hi == 2 * w->ho && w->wi == 2 * w->wo;
    if (are_halves && !accumulate)
        return launch_kernel(run, halves_backward_kernel,
                             grid_of(run, (size_t)w->ho * w->wo * w->c), THREADS, 0, run->jobs_dev,
                             run->n_max, *w, x, dy, masked, dx);
    return launch_kernel(run, maxpool_backward_kernel, grid_of(run, (size_t)w->hi * w->wi * w->c),
                         THREADS, 0, run->jobs_dev, run->n_max, *w, x, dy, accumulate, masked, dx);
}

template <class T>
static ct_status average(const cuda_run *run, int channels, int pixels, const void *x_dev,
                         float *y_dev) {
    dim3 grid((unsigned)(channels + 63) / 64, (unsigned)run->n_max, (unsigned)run->n_jobs);
    return launch_kernel(run, avgpool_kernel<T>, grid, THREADS, 0, run->jobs_dev, run->n_max,
                         channels, pixels, (const T *)x_dev, y_dev);
}

ct_status ct_cuda_avgpool(const cuda_run *run, cuda_element element, int channels, int pixels,
                          const void *x_dev, float *y_dev) {
    return element == CUDA_BF16 ? average<bf16>(run, channels, pixels, x_dev, y_dev)
                                : average<float>(run, channels, pixels, x_dev, y_dev);
}

ct_status ct_cuda_avgpool_backward(const cuda_run *run, cuda_element element, int channels,
                                   int pixels, const float *dy_dev, bool accumulate, void *dx_dev) {
    return element == CUDA_BF16 ? spread<bf16>(run, channels, pixels, dy_dev, accumulate, dx_dev)
                                : spread<float>(run, channels, pixels, dy_dev, accumulate, dx_dev);
}
