/* What the graphs of this folder share: the request, the list of edges a graph is built from, and
 * the two ways to the spectrum. */
#ifndef CT_TOPOLOGY_INTERNAL_H
#define CT_TOPOLOGY_INTERNAL_H

#include "topology/topology.h"

/* What was asked for: name[:argument] for n agents, 1 <= n <= CT_MAX_AGENTS. */
typedef struct ct_topology_request {
    const char *name;
    const char *argument; /* NULL without ':' */
    int n;
    uint64_t seed;
} ct_topology_request;

/* More would be gigabytes and, counted twice, no longer fit ct_sparse's int. */
#define CT_MAX_EDGES ((size_t)1 << 26)

/* Undirected edges, gathered in any order. */
typedef struct ct_edge_list {
    int n; /* agents */
    int (*pair)[2];
    size_t n_pairs;
    const char *file; /* that they come from, or NULL */
    ct_status status; /* the first failure of ct_edge_list_add; ct_edge_list_finish hands it on */
} ct_edge_list;

/* What is known of a graph by its name. */
enum {
    CT_IS_DENSER = 1,      /* one of the paper's denser graphs (its Table 3) */
    CT_TAKES_ARGUMENT = 2, /* name:argument; others are refused with one */
};

/* Each graph of topology_list.h is one such function: it adds the edges. */
#define TOPOLOGY(id, name, traits, text)                                                           \
    ct_status ct_topology_make_##id(const ct_topology_request *request, ct_edge_list *out);
#include "topology/topology_list.h"
#undef TOPOLOGY

/* Adds the edge a-b; a == b adds nothing, an edge added twice counts once. */
void ct_edge_list_add(ct_edge_list *edges, int a, int b);
/* Adds those of a graph whose agent 0 is `first` here. */
void ct_edge_list_add_graph(ct_edge_list *edges, const ct_topology *t, int first);
/* Turns the edges into *out (without a name) and frees them, whether that succeeds or not. */
ct_status ct_edge_list_finish(ct_edge_list *edges, ct_topology *out);
void ct_edge_list_free(ct_edge_list *edges);

/* A breadth-first walk from agent 0: the edges over which it meets each agent (first may be NULL),
 * and the first agent that it does not meet; -1 if the graph is connected. */
ct_status ct_topology_walk(const ct_topology *t, ct_edge_list *first, int *unreached);

/* CT_OK, or `refused` with the first agent that cannot reach agent 0. */
ct_status ct_topology_connected(ct_status refused, const char *what, const ct_topology *t);

/* Calls `each` for every line of a text file, without its comment (#) and blanks around it, unless
 * nothing is left; CT_IO for zero bytes. */
ct_status ct_lines_read(const char *path, void *context,
                        ct_status (*each)(void *context, int line, char *text));

/* Row i of W: n other agents, ascending, with their weights, and the agent itself among them. */
void ct_mixing_fill_row(ct_sparse *w, int i, const int *others, const double *weights, int n,
                        double own);

/* CT_INVAL if the request has an argument; or a number of agents other than `n`. */
ct_status ct_request_no_argument(const ct_topology_request *request);
ct_status ct_request_exactly(const ct_topology_request *request, int n);
/* "RxC" with R*C = n; without an argument the pair of divisors closest to a square, R <= C. */
ct_status ct_request_shape(const ct_topology_request *request, int *n_rows, int *n_cols);

/* lambda_2 and lambda_min of a symmetric W with n >= 2 rows that each sum to 1: every eigenvalue by
 * Householder's method, O(n^3), or the two by Lanczos' method, O(steps * entries). */
ct_status ct_spectrum_dense(const ct_sparse *w, double *lambda_2, double *lambda_min);
ct_status ct_spectrum_lanczos(const ct_sparse *w, double *lambda_2, double *lambda_min);

#endif
