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

static ct_status create_sam(ct_agents *a, ct_cross_gradients *out) {
    int n_edges = a->links.most.edges;
    if (a->sam.radius == 0) return CT_OK;
    CT_TRY(ct_bank_create(a->backend, n_edges, 0, a->x.n, &out->sam.at));
    CT_TRY(ct_sparse_diagonal(n_edges, &out->sam.scale));
    return ct_make(&out->sam.jobs, (size_t)n_edges, "cross-gradients");
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
    CT_TRY(create_sam(a, out));
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
    ct_bank_free(&cross->sam.at);
    ct_sparse_free(&cross->sam.scale);
    ct_free(cross->sam.jobs);
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

/* Once more, at x_j + rho c_e / |c_e|. */
static ct_status sharpen(ct_cross_gradients *cross, ct_agents *a, const ct_work *work,
                         const ct_objective *objective) {
    ct_update u = ct_agents_update(a);
    CT_TRY(ct_sam_scale(a, &cross->rows, work->n_jobs, &cross->sam.scale));
    SET(&u, &cross->sam.at, {1, &a->x, &cross->models}, {1, &cross->rows, &cross->sam.scale});
    CT_TRY(ct_agents_apply(a, &u));
    ct_work second = *work;
    second.params = &cross->sam.at;
    second.jobs = cross->sam.jobs;
    for (int e = 0; e < work->n_jobs; e++) {
        int batch = work->jobs[e].batch;
        cross->sam.jobs[e] = (ct_job){.model = e, .batch = batch, .out = e};
        a->samples.gradients += a->batches[batch].n;
    }
    return ct_gradient(a->plan, &second, objective, &cross->rows, &cross->losses, 0);
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
    if (a->sam.radius > 0) CT_TRY(sharpen(cross, a, &work, &objective));
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
