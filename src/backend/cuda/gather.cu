/* Pictures of a batch as tensors: x[h][w][c] = table[c][pixel (h + dy, w + dx)], black outside,
 * mirrored with flip; of any numbers instead of pixels x = (value - mean) / deviation, in place.
 * Grid: x over groups of pixels, y = sample, z = job. 1 byte (of any numbers 4) read and 4 written a
 * value. A thread reads EACH pixels at once; their colours are put in line in shared memory, so
 * that every line of memory is written once and whole. */
#include "backend/cuda/device.cuh"
#include "backend/cuda/element.cuh"

enum { THREADS = 256, EACH = 4, SPAN = THREADS * EACH /* pixels of a block */ };

/* Colour c of pixel (x, y) of the tensor. */
static __device__ __forceinline__ float colour_of(const cuda_images &images, const cuda_sample &s,
                                                  const uint8_t *picture, int y, int x, int c) {
    int plane = images.h * images.w;
    int from_y = y + s.dy, from_x = (s.flip ? images.w - 1 - x : x) + s.dx;
    bool inside = from_y >= 0 && from_y < images.h && from_x >= 0 && from_x < images.w;
    int pixel = inside ? picture[(size_t)c * plane + from_y * images.w + from_x] : 0;
    return images.table_dev[c * 256 + pixel];
}

static __device__ __forceinline__ float colour_of(const cuda_images &images, const cuda_sample &,
                                                  const float *picture, int y, int x, int c) {
    const float *scale = images.table_dev + 2 * c;
    return (picture[(size_t)c * (images.h * images.w) + y * images.w + x] - scale[0]) / scale[1];
}

template <int COLOURS, typename STORED>
static __global__ void __launch_bounds__(THREADS)
    gather_kernel(const cuda_job *jobs, int n_max, cuda_images images, const cuda_sample *samples,
                  float *out, int32_t *labels) {
    __shared__ __align__(16) float line[SPAN * COLOURS];
    const cuda_job job = jobs[blockIdx.z];
    int b = (int)blockIdx.y, first = (int)blockIdx.x * SPAN, plane = images.h * images.w;
    if (b >= job.n) return;
    const cuda_sample s = samples[(size_t)job.batch * n_max + b];
    size_t at = (size_t)blockIdx.z * n_max + b;
    const STORED *picture = (const STORED *)images.stored_dev + (size_t)s.index * COLOURS * plane;
    float *to = out + (at * plane + first) * COLOURS;
    int n = min(SPAN, plane - first);
    if (first + threadIdx.x == 0) labels[at] = images.labels_dev[s.index];
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        int p = (int)threadIdx.x + k * THREADS, y = (first + p) / images.w;
        int x = first + p - y * images.w;
#pragma unroll
        for (int c = 0; c < COLOURS; c++)
            line[p * COLOURS + c] = p < n ? colour_of(images, s, picture, y, x, c) : 0.0f;
    }
    __syncthreads();
    bool in_quads = plane * COLOURS % 4 == 0; /* pictures and spans begin on whole quads */
    int n_values = n * COLOURS, n_quads = in_quads ? n_values / 4 : 0;
    for (int i = (int)threadIdx.x; i < n_quads; i += THREADS)
        ((float4 *)to)[i] = ((const float4 *)line)[i];
    for (int i = 4 * n_quads + (int)threadIdx.x; i < n_values; i += THREADS) to[i] = line[i];
}

/* Of any number of colours. */
template <typename STORED>
static __global__ void gather_any_kernel(const cuda_job *jobs, int n_max, cuda_images images,
                                         const cuda_sample *samples, float *out, int32_t *labels) {
    const cuda_job job = jobs[blockIdx.z];
    int b = (int)blockIdx.y, plane = images.h * images.w;
    if (b >= job.n) return;
    const cuda_sample s = samples[(size_t)job.batch * n_max + b];
    size_t at = (size_t)blockIdx.z * n_max + b;
    const STORED *picture = (const STORED *)images.stored_dev + (size_t)s.index * images.c * plane;
    int first = (int)blockIdx.x * SPAN + (int)threadIdx.x, last = min(plane, first + SPAN);
    if (first == 0) labels[at] = images.labels_dev[s.index];
    for (int p = first; p < last; p += THREADS)
        for (int c = 0; c < images.c; c++)
            out[(at * plane + p) * images.c + c] =
                colour_of(images, s, picture, p / images.w, p % images.w, c);
}

/* Pair `at` of a sample, (y, x) its first pixel; false: a border. */
static __device__ __forceinline__ bool find_pair(const cuda_pairs &pairs, int at, int *y, int *x) {
    int parity = at >= pairs.size, pitch = pairs.border + pairs.width;
    at -= parity * pairs.size;
    int row = at / pitch, column = at - row * pitch - pairs.border;
    row -= pairs.border;
    *y = 2 * row + parity, *x = 2 * column;
    return row >= 0 && row < pairs.height && column >= 0;
}

/* As pairs of up to 4 colours, zeros where there is no picture. 2 bytes read and 5 or 6 written a
 * value. Grid: x over groups of pairs, y = sample, z = job. */
template <typename STORED>
static __global__ void __launch_bounds__(THREADS)
    pairs_kernel(const cuda_job *jobs, int n_max, cuda_images images, const cuda_sample *samples,
                 cuda_pairs pairs, uint4 *out, int32_t *labels) {
    const cuda_job job = jobs[blockIdx.z];
    int b = (int)blockIdx.y, first = (int)(blockIdx.x * SPAN + threadIdx.x);
    if (b >= job.n) return;
    const cuda_sample s = samples[(size_t)job.batch * n_max + b];
    size_t sample = (size_t)blockIdx.z * n_max + b;
    const STORED *picture =
        (const STORED *)images.stored_dev + (size_t)s.index * images.c * (images.h * images.w);
    if (first == 0) labels[sample] = images.labels_dev[s.index];
    uint4 packed[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        int at = first + k * THREADS, y, x;
        bool is_there = find_pair(pairs, at, &y, &x) && y < images.h;
        float v[2][4] = {};
#pragma unroll
        for (int c = 0; c < 4; c++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                if (is_there && c < images.c && x + e < images.w)
                    v[e][c] = colour_of(images, s, picture, y, x + e, c);
        packed[k] = make_uint4(pack_bf16(v[0][0], v[0][1]), pack_bf16(v[0][2], v[0][3]),
                               pack_bf16(v[1][0], v[1][1]), pack_bf16(v[1][2], v[1][3]));
    }
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (first + k * THREADS < 2 * pairs.size)
            out[sample * 2 * pairs.size + first + k * THREADS] = packed[k];
}

typedef void any_kernel(const cuda_job *, int, cuda_images, const cuda_sample *, float *,
                        int32_t *);

template <typename STORED> static any_kernel *kernel_of(int n_colours) {
    return n_colours == 1   ? gather_kernel<1, STORED>
           : n_colours == 3 ? gather_kernel<3, STORED>
                            : gather_any_kernel<STORED>;
}

static ct_status gather_pairs(const cuda_run *run, const cuda_images *images,
                              const cuda_sample *samples_dev, const cuda_pairs *pairs,
                              uint4 *out_dev, int32_t *labels_dev) {
    unsigned n_blocks = (unsigned)(2 * pairs->size + SPAN - 1) / SPAN;
    dim3 grid(n_blocks, (unsigned)run->n_max, (unsigned)run->n_jobs);
    return launch_kernel(run, images->is_pixels ? pairs_kernel<uint8_t> : pairs_kernel<float>, grid,
                         THREADS, 0, run->jobs_dev, run->n_max, *images, samples_dev, *pairs,
                         out_dev, labels_dev);
}

ct_status ct_cuda_gather(const cuda_run *run, const cuda_images *images,
                         const cuda_sample *samples_dev, const cuda_pairs *pairs, void *out_dev,
                         int32_t *labels_dev) {
    if (pairs->size > 0)
        return gather_pairs(run, images, samples_dev, pairs, (uint4 *)out_dev, labels_dev);
    unsigned n_blocks = (unsigned)(images->h * images->w + SPAN - 1) / SPAN;
    dim3 grid(n_blocks, (unsigned)run->n_max, (unsigned)run->n_jobs);
    any_kernel *kernel =
        images->is_pixels ? kernel_of<uint8_t>(images->c) : kernel_of<float>(images->c);
    return launch_kernel(run, kernel, grid, THREADS, 0, run->jobs_dev, run->n_max, *images,
                         samples_dev, (float *)out_dev, labels_dev);
}
