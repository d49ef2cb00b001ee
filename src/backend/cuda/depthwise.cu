/* Depthwise 3x3 convolutions forward, bound by memory: 8 bytes a value. The input may be EvoNorm's
 * input: the norm is then applied to the values as they are read (cuda_gate). A thread computes one
 * column of outputs of four channels, downwards; a block has 32 channels x 32 columns of one or
 * several samples, whose rows come through a ring in shared memory, five of them on their way at a
 * time. The block also takes mean and squared deviations of its outputs for the EvoNorm that
 * follows. Grid: x = (channels, columns), y = samples, z = job. Limits: stride 1 or 2, pad 1,
 * outputs with a power of two or a multiple of 32 columns, channels in multiples of 4. */
#include "backend/cuda/mma.cuh"

enum { THREADS = 256, CHANNELS = 32, SLOTS = 32, TAPS = 9, RING = 6, ROWS = 64 };

typedef struct depthwise_call {
    cuda_conv v;
    const cuda_job *jobs;
    int n_max;
    int columns, n_samples; /* of a block at a time */
    int n_groups, wide;     /* such groups of samples; columns of the input in the ring */
    const float *x, *scale;
    const float *params;
    size_t params_stride, weight, gate_bias;
    float *y;
    float *measures; /* [sample][column block][2][channel], or NULL */
} depthwise_call;

static __device__ __forceinline__ float4 add_products(float4 sum, float4 w, float4 x) {
    return make_float4(fmaf(w.x, x.x, sum.x), fmaf(w.y, x.y, sum.y), fmaf(w.z, x.z, sum.z),
                       fmaf(w.w, x.w, sum.w));
}

/* Rows of the input on their way through shared memory: a ring of [n_samples * wide][CHANNELS],
 * where `wide` columns of the picture begin at x0. Rows of all samples follow each other. */
typedef struct row_feed {
    const float *x; /* the block's first sample, at its first channel */
    int offset[3];  /* of this thread's quads from the row's beginning in sample 0 of a group */
    int own[3];     /* the quad's sample in the group; many: nothing to copy */
    int group, row; /* to be copied next */
    int n_left;     /* samples from that group on */
    int size, n_quads;
} row_feed;

static __device__ __forceinline__ row_feed feed_of(const depthwise_call &c, int x0, int first_ch,
                                                   size_t sample, int n_samples) {
    const cuda_conv &v = c.v;
    row_feed f = {};
    f.x = c.x + sample * v.hi * v.wi * v.ci + first_ch;
    f.n_left = n_samples, f.size = c.n_samples * c.wide * CHANNELS, f.n_quads = f.size / 4;
#pragma unroll
    for (int e = 0; e < 3; e++) {
        int quad = (int)threadIdx.x + e * THREADS, slot = quad / 8, own = slot / c.wide;
        int x = x0 + slot - own * c.wide, ch = quad % 8 * 4;
        bool inside = quad < f.n_quads && (unsigned)x < (unsigned)v.wi && first_ch + ch < v.ci;
        f.own[e] = inside ? own : 1 << 20;
        f.offset[e] = inside ? (own * v.hi * v.wi + x) * v.ci + ch : 0;
    }
    return f;
}

/* Starts the copies of the next row, if there is one; always a group. */
static __device__ __forceinline__ void feed_row(const depthwise_call &c, row_feed &f, float *to) {
    const cuda_conv &v = c.v;
    if (f.n_left > 0) {
        const float *row = f.x + ((size_t)f.group * c.n_samples * v.hi + f.row) * v.wi * v.ci;
#pragma unroll
        for (int e = 0; e < 3; e++) {
            int quad = (int)threadIdx.x + e * THREADS;
            bool is_there = f.own[e] < f.n_left;
            if (quad < f.n_quads) copy_quad(to + 4 * quad, row + f.offset[e], is_there);
        }
        if (++f.row == v.hi) f.row = 0, f.group++, f.n_left -= c.n_samples;
    }
    copies_group();
}

/* What a forward thread works on: one column of outputs of four channels. */
typedef struct column {
    float4 w[TAPS], scale, bias;
    int at[3]; /* of the window's columns in a row of the ring, -1: outside the picture */
} column;

template <bool GATED>
static __device__ __forceinline__ void load_row(const column &l, const float *ring, float4 row[3]) {
#pragma unroll
    for (int q = 0; q < 3; q++) {
        row[q] = make_float4(0, 0, 0, 0);
        if (l.at[q] < 0) continue;
        row[q] = *(const float4 *)(ring + l.at[q]);
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

static __device__ __forceinline__ void write_quad(float *to, float4 y, moments &m) {
    *(float4 *)to = y;
    add_moments(m, y);
}

/* Sums of the outputs that the next input row is the last, and (stride 1) the middle one of. */
typedef struct open_sums {
    float4 last, middle;
} open_sums;

/* Takes input row y; an output that is complete is written, and the last ones at the end. */
template <int STRIDE>
static __device__ __forceinline__ void take_row(const cuda_conv &v, const column &l, int y,
                                                const float4 row[3], float *out, open_sums &o,
                                                moments &m) {
    const float4 zero = make_float4(0, 0, 0, 0);
    int pitch = v.wo * v.co;
    if (STRIDE == 1) {
        float4 sum = add_row(l, 2, row, o.last);
        if (y > 0) write_quad(out + (size_t)(y - 1) * pitch, sum, m);
        o.last = add_row(l, 1, row, o.middle);
        o.middle = add_row(l, 0, row, zero);
        if (y == v.hi - 1) write_quad(out + (size_t)y * pitch, o.last, m);
    } else if ((y & 1) == 0) {
        o.last = add_row(l, 1, row, o.last);
        if (y == v.hi - 1) write_quad(out + (size_t)(y / 2) * pitch, o.last, m);
    } else {
        write_quad(out + (size_t)(y / 2) * pitch, add_row(l, 2, row, o.last), m);
        o.last = add_row(l, 0, row, zero);
    }
}

/* A thread's mean and squared deviations. */
static __device__ __forceinline__ void close_moments(const moments &m, float4 *mean,
                                                     float4 *square) {
    float n = (float)m.n;
    *mean = make_float4(m.first.x + m.sum.x / n, m.first.y + m.sum.y / n, m.first.z + m.sum.z / n,
                        m.first.w + m.sum.w / n);
    *square = make_float4(fmaxf(m.square.x - m.sum.x * m.sum.x / n, 0.0f),
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

template <int STRIDE>
static __device__ __forceinline__ void find_column(const depthwise_call &c, const float *params,
                                                   int ch, int x0, int ox, int own, column &l) {
    const float *w = params + c.weight + (size_t)ch * TAPS;
#pragma unroll
    for (int t = 0; t < TAPS; t++)
        l.w[t] = make_float4(w[t], w[TAPS + t], w[2 * TAPS + t], w[3 * TAPS + t]);
#pragma unroll
    for (int q = 0; q < 3; q++) {
        int x = ox * STRIDE - 1 + q;
        bool inside = (unsigned)x < (unsigned)c.v.wi;
        l.at[q] = inside ? (own * c.wide + x - x0) * CHANNELS + (int)threadIdx.x % 8 * 4 : -1;
    }
}

/* Measures of the samples of a group, from the threads' moments in shared memory. */
static __device__ __forceinline__ void write_measures(const depthwise_call &c,
                                                      const float (*slots)[2][CHANNELS], int first,
                                                      int block, size_t sample, int n_there) {
    int lane = threadIdx.x & 31, n_blocks = c.v.wo / c.columns;
    for (int s = (int)threadIdx.x / 32; s < min(c.n_samples, n_there); s += THREADS / 32) {
        if (first + lane >= c.v.ci) continue;
        float joined[2];
        join_moments(slots + s * c.columns, c.columns, lane, c.v.ho, joined);
        float *to = c.measures + ((sample + s) * n_blocks + block) * 2 * c.v.ci + first + lane;
        to[0] = joined[0], to[c.v.ci] = joined[1];
    }
}

/* check: long because rows, sums and measures share one loop over the ring */
template <int STRIDE, bool GATED>
static __global__ void __launch_bounds__(THREADS, 2) forward_kernel(depthwise_call c) {
    extern __shared__ __align__(16) float ring[];
    __shared__ __align__(16) float slots[SLOTS][2][CHANNELS];
    const cuda_conv &v = c.v;
    const cuda_job job = c.jobs[blockIdx.z];
    int n_chunks = (v.ci + CHANNELS - 1) / CHANNELS, block = (int)blockIdx.x / n_chunks;
    int first = (int)blockIdx.x % n_chunks * CHANNELS, ch = first + (int)threadIdx.x % 8 * 4;
    int slot = (int)threadIdx.x / 8, own = slot / c.columns;
    int ox = block * c.columns + slot % c.columns;
    int x0 = v.wo == c.columns ? 0 : block * c.columns * STRIDE - 1;
    int b0 = (int)blockIdx.y * c.n_groups * c.n_samples;
    int n_samples = min(c.n_groups * c.n_samples, job.n - b0);
    size_t sample = (size_t)blockIdx.z * c.n_max + b0;
    if (n_samples <= 0) return;
    const float *params = c.params + job.model * c.params_stride;
    column l;
    bool has_channel = ch < v.ci;
    if (has_channel) find_column<STRIDE>(c, params, ch, x0, ox, own, l);
    if (GATED && has_channel) l.bias = load_quad(params + c.gate_bias + ch);
    row_feed feed = feed_of(c, x0, first, sample, n_samples);
    for (int k = 0; k < RING - 1; k++) feed_row(c, feed, ring + k * feed.size);
    for (int done = 0, i = 0; done < n_samples; done += c.n_samples) {
        bool is_there = has_channel && own < c.n_samples && done + own < n_samples;
        size_t at = sample + done + own;
        float *out = c.y + (at * v.ho * v.wo + ox) * v.co + ch;
        moments m = {};
        open_sums o = {};
        if (GATED && is_there) l.scale = load_quad(c.scale + at * v.ci + ch);
        for (int y = 0; y < v.hi; y++, i++) {
            copies_wait_but<RING - 2>();
            __syncthreads(); /* row i is there, and nobody reads the one before any more */
            feed_row(c, feed, ring + (i + RING - 1) % RING * feed.size);
            if (!is_there) continue;
            float4 row[3];
            load_row<GATED>(l, ring + i % RING * feed.size, row);
            take_row<STRIDE>(v, l, y, row, out, o, m);
        }
        if (c.measures == NULL) continue;
        if (is_there)
            close_moments(m, (float4 *)&slots[slot][0][threadIdx.x % 8 * 4],
                          (float4 *)&slots[slot][1][threadIdx.x % 8 * 4]);
        __syncthreads(); /* rows follow before these are written again */
        write_measures(c, slots, first, block, sample + done, n_samples - done);
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
    bool extents = is_power(v->wo) || v->wo % SLOTS == 0;
    return is_depthwise && window && extents && v->ci % 4 == 0;
}

int ct_cuda_depthwise_segments(const cuda_conv *v) {
    return v->wo / least(v->wo, SLOTS);
}

typedef void forward_kernel_type(depthwise_call);

ct_status ct_cuda_depthwise_forward(const cuda_run *run, const cuda_conv *conv,
                                    const cuda_gate *gate, const float *x_dev, size_t weight,
                                    float *measures_dev, float *y_dev) {
    depthwise_call c = {};
    c.v = *conv, c.jobs = run->jobs_dev, c.n_max = run->n_max, c.x = x_dev;
    c.params = run->params_dev, c.params_stride = run->params_stride, c.weight = weight;
    c.scale = gate->scale_dev, c.gate_bias = gate->bias;
    c.columns = least(conv->wo, SLOTS), c.n_samples = SLOTS / c.columns;
    c.wide = c.columns == conv->wo ? conv->wi : c.columns * conv->stride + 2;
    c.n_groups = conv->hi < ROWS ? ROWS / conv->hi : 1;
    c.y = y_dev, c.measures = measures_dev;
    int n_chunks = (conv->ci + CHANNELS - 1) / CHANNELS, n_samples = c.n_groups * c.n_samples;
    dim3 grid((unsigned)(n_chunks * (conv->wo / c.columns)),
              (unsigned)((run->n_max + n_samples - 1) / n_samples), (unsigned)run->n_jobs);
    size_t bytes = (size_t)(RING * c.n_samples * c.wide * CHANNELS) * sizeof(float);
    forward_kernel_type *kernel = forward_kernel<1, false>;
    if (conv->stride == 1 && gate->scale_dev != NULL) kernel = forward_kernel<1, true>;
    if (conv->stride == 2 && gate->scale_dev == NULL) kernel = forward_kernel<2, false>;
    if (conv->stride == 2 && gate->scale_dev != NULL) kernel = forward_kernel<2, true>;
    CT_CUDA_TRY(cudaFuncSetAttribute((const void *)kernel,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    kernel<<<grid, THREADS, bytes, run->stream>>>(c);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}
