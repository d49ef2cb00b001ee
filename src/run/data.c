/* Options about data, turned into a data set. */
#include <string.h>

#include "run/own.h"
#include "run/run.h"
#include "util/log.h"
#include "util/memory.h"
#include "util/text.h"

/* Made-up data sets and held-out test parts are the same for every --seed, like real ones. */
#define DATA_SEED 1

static const char *given(const char *text) {
    return text[0] != '\0' ? text : NULL;
}

ct_dataset_options ct_run_data_options(const ct_config *c) {
    return (ct_dataset_options){.dir = given(c->data_dir),
                                .seed = DATA_SEED,
                                .n_train = (size_t)c->train_samples,
                                .n_test = (size_t)c->test_samples,
                                .coarse_labels = strcmp(c->labels, "coarse") == 0,
                                .test_fraction = c->test_fraction,
                                .image_size = (int)c->image_size,
                                .augment = c->augment,
                                .strict = c->strict,
                                .n_workers = (int)c->workers,
                                .memory_bytes = (size_t)c->memory << 20,
                                .cache = given(c->cache),
                                .label = given(c->label),
                                .ignored_columns = given(c->ignore_columns)};
}

/* Every %r becomes the rank's number, every %a the agent (-1: there is none). */
static ct_status name_dir(const ct_config *c, int rank, int agent, ct_text *out) {
    for (const char *at = c->data_dir; *at != '\0';) {
        bool is_rank = strncmp(at, CT_DIR_RANK, strlen(CT_DIR_RANK)) == 0;
        bool is_agent = agent >= 0 && strncmp(at, CT_DIR_AGENT, strlen(CT_DIR_AGENT)) == 0;
        if (is_rank) ct_text_add(out, "%d", rank);
        if (is_agent) ct_text_add(out, "%s", ct_config_agent(c, agent).name);
        if (!is_rank && !is_agent) ct_text_add(out, "%c", *at);
        at += is_rank ? strlen(CT_DIR_RANK) : is_agent ? strlen(CT_DIR_AGENT) : 1;
    }
    return ct_text_status(out);
}

/* Where @data-dir is named and @dataset is not, what lies there says more than the default does. IDX
 * files may be those of the default. */
static ct_status name_unnamed(ct_config *c) {
    const char *name = "";
    ct_dataset_options options = ct_run_data_options(c);
    bool is_named = c->given[CT_OPT_dataset] || strcmp(c->dataset, "auto") == 0;
    if (is_named || options.dir == NULL || strchr(c->data_dir, '%') != NULL) return CT_OK;
    ct_status status = CT_CATCH(NULL, ct_dataset_recognise(&options, &name));
    if (status == CT_NOMEM) return ct_no_memory(c->data_dir);
    if (status != CT_OK || strcmp(name, "idx") == 0 || strcmp(name, c->dataset) == 0) return CT_OK;
    ct_note("%s: taken for @dataset %s", c->data_dir, name);
    return ct_config_put_id(c, CT_OPT_dataset, name);
}

ct_status ct_run_name_data(ct_config *c) {
    const char *name;
    CT_SCOPED(ct_text) dir = {0};
    if (ct_config_inputs(c)->data == NULL) CT_TRY(name_unnamed(c));
    if (strcmp(c->dataset, "auto") != 0 || ct_config_inputs(c)->data != NULL) return CT_OK;
    if (strstr(c->data_dir, CT_DIR_RANK) != NULL)
        return ct_refuse("data-dir",
                         "@data-dir %s is not looked into before there are ranks; name "
                         "the data set with @dataset",
                         c->data_dir);
    ct_dataset_options options = ct_run_data_options(c);
    CT_TRY(name_dir(c, 0, ct_config_is_own(c) ? ct_own_first_agent(c) : -1, &dir));
    if (options.dir != NULL) options.dir = dir.chars;
    CT_TRY(ct_dataset_recognise(&options, &name));
    snprintf(c->dataset, sizeof c->dataset, "%s", name);
    return CT_OK;
}

/* What --train-samples and --test-samples leave. */
static void keep_first(const ct_config *c, ct_dataset *d) {
    size_t n_train = (size_t)c->train_samples, n_test = (size_t)c->test_samples;
    if (n_train > 0 && n_train < d->train.n && d->train_numbers == NULL) d->train.n = n_train;
    if (n_test > 0 && n_test < d->test.n) d->test.n = n_test;
}

/* Whoever wants one data set cannot take all agents'. */
static ct_status check_one(const ct_config *c) {
    if (strstr(c->data_dir, CT_DIR_AGENT) == NULL) return CT_OK;
    return ct_refuse("data-dir",
                     "@data-dir %s is a directory for every agent (@partition own), and nothing "
                     "that is split; name one of them",
                     c->data_dir);
}

static ct_status open_as(const ct_config *c, const ct_dataset_options *options, ct_dataset *out) {
    CT_TRY(ct_dataset_open(c->dataset, options, out));
    keep_first(c, out);
    return CT_OK;
}

ct_status ct_run_open_data_as(const ct_config *c, const ct_dataset_options *options,
                              ct_dataset *out) {
    CT_TRY(check_one(c));
    return open_as(c, options, out);
}

static ct_status lend_data(const ct_config *c, const ct_inputs *inputs, ct_dataset *out) {
    CT_TRY(ct_dataset_lend(inputs->data, inputs->external != NULL, out));
    keep_first(c, out);
    return CT_OK;
}

/* As the options say, in the directory of a rank or an agent (-1: none). */
static ct_status open_data_of(const ct_config *c, int rank, int agent, ct_dataset_options *options,
                              ct_dataset *out) {
    CT_SCOPED(ct_text) dir = {0};
    CT_TRY(name_dir(c, rank, agent, &dir));
    if (options->dir != NULL) options->dir = dir.chars;
    return open_as(c, options, out);
}

ct_status ct_run_open_data(const ct_config *c, int rank, ct_dataset *out) {
    const ct_inputs *inputs = ct_config_inputs(c);
    if (inputs->data != NULL) return lend_data(c, inputs, out);
    CT_TRY(check_one(c));
    ct_dataset_options options = ct_run_data_options(c);
    return open_data_of(c, rank, -1, &options, out);
}

ct_status ct_run_open_agent(const ct_config *c, int rank, int agent, const ct_columns *columns,
                            ct_dataset *out) {
    ct_dataset_options options = ct_run_data_options(c);
    options.is_agents = true;
    options.columns = columns;
    return open_data_of(c, rank, agent, &options, out);
}

ct_status ct_run_open_test(const ct_config *c, const ct_model_facts *model, ct_dataset *out) {
    ct_dataset_options options = ct_run_data_options(c);
    CT_TRY(check_one(c));
    options.image_size = model->height;
    options.resize = model->resize;
    options.columns = model->columns;
    options.only_test = true;
    return open_data_of(c, 0, -1, &options, out);
}

static ct_status create_loader(ct_run *run, ct_pictures *pictures, ct_order *order, ct_span agents,
                               int batch_size, ct_loader **out) {
    ct_loader_spec spec = {.pictures = pictures,
                           .order = order,
                           .first_agent = agents.first,
                           .n_agents = agents.n,
                           .batch_size = batch_size,
                           .n_workers = (int)run->config.workers};
    return ct_loader_create(&spec, out);
}

/* The test samples in order, in batches of the plan's size: where a part ends within one, its last
 * sample fills it up. */
static ct_status list_tested(ct_run *run, ct_partition *out) {
    size_t size = (size_t)run->plan->max_batch, n = 0;
    out->n_agents = 1;
    CT_TRY(ct_make(&out->begin, 2, "the test samples"));
    CT_TRY(ct_make(&out->index, run->dataset.test.n + size * (size_t)run->n_parts,
                   "the test samples"));
    for (const ct_agent_part *p = run->parts; p < run->parts + run->n_parts; p++) {
        for (; p->n_test > 0 && n % size != 0; n++) out->index[n] = out->index[n - 1];
        for (size_t i = 0; i < p->n_test; i++) out->index[n++] = (uint32_t)(p->first_test + i);
    }
    out->begin[1] = n;
    return CT_OK;
}

/* One agent that visits the test samples. */
static ct_status create_test_loader(ct_run *run) {
    static const uint64_t seed;
    ct_partition *all = &run->test_partition;
    CT_TRY(list_tested(run, all));
    ct_order_spec spec = {.seeds = &seed, .n_seeds = 1, .batch_size = run->plan->max_batch};
    CT_TRY(ct_order_create(&spec, all, &run->test_order));
    return create_loader(run, run->dataset.test_pictures, run->test_order, (ct_span){0, 1},
                         run->plan->max_batch, &run->test_loader);
}

static ct_status create_source(ct_run *run, const ct_loader *loader, const ct_images *images,
                               ct_source **out) {
    const ct_dataset *d = &run->dataset;
    return ct_source_create(run->backend, loader != NULL ? ct_loader_images(loader) : images,
                            d->mean, d->std, out);
}

static ct_status create_external_sources(ct_run *run) {
    const ct_dataset *d = &run->dataset;
    CT_TRY(ct_external_source_create(run->backend, &d->train, d->train_numbers, &run->train));
    return ct_external_source_create(run->backend, &d->test, NULL, &run->test);
}

ct_status ct_run_create_sources(ct_run *run) {
    const ct_dataset *d = &run->dataset;
    if (run->external != NULL) return create_external_sources(run);
    if (d->train_pictures != NULL)
        CT_TRY(create_loader(run, d->train_pictures, run->order, ct_transport_own(run->transport),
                             (int)run->config.batch_size, &run->train_loader));
    if (d->test_pictures != NULL) CT_TRY(create_test_loader(run));
    CT_TRY(create_source(run, run->train_loader, &d->train, &run->train));
    return create_source(run, run->test_loader, &d->test, &run->test);
}

void ct_run_free_sources(ct_run *run) {
    ct_source_free(&run->test);
    ct_source_free(&run->train);
    ct_loader_free(&run->test_loader);
    ct_order_free(&run->test_order);
    ct_partition_free(&run->test_partition);
    ct_loader_free(&run->train_loader);
    ct_order_free(&run->order);
}

ct_status ct_run_batches(ct_run *run, long iteration) {
    if (run->train_loader == NULL) {
        for (int i = 0; i < run->agents.n; i++)
            run->batches[i] = ct_order_batch(run->order, run->agents.first + i, iteration);
        return CT_OK;
    }
    size_t first = 0, n = 0;
    CT_TRY(ct_loader_batches(run->train_loader, iteration, run->batches, &first, &n));
    return ct_source_refresh(run->train, ct_loader_images(run->train_loader), first, n);
}

ct_status ct_run_test_batch(ct_run *run, ct_batch *out) {
    size_t first = 0, n = 0;
    CT_TRY(ct_loader_batches(run->test_loader, run->test_iteration++, out, &first, &n));
    return ct_source_refresh(run->test, ct_loader_images(run->test_loader), first, n);
}

double ct_run_data_wait(const ct_run *run) {
    return (run->train_loader != NULL ? ct_loader_waited(run->train_loader) : 0) +
           (run->test_loader != NULL ? ct_loader_waited(run->test_loader) : 0);
}
