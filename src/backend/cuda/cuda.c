#include "backend/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda_internal.h"
#include "util/memory.h"
#include "util/text.h"

#define MIB         (1024.0 * 1024.0)
#define OLDEST_CHIP 8 /* compute capability 8.0: tf32 and bf16 on the tensor cores */

ct_status ct_cuda_fail(cudaError_t error, const char *what) {
    return ct_fail(error == cudaErrorMemoryAllocation ? CT_NOMEM : CT_IO,
                   "the GPU failed: %s (%.*s)", cudaGetErrorString(error), (int)strcspn(what, "("),
                   what);
}

/* Bytes in use before this process had taken any. */
static _Atomic size_t used_by_others = SIZE_MAX;

/* The device as it is, or as if there were CROSSTALK_CUDA_MEMORY MiB for this process: to see what
 * a smaller one does. */
ct_status ct_cuda_memory(size_t *n_free, size_t *total) {
    CT_CUDA_TRY(cudaMemGetInfo(n_free, total));
    const char *text = getenv("CROSSTALK_CUDA_MEMORY");
    if (text == NULL) return CT_OK;
    int64_t mib = 0;
    if (!ct_parse_i64(text, &mib) || mib < 1)
        return ct_fail(CT_INVAL, "CROSSTALK_CUDA_MEMORY is '%s', not a number of MiB", text);
    if (mib >= (int64_t)(*total >> 20)) return CT_OK;
    size_t limit = (size_t)mib << 20, used = *total - *n_free;
    used = used > used_by_others ? used - used_by_others : 0;
    *total = limit;
    *n_free = used < limit ? limit - used : 0;
    return CT_OK;
}

ct_status ct_cuda_alloc(size_t n_bytes, const char *what, void **out) {
    size_t n_free = 0, total = 0;
    CT_TRY(ct_cuda_memory(&n_free, &total));
    if (n_bytes > n_free)
        return ct_fail(CT_NOMEM,
                       "%s needs %.0f MiB of GPU memory and %.0f of %.0f MiB are free: take fewer "
                       "agents or a smaller batch",
                       what, (double)n_bytes / MIB, (double)n_free / MIB, (double)total / MIB);
    CT_CUDA_TRY(cudaMalloc(out, n_bytes > 0 ? n_bytes : 1));
    return CT_OK;
}

/* Calls that were noted find it when they are launched. */
ct_status ct_cuda_reserve_scratch(cuda_backend *backend, size_t n_words, const char *what) {
    void *block = NULL;
    if (n_words <= backend->n_scratch) return CT_OK;
    CT_CUDA_TRY(cudaStreamSynchronize(backend->stream));
    ct_cuda_forget_graphs(backend);
    cudaFree(backend->scratch_dev);
    backend->scratch_dev = NULL;
    backend->n_scratch = 0;
    CT_TRY(ct_cuda_alloc(n_words * sizeof(uint32_t), what, &block));
    backend->scratch_dev = block;
    backend->n_scratch = n_words;
    return CT_OK;
}

static void backend_free(ct_backend *base) {
    cuda_backend *backend = (cuda_backend *)base;
    cudaStreamSynchronize(backend->stream);
    ct_cuda_forget_graphs(backend);
    ct_cuda_stage_free(backend);
    ct_free(backend->tape.recordings);
    cudaFreeHost(backend->cache.host);
    cudaFree(backend->scratch_dev);
    ct_cuda_branches_free(&backend->branches);
    cudaStreamDestroy(backend->stream);
    ct_free(backend);
}

static const ct_backend_ops cuda_ops = {
    .name = "cuda",
    .free = backend_free,
    .bank_alloc = ct_cuda_bank_alloc,
    .bank_free = ct_cuda_bank_free,
    .bank_write = ct_cuda_bank_write,
    .bank_read = ct_cuda_bank_read,
    .stage_create = ct_cuda_stage_rows_create,
    .stage_free = ct_cuda_stage_rows_free,
    .bank_pack = ct_cuda_bank_pack,
    .bank_unpack = ct_cuda_bank_unpack,
    .compress = ct_cuda_compress,
    .decompress = ct_cuda_decompress,
    .scale_steps = ct_cuda_scale_steps,
    .update = ct_cuda_run_update,
    .source_create = ct_cuda_source_create,
    .source_free = ct_cuda_source_free,
    .source_refresh = ct_cuda_source_refresh,
    .plan_create = ct_cuda_plan_create,
    .plan_free = ct_cuda_plan_free,
    .features = ct_cuda_features,
    .soften = ct_cuda_soften,
    .gradient = ct_cuda_gradient,
    .evaluate = ct_cuda_evaluate,
    .logits = ct_cuda_logits,
    .step_begin = ct_cuda_step_begin,
    .step_end = ct_cuda_step_end,
};

/* Why there is no GPU; the runtime calls a missing driver an old one. */
static ct_status no_device(cudaError_t error) {
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (error == cudaErrorInsufficientDriver && driver > 0)
        return ct_fail(
            CT_IO,
            "no GPU to use: its driver is made for CUDA %d.%d, this build needs %d.%d or "
            "newer; @device cpu needs none",
            driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    return ct_fail(CT_IO, "no GPU to use: %s; @device cpu needs none",
                   error == cudaErrorInsufficientDriver ? "no NVIDIA driver is installed"
                   : error != cudaSuccess               ? cudaGetErrorString(error)
                                                        : "none is installed");
}

/* This process's number among those of its machine, as launchers tell it; 0 without one. */
static int local_rank(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                        "SLURM_LOCALID"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const char *text = getenv(names[k]);
        int64_t rank = 0;
        if (text != NULL && ct_parse_i64(text, &rank) && rank >= 0 && rank < INT32_MAX)
            return (int)rank;
    }
    return 0;
}

/* A GPU this build can use, made current: ranks of one machine take them in turn. */
static ct_status find_device(struct cudaDeviceProp *properties) {
    int n_devices = 0;
    cudaError_t error = cudaGetDeviceCount(&n_devices);
    if (error != cudaSuccess || n_devices == 0) return no_device(error);
    int device = local_rank() % n_devices;
    CT_CUDA_TRY(cudaSetDevice(device));
    CT_CUDA_TRY(cudaGetDeviceProperties(properties, device));
    if (properties->major < OLDEST_CHIP)
        return ct_fail(CT_IO, "%s has compute capability %d.%d, this build needs %d.0 or newer",
                       properties->name, properties->major, properties->minor, OLDEST_CHIP);
    if (!ct_cuda_has_kernels())
        return ct_fail(CT_IO,
                       "this build has no kernels for %s: configure it with "
                       "-DCMAKE_CUDA_ARCHITECTURES=%d%d",
                       properties->name, properties->major, properties->minor);
    return CT_OK;
}

static bool is_off(const char *variable) {
    const char *text = getenv(variable);
    return text != NULL && strcmp(text, "off") == 0;
}

static ct_status init(cuda_backend *backend) {
    backend->tape.no_graphs = is_off("CROSSTALK_CUDA_GRAPHS");
    backend->tape.no_scripts = is_off("CROSSTALK_CUDA_SCRIPTS");
    size_t n_free = 0, total = 0;
    CT_CUDA_TRY(cudaMemGetInfo(&n_free, &total));
    if (used_by_others == SIZE_MAX) used_by_others = total - n_free;
    CT_CUDA_TRY(cudaStreamCreateWithFlags(&backend->stream, cudaStreamNonBlocking));
    CT_TRY(ct_cuda_branches_create(&backend->branches));
    CT_TRY(ct_make(&backend->tape.recordings, CUDA_GRAPHS, "graphs"));
    return ct_cuda_stage_create(backend);
}

ct_status ct_backend_cuda_create(const ct_backend_options *options, ct_backend **out) {
    struct cudaDeviceProp properties;
    CT_TRY(find_device(&properties));
    cuda_backend *backend = NULL;
    CT_TRY(ct_make(&backend, 1, "the cuda backend"));
    snprintf(backend->generation, sizeof backend->generation, "sm_%d%d", properties.major,
             properties.minor);
    backend->base = (ct_backend){
        .ops = &cuda_ops, .instructions = backend->generation, .n_threads = 1, .poll_every = 64};
    cudaGetDevice(&backend->base.device);
    backend->shared_limit = properties.sharedMemPerBlockOptin;
    backend->is_hopper =
        properties.major == 9 && properties.minor == 0 && !is_off("CROSSTALK_CUDA_HOPPER");
    backend->base.precision =
        options->precision == CT_PRECISION_AUTO ? CT_PRECISION_TF32 : options->precision;
    ct_status status = init(backend);
    if (status == CT_OK)
        *out = &backend->base;
    else
        backend_free(&backend->base);
    return status;
}
