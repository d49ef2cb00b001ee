/* The graph of the agents, each shaded by a value. */
#ifndef CT_REPORT_NETWORK_H
#define CT_REPORT_NETWORK_H

#include "util/status.h"
#include "util/text.h"

#define CT_MAX_DRAWN_AGENTS 2048
#define CT_MAX_DRAWN_EDGES  6000

typedef struct ct_network {
    const char *id, *title;
    int n_agents;
    const int (*edges)[2]; /* undirected, each once */
    int n_edges;           /* more than CT_MAX_DRAWN_EDGES are not drawn */
    const double *value;   /* [n_agents] 0 .. 1; NaN: unknown. NULL: all are */
    double low, high;      /* values at the ends of the scale; low > high: there are none */
} ct_network;

/* Places of the agents in [0, 1] x [0, 1]: a circle if agents are joined to the next one, a grid if
 * they are the rows and columns of one, otherwise such that the graph's distances can be seen
 * (stress majorisation; above 512 agents a circle again). x, y: [n_agents] */
ct_status ct_network_place(const ct_network *network, double *x, double *y);

/* n_agents is at most CT_MAX_DRAWN_AGENTS. */
ct_status ct_network_draw(const ct_network *network, ct_text *out);

#endif
