/* Words that a run would refuse as soon as it begins, found before the first of many begins. */
#include <stdio.h>
#include <string.h>

#include "algo/algo.h"
#include "backend/backend.h"
#include "data/partition.h"
#include "nn/graph.h"
#include "run/fault.h"
#include "schema/interval.h"
#include "run/schedule.h"
#include "study/study_internal.h"
#include "topology/schedule.h"
#include "topology/topology.h"
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

/* `each` lists the known names. */
static ct_status check_listed(
    const char *what, const char *name,
    void (*each)(void (*each)(void *context, const char *name, const char *text), void *context)) {
    search s = {name, false};
    each(look, &s);
    return s.is_there ? CT_OK : ct_unknown_name(what, name, NULL, each);
}

/* What is behind the colon depends on the data. */
static ct_status check_model(const char *model) {
    char name[CT_CONFIG_TEXT];
    ct_shape usual;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(model, ":"), model);
    return ct_model_usual_input(name, &usual);
}

static ct_status check_training(const ct_config *c, const char **option) {
    static const uint64_t seed;
    ct_lr_schedule lr;
    ct_faults faults;
    ct_interval interval = {0};
    ct_precision precision;
    *option = "lr-schedule";
    CT_TRY(ct_lr_schedule_create(c, &lr));
    *option = "fault";
    if (c->fault[0] != '\0') CT_TRY(ct_fault_parse(c, &seed, &faults));
    *option = "checkpoint-every";
    CT_TRY(ct_interval_parse(c->checkpoint_every, &interval));
    *option = "precision";
    return ct_precision_parse(c->precision, &precision);
}

ct_status ct_config_check(const ct_config *c, const char **option) {
    const ct_algo *algo;
    *option = "algorithm";
    CT_TRY(ct_algo_find(c->algorithm, &algo));
    *option = "model";
    CT_TRY(check_model(c->model));
    *option = "dataset";
    CT_TRY(check_listed("dataset", c->dataset, ct_dataset_each));
    *option = "partition";
    if (c->partition_file[0] == '\0')
        CT_TRY(check_listed("partition", c->partition, ct_partition_each));
    return check_training(c, option);
}

ct_status ct_config_check_graph(const ct_config *config) {
    uint64_t seed = (uint64_t)config->seed;
    int n = (int)config->agents;
    if (ct_schedule_is_known(config->topology)) {
        ct_schedule schedule = {0};
        CT_TRY(ct_schedule_create(config->topology, n, &seed, 1, &schedule));
        ct_schedule_free(&schedule);
        return CT_OK;
    }
    ct_topology graph = {0};
    CT_TRY(ct_topology_create(config->topology, n, seed, &graph));
    ct_topology_free(&graph);
    return CT_OK;
}
