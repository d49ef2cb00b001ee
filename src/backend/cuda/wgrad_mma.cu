/* Weight gradients (groups = 1) of convolutions of any extent on the tensor cores: for each tap
 * dw[o][i] = sum over the output pixels p of a job of d[p][o] * x[p under the tap][i]. A matrix
 * product with rows = output channels, columns = input channels, k = pixels. x may be EvoNorm's
 * input: the norm is then applied to what fragments are read (cuda_gate).
 * A block computes 64 or 128 output x 64 input channels of one tap over its part of the pixels, 32
 * at a time, the next three on their way while these are multiplied. Grid: x = (part of the pixels,
 * tap and input channels, output channels), the latter first; y = job. The parts are added up by
 * sums.cu in a fixed order. Reads 4 bytes a value of x and d for each block of the other side's
 * channels, from L2 but for the first. Limits: tf32, channels on both sides multiples of 4. */
#include "backend/cuda/mma.cuh"

enum { WIDE = 64, DEPTH = 32, PITCH_X = WIDE + 8, THREADS = 256, STAGES = 4 };

typedef struct wgrad_call {
    cuda_conv v;
    const cuda_job *jobs;
    int n_max, n_splits, per; /* pixels of a part */
    const float *x, *d, *scale;
    const float *params;
    size_t params_stride, gate_bias;
    float *partial;
} wgrad_call;

/* What a block computes. */
typedef struct part {
    int o0, i0, u, q;
    int first, last; /* pixels */
} part;

/* Pixels of d straight to shared memory: [pixel][TALL + 8]. */
template <int TALL>
static __device__ __forceinline__ void copy_gradient(const wgrad_call &c, const float *d,
                                                     const part &b, int pixel, float *tile) {
    constexpr int QUADS = TALL / 4;
    int o = b.o0 + (int)threadIdx.x % QUADS * 4;
#pragma unroll
    for (int e = 0; e < QUADS * DEPTH / THREADS; e++) {
        int p = (int)threadIdx.x / QUADS + e * (THREADS / QUADS);
        bool is_there = pixel + p < b.last && o < c.v.co;
        copy_quad(&tile[p * (TALL + 8) + (int)threadIdx.x % QUADS * 4],
                  is_there ? d + (size_t)(pixel + p) * c.v.co + o : d, is_there);
    }
}

/* The input pixel of the job under the tap, or -1. */
static __device__ __forceinline__ int input_pixel(const cuda_conv &v, const part &b, int pixel,
                                                  int *sample) {
    if (pixel >= b.last) return -1;
    int n_pixels = v.ho * v.wo, s = pixel / n_pixels, p = pixel - s * n_pixels, oy = p / v.wo;
    int y = oy * v.stride + b.u - v.pad, x = (p - oy * v.wo) * v.stride + b.q - v.pad;
    *sample = s;
    if ((unsigned)y >= (unsigned)v.hi || (unsigned)x >= (unsigned)v.wi) return -1;
    return (s * v.hi + y) * v.wi + x;
}

static __device__ __forceinline__ void copy_picture(const wgrad_call &c, const float *x,
                                                    const part &b, int pixel, float *tile) {
    int i = b.i0 + (int)threadIdx.x % 16 * 4, sample;
#pragma unroll
    for (int e = 0; e < 2; e++) {
        int p = (int)threadIdx.x / 16 + e * 16, at = input_pixel(c.v, b, pixel + p, &sample);
        bool is_there = at >= 0 && i < c.v.ci;
        copy_quad(&tile[p * PITCH_X + (int)threadIdx.x % 16 * 4],
                  is_there ? x + (size_t)at * c.v.ci + i : x, is_there);
    }
}

/* Starts the copies of 32 pixels, if there are any; always a group. */
template <int TALL>
static __device__ __forceinline__ void copy_step(const wgrad_call &c, const float *d,
                                                 const float *x, const part &b, int pixel,
                                                 float *stage) {
    if (pixel < b.last) {
        copy_gradient<TALL>(c, d, b, pixel, stage);
        copy_picture(c, x, b, pixel, stage + DEPTH * (TALL + 8));
    }
    copies_group();
}

/* EvoNorm of this thread's four columns, for the sample that the pixels are of. */
typedef struct column_gate {
    float scale[4], bias[4];
    int next; /* pixel where the next sample begins */
} column_gate;

static __device__ __forceinline__ int column_of(const part &b, int j) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    return b.i0 + warp % 2 * 32 + j * 8 + (lane >> 2);
}

/* Moves the gate to the sample of a pixel; `scale` is that of the job's first sample. */
static __device__ __forceinline__ void move_gate(const wgrad_call &c, const part &b,
                                                 const float *scale, int pixel, column_gate &g) {
    if (pixel < g.next) return;
    int n_pixels = c.v.ho * c.v.wo, sample = pixel / n_pixels;
    g.next = (sample + 1) * n_pixels;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        int i = column_of(b, j);
        g.scale[j] = i < c.v.ci ? __ldg(scale + (size_t)sample * c.v.ci + i) : 0.0f;
    }
}

/* Adds 8 pixels to sums[i][j] of row tile i (16 output channels), column tile j (8 input ones);
 * four warps share the rows, two the columns. */
template <int TALL, bool GATED>
static __device__ __forceinline__ void
multiply(const float *d, const float *x, const column_gate &gate, float sums[TALL / 64][4][4]) {
    constexpr int TILES = TALL / 64, PITCH_D = TALL + 8;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
    d += t * PITCH_D + warp / 2 * TILES * 16 + g;
    x += t * PITCH_X + warp % 2 * 32 + g;
    float b[4][2];
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            float value = x[4 * e * PITCH_X + 8 * j];
            b[j][e] = near_tf32(GATED ? gate_one(value, gate.scale[j], gate.bias[j]) : value);
        }
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        float a[4] = {near_tf32(d[16 * i]), near_tf32(d[16 * i + 8]),
                      near_tf32(d[4 * PITCH_D + 16 * i]), near_tf32(d[4 * PITCH_D + 16 * i + 8])};
#pragma unroll
        for (int j = 0; j < 4; j++) mma_tf32(sums[i][j], a, b[j]);
    }
}

/* The sums to partial[job][split][o][tap][i]. */
template <int TALL>
static __device__ __forceinline__ void write_sums(const wgrad_call &c, const part &b, int split,
                                                  const float sums[TALL / 64][4][4]) {
    constexpr int TILES = TALL / 64;
    const cuda_conv &v = c.v;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, taps = v.kh * v.kw;
    size_t first = ((size_t)blockIdx.y * c.n_splits + split) * v.co;
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                int o = b.o0 + (warp / 2 * TILES + i) * 16 + (lane >> 2) + 8 * half;
                int in = b.i0 + warp % 2 * 32 + j * 8 + (lane & 3) * 2;
                if (o >= v.co || in >= v.ci) continue;
                float *to = c.partial + ((first + o) * taps + b.u * v.kw + b.q) * v.ci + in;
                *(float2 *)to = make_float2(sums[i][j][2 * half], sums[i][j][2 * half + 1]);
            }
}

static __device__ __forceinline__ int n_tiles(int n, int tile) {
    return (n + tile - 1) / tile;
}

/* The block's place among (split, tap, input channels, output channels). */
template <int TALL>
static __device__ __forceinline__ part part_of(const wgrad_call &c, int n_samples, int *split) {
    int n_o = n_tiles(c.v.co, TALL), n_i = n_tiles(c.v.ci, WIDE), taps = c.v.kh * c.v.kw;
    int at = (int)blockIdx.x, tap = at / n_o / n_i % taps;
    *split = at / n_o / n_i / taps;
    part b = {};
    b.o0 = at % n_o * TALL, b.i0 = at / n_o % n_i * WIDE, b.u = tap / c.v.kw, b.q = tap % c.v.kw;
    int n_pixels = n_samples * c.v.ho * c.v.wo;
    b.first = *split * c.per, b.last = min(n_pixels, b.first + c.per);
    return b;
}

template <int TALL, bool GATED>
static __global__ void __launch_bounds__(THREADS, 2) wgrad_kernel(wgrad_call c) {
    extern __shared__ __align__(16) float shared[]; /* a ring of (gradient, picture) */
    constexpr int GRADIENT = DEPTH * (TALL + 8), STAGE = GRADIENT + DEPTH * PITCH_X;
    const cuda_job job = c.jobs[blockIdx.y];
    int split;
    part b = part_of<TALL>(c, job.n, &split);
    const float *d = c.d + (size_t)blockIdx.y * c.n_max * (c.v.ho * c.v.wo) * c.v.co;
    const float *x = c.x + (size_t)blockIdx.y * c.n_max * (c.v.hi * c.v.wi) * c.v.ci;
    const float *scale = c.scale + (size_t)blockIdx.y * c.n_max * c.v.ci;
    float sums[TALL / 64][4][4] = {};
    column_gate gate = {};
    for (int j = 0; GATED && j < 4; j++)
        if (column_of(b, j) < c.v.ci)
            gate.bias[j] = c.params[job.model * c.params_stride + c.gate_bias + column_of(b, j)];
    int ahead = b.first; /* to be copied next */
    for (int k = 0; k < STAGES - 1; k++, ahead += DEPTH)
        copy_step<TALL>(c, d, x, b, ahead, shared + k * STAGE);
    for (int p = b.first, i = 0; p < b.last; p += DEPTH, i++, ahead += DEPTH) {
        copies_wait_but<STAGES - 2>();
        __syncthreads(); /* these are there, and nobody reads the ones before any more */
        copy_step<TALL>(c, d, x, b, ahead, shared + (i + STAGES - 1) % STAGES * STAGE);
        const float *now = shared + i % STAGES * STAGE;
#pragma unroll
        for (int k = 0; k < DEPTH; k += 8) {
            if (GATED) move_gate(c, b, scale, min(p + k, b.last - 1), gate);
            multiply<TALL, GATED>(now + k * (TALL + 8), now + GRADIENT + k * PITCH_X, gate, sums);
        }
    }
    write_sums<TALL>(c, b, split, sums);
}

bool ct_cuda_mma_wgrad_fits(const cuda_conv *v) {
    return v->groups == 1 && v->ci % 4 == 0 && v->co % 4 == 0 && v->ci >= 8;
}

static int tall_of(const cuda_conv *v) {
    return v->co >= 128 ? 128 : 64;
}

static int n_blocks(const cuda_conv *v) {
    int tall = tall_of(v);
    return (v->co + tall - 1) / tall * ((v->ci + WIDE - 1) / WIDE) * v->kh * v->kw;
}

/* Pixels of a part: 16 jobs of 32 samples fill the machine about twice, 256 at least. What other
 * jobs a call has must not change the order of the sums. */
static int part_pixels(const cuda_conv *v) {
    long n = (long)v->ho * v->wo * 32 * 16 * n_blocks(v) / 528;
    return n < 256 ? 256 : (int)((n + DEPTH - 1) / DEPTH * DEPTH);
}

int ct_cuda_mma_wgrad_splits(const cuda_conv *v, int n_max) {
    long n_pixels = (long)n_max * v->ho * v->wo;
    return (int)((n_pixels + part_pixels(v) - 1) / part_pixels(v));
}

template <int TALL, bool GATED> static ct_status launch(const cuda_run *run, const wgrad_call *c) {
    size_t bytes = STAGES * (size_t)(DEPTH * (TALL + 8 + PITCH_X)) * sizeof(float);
    CT_CUDA_TRY(cudaFuncSetAttribute(wgrad_kernel<TALL, GATED>,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    dim3 grid((unsigned)(n_blocks(&c->v) * c->n_splits), (unsigned)run->n_jobs);
    wgrad_kernel<TALL, GATED><<<grid, THREADS, bytes, run->stream>>>(*c);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}

ct_status ct_cuda_mma_wgrad(const cuda_run *run, const cuda_conv *conv, const cuda_gate *gate,
                            const float *x_dev, const float *d_dev, size_t weight) {
    wgrad_call c = {};
    c.v = *conv, c.jobs = run->jobs_dev, c.n_max = run->n_max, c.x = x_dev, c.d = d_dev;
    c.n_splits = ct_cuda_mma_wgrad_splits(conv, run->n_max), c.per = part_pixels(conv);
    c.params = run->params_dev, c.params_stride = run->params_stride;
    c.scale = gate->scale_dev, c.gate_bias = gate->bias, c.partial = run->partial_dev;
    bool gated = gate->scale_dev != NULL;
    if (tall_of(conv) == 128)
        CT_TRY((gated ? launch<128, true>(run, &c) : launch<128, false>(run, &c)));
    else
        CT_TRY((gated ? launch<64, true>(run, &c) : launch<64, false>(run, &c)));
    return ct_cuda_sum_wgrad(run, c.n_splits, conv->co, conv->ci, conv->kh * conv->kw, false,
                             weight);
}
