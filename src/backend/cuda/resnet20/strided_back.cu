/* Gradients of a residual block's first convolution (3x3, two pixels apart) and its shortcut (1x1)
 * in bf16: EvoNorm's of both, written for the weight gradients and kept in shared memory, then the
 * input's, the sum of both convolutions' (fp32 in registers). Per-sample sums of the norms' own
 * gradients go to sums.cu. The equations are those of backend/ref/norm.c.
 * Grid: x over groups of samples, y = job; a block has 8 Ki values of each output. A thread takes
 * 8 channels of some pixels through the norms. In the product a warp has
 * two rows of the outputs' pixels and 16 input channels, for all four input pixels that lie there
 * (even and odd rows and columns, of which each meets its own taps). Memory, 2 bytes each: a value
 * and its gradient read, and a gradient written, for each output; a gradient written for each value
 * of the input. 2 flops a product. Limits: those of strided.cu. */
#include "backend/cuda/resnet20/strided.cuh"

enum { TILES = 2, EACH = 4, BLOCKS = 2, SLOT_BYTES = EACH * THREADS * 16 };

typedef unit_call<cuda_strided> back_call;

/* Threads of a sample, its warps, and rows and bytes of the gradients in shared memory. */
template <int C> struct back_shape : strided_shape<C> {
    typedef strided_shape<C> S;
    static constexpr int UNITS = S::CO / 8, TEAM = THREADS / S::SAMPLES, TEAM_WARPS = TEAM / 32;
    static constexpr int AT_ONCE = TEAM / UNITS; /* pixels */
    static constexpr int SAMPLE_BYTES = S::WO * S::Y::PITCH;
    static constexpr int TILE_BYTES = (S::SAMPLES * SAMPLE_BYTES + S::Y::END + 255) / 256 * 256;
    static_assert(AT_ONCE * EACH == S::WO * S::WO, "each thread has as many pixels");
};

/* A thread's part of the norms: eight channels of pixels first, first + AT_ONCE .. of a sample. */
typedef struct share {
    int sample, unit, first;
    bool is_there;
    size_t at; /* of its first value */
} share;

template <typename B> static __device__ __forceinline__ share share_of(size_t sample, int n_there) {
    int local = (int)threadIdx.x % B::TEAM;
    share s;
    s.sample = (int)threadIdx.x / B::TEAM;
    s.unit = local % B::UNITS, s.first = local / B::UNITS;
    s.is_there = s.sample < n_there;
    s.at = ((sample + s.sample) * B::WO * B::WO + s.first) * B::CO + s.unit * 8;
    return s;
}

/* This thread's units of a tensor in shared memory: nobody else reads them. */
static __device__ __forceinline__ uint4 *slot_of(char *slots, int k) {
    return (uint4 *)slots + k * THREADS + (int)threadIdx.x;
}

/* Starts their copy. */
template <typename B>
static __device__ __forceinline__ void load_units(const share &s, const void *from, char *slots) {
#pragma unroll
    for (int k = 0; k < EACH; k++)
        copy_quad(slot_of(slots, k),
                  (const bf16 *)from + (s.is_there ? s.at + k * B::AT_ONCE * B::CO : 0),
                  s.is_there);
}

/* Channel i (0 .. 7) of a unit. */
static __device__ __forceinline__ float value_of(const uint4 &u, int i) {
    uint32_t pair = i < 2 ? u.x : i < 4 ? u.y : i < 6 ? u.z : u.w;
    return __uint_as_float(i % 2 == 0 ? pair << 16 : pair & 0xffff0000u);
}

/* Sums of both norms: [norm][with x, plain][channel][warp], and w times the sums with x. */
template <typename B> struct norm_scratch {
    float warps[2][2][B::CO][WARPS];
    float with_x[2][B::SAMPLES][B::CO];
};

/* This thread's channels over its own pixels, added up over the lanes of the warp. */
template <typename B>
static __device__ __forceinline__ void sum_warps(const share &s, char *x, char *dy,
                                                 float warps[2][B::CO][WARPS]) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    float with[8] = {}, plain[8] = {};
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        uint4 v = *slot_of(x, k), d = *slot_of(dy, k);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            with[i] = fmaf(value_of(d, i), gate_numerator(value_of(v, i)), with[i]);
            plain[i] += value_of(d, i);
        }
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
#pragma unroll
        for (int m = 16; m >= B::UNITS; m >>= 1) {
            with[i] += __shfl_xor_sync(0xffffffffu, with[i], m);
            plain[i] += __shfl_xor_sync(0xffffffffu, plain[i], m);
        }
        if (lane < B::UNITS) {
            warps[0][s.unit * 8 + i][warp] = with[i];
            warps[1][s.unit * 8 + i][warp] = plain[i];
        }
    }
}

/* The norms' own gradients of each sample. */
template <typename B>
static __device__ __forceinline__ void write_totals(const back_call &c, const float *params,
                                                    size_t sample, int n_there,
                                                    norm_scratch<B> &scratch) {
    constexpr int CO = B::CO;
    int channel = (int)threadIdx.x % CO, own = (int)threadIdx.x / CO % B::SAMPLES;
    int part = (int)threadIdx.x / CO / B::SAMPLES;
    if (part > 1) return;
    const cuda_link &link = c.v.links[part];
    float with = 0.0f, plain = 0.0f;
#pragma unroll
    for (int k = 0; k < B::TEAM_WARPS; k++) {
        with += scratch.warps[part][0][channel][own * B::TEAM_WARPS + k];
        plain += scratch.warps[part][1][channel][own * B::TEAM_WARPS + k];
    }
    scratch.with_x[part][own][channel] = params[link.weight + channel] * with;
    if (own >= n_there) return;
    float *sums = link.sums + (sample + own) * 2 * CO + channel;
    sums[0] = with * link.stats[((sample + own) * GROUPS + channel / (CO / GROUPS)) * 2 + 1];
    sums[CO] = plain;
}

/* The gradient behind a convolution, to memory and to its tile. */
template <typename B>
static __device__ __forceinline__ void
write_gradient(const share &s, const cuda_link &link, const float *params, size_t sample, char *x,
               char *dy, const float with_x[B::CO], char *tile) {
    constexpr int WIDE = B::CO / GROUPS, PARTS = 8 / WIDE; /* groups of the unit */
    const float2 *stats = (const float2 *)link.stats + (sample + s.sample) * GROUPS;
    float back[PARTS], shift[PARTS], scale[8];
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
        int group = s.unit * PARTS + p;
        float2 found = s.is_there ? stats[group] : make_float2(0, 0);
        float sum = 0.0f, inv = found.y;
#pragma unroll
        for (int k = 0; k < WIDE; k++) {
            sum += with_x[group * WIDE + k];
            scale[p * WIDE + k] = params[link.weight + group * WIDE + k] * inv;
        }
        back[p] = inv * inv * inv * sum * (1.0f / (float)(B::WO * B::WO * WIDE));
        shift[p] = back[p] * found.x;
    }
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        uint4 values = *slot_of(x, k), gradients = *slot_of(dy, k);
        float d[8];
#pragma unroll
        for (int i = 0; i < 8; i++) {
            float v = value_of(values, i);
            d[i] = fmaf(value_of(gradients, i) * scale[i], gate_slope(v),
                        fmaf(-back[i / WIDE], v, shift[i / WIDE]));
        }
        uint4 out = make_uint4(pack_bf16(d[0], d[1]), pack_bf16(d[2], d[3]), pack_bf16(d[4], d[5]),
                               pack_bf16(d[6], d[7]));
        int pixel = s.first + k * B::AT_ONCE;
        if (s.is_there) *(uint4 *)((bf16 *)link.y + s.at + k * B::AT_ONCE * B::CO) = out;
        *(uint4 *)(tile + s.sample * B::SAMPLE_BYTES + pixel / B::WO * B::Y::PITCH +
                   B::Y::unit_at(pixel % B::WO + 1, s.unit)) = out;
    }
}

/* The pixels of zeros beside the rows of a tile. */
template <typename B> static __device__ __forceinline__ void clear_border(char *tile) {
    constexpr int ROWS = B::SAMPLES * B::WO + (B::Y::END > 0 ? 1 : 0);
    for (int i = (int)threadIdx.x; i < ROWS * B::UNITS; i += THREADS) {
        char *row = tile + i / B::UNITS * B::Y::PITCH;
        *(uint4 *)(row + B::Y::unit_at(0, i % B::UNITS)) = make_uint4(0, 0, 0, 0);
        if (B::Y::END == 0)
            *(uint4 *)(row + B::Y::unit_at(B::WO + 1, i % B::UNITS)) = make_uint4(0, 0, 0, 0);
    }
}

static __device__ __forceinline__ void add_product(float sums[2][4], const uint32_t a[4], uint4 b) {
    uint32_t left[2] = {b.x, b.y}, right[2] = {b.z, b.w};
    mma_bf16(sums[0], a, left);
    mma_bf16(sums[1], a, right);
}

/* Where a warp works in the product. */
typedef struct spot {
    int column, row; /* channels / 16; its first row of the outputs' pixels */
    uint32_t read;   /* of what this lane loads there, in the first column */
    uint32_t next;   /* the same one column to the right */
} spot;

template <typename B> static __device__ __forceinline__ spot spot_of(void) {
    constexpr int COLS = B::CI / 16;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, m = lane & 15;
    int x = B::SAMPLES == 1 ? m : m & 7, sample = B::SAMPLES == 1 ? 0 : m >> 3;
    spot s;
    s.column = warp % COLS, s.row = warp / COLS * TILES;
    uint32_t row = (uint32_t)(sample * B::SAMPLE_BYTES + s.row * B::Y::PITCH);
    s.read = row + B::Y::unit_at(x + 1, lane >> 4);
    s.next = row + B::Y::unit_at(x + 2, lane >> 4);
    return s;
}

/* sums[i][class]: input pixel (2 y + class / 2, 2 x + class % 2) of output pixel (y, x). An even
 * row is under tap row 1 of the output row y; an odd one under 2 of y and under 0 of y + 1, which
 * is a row of zeros below the last; columns likewise. */
template <typename B>
static __device__ __forceinline__ void multiply(const spot &s, uint32_t tile, const uint4 *weights,
                                                const uint4 *shortcut, float sums[TILES][4][2][4]) {
    constexpr int STEPS = B::CO / 16, COLS = B::CI / 16, TAP = STEPS * COLS * 32;
    int own = s.column * 32 + (int)(threadIdx.x & 31);
    bool is_bottom = s.row + TILES == B::WO;
#pragma unroll 1
    for (int k = 0; k < STEPS; k++) {
        const uint4 *w = weights + k * COLS * 32 + own;
        uint32_t turn = (uint32_t)k << 5, at = tile + (s.read ^ turn),
                 next = tile + (s.next ^ turn);
        uint4 b[3][2];
#pragma unroll
        for (int e = 0; e < 6; e++) b[e / 2][e % 2] = __ldg(w + (e / 2 * 3 + 1 + e % 2) * TAP);
#pragma unroll
        for (int r = 0; r <= TILES; r++) {
            uint32_t a[4];
            load_matrices(a, r == TILES && is_bottom ? tile : at + r * B::Y::PITCH);
#pragma unroll
            for (int q = 0; q < 2; q++) { /* tap columns 1 and 2 */
                if (r < TILES) add_product(sums[r][q], a, b[1][q]);
                if (r < TILES) add_product(sums[r][2 + q], a, b[2][q]);
                if (r > 0) add_product(sums[r - 1][2 + q], a, b[0][q]);
            }
        }
#pragma unroll
        for (int u = 0; u < 3; u++) b[u][0] = __ldg(w + u * 3 * TAP);
        b[0][1] = __ldg(shortcut + k * COLS * 32 + own);
#pragma unroll
        for (int r = 0; r <= TILES; r++) {
            uint32_t a[4];
            load_matrices(a, r == TILES && is_bottom ? tile : next + r * B::Y::PITCH);
            if (r < TILES) add_product(sums[r][1], a, b[1][0]);
            if (r < TILES) add_product(sums[r][3], a, b[2][0]);
            if (r > 0) add_product(sums[r - 1][3], a, b[0][0]);
            if (r == TILES) continue;
            load_matrices(a, at + B::TILE_BYTES + r * B::Y::PITCH);
            add_product(sums[r][0], a, b[0][1]);
        }
    }
}

/* The input's gradient. `out`: the block's first value. */
template <typename B>
static __device__ __forceinline__ void write_input(const spot &s, int n_there,
                                                   const float sums[TILES][4][2][4], bf16 *out) {
    int lane = threadIdx.x & 31, channel = s.column * 16 + (lane & 3) * 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int x = (lane >> 2) + (B::SAMPLES == 1 ? 8 * h : 0), sample = B::SAMPLES == 1 ? 0 : h;
        if (sample >= n_there) continue;
#pragma unroll
        for (int e = 0; e < TILES * 4; e++) {
            int y = sample * B::WI + 2 * (s.row + e / 4) + e % 4 / 2;
            store_four(out + (y * B::WI + 2 * x + e % 2) * B::CI + channel,
                       quad_of(sums[e / 4][e % 4], h));
        }
    }
}

template <int C>
static __global__ void __launch_bounds__(THREADS, BLOCKS)
    strided_back_kernel(const __grid_constant__ back_call c) {
    typedef back_shape<C> B;
    extern __shared__ __align__(256) char shared[]; /* a tile for each convolution, slots */
    __shared__ norm_scratch<B> scratch;
    const cuda_job job = c.jobs[blockIdx.y];
    int n_there = min(B::SAMPLES, job.n - (int)blockIdx.x * B::SAMPLES);
    if (n_there <= 0) return;
    size_t sample = (size_t)blockIdx.y * c.n_max + blockIdx.x * B::SAMPLES;
    const float *packed = c.packed + job.model * c.packed_stride;
    const float *params = c.params + job.model * c.params_stride;
    share own = share_of<B>(sample, n_there);
    char *slots = shared + 2 * B::TILE_BYTES; /* [x, dy][convolution] */
#pragma unroll
    for (int p = 0; p < 2; p++) {
        load_units<B>(own, c.v.links[p].pre, slots + p * SLOT_BYTES);
        load_units<B>(own, c.v.dy[p], slots + (2 + p) * SLOT_BYTES);
        copies_group();
    }
    clear_border<B>(shared);
    copies_wait_but<1>(); /* this thread's own values */
    sum_warps<B>(own, slots, slots + 2 * SLOT_BYTES, scratch.warps[0]);
    copies_wait_but<0>();
    sum_warps<B>(own, slots + SLOT_BYTES, slots + 3 * SLOT_BYTES, scratch.warps[1]);
    __syncthreads();
    write_totals<B>(c, params, sample, n_there, scratch);
    __syncthreads();
#pragma unroll 1
    for (int p = 0; p < 2; p++)
        write_gradient<B>(own, c.v.links[p], params, sample, slots + p * SLOT_BYTES,
                          slots + (2 + p) * SLOT_BYTES, scratch.with_x[p][own.sample],
                          shared + p * B::TILE_BYTES);
    __syncthreads();
    spot s = spot_of<B>();
    float sums[TILES][4][2][4] = {};
    multiply<B>(s, shared_at(shared), (const uint4 *)(packed + c.v.links[0].packed),
                (const uint4 *)(packed + c.v.links[1].packed), sums);
    write_input<B>(s, n_there, sums, (bf16 *)c.v.dx + sample * B::WI * B::WI * C);
}

template <int C> static ct_status launch(const cuda_run *run, const back_call *c) {
    typedef back_shape<C> B;
    constexpr int BYTES = 2 * B::TILE_BYTES + 4 * SLOT_BYTES;
    static_assert(BYTES + sizeof(norm_scratch<B>) <= CUDA_STRIDED_BYTES, "a block's shared memory");
    dim3 grid((unsigned)((run->n_max + B::SAMPLES - 1) / B::SAMPLES), (unsigned)run->n_jobs);
    return launch_kernel(run, strided_back_kernel<C>, grid, THREADS, BYTES, *c);
}

ct_status ct_cuda_strided_backward(const cuda_run *run, int channels, const cuda_strided *strided) {
    back_call c = call_of(run, strided);
    return channels == 16 ? launch<16>(run, &c) : launch<32>(run, &c);
}
