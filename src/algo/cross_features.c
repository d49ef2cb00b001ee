/* CCL's exchange of cross-features, all of it or what is left of it. */
#include <string.h>

#include "algo/agents_internal.h"
#include "util/memory.h"

#define MEAN_DECAY 0.9
#define MAX_LAMBDA 1.0 /* the paper's largest */

/* Every agent gets those of its world. */
static ct_status give_lambdas(ct_agents *a) {
    for (int i = 0; i < a->n; i++) {
        const double *own = a->world_lambdas + 2 * ((a->first + i) / a->n_agents);
        float lambdas[] = {(float)own[0], (float)own[1]};
        CT_TRY(ct_bank_write(&a->lambdas, i, 0, 2, lambdas));
    }
    return CT_OK;
}

ct_status ct_agents_create_economy(ct_agents *a) {
    size_t n_edges = (size_t)a->topology->begin[a->n_rows];
    a->cross_batches = ct_new(ct_batch, (size_t)a->n);
    if (a->cross_batches == NULL) return ct_fail(CT_NOMEM, "no memory for %d batches", a->n);
    if (a->economy.neighbours > 0) {
        a->contrast = (ct_topology){.n = a->n_rows};
        a->contrast.begin = ct_new(int, (size_t)a->n_rows + 1);
        a->contrast.neighbour = ct_new(int, n_edges);
        if (a->contrast.begin == NULL || a->contrast.neighbour == NULL)
            return ct_fail(CT_NOMEM, "no memory for %zu edges", n_edges);
    }
    if (a->economy.min_class_count > 1) {
        a->class_row = ct_new(float, a->neighbours.n_columns);
        if (a->class_row == NULL) return ct_fail(CT_NOMEM, "no memory for class sums");
    }
    if (a->economy.adaptive_share == 0 && a->world_lambdas == NULL) return CT_OK;
    CT_TRY(ct_bank_create(a->backend, a->n, 0, 2, &a->lambdas));
    return a->world_lambdas != NULL ? give_lambdas(a) : CT_OK;
}

ct_status ct_agents_create_means(ct_agents *a) {
    if (!a->loss.ccl || a->economy.adaptive_share == 0) return CT_OK;
    return ct_agents_buffer(a, "ccl means", a->n, &a->means);
}

bool ct_agents_contrasts(const ct_agents *a) {
    return a->loss.ccl && a->iteration % a->economy.every == 0;
}

/* Entry k of p is among the m that are due: they move on by m with every contrasting iteration. */
static bool is_due(const ct_agents *a, int k, int p) {
    int m = a->economy.neighbours;
    if (m >= p) return true;
    int first = (int)(a->iteration / a->economy.every % p * m % p);
    return (k - first + p) % p < m;
}

static void choose_neighbours(ct_agents *a) {
    const ct_topology *all = a->topology;
    int e = 0;
    for (int i = 0; i < all->n; i++) {
        a->contrast.begin[i] = e;
        for (int k = all->begin[i]; k < all->begin[i + 1]; k++)
            if (is_due(a, k - all->begin[i], ct_topology_degree(all, i)))
                a->contrast.neighbour[e++] = all->neighbour[k];
    }
    a->contrast.begin[all->n] = e;
}

/* The messages from here on are those of this graph; where models are to stay as they are, answers
 * alone. */
static ct_status route(ct_agents *a, const ct_topology *sources, bool with_models) {
    ct_agents_route(a, sources);
    if (with_models) CT_TRY(ct_routes_link(a->transport, &a->models));
    return ct_routes_link(a->transport, &a->neighbours);
}

static ct_status compute_features(ct_agents *a, ct_bank *shared, const ct_job *jobs, int n_jobs) {
    ct_work work = ct_agents_work(a, shared, jobs, n_jobs);
    work.batches = a->cross_batches;
    for (int k = 0; k < n_jobs; k++) a->samples.features += a->cross_batches[jobs[k].batch].n;
    return n_jobs > 0 ? ct_features(a->plan, &work, &a->cross, &a->edge_sums) : CT_OK;
}

/* The privacy guard: the sum over one sample is that sample's features, over a few not much else.
 * Classes with fewer samples than asked for in a batch are sent as if there were none. By the host,
 * row by row: only those who ask for it pay. */
static ct_status withhold_small_classes(ct_agents *a) {
    const ct_graph *graph = a->plan->graph;
    const size_t width = ct_graph_n_features(graph) + 1;
    for (int e = 0; e < a->neighbours.own.n; e++) {
        CT_TRY(ct_bank_read(&a->edge_sums, e, 0, a->edge_sums.n, a->class_row));
        for (int c = 0; c < graph->n_classes; c++) {
            float *sums = a->class_row + (size_t)c * width;
            if (sums[width - 1] >= (float)a->economy.min_class_count) continue;
            memset(sums, 0, width * sizeof *sums);
        }
        CT_TRY(ct_bank_write(&a->edge_sums, e, 0, a->edge_sums.n, a->class_row));
    }
    return CT_OK;
}

static ct_status exchange(ct_agents *a, ct_bank *shared) {
    int n_own = a->n_cross_own, n_far = a->neighbours.own.n - n_own;
    for (int i = 0; i < a->n; i++) {
        a->cross_batches[i] = a->batches[i];
        a->cross_batches[i].n = ct_cross_samples(&a->loss, a->batches[i].n);
    }
    CT_TRY(ct_agents_exchange(a, shared));
    CT_TRY(compute_features(a, shared, a->cross_jobs, n_own));
    CT_TRY(ct_transport_finish(a->transport, &a->models));
    CT_TRY(compute_features(a, shared, a->cross_jobs + n_own, n_far));
    if (a->economy.min_class_count > 1) CT_TRY(withhold_small_classes(a));
    a->edge_sums.fresh = false;
    CT_TRY(
        ct_transport_exchange(a->transport, &a->neighbours, CT_TRAFFIC_CLASS_SUMS, &a->edge_sums));
    ct_update u = ct_agents_update(a);
    SET(&u, &a->received, {1, &a->edge_sums, &a->gather});
    return ct_agents_apply(a, &u);
}

/* With some neighbours only: their messages, then the graph's again. Models that are there already
 * stay; others come from those neighbours now, and from everyone when they are mixed. */
static ct_status exchange_some(ct_agents *a, ct_bank *shared) {
    CT_TRY(ct_transport_finish(a->transport, &a->models));
    bool was_fresh = shared->fresh;
    choose_neighbours(a);
    CT_TRY(route(a, &a->contrast, !was_fresh));
    ct_agents_list_cross(a, &a->contrast);
    CT_TRY(exchange(a, shared));
    CT_TRY(route(a, a->topology, !was_fresh));
    shared->fresh = was_fresh;
    return CT_OK;
}

static float lambda(double share, float ce, float term) {
    if (ce <= 0) return 0; /* nothing known yet */
    double wanted = share * (double)ce;
    return (float)(wanted < MAX_LAMBDA * (double)term ? wanted / (double)term : MAX_LAMBDA);
}

static ct_status set_lambdas(ct_agents *a) {
    double share = a->economy.adaptive_share;
    for (int i = 0; i < a->n; i++) {
        float mean[3];
        CT_TRY(ct_bank_read(a->means, i, 0, 3, mean));
        float lambdas[] = {lambda(share, mean[0], mean[1]), lambda(share, mean[0], mean[2])};
        CT_TRY(ct_bank_write(&a->lambdas, i, 0, 2, lambdas));
    }
    return CT_OK;
}

ct_status ct_agents_exchange_features(ct_agents *a, ct_bank *shared, ct_objective *objective) {
    objective->cross = &a->cross;
    objective->cross_begin = a->cross_begin;
    objective->class_sums = &a->received;
    bool adapts = a->economy.adaptive_share > 0;
    objective->lambdas = adapts || a->world_lambdas != NULL ? &a->lambdas : NULL;
    if (adapts) CT_TRY(set_lambdas(a));
    return a->economy.neighbours > 0 ? exchange_some(a, shared) : exchange(a, shared);
}

ct_status ct_agents_update_means(ct_agents *a) {
    static const int fields[] = {CT_LOSS_CE, CT_LOSS_MV, CT_LOSS_DV};
    for (int i = 0; i < a->n; i++) {
        float mean[3], now[CT_LOSS_FIELDS];
        CT_TRY(ct_bank_read(a->means, i, 0, 3, mean));
        CT_TRY(ct_bank_read(a->losses, i, a->loss_column, CT_LOSS_FIELDS, now));
        bool is_first = mean[0] == 0;
        for (int k = 0; k < 3; k++) {
            double value = (double)now[fields[k]];
            mean[k] =
                (float)(is_first ? value : MEAN_DECAY * (double)mean[k] + (1 - MEAN_DECAY) * value);
        }
        CT_TRY(ct_bank_write(a->means, i, 0, 3, mean));
    }
    return CT_OK;
}
