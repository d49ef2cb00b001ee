#include <string.h>

#include "algo/algo.h"
#include "backend/backend.h"
#include "cli/cli.h"
#include "data/dataset.h"
#include "data/partition.h"
#include "topology/topology.h"

typedef void (*each_function)(void (*each)(void *context, const char *name, const char *text),
                              void *context);

static const struct {
    const char *name;
    each_function each;
} kinds[] = {{"algorithms", ct_algo_each},      {"models", ct_model_each},
             {"topologies", ct_topology_each},  {"datasets", ct_dataset_each},
             {"partitions", ct_partition_each}, {"devices", ct_backend_each}};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

void ct_cli_list_help(FILE *out) {
    fputs("usage: crosstalk list [algorithms|models|topologies|datasets|partitions|devices]\n",
          out);
}

static void print(void *context, const char *name, const char *text) {
    fprintf(context, "  %-16s %s\n", name, text);
}

ct_status ct_cli_list(int n_args, char **args) {
    bool found = n_args == 0;
    for (int k = 0; k < N_KINDS; k++) {
        if (n_args > 0 && strcmp(args[0], kinds[k].name) != 0) continue;
        found = true;
        if (n_args == 0) printf("%s\n", kinds[k].name);
        kinds[k].each(print, stdout);
        if (k == 0) print(stdout, "ccl", "the paper's method: qg-dsgdm with the CCL loss");
    }
    if (found) return CT_OK;
    return ct_fail(CT_INVAL,
                   "no list '%s'; known: algorithms, models, topologies, datasets, "
                   "partitions, devices",
                   args[0]);
}
