/* Graphs that change from iteration to iteration, directed ones among them. In a step, row i of W
 * says whose rows agent i adds up: x+_i = sum_j w_ij x_j. Every step's columns sum to 1 (what an
 * agent gives away is what it has); a schedule is *balanced* if the rows do too, so that plain
 * averaging keeps the mean. One file per schedule; the list is schedule_list.h. */
#ifndef CT_TOPOLOGY_SCHEDULE_H
#define CT_TOPOLOGY_SCHEDULE_H

#include "topology/topology.h"

/* One step. */
typedef struct ct_phase {
    ct_topology sources; /* neighbour lists, ascending: the agents an agent receives from */
    ct_sparse w;         /* [n x n] the agent itself and its sources, ascending */
} ct_phase;

/* Gossip less often: an iteration without it is a step without edges. */
typedef struct ct_local_steps {
    int first,
        last; /* every so many iterations gossip, at the beginning and at the end; 1, and 0: all */
    long n_iterations; /* of the run, over which it grows */
} ct_local_steps;

typedef struct ct_schedule ct_schedule;

/* How steps are drawn, if they are. */
typedef struct ct_drawing {
    void (*draw)(const ct_schedule *schedule, long round, ct_phase *out);
    int n_sent, most_received; /* messages that an agent sends, and at most receives */
    bool is_averaging; /* columns sum to 1 only on average over the draws; the rows always do */
} ct_drawing;

struct ct_schedule {
    char name[64];    /* as asked for: "base:3" */
    int n;            /* rows: agents of all seeds, seed by seed */
    int n_agents;     /* of one seed */
    int period;       /* the steps repeat after so many; 0: drawn anew for every iteration */
    ct_phase *phases; /* [period], or the one step drawn last */
    bool is_balanced; /* every step's rows sum to 1 */
    uint64_t *seeds;  /* [n / n_agents] of what is drawn */
    uint32_t *order;  /* [3 n_agents] scratch of a draw */
    ct_drawing drawing;
    ct_local_steps local;
    ct_phase quiet; /* the step of an iteration without gossip: W = I */
};

/* The name before the colon is a schedule's and not a graph's. */
bool ct_schedule_is_known(const char *spec);

/* `spec` is name[:argument]: one-peer-exponential, matchings, base[:k+1], epidemic[:s],
 * epidemic-local[:s], schedule:PATH. The steps
 * are checked one by one (ct_phase_check), and that over a period everyone reaches everyone. */
ct_status ct_schedule_create(const char *spec, int n_agents, const uint64_t *seeds, int n_seeds,
                             ct_schedule *out);
void ct_schedule_free(ct_schedule *schedule);

/* A graph that stays as a schedule of one step; rows of all seeds. */
ct_status ct_schedule_of_graph(const ct_topology *graph, const ct_sparse *w, int n_agents,
                               ct_schedule *out);

/* "4": gossip in every 4th iteration; "1:8": in every one at first, then every 2nd, 4th and 8th, each
 * for an equal part of the run. */
ct_status ct_local_steps_parse(const char *text, ct_local_steps *out);
bool ct_local_steps_is_local(const ct_local_steps *steps, long iteration);
/* Rounds of gossip before an iteration. */
long ct_local_steps_rounds(const ct_local_steps *steps, long iteration);
ct_status ct_schedule_set_local_steps(ct_schedule *schedule, const ct_local_steps *steps);

/* The step of an iteration (from 0), or of a round of gossip. Take no memory; what was drawn before is
 * overwritten. */
const ct_phase *ct_schedule_at(ct_schedule *schedule, long iteration);
const ct_phase *ct_schedule_round(ct_schedule *schedule, long round);
/* The step with the most messages: room enough for every other. */
const ct_phase *ct_schedule_widest(ct_schedule *schedule);

/* No negative weight, columns that sum to 1 within 1e-6; *is_balanced: the rows do too. */
ct_status ct_phase_check(const ct_phase *phase, bool *is_balanced);

/* For one seed's agents: the undirected union of the steps of a period (of 32 iterations, if they
 * are drawn), and the mean of its steps' (W + W^T) / 2, or Metropolis weights on the union if the
 * schedule is not balanced. */
ct_status ct_schedule_union(ct_schedule *schedule, int seed, ct_topology *graph, ct_sparse *w);

/* How much of a disagreement is left after a period of a balanced schedule (after 32 iterations, if
 * they are drawn): the largest |W_T ... W_1 v - mean v| over unit vectors v e_j - 1/n. */
ct_status ct_schedule_contraction(ct_schedule *schedule, double *out);

void ct_schedule_each(ct_name_visit each, void *context);

#endif
