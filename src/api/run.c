/* crosstalk/run.h: a run's life and what it knows. Its parameters are in parameters.c. */
#include "run/run.h"

#include <math.h>

#include "api/api_internal.h"
#include "record/write.h"
#include "run/restart.h"
#include "run/training.h"
#include "util/memory.h"

/* ---- what a run is given beside options ---- */

/* The structs at this version's sizes; what they point to is the caller's. */
typedef struct given {
    ct_inputs inputs;
    ct_data data;
    ct_edges graph;
    ct_external external;
    ct_hooks hooks;
} given;

/* A struct of the caller's, perhaps of an older version: what that lacks is 0. */
static ct_status take(const char *what, const void *from, size_t from_size, void *to,
                      size_t to_size) {
    if (from_size < sizeof(size_t))
        return ct_fail(CT_INVAL, "%s has no size: initialise it with its macro", what);
    if (from_size > to_size)
        return ct_fail(CT_INVAL,
                       "%s has %zu bytes, this library knows %zu: it is older than the "
                       "program's headers",
                       what, from_size, to_size);
    memset(to, 0, to_size);
    memcpy(to, from, from_size);
    return CT_OK;
}

static ct_status take_inputs(const ct_inputs *from, given *g) {
    ct_inputs *in = &g->inputs;
    CT_TRY(take("ct_inputs", from, from->size, in, sizeof *in));
    if (in->data != NULL) {
        CT_TRY(take("ct_data", in->data, in->data->size, &g->data, sizeof g->data));
        in->data = &g->data;
    }
    if (in->graph != NULL) {
        CT_TRY(take("ct_edges", in->graph, in->graph->size, &g->graph, sizeof g->graph));
        in->graph = &g->graph;
    }
    if (in->external != NULL) {
        CT_TRY(take("ct_external", in->external, in->external->size, &g->external,
                    sizeof g->external));
        in->external = &g->external;
    }
    if (in->hooks != NULL) g->hooks = *in->hooks;
    if (in->hooks != NULL) in->hooks = &g->hooks;
    return CT_OK;
}

/* An option that says what was given; named otherwise, it was meant otherwise. */
static ct_status claim(ct_config *c, ct_option_id id, const char *value, const char *what) {
    const ct_option *o = &ct_run_options[id];
    if (c->named[id] && strcmp((const char *)c + o->offset, value) != 0)
        return ct_refuse(o->name, "@%s does nothing: %s is given by the program; leave it out",
                         o->name, what);
    return ct_config_put_id(c, id, value);
}

static ct_status refuse_named(const ct_config *c, ct_option_id id, const char *what) {
    const char *name = ct_run_options[id].name;
    return c->named[id] ? ct_refuse(name, "@%s does nothing with %s", name, what) : CT_OK;
}

static ct_status describe_data(ct_config *c, const ct_data *data) {
    static const ct_option_id of_files[] = {CT_OPT_data_dir, CT_OPT_labels, CT_OPT_test_fraction,
                                            CT_OPT_image_size, CT_OPT_cache};
    for (size_t k = 0; k < sizeof of_files / sizeof *of_files; k++)
        CT_TRY(refuse_named(c, of_files[k], "data in memory"));
    CT_TRY(claim(c, CT_OPT_dataset, data->name != NULL ? data->name : "memory", "the data"));
    if (data->agent_of == NULL) return CT_OK;
    CT_TRY(refuse_named(c, CT_OPT_partition_file, "a split that the program gives"));
    return claim(c, CT_OPT_partition, "own", "the split");
}

/* The options as the record shows them. */
static ct_status describe(ct_config *c, const ct_inputs *in) {
    if (in->data != NULL) CT_TRY(describe_data(c, in->data));
    if (in->graph != NULL) CT_TRY(claim(c, CT_OPT_topology, "own", "the graph"));
    if (in->external == NULL) return CT_OK;
    const char *name = in->external->name != NULL ? in->external->name : "external";
    return claim(c, CT_OPT_model, name, "the model");
}

/* ---- hooks: a run's own while one of its calls lasts ---- */

static const ct_hooks *listen(const ct_hooks *hooks) {
    const ct_hooks *before = ct_hooks_now();
    ct_hooks_use(hooks);
    return before;
}

const ct_hooks *ct_run_listen(const ct_run *run) {
    return listen(run != NULL ? ct_config_inputs(&run->config)->hooks : NULL);
}

ct_status ct_run_unlisten(const ct_hooks *before, ct_status status) {
    ct_hooks_use(before);
    return status;
}

/* ---- its life ---- */

static ct_status begin(const ct_config *config, given **g, ct_run *run) {
    CT_SCOPED_HANDLE(ct_checkpoint) checkpoint = NULL;
    ct_config effective = *config;
    bool is_done = false;
    effective.inputs = &(*g)->inputs;
    CT_TRY(describe(&effective, effective.inputs));
    if (config->resume[0] != '\0') CT_TRY(ct_restart_find(&effective, &checkpoint, &is_done));
    if (is_done)
        return ct_refuse("resume", "%s is finished already; open its record or its model",
                         effective.out);
    CT_TRY(ct_run_build(&effective, run));
    run->given = ct_take(g);
    return ct_training_begin(run, checkpoint, NULL);
}

static ct_status create(const ct_config *config, const ct_inputs *inputs, ct_run **out) {
    static const ct_inputs nothing = CT_INPUTS_INIT;
    CT_SCOPED_BLOCK(given) g = NULL;
    CT_SCOPED_HANDLE(ct_run) run = NULL;
    CT_NEED(config);
    CT_NEED(out);
    CT_TRY(ct_make(&g, 1, "the inputs of a run"));
    CT_TRY(take_inputs(inputs != NULL ? inputs : &nothing, g));
    CT_TRY(ct_make(&run, 1, "a run"));
    CT_TRY(begin(config, &g, run));
    *out = ct_take(&run);
    return CT_OK;
}

ct_status ct_run_create(const ct_config *config, const ct_inputs *inputs, ct_run **out,
                        ct_error *error) {
    const ct_hooks *before = listen(inputs != NULL ? inputs->hooks : NULL);
    return ct_run_unlisten(before, CT_CATCH(error, create(config, inputs, out)));
}

void ct_run_free(ct_run **run) {
    if (run == NULL || *run == NULL) return;
    const ct_hooks *before = ct_run_listen(*run);
    ct_run_clear(*run);
    ct_hooks_use(before);
    ct_free(*run);
    *run = NULL;
}

static ct_status step(ct_run *run, long n) {
    CT_NEED(run);
    if (n < 0) return ct_fail(CT_INVAL, "%ld iterations; 0 stands for all that are left", n);
    return ct_training_advance(run, n);
}

ct_status ct_run_step(ct_run *run, long n, ct_error *error) {
    const ct_hooks *before = ct_run_listen(run);
    return ct_run_unlisten(before, CT_CATCH(error, step(run, n)));
}

bool ct_run_is_done(const ct_run *run) {
    return ct_training_is_done(run);
}

long ct_run_iteration(const ct_run *run) {
    return ct_training_iteration(run);
}

long ct_run_n_iterations(const ct_run *run) {
    return ct_training_n_iterations(run);
}

long ct_run_epoch_length(const ct_run *run) {
    return run->epoch_iterations;
}

static ct_status save_checkpoint(ct_run *run) {
    CT_NEED(run);
    return ct_training_save(run);
}

ct_status ct_run_checkpoint(ct_run *run, ct_error *error) {
    const ct_hooks *before = ct_run_listen(run);
    return ct_run_unlisten(before, CT_CATCH(error, save_checkpoint(run)));
}

/* ---- what it knows ---- */

ct_status ct_run_option(const ct_run *run, const char *name, char *out, size_t size,
                        ct_error *error) {
    return ct_config_get(run != NULL ? &run->config : NULL, name, out, size, error);
}

const char *ct_run_directory(const ct_run *run) {
    return run->config.out;
}

int ct_run_n_worlds(const ct_run *run) {
    return run->n_worlds;
}

int ct_run_n_agents(const ct_run *run) {
    return run->agents.n_agents;
}

const char *ct_metric_key(int k) {
    return k >= 0 && k < CT_N_METRICS ? ct_metrics[k].key : NULL;
}

double ct_run_metric(const ct_run *run, int world, const char *key) {
    if (world < 0 || world >= run->n_worlds || key == NULL) return NAN;
    return ct_epoch_number(ct_training_epoch(run, world), key);
}

static ct_status evaluate(ct_run *run) {
    CT_NEED(run);
    return ct_training_evaluate(run);
}

ct_status ct_run_evaluate(ct_run *run, ct_error *error) {
    const ct_hooks *before = ct_run_listen(run);
    return ct_run_unlisten(before, CT_CATCH(error, evaluate(run)));
}
