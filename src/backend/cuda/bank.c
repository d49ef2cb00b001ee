/* Banks in device memory. */
#include <string.h>

#include "backend/cuda/cuda_internal.h"

#define CROWD_COLUMNS 1024 /* reads of no more come in crowds, one row after the other */

static cuda_backend *backend_of(const ct_bank *bank) {
    return (cuda_backend *)bank->backend;
}

ct_status ct_cuda_bank_alloc(ct_bank *bank) {
    void *data = NULL;
    if (bank->stride != 0 && (size_t)bank->n_rows > SIZE_MAX / sizeof(float) / bank->stride)
        return ct_fail(CT_NOMEM, "a bank of %d rows of %zu floats is too large", bank->n_rows,
                       bank->n);
    size_t n_bytes = (size_t)bank->n_rows * bank->stride * sizeof(float);
    CT_TRY(ct_cuda_alloc(n_bytes, "a bank", &data));
    cudaError_t error = cudaMemsetAsync(data, 0, n_bytes, backend_of(bank)->stream);
    if (error != cudaSuccess) {
        cudaFree(data);
        return ct_cuda_fail(error, "cudaMemsetAsync");
    }
    bank->data = data;
    return CT_OK;
}

void ct_cuda_bank_free(ct_bank *bank) {
    cuda_backend *backend = backend_of(bank);
    ct_cuda_forget_graphs(backend); /* they may write there */
    if (backend->cache.bank_data == bank->data) backend->cache.bank_data = NULL;
    cudaStreamSynchronize(backend->stream);
    cudaFree(bank->data);
}

ct_status ct_cuda_bank_write(ct_bank *bank, int row, size_t first, size_t n, const float *values) {
    cuda_backend *backend = backend_of(bank);
    CT_TRY(ct_cuda_flush(backend));
    backend->cache.bank_data = NULL;
    CT_CUDA_TRY(cudaMemcpyAsync(bank->data + (size_t)row * bank->stride + first, values,
                                n * sizeof *values, cudaMemcpyHostToDevice, backend->stream));
    CT_CUDA_TRY(cudaStreamSynchronize(backend->stream));
    return CT_OK;
}

static bool is_cached(const cuda_cache *cache, const ct_bank *bank, size_t first, size_t n) {
    return cache->bank_data == bank->data && first >= cache->first &&
           first + n <= cache->first + cache->n;
}

/* n columns from `first` on, of all rows, into the cache: one copy and one wait. */
static ct_status fill_cache(cuda_backend *backend, const ct_bank *bank, size_t first, size_t n) {
    cuda_cache *cache = &backend->cache;
    size_t needed = n * (size_t)bank->n_rows * sizeof(float);
    cache->bank_data = NULL;
    if (needed > cache->capacity) {
        cudaFreeHost(cache->host);
        cache->host = NULL;
        cache->capacity = 0;
        CT_CUDA_TRY(cudaMallocHost((void **)&cache->host, needed));
        cache->capacity = needed;
    }
    CT_CUDA_TRY(cudaMemcpy2DAsync(cache->host, n * sizeof(float), bank->data + first,
                                  bank->stride * sizeof(float), n * sizeof(float),
                                  (size_t)bank->n_rows, cudaMemcpyDeviceToHost, backend->stream));
    CT_CUDA_TRY(cudaStreamSynchronize(backend->stream));
    cache->first = first;
    cache->n = n;
    cache->bank_data = bank->data;
    return CT_OK;
}

ct_status ct_cuda_bank_read(const ct_bank *bank, int row, size_t first, size_t n, float *values) {
    cuda_backend *backend = backend_of(bank);
    CT_TRY(ct_cuda_flush(backend));
    if (n <= CROWD_COLUMNS) {
        cuda_cache *cache = &backend->cache;
        if (!is_cached(cache, bank, first, n)) CT_TRY(fill_cache(backend, bank, first, n));
        memcpy(values, cache->host + (size_t)row * cache->n + (first - cache->first),
               n * sizeof *values);
        return CT_OK;
    }
    CT_CUDA_TRY(cudaMemcpyAsync(values, bank->data + (size_t)row * bank->stride + first,
                                n * sizeof *values, cudaMemcpyDeviceToHost, backend->stream));
    CT_CUDA_TRY(cudaStreamSynchronize(backend->stream));
    return CT_OK;
}

/* ---- rows that travel ---- */

ct_status ct_cuda_stage_rows_create(ct_backend *base, size_t n, bool on_device, float **out) {
    void *stage = NULL;
    (void)base;
    if (on_device)
        CT_TRY(ct_cuda_alloc(n * sizeof **out, "a message", &stage));
    else
        CT_CUDA_TRY(cudaMallocHost(&stage, n > 0 ? n * sizeof **out : 1));
    *out = stage;
    return CT_OK;
}

void ct_cuda_stage_rows_free(ct_backend *base, bool on_device, float *stage) {
    cudaStreamSynchronize(((cuda_backend *)base)->stream);
    if (on_device)
        cudaFree(stage);
    else
        cudaFreeHost(stage);
}

/* One wait for all rows; the driver knows where either end lies. */
ct_status ct_cuda_bank_pack(const ct_bank *bank, const int *rows, int n_rows, float *stage) {
    cuda_backend *backend = backend_of(bank);
    CT_TRY(ct_cuda_flush(backend));
    for (int i = 0; i < n_rows; i++)
        CT_CUDA_TRY(cudaMemcpyAsync(stage + (size_t)i * bank->n,
                                    bank->data + (size_t)rows[i] * bank->stride,
                                    bank->n * sizeof *stage, cudaMemcpyDefault, backend->stream));
    CT_CUDA_TRY(cudaStreamSynchronize(backend->stream));
    return CT_OK;
}

ct_status ct_cuda_bank_unpack(ct_bank *bank, int first, int n_rows, const float *stage) {
    cuda_backend *backend = backend_of(bank);
    CT_TRY(ct_cuda_flush(backend));
    backend->cache.bank_data = NULL;
    CT_CUDA_TRY(cudaMemcpy2DAsync(bank->data + (size_t)first * bank->stride,
                                  bank->stride * sizeof *stage, stage, bank->n * sizeof *stage,
                                  bank->n * sizeof *stage, (size_t)n_rows, cudaMemcpyDefault,
                                  backend->stream));
    CT_CUDA_TRY(cudaStreamSynchronize(backend->stream));
    return CT_OK;
}
