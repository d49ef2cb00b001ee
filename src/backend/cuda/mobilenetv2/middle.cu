/* The middle of a block of MobileNet-V2 backward in one launch: from the gradient of the projection's
 * output to that of the first norm's input, through the second norm and the 3x3 convolution of each
 * channel. With gate as in block.cu, a norm's input x, numerator n = x s(x), and dy the gradient of its output:
 *   dx = dy weight / sigma n'(x) - r (x - mean)
 *   r  = sum of weight dy n over its group / (sigma^3 count)
 *   d gate(mid)     d projection times its weights, rounded to bf16
 *   d mid           the second norm's dx
 *   d gate(wide)[p] = sum over taps t of kernel[t] d mid[q], q: the output whose tap t is pixel p
 *   d kernel[t]     = sum over pixels p of gate(wide)[p] d mid[q]
 *   d wide          the first norm's dx
 * A block of threads has one part of the channels (block.cuh) of one sample or some, so that a
 * norm's sums need nothing else. The gradient of mid is in shared memory, with zeros between its
 * pixels where the stride is 2; what comes from memory and goes there passes through it too. Both
 * factors of d gate(mid) are there before, some of the projection's channels at a time. The
 * convolution and the gradient of its weights run on the tensor cores: the former as in block.cu,
 * the latter as products, over pixels, of 8 channels at two taps with the same channels, of which
 * the diagonals are wanted.
 * Grid: x = part, y = samples, z = job: parts of a sample run at the same time, since their values
 * share sectors of memory. 6 bytes a value: wide, mid and the gradient out; the gradient in comes
 * from L2 for all parts but one. 36 flops a value, and 2 a product. */
#include "backend/cuda/mobilenetv2/block.cuh"

typedef struct middle_call {
    cuda_middle m;
    const cuda_job *jobs;
    int n_max;
    const float *params, *packed;
    size_t params_stride, packed_stride;
    float *partial;
} middle_call;

/* Shared memory, in bytes: the gradient of mid with a margin, before it the factors of gate(mid)'s,
 * CHUNK of the projection's channels at a time; wide, which becomes its gradient; mid and gate(mid)'s
 * gradient; sums of one norm; tables. The gradients of the 3x3 weights take the place of mid and what
 * follows. */
template <class V> struct places {
    typedef typename V::in in;
    typedef typename V::out out;
    enum { BLOCKS = V::WARPS == 16 ? 1 + (V::SIZE == 4) : V::WIDE > 384 ? 2 : 3 };
    enum { IN_ROWS = V::WARPS / in::COLUMNS, OUT_ROWS = V::WARPS / out::COLUMNS };
    /* as many as leave room for BLOCKS */
    enum { CHUNK = V::SIZE == 4 ? 80 : V::SIZE == 8 && V::WIDE == 384 ? V::CO / 2 : (int)V::CO };
    enum { Z = 0, Z_END = V::SAMPLES * V::WITH_MARGIN * V::WITH_MARGIN * V::PITCH };
    enum { FACTOR_PITCH = pitch_of(CHUNK), WEIGHTS = Z + V::OUT_ROWS * FACTOR_PITCH };
    enum { FACTORS_END = WEIGHTS + CHUNK * V::PITCH };
    enum { X = FACTORS_END > Z_END ? (int)FACTORS_END : (int)Z_END };
    enum { MID = X + V::ROWS * V::PITCH, DY = MID + V::OUT_ROWS * V::PITCH };
    enum { SLOTS = MID, SLOTS_END = SLOTS + IN_ROWS * V::TABLE_PART * KERNEL_ROW };
    enum { DY_END = DY + V::OUT_ROWS * V::PITCH };
    enum { SUMS = SLOTS_END > DY_END ? (int)SLOTS_END : (int)DY_END };
    enum { SUM_ROWS = IN_ROWS > OUT_ROWS ? (int)IN_ROWS : (int)OUT_ROWS };
    enum {
        TABLE = SUMS + SUM_ROWS * V::TABLE_PART * 8,
        KERNELS_AT = TABLE + 3 * V::TABLE_PART * 4
    };
    enum { BYTES = KERNELS_AT + (V::TABLE_PART + 1) * KERNEL_ROW };
    static_assert(V::CO % CHUNK == 0, "whole chunks");
    static_assert(BLOCKS * (BYTES + 1024) <= 228 * 1024, "so many on a multiprocessor of Hopper's");
};

/* What a block of threads works on. */
typedef struct work {
    const float *params, *packed; /* of its model */
    size_t sample;                /* the first one of the call's */
    int n_samples, part;
} work;

/* A part's values of the samples between memory and shared memory, in units of 16 bytes where the
 * part has whole ones, else in words. */
template <class V> struct rows_of {
    enum { BYTES = V::REAL % 8 == 0 ? 16 : 4, UNITS = 2 * V::REAL / BYTES };
    enum { AT_ONCE = V::THREADS / UNITS };
};

template <class V, int PIXELS>
static __device__ __forceinline__ void copy_rows(const work &w, const void *from, char *to) {
    typedef rows_of<V> r;
    const bf16 *first = (const bf16 *)from + w.sample * PIXELS * V::WIDE + w.part * V::REAL;
    copy_matrix<V::THREADS, V::SAMPLES * PIXELS, r::UNITS, V::PITCH, r::BYTES, (V::SAMPLES > 1)>(
        first, 2 * V::WIDE, to, w.n_samples * PIXELS);
}

/* Channels that do not exist are zero. */
template <class V> static __device__ __forceinline__ void clear_rest(int n_rows, char *rows) {
    constexpr int WORDS = (V::PART - V::REAL) / 2;
    for (int e = threadIdx.x; WORDS > 0 && e < n_rows * WORDS; e += V::THREADS)
        *(uint32_t *)(rows + e / (WORDS > 0 ? WORDS : 1) * V::PITCH + V::REAL * 2 +
                      e % (WORDS > 0 ? WORDS : 1) * 4) = 0;
}

template <class V>
static __device__ __forceinline__ void write_rows(const work &w, const char *rows, void *to) {
    typedef rows_of<V> r;
    constexpr int PIXELS = V::SIZE * V::SIZE, AT_ONCE = r::AT_ONCE;
    int row = (int)threadIdx.x / r::UNITS, unit = (int)threadIdx.x % r::UNITS * r::BYTES;
    char *at = (char *)to + unit + ((w.sample * PIXELS + row) * V::WIDE + w.part * V::REAL) * 2;
    if (row >= AT_ONCE) return;
    rows += row * V::PITCH + unit;
    int n_there = V::SAMPLES > 1 ? w.n_samples * PIXELS : PIXELS;
#pragma unroll
    for (int first = 0; first < V::ROWS; first += AT_ONCE) {
        if ((V::SAMPLES > 1 || first + AT_ONCE > V::ROWS) && first + row >= n_there) return;
        if (r::BYTES == 16)
            *(uint4 *)(at + first * V::WIDE * 2) = *(const uint4 *)(rows + first * V::PITCH);
        else
            *(uint32_t *)(at + first * V::WIDE * 2) = *(const uint32_t *)(rows + first * V::PITCH);
    }
}

/* A part's groups of one norm: mean, 1/sigma, and the r above. */
template <class V> struct norm_state {
    float2 stats[V::PART_GROUPS];
    float r[V::PART_GROUPS];
};

/* From sums of the DOWN rows of warps that a sample has; one warp a sample writes what the norm's
 * parameters get of it. */
template <class V, int DOWN>
static __device__ __forceinline__ norm_state<V>
join_sums(const spot &s, const work &w, const cuda_block_norm &norm, float *out, const float2 *sums,
          const float *weight, int n_pixels) {
    norm_state<V> state;
    int sample = s.warp / V::OF_SAMPLE;
    bool is_there = sample < w.n_samples, is_first = s.warp % V::OF_SAMPLE == 0;
    size_t at = w.sample + (is_there ? sample : 0);
    float total[V::PART_GROUPS] = {};
#pragma unroll
    for (int g = 0; g < V::PART_GROUPS; g++)
        state.stats[g] =
            __ldg((const float2 *)norm.stats + at * GROUPS + w.part * V::PART_GROUPS + g);
    for (int k = s.lane; k < V::REAL; k += 32) {
        float2 sum = make_float2(0, 0);
#pragma unroll
        for (int d = 0; d < DOWN; d++) {
            float2 one = sums[(sample * DOWN + d) * V::TABLE_PART + k];
            sum.x += one.x, sum.y += one.y;
        }
#pragma unroll
        for (int g = 0; g < V::PART_GROUPS; g++) {
            if (k / V::GROUP != g) continue;
            total[g] = fmaf(weight[k], sum.x, total[g]);
            if (!is_there || !is_first) continue;
            float *to = out + at * 2 * V::WIDE + w.part * V::REAL + k;
            to[0] = sum.x * state.stats[g].y, to[V::WIDE] = sum.y;
        }
    }
#pragma unroll
    for (int g = 0; g < V::PART_GROUPS; g++) {
        float inv = state.stats[g].y;
        state.r[g] = inv * inv * inv * (warp_sum(total[g]) * (1.0f / (float)(V::GROUP * n_pixels)));
    }
    return state;
}

/* What a norm's backward pass needs of two channels: dx = dy scale n'(x) - less x + plus. */
typedef struct pair_norm {
    float2 scale;
    float less, plus, inv;
} pair_norm;

template <class V>
static __device__ __forceinline__ pair_norm pair_of(const norm_state<V> &state, const float *weight,
                                                    int channel) {
    float2 stats = state.stats[0];
    float r = state.r[0];
#pragma unroll
    for (int g = 1; g < V::PART_GROUPS; g++)
        if (channel / V::GROUP == g) stats = state.stats[g], r = state.r[g];
    float2 both = *(const float2 *)(weight + channel);
    return {make_float2(both.x * stats.y, both.y * stats.y), r, r * stats.x, stats.y};
}

static __device__ __forceinline__ uint32_t back_pair(const pair_norm &n, float2 x, float dy0,
                                                     float dy1) {
    return pack_bf16(fmaf(dy0 * n.scale.x, gate_slope(x.x), fmaf(-n.less, x.x, n.plus)),
                     fmaf(dy1 * n.scale.y, gate_slope(x.y), fmaf(-n.less, x.y, n.plus)));
}

/* The factors of gate(mid)'s gradient, a chunk of the projection's channels from `first` on. */
template <class V>
static __device__ __forceinline__ void copy_factors(const middle_call &c, const work &w, int first,
                                                    char *shared) {
    typedef places<V> at;
    constexpr int PIXELS = V::OUT * V::OUT, ROW = V::N_PARTS * V::PART;
    const bf16 *dy = (const bf16 *)c.m.dy + w.sample * PIXELS * V::CO + first;
    const bf16 *weights = (const bf16 *)(w.packed + c.m.project) + first * ROW + w.part * V::PART;
    copy_matrix<V::THREADS, V::OUT_ROWS, at::CHUNK / 8, at::FACTOR_PITCH, 16, (V::SAMPLES > 1)>(
        dy, 2 * V::CO, shared + at::Z, w.n_samples * PIXELS);
    copy_matrix<V::THREADS, at::CHUNK, V::PART / 8, V::PITCH>(weights, 2 * ROW,
                                                              shared + at::WEIGHTS);
}

/* sums[i][j] += rows of tile i (row0 + i * STEP ...) times columns j: K values of both in shared
 * memory, of the rows one behind the other (PA bytes a row), of the columns below each other (PB
 * bytes a value of all columns). Behind an odd number of columns another one is read. */
template <int K, int PA, int PB, int TILES, int STEP, int N>
static __device__ __forceinline__ void
multiply_across(const spot &s, const char *rows, const char *columns, float sums[TILES][N][4]) {
    uint32_t a_at = shared_at(rows) + (s.lane & 15) * PA;
    uint32_t b_at = shared_at(columns) + (s.lane & 15) * PB + (s.lane >> 4) * 16;
#pragma unroll
    for (int k = 0; k + 16 <= K; k += 16) {
        uint32_t a[TILES][4];
        load_rows<PA, TILES, STEP>(s, a_at + k * 2, a);
#pragma unroll
        for (int j = 0; j < N; j += 2) {
            uint32_t b[4];
            load_transposed(b, b_at + k * PB + j * 16);
#pragma unroll
            for (int i = 0; i < TILES; i++)
                multiply_columns(j + 1 < N ? 2 : 1, &sums[i][j], a[i], b);
        }
    }
    if constexpr (K % 16 != 0) {
        b_at = shared_at(columns) + (K / 16 * 16 + (s.lane & 7)) * PB + (s.lane >> 3) * 16;
        uint32_t a[TILES][2];
#pragma unroll
        for (int i = 0; i < TILES; i++) load_two_matrices(a[i], a_at + i * STEP * PA + K / 16 * 32);
#pragma unroll
        for (int j = 0; j < N; j += 4) { /* of the last 8 values four columns at a time */
            uint32_t b[4];
            load_transposed(b, b_at + j * 16);
#pragma unroll
            for (int e = 0; e < 4 && j + e < N; e++)
#pragma unroll
                for (int i = 0; i < TILES; i++) mma_short(sums[i][j + e], a[i], b[e]);
        }
    }
}

/* The gradient of gate(mid), to shared memory: every lane writes what it will read. The first chunk
 * of its factors is on the way, behind it mid and wide, a group each. */
template <class V>
static __device__ __forceinline__ void project_back(const middle_call &c, const spot &s,
                                                    const work &w, char *shared) {
    typedef places<V> at;
    typedef typename V::out out;
    constexpr int STEP = V::OUT == 32 ? 32 : 16;
    int row0 = first_row<V::OUT>(s.warp / out::COLUMNS * out::TILES);
    int first_tile = s.warp % out::COLUMNS * V::MID_NT;
    float d[out::TILES][V::MID_NT][4] = {};
#pragma unroll
    for (int first = 0; first < V::CO; first += at::CHUNK) {
        if (first == 0) {
            copies_wait_but<2>();
        } else {
            __syncthreads(); /* the chunk before is not needed any more */
            copy_factors<V>(c, w, first, shared);
            copies_wait();
        }
        __syncthreads(); /* the chunk is there */
        multiply_across<at::CHUNK, at::FACTOR_PITCH, V::PITCH, out::TILES, STEP, V::MID_NT>(
            s, shared + at::Z + row0 * at::FACTOR_PITCH, shared + at::WEIGHTS + first_tile * 16, d);
    }
    char *dy = shared + at::DY + (row0 + s.g) * V::PITCH + (first_tile * 8 + 2 * s.t) * 2;
#pragma unroll
    for (int j = 0; j < V::MID_NT; j++) {
        if (first_tile + j >= V::NT) break;
#pragma unroll
        for (int k = 0; k < 2 * out::TILES; k++)
            *(uint32_t *)(dy + (k / 2 * STEP + k % 2 * 8) * V::PITCH + j * 16) =
                pack_bf16(d[k / 2][j][k % 2 * 2], d[k / 2][j][k % 2 * 2 + 1]);
    }
}

/* The second norm's backward pass, to the pictures with a margin in shared memory. */
template <class V>
static __device__ __forceinline__ void enter(const middle_call &c, const spot &s, const work &w,
                                             char *shared) {
    typedef places<V> at;
    typedef typename V::out out;
    constexpr int STEP = V::OUT == 32 ? 32 : 16, DOWN = at::OUT_ROWS / V::SAMPLES;
    const float *weight = (const float *)(shared + at::TABLE) + 2 * V::TABLE_PART;
    float2 *sums = (float2 *)(shared + at::SUMS);
    int row0 = first_row<V::OUT>(s.warp / out::COLUMNS * out::TILES);
    int first_tile = s.warp % out::COLUMNS * V::MID_NT;
    constexpr int HALF = V::OUT >= 16  ? 8 * V::STRIDE
                         : V::OUT == 8 ? V::STRIDE * V::WITH_MARGIN
                                       : 2 * V::STRIDE * V::WITH_MARGIN; /* 8 rows on */
    char *z =
        shared + at::Z +
        (window_at<V::OUT, V::STRIDE, V::WITH_MARGIN>(row0 + s.g) + V::WITH_MARGIN + 1) * V::PITCH;
    const char *x = shared + at::MID + (row0 + s.g) * V::PITCH + (first_tile * 8 + 2 * s.t) * 2;
    const char *dy = x + at::DY - at::MID;
#pragma unroll
    for (int j = 0; j < V::MID_NT; j++) {
        if (first_tile + j >= V::NT) break;
        float with_x[2] = {}, plain[2] = {};
#pragma unroll
        for (int k = 0; k < 2 * out::TILES; k++) {
            int to = (k / 2 * STEP + k % 2 * 8) * V::PITCH + j * 16;
            float2 a = load_two((const bf16 *)(x + to)), d = load_two((const bf16 *)(dy + to));
            with_x[0] = fmaf(d.x, gate_numerator(a.x), with_x[0]), plain[0] += d.x;
            with_x[1] = fmaf(d.y, gate_numerator(a.y), with_x[1]), plain[1] += d.y;
        }
        sum_rows(s, with_x, plain,
                 sums + s.warp / out::COLUMNS * V::TABLE_PART + (first_tile + j) * 8 + 2 * s.t);
    }
    __syncthreads(); /* sums are there */
    norm_state<V> state =
        join_sums<V, DOWN>(s, w, c.m.norms[1], c.m.sums[1], sums, weight, V::OUT * V::OUT);
#pragma unroll
    for (int j = 0; j < V::MID_NT; j++) {
        if (first_tile + j >= V::NT) break;
        int channel = (first_tile + j) * 8 + 2 * s.t;
        pair_norm n = pair_of<V>(state, weight, channel);
#pragma unroll
        for (int k = 0; k < 2 * out::TILES; k++) {
            int to = (k / 2 * STEP + k % 2 * 8) * V::PITCH + j * 16;
            float2 d = load_two((const bf16 *)(dy + to));
            *(uint32_t *)(z + (k / 2 * V::STRIDE * V::WITH_MARGIN + k % 2 * HALF) * V::PITCH +
                          channel * 2) = back_pair(n, load_two((const bf16 *)(x + to)), d.x, d.y);
        }
    }
}

/* Of 8 channels: sums[q] += the gradients at taps 2 q and 2 q + 1 of the window, 8 rows each, times
 * the values of a tile's pixels, as columns. `at` is the window of the lane's pixel. */
template <class V>
static __device__ __forceinline__ void multiply_taps(uint32_t at, const uint32_t values[2],
                                                     float sums[5][4]) {
    bool is_second = threadIdx.x & 8;
#pragma unroll
    for (int q = 0; q < 5; q++) {
        int first = 2 * q, second = q < 4 ? 2 * q + 1 : 2 * q; /* the last one is alone */
        int to_first = (first / 3 * V::WITH_MARGIN + first % 3) * V::PITCH;
        int to_second = (second / 3 * V::WITH_MARGIN + second % 3) * V::PITCH;
        uint32_t a[4];
        load_transposed(a, at + (is_second ? to_second : to_first));
        mma_bf16(sums[q], a, values);
    }
}

/* The diagonals to a row of each channel, taps in their order: those of the window go backward. */
static __device__ __forceinline__ void write_diagonals(const spot &s, const float sums[5][4],
                                                       char *rows) {
    if (s.g / 2 != s.t) return;
    float own[TAPS];
#pragma unroll
    for (int tap = 0; tap < TAPS; tap++) {
        const float *pair = sums[tap / 2] + tap % 2 * 2;
        own[TAPS - 1 - tap] = s.g % 2 == 0 ? pair[0] : pair[1];
    }
    char *row = rows + s.g * KERNEL_ROW;
    *(float4 *)row = make_float4(own[0], own[1], own[2], own[3]);
    *(float4 *)(row + 16) = make_float4(own[4], own[5], own[6], own[7]);
    *(float *)(row + 32) = own[8];
}

/* Adds up the rows of warps' gradients of the 3x3 weights, in order, to partial[tap][channel]; a
 * thread has four taps of a channel. */
template <class V>
static __device__ __forceinline__ void write_kernels(const work &w, const char *shared,
                                                     float *out) {
    typedef places<V> at;
    constexpr int QUADS = (TAPS + 3) / 4;
#pragma unroll
    for (int first = 0; first < QUADS * V::REAL; first += V::THREADS) {
        int e = first + (int)threadIdx.x, quad = e / V::REAL, channel = e % V::REAL;
        if (e >= QUADS * V::REAL) return;
        const char *slot = shared + at::SLOTS + channel * KERNEL_ROW + quad * 16;
        float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
        for (int k = 0; k < at::IN_ROWS; k++) {
            float4 one = *(const float4 *)(slot + k * V::TABLE_PART * KERNEL_ROW);
            sum.x += one.x, sum.y += one.y, sum.z += one.z, sum.w += one.w;
        }
        float *to = out + 4 * quad * V::WIDE + w.part * V::REAL + channel;
        to[0] = sum.x;
        if (4 * quad + 1 >= TAPS) continue; /* the others do not exist */
        to[V::WIDE] = sum.y, to[2 * V::WIDE] = sum.z, to[3 * V::WIDE] = sum.w;
    }
}

/* No samples, no gradient; statistics of samples that do not exist may be anything. */
template <class V> static __device__ __forceinline__ void clear_kernels(const work &w, float *out) {
    for (int e = threadIdx.x; e < TAPS * V::REAL; e += V::THREADS)
        out[e / V::REAL * V::WIDE + w.part * V::REAL + e % V::REAL] = 0.0f;
}

/* check: long because the first norm's sums and its result share their registers */
template <class V>
static __device__ __forceinline__ void leave(const middle_call &c, const spot &s, const work &w,
                                             char *shared) {
    typedef places<V> at;
    typedef typename V::in in;
    constexpr int STEP = V::SIZE == 32 ? 32 : 16, DOWN = at::IN_ROWS / V::SAMPLES;
    constexpr int LINE = V::WITH_MARGIN * V::PITCH;
    constexpr bool IS_SHARED = V::SIZE >= 16;
    const float *weight = (const float *)(shared + at::TABLE), *bias = weight + V::TABLE_PART;
    float2 *sums = (float2 *)(shared + at::SUMS);
    int row_warp = s.warp / in::COLUMNS, row0 = first_row<V::SIZE>(row_warp * in::TILES);
    int first_tile = s.warp % in::COLUMNS * V::IN_NT;
    bool is_there = s.warp / V::OF_SAMPLE < w.n_samples;
    size_t sample = w.sample + (is_there ? s.warp / V::OF_SAMPLE : 0);
    float inv[V::PART_GROUPS];
#pragma unroll
    for (int g = 0; g < V::PART_GROUPS; g++)
        inv[g] =
            __ldg(c.m.norms[0].stats + 2 * (sample * GROUPS + w.part * V::PART_GROUPS + g) + 1);
    char *x = shared + at::X + (row0 + s.g) * V::PITCH + (first_tile * 8 + 2 * s.t) * 2;
    uint32_t z = shared_at(shared + at::Z);
    uint32_t rows = z + window_at<V::SIZE, 1, V::WITH_MARGIN>(row0 + (s.lane & 15)) * V::PITCH;
    uint32_t turned =
        z +
        window_at<V::SIZE, 1, V::WITH_MARGIN>(row0 + (s.lane & 7) + (s.lane >> 4) * 8) * V::PITCH;
    float dy[in::TILES][V::IN_NT][4] = {};
#pragma unroll
    for (int j = 0; j < V::IN_NT; j++) {
        if (first_tile + j >= V::NT) break;
        int channel = (first_tile + j) * 8 + 2 * s.t;
        uint32_t kernels[TAPS];
        float tile[in::TILES][4] = {}, taps[5][4] = {};
        load_diagonals<V::TABLE_PART>(s, shared + at::KERNELS_AT, first_tile + j, kernels);
        convolve<in::TILES, LINE, V::PITCH, IS_SHARED>(rows + (first_tile + j) * 16, kernels, tile);
        float2 scale = *(const float2 *)(weight + channel),
               shift = *(const float2 *)(bias + channel);
        float own = inv[0], with_x[2] = {}, plain[2] = {};
#pragma unroll
        for (int g = 1; g < V::PART_GROUPS; g++)
            if (channel / V::GROUP == g) own = inv[g];
        scale.x *= own, scale.y *= own;
#pragma unroll
        for (int i = 0; i < in::TILES; i++) {
            uint32_t values[2];
#pragma unroll
            for (int half = 0; half < 2; half++) {
                float2 a = load_two((const bf16 *)(x + (i * STEP + half * 8) * V::PITCH + j * 16));
                float2 n = make_float2(gate_numerator(a.x), gate_numerator(a.y));
                const float *d = &tile[i][2 * half];
                values[half] = turn_matrix(
                    pack_bf16(fmaf(n.x, scale.x, shift.x), fmaf(n.y, scale.y, shift.y)));
                with_x[0] = fmaf(d[0], n.x, with_x[0]), plain[0] += d[0];
                with_x[1] = fmaf(d[1], n.y, with_x[1]), plain[1] += d[1];
                dy[i][j][2 * half] = d[0], dy[i][j][2 * half + 1] = d[1];
            }
            multiply_taps<V>(turned + i * LINE + (first_tile + j) * 16, values, taps);
        }
        write_diagonals(s, taps,
                        shared + at::SLOTS +
                            (row_warp * V::TABLE_PART + (first_tile + j) * 8) * KERNEL_ROW);
        sum_rows(s, with_x, plain, sums + row_warp * V::TABLE_PART + channel);
    }
    __syncthreads(); /* sums of both kinds are there */
    norm_state<V> state =
        join_sums<V, DOWN>(s, w, c.m.norms[0], c.m.sums[0], sums, weight, V::SIZE * V::SIZE);
#pragma unroll
    for (int j = 0; j < V::IN_NT; j++) {
        if (first_tile + j >= V::NT) break;
        pair_norm n = pair_of<V>(state, weight, (first_tile + j) * 8 + 2 * s.t);
#pragma unroll
        for (int k = 0; k < 2 * in::TILES; k++) {
            const float *d = &dy[k / 2][j][k % 2 * 2];
            char *own = x + (k / 2 * STEP + k % 2 * 8) * V::PITCH + j * 16;
            *(uint32_t *)own = back_pair(n, load_two((const bf16 *)own), d[0], d[1]);
        }
    }
}

/* Weights and biases of the norms that the part needs, [3][channel], and the 3x3 weights, backward.
 */
template <class V>
static __device__ __forceinline__ void load_tables(const middle_call &c, const work &w,
                                                   char *shared) {
    typedef places<V> at;
    const cuda_block_norm *n = c.m.norms;
    int channel = threadIdx.x;
    float table[3] = {}, kernel[TAPS] = {};
    static_assert(V::TABLE_PART < V::THREADS, "a channel a thread");
    if (channel > V::TABLE_PART) return;
    if (channel < V::REAL) {
        const float *params = w.params + w.part * V::REAL + channel;
        const float *from = w.params + c.m.depthwise + (w.part * V::REAL + channel) * TAPS;
        table[0] = params[n[0].weight], table[1] = params[n[0].bias];
        table[2] = params[n[1].weight];
#pragma unroll
        for (int t = 0; t < TAPS; t++) kernel[t] = from[TAPS - 1 - t];
    }
    put_kernel(shared + at::KERNELS_AT, channel, kernel); /* zeros behind the last */
#pragma unroll
    for (int k = 0; k < 3 && channel < V::TABLE_PART; k++)
        ((float *)(shared + at::TABLE))[k * V::TABLE_PART + channel] = table[k];
}

template <class V>
static __global__ void __launch_bounds__(V::THREADS, places<V>::BLOCKS)
    middle_kernel(middle_call c) {
    extern __shared__ __align__(16) char shared[];
    typedef places<V> at;
    const cuda_job job = c.jobs[blockIdx.z];
    int first = (int)blockIdx.y * V::SAMPLES;
    float *partial = c.partial + ((size_t)blockIdx.z * gridDim.y + blockIdx.y) * TAPS * V::WIDE;
    work w = {c.params + job.model * c.params_stride, c.packed + job.model * c.packed_stride,
              (size_t)blockIdx.z * c.n_max + first, max(0, min((int)V::SAMPLES, job.n - first)),
              (int)blockIdx.x};
    spot s = find_spot();
    if (w.n_samples == 0) {
        clear_kernels<V>(w, partial);
        return;
    }
    copy_factors<V>(c, w, 0, shared);
    copies_group();
    copy_rows<V, V::OUT * V::OUT>(w, c.m.norms[1].pre, shared + at::MID);
    copies_group();
    copy_rows<V, V::SIZE * V::SIZE>(w, c.m.norms[0].pre, shared + at::X);
    copies_group();
    clear_rest<V>(V::ROWS, shared + at::X);
    clear_rest<V>(V::OUT_ROWS, shared + at::MID);
    load_tables<V>(c, w, shared);
    project_back<V>(c, s, w, shared);
    copies_wait_but<1>();
    __syncthreads(); /* mid is there; the factors are not needed any more */
    clear<V::THREADS, at::Z, at::Z_END>(shared);
    enter<V>(c, s, w, shared);
    copies_wait_but<0>();
    __syncthreads(); /* wide and the gradient of mid are there; mid itself is not needed any more */
    leave<V>(c, s, w, shared);
    __syncthreads(); /* the gradient of wide is there */
    write_kernels<V>(w, shared, partial);
    write_rows<V>(w, shared + at::X, c.m.dx);
}

static int splits_of(const cuda_block_shape *shape, int n_max) {
    int n = shape->size >= 16 ? 1 : shape->size == 8 ? 2 : 4;
    return (n_max + n - 1) / n;
}

size_t ct_cuda_middle_partial(const cuda_block_shape *shape, int n_max) {
    return (size_t)TAPS * (size_t)shape->wide * (size_t)splits_of(shape, n_max);
}

template <class V> static ct_status launch(const cuda_run *run, const middle_call *c) {
    static_assert(V::SAMPLES == (V::SIZE >= 16 ? 1 : V::SIZE == 8 ? 2 : 4), "splits_of");
    dim3 grid(V::N_PARTS, (unsigned)splits_of(&c->m.shape, run->n_max), (unsigned)run->n_jobs);
    return launch_kernel(run, middle_kernel<V>, grid, V::THREADS, places<V>::BYTES, *c);
}

typedef struct entry {
    int size, stride, wide, co;
    size_t bytes;
    ct_status (*launch)(const cuda_run *run, const middle_call *c);
} entry;

/* The channels of the input do not matter here. */
template <int SIZE, int STRIDE, int WIDE, int CO>
using middle_extents = extents<SIZE, STRIDE, 8, WIDE, CO, SIZE == 16>;
#define ENTRY(size, stride, wide, co)                                                              \
    {                                                                                              \
        size, stride, wide, co, places<middle_extents<size, stride, wide, co>>::BYTES,             \
            launch<middle_extents<size, stride, wide, co>>                                         \
    }
static const entry entries[] = {
    ENTRY(32, 1, 32, 16),  ENTRY(32, 1, 96, 24),  ENTRY(32, 1, 144, 24), ENTRY(32, 2, 144, 32),
    ENTRY(16, 1, 192, 32), ENTRY(16, 2, 192, 64), ENTRY(8, 1, 384, 64),  ENTRY(8, 1, 384, 96),
    ENTRY(8, 1, 576, 96),  ENTRY(8, 2, 576, 160), ENTRY(4, 1, 960, 160), ENTRY(4, 1, 960, 320)};
#undef ENTRY

static const entry *find(const cuda_block_shape *s) {
    for (const entry &e : entries)
        if (e.size == s->size && e.stride == s->stride && e.wide == s->wide && e.co == s->co)
            return &e;
    return NULL;
}

bool ct_cuda_middle_fits(const cuda_block_shape *shape, size_t shared_limit) {
    const entry *e = find(shape);
    return e != NULL && e->bytes <= shared_limit;
}

ct_status ct_cuda_middle_backward(const cuda_run *run, const cuda_middle *middle,
                                  const cuda_conv *depthwise, size_t weight) {
    middle_call c = {};
    const cuda_block_shape *shape = &middle->shape;
    c.m = *middle, c.jobs = run->jobs_dev, c.n_max = run->n_max, c.partial = run->partial_dev;
    c.params = run->params_dev, c.params_stride = run->params_stride;
    c.packed = run->packed_dev, c.packed_stride = run->packed_stride;
    CT_TRY(find(shape)->launch(run, &c));
    return ct_cuda_sum_wgrad(run, splits_of(shape, run->n_max), depthwise, true, weight);
}
