#include "algo/cross_gradients.h"

#include "util/memory.h"

/* The same messages as a->links.neighbours, with rows as wide as models. */
static void copy_routes(const ct_agents *a, ct_routes *routes) {
    routes->n = a->links.neighbours.n;
    for (int e = 0; e < routes->n; e++) {
        routes->from[e] = a->links.neighbours.from[e];
        routes->to[e] = a->links.neighbours.to[e];
    }
}

ct_status ct_cross_gradients_create(ct_agents *a, ct_cross_gradients *out) {
    int n_edges = a->links.most.edges, n_rows = n_edges + a->links.neighbours.most_halo;
    if (a->running.n > 0)
        return ct_fail(CT_INVAL, "cross-gradients need a norm without running statistics, not "
                                 "@norm batchnorm");
    CT_TRY(ct_routes_create(a->links.neighbours.n_room, &out->routes));
    copy_routes(a, &out->routes);
    out->routes.most_own = a->links.neighbours.most_own;
    out->routes.most_halo = a->links.neighbours.most_halo;
    out->routes.most_sent = a->links.neighbours.most_sent;
    CT_TRY(ct_routes_open(a->transport, a->backend, true, a->x.n, &out->routes));
    CT_TRY(ct_bank_create(a->backend, n_edges, a->links.neighbours.most_halo, a->x.n, &out->rows));
    CT_TRY(ct_sparse_create(a->n, n_rows, n_edges, &out->sent));
    CT_TRY(ct_sparse_create(a->n, n_rows, a->links.most.arrivals, &out->taken));
    CT_TRY(ct_sparse_create(n_edges, a->n + a->links.models.most_halo, n_edges, &out->models));
    CT_TRY(ct_bank_create(a->backend, n_edges, 0, CT_LOSS_FIELDS, &out->losses));
    CT_TRY(ct_sparse_diagonal(a->n, &out->own));
    return ct_make(&out->jobs, (size_t)n_edges, "cross-gradients");
}

void ct_cross_gradients_free(void *state) {
    ct_cross_gradients *cross = state;
    ct_routes_free(&cross->routes);
    ct_bank_free(&cross->rows);
    ct_sparse_free(&cross->sent);
    ct_sparse_free(&cross->taken);
    ct_sparse_free(&cross->models);
    ct_sparse_free(&cross->own);
    ct_bank_free(&cross->losses);
    ct_free(cross->jobs);
    *cross = (ct_cross_gradients){0};
}

/* Edges may have changed since the last step. A row of `models` without an edge stays empty. */
static ct_status connect_edges(ct_cross_gradients *cross, const ct_agents *a) {
    const ct_topology *t = a->links.topology;
    int first_edge = t->begin[a->first], n_edges = t->begin[a->first + a->n] - first_edge;
    if (a->links.schedule != NULL) {
        copy_routes(a, &cross->routes);
        CT_TRY(ct_routes_link(a->transport, &cross->routes));
    }
    ct_links_gather(a, &cross->taken);
    for (int i = 0; i < a->n; i++) {
        int end = t->begin[a->first + i + 1] - first_edge;
        for (int e = t->begin[a->first + i] - first_edge; e < end; e++) {
            int model = ct_routes_row(&a->links.models, t->neighbour[first_edge + e]);
            cross->jobs[e] = (ct_job){.model = model, .batch = i, .out = e};
            cross->sent.column[e] = e;
            cross->sent.value[e] = 1.0;
            cross->models.column[e] = model;
            cross->models.value[e] = 1.0;
            cross->models.begin[e + 1] = e + 1;
        }
        cross->sent.begin[i + 1] = end;
    }
    for (int e = n_edges; e < cross->models.n_rows; e++) cross->models.begin[e + 1] = n_edges;
    return CT_OK;
}

ct_status ct_cross_gradients_compute(ct_cross_gradients *cross, ct_agents *a) {
    ct_objective objective = {.loss = {.ccl = false, .label_smoothing = a->loss.label_smoothing}};
    CT_TRY(connect_edges(cross, a));
    ct_work work = {.params = &a->x,
                    .source = a->source,
                    .batches = a->batches,
                    .jobs = cross->jobs,
                    .n_jobs = a->links.neighbours.own.n};
    for (int e = 0; e < work.n_jobs; e++)
        a->samples.gradients += a->batches[cross->jobs[e].batch].n;
    cross->rows.fresh = false;
    CT_TRY(ct_transport_finish(a->transport, &a->links.models));
    CT_TRY(ct_gradient(a->plan, &work, &objective, &cross->rows, &cross->losses, 0));
    if (a->hyper.weight_decay == 0) return CT_OK;
    ct_update u = ct_agents_update(a);
    SET(&u, &cross->rows, {1, &cross->rows}, {a->hyper.weight_decay, &a->x, &cross->models});
    return ct_agents_apply(a, &u);
}

ct_status ct_cross_gradients_return(ct_cross_gradients *cross, ct_agents *a) {
    return ct_transport_exchange(a->transport, &cross->routes, CT_TRAFFIC_PARAMETERS, &cross->rows);
}

double ct_cross_gradients_weight(const ct_agents *a, int i, int j) {
    const ct_sparse *w = a->links.weights;
    for (int e = w->begin[i]; e < w->begin[i + 1]; e++)
        if (w->column[e] == j) return w->value[e];
    return 0;
}
