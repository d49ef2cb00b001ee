/* An averaging rate of its own for every parameter (--consensus adagossip): AdaGossip (Aketi, Hashemi
 * and Roy, "AdaGossip: Adaptive consensus step-size for decentralized deep learning with communication
 * compression", 2024). Where what neighbours say swings, it counts less. In round t, from 1 on,   all
 * [n x P]:
 *   r  = W p - p                                             p: x, or its public copies
 *   v  = beta v + (1 - beta) r^2                             beta = 0.999
 *   x <- x + min(1, gamma / (sqrt(v / (1 - beta^t)) + epsilon)) r
 * The bound of 1 and the division by 1 - beta^t are those of the authors' program, and beta and epsilon
 * its values; it is dsgdm, or with its --qgm qg-dsgdm --variant wacv24. Rates differ between agents, so
 * that mixing moves the average of x, unlike CHOCO's. */
#ifndef CT_ALGO_STEPS_H
#define CT_ALGO_STEPS_H

#include "backend/backend.h"

struct ct_agents;

typedef struct ct_own_steps {
    bool are_wished; /* given by the caller, and gamma */
    double gamma;
    long since;            /* rounds before v began: t counts from there */
    ct_bank r;             /* [n] of this round, scaled */
    ct_bank *mean_squares; /* v: a buffer. NULL: one rate for all */
} ct_own_steps;

/* After the algorithm has been started. */
ct_status ct_own_steps_create(struct ct_agents *a);
/* r of this round, from what was shared. */
ct_status ct_own_steps_take(struct ct_agents *a, const ct_bank *p);

#endif
