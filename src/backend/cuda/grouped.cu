/* Grouped and depthwise convolutions, one thread an output value; channels lie next to each other,
 * so a warp reads whole lines. Grid: x over values, y = sample, z = job. Bound by memory: 8 bytes a
 * value for depthwise 3x3 when the caches hold the rows above and below. */
#include "backend/cuda/device.cuh"

enum { THREADS = 256 };

/* y[o] = bias[o] + sum over the group's channels and taps of w[o][i][u][v] x[...] */
static __global__ void forward_kernel(const cuda_job *jobs, int n_max, cuda_conv v, const float *x,
                                      const float *params, size_t stride, size_t weight,
                                      size_t bias, bool relu, float *y) {
    const cuda_job job = jobs[blockIdx.z];
    int e = (int)(blockIdx.x * THREADS + threadIdx.x), b = (int)blockIdx.y;
    if (b >= job.n || e >= v.ho * v.wo * v.co) return;
    int o = e % v.co, p = e / v.co, oy = p / v.wo, ox = p % v.wo;
    int n_in = v.ci / v.groups, first = o / (v.co / v.groups) * n_in;
    size_t sample = (size_t)blockIdx.z * n_max + b;
    const float *xs = x + sample * v.hi * v.wi * v.ci;
    const float *w = params + job.model * stride + weight + (size_t)o * n_in * v.kh * v.kw;
    float sum = bias == CUDA_NO_PARAM ? 0.0f : params[job.model * stride + bias + o];
    for (int u = 0; u < v.kh; u++) {
        int iy = oy * v.stride + u - v.pad;
        if (iy < 0 || iy >= v.hi) continue;
        for (int q = 0; q < v.kw; q++) {
            int ix = ox * v.stride + q - v.pad;
            if (ix < 0 || ix >= v.wi) continue;
            const float *at = xs + ((size_t)iy * v.wi + ix) * v.ci + first;
            for (int i = 0; i < n_in; i++) sum = fmaf(w[(i * v.kh + u) * v.kw + q], at[i], sum);
        }
    }
    y[sample * v.ho * v.wo * v.co + e] = relu ? fmaxf(sum, 0.0f) : sum;
}

/* dx[i] = sum over the group's outputs and taps of w[o][i][u][v] d[...] */
static __global__ void dgrad_kernel(const cuda_job *jobs, int n_max, cuda_conv v, const float *d,
                                    const float *params, size_t stride, size_t weight,
                                    bool accumulate, float *dx) {
    const cuda_job job = jobs[blockIdx.z];
    int e = (int)(blockIdx.x * THREADS + threadIdx.x), b = (int)blockIdx.y;
    if (b >= job.n || e >= v.hi * v.wi * v.ci) return;
    int c = e % v.ci, p = e / v.ci, iy = p / v.wi, ix = p % v.wi;
    int n_in = v.ci / v.groups, n_out = v.co / v.groups, first = c / n_in * n_out, i = c % n_in;
    size_t sample = (size_t)blockIdx.z * n_max + b;
    const float *ds = d + sample * v.ho * v.wo * v.co;
    const float *w = params + job.model * stride + weight;
    float sum = 0.0f;
    for (int u = 0; u < v.kh; u++) {
        int oy = iy + v.pad - u;
        if (oy < 0 || oy % v.stride != 0 || oy / v.stride >= v.ho) continue;
        for (int q = 0; q < v.kw; q++) {
            int ox = ix + v.pad - q;
            if (ox < 0 || ox % v.stride != 0 || ox / v.stride >= v.wo) continue;
            const float *at = ds + ((size_t)(oy / v.stride) * v.wo + ox / v.stride) * v.co + first;
            for (int o = 0; o < n_out; o++)
                sum = fmaf(w[(((size_t)(first + o) * n_in + i) * v.kh + u) * v.kw + q], at[o], sum);
        }
    }
    float *to = dx + sample * v.hi * v.wi * v.ci + e;
    *to = accumulate ? *to + sum : sum;
}

/* One sample's part of dw[o][t][i] = sum over pixels of d[o] x[...]; y = sample. */
static __global__ void wgrad_kernel(const cuda_job *jobs, int n_max, cuda_conv v, const float *x,
                                    const float *d, float *partial) {
    const cuda_job job = jobs[blockIdx.z];
    int n_in = v.ci / v.groups, taps = v.kh * v.kw, count = v.co * n_in * taps;
    int e = (int)(blockIdx.x * THREADS + threadIdx.x), b = (int)blockIdx.y;
    if (e >= count) return;
    int o = e % v.co, rest = e / v.co, i = rest % n_in, t = rest / n_in, u = t / v.kw, q = t % v.kw;
    int c = o / (v.co / v.groups) * n_in + i;
    size_t sample = (size_t)blockIdx.z * n_max + b;
    const float *xs = x + sample * v.hi * v.wi * v.ci + c;
    const float *ds = d + sample * v.ho * v.wo * v.co + o;
    float sum = 0.0f;
    for (int oy = 0; oy < v.ho && b < job.n; oy++) {
        int iy = oy * v.stride + u - v.pad;
        if (iy < 0 || iy >= v.hi) continue;
        for (int ox = 0; ox < v.wo; ox++) {
            int ix = ox * v.stride + q - v.pad;
            if (ix < 0 || ix >= v.wi) continue;
            sum =
                fmaf(ds[((size_t)oy * v.wo + ox) * v.co], xs[((size_t)iy * v.wi + ix) * v.ci], sum);
        }
    }
    partial[sample * count + ((size_t)o * taps + t) * n_in + i] = sum;
}

static dim3 grid_of(const cuda_run *run, int n) {
    return dim3((unsigned)(n + THREADS - 1) / THREADS, (unsigned)run->n_max, (unsigned)run->n_jobs);
}

static ct_status forward(const cuda_run *run, const cuda_conv_call *call) {
    const cuda_conv *v = call->conv;
    return launch_kernel(run, forward_kernel, grid_of(run, v->ho * v->wo * v->co), THREADS, 0,
                         run->jobs_dev, run->n_max, *v, (const float *)call->x, run->params_dev,
                         run->params_stride, call->weight, call->bias, call->relu,
                         (float *)call->y);
}

static ct_status dgrad(const cuda_run *run, const cuda_conv_call *call) {
    const cuda_conv *v = call->conv;
    return launch_kernel(run, dgrad_kernel, grid_of(run, v->hi * v->wi * v->ci), THREADS, 0,
                         run->jobs_dev, run->n_max, *v, (const float *)call->d, run->params_dev,
                         run->params_stride, call->weight, call->accumulate, (float *)call->dx);
}

static ct_status wgrad(const cuda_run *run, const cuda_conv_call *call) {
    const cuda_conv *v = call->conv;
    CT_TRY(launch_kernel(run, wgrad_kernel, grid_of(run, v->co * v->weight_ci * v->weight_taps),
                         THREADS, 0, run->jobs_dev, run->n_max, *v, (const float *)call->x,
                         (const float *)call->d, run->partial_dev));
    return ct_cuda_sum_wgrad(run, run->n_max, v, false, call->weight);
}

static bool fits(const cuda_problem *p, cuda_direction) {
    return p->conv.groups > 1;
}

static size_t partial(const cuda_conv *v, int n_max, int) {
    return ct_cuda_split_floats(v, n_max);
}

const cuda_family ct_cuda_grouped = {
    .name = "grouped", .fits = fits, .launch = {forward, dgrad, wgrad}, .partial = partial};
