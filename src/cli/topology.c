#include "topology/topology.h"

#include "cli/cli.h"
#include "schema/config.h"
#include "topology/schedule.h"
#include "util/memory.h"

const ct_help ct_cli_topology_help = {
    .usage = "topology [--topology NAME] [--agents N] [--weights NAME] [--seed N]",
    .text = "Shows a graph: every agent's neighbours with their mixing weights, the diameter, "
            "and the spectrum of W. The larger the spectral gap, the faster agents agree. Of a "
            "graph that changes, every step is shown. crosstalk list topologies names them.",
    .takes = "topology, agents, weights, seed",
    .examples = CT_HELP_PAIRS(
        {"A ring of 16: spectral gap 0.0507.", "crosstalk topology --topology ring --agents 16"},
        {"A torus of as many: spectral gap 0.4.",
         "crosstalk topology --topology torus --agents 16"},
        {"A graph of your own, one edge a line.",
         "crosstalk topology --topology file:edges.txt --agents 5"}),
    .also = "list, train, partition"};

static void print_agents(const ct_topology *t, const ct_sparse *w, const char *neighbours) {
    ct_show(stdout, "agent  own weight  %s (weight)\n", neighbours);
    for (int i = 0; i < t->n; i++) {
        ct_show(stdout, "%5d  %10.6f ", i, ct_sparse_get(w, i, i));
        for (int e = t->begin[i]; e < t->begin[i + 1]; e++)
            ct_show(stdout, " %d (%.6f)", t->neighbour[e], ct_sparse_get(w, i, t->neighbour[e]));
        ct_show(stdout, "\n");
    }
}

static void print_facts(const ct_topology *t, const ct_topology_facts *f) {
    ct_show(stdout, "%s of %d agents: %d edges, degree %d", t->name, t->n, f->n_edges,
            f->min_degree);
    if (f->max_degree != f->min_degree) ct_show(stdout, " to %d", f->max_degree);
    ct_show(stdout, ", diameter %d\nlambda_2 %.4f, lambda_min %.4f, spectral gap %.4f\n",
            f->diameter, f->lambda_2, f->lambda_min, f->spectral_gap);
}

static ct_status show_graph(const ct_config *c) {
    CT_SCOPED(ct_topology) t = {0};
    CT_SCOPED(ct_sparse) w = {0};
    ct_topology_facts facts;
    CT_TRY(ct_topology_create(c->topology, (int)c->agents, (uint64_t)c->seed, &t));
    CT_TRY(ct_mixing_create(&t, c->weights, &w));
    CT_TRY(ct_topology_measure(&t, &w, &facts));
    print_agents(&t, &w, "neighbours");
    print_facts(&t, &facts);
    return CT_OK;
}

static ct_status show_schedule(const ct_config *c) {
    CT_SCOPED(ct_schedule) s = {0};
    double left = 1;
    uint64_t seed = (uint64_t)c->seed;
    CT_TRY(ct_schedule_create(c->topology, (int)c->agents, &seed, 1, &s));
    int n_shown = s.period > 0 ? s.period : 3;
    for (int t = 0; t < n_shown; t++) {
        const ct_phase *phase = ct_schedule_at(&s, t);
        ct_show(stdout, "step %d: %d messages\n", t + 1, phase->sources.begin[s.n]);
        print_agents(&phase->sources, &phase->w, "receives from");
    }
    ct_show(stdout, "%s of %d agents: ", s.name, s.n);
    if (s.period > 0)
        ct_show(stdout, "%d steps that repeat", s.period);
    else
        ct_show(stdout, "drawn anew for every iteration");
    ct_show(stdout, "%s\n",
            s.is_balanced ? ", rows and columns of W sum to 1"
                          : ", columns of W sum to 1, rows do not (for sgp)");
    if (!s.is_balanced) return CT_OK;
    CT_TRY(ct_schedule_contraction(&s, &left));
    ct_show(stdout, "of a disagreement, at most %.4g is left after %s\n", left,
            s.period > 0 ? "a period" : "32 iterations");
    return CT_OK;
}

ct_status ct_cli_topology(int n_args, char **args) {
    ct_config c;
    ct_config_init(&c);
    CT_TRY(ct_cli_options(n_args, args, &c, NULL, 0));
    CT_TRY(ct_cli_one_seed(&c));
    if (c.out[0] != '\0') return ct_fail(CT_INVAL, "--out: a graph is printed, not written");
    return ct_schedule_is_known(c.topology) ? show_schedule(&c) : show_graph(&c);
}
