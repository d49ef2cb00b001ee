/* How fast agents compute (--speed): an agent's k-th step takes, on the simulated clock,
 *   exp(jitter z - jitter^2 / 2) / speed seconds                    z ~ N(0, 1), mean 1 / speed
 * Draws are keyed by (seed, agent, step). Synchronous methods wait for the slowest agent in every
 * iteration; asynchronous ones (async.h) do not. */
#ifndef CT_ALGO_SPEED_H
#define CT_ALGO_SPEED_H

#include <stdint.h>

#include "util/status.h"

typedef struct ct_speeds {
    double *speed; /* [rows] steps a second */
    double jitter;
    const uint64_t *seeds; /* [n_seeds] */
    int n_agents;          /* of one seed */
} ct_speeds;

/* "": all agents do one step a second. Words with commas: one:S (the first agent has speed S),
 * uniform:LO:HI and lognormal:D (drawn, by seed), file:PATH (a number for each agent), jitter:J. */
ct_status ct_speeds_parse(const char *text, const uint64_t *seeds, int n_seeds, int n_agents,
                          ct_speeds *out);
void ct_speeds_free(ct_speeds *speeds);

double ct_speeds_step_s(const ct_speeds *speeds, int row, long step);

#endif
