#include "algo/sam.h"

#include "algo/agents_internal.h"

ct_status ct_sam_create(ct_agents *a) {
    ct_sam *sam = &a->sam;
    CT_TRY(ct_bank_create(a->backend, a->n, 0, a->x.n, &sam->at));
    CT_TRY(ct_bank_create(a->backend, a->n, 0, CT_LOSS_FIELDS, &sam->losses));
    if (a->running.n > 0) CT_TRY(ct_bank_create(a->backend, a->n, 0, a->running.n, &sam->running));
    return ct_sparse_diagonal(a->n, &sam->scale);
}

void ct_sam_free(ct_sam *sam) {
    ct_bank_free(&sam->at);
    ct_bank_free(&sam->losses);
    ct_bank_free(&sam->running);
    ct_sparse_free(&sam->scale);
}

ct_status ct_sam_scale(ct_agents *a, const ct_bank *g, int n_rows, ct_sparse *scale) {
    for (int i = 0; i < scale->n_rows; i++) {
        double norm = 0;
        if (i < n_rows) CT_TRY(ct_agents_norm(a, g, i, &norm));
        scale->value[i] = norm > 0 ? a->sam.radius / norm : 0;
    }
    return CT_OK;
}

ct_status ct_sam_gradient(ct_agents *a, const ct_bank *at, const ct_work *work,
                          const ct_objective *objective) {
    ct_sam *sam = &a->sam;
    CT_TRY(ct_sam_scale(a, &a->g, a->n, &sam->scale));
    ct_update u = ct_agents_update(a);
    SET(&u, &sam->at, {1, at}, {1, &a->g, &sam->scale});
    CT_TRY(ct_update_run(a->backend, &u));

    ct_work second = *work;
    second.params = &sam->at;
    if (work->buffers != NULL) second.buffers = &sam->running;
    for (int k = 0; k < work->n_jobs; k++) a->samples.own += a->batches[work->jobs[k].batch].n;
    CT_TRY(ct_gradient(a->plan, &second, objective, &a->g, &sam->losses, 0));
    if (a->hyper.weight_decay == 0) return CT_OK;
    ct_update decay = ct_agents_update(a);
    SET(&decay, &a->g, {1, &a->g}, {a->hyper.weight_decay, at});
    return ct_update_run(a->backend, &decay);
}
