/* What a run computes, in multiply-adds: counted samples times what the graph takes for one. A
 * backward pass counts as two forward ones. */
#include "run/run.h"

ct_cost ct_run_cost(const ct_run *run) {
    const ct_agents *a = &run->agents;
    double whole = 3 * ct_graph_macs(&run->graph, run->graph.logits);
    double to_features = ct_graph_macs(&run->graph, run->graph.features);
    double n = (double)a->n * (double)a->samples.n_steps;
    if (n == 0) return (ct_cost){0};
    return (ct_cost){.own_macs = a->samples.own * whole / n,
                     .cross_macs =
                         (a->samples.features * to_features + a->samples.gradients * whole) / n};
}

double ct_run_mean_sent(const ct_run *run, int world, ct_traffic kind) {
    double sum = 0;
    int n = run->agents.n_agents;
    if (run->config.site != NULL)
        return (double)ct_transport_sent(run->transport, run->agents.first, kind);
    for (int row = world * n; row < (world + 1) * n; row++)
        sum += (double)ct_transport_sent(run->transport, row, kind);
    return sum / n;
}
