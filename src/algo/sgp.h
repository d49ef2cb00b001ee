/* Stochastic gradient push: a look at its push-sum weights. */
#ifndef CT_ALGO_SGP_H
#define CT_ALGO_SGP_H

/* [n rows] the weights after the last step; the algorithm's state keeps them. */
const double *ct_sgp_weights(const void *state);

#endif
