/* A residual block's first convolution (3x3, two pixels apart) and its shortcut (1x1) with EvoNorm
 * behind each, in bf16 with fp32 sums: y = evonorm(conv(x)) twice from one reading of x.
 * Grid: x over groups of samples, y = job; a block has 16 Ki values of x in shared memory
 * (strided.cuh) and 8 Ki of each output in registers, one convolution after the other. A warp has 4
 * output rows and 16 channels: a fragment of an odd row of x serves the outputs above and below it.
 * Memory: 2 bytes a value of x and of both outputs, and of what is before their norms in training.
 * 2 flops a product; weights come from the caches. Limits: 16 channels of 32 x 32 pixels to 32, or
 * 32 of 16 x 16 to 64. */
#include "backend/cuda/resnet20/strided.cuh"

enum { TILES = 4, BLOCKS = 3 };

typedef unit_call<cuda_strided> forward_call;

/* Where a thread works: pixels g and g + 8 (or pixel g of two samples) of its rows, and four
 * channels. */
typedef struct spot {
    int column, strip, row; /* of its warp: channels / 16; rows / TILES; the first of those */
    int channel;
    uint32_t read[3]; /* of what it loads of the first row, for each column of taps */
    int from;         /* of its first quad from the block's first value */
} spot;

template <typename S> static __device__ __forceinline__ spot spot_of(void) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, m = lane & 15;
    spot s;
    s.column = warp % S::COLS, s.strip = warp / S::COLS, s.row = s.strip * TILES;
    s.channel = s.column * 16 + (lane & 3) * 4;
    int x = S::SAMPLES == 1 ? m : m & 7, sample = S::SAMPLES == 1 ? 0 : m >> 3;
    for (int q = 0; q < 3; q++)
        s.read[q] =
            (uint32_t)((sample * S::WI + 2 * s.row) * S::PITCH) + S::read_at(x, q, lane >> 4);
    s.from = (s.row * S::WO + (lane >> 2)) * S::CO + s.channel;
    return s;
}

/* From a thread's quad to that of the second half of a tile. */
template <typename S> static __device__ __forceinline__ constexpr int half_values(void) {
    return S::SAMPLES == 1 ? 8 * S::CO : S::WO * S::WO * S::CO;
}

/* Starts the copy of the block's samples, and clears what lies left of them. */
template <typename S>
static __device__ __forceinline__ void load_tile(const bf16 *x, int n_there, char *tile) {
    constexpr int AT_ONCE = THREADS / S::LINE, ROWS = S::SAMPLES * S::WI;
    int unit = (int)threadIdx.x % S::LINE, first = (int)threadIdx.x / S::LINE;
    char *to = tile + S::column_at(unit / S::X::UNITS, unit % S::X::UNITS);
#pragma unroll
    for (int k = 0; k < ROWS; k += AT_ONCE) {
        int row = k + first;
        bool there = row / S::WI < n_there;
        copy_quad(to + row * S::PITCH, x + (there ? (row * S::LINE + unit) * 8 : 0), there);
    }
    copies_group();
    if ((int)threadIdx.x < ROWS * S::X::UNITS)
        *(uint4 *)(tile + (int)threadIdx.x / S::X::UNITS * S::PITCH +
                   S::X::unit_at(0, (int)threadIdx.x % S::X::UNITS)) = make_uint4(0, 0, 0, 0);
}

/* The convolution 3x3. Row r of the rows it reads is 2 row + r - 1 of the picture; that above the
 * picture is read where the border is. */
template <typename S>
static __device__ __forceinline__ void
multiply_three(const spot &s, uint32_t tile, const uint4 *weights, float sums[TILES][2][4]) {
    constexpr int STEPS = S::CI / 16;
    const uint4 *w = weights + s.column * 32 + (threadIdx.x & 31);
#pragma unroll
    for (int q = 0; q < 3; q++) {
#pragma unroll
        for (int k = 0; k < STEPS; k++) {
            uint32_t at = tile + (s.read[q] ^ (uint32_t)k << 5);
            uint4 b[3];
#pragma unroll
            for (int u = 0; u < 3; u++) b[u] = __ldg(w + ((u * 3 + q) * STEPS + k) * S::COLS * 32);
#pragma unroll
            for (int r = 0; r < 2 * TILES + 1; r++) {
                uint32_t a[4];
                load_matrices(a, r == 0 && s.row == 0 ? tile : at + (r - 1) * S::PITCH);
#pragma unroll
                for (int u = r % 2; u < 3; u += 2) {
                    int i = (r - u) / 2;
                    if (r < u || i >= TILES) continue;
                    uint32_t left[2] = {b[u].x, b[u].y}, right[2] = {b[u].z, b[u].w};
                    mma_bf16(sums[i][0], a, left);
                    mma_bf16(sums[i][1], a, right);
                }
            }
        }
    }
}

/* The shortcut. */
template <typename S>
static __device__ __forceinline__ void multiply_one(const spot &s, uint32_t tile,
                                                    const uint4 *weights, float sums[TILES][2][4]) {
    const uint4 *w = weights + s.column * 32 + (threadIdx.x & 31);
#pragma unroll
    for (int k = 0; k < S::CI / 16; k++) {
        uint4 b = __ldg(w + k * S::COLS * 32);
        uint32_t left[2] = {b.x, b.y}, right[2] = {b.z, b.w};
#pragma unroll
        for (int i = 0; i < TILES; i++) {
            uint32_t a[4];
            load_matrices(a, tile + (s.read[1] ^ (uint32_t)k << 5) + 2 * i * S::PITCH);
            mma_bf16(sums[i][0], a, left);
            mma_bf16(sums[i][1], a, right);
        }
    }
}

/* Mean and 1/sigma of this thread's group, of both halves' samples where these differ: over its own
 * values, over the lanes, then over the warps that share the sample, in order; as sums and sums of
 * squares, as the chains in bf16 do. */
template <typename S>
static __device__ __forceinline__ void measure(const spot &s, const float sums[TILES][2][4],
                                               float2 scratch[2][4][WARPS], float2 stats[2]) {
    constexpr int STRIPS = WARPS / S::COLS, COUNT = S::CO / GROUPS * S::WO * S::WO;
    int lane = threadIdx.x & 31;
    float sum[2] = {}, squares[2] = {};
#pragma unroll
    for (int e = 0; e < TILES * 8; e++) {
        int p = S::SAMPLES == 1 ? 0 : e % 4 / 2;
        float x = sums[e / 8][e / 4 % 2][e % 4];
        sum[p] += x;
        squares[p] = fmaf(x, x, squares[p]);
    }
#pragma unroll
    for (int p = 0; p < S::SAMPLES; p++) {
#pragma unroll
        for (int k = 0; k < (S::CO == 64 ? 4 : 3); k++) {
            int mask = k == 3 ? 1 : 16 >> k;
            sum[p] += __shfl_xor_sync(0xffffffffu, sum[p], mask);
            squares[p] += __shfl_xor_sync(0xffffffffu, squares[p], mask);
        }
        if (lane < 4)
            scratch[p][lane][s.column * STRIPS + s.strip] = make_float2(sum[p], squares[p]);
    }
    __syncthreads();
#pragma unroll
    for (int p = 0; p < S::SAMPLES; p++) {
        const float2 *from = scratch[p][lane & 3] + s.column * STRIPS;
        float all = 0.0f, all_squares = 0.0f;
#pragma unroll
        for (int k = 0; k < STRIPS; k++) all += from[k].x, all_squares += from[k].y;
        float mean = all * (1.0f / COUNT);
        float about = fmaxf(fmaf(-all, mean, all_squares), 0.0f);
        stats[p] = make_float2(mean, rsqrtf(fmaf(about, 1.0f / COUNT, CUDA_EPSILON)));
    }
}

/* Statistics of the block's samples, by the first lanes of the first warp of their channels. */
template <typename S>
static __device__ __forceinline__ void write_stats(const spot &s, const float2 found[2],
                                                   int n_there, float *stats) {
    int lane = threadIdx.x & 31, t = lane & 3;
    int group = S::CO == 32 ? 4 * s.column + t : 2 * s.column + (t >> 1);
    if (s.strip > 0 || lane >= 4) return;
#pragma unroll
    for (int p = 0; p < S::SAMPLES; p++)
        if (p < n_there) ((float2 *)stats)[p * GROUPS + group] = found[p];
}

/* The values before the norm, where they are kept, and behind it. `first`: the block's first value.
 */
template <typename S>
static __device__ __forceinline__ void
write_layer(const spot &s, const cuda_link &link, const float w[4], const float b[4], size_t first,
            int n_there, const float sums[TILES][2][4], const float2 stats[2]) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int sample = S::SAMPLES == 1 ? 0 : h;
        if (sample >= n_there) continue;
        float inv = stats[sample].y;
#pragma unroll
        for (int i = 0; i < TILES; i++) {
            size_t at = first + s.from + h * half_values<S>() + i * S::WO * S::CO;
            float4 x = quad_of(sums[i], h);
            if (link.pre != NULL) store_four((bf16 *)link.pre + at, x);
            store_four((bf16 *)link.y + at,
                       make_float4(fmaf(gate_numerator(x.x), w[0] * inv, b[0]),
                                   fmaf(gate_numerator(x.y), w[1] * inv, b[1]),
                                   fmaf(gate_numerator(x.z), w[2] * inv, b[2]),
                                   fmaf(gate_numerator(x.w), w[3] * inv, b[3])));
        }
    }
}

/* 0: the convolution, 1: the shortcut. */
template <typename S, int PART>
static __device__ __forceinline__ void run_part(const forward_call &c, const spot &s, int model,
                                                size_t sample, int n_there, uint32_t tile,
                                                float2 scratch[2][4][WARPS]) {
    const cuda_link &link = c.v.links[PART];
    const uint4 *weights = (const uint4 *)(c.packed + model * c.packed_stride + link.packed);
    const float *params = c.params + model * c.params_stride + s.channel;
    float sums[TILES][2][4] = {}, w[4], b[4];
    float2 stats[2];
    if (PART == 0)
        multiply_three<S>(s, tile, weights, sums);
    else
        multiply_one<S>(s, tile, weights, sums);
#pragma unroll
    for (int i = 0; i < 4; i++) w[i] = params[link.weight + i], b[i] = params[link.bias + i];
    measure<S>(s, sums, scratch, stats);
    if (link.stats != NULL) write_stats<S>(s, stats, n_there, link.stats + sample * 2 * GROUPS);
    write_layer<S>(s, link, w, b, sample * S::WO * S::WO * S::CO, n_there, sums, stats);
}

template <int C>
static __global__ void __launch_bounds__(THREADS, BLOCKS)
    strided_kernel(const __grid_constant__ forward_call c) {
    typedef strided_shape<C> S;
    extern __shared__ __align__(256) char tile[];
    __shared__ float2 scratch[2][2][4][WARPS];
    const cuda_job job = c.jobs[blockIdx.y];
    int n_there = min(S::SAMPLES, job.n - (int)blockIdx.x * S::SAMPLES);
    if (n_there <= 0) return;
    size_t sample = (size_t)blockIdx.y * c.n_max + blockIdx.x * S::SAMPLES;
    load_tile<S>((const bf16 *)c.v.x + sample * S::WI * S::WI * C, n_there, tile);
    spot s = spot_of<S>();
    copies_wait_but<0>();
    __syncthreads();
    uint32_t from = shared_at(tile);
    run_part<S, 0>(c, s, job.model, sample, n_there, from, scratch[0]);
    run_part<S, 1>(c, s, job.model, sample, n_there, from, scratch[1]);
}

static bool is_known(const cuda_conv *v, int kernel, int pad) {
    return (v->ci == 16 || v->ci == 32) && v->co == 2 * v->ci && v->hi == 512 / v->ci &&
           v->wi == v->hi && v->groups == 1 && v->kh == kernel && v->kw == kernel &&
           v->stride == 2 && v->pad == pad;
}

bool ct_cuda_strided_fits(const cuda_conv *conv, const cuda_conv *shortcut, size_t shared_limit) {
    return is_known(conv, 3, 1) && is_known(shortcut, 1, 0) && conv->ci == shortcut->ci &&
           shared_limit >= CUDA_STRIDED_BYTES;
}

template <int C> static ct_status launch(const cuda_run *run, const forward_call *c) {
    typedef strided_shape<C> S;
    constexpr int BYTES = S::SAMPLES * S::WI * S::PITCH;
    static_assert(BYTES + 2048 <= CUDA_STRIDED_BYTES, "a block's shared memory");
    dim3 grid((unsigned)((run->n_max + S::SAMPLES - 1) / S::SAMPLES), (unsigned)run->n_jobs);
    return launch_kernel(run, strided_kernel<C>, grid, THREADS, BYTES, *c);
}

ct_status ct_cuda_strided_forward(const cuda_run *run, int channels, const cuda_strided *strided) {
    forward_call c = call_of(run, strided);
    return channels == 16 ? launch<16>(run, &c) : launch<32>(run, &c);
}
