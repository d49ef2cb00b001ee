/* Words that a run would refuse as soon as it begins, found before the first of many begins. */
#include <stdio.h>
#include <string.h>

#include "algo/algo.h"
#include "data/partition.h"
#include "nn/graph.h"
#include "run/fault.h"
#include "run/schedule.h"
#include "schema/interval.h"
#include "study/study_internal.h"
#include "topology/schedule.h"
#include "util/registry.h"

typedef struct search {
    const char *name;
    bool is_there;
} search;

static void look(void *context, const char *name, const char *text) {
    search *s = context;
    (void)text;
    s->is_there = s->is_there || strcmp(s->name, name) == 0;
}

static ct_status check_listed(const char *option, const char *name, ct_registry_each list) {
    search s = {name, false};
    list(look, &s);
    return s.is_there ? CT_OK : ct_unknown_name(option, name, NULL, list);
}

ct_status ct_config_check(const ct_config *c) {
    static const uint64_t seed;
    char model[CT_CONFIG_TEXT];
    const ct_algo *algo;
    ct_shape usual;
    ct_lr_schedule lr;
    ct_faults faults;
    ct_interval interval = {0};
    CT_TRY(ct_algo_find(c->algorithm, &algo));
    /* what is behind the colon depends on the data */
    snprintf(model, sizeof model, "%.*s", (int)strcspn(c->model, ":"), c->model);
    CT_TRY(ct_model_usual_input(model, &usual));
    CT_TRY(check_listed("dataset", c->dataset, ct_dataset_each));
    if (c->partition_file[0] == '\0')
        CT_TRY(check_listed("partition", c->partition, ct_partition_each));
    CT_TRY(ct_lr_schedule_create(c, &lr));
    if (c->fault[0] != '\0') CT_TRY(ct_fault_parse(c, &seed, &faults));
    return ct_interval_parse(c->checkpoint_every, &interval);
}

ct_status ct_config_check_graph(const ct_config *config) {
    uint64_t seed = (uint64_t)config->seed;
    int n = (int)config->agents;
    CT_SCOPED(ct_schedule) schedule = {0};
    CT_SCOPED(ct_topology) graph = {0};
    if (ct_schedule_is_known(config->topology))
        return ct_schedule_create(config->topology, n, &seed, 1, &schedule);
    return ct_topology_create(config->topology, n, seed, &graph);
}
