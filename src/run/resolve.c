/* Defaults that depend on the experiment: the paper's hyper-parameters (its section 5 and
 * appendix), and checks of options against each other. */
#include "run/resolve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compress/compress.h"
#include "run/average.h"
#include "run/output.h"
#include "run/own.h"
#include "run/run.h"

#define ADAGOSSIP_GAMMA 0.001 /* the most that a parameter usually moves in a round */

/* So many are tested every other time: a test of the consensus model takes up to 6 % of an epoch. */
#define MANY_EPOCHS 20

static void choose_lambdas(ct_config *c) {
    bool is_large = c->agents > 16 || ct_topology_is_denser(c->topology);
    const double *lambdas =
        ct_dataset_lambdas(ct_dataset_defaults_of(c->dataset), c->alpha, is_large);
    bool is_given = strcmp(c->loss, "ccl") == 0 && c->ccl_adaptive == 0 && c->lambdas[0] == '\0';
    if (c->is_auto[CT_OPT_lambda_m]) c->lambda_m = is_given ? lambdas[0] : 0;
    if (c->is_auto[CT_OPT_lambda_d]) c->lambda_d = is_given ? lambdas[1] : 0;
}

/* A name that stands for an algorithm and a loss becomes both. */
static ct_status expand_alias(ct_config *c) {
    const ct_algo_alias *alias = ct_algo_alias_find(c->algorithm);
    if (alias == NULL) return CT_OK;
    bool is_free = !c->given[CT_OPT_loss] || strcmp(c->loss, "auto") == 0;
    if (!is_free && strcmp(c->loss, alias->loss) != 0)
        return ct_refuse("algorithm",
                         "@algorithm %s is %s with @loss %s; for @loss %s use @algorithm %s",
                         alias->name, alias->algorithm, alias->loss, c->loss, alias->algorithm);
    snprintf(c->algorithm, sizeof c->algorithm, "%s", alias->algorithm);
    snprintf(c->loss, sizeof c->loss, "%s", alias->loss);
    return CT_OK;
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
    CT_TRY(expand_alias(c));
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
        CT_TRY(ct_config_graph(c, seeds[k], &graph));
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
    ct_device_note why;
    CT_TRY(ct_backend_choose(c->device, precision, &name, &why));
    snprintf(c->device, sizeof c->device, "%s", name);
    snprintf(c->device_note, sizeof c->device_note, "%s", why.text);
    return CT_OK;
}

static ct_status check_names(const ct_config *c) {
    if (strcmp(c->norm, "batchnorm") == 0 && c->batch_size == 1)
        return ct_refuse("norm", "@norm batchnorm needs @batch-size 2 or more");
    CT_TRY(ct_average_parse(c->average, &(ct_average){0}));
    return ct_eval_agents_parse(c->eval_agents, &(long){0});
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
static ct_status check_needs(const ct_config *c, const ct_algo *algo) {
    for (int id = 0; id < CT_N_OPTIONS; id++) {
        const ct_option *o = &ct_run_options[id];
        if (!c->named[id]) continue;
        CT_TRY(ct_algo_check_option(algo, o->name));
        if (id == CT_OPT_variant) CT_TRY(ct_algo_check_variant(algo, c->variant));
        if (o->needs[0] == '\0' || is_met(c, o->needs)) continue;
        int n = (int)strcspn(o->needs, "=");
        return ct_refuse(o->name, "@%s does nothing without @%.*s %s", o->name, n, o->needs,
                         o->needs + n + 1);
    }
    return CT_OK;
}

/* Iterations without gossip, where they can be. */
static ct_status check_local_steps(const ct_config *c, const ct_algo *algo) {
    ct_local_steps steps;
    CT_TRY(ct_local_steps_parse(c->local_steps, &steps));
    if (steps.last == 1) return CT_OK;
    if (c->fault[0] != '\0')
        return ct_refuse("local-steps",
                         "@local-steps and @fault cannot be combined: what is lost is "
                         "made up for by the iteration before, which gossips");
    return ct_algo_check_local_steps(algo);
}

/* Neighbours' copies are whole only where every increment arrives, or is sent whole when they come
 * back (sites). */
static ct_status check_compress(const ct_config *c, const ct_algo *algo) {
    ct_compressor how;
    if (strcmp(c->compress, "none") == 0) return CT_OK;
    CT_TRY(ct_compressor_parse(c->compress, 1, &how));
    CT_TRY(ct_algo_check_compress(algo));
    if (ct_schedule_is_known(c->topology))
        return ct_refuse("compress",
                         "@compress needs a graph that stays; '%s' changes from step to "
                         "step",
                         c->topology);
    if (c->fault[0] != '\0')
        return ct_refuse("compress",
                         "@compress and @fault cannot be combined: a lost message would "
                         "be missing for good");
    if (c->gossip_rounds > 0)
        return ct_refuse("compress",
                         "@compress and @gossip-rounds cannot be combined: they average "
                         "whole models");
    return CT_OK;
}

/* Options about samples that all agents have, without any. */
static ct_status check_public(const ct_config *c, const ct_algo *algo) {
    static const int others[] = {CT_OPT_public_dataset, CT_OPT_public_samples, CT_OPT_distil_epochs,
                                 CT_OPT_distil_threshold, CT_OPT_distil_temperature};
    if (c->public_data[0] != '\0') return ct_algo_check_public(algo);
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (c->named[others[k]])
            return ct_refuse(ct_run_options[others[k]].name,
                             "@%s does nothing without @public-data",
                             ct_run_options[others[k]].name);
    return CT_OK;
}

bool ct_config_has_own_steps(const ct_config *c) {
    return strcmp(c->consensus, "adagossip") == 0;
}

/* Less than four bits a value, or less gamma than whole models bear. */
static bool is_rough(const ct_config *c, double gamma) {
    enum { N = 1024 };
    ct_compressor how;
    if (CT_CATCH(NULL, ct_compressor_parse(c->compress, N, &how)) != CT_OK) return false;
    return gamma < 1 || how.n_bytes < N / 2;
}

/* Momentum that repeats a pull makes it 1 / (1 - beta) times as large in the end. */
static double compressor_gamma(const ct_config *c, const ct_algo *algo) {
    ct_gossip_ways ways = {.are_carried = algo->carries_gossip,
                           .are_rare = strcmp(c->local_steps, "1") != 0};
    double gamma = ct_compressor_gamma(c->compress, ways);
    bool is_repeated =
        algo->repeats_gossip != NULL && strcmp(c->variant, algo->repeats_gossip) == 0;
    return is_repeated && is_rough(c, gamma) ? (1 - c->momentum) * gamma : gamma;
}

static double usual_gamma(const ct_config *c, const ct_algo *algo) {
    if (ct_config_has_own_steps(c)) return ADAGOSSIP_GAMMA;
    return ct_algo_gamma(algo, c->topology) * compressor_gamma(c, algo);
}

/* Of gut; its authors have 0.005 to 0.08 with momentum. */
static double usual_gut_mu(const ct_config *c) {
    if (strcmp(c->variant, "neurips23") != 0) return 0.3;
    return c->momentum > 0 ? 0.01 : 0.9;
}

/* Rows of numbers are no pictures. */
static const char *usual_model(const ct_config *c, const ct_dataset_defaults *usual) {
    const ct_data *own = ct_config_inputs(c)->data;
    if (own != NULL && own->height == 1) return "mlp";
    return ct_dataset_model(usual, (int)c->image_size);
}

ct_status ct_config_choose(ct_config *c) {
    const ct_dataset_defaults *usual = ct_dataset_defaults_of(c->dataset);
    const ct_algo *algo;
    CT_TRY(choose_loss(c));
    CT_TRY(ct_algo_find(c->algorithm, &algo));
    choose_lambdas(c);
    if (c->is_auto[CT_OPT_model]) snprintf(c->model, sizeof c->model, "%s", usual_model(c, usual));
    if (c->is_auto[CT_OPT_lr]) c->lr = usual->lr;
    if (c->is_auto[CT_OPT_epochs]) c->epochs = usual->epochs;
    if (c->is_auto[CT_OPT_gamma]) c->gamma = usual_gamma(c, algo);
    if (c->is_auto[CT_OPT_gut_mu]) c->gut_mu = usual_gut_mu(c);
    if (c->is_auto[CT_OPT_eval_every]) c->eval_every = c->epochs < MANY_EPOCHS ? 1 : 2;
    memset(c->is_auto, 0, sizeof c->is_auto);
    CT_TRY(check_names(c));
    CT_TRY(check_local_steps(c, algo));
    CT_TRY(check_compress(c, algo));
    CT_TRY(check_public(c, algo));
    if (ct_config_has_own_steps(c)) CT_TRY(ct_algo_check_own_steps(algo));
    return check_needs(c, algo);
}

ct_status ct_config_resolve(ct_config *c) {
    char dir[CT_CONFIG_TEXT] = "";
    if (c->is_resolved) return CT_OK;
    CT_TRY(ct_own_check(c));
    CT_TRY(ct_run_name_data(c));
    CT_TRY(ct_config_choose(c));
    CT_TRY(choose_weights(c));
    CT_TRY(choose_device(c));
    if (!ct_config_inputs(c)->writes_nothing) ct_output_dir(c, dir, sizeof dir);
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
