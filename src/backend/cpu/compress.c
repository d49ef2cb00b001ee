/* Rows in fewer bytes, and steps of their own: one task a row. */
#include "backend/cpu/cpu_internal.h"

#include "util/memory.h"

typedef struct compress_run {
    const ct_packing *packing;
    const ct_bank *x; /* NULL: packed rows are read */
    ct_bank *known, *packed;
    uint32_t *scratch;
} compress_run;

static void compress_task(void *context, int task, int worker) {
    const compress_run *run = context;
    const ct_packing *p = run->packing;
    if (run->x == NULL)
        ct_host_decompress(p, run->packed, run->known, p->first + task);
    else
        ct_host_compress(p, run->x, run->known, run->packed, p->first + task,
                         run->scratch + (size_t)worker * p->how->n_scratch);
}

ct_status ct_cpu_compress(const ct_packing *packing, const ct_bank *x, ct_bank *known,
                          ct_bank *packed) {
    cpu_backend *backend = (cpu_backend *)known->backend;
    size_t n_words = packing->how->n_scratch * (size_t)ct_pool_size(backend->pool);
    CT_TRY(ct_reserve(&backend->scratch, &backend->scratch_room, n_words, "packed rows"));
    compress_run run = {packing, x, known, packed, backend->scratch};
    ct_pool_run(backend->pool, packing->n_rows, compress_task, &run);
    return CT_OK;
}

ct_status ct_cpu_decompress(const ct_packing *packing, const ct_bank *packed, ct_bank *known) {
    compress_run run = {packing, NULL, known, (ct_bank *)packed, NULL};
    ct_pool_run(((cpu_backend *)known->backend)->pool, packing->n_rows, compress_task, &run);
    return CT_OK;
}

typedef struct steps_run {
    const ct_adaptive_steps *steps;
    ct_bank *v, *r;
} steps_run;

static void steps_task(void *context, int task, int worker) {
    const steps_run *run = context;
    (void)worker;
    ct_host_scale_steps(run->steps, run->v, run->r, task);
}

ct_status ct_cpu_scale_steps(const ct_adaptive_steps *steps, ct_bank *v, ct_bank *r) {
    steps_run run = {steps, v, r};
    ct_pool_run(((cpu_backend *)r->backend)->pool, r->n_own, steps_task, &run);
    return CT_OK;
}
