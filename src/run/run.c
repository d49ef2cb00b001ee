#include "run/run.h"

#include <string.h>

#include "util/memory.h"
#include "util/text.h"

static void keep_first(ct_images *images, int64_t n) {
    if (n > 0 && (size_t)n < images->n) images->n = (size_t)n;
}

static ct_status open_dataset(ct_run *run) {
    const ct_config *c = &run->config;
    ct_dataset_options options = {.dir = c->data_dir[0] != '\0' ? c->data_dir : NULL,
                                  .seed = (uint64_t)c->seed,
                                  .n_train = (size_t)c->train_samples,
                                  .n_test = (size_t)c->test_samples};
    CT_TRY(ct_dataset_open(c->dataset, &options, &run->dataset));
    keep_first(&run->dataset.train, c->train_samples);
    keep_first(&run->dataset.test, c->test_samples);
    return CT_OK;
}

static ct_status split_data(ct_run *run) {
    const ct_config *c = &run->config;
    const ct_images *train = &run->dataset.train;
    ct_partition_spec spec = {.kind = c->partition,
                              .n_agents = (int)c->agents,
                              .alpha = c->alpha,
                              .classes_per_agent = (int)c->classes_per_agent,
                              .seed = (uint64_t)c->seed};
    if (c->partition_file[0] != '\0')
        CT_TRY(ct_partition_read(c->partition_file, (int)c->agents, train->n, &run->partition));
    else
        CT_TRY(ct_partition_create(&spec, train->labels, train->n, run->dataset.n_classes,
                                   &run->partition));
    ct_partition_measure(&run->partition, train->labels, run->dataset.n_classes, NULL,
                         &run->partition_facts);
    if ((size_t)c->batch_size > run->partition_facts.min_size)
        return ct_fail(CT_INVAL,
                       "--batch-size %lld is more than the %zu samples of the smallest agent; "
                       "take a smaller batch or fewer agents",
                       (long long)c->batch_size, run->partition_facts.min_size);
    return CT_OK;
}

static ct_status connect_agents(ct_run *run) {
    ct_config *c = &run->config;
    CT_TRY(ct_topology_create(c->topology, (int)c->agents, (uint64_t)c->seed, &run->topology));
    CT_TRY(ct_mixing_create(&run->topology, c->weights, &run->w));
    CT_TRY(ct_topology_measure(&run->topology, &run->w, &run->topology_facts));
    bool is_regular = run->topology_facts.min_degree == run->topology_facts.max_degree;
    if (strcmp(c->weights, "auto") == 0)
        snprintf(c->weights, sizeof c->weights, "%s", is_regular ? "uniform" : "metropolis");
    return CT_OK;
}

static ct_status build_model(ct_run *run) {
    ct_config *c = &run->config;
    const ct_dataset *d = &run->dataset;
    ct_model_spec spec = {.name = c->model,
                          .input = {d->train.channels, d->train.height, d->train.width},
                          .n_classes = d->n_classes,
                          .norm = c->norm};
    ct_backend_options options = {.n_threads = (int)c->threads, .exact_conv = c->exact_conv};
    CT_TRY(ct_graph_create(&spec, &run->graph));
    CT_TRY(ct_backend_create(c->device, &options, &run->backend));
    snprintf(c->device, sizeof c->device, "%s", run->backend->ops->name);
    CT_TRY(ct_source_create(run->backend, &d->train, d->mean, d->std, &run->train));
    CT_TRY(ct_source_create(run->backend, &d->test, d->mean, d->std, &run->test));
    /* Evaluation goes in batches of at least 32, however small the training's are. */
    int max_batch = c->batch_size > 32 ? (int)c->batch_size : 32;
    return ct_plan_create(run->backend, &run->graph, max_batch, &run->plan);
}

static ct_loss_spec loss_of(const ct_config *c) {
    return (ct_loss_spec){.ccl = strcmp(c->loss, "ccl") == 0,
                          .lambda_m = c->lambda_m,
                          .lambda_d = c->lambda_d,
                          .distance = strcmp(c->ccl_distance, "l1") == 0       ? CT_L1
                                      : strcmp(c->ccl_distance, "cosine") == 0 ? CT_COSINE
                                                                               : CT_MSE,
                          .reduction = strcmp(c->ccl_reduction, "sum") == 0 ? CT_REDUCE_SUM
                                                                            : CT_REDUCE_MEAN};
}

static ct_status create_agents(ct_run *run) {
    const ct_config *c = &run->config;
    CT_TRY(ct_transport_create((int)c->agents, &run->transport));
    run->batches = ct_new(ct_batch, (size_t)c->agents);
    if (run->batches == NULL) return ct_fail(CT_NOMEM, "no memory for the batches");
    run->agents = (ct_agents){.backend = run->backend,
                              .transport = run->transport,
                              .plan = run->plan,
                              .source = run->train,
                              .topology = &run->topology,
                              .w = &run->w,
                              .hyper = {.momentum = c->momentum,
                                        .nesterov = c->nesterov,
                                        .gamma = c->gamma,
                                        .weight_decay = c->weight_decay,
                                        .variant = c->variant,
                                        .relay_fill = c->relay_fill},
                              .loss = loss_of(c),
                              .max_batch = (int)c->batch_size,
                              .batches = run->batches,
                              .losses = &run->losses};
    CT_TRY(ct_agents_init(&run->agents, &run->graph, (int)c->agents));
    CT_TRY(ct_run_init_params(run));
    return run->algo->create(&run->agents, &run->algo_state);
}

static ct_status create_order(ct_run *run) {
    const ct_config *c = &run->config;
    ct_order_spec spec = {.seed = (uint64_t)c->seed,
                          .batch_size = (int)c->batch_size,
                          .shuffle = c->shuffle,
                          .crop_padding = c->augment ? run->dataset.crop_padding : 0,
                          .flip = c->augment && run->dataset.flip};
    CT_TRY(ct_order_create(&spec, &run->partition, &run->order));
    run->epoch_iterations = ct_order_epoch(run->order);
    return ct_bank_create(run->backend, (int)c->agents, 0,
                          (size_t)run->epoch_iterations * CT_LOSS_FIELDS, &run->losses);
}

static ct_status create_consensus(ct_run *run) {
    int n = (int)run->config.agents;
    CT_TRY(ct_bank_create(run->backend, 1, 0, run->graph.n_weights, &run->consensus));
    if (run->graph.n_buffer_values > 0)
        CT_TRY(ct_bank_create(run->backend, 1, 0, run->graph.n_buffer_values,
                              &run->consensus_running));
    CT_TRY(ct_sparse_create(1, n, n, &run->mean));
    run->mean.begin[1] = n;
    for (int i = 0; i < n; i++) {
        run->mean.column[i] = i;
        run->mean.value[i] = 1.0 / n;
    }
    return CT_OK;
}

/* The names are checked before the data is read: a typing error costs no time. */
static ct_status build(ct_run *run) {
    CT_TRY(ct_config_resolve(&run->config));
    CT_TRY(ct_algo_find(run->config.algorithm, &run->algo));
    CT_TRY(connect_agents(run));
    CT_TRY(open_dataset(run));
    CT_TRY(split_data(run));
    CT_TRY(build_model(run));
    CT_TRY(create_order(run));
    CT_TRY(create_agents(run));
    return create_consensus(run);
}

ct_status ct_run_create(const ct_config *config, ct_run *out) {
    memset(out, 0, sizeof *out);
    out->config = *config;
    ct_status status = build(out);
    if (status != CT_OK) ct_run_free(out);
    return status;
}

void ct_run_free(ct_run *run) {
    if (run->algo != NULL && run->algo->free != NULL && run->algo_state != NULL)
        run->algo->free(run->algo_state);
    ct_sparse_free(&run->mean);
    ct_bank_free(&run->consensus);
    ct_bank_free(&run->consensus_running);
    ct_agents_free(&run->agents);
    ct_bank_free(&run->losses);
    ct_order_free(&run->order);
    ct_free(run->batches);
    ct_transport_free(&run->transport);
    ct_plan_free(&run->plan);
    ct_source_free(&run->train);
    ct_source_free(&run->test);
    ct_backend_free(&run->backend);
    ct_graph_free(&run->graph);
    ct_sparse_free(&run->w);
    ct_topology_free(&run->topology);
    ct_partition_free(&run->partition);
    ct_dataset_free(&run->dataset);
    memset(run, 0, sizeof *run);
}

typedef struct decay {
    double epoch, epochs, lr, factor;
} decay;

static ct_status apply_milestone(void *context, const char *field) {
    decay *d = context;
    double milestone = 0;
    if (!ct_parse_double(field, &milestone) || milestone < 0 || milestone > 1)
        return ct_fail(CT_INVAL, "--lr-milestones: '%s' is not a part of all epochs from 0 to 1",
                       field);
    if (d->epoch >= milestone * d->epochs) d->lr *= d->factor;
    return CT_OK;
}

double ct_run_lr(const ct_config *config, long epoch) {
    decay d = {.epoch = (double)epoch,
               .epochs = (double)config->epochs,
               .lr = config->lr,
               .factor = config->lr_decay};
    if (strcmp(config->lr_milestones, "none") != 0)
        ct_split(config->lr_milestones, apply_milestone, &d);
    return d.lr;
}

ct_status ct_run_step(ct_run *run, long iteration) {
    ct_agents *a = &run->agents;
    double lr = ct_run_lr(&run->config, iteration / run->epoch_iterations);
    a->lr_previous =
        iteration == 0 ? lr : ct_run_lr(&run->config, (iteration - 1) / run->epoch_iterations);
    a->lr = lr;
    a->iteration = iteration;
    a->loss_column = (size_t)(iteration % run->epoch_iterations) * CT_LOSS_FIELDS;
    for (int i = 0; i < a->n; i++) run->batches[i] = ct_order_batch(run->order, i, iteration);
    CT_TRY(ct_step_begin(run->backend));
    CT_TRY(run->algo->step(a, run->algo_state));
    return ct_step_end(run->backend);
}
