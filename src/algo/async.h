/* Agents that wait for nobody, as a simulation of events in a fixed order.
 *
 * Agent i computes its next gradient until next_s[i]; then its *event* takes place: it averages with
 * others in its method's way, and takes the step. Events come in the order of time, agents of the
 * same time in their own. An iteration of the run is as many events as there are before an agent's
 * turn comes again, of each seed's world by itself, so that all gradients of an iteration can be
 * computed at once: the fastest agents have a step in every iteration, slower ones now and then.
 *
 * All that happens to the models in an iteration is linear, and put together here:
 *   x+ = A x - eta B d            d_i: the direction of agent i's step                [n x P]
 *   s+ = C x - eta D d + E s      s_i: x_i right after i's event, where its next gradient is taken
 * with A, B, C, D [n x n], and E the identity for agents without an event. A method says what an
 * event does to the rows of A and B.
 *
 * Every process simulates all events, and has all rows of x and d for its own rows of the update. An
 * agent's batches are those of the run's iterations: a slow agent's are every so many. */
#ifndef CT_ALGO_ASYNC_H
#define CT_ALGO_ASYNC_H

#include "algo/agents.h"

/* One seed's models at a moment of an iteration: row i of x is sum_j a[i n + j] x_j - eta b[..] d_j. */
typedef struct ct_async_world {
    int n, first;    /* agents; the row of the first */
    double *a, *b;   /* [n x n] */
    double *scratch; /* [n] */
} ct_async_world;

/* What the event of agent i (of the world) does before its own step, and the seconds that its
 * messages take. */
typedef double (*ct_async_event)(const ct_agents *a, ct_async_world *world, int i, long step);

/* State of a method: events, matrices, the clock. */
typedef struct ct_async {
    double *clock; /* [n_clock] of every row next_s and steps done, of every seed now: what a
                      checkpoint keeps */
    size_t n_clock;
    bool *is_active;   /* [rows] it has an event in this iteration */
    ct_async_world at; /* room for one */
    double *c, *d;     /* [n x n] rows of a and b right after an agent's event */
    /* own rows of */
    ct_sparse mix, step, start_mix, start_step; /* A, B, C, D */
    ct_sparse active, idle;                     /* diagonals: 1 for agents with and without */
    ct_sparse decay;                            /* beta, and 1 */
    ct_bank everyones_x, everyones_d;           /* [rows x P] where there are several processes */
    const ct_bank *all_x, *all_d;               /* what A to D mix: all rows, wherever they are */
} ct_async;

ct_status ct_async_create(ct_agents *a);
void ct_async_free(void *state);
double *ct_async_host_state(void *state, size_t *n);

/* The events of this iteration. Sets the matrices, the ledger's time and the samples that count. */
void ct_async_run(ct_agents *a, ct_async_event event);
/* m = beta m + g  of the active agents, and the direction d in the place of g. Then all rows of x and
 * d are here. */
ct_status ct_async_direct(ct_agents *a, ct_bank *m);

/* Row i <- (row i + row j) / 2, and row j as well. */
void ct_async_average(ct_async_world *world, int i, int j);
/* Row i <- row i + gamma (sum_j w_ij row j - row i), W's row of the agent. */
void ct_async_combine(const ct_agents *a, ct_async_world *world, int i);
/* Enters a row that one agent sends another, neighbours both; returns the seconds it takes. */
double ct_async_send(const ct_agents *a, const ct_async_world *world, int from, int to);

#endif
