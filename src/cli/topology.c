#include "topology/topology.h"

#include "cli/cli.h"
#include "run/config.h"

void ct_cli_topology_help(FILE *out) {
    fputs("usage: crosstalk topology [--topology NAME] [--agents N] [--weights NAME] [--seed S]\n\n"
          "Shows a graph: every agent's neighbours with their mixing weights, diameter and\n"
          "spectrum of W. crosstalk list topologies names the graphs.\n",
          out);
}

static void print_agents(const ct_topology *t, const ct_sparse *w) {
    puts("agent  own weight  neighbours (weight)");
    for (int i = 0; i < t->n; i++) {
        printf("%5d  %10.6f ", i, ct_sparse_get(w, i, i));
        for (int e = t->begin[i]; e < t->begin[i + 1]; e++)
            printf(" %d (%.6f)", t->neighbour[e], ct_sparse_get(w, i, t->neighbour[e]));
        putchar('\n');
    }
}

static void print_facts(const ct_topology *t, const ct_topology_facts *f) {
    printf("%s of %d agents: %d edges, degree %d", t->name, t->n, f->n_edges, f->min_degree);
    if (f->max_degree != f->min_degree) printf(" to %d", f->max_degree);
    printf(", diameter %d\nlambda_2 %.4f, lambda_min %.4f, spectral gap %.4f\n", f->diameter,
           f->lambda_2, f->lambda_min, f->spectral_gap);
}

ct_status ct_cli_topology(int n_args, char **args) {
    ct_config c;
    ct_topology t = {0};
    ct_sparse w = {0};
    ct_topology_facts facts;
    int n_words;
    ct_config_init(&c);
    CT_TRY(ct_cli_options(n_args, args, &c, NULL, 0, &n_words));
    ct_status status = ct_topology_create(c.topology, (int)c.agents, (uint64_t)c.seed, &t);
    if (status == CT_OK) status = ct_mixing_create(&t, c.weights, &w);
    if (status == CT_OK) status = ct_topology_measure(&t, &w, &facts);
    if (status == CT_OK) {
        print_agents(&t, &w);
        print_facts(&t, &facts);
    }
    ct_sparse_free(&w);
    ct_topology_free(&t);
    return status;
}
