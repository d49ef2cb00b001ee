/* Pictures of a batch as tensors: x[h][w][c] = table[c][pixel (h + dy, w + dx)], black outside,
 * mirrored with flip. Grid: x over pixels, y = sample, z = job. 1 byte read and 4 written a value.
 */
#include "backend/cuda/device.cuh"

static __global__ void gather_kernel(const cuda_job *jobs, int n_max, cuda_images images,
                                     const cuda_sample *samples, float *out, int32_t *labels) {
    const cuda_job job = jobs[blockIdx.z];
    int b = (int)blockIdx.y;
    if (b >= job.n) return;
    const cuda_sample s = samples[(size_t)job.batch * n_max + b];
    size_t at = (size_t)blockIdx.z * n_max + b;
    int plane = images.h * images.w, p = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (p == 0) labels[at] = images.labels_dev[s.index];
    if (p >= plane) return;
    int y = p / images.w, x = p % images.w;
    int from_y = y + s.dy, from_x = (s.flip ? images.w - 1 - x : x) + s.dx;
    bool inside = from_y >= 0 && from_y < images.h && from_x >= 0 && from_x < images.w;
    const uint8_t *picture = images.pixels_dev + (size_t)s.index * images.c * plane;
    for (int c = 0; c < images.c; c++) {
        int pixel = inside ? picture[(size_t)c * plane + from_y * images.w + from_x] : 0;
        out[(at * plane + p) * images.c + c] = images.table_dev[c * 256 + pixel];
    }
}

ct_status ct_cuda_gather(const cuda_run *run, const cuda_images *images,
                         const cuda_sample *samples_dev, float *out_dev, int32_t *labels_dev) {
    unsigned n_blocks = (unsigned)(images->h * images->w + 255) / 256;
    dim3 grid(n_blocks, (unsigned)run->n_max, (unsigned)run->n_jobs);
    gather_kernel<<<grid, 256, 0, run->stream>>>(run->jobs_dev, run->n_max, *images, samples_dev,
                                                 out_dev, labels_dev);
    CT_CUDA_LAUNCHED();
    return CT_OK;
}
