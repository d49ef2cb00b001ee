/* Defaults that depend on the experiment: the paper's hyper-parameters (its section 5 and
 * appendix), and checks of options against each other. */
#include "schema/config.h"

#include <math.h>
#include <string.h>

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

static void choose(ct_config *c, ct_option_id id) {
    c->is_auto[id] = false;
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
    choose(c, CT_OPT_lambda_m);
    choose(c, CT_OPT_lambda_d);
}

static ct_status one_of(const char *option, const char *value, const char *known) {
    size_t n = strlen(value);
    for (const char *at = known; *at != '\0';) {
        size_t length = strcspn(at, ",");
        if (length == n && memcmp(at, value, n) == 0) return CT_OK;
        at += length;
        at += strspn(at, ", ");
    }
    return ct_fail(CT_INVAL, "--%s: no '%s'; known: %s", option, value, known);
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
    CT_TRY(one_of("loss", c->loss, "auto, ce, ccl"));
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
    choose(c, CT_OPT_loss);
    return CT_OK;
}

static ct_status check_names(const ct_config *c) {
    CT_TRY(one_of("variant", c->variant, "paper, atc, wacv24"));
    CT_TRY(one_of("relay-fill", c->relay_fill, "init, self"));
    CT_TRY(one_of("ccl-distance", c->ccl_distance, "mse, l1, cosine"));
    CT_TRY(one_of("ccl-reduction", c->ccl_reduction, "mean, sum"));
    CT_TRY(one_of("norm", c->norm, "evonorm, evonorm-s0, groupnorm, batchnorm, none"));
    if (strcmp(c->norm, "batchnorm") == 0 && c->batch_size == 1)
        return ct_refuse("norm", "@norm batchnorm needs @batch-size 2 or more");
    return CT_OK;
}

ct_status ct_config_resolve(ct_config *c) {
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
    choose(c, CT_OPT_model);
    choose(c, CT_OPT_lr);
    choose(c, CT_OPT_epochs);
    choose(c, CT_OPT_gamma);
    return check_names(c);
}
