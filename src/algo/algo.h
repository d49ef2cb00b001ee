/* Decentralized learning algorithms: one file each, one line in algo_list.h. */
#ifndef CT_ALGO_ALGO_H
#define CT_ALGO_ALGO_H

#include "algo/agents.h"

/* The graphs a method is right on. */
typedef enum ct_algo_graphs {
    CT_GRAPHS_BALANCED, /* W may change from step to step, rows and columns sum to 1 */
    CT_GRAPHS_FIXED,    /* W stays */
    CT_GRAPHS_DIRECTED, /* any: columns sum to 1 */
} ct_algo_graphs;

typedef struct ct_algo {
    const char *name, *text;
    ct_algo_graphs graphs;
    /* Takes the algorithm's buffers (a->x holds the start values); *state is its own, may stay
     * NULL. */
    ct_status (*create)(ct_agents *a, void **state);
    /* One iteration: from a->x and this iteration's batches to the next a->x. */
    ct_status (*step)(ct_agents *a, void *state);
    void (*free)(void *state); /* NULL if there is nothing to free */
    /* What the next step needs beside the agents' banks: *n numbers, the same in every process,
     * that a checkpoint keeps. NULL if there are none. */
    double *(*host_state)(void *state, size_t *n);
} ct_algo;

#define ALGO(id) extern const ct_algo ct_algo_##id;
#include "algo/algo_list.h"
#undef ALGO

/* Unknown name: CT_INVAL with the known ones. */
ct_status ct_algo_find(const char *name, const ct_algo **out);
void ct_algo_each(void (*each)(void *context, const char *name, const char *text), void *context);

#endif
