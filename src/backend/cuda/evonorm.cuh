/* What the kernels of norms share: a call, and those of EvoNorm: one to eight neighbouring values
 * of either element, EvoNorm's derivative, and launches by element. */
#ifndef CT_BACKEND_CUDA_EVONORM_CUH
#define CT_BACKEND_CUDA_EVONORM_CUH

#include "backend/cuda/mma.cuh"

typedef struct norm_call {
    const cuda_job *jobs;
    int n_max;
    cuda_norm norm;
    int wide, n_groups; /* evonorm_group.cu: channels and groups of a block */
    const float *params;
    size_t stride;
    const void *x, *residual, *dy;
    float *stats;
    void *y;     /* the output, or dx */
    float *sums; /* backward: per-sample sums */
} norm_call;

template <int VEC> struct alignas(VEC >= 4 ? 16 : 4 * VEC) values { float at[VEC]; };

static __device__ __forceinline__ void load(const float *from, values<1> &v) {
    v.at[0] = from[0];
}

static __device__ __forceinline__ void load(const bf16 *from, values<1> &v) {
    v.at[0] = __bfloat162float(from[0]);
}

template <class T> static __device__ __forceinline__ void load(const T *from, values<2> &v) {
    *(float2 *)v.at = load_two(from);
}

template <class T> static __device__ __forceinline__ void load(const T *from, values<4> &v) {
    *(float4 *)v.at = load_four(from);
}

template <class T> static __device__ __forceinline__ void load(const T *from, values<8> &v) {
    load_eight(from, (float4 *)v.at);
}

static __device__ __forceinline__ void store(float *to, const values<1> &v) {
    to[0] = v.at[0];
}

static __device__ __forceinline__ void store(bf16 *to, const values<1> &v) {
    to[0] = __float2bfloat16_rn(v.at[0]);
}

template <class T> static __device__ __forceinline__ void store(T *to, const values<2> &v) {
    store_two(to, *(const float2 *)v.at);
}

template <class T> static __device__ __forceinline__ void store(T *to, const values<4> &v) {
    store_four(to, *(const float4 *)v.at);
}

template <class T> static __device__ __forceinline__ void store(T *to, const values<8> &v) {
    store_eight(to, (const float4 *)v.at);
}

/* Numerator x s(x) and its derivative. */
static __device__ __forceinline__ float gated(float x, float *slope) {
    float u = fmaf(x, 1.0f / 6.0f, 0.5f), s = fminf(fmaxf(u, 0.0f), 1.0f);
    *slope = u > 0.0f && u < 1.0f ? fmaf(x, 1.0f / 6.0f, s) : s;
    return x * s;
}

static inline norm_call call_of(const cuda_run *run, const cuda_norm_call *call) {
    norm_call c = {};
    c.jobs = run->jobs_dev, c.n_max = run->n_max, c.norm = call->norm;
    c.params = run->params_dev, c.stride = run->params_stride;
    c.x = call->x, c.stats = call->stats;
    return c;
}

static inline norm_call forward_call(const cuda_run *run, const cuda_norm_call *call) {
    norm_call c = call_of(run, call);
    c.residual = call->added, c.y = call->y;
    return c;
}

static inline norm_call back_call(const cuda_run *run, const cuda_norm_call *call) {
    norm_call c = call_of(run, call);
    c.dy = call->dy, c.y = call->dx, c.sums = sums_at(run, call->sums);
    return c;
}

/* f<TX, TY>(...) for the elements of a norm's input and output. */
#define BY_ELEMENTS(e, f, ...)                                                                     \
    ((e).in == CUDA_FP32                                                                           \
         ? ((e).out == CUDA_FP32 ? f<float, float>(__VA_ARGS__) : f<float, bf16>(__VA_ARGS__))     \
         : ((e).out == CUDA_FP32 ? f<bf16, float>(__VA_ARGS__) : f<bf16, bf16>(__VA_ARGS__)))

#endif
