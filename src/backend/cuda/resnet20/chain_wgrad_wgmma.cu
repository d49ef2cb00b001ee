/* Weight gradients of a chain's layers of 64 channels on Hopper, in bf16: as wgrad_bf16.cu, with
 * products of warp groups. Rows = input channels, columns = output channels, k = pixels. Samples lie
 * in planes of eight channels as in chain_wgmma.cuh, so that a tap is where the matrix of x begins.
 * Grid: x = split of a job's pairs of samples, y = job, z = layer. A block's three groups have a row
 * of taps each; pairs come one after the other, the next two on their way while one is multiplied.
 * Reads x and d once (4 bytes a pixel and channel), 2 flops a product; the splits are added up by
 * sums.cu in a fixed order. Limits: 64 channels of 8 squared pixels. */
#include "backend/cuda/resnet20/wgrad_bf16.cuh"
#include "backend/cuda/wgmma.cuh"

enum { C = 64, W = 8, PIXELS = W * W, SAMPLES = 2, STAGES = 3, THREADS = 3 * GROUP };
enum { UNIT = 16 /* bytes: a pixel's eight channels */, UNITS = C / 8, PITCH = (W + 1) * UNIT };
enum { LINES = SAMPLES * (W + 1) + 1, ZEROS = LINES * (W + 1) + 1 /* positions, pixels too */ };
/* half of the banks between two planes, which a quarter of a warp writes to */
enum { X_PLANE = (ZEROS * UNIT + 63) / 128 * 128 + 64, D_PLANE = SAMPLES * PIXELS * UNIT + 64 };
enum { X_BYTES = UNITS * X_PLANE, STAGE = X_BYTES + UNITS * D_PLANE };
enum { ALL = SAMPLES * PIXELS * UNITS /* units of a pair */ };
static_assert(STAGES * STAGE <= CUDA_CHAIN_BYTES && STAGE % 128 == 0, "a block's shared memory");

/* The zeros around the samples. */
static __device__ __forceinline__ void clear_zeros(char *stages) {
    for (int e = (int)threadIdx.x; e < ZEROS; e += THREADS) {
        if (e % (W + 1) != 0 && e / (W + 1) % (W + 1) != 0) continue;
        for (int k = 0; k < STAGES * UNITS; k++)
            *(uint4 *)(stages + k / UNITS * STAGE + k % UNITS * X_PLANE + e * UNIT) =
                make_uint4(0, 0, 0, 0);
    }
}

/* Starts the copy of a pair of samples, n_there of which are there; eight threads that follow each
 * other have two units of four pixels. */
static __device__ __forceinline__ void load_pair(const bf16 *x, const bf16 *d, int n_there,
                                                 char *stage) {
#pragma unroll
    for (int k = 0; k < (ALL + THREADS - 1) / THREADS; k++) {
        int i = (int)threadIdx.x + k * THREADS, lane = i & 31;
        if (i >= ALL) break;
        int pixel = i / 32 * 4 + (lane & 7) / 2, unit = (lane >> 3) * 2 + (lane & 1);
        bool there = pixel / PIXELS < n_there;
        int line = pixel / W + pixel / PIXELS + 1, from = there ? pixel * C + unit * 8 : 0;
        copy_quad(stage + unit * X_PLANE + line * PITCH + (pixel % W + 1) * UNIT, x + from, there);
        copy_quad(stage + X_BYTES + unit * D_PLANE + pixel * UNIT, d + from, there);
    }
}

/* Starts the copies of a job's pair `item`, if there is one: a group of copies. */
static __device__ __forceinline__ void load_item(const wgrad_call &c, int n, int item, int last,
                                                 char *stage) {
    if (item < last) {
        const cuda_wgrad &layer = c.layers[blockIdx.z];
        size_t sample = (size_t)blockIdx.y * c.n_max + item * SAMPLES, at = sample * PIXELS * C;
        load_pair((const bf16 *)layer.x + at, (const bf16 *)layer.d + at, n - item * SAMPLES,
                  stage);
    }
    copies_group();
}

/* Adds a pair's products with the three taps of row u. */
static __device__ __forceinline__ void multiply_pair(uint32_t stage, int u, float sums[3][32]) {
    uint64_t x = plain_matrix_at(stage + u * PITCH, PITCH, X_PLANE);
    uint64_t d = plain_matrix_at(stage + X_BYTES, W * UNIT, D_PLANE);
    products_begin();
#pragma unroll
    for (int row = 0; row < SAMPLES * W; row += 2) /* 16 pixels */
#pragma unroll
        for (int q = 0; q < 3; q++)
            product_64<true>(sums[q], x + ((row + row / W) * PITCH + q * UNIT) / 16,
                             d + row * W * UNIT / 16, 1);
    products_group();
}

/* The group's sums to [tap][i][o]. */
static __device__ __forceinline__ void write_taps(int u, const float sums[3][32], float *out) {
    int lane = threadIdx.x & 31, warp = (int)threadIdx.x / 32 % 4;
    float *to = out + (u * 3 * C + warp * 16 + (lane >> 2)) * C + (lane & 3) * 2;
#pragma unroll
    for (int q = 0; q < 3; q++)
#pragma unroll
        for (int e = 0; e < 32; e += 2)
            store_two(to + (q * C + e / 2 % 2 * 8) * C + e / 4 * 8,
                      make_float2(sums[q][e], sums[q][e + 1]));
}

static __global__ void __launch_bounds__(THREADS, 1)
    wgrad_kernel(const __grid_constant__ wgrad_call c) {
    extern __shared__ __align__(256) char shared[]; /* stages */
    const cuda_job job = c.jobs[blockIdx.y];
    int n_items = (job.n + SAMPLES - 1) / SAMPLES, per = (n_items + c.n_splits - 1) / c.n_splits;
    int first = (int)blockIdx.x * per, last = min(n_items, first + per);
    int u = __shfl_sync(0xffffffffu, (int)threadIdx.x / GROUP, 0);
    clear_zeros(shared);
    load_item(c, job.n, first, last, shared);
    load_item(c, job.n, first + 1, last, shared + STAGE);
    float sums[3][32] = {};
    for (int k = 0; k < last - first; k++) {
        copies_wait_but<1>();
        writes_to_products();
        __syncthreads(); /* everyone's copies are there, and no products are left */
        multiply_pair(shared_at(shared + k % STAGES * STAGE), u, sums);
        load_item(c, job.n, first + k + 2, last, shared + (k + 2) % STAGES * STAGE);
        products_wait_but<0>();
    }
    copies_wait();
    size_t row = (size_t)blockIdx.z * gridDim.y + blockIdx.y;
    write_taps(u, sums, c.partial + (row * c.n_splits + blockIdx.x) * 9 * C * C);
}

ct_status ct_cuda_wgrad_groups(const cuda_run *run, const wgrad_call *c, int n_layers) {
    dim3 grid((unsigned)c->n_splits, (unsigned)run->n_jobs, (unsigned)n_layers);
    return launch_kernel(run, wgrad_kernel, grid, THREADS, STAGES * STAGE, *c);
}
