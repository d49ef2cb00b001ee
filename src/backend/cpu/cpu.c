#include "backend/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu_internal.h"
#include "util/memory.h"

/* The instruction sets, the plainest first: all processes have what the lowest of their levels is. */
static const ct_kernels *const isas[] = {
    &ct_kernels_portable,
#if CT_X86_KERNELS
    &ct_kernels_avx2,
    &ct_kernels_avx512,
#endif
};
enum { PORTABLE, AVX2, AVX512, N_ISAS = sizeof isas / sizeof *isas };

static bool has_isa(int level) {
    if (level == PORTABLE) return true;
#if CT_X86_KERNELS
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return avx2 && (level == AVX2 ||
                    (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")));
#else
    return false;
#endif
}

static int find_isa(const char *name) {
    int level = N_ISAS - 1;
    while (level >= 0 && strcmp(name, isas[level]->isa) != 0) level--;
    return level;
}

ct_status ct_cpu_level(const char *wish, int *out) {
    const char *forced = getenv("CROSSTALK_ISA");
    int level = find_isa(forced != NULL ? forced : wish);
    if (forced != NULL && level < 0)
        return ct_fail(CT_INVAL, "CROSSTALK_ISA=%s: must be avx512, avx2 or portable", forced);
    if (forced != NULL && !has_isa(level))
        return ct_fail(CT_INVAL, "CROSSTALK_ISA=%s: this processor does not have it", forced);
    if (level < 0) level = N_ISAS - 1;
    while (!has_isa(level)) level--;
    *out = level;
    return CT_OK;
}

const char *ct_cpu_instructions(int level) {
    return isas[level]->isa;
}

/* An update's temporaries have as many rows as some bank: their memory is taken with the bank. */
static ct_status bank_alloc(ct_bank *bank) {
    CT_TRY(ct_cpu_reserve_update((cpu_backend *)bank->backend, bank->n_rows, 0));
    return ct_host_bank_alloc(bank);
}

static void backend_free(ct_backend *base) {
    cpu_backend *backend = (cpu_backend *)base;
    ct_pool_free(&backend->pool);
    ct_free(backend->temps);
    ct_free(backend->terms);
    ct_free(backend->coefs);
    ct_free(backend->scratch);
    ct_free(backend);
}

static const ct_backend_ops cpu_ops = {
    .name = "cpu",
    .free = backend_free,
    .bank_alloc = bank_alloc,
    .bank_free = ct_host_bank_free,
    .bank_write = ct_host_bank_write,
    .bank_read = ct_host_bank_read,
    .compress = ct_cpu_compress,
    .decompress = ct_cpu_decompress,
    .scale_steps = ct_cpu_scale_steps,
    .update = ct_cpu_update,
    .source_create = ct_host_source_create,
    .source_free = ct_host_source_free,
    .plan_create = ct_cpu_plan_create,
    .plan_free = ct_cpu_plan_free,
    .features = ct_cpu_features,
    .soften = ct_cpu_soften,
    .gradient = ct_cpu_gradient,
    .evaluate = ct_cpu_evaluate,
    .logits = ct_cpu_logits,
    .peak_gflops = ct_cpu_peak_gflops,
    .adds_decay = true,
};

ct_status ct_backend_cpu_create(const ct_backend_options *options, ct_backend **out) {
    int level = 0;
    cpu_backend *backend;
    CT_TRY(ct_cpu_level(options->instructions != NULL ? options->instructions : "", &level));
    CT_TRY(ct_make(&backend, 1, "the cpu backend"));
    ct_status status = ct_pool_create(options->n_threads, &backend->pool);
    if (status != CT_OK) {
        ct_free(backend);
        return status;
    }
    backend->base = (ct_backend){.ops = &cpu_ops,
                                 .precision = CT_PRECISION_FP32,
                                 .instructions = isas[level]->isa,
                                 .n_threads = ct_pool_size(backend->pool),
                                 .poll_every = 1};
    backend->kernels = isas[level];
    backend->exact_conv = options->exact_conv;
    backend->only_forward = options->only_forward;
    *out = &backend->base;
    return CT_OK;
}
