/* Several seeds, and several pairs of lambdas, in one run: each is a world of its own (split,
 * graph, start values, order of samples, weights of the loss), and all of them are rows of the same
 * banks.
 */
#include <string.h>

#include "data/part.h"
#include "run/own.h"
#include "run/run.h"
#include "run/validation.h"
#include "util/memory.h"
#include "util/text.h"

#define MAX_SEED 9000000000000000 /* as of --seed: numbers that JSON keeps */

typedef struct seed_list {
    uint64_t *seeds;
    int n;
} seed_list;

static ct_status add_seed(void *context, const char *field) {
    seed_list *list = context;
    int64_t seed = 0;
    if (!ct_parse_i64(field, &seed) || seed < 0 || seed > MAX_SEED)
        return ct_refuse("seeds", "'%s' is not a whole number from 0 to 9e15", field);
    for (int k = 0; k < list->n; k++)
        if (list->seeds[k] == (uint64_t)seed) return ct_refuse("seeds", "%s is there twice", field);
    if (list->n == CT_MAX_WORLDS) return ct_refuse("seeds", "at most %d seeds", CT_MAX_WORLDS);
    list->seeds[list->n++] = (uint64_t)seed;
    return CT_OK;
}

ct_status ct_config_seeds(const ct_config *c, uint64_t *seeds, int *n) {
    seed_list list = {seeds, 0};
    if (c->seeds[0] != '\0')
        CT_TRY(ct_split(c->seeds, add_seed, &list));
    else
        seeds[list.n++] = (uint64_t)c->seed;
    *n = list.n;
    return list.n > 0 ? CT_OK : ct_refuse("seeds", "@seeds names no seed");
}

/* Another pair: the worlds of all seeds once more. */
static ct_status add_pair(void *context, const char *field) {
    ct_run *run = context;
    double pair[2];
    int first = run->lambdas[0] < 0 ? 0 : run->n_worlds; /* the seeds are there once already */
    if (!ct_record_parse_pair(field, pair))
        return ct_refuse("lambdas", "'%s' is no pair of numbers such as 0.1:0.01", field);
    for (int k = 0; k < first; k++)
        if (run->lambdas[2 * k] == pair[0] && run->lambdas[2 * k + 1] == pair[1])
            return ct_refuse("lambdas", "%s is there twice", field);
    if (first + run->n_seeds > CT_MAX_WORLDS)
        return ct_refuse("lambdas", "@lambdas and @seeds: at most %d of both together",
                         CT_MAX_WORLDS);
    for (int k = first; k < first + run->n_seeds; k++) {
        run->seeds[k] = run->seeds[k - first];
        memcpy(run->lambdas + 2 * k, pair, sizeof pair);
    }
    run->n_worlds = first + run->n_seeds;
    return CT_OK;
}

static ct_status add_pairs(ct_run *run) {
    run->n_seeds = run->n_worlds;
    if (run->config.lambdas[0] == '\0') return CT_OK;
    run->lambdas = ct_new(double, 2 * CT_MAX_WORLDS);
    if (run->lambdas == NULL) return ct_fail(CT_NOMEM, "no memory for the lambdas");
    run->lambdas[0] = -1; /* no pair yet */
    return ct_split(run->config.lambdas, add_pair, run);
}

ct_status ct_config_graph(const ct_config *c, uint64_t seed, ct_topology *out) {
    const ct_edges *own = ct_config_inputs(c)->graph;
    if (own != NULL) return ct_topology_of_edges((int)c->agents, own->edges, own->n_edges, out);
    return ct_topology_create(c->topology, (int)c->agents, seed, out);
}

static ct_status connect_agents(ct_run *run, int k) {
    ct_world *world = &run->worlds[k];
    const ct_config *c = &run->config;
    if (run->schedule.n > 0) return ct_schedule_union(&run->schedule, k, &world->graph, &world->w);
    CT_TRY(ct_config_graph(c, world->seed, &world->graph));
    return ct_mixing_create(&world->graph, c->weights, &world->w);
}

ct_status ct_run_measure_worlds(ct_run *run) {
    for (int k = 0; k < run->n_worlds; k++) {
        ct_world *world = &run->worlds[k];
        CT_TRY(ct_topology_measure(&world->graph, &world->w, &world->topology_facts));
    }
    return CT_OK;
}

/* A graph that changes brings its weights. */
static ct_status create_schedule(ct_run *run) {
    const ct_config *c = &run->config;
    if (!ct_schedule_is_known(c->topology)) return CT_OK;
    if (strcmp(c->weights, "auto") != 0)
        return ct_refuse("weights", "@weights %s: '%s' brings its own weights", c->weights,
                         c->topology);
    return ct_schedule_create(c->topology, (int)c->agents, run->seeds, run->n_worlds,
                              &run->schedule);
}

/* The worlds' mixing matrices as one. */
static ct_status join_weights(ct_run *run) {
    ct_sparse *parts = ct_new(ct_sparse, (size_t)run->n_worlds);
    if (parts == NULL) return ct_fail(CT_NOMEM, "no memory for %d seeds", run->n_worlds);
    for (int k = 0; k < run->n_worlds; k++) parts[k] = run->worlds[k].w;
    ct_status status = ct_sparse_join(parts, run->n_worlds, &run->w);
    ct_free(parts);
    return status;
}

ct_status ct_run_create_worlds(ct_run *run) {
    const ct_config *c = &run->config;
    run->seeds = ct_new(uint64_t, CT_MAX_WORLDS);
    if (run->seeds == NULL) return ct_fail(CT_NOMEM, "no memory for the seeds");
    CT_TRY(ct_config_seeds(c, run->seeds, &run->n_worlds));
    CT_TRY(add_pairs(run));
    if (c->agents * run->n_worlds > CT_MAX_AGENTS)
        return ct_fail(CT_INVAL, "%d times %lld agents are more than %d rows", run->n_worlds,
                       (long long)c->agents, CT_MAX_AGENTS);
    if (c->train_samples > 0 && c->agents > c->train_samples && !ct_config_is_own(c))
        return ct_refuse("agents",
                         "%lld agents cannot share the %lld samples of @train-samples; use fewer "
                         "agents",
                         (long long)c->agents, (long long)c->train_samples);
    run->worlds = ct_new(ct_world, (size_t)run->n_worlds);
    run->graphs = ct_new(ct_topology, (size_t)run->n_worlds);
    if (run->worlds == NULL || run->graphs == NULL)
        return ct_fail(CT_NOMEM, "no memory for %d seeds", run->n_worlds);
    CT_TRY(create_schedule(run));
    for (int k = 0; k < run->n_worlds; k++) {
        run->worlds[k].seed = run->seeds[k];
        run->worlds[k].lambda_m = run->lambdas != NULL ? run->lambdas[2 * k] : c->lambda_m;
        run->worlds[k].lambda_d = run->lambdas != NULL ? run->lambdas[2 * k + 1] : c->lambda_d;
        CT_TRY(connect_agents(run, k));
        run->graphs[k] = run->worlds[k].graph;
    }
    CT_TRY(join_weights(run));
    return ct_topology_join(run->graphs, run->n_worlds, &run->topology);
}

/* The only agent has all of a part. */
static ct_status partition_part(const ct_partition_spec *spec, const ct_dataset *d,
                                ct_partition *out) {
    if (spec->n_agents > 1)
        return ct_fail(CT_INVAL,
                       "%s is a part of the data; say which agent has which sample with "
                       "@partition-file, as crosstalk data split wrote it",
                       d->source);
    CT_TRY(ct_partition_create(spec, d->train.labels, d->train.n, d->n_classes, out));
    for (size_t k = 0; k < out->begin[1]; k++) out->index[k] = d->train_numbers[out->index[k]];
    return CT_OK;
}

ct_status ct_run_partition(const ct_config *c, const ct_dataset *d, uint64_t seed,
                           ct_partition *out) {
    ct_partition_spec spec = {.kind = c->partition,
                              .n_agents = (int)c->agents,
                              .alpha = c->alpha,
                              .classes_per_agent = (int)c->classes_per_agent,
                              .seed = seed};
    const ct_data *own = ct_config_inputs(c)->data;
    if (own != NULL && own->agent_of != NULL)
        return ct_partition_by_agent(own->agent_of, d->train.n, (int)c->agents, out);
    if (c->partition_file[0] != '\0')
        return ct_partition_read(c->partition_file, (int)c->agents, ct_dataset_n_whole(d), out);
    if (d->train_numbers != NULL) return partition_part(&spec, d, out);
    return ct_partition_create(&spec, d->train.labels, d->train.n, d->n_classes, out);
}

static ct_status check_batch(const ct_run *run, const ct_world *world) {
    int64_t batch = run->config.batch_size;
    size_t smallest = ct_validation_left(run, world->partition_facts.min_size);
    if ((size_t)batch <= smallest) return CT_OK;
    if (run->config.site != NULL && (size_t)batch <= run->parts[0].n_train) return CT_OK;
    return ct_refuse("batch-size",
                     "@batch-size %lld is more than the %zu samples of the smallest agent; take a "
                     "smaller batch or fewer agents",
                     (long long)batch, smallest);
}

static ct_status join_partitions(ct_run *run) {
    int n = (int)run->config.agents;
    size_t n_samples = 0;
    for (int k = 0; k < run->n_worlds; k++) n_samples += run->worlds[k].partition.begin[n];
    ct_partition *all = &run->partition;
    all->n_agents = n * run->n_worlds;
    all->begin = ct_new(size_t, (size_t)all->n_agents + 1);
    all->index = ct_new(uint32_t, n_samples);
    if (all->begin == NULL || all->index == NULL)
        return ct_fail(CT_NOMEM, "no memory for the splits of %d seeds", run->n_worlds);
    size_t at = 0;
    for (int k = 0; k < run->n_worlds; k++) {
        const ct_partition *p = &run->worlds[k].partition;
        for (int i = 0; i < n; i++) all->begin[k * n + i] = at + p->begin[i];
        memcpy(all->index + at, p->index, p->begin[n] * sizeof *p->index);
        at += p->begin[n];
    }
    all->begin[all->n_agents] = at;
    return CT_OK;
}

ct_status ct_run_split_data(ct_run *run) {
    for (int k = 0; k < run->n_worlds; k++) {
        ct_partition *split = &run->worlds[k].partition;
        CT_TRY(run->is_own ? ct_own_split(run, split)
                           : ct_run_partition(&run->config, &run->dataset, run->seeds[k], split));
        CT_TRY(ct_validation_choose(run, run->seeds[k], split));
    }
    CT_TRY(ct_run_agree(run));
    CT_TRY(join_partitions(run));
    if (run->is_own)
        ct_own_place(run);
    else
        CT_TRY(ct_run_share_data(run));
    CT_TRY(ct_validation_place(run));
    CT_TRY(ct_run_measure_split(run));
    CT_TRY(ct_run_sum_agents(run));
    for (int k = 0; k < run->n_worlds; k++) CT_TRY(check_batch(run, &run->worlds[k]));
    return CT_OK;
}

void ct_run_free_worlds(ct_run *run) {
    for (int k = 0; run->worlds != NULL && k < run->n_worlds; k++) {
        ct_topology_free(&run->worlds[k].graph);
        ct_sparse_free(&run->worlds[k].w);
        ct_partition_free(&run->worlds[k].partition);
        ct_text_free(&run->worlds[k].unwritten);
    }
    ct_free(run->worlds);
    ct_free(run->graphs);
    ct_free(run->seeds);
    ct_free(run->lambdas);
    run->lambdas = NULL;
    run->worlds = NULL;
    run->graphs = NULL;
    run->seeds = NULL;
}
