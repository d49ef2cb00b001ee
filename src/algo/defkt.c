/* Def-KT (Li, Li and Varshney: Decentralized Federated Learning via Mutual Knowledge Transfer, IEEE
 * Internet of Things Journal 2022, arXiv:2012.13063). Models are not averaged. Agents meet in pairs;
 * the model of one travels to the other, where the two teach each other on that agent's samples.
 * In every round of H iterations (--local-steps H) agents are paired at random along the graph's edges
 * (nobody is in two pairs), and of every pair one sends its model to the other. Until the next round
 *   host i, its own model x_i and its guest's y_i on the same batch:            x, y [n x P]
 *     p = softmax(f(x_i) / T)    q = softmax(f(y_i) / T)                        p, q [B x C]
 *     x_i+ = x_i - eta d_x,  d_x from grad [ CE(x_i) + w T^2 KL(q || p) ], q constant
 *     y_i+ = y_i - eta d_y,  d_y from grad [ CE(y_i) + w T^2 KL(p || q) ], p constant
 *   everyone else:
 *     x_i+ = x_i - eta d_x,  d_x from grad CE(x_i)
 * with heavy-ball momentum d = m, m = beta m + grad, which starts from zero in every round. With H = 1
 * it is plain SGD. w: --kt-weight, T: --kt-temperature; the method has w = T = 1. The host keeps
 *   paper  the model that has travelled, and forgets its own: they are swapped when they meet
 *   own    its own model, and forgets the guest
 * Agents send 1/2 of a model per round on average, if all are paired. W plays no part.
 * What was read: the paper's abstract, later papers' descriptions of it, and two programs by others
 * (a student's on EasyFL, which keeps the model that has travelled and says that this is the
 * paper's algorithm; MIT's SONaR, which keeps the own one). The paper's text and a program of its
 * authors were not at hand.
 * Deviation: in a round of the paper the senders train first, by themselves, and then the hosts; the
 * others wait. Here everyone has a batch in every iteration: senders and hosts of the round before
 * have trained until they meet again, and after that who sends goes on by itself.
 * Deviation: pairs are along the edges of the graph; with --topology full anyone may meet anyone, as
 * in the paper, which pairs some agents of all. */
#include "algo/algo.h"

#include "util/log.h"
#include "util/memory.h"
#include "util/rng.h"

enum { MOMENTUM, GUEST, GUEST_MOMENTUM }; /* m of x, y, m of y */
enum { PAPER, OWN };                      /* ct_own_variant */

typedef struct defkt_state {
    double *guest_of;  /* [n_rows] who sent row i the model that it hosts; -1: nobody */
    uint32_t *order;   /* [messages] */
    bool *is_paired;   /* [n_rows] */
    ct_routes routes;  /* of the models that travel */
    ct_sparse arrived; /* [n x rows] 1 at (i, row of the model that came to i) */
    ct_sparse stayed;  /* [n x n] 1 on the diagonal where none came */
    ct_sparse hosts;   /* [n x n] 1 on the diagonal where a guest is */
    ct_job *jobs;      /* [n] of the guests */
    int n_guests;
    int *of_guests, *of_hosts;    /* [n] rows of the targets, by job */
    ct_bank own_says, guest_says; /* [n][max_batch * ct_soft_width] p and q */
} defkt_state;

static ct_status create_targets(ct_agents *a, defkt_state *d) {
    const size_t width = (size_t)a->max_batch * ct_soft_width(a->plan->graph->n_classes);
    CT_TRY(ct_bank_create(a->backend, a->n, 0, width, &d->own_says));
    CT_TRY(ct_bank_create(a->backend, a->n, 0, width, &d->guest_says));
    CT_TRY(ct_make(&d->jobs, (size_t)a->n, "guests"));
    CT_TRY(ct_make(&d->of_guests, (size_t)a->n, "guests"));
    return ct_make(&d->of_hosts, (size_t)a->n, "guests");
}

/* Nobody sends or receives more than one model at a time. */
static ct_status create_routes(ct_agents *a, defkt_state *d) {
    const int n_rows = a->n_rows, n_messages = a->links.models.n_room;
    CT_TRY(ct_make(&d->guest_of, (size_t)n_rows, "pairs"));
    CT_TRY(ct_make(&d->is_paired, (size_t)n_rows, "pairs"));
    CT_TRY(ct_make(&d->order, (size_t)n_messages, "pairs"));
    for (int row = 0; row < n_rows; row++) d->guest_of[row] = -1;
    CT_TRY(ct_routes_create(n_rows, &d->routes));
    d->routes.n = 0;
    ct_routes_reserve_any(a->transport, false, a->n, a->n, &d->routes);
    return ct_routes_open(a->transport, a->backend, false, a->x.n, &d->routes);
}

static ct_status create(ct_agents *a) {
    defkt_state *d = a->state;
    CT_TRY(ct_plan_check_soft(a->plan));
    if (a->running.n > 0)
        return ct_fail(CT_INVAL, "def-kt moves models between agents and needs a norm without "
                                 "running statistics, not @norm batchnorm");
    if (a->hyper.momentum > 0 && (a->links.schedule == NULL || a->links.schedule->local.last <= 1))
        ct_note("def-kt with @local-steps 1 has no momentum");
    CT_TRY(create_routes(a, d));
    CT_TRY(ct_sparse_create(a->n, a->n + a->links.models.most_halo, a->n, &d->arrived));
    CT_TRY(ct_sparse_diagonal(a->n, &d->stayed));
    CT_TRY(ct_sparse_diagonal(a->n, &d->hosts));
    return create_targets(a, d);
}

static void free_state(void *opaque) {
    defkt_state *d = opaque;
    ct_free(d->guest_of);
    ct_free(d->is_paired);
    ct_free(d->order);
    ct_free(d->jobs);
    ct_free(d->of_guests);
    ct_free(d->of_hosts);
    ct_routes_free(&d->routes);
    ct_sparse_free(&d->arrived);
    ct_sparse_free(&d->stayed);
    ct_sparse_free(&d->hosts);
    ct_bank_free(&d->own_says);
    ct_bank_free(&d->guest_says);
}

static double *host_state(void *opaque, size_t *n) {
    defkt_state *d = opaque;
    *n = (size_t)d->routes.n_room;
    return d->guest_of;
}

/* ---- who meets whom ---- */

/* The row among first .. last - 1 that edge e leads to. */
static int end_of(const ct_topology *t, int first, int last, int e) {
    while (last - first > 1) {
        const int middle = first + (last - first) / 2;
        if (t->begin[middle] <= e)
            first = middle;
        else
            last = middle;
    }
    return first;
}

/* The edges of one seed's graph in random order; one is taken if both its ends are free. */
static void pair_world(const ct_agents *a, defkt_state *d, int world) {
    const ct_topology *t = a->links.topology;
    const int first = world * a->n_agents, end = first + a->n_agents;
    uint32_t n = 0;
    ct_rng rng;
    for (int e = t->begin[first]; e < t->begin[end]; e++) d->order[n++] = (uint32_t)e;
    ct_rng_init(&rng, a->copies.seeds[world], CT_RNG_PAIRS, 0, (uint32_t)ct_agents_rounds(a), 0);
    for (uint32_t k = 0; k < n; k++) d->order[k] -= (uint32_t)t->begin[first];
    ct_rng_shuffle(&rng, d->order, n);
    for (uint32_t k = 0; k < n; k++) {
        const int e = t->begin[first] + (int)d->order[k], from = t->neighbour[e];
        if (d->is_paired[from]) continue;
        const int to = end_of(t, first, end, e);
        if (d->is_paired[to]) continue;
        d->is_paired[from] = d->is_paired[to] = true;
        d->guest_of[to] = from;
    }
}

static void draw_pairs(const ct_agents *a, defkt_state *d) {
    for (int row = 0; row < a->n_rows; row++) {
        d->is_paired[row] = false;
        d->guest_of[row] = -1;
    }
    for (int world = 0; world < a->n_seeds; world++) pair_world(a, d, world);
    d->routes.n = 0;
    for (int row = 0; row < a->n_rows; row++) {
        if (d->guest_of[row] < 0) continue;
        d->routes.from[d->routes.n] = (int)d->guest_of[row];
        d->routes.to[d->routes.n++] = row;
    }
}

/* What the matrices and the jobs say of the pairs of now. */
static void place_guests(const ct_agents *a, defkt_state *d) {
    d->n_guests = 0;
    for (int i = 0; i < a->n; i++) {
        const bool hosts = d->guest_of[a->first + i] >= 0;
        d->stayed.value[i] = hosts ? 0 : 1;
        d->hosts.value[i] = hosts ? 1 : 0;
        d->of_hosts[i] = hosts ? i : -1;
        if (hosts) {
            d->jobs[d->n_guests] = (ct_job){.model = i, .batch = i, .out = i};
            d->of_guests[d->n_guests++] = i;
        }
    }
}

static void place_arrivals(const ct_agents *a, defkt_state *d) {
    int n = 0;
    d->arrived.begin[0] = 0;
    for (int i = 0; i < a->n; i++) {
        const int from = (int)d->guest_of[a->first + i];
        if (from >= 0) {
            d->arrived.column[n] = ct_routes_row(&d->routes, from);
            d->arrived.value[n++] = 1;
        }
        d->arrived.begin[i + 1] = n;
    }
}

/* Models travel, as y; then hosts have two. */
static ct_status meet(ct_agents *a, defkt_state *d) {
    ct_bank *x = &a->x, *y = ct_own_buffer(a, GUEST), came = ct_temp(1);
    CT_TRY(ct_routes_link(a->transport, &d->routes));
    place_arrivals(a, d);
    ct_update send = ct_agents_update(a);
    SET(&send, y, {1, x});
    CT_TRY(ct_agents_apply(a, &send));
    CT_TRY(ct_transport_exchange(a->transport, &d->routes, CT_TRAFFIC_PARAMETERS, y));

    ct_update receive = ct_agents_update(a);
    SET(&receive, &came, {1, y, &d->arrived}, {1, x, &d->stayed});
    if (ct_own_variant(a) == OWN) {
        SET(&receive, y, {1, &came});
    } else {
        SET(&receive, y, {1, x});
        SET(&receive, x, {1, &came});
    }
    return ct_agents_apply(a, &receive);
}

/* ---- an iteration ---- */

/* What hosts and guests say of the hosts' batches, before either learns. */
static ct_status ask(ct_agents *a, defkt_state *d) {
    const ct_softening how = {.temperature = ct_own_number(a, "kt-temperature"),
                              .hard = 1,
                              .soft = ct_own_number(a, "kt-weight")};
    ct_work work = {.params = &a->x,
                    .source = a->source,
                    .batches = a->batches,
                    .jobs = d->jobs,
                    .n_jobs = d->n_guests};
    for (int k = 0; k < d->n_guests; k++) a->samples.features += 2 * a->batches[d->jobs[k].batch].n;
    CT_TRY(ct_soften_jobs(a->plan, &work, &how, &d->own_says));
    work.params = ct_own_buffer(a, GUEST);
    return ct_soften_jobs(a->plan, &work, &how, &d->guest_says);
}

static ct_soft_targets targets(const ct_agents *a, const ct_bank *rows, const int *row) {
    return (ct_soft_targets){
        .rows = rows, .row = row, .temperature = ct_own_number(a, "kt-temperature")};
}

static ct_status teach_guests(ct_agents *a, defkt_state *d, double beta) {
    ct_bank *y = ct_own_buffer(a, GUEST), *m = ct_own_buffer(a, GUEST_MOMENTUM);
    const ct_soft_targets soft = targets(a, &d->own_says, d->of_guests);
    CT_TRY(ct_agents_guest_gradient(a, y, d->jobs, d->n_guests, &soft));
    ct_update u = ct_agents_update(a);
    SET(&u, m, {beta, m}, {1, &a->g, &d->hosts});
    SET(&u, y, {1, y}, {-a->lr, m});
    return ct_agents_apply(a, &u);
}

static ct_status step(ct_agents *a) {
    defkt_state *d = a->state;
    ct_bank *x = &a->x, *m = ct_own_buffer(a, MOMENTUM);
    const bool is_apart = ct_agents_are_apart(a);
    const double beta = is_apart ? a->hyper.momentum : 0;
    if (!is_apart) draw_pairs(a, d);
    place_guests(a, d);
    if (!is_apart) CT_TRY(meet(a, d));
    if (d->n_guests > 0) {
        CT_TRY(ask(a, d));
        CT_TRY(teach_guests(a, d, beta));
    }
    const ct_soft_targets soft = targets(a, &d->guest_says, d->of_hosts);
    CT_TRY(ct_agents_taught_gradient(a, x, x, &soft));
    ct_update u = ct_agents_update(a);
    SET(&u, m, {beta, m}, {1, &a->g});
    SET(&u, x, {1, x}, {-a->lr, m});
    return ct_agents_apply(a, &u);
}

const ct_algo ct_algo_defkt = {
    .name = "def-kt",
    .graphs = CT_GRAPHS_AVERAGED,
    .text = "Def-KT: models travel between random pairs and distil into each other (@variant "
            "paper|own)",
    .may_lose = CT_MAY_LOSE_NOTHING,
    .buffers = {"momentum", "guest", "guest momentum"},
    .options = {"kt-weight", "kt-temperature"},
    .variants = {"own"},
    .state_size = sizeof(defkt_state),
    .create = create,
    .step = step,
    .free = free_state,
    .host_state = host_state,
};
