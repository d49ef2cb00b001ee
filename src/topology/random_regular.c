/* A random graph in which everyone has d neighbours. The pairing model: every agent has d stubs,
 * the shuffled stubs are joined two by two. A pair that would make a loop or a double edge is put
 * back and shuffled again with the other left-overs (Steger and Wormald, 1999), as starting over
 * would take e^(d*d/4) attempts; only a dead end and an unconnected graph start over. */
#include "topology/topology_internal.h"

#include "util/memory.h"
#include "util/rng.h"

enum { MAX_ATTEMPTS = 1000, MAX_FRUITLESS_ROUNDS = 100 };

/* Edges in use: open addressing, a power of two of slots, at most half full. */
typedef struct edge_set {
    uint64_t *slot; /* [n_slots] low agent << 32 | high agent; 0 is free (no edge has high = 0) */
    size_t n_slots;
} edge_set;

static bool insert_edge(edge_set *set, uint32_t a, uint32_t b) {
    uint64_t key = a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
    size_t at = (size_t)(key * 0x9E3779B97F4A7C15u >> 20) & (set->n_slots - 1);
    while (set->slot[at] != 0) {
        if (set->slot[at] == key) return false;
        at = (at + 1) & (set->n_slots - 1);
    }
    set->slot[at] = key;
    return true;
}

typedef struct workspace {
    uint32_t *stub; /* [n * degree] the agents whose stubs are left */
    edge_set set;
} workspace;

static void workspace_free(workspace *work) {
    ct_free(work->set.slot);
    ct_free(work->stub);
}

static ct_status workspace_create(int n, int degree, workspace *out) {
    size_t n_stubs = (size_t)n * (size_t)degree;
    out->set.n_slots = 16;
    while (out->set.n_slots < n_stubs) out->set.n_slots *= 2;
    CT_TRY(ct_make(&out->stub, n_stubs, "a random graph"));
    return ct_make(&out->set.slot, out->set.n_slots, "a random graph");
}

/* Joins what can be joined of the shuffled stubs; returns how many are left, in front. */
static size_t join_pairs(workspace *work, size_t n_stubs, ct_edge_list *edges) {
    size_t n_left = 0;
    for (size_t k = 0; k < n_stubs; k += 2) {
        uint32_t a = work->stub[k], b = work->stub[k + 1];
        if (a != b && insert_edge(&work->set, a, b)) {
            ct_edge_list_add(edges, (int)a, (int)b);
        } else {
            work->stub[n_left++] = a;
            work->stub[n_left++] = b;
        }
    }
    return n_left;
}

/* One attempt; false in a dead end. */
static bool join_all(workspace *work, int degree, ct_rng *rng, ct_edge_list *edges) {
    size_t n_stubs = (size_t)edges->n * (size_t)degree;
    for (size_t k = 0; k < n_stubs; k++) work->stub[k] = (uint32_t)(k / (size_t)degree);
    for (size_t k = 0; k < work->set.n_slots; k++) work->set.slot[k] = 0;
    int n_fruitless = 0;
    while (n_stubs > 0 && n_fruitless < MAX_FRUITLESS_ROUNDS) {
        ct_rng_shuffle(rng, work->stub, n_stubs);
        size_t n_left = join_pairs(work, n_stubs, edges);
        n_fruitless = n_left == n_stubs ? n_fruitless + 1 : 0;
        n_stubs = n_left;
    }
    return n_stubs == 0;
}

/* One attempt as a graph; *found says whether it is simple and, if that is asked for, connected. */
static ct_status attempt_graph(const ct_topology_request *request, int degree, bool connected,
                               uint32_t attempt, workspace *work, ct_topology *out, bool *found) {
    ct_rng rng;
    ct_rng_init(&rng, request->seed, CT_RNG_TOPOLOGY, 0, attempt, 0);
    CT_SCOPED(ct_edge_list) edges = {.n = request->n};
    *found = false;
    if (!join_all(work, degree, &rng, &edges)) return CT_OK;
    CT_SCOPED(ct_topology) t = {0};
    int unreached = -1;
    CT_TRY(ct_edge_list_finish(&edges, &t));
    if (connected) CT_TRY(ct_topology_walk(&t, NULL, &unreached));
    *found = unreached < 0;
    if (*found) ct_move(out, &t);
    return CT_OK;
}

static ct_status make_by_pairing(const ct_topology_request *request, int degree, bool connected,
                                 ct_topology *out) {
    CT_SCOPED(workspace) work = {0};
    CT_TRY(workspace_create(request->n, degree, &work));
    bool found = false;
    for (uint32_t k = 0; k < MAX_ATTEMPTS && !found; k++)
        CT_TRY(attempt_graph(request, degree, connected, k, &work, out, &found));
    if (found) return CT_OK;
    return ct_fail(CT_INVAL,
                   "found no graph of %d agents with %d neighbours each; try another seed",
                   request->n, degree);
}

/* Two neighbours each and connected: a ring in random order. Pairing would find one as well, but
 * the larger the ring the more often it falls into several. */
static ct_status add_random_ring(const ct_topology_request *request, ct_edge_list *out) {
    CT_SCOPED_BLOCK(uint32_t) order = NULL;
    CT_TRY(ct_make(&order, (size_t)request->n, "a random ring"));
    for (int i = 0; i < request->n; i++) order[i] = (uint32_t)i;
    ct_rng rng;
    ct_rng_init(&rng, request->seed, CT_RNG_TOPOLOGY, 0, 0, 0);
    ct_rng_shuffle(&rng, order, (size_t)request->n);
    for (int i = 0; i < request->n; i++)
        ct_edge_list_add(out, (int)order[i], (int)order[(i + 1) % request->n]);
    return CT_OK;
}

static int default_degree(int n) {
    if (n <= 3) return n - 1;
    return n % 2 == 0 ? 3 : 4;
}

static ct_status read_degree(const ct_topology_request *request, int *out) {
    int64_t degree = default_degree(request->n), n = request->n;
    if (request->argument != NULL && !ct_parse_i64(request->argument, &degree))
        return ct_fail(CT_INVAL, "topology 'random-regular:%s': the degree must be a number",
                       request->argument);
    const char *why = NULL;
    if (degree < 0 || degree >= n)
        why = ": the degree must be less than the number of agents";
    else if (n * degree % 2 != 0)
        why = ": agents times degree must be even";
    else if (degree < 2 && degree != n - 1)
        why = " is not connected: the degree must be at least 2";
    if (why != NULL)
        return ct_fail(CT_INVAL, "topology 'random-regular:%lld' of %d agents%s", (long long)degree,
                       request->n, why);
    if ((size_t)(n * degree / 2) > CT_MAX_EDGES)
        return ct_fail(CT_INVAL, "topology 'random-regular:%lld' of %d agents: more than %zu edges",
                       (long long)degree, request->n, CT_MAX_EDGES);
    *out = (int)degree;
    return CT_OK;
}

/* More than half of all neighbours: a graph of the others is left out. What is left is connected,
 * and pairing works where it is sparse. */
ct_status ct_topology_make_random_regular(const ct_topology_request *request, ct_edge_list *out) {
    int degree = 0, n = request->n;
    CT_SCOPED(ct_topology) t = {0};
    CT_TRY(read_degree(request, &degree));
    if (degree == 2) return add_random_ring(request, out);
    bool is_dense = degree > n / 2;
    CT_TRY(make_by_pairing(request, is_dense ? n - 1 - degree : degree, !is_dense, &t));
    if (!is_dense) ct_edge_list_add_graph(out, &t, 0);
    for (int i = 0; i < n && is_dense; i++)
        for (int j = i + 1; j < n; j++)
            if (!ct_topology_has_edge(&t, i, j)) ct_edge_list_add(out, i, j);
    return CT_OK;
}
