/* What travelled: bytes per directed edge and kind, and the time a slow network would have taken.
 * Every rank enters every message of the run, its own or not, so that all have the same books; a site
 * enters what it has sent. */
#include <string.h>

#include "transport/transport_internal.h"
#include "util/memory.h"

ct_status ct_ledger_open(ct_transport *t, const int *begin, const int *neighbour) {
    int n = begin[t->n_rows];
    CT_TRY(ct_make(&t->edges, (size_t)n, "the ledger"));
    t->n_edges = n;
    memcpy(t->first_edge, begin, ((size_t)t->n_rows + 1) * sizeof *begin);
    for (int i = 0; i < t->n_rows; i++)
        for (int e = begin[i]; e < begin[i + 1]; e++)
            t->edges[e] = (ct_ledger_edge){.from = i, .to = neighbour[e]};
    return CT_OK;
}

int ct_ledger_n_edges(const ct_transport *t) {
    return t->n_edges;
}

ct_ledger_edge *ct_ledger_edges(ct_transport *t) {
    return t->edges;
}

uint64_t ct_transport_sent(const ct_transport *t, int agent, ct_traffic kind) {
    uint64_t sum = t->others[agent * CT_N_TRAFFIC + (int)kind];
    for (int e = t->first_edge[agent]; e < t->first_edge[agent + 1]; e++)
        sum += t->edges[e].bytes[kind];
    return sum;
}

double ct_ledger_message_s(const ct_transport *t, uint64_t bytes) {
    return t->latency_s + (double)bytes * t->seconds_per_byte;
}

void ct_transport_count(ct_transport *t, int agent, ct_traffic kind, uint64_t bytes) {
    t->others[agent * CT_N_TRAFFIC + (int)kind] += bytes;
    t->busy_s[agent] += ct_ledger_message_s(t, bytes);
}

void ct_ledger_enter(ct_transport *t, const ct_routes *r, int k, ct_traffic kind, uint64_t bytes) {
    if (r->edge[k] < 0) {
        ct_transport_count(t, r->from[k], kind, bytes);
        return;
    }
    t->edges[r->edge[k]].bytes[kind] += bytes;
    t->busy_s[r->from[k]] += t->latency_s + (double)bytes * t->seconds_per_byte;
}

uint64_t *ct_ledger_others(ct_transport *t) {
    return t->others;
}

void ct_ledger_delay(ct_transport *t, int agent, double seconds) {
    t->busy_s[agent] += seconds;
}

void ct_ledger_end_iteration(ct_transport *t) {
    int n = t->n_rows / t->n_worlds;
    for (int k = 0; k < t->n_worlds; k++) {
        double longest = 0;
        for (int i = k * n; i < (k + 1) * n; i++)
            if (t->busy_s[i] > longest) longest = t->busy_s[i];
        t->link_s[k] += longest;
    }
    memset(t->busy_s, 0, (size_t)t->n_rows * sizeof *t->busy_s);
}

double *ct_ledger_link_seconds(ct_transport *t) {
    return t->link_s;
}
