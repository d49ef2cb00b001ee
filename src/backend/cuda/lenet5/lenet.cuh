/* What lenet.cu and lenet_back.cu share, who say before how many WARPS a block has and what the
 * PITCH of a picture's rows in shared memory is, in floats. A block has 4 samples, which share its warps evenly in the
 * convolutions. Linear layers: a warp takes one of 8 parts of the inputs, a lane quads of outputs
 * for all samples; the parts are added up in order. */
#ifndef CT_BACKEND_CUDA_LENET5_LENET_CUH
#define CT_BACKEND_CUDA_LENET5_LENET_CUH

#include "backend/cuda/device.cuh"
#include "backend/cuda/lenet5/lenet5.h"

enum { SAMPLES = 4, THREADS = 32 * WARPS, TAPS = 25, K = 5 }; /* WARPS, PITCH: see there */
enum { PARTS = 8 };                                           /* of a linear layer's inputs */
enum { SIDE = 28, PADDED = 32, PICTURE = PADDED * PITCH }; /* with two pixels of zeros around it */
enum { SIDE_1 = 14, WINDOWS_1 = SIDE_1 * SIDE_1, MAPS_1 = 6, VALUES_1 = WINDOWS_1 * MAPS_1 };
enum { SIDE_2 = 5, WINDOWS_2 = SIDE_2 * SIDE_2, MAPS_2 = 16, VALUES_2 = WINDOWS_2 * MAPS_2 };
enum { HIDDEN = 120, FEATURES = 84, NOWHERE = 4 /* place of a maximum that is not above zero */ };

typedef struct lenet_call {
    const cuda_job *jobs;
    int n_max;
    const float *packed, *params;
    size_t packed_stride, params_stride;
    float *partial;
    cuda_lenet v;
} lenet_call;

/* What a block works on. */
typedef struct spot {
    const float *packed, *params; /* of its model */
    size_t sample;                /* its first one */
    int n_there;
    int lane, warp;
} spot;

static inline lenet_call call_of(const cuda_run *run, const cuda_lenet *v) {
    lenet_call c = {};
    c.jobs = run->jobs_dev, c.n_max = run->n_max, c.v = *v, c.partial = run->partial_dev;
    c.packed = run->packed_dev, c.packed_stride = run->packed_stride;
    c.params = run->params_dev, c.params_stride = run->params_stride;
    return c;
}

static __device__ __forceinline__ spot spot_of(const lenet_call &c) {
    const cuda_job job = c.jobs[blockIdx.y];
    int first = (int)blockIdx.x * SAMPLES;
    return {c.packed + job.model * c.packed_stride,
            c.params + job.model * c.params_stride,
            (size_t)blockIdx.y * c.n_max + first,
            min((int)SAMPLES, job.n - first),
            (int)threadIdx.x & 31,
            (int)threadIdx.x >> 5};
}

/* Value e of the block's pictures with their borders; samples that are not there are zero. */
static __device__ __forceinline__ float picture_value(const spot &s, const float *x, int e) {
    int b = e / PICTURE, y = e / PITCH % PADDED - 2, x0 = e % PITCH - 2;
    bool is_there = b < s.n_there && (unsigned)y < SIDE && (unsigned)x0 < SIDE;
    return is_there ? __ldg(x + (s.sample + b) * (SIDE * SIDE) + y * SIDE + x0) : 0.0f;
}

/* parts[part][output] = sums over a part of the inputs of in[input] (of the four samples) times
 * weights[input][output]. */
template <int INPUTS, int OUTPUTS>
static __device__ __forceinline__ void multiply_linear(const spot &s, const float *weights,
                                                       const float4 *in, float4 *parts) {
    constexpr int EACH = (INPUTS + PARTS - 1) / PARTS, QUADS = OUTPUTS / 4, LANES = 4 * WARPS;
    constexpr int OWN = (QUADS + LANES - 1) / LANES, AHEAD = OWN > 1 ? 5 : 10;
    float sums[OWN][4][4] = {}; /* output, sample */
    int part = s.warp % PARTS, first = s.warp / PARTS * 32 + s.lane;
    int last = min(INPUTS, (part + 1) * EACH);
#pragma unroll AHEAD
    for (int k = part * EACH; k < last; k++) {
        float4 x = in[k];
#pragma unroll
        for (int j = 0; j < OWN; j++) {
            int quad = first + LANES * j;
            float4 w = make_float4(0, 0, 0, 0);
            if (quad < QUADS) w = __ldg((const float4 *)(weights + (size_t)k * OUTPUTS) + quad);
            float ws[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
            for (int o = 0; o < 4; o++) {
                sums[j][o][0] = fmaf(ws[o], x.x, sums[j][o][0]);
                sums[j][o][1] = fmaf(ws[o], x.y, sums[j][o][1]);
                sums[j][o][2] = fmaf(ws[o], x.z, sums[j][o][2]);
                sums[j][o][3] = fmaf(ws[o], x.w, sums[j][o][3]);
            }
        }
    }
#pragma unroll
    for (int j = 0; j < OWN; j++)
#pragma unroll
        for (int o = 0; o < 4; o++)
            if (first + LANES * j < QUADS)
                parts[part * OUTPUTS + (first + LANES * j) * 4 + o] =
                    make_float4(sums[j][o][0], sums[j][o][1], sums[j][o][2], sums[j][o][3]);
}

/* An output's parts, added up in order, of all samples. */
template <int OUTPUTS>
static __device__ __forceinline__ void add_parts(const float4 *parts, int output, float sum[4]) {
    sum[0] = sum[1] = sum[2] = sum[3] = 0.0f;
#pragma unroll
    for (int w = 0; w < PARTS; w++) {
        float4 p = parts[w * OUTPUTS + output];
        sum[0] += p.x, sum[1] += p.y, sum[2] += p.z, sum[3] += p.w;
    }
}

#endif
