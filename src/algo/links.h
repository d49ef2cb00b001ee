/* How rows get from agent to agent in a step: the graph, its messages, and W over the rows of a
 * bank. An edge e = (i, j): agent i receives from its neighbour j. */
#ifndef CT_ALGO_LINKS_H
#define CT_ALGO_LINKS_H

#include "topology/schedule.h"
#include "transport/transport.h"

typedef struct ct_links {
    /* given by the caller, who keeps them alive */
    const ct_topology *graphs;   /* [n_seeds] who talks to whom, in each seed's world */
    const ct_topology *topology; /* of this step: the graphs side by side, rows of all seeds */
    const ct_sparse *weights;    /* its mixing weights, block by block */
    ct_schedule *schedule;       /* whose steps topology and weights are; NULL: they stay */
    double lambda_min;           /* smallest eigenvalue of any seed's mixing weights */

    ct_routes models;     /* j sends its row to i, for every edge */
    ct_routes neighbours; /* i answers j with row e, for every edge */
    ct_sparse mixing;     /* own rows of W over the rows of a bank, sums still in agents' order */
    struct {
        int edges, arrivals, weights; /* of own agents: messages to them, answers to them, entries
                                         of their rows of W */
    } most;                           /* of any step */
} ct_links;

struct ct_agents;

/* Values of class sums: of every class r sums and their count. */
static inline size_t ct_links_sums(const ct_graph *graph) {
    return (size_t)graph->n_classes * (ct_graph_n_features(graph) + 1);
}

/* Takes all memory of messages (rows as wide as the graph's parameters; answers as its class sums)
 * and mixing. */
ct_status ct_links_create(struct ct_agents *a, const ct_graph *graph);
void ct_links_free(ct_links *links);

/* The messages of a graph, senders and receivers among all rows. */
void ct_links_route(ct_links *links, const ct_topology *sources);

/* The message between two neighbours of a graph, among all of ct_links_route. */
int ct_links_message(const ct_topology *sources, int from, int to);

/* Refills `gather` [n x rows of a bank over the neighbours' answers], which has room for
 * most.arrivals entries: row j has a 1 for every e = (i, j), i ascending; it adds up what agents i
 * sent back to j. */
void ct_links_gather(const struct ct_agents *a, ct_sparse *gather);

/* Rows of a travelling bank behind the own ones: halo rows and, where things fail, mailboxes. */
int ct_links_far_rows(const struct ct_agents *a, const ct_routes *routes);
/* The row in which a message's receiver finds what was sent to it. */
int ct_links_arrival(const struct ct_agents *a, const ct_routes *routes, int message);

#endif
