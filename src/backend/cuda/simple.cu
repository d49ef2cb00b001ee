/* ReLU, addition and pooling, one thread a value. Grid: x over a sample's values, y = sample, z =
 * job. 8 to 12 bytes a value. */
#include "backend/cuda/device.cuh"

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

static __global__ void avgpool_kernel(const cuda_job *jobs, int n_max, int channels, int pixels,
                                      const float *x, float *y) {
    unsigned c = value_of(jobs, (unsigned)channels);
    if (c >= (unsigned)channels) return;
    const float *xs = x + sample_of(n_max) * channels * pixels;
    float sum = 0.0f;
    for (int p = 0; p < pixels; p++) sum += xs[(size_t)p * channels + c];
    y[sample_of(n_max) * channels + c] = sum / (float)pixels;
}

static __global__ void avgpool_backward_kernel(const cuda_job *jobs, int n_max, int channels,
                                               int pixels, const float *dy, bool accumulate,
                                               float *dx) {
    unsigned size = (unsigned)(channels * pixels), e = value_of(jobs, size);
    if (e >= size) return;
    float d = dy[sample_of(n_max) * channels + e % (unsigned)channels] / (float)pixels;
    float *to = dx + sample_of(n_max) * size + e;
    *to = accumulate ? *to + d : d;
}

bool ct_cuda_has_kernels(void) {
    cudaFuncAttributes attributes;
    bool found = cudaFuncGetAttributes(&attributes, relu_kernel) == cudaSuccess;
    cudaGetLastError(); /* the answer is enough */
    return found;
}

ct_status ct_cuda_relu(const cuda_run *run, size_t size, const float *x_dev, float *y_dev) {
    relu_kernel<<<grid_of(run, size), THREADS, 0, run->stream>>>(run->jobs_dev, run->n_max, size,
                                                                 x_dev, y_dev);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

ct_status ct_cuda_relu_backward(const cuda_run *run, size_t size, const float *y_dev,
                                const float *dy_dev, bool accumulate, float *dx_dev) {
    relu_backward_kernel<<<grid_of(run, size), THREADS, 0, run->stream>>>(
        run->jobs_dev, run->n_max, size, y_dev, dy_dev, accumulate, dx_dev);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

ct_status ct_cuda_add(const cuda_run *run, size_t size, const float *a_dev, const float *b_dev,
                      float *y_dev) {
    add_kernel<<<grid_of(run, size), THREADS, 0, run->stream>>>(run->jobs_dev, run->n_max, size,
                                                                a_dev, b_dev, y_dev);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

ct_status ct_cuda_maxpool(const cuda_run *run, const cuda_window *w, const float *x_dev,
                          float *y_dev) {
    maxpool_kernel<<<grid_of(run, (size_t)w->ho * w->wo * w->c), THREADS, 0, run->stream>>>(
        run->jobs_dev, run->n_max, *w, x_dev, y_dev);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

ct_status ct_cuda_maxpool_backward(const cuda_run *run, const cuda_window *w, const float *x_dev,
                                   const float *dy_dev, bool accumulate, bool masked,
                                   float *dx_dev) {
    bool are_halves =
        w->kernel == 2 && w->stride == 2 && w->pad == 0 && w->hi == 2 * w->ho && w->wi == 2 * w->wo;
    if (are_halves && !accumulate) {
        halves_backward_kernel<<<grid_of(run, (size_t)w->ho * w->wo * w->c), THREADS, 0,
                                 run->stream>>>(run->jobs_dev, run->n_max, *w, x_dev, dy_dev,
                                                masked, dx_dev);
        CT_CUDA_LAUNCHED();
        return CT_OK;
    }
    maxpool_backward_kernel<<<grid_of(run, (size_t)w->hi * w->wi * w->c), THREADS, 0,
                              run->stream>>>(run->jobs_dev, run->n_max, *w, x_dev, dy_dev,
                                             accumulate, masked, dx_dev);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

ct_status ct_cuda_avgpool(const cuda_run *run, int channels, int pixels, const float *x_dev,
                          float *y_dev) {
    avgpool_kernel<<<grid_of(run, (size_t)channels), THREADS, 0, run->stream>>>(
        run->jobs_dev, run->n_max, channels, pixels, x_dev, y_dev);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

ct_status ct_cuda_avgpool_backward(const cuda_run *run, int channels, int pixels,
                                   const float *dy_dev, bool accumulate, float *dx_dev) {
    avgpool_backward_kernel<<<grid_of(run, (size_t)channels * pixels), THREADS, 0, run->stream>>>(
        run->jobs_dev, run->n_max, channels, pixels, dy_dev, accumulate, dx_dev);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}
