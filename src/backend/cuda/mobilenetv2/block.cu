/* A block of MobileNet-V2 forward in one launch. Per sample, with gate(x) = EvoNorm's x s(x) / sigma
 * weight + bias, sigma over the pixels of a group of channels:
 *   wide = expand x              [pixels x wide]   1x1
 *   mid  = depthwise gate(wide)  [pixels x wide]   3x3, stride 1 or 2
 *   y    = gate(project gate(mid)) (+ x, or + gate(shortcut x))   1x1
 * A block of threads has one sample or some, and takes the wide channels a part at a time: one or
 * some whole groups, so that a part's norms need nothing else. Sums stay in registers until their
 * norm is known and are rounded to bf16 behind it; only those values, of one part, are in shared
 * memory. The projection adds up the parts. The 3x3 convolution runs on the tensor cores too, each
 * tap a product with a matrix that has the channels' weights on its diagonal: seven of eight
 * products are of zeros, but six of them take the place of 36 multiply-adds of every thread.
 * Grid: x = samples, y = job. From memory: x and y, 2 bytes a value; weights once a block of
 * threads, from L2; training also writes the values before the norms, 2 bytes each, and what
 * their backward passes need. 2 flops a product. Limits: the shapes listed at the end. */
#include "backend/cuda/mobilenetv2/block.cuh"

typedef struct block_call {
    cuda_block b;
    const cuda_job *jobs;
    int n_max;
    const float *params, *packed;
    size_t params_stride, packed_stride;
} block_call;

/* What a block of threads works on. */
typedef struct work {
    const float *params, *packed; /* of its model */
    size_t sample;                /* the first one of the call's */
    int n_samples;                /* that there are */
} work;

template <class V>
static __device__ __forceinline__ void copy_input(const block_call &c, const work &w,
                                                  char *shared) {
    constexpr int PIXELS = V::SIZE * V::SIZE;
    const bf16 *x = (const bf16 *)c.b.x + w.sample * PIXELS * V::CI;
    copy_matrix<V::THREADS, V::ROWS, V::CI / 8, V::X_PITCH, 16, (V::SAMPLES > 1)>(
        x, 2 * V::CI, shared + V::X, w.n_samples * PIXELS);
}

/* Rows of the expanding weights of a part: one a channel. */
template <class V>
static __device__ __forceinline__ void copy_expand(const block_call &c, const work &w, int part,
                                                   char *shared) {
    const bf16 *from = (const bf16 *)(w.packed + c.b.expand) + part * V::REAL * V::CI;
    copy_matrix<V::THREADS, V::REAL, V::CI / 8, V::X_PITCH>(from, 2 * V::CI, shared + V::EXPAND);
}

/* Columns of the projecting ones: a row an output, with room for whole units of each part. */
template <class V>
static __device__ __forceinline__ void copy_project(const block_call &c, const work &w, int part,
                                                    char *shared) {
    const bf16 *from = (const bf16 *)(w.packed + c.b.project) + part * V::PART;
    copy_matrix<V::THREADS, V::CO, V::PART / 8, V::PITCH>(from, 2 * V::N_PARTS * V::PART,
                                                          shared + V::PROJECT);
}

/* Small tables of a part as they are in memory: weights and biases of both norms, [4][channel], and
 * the 3x3 weights, [channel][tap]; two floats at a time. */
template <class V>
static __device__ __forceinline__ void copy_tables(const block_call &c, const work &w, int part,
                                                   char *shared) {
    constexpr int PAIRS = V::REAL / 2, N = PAIRS * TAPS;
    static_assert(4 * PAIRS <= V::THREADS, "one copy a thread");
    int kind = (int)threadIdx.x / PAIRS;
    const cuda_block_norm *n = c.b.norms;
    const float *weights = w.params + c.b.depthwise + part * V::REAL * TAPS + 2 * threadIdx.x;
    uint32_t to = shared_at(shared + V::RAW) + 8 * threadIdx.x;
    if (kind < 4) {
        size_t at = kind < 2 ? (kind == 0 ? n[0].weight : n[0].bias)
                             : (kind == 2 ? n[1].weight : n[1].bias);
        copy_async<8>(to, w.params + at + part * V::REAL + 2 * ((int)threadIdx.x - kind * PAIRS));
    }
#pragma unroll
    for (int e = 0; e < N; e += V::THREADS)
        if (e + V::THREADS <= N || e + (int)threadIdx.x < N)
            copy_async<8>(to + 4 * V::REAL * 4 + 8 * e, weights + 2 * e);
}

/* And as they are read: [4][channel], and rows of put_kernel. */
template <class V> static __device__ __forceinline__ void spread_tables(char *shared) {
    int channel = threadIdx.x;
    if (channel >= V::REAL) return;
    const float *raw = (const float *)(shared + V::RAW) + channel;
    float *table = (float *)(shared + V::TABLE) + channel;
#pragma unroll
    for (int k = 0; k < 4; k++) table[k * V::TABLE_PART] = raw[k * V::REAL];
    put_kernel(shared + V::KERNELS_AT, channel, raw + 4 * V::REAL + channel * (TAPS - 1));
}

/* Sums and sums of squares of a warp's tiles, group by group, to sums[warp][group]. */
template <class V, int TILES, int N>
static __device__ __forceinline__ void sum_groups(const spot &s, const float v[TILES][N][4],
                                                  int first_tile, float2 *sums) {
    float sum[V::PART_GROUPS] = {}, square[V::PART_GROUPS] = {};
#pragma unroll
    for (int j = 0; j < N; j++) {
        if (first_tile + j >= V::NT) break;
        float a = 0.0f, b = 0.0f;
#pragma unroll
        for (int i = 0; i < TILES; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) a += v[i][j][e], b = fmaf(v[i][j][e], v[i][j][e], b);
        int group = V::PART_GROUPS == 1 ? 0 : ((first_tile + j) * 8 + 2 * s.t) / V::GROUP;
#pragma unroll
        for (int g = 0; g < V::PART_GROUPS; g++)
            if (g == group) sum[g] += a, square[g] += b;
    }
#pragma unroll
    for (int g = 0; g < V::PART_GROUPS; g++) {
        bool upper = s.lane & 16; /* which have the squares */
        float all = (upper ? square[g] : sum[g]) +
                    __shfl_xor_sync(0xffffffffu, upper ? sum[g] : square[g], 16);
#pragma unroll
        for (int k = 8; k > 0; k /= 2) all += __shfl_xor_sync(0xffffffffu, all, k);
        if ((s.lane & 15) == 0) ((float *)&sums[s.warp * V::PART_GROUPS + g])[upper] = all;
    }
}

/* A group's mean and 1/sigma. */
static __device__ __forceinline__ float2 stats_of(float sum, float square, float count) {
    float part = 1.0f / count, mean = sum * part;
    return make_float2(mean, rsqrtf(fmaxf(square * part - mean * mean, 0.0f) + CUDA_EPSILON));
}

/* Those of the part's groups of the warp's sample, from what its warps have summed up; one warp a
 * sample writes what training keeps. */
template <class V, bool TRAIN>
static __device__ __forceinline__ void
find_stats(const spot &s, const work &w, const cuda_block_norm &norm, const float2 *sums,
           const float *weight, int part, float count, float inv[V::PART_GROUPS]) {
    int sample = s.warp / V::OF_SAMPLE;
    const float2 *from = sums + sample * V::OF_SAMPLE * V::PART_GROUPS;
#pragma unroll
    for (int g = 0; g < V::PART_GROUPS; g++) {
        float2 all = from[s.lane % V::OF_SAMPLE * V::PART_GROUPS + g];
#pragma unroll
        for (int k = 1; k < V::OF_SAMPLE; k *= 2) {
            all.x += __shfl_xor_sync(0xffffffffu, all.x, k);
            all.y += __shfl_xor_sync(0xffffffffu, all.y, k);
        }
        float2 both = stats_of(all.x, all.y, count);
        inv[g] = both.y;
        if (!TRAIN || s.warp % V::OF_SAMPLE != 0 || sample >= w.n_samples) continue;
        size_t at = w.sample + sample;
        if (s.lane < 2)
            norm.stats[(at * GROUPS + part * V::PART_GROUPS + g) * 2 + s.lane] =
                s.lane == 0 ? both.x : both.y;
        for (int k = g * V::GROUP + s.lane; k < (g + 1) * V::GROUP; k += 32)
            norm.scale[at * V::WIDE + part * V::REAL + k] = weight[k] * both.y;
    }
}

/* The norm of two neighbouring channels, rounded. */
static __device__ __forceinline__ uint32_t gate_pair(const float v[2], float2 scale, float2 bias) {
    return pack_bf16(gate_one(v[0], scale.x, bias.x), gate_one(v[1], scale.y, bias.y));
}

/* Where training writes a norm's input: a thread's first row, at the part's channels. */
typedef struct pre_rows {
    bf16 *to;       /* NULL: nowhere */
    uint32_t *kept; /* what waits for the rest of its sector (extents) */
    char *stage;    /* the warp's */
    int part;
} pre_rows;

/* Writes a tile of channels of the part, rows g and g + 8 of tiles ROW_STEP pixels apart. */
template <class V, int TILES, int N, int ROW_STEP>
static __device__ __forceinline__ void write_tile(const pre_rows &pre, const float v[TILES][N][4],
                                                  int j, int channel) {
    if (pre.to == NULL || channel >= V::REAL) return;
#pragma unroll
    for (int k = 0; k < 2 * TILES; k++)
        *(uint32_t *)(pre.to + (k / 2 * ROW_STEP + k % 2 * 8) * V::WIDE + channel) =
            pack_bf16(v[k / 2][j][k % 2 * 2], v[k / 2][j][k % 2 * 2 + 1]);
}

/* Behind part `part`: does this channel of it wait? */
template <class V> static __device__ __forceinline__ bool waits(int part, int channel) {
    return part * V::REAL + channel >= ((part + 1) * V::REAL & ~15);
}

/* Half a tile's rows of the part to the warp's stage, where `at` is the lane's row at the part's
 * first channel, what the part before has kept before them; or what waits to its place. */
template <class V, int TILES, int N>
static __device__ __forceinline__ void stage_half(const spot &s, const pre_rows &pre, char *at,
                                                  const float v[N][4], int k) {
#pragma unroll
    for (int j = 0; j < N; j++) {
        int channel = j * 8 + 2 * s.t;
        uint32_t pair = pack_bf16(v[j][k % 2 * 2], v[j][k % 2 * 2 + 1]);
        uint32_t *kept = pre.kept + ((j - V::KEPT_FROM) * 2 * TILES + k) * V::THREADS;
        bool may_wait = j >= V::KEPT_FROM, is_kept = may_wait && waits<V>(pre.part, channel);
        if (channel >= V::REAL) continue;
        if (may_wait && pre.part > 0 && waits<V>(pre.part - 1, channel))
            *(uint32_t *)(at + 2 * (channel - V::REAL)) = *kept;
        if (is_kept) *kept = pair;
        if (!is_kept) *(uint32_t *)(at + 2 * channel) = pair;
    }
}

/* Writes the sectors that the part completes, 16 bytes a thread. */
template <class V, int TILES, int N, int ROW_STEP>
static __device__ __forceinline__ void write_sectors(const spot &s, const pre_rows &pre,
                                                     const float v[TILES][N][4]) {
    int start = 2 * pre.part * V::REAL, first = start & ~31; /* bytes of a pixel's row */
    int n_units = (((start + 2 * V::REAL) & ~31) - first) / 16, shift = n_units == 2 ? 1 : 2;
    char *own = pre.stage + s.g * V::STAGE_PITCH + start - first;
    char *row0 = (char *)(pre.to - s.g * V::WIDE) - start + first;
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        stage_half<V, TILES, N>(s, pre, own, v[i], 2 * i);
        stage_half<V, TILES, N>(s, pre, own + 8 * V::STAGE_PITCH, v[i], 2 * i + 1);
        __syncwarp();
#pragma unroll
        for (int k = 0; k < 2; k++) {
            if (k == 1 && n_units == 2) break;
            int u = s.lane + 32 * k, row = u >> shift, unit = u - (row << shift);
            *(uint4 *)(row0 + (i * ROW_STEP + row) * V::WIDE * 2 + unit * 16) =
                *(const uint4 *)(pre.stage + row * V::STAGE_PITCH + unit * 16);
        }
        __syncwarp(); /* the next tile takes the place */
    }
}

/* Applies a part's norm to tiles of sums, of rows g and g + 8; training writes the sums as they
 * are. */
template <class V, bool TRAIN, int TILES, int N, int ROW_STEP>
static __device__ __forceinline__ void
gate_tiles(const spot &s, const float v[TILES][N][4], int first_tile, const float *table,
           const float inv[V::PART_GROUPS], uint32_t gated[TILES][2][N], const pre_rows &pre) {
    if constexpr (TRAIN && V::KEEPS) write_sectors<V, TILES, N, ROW_STEP>(s, pre, v);
#pragma unroll
    for (int j = 0; j < N; j++) {
        if (first_tile + j >= V::NT) break;
        int channel = (first_tile + j) * 8 + 2 * s.t;
        float2 scale = *(const float2 *)(table + channel);
        float2 bias = *(const float2 *)(table + V::TABLE_PART + channel);
        float own = inv[0];
#pragma unroll
        for (int g = 1; g < V::PART_GROUPS; g++)
            if (channel / V::GROUP == g) own = inv[g];
        scale.x *= own, scale.y *= own;
#pragma unroll
        for (int i = 0; i < TILES; i++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                gated[i][half][j] = gate_pair(&v[i][j][2 * half], scale, bias);
        if (TRAIN && !V::KEEPS) write_tile<V, TILES, N, ROW_STEP>(pre, v, j, channel);
    }
}

/* Those to shared memory, where rows g of the tiles are STEP bytes apart from `to` on and rows g + 8
 * HALF behind them. */
template <class V, int TILES, int N, int STEP, int HALF>
static __device__ __forceinline__ void store_tiles(const spot &s, const uint32_t gated[TILES][2][N],
                                                   int first_tile, char *to) {
    to += (first_tile * 8 + 2 * s.t) * 2;
#pragma unroll
    for (int j = 0; j < N; j++) {
        if (first_tile + j >= V::NT) break;
#pragma unroll
        for (int k = 0; k < 2 * TILES; k++)
            *(uint32_t *)(to + k / 2 * STEP + k % 2 * HALF + j * 16) = gated[k / 2][k % 2][j];
    }
}

/* Of a thread's rows of the output, in order: the pixel, and the values before it. */
template <class V> static __device__ __forceinline__ int output_row(const spot &s, int k) {
    int tile = s.warp / V::out::COLUMNS * V::out::TILES + k / 2;
    return first_row<V::OUT>(tile) + s.g + k % 2 * 8;
}

template <class V>
static __device__ __forceinline__ size_t output_at(const spot &s, const work &w, int k) {
    return (w.sample * V::OUT * V::OUT + output_row<V>(s, k)) * V::CO;
}

/* Behind the projection, or the shortcut: sums of each channel over a sample's pixels, then of
 * groups. */
template <class V, bool TRAIN>
static __device__ __forceinline__ void
find_last_stats(const spot &s, const work &w, const cuda_block_norm &norm,
                const float v[V::out::TILES][V::OUT_NT][4], char *shared) {
    constexpr int ROW_WARPS = V::WARPS / V::out::COLUMNS, DOWN = ROW_WARPS / V::SAMPLES;
    constexpr int PER_GROUP = V::CO / GROUPS;
    float2 *sums = (float2 *)(shared + V::LAST_SUMS), *stats = (float2 *)(shared + V::LAST_STATS);
    int row = s.warp / V::out::COLUMNS, first = s.warp % V::out::COLUMNS * V::OUT_NT * 8 + 2 * s.t;
#pragma unroll
    for (int j = 0; j < V::OUT_NT; j++) {
        float sum[2] = {}, square[2] = {};
#pragma unroll
        for (int k = 0; k < 4 * V::out::TILES; k++) {
            float x = v[k / 4][j][k % 4];
            sum[k % 2] += x, square[k % 2] = fmaf(x, x, square[k % 2]);
        }
        sum_rows(s, sum, square, sums + row * V::CO + first + j * 8);
    }
    __syncthreads();
    int sample = (int)threadIdx.x / GROUPS, group = (int)threadIdx.x % GROUPS;
    if (sample < V::SAMPLES) {
        float sum = 0.0f, square = 0.0f;
        for (int k = 0; k < DOWN * PER_GROUP; k++) {
            float2 one =
                sums[(sample * DOWN + k / PER_GROUP) * V::CO + group * PER_GROUP + k % PER_GROUP];
            sum += one.x, square += one.y;
        }
        float2 both = stats_of(sum, square, (float)(V::OUT * V::OUT * PER_GROUP));
        stats[threadIdx.x] = both;
        float *to = norm.stats;
        if (TRAIN && sample < w.n_samples)
            ((float2 *)to)[(w.sample + sample) * GROUPS + group] = both;
    }
    __syncthreads();
}

/* The last norm, or the shortcut's, of sums in their place; training writes them as they are. */
template <class V, bool TRAIN>
static __device__ __forceinline__ void gate_last(const spot &s, const work &w,
                                                 const cuda_block_norm &norm, const char *shared,
                                                 float v[V::out::TILES][V::OUT_NT][4]) {
    constexpr int PER_GROUP = V::CO / GROUPS;
    int sample = s.warp / V::OF_SAMPLE;
    const float2 *stats = (const float2 *)(shared + V::LAST_STATS) + sample * GROUPS;
#pragma unroll
    for (int j = 0; j < V::OUT_NT; j++) {
        int channel = (s.warp % V::out::COLUMNS * V::OUT_NT + j) * 8 + 2 * s.t;
        float2 scale = *(const float2 *)(w.params + norm.weight + channel);
        float2 bias = *(const float2 *)(w.params + norm.bias + channel);
        scale.x *= stats[channel / PER_GROUP].y, scale.y *= stats[(channel + 1) / PER_GROUP].y;
#pragma unroll
        for (int k = 0; k < 2 * V::out::TILES; k++) {
            float *pair = &v[k / 2][j][k % 2 * 2];
            if (TRAIN && sample < w.n_samples)
                store_two((bf16 *)norm.pre + output_at<V>(s, w, k) + channel,
                          make_float2(pair[0], pair[1]));
            pair[0] = gate_one(pair[0], scale.x, bias.x);
            pair[1] = gate_one(pair[1], scale.y, bias.y);
        }
    }
}

/* The addition, and the way out. */
template <class V>
static __device__ __forceinline__ void
write_output(const block_call &c, const spot &s, const work &w,
             const float v[V::out::TILES][V::OUT_NT][4], const char *shared) {
    if (s.warp / V::OF_SAMPLE >= w.n_samples) return;
#pragma unroll
    for (int j = 0; j < V::OUT_NT; j++) {
        int channel = (s.warp % V::out::COLUMNS * V::OUT_NT + j) * 8 + 2 * s.t;
#pragma unroll
        for (int k = 0; k < 2 * V::out::TILES; k++) {
            const float *pair = &v[k / 2][j][k % 2 * 2];
            float2 y = make_float2(pair[0], pair[1]);
            if (V::CI == V::CO && V::STRIDE == 1 && c.b.adds) {
                const char *x = shared + V::X + output_row<V>(s, k) * V::X_PITCH;
                float2 add = load_two((const bf16 *)x + channel);
                y.x += add.x, y.y += add.y;
            }
            store_two((bf16 *)c.b.y + output_at<V>(s, w, k) + channel, y);
        }
    }
}

/* Adds the shortcut, gate(shortcut x), to the sums, which become the last norm's output. */
template <class V, bool TRAIN>
static __device__ __forceinline__ void add_shortcut(const block_call &c, const spot &s,
                                                    const work &w, char *shared,
                                                    float v[V::out::TILES][V::OUT_NT][4]) {
    typedef typename V::out out;
    float other[out::TILES][V::OUT_NT][4] = {};
    int row0 = first_row<V::OUT>(s.warp / out::COLUMNS * out::TILES);
    const char *columns = shared + V::SHORTCUT + s.warp % out::COLUMNS * V::OUT_NT * 8 * V::X_PITCH;
    copies_wait();
    __syncthreads(); /* the weights are there */
    multiply<V::CI, V::X_PITCH, V::X_PITCH, out::TILES, V::OUT == 32 ? 32 : 16, V::OUT_NT>(
        s, shared + V::X + row0 * V::X_PITCH, columns, other);
    find_last_stats<V, TRAIN>(s, w, c.b.norms[3], other, shared);
    gate_last<V, TRAIN>(s, w, c.b.norms[3], shared, other);
#pragma unroll
    for (int e = 0; e < out::TILES * V::OUT_NT * 4; e++)
        v[e / 4 / V::OUT_NT][e / 4 % V::OUT_NT][e % 4] +=
            other[e / 4 / V::OUT_NT][e / 4 % V::OUT_NT][e % 4];
}

/* Behind the last part. */
template <class V, bool TRAIN>
static __device__ __forceinline__ void finish(const block_call &c, const spot &s, const work &w,
                                              char *shared, float v[V::out::TILES][V::OUT_NT][4]) {
    bool has_shortcut = V::HAS_SHORTCUT && c.b.has_shortcut;
    if (has_shortcut) {
        if (!V::IS_EARLY) __syncthreads(); /* its weights take the place of others */
        copy_matrix<V::THREADS, V::CO, V::CI / 8, V::X_PITCH>(
            (const bf16 *)(w.packed + c.b.shortcut), 2 * V::CI, shared + V::SHORTCUT);
    }
    find_last_stats<V, TRAIN>(s, w, c.b.norms[2], v, shared);
    gate_last<V, TRAIN>(s, w, c.b.norms[2], shared, v);
    if (has_shortcut) add_shortcut<V, TRAIN>(c, s, w, shared, v);
    write_output<V>(c, s, w, v, shared);
}

template <class V>
static __device__ __forceinline__ pre_rows pre_at(const spot &s, const cuda_block_norm &norm,
                                                  bool is_there, size_t row, int part, int kept,
                                                  char *shared) {
    return {!is_there ? NULL : (bf16 *)norm.pre + row * V::WIDE + part * V::REAL,
            (uint32_t *)(shared + kept) + threadIdx.x,
            shared + V::STAGE + s.warp * 16 * V::STAGE_PITCH, part};
}

/* Adds a part's products with the projecting weights. */
template <class V>
static __device__ __forceinline__ void
project(const spot &s, const uint32_t gated[V::out::TILES][2][V::MID_NT], int first_tile,
        int out_row, char *shared, float sums[V::out::TILES][V::OUT_NT][4]) {
    typedef typename V::out out;
    constexpr int STEP = V::OUT == 32 ? 32 : 16;
    const char *columns = shared + V::PROJECT + s.warp % out::COLUMNS * V::OUT_NT * 8 * V::PITCH;
    if constexpr (V::KEEPS_MID) {
        multiply_own<V::PART, V::PITCH, out::TILES, V::OUT_NT>(s, gated, columns, sums);
    } else {
        char *mid = shared + V::MID + out_row * V::PITCH;
        store_tiles<V, out::TILES, V::MID_NT, STEP * V::PITCH, 8 * V::PITCH>(s, gated, first_tile,
                                                                             mid + s.g * V::PITCH);
        __syncthreads();
        multiply<V::PART, V::PITCH, V::PITCH, out::TILES, STEP, V::OUT_NT>(s, mid, columns, sums);
    }
}

/* check: long because a part's products and norms share their sums */
template <class V, bool TRAIN>
static __global__ void __launch_bounds__(V::THREADS, V::BLOCKS) block_kernel(block_call c) {
    extern __shared__ __align__(16) char shared[];
    typedef typename V::in in;
    typedef typename V::out out;
    const cuda_job job = c.jobs[blockIdx.y];
    int first = (int)blockIdx.x * V::SAMPLES;
    if (first >= job.n) return;
    work w = {c.params + job.model * c.params_stride, c.packed + job.model * c.packed_stride,
              (size_t)blockIdx.y * c.n_max + first, min((int)V::SAMPLES, job.n - first)};
    spot s = find_spot();
    bool is_there = s.warp / V::OF_SAMPLE < w.n_samples;
    int in_row = first_row<V::SIZE>(s.warp / in::COLUMNS * in::TILES);
    int out_row = first_row<V::OUT>(s.warp / out::COLUMNS * out::TILES);
    int in_tile = s.warp % in::COLUMNS * V::IN_NT, mid_tile = s.warp % out::COLUMNS * V::MID_NT;
    /* places in shared memory: pixel (0, 0) of a window with a margin is one line and one pixel on */
    constexpr int LINE = V::WITH_MARGIN * V::PITCH, DOWN = V::SIZE == 4 ? 2 : 1;
    constexpr int IN_HALF = V::SIZE >= 16 ? 8 * V::PITCH : DOWN * LINE;
    constexpr int IN_STEP = V::SIZE == 32 ? 32 : 16, OUT_STEP = V::OUT == 32 ? 32 : 16;
    char *wide_at = shared + V::WIDE_AT + LINE + V::PITCH +
                    window_at<V::SIZE, 1, V::WITH_MARGIN>(in_row + s.g) * V::PITCH;
    uint32_t window =
        shared_at(shared + V::WIDE_AT) +
        window_at<V::OUT, V::STRIDE, V::WITH_MARGIN>(out_row + (s.lane & 15)) * V::PITCH;
    const float *table = (const float *)(shared + V::TABLE);
    float2 *wide_sums = (float2 *)(shared + V::SUMS),
           *mid_sums = wide_sums + V::WARPS * V::PART_GROUPS;
    copy_input<V>(c, w, shared);
    clear<V::THREADS, V::WIDE_AT, V::MID>(shared);    /* margins stay so */
    clear<V::THREADS, V::EXPAND, V::PROJECT>(shared); /* and channels that do not exist */
    clear<V::THREADS, V::TABLE, V::RAW>(shared);
    __syncthreads();
    copy_expand<V>(c, w, 0, shared);
    copy_tables<V>(c, w, 0, shared);
    copies_group();
    float sums[out::TILES][V::OUT_NT][4] = {};
    for (int part = 0; part < V::N_PARTS; part++) {
        copies_wait_but<0>();
        __syncthreads(); /* the expanding weights are there; the part before is done with the rest */
        copy_project<V>(c, w, part, shared);
        copies_group();
        spread_tables<V>(shared);
        float inv[V::PART_GROUPS];
        {
            float v[in::TILES][V::IN_NT][4] = {};
            multiply<V::CI, V::X_PITCH, V::X_PITCH, in::TILES, IN_STEP, V::IN_NT>(
                s, shared + V::X + in_row * V::X_PITCH,
                shared + V::EXPAND + in_tile * 8 * V::X_PITCH, v);
            sum_groups<V, in::TILES, V::IN_NT>(s, v, in_tile, wide_sums);
            __syncthreads(); /* sums and tables are there, the expanding weights free */
            if (part + 1 < V::N_PARTS) {
                copy_expand<V>(c, w, part + 1, shared);
                copy_tables<V>(c, w, part + 1, shared);
            }
            copies_group();
            find_stats<V, TRAIN>(s, w, c.b.norms[0], wide_sums, table, part,
                                 (float)(V::SIZE * V::SIZE * V::GROUP), inv);
            size_t row = w.sample * V::SIZE * V::SIZE + in_row + s.g;
            uint32_t gated[in::TILES][2][V::IN_NT];
            gate_tiles<V, TRAIN, in::TILES, V::IN_NT, IN_STEP>(
                s, v, in_tile, table, inv, gated,
                pre_at<V>(s, c.b.norms[0], is_there, row, part, V::WIDE_KEPT, shared));
            store_tiles<V, in::TILES, V::IN_NT, LINE, IN_HALF>(s, gated, in_tile, wide_at);
        }
        __syncthreads(); /* the wide pictures are there */
        float v[out::TILES][V::MID_NT][4] = {};
#pragma unroll
        for (int j = 0; j < V::MID_NT; j++) {
            if (mid_tile + j >= V::NT) break;
            uint32_t weights[TAPS];
            float tile[out::TILES][4] = {};
            load_diagonals<V::TABLE_PART>(s, shared + V::KERNELS_AT, mid_tile + j, weights);
            convolve<out::TILES, LINE, V::PITCH, V::STRIDE == 1 && V::OUT >= 16>(
                window + (mid_tile + j) * 16, weights, tile);
#pragma unroll
            for (int e = 0; e < 4 * out::TILES; e++) v[e / 4][j][e % 4] = tile[e / 4][e % 4];
        }
        sum_groups<V, out::TILES, V::MID_NT>(s, v, mid_tile, mid_sums);
        copies_wait_but<1>();
        __syncthreads(); /* sums are there, and the projecting weights */
        find_stats<V, TRAIN>(s, w, c.b.norms[1], mid_sums, table + 2 * V::TABLE_PART, part,
                             (float)(V::OUT * V::OUT * V::GROUP), inv);
        size_t row = w.sample * V::OUT * V::OUT + out_row + s.g;
        uint32_t gated[out::TILES][2][V::MID_NT];
        gate_tiles<V, TRAIN, out::TILES, V::MID_NT, OUT_STEP>(
            s, v, mid_tile, table + 2 * V::TABLE_PART, inv, gated,
            pre_at<V>(s, c.b.norms[1], is_there, row, part, V::MID_KEPT, shared));
        project<V>(s, gated, mid_tile, out_row, shared, sums);
    }
    finish<V, TRAIN>(c, s, w, shared, sums);
}

template <class V> static ct_status launch(const cuda_run *run, const block_call *c) {
    dim3 grid((unsigned)((run->n_max + V::SAMPLES - 1) / V::SAMPLES), (unsigned)run->n_jobs);
    bool train = c->b.norms[0].pre != NULL;
    return launch_kernel(run, train ? block_kernel<V, true> : block_kernel<V, false>, grid,
                         V::THREADS, train ? V::TRAIN_BYTES : V::BYTES, *c);
}

/* The blocks of the network, one shape each. */
#define SHAPES(f)                                                                                  \
    f(32, 1, 32, 32, 16) f(32, 1, 16, 96, 24) f(32, 1, 24, 144, 24) f(32, 2, 24, 144, 32)          \
        f(16, 1, 32, 192, 32) f(16, 2, 32, 192, 64) f(8, 1, 64, 384, 64) f(8, 1, 64, 384, 96)      \
            f(8, 1, 96, 576, 96) f(8, 2, 96, 576, 160) f(4, 1, 160, 960, 160)                      \
                f(4, 1, 160, 960, 320)

typedef struct entry {
    cuda_block_shape shape;
    int channels, room;
    size_t bytes, train_bytes;
    ct_status (*launch)(const cuda_run *run, const block_call *c);
} entry;

static const entry entries[] = {
#define ENTRY(size, stride, ci, wide, co)                                                          \
    {{size, stride, ci, wide, co},                                                                 \
     extents<size, stride, ci, wide, co>::REAL,                                                    \
     extents<size, stride, ci, wide, co>::PART,                                                    \
     extents<size, stride, ci, wide, co>::BYTES,                                                   \
     extents<size, stride, ci, wide, co>::TRAIN_BYTES,                                             \
     launch<extents<size, stride, ci, wide, co>>},
    SHAPES(ENTRY)
#undef ENTRY
};

static const entry *find(const cuda_block_shape *s) {
    for (const entry &e : entries)
        if (e.shape.size == s->size && e.shape.stride == s->stride && e.shape.ci == s->ci &&
            e.shape.wide == s->wide && e.shape.co == s->co)
            return &e;
    return NULL;
}

cuda_block_part ct_cuda_block_part(const cuda_block_shape *shape, size_t shared_limit) {
    const entry *e = find(shape);
    if (e == NULL || e->bytes > shared_limit) return {0, 0, false};
    return {e->channels, e->room, e->train_bytes <= shared_limit};
}

ct_status ct_cuda_block_forward(const cuda_run *run, const cuda_block *block) {
    block_call c = {};
    c.b = *block, c.jobs = run->jobs_dev, c.n_max = run->n_max;
    c.params = run->params_dev, c.params_stride = run->params_stride;
    c.packed = run->packed_dev, c.packed_stride = run->packed_stride;
    return find(&block->shape)->launch(run, &c);
}
