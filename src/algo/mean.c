#include "algo/mean.h"

ct_status ct_mean_create(const ct_agents *a, ct_mean *out) {
    CT_TRY(ct_sparse_means(a->n_seeds, a->n_agents, &out->gather));
    CT_TRY(ct_agents_seeds(a, &out->spread));
    CT_TRY(ct_bank_create(a->backend, a->n_seeds, 0, a->x.n, &out->mean));
    if (ct_transport_n_ranks(a->transport) == 1) return CT_OK;
    return ct_bank_create(a->backend, a->n_rows, 0, a->x.n, &out->everyone);
}

void ct_mean_free(ct_mean *mean) {
    ct_bank_free(&mean->mean);
    ct_bank_free(&mean->everyone);
    ct_sparse_free(&mean->gather);
    ct_sparse_free(&mean->spread);
}

ct_status ct_mean_take(ct_mean *mean, ct_agents *a, const ct_bank *bank, ct_update *u) {
    const ct_bank *all = mean->everyone.data != NULL ? &mean->everyone : bank;
    CT_TRY(ct_transport_spread(a->transport, bank, &mean->everyone));
    SET(u, &mean->mean, {1, all, &mean->gather});
    return CT_OK;
}

void ct_mean_count(const ct_agents *a) {
    uint64_t n = (uint64_t)a->n_agents, bytes = 2 * (n - 1) * a->x.n * sizeof(float) / n;
    for (int row = 0; row < a->n_rows; row++)
        ct_transport_count(a->transport, row, CT_TRAFFIC_PARAMETERS, bytes);
}
