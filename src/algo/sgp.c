/* Stochastic gradient push (Assran, Loizou, Ballas and Rabbat, ICML 2019): decentralized SGD on
 * directed graphs that may change, with weights A whose columns sum to 1 but whose rows need not.
 * Beside its numerator u every agent passes on a weight w, push-sum's correction.
 *   z  = u / w                       the model, what a->x holds                      [n x P]
 *   m  = beta m + g(z)
 *   d  = g + beta m  (Nesterov)   or   m
 *   u+ = A (u - eta d)
 *   w+ = A w                         w = 1 at first, the sum of all w stays n        [n]
 * Where the rows sum to 1 as well, w stays 1 and this is DSGDm-N. gamma: A <- I + gamma (A - I).
 * Weight decay is part of g(z), at the model. icml19 (the authors' program) hands u to its optimizer,
 * which so decays u, w times as much:
 *   g  = grad(z) + decay u
 * Deviation: --clip-norm clips grad(z) + decay z in both; their program does not clip. */
#include "algo/sgp.h"

#include "algo/algo.h"
#include "util/memory.h"

enum { MOMENTUM, NUMERATOR }; /* m, u */
enum { PAPER, ICML19 };       /* ct_own_variant */

typedef struct sgp_state {
    double *weight, *next; /* [rows] w before iteration `done`, and room for the one after */
    long done;
    ct_sparse scale; /* [n x n] w on the diagonal */
    ct_sparse more;  /* [n x n] w - 1: what icml19 decays beyond z */
    ct_sparse mix;   /* [n x n] A, row i divided by w+_i */
} sgp_state;

const double *ct_sgp_weights(const void *state) {
    return ((const sgp_state *)state)->weight;
}

static ct_status create(ct_agents *a) {
    sgp_state *sgp = a->state;
    CT_TRY(ct_make(&sgp->weight, (size_t)a->n_rows, "the agents' weights"));
    CT_TRY(ct_make(&sgp->next, (size_t)a->n_rows, "the agents' weights"));
    for (int row = 0; row < a->n_rows; row++) sgp->weight[row] = 1;
    CT_TRY(ct_sparse_diagonal(a->n, &sgp->scale));
    CT_TRY(ct_sparse_diagonal(a->n, &sgp->more));
    return ct_sparse_create(a->n, a->w->n_cols, a->links.most.weights, &sgp->mix);
}

static double share(const ct_agents *a, const ct_sparse *w, int i, int entry) {
    return a->hyper.gamma * w->value[entry] + (w->column[entry] == i ? 1 - a->hyper.gamma : 0);
}

/* w <- A w, of all rows: every process knows all weights */
static void push_weights(sgp_state *sgp, const ct_agents *a, const ct_sparse *w) {
    for (int i = 0; i < a->n_rows; i++) {
        sgp->next[i] = 0;
        for (int e = w->begin[i]; e < w->begin[i + 1]; e++)
            sgp->next[i] += share(a, w, i, e) * sgp->weight[w->column[e]];
    }
    double *before = sgp->weight;
    sgp->weight = sgp->next;
    sgp->next = before;
    sgp->done++;
}

/* The weights follow from the steps alone: a run that goes on from a checkpoint repeats them. */
static void catch_up(sgp_state *sgp, const ct_agents *a) {
    if (sgp->done == a->iteration) return;
    for (int row = 0; row < a->n_rows; row++) sgp->weight[row] = 1;
    sgp->done = 0;
    bool is_one = a->links.schedule == NULL || a->links.schedule->is_balanced;
    while (sgp->done < a->iteration && !is_one)
        push_weights(sgp, a, &ct_schedule_at(a->links.schedule, sgp->done)->w);
    sgp->done = a->iteration;
}

/* Sets the matrices, and the weights of after this step. */
static void set_matrices(sgp_state *sgp, const ct_agents *a) {
    const ct_sparse *w = a->w;
    for (int i = 0; i < a->n; i++) {
        sgp->scale.value[i] = sgp->weight[a->first + i];
        sgp->more.value[i] = sgp->weight[a->first + i] - 1;
    }
    push_weights(sgp, a, a->links.weights);
    for (int i = 0; i < a->n; i++) {
        for (int e = w->begin[i]; e < w->begin[i + 1]; e++) {
            sgp->mix.column[e] = w->column[e];
            sgp->mix.value[e] = share(a, w, i, e) / sgp->weight[a->first + i];
        }
        sgp->mix.begin[i + 1] = w->begin[i + 1];
    }
}

static ct_status step(ct_agents *a) {
    sgp_state *sgp = a->state;
    ct_bank *z = &a->x, *m = ct_own_buffer(a, MOMENTUM), *u = ct_own_buffer(a, NUMERATOR);
    ct_bank *g = &a->g, d = ct_temp(1);
    CT_TRY(ct_agents_gradient(a, z, z));
    catch_up(sgp, a);
    set_matrices(sgp, a);

    ct_update adapt = ct_agents_update(a);
    if (ct_own_variant(a) == ICML19) SET(&adapt, g, {1, g}, {a->hyper.weight_decay, z, &sgp->more});
    ct_agents_momentum(a, &adapt, g, m, &d);
    SET(&adapt, u, {1, z, &sgp->scale}, {-a->lr, &d});
    CT_TRY(ct_agents_apply(a, &adapt));

    CT_TRY(ct_agents_exchange(a, u));
    for (int k = 0; k < a->links.models.n; k++) /* w travels along */
        ct_transport_count(a->transport, a->links.models.from[k], CT_TRAFFIC_PARAMETERS,
                           sizeof(float));
    ct_update push = ct_agents_update(a);
    SET(&push, z, {1, u, &sgp->mix});
    return ct_agents_apply(a, &push);
}

static void free_sgp(void *state) {
    sgp_state *sgp = state;
    ct_free(sgp->weight);
    ct_free(sgp->next);
    ct_sparse_free(&sgp->scale);
    ct_sparse_free(&sgp->more);
    ct_sparse_free(&sgp->mix);
}

const ct_algo ct_algo_sgp = {
    .name = "sgp",
    .graphs = CT_GRAPHS_DIRECTED,
    .text = "stochastic gradient push: push-sum on directed and changing graphs "
            "(@variant paper|icml19)",
    .may_lose = CT_MAY_LOSE_MESSAGES,
    .why_not = "its weights would fall apart",
    .buffers = {"momentum", "numerator"},
    .variants = {"icml19"},
    .state_size = sizeof(sgp_state),
    .create = create,
    .step = step,
    .free = free_sgp,
};
