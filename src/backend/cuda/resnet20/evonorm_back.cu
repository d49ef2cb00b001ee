/* EvoNorm (hard sigmoid) backward with a sample's x and dy in registers between the sums and their
 * use; the equations are those of backend/ref/norm.c. Grid: x = sample, y = job, 1024 threads. 12
 * bytes a value: x and dy are read once, dx is written once, rounded to tf32 as the convolutions
 * that read it would. Limits: 16 or 32 channels in 8 groups, 16 Ki or 8 Ki values. On an H200, 512
 * samples: 33 and 19 us against 61 and 27 of norm.cu; with 64 channels of 64 pixels norm.cu is
 * faster (12 us against 14). */
#include "backend/cuda/evonorm.cuh"

enum { THREADS = 1024, WARPS = THREADS / 32, GROUPS = 8 };

/* Adds up the threads that have the same four channels; totals [2][C] are there afterwards. */
template <int C>
static __device__ __forceinline__ void add_up(float part[2][4], float (*warps)[2][C],
                                              float (*totals)[C]) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
    for (int k = 0; k < 2; k++)
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int m = 16; m >= C / 4; m >>= 1)
                part[k][i] += __shfl_xor_sync(0xffffffffu, part[k][i], m);
    if (lane < C / 4)
#pragma unroll
        for (int k = 0; k < 2; k++)
#pragma unroll
            for (int i = 0; i < 4; i++) warps[warp][k][lane * 4 + i] = part[k][i];
    __syncthreads();
    if ((int)threadIdx.x < 2 * C) {
        float sum = 0.0f;
        for (int w = 0; w < WARPS; w++) sum += warps[w][threadIdx.x / C][threadIdx.x % C];
        totals[threadIdx.x / C][threadIdx.x % C] = sum;
    }
    __syncthreads();
}

/* check: long because the two passes share the registers they are about */
template <int C, int QUADS>
static __global__ void __launch_bounds__(THREADS) backward_kernel(norm_call c) {
    constexpr int WIDE = C / GROUPS, SIZE = 4 * QUADS * THREADS;
    __shared__ float warps[WARPS][2][C], totals[2][C], stats[GROUPS][2], with_x[GROUPS];
    const cuda_job job = c.jobs[blockIdx.y];
    if ((int)blockIdx.x >= job.n) return;
    size_t sample = (size_t)blockIdx.y * c.n_max + blockIdx.x;
    int channel = (int)threadIdx.x % (C / 4) * 4;
    const float *w = c.params + job.model * c.stride + c.norm.weight;
    const float4 *x4 = (const float4 *)((const float *)c.x + sample * SIZE);
    const float4 *dy4 = (const float4 *)((const float *)c.dy + sample * SIZE);
    float4 x[QUADS], dy[QUADS];
#pragma unroll
    for (int k = 0; k < QUADS; k++) {
        x[k] = x4[threadIdx.x + k * THREADS];
        dy[k] = dy4[threadIdx.x + k * THREADS];
    }
    if (threadIdx.x < 2 * GROUPS)
        stats[threadIdx.x / 2][threadIdx.x % 2] = c.stats[sample * 2 * GROUPS + threadIdx.x];
    float part[2][4] = {}, slope;
#pragma unroll
    for (int k = 0; k < QUADS; k++) {
        part[0][0] = fmaf(dy[k].x, gated(x[k].x, &slope), part[0][0]), part[1][0] += dy[k].x;
        part[0][1] = fmaf(dy[k].y, gated(x[k].y, &slope), part[0][1]), part[1][1] += dy[k].y;
        part[0][2] = fmaf(dy[k].z, gated(x[k].z, &slope), part[0][2]), part[1][2] += dy[k].z;
        part[0][3] = fmaf(dy[k].w, gated(x[k].w, &slope), part[0][3]), part[1][3] += dy[k].w;
    }
    add_up<C>(part, warps, totals);
    if (threadIdx.x < GROUPS) {
        float sum = 0.0f;
        for (int k = 0; k < WIDE; k++)
            sum = fmaf(w[threadIdx.x * WIDE + k], totals[0][threadIdx.x * WIDE + k], sum);
        with_x[threadIdx.x] = sum / (float)(SIZE / GROUPS);
    }
    if ((int)threadIdx.x < 2 * C) {
        int ch = (int)threadIdx.x % C;
        float scale = (int)threadIdx.x < C ? stats[ch / WIDE][1] : 1.0f;
        c.sums[sample * 2 * C + threadIdx.x] = totals[threadIdx.x / C][ch] * scale;
    }
    __syncthreads();
    float mean[4], inv[4], back[4], scaled[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int group = (channel + i) / WIDE;
        mean[i] = stats[group][0], inv[i] = stats[group][1];
        back[i] = inv[i] * inv[i] * inv[i] * with_x[group];
        scaled[i] = w[channel + i] * inv[i];
    }
    float4 *out = (float4 *)((float *)c.y + sample * SIZE);
#pragma unroll
    for (int k = 0; k < QUADS; k++) {
        float4 d;
        gated(x[k].x, &slope), d.x = dy[k].x * scaled[0] * slope - back[0] * (x[k].x - mean[0]);
        gated(x[k].y, &slope), d.y = dy[k].y * scaled[1] * slope - back[1] * (x[k].y - mean[1]);
        gated(x[k].z, &slope), d.z = dy[k].z * scaled[2] * slope - back[2] * (x[k].z - mean[2]);
        gated(x[k].w, &slope), d.w = dy[k].w * scaled[3] * slope - back[3] * (x[k].w - mean[3]);
        d.x = to_tf32(d.x), d.y = to_tf32(d.y), d.z = to_tf32(d.z), d.w = to_tf32(d.w);
        out[threadIdx.x + k * THREADS] = d;
    }
}

static bool fits(const cuda_norm_call *call, bool backward) {
    const cuda_norm *n = &call->norm;
    int size = n->channels * n->pixels;
    return backward && call->is_inner && n->groups == GROUPS && n->slope == CUDA_NO_PARAM &&
           ((n->channels == 16 && size == 16384) || (n->channels == 32 && size == 8192));
}

static ct_status backward(const cuda_run *run, const cuda_norm_call *call) {
    norm_call c = back_call(run, call);
    dim3 grid((unsigned)run->n_max, (unsigned)run->n_jobs);
    return launch_kernel(
        run, call->norm.channels == 16 ? backward_kernel<16, 4> : backward_kernel<32, 2>, grid,
        THREADS, 0, c);
}

const cuda_norm_kernels ct_cuda_norm_resnet20 = {fits, NULL, backward};
