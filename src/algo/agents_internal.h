#ifndef CT_ALGO_AGENTS_INTERNAL_H
#define CT_ALGO_AGENTS_INTERNAL_H

#include "algo/agents.h"

/* The messages of a graph, senders and receivers among all rows (links.c). */
void ct_agents_route(ct_agents *a, const ct_topology *sources);

#endif
