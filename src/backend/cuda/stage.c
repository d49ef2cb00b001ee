/* The pinned block of host memory whose content travels to the device with every call or step. */
#include <string.h>

#include "backend/cuda/cuda_internal.h"

#define FIRST_SIZE ((size_t)1 << 20)

static ct_status take(cuda_stage *stage, size_t size) {
    void *dev = NULL;
    for (int k = 0; k < CUDA_RING; k++) CT_CUDA_TRY(cudaMallocHost((void **)&stage->host[k], size));
    CT_TRY(ct_cuda_alloc(size, "the stage", &dev));
    stage->dev = dev;
    stage->size = size;
    return CT_OK;
}

static void drop(cuda_stage *stage) {
    for (int k = 0; k < CUDA_RING; k++) {
        cudaFreeHost(stage->host[k]);
        stage->host[k] = NULL;
    }
    cudaFree(stage->dev);
    stage->dev = NULL;
    stage->size = 0;
}

ct_status ct_cuda_stage_create(cuda_backend *backend) {
    for (int k = 0; k < CUDA_RING; k++)
        CT_CUDA_TRY(cudaEventCreateWithFlags(&backend->stage.copied[k], cudaEventDisableTiming));
    return take(&backend->stage, FIRST_SIZE);
}

void ct_cuda_stage_free(cuda_backend *backend) {
    drop(&backend->stage);
    for (int k = 0; k < CUDA_RING; k++)
        if (backend->stage.copied[k] != NULL) cudaEventDestroy(backend->stage.copied[k]);
}

ct_status ct_cuda_stage_begin(cuda_backend *backend) {
    cuda_stage *stage = &backend->stage;
    stage->now = (stage->now + 1) % CUDA_RING;
    stage->used = 0;
    CT_CUDA_TRY(cudaEventSynchronize(stage->copied[stage->now]));
    return CT_OK;
}

/* A larger stage with the same content. */
static ct_status grow(cuda_backend *backend, size_t size) {
    cuda_stage *stage = &backend->stage, larger = *stage;
    CT_CUDA_TRY(cudaStreamSynchronize(backend->stream));
    ct_cuda_forget_graphs(backend);
    memset(larger.host, 0, sizeof larger.host);
    larger.dev = NULL;
    ct_status status = take(&larger, size);
    if (status != CT_OK) {
        drop(&larger);
        return status;
    }
    memcpy(larger.host[stage->now], stage->host[stage->now], stage->used);
    drop(stage);
    *stage = larger;
    return CT_OK;
}

ct_status ct_cuda_stage_reserve(cuda_backend *backend, size_t n, size_t *offset, void **host) {
    cuda_stage *stage = &backend->stage;
    size_t at = (stage->used + 63) / 64 * 64;
    if (at + n > stage->size) CT_TRY(grow(backend, 2 * (at + n)));
    stage->used = at + n;
    *offset = at;
    *host = stage->host[stage->now] + at;
    return CT_OK;
}

ct_status ct_cuda_stage_send(cuda_backend *backend) {
    cuda_stage *stage = &backend->stage;
    CT_CUDA_TRY(cudaMemcpyAsync(stage->dev, stage->host[stage->now], stage->used,
                                cudaMemcpyHostToDevice, backend->stream));
    CT_CUDA_TRY(cudaEventRecord(stage->copied[stage->now], backend->stream));
    return CT_OK;
}
