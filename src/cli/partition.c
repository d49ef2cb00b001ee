#include "data/partition.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "data/dataset.h"
#include "report/raster.h"
#include "report/charts.h"
#include "run/run.h"
#include "util/file.h"
#include "util/log.h"
#include "util/memory.h"

const ct_help ct_cli_partition_help = {
    .usage = "partition [--dataset NAME] [--partition KIND] [--agents N] [--alpha X] [--seed N]\n"
             "partition ... [--out FILE] [--svg FILE] [--png FILE]",
    .text = "Shows how many samples of each class every agent holds and how heterogeneous that "
            "is. The split depends on the data set, --partition, --agents, --alpha and --seed "
            "alone, so training with the same options has the same split.",
    .takes = "dataset, data-dir, partition, alpha, classes-per-agent, partition-file, agents, "
             "seed, out, force, quiet",
    .files = CT_HELP_PAIRS(
        {"--out FILE",
         "the split, as a CSV file with header index,agent; --partition-file reads it back"},
        {"--svg FILE, --png FILE", "the split as a figure"}),
    .examples = CT_HELP_PAIRS(
        {"Strong skew: about three classes per agent.",
         "crosstalk partition --dataset shapes --agents 8 --alpha 0.01"},
        {"The same as a figure, and as a file to train with.",
         "crosstalk partition --dataset shapes --agents 8 --alpha 0.01 --svg split.svg --out "
         "split.csv"}),
    .also = "train, data info, topology"};

static void print_table(const uint32_t *table, int n_agents, int n_classes) {
    int shown = n_classes <= 20 ? n_classes : 20;
    ct_show(stdout, "agent    total");
    for (int k = 0; k < shown; k++) ct_show(stdout, " %6d", k);
    ct_show(stdout, "%s\n", shown < n_classes ? "  ..." : "");
    for (int a = 0; a < n_agents; a++) {
        const uint32_t *row = table + (size_t)a * (size_t)n_classes;
        uint64_t total = 0;
        for (int k = 0; k < n_classes; k++) total += row[k];
        ct_show(stdout, "%5d %8" PRIu64, a, total);
        for (int k = 0; k < shown; k++) {
            if (row[k] == 0)
                ct_show(stdout, "      .");
            else
                ct_show(stdout, " %6" PRIu32, row[k]);
        }
        ct_show(stdout, "\n");
    }
}

/* "cifar10, dirichlet 0.1" */
static void name_split(const ct_config *c, char *out, size_t size) {
    char skew[32] = "";
    if (strcmp(c->partition, "dirichlet") == 0) snprintf(skew, sizeof skew, " %g", c->alpha);
    snprintf(out, size, "%.60s, %.40s%s", c->dataset,
             c->partition_file[0] != '\0' ? "from a file" : c->partition,
             c->partition_file[0] != '\0' ? "" : skew);
}

/* Names of the classes, one after the other in the data set, as a list; NULL if there are none. */
static ct_status list_names(const ct_dataset *d, char ***out) {
    if (d->class_names == NULL) return CT_OK;
    CT_TRY(ct_make(out, (size_t)d->n_classes, "the names"));
    char *name = d->class_names;
    for (int k = 0; k < d->n_classes; k++, name += strlen(name) + 1) (*out)[k] = name;
    return CT_OK;
}

static ct_status draw(const char *svg_path, const char *png_path, const ct_config *c,
                      const ct_dataset *d, const uint32_t *table, int n_agents) {
    char title[160];
    CT_SCOPED_BLOCK(char *) names = NULL;
    CT_SCOPED(ct_text) svg = {0};
    if (svg_path == NULL && png_path == NULL) return CT_OK;
    CT_TRY(list_names(d, &names));
    name_split(c, title, sizeof title);
    ct_bubbles bubbles = {.id = "partition",
                          .title = title,
                          .heading = title,
                          .table = table,
                          .n_agents = n_agents,
                          .n_classes = d->n_classes,
                          .names = names};
    ct_bubbles_draw(&bubbles, &svg);
    CT_TRY(ct_text_status(&svg));
    if (svg_path != NULL) CT_TRY(ct_file_write(svg_path, svg.chars, svg.n));
    return png_path != NULL ? ct_raster_write(png_path, &svg, 2) : CT_OK;
}

static ct_status report(const ct_config *c, const ct_own *own, const ct_dataset *d,
                        const ct_partition *p) {
    ct_partition_facts f;
    CT_SCOPED_BLOCK(uint32_t) table = NULL;
    CT_TRY(ct_make(&table, (size_t)p->n_agents * (size_t)d->n_classes, "the table"));
    CT_TRY(ct_partition_measure(p, d->train.labels, d->n_classes, table, &f));
    print_table(table, p->n_agents, d->n_classes);
    CT_TRY(draw(ct_own_text(own, "svg"), ct_own_text(own, "png"), c, d, table, p->n_agents));
    ct_show(stdout,
            "%.2f classes an agent, largest class %.0f %% of its samples, distance to the global "
            "mix %.3f\n%zu to %zu samples an agent, hash %016" PRIx64 "\n",
            f.classes_per_agent, 100 * f.top_share, f.total_variation, f.min_size, f.max_size,
            f.hash);
    const char *const drawings[] = {ct_own_text(own, "svg"), ct_own_text(own, "png")};
    for (int k = 0; k < 2; k++)
        if (drawings[k] != NULL) ct_log(CT_LOG_LINE, "figure: %s", drawings[k]);
    if (c->out[0] == '\0') return CT_OK;
    CT_TRY(ct_partition_write(p, c->out));
    CT_SCOPED(ct_text) place = {0};
    ct_shell_add(&place, c->out);
    CT_TRY(ct_text_status(&place));
    ct_log(CT_LOG_LINE, "split: %s", c->out);
    ct_cli_next("train --dataset %s --agents %d --partition-file %s", c->dataset, p->n_agents,
                place.chars);
    return CT_OK;
}

ct_status ct_cli_partition(int n_args, char **args) {
    ct_config c;
    ct_own own;
    CT_SCOPED(ct_dataset) d = {0};
    CT_SCOPED(ct_partition) p = {0};
    ct_config_init(&c);
    CT_TRY(ct_own_take("partition", &n_args, args, &own));
    CT_TRY(ct_cli_options(n_args, args, &c, NULL, 0));
    ct_cli_quiet(c.quiet);
    CT_TRY(ct_cli_one_seed(&c));
    if (ct_own_is_given(&own, "png")) CT_TRY(ct_raster_check());
    CT_TRY(ct_cli_may_write(ct_own_text(&own, "svg"), c.force));
    CT_TRY(ct_cli_may_write(ct_own_text(&own, "png"), c.force));
    CT_TRY(ct_cli_may_write(c.out, c.force));
    CT_TRY(ct_run_name_data(&c));
    CT_TRY(ct_run_open_data(&c, 0, &d));
    if (d.train_numbers != NULL)
        return ct_fail(CT_INVAL, "%s is a part of a data set, and only the whole is split",
                       d.source);
    CT_TRY(ct_run_partition(&c, &d, (uint64_t)c.seed, &p));
    return report(&c, &own, &d, &p);
}
