/* Who talks to whom, and with which weights.
 * A topology is an undirected, connected graph without self-loops; a mixing matrix W is symmetric
 * and doubly stochastic with w_ij = 0 where there is no edge. One file per graph; the list is
 * topology_list.h. */
#ifndef CT_TOPOLOGY_TOPOLOGY_H
#define CT_TOPOLOGY_TOPOLOGY_H

#include <stdio.h>

#include "util/sparse.h"
#include "util/registry.h"
#include "util/text.h"

#define CT_MAX_AGENTS 65536

typedef struct ct_topology {
    char name[64];  /* as asked for: "torus:4x8" */
    int n;          /* agents */
    int *begin;     /* [n + 1] */
    int *neighbour; /* [begin[n]] ascending, the agent itself left out */
} ct_topology;

/* `spec` is name[:argument]: ring, chain, full, star, torus[:RxC], grid[:RxC], dyck, dyck-wacv24,
 * torus-wacv24, petersen, hypercube, exponential, random-regular[:degree], file:PATH (an edge list,
 * "a b" or "a,b" a line, # begins a comment). Unknown names and impossible sizes are CT_INVAL; a
 * bad edge file is CT_IO. The graph is checked to be connected. */
ct_status ct_topology_create(const char *spec, int n, uint64_t seed, ct_topology *out);
/* One of the paper's denser graphs (its Table 3), which have hyper-parameters of their own. */
bool ct_topology_is_denser(const char *spec);
/* Room for n agents and so many entries of neighbour lists; all else is the caller's. */
ct_status ct_topology_alloc(int n, int n_entries, ct_topology *out);
/* The graph, called "own", of these edges between agents 0 .. n-1. CT_INVAL: one is there twice, or
 * joins an agent to itself or to none; or the graph is not connected. */
ct_status ct_topology_of_edges(int n, const int (*edges)[2], int n_edges, ct_topology *out);
void ct_topology_free(ct_topology *topology);

static inline int ct_topology_degree(const ct_topology *t, int i) {
    return t->begin[i + 1] - t->begin[i];
}
bool ct_topology_has_edge(const ct_topology *t, int i, int j);

/* W of the graph. weights: "auto" (uniform on a regular graph, Metropolis-Hastings otherwise),
 * "uniform" 1/(p+1) (refused on irregular graphs, where W would not be doubly stochastic) or
 * "metropolis". Rows hold the agent itself and its neighbours, ascending. */
/* Everyone has as many neighbours. */
bool ct_topology_is_regular(const ct_topology *t);
ct_status ct_mixing_create(const ct_topology *t, const char *weights, ct_sparse *out);

typedef struct ct_topology_facts {
    int n_edges; /* undirected */
    int min_degree, max_degree;
    int diameter;        /* of more than 20,000 agents without symmetry: perhaps a little more */
    double lambda_2;     /* second largest eigenvalue of W; 0 for one agent */
    double lambda_min;   /* smallest eigenvalue of W */
    double spectral_gap; /* 1 - max(|lambda_2|, |lambda_min|) */
} ct_topology_facts;

ct_status ct_topology_measure(const ct_topology *t, const ct_sparse *w, ct_topology_facts *out);

/* Graphs side by side, agents numbered on from one to the next; no edge joins two of them. */
ct_status ct_topology_join(const ct_topology *parts, int n_parts, ct_topology *out);

/* A breadth-first spanning tree from agent 0 (neighbours ascending); of a ring, the chain
 * 0-1-...-(n-1). A tree is returned unchanged. *was_tree says which. */
ct_status ct_topology_spanning_tree(const ct_topology *t, ct_topology *out, bool *was_tree);

/* The first or second binary tree over n agents, which double-binary-tree is made of; no name. */
ct_status ct_topology_binary_tree(int n, bool is_second, ct_topology *out);

/* Names and one-line descriptions for help and `list`: each in order. */
void ct_topology_each(ct_name_visit each, void *context);

#endif
