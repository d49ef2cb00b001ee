/* Weight gradients on the tensor cores: dw[tap][i][o] = sum over samples and pixels of
 * x[pixel shifted by the tap][i] * d[pixel][o]. A matrix product with rows = input channels,
 * columns = output channels, k = pixels, for all taps at once: a fragment of d serves every tap.
 * Grid: x = split of a job's strips of 4 or 8 output rows, y = job, z = layer. A block takes its
 * strips one after the other through shared memory (the picture with its border), the next one on
 * its way while this one is multiplied, and keeps the sums in registers; warps share out channels
 * and pixels. Reads x and d once (8 bytes a pixel and channel), 2 flops a product; the splits are
 * added up by sums.cu in a fixed order. Limits: tf32, 1x1 and 3x3 kernels, 16 to 64 channels,
 * output rows that are multiples of 8 long and powers of two wide. */
#include "backend/cuda/device.cuh"

typedef struct wgrad_call {
    cuda_conv v;
    const cuda_job *jobs;
    int n_max, n_splits;
    cuda_wgrad layers[CUDA_MAX_LAYERS];
    float *partial; /* [layer][job][split][tap][i][o] */
} wgrad_call;

/* The picture's rows under a strip, [row][pad + wi + pad][CI + 8]; what lies beside them, and the
 * channels it has not, stay what they were: zero. */
template <int CI, int THREADS>
static __device__ __forceinline__ void load_picture(const cuda_conv &v, const float *x,
                                                    int first_row, int n_rows, float *tile) {
    constexpr int PITCH = CI + 8, QUADS = CI / 4;
    int width = v.wi + 2 * v.pad, lane = threadIdx.x & 31;
    if (v.ci != CI) {
        for (int i = (int)threadIdx.x; i < n_rows * v.wi * v.ci; i += THREADS) {
            int p = i / v.ci, r = p / v.wi, col = p - r * v.wi, row = first_row + r;
            bool is_there = row >= 0 && row < v.hi;
            copy_async<4>(shared_at(&tile[(r * width + col + v.pad) * PITCH + i - p * v.ci]),
                          is_there ? x + (row * v.wi + col) * v.ci + i - p * v.ci : x, is_there);
        }
        return;
    }
    int each = v.wi * QUADS / 32; /* quads of a row a lane copies */
    for (int r = (int)threadIdx.x / 32; r < n_rows; r += THREADS / 32) {
        int row = first_row + r;
        bool is_there = row >= 0 && row < v.hi;
        const float *from = x + (is_there ? row * v.wi * CI : 0) + lane * 4;
        float *to = tile + (r * width + v.pad + lane / QUADS) * PITCH + lane % QUADS * 4;
#pragma unroll 4
        for (int k = 0; k < each; k++)
            copy_async<16>(shared_at(to + k * (32 / QUADS) * PITCH), from + k * 128, is_there);
    }
}

template <int CO, int THREADS>
static __device__ __forceinline__ void load_gradient(const float *d, int n_pixels, float *tile) {
    constexpr int PITCH = CO + 8, QUADS = CO / 4;
    for (int i = (int)threadIdx.x; i < n_pixels * QUADS; i += THREADS)
        copy_async<16>(shared_at(&tile[i / QUADS * PITCH + i % QUADS * 4]), d + 4 * i, true);
}

/* Adds 8 columns of DEEP output rows of a strip to this warp's sums[tap][column tile]: x and d
 * point to the first of them. A fragment of a picture's row serves every output row it is under. */
template <int CI, int CO, int KERNEL, int DEEP>
static __device__ __forceinline__ void add_columns(const float *x, int width, const float *d,
                                                   int wo, float sums[KERNEL * KERNEL][2][4]) {
    constexpr int PITCH_X = CI + 8, PITCH_D = CO + 8, STRIDE = CI == CO ? 1 : 2;
    constexpr int NEXT = 4 * STRIDE * PITCH_X; /* four output pixels further */
    float b[DEEP][2][2];
#pragma unroll
    for (int i = 0; i < DEEP; i++, d += wo * PITCH_D)
#pragma unroll
        for (int j = 0; j < 2; j++) {
            b[i][j][0] = near_tf32(d[8 * j]);
            b[i][j][1] = near_tf32(d[8 * j + 4 * PITCH_D]);
        }
#pragma unroll
    for (int r = 0; r < (DEEP - 1) * STRIDE + KERNEL; r++, x += width) {
#pragma unroll
        for (int q = 0; q < KERNEL; q++) {
            const float *at = x + q * PITCH_X;
            float a[4] = {near_tf32(at[0]), near_tf32(at[8]), near_tf32(at[NEXT]),
                          near_tf32(at[NEXT + 8])};
#pragma unroll
            for (int u = 0; u < KERNEL; u++) {
                if (r < u || (r - u) % STRIDE != 0 || (r - u) / STRIDE >= DEEP) continue;
#pragma unroll
                for (int j = 0; j < 2; j++)
                    mma_tf32(sums[u * KERNEL + q][j], a, b[(r - u) / STRIDE][j]);
            }
        }
    }
}

/* Adds one strip: SLICES warps share out its blocks of 8 columns and DEEP rows. */
template <int CI, int CO, int KERNEL, int SLICES, int ROWS, int DEEP>
static __device__ __forceinline__ void add_strip(const cuda_conv &v, const float *picture,
                                                 const float *gradient,
                                                 float sums[KERNEL * KERNEL][2][4]) {
    constexpr int PITCH_X = CI + 8, PITCH_D = CO + 8, N_COLS = CO / 16, STRIDE = CI == CO ? 1 : 2;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
    int col = warp % N_COLS, row = warp / N_COLS % (CI / 16), slice = warp / N_COLS / (CI / 16);
    int width = (v.wi + 2 * v.pad) * PITCH_X, log_blocks = 31 - __clz(v.wo) - 3;
    const float *x = picture + row * 16 + g + t * STRIDE * PITCH_X;
    const float *d = gradient + col * 16 + g + t * PITCH_D;
    for (int k = slice; k < ROWS / DEEP << log_blocks; k += SLICES) {
        int oy = (k >> log_blocks) * DEEP, ox = (k & ((1 << log_blocks) - 1)) * 8;
        add_columns<CI, CO, KERNEL, DEEP>(x + oy * STRIDE * width + ox * STRIDE * PITCH_X, width,
                                          d + (oy * v.wo + ox) * PITCH_D, v.wo, sums);
    }
}

/* Element of [tap][CI][CO] that sums[tap][j][k] of this thread is. */
template <int CI, int CO> static __device__ __forceinline__ int place(int tap, int j, int k) {
    constexpr int N_COLS = CO / 16;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int col = warp % N_COLS, row = warp / N_COLS % (CI / 16);
    int i = row * 16 + (lane >> 2) + (k >> 1) * 8;
    int o = col * 16 + j * 8 + (lane & 3) * 2 + (k & 1);
    return (tap * CI + i) * CO + o;
}

/* Adds up the slices, in order, and writes the block's sums. */
template <int CI, int CO, int TAPS, int SLICES, int THREADS>
static __device__ void write_sums(const wgrad_call &c, const float sums[TAPS][2][4], float *scratch,
                                  float *out) {
    int slice = (int)(threadIdx.x >> 5) / (CO / 16) / (CI / 16), ci = c.v.ci;
    if (SLICES == 1 && ci == CI) {
#pragma unroll
        for (int e = 0; e < TAPS * 8; e += 2)
            *(float2 *)&out[place<CI, CO>(e / 8, e / 4 % 2, e % 4)] =
                make_float2(sums[e / 8][e / 4 % 2][e % 4], sums[e / 8][e / 4 % 2][e % 4 + 1]);
        return;
    }
    for (int s = 0; s < SLICES; s++) {
        if (slice == s) {
#pragma unroll
            for (int e = 0; e < TAPS * 8; e++) {
                float *to = &scratch[place<CI, CO>(e / 8, e / 4 % 2, e % 4)];
                float value = sums[e / 8][e / 4 % 2][e % 4];
                *to = s == 0 ? value : *to + value;
            }
        }
        __syncthreads();
    }
    for (int e = (int)threadIdx.x; e < TAPS * ci * CO; e += THREADS) {
        int o = e % CO, i = e / CO % ci, tap = e / CO / ci;
        out[e] = scratch[(tap * CI + i) * CO + o];
    }
}

/* Starts the copies of one strip into a buffer of shared memory. */
template <int CI, int CO, int KERNEL, int ROWS, int THREADS>
static __device__ __forceinline__ void load_strip(const wgrad_call &c, int item, float *buffer) {
    const cuda_conv &v = c.v;
    int n_strips = v.ho / ROWS, n_rows = (ROWS - 1) * v.stride + KERNEL, strip = item % n_strips;
    size_t sample = (size_t)blockIdx.y * c.n_max + item / n_strips;
    float *gradient = buffer + n_rows * (v.wi + 2 * v.pad) * (CI + 8);
    load_picture<CI, THREADS>(v, c.layers[blockIdx.z].x + sample * v.hi * v.wi * v.ci,
                              strip * ROWS * v.stride - v.pad, n_rows, buffer);
    load_gradient<CO, THREADS>(c.layers[blockIdx.z].d + (sample * v.ho + strip * ROWS) * v.wo * CO,
                               ROWS * v.wo, gradient);
}

/* Blocks of a multiprocessor at a time: what shared memory and 128 registers a thread allow. */
#define BLOCKS_OF(THREADS) (THREADS > 256 ? 1 : THREADS > 128 ? 2 : 3)

template <int CI, int CO, int KERNEL, int SLICES, int ROWS, int DEEP>
static __global__ void __launch_bounds__(CI *CO / 8 * SLICES, BLOCKS_OF(CI *CO / 8 * SLICES))
    wgrad_kernel(const __grid_constant__ wgrad_call c) {
    constexpr int TAPS = KERNEL * KERNEL, THREADS = CI * CO / 8 * SLICES;
    extern __shared__ __align__(16) float shared[];
    const cuda_conv &v = c.v;
    const cuda_job job = c.jobs[blockIdx.y];
    int n_items = job.n * (v.ho / ROWS), per = (n_items + c.n_splits - 1) / c.n_splits;
    int first = (int)blockIdx.x * per, last = min(n_items, first + per);
    int picture = ((ROWS - 1) * v.stride + KERNEL) * (v.wi + 2 * v.pad) * (CI + 8);
    int size = picture + ROWS * v.wo * (CO + 8); /* floats of a buffer */
    float sums[TAPS][2][4] = {};
    for (int k = (int)threadIdx.x * 4; k < 2 * size; k += THREADS * 4)
        *(float4 *)&shared[k] = make_float4(0, 0, 0, 0);
    __syncthreads();
    if (first < last) load_strip<CI, CO, KERNEL, ROWS, THREADS>(c, first, shared);
    copies_group();
    for (int item = first; item < last; item++) {
        float *buffer = shared + (item - first) % 2 * size;
        if (item + 1 < last)
            load_strip<CI, CO, KERNEL, ROWS, THREADS>(c, item + 1,
                                                      shared + (item + 1 - first) % 2 * size);
        copies_group();
        copies_wait_but<1>();
        __syncthreads(); /* everyone's copies of this strip are there */
        add_strip<CI, CO, KERNEL, SLICES, ROWS, DEEP>(v, buffer, buffer + picture, sums);
        __syncthreads(); /* the strip after the next overwrites this buffer */
    }
    size_t count = (size_t)TAPS * v.ci * CO;
    size_t row = (size_t)blockIdx.z * gridDim.y + blockIdx.y;
    float *out = c.partial + (row * c.n_splits + blockIdx.x) * count;
    write_sums<CI, CO, TAPS, SLICES, THREADS>(c, sums, shared, out);
}

static int rows_of(const cuda_conv *v) {
    return v->ci <= 16 ? 16 : v->ci;
}

/* Output rows of a strip: two buffers of it leave room for two blocks. */
static int strip_rows(const cuda_conv *v) {
    return rows_of(v) == v->co && v->co >= 32 ? 8 : 4;
}

/* SLICES of the kernels below */
static int slices_of(const cuda_conv *v) {
    return rows_of(v) == 16 ? 4 : rows_of(v) == 32 && v->co == 32 ? 2 : 1;
}

static int blocks_of(const cuda_conv *v) {
    return BLOCKS_OF(rows_of(v) * v->co / 8 * slices_of(v));
}

static size_t shared_bytes(const cuda_conv *v) {
    int ci = rows_of(v), rows = strip_rows(v), n_rows = (rows - 1) * v->stride + v->kh;
    size_t tiles = 2 * ((size_t)(n_rows * (v->wi + 2 * v->pad)) * (size_t)(ci + 8) +
                        (size_t)(rows * v->wo) * (size_t)(v->co + 8));
    size_t sums = (size_t)(v->kh * v->kw * ci) * (size_t)v->co;
    bool is_direct = ci * v->co > 1024; /* no slices to add up */
    return (!is_direct && sums > tiles ? sums : tiles) * sizeof(float);
}

static bool is_known(const cuda_conv *v) {
    int ci = rows_of(v), co = v->co;
    /* kernels know their stride: 1 where the width stays, 2 where it doubles */
    if ((v->ci != ci && v->ci > 16) || v->stride != (ci == co ? 1 : 2)) return false;
    if (v->kh == 3)
        return (ci == 16 && (co == 16 || co == 32)) || (ci == 32 && (co == 32 || co == 64)) ||
               (ci == 64 && co == 64);
    return v->kh == 1 && ((v->ci == 16 && co == 32) || (ci == 32 && co == 64));
}

/* A warp copies a picture's row in equal shares, so that the row must be whole ones: an odd one
 * (15 wide, halved to 8) is not. */
bool ct_cuda_tile_wgrad_fits(const cuda_conv *v, size_t shared_limit) {
    return v->groups == 1 && v->wi == v->wo * v->stride && v->kh == v->kw && is_known(v) &&
           v->ho % 8 == 0 && v->wo % 8 == 0 && (v->wo & (v->wo - 1)) == 0 &&
           shared_bytes(v) <= shared_limit;
}

/* The same for any number of jobs and whatever their batches, so that a job's sums do not depend on
 * its company (n_items is of the largest batch there may be): few, for there are partial sums of
 * each, but enough that 16 jobs fill an H200 evenly. */
int ct_cuda_even_splits(int n_layers, int n_items, int blocks_at_once) {
    int at_once = 132 * blocks_at_once, best = 1;
    double best_share = 0.0;
    for (int n = 1; n <= n_items && 16 * n_layers * n <= 2 * at_once; n++) {
        int blocks = 16 * n_layers * n, rounds = (blocks + at_once - 1) / at_once;
        int longest = (n_items + n - 1) / n;
        double share = (double)(16 * n_layers * n_items) / ((double)rounds * at_once * longest);
        if (share > best_share + 0.05) best = n, best_share = share;
    }
    return best;
}

int ct_cuda_tile_wgrad_splits(const cuda_conv *v, int n_layers, int n_most) {
    return ct_cuda_even_splits(n_layers, n_most * (v->ho / strip_rows(v)), blocks_of(v));
}

template <int CI, int CO, int KERNEL, int SLICES, int ROWS, int DEEP>
static ct_status launch(const cuda_run *run, const wgrad_call *c, int n_layers) {
    dim3 grid((unsigned)c->n_splits, (unsigned)run->n_jobs, (unsigned)n_layers);
    return launch_kernel(run, wgrad_kernel<CI, CO, KERNEL, SLICES, ROWS, DEEP>, grid,
                         CI * CO / 8 * SLICES, shared_bytes(&c->v), *c);
}

static ct_status launch_known(const cuda_run *run, const wgrad_call *c, int n) {
    int ci = rows_of(&c->v), co = c->v.co;
    if (c->v.kh == 1)
        return ci == 16 ? launch<16, 32, 1, 4, 4, 2>(run, c, n)
                        : launch<32, 64, 1, 1, 4, 4>(run, c, n);
    if (ci == 16)
        return co == 16 ? launch<16, 16, 3, 4, 4, 4>(run, c, n)
                        : launch<16, 32, 3, 4, 4, 2>(run, c, n);
    if (ci == 32)
        return co == 32 ? launch<32, 32, 3, 2, 8, 4>(run, c, n)
                        : launch<32, 64, 3, 1, 4, 4>(run, c, n);
    return launch<64, 64, 3, 1, 8, 4>(run, c, n);
}

ct_status ct_cuda_tile_wgrad(const cuda_run *run, const cuda_conv *conv, const cuda_wgrad *layers,
                             int n_layers) {
    wgrad_call c = {*conv, run->jobs_dev, run->n_max, 0, {}, run->partial_dev};
    c.n_splits = ct_cuda_tile_wgrad_splits(conv, n_layers, run->n_most);
    for (int k = 0; k < n_layers; k++) c.layers[k] = layers[k];
    CT_TRY(launch_known(run, &c, n_layers));
    return ct_cuda_sum_layers(run, c.n_splits, conv, layers, n_layers);
}
