/* Depthwise 3x3 convolutions backward, bound by memory: 12 bytes a value, 6 in bf16. The input may
 * be EvoNorm's input: the norm is then applied to the values as they are read (cuda_gate), and the
 * sums that its backward pass begins with are taken of the gradient. A thread
 * has two channels of one column of the input and goes downwards: a row of gradients completes the
 * input's gradient of the row above and, times the values around, adds to those of the weights. A
 * block has 32 channels x 32 columns of one or several samples, whose rows come through a ring in
 * shared memory, and adds up its part of the weights' gradient; sums.cu adds up the blocks. Grid: x
 * = channels, y = samples, z = job. Limits: stride 1 or 2, pad 1, inputs with a power of two of
 * columns, at most 32, channels in multiples of 4. */
#include "backend/cuda/mma.cuh"

enum { THREADS = 512, CHANNELS = 32, PAIRS = 16, SLOTS = 32, TAPS = 9, RING = 8, ROWS = 64 };
enum { ROW = SLOTS * CHANNELS, STAGE = 2 * ROW }; /* elements of the ring: x, then d */
/* of shared memory: the ring, and at the end the weights' gradients of all columns */
enum { BYTES = RING * STAGE * sizeof(float) };

typedef struct back_call {
    cuda_conv v;
    const cuda_job *jobs;
    int n_max;
    int n_samples, n_groups; /* at a time, and such groups of a block */
    const void *x, *d;
    const float *scale, *params;
    size_t params_stride, weight, gate_bias;
    bool accumulate;
    void *dx;
    float *partial;
    float *sums; /* [sample][2][channel] of dx times the norm's numerator, and of dx; or NULL */
} back_call;

/* Rows on their way to the ring: half of the threads copy x, half of them d. */
template <class T> struct row_feed {
    const T *from;       /* the thread's unit in the row to be copied next */
    T *to;               /* where it goes; NULL: the thread has no unit */
    size_t to_next;      /* elements from the end of a sample to the next group's row 0 */
    int row_size, every; /* of it; rows of the input to one row of it */
    int own;             /* the unit's sample in its group; many: nothing to copy */
    int row, n_left;     /* to be copied next, and samples from that group on */
};

template <class T, int STRIDE>
static __device__ __forceinline__ row_feed<T> feed_of(const back_call &c, int first_ch,
                                                      size_t sample, int n_samples, T *ring) {
    constexpr int UNITS = CHANNELS / unit<T>::SIZE;
    const cuda_conv &v = c.v;
    bool is_d = threadIdx.x >= THREADS / 2;
    int at = (int)threadIdx.x % (THREADS / 2), slot = at / UNITS, ch = at % UNITS * unit<T>::SIZE;
    int wide = is_d ? v.wo : v.wi, tall = is_d ? v.ho : v.hi, own = slot / wide;
    size_t size = (size_t)tall * wide * v.ci;
    row_feed<T> f = {};
    bool inside = slot < SLOTS && own < c.n_samples && first_ch + ch < v.ci;
    f.from = (const T *)(is_d ? c.d : c.x) + sample * size;
    f.to = slot < SLOTS ? ring + (is_d ? (int)ROW : 0) + at * unit<T>::SIZE : NULL;
    if (inside) f.from += own * size + (slot - own * wide) * v.ci + first_ch + ch;
    f.to_next = (c.n_samples - 1) * size, f.row_size = wide * v.ci;
    f.own = inside ? own : 1 << 20, f.every = is_d ? STRIDE : 1, f.n_left = n_samples;
    return f;
}

/* Starts the copies of the next row, if there is one, to a stage of the ring; always a group. */
template <class T, int STRIDE>
static __device__ __forceinline__ void feed_row(const back_call &c, row_feed<T> &f, int stage) {
    if (f.n_left > 0) {
        if (STRIDE == 1 || f.every == 1 || (f.row & 1) == 0) {
            if (f.to != NULL) copy_quad(f.to + stage * STAGE, f.from, f.own < f.n_left);
            f.from += f.row_size;
        }
        if (++f.row == c.v.hi) f.row = 0, f.from += f.to_next, f.n_left -= c.n_samples;
    }
    copies_group();
}

/* One column of two channels: weights, their gradients, and what is open. */
typedef struct back_column {
    float2 w[TAPS], dw[TAPS];
    float2 scale, bias;
    int at[3];          /* of the gradients that taps q of this column are fed by; any: none */
    bool inside[3];     /* whether there are such; weights of others are 0, their gradients wrong */
    float2 last, next;  /* sums of the rows that the next row of gradients is the last one of */
    float2 before;      /* the value above */
    float2 d_before[3]; /* the gradients above */
    float2 numerator, numerator_before; /* of the norm, of this row and the one above */
    float2 with_x, plain;               /* sums over a sample, see back_call */
} back_column;

static __device__ __forceinline__ void add_pair(float2 &sum, float2 a, float2 b) {
    sum.x = fmaf(a.x, b.x, sum.x), sum.y = fmaf(a.y, b.y, sum.y);
}

/* The three gradients of tap row u: to the input's gradient and, times a value, to the weights'. */
static __device__ __forceinline__ float2 use_row(back_column &l, int u, const float2 d[3],
                                                 float2 value, float2 sum) {
#pragma unroll
    for (int q = 0; q < 3; q++) {
        add_pair(sum, l.w[3 * u + q], d[q]);
        add_pair(l.dw[3 * u + q], value, d[q]);
    }
    return sum;
}

/* The next row of the input's gradient. */
template <class T>
static __device__ __forceinline__ void write_pair(const back_call &c, back_column &l, T *&dx,
                                                  float2 value, float2 numerator) {
    if (c.dx == NULL) return;
    if (c.accumulate) {
        float2 there = load_two(dx);
        value.x += there.x, value.y += there.y;
    }
    store_two(dx, value);
    dx += c.v.wi * c.v.ci;
    add_pair(l.with_x, value, numerator);
    l.plain.x += value.x, l.plain.y += value.y;
}

/* Row y of the values and, stride 1, row y of the gradients: input row y - 1 is complete. */
template <class T>
static __device__ __forceinline__ void take_row(const back_call &c, back_column &l, int y,
                                                float2 value, const float2 d[3], T *&dx) {
    const float2 zero = make_float2(0, 0);
    float2 above = use_row(l, 0, d, l.before, l.last);
    if (y > 0) write_pair(c, l, dx, above, l.numerator_before);
    l.last = use_row(l, 1, d, value, l.next);
    l.next = zero;
#pragma unroll
    for (int q = 0; q < 3; q++) {
        add_pair(l.next, l.w[6 + q], d[q]);
        add_pair(l.dw[6 + q], value, l.d_before[q]); /* tap row 2: the gradients above */
        l.d_before[q] = d[q];
    }
    l.before = value;
    if (y == c.v.hi - 1) write_pair(c, l, dx, l.last, l.numerator);
}

/* Stride 2: gradients come with even rows; odd ones are between two of them. */
template <class T>
static __device__ __forceinline__ void take_row2(const back_call &c, back_column &l, int y,
                                                 float2 value, const float2 d[3], T *&dx) {
    const float2 zero = make_float2(0, 0);
    if ((y & 1) == 0) {
        float2 above = use_row(l, 0, d, l.before, l.last);
        if (y > 0) write_pair(c, l, dx, above, l.numerator_before);
        write_pair(c, l, dx, use_row(l, 1, d, value, zero), l.numerator);
#pragma unroll
        for (int q = 0; q < 3; q++) l.d_before[q] = d[q];
    } else {
        l.last = use_row(l, 2, l.d_before, value, zero);
        l.before = value;
        if (y == c.v.hi - 1) write_pair(c, l, dx, l.last, l.numerator);
    }
}

template <int STRIDE>
static __device__ __forceinline__ void find_column(const back_call &c, const float *params, int ch,
                                                   int own, int x, back_column &l) {
    const float *w = params + c.weight + (size_t)ch * TAPS;
#pragma unroll
    for (int t = 0; t < TAPS; t++) l.w[t] = make_float2(w[t], w[TAPS + t]);
#pragma unroll
    for (int q = 0; q < 3; q++) {
        int ox = x + 1 - q;
        bool inside = ox >= 0 && ox % STRIDE == 0 && ox / STRIDE < c.v.wo;
        l.at[q] = (own * c.v.wo + (inside ? ox / STRIDE : 0)) * CHANNELS + ch % CHANNELS;
        for (int u = 0; u < 3 && !inside; u++) l.w[3 * u + q] = make_float2(0, 0);
        l.inside[q] = inside;
    }
}

template <class T, int STRIDE, bool GATED>
static __device__ __forceinline__ void run_row(const back_call &c, back_column &l, int y, int slot,
                                               int lane, const T *stage, T *&dx) {
    float2 value = load_two(stage + slot * CHANNELS + lane), d[3];
    if (GATED) {
        l.numerator = make_float2(gate_numerator(value.x), gate_numerator(value.y));
        value.x = fmaf(l.numerator.x, l.scale.x, l.bias.x);
        value.y = fmaf(l.numerator.y, l.scale.y, l.bias.y);
    }
#pragma unroll
    for (int q = 0; q < 3; q++) d[q] = load_two(stage + ROW + l.at[q]);
    if (STRIDE == 1)
        take_row(c, l, y, value, d, dx);
    else
        take_row2(c, l, y, value, d, dx);
    l.numerator_before = l.numerator;
}

/* Adds up the columns of each sample of a group, in order; the first one is `sample`. */
static __device__ __forceinline__ void write_norm_sums(const back_call &c, const back_column &l,
                                                       int slot, int lane, int first, int n_there,
                                                       size_t sample, float (*slots)[2][CHANNELS]) {
    *(float2 *)&slots[slot][0][lane] = l.with_x;
    *(float2 *)&slots[slot][1][lane] = l.plain;
    __syncthreads(); /* rows follow before these are written again */
    int ch = (int)threadIdx.x % CHANNELS, which = (int)threadIdx.x / CHANNELS % 2;
    int n_columns = c.v.wi, own = (int)threadIdx.x / (2 * CHANNELS);
    for (int s = own; s < min(c.n_samples, n_there); s += THREADS / (2 * CHANNELS)) {
        if (first + ch >= c.v.ci) continue;
        float sum = 0.0f;
        for (int k = 0; k < n_columns; k++) sum += slots[s * n_columns + k][which][ch];
        c.sums[((sample + s) * 2 + which) * c.v.ci + first + ch] = sum;
    }
}

/* Adds up the columns' parts of the weights' gradient, in order, to out[tap][channel]. */
static __device__ __forceinline__ void write_weights(const back_call &c, const back_column &l,
                                                     int slot, int lane, int first, float *slots,
                                                     float *out) {
    __syncthreads(); /* the ring is used again */
#pragma unroll
    for (int t = 0; t < TAPS; t++)
        *(float2 *)&slots[(slot * TAPS + t) * CHANNELS + lane] =
            l.inside[t % 3] ? l.dw[t] : make_float2(0, 0);
    __syncthreads();
    int e = (int)threadIdx.x, t = e / CHANNELS, k = e % CHANNELS;
    if (t >= TAPS || first + k >= c.v.ci) return;
    float sum = 0.0f;
    for (int s = 0; s < SLOTS; s++) sum += slots[(s * TAPS + t) * CHANNELS + k];
    out[t * c.v.ci + first + k] = sum;
}

template <class T, int STRIDE, bool GATED>
static __global__ void __launch_bounds__(THREADS, 1) back_kernel(back_call c) {
    extern __shared__ __align__(16) char shared[];
    __shared__ __align__(16) float slots[SLOTS][2][CHANNELS];
    T *ring = (T *)shared;
    const cuda_conv &v = c.v;
    const cuda_job job = c.jobs[blockIdx.z];
    int first = (int)blockIdx.x * CHANNELS, lane = (int)threadIdx.x % PAIRS * 2, ch = first + lane;
    int slot = (int)threadIdx.x / PAIRS, own = slot / v.wi, x = slot - own * v.wi;
    int b0 = (int)blockIdx.y * c.n_groups * c.n_samples;
    int n_samples = min(c.n_groups * c.n_samples, job.n - b0);
    size_t sample = (size_t)blockIdx.z * c.n_max + b0;
    const float *params = c.params + job.model * c.params_stride;
    back_column l = {};
    bool has_channel = ch < v.ci;
    if (has_channel) find_column<STRIDE>(c, params, ch, own, x, l);
    if (GATED && has_channel) l.bias = __ldg((const float2 *)(params + c.gate_bias + ch));
    row_feed<T> feed = feed_of<T, STRIDE>(c, first, sample, n_samples, ring);
    for (int k = 0; k < RING - 1; k++) feed_row<T, STRIDE>(c, feed, k);
    for (int done = 0, i = 0; done < n_samples; done += c.n_samples) {
        bool is_there = has_channel && done + own < n_samples;
        size_t at = sample + done + own;
        T *dx = (T *)c.dx + (at * v.hi * v.wi + x) * v.ci + ch;
        if (GATED && is_there) l.scale = __ldg((const float2 *)(c.scale + at * v.ci + ch));
        l.last = l.next = l.before = l.with_x = l.plain = make_float2(0, 0);
        for (int q = 0; q < 3; q++) l.d_before[q] = make_float2(0, 0);
        for (int y = 0; y < v.hi; y++, i++) {
            copies_wait_but<RING - 2>();
            __syncthreads(); /* row i is there, and nobody reads the one before any more */
            feed_row<T, STRIDE>(c, feed, (i + RING - 1) % RING);
            if (is_there)
                run_row<T, STRIDE, GATED>(c, l, y, slot, lane, ring + i % RING * STAGE, dx);
        }
        if (GATED && c.sums != NULL)
            write_norm_sums(c, l, slot, lane, first, n_samples - done, sample + done, slots);
    }
    write_weights(c, l, slot, lane, first, (float *)shared,
                  c.partial + ((size_t)blockIdx.z * gridDim.y + blockIdx.y) * TAPS * v.ci);
}

bool ct_cuda_depthwise_back_fits(const cuda_conv *v) {
    return v->wi <= SLOTS && (v->wi & (v->wi - 1)) == 0 && v->wo * v->stride == v->wi;
}

/* Samples of a block: so many rows that filling the ring does not count. */
static int n_groups(const cuda_conv *v) {
    return v->hi < ROWS ? ROWS / v->hi : 1;
}

static int splits_of(const cuda_conv *v, int n_max) {
    int n = n_groups(v) * (SLOTS / v->wi);
    return (n_max + n - 1) / n;
}

size_t ct_cuda_depthwise_partial(const cuda_conv *v, int n_max, int) {
    return ct_cuda_split_floats(v, splits_of(v, n_max));
}

typedef void back_kernel_type(back_call);

template <class T> static back_kernel_type *kernel_of(int stride, bool gated) {
    if (stride == 1) return gated ? back_kernel<T, 1, true> : back_kernel<T, 1, false>;
    return gated ? back_kernel<T, 2, true> : back_kernel<T, 2, false>;
}

ct_status ct_cuda_depthwise_backward(const cuda_run *run, const cuda_conv_call *call) {
    const cuda_conv *v = call->conv;
    back_call c = {};
    c.v = *v, c.jobs = run->jobs_dev, c.n_max = run->n_max, c.x = call->x, c.d = call->d;
    c.n_samples = SLOTS / v->wi, c.n_groups = n_groups(v);
    c.params = run->params_dev, c.params_stride = run->params_stride, c.weight = call->weight;
    c.scale = call->gate.scale_dev, c.gate_bias = call->gate.bias, c.accumulate = call->accumulate;
    c.dx = call->dx, c.sums = call->measures, c.partial = run->partial_dev;
    int n_splits = splits_of(v, run->n_max);
    dim3 grid((unsigned)(v->ci + CHANNELS - 1) / CHANNELS, (unsigned)n_splits,
              (unsigned)run->n_jobs);
    bool gated = c.scale != NULL;
    CT_TRY(launch_kernel(run,
                         call->element == CUDA_BF16 ? kernel_of<bf16>(v->stride, gated)
                                                    : kernel_of<float>(v->stride, gated),
                         grid, THREADS, BYTES, c));
    return ct_cuda_sum_wgrad(run, n_splits, v, true, call->weight);
}
