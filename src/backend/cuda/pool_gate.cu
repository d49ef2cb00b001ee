/* Maxima of windows of 3 x 3, two apart, with a border of one, of an EvoNorm (hard sigmoid) that is
 * applied to what is read, so that its output never exists (kernels.h, cuda_gate). In training the
 * place of each maximum is kept, a byte, so that backward looks for nothing: it writes the gradient
 * of the norm's output and takes the sums that the norm's backward pass begins with.
 * A thread has 8 channels. Forward it goes down some output rows, and reads the row between two
 * windows once: grid x over (rows, columns and channels), y = sample, z = job. Backward it has 2 x 2
 * pixels of the input after the other; a block has a part of a sample: grid x = part. bf16: 2 bytes
 * a value of x read forward; 2 of x and dx backward, and 3 a maximum. */
#include "backend/cuda/mma.cuh"

enum { THREADS = 256, DEPTH = 8 /* output rows of a thread */, PARTS = 7, UNIT = 8 };

typedef struct pool_call {
    cuda_window w;
    const cuda_job *jobs;
    int n_max;
    const float *scale, *params;
    size_t params_stride, bias;
    const void *x, *dy;
    void *y, *dx;
    uint8_t *places;
    float *measures;
} pool_call;

typedef struct best {
    float value[UNIT];
    uint32_t place[2]; /* bytes */
} best;

static __device__ __forceinline__ void set_byte(uint32_t words[2], int e, uint32_t byte) {
    int shift = e % 4 * 8;
    words[e / 4] = (words[e / 4] & ~(0xffu << shift)) | byte << shift;
}

/* The norm of the thread's channels. */
typedef struct norm_unit {
    float scale[UNIT], bias[UNIT];
} norm_unit;

/* KEEPS: the place too. */
template <bool KEEPS>
static __device__ __forceinline__ void take_larger(const float v[UNIT], int place, best &b) {
#pragma unroll
    for (int e = 0; e < UNIT; e++) {
        if (KEEPS && v[e] > b.value[e]) set_byte(b.place, e, (uint32_t)place);
        b.value[e] = v[e] > b.value[e] ? v[e] : b.value[e];
    }
}

/* The first largest pixel of one row of a window, as if it were the window's first row. */
template <class T, bool KEEPS>
static __device__ __forceinline__ best row_best(const cuda_window &w, const T *xs, int y, int x0,
                                                const norm_unit &n) {
    best b;
#pragma unroll
    for (int e = 0; e < UNIT; e++) b.value[e] = -INFINITY;
    b.place[0] = b.place[1] = 0;
    if (y < 0 || y >= w.hi) return b;
#pragma unroll
    for (int v = 0; v < 3; v++) {
        int x = x0 + v;
        if (x < 0 || x >= w.wi) continue;
        __align__(16) float value[UNIT];
        load_eight(xs + ((size_t)y * w.wi + x) * w.c, (float4 *)value);
#pragma unroll
        for (int e = 0; e < UNIT; e++) value[e] = gate_one(value[e], n.scale[e], n.bias[e]);
        take_larger<KEEPS>(value, v, b);
    }
    return b;
}

/* Joins a row that lies `down` rows below the window's first; what is above wins where equal. */
template <bool KEEPS>
static __device__ __forceinline__ void join_row(const best &row, int down, best &b) {
#pragma unroll
    for (int e = 0; e < UNIT; e++) {
        if (KEEPS && row.value[e] > b.value[e])
            set_byte(b.place, e, (row.place[e / 4] >> e % 4 * 8 & 0xff) + 3 * (uint32_t)down);
        b.value[e] = row.value[e] > b.value[e] ? row.value[e] : b.value[e];
    }
}

template <class T, bool KEEPS>
static __global__ void __launch_bounds__(THREADS) pool_kernel(pool_call c) {
    const cuda_job job = c.jobs[blockIdx.z];
    const cuda_window &w = c.w;
    int units = w.c / UNIT, e = (int)(blockIdx.x * THREADS + threadIdx.x), unit = e % units;
    int ox = e / units % w.wo, row0 = e / units / w.wo * DEPTH;
    if ((int)blockIdx.y >= job.n || row0 >= w.ho) return;
    size_t sample = (size_t)blockIdx.z * c.n_max + blockIdx.y;
    const T *xs = (const T *)c.x + sample * w.hi * w.wi * w.c + unit * UNIT;
    norm_unit n;
    load_eight(c.scale + sample * w.c + unit * UNIT, (float4 *)n.scale);
    load_eight(c.params + job.model * c.params_stride + c.bias + unit * UNIT, (float4 *)n.bias);
    best above = row_best<T, KEEPS>(w, xs, 2 * row0 - 1, 2 * ox - 1, n);
    for (int oy = row0; oy < min(row0 + DEPTH, w.ho); oy++) {
        best b = above;
        join_row<KEEPS>(row_best<T, KEEPS>(w, xs, 2 * oy, 2 * ox - 1, n), 1, b);
        above = row_best<T, KEEPS>(w, xs, 2 * oy + 1, 2 * ox - 1, n);
        join_row<KEEPS>(above, 2, b);
        size_t to = ((sample * w.ho + oy) * w.wo + ox) * w.c + unit * UNIT;
        store_eight((T *)c.y + to, (const float4 *)b.value);
        if (KEEPS) *(uint2 *)(c.places + to) = make_uint2(b.place[0], b.place[1]);
    }
}

/* Adds the gradient of window (wy, wx) to those of 2 x 2 pixels, which it begins `up` rows and
 * `left` columns before (1) or behind (-1). */
template <class T>
static __device__ __forceinline__ void add_window(const pool_call &c, size_t sample, int wy, int wx,
                                                  int channel, int up, int left,
                                                  float sums[4][UNIT]) {
    const cuda_window &w = c.w;
    if (wy >= w.ho || wx >= w.wo) return;
    size_t from = ((sample * w.ho + wy) * w.wo + wx) * w.c + channel;
    __align__(16) float d[UNIT];
    load_eight((const T *)c.dy + from, (float4 *)d);
    uint2 places = __ldg((const uint2 *)(c.places + from));
#pragma unroll
    for (int k = 0; k < 4; k++) {
        int u = k / 2 + up, v = k % 2 + left;
        if (u < 0 || v < 0) continue;
#pragma unroll
        for (int e = 0; e < UNIT; e++) {
            uint32_t place = (e < 4 ? places.x : places.y) >> e % 4 * 8 & 0xff;
            sums[k][e] += place == (uint32_t)(3 * u + v) ? d[e] : 0.0f;
        }
    }
}

/* Writes the gradients of 2 x 2 pixels, and adds them to the thread's sums. */
template <class T>
static __device__ __forceinline__ void write_square(const pool_call &c, size_t sample, int y, int x,
                                                    int channel, const float sums[4][UNIT],
                                                    float with_x[UNIT], float plain[UNIT]) {
    const cuda_window &w = c.w;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        if (y + k / 2 >= w.hi || x + k % 2 >= w.wi) continue;
        size_t at = ((sample * w.hi + y + k / 2) * w.wi + x + k % 2) * w.c + channel;
        __align__(16) float in[UNIT];
        load_eight((const T *)c.x + at, (float4 *)in);
        store_eight((T *)c.dx + at, (const float4 *)sums[k]);
#pragma unroll
        for (int e = 0; e < UNIT; e++) {
            with_x[e] = fmaf(sums[k][e], gate_numerator(in[e]), with_x[e]);
            plain[e] += sums[k][e];
        }
    }
}

template <class T>
static __global__ void __launch_bounds__(THREADS) pool_backward_kernel(pool_call c) {
    extern __shared__ float shared[]; /* [row of threads][2][channel] */
    const cuda_window &w = c.w;
    if ((int)blockIdx.y >= c.jobs[blockIdx.z].n) return;
    size_t sample = (size_t)blockIdx.z * c.n_max + blockIdx.y;
    int units = w.c / UNIT, n_rows = THREADS / units, channel = (int)threadIdx.x % units * UNIT;
    int row = (int)threadIdx.x / units, wide = (w.wi + 1) / 2, n = (w.hi + 1) / 2 * wide;
    int per = (n + PARTS - 1) / PARTS, last = min(n, ((int)blockIdx.x + 1) * per);
    __align__(16) float with_x[UNIT] = {}, plain[UNIT] = {};
    for (int k = (int)blockIdx.x * per + row; row < n_rows && k < last; k += n_rows) {
        int oy = k / wide, ox = k - oy * wide;
        __align__(16) float sums[4][UNIT] = {};
        add_window<T>(c, sample, oy, ox, channel, 1, 1, sums);
        add_window<T>(c, sample, oy, ox + 1, channel, 1, -1, sums);
        add_window<T>(c, sample, oy + 1, ox, channel, -1, 1, sums);
        add_window<T>(c, sample, oy + 1, ox + 1, channel, -1, -1, sums);
        write_square<T>(c, sample, 2 * oy, 2 * ox, channel, sums, with_x, plain);
    }
    if (c.measures == NULL) return;
    if (row < n_rows) {
        store_eight(shared + row * 2 * w.c + channel, (const float4 *)with_x);
        store_eight(shared + (2 * row + 1) * w.c + channel, (const float4 *)plain);
    }
    __syncthreads();
    float *to = c.measures + (sample * PARTS + blockIdx.x) * 2 * w.c;
    for (int k = (int)threadIdx.x; k < 2 * w.c; k += THREADS) {
        float sum = 0.0f;
        for (int r = 0; r < n_rows; r++) sum += shared[r * 2 * w.c + k];
        to[k] = sum;
    }
}

bool ct_cuda_pool_gates(const cuda_window *w) {
    return w->kernel == 3 && w->stride == 2 && w->pad == 1 && w->c % UNIT == 0 &&
           w->c <= THREADS * UNIT;
}

int ct_cuda_pool_parts(const cuda_window *) {
    return PARTS;
}

static pool_call call_of(const cuda_run *run, const cuda_pool_call *call) {
    pool_call c = {};
    c.w = call->window, c.jobs = run->jobs_dev, c.n_max = run->n_max;
    c.scale = call->gate.scale_dev, c.bias = call->gate.bias;
    c.params = run->params_dev, c.params_stride = run->params_stride;
    c.x = call->x, c.y = call->y, c.dy = call->dy, c.dx = call->dx;
    c.places = call->places, c.measures = call->measures;
    return c;
}

ct_status ct_cuda_pool_gate(const cuda_run *run, const cuda_pool_call *call) {
    const cuda_window *w = &call->window;
    int n = (w->ho + DEPTH - 1) / DEPTH * w->wo * (w->c / UNIT);
    dim3 grid((unsigned)(n + THREADS - 1) / THREADS, (unsigned)run->n_max, (unsigned)run->n_jobs);
    bool keeps = call->places != NULL, is_bf16 = call->element == CUDA_BF16;
    return launch_kernel(run,
                         is_bf16 ? (keeps ? pool_kernel<bf16, true> : pool_kernel<bf16, false>)
                                 : (keeps ? pool_kernel<float, true> : pool_kernel<float, false>),
                         grid, THREADS, 0, call_of(run, call));
}

ct_status ct_cuda_pool_gate_backward(const cuda_run *run, const cuda_pool_call *call) {
    size_t n_rows = (size_t)(THREADS / (call->window.c / UNIT));
    dim3 grid(PARTS, (unsigned)run->n_max, (unsigned)run->n_jobs);
    return launch_kernel(
        run, call->element == CUDA_BF16 ? pool_backward_kernel<bf16> : pool_backward_kernel<float>,
        grid, THREADS, n_rows * 2 * (size_t)call->window.c * sizeof(float), call_of(run, call));
}
