#include "algo/cross_features.h"

#include <string.h>

#include "algo/agents_internal.h"
#include "util/memory.h"

#define MEAN_DECAY 0.9
#define MAX_LAMBDA 1.0 /* the paper's largest */

/* Every agent gets those of its world. */
static ct_status give_lambdas(ct_agents *a) {
    for (int i = 0; i < a->n; i++) {
        const double *own = a->ccl.world_lambdas + 2 * ((a->first + i) / a->n_agents);
        float lambdas[] = {(float)own[0], (float)own[1]};
        CT_TRY(ct_bank_write(&a->ccl.lambdas, i, 0, 2, lambdas));
    }
    return CT_OK;
}

static ct_status create_economy(ct_agents *a) {
    ct_cross_features *c = &a->ccl;
    if (c->economy.neighbours > 0)
        CT_TRY(ct_topology_alloc(a->n_rows, a->links.topology->begin[a->n_rows], &c->contrast));
    if (c->economy.min_class_count > 1)
        CT_TRY(ct_make(&c->class_row, ct_links_sums(a->plan->graph), "class sums"));
    if (c->economy.adaptive_share == 0 && c->world_lambdas == NULL) return CT_OK;
    CT_TRY(ct_bank_create(a->backend, a->n, 0, 2, &c->lambdas));
    return c->world_lambdas != NULL ? give_lambdas(a) : CT_OK;
}

ct_status ct_cross_features_create(ct_agents *a) {
    ct_cross_features *c = &a->ccl;
    const ct_routes *answers = &a->links.neighbours;
    int n_edges = a->links.most.edges, n_far = ct_links_far_rows(a, answers);
    size_t n_sums = ct_links_sums(a->plan->graph);
    size_t width = (size_t)a->max_batch * ct_graph_n_features(a->plan->graph);
    CT_TRY(ct_make(&c->jobs, (size_t)n_edges, "the cross-features"));
    CT_TRY(ct_make(&c->begin, (size_t)a->n + 1, "the cross-features"));
    CT_TRY(ct_make(&c->arrived, (size_t)a->links.models.n_room, "the cross-features"));
    CT_TRY(ct_make(&c->batches, (size_t)a->n, "the cross-features' batches"));
    CT_TRY(ct_sparse_create(a->n, n_edges + n_far, a->links.most.arrivals, &c->gather));
    CT_TRY(ct_bank_create(a->backend, n_edges, 0, width, &c->features));
    CT_TRY(ct_bank_create(a->backend, n_edges, n_far, n_sums, &c->edge_sums));
    CT_TRY(ct_bank_create(a->backend, a->n, 0, n_sums, &c->received));
    return create_economy(a);
}

ct_status ct_cross_features_create_means(ct_agents *a) {
    if (!a->loss.ccl || a->ccl.economy.adaptive_share == 0) return CT_OK;
    CT_TRY(ct_agents_add_buffer(a, "ccl means", NULL));
    a->ccl.means = ct_own_buffer(a, a->n_buffers - 1);
    return CT_OK;
}

void ct_cross_features_free(ct_cross_features *c) {
    ct_free(c->jobs);
    ct_free(c->begin);
    ct_free(c->arrived);
    ct_free(c->batches);
    ct_free(c->class_row);
    ct_sparse_free(&c->gather);
    ct_bank_free(&c->features);
    ct_bank_free(&c->edge_sums);
    ct_bank_free(&c->received);
    ct_bank_free(&c->lambdas);
    ct_topology_free(&c->contrast);
}

/* Models that are here first: their features are computed while the others' rows travel. */
static void list_jobs(ct_agents *a, const ct_topology *t, const ct_topology *linked) {
    ct_cross_features *c = &a->ccl;
    int first_edge = t->begin[a->first], n_jobs = 0;
    for (int i = 0; i <= a->n; i++) c->begin[i] = t->begin[a->first + i] - first_edge;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < a->n; i++) {
            for (int e = c->begin[i]; e < c->begin[i + 1]; e++) {
                int from = t->neighbour[first_edge + e];
                int model = a->faults != NULL
                                ? a->links.models.mail[ct_links_message(linked, from, a->first + i)]
                                : ct_routes_row(&a->links.models, from);
                /* a dead neighbour's features are one's own: nothing to contrast with */
                if (!ct_agents_is_alive(a, from)) model = i;
                if ((model >= a->n) != (pass == 1)) continue;
                c->jobs[n_jobs++] = (ct_job){.model = model, .batch = i, .out = e};
            }
        }
        if (pass == 0) c->n_own_models = n_jobs;
    }
}

void ct_cross_features_list(ct_agents *a, const ct_topology *sources, const ct_topology *linked) {
    ct_links_gather(a, &a->ccl.gather);
    list_jobs(a, sources, linked);
}

bool ct_cross_features_are_due(const ct_agents *a) {
    return a->loss.ccl && !ct_agents_are_apart(a) &&
           ct_agents_rounds(a) % a->ccl.economy.every == 0;
}

/* Entry k of p is among the m that are due: they move on by m with every contrast. */
static bool is_due(const ct_agents *a, int k, int p) {
    int m = a->ccl.economy.neighbours;
    if (m >= p) return true;
    int first = (int)(ct_agents_rounds(a) / a->ccl.economy.every % p * m % p);
    return (k - first + p) % p < m;
}

static void choose_neighbours(ct_agents *a) {
    const ct_topology *all = a->links.topology;
    int e = 0;
    for (int i = 0; i < all->n; i++) {
        a->ccl.contrast.begin[i] = e;
        for (int k = all->begin[i]; k < all->begin[i + 1]; k++)
            if (is_due(a, k - all->begin[i], ct_topology_degree(all, i)))
                a->ccl.contrast.neighbour[e++] = all->neighbour[k];
    }
    a->ccl.contrast.begin[all->n] = e;
}

/* The messages from here on are those of this graph; where models are to stay as they are, answers
 * alone. */
static ct_status route(ct_agents *a, const ct_topology *sources, bool with_models) {
    ct_links_route(&a->links, sources);
    if (with_models) CT_TRY(ct_routes_link(a->transport, &a->links.models));
    return ct_routes_link(a->transport, &a->links.neighbours);
}

/* The privacy guard: the sum over one sample is that sample's features, over a few not much else.
 * Classes with fewer samples than asked for in a batch are sent as if there were none. By the host:
 * only those who ask for it pay. */
static ct_status withhold_small_classes(ct_agents *a, int e) {
    const ct_graph *graph = a->plan->graph;
    const size_t width = ct_graph_n_features(graph) + 1;
    CT_TRY(ct_bank_read(&a->ccl.edge_sums, e, 0, a->ccl.edge_sums.n, a->ccl.class_row));
    for (int c = 0; c < graph->n_classes; c++) {
        float *sums = a->ccl.class_row + (size_t)c * width;
        if (sums[width - 1] >= (float)a->ccl.economy.min_class_count) continue;
        memset(sums, 0, width * sizeof *sums);
    }
    return ct_bank_write(&a->ccl.edge_sums, e, 0, a->ccl.edge_sums.n, a->ccl.class_row);
}

/* Class sums are on their way as soon as they are there, where messages go one by one. */
static ct_status compute_features(ct_agents *a, ct_bank *shared, const ct_job *jobs, int n_jobs) {
    ct_routes *answers = &a->links.neighbours;
    ct_work work = ct_agents_work(a, shared, jobs, n_jobs);
    work.batches = a->ccl.batches;
    for (int k = 0; k < n_jobs; k++) a->samples.features += a->ccl.batches[jobs[k].batch].n;
    if (n_jobs > 0) CT_TRY(ct_features(a->plan, &work, &a->ccl.features, &a->ccl.edge_sums));
    for (int k = 0; k < n_jobs; k++) {
        if (a->ccl.economy.min_class_count > 1) CT_TRY(withhold_small_classes(a, jobs[k].out));
        CT_TRY(ct_copies_are_used(&a->copies)
                   ? ct_copies_send_sums(a, jobs[k].out)
                   : ct_transport_send_ahead(a->transport, answers, CT_TRAFFIC_CLASS_SUMS,
                                             &a->ccl.edge_sums, answers->own.first + jobs[k].out));
    }
    return CT_OK;
}

/* Brings the jobs on these messages' models to the front; how many there are. */
static int choose_jobs(ct_agents *a, const int *messages, int n, ct_job *jobs, int n_jobs) {
    int first_edge = a->links.neighbours.own.first, n_chosen = 0;
    for (int m = 0; m < n; m++)
        for (int k = n_chosen; k < n_jobs; k++) {
            if (jobs[k].out != messages[m] - first_edge) continue;
            ct_job chosen = jobs[k];
            jobs[k] = jobs[n_chosen];
            jobs[n_chosen++] = chosen;
        }
    return n_chosen;
}

/* Features of models that come from elsewhere: of some while others still travel, where they come
 * one by one. */
static ct_status compute_arrived(ct_agents *a, ct_bank *shared, ct_job *jobs, int n_jobs) {
    int n_here = 0;
    while (true) {
        CT_TRY(ct_transport_next(a->transport, &a->links.models, a->ccl.arrived, &n_here));
        if (n_here == 0) return compute_features(a, shared, jobs, n_jobs);
        int n_chosen = choose_jobs(a, a->ccl.arrived, n_here, jobs, n_jobs);
        CT_TRY(compute_features(a, shared, jobs, n_chosen));
        jobs += n_chosen;
        n_jobs -= n_chosen;
    }
}

static ct_status exchange(ct_agents *a, ct_bank *shared) {
    int n_own = a->ccl.n_own_models, n_far = a->links.neighbours.own.n - n_own;
    for (int i = 0; i < a->n; i++) {
        a->ccl.batches[i] = a->batches[i];
        a->ccl.batches[i].n = ct_cross_samples(&a->loss, a->batches[i].n);
    }
    CT_TRY(ct_agents_exchange(a, shared));
    CT_TRY(compute_features(a, shared, a->ccl.jobs, n_own));
    CT_TRY(compute_arrived(a, shared, a->ccl.jobs + n_own, n_far));
    a->ccl.edge_sums.fresh = false;
    CT_TRY(ct_copies_are_used(&a->copies)
               ? ct_copies_share_sums(a)
               : ct_transport_exchange(a->transport, &a->links.neighbours, CT_TRAFFIC_CLASS_SUMS,
                                       &a->ccl.edge_sums));
    ct_update u = ct_agents_update(a);
    SET(&u, &a->ccl.received, {1, &a->ccl.edge_sums, &a->ccl.gather});
    return ct_agents_apply(a, &u);
}

/* With some neighbours only: their messages, then the graph's again. Models that are there already
 * stay; others come from those neighbours now, and from everyone when they are mixed. */
static ct_status exchange_some(ct_agents *a, ct_bank *shared) {
    CT_TRY(ct_transport_finish(a->transport, &a->links.models));
    bool was_fresh = shared->fresh;
    choose_neighbours(a);
    CT_TRY(route(a, &a->ccl.contrast, !was_fresh));
    ct_cross_features_list(a, &a->ccl.contrast, was_fresh ? a->links.topology : &a->ccl.contrast);
    CT_TRY(exchange(a, shared));
    CT_TRY(route(a, a->links.topology, !was_fresh));
    shared->fresh = was_fresh;
    return CT_OK;
}

static float lambda(double share, float ce, float term) {
    if (ce <= 0) return 0; /* nothing known yet */
    double wanted = share * (double)ce;
    return (float)(wanted < MAX_LAMBDA * (double)term ? wanted / (double)term : MAX_LAMBDA);
}

static ct_status set_lambdas(ct_agents *a) {
    double share = a->ccl.economy.adaptive_share;
    for (int i = 0; i < a->n; i++) {
        float mean[CT_N_TERMS];
        CT_TRY(ct_bank_read(a->ccl.means, i, 0, CT_N_TERMS, mean));
        float lambdas[] = {lambda(share, mean[CT_LOSS_CE], mean[CT_LOSS_MV]),
                           lambda(share, mean[CT_LOSS_CE], mean[CT_LOSS_DV])};
        CT_TRY(ct_bank_write(&a->ccl.lambdas, i, 0, 2, lambdas));
    }
    return CT_OK;
}

ct_status ct_cross_features_exchange(ct_agents *a, ct_bank *shared, ct_objective *objective) {
    objective->cross = &a->ccl.features;
    objective->cross_begin = a->ccl.begin;
    objective->class_sums = &a->ccl.received;
    bool adapts = a->ccl.economy.adaptive_share > 0;
    objective->lambdas = adapts || a->ccl.world_lambdas != NULL ? &a->ccl.lambdas : NULL;
    if (adapts) CT_TRY(set_lambdas(a));
    if (ct_copies_are_used(&a->copies)) CT_TRY(ct_agents_share(a, &shared));
    return a->ccl.economy.neighbours > 0 ? exchange_some(a, shared) : exchange(a, shared);
}

ct_status ct_cross_features_update_means(ct_agents *a) {
    for (int i = 0; i < a->n; i++) {
        float mean[CT_N_TERMS], now[CT_N_TERMS];
        CT_TRY(ct_bank_read(a->ccl.means, i, 0, CT_N_TERMS, mean));
        CT_TRY(ct_bank_read(a->losses, i, a->loss_column, CT_N_TERMS, now));
        bool is_first = mean[CT_LOSS_CE] == 0;
        for (int k = 0; k < CT_N_TERMS; k++) {
            double value = (double)now[k];
            mean[k] =
                (float)(is_first ? value : MEAN_DECAY * (double)mean[k] + (1 - MEAN_DECAY) * value);
        }
        CT_TRY(ct_bank_write(a->ccl.means, i, 0, CT_N_TERMS, mean));
    }
    return CT_OK;
}
