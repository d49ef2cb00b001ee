/* Depthwise 3x3 convolutions, bound by memory. The input may be EvoNorm's input: the norm is then
 * applied to the values as they are read (cuda_gate).
 * Forward: a thread computes one column of outputs of four channels, downwards; a block has 32
 * channels x 32 columns and strips of rows, of one or several samples. Each input value is read by
 * three threads, once from memory: 8 bytes a value. The block also takes mean and squared
 * deviations of its outputs for the EvoNorm that follows. Grid: x = (channels, columns), y =
 * samples, z = job. Backward: a thread has two channels of input pixels; the nine gradients around
 * a pixel make its own gradient and, times its value, those of the weights: 12 bytes a value. A
 * block adds up 32 channels of whole samples, sums.cu the blocks. Grid: x = channels, y = samples,
 * z = job. Limits: stride 1 or 2, pad 1, extents of the output that are powers of two, or columns
 * that are multiples of 32; channels in multiples of 4. */
#include "backend/cuda/mma.cuh"

enum { THREADS = 256, CHANNELS = 32, SLOTS = 32, BACK_SLOTS = 16, TAPS = 9 };

typedef struct depthwise_call {
    cuda_conv v;
    const cuda_job *jobs;
    int n_max;
    int columns, n_strips, n_samples; /* of a block */
    const float *x, *scale, *d;
    const float *params;
    size_t params_stride, weight, gate_bias;
    bool accumulate;
    float *y;        /* the output, or the input's gradient */
    float *measures; /* [sample][column block][2][channel], or NULL */
    float *partial;
} depthwise_call;

static __device__ __forceinline__ float4 add_products(float4 sum, float4 w, float4 x) {
    return make_float4(fmaf(w.x, x.x, sum.x), fmaf(w.y, x.y, sum.y), fmaf(w.z, x.z, sum.z),
                       fmaf(w.w, x.w, sum.w));
}

/* What a forward thread works on. */
typedef struct column {
    const float *x; /* the sample's first pixel, at this thread's channels */
    float4 w[TAPS], scale, bias;
    int left; /* column of the window's first tap */
} column;

template <bool GATED>
static __device__ __forceinline__ void load_row(const cuda_conv &v, const column &l, int y,
                                                float4 row[3]) {
#pragma unroll
    for (int q = 0; q < 3; q++) {
        int x = l.left + q;
        bool inside = (unsigned)y < (unsigned)v.hi && (unsigned)x < (unsigned)v.wi;
        row[q] = make_float4(0, 0, 0, 0);
        if (!inside) continue;
        row[q] = load_quad(l.x + (y * v.wi + x) * v.ci);
        if (GATED) row[q] = gate_quad(row[q], l.scale, l.bias);
    }
}

static __device__ __forceinline__ float4 add_row(const column &l, int u, const float4 row[3],
                                                 float4 sum) {
#pragma unroll
    for (int q = 0; q < 3; q++) sum = add_products(sum, l.w[3 * u + q], row[q]);
    return sum;
}

/* Sums of the outputs less the first of them, and of the squares. */
typedef struct moments {
    float4 first, sum, square;
    int n;
} moments;

static __device__ __forceinline__ void add_moments(moments &m, float4 y) {
    if (m.n++ == 0) m.first = y;
    float4 d = make_float4(y.x - m.first.x, y.y - m.first.y, y.z - m.first.z, y.w - m.first.w);
    m.sum.x += d.x, m.sum.y += d.y, m.sum.z += d.z, m.sum.w += d.w;
    m.square = add_products(m.square, d, d);
}

/* Outputs of rows first .. last - 1 of a column. */
template <int STRIDE, bool GATED>
static __device__ __forceinline__ void run_column(const cuda_conv &v, const column &l, int first,
                                                  int last, float *out, moments &m) {
    float4 row[3], above = make_float4(0, 0, 0, 0), here = above;
    if (STRIDE == 1) {
        /* sums of the outputs that the next input row is the last, and the middle one of */
        load_row<GATED>(v, l, first - 1, row);
        above = add_row(l, 0, row, above);
        load_row<GATED>(v, l, first, row);
        above = add_row(l, 1, row, above);
        here = add_row(l, 0, row, here);
    }
    for (int y = first; y < last; y++) {
        float4 sum = above;
        if (STRIDE == 1) {
            load_row<GATED>(v, l, y + 1, row);
            sum = add_row(l, 2, row, above);
            above = add_row(l, 1, row, here);
            here = add_row(l, 0, row, make_float4(0, 0, 0, 0));
        } else {
#pragma unroll
            for (int u = 0; u < 3; u++) {
                load_row<GATED>(v, l, 2 * y + u - 1, row);
                sum =
                    u == 0 ? add_row(l, 0, row, make_float4(0, 0, 0, 0)) : add_row(l, u, row, sum);
            }
        }
        *(float4 *)(out + (size_t)y * v.wo * v.co) = sum;
        add_moments(m, sum);
    }
}

/* A thread's mean and squared deviations, [2] quads. */
static __device__ __forceinline__ void close_moments(const moments &m, float4 out[2]) {
    float n = (float)m.n;
    out[0] = make_float4(m.first.x + m.sum.x / n, m.first.y + m.sum.y / n, m.first.z + m.sum.z / n,
                         m.first.w + m.sum.w / n);
    out[1] = make_float4(fmaxf(m.square.x - m.sum.x * m.sum.x / n, 0.0f),
                         fmaxf(m.square.y - m.sum.y * m.sum.y / n, 0.0f),
                         fmaxf(m.square.z - m.sum.z * m.sum.z / n, 0.0f),
                         fmaxf(m.square.w - m.sum.w * m.sum.w / n, 0.0f));
}

/* Joins the threads of a sample: equal numbers n of outputs each. */
static __device__ __forceinline__ void join_moments(const float (*slots)[2][CHANNELS], int n_slots,
                                                    int channel, int n, float out[2]) {
    float mean = 0.0f, square = 0.0f;
    for (int s = 0; s < n_slots; s++) mean += slots[s][0][channel];
    mean /= (float)n_slots;
    for (int s = 0; s < n_slots; s++) {
        float d = slots[s][0][channel] - mean;
        square += fmaf(d * d, (float)n, slots[s][1][channel]);
    }
    out[0] = mean, out[1] = square;
}

template <int STRIDE, bool GATED>
static __global__ void __launch_bounds__(THREADS, 2) forward_kernel(depthwise_call c) {
    __shared__ __align__(16) float slots[SLOTS][2][CHANNELS];
    const cuda_conv &v = c.v;
    const cuda_job job = c.jobs[blockIdx.z];
    int n_chunks = (v.ci + CHANNELS - 1) / CHANNELS, block = (int)blockIdx.x / n_chunks;
    int first = (int)blockIdx.x % n_chunks * CHANNELS, ch = first + (int)threadIdx.x % 8 * 4;
    int slot = (int)threadIdx.x / 8, ox = block * c.columns + slot % c.columns;
    int strip = slot / c.columns % c.n_strips, own = slot / c.columns / c.n_strips;
    int b = (int)blockIdx.y * c.n_samples + own, n_rows = v.ho / c.n_strips;
    size_t sample = (size_t)blockIdx.z * c.n_max + b;
    if (own < c.n_samples && b < job.n && ch < v.ci) {
        const float *params = c.params + job.model * c.params_stride;
        column l;
        moments m = {};
        float4 closed[2];
        l.x = c.x + sample * v.hi * v.wi * v.ci + ch, l.left = ox * STRIDE - 1;
        const float *w = params + c.weight + (size_t)ch * TAPS;
#pragma unroll
        for (int t = 0; t < TAPS; t++)
            l.w[t] = make_float4(w[t], w[TAPS + t], w[2 * TAPS + t], w[3 * TAPS + t]);
        if (GATED) {
            l.scale = load_quad(c.scale + sample * v.ci + ch);
            l.bias = load_quad(params + c.gate_bias + ch);
        }
        run_column<STRIDE, GATED>(v, l, strip * n_rows, (strip + 1) * n_rows,
                                  c.y + (sample * v.ho * v.wo + ox) * v.co + ch, m);
        close_moments(m, closed);
        *(float4 *)&slots[slot][0][threadIdx.x % 8 * 4] = closed[0];
        *(float4 *)&slots[slot][1][threadIdx.x % 8 * 4] = closed[1];
    }
    if (c.measures == NULL) return;
    __syncthreads();
    int n_slots = c.columns * c.n_strips, lane = threadIdx.x & 31, n_blocks = v.wo / c.columns;
    for (int s = (int)threadIdx.x / 32; s < c.n_samples; s += THREADS / 32) {
        if ((int)blockIdx.y * c.n_samples + s >= job.n || first + lane >= v.ci) continue;
        float joined[2];
        join_moments(slots + s * n_slots, n_slots, lane, n_rows, joined);
        size_t at = (size_t)blockIdx.z * c.n_max + blockIdx.y * c.n_samples + s;
        float *to = c.measures + (at * n_blocks + block) * 2 * v.ci + first + lane;
        to[0] = joined[0], to[v.ci] = joined[1];
    }
}

static __device__ __forceinline__ float2 gate_pair(float2 x, float2 scale, float2 bias) {
    return make_float2(gate_one(x.x, scale.x, bias.x), gate_one(x.y, scale.y, bias.y));
}

/* One input pixel: its gradient, and its part of the weights'. */
template <int STRIDE>
static __device__ __forceinline__ float2 back_pixel(const cuda_conv &v, const float *d, int y,
                                                    int x, float2 value, const float2 w[TAPS],
                                                    float2 dw[TAPS]) {
    float2 sum = make_float2(0, 0);
#pragma unroll
    for (int u = 0; u < 3; u++) {
#pragma unroll
        for (int q = 0; q < 3; q++) {
            int oy = y + 1 - u, ox = x + 1 - q;
            bool inside = STRIDE == 1 || ((oy | ox) & 1) == 0;
            if (STRIDE == 2) oy >>= 1, ox >>= 1;
            inside = inside && (unsigned)oy < (unsigned)v.ho && (unsigned)ox < (unsigned)v.wo;
            if (!inside) continue;
            float2 g = __ldg((const float2 *)(d + (oy * v.wo + ox) * v.co));
            sum.x = fmaf(w[3 * u + q].x, g.x, sum.x);
            sum.y = fmaf(w[3 * u + q].y, g.y, sum.y);
            dw[3 * u + q].x = fmaf(value.x, g.x, dw[3 * u + q].x);
            dw[3 * u + q].y = fmaf(value.y, g.y, dw[3 * u + q].y);
        }
    }
    return sum;
}

/* The pixels of one sample that are this thread's. */
template <int STRIDE, bool GATED>
static __device__ __forceinline__ void back_sample(const depthwise_call &c, size_t sample, int ch,
                                                   const float *params, const float2 w[TAPS],
                                                   float2 dw[TAPS]) {
    const cuda_conv &v = c.v;
    int slot = (int)threadIdx.x / 16, x0 = slot % c.columns, y0 = slot / c.columns;
    const float *xs = c.x + sample * v.hi * v.wi * v.ci + ch;
    const float *d = c.d + sample * v.ho * v.wo * v.co + ch;
    float2 scale = make_float2(0, 0), bias = scale;
    if (GATED) {
        scale = __ldg((const float2 *)(c.scale + sample * v.ci + ch));
        bias = __ldg((const float2 *)(params + c.gate_bias + ch));
    }
    for (int y = y0; y < v.hi; y += c.n_strips) {
        for (int x = x0; x < v.wi; x += c.columns) {
            int at = (y * v.wi + x) * v.ci;
            float2 value = __ldg((const float2 *)(xs + at));
            if (GATED) value = gate_pair(value, scale, bias);
            float2 sum = back_pixel<STRIDE>(v, d, y, x, value, w, dw);
            if (c.y == NULL) continue;
            float2 *to = (float2 *)(c.y + sample * v.hi * v.wi * v.ci + ch + at);
            if (c.accumulate) sum.x += to->x, sum.y += to->y;
            *to = sum;
        }
    }
}

template <int STRIDE, bool GATED>
static __global__ void __launch_bounds__(THREADS, 3) backward_kernel(depthwise_call c) {
    __shared__ float slots[BACK_SLOTS][TAPS][CHANNELS];
    const cuda_conv &v = c.v;
    const cuda_job job = c.jobs[blockIdx.z];
    int lane = (int)threadIdx.x % 16 * 2, slot = (int)threadIdx.x / 16;
    int first = (int)blockIdx.x * CHANNELS, ch = first + lane;
    const float *params = c.params + job.model * c.params_stride;
    float2 w[TAPS] = {}, dw[TAPS] = {};
    if (ch < v.ci) {
        const float *from = params + c.weight + (size_t)ch * TAPS;
#pragma unroll
        for (int t = 0; t < TAPS; t++) w[t] = make_float2(from[t], from[TAPS + t]);
        int b = (int)blockIdx.y * c.n_samples, last = min(job.n, b + c.n_samples);
        for (; b < last; b++)
            back_sample<STRIDE, GATED>(c, (size_t)blockIdx.z * c.n_max + b, ch, params, w, dw);
    }
#pragma unroll
    for (int t = 0; t < TAPS; t++) {
        slots[slot][t][lane] = dw[t].x;
        slots[slot][t][lane + 1] = dw[t].y;
    }
    __syncthreads();
    float *out = c.partial + ((size_t)blockIdx.z * gridDim.y + blockIdx.y) * TAPS * v.ci;
    for (int e = (int)threadIdx.x; e < TAPS * CHANNELS; e += THREADS) {
        int t = e / CHANNELS, k = e % CHANNELS;
        float sum = 0.0f;
        for (int s = 0; s < BACK_SLOTS; s++) sum += slots[s][t][k];
        if (first + k < v.ci) out[t * v.ci + first + k] = sum;
    }
}

static bool is_power(int n) {
    return n > 0 && (n & (n - 1)) == 0;
}

static int least(int a, int b) {
    return a < b ? a : b;
}

bool ct_cuda_depthwise_fits(const cuda_conv *v) {
    bool is_depthwise = v->groups == v->ci && v->co == v->ci && v->groups > 1;
    bool window = v->kh == 3 && v->kw == 3 && v->pad == 1 && (v->stride == 1 || v->stride == 2);
    bool extents = is_power(v->ho) && (is_power(v->wo) || v->wo % SLOTS == 0);
    return is_depthwise && window && extents && v->ci % 4 == 0;
}

int ct_cuda_depthwise_segments(const cuda_conv *v) {
    return v->wo / least(v->wo, SLOTS);
}

static depthwise_call call_of(const cuda_run *run, const cuda_conv *conv, const cuda_gate *gate,
                              const float *x_dev, size_t weight) {
    depthwise_call c = {};
    c.v = *conv, c.jobs = run->jobs_dev, c.n_max = run->n_max, c.x = x_dev;
    c.params = run->params_dev, c.params_stride = run->params_stride, c.weight = weight;
    c.scale = gate->scale_dev, c.gate_bias = gate->bias;
    return c;
}

ct_status ct_cuda_depthwise_forward(const cuda_run *run, const cuda_conv *conv,
                                    const cuda_gate *gate, const float *x_dev, size_t weight,
                                    float *measures_dev, float *y_dev) {
    depthwise_call c = call_of(run, conv, gate, x_dev, weight);
    c.columns = least(conv->wo, SLOTS);
    c.n_strips = least(conv->ho, SLOTS / c.columns);
    c.n_samples = SLOTS / c.columns / c.n_strips;
    c.y = y_dev, c.measures = measures_dev;
    unsigned n_chunks = (unsigned)(conv->ci + CHANNELS - 1) / CHANNELS;
    dim3 grid(n_chunks * (unsigned)(conv->wo / c.columns),
              (unsigned)(run->n_max + c.n_samples - 1) / (unsigned)c.n_samples,
              (unsigned)run->n_jobs);
    bool gated = gate->scale_dev != NULL;
    if (conv->stride == 1 && gated) forward_kernel<1, true><<<grid, THREADS, 0, run->stream>>>(c);
    if (conv->stride == 1 && !gated) forward_kernel<1, false><<<grid, THREADS, 0, run->stream>>>(c);
    if (conv->stride == 2 && gated) forward_kernel<2, true><<<grid, THREADS, 0, run->stream>>>(c);
    if (conv->stride == 2 && !gated) forward_kernel<2, false><<<grid, THREADS, 0, run->stream>>>(c);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

/* Samples of a block of the backward pass: about 512 pixels. */
static int back_samples(const cuda_conv *v) {
    int n = 512 / (v->hi * v->wi);
    return n > 1 ? n : 1;
}

int ct_cuda_depthwise_splits(const cuda_conv *v, int n_max) {
    return (n_max + back_samples(v) - 1) / back_samples(v);
}

ct_status ct_cuda_depthwise_backward(const cuda_run *run, const cuda_conv *conv,
                                     const cuda_gate *gate, const float *x_dev, const float *d_dev,
                                     size_t weight, bool accumulate, float *dx_dev) {
    depthwise_call c = call_of(run, conv, gate, x_dev, weight);
    c.columns = least(conv->wi, BACK_SLOTS);
    while (BACK_SLOTS % c.columns != 0) c.columns--;
    c.n_strips = BACK_SLOTS / c.columns, c.n_samples = back_samples(conv);
    c.d = d_dev, c.y = dx_dev, c.accumulate = accumulate, c.partial = run->partial_dev;
    int n_splits = ct_cuda_depthwise_splits(conv, run->n_max);
    dim3 grid((unsigned)(conv->ci + CHANNELS - 1) / CHANNELS, (unsigned)n_splits,
              (unsigned)run->n_jobs);
    bool gated = gate->scale_dev != NULL;
    if (conv->stride == 1 && gated) backward_kernel<1, true><<<grid, THREADS, 0, run->stream>>>(c);
    if (conv->stride == 1 && !gated)
        backward_kernel<1, false><<<grid, THREADS, 0, run->stream>>>(c);
    if (conv->stride == 2 && gated) backward_kernel<2, true><<<grid, THREADS, 0, run->stream>>>(c);
    if (conv->stride == 2 && !gated)
        backward_kernel<2, false><<<grid, THREADS, 0, run->stream>>>(c);
    CT_CUDA_LAUNCHED();
    return ct_cuda_sum_wgrad(run, n_splits, conv->co, 1, TAPS, true, weight);
}
