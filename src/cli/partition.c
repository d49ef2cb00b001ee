#include "data/partition.h"

#include <inttypes.h>

#include "cli/cli.h"
#include "data/dataset.h"
#include "run/run.h"
#include "util/file.h"
#include "util/memory.h"

void ct_cli_partition_help(FILE *out) {
    fputs(
        "usage: crosstalk partition [--dataset NAME] [--partition KIND] [--agents N]\n"
        "                           [--alpha A] [--seed S] [--partition-file FILE] [--out FILE]\n\n"
        "Shows how many samples of each class every agent holds and how heterogeneous that is;\n"
        "--out writes the split as a partition file (index,agent).\n",
        out);
}

static void print_table(const uint32_t *table, int n_agents, int n_classes) {
    int shown = n_classes <= 20 ? n_classes : 20;
    printf("agent    total");
    for (int k = 0; k < shown; k++) printf(" %6d", k);
    puts(shown < n_classes ? "  ..." : "");
    for (int a = 0; a < n_agents; a++) {
        const uint32_t *row = table + (size_t)a * (size_t)n_classes;
        uint64_t total = 0;
        for (int k = 0; k < n_classes; k++) total += row[k];
        printf("%5d %8" PRIu64, a, total);
        for (int k = 0; k < shown; k++) {
            if (row[k] == 0)
                printf("      .");
            else
                printf(" %6" PRIu32, row[k]);
        }
        putchar('\n');
    }
}

static ct_status report(const ct_config *c, const ct_dataset *d, const ct_partition *p) {
    ct_partition_facts f;
    uint32_t *table = ct_new(uint32_t, (size_t)p->n_agents * (size_t)d->n_classes);
    if (table == NULL) return ct_fail(CT_NOMEM, "no memory for the table");
    ct_partition_measure(p, d->train.labels, d->n_classes, table, &f);
    print_table(table, p->n_agents, d->n_classes);
    ct_free(table);
    printf("%.2f classes an agent, largest class %.2f of its samples, distance to the global mix "
           "%.3f\n%zu to %zu samples an agent, hash %016" PRIx64 "\n",
           f.classes_per_agent, f.top_share, f.total_variation, f.min_size, f.max_size, f.hash);
    if (c->out[0] == '\0') return CT_OK;
    if (ct_file_exists(c->out) && !c->force)
        return ct_fail(CT_IO, "%s is there already; replace it with --force", c->out);
    return ct_partition_write(p, c->out);
}

static ct_status split(const ct_config *c, const ct_dataset *d, ct_partition *out) {
    ct_partition_spec spec = {.kind = c->partition,
                              .n_agents = (int)c->agents,
                              .alpha = c->alpha,
                              .classes_per_agent = (int)c->classes_per_agent,
                              .seed = (uint64_t)c->seed};
    if (c->partition_file[0] != '\0')
        return ct_partition_read(c->partition_file, (int)c->agents, d->train.n, out);
    return ct_partition_create(&spec, d->train.labels, d->train.n, d->n_classes, out);
}

ct_status ct_cli_partition(int n_args, char **args) {
    ct_config c;
    ct_dataset d = {0};
    ct_partition p = {0};
    int n_words;
    ct_config_init(&c);
    CT_TRY(ct_cli_options(n_args, args, &c, NULL, 0, &n_words));
    CT_TRY(ct_run_name_data(&c));
    ct_status status = ct_run_open_data(&c, &d);
    if (status == CT_OK) status = split(&c, &d, &p);
    if (status == CT_OK) status = report(&c, &d, &p);
    ct_partition_free(&p);
    ct_dataset_free(&d);
    return status;
}
