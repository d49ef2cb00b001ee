/* Cross-gradients, for algorithms that look at a neighbour's model on their own samples:
 * for every edge e = (i, j), j a neighbour that i receives from, agent i computes
 *   c_e = grad CE(x_j; d_i) + weight_decay x_j                                    [edges x P]
 * the gradient of the cross-entropy of model x_j on batch d_i. It is a model-variant gradient for
 * i. Sent back to j, it is a data-variant one for j: the gradient of j's own model on another
 * agent's samples. */
#ifndef CT_ALGO_CROSS_GRADIENTS_H
#define CT_ALGO_CROSS_GRADIENTS_H

#include "algo/agents.h"

typedef struct ct_cross_gradients {
    ct_bank rows;     /* [own edges x P] c_e, and those that arrive from elsewhere */
    ct_routes routes; /* the way back, as links.neighbours */
    ct_sparse sent;   /* [n x edges] row i: 1 for every e = (i, .), model-variant for i */
    ct_sparse taken;  /* [n x edges] row j: 1 for every e = (., j), data-variant for j */
    ct_sparse models; /* [edges x n] 1 at (e, j) */
    ct_sparse own;    /* [n x n] diagonal: what an agent's own gradient counts, by the algorithm */
    ct_bank losses;   /* [edges][CT_LOSS_FIELDS] of the cross jobs: nobody looks */
    ct_job *jobs;     /* [edges] */
    struct {          /* with --sam */
        ct_bank at;   /* [edges x P] the models of the second pass */
        ct_sparse scale; /* [edges x edges] */
        ct_job *jobs;    /* [edges] */
    } sam;
} ct_cross_gradients;

/* Room for the edges that the agents were created with. Refuses batchnorm, whose running statistics
 * would mix agents. */
ct_status ct_cross_gradients_create(ct_agents *a, ct_cross_gradients *out);
void ct_cross_gradients_free(void *cross);

/* Computes rows at the models x, which have been exchanged, along this step's edges; sent, taken
 * and models are those of the step, and their values may be set. */
ct_status ct_cross_gradients_compute(ct_cross_gradients *cross, ct_agents *a);
/* Sends every row back to the agent whose model it is about. */
ct_status ct_cross_gradients_return(ct_cross_gradients *cross, ct_agents *a);
/* What row i takes of row j's model in this step: W's entry, 0 if there is none. */
double ct_cross_gradients_weight(const ct_agents *a, int i, int j);

#endif
