/* Weight gradients of a residual block's first convolution (3x3, two pixels apart) and its shortcut
 * (1x1) in bf16, from one reading of their input: dw[tap][i][o] = sum over samples and output
 * pixels of x[pixel under the tap][i] * d[pixel][o]; tap 9 is the shortcut's, with its own d. A
 * matrix product on the tensor cores with rows = input channels, columns = output channels, k =
 * pixels (16 of a row, or 8 of the same row of two samples), for all taps at once: a fragment of d
 * serves every tap, one of x the rows above and below it. Grid: x = split of a job's halves of
 * samples, y = job. A block takes its halves one after the other through shared memory
 * (strided.cuh), the next one on its way while this one is multiplied, and keeps the sums in
 * registers; warps share out channels and rows. Reads x and both d once (2 bytes a value), 2 flops
 * a product; the splits are added up in a fixed order. Limits: those of strided.cu. */
#include "backend/cuda/resnet20/strided.cuh"

enum { TAPS = 10, DEEP = 2, BLOCKS = 2, HALVES = 2 };

typedef struct wgrad_call {
    const cuda_job *jobs;
    int n_max, n_splits;
    const bf16 *x, *d[2];
    float *partial; /* [job][split][tap][i][o] */
} wgrad_call;

/* ROWS of outputs in a half; SLICES warps share them out. */
template <int C> struct wgrad_shape : strided_shape<C> {
    typedef strided_shape<C> S;
    static constexpr int ROWS = S::WO / HALVES, PICTURE_ROWS = 2 * ROWS + 1;
    static constexpr int TILES = C / 16 * S::COLS, SLICES = WARPS / TILES; /* of 16 x 16 channels */
    static constexpr int D_LINE = S::WO * S::CO / 8, D_ROW = 16 * D_LINE;  /* units; bytes */
    static constexpr int PICTURE_BYTES = PICTURE_ROWS * S::PITCH, D_BYTES = ROWS * D_ROW;
    static constexpr int D_AT = S::SAMPLES * PICTURE_BYTES; /* [convolution][sample] */
    static constexpr int BUFFER = D_AT + 2 * S::SAMPLES * D_BYTES;
    static constexpr int SUM_BYTES = SLICES > 1 ? TAPS *C *S::CO * 4 : 0;
    static constexpr int BYTES = 2 * BUFFER > SUM_BYTES ? 2 * BUFFER : SUM_BYTES;
};

/* Starts the copies of the rows of x under a half. */
template <typename S>
static __device__ __forceinline__ void load_picture(const bf16 *x, int half, bool is_there,
                                                    char *picture) {
    constexpr int AT_ONCE = THREADS / S::LINE;
    int unit = (int)threadIdx.x % S::LINE, r = (int)threadIdx.x / S::LINE;
    int first = half * 2 * S::ROWS - 1;
    char *to = picture + S::column_at(unit / S::X::UNITS, unit % S::X::UNITS);
#pragma unroll
    for (int k = 0; k < S::PICTURE_ROWS; k += AT_ONCE) {
        int row = first + r + k;
        if (r + k >= S::PICTURE_ROWS) break;
        bool is_inside = is_there && row >= 0; /* the last one is never below the picture */
        copy_quad(to + (r + k) * S::PITCH, x + (is_inside ? (row * S::LINE + unit) * 8 : 0),
                  is_inside);
    }
}

template <typename S>
static __device__ __forceinline__ void load_gradient(const bf16 *d, int half, bool is_there,
                                                     char *to) {
#pragma unroll
    for (int i = (int)threadIdx.x; i < S::ROWS * S::D_LINE; i += THREADS) {
        int row = i / S::D_LINE, unit = i % S::D_LINE;
        copy_quad(to + row * S::D_ROW + S::Y::unit_at(unit / (S::CO / 8), unit % (S::CO / 8)),
                  d + (is_there ? (half * S::ROWS * S::D_LINE + i) * 8 : 0), is_there);
    }
}

/* Starts the copies of a job's half `item` into a buffer. */
template <typename S>
static __device__ __forceinline__ void load_item(const wgrad_call &c, int n, int item,
                                                 char *buffer) {
    int half = item % HALVES, first = item / HALVES * S::SAMPLES;
#pragma unroll
    for (int k = 0; k < S::SAMPLES; k++) {
        bool is_there = first + k < n;
        size_t sample = (size_t)blockIdx.y * c.n_max + first + (is_there ? k : 0);
        load_picture<S>(c.x + sample * S::WI * S::WI * S::CI, half, is_there,
                        buffer + k * S::PICTURE_BYTES);
#pragma unroll
        for (int p = 0; p < 2; p++)
            load_gradient<S>(c.d[p] + sample * S::WO * S::WO * S::CO, half, is_there,
                             buffer + S::D_AT + (p * S::SAMPLES + k) * S::D_BYTES);
    }
}

static __device__ __forceinline__ void add_product(float sums[2][4], const uint32_t a[4],
                                                   const uint32_t b[4]) {
    uint32_t left[2] = {b[0], b[2]}, right[2] = {b[1], b[3]};
    mma_bf16(sums[0], a, left);
    mma_bf16(sums[1], a, right);
}

/* Adds DEEP rows of outputs; x[q] (for each column of taps) and d are addresses for
 * load_transposed, of the first picture row under them and of the convolution's d. */
template <typename S>
static __device__ __forceinline__ void add_rows(const uint32_t x[3], uint32_t offset, uint32_t d,
                                                float sums[TAPS][2][4]) {
    uint32_t b[2][DEEP][4];
#pragma unroll
    for (int e = 0; e < 2 * DEEP; e++)
        load_transposed(b[e / DEEP][e % DEEP],
                        d + e / DEEP * S::SAMPLES * S::D_BYTES + e % DEEP * S::D_ROW);
#pragma unroll
    for (int q = 0; q < 3; q++) {
#pragma unroll
        for (int r = 0; r < 2 * DEEP + 1; r++) {
            uint32_t a[4];
            load_transposed(a, x[q] + offset + r * S::PITCH);
#pragma unroll
            for (int u = r % 2; u < 3; u += 2) {
                int i = (r - u) / 2;
                if (r >= u && i < DEEP) add_product(sums[u * 3 + q], a, b[0][i]);
            }
            if (q == 1 && r % 2 == 1) add_product(sums[9], a, b[1][r / 2]);
        }
    }
}

/* Element of [tap][CI][CO] that sums[tap][j][k] of this thread is. */
template <typename S> static __device__ __forceinline__ int place(int tap, int j, int k) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int i = warp / S::COLS % (S::CI / 16) * 16 + (lane >> 2) + (k >> 1) * 8;
    int o = warp % S::COLS * 16 + j * 8 + (lane & 3) * 2 + (k & 1);
    return (tap * S::CI + i) * S::CO + o;
}

/* Adds up the slices, in order, and writes the block's sums. */
template <typename S>
static __device__ __forceinline__ void write_sums(const float sums[TAPS][2][4], float *scratch,
                                                  float *out) {
    int slice = (int)(threadIdx.x >> 5) / S::TILES;
    for (int s = 0; s < S::SLICES; s++) {
        if (slice == s) {
#pragma unroll
            for (int e = 0; e < TAPS * 8; e += 2) {
                const float *v = &sums[e / 8][e / 4 % 2][e % 4];
                int at = place<S>(e / 8, e / 4 % 2, e % 4);
                float2 *to = (float2 *)(S::SLICES == 1 ? out + at : scratch + at);
                *to = s == 0 ? make_float2(v[0], v[1]) : make_float2(to->x + v[0], to->y + v[1]);
            }
        }
        __syncthreads();
    }
    int n_left = S::SLICES == 1 ? 0 : TAPS * S::CI * S::CO / 4; /* quads */
    for (int e = (int)threadIdx.x; e < n_left; e += THREADS)
        ((float4 *)out)[e] = ((const float4 *)scratch)[e];
}

template <int C>
static __global__ void __launch_bounds__(THREADS, BLOCKS)
    strided_wgrad_kernel(const __grid_constant__ wgrad_call c) {
    typedef wgrad_shape<C> S;
    extern __shared__ __align__(256) char shared[]; /* two buffers */
    const cuda_job job = c.jobs[blockIdx.y];
    int n_items = (job.n + S::SAMPLES - 1) / S::SAMPLES * HALVES;
    int per = (n_items + c.n_splits - 1) / c.n_splits;
    int first = (int)blockIdx.x * per, last = min(n_items, first + per);
    for (int k = (int)threadIdx.x * 16; k < 2 * S::BUFFER; k += THREADS * 16)
        *(uint4 *)(shared + k) = make_uint4(0, 0, 0, 0); /* the border */
    __syncthreads();
    if (first < last) load_item<S>(c, job.n, first, shared);
    copies_group();
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, unit = lane >> 3 & 1;
    int column = (lane & 7) + (S::SAMPLES == 1 ? lane >> 4 << 3 : 0);
    int sample = S::SAMPLES == 1 ? 0 : lane >> 4;
    uint32_t x[3], d, base = shared_at(shared);
    for (int q = 0; q < 3; q++)
        x[q] = base + sample * S::PICTURE_BYTES +
               S::read_at(column, q, warp / S::COLS % (C / 16) * 2 + unit);
    d = base + S::D_AT + sample * S::D_BYTES + S::Y::unit_at(column, warp % S::COLS * 2 + unit);
    float sums[TAPS][2][4] = {};
    for (int item = first; item < last; item++) {
        uint32_t buffer = (uint32_t)((item - first) % 2 * S::BUFFER);
        if (item + 1 < last)
            load_item<S>(c, job.n, item + 1, shared + (item + 1 - first) % 2 * S::BUFFER);
        copies_group();
        copies_wait_but<1>();
        __syncthreads(); /* everyone's copies of this half are there */
        for (int row = warp / S::TILES * DEEP; row < S::ROWS; row += S::SLICES * DEEP)
            add_rows<S>(x, buffer + (uint32_t)(2 * row * S::PITCH),
                        d + buffer + (uint32_t)(row * S::D_ROW), sums);
        __syncthreads(); /* the half after the next overwrites this buffer */
    }
    size_t part = (size_t)blockIdx.y * c.n_splits + blockIdx.x;
    write_sums<S>(sums, (float *)shared, c.partial + part * TAPS * C * S::CO);
}

static int splits_of(int channels, int n_most) {
    int n_samples = channels / 16;
    return ct_cuda_even_splits(1, (n_most + n_samples - 1) / n_samples * HALVES, BLOCKS);
}

size_t ct_cuda_strided_partial(int channels, int n_most) {
    return 2 * TAPS * (size_t)(channels * channels) * (size_t)splits_of(channels, n_most);
}

template <int C> static ct_status launch(const cuda_run *run, const wgrad_call *c) {
    typedef wgrad_shape<C> S;
    static_assert(S::BYTES <= CUDA_STRIDED_BYTES, "a block's shared memory");
    dim3 grid((unsigned)c->n_splits, (unsigned)run->n_jobs);
    return launch_kernel(run, strided_wgrad_kernel<C>, grid, THREADS, S::BYTES, *c);
}

/* Adds up the splits, in order. Grid: x over values, y = job. */
static __global__ void strided_sums_kernel(const cuda_job *jobs, const float *partial, int n_splits,
                                           int ci, float *weights, float *shortcut, size_t stride) {
    int e = (int)(blockIdx.x * THREADS + threadIdx.x), co = 2 * ci, count = TAPS * ci * co;
    if (e >= count) return;
    int o = e % co, i = e / co % ci, t = e / co / ci;
    const float *p = partial + (size_t)blockIdx.y * n_splits * count + e;
    float sum = 0.0f;
#pragma unroll 16
    for (int s = 0; s < n_splits; s++) sum += p[(size_t)s * count];
    size_t row = jobs[blockIdx.y].out * stride;
    if (t < 9)
        weights[row + (o * ci + i) * 9 + t] = sum;
    else
        shortcut[row + o * ci + i] = sum;
}

ct_status ct_cuda_strided_wgrad(const cuda_run *run, int channels, const cuda_wgrad layers[2]) {
    wgrad_call c = {};
    c.jobs = run->jobs_dev, c.n_max = run->n_max, c.partial = run->partial_dev;
    c.x = (const bf16 *)layers[0].x;
    c.d[0] = (const bf16 *)layers[0].d, c.d[1] = (const bf16 *)layers[1].d;
    c.n_splits = splits_of(channels, run->n_most);
    CT_TRY(channels == 16 ? launch<16>(run, &c) : launch<32>(run, &c));
    dim3 grid((unsigned)((2 * TAPS * channels * channels + THREADS - 1) / THREADS),
              (unsigned)run->n_jobs);
    return launch_kernel(run, strided_sums_kernel, grid, THREADS, 0, run->jobs_dev,
                         run->partial_dev, c.n_splits, channels, run->grads_dev + layers[0].weight,
                         run->grads_dev + layers[1].weight, run->grads_stride);
}
