/* The agents of this process at one moment of training (of all seeds: their worlds are rows of the
 * same banks and never meet), and the verbs an algorithm is written in:
 *   ct_agents_exchange  neighbours' rows are on their way; the next verb that needs them waits
 *   ct_agents_gradient  g = gradient of the objective (cross-entropy, CCL) + weight decay
 *   SET / ct_agents_apply  assignments over whole banks (backend.h), mixing with W among them */
#ifndef CT_ALGO_AGENTS_H
#define CT_ALGO_AGENTS_H

#include "algo/faults.h"
#include "backend/backend.h"
#include "topology/schedule.h"
#include "topology/topology.h"
#include "transport/transport.h"

typedef struct ct_hyper {
    double momentum;
    bool nesterov;
    double gamma; /* averaging rate: x <- x + gamma (W x - x) */
    double weight_decay;
    double clip_norm;       /* longest gradient of an agent, decay included; 0: any */
    const char *variant;    /* qg-dsgdm: paper, atc, wacv24 */
    const char *relay_fill; /* relaysgd: init, self */
    double ngc_alpha;       /* ngc: data-variant against model-variant gradients */
    double cga_margin;      /* cga: least multiplier of a constraint */
    double gut_mu;          /* gut: how much of what was tracked counts */
} ct_hyper;

/* What CCL may leave out, and how its weights are chosen (cross_features.c). */
typedef struct ct_ccl_economy {
    int every;             /* contrast in every so many iterations */
    int neighbours;        /* with so many of an agent's neighbours, in turn; 0: all */
    double adaptive_share; /* lambdas such that a term is this part of L_ce; 0: those given */
    int min_class_count;   /* class sums of fewer samples are kept to oneself; 1: none */
} ct_ccl_economy;

#define CT_MAX_BUFFERS 8

typedef struct ct_buffer {
    char name[24];
    ct_bank bank;
    ct_routes *routes; /* of a bank with one row a message; NULL: one row an agent */
} ct_buffer;

typedef struct ct_agents {
    /* given by the caller, who keeps them alive */
    ct_backend *backend;
    ct_transport *transport;
    ct_plan *plan;
    const ct_source *source;
    const ct_topology *graphs; /* [n_seeds] who talks to whom, in each seed's world */
    int n_seeds;
    const ct_topology *topology; /* the graphs side by side: rows of all seeds */
    const ct_sparse *weights;    /* its mixing weights, block by block */
    ct_schedule *schedule;       /* whose steps topology and weights are; NULL: they stay */
    double lambda_min;           /* smallest eigenvalue of any seed's mixing weights */
    ct_hyper hyper;
    ct_loss_spec loss;
    const double *world_lambdas; /* [n_seeds][2] lambda_m, lambda_d; NULL: the loss' for all */
    ct_ccl_economy economy;
    const ct_faults *faults; /* NULL: nothing ever fails */
    int max_batch;

    /* set before every step */
    ct_batch *batches;  /* [n] this iteration's, one an own agent */
    double lr;          /* eta of this step */
    double lr_previous; /* eta of the step before; lr in the first one */
    long iteration;     /* steps done so far */
    ct_bank *losses;    /* [n][...]: the step's losses go to column loss_column */
    size_t loss_column;

    /* state */
    int n;              /* own rows: agents of this process */
    int first;          /* the first one's place among all rows */
    int n_rows;         /* all rows: agents of all seeds, seed by seed, in all processes */
    int n_agents;       /* of one seed */
    ct_sparse mixing;   /* own rows of W over the rows of a bank, sums still in agents' order */
    const ct_sparse *w; /* &mixing */
    ct_bank x;          /* parameters */
    ct_bank g;          /* gradients */
    ct_bank running;    /* batchnorm's running statistics; no columns without batchnorm */
    ct_buffer buffers[CT_MAX_BUFFERS]; /* the algorithm's own, by name */
    int n_buffers;

    /* exchange along edges e = (i, j), j a neighbour that i receives from: with CCL, cross-features
     * of agent i's batch under model j */
    ct_routes models;     /* j sends its row to i, for every edge */
    ct_routes neighbours; /* i answers j with row e, for every edge */
    struct {
        int edges, arrivals, weights; /* of own agents: messages to them, answers to them, entries
                                         of their rows of W */
    } most;                           /* of any step */
    ct_job *own_jobs;                 /* [n] */
    ct_job *cross_jobs;               /* [own edges] those with an own model j first */
    int n_cross_own;                  /* so many of them */
    int *cross_begin;                 /* [n + 1] own agent's rows of `cross` */
    ct_bank cross;                    /* [own edges][max_batch * r] z_ji */
    ct_bank edge_sums;       /* [own edges][C * (r + 1)] class sums of z_ji, sent from i to j */
    ct_bank received;        /* [n][C * (r + 1)] sums of what an agent's neighbours sent it */
    ct_sparse gather;        /* received = gather * edge_sums */
    ct_topology contrast;    /* of all rows: with whom an iteration contrasts, if not with all */
    ct_batch *cross_batches; /* [n] what cross-features are taken of */
    float *class_row;        /* [C * (r + 1)] scratch, where class sums are withheld */
    ct_bank lambdas; /* [n][2] lambda_m, lambda_d of every agent, where they differ or adapt */
    ct_bank *means;  /* [n] columns 0-2: running means of L_ce, L_mv, L_dv, if they adapt */

    /* what this process computed: samples under own models (forward and backward), under
     * neighbours' models up to the features, and under neighbours' models forward and backward */
    struct {
        double own, features, gradients;
        long n_steps;
    } samples;

    ct_sparse clip_scale; /* [n x n] factors of the last clipping on the diagonal */
    float *clip_row;      /* [P] scratch */

    float *fault_row; /* scratch, as wide as any row that travels */
    float *frozen;    /* rows of dead agents during a step */
    long linked_at;   /* the last iteration whose dead the links know; -1: none yet */
} ct_agents;

/* Takes all memory of the training steps. The caller has filled the first part. */
ct_status ct_agents_init(ct_agents *a, const ct_graph *graph);
/* From now on agent i receives from its neighbours in `sources` and mixes with `weights` (links.c);
 * both of all rows: the graph that the agents were created with, or a step of the schedule. No
 * memory is taken; halo rows are nobody's until the next exchange. */
ct_status ct_agents_connect(ct_agents *a, const ct_topology *sources, const ct_sparse *weights);
void ct_agents_free(ct_agents *a);

/* Refills `gather` [n x rows of a bank over a->neighbours], which has room for a->most.arrivals
 * entries: row j has a 1 for every e = (i, j), i ascending; it adds up what agents i sent back to
 * j. */
void ct_agents_gather(const ct_agents *a, ct_sparse *gather);

/* A named bank of the algorithm, as wide as x and zero at first; the agents own it, and checkpoints
 * hold it. n_rows is a->n: one row an agent. */
ct_status ct_agents_buffer(ct_agents *a, const char *name, int n_rows, ct_bank **out);
/* The same with one row a message of `routes`, as wide as what they carry; they are opened by_edge
 * and outlive the agents. */
ct_status ct_agents_edge_buffer(ct_agents *a, const char *name, ct_routes *routes, ct_bank **out);

/* What adaptive CCL remembers: a buffer too, so that checkpoints hold it; after the algorithm's. */
ct_status ct_agents_create_means(ct_agents *a);

/* The neighbours' rows of a bank with one row an agent, as they are now. */
ct_status ct_agents_exchange(ct_agents *a, ct_bank *bank);

/* g = d objective / dx at `at` + weight_decay * at. With CCL the neighbours' models are the rows of
 * `shared` (exchanged if need be), which is `at` itself unless agents have moved on since. */
ct_status ct_agents_gradient(ct_agents *a, ct_bank *at, ct_bank *shared);

/* An empty update over these agents, and its run. */
static inline ct_update ct_agents_update(const ct_agents *a) {
    return (ct_update){.n_rows = a->n};
}
static inline ct_status ct_agents_apply(ct_agents *a, const ct_update *u) {
    CT_TRY(ct_transport_finish(a->transport, &a->models));
    return ct_update_run(a->backend, u);
}

/* Appends d = g + beta m (Nesterov) or d = m. */
void ct_agents_direction(const ct_agents *a, ct_update *u, const ct_bank *m, ct_bank *d);
/* Appends bank = bank + gamma r with the gossip residual r = W bank - bank (r: a temporary). */
void ct_agents_gossip(const ct_agents *a, ct_update *u, ct_bank *bank, ct_bank *r);

#endif
