/* LeNet-5 backward in one launch: from the features' gradient through both linear layers to the
 * second convolution's maxima, from there to the first one's, and both convolutions' weight and bias
 * gradients, in fp32. A window's gradient belongs to one of its four pixels, so that only the taps
 * around that pixel are computed: a quarter of the products.
 *   dw2[o][i][tap] = sum over windows of d2[window][o] * maxima1[pixel of (window, o) + tap][i]
 *   d1[pixel of (window, o) + tap][i] += d2[window][o] * w2[o][i][tap]
 *   dw1[o][tap] = sum over windows of d1[window][o] * picture[pixel of (window, o) + tap]
 * Lanes are taps and input maps. A sample has four warps: two for dw2, of half of the maps each, and
 * two for d1, of every second window with a copy each, to which a window's part is added when it has
 * been summed over o in registers; all four then take a quarter of the windows for dw1.
 * Grid: x over groups of 4 samples, y = job; 1.2 MFLOP a sample. From memory: 12 KB a sample, and
 * weights, 240 KB a block from L2. A block leaves sums of its samples, which a second pass adds up
 * in order. */
enum { WARPS = 16, PITCH = 37 /* the 25 taps of a pixel in different banks */ };
#include "backend/cuda/lenet5/lenet.cuh"

enum { ONES_2 = MAPS_1 * TAPS, SUMS_2 = MAPS_2 * (ONES_2 + 1) }; /* a map's weights, and its bias */
enum { SUMS_1 = MAPS_1 * (TAPS + 1), SUMS = SUMS_2 + SUMS_1 };
enum { REACH = 6, REACHED = REACH * REACH * MAPS_1 }; /* pixels across that a window reaches */
enum { FRAME = 7, FRAMED = FRAME * FRAME * MAPS_1 };  /* taps with zeros around them */
enum { EACH_2 = (ONES_2 + 32) / 32, EACH_REACHED = (REACHED + 31) / 32 };

/* Shared memory, in floats. */
enum {
    AT_MAXIMA = SAMPLES * PICTURE,
    AT_WEIGHTS = AT_MAXIMA + SAMPLES * VALUES_1,
    AT_D2 = AT_WEIGHTS + MAPS_2 * FRAMED,
    AT_PLACES_1 = AT_D2 + SAMPLES * VALUES_2,
    AT_PLACES_2 = AT_PLACES_1 + SAMPLES * VALUES_1 / 4,
    AT_FEATURES = AT_PLACES_2 + SAMPLES * VALUES_2 / 4,
    AT_HIDDEN = AT_FEATURES + FEATURES * 4,
    AT_SUMS = AT_HIDDEN + HIDDEN * 4,
    AT_PARTS = AT_SUMS + SAMPLES * SUMS_2,
    FLOATS = AT_PARTS + PARTS * VALUES_2 * 4
};
static_assert(2 * SAMPLES * VALUES_1 <= PARTS * VALUES_2 * 4, "gradients lie where parts were");
static_assert(WARPS * SUMS_1 <= MAPS_2 * FRAMED, "sums lie where weights were");
static_assert(FLOATS * 4 <= CUDA_LENET_BYTES, "a block's shared memory");

/* n values of each sample of the block to shared memory, zeros for those that are not there. */
template <typename T>
static __device__ __forceinline__ void load_samples(const spot &s, const T *from, int n, T *to) {
#pragma unroll 5
    for (int e = (int)threadIdx.x; e < SAMPLES * n; e += THREADS)
        to[e] = e / n < s.n_there ? __ldg(from + s.sample * n + e) : (T)0;
}

/* The second convolution's weights as [map][FRAME][FRAME][input map], zeros around them. */
static __device__ __forceinline__ void load_frames(const float *weights, float *to) {
#pragma unroll 5
    for (int e = (int)threadIdx.x; e < MAPS_2 * FRAMED; e += THREADS) {
        int i = e % MAPS_1, x = e / MAPS_1 % FRAME - 1, y = e / MAPS_1 / FRAME % FRAME - 1;
        bool is_there = (unsigned)x < K && (unsigned)y < K;
        int from = (e / FRAMED * MAPS_1 + i) * TAPS + y * K + x;
        to[e] = is_there ? __ldg(weights + from) : 0.0f;
    }
}

/* From the features' gradient to that of the second convolution's maxima. */
static __device__ __forceinline__ void linear_layers(const spot &s, const cuda_lenet &v,
                                                     float *shared) {
    float4 *parts = (float4 *)(shared + AT_PARTS), *hidden = (float4 *)(shared + AT_HIDDEN);
    const uint8_t *places = (const uint8_t *)(shared + AT_PLACES_2);
    multiply_linear<FEATURES, HIDDEN>(s, s.params + v.weight[CUDA_LENET_FC_2],
                                      (const float4 *)(shared + AT_FEATURES), parts);
    __syncthreads();
    for (int o = (int)threadIdx.x; o < HIDDEN; o += THREADS) {
        float d[4];
        add_parts<HIDDEN>(parts, o, d);
#pragma unroll
        for (int b = 0; b < SAMPLES; b++) {
            size_t at = (s.sample + b) * HIDDEN + o;
            if (b >= s.n_there || v.hidden[at] <= 0.0f) d[b] = 0.0f;
            if (b < s.n_there) v.dhidden[at] = d[b];
        }
        hidden[o] = make_float4(d[0], d[1], d[2], d[3]);
    }
    __syncthreads();
    multiply_linear<HIDDEN, VALUES_2>(s, s.params + v.weight[CUDA_LENET_FC_1], hidden, parts);
    __syncthreads();
    for (int o = (int)threadIdx.x; o < VALUES_2; o += THREADS) {
        float d[4];
        add_parts<VALUES_2>(parts, o, d);
        int at =
            o % WINDOWS_2 * MAPS_2 + o / WINDOWS_2; /* weights have the map before the window */
#pragma unroll
        for (int b = 0; b < SAMPLES; b++)
            shared[AT_D2 + b * VALUES_2 + at] = places[b * VALUES_2 + at] < NOWHERE ? d[b] : 0.0f;
    }
    __syncthreads();
}

/* Gradients of half of the second convolution's maps' weights of a sample, to sums[map][...]. */
static __device__ __forceinline__ void second_weights(const spot &s, const float *maxima,
                                                      const float *d, const uint8_t *places,
                                                      float *sums) {
    constexpr int OWN = MAPS_2 / 2;
    int first = s.warp % 2 * OWN, offset[EACH_2];
    float acc[OWN][EACH_2] = {};
    bool is_bias = s.lane == ONES_2 % 32; /* behind the weights */
#pragma unroll
    for (int j = 0; j < EACH_2; j++) {
        int e = s.lane + 32 * j, tap = e / MAPS_1;
        offset[j] = e < ONES_2 ? (tap / K * SIDE_1 + tap % K) * MAPS_1 + e % MAPS_1 : 0;
    }
#pragma unroll 1
    for (int window = 0; window < WINDOWS_2; window++) {
        int corner = (window / SIDE_2 * 2 * SIDE_1 + window % SIDE_2 * 2) * MAPS_1;
#pragma unroll
        for (int o = 0; o < OWN; o++) {
            int at = window * MAPS_2 + first + o, place = places[at];
            float g = d[at];
            const float *x = maxima + corner + ((place >> 1 & 1) * SIDE_1 + (place & 1)) * MAPS_1;
#pragma unroll
            for (int j = 0; j < EACH_2; j++)
                acc[o][j] = fmaf(g, j == EACH_2 - 1 && is_bias ? 1.0f : x[offset[j]], acc[o][j]);
        }
    }
#pragma unroll
    for (int o = 0; o < OWN; o++)
#pragma unroll
        for (int j = 0; j < EACH_2; j++)
            if (s.lane + 32 * j <= ONES_2)
                sums[(first + o) * (ONES_2 + 1) + s.lane + 32 * j] = acc[o][j];
}

/* The warp's copy of the gradient of the first convolution's maxima, of every second window. */
static __device__ __forceinline__ void second_data(const spot &s, const float *frames,
                                                   const float *d, const uint8_t *places,
                                                   float *copy) {
    int weight[EACH_REACHED], to[EACH_REACHED];
#pragma unroll
    for (int j = 0; j < EACH_REACHED; j++) {
        int e = min(s.lane + 32 * j, REACHED - 1), i = e % MAPS_1;
        int x = e / MAPS_1 % REACH, y = e / MAPS_1 / REACH;
        weight[j] = ((y + 1) * FRAME + x + 1) * MAPS_1 + i;
        to[j] = (y * SIDE_1 + x) * MAPS_1 + i;
    }
    for (int e = s.lane; e < VALUES_1; e += 32) copy[e] = 0.0f;
    __syncwarp();
#pragma unroll 1
    for (int window = s.warp % 2; window < WINDOWS_2; window += 2) {
        float acc[EACH_REACHED] = {};
#pragma unroll 4
        for (int o = 0; o < MAPS_2; o++) {
            int at = window * MAPS_2 + o, place = places[at];
            float g = d[at];
            const float *w =
                frames + o * FRAMED - ((place >> 1 & 1) * FRAME + (place & 1)) * MAPS_1;
#pragma unroll
            for (int j = 0; j < EACH_REACHED; j++) acc[j] = fmaf(g, w[weight[j]], acc[j]);
        }
        float *corner = copy + (window / SIDE_2 * 2 * SIDE_1 + window % SIDE_2 * 2) * MAPS_1;
#pragma unroll
        for (int j = 0; j < EACH_REACHED; j++)
            if (s.lane + 32 * j < REACHED) corner[to[j]] += acc[j];
        __syncwarp(); /* the next window's pixels are other lanes' */
    }
}

/* Gradients of the first convolution's weights (lanes are taps) and bias of a quarter of a sample's
 * windows; d has both copies, `other` floats apart. */
static __device__ __forceinline__ void first_weights(const spot &s, const float *picture,
                                                     const float *d, int other,
                                                     const uint8_t *places, float *sums) {
    constexpr int QUARTER = WINDOWS_1 / 4;
    int tap = min(s.lane, TAPS - 1), offset = tap / K * PITCH + tap % K;
    float acc[MAPS_1] = {};
    bool is_one = s.lane == TAPS;
#pragma unroll 2
    for (int k = 0; k < QUARTER; k++) {
        int window = s.warp % 4 * QUARTER + k;
        const float *x = picture + window / SIDE_1 * 2 * PITCH + window % SIDE_1 * 2 + offset;
#pragma unroll
        for (int o = 0; o < MAPS_1; o++) {
            int at = window * MAPS_1 + o, place = places[at];
            float g = place < NOWHERE ? d[at] + d[at + other] : 0.0f;
            float in = x[(place >> 1 & 1) * PITCH + (place & 1)];
            acc[o] = fmaf(g, is_one ? 1.0f : in, acc[o]);
        }
    }
#pragma unroll
    for (int o = 0; o < MAPS_1; o++)
        if (s.lane <= TAPS) sums[o * (TAPS + 1) + s.lane] = acc[o];
}

/* The block's sums over its samples, in order. */
static __device__ __forceinline__ void write_sums(const float *shared, float *to) {
    for (int e = (int)threadIdx.x; e < SUMS; e += THREADS) {
        bool is_second = e < SUMS_2;
        const float *from = shared + (is_second ? AT_SUMS + e : AT_WEIGHTS + e - SUMS_2);
        float sum = 0.0f;
        for (int k = 0; k < (is_second ? (int)SAMPLES : (int)WARPS); k++)
            sum += from[k * (is_second ? (int)SUMS_2 : (int)SUMS_1)];
        to[e] = sum;
    }
}

static __global__ void __launch_bounds__(THREADS, 1)
    back_kernel(const __grid_constant__ lenet_call c) {
    extern __shared__ __align__(256) float shared[];
    const cuda_lenet &v = c.v;
    spot s = spot_of(c);
    if (s.n_there <= 0) return;
    uint8_t *places_1 = (uint8_t *)(shared + AT_PLACES_1);
    uint8_t *places_2 = (uint8_t *)(shared + AT_PLACES_2);
    int b = s.warp / 4;
    for (int e = (int)threadIdx.x; e < FEATURES * SAMPLES; e += THREADS) { /* [feature][sample] */
        bool is_there = e % SAMPLES < s.n_there;
        const float *from = v.dfeatures + (s.sample + e % SAMPLES) * FEATURES + e / SAMPLES;
        shared[AT_FEATURES + e] = is_there ? *from : 0.0f;
    }
    load_samples(s, v.places[1], VALUES_2, places_2);
    load_samples(s, v.places[0], VALUES_1, places_1);
    load_samples(s, v.maxima[0], VALUES_1, shared + AT_MAXIMA);
#pragma unroll 4
    for (int e = (int)threadIdx.x; e < SAMPLES * PICTURE; e += THREADS)
        shared[e] = picture_value(s, v.x, e);
    load_frames(s.params + v.weight[CUDA_LENET_CONV_2], shared + AT_WEIGHTS);
    __syncthreads();
    linear_layers(s, v, shared);
    const float *d2 = shared + AT_D2 + b * VALUES_2;
    float *copies = shared + AT_PARTS + 2 * b * VALUES_1;
    if (s.warp % 4 < 2)
        second_data(s, shared + AT_WEIGHTS, d2, places_2 + b * VALUES_2,
                    copies + s.warp % 2 * VALUES_1);
    else
        second_weights(s, shared + AT_MAXIMA + b * VALUES_1, d2, places_2 + b * VALUES_2,
                       shared + AT_SUMS + b * SUMS_2);
    __syncthreads();
    first_weights(s, shared + b * PICTURE, copies, VALUES_1, places_1 + b * VALUES_1,
                  shared + AT_WEIGHTS + s.warp * SUMS_1);
    __syncthreads();
    write_sums(shared, c.partial + ((size_t)blockIdx.y * gridDim.x + blockIdx.x) * SUMS);
}

enum { JOIN_THREADS = 128 };

/* Adds up a job's blocks. Grid: x over sums, y = job. 4 bytes a partial sum read. */
static __global__ void __launch_bounds__(JOIN_THREADS)
    join_kernel(const cuda_job *jobs, int n_blocks, const float *partial, cuda_lenet v,
                float *grads, size_t stride) {
    int e = (int)(blockIdx.x * JOIN_THREADS + threadIdx.x);
    if (e >= SUMS) return;
    const cuda_job job = jobs[blockIdx.y];
    const float *from = partial + (size_t)blockIdx.y * n_blocks * SUMS + e;
    float sum = 0.0f;
#pragma unroll 8
    for (int k = 0; k * SAMPLES < job.n; k++) sum += from[(size_t)k * SUMS];
    int layer = e < SUMS_2 ? CUDA_LENET_CONV_2 : CUDA_LENET_CONV_1;
    int per = layer == CUDA_LENET_CONV_2 ? ONES_2 + 1 : TAPS + 1, at = e < SUMS_2 ? e : e - SUMS_2;
    int o = at / per, k = at % per, n_in = layer == CUDA_LENET_CONV_2 ? MAPS_1 : 1;
    float *row = grads + job.out * stride;
    if (k == per - 1)
        row[v.bias[layer] + o] = sum;
    else
        row[v.weight[layer] + (o * n_in + k % n_in) * TAPS + k / n_in] = sum;
}

size_t ct_cuda_lenet_partial(int n_most) {
    return (size_t)((n_most + SAMPLES - 1) / SAMPLES) * SUMS;
}

ct_status ct_cuda_lenet_backward(const cuda_run *run, const cuda_lenet *lenet) {
    lenet_call c = call_of(run, lenet);
    int n_blocks = (run->n_max + SAMPLES - 1) / SAMPLES;
    dim3 grid((unsigned)n_blocks, (unsigned)run->n_jobs);
    CT_TRY(launch_kernel(run, back_kernel, grid, THREADS, FLOATS * sizeof(float), c));
    dim3 all((SUMS + JOIN_THREADS - 1) / JOIN_THREADS, (unsigned)run->n_jobs);
    return launch_kernel(run, join_kernel, all, JOIN_THREADS, 0, run->jobs_dev, n_blocks,
                         (const float *)run->partial_dev, *lenet, run->grads_dev,
                         run->grads_stride);
}
