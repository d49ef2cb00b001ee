#include "backend/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu_internal.h"
#include "util/memory.h"

/* The instruction sets, best first, and whether this processor has them. */
typedef struct isa_choice {
    const ct_kernels *kernels;
    bool supported;
} isa_choice;

#if CT_X86_KERNELS
static int list_isas(isa_choice out[3]) {
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    out[0] = (isa_choice){&ct_kernels_avx512, avx512};
    out[1] = (isa_choice){&ct_kernels_avx2, avx2};
    out[2] = (isa_choice){&ct_kernels_portable, true};
    return 3;
}
#else
static int list_isas(isa_choice out[3]) {
    out[0] = (isa_choice){&ct_kernels_portable, true};
    return 1;
}
#endif

/* The first set from `place` on that this processor has: the last one is for all. */
static int first_supported(const isa_choice *isas, int place) {
    while (!isas[place].supported) place++;
    return place;
}

static int find_isa(const isa_choice *isas, int n_isas, const char *name) {
    for (int i = 0; i < n_isas; i++)
        if (strcmp(name, isas[i].kernels->isa) == 0) return i;
    return -1;
}

static ct_status choose_isa(const char *wish, int *out) {
    isa_choice isas[3];
    int n_isas = list_isas(isas);
    const char *forced = getenv("CROSSTALK_ISA");
    if (forced == NULL) {
        int place = find_isa(isas, n_isas, wish);
        *out = first_supported(isas, place >= 0 ? place : 0);
        return CT_OK;
    }
    *out = find_isa(isas, n_isas, forced);
    if (*out < 0)
        return ct_fail(CT_INVAL, "CROSSTALK_ISA=%s: must be avx512, avx2 or portable", forced);
    if (!isas[*out].supported)
        return ct_fail(CT_INVAL, "CROSSTALK_ISA=%s: this processor does not have it", forced);
    return CT_OK;
}

/* From the plainest on, so that all processes have what the lowest of their levels is. */
ct_status ct_cpu_level(const char *wish, int *out) {
    isa_choice isas[3];
    int place = 0, n_isas = list_isas(isas);
    CT_TRY(choose_isa(wish, &place));
    *out = n_isas - 1 - place;
    return CT_OK;
}

const char *ct_cpu_instructions(int level) {
    isa_choice isas[3];
    int n_isas = list_isas(isas);
    return isas[n_isas - 1 - level].kernels->isa;
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
    ct_free(backend);
}

static const ct_backend_ops cpu_ops = {
    .name = "cpu",
    .free = backend_free,
    .bank_alloc = bank_alloc,
    .bank_free = ct_host_bank_free,
    .bank_write = ct_host_bank_write,
    .bank_read = ct_host_bank_read,
    .update = ct_cpu_update,
    .source_create = ct_host_source_create,
    .source_free = ct_host_source_free,
    .plan_create = ct_cpu_plan_create,
    .plan_free = ct_cpu_plan_free,
    .features = ct_cpu_features,
    .gradient = ct_cpu_gradient,
    .evaluate = ct_cpu_evaluate,
    .logits = ct_cpu_logits,
    .peak_gflops = ct_cpu_peak_gflops,
    .adds_decay = true,
};

ct_status ct_backend_cpu_create(const ct_backend_options *options, ct_backend **out) {
    isa_choice isas[3];
    int place = 0;
    (void)list_isas(isas);
    CT_TRY(choose_isa(options->instructions != NULL ? options->instructions : "", &place));
    const ct_kernels *kernels = isas[place].kernels;
    cpu_backend *backend = ct_new(cpu_backend, 1);
    if (backend == NULL) return ct_fail(CT_NOMEM, "no memory for the cpu backend");
    ct_status status = ct_pool_create(options->n_threads, &backend->pool);
    if (status != CT_OK) {
        ct_free(backend);
        return status;
    }
    backend->base = (ct_backend){.ops = &cpu_ops,
                                 .precision = CT_PRECISION_FP32,
                                 .instructions = kernels->isa,
                                 .n_threads = ct_pool_size(backend->pool),
                                 .poll_every = 1};
    backend->kernels = kernels;
    backend->exact_conv = options->exact_conv;
    backend->only_forward = options->only_forward;
    *out = &backend->base;
    return CT_OK;
}
