/* Weight gradients of a chain's layers in bf16: dw[tap][i][o] = sum over samples and pixels of
 * x[pixel shifted by the tap][i] * d[pixel][o]. A matrix product on the tensor cores with rows =
 * input channels, columns = output channels, k = pixels (16 of a row, or 8 of the same row of two
 * samples), for all taps at once: a fragment of d serves every tap, one of a picture's row the
 * three output rows around it. Grid: x = split of a job's strips of rows, y = job, z = layer. A
 * block takes its strips one after the other through shared memory (planes.cuh), the next one on
 * its way while this one is multiplied, and keeps the sums in registers; warps share out channels
 * and pixels. Reads x and d once (4 bytes a pixel and channel; pictures 4 a colour), 2 flops a
 * product; the splits are added up by sums.cu in a fixed order. Limits: 16, 32 or 64 output channels
 * of 32, 16 or 8 squared pixels, as many or half as many input channels; pictures of up to 8
 * colours for 16. */
#include "backend/cuda/resnet20/wgrad_bf16.cuh"

enum { STRIP = 8, DEEP = 4 }; /* rows of a strip, and of those that are multiplied together */

/* SAMPLES of a strip lie behind each other; SLICES warps share out its pixels. On an H200, 512
 * samples, 6 layers of 16 channels and 5 of 32 and 64: 71, 60 and 72 us with the second pass; four
 * blocks at a time of 16 channels take 85. */
template <int INPUTS, int OUTPUTS> struct wgrad_shape {
    typedef planes<bf16, INPUTS> X;
    typedef planes<bf16, OUTPUTS> D;
    static constexpr int CI = INPUTS, CO = OUTPUTS, W = 512 / CO, SAMPLES = CO == 64 ? 2 : 1;
    static constexpr int ROWS = CI / 16, COLS = CO / 16; /* warps */
    static constexpr int SLICES = CO == 16 ? 4 : CO == 32 ? 2 : CO / CI;
    static constexpr int THREADS = 32 * ROWS * COLS * SLICES;
    static constexpr int BLOCKS = CO == 16 ? 3 : CO == 64 ? 1 : CI == 32 ? 2 : 4;
    static constexpr int N_STRIPS = W / STRIP;
    static constexpr int ROW_BYTES = W * D::PIXEL; /* of d, without borders */
    static constexpr int PICTURE_BYTES = ((STRIP + 2) * X::PITCH + X::END + 127) / 128 * 128;
    static constexpr int BUFFER = SAMPLES * (PICTURE_BYTES + STRIP * ROW_BYTES);
    static constexpr int SUM_BYTES = SLICES > 1 ? 9 * CI *CO * 4 : 0;
    static constexpr int BYTES = 2 * BUFFER > SUM_BYTES ? 2 * BUFFER : SUM_BYTES;
};

/* Starts the copies of a strip's rows of x, and of those above and below it. */
template <typename S>
static __device__ __forceinline__ void load_picture(const bf16 *x, int strip, bool is_there,
                                                    char *picture) {
    constexpr int LINE = S::W * S::X::UNITS, AT_ONCE = S::THREADS / LINE; /* units; rows */
    int unit = (int)threadIdx.x % LINE, r = (int)threadIdx.x / LINE;
    int column = unit / S::X::UNITS, row = strip * STRIP + r;
    char *to = picture + S::X::unit_at(column + 1, unit % S::X::UNITS) + r * S::X::PITCH;
#pragma unroll
    for (int k = 0; k < STRIP + 2; k += AT_ONCE) {
        if (k + r >= STRIP + 2) break;
        bool is_inside = is_there && row + k >= 1 && row + k <= S::W;
        const bf16 *from = x + ((is_inside ? row + k - 1 : 0) * LINE + unit) * 8;
        copy_quad(to + k * S::X::PITCH, from, is_inside);
    }
}

template <typename S>
static __device__ __forceinline__ void load_gradient(const bf16 *d, int strip, bool is_there,
                                                     char *gradient) {
    constexpr int LINE = S::W * S::D::UNITS, AT_ONCE = S::THREADS / LINE;
    int unit = (int)threadIdx.x % LINE, r = (int)threadIdx.x / LINE;
    char *to = gradient + S::D::unit_at(unit / S::D::UNITS, unit % S::D::UNITS) + r * S::ROW_BYTES;
#pragma unroll
    for (int k = 0; k < STRIP; k += AT_ONCE) {
        const bf16 *from = d + ((strip * STRIP + r + k) * LINE + unit) * 8;
        copy_quad(to + k * S::ROW_BYTES, from, is_there);
    }
}

/* A picture's rows: its few colours as the first channels. */
template <typename S>
static __device__ __forceinline__ void load_image(const float *x, int n_colours, int strip,
                                                  char *picture) {
    for (int p = (int)threadIdx.x; p < (STRIP + 2) * S::W; p += S::THREADS) {
        int r = p / S::W, column = p % S::W, row = strip * STRIP + r - 1;
        bool is_inside = row >= 0 && row < S::W;
        const float *from = x + (is_inside ? row * S::W + column : 0) * n_colours;
        float v[8];
#pragma unroll
        for (int k = 0; k < 8; k++) v[k] = k < n_colours && is_inside ? from[k] : 0.0f;
        float4 quads[2] = {make_float4(v[0], v[1], v[2], v[3]),
                           make_float4(v[4], v[5], v[6], v[7])};
        store_eight((bf16 *)(picture + r * S::X::PITCH + S::X::unit_at(column + 1, 0)), quads);
    }
}

/* Starts the copies of a job's strip `item` into a buffer. */
template <typename S, bool IMAGE>
static __device__ __forceinline__ void load_strip(const wgrad_call &c, int n, int item,
                                                  char *buffer) {
    const cuda_wgrad &layer = c.layers[blockIdx.z];
    int strip = item % S::N_STRIPS, first = item / S::N_STRIPS * S::SAMPLES;
    char *gradient = buffer + S::SAMPLES * S::PICTURE_BYTES;
#pragma unroll
    for (int k = 0; k < S::SAMPLES; k++) {
        bool is_there = first + k < n;
        size_t sample = (size_t)blockIdx.y * c.n_max + first + (is_there ? k : 0);
        size_t at = sample * S::W * S::W;
        const bf16 *d = (const bf16 *)layer.d + at * S::CO;
        load_gradient<S>(d, strip, is_there, gradient + k * STRIP * S::ROW_BYTES);
        if (IMAGE)
            load_image<S>((const float *)layer.x + at * c.n_colours, c.n_colours, strip, buffer);
        else
            load_picture<S>((const bf16 *)layer.x + at * S::CI, strip, is_there,
                            buffer + k * S::PICTURE_BYTES);
    }
}

/* Adds DEEP output rows, 16 pixels each, to this warp's sums[tap][column tile]; x[q] (for each
 * column of taps) and d are addresses for load_transposed, of the first picture row above, and the
 * first output row. */
template <typename S>
static __device__ __forceinline__ void add_rows(const uint32_t x[3], uint32_t offset, uint32_t d,
                                                float sums[9][2][4]) {
    uint32_t b[DEEP][4];
#pragma unroll
    for (int i = 0; i < DEEP; i++) load_transposed(b[i], d + i * S::ROW_BYTES);
#pragma unroll
    for (int q = 0; q < 3; q++) {
#pragma unroll
        for (int r = 0; r < DEEP + 2; r++) {
            uint32_t a[4];
            load_transposed(a, x[q] + offset + r * S::X::PITCH);
#pragma unroll
            for (int u = 0; u < 3; u++) {
                int i = r - u; /* input row = output row + u - 1 */
                if (i < 0 || i >= DEEP) continue;
                uint32_t left[2] = {b[i][0], b[i][2]}, right[2] = {b[i][1], b[i][3]};
                mma_bf16(sums[u * 3 + q][0], a, left);
                mma_bf16(sums[u * 3 + q][1], a, right);
            }
        }
    }
}

/* Element of [tap][CI][CO] that sums[tap][j][k] of this thread is. */
template <typename S> static __device__ __forceinline__ int place(int tap, int j, int k) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int i = warp / S::COLS % S::ROWS * 16 + (lane >> 2) + (k >> 1) * 8;
    int o = warp % S::COLS * 16 + j * 8 + (lane & 3) * 2 + (k & 1);
    return (tap * S::CI + i) * S::CO + o;
}

/* Adds up the slices, in order, and writes the block's sums of the first n_in input channels. */
template <typename S>
static __device__ void write_sums(int n_in, const float sums[9][2][4], float *scratch, float *out) {
    constexpr int C = S::CO;
    int slice = (int)(threadIdx.x >> 5) / (S::ROWS * S::COLS);
    for (int s = 0; s < S::SLICES; s++) {
        if (slice == s) {
#pragma unroll
            for (int e = 0; e < 72; e += 2) {
                int at = place<S>(e / 8, e / 4 % 2, e % 4);
                float2 *to = (float2 *)(S::SLICES == 1 ? out + at : scratch + at);
                float2 v =
                    make_float2(sums[e / 8][e / 4 % 2][e % 4], sums[e / 8][e / 4 % 2][e % 4 + 1]);
                *to = s == 0 ? v : make_float2(to->x + v.x, to->y + v.y);
            }
        }
        __syncthreads();
    }
    int n_left = S::SLICES == 1 ? 0 : 9 * n_in * C;
    for (int e = (int)threadIdx.x; e < n_left; e += S::THREADS) {
        int o = e % C, i = e / C % n_in, tap = e / C / n_in;
        out[e] = scratch[(tap * S::CI + i) * C + o];
    }
}

template <typename S, bool IMAGE>
static __global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    wgrad_kernel(const __grid_constant__ wgrad_call c) {
    extern __shared__ __align__(256) char shared[]; /* two buffers */
    const cuda_job job = c.jobs[blockIdx.y];
    int n_items = (job.n + S::SAMPLES - 1) / S::SAMPLES * S::N_STRIPS;
    int per = (n_items + c.n_splits - 1) / c.n_splits;
    int first = (int)blockIdx.x * per, last = min(n_items, first + per);
    for (int k = (int)threadIdx.x * 16; k < 2 * S::BUFFER; k += S::THREADS * 16)
        *(uint4 *)(shared + k) = make_uint4(0, 0, 0, 0);
    __syncthreads();
    if (first < last) load_strip<S, IMAGE>(c, job.n, first, shared);
    copies_group();
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, slice = warp / (S::ROWS * S::COLS);
    int column = (lane & 7) + (S::SAMPLES == 1 ? lane >> 4 << 3 : 0), unit = lane >> 3 & 1;
    int sample = S::SAMPLES == 1 ? 0 : lane >> 4;
    uint32_t x[3], d, base = shared_at(shared);
    for (int q = 0; q < 3; q++)
        x[q] = base + sample * S::PICTURE_BYTES +
               S::X::unit_at(column + q, warp / S::COLS % S::ROWS * 2 + unit);
    d = base + S::SAMPLES * S::PICTURE_BYTES + sample * STRIP * S::ROW_BYTES +
        S::D::unit_at(column, warp % S::COLS * 2 + unit);
    float sums[9][2][4] = {};
    for (int item = first; item < last; item++) {
        uint32_t buffer = (uint32_t)((item - first) % 2 * S::BUFFER);
        if (item + 1 < last)
            load_strip<S, IMAGE>(c, job.n, item + 1, shared + (item + 1 - first) % 2 * S::BUFFER);
        copies_group();
        copies_wait_but<1>();
        __syncthreads(); /* everyone's copies of this strip are there */
        /* pieces of 16 columns and DEEP rows */
        constexpr int ACROSS = S::W > 16 ? S::W / 16 : 1;
        for (int k = slice; k < STRIP / DEEP * ACROSS; k += S::SLICES) {
            uint32_t row = (uint32_t)(k / ACROSS * DEEP), side = (uint32_t)(k % ACROSS) * 16;
            add_rows<S>(x, buffer + row * S::X::PITCH + side * S::X::PIXEL,
                        d + buffer + row * S::ROW_BYTES + side * S::D::PIXEL, sums);
        }
        __syncthreads(); /* the strip after the next overwrites this buffer */
    }
    int n_in = IMAGE ? c.n_colours : S::CI;
    size_t row = (size_t)blockIdx.z * gridDim.y + blockIdx.y;
    write_sums<S>(n_in, sums, (float *)shared,
                  c.partial + (row * c.n_splits + blockIdx.x) * 9 * n_in * S::CO);
}

template <typename S> static int n_splits(int n_layers, int n_most) {
    int n_items = (n_most + S::SAMPLES - 1) / S::SAMPLES * S::N_STRIPS;
    return ct_cuda_even_splits(n_layers, n_items, S::BLOCKS);
}

int ct_cuda_bf16_wgrad_splits(const cuda_conv *v, int n_layers, int n_most) {
    bool same = v->ci == v->co;
    if (v->co == 16) return n_splits<wgrad_shape<16, 16>>(n_layers, n_most);
    if (v->co == 32)
        return same ? n_splits<wgrad_shape<32, 32>>(n_layers, n_most)
                    : n_splits<wgrad_shape<16, 32>>(n_layers, n_most);
    return same ? n_splits<wgrad_shape<64, 64>>(n_layers, n_most)
                : n_splits<wgrad_shape<32, 64>>(n_layers, n_most);
}

template <int CI, int CO, bool IMAGE>
static ct_status launch(const cuda_run *run, const wgrad_call *c, int n_layers) {
    typedef wgrad_shape<CI, CO> S;
    dim3 grid((unsigned)c->n_splits, (unsigned)run->n_jobs, (unsigned)n_layers);
    return launch_kernel(run, wgrad_kernel<S, IMAGE>, grid, S::THREADS, S::BYTES, *c);
}

static ct_status launch_known(const cuda_run *run, const cuda_conv *v, const wgrad_call *c, int n) {
    if (run->is_hopper && v->ci == 64) return ct_cuda_wgrad_groups(run, c, n);
    if (v->co == 16)
        return v->ci == 16 ? launch<16, 16, false>(run, c, n) : launch<16, 16, true>(run, c, n);
    if (v->co == 32)
        return v->ci == 32 ? launch<32, 32, false>(run, c, n) : launch<16, 32, false>(run, c, n);
    return v->ci == 64 ? launch<64, 64, false>(run, c, n) : launch<32, 64, false>(run, c, n);
}

ct_status ct_cuda_bf16_wgrad(const cuda_run *run, const cuda_conv *conv, const cuda_wgrad *layers,
                             int n_layers) {
    wgrad_call c = {run->jobs_dev, run->n_max, 0, conv->ci, {}, run->partial_dev};
    c.n_splits = ct_cuda_bf16_wgrad_splits(conv, n_layers, run->n_most);
    for (int k = 0; k < n_layers; k++) c.layers[k] = layers[k];
    CT_TRY(launch_known(run, conv, &c, n_layers));
    return ct_cuda_sum_layers(run, c.n_splits, conv, layers, n_layers);
}
