#include "algo/cross_gradients.h"

#include "util/memory.h"

ct_status ct_cross_gradients_create(ct_agents *a, ct_cross_gradients *out) {
    int n_edges = a->topology->begin[a->n];
    if (a->running.n > 0)
        return ct_fail(CT_INVAL, "cross-gradients need a norm without running statistics, not "
                                 "--norm batchnorm");
    CT_TRY(ct_agents_buffer(a, "cross gradients", n_edges, &out->rows));
    CT_TRY(ct_sparse_create(a->n, n_edges, n_edges, &out->sent));
    CT_TRY(ct_sparse_create(a->n, n_edges, n_edges, &out->taken));
    CT_TRY(ct_sparse_create(n_edges, a->n, n_edges, &out->models));
    CT_TRY(ct_bank_create(a->backend, n_edges, 0, CT_LOSS_FIELDS, &out->losses));
    out->jobs = ct_new(ct_job, (size_t)n_edges);
    return out->jobs != NULL ? CT_OK : ct_fail(CT_NOMEM, "no memory for %d edges", n_edges);
}

void ct_cross_gradients_free(ct_cross_gradients *cross) {
    ct_sparse_free(&cross->sent);
    ct_sparse_free(&cross->taken);
    ct_sparse_free(&cross->models);
    ct_bank_free(&cross->losses);
    ct_free(cross->jobs);
    *cross = (ct_cross_gradients){0};
}

/* Edges may have changed since the last step. A row of `models` without an edge stays empty. */
static void connect_edges(ct_cross_gradients *cross, const ct_agents *a) {
    const ct_topology *t = a->topology;
    ct_agents_gather(t, &cross->taken);
    for (int i = 0; i < a->n; i++) {
        for (int e = t->begin[i]; e < t->begin[i + 1]; e++) {
            cross->jobs[e] = (ct_job){.model = t->neighbour[e], .batch = i, .out = e};
            cross->sent.column[e] = e;
            cross->sent.value[e] = 1.0;
            cross->models.column[e] = t->neighbour[e];
            cross->models.value[e] = 1.0;
            cross->models.begin[e + 1] = e + 1;
        }
        cross->sent.begin[i + 1] = t->begin[i + 1];
    }
    for (int e = t->begin[a->n]; e < cross->models.n_rows; e++)
        cross->models.begin[e + 1] = t->begin[a->n];
}

ct_status ct_cross_gradients_compute(ct_cross_gradients *cross, ct_agents *a) {
    ct_objective objective = {.loss = {.ccl = false}};
    ct_work work = {.params = &a->x,
                    .source = a->source,
                    .batches = a->batches,
                    .jobs = cross->jobs,
                    .n_jobs = a->topology->begin[a->n]};
    connect_edges(cross, a);
    cross->rows->fresh = false;
    CT_TRY(ct_gradient(a->plan, &work, &objective, cross->rows, &cross->losses, 0));
    if (a->hyper.weight_decay == 0) return CT_OK;
    ct_update u = ct_agents_update(a);
    SET(&u, cross->rows, {1, cross->rows}, {a->hyper.weight_decay, &a->x, &cross->models});
    return ct_agents_apply(a, &u);
}

ct_status ct_cross_gradients_return(ct_cross_gradients *cross, ct_agents *a) {
    return ct_transport_exchange(a->transport, &a->neighbours, CT_TRAFFIC_PARAMETERS, cross->rows);
}
