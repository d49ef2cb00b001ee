/* RelaySGD (Vogels et al., NeurIPS 2021) on a spanning tree. Every agent takes a local momentum
 * step to x_half, as dsgdm's; messages carry sums of models along tree edges, one hop an iteration,
 * with the number c of models inside (k in N_i without j; m and c on the right of the iteration
 * before):                                                    x, m(i->j) [P], c(i->j) a number
 *   m(i->j) = x_half_i + sum_k m(k->i)
 *   c(i->j) = 1        + sum_k c(k->i)
 *   x+_i    = (x_half_i + sum_j m(j->i) + (n - 1 - sum_j c(j->i)) fill) / n
 * fill stands for the models that have not arrived yet: the start values (init) or x_half_i (self).
 * After as many steps as the tree is wide nothing is missing. Counts follow from the iteration, so
 * every process keeps all of them and they need not travel. Where messages are lost (--fault), the
 * last one received stands in, with its count.
 * On double-binary-tree one half of the parameters is relayed along each of the two trees: messages
 * are half as long, and who relays for many in one tree is a leaf of the other. */
#include "algo/algo.h"

#include <string.h>

#include "util/log.h"
#include "util/memory.h"

enum { MOMENTUM, START, MESSAGES }; /* m; x of iteration 0; the messages of each relay */

/* What travels along one tree. */
typedef struct relay {
    ct_topology tree;  /* of every seed's graph, side by side */
    size_t first, n;   /* columns of x that it carries */
    ct_routes routes;  /* along directed tree edges e = (i, j) */
    int *back;         /* [edges] the edge (j, i) */
    int message;       /* its two buffers from here on: [own edges] m(i->j), of this iteration
                            and the one before in turn */
    double *count;     /* [2][edges] c(i->j) likewise */
    ct_sparse put;     /* [own edges x n]  1 at (e, i) */
    ct_sparse forward; /* [own edges x edges]  1 at (e = (i, j), (k, i)) for k != j */
    ct_sparse take;    /* [n x edges]      1 at (i, (j, i)) */
    ct_sparse missing; /* [n x n]          n - 1 - sum_j c(j->i) on the diagonal */
} relay;

typedef struct relay_state {
    relay relays[2];
    int n_relays;
    double *counts; /* every relay's */
    size_t n_counts;
} relay_state;

/* The relay's columns of a bank as wide as x. */
static ct_bank part_of(const relay *r, const ct_bank *bank) {
    ct_bank part = *bank;
    part.data += r->first;
    part.n = r->n;
    return part;
}

static int edge(const ct_topology *t, int from, int to) {
    int e = t->begin[from];
    while (t->neighbour[e] != to) e++;
    return e;
}

/* Fills one row with the edges that point at agent i, except the one from `except`. */
static void add_arrivals(const relay *r, const ct_agents *a, ct_sparse *s, int row, int i,
                         int except) {
    const ct_topology *t = &r->tree;
    int entry = s->begin[row];
    for (int k = t->begin[i]; k < t->begin[i + 1]; k++) {
        if (t->neighbour[k] == except) continue;
        s->column[entry] = ct_links_arrival(a, &r->routes, r->back[k]);
        s->value[entry++] = 1.0;
    }
    s->begin[row + 1] = entry;
}

static ct_status create_routes(relay *r, ct_agents *a) {
    const ct_topology *t = &r->tree;
    int n_edges = t->begin[t->n];
    CT_TRY(ct_routes_create(n_edges, &r->routes));
    CT_TRY(ct_make(&r->back, (size_t)n_edges, "the relays"));
    for (int i = 0; i < t->n; i++) {
        for (int e = t->begin[i]; e < t->begin[i + 1]; e++) {
            r->routes.from[e] = i;
            r->routes.to[e] = t->neighbour[e];
            r->back[e] = edge(t, t->neighbour[e], i);
        }
    }
    if (a->faults != NULL) {
        r->routes.arrived = ct_faults_arrived;
        r->routes.context = a;
    }
    return ct_routes_open(a->transport, a->backend, true, r->n, &r->routes);
}

static ct_status create_matrices(relay *r, const ct_agents *a) {
    const ct_topology *t = &r->tree;
    const ct_span own = r->routes.own;
    int n_rows = own.n + ct_links_far_rows(a, &r->routes), n_forward = 0;
    for (int e = own.first; e < own.first + own.n; e++)
        n_forward += ct_topology_degree(t, r->routes.from[e]) - 1;
    CT_TRY(ct_sparse_create(own.n, a->n, own.n, &r->put));
    CT_TRY(ct_sparse_create(own.n, n_rows, n_forward, &r->forward));
    CT_TRY(ct_sparse_create(a->n, n_rows, own.n, &r->take));
    CT_TRY(ct_sparse_diagonal(a->n, &r->missing));
    for (int i = 0; i < a->n; i++) add_arrivals(r, a, &r->take, i, a->first + i, -1);
    for (int e = 0; e < own.n; e++) {
        int from = r->routes.from[own.first + e];
        r->put.column[e] = from - a->first;
        r->put.value[e] = 1.0;
        r->put.begin[e + 1] = e + 1;
        add_arrivals(r, a, &r->forward, e, from, r->routes.to[own.first + e]);
    }
    return CT_OK;
}

static ct_status create_buffers(relay_state *state, ct_agents *a) {
    static const char *const names[] = {"message.0", "message.1", "message.2", "message.3"};
    for (int k = 0; k < 2 * state->n_relays; k++)
        CT_TRY(ct_agents_add_buffer(a, names[k], &state->relays[k / 2].routes));
    state->relays[0].message = MESSAGES;
    state->relays[1].message = MESSAGES + 2;
    ct_update u = ct_agents_update(a);
    SET(&u, ct_own_buffer(a, START), {1, &a->x});
    return ct_agents_apply(a, &u);
}

static void free_relays(void *opaque) {
    relay_state *state = opaque;
    for (int k = 0; k < state->n_relays; k++) {
        relay *r = &state->relays[k];
        ct_topology_free(&r->tree);
        ct_routes_free(&r->routes);
        ct_sparse_free(&r->put);
        ct_sparse_free(&r->forward);
        ct_sparse_free(&r->take);
        ct_sparse_free(&r->missing);
        ct_free(r->back);
    }
    ct_free(state->counts);
}

/* Tree k of one seed's graph. */
static ct_status find_tree(const relay_state *state, const ct_topology *graph, int k,
                           ct_topology *out) {
    bool was_tree = true;
    if (state->n_relays == 2) return ct_topology_binary_tree(graph->n, k == 1, out);
    CT_TRY(ct_topology_spanning_tree(graph, out, &was_tree));
    if (!was_tree)
        ct_note("relaysgd relays along a spanning tree of '%s' (%d of its %d edges)", graph->name,
                graph->n - 1, graph->begin[graph->n] / 2);
    return CT_OK;
}

static ct_status create_tree(relay_state *state, const ct_agents *a, int k) {
    ct_topology *trees;
    CT_TRY(ct_make(&trees, (size_t)a->n_seeds, "the trees"));
    ct_status status = CT_OK;
    for (int s = 0; s < a->n_seeds && status == CT_OK; s++)
        status = find_tree(state, &a->links.graphs[s], k, &trees[s]);
    if (status == CT_OK) status = ct_topology_join(trees, a->n_seeds, &state->relays[k].tree);
    for (int s = 0; s < a->n_seeds; s++) ct_topology_free(&trees[s]);
    ct_free(trees);
    return status;
}

/* Where x is cut in two: in the middle, but on a boundary that rows have too. */
static void divide_columns(relay_state *state, size_t n) {
    size_t middle = state->n_relays == 1 ? n : n / 2 / CT_ROW_ALIGN * CT_ROW_ALIGN;
    state->relays[0].n = middle;
    state->relays[1].first = middle;
    state->relays[1].n = n - middle;
}

static ct_status create_counts(relay_state *state) {
    for (int k = 0; k < state->n_relays; k++)
        state->n_counts += 2 * (size_t)state->relays[k].routes.n;
    CT_TRY(ct_make(&state->counts, state->n_counts, "relay counts"));
    state->relays[0].count = state->counts;
    state->relays[1].count = state->counts + 2 * (size_t)state->relays[0].routes.n;
    return CT_OK;
}

static ct_status create(ct_agents *a) {
    relay_state *state = a->state;
    bool is_double = strcmp(a->links.graphs[0].name, "double-binary-tree") == 0;
    state->n_relays = is_double && a->x.n >= 2 * CT_ROW_ALIGN ? 2 : 1;
    divide_columns(state, a->x.n);
    for (int k = 0; k < state->n_relays; k++) {
        CT_TRY(create_tree(state, a, k));
        CT_TRY(create_routes(&state->relays[k], a));
        CT_TRY(create_matrices(&state->relays[k], a));
    }
    CT_TRY(create_counts(state));
    return create_buffers(state, a);
}

/* A message that is lost leaves its receiver with the one before, and its count. */
static void lose_counts(const relay *r, const ct_agents *a, const double *before, double *now) {
    int what = ct_faults_what(a, &a->buffers[r->message + (a->iteration & 1)].bank);
    for (int e = 0; e < r->routes.n; e++)
        if (!ct_faults_delivers(a->faults, a->iteration, r->routes.from[e], r->routes.to[e], what))
            now[e] = before[e];
}

/* Counts of this iteration's messages, and what each own agent still misses. */
static void count_models(relay *r, const ct_agents *a, const double *before, double *now) {
    const ct_topology *t = &r->tree;
    for (int i = 0; i < t->n; i++) {
        double arrived = 0;
        for (int e = t->begin[i]; e < t->begin[i + 1]; e++) arrived += before[r->back[e]];
        for (int e = t->begin[i]; e < t->begin[i + 1]; e++)
            now[e] = 1 + arrived - before[r->back[e]];
    }
    if (a->faults != NULL) lose_counts(r, a, before, now);
    for (int i = 0; i < a->n; i++) {
        int row = a->first + i;
        r->missing.value[i] = a->n_agents - 1;
        for (int e = t->begin[row]; e < t->begin[row + 1]; e++)
            r->missing.value[i] -= now[r->back[e]];
    }
}

static double *host_state(void *opaque, size_t *n) {
    relay_state *state = opaque;
    *n = state->n_counts;
    return state->counts;
}

/* One hop along a tree, from x_half to x+ in the relay's columns. */
static ct_status pass_on(ct_agents *a, relay *r) {
    int now = (int)(a->iteration & 1), before = !now, n_edges = r->routes.n;
    ct_bank *message = ct_own_buffer(a, r->message + now);
    ct_bank *earlier = ct_own_buffer(a, r->message + before);
    ct_bank x = part_of(r, &a->x), start = part_of(r, ct_own_buffer(a, START)), half = ct_temp(1);
    count_models(r, a, r->count + before * n_edges, r->count + now * n_edges);
    ct_update send = ct_agents_update(a);
    SET(&send, message, {1, &x, &r->put}, {1, earlier, &r->forward});
    CT_TRY(ct_agents_apply(a, &send));
    r->routes.before = earlier;
    CT_TRY(ct_transport_exchange(a->transport, &r->routes, CT_TRAFFIC_PARAMETERS, message));

    const double share = 1.0 / a->n_agents;
    bool fill_self = strcmp(ct_own_word(a, "relay-fill"), "self") == 0;
    ct_update receive = ct_agents_update(a);
    SET(&receive, &half, {1, &x});
    SET(&receive, &x, {share, &half}, {share, message, &r->take},
        {share, fill_self ? &half : &start, &r->missing});
    return ct_agents_apply(a, &receive);
}

static ct_status step(ct_agents *a) {
    relay_state *state = a->state;
    CT_TRY(ct_agents_gradient(a, &a->x, &a->x));
    CT_TRY(ct_agents_adapt(a, ct_own_buffer(a, MOMENTUM)));
    for (int k = 0; k < state->n_relays; k++) CT_TRY(pass_on(a, &state->relays[k]));
    return CT_OK;
}

const ct_algo ct_algo_relaysgd = {
    .name = "relaysgd",
    .graphs = CT_GRAPHS_FIXED,
    .text = "RelaySGD: models relayed along a spanning tree or two (@relay-fill init|self)",
    .may_lose = CT_MAY_LOSE_MESSAGES,
    .why_not = "its tree would fall apart",
    .buffers = {"momentum", "start"},
    .options = {"relay-fill"},
    .state_size = sizeof(relay_state),
    .create = create,
    .step = step,
    .free = free_relays,
    .host_state = host_state,
};
