/* CCL's exchange of cross-features, steps 1-3 of the paper's Algorithm 2: every agent i runs its
 * neighbours' models j on its own batch, sends each the class sums of what came out, and adds up
 * what it is sent itself. Along edges e = (i, j):
 *   z_ji     = phi(x_j; d_i)                        [B x r] features of the last hidden layer
 *   zbar_ji  = class sums of z_ji and their counts  [C x (r + 1)] sent from i to j
 *   received = sum over the neighbours i of zbar_ij [C x (r + 1)] about agent j's own model
 * All of it, or what an economy leaves of it. */
#ifndef CT_ALGO_CROSS_FEATURES_H
#define CT_ALGO_CROSS_FEATURES_H

#include "backend/backend.h"
#include "topology/topology.h"

/* What CCL may leave out, and how its weights are chosen. */
typedef struct ct_ccl_economy {
    int every;             /* contrast in every so many iterations */
    int neighbours;        /* with so many of an agent's neighbours, in turn; 0: all */
    double adaptive_share; /* lambdas such that a term is this part of L_ce; 0: those given */
    int min_class_count;   /* class sums of fewer samples are kept to oneself; 1: none */
} ct_ccl_economy;

typedef struct ct_cross_features {
    /* given by the caller, who keeps them alive */
    const double *world_lambdas; /* [n_seeds][2] lambda_m, lambda_d; NULL: the loss' for all */
    ct_ccl_economy economy;

    ct_job *jobs;         /* [own edges] those with an own model j first */
    int n_own_models;     /* so many of them */
    int *begin;           /* [n + 1] own agent's rows of `features` */
    int *arrived;         /* [messages] that have come together */
    ct_bank features;     /* [own edges][max_batch * r] z_ji */
    ct_bank edge_sums;    /* [own edges][C * (r + 1)] zbar_ji */
    ct_bank received;     /* [n][C * (r + 1)] sums of what an agent's neighbours sent it */
    ct_sparse gather;     /* received = gather * edge_sums */
    ct_topology contrast; /* of all rows: with whom an iteration contrasts, if not with all */
    ct_batch *batches;    /* [n] what cross-features are taken of */
    float *class_row;     /* [C * (r + 1)] scratch, where class sums are withheld */
    ct_bank lambdas;      /* [n][2] lambda_m, lambda_d of every agent, where they differ or adapt */
    ct_bank *means;       /* [n] running means of the loss' terms, if lambdas adapt */
} ct_cross_features;

struct ct_agents;

/* With CCL; everything but the means, which are a buffer after the algorithm's own. */
ct_status ct_cross_features_create(struct ct_agents *a);
ct_status ct_cross_features_create_means(struct ct_agents *a);
void ct_cross_features_free(ct_cross_features *ccl);

/* The jobs and sums of an exchange along these edges (those of links.neighbours now); linked: the edges
 * that links.models has linked, which mailboxes are of. */
void ct_cross_features_list(struct ct_agents *a, const ct_topology *sources,
                            const ct_topology *linked);

/* This iteration contrasts: with CCL, in every economy.every-th that gossips. */
bool ct_cross_features_are_due(const struct ct_agents *a);

/* The exchange under the models in the rows of `shared`. Fills what the objective says about it. */
ct_status ct_cross_features_exchange(struct ct_agents *a, ct_bank *shared, ct_objective *objective);

/* After a gradient whose lambdas adapt: with --ccl-adaptive s, the next ones will make a weighted
 * term the part s of the cross-entropy,
 *   lambda_m = min(1, s L_ce / L_mv)
 *   lambda_d = min(1, s L_ce / L_dv)
 * over every agent's means
 *   L <- 0.9 L + 0.1 (this iteration's L)
 * started by the first; 0 before. */
ct_status ct_cross_features_update_means(struct ct_agents *a);

#endif
