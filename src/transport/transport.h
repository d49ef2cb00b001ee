/* How rows get from the agent that owns them to the agents that need them, and what that costs.
 * In one process every row is already in place; the ledger still counts every byte that a network
 * would carry, per agent and kind. */
#ifndef CT_TRANSPORT_TRANSPORT_H
#define CT_TRANSPORT_TRANSPORT_H

#include <stdint.h>

#include "backend/backend.h"
#include "util/status.h"

/* The messages of one exchange: message k takes a row from agent from[k] to agent to[k]. */
typedef struct ct_routes {
    int n;
    int *from, *to; /* [n] */
} ct_routes;

ct_status ct_routes_create(int n, ct_routes *out);
void ct_routes_free(ct_routes *routes);

typedef enum ct_traffic { CT_TRAFFIC_PARAMETERS, CT_TRAFFIC_CLASS_SUMS, CT_N_TRAFFIC } ct_traffic;

typedef struct ct_transport ct_transport;

ct_status ct_transport_create(int n_agents, ct_transport **out);
void ct_transport_free(ct_transport **transport);

/* Brings the bank's halo rows up to date and enters the messages into the ledger; a bank whose halo
 * rows are fresh is left alone and costs nothing. */
ct_status ct_transport_exchange(ct_transport *transport, const ct_routes *routes, ct_traffic kind,
                                ct_bank *bank);

/* Enters bytes into the ledger that no exchange carries (an all-reduce). */
void ct_transport_count(ct_transport *transport, int agent, ct_traffic kind, uint64_t bytes);
/* Bytes an agent has sent so far. */
uint64_t ct_transport_sent(const ct_transport *transport, int agent, ct_traffic kind);

#endif
