/* RelaySGD (Vogels et al., NeurIPS 2021) on a spanning tree. Every agent takes a local momentum
 * step to x_half; messages carry sums of models along tree edges, one hop an iteration, with the
 * number c of models inside (k in N_i without j; m and c on the right of the iteration before):
 *   m(i->j) = x_half_i + sum_k m(k->i)
 *   c(i->j) = 1        + sum_k c(k->i)
 *   x+_i    = (x_half_i + sum_j m(j->i) + (n - 1 - sum_j c(j->i)) fill) / n
 * fill stands for the models that have not arrived yet: the start values (init) or x_half_i (self).
 * After as many steps as the tree is wide nothing is missing. Counts follow from the iteration, so
 * every process keeps all of them and they need not travel. */
#include "algo/algo.h"

#include <string.h>

#include "util/log.h"
#include "util/memory.h"

typedef struct relay_state {
    ct_topology tree;    /* of every seed's graph, side by side */
    ct_routes routes;    /* along directed tree edges e = (i, j) */
    int *back;           /* [edges] the edge (j, i) */
    ct_bank *momentum;   /* [n] */
    ct_bank *start;      /* [n] x of iteration 0 */
    ct_bank *message[2]; /* [own edges] m(i->j), of this iteration and the one before in turn */
    double *count;       /* [2][edges] c(i->j) likewise */
    ct_sparse put;       /* [own edges x n]  1 at (e, i) */
    ct_sparse forward;   /* [own edges x edges]  1 at (e = (i, j), (k, i)) for k != j */
    ct_sparse take;      /* [n x edges]      1 at (i, (j, i)) */
    ct_sparse missing;   /* [n x n]          n - 1 - sum_j c(j->i) on the diagonal */
} relay_state;

static int edge(const ct_topology *t, int from, int to) {
    int e = t->begin[from];
    while (t->neighbour[e] != to) e++;
    return e;
}

/* Fills one row with the edges that point at agent i, except the one from `except`. */
static void add_arrivals(const relay_state *relay, ct_sparse *s, int row, int i, int except) {
    const ct_topology *t = &relay->tree;
    int entry = s->begin[row];
    for (int k = t->begin[i]; k < t->begin[i + 1]; k++) {
        if (t->neighbour[k] == except) continue;
        s->column[entry] = ct_routes_row(&relay->routes, relay->back[k]);
        s->value[entry++] = 1.0;
    }
    s->begin[row + 1] = entry;
}

static ct_status create_routes(relay_state *relay, const ct_agents *a) {
    const ct_topology *t = &relay->tree;
    int n_edges = t->begin[t->n];
    CT_TRY(ct_routes_create(n_edges, &relay->routes));
    relay->back = ct_new(int, (size_t)n_edges);
    relay->count = ct_new(double, 2 * (size_t)n_edges);
    if (relay->back == NULL || relay->count == NULL)
        return ct_fail(CT_NOMEM, "no memory for relay counts");
    for (int i = 0; i < t->n; i++) {
        for (int e = t->begin[i]; e < t->begin[i + 1]; e++) {
            relay->routes.from[e] = i;
            relay->routes.to[e] = t->neighbour[e];
            relay->back[e] = edge(t, t->neighbour[e], i);
        }
    }
    return ct_routes_open(a->transport, true, a->x.n, &relay->routes);
}

static ct_status create_matrices(relay_state *relay, const ct_agents *a) {
    const ct_topology *t = &relay->tree;
    const ct_span own = relay->routes.own;
    int n_rows = own.n + relay->routes.n_halo, n_forward = 0;
    for (int e = own.first; e < own.first + own.n; e++)
        n_forward += ct_topology_degree(t, relay->routes.from[e]) - 1;
    CT_TRY(ct_sparse_create(own.n, a->n, own.n, &relay->put));
    CT_TRY(ct_sparse_create(own.n, n_rows, n_forward, &relay->forward));
    CT_TRY(ct_sparse_create(a->n, n_rows, own.n, &relay->take));
    CT_TRY(ct_sparse_create(a->n, a->n, a->n, &relay->missing));
    for (int i = 0; i < a->n; i++) {
        add_arrivals(relay, &relay->take, i, a->first + i, -1);
        relay->missing.column[i] = i;
        relay->missing.begin[i + 1] = i + 1;
    }
    for (int e = 0; e < own.n; e++) {
        int from = relay->routes.from[own.first + e];
        relay->put.column[e] = from - a->first;
        relay->put.value[e] = 1.0;
        relay->put.begin[e + 1] = e + 1;
        add_arrivals(relay, &relay->forward, e, from, relay->routes.to[own.first + e]);
    }
    return CT_OK;
}

static ct_status create_buffers(relay_state *relay, ct_agents *a) {
    CT_TRY(ct_agents_buffer(a, "momentum", a->n, &relay->momentum));
    CT_TRY(ct_agents_buffer(a, "start", a->n, &relay->start));
    CT_TRY(ct_agents_edge_buffer(a, "message.0", &relay->routes, &relay->message[0]));
    CT_TRY(ct_agents_edge_buffer(a, "message.1", &relay->routes, &relay->message[1]));
    ct_update u = ct_agents_update(a);
    SET(&u, relay->start, {1, &a->x});
    return ct_agents_apply(a, &u);
}

static void free_relay(void *state) {
    relay_state *relay = state;
    ct_topology_free(&relay->tree);
    ct_routes_free(&relay->routes);
    ct_sparse_free(&relay->put);
    ct_sparse_free(&relay->forward);
    ct_sparse_free(&relay->take);
    ct_sparse_free(&relay->missing);
    ct_free(relay->back);
    ct_free(relay->count);
    ct_free(relay);
}

static ct_status create_tree(relay_state *relay, const ct_agents *a) {
    ct_topology *trees = ct_new(ct_topology, (size_t)a->n_seeds);
    if (trees == NULL) return ct_fail(CT_NOMEM, "no memory for %d trees", a->n_seeds);
    ct_status status = CT_OK;
    bool was_tree = true;
    for (int s = 0; s < a->n_seeds && status == CT_OK; s++)
        status = ct_topology_spanning_tree(&a->graphs[s], &trees[s], &was_tree);
    if (status == CT_OK && !was_tree)
        ct_note("relaysgd relays along a spanning tree of '%s' (%d of its %d edges)",
                a->graphs[0].name, a->n_agents - 1, a->graphs[0].begin[a->n_agents] / 2);
    if (status == CT_OK) status = ct_topology_join(trees, a->n_seeds, &relay->tree);
    for (int s = 0; s < a->n_seeds; s++) ct_topology_free(&trees[s]);
    ct_free(trees);
    return status;
}

static ct_status create(ct_agents *a, void **state) {
    relay_state *relay = ct_alloc(1, sizeof *relay);
    if (relay == NULL) return ct_fail(CT_NOMEM, "no memory for relaysgd");
    *state = relay;
    CT_TRY(create_tree(relay, a));
    CT_TRY(create_routes(relay, a));
    CT_TRY(create_matrices(relay, a));
    return create_buffers(relay, a);
}

/* Counts of this iteration's messages, and what each own agent still misses. */
static void count_models(relay_state *relay, const ct_agents *a, const double *before,
                         double *now) {
    const ct_topology *t = &relay->tree;
    for (int i = 0; i < t->n; i++) {
        double arrived = 0;
        for (int e = t->begin[i]; e < t->begin[i + 1]; e++) arrived += before[relay->back[e]];
        for (int e = t->begin[i]; e < t->begin[i + 1]; e++)
            now[e] = 1 + arrived - before[relay->back[e]];
    }
    for (int i = 0; i < a->n; i++) {
        int row = a->first + i;
        relay->missing.value[i] = a->n_agents - 1;
        for (int e = t->begin[row]; e < t->begin[row + 1]; e++)
            relay->missing.value[i] -= now[relay->back[e]];
    }
}

static double *host_state(void *state, size_t *n) {
    relay_state *relay = state;
    *n = 2 * (size_t)relay->routes.n;
    return relay->count;
}

static ct_status step(ct_agents *a, void *state) {
    relay_state *relay = state;
    int now = (int)(a->iteration & 1), before = !now, n_edges = relay->routes.n;
    ct_bank *x = &a->x, *m = relay->momentum, d = ct_temp(1), half = ct_temp(1);
    CT_TRY(ct_agents_gradient(a, x, x));
    count_models(relay, a, relay->count + before * n_edges, relay->count + now * n_edges);

    ct_update send = ct_agents_update(a);
    SET(&send, m, {a->hyper.momentum, m}, {1, &a->g});
    ct_agents_direction(a, &send, m, &d);
    SET(&send, x, {1, x}, {-a->lr, &d});
    SET(&send, relay->message[now], {1, x, &relay->put},
        {1, relay->message[before], &relay->forward});
    CT_TRY(ct_agents_apply(a, &send));
    CT_TRY(ct_transport_exchange(a->transport, &relay->routes, CT_TRAFFIC_PARAMETERS,
                                 relay->message[now]));

    const double share = 1.0 / a->n_agents;
    bool fill_self = strcmp(a->hyper.relay_fill, "self") == 0;
    ct_update receive = ct_agents_update(a);
    SET(&receive, &half, {1, x});
    SET(&receive, x, {share, &half}, {share, relay->message[now], &relay->take},
        {share, fill_self ? &half : relay->start, &relay->missing});
    return ct_agents_apply(a, &receive);
}

const ct_algo ct_algo_relaysgd = {
    .name = "relaysgd",
    .graphs = CT_GRAPHS_FIXED,
    .text = "RelaySGD: models relayed along a spanning tree (--relay-fill init|self)",
    .create = create,
    .step = step,
    .free = free_relay,
    .host_state = host_state,
};
