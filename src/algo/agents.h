/* The agents of this process at one moment of training (of all seeds: their worlds are rows of the
 * same banks and never meet), and the verbs an algorithm is written in:
 *   ct_agents_exchange  neighbours' rows are on their way; the next verb that needs them waits
 *   ct_agents_share  the same of x, in fewer bytes if so wished; what neighbours have of it
 *   ct_agents_gradient  g = gradient of the objective (cross-entropy, CCL; sam.h) + weight decay
 *   SET / ct_agents_apply  assignments over whole banks (backend.h), mixing with W among them
 * Symbols: n own agents, P parameters, x and g [n x P], W [n x rows], eta = lr, beta = momentum. */
#ifndef CT_ALGO_AGENTS_H
#define CT_ALGO_AGENTS_H

#include "algo/copies.h"
#include "algo/cross_features.h"
#include "algo/faults.h"
#include "algo/lesson.h"
#include "algo/links.h"
#include "algo/sam.h"
#include "algo/speed.h"
#include "algo/steps.h"

/* What every algorithm may read; its own options are read by name (ct_own_number). */
typedef struct ct_hyper {
    double momentum;
    bool nesterov;
    double gamma; /* averaging rate: x <- x + gamma (W x - x) */
    double weight_decay;
    double clip_norm; /* longest gradient of an agent, decay included; 0: any */
} ct_hyper;

/* Values of options by name, from whoever knows them. */
typedef struct ct_option_values {
    const void *context;
    double (*number)(const void *context, const char *name);
    const char *(*word)(const void *context, const char *name);
} ct_option_values;

#define CT_MAX_BUFFERS 8

/* A named bank of the algorithm, as wide as x, zero at first; checkpoints hold it. */
typedef struct ct_buffer {
    char name[24];
    ct_bank bank;
    ct_routes *routes; /* of a bank with one row a message; NULL: one row an agent */
} ct_buffer;

typedef struct ct_agents {
    ct_bank x;          /* parameters */
    ct_bank g;          /* gradients */
    const ct_sparse *w; /* own rows of W in this step */
    double lr;          /* eta of this step */
    double lr_previous; /* eta of the step before; lr in the first one */
    long iteration;     /* steps done so far */
    ct_hyper hyper;
    int n;        /* own rows: agents of this process */
    int first;    /* the first one's place among all rows */
    int n_rows;   /* all rows: agents of all seeds, seed by seed, in all processes */
    int n_agents; /* of one seed */
    int n_seeds;
    const struct ct_algo *algo;
    void *state; /* the algorithm's own */
    ct_buffer buffers[CT_MAX_BUFFERS];
    int n_buffers;

    /* what the verbs work with; given, but for links and what follows ccl */
    ct_option_values options;
    ct_backend *backend;
    ct_transport *transport;
    ct_plan *plan;
    const ct_source *source;
    int max_batch;
    ct_batch *batches; /* [n] this iteration's, one an own agent */
    ct_bank *losses;   /* [n][...]: the step's losses go to column loss_column */
    size_t loss_column;
    ct_loss_spec loss;
    const ct_faults *faults; /* NULL: nothing ever fails */
    const ct_speeds *speeds; /* of what the simulated clock shows */
    ct_links links;
    ct_cross_features ccl;
    ct_copies copies;
    ct_own_steps steps;
    ct_sam sam;
    ct_lesson lesson;
    ct_fault_room fault_room;
    ct_bank running;    /* batchnorm's running statistics; no columns without batchnorm */
    ct_job *own_jobs;   /* [n] */
    ct_sparse clipping; /* [n x n] factors of the last clipping on the diagonal */
    float *norm_row;    /* [P] scratch of norms; NULL where nothing is clipped or perturbed */
    struct {            /* that this process computed */
        double own, features, gradients; /* under own models, forward and backward; under
                                            neighbours', up to the features; those both ways */
        long n_steps;
    } samples;
} ct_agents;

/* ---- an algorithm's ---- */

/* Buffer k: those of ct_algo.buffers in their order, then what was added. */
static inline ct_bank *ct_own_buffer(ct_agents *a, int k) {
    return &a->buffers[k].bank;
}
/* One more; with `routes`, opened by_edge and outliving the agents, one row a message. */
ct_status ct_agents_add_buffer(ct_agents *a, const char *name, ct_routes *routes);

/* The value of one of ct_algo.options. */
double ct_own_number(const ct_agents *a, const char *name);
const char *ct_own_word(const ct_agents *a, const char *name);
/* The form of the algorithm that this run takes, as ct_algo_variant. */
int ct_own_variant(const ct_agents *a);

/* The neighbours' rows of a bank with one row an agent, as they are now. */
ct_status ct_agents_exchange(ct_agents *a, ct_bank *bank);

/* x to the neighbours. *p: what they have of it now, x itself or the public copies (copies.h). */
ct_status ct_agents_share(ct_agents *a, ct_bank **p);

/* The same of a second bank, once in an iteration (ct_copies_add). */
ct_status ct_agents_share_also(ct_agents *a, ct_bank *bank, ct_bank **p);

/* Appends  r = W p - p  of what was shared; with steps of their own (steps.h), scaled by them. */
ct_status ct_agents_pull(ct_agents *a, ct_update *u, const ct_bank *p, ct_bank *r);

/* g = d objective / dx at `at` + weight_decay * at. With CCL the neighbours' models are the rows of
 * `shared` (exchanged if need be), which is `at` itself unless agents have moved on since. With --sam
 * it is taken uphill of `at` (sam.h). */
ct_status ct_agents_gradient(ct_agents *a, ct_bank *at, ct_bank *shared);

/* The same with soft targets for some rows of `at` (by own agent). */
ct_status ct_agents_taught_gradient(ct_agents *a, ct_bank *at, ct_bank *shared,
                                    const ct_soft_targets *soft);
/* g of these jobs alone, on models beside the agents' own: without contrast, and no losses. The jobs
 * write to the rows that they read; the other rows of g mean nothing. */
ct_status ct_agents_guest_gradient(ct_agents *a, const ct_bank *at, const ct_job *jobs, int n_jobs,
                                   const ct_soft_targets *soft);

/* An empty update over these agents, and its run. */
static inline ct_update ct_agents_update(const ct_agents *a) {
    return (ct_update){.n_rows = a->n};
}
ct_status ct_agents_apply(ct_agents *a, const ct_update *u);

/* Appends  d = g + beta m (Nesterov)  or  d = m. */
void ct_agents_direction(const ct_agents *a, ct_update *u, const ct_bank *g, const ct_bank *m,
                         ct_bank *d);
/* Appends  m = beta m + g  and the direction d. */
void ct_agents_momentum(const ct_agents *a, ct_update *u, const ct_bank *g, ct_bank *m, ct_bank *d);
/* Appends  r = W bank - bank,  bank = bank + gamma r. */
void ct_agents_gossip(const ct_agents *a, ct_update *u, ct_bank *bank, ct_bank *r);
/* Appends a step from gradients g, combine then adapt; d, r: temporaries.
 *   m  = beta m + g
 *   d  = g + beta m (Nesterov) or m
 *   x+ = x + gamma (W x - x) - eta d */
void ct_agents_combine_and_adapt(ct_agents *a, ct_update *u, const ct_bank *g, ct_bank *m,
                                 ct_bank *d, ct_bank *r);

/* Runs the two halves of adapt then combine:  x <- x - eta d  with m and d from a->g;
 * x <- x + gamma (W x - x)  after an exchange. */
ct_status ct_agents_adapt(ct_agents *a, ct_bank *m);
ct_status ct_agents_combine(ct_agents *a);
/* A whole step, combine then adapt, from what agents have shared of x; m may be NULL: d = g. */
ct_status ct_agents_combine_while_adapting(ct_agents *a, ct_bank *m);

/* Rounds of gossip before this iteration, and whether it is none (--local-steps). */
static inline long ct_agents_rounds(const ct_agents *a) {
    return a->links.schedule != NULL
               ? ct_local_steps_rounds(&a->links.schedule->local, a->iteration)
               : a->iteration;
}
static inline bool ct_agents_are_apart(const ct_agents *a) {
    return a->links.schedule != NULL &&
           ct_local_steps_is_local(&a->links.schedule->local, a->iteration);
}

/* The first iteration of a round, which ends with gossip. */
static inline bool ct_agents_begin_round(const ct_agents *a) {
    return a->iteration == 0 || a->links.schedule == NULL ||
           !ct_local_steps_is_local(&a->links.schedule->local, a->iteration - 1);
}

/* [n x seeds] 1 at a row's seed: spreads what all agents of a seed share. */
ct_status ct_agents_seeds(const ct_agents *a, ct_sparse *out);

/* ---- the run's ---- */

/* Takes all memory of the training steps. The caller has filled in what is given. */
ct_status ct_agents_init(ct_agents *a, const ct_graph *graph);
/* From now on agent i receives from its neighbours in `sources` and mixes with `weights`; both of
 * all rows: the graph that the agents were created with, or a step of the schedule. No memory is
 * taken; halo rows are nobody's until the next exchange. */
ct_status ct_agents_connect(ct_agents *a, const ct_topology *sources, const ct_sparse *weights);
/* The algorithm's state and buffers; a->x holds the start values. */
ct_status ct_agents_start(ct_agents *a, const struct ct_algo *algo);
void ct_agents_free(ct_agents *a);

#endif
