#include "run/run.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "run/fault.h"
#include "run/own.h"
#include "run/training.h"
#include "site/site.h"
#include "util/log.h"
#include "util/memory.h"

/* The best vector instructions that all ranks have: bits differ from one set to the next. */
static ct_status choose_instructions(ct_run *run, const char **out) {
    int level = INT_MAX - 1, most = 0;
    bool is_cpu = strcmp(run->config.device, "cpu") == 0;
    if (is_cpu) CT_TRY(ct_cpu_level(run->config.instructions, &level));
    CT_TRY(ct_transport_vote(run->transport, -level, &most));
    *out = is_cpu ? ct_cpu_instructions(-most) : "";
    return CT_OK;
}

static ct_status create_backend(ct_run *run) {
    const ct_config *c = &run->config;
    ct_backend_options options = {.n_threads = (int)c->threads, .exact_conv = c->exact_conv};
    CT_TRY(choose_instructions(run, &options.instructions));
    CT_TRY(ct_precision_parse(c->precision, &options.precision));
    return ct_backend_create(c->device, &options, &run->backend);
}

/* What the caller's own loss and samples leave no room for is refused. */
static ct_status check_external(const ct_run *run) {
    const ct_config *c = &run->config;
    if (c->label_smoothing > 0)
        return ct_refuse("label-smoothing", "@label-smoothing does nothing with an external model, "
                                            "whose loss is the caller's");
    bool has_features = run->external->features != NULL && run->external->n_features > 0;
    if (strcmp(c->loss, "ccl") == 0 && !has_features)
        return ct_refuse("loss", "@loss ccl needs the features of the external model: a number of "
                                 "features and a function for them");
    return CT_OK;
}

static ct_status build_external(ct_run *run, int max_batch) {
    CT_TRY(check_external(run));
    CT_TRY(ct_external_graph(run->external, run->dataset.n_classes, &run->graph));
    return ct_external_plan_create(run->backend, &run->graph, max_batch, run->external, &run->plan);
}

/* The columns of a table have no neighbours: a network that looks at some around each is none for
 * it. Built for pictures, it shows whether it does. */
static ct_status check_for_table(const ct_model_spec *spec, const char *source) {
    CT_SCOPED(ct_graph) g = {0};
    ct_model_spec pictures = *spec;
    pictures.input = (ct_shape){3, 224, 224};
    CT_TRY(ct_graph_create(&pictures, &g));
    for (int k = 0; k < g.n_nodes; k++)
        if (g.nodes[k].op == CT_OP_CONV)
            return ct_refuse("model",
                             "@model %s is for pictures, and %s is a table; use mlp or "
                             "logistic",
                             spec->name, source);
    return CT_OK;
}

static ct_status build_model(ct_run *run) {
    const ct_config *c = &run->config;
    const ct_dataset *d = &run->dataset;
    /* Evaluation goes in batches of at least 32, however small the training's are. */
    int max_batch = c->batch_size > 32 ? (int)c->batch_size : 32;
    if (c->device_note[0] != '\0') ct_note("%s", c->device_note);
    if (run->external != NULL) return build_external(run, max_batch);
    ct_model_spec spec = {.name = c->model,
                          .input = {d->train.channels, d->train.height, d->train.width},
                          .n_classes = d->n_classes,
                          .norm = c->norm};
    if (d->columns != NULL) CT_TRY(check_for_table(&spec, d->source));
    CT_TRY(ct_graph_create(&spec, &run->graph));
    return ct_plan_create(run->backend, &run->graph, max_batch, &run->plan);
}

/* Rounded as banks hold the lambdas of worlds, so that a run of one and of many are the same.
 * volatile: of two such roundings side by side gcc 12 makes none from -O2 on (its SLP pass takes
 * double-float-double for nothing to do). */
static double as_in_a_bank(double value) {
    volatile float rounded = (float)value;
    return (double)rounded;
}

static ct_loss_spec loss_of(const ct_config *c) {
    return (ct_loss_spec){.ccl = strcmp(c->loss, "ccl") == 0,
                          .lambda_m = as_in_a_bank(c->lambda_m),
                          .lambda_d = as_in_a_bank(c->lambda_d),
                          .cross_fraction = c->ccl_batch_fraction,
                          .label_smoothing = c->label_smoothing,
                          .distance = strcmp(c->ccl_distance, "l1") == 0       ? CT_L1
                                      : strcmp(c->ccl_distance, "cosine") == 0 ? CT_COSINE
                                                                               : CT_MSE,
                          .reduction = strcmp(c->ccl_reduction, "sum") == 0 ? CT_REDUCE_SUM
                                                                            : CT_REDUCE_MEAN};
}

static double smallest_eigenvalue(const ct_run *run) {
    double smallest = 1;
    for (int k = 0; k < run->n_worlds; k++)
        smallest = fmin(smallest, run->worlds[k].topology_facts.lambda_min);
    return smallest;
}

static double number_of(const void *config, const char *option) {
    return ct_config_number(config, option);
}

static const char *word_of(const void *config, const char *option) {
    return ct_config_word(config, option);
}

static ct_status create_agents(ct_run *run) {
    const ct_config *c = &run->config;
    bool changes = run->schedule.n > 0, has_own_steps = ct_config_has_own_steps(c);
    const ct_phase *widest = changes ? ct_schedule_widest(&run->schedule) : NULL;
    CT_TRY(ct_make(&run->batches, (size_t)ct_transport_own(run->transport).n, "the batches"));
    run->agents =
        (ct_agents){.backend = run->backend,
                    .transport = run->transport,
                    .plan = run->plan,
                    .source = run->train,
                    .n_seeds = run->n_worlds,
                    .links = {.graphs = run->graphs,
                              .topology = changes ? &widest->sources : &run->topology,
                              .weights = changes ? &widest->w : &run->w,
                              .schedule = changes ? &run->schedule : NULL,
                              .lambda_min = smallest_eigenvalue(run)},
                    .hyper = {.momentum = c->momentum,
                              .nesterov = c->nesterov,
                              .gamma = has_own_steps ? 1 : c->gamma,
                              .weight_decay = c->weight_decay,
                              .clip_norm = c->clip_norm},
                    .options = {c, number_of, word_of},
                    .loss = loss_of(c),
                    .ccl = {.world_lambdas = run->lambdas,
                            .economy = {.every = (int)c->ccl_every,
                                        .neighbours = (int)c->ccl_neighbours,
                                        .adaptive_share = c->ccl_adaptive,
                                        .min_class_count = (int)c->min_class_count}},
                    .copies = {.compressor = c->compress,
                               .seeds = run->seeds,
                               .are_sent_first = c->init[0] != '\0'},
                    .sam = {.radius = c->sam},
                    .steps = {.are_wished = has_own_steps, .gamma = c->gamma},
                    .faults = c->fault[0] != '\0' || c->site != NULL ? &run->faults : NULL,
                    .speeds = &run->speeds,
                    .max_batch = (int)c->batch_size,
                    .batches = run->batches,
                    .losses = &run->losses};
    CT_TRY(ct_agents_init(&run->agents, &run->graph));
    CT_TRY(ct_run_init_params(run));
    return ct_agents_start(&run->agents, run->algo);
}

static ct_status create_order(ct_run *run) {
    const ct_config *c = &run->config;
    ct_order_spec spec = {.seeds = run->seeds,
                          .n_seeds = run->n_worlds,
                          .batch_size = (int)c->batch_size,
                          .shuffle = c->shuffle,
                          .crop_padding = c->augment ? run->dataset.crop_padding : 0,
                          .flip = c->augment && run->dataset.flip,
                          .numbers = run->dataset.train_numbers,
                          .most_samples = run->most_samples};
    bool is_part = run->config.validation_fraction > 0;
    CT_TRY(ct_order_create(&spec, is_part ? &run->trained : &run->partition, &run->order));
    run->epoch_iterations = ct_order_epoch(run->order);
    return ct_bank_create(run->backend, ct_transport_own(run->transport).n, 0,
                          (size_t)run->epoch_iterations * CT_LOSS_FIELDS, &run->losses);
}

/* A graph that stays becomes a schedule, of it and of iterations without gossip. */
static ct_status create_local_steps(ct_run *run) {
    ct_local_steps steps;
    CT_TRY(ct_local_steps_parse(run->config.local_steps, &steps));
    if (steps.last == 1) return CT_OK;
    steps.n_iterations = (long)run->config.epochs * run->epoch_iterations;
    if (run->schedule.n == 0)
        CT_TRY(
            ct_schedule_of_graph(&run->topology, &run->w, (int)run->config.agents, &run->schedule));
    return ct_schedule_set_local_steps(&run->schedule, &steps);
}

/* Among several ranks, the first has room for everyone's models. */
static ct_status create_all_rows(ct_run *run) {
    int n_rows = run->topology.n;
    run->all_x = &run->agents.x;
    run->all_running = &run->agents.running;
    if (ct_transport_n_ranks(run->transport) == 1 || run->config.site != NULL) return CT_OK;
    run->all_x = &run->collected_x;
    run->all_running = &run->collected_running;
    if (!ct_run_leads(run)) return CT_OK;
    CT_TRY(ct_bank_create(run->backend, n_rows, 0, run->graph.n_weights, &run->collected_x));
    if (run->graph.n_buffer_values == 0) return CT_OK;
    return ct_bank_create(run->backend, n_rows, 0, run->graph.n_buffer_values,
                          &run->collected_running);
}

/* Room for what an evaluation finds out about every agent and every class. */
static ct_status create_details(ct_run *run) {
    size_t n_classes = (size_t)run->dataset.n_classes;
    run->local_accuracy = ct_new(double, (size_t)run->topology.n);
    if (n_classes <= CT_MAX_CONFUSION)
        run->confusion = ct_new(uint32_t, (size_t)run->n_worlds * n_classes * n_classes);
    if (run->local_accuracy == NULL || (run->confusion == NULL && n_classes <= CT_MAX_CONFUSION))
        return ct_fail(CT_NOMEM, "no memory for the scores of %d agents", run->topology.n);
    return CT_OK;
}

static ct_status create_consensus(ct_run *run) {
    CT_TRY(create_all_rows(run));
    CT_TRY(create_details(run));
    CT_TRY(ct_bank_create(run->backend, run->n_worlds, 0, run->graph.n_weights, &run->consensus));
    if (run->graph.n_buffer_values > 0)
        CT_TRY(ct_bank_create(run->backend, run->n_worlds, 0, run->graph.n_buffer_values,
                              &run->consensus_running));
    return ct_sparse_means(run->n_worlds, run->topology.n / run->n_worlds, &run->mean);
}

static ct_status create_transport(ct_run *run) {
    const ct_config *c = &run->config;
    CT_SCOPED(ct_text) shared = {0};
    CT_TRY(ct_run_meet(run, &shared));
    ct_transport_options options = {.kind = c->transport,
                                    .timeout_s = c->timeout,
                                    .link_latency_s = 1e-3 * c->link_latency,
                                    .link_bytes_per_s = 1e6 / 8 * c->link_bandwidth,
                                    .n_worlds = run->n_worlds,
                                    .site = c->site,
                                    .shared = &shared};
    CT_TRY(ct_transport_create(&options, run->topology.n, &run->transport));
    return ct_ledger_open(run->transport, run->topology.begin, run->topology.neighbour);
}

/* Neighbours come and go; our own agent is always there. */
static bool is_there(const void *context, int row) {
    const ct_run *run = context;
    return row == ct_transport_rank(run->transport) || ct_site_is_with(run->config.site, row);
}

static ct_status create_faults(ct_run *run) {
    if (run->config.site != NULL) {
        run->faults =
            (ct_faults){.is_there = is_there, .context = run, .n_agents = run->topology.n};
        return ct_algo_check_sites(run->algo);
    }
    if (run->config.fault[0] == '\0') return CT_OK;
    if (run->schedule.n > 0)
        return ct_refuse("fault", "@fault needs a graph that stays; '%s' changes from step to step",
                         run->schedule.name);
    return ct_fault_parse(&run->config, run->seeds, &run->faults);
}

static ct_status open_data(ct_run *run) {
    run->is_own = ct_config_is_own(&run->config);
    if (run->is_own) return ct_own_open(run);
    CT_TRY(ct_run_open_data(&run->config, ct_transport_rank(run->transport), &run->dataset));
    CT_TRY(ct_run_agree_data(run));
    CT_TRY(ct_make(&run->parts, 1, "the samples"));
    run->n_parts = 1;
    run->n_tested = run->dataset.test.n;
    run->parts[0] = (ct_agent_part){.n_train = run->dataset.train.n, .n_test = run->n_tested};
    return CT_OK;
}

/* The names are checked before the data is read: a typing error costs no time. */
static ct_status build(ct_run *run) {
    CT_TRY(ct_config_resolve(&run->config));
    CT_TRY(ct_lr_schedule_create(&run->config, &run->lr));
    CT_TRY(ct_algo_find(run->config.algorithm, &run->algo));
    CT_TRY(ct_run_create_worlds(run));
    if (run->schedule.n > 0) CT_TRY(ct_algo_check_schedule(run->algo, &run->schedule));
    CT_TRY(create_transport(run));
    CT_TRY(create_faults(run));
    CT_TRY(ct_speeds_parse(run->config.speed, run->seeds, run->n_worlds, (int)run->config.agents,
                           &run->speeds));
    CT_TRY(create_backend(run));
    CT_TRY(open_data(run));
    CT_TRY(ct_run_split_data(run));
    CT_TRY(ct_run_measure_worlds(run));
    CT_TRY(build_model(run));
    CT_TRY(create_order(run));
    CT_TRY(create_local_steps(run));
    CT_TRY(ct_run_create_sources(run));
    CT_TRY(create_agents(run));
    CT_TRY(ct_run_create_average(run));
    CT_TRY(ct_run_create_public(run));
    ct_transport_part(run->transport);
    return create_consensus(run);
}

ct_status ct_run_build(const ct_config *config, ct_run *out) {
    memset(out, 0, sizeof *out);
    out->config = *config;
    out->external = ct_config_inputs(config)->external;
    out->resumed_at = -1;
    ct_status status = build(out);
    if (status != CT_OK) ct_run_clear(out);
    return status;
}

void ct_run_clear(ct_run *run) {
    ct_training_free(&run->training);
    ct_free(run->agent_sums);
    ct_free(run->own_sizes);
    ct_free(run->parts);
    ct_free(run->class_counts);
    ct_free(run->homes);
    ct_free(run->local_accuracy);
    ct_free(run->confusion);
    ct_stage_free(run->backend, false, run->read_rows);
    ct_sparse_free(&run->mean);
    ct_average_free(&run->average);
    ct_public_free(&run->public);
    ct_speeds_free(&run->speeds);
    ct_bank_free(&run->collected_x);
    ct_bank_free(&run->collected_running);
    ct_bank_free(&run->consensus);
    ct_bank_free(&run->consensus_running);
    ct_agents_free(&run->agents);
    ct_bank_free(&run->losses);
    ct_free(run->batches);
    ct_transport_free(&run->transport);
    ct_plan_free(&run->plan);
    ct_run_free_sources(run);
    ct_backend_free(&run->backend);
    ct_graph_free(&run->graph);
    ct_sparse_free(&run->w);
    ct_schedule_free(&run->schedule);
    ct_topology_free(&run->topology);
    ct_partition_free(&run->partition);
    ct_partition_free(&run->trained);
    ct_partition_free(&run->held);
    ct_run_free_worlds(run);
    ct_dataset_free(&run->dataset);
    ct_free(run->given);
    memset(run, 0, sizeof *run);
}

/* Links of this iteration, where they change from one to the next. */
static ct_status connect(ct_run *run, long iteration) {
    if (run->schedule.n == 0) return CT_OK;
    const ct_phase *phase = ct_schedule_at(&run->schedule, iteration);
    return ct_agents_connect(&run->agents, &phase->sources, &phase->w);
}

/* A step in which the caller computes is nothing that a device could record. */
static ct_status take_step(ct_run *run) {
    ct_agents *a = &run->agents;
    if (run->external != NULL) {
        ct_external_begin(run->plan, a->iteration, a->first, a->n_agents);
        return a->algo->step(a);
    }
    CT_TRY(ct_step_begin(run->backend));
    CT_TRY(a->algo->step(a));
    return ct_step_end(run->backend);
}

/* Among sites: with whom, from this iteration on. */
static ct_status meet_sites(ct_run *run, long iteration) {
    bool has_changed = false;
    if (run->config.site == NULL) return CT_OK;
    CT_TRY(ct_site_begin(run->config.site, iteration, &has_changed));
    if (!has_changed || run->schedule.n > 0) return CT_OK;
    return ct_agents_connect(&run->agents, &run->topology, &run->w);
}

/* Whoever waits for others waits for the slowest. */
static void spend_time(ct_run *run, long iteration) {
    if (run->algo->is_simulation || run->config.speed[0] == '\0') return;
    for (int row = 0; row < run->agents.n_rows; row++)
        ct_ledger_delay(run->transport, row, ct_speeds_step_s(&run->speeds, row, iteration));
}

ct_status ct_run_iterate(ct_run *run, long iteration) {
    ct_agents *a = &run->agents;
    run->has_consensus = false;
    ct_transport_set_iteration(run->transport, iteration);
    CT_TRY(meet_sites(run, iteration));
    CT_TRY(connect(run, iteration));
    a->lr = ct_lr_at(&run->lr, iteration, run->epoch_iterations);
    a->lr_previous =
        iteration == 0 ? a->lr : ct_lr_at(&run->lr, iteration - 1, run->epoch_iterations);
    a->iteration = iteration;
    a->loss_column = (size_t)(iteration % run->epoch_iterations) * CT_LOSS_FIELDS;
    CT_TRY(ct_run_batches(run, iteration));
    CT_TRY(ct_run_use_public(run, iteration));
    spend_time(run, iteration);
    if (a->faults != NULL) CT_TRY(ct_faults_begin(a));
    CT_TRY(take_step(run));
    if (a->faults != NULL) CT_TRY(ct_faults_end(a));
    CT_TRY(ct_run_add_average(run, iteration));
    ct_ledger_end_iteration(run->transport);
    return CT_OK;
}
