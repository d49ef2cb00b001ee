/* Defaults that depend on the experiment: the paper's hyper-parameters (its section 5 and
 * appendix), and checks of options against each other. */
#include "run/resolve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "run/output.h"
#include "run/run.h"

#define LARGE_IMAGE 96 /* pixels: larger pictures are for ResNet-18 */

typedef struct paper_row {
    const char *dataset;
    const char *model;
    int epochs;
    double lr;
    double lambda[2][2]; /* (lambda_m, lambda_d) at alpha = 0.1, at alpha = 0.01 */
} paper_row;

/* The last row stands for every other data set. */
static const paper_row paper[] = {
    {"fashion-mnist", "lenet5", 50, 0.01, {{0.001, 0.001}, {0.01, 0.01}}},
    {"mnist", "lenet5", 50, 0.01, {{0.001, 0.001}, {0.01, 0.01}}},
    {"shapes", "lenet5", 50, 0.01, {{0.001, 0.001}, {0.01, 0.01}}},
    {"cifar10", "resnet20", 200, 0.1, {{0.01, 0.0}, {0.01, 0.01}}},
    {"cifar100", "resnet20", 100, 0.1, {{0.1, 0.1}, {0.1, 0.1}}},
    {"miniimagenet", "resnet20", 100, 0.1, {{0.1, 0.1}, {0.1, 0.1}}},
    {"imagenette", "mobilenetv2", 100, 0.01, {{0.001, 0.001}, {1, 1}}},
    /* The paper says nothing more of ImageNet than its accuracies; pictures of one's own are taken
     * as if they were CIFAR-100, large ones as if they were ImageNet. */
    {"imagenet", "resnet18", 90, 0.1, {{0.1, 0.1}, {0.1, 0.1}}},
    {"folder", "resnet20", 100, 0.1, {{0.1, 0.1}, {0.1, 0.1}}},
    {"pack", "resnet20", 100, 0.1, {{0.1, 0.1}, {0.1, 0.1}}},
    {"", "lenet5", 50, 0.01, {{0.01, 0.01}, {0.01, 0.01}}},
};

static const paper_row *row_of(const char *dataset) {
    const paper_row *row = paper;
    while (row->dataset[0] != '\0' && strcmp(row->dataset, dataset) != 0) row++;
    return row;
}

static bool starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

static bool is_dyck_or_torus(const ct_config *c) {
    return starts_with(c->topology, "dyck") || starts_with(c->topology, "torus");
}

static void choose_lambdas(ct_config *c, const paper_row *row) {
    /* Between the paper's two skews the nearer one, in orders of magnitude. */
    const double *lambda = row->lambda[c->alpha < sqrt(0.1 * 0.01)];
    double m = lambda[0], d = lambda[1];
    /* CIFAR-10 on larger or denser graphs: 0.1, 0.1. */
    if (strcmp(row->dataset, "cifar10") == 0 && (c->agents > 16 || is_dyck_or_torus(c)))
        m = d = 0.1;
    bool is_given = strcmp(c->loss, "ccl") == 0 && c->ccl_adaptive == 0 && c->lambdas[0] == '\0';
    if (c->is_auto[CT_OPT_lambda_m]) c->lambda_m = is_given ? m : 0;
    if (c->is_auto[CT_OPT_lambda_d]) c->lambda_d = is_given ? d : 0;
}

static ct_status choose_loss(ct_config *c) {
    bool has_lambda = (c->given[CT_OPT_lambda_m] && c->lambda_m > 0) ||
                      (c->given[CT_OPT_lambda_d] && c->lambda_d > 0);
    if (c->ccl_adaptive > 0 && has_lambda)
        return ct_refuse("ccl-adaptive", "@ccl-adaptive chooses the lambdas; leave @lambda-m and "
                                         "@lambda-d out");
    if (c->lambdas[0] != '\0' && (has_lambda || c->ccl_adaptive > 0))
        return ct_refuse("lambdas", "@lambdas names them all; leave @lambda-m, @lambda-d and "
                                    "@ccl-adaptive out");
    has_lambda = has_lambda || c->ccl_adaptive > 0 || c->lambdas[0] != '\0';
    if (strcmp(c->algorithm, "ccl") == 0) {
        if (c->given[CT_OPT_loss] && strcmp(c->loss, "ce") == 0)
            return ct_refuse("algorithm", "@algorithm ccl is qg-dsgdm with @loss ccl; for @loss ce "
                                          "use @algorithm qg-dsgdm");
        snprintf(c->algorithm, sizeof c->algorithm, "qg-dsgdm");
        snprintf(c->loss, sizeof c->loss, "ccl");
    }
    if (strcmp(c->loss, "auto") == 0)
        snprintf(c->loss, sizeof c->loss, "%s", has_lambda ? "ccl" : "ce");
    if (strcmp(c->loss, "ce") == 0 && has_lambda)
        return ct_refuse("lambda-m", "@lambda-m, @lambda-d, @lambdas and @ccl-adaptive need @loss "
                                     "ccl, not @loss ce");
    return CT_OK;
}

/* Uniform where every seed's graph is regular, metropolis where none is; where they differ, "auto"
 * is what each of them takes for itself. */
static ct_status choose_weights(ct_config *c) {
    uint64_t seeds[CT_MAX_WORLDS];
    int n = 0, n_regular = 0;
    if (strcmp(c->weights, "auto") != 0 || ct_schedule_is_known(c->topology)) return CT_OK;
    CT_TRY(ct_config_seeds(c, seeds, &n));
    for (int k = 0; k < n; k++) {
        ct_topology graph = {0};
        CT_TRY(ct_topology_create(c->topology, (int)c->agents, seeds[k], &graph));
        n_regular += ct_topology_is_regular(&graph);
        ct_topology_free(&graph);
    }
    if (n_regular == n) snprintf(c->weights, sizeof c->weights, "uniform");
    if (n_regular == 0) snprintf(c->weights, sizeof c->weights, "metropolis");
    return CT_OK;
}

static ct_status choose_device(ct_config *c) {
    const char *name;
    ct_precision precision;
    CT_TRY(ct_precision_parse(c->precision, &precision));
    CT_TRY(ct_backend_choose(c->device, precision, &name));
    snprintf(c->device, sizeof c->device, "%s", name);
    return CT_OK;
}

static ct_status check_names(const ct_config *c) {
    if (strcmp(c->norm, "batchnorm") == 0 && c->batch_size == 1)
        return ct_refuse("norm", "@norm batchnorm needs @batch-size 2 or more");
    return CT_OK;
}

/* "loss=ccl": the option of that name has that value. */
static bool is_met(const ct_config *c, const char *needs) {
    char name[64];
    const char *equals = strchr(needs, '=');
    snprintf(name, sizeof name, "%.*s", (int)(equals - needs), needs);
    const ct_option *o = ct_schema_find(name);
    return strcmp((const char *)c + o->offset, equals + 1) == 0;
}

/* What was named for this run and does nothing in it was meant otherwise. */
static ct_status check_needs(const ct_config *c) {
    for (int id = 0; id < CT_N_OPTIONS; id++) {
        const ct_option *o = &ct_run_options[id];
        if (!c->named[id] || o->needs[0] == '\0' || is_met(c, o->needs)) continue;
        int n = (int)strcspn(o->needs, "=");
        return ct_refuse(o->name, "@%s does nothing without @%.*s %s", o->name, n, o->needs,
                         o->needs + n + 1);
    }
    return CT_OK;
}

ct_status ct_config_choose(ct_config *c) {
    const paper_row *row = row_of(c->dataset);
    CT_TRY(choose_loss(c));
    choose_lambdas(c, row);
    bool is_large = c->image_size > LARGE_IMAGE;
    if (c->is_auto[CT_OPT_model])
        snprintf(c->model, sizeof c->model, "%s", is_large ? "resnet18" : row->model);
    if (c->is_auto[CT_OPT_lr]) c->lr = row->lr;
    if (c->is_auto[CT_OPT_epochs]) c->epochs = row->epochs;
    if (c->is_auto[CT_OPT_gamma])
        c->gamma = strcmp(c->algorithm, "qg-dsgdm") == 0 && is_dyck_or_torus(c) ? 0.9 : 1.0;
    memset(c->is_auto, 0, sizeof c->is_auto);
    CT_TRY(check_names(c));
    return check_needs(c);
}

ct_status ct_config_resolve(ct_config *c) {
    char dir[CT_CONFIG_TEXT];
    if (c->is_resolved) return CT_OK;
    CT_TRY(ct_run_name_data(c));
    CT_TRY(ct_config_choose(c));
    CT_TRY(choose_weights(c));
    CT_TRY(choose_device(c));
    ct_output_dir(c, dir, sizeof dir);
    memcpy(c->out, dir, sizeof dir);
    c->is_resolved = true;
    return CT_OK;
}

void ct_config_only_test(ct_config *c) {
    static const char *const kept[] = {"data", "model", "machine"};
    for (int id = 0; id < CT_N_OPTIONS; id++) {
        bool is_kept = false;
        for (int k = 0; k < 3; k++)
            is_kept = is_kept || strcmp(ct_run_options[id].group, kept[k]) == 0;
        if (!is_kept) ct_config_unset(c, (ct_option_id)id);
        c->named[id] = false;
    }
    c->agents = 1;
    c->batch_size = 2;
    c->partition_file[0] = '\0';
    snprintf(c->partition, sizeof c->partition, "iid");
    snprintf(c->topology, sizeof c->topology, "chain");
    snprintf(c->transport, sizeof c->transport, "local");
}
