/* Depthwise 3x3 convolutions forward: 8 bytes a value, 4 in bf16, and as many instructions as the
 * memory's rate allows. The input may be EvoNorm's input: the norm is then applied to the values as
 * they are read (cuda_gate). A thread computes two columns of outputs of four channels, downwards;
 * a block has 128 bytes of channels x 32 columns of one or several samples, whose rows come through
 * a ring in shared memory, five of them on their way at a time. The block also takes mean and
 * squared deviations of its outputs for the EvoNorm that follows. Grid: x = (channels, columns), y
 * = samples, z = job. Limits: stride 1 or 2, pad 1, outputs with an even power of two or a multiple
 * of 32 columns, channels in multiples of 4, of 8 in bf16. */
#include "backend/cuda/mma.cuh"

enum { LINE = 128 /* bytes */, UNITS = LINE / 16, TAPS = 9, RING = 6, ROWS = 64 };
enum {
    COLUMNS = 32,
    SLOTS = COLUMNS / 2,
    SEGMENT = 16
}; /* of a block; threads; measured together */

/* Channels of a block, threads that have them; units of a row that a thread copies at most. */
template <class T> struct tile {
    enum { CHANNELS = LINE / sizeof(T), LANES = CHANNELS / 4, THREADS = LANES * SLOTS };
    enum { OWN = ((2 * COLUMNS + 2) * UNITS + THREADS - 1) / THREADS };
};

typedef struct depthwise_call {
    cuda_conv v;
    const cuda_job *jobs;
    int n_max;
    int columns, n_samples; /* of a block at a time */
    int n_groups, wide;     /* such groups of samples; columns of the input in the ring */
    const void *x;
    const float *scale, *params;
    size_t params_stride, weight, gate_bias;
    void *y;
    float *measures; /* [sample][segment of columns][2][channel], or NULL */
} depthwise_call;

static __device__ __forceinline__ float4 add_products(float4 sum, float4 w, float4 x) {
    return make_float4(fmaf(w.x, x.x, sum.x), fmaf(w.y, x.y, sum.y), fmaf(w.z, x.z, sum.z),
                       fmaf(w.w, x.w, sum.w));
}

/* Rows of the input on their way through shared memory: a ring of [n_samples * wide] lines, where
 * `wide` columns of the picture begin at x0. Rows of all samples follow each other. */
template <class T> struct row_feed {
    const T *row;             /* to be copied next: of the group's first sample, at x0 */
    char *to;                 /* where it goes */
    int offset[tile<T>::OWN]; /* of this thread's units from the row's beginning */
    uint32_t own;             /* the units' samples in the group, 5 bits each */
    uint32_t inside, there;   /* units that lie in the picture, and in a sample there is; bits */
    int y, n_left;            /* the row; samples from its group on */
    int n_units;
};

/* Which units there is something to copy for. */
template <class T> static __device__ __forceinline__ void look_ahead(row_feed<T> &f) {
    f.there = f.inside;
#pragma unroll
    for (int e = 0; e < tile<T>::OWN; e++)
        if ((int)(f.own >> 5 * e & 31) >= f.n_left) f.there &= ~(1u << e);
}

template <class T>
static __device__ __forceinline__ row_feed<T> feed_of(const depthwise_call &c, int x0, int first_ch,
                                                      size_t sample, int n_samples, char *ring) {
    const cuda_conv &v = c.v;
    row_feed<T> f = {};
    f.row = (const T *)c.x + sample * v.hi * v.wi * v.ci + first_ch;
    f.to = ring, f.n_left = n_samples, f.n_units = c.n_samples * c.wide * UNITS;
#pragma unroll
    for (int e = 0; e < tile<T>::OWN; e++) {
        int at = (int)threadIdx.x + e * tile<T>::THREADS, slot = at / UNITS, own = slot / c.wide;
        int x = x0 + slot - own * c.wide, ch = at % UNITS * unit<T>::SIZE;
        bool inside = at < f.n_units && (unsigned)x < (unsigned)v.wi && first_ch + ch < v.ci;
        if (!inside) continue;
        f.inside |= 1u << e, f.own |= (uint32_t)own << 5 * e;
        f.offset[e] = (own * v.hi * v.wi + x) * v.ci + ch;
    }
    look_ahead(f);
    return f;
}

/* Starts the copies of the next row, if there is one; always a group. */
template <class T>
static __device__ __forceinline__ void feed_row(const depthwise_call &c, row_feed<T> &f,
                                                char *ring) {
    constexpr int THREADS = tile<T>::THREADS;
    int pitch = c.v.wi * c.v.ci, size = f.n_units * 16;
    if (f.n_left > 0) {
#pragma unroll
        for (int e = 0; e < tile<T>::OWN; e++) {
            if (e * THREADS >= f.n_units) break;
            if ((int)threadIdx.x + e * THREADS < f.n_units)
                copy_quad(f.to + 16 * ((int)threadIdx.x + e * THREADS), f.row + f.offset[e],
                          f.there >> e & 1);
        }
        f.row += pitch;
        if (++f.y == c.v.hi) {
            f.y = 0, f.n_left -= c.n_samples, f.row += (size_t)(c.n_samples - 1) * c.v.hi * pitch;
            look_ahead(f);
        }
    }
    f.to = f.to + size == ring + RING * size ? ring : f.to + size;
    copies_group();
}

/* What a thread works on: two columns of outputs of four channels. WIDE: columns of the input. */
template <int WIDE> struct column {
    float4 w[TAPS], scale, bias;
    int at[WIDE];             /* in a row of the ring, bytes */
    bool has_left, has_right; /* the first and the last one are in the picture */
};

template <class T, bool GATED, int WIDE>
static __device__ __forceinline__ void load_row(const column<WIDE> &l, const char *ring,
                                                float4 row[WIDE]) {
    const float4 zero = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int q = 0; q < WIDE; q++) {
        row[q] = load_four((const T *)(ring + l.at[q]));
        if (GATED) row[q] = gate_quad(row[q], l.scale, l.bias);
    }
    if (!l.has_left) row[0] = zero;
    if (!l.has_right) row[WIDE - 1] = zero;
}

static __device__ __forceinline__ float4 add_row(const float4 w[TAPS], int u, const float4 row[3],
                                                 float4 sum) {
#pragma unroll
    for (int q = 0; q < 3; q++) sum = add_products(sum, w[3 * u + q], row[q]);
    return sum;
}

/* Sums of outputs and of their squares. */
typedef struct moments {
    float4 sum, square;
} moments;

/* The two outputs of a row that is complete. */
template <class T>
static __device__ __forceinline__ void write_outputs(T *to, int next, const float4 y[2],
                                                     moments &m) {
#pragma unroll
    for (int k = 0; k < 2; k++) {
        store_four(to + k * next, y[k]);
        m.sum.x += y[k].x, m.sum.y += y[k].y, m.sum.z += y[k].z, m.sum.w += y[k].w;
        m.square = add_products(m.square, y[k], y[k]);
    }
}

/* Sums of the outputs that the next input row is the last, and (stride 1) the middle one of. */
typedef struct open_sums {
    float4 last[2], middle[2];
} open_sums;

/* Takes input row y; outputs that are complete are written, and the last ones at the end. `out` is
 * where the next ones go. */
template <int STRIDE, class T, int WIDE>
static __device__ __forceinline__ void take_row(const cuda_conv &v, const column<WIDE> &l, int y,
                                                const float4 row[WIDE], T *&out, open_sums &o,
                                                moments &m) {
    const float4 zero = make_float4(0, 0, 0, 0);
    float4 done[2];
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const float4 *own = row + k * STRIDE;
        if (STRIDE == 1) {
            done[k] = add_row(l.w, 2, own, o.last[k]);
            o.last[k] = add_row(l.w, 1, own, o.middle[k]);
            o.middle[k] = add_row(l.w, 0, own, zero);
        } else if ((y & 1) == 0) {
            o.last[k] = add_row(l.w, 1, own, o.last[k]);
        } else {
            done[k] = add_row(l.w, 2, own, o.last[k]);
            o.last[k] = add_row(l.w, 0, own, zero);
        }
    }
    if (STRIDE == 1 ? y > 0 : y & 1) {
        write_outputs(out, v.co, done, m);
        out += v.wo * v.co;
    }
    if (y == v.hi - 1 && (STRIDE == 1 || (y & 1) == 0)) write_outputs(out, v.co, o.last, m);
}

/* A thread's mean and squared deviations of n outputs. */
static __device__ __forceinline__ void close_moments(const moments &m, int n, float4 *mean,
                                                     float4 *square) {
    float part = 1.0f / (float)n;
    *mean = make_float4(m.sum.x * part, m.sum.y * part, m.sum.z * part, m.sum.w * part);
    *square = make_float4(fmaxf(fmaf(-m.sum.x, mean->x, m.square.x), 0.0f),
                          fmaxf(fmaf(-m.sum.y, mean->y, m.square.y), 0.0f),
                          fmaxf(fmaf(-m.sum.z, mean->z, m.square.z), 0.0f),
                          fmaxf(fmaf(-m.sum.w, mean->w, m.square.w), 0.0f));
}

/* Joins threads: equal numbers n of outputs each. */
template <int CHANNELS>
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

template <class T, int STRIDE, int WIDE>
static __device__ __forceinline__ void find_column(const depthwise_call &c, const float *params,
                                                   int ch, int x0, int ox, int own,
                                                   column<WIDE> &l) {
    const float *w = params + c.weight + (size_t)ch * TAPS;
    int lane = (int)threadIdx.x % tile<T>::LANES, first = ox * STRIDE - 1;
#pragma unroll
    for (int t = 0; t < TAPS; t++)
        l.w[t] = make_float4(w[t], w[TAPS + t], w[2 * TAPS + t], w[3 * TAPS + t]);
#pragma unroll
    for (int q = 0; q < WIDE; q++) {
        int x = min(max(first + q, 0), c.v.wi - 1);
        l.at[q] = (own * c.wide + x - x0) * LINE + lane * 4 * (int)sizeof(T);
    }
    l.has_left = first >= 0, l.has_right = first + WIDE - 1 < c.v.wi;
}

/* Measures of the samples of a group, from the threads' moments in shared memory. */
template <int CHANNELS, int THREADS>
static __device__ __forceinline__ void write_measures(const depthwise_call &c,
                                                      const float (*slots)[2][CHANNELS], int first,
                                                      int block, size_t sample, int n_there) {
    int lane = (int)threadIdx.x % CHANNELS, columns = min((int)SEGMENT, c.columns);
    int own = (int)threadIdx.x / CHANNELS, n_segments = c.columns / columns;
    for (int k = own; k < min(c.n_samples, n_there) * n_segments; k += THREADS / CHANNELS) {
        if (first + lane >= c.v.ci) continue;
        float joined[2];
        join_moments<CHANNELS>(slots + k * columns / 2, columns / 2, lane, 2 * c.v.ho, joined);
        size_t segment = (sample + k / n_segments) * (c.v.wo / columns);
        segment += block * n_segments + k % n_segments;
        float *to = c.measures + segment * 2 * c.v.ci + first + lane;
        to[0] = joined[0], to[c.v.ci] = joined[1];
    }
}

/* check: long because rows, sums and measures share one loop over the ring */
template <class T, int STRIDE, bool GATED>
static __global__ void __launch_bounds__(tile<T>::THREADS, 512 / tile<T>::THREADS)
    forward_kernel(depthwise_call c) {
    extern __shared__ __align__(16) char ring[];
    constexpr int CHANNELS = tile<T>::CHANNELS, LANES = tile<T>::LANES, WIDE = STRIDE + 3;
    __shared__ __align__(16) float slots[SLOTS][2][CHANNELS];
    const cuda_conv &v = c.v;
    const cuda_job job = c.jobs[blockIdx.z];
    int n_chunks = (v.ci + CHANNELS - 1) / CHANNELS, block = (int)blockIdx.x / n_chunks;
    int first = (int)blockIdx.x % n_chunks * CHANNELS, lane = (int)threadIdx.x % LANES * 4;
    int ch = first + lane, slot = (int)threadIdx.x / LANES, own = 2 * slot / c.columns;
    int ox = block * c.columns + 2 * slot % c.columns;
    int x0 = v.wo == c.columns ? 0 : block * c.columns * STRIDE - 1;
    int b0 = (int)blockIdx.y * c.n_groups * c.n_samples;
    int n_samples = min(c.n_groups * c.n_samples, job.n - b0);
    size_t sample = (size_t)blockIdx.z * c.n_max + b0;
    if (n_samples <= 0) return;
    const float *params = c.params + job.model * c.params_stride;
    column<WIDE> l;
    bool has_channel = ch < v.ci;
    if (has_channel) find_column<T, STRIDE>(c, params, ch, x0, ox, own, l);
    if (GATED && has_channel) l.bias = load_four(params + c.gate_bias + ch);
    row_feed<T> feed = feed_of<T>(c, x0, first, sample, n_samples, ring);
    int size = feed.n_units * 16;
    const char *now = ring;
    for (int k = 0; k < RING - 1; k++) feed_row(c, feed, ring);
    for (int done = 0; done < n_samples; done += c.n_samples) {
        bool is_there = has_channel && done + own < n_samples;
        size_t at = sample + done + own;
        T *out = (T *)c.y + (at * v.ho * v.wo + ox) * v.co + ch;
        moments m = {};
        open_sums o = {};
        if (GATED && is_there) l.scale = load_four(c.scale + at * v.ci + ch);
        for (int y = 0; y < v.hi; y++) {
            copies_wait_but<RING - 2>();
            __syncthreads(); /* the row is there, and nobody reads the one before any more */
            feed_row(c, feed, ring);
            if (is_there) {
                float4 row[WIDE];
                load_row<T, GATED>(l, now, row);
                take_row<STRIDE>(v, l, y, row, out, o, m);
            }
            now = now + size == ring + RING * size ? ring : now + size;
        }
        if (c.measures == NULL) continue;
        if (is_there)
            close_moments(m, 2 * v.ho, (float4 *)&slots[slot][0][lane],
                          (float4 *)&slots[slot][1][lane]);
        __syncthreads(); /* rows follow before these are written again */
        write_measures<CHANNELS, tile<T>::THREADS>(c, slots, first, block, sample + done,
                                                   n_samples - done);
    }
}

static bool is_even_power(int n) {
    return n > 1 && (n & (n - 1)) == 0;
}

static int least(int a, int b) {
    return a < b ? a : b;
}

static bool fits(const cuda_problem *p, cuda_direction direction) {
    const cuda_conv *v = &p->conv;
    bool is_depthwise = v->groups == v->ci && v->co == v->ci && v->groups > 1 && !p->has_bias;
    bool window = v->kh == 3 && v->kw == 3 && v->pad == 1 && (v->stride == 1 || v->stride == 2);
    bool extents = is_even_power(v->wo) || v->wo % COLUMNS == 0;
    return is_depthwise && window && extents && v->ci % 4 == 0 &&
           (direction == CUDA_FORWARD || ct_cuda_depthwise_back_fits(v));
}

static cuda_segments segments(const cuda_conv *v) {
    return {v->wo / least(v->wo, SEGMENT)};
}

/* Sums are taken of whole samples, of what is written, with the numerators at hand. */
static int parts(const cuda_conv *, bool is_gated, bool accumulate) {
    return is_gated && !accumulate ? 1 : 0;
}

static bool gates(const cuda_conv *) {
    return true;
}

template <class T> static ct_status launch(const cuda_run *run, const depthwise_call *c) {
    const cuda_conv *v = &c->v;
    bool gated = c->scale != NULL;
    int channels = tile<T>::CHANNELS, n_chunks = (v->ci + channels - 1) / channels;
    int n_samples = c->n_groups * c->n_samples;
    dim3 grid((unsigned)(n_chunks * (v->wo / c->columns)),
              (unsigned)((run->n_max + n_samples - 1) / n_samples), (unsigned)run->n_jobs);
    return launch_kernel(
        run,
        v->stride == 1 ? (gated ? forward_kernel<T, 1, true> : forward_kernel<T, 1, false>)
                       : (gated ? forward_kernel<T, 2, true> : forward_kernel<T, 2, false>),
        grid, tile<T>::THREADS, (size_t)(RING * c->n_samples * c->wide) * LINE, *c);
}

static ct_status forward(const cuda_run *run, const cuda_conv_call *call) {
    const cuda_conv *v = call->conv;
    depthwise_call c = {};
    c.v = *v, c.jobs = run->jobs_dev, c.n_max = run->n_max, c.x = call->x;
    c.params = run->params_dev, c.params_stride = run->params_stride, c.weight = call->weight;
    c.scale = call->gate.scale_dev, c.gate_bias = call->gate.bias;
    c.columns = least(v->wo, COLUMNS), c.n_samples = COLUMNS / c.columns;
    c.wide = c.columns == v->wo ? v->wi : c.columns * v->stride + 2;
    c.n_groups = v->hi < ROWS ? ROWS / v->hi : 1;
    c.y = call->y, c.measures = call->measures;
    return call->element == CUDA_BF16 ? launch<bf16>(run, &c) : launch<float>(run, &c);
}

/* The input's gradient is there: see is_joint. */
static ct_status dgrad(const cuda_run *, const cuda_conv_call *) {
    return CT_OK;
}

const cuda_family ct_cuda_depthwise = {.name = "depthwise",
                                       .fits = fits,
                                       .launch = {forward, dgrad, ct_cuda_depthwise_backward},
                                       .partial = ct_cuda_depthwise_partial,
                                       .has_bf16 = true,
                                       .is_joint = true,
                                       .gates = gates,
                                       .segments = segments,
                                       .parts = parts};
