/* Labelled images as they are stored, in device memory. */

#include "backend/cuda/cuda_internal.h"
#include "util/memory.h"

static size_t round_up(size_t n) {
    return (n + 255) / 256 * 256;
}

static ct_status upload(cuda_source *source, const ct_images *images, const float *table,
                        size_t table_bytes) {
    size_t n_bytes = images->n * ct_image_bytes(images);
    size_t labels_at = round_up(table_bytes);
    size_t images_at = labels_at + round_up(images->n * sizeof(int32_t));
    void *block = NULL;
    CT_TRY(ct_cuda_alloc(images_at + n_bytes, "the data set", &block));
    source->block_dev = block;
    char *dev = block;
    CT_CUDA_TRY(cudaMemcpy(dev, table, table_bytes, cudaMemcpyHostToDevice));
    CT_CUDA_TRY(cudaMemcpy(dev + labels_at, images->labels, images->n * sizeof(int32_t),
                           cudaMemcpyHostToDevice));
    CT_CUDA_TRY(
        cudaMemcpy(dev + images_at, ct_image_at(images, 0), n_bytes, cudaMemcpyHostToDevice));
    source->images = (cuda_images){.stored_dev = dev + images_at,
                                   .is_pixels = images->values == NULL,
                                   .labels_dev = (const int32_t *)(dev + labels_at),
                                   .table_dev = (const float *)dev,
                                   .c = images->channels,
                                   .h = images->height,
                                   .w = images->width};
    return CT_OK;
}

/* What normalises: every pixel's value, or mean and deviation of any numbers (kernels.h). */
static size_t fill_table(const ct_images *images, const float *mean, const float *std,
                         float *table) {
    size_t width = images->values != NULL ? 2 : 256;
    for (int c = 0; c < images->channels; c++, table += width) {
        if (images->values != NULL) {
            table[0] = mean[c];
            table[1] = std[c];
            continue;
        }
        for (int p = 0; p < 256; p++)
            table[p] = (float)((p / 255.0 - (double)mean[c]) / (double)std[c]);
    }
    return (size_t)images->channels * width * sizeof *table;
}

ct_status ct_cuda_source_create(ct_backend *backend, const ct_images *images, const float *mean,
                                const float *std, ct_source **out) {
    CT_SCOPED_BLOCK(float) table = NULL;
    cuda_source *source = NULL;
    CT_TRY(ct_make(&table, (size_t)images->channels * 256, "a data source"));
    CT_TRY(ct_make(&source, 1, "a data source"));
    source->base.backend = backend;
    ct_status status = upload(source, images, table, fill_table(images, mean, std, table));
    if (status == CT_OK)
        *out = &source->base;
    else
        ct_cuda_source_free(&source->base);
    return status;
}

void ct_cuda_source_free(ct_source *base) {
    cuda_source *source = (cuda_source *)base;
    cuda_backend *backend = (cuda_backend *)source->base.backend;
    ct_cuda_forget_graphs(backend);
    cudaStreamSynchronize(backend->stream);
    cudaFree(source->block_dev);
    ct_free(source);
}

/* In the order of the stream: behind whatever still reads the old pixels. The host's memory is not
 * pinned, so the calls return when it has been read. */
ct_status ct_cuda_source_refresh(ct_source *base, const ct_images *images, size_t first, size_t n) {
    cuda_source *source = (cuda_source *)base;
    cudaStream_t stream = ((cuda_backend *)base->backend)->stream;
    size_t image = ct_image_bytes(images);
    CT_CUDA_TRY(cudaMemcpyAsync((void *)(source->images.labels_dev + first), images->labels + first,
                                n * sizeof(int32_t), cudaMemcpyHostToDevice, stream));
    CT_CUDA_TRY(cudaMemcpyAsync((char *)source->images.stored_dev + first * image,
                                ct_image_at(images, first), n * image, cudaMemcpyHostToDevice,
                                stream));
    return CT_OK;
}
