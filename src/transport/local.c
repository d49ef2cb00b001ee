#include "transport/transport.h"

#include "util/memory.h"

struct ct_transport {
    int n_agents;
    uint64_t *sent; /* [n_agents][CT_N_TRAFFIC] bytes */
};

ct_status ct_routes_create(int n, ct_routes *out) {
    ct_routes routes = {.n = n, .from = ct_new(int, (size_t)n), .to = ct_new(int, (size_t)n)};
    if (routes.from == NULL || routes.to == NULL) {
        ct_routes_free(&routes);
        return ct_fail(CT_NOMEM, "no memory for %d routes", n);
    }
    *out = routes;
    return CT_OK;
}

void ct_routes_free(ct_routes *routes) {
    ct_free(routes->from);
    ct_free(routes->to);
    *routes = (ct_routes){0};
}

ct_status ct_transport_create(int n_agents, ct_transport **out) {
    ct_transport *t = ct_new(ct_transport, 1);
    if (t != NULL) t->sent = ct_new(uint64_t, (size_t)n_agents * CT_N_TRAFFIC);
    if (t == NULL || t->sent == NULL) {
        ct_free(t);
        return ct_fail(CT_NOMEM, "no memory for the transport of %d agents", n_agents);
    }
    t->n_agents = n_agents;
    *out = t;
    return CT_OK;
}

void ct_transport_free(ct_transport **transport) {
    if (*transport == NULL) return;
    ct_free((*transport)->sent);
    ct_free(*transport);
    *transport = NULL;
}

ct_status ct_transport_exchange(ct_transport *t, const ct_routes *routes, ct_traffic kind,
                                ct_bank *bank) {
    if (bank->fresh) return CT_OK;
    for (int k = 0; k < routes->n; k++)
        t->sent[routes->from[k] * CT_N_TRAFFIC + (int)kind] += bank->n * sizeof(float);
    bank->fresh = true;
    return CT_OK;
}

void ct_transport_count(ct_transport *t, int agent, ct_traffic kind, uint64_t bytes) {
    t->sent[agent * CT_N_TRAFFIC + (int)kind] += bytes;
}

uint64_t ct_transport_sent(const ct_transport *t, int agent, ct_traffic kind) {
    return t->sent[agent * CT_N_TRAFFIC + (int)kind];
}
