/* What a run knows of one of its epochs, as it hands it over to be written. */
#ifndef CT_RECORD_EPOCH_H
#define CT_RECORD_EPOCH_H

#include <stdbool.h>

#include "loss/loss.h"

/* Means over an epoch's iterations and agents, weighted by samples. */
typedef struct ct_epoch_losses {
    double terms[CT_N_TERMS];
    double train_accuracy;
} ct_epoch_losses;

typedef struct ct_evaluation {
    double consensus_accuracy, consensus_loss;
    double local_accuracy_mean, local_accuracy_min, local_accuracy_max;
    double consensus_distance;               /* (1/n) sum_i |x_i - mean|^2 */
    bool is_averaged;                        /* there is an average over time (--average) */
    double averaged_accuracy, averaged_loss; /* of its consensus model; NaN: it has not begun */
    bool is_validated;                       /* samples were held out (--validation-fraction) */
    double validation_accuracy, validation_loss, averaged_validation_accuracy;
    int diverged; /* first agent whose loss is not finite; -1: none */
} ct_evaluation;

/* After the last iteration: --gossip-rounds of averaging without gradients, then the agents' own
 * models tested again. NaN: there were no rounds. */
typedef struct ct_finish {
    double gossip_accuracy_mean, gossip_accuracy_min, gossip_accuracy_max;
} ct_finish;

typedef struct ct_epoch {
    long epoch; /* from 1 */
    long iteration;
    double lr;
    ct_epoch_losses losses;
    bool is_evaluated;
    ct_evaluation evaluation;
    double bytes_sent_per_agent; /* so far, mean over agents */
    double link_seconds;         /* so far, what a simulated link would have taken */
    double seconds;              /* so far */
    ct_finish finish;            /* after the last iteration only */
} ct_epoch;

#endif
