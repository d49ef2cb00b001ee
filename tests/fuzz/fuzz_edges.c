/* Edge lists: a graph that is made has weights and facts. */
#include "topology/topology.h"

#include "../mixing.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    char spec[200];
    ct_topology graph = {0};
    ct_sparse w = {0};
    ct_topology_facts facts;
    snprintf(spec, sizeof spec, "file:%s", fuzz_file("edges.txt", data, n));
    if (ct_topology_create(spec, 6, 1, &graph) != CT_OK) return 0;
    if (ct_mixing_create(&graph, "metropolis", &w) != CT_OK) abort();
    if (mixing_check(&w, &graph) != CT_OK) abort();
    if (ct_topology_measure(&graph, &w, &facts) != CT_OK || facts.n_edges < 5) abort();
    ct_sparse_free(&w);
    ct_topology_free(&graph);
    fuzz_n_accepted++;
    return 0;
}
